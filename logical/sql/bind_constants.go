package sql

import (
	"github.com/apache/arrow-go/v18/arrow"

	"github.com/tidemill/tidemill/logical/expr"
)

// checkConstants refuses constants that a function cannot work with, whatever the row: the
// name of a unit, a pattern, a format. They would be an error when the plan is made.
func checkConstants(x expr.Expr) error {
	c, ok := x.(*expr.Call)
	if !ok || c.Signature.Overload.Bind == nil { // declared without a kernel
		return nil
	}
	constants := make([]arrow.Array, len(c.Args))
	some := false
	for i, a := range c.Args {
		if l, ok := a.(*expr.Literal); ok && !l.IsNull() {
			constants[i], some = l.Value, true
		}
	}
	if !some {
		return nil
	}
	_, err := c.Signature.Overload.Bind(c.Signature.Args, constants)
	return err
}
