package function

import (
	"fmt"

	"github.com/apache/arrow-go/v18/arrow"

	"github.com/tidemill/tidemill/columnar"
	"github.com/tidemill/tidemill/columnar/kernel"
)

// bitScalars are the operators on the bits of integers, and the exclusive or.
func bitScalars() []*Scalar {
	two := func(name, doc, example string, f func(a, b int64) int64, aliases ...string) *Scalar {
		return &Scalar{Name: name, Aliases: aliases, Doc: doc, Example: example, Overloads: []Overload{{
			Args: []Matcher{bigint, bigint}, Result: always(columnar.Int64),
			Bind: func([]arrow.DataType, []arrow.Array) (Kernel, error) {
				return onRows(columnar.Int64, func(c *call) (arrow.Array, error) {
					a, b := numbersOf[int64](c.args[0]), numbersOf[int64](c.args[1])
					return fixedRows(c, func(i int) int64 { return f(a.at(i), b.at(i)) })
				}), nil
			},
		}}}
	}
	xor := two("xor", "Exclusive or, of two conditions or of the bits of two integers.", "xor(12, 10) = 6", func(a, b int64) int64 { return a ^ b })
	xor.Overloads = append(xor.Overloads, Overload{
		Args: []Matcher{boolean, boolean}, Result: always(columnar.Boolean),
		Bind: func([]arrow.DataType, []arrow.Array) (Kernel, error) {
			return func(env *Env, args []columnar.Datum, rows int, _ *columnar.Bitmap) (columnar.Datum, error) {
				return kernel.Xor(env.Mem, args[0], args[1], rows), nil
			}, nil
		},
	})
	return []*Scalar{
		xor,
		two("&", "Bits set in both integers.", "12 & 10 = 8", func(a, b int64) int64 { return a & b }),
		two("|", "Bits set in either integer.", "12 | 10 = 14", func(a, b int64) int64 { return a | b }),
		shift("<<", "The bits of an integer moved to the left, which doubles it each time; a number that does not fit, or a negative number of bits, is an error.", "1 << 4 = 16", shiftLeft, "shiftleft"),
		shift(">>", "The bits of an integer moved to the right, keeping the sign, which halves it downwards each time; a negative number of bits is an error.", "-16 >> 2 = -4", func(a, b int64) (int64, bool) { return a >> min(b, 63), true }, "shiftright"),
		{Name: "~", Aliases: []string{"bitwise_not"}, Doc: "Every bit turned over.", Example: "~5 = -6", Overloads: []Overload{{
			Args: []Matcher{bigint}, Result: always(columnar.Int64),
			Bind: func([]arrow.DataType, []arrow.Array) (Kernel, error) {
				return onRows(columnar.Int64, func(c *call) (arrow.Array, error) {
					a := numbersOf[int64](c.args[0])
					return fixedRows(c, func(i int) int64 { return ^a.at(i) })
				}), nil
			},
		}}},
	}
}

// shift moves a by b bits, which is not negative; ok says whether the result fits.
func shift(name, doc, example string, f func(a, b int64) (v int64, ok bool), alias string) *Scalar {
	return defineFallible(name, doc, example, []Matcher{bigint, bigint}, columnar.Int64, func(c *call) (arrow.Array, error) {
		a, b := numbersOf[int64](c.args[0]), numbersOf[int64](c.args[1])
		return fallibleRows(c, func(i int) (int64, error) {
			if err := bitsMoved(b.at(i)); err != nil {
				return 0, err
			}
			v, ok := f(a.at(i), b.at(i))
			if !ok {
				return 0, &kernel.ValueError{Kind: kernel.ErrOverflow, Text: fmt.Sprintf("%d %s %d overflows BIGINT", a.at(i), name, b.at(i))}
			}
			return v, nil
		})
	}, alias)
}

func shiftLeft(a, b int64) (int64, bool) {
	if a == 0 {
		return 0, true
	}
	v := a << min(b, 63)
	return v, b < 64 && v>>b == a
}
