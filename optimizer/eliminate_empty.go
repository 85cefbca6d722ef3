package optimizer

import (
	"slices"

	"github.com/tidemill/tidemill/logical"
	"github.com/tidemill/tidemill/logical/expr"
)

// EliminateEmpty replaces what cannot have rows by no rows: filters that are never
// true, LIMIT 0, joins, unions and set operations of empty inputs. A plan that reads a stream is left
// alone: the stream is read, and its watermark moves, all the same.
var EliminateEmpty Rule = rule{"eliminate_empty", func(n logical.Node) (logical.Node, error) {
	if isEmpty(n) || len(n.Children()) == 0 || logical.IsStreaming(n) {
		return n, nil
	}
	switch x := n.(type) {
	case *logical.Filter:
		if isEmpty(x.Input) || slices.ContainsFunc(expr.Conjuncts(x.Cond), isNeverTrue) {
			return emptyLike(n), nil
		}
	case *logical.Limit:
		if x.Count == 0 || isEmpty(x.Input) {
			return emptyLike(n), nil
		}
	case *logical.Aggregate:
		if len(x.Keys) > 0 && isEmpty(x.Input) {
			return emptyLike(n), nil
		}
	case *logical.Project, *logical.Sort, *logical.Distinct, *logical.Window, *logical.Expand, *logical.Over, *logical.Unnest:
		if isEmpty(n.Children()[0]) {
			return emptyLike(n), nil
		}
	case *logical.Join:
		switch {
		case joinIsEmpty(x):
			return emptyLike(n), nil
		case x.Kind == logical.AntiJoin && isEmpty(x.Right):
			return x.Left, nil
		}
	case *logical.AsofJoin:
		if isEmpty(x.Left) || x.Kind == logical.InnerJoin && isEmpty(x.Right) {
			return emptyLike(n), nil
		}
	case *logical.SetOp:
		if isEmpty(x.Left) || x.Kind == logical.Intersect && isEmpty(x.Right) {
			return emptyLike(n), nil
		}
	case *logical.Union:
		return withoutEmptyInputs(x), nil
	}
	return n, nil
}}

func isNeverTrue(cond expr.Expr) bool {
	v, known := boolean(cond)
	return known && v != yes
}

func joinIsEmpty(j *logical.Join) bool {
	left, right := isEmpty(j.Left), isEmpty(j.Right)
	switch j.Kind {
	case logical.InnerJoin, logical.CrossJoin, logical.SemiJoin:
		return left || right
	case logical.LeftJoin, logical.AntiJoin:
		return left
	case logical.RightJoin:
		return right
	}
	return left && right
}

func withoutEmptyInputs(u *logical.Union) logical.Node {
	inputs := slices.DeleteFunc(slices.Clone(u.Inputs), isEmpty)
	switch len(inputs) {
	case len(u.Inputs):
		return u
	case 0:
		return emptyLike(u)
	}
	return u.WithChildren(inputs)
}
