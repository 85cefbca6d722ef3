package logical

import (
	"github.com/tidemill/tidemill/logical/expr"
)

// Over computes window functions: its input's columns, then a value for each row that
// depends on the rows of the same partition. The functions, each an *expr.Over, have
// the same partition and order; rows equal in order follow their arrival. For windows
// in event time see Window.
type Over struct {
	unary
	Functions []expr.Named
	schema    *Schema
}

// NewOver computes functions over input.
func NewOver(input Node, functions []expr.Named) *Over {
	in := input.Schema().Columns
	columns := in[:len(in):len(in)]
	for _, f := range functions {
		columns = append(columns, f.Column())
	}
	return &Over{unary{input}, functions, NewSchema(columns...)}
}

// Partition is what the functions are partitioned by.
func (o *Over) Partition() []expr.Expr { return o.Functions[0].Expr.(*expr.Over).Partition }

func (o *Over) Schema() *Schema            { return o.schema }
func (o *Over) WithChildren(c []Node) Node { return NewOver(c[0], o.Functions) }
func (o *Over) Exprs() []expr.Expr         { return namedExprs(o.Functions) }
func (o *Over) WithExprs(exprs []expr.Expr) Node {
	return NewOver(o.Input, withNamedExprs(o.Functions, exprs))
}
func (o *Over) String() string { return "Over " + namedList(o.Functions) }
