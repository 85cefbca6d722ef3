package optimizer

import (
	"slices"

	"github.com/tidemill/tidemill/logical"
	"github.com/tidemill/tidemill/logical/expr"
)

// PushFilter moves conditions of a filter towards the scans: through projections,
// sorts, windows, unions, set operations, the keys of aggregates, DISTINCT ON and window functions,
// and to the sides of joins that hold their columns and whose rows they may remove, of an
// as-of join the left one.
// Never through a Watermark, a Limit, or below a node that keeps state by them.
var PushFilter Rule = downward{rule{"push_filter", func(n logical.Node) (logical.Node, error) {
	switch x := n.(type) {
	case *logical.Filter:
		return pushFilter(x)
	case *logical.Join:
		return pushJoinCondition(x)
	}
	return n, nil
}}}

func pushFilter(f *logical.Filter) (logical.Node, error) {
	conds := expr.Conjuncts(f.Cond)
	switch in := f.Input.(type) {
	case *logical.Project:
		return pushThroughProject(f, in, conds)
	case *logical.Sort:
		if in.Limit == 0 {
			return pushUnary(f, in, conds, func(expr.Expr) bool { return true })
		}
	case *logical.Window:
		return pushThroughWindow(f, in, conds)
	case *logical.Expand: // a row that fails the condition fails it in every set
		schema := in.Input.Schema()
		return pushUnary(f, in, conds, func(c expr.Expr) bool { return schema.Has(expr.Columns(c)...) })
	case *logical.Unnest: // rows without elements are dropped, for which a condition must not fail
		schema := in.Input.Schema()
		return pushUnary(f, in, conds, func(c expr.Expr) bool { return schema.Has(expr.Columns(c)...) && !expr.IsFallible(c) })
	case *logical.Over: // whole partitions may go
		keys := columnsOf(in.Partition())
		return pushUnary(f, in, conds, func(c expr.Expr) bool {
			ids := expr.Columns(c)
			return len(ids) > 0 && keys.Has(ids...) && !expr.IsFallible(c) && respectsEquality(c)
		})
	case *logical.Aggregate:
		return pushThroughAggregate(f, in, conds)
	case *logical.Distinct:
		return pushThroughDistinct(f, in, conds)
	case *logical.Union:
		return pushThroughUnion(f, in, conds)
	case *logical.SetOp:
		return pushThroughSetOp(f, in, conds)
	case *logical.Join:
		return pushToSides(f, in, conds)
	case *logical.AsofJoin: // without a row of the right side another would be the nearest
		return pushUnary(f, in, conds, func(c expr.Expr) bool {
			ids := expr.Columns(c)
			return len(ids) > 0 && in.Left.Schema().Has(ids...) && !expr.IsFallible(c)
		})
	}
	return f, nil
}

// split divides conditions into those that may go below and the rest, which keep
// their order. A volatile condition stays, and everything after it; a condition that
// can fail stays if one before it does, which may keep it from failing.
func split(conds []expr.Expr, below func(expr.Expr) bool) (push, keep []expr.Expr) {
	for i, c := range conds {
		if isVolatile(c) {
			return push, append(keep, conds[i:]...)
		}
		if (len(keep) == 0 || !expr.IsFallible(c)) && below(c) {
			push = append(push, c)
		} else {
			keep = append(keep, c)
		}
	}
	return push, keep
}

// filtered puts conditions over n, if there are any, after those that are there.
func filtered(n logical.Node, conds []expr.Expr) logical.Node {
	if len(conds) == 0 {
		return n
	}
	if f, ok := n.(*logical.Filter); ok {
		return logical.NewFilter(f.Input, expr.All(append(expr.Conjuncts(f.Cond), conds...)))
	}
	return logical.NewFilter(n, expr.All(conds))
}

