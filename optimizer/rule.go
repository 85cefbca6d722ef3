package optimizer

import (
	"github.com/tidemill/tidemill/columnar/function"
	"github.com/tidemill/tidemill/logical"
	"github.com/tidemill/tidemill/logical/expr"
)

// Rule rewrites one node. Rules are stateless and safe for concurrent use.
type Rule interface {
	Name() string
	// Apply returns n itself when the rule does not apply.
	Apply(n logical.Node) (logical.Node, error)
}

// Batch is rules that run together.
type Batch struct {
	Name  string
	Max   int // passes; 1 = once, more = to fixpoint, exceeding it is a bug
	Rules []Rule
}

// rule is a Rule made of a name and a function.
type rule struct {
	name  string
	apply func(logical.Node) (logical.Node, error)
}

func (r rule) Name() string                               { return r.name }
func (r rule) Apply(n logical.Node) (logical.Node, error) { return r.apply(n) }

// isVolatile says whether two evaluations of e may differ.
func isVolatile(e expr.Expr) bool {
	return anyCall(e, func(o *function.Overload) bool { return o.Volatility == function.Volatile })
}

// isFallible says whether evaluating e may be an error for some row.
func isFallible(e expr.Expr) bool {
	fails := anyCall(e, func(o *function.Overload) bool { return o.Fallible })
	expr.Walk(e, func(x expr.Expr) bool {
		if c, ok := x.(*expr.Cast); ok && !c.Try && function.CastMayFail(c.Input.Type(), c.To) {
			fails = true
		}
		return !fails
	})
	return fails
}

func anyCall(e expr.Expr, is func(*function.Overload) bool) bool {
	found := false
	expr.Walk(e, func(x expr.Expr) bool {
		if c, ok := x.(*expr.Call); ok && is(c.Signature.Overload) {
			found = true
		}
		return !found
	})
	return found
}

// substitute replaces columns by the expressions a projection computes for them.
func substitute(e expr.Expr, columns []expr.Named) (expr.Expr, error) {
	return expr.Transform(e, func(x expr.Expr) (expr.Expr, error) {
		if c, ok := x.(*expr.Column); ok {
			for _, n := range columns {
				if n.ID == c.ID {
					return n.Expr, nil
				}
			}
		}
		return x, nil
	})
}

// emptyLike is no rows with the columns of n.
func emptyLike(n logical.Node) logical.Node { return &logical.Values{Output: n.Schema()} }

// isEmpty says whether n is known to have no rows.
func isEmpty(n logical.Node) bool {
	v, ok := n.(*logical.Values)
	return ok && len(v.Rows) == 0
}
