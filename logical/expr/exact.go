package expr

import (
	"github.com/apache/arrow-go/v18/arrow"

	"github.com/tidemill/tidemill/columnar"
	"github.com/tidemill/tidemill/columnar/function"
	"github.com/tidemill/tidemill/columnar/kernel"
)

// compared are the functions that say how values compare, and nothing else of them.
var compared = map[string]bool{
	"=": true, "<>": true, "<": true, "<=": true, ">": true, ">=": true, "is_distinct_from": true, "is_not_distinct_from": true,
}

// exactly are decimals in a form in which they can be compared whatever their scales, if
// their common type would need more than the 38 digits there are; else list.
func exactly(list []Expr) []Expr {
	var whole, scale int32
	for _, e := range list {
		d, ok := columnar.AsDecimal(e.Type())
		switch {
		case ok:
			whole, scale = max(whole, d.Precision-d.Scale), max(scale, d.Scale)
		case e.Type().ID() != arrow.NULL:
			return list
		}
	}
	if whole+scale <= columnar.MaxPrecision {
		return list
	}
	out := make([]Expr, len(list))
	for i, e := range list {
		out[i] = e
		if d, ok := columnar.AsDecimal(e.Type()); ok {
			out[i] = exact(CastTo(e, d))
		}
	}
	return out
}

// exact is a decimal taken apart at its point: structs of that type compare as the numbers
// do. It is made for its use and is not in the registry.
func exact(x Expr) Expr {
	f := &function.Scalar{Name: "exact", Overloads: []function.Overload{{
		Result: func([]arrow.DataType) (arrow.DataType, error) { return kernel.DecimalParts, nil },
		Bind: func([]arrow.DataType, []arrow.Array) (function.Kernel, error) {
			return func(env *function.Env, args []columnar.Datum, _ int, _ *columnar.Bitmap) (columnar.Datum, error) {
				parts := kernel.SplitDecimals(env.Mem, args[0].Array())
				if args[0].IsConstant() {
					return columnar.ConstantDatum(parts), nil
				}
				return columnar.ColumnDatum(parts), nil
			}, nil
		},
	}}}
	sig := &function.Signature{Overload: &f.Overloads[0], Args: []arrow.DataType{x.Type()}, Result: kernel.DecimalParts}
	return &Call{Func: f, Signature: sig, Args: []Expr{x}}
}
