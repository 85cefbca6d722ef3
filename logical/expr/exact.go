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

// exactly are decimals, or nested values with decimals in them, in a form in which they can be
// compared whatever their scales, if their common type would need more than the 38 digits there
// are; else list.
func exactly(list []Expr) []Expr {
	if !columnar.BeyondDecimal(Types(list)...) {
		return list
	}
	common := list[0].Type()
	for _, e := range list[1:] {
		t, ok := columnar.Meet(common, e.Type())
		if !ok {
			return list
		}
		common = t
	}
	out := make([]Expr, len(list))
	for i, e := range list {
		if out[i] = e; e.Type().ID() != arrow.NULL {
			out[i] = exact(CastTo(e, columnar.WithOwnDecimals(common, e.Type())))
		}
	}
	return out
}

// exact is a value with its decimals taken apart at the point: structs of that type compare as
// the numbers do. It is made for its use and is not in the registry.
func exact(x Expr) Expr {
	to := kernel.PartsOf(x.Type())
	f := &function.Scalar{Name: "exact", Overloads: []function.Overload{{
		Result: func([]arrow.DataType) (arrow.DataType, error) { return to, nil },
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
	sig := &function.Signature{Overload: &f.Overloads[0], Args: []arrow.DataType{x.Type()}, Result: to}
	return &Call{Func: f, Signature: sig, Args: []Expr{x}}
}
