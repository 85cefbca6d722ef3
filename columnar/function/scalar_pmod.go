package function

import (
	"errors"
	"math"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/decimal128"

	"github.com/tidemill/tidemill/columnar"
	"github.com/tidemill/tidemill/columnar/kernel"
)

// alsoNumbers gives pmod its forms for decimals and floats.
func (f *Scalar) alsoNumbers() *Scalar {
	f.Overloads = append(f.Overloads, Overload{
		Args: []Matcher{decimalType, decimalType}, Result: pmodType, Fallible: true,
		Bind: func(args []arrow.DataType, _ []arrow.Array) (Kernel, error) {
			out, err := pmodType(args)
			if err != nil {
				return nil, err
			}
			scale := out.(*arrow.Decimal128Type).Scale - args[1].(*arrow.Decimal128Type).Scale
			return pmodKernel(out, func(r, b decimal128.Num) decimal128.Num {
				if r.Sign() < 0 && b.Sign() > 0 {
					return r.Add(b.IncreaseScaleBy(scale))
				}
				return r
			}), nil
		},
	}, Overload{
		Args: []Matcher{double, double}, Result: always(columnar.Float64), Fallible: true,
		Bind: func([]arrow.DataType, []arrow.Array) (Kernel, error) {
			return pmodKernel(columnar.Float64, func(r, b float64) float64 {
				if r < 0 && b > 0 {
					return math.Mod(r+b, b)
				}
				return r
			}), nil
		},
	})
	return f
}

// pmodType holds every value below the divisor, with the digits after the point of both.
func pmodType(args []arrow.DataType) (arrow.DataType, error) {
	a, b := args[0].(*arrow.Decimal128Type), args[1].(*arrow.Decimal128Type)
	scale := max(a.Scale, b.Scale)
	precision := max(b.Precision-b.Scale+scale, 1)
	if precision > columnar.MaxPrecision {
		return nil, errors.New("the remainder needs more than 38 digits; cast one of them")
	}
	return columnar.Decimal(precision, scale), nil
}

// pmodKernel turns the remainder, which has the sign of the dividend, with the divisor.
func pmodKernel[T any](out arrow.DataType, turn func(r, b T) T) Kernel {
	remainder := arithmetic{try: "nullif", op: kernel.Modulo}.kernel(out, false)
	turned := onRows(out, func(c *call) (arrow.Array, error) {
		r, b := numbersOf[T](c.args[0]), numbersOf[T](c.args[1])
		return fixedRows(c, func(i int) T { return turn(r.at(i), b.at(i)) })
	})
	return func(env *Env, args []columnar.Datum, rows int, active *columnar.Bitmap) (columnar.Datum, error) {
		r, err := remainder(env, args, rows, active)
		if err != nil {
			return r, err
		}
		defer r.Release()
		return turned(env, []columnar.Datum{r, args[1]}, rows, active)
	}
}
