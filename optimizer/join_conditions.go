package optimizer

import (
	"github.com/tidemill/tidemill/logical"
	"github.com/tidemill/tidemill/logical/expr"
)

// JoinConditions moves conditions over both sides from a filter into the join below
// it, which makes an inner join of a cross join and lets equalities be hashed.
var JoinConditions Rule = rule{"join_conditions", func(n logical.Node) (logical.Node, error) {
	f, ok := n.(*logical.Filter)
	if !ok {
		return n, nil
	}
	j, ok := f.Input.(*logical.Join)
	if !ok || j.State != "" || j.Kind != logical.InnerJoin && j.Kind != logical.CrossJoin {
		return n, nil
	}
	alone := j.On == nil
	push, keep := split(expr.Conjuncts(f.Cond), func(c expr.Expr) bool {
		ids := expr.Columns(c)
		if len(ids) == 0 || j.Left.Schema().Has(ids...) || j.Right.Schema().Has(ids...) {
			return false
		}
		// Both sides of an equality are computed for every row of an input, not for
		// the pairs that other conditions leave.
		if isEquality(c) && expr.IsFallible(c) && !alone {
			return false
		}
		alone = false
		return true
	})
	if len(push) == 0 {
		return n, nil
	}
	on := expr.All(append(expr.Conjuncts(j.On), push...))
	return filtered(logical.NewJoin(logical.InnerJoin, j.Left, j.Right, on), keep), nil
}}

func isEquality(e expr.Expr) bool {
	c, ok := e.(*expr.Call)
	return ok && (c.Func.Name == "=" || c.Func.Name == "is_not_distinct_from")
}
