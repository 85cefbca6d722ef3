package function

import (
	"fmt"
	"math"
	"math/bits"
	"strconv"
	"strings"

	"github.com/apache/arrow-go/v18/arrow"

	"github.com/tidemill/tidemill/columnar"
	"github.com/tidemill/tidemill/columnar/kernel"
)

// integerScalars are functions on whole numbers.
func integerScalars() []*Scalar {
	two := []Matcher{bigint, bigint}
	return []*Scalar{
		defineFallible("gcd", "The greatest integer that divides both, never negative.", "gcd(12, 18) = 6", two, columnar.Int64, onIntegers(func(a, b int64) (int64, bool) {
			g := gcd(magnitude(a), magnitude(b))
			return int64(g), g <= math.MaxInt64
		}), "greatest_common_divisor"),
		defineFallible("lcm", "The least integer that both divide, never negative.", "lcm(4, 6) = 12", two, columnar.Int64, onIntegers(lcm), "least_common_multiple"),
		defineFallible("pmod", "Remainder of a division, never negative for a positive divisor.", "pmod(-7, 3) = 2", two, columnar.Int64, func(c *call) (arrow.Array, error) {
			a, b := numbersOf[int64](c.args[0]), numbersOf[int64](c.args[1])
			return fallibleRows(c, func(i int) (int64, error) {
				x, y := a.at(i), b.at(i)
				switch y {
				case 0:
					return 0, explain(c.env, &kernel.ValueError{Kind: kernel.ErrDivideByZero, Text: "division by zero"}, "nullif")
				case -1: // the least integer has no quotient
					return 0, nil
				}
				r := x % y
				if r < 0 {
					r = (r + y) % y
				}
				return r, nil
			})
		}).alsoNumbers(),
		defineFallible("factorial", "The product of the integers from 1 to a number, which is at most 20.", "factorial(5) = 120", []Matcher{bigint}, columnar.Int64, func(c *call) (arrow.Array, error) {
			in := numbersOf[int64](c.args[0])
			return fallibleRows(c, func(i int) (int64, error) {
				n := in.at(i)
				if err := hasFactorial(n); err != nil {
					return 0, &kernel.ValueError{Kind: kernel.ErrOverflow, Text: err.Error()}
				}
				v := int64(1)
				for k := int64(2); k <= n; k++ {
					v *= k
				}
				return v, nil
			})
		}),
		define("bit_count", "How many bits of an integer are set; of a negative one in 64 bits, whatever its type.", "bit_count(7) = 3", []Matcher{bigint}, columnar.Int32, func(c *call) (arrow.Array, error) {
			in := numbersOf[int64](c.args[0])
			return fixedRows(c, func(i int) int32 { return int32(bits.OnesCount64(uint64(in.at(i)))) })
		}),
		define("bin", "An integer in binary digits; a negative one as its 64 bits.", "bin(5) = 101", []Matcher{bigint}, columnar.String, func(c *call) (arrow.Array, error) {
			in := numbersOf[int64](c.args[0])
			return c.text(c.rows*8, func(dst []byte, i int) ([]byte, error) { return strconv.AppendUint(dst, uint64(in.at(i)), 2), nil })
		}, "to_binary"),
		convScalar(), widthBucketScalar(), getBitScalar(),
	}
}

// onIntegers computes an integer of two; f says whether it fits.
func onIntegers(f func(a, b int64) (int64, bool)) func(c *call) (arrow.Array, error) {
	return func(c *call) (arrow.Array, error) {
		a, b := numbersOf[int64](c.args[0]), numbersOf[int64](c.args[1])
		return fallibleRows(c, func(i int) (int64, error) {
			v, ok := f(a.at(i), b.at(i))
			if !ok {
				return 0, explain(c.env, &kernel.ValueError{Kind: kernel.ErrOverflow, Text: fmt.Sprintf("the result for %d and %d overflows BIGINT", a.at(i), b.at(i))}, "")
			}
			return v, nil
		})
	}
}

