package expr

import (
	"errors"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"

	"github.com/tidemill/tidemill/columnar"
	"github.com/tidemill/tidemill/columnar/function"
)

// ErrSeveralRows is the error of a subquery that stands for a value.
var ErrSeveralRows = errors.New("the subquery gives more than one row; aggregate it, or add LIMIT 1")

// NewOnlyRow is value, that of a subquery, and an error where the subquery has more rows
// than one; rows (BIGINT) is how many it has.
func NewOnlyRow(rows, value Expr) Expr {
	dt := value.Type()
	f := &function.Scalar{Name: "only_row", Overloads: []function.Overload{{
		NullSafe: true,
		Fallible: true,
		Result:   func([]arrow.DataType) (arrow.DataType, error) { return dt, nil },
		Bind: func([]arrow.DataType, []arrow.Array) (function.Kernel, error) {
			return func(_ *function.Env, args []columnar.Datum, n int, active *columnar.Bitmap) (columnar.Datum, error) {
				if severalRows(args[0], n, active) {
					return columnar.Datum{}, ErrSeveralRows
				}
				return args[1].Retain(), nil
			}, nil
		},
	}}}
	sig := &function.Signature{Overload: &f.Overloads[0], Args: []arrow.DataType{rows.Type(), dt}, Result: dt}
	return &Call{Func: f, Signature: sig, Args: []Expr{rows, value}}
}

func severalRows(d columnar.Datum, n int, active *columnar.Bitmap) bool {
	counts := d.Array().(*array.Int64)
	for i := range n {
		at := i
		if d.IsConstant() {
			at = 0
		}
		if (active == nil || active.Get(i)) && counts.IsValid(at) && counts.Value(at) > 1 {
			return true
		}
	}
	return false
}
