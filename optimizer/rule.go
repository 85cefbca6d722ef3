package optimizer

import (
	"github.com/tidemill/tidemill/columnar"
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

// downward is a Rule that is applied from the root down, so that what it moves goes
// all the way in one pass.
type downward struct{ rule }

// keepsState says whether n has a State name: its expressions stay as they are.
func keepsState(n logical.Node) bool {
	switch x := n.(type) {
	case *logical.Aggregate:
		return x.State != ""
	case *logical.Distinct:
		return x.State != ""
	case *logical.Join:
		return x.State != ""
	case *logical.Limit:
		return x.State != ""
	case *logical.MapGroups:
		return x.State != ""
	}
	return false
}

// rewriteExprs rewrites the expressions of n, from their leaves up, unless it keeps
// state by them.
func rewriteExprs(n logical.Node, f func(expr.Expr) expr.Expr) (logical.Node, error) {
	if keepsState(n) {
		return n, nil
	}
	return logical.TransformExprs(n, func(e expr.Expr) (expr.Expr, error) { return f(e), nil })
}

// isVolatile says whether two evaluations of e may differ.
func isVolatile(e expr.Expr) bool {
	return anyCall(e, func(o *function.Overload) bool { return o.Volatility == function.Volatile })
}

// respectsEquality says whether e has the same value for rows that grouping, DISTINCT
// and set operations take for equal: -0.0 equals 0.0 and every NaN every other, yet
// functions can tell them apart; likewise 24 hours and 1 day. Such a column may be
// compared and tested for null, nothing else.
func respectsEquality(e expr.Expr) bool {
	switch x := e.(type) {
	case *expr.Column:
		return !columnar.HasEqualForms(x.DataType)
	case *expr.Call:
		if comparisons[x.Func.Name] {
			return allRespectEquality(x.Args, true)
		}
	case *expr.In:
		return allRespectEquality(x.Children(), true)
	}
	return allRespectEquality(e.Children(), false)
}

func allRespectEquality(list []expr.Expr, compared bool) bool {
	for _, e := range list {
		if _, ok := e.(*expr.Column); ok && compared {
			continue
		}
		if !respectsEquality(e) {
			return false
		}
	}
	return true
}

// comparisons give the same for equal arguments.
var comparisons = map[string]bool{
	"=": true, "<>": true, "<": true, "<=": true, ">": true, ">=": true,
	"is_distinct_from": true, "is_not_distinct_from": true, "is_null": true, "is_not_null": true,
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
