package function

import (
	"errors"
	"fmt"
	"math"
	"math/big"
	"strings"
	"time"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/memory"

	"github.com/tidemill/tidemill/columnar"
	"github.com/tidemill/tidemill/columnar/kernel"
)

// assertionScalars fail on purpose, or say what zero and null are to each other.
func assertionScalars() []*Scalar {
	number := class("number", columnar.Int32, columnar.IsNumeric)
	return []*Scalar{
		againstZero("nullifzero", "A number, null if it is zero.", "nullifzero(0) = NULL", number, func(isNull, isZero bool) int {
			if isZero {
				return -1
			}
			return 0
		}),
		againstZero("zeroifnull", "A number, zero if it is null.", "zeroifnull(NULL) = 0", number, func(isNull, isZero bool) int {
			if isNull {
				return 1
			}
			return 0
		}),
		{Name: "positive", Doc: "A number as it is; written +x, too.", Example: "positive(-1) = -1", Overloads: []Overload{{
			Args: []Matcher{number}, Result: sameAs(0), Bind: func([]arrow.DataType, []arrow.Array) (Kernel, error) {
				return func(_ *Env, args []columnar.Datum, _ int, _ *columnar.Bitmap) (columnar.Datum, error) {
					return args[0].Retain(), nil
				}, nil
			},
		}}},
		raiseErrorScalar(), assertTrueScalar(),
	}
}

// againstZero takes from each row its own number (0), zero (1) or null (-1).
func againstZero(name, doc, example string, number Matcher, which func(isNull, isZero bool) int) *Scalar {
	return &Scalar{Name: name, Doc: doc, Example: example, Overloads: []Overload{{
		Args: []Matcher{number}, Result: sameAs(0), NullSafe: true, Bind: func(args []arrow.DataType, _ []arrow.Array) (Kernel, error) {
			zero, err := columnar.Column(memory.DefaultAllocator, args[0], 0)
			if err != nil {
				return nil, err
			}
			return onAllRows(args[0], func(c *call) (arrow.Array, error) {
				a := c.args[0].Array()
				refs := make([]kernel.Ref, c.rows)
				for i := range refs {
					isNull := columnar.IsNull(a, i)
					switch which(isNull, !isNull && kernel.CompareValues(a, i, zero, 0) == 0) {
					case 1:
						refs[i] = kernel.MakeRef(1, 0)
					case 0:
						refs[i] = kernel.MakeRef(0, i)
					default:
						refs[i] = kernel.MakeRef(2, 0)
					}
				}
				null := columnar.Nulls(c.env.Mem, args[0], 1)
				defer null.Release()
				return c.gather([]arrow.Array{a, zero, null}, refs)
			}), nil
		},
	}}}
}

func raiseErrorScalar() *Scalar {
	o := overload([]Matcher{varchar}, columnar.String, func(c *call) (arrow.Array, error) {
		in := kernel.TextsOf(c.args[0])
		return c.text(0, func(dst []byte, i int) ([]byte, error) { return dst, errors.New(string(in.At(i))) })
	})
	o.Fallible = true
	return &Scalar{Name: "raise_error", Aliases: []string{"error"}, Doc: "An error with a text of one's own, for rows that must not be; null for a null text. CASE and if guard it.", Example: "raise_error(CAST(NULL AS VARCHAR)) = NULL", Overloads: []Overload{o}}
}

func assertTrueScalar() *Scalar {
	run := func(c *call) (arrow.Array, error) {
		holds := columnar.NewBitmap(c.rows)
		kernel.MarkTrue(holds, c.args[0], c.rows)
		for i := range c.rows {
			switch {
			case holds.Get(i) || !c.active.Get(i):
			case len(c.args) > 1 && !c.isNull(1, i):
				return nil, errors.New(string(kernel.TextsOf(c.args[1]).At(i)))
			default:
				return nil, errors.New("the condition is not true")
			}
		}
		return columnar.Nulls(c.env.Mem, columnar.Boolean, c.rows), nil
	}
	form := func(args ...Matcher) Overload {
		return Overload{Args: args, Result: always(columnar.Boolean), NullSafe: true, Fallible: true, Bind: func([]arrow.DataType, []arrow.Array) (Kernel, error) {
			return onAllRows(columnar.Boolean, run), nil
		}}
	}
	return &Scalar{Name: "assert_true", Doc: "Null where a condition is true; where it is false or null an error, with the text given.", Example: "assert_true(1 < 2) = NULL", Overloads: []Overload{form(boolean), form(boolean, varchar)}}
}

