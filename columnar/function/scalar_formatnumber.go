package function

import (
	"strconv"
	"strings"

	"github.com/apache/arrow-go/v18/arrow"

	"github.com/tidemill/tidemill/columnar"
)

// formatNumberScalar rounds what lies between two texts to the even one, as Java does:
// integers and decimals as they are written, floats as they are stored.
func formatNumberScalar() *Scalar {
	s := &Scalar{Name: "format_number", Doc: "A number with commas between the thousands and so many digits after the point, of two equally near the even one; null for a negative number of digits. Or by a pattern of # and 0, as '#,##0.##'.", Example: "format_number(12332.1234, 2) = 12,332.12"}
	for _, of := range []Matcher{integerType, decimalType, double} {
		s.Overloads = append(s.Overloads, overload([]Matcher{of, bigint}, columnar.String, func(c *call) (arrow.Array, error) {
			number, digits := c.args[0].Array(), numbersOf[int64](c.args[1])
			return c.nullableText(c.rows*16, func(dst []byte, i int) ([]byte, bool) {
				n := int(min(digits.at(i), 340))
				if n < 0 {
					return dst, false
				}
				return appendThousands(dst, plainNumber(number, c.place(0, i), n)), true
			})
		}), formatByPattern(of))
	}
	return s
}

// plainNumber has so many digits after the point, and no exponent.
func plainNumber(a arrow.Array, i, digits int) string {
	if v, ok := columnar.Value(a, i).(float64); ok {
		if v-v != 0 {
			return string(columnar.AppendFloat(nil, v, 64))
		}
		return strconv.FormatFloat(v, 'f', digits, 64)
	}
	d := shortestDigits(a, i)
	d.toEven = true
	if d.negative {
		return "-" + d.fixed(digits)
	}
	return d.fixed(digits)
}

// appendThousands puts commas between the digits before the point.
func appendThousands(dst []byte, number string) []byte {
	if rest, negative := strings.CutPrefix(number, "-"); negative {
		dst, number = append(dst, '-'), rest
	}
	whole, fraction, hasFraction := strings.Cut(number, ".")
	for i, digit := range []byte(whole) {
		if i > 0 && (len(whole)-i)%3 == 0 && digit <= '9' {
			dst = append(dst, ',')
		}
		dst = append(dst, digit)
	}
	if hasFraction {
		dst = append(append(dst, '.'), fraction...)
	}
	return dst
}
