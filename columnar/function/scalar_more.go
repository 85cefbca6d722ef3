package function

import (
	"errors"
	"fmt"
	"math"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/go-json-experiment/json/jsontext"

	"github.com/tidemill/tidemill/columnar"
	"github.com/tidemill/tidemill/columnar/kernel"
)

// mapContainsValueScalar looks for a value among those of a map.
func mapContainsValueScalar() *Scalar {
	mapOnly := matcher{"MAP", func(a arrow.DataType) (arrow.DataType, int, bool) { return a, 0, a.ID() == arrow.MAP }}
	return &Scalar{Name: "map_contains_value", Doc: "Whether a map has a value under some key.", Example: "map_contains_value(map('a', 1), 1) = true", Overloads: []Overload{{
		Args: []Matcher{mapOnly, anyType}, Result: isMapValue, Fallible: true, Bind: func(args []arrow.DataType, _ []arrow.Array) (Kernel, error) {
			return onRows(columnar.Boolean, func(c *call) (arrow.Array, error) {
				m := kernel.ListsOf(c.args[0])
				items, value, err := c.toCompare(m.Child.(*array.Struct).Field(1), 1)
				if err != nil {
					return nil, err
				}
				defer items.Release()
				defer value.Release()
				return c.boolRows(func(i int) bool {
					from, to := m.At(i)
					for j := from; j < to; j++ {
						if !columnar.IsNull(items, j) && kernel.CompareValues(items, j, value, c.place(1, i)) == 0 {
							return true
						}
					}
					return false
				})
			}), nil
		},
	}}}
}

// isMapValue is BOOLEAN, if the second argument compares with the values of the first.
func isMapValue(args []arrow.DataType) (arrow.DataType, error) {
	values := args[0].(*arrow.MapType).ItemType()
	if _, ok := columnar.Common(values, args[1]); !ok {
		return nil, fmt.Errorf("the values are %s, not %s; cast the value", columnar.TypeName(values), columnar.TypeName(args[1]))
	}
	return columnar.Boolean, nil
}

// prettyJSONScalar writes JSON over several lines.
func prettyJSONScalar() *Scalar {
	return define("json_pretty", "A JSON text over several lines, each level four blanks further in; null if the text is no JSON.", "length(json_pretty('{\"a\":1}')) = 14", []Matcher{varchar}, columnar.String, func(c *call) (arrow.Array, error) {
		in := kernel.TextsOf(c.args[0])
		return c.nullableText(2*in.Size(c.rows), func(dst []byte, i int) ([]byte, bool) {
			v := jsontext.Value(append([]byte(nil), in.At(i)...))
			if v.Indent(append(lenientJSON, jsontext.WithIndent("    "))...) != nil {
				return dst, false
			}
			return append(dst, v...), true
		})
	})
}

// drawnScalars are random numbers of other kinds than random.
func drawnScalars() []*Scalar {
	return []*Scalar{
		drawnScalar("randn", "A random number of the normal distribution around 0 with a standard deviation of 1; drawn as random draws, with a seed as there.", "randn() < 100 = true", nil, func(d draws, _ []numbers[float64], i int) float64 {
			// Two numbers for a row: Mix makes others of the row's.
			u := float64(Mix(d.seed^0x9E3779B97F4A7C15, d.row+uint64(i))>>11) / (1 << 53)
			return math.Sqrt(-2*math.Log(1-d.float(i))) * math.Cos(2*math.Pi*u)
		}),
		drawnScalar("uniform", "A random number from the first argument up to, not including, the second; drawn as random draws, with a seed behind them as there.", "uniform(1, 2) >= 1 = true", []Matcher{double, double}, func(d draws, bounds []numbers[float64], i int) float64 {
			low, high := bounds[0].at(i), bounds[1].at(i)
			return low + d.float(i)*(high-low)
		}),
	}
}

// drawnScalar is a random number of arguments, and of a constant seed behind them.
func drawnScalar(name, doc, example string, args []Matcher, f func(d draws, args []numbers[float64], i int) float64) *Scalar {
	form := func(matchers []Matcher) Overload {
		return Overload{Args: matchers, Result: always(columnar.Float64), Volatility: Volatile, NullSafe: len(args) == 0, Fallible: len(matchers) > len(args), Bind: func([]arrow.DataType, []arrow.Array) (Kernel, error) {
			return func(env *Env, given []columnar.Datum, rows int, _ *columnar.Bitmap) (columnar.Datum, error) {
				seed, err := seedOf(env, given[len(args):])
				if err != nil {
					return columnar.Datum{}, err
				}
				numbers := make([]numbers[float64], len(args))
				for k := range numbers {
					numbers[k] = numbersOf[float64](given[k])
				}
				drawn := env.draws(seed)
				buf, out := kernel.Make[float64](env.Mem, rows)
				for i := range out {
					out[i] = f(drawn, numbers, i)
				}
				return columnar.ColumnDatum(kernel.Wrap(columnar.Float64, rows, 0, nil, buf)), nil
			}, nil
		}}
	}
	return &Scalar{Name: name, Doc: doc, Example: example, Overloads: []Overload{form(args), form(append(args[:len(args):len(args)], bigint))}}
}

// seedOf is the seed of a random function that is given one, or none.
func seedOf(env *Env, given []columnar.Datum) (uint64, error) {
	switch {
	case len(given) == 0:
		return env.Salt, nil
	case !given[0].IsConstant():
		return 0, errors.New("the seed must be a constant, such as random(42)")
	case given[0].IsNullConstant():
		return 0, nil
	}
	return uint64(kernel.Values[int64](given[0].Array())[0]), nil
}
