package expr

import (
	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"

	"github.com/tidemill/tidemill/columnar"
)

// roundedDecimal is a decimal rounded to a constant number of digits after the point as a
// decimal that has no more; a number of digits that may differ from row to row leaves the
// call as it is.
func roundedDecimal(c *Call) Expr {
	switch c.Func.Name {
	case "round", "bround", "truncate", "ceil", "floor":
	default:
		return c
	}
	full, ok := c.Type().(*arrow.Decimal128Type)
	if !ok || len(c.Args) != 2 {
		return c
	}
	v, ok := constant(c.Args[1]).(*array.Int64)
	if !ok || v.IsNull(0) || v.Value(0) >= int64(full.Scale) {
		return c
	}
	digits := int32(max(v.Value(0), -columnar.MaxPrecision))
	whole := full.Precision - full.Scale
	if digits < 0 { // what is rounded up may have a digit more than the unit has
		whole = max(whole, 1-digits)
	}
	scale := max(digits, 0)
	return &Cast{Input: c, To: columnar.Decimal(min(whole+scale, columnar.MaxPrecision), scale)}
}
