package function

import (
	"math"

	"github.com/apache/arrow-go/v18/arrow"

	"github.com/tidemill/tidemill/columnar"
)

// doubleScalars are further functions on DOUBLE.
func doubleScalars() []*Scalar {
	return []*Scalar{
		isDouble("isinf", "Whether a number is infinite.", "isinf(1) = false", func(v float64) bool { return math.IsInf(v, 0) }),
		isDouble("isfinite", "Whether a number is neither infinite nor NaN.", "isfinite(1) = true", func(v float64) bool { return v-v == 0 }),
		isDouble("signbit", "Whether the sign of a number is negative, also that of -0.0.", "signbit(-1) = true", math.Signbit),
		onDoubles("expm1", "e to the power of a number, less one; exact near zero.", "expm1(0) = 0", math.Expm1),
		onDoubles("log1p", "Natural logarithm of a number and one, exact near zero; NaN below -1.", "log1p(0) = 0", math.Log1p),
		onDoubles("asinh", "Inverse hyperbolic sine.", "asinh(0) = 0", math.Asinh),
		onDoubles("acosh", "Inverse hyperbolic cosine; NaN below 1.", "acosh(1) = 0", math.Acosh),
		onDoubles("atanh", "Inverse hyperbolic tangent; NaN outside of -1 to 1.", "atanh(0) = 0", math.Atanh),
		onDoubles("sec", "Secant.", "sec(0) = 1", func(v float64) float64 { return 1 / math.Cos(v) }),
		onDoubles("csc", "Cosecant.", "round(csc(1), 3) = 1.188", func(v float64) float64 { return 1 / math.Sin(v) }),
		onDoubles("rint", "The nearest whole number, of two equally near the even one.", "rint(2.5) = 2", math.RoundToEven),
		onDoubles("even", "The nearest even whole number away from zero.", "even(2.1) = 4", func(v float64) float64 {
			return math.Copysign(2*math.Ceil(math.Abs(v)/2), v)
		}),
		onDoubles("gamma", "The gamma function.", "gamma(5) = 24", math.Gamma),
		onDoubles("lgamma", "Logarithm of the absolute value of the gamma function.", "lgamma(1) = 0", func(v float64) float64 { l, _ := math.Lgamma(v); return l }),
		onTwoDoubles("nextafter", "The next double after the first number in the direction of the second.", "nextafter(1, 2) > 1 = true", math.Nextafter),
		define("nanvl", "A number, or if it is NaN another.", "nanvl(CAST('NaN' AS DOUBLE), 5) = 5", []Matcher{double, double}, columnar.Float64, func(c *call) (arrow.Array, error) {
			a, b := numbersOf[float64](c.args[0]), numbersOf[float64](c.args[1])
			return fixedRows(c, func(i int) float64 {
				if v := a.at(i); v == v {
					return v
				}
				return b.at(i)
			})
		}),
	}
}

// isDouble is a test of one DOUBLE.
func isDouble(name, doc, example string, f func(float64) bool) *Scalar {
	return define(name, doc, example, []Matcher{double}, columnar.Boolean, func(c *call) (arrow.Array, error) {
		in := numbersOf[float64](c.args[0])
		return c.boolRows(func(i int) bool { return f(in.at(i)) })
	})
}