func magnitude(a int64) uint64 {
	if a < 0 {
		return -uint64(a)
	}
	return uint64(a)
}

func gcd(a, b uint64) uint64 {
	for b != 0 {
		a, b = b, a%b
	}
	return a
}

func lcm(a, b int64) (int64, bool) {
	x, y := magnitude(a), magnitude(b)
	if x == 0 || y == 0 {
		return 0, true
	}
	high, low := bits.Mul64(x/gcd(x, y), y)
	return int64(low), high == 0 && low <= math.MaxInt64
}

// convScalar writes a number of one base in another.
func convScalar() *Scalar {
	return define("conv", "A text of digits in one base (2 to 36) as digits in another; null if there are none. Letters are upper case.", "conv('ff', 16, 10) = 255", []Matcher{varchar, bigint, bigint}, columnar.String, func(c *call) (arrow.Array, error) {
		in, from, to := kernel.TextsOf(c.args[0]), numbersOf[int64](c.args[1]), numbersOf[int64](c.args[2])
		return c.nullableText(c.rows*8, func(dst []byte, i int) ([]byte, bool) {
			return appendInBase(dst, string(in.At(i)), from.at(i), to.at(i))
		})
	})
}

// appendInBase reads the digits at the beginning of s; what does not fit 64 bits counts
// as the largest number.
func appendInBase(dst []byte, s string, from, to int64) ([]byte, bool) {
	if from < 2 || from > 36 || to < 2 || to > 36 {
		return dst, false
	}
	digits, negative := strings.CutPrefix(strings.TrimSpace(s), "-")
	v, n := uint64(0), 0
	for ; n < len(digits); n++ {
		d, err := strconv.ParseUint(digits[n:n+1], int(from), 64)
		if err != nil {
			break
		}
		if high, low := bits.Mul64(v, uint64(from)); high != 0 || low+d < low {
			v = math.MaxUint64
		} else {
			v = low + d
		}
	}
	if n == 0 {
		return dst, false
	}
	if negative {
		v = -v
	}
	return append(dst, strings.ToUpper(strconv.FormatUint(v, int(to)))...), true
}

func widthBucketScalar() *Scalar {
	return define("width_bucket", "The number of the bucket, of so many of equal width between two bounds, that a value lies in: 0 below, one more than there are above; null where there are no buckets (a number below 1, or bounds that are equal or not finite).", "width_bucket(5.3, 0, 10, 5) = 3", []Matcher{double, double, double, bigint}, columnar.Int64, func(c *call) (arrow.Array, error) {
		v, low, high, n := numbersOf[float64](c.args[0]), numbersOf[float64](c.args[1]), numbersOf[float64](c.args[2]), numbersOf[int64](c.args[3])
		return nullableRows(c, func(i int) (int64, bool) {
			x, a, b, k := v.at(i), low.at(i), high.at(i), n.at(i)
			if k <= 0 || k == math.MaxInt64 || a == b || x != x || a-a != 0 || b-b != 0 {
				return 0, false
			}
			if a > b { // counted downwards
				x, a, b = -x, -a, -b
			}
			switch {
			case x < a:
				return 0, true
			case x >= b:
				return k + 1, true
			}
			return int64(float64(k)*(x-a)/(b-a)) + 1, true
		})
	})
}

func getBitScalar() *Scalar {
	return defineFallible("bit_get", "The bit of an integer at a place, from 0, the lowest, to 63.", "bit_get(5, 2) = 1", []Matcher{bigint, bigint}, columnar.Int32, func(c *call) (arrow.Array, error) {
		in, at := numbersOf[int64](c.args[0]), numbersOf[int64](c.args[1])
		return fallibleRows(c, func(i int) (int32, error) {
			k := at.at(i)
			if err := isBit(k); err != nil {
				return 0, err
			}
			return int32(in.at(i) >> k & 1), nil
		})
	}, "getbit")
}
