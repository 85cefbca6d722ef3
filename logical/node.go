package logical

import (
	"fmt"

	"github.com/tidemill/tidemill/logical/expr"
)

// Node is an immutable logical operator. String is one line, without children.
type Node interface {
	fmt.Stringer
	// Schema is the output columns.
	Schema() *Schema
	Children() []Node
	// WithChildren returns a copy over other children, whose schemas hold the
	// columns the node uses.
	WithChildren(children []Node) Node
	// Exprs are the node's own expressions, in a fixed order.
	Exprs() []expr.Expr
	// WithExprs returns a copy with the expressions replaced, in the order of Exprs.
	WithExprs(exprs []expr.Expr) Node
}

// unary is embedded by nodes with one input.
type unary struct{ Input Node }

func (u unary) Children() []Node { return []Node{u.Input} }

// noExprs is embedded by nodes without expressions.
type noExprs struct{}

func (noExprs) Exprs() []expr.Expr { return nil }