// pushUnary moves conditions below node, to its only or first input, whose columns it
// hands on.
func pushUnary(f *logical.Filter, node logical.Node, conds []expr.Expr, below func(expr.Expr) bool) (logical.Node, error) {
	push, keep := split(conds, below)
	if len(push) == 0 {
		return f, nil
	}
	children := slices.Clone(node.Children())
	children[0] = filtered(children[0], push)
	return filtered(node.WithChildren(children), keep), nil
}

// pushThroughWindow moves conditions over the input's columns below. A window drops
// rows without a time, for which a condition must not fail. Which rows there are decides
// the bounds of sessions: below those go only conditions on the partition keys.
func pushThroughWindow(f *logical.Filter, w *logical.Window, conds []expr.Expr) (logical.Node, error) {
	schema := w.Input.Schema()
	if w.IsSession() {
		schema = columnsOf(w.PartitionKeys)
	}
	return pushUnary(f, w, conds, func(c expr.Expr) bool {
		return schema.Has(expr.Columns(c)...) && !expr.IsFallible(c) && (!w.IsSession() || respectsEquality(c))
	})
}

// columnsOf are those of list that are plain columns.
func columnsOf(list []expr.Expr) *logical.Schema {
	s := logical.NewSchema()
	for _, e := range list {
		if c, ok := e.(*expr.Column); ok {
			s.Columns = append(s.Columns, c)
		}
	}
	return s
}

func pushThroughProject(f *logical.Filter, p *logical.Project, conds []expr.Expr) (logical.Node, error) {
	volatile := map[expr.ID]bool{}
	for _, c := range p.Columns {
		volatile[c.ID] = isVolatile(c.Expr)
	}
	push, keep := split(conds, func(c expr.Expr) bool {
		return !slices.ContainsFunc(expr.Columns(c), func(id expr.ID) bool { return volatile[id] })
	})
	if len(push) == 0 {
		return f, nil
	}
	for i, c := range push {
		e, err := substitute(c, p.Columns)
		if err != nil {
			return nil, err
		}
		push[i] = e
	}
	return filtered(logical.NewProject(filtered(p.Input, push), p.Columns), keep), nil
}

// pushThroughAggregate moves conditions on the keys alone below: all rows of a group
// have the same keys, so whole groups go. Without keys there is always one group. The
// bounds of sessions are not known below.
func pushThroughAggregate(f *logical.Filter, a *logical.Aggregate, conds []expr.Expr) (logical.Node, error) {
	if len(a.Keys) == 0 || a.State != "" {
		return f, nil
	}
	keys, sessions := logical.NewSchema(), columnSet(logical.SessionBounds(a.Input))
	for _, k := range a.Keys {
		if !isVolatile(k.Expr) && !sessions.hasAny(expr.Columns(k.Expr)...) {
			keys.Columns = append(keys.Columns, k.Column())
		}
	}
	push, keep := split(conds, func(c expr.Expr) bool {
		ids := expr.Columns(c)
		return len(ids) > 0 && keys.Has(ids...) && !expr.IsFallible(c) && respectsEquality(c)
	})
	if len(push) == 0 {
		return f, nil
	}
	for i, c := range push {
		e, err := substitute(c, a.Keys)
		if err != nil {
			return nil, err
		}
		push[i] = e
	}
	return filtered(a.WithChildren([]logical.Node{filtered(a.Input, push)}), keep), nil
}

func pushThroughDistinct(f *logical.Filter, d *logical.Distinct, conds []expr.Expr) (logical.Node, error) {
	if d.State != "" {
		return f, nil
	}
	schema := d.Input.Schema()
	if d.On != nil {
		schema = columnsOf(d.On)
	}
	return pushUnary(f, d, conds, func(c expr.Expr) bool {
		ids := expr.Columns(c)
		return len(ids) > 0 && schema.Has(ids...) && !expr.IsFallible(c) && respectsEquality(c)
	})
}

