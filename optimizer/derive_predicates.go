package optimizer

import (
	"slices"

	"github.com/tidemill/tidemill/logical"
	"github.com/tidemill/tidemill/logical/expr"
)

// DerivePredicates takes from a join condition of alternatives over both sides what each
// of them asks of one side: of (a = 1 AND b = 2) OR (a = 3 AND b = 4) that a is 1 or 3,
// and b 2 or 4. The condition stays; the sides become smaller.
var DerivePredicates Rule = rule{"derive_predicates", func(n logical.Node) (logical.Node, error) {
	j, ok := n.(*logical.Join)
	if !ok || j.Kind != logical.InnerJoin || j.State != "" || logical.IsStreaming(j) {
		return n, nil
	}
	var left, right []expr.Expr
	for _, c := range expr.Conjuncts(j.On) {
		or, ok := c.(*expr.Logic)
		if !ok || or.Op != expr.Or || isVolatile(c) || expr.IsFallible(c) {
			continue
		}
		if d := alternatives(or, j.Left.Schema()); d != nil {
			left = append(left, d)
		}
		if d := alternatives(or, j.Right.Schema()); d != nil {
			right = append(right, d)
		}
	}
	if len(left)+len(right) == 0 {
		return n, nil
	}
	return j.WithChildren([]logical.Node{filtered(j.Left, left), filtered(j.Right, right)}), nil
}}

// alternatives is the OR of what each operand of or asks of the columns of side; nil if
// one asks nothing of it.
func alternatives(or *expr.Logic, side *logical.Schema) expr.Expr {
	var list []expr.Expr
	for _, a := range or.Args {
		own := slices.DeleteFunc(expr.Conjuncts(a), func(c expr.Expr) bool {
			ids := expr.Columns(c)
			return len(ids) == 0 || !side.Has(ids...)
		})
		if len(own) == 0 {
			return nil
		}
		list = append(list, expr.All(own))
	}
	return &expr.Logic{Op: expr.Or, Args: list}
}