// intervalPartScalars make intervals of their parts.
func intervalPartScalars() []*Scalar {
	list := []*Scalar{
		dayTimeIntervalScalar(), yearMonthIntervalScalar(), convertTimezoneScalar(),
	}
	for _, u := range []struct {
		name, unit, example string
		months              int64
	}{
		{"to_quarters", "quarters", "to_quarters(3) = 9 months", 3},
		{"to_decades", "decades", "to_decades(2) = 20 years", 120},
		{"to_centuries", "centuries", "to_centuries(1) = 100 years", 1200},
		{"to_millennia", "millennia", "to_millennia(1) = 1000 years", 12000},
	} {
		list = append(list, defineFallible(u.name, "So many "+u.unit+" as an INTERVAL.", u.example, []Matcher{bigint}, columnar.Interval, func(c *call) (arrow.Array, error) {
			n := numbersOf[int64](c.args[0])
			return fallibleRows(c, func(i int) (arrow.MonthDayNanoInterval, error) {
				return scaleInterval(arrow.MonthDayNanoInterval{Months: int32(u.months)}, n.at(i))
			})
		}))
	}
	return list
}

func yearMonthIntervalScalar() *Scalar {
	run := func(c *call) (arrow.Array, error) {
		var n [2]numbers[int64]
		for k := range c.args {
			n[k] = numbersOf[int64](c.args[k])
		}
		return fallibleRows(c, func(i int) (arrow.MonthDayNanoInterval, error) {
			months := new(big.Int)
			if len(c.args) > 1 {
				months.SetInt64(n[1].at(i))
			}
			if len(c.args) > 0 {
				months.Add(months, new(big.Int).Mul(big.NewInt(n[0].at(i)), big.NewInt(12)))
			}
			if !months.IsInt64() || months.Int64() != int64(int32(months.Int64())) {
				return arrow.MonthDayNanoInterval{}, &kernel.ValueError{Kind: kernel.ErrOverflow, Text: fmt.Sprintf("%s months overflows INTERVAL", months)}
			}
			return arrow.MonthDayNanoInterval{Months: int32(months.Int64())}, nil
		})
	}
	return defineFallible("make_ym_interval", "So many years and months as an INTERVAL.", "make_ym_interval(1, 2) = 1 year 2 months", []Matcher{bigint}, columnar.Interval, run).
		alsoFor([]Matcher{bigint, bigint}, columnar.Interval, run).alsoFor(nil, columnar.Interval, run)
}

func dayTimeIntervalScalar() *Scalar {
	run := func(c *call) (arrow.Array, error) {
		var n [3]numbers[int64]
		for k := range min(len(c.args), 3) {
			n[k] = numbersOf[int64](c.args[k])
		}
		return fallibleRows(c, func(i int) (arrow.MonthDayNanoInterval, error) {
			days, micros := int64(0), new(big.Int)
			if len(c.args) > 0 {
				days = n[0].at(i)
			}
			for k, unit := range []int64{3600e6, 60e6} {
				if len(c.args) > k+1 {
					micros.Add(micros, new(big.Int).Mul(big.NewInt(n[k+1].at(i)), big.NewInt(unit)))
				}
			}
			fits := days == int64(int32(days))
			if len(c.args) > 3 {
				seconds := math.RoundToEven(numbersOf[float64](c.args[3]).at(i) * 1e6)
				fits = fits && math.Abs(seconds) < 1<<63
				if fits {
					whole, _ := big.NewFloat(seconds).Int(nil)
					micros.Add(micros, whole)
				}
			}
			nanos := micros.Mul(micros, big.NewInt(1000))
			if !fits || !nanos.IsInt64() {
				return arrow.MonthDayNanoInterval{}, &kernel.ValueError{Kind: kernel.ErrOverflow, Text: "so many days, hours, minutes and seconds overflow INTERVAL"}
			}
			return arrow.MonthDayNanoInterval{Days: int32(days), Nanoseconds: nanos.Int64()}, nil
		})
	}
	f := defineFallible("make_dt_interval", "So many days, hours, minutes and seconds as an INTERVAL.", "make_dt_interval(1, 2, 3, 4.5) = 1 day 02:03:04.5", []Matcher{bigint}, columnar.Interval, run)
	for n := 2; n <= 4; n++ {
		f.alsoFor([]Matcher{bigint, bigint, bigint, double}[:n], columnar.Interval, run)
	}
	return f.alsoFor(nil, columnar.Interval, run)
}