func pushThroughUnion(f *logical.Filter, u *logical.Union, conds []expr.Expr) (logical.Node, error) {
	push, keep := split(conds, func(expr.Expr) bool { return true })
	if len(push) == 0 {
		return f, nil
	}
	inputs := make([]logical.Node, len(u.Inputs))
	for i, in := range u.Inputs {
		mapped, err := mapColumns(expr.All(push), u.Output, in.Schema())
		if err != nil {
			return nil, err
		}
		inputs[i] = filtered(in, expr.Conjuncts(mapped))
	}
	return filtered(u.WithChildren(inputs), keep), nil
}

// mapColumns replaces columns of one schema by those at the same place in another.
func mapColumns(e expr.Expr, from, to *logical.Schema) (expr.Expr, error) {
	return expr.Transform(e, func(x expr.Expr) (expr.Expr, error) {
		if c, ok := x.(*expr.Column); ok {
			if i := from.Index(c.ID); i >= 0 {
				return to.Columns[i], nil
			}
		}
		return x, nil
	})
}

// pushThroughSetOp filters both sides: a row that fails the condition is on neither.
func pushThroughSetOp(f *logical.Filter, s *logical.SetOp, conds []expr.Expr) (logical.Node, error) {
	push, keep := split(conds, func(c expr.Expr) bool { return !expr.IsFallible(c) && respectsEquality(c) })
	if len(push) == 0 {
		return f, nil
	}
	cond := expr.All(push)
	right, err := mapColumns(cond, s.Left.Schema(), s.Right.Schema())
	if err != nil {
		return nil, err
	}
	n := s.WithChildren([]logical.Node{filtered(s.Left, push), filtered(s.Right, expr.Conjuncts(right))})
	return filtered(n, keep), nil
}

// pushToSides moves conditions above a join to the side that has their columns, where
// the join keeps that side's rows as they are (not padded with nulls).
func pushToSides(f *logical.Filter, j *logical.Join, conds []expr.Expr) (logical.Node, error) {
	if j.State != "" {
		return f, nil
	}
	intoLeft := j.Kind != logical.RightJoin && j.Kind != logical.FullJoin
	intoRight := j.Kind == logical.InnerJoin || j.Kind == logical.CrossJoin || j.Kind == logical.RightJoin
	return pushSides(f, j, conds, intoLeft, intoRight, func(n *logical.Join, keep []expr.Expr) logical.Node {
		return filtered(n, keep)
	})
}

// pushJoinCondition moves parts of ON that concern one side alone below the join:
// to a side whose unmatched rows are not kept.
func pushJoinCondition(j *logical.Join) (logical.Node, error) {
	if j.On == nil || j.State != "" {
		return j, nil
	}
	intoLeft := j.Kind == logical.InnerJoin || j.Kind == logical.RightJoin || j.Kind == logical.SemiJoin
	intoRight := j.Kind == logical.InnerJoin || j.Kind == logical.LeftJoin || j.Kind == logical.SemiJoin || j.Kind == logical.AntiJoin
	return pushSides(j, j, expr.Conjuncts(j.On), intoLeft, intoRight, func(n *logical.Join, keep []expr.Expr) logical.Node {
		return logical.NewJoin(n.Kind, n.Left, n.Right, expr.All(keep))
	})
}

// pushSides splits conds between the sides of j and what rebuild keeps; same comes
// back when nothing moves.
func pushSides(same logical.Node, j *logical.Join, conds []expr.Expr, intoLeft, intoRight bool, rebuild func(*logical.Join, []expr.Expr) logical.Node) (logical.Node, error) {
	var left, right []expr.Expr
	_, keep := split(conds, func(c expr.Expr) bool {
		ids := expr.Columns(c)
		switch {
		case len(ids) == 0 || expr.IsFallible(c):
			return false
		case intoLeft && j.Left.Schema().Has(ids...):
			left = append(left, c)
			return true
		case intoRight && j.Right.Schema().Has(ids...):
			right = append(right, c)
			return true
		}
		return false
	})
	if len(left)+len(right) == 0 {
		return same, nil
	}
	n := j.WithChildren([]logical.Node{filtered(j.Left, left), filtered(j.Right, right)}).(*logical.Join)
	return rebuild(n, keep), nil
}