// convertTimezoneScalar is convert_timezone([from,] to, time).
func convertTimezoneScalar() *Scalar {
	run := func(c *call) (arrow.Array, error) {
		at := numbersOf[int64](c.args[len(c.args)-1])
		zones := newZones(c)
		return fallibleRows(c, func(i int) (int64, error) {
			from := c.env.Zone()
			if len(c.args) > 2 {
				var err error
				if from, err = zones(0, i); err != nil {
					return 0, err
				}
			}
			to, err := zones(len(c.args)-2, i)
			if err != nil {
				return 0, err
			}
			// What clocks show is a time in the session time zone on both sides.
			moved, err := moveZone(at.at(i), c.env.Location, from)
			if err != nil {
				return 0, err
			}
			return moveZone(moved, to, c.env.Location)
		})
	}
	f := defineFallible("convert_timezone", "What the clocks of a time zone show when those of another (of the session, if only one is named) show a time: convert_timezone(from, to, time).", "convert_timezone('Europe/Berlin', 'America/New_York', make_timestamp(2024, 7, 1, 12, 0, 0)) = 2024-07-01 06:00:00",
		[]Matcher{varchar, timestamp}, columnar.Timestamp, run).alsoFor([]Matcher{varchar, varchar, timestamp}, columnar.Timestamp, run)
	return textChecked(textChecked(f, 0, columnar.LoadZone), 1, columnar.LoadZone)
}

// newZones reads argument k of row i as a time zone.
func newZones(c *call) func(k, i int) (*time.Location, error) {
	caches := make([]*compiled[*time.Location], len(c.args))
	for k := range caches {
		caches[k] = newCompiled(func(name, _ string) (*time.Location, error) { return columnar.LoadZone(name) })
	}
	return func(k, i int) (*time.Location, error) { return caches[k].get(kernel.TextsOf(c.args[k]).At(i), "") }
}

// pathScalars take the names of files apart, as table functions give them.
func pathScalars() []*Scalar {
	one := func(name, doc, example string, f func(path string) string) *Scalar {
		return define(name, doc, example, []Matcher{varchar}, columnar.String, func(c *call) (arrow.Array, error) {
			in := kernel.TextsOf(c.args[0])
			return c.text(in.Size(c.rows), func(dst []byte, i int) ([]byte, error) { return append(dst, f(string(in.At(i)))...), nil })
		})
	}
	base := func(path string) string { return path[strings.LastIndexAny(path, `/\`)+1:] }
	filename := one("parse_filename", "The last part of a path; without the ending from the last point on if the second argument is true.", "parse_filename('data/2024/a.csv') = a.csv", base)
	filename.alsoFor([]Matcher{varchar, boolean}, columnar.String, func(c *call) (arrow.Array, error) {
		in := kernel.TextsOf(c.args[0])
		cut := columnar.NewBitmap(c.rows)
		kernel.MarkTrue(cut, c.args[1], c.rows)
		return c.text(in.Size(c.rows), func(dst []byte, i int) ([]byte, error) {
			name := base(string(in.At(i)))
			if at := strings.LastIndexByte(name, '.'); at > 0 && cut.Get(i) {
				name = name[:at]
			}
			return append(dst, name...), nil
		})
	})
	return []*Scalar{
		filename,
		one("parse_dirpath", "A path without its last part.", "parse_dirpath('data/2024/a.csv') = data/2024", func(path string) string {
			return path[:max(strings.LastIndexAny(path, `/\`), 0)]
		}),
		one("parse_dirname", "The first part of a path, empty if there is one only.", "parse_dirname('data/2024/a.csv') = data", func(path string) string {
			return path[:max(strings.IndexAny(path, `/\`), 0)]
		}),
	}
}

// shiftUnsignedScalar moves bits to the right and zeros in.
func shiftUnsignedScalar() *Scalar {
	return shift("shiftrightunsigned", "The bits of an integer moved to the right, zeros from the left; a negative number of bits is an error.", "shiftrightunsigned(-1, 60) = 15", func(a, b int64) (int64, bool) {
		return int64(uint64(a) >> min(b, 64)), true
	}, "shift_right_unsigned")
}

// regexpSubstrScalar is what a regular expression matches first.
func regexpSubstrScalar() *Scalar {
	return &Scalar{Name: "regexp_substr", Doc: "What a regular expression matches first in a text, null if nothing.", Example: "regexp_substr('k=42', '[0-9]+') = 42", Overloads: []Overload{{
		Args: []Matcher{varchar, varchar}, Result: always(columnar.String), Fallible: true,
		Bind: func(_ []arrow.DataType, constants []arrow.Array) (Kernel, error) {
			source, err := regexpSource(constants, 1, 99, plainPattern)
			if err != nil {
				return nil, err
			}
			return onRows(columnar.String, func(c *call) (arrow.Array, error) {
				in, of := kernel.TextsOf(c.args[0]), source(c)
				var failed error
				a, err := c.nullableText(in.Size(c.rows), func(dst []byte, i int) ([]byte, bool) {
					re, err := of(i)
					if err != nil {
						if failed == nil && c.active.Get(i) {
							failed = err
						}
						return dst, false
					}
					s := in.At(i)
					m := re.find(s)
					if m == nil {
						return dst, false
					}
					return append(dst, s[m[0]:m[1]]...), true
				})
				if failed != nil && err == nil {
					a.Release()
					return nil, failed
				}
				return a, err
			}), nil
		},
	}}}
}
