package physical

import (
	"reflect"
	"slices"

	"github.com/tidemill/tidemill/columnar/function"
	"github.com/tidemill/tidemill/logical/connector"
	"github.com/tidemill/tidemill/logical/expr"
	"github.com/tidemill/tidemill/physical/eval"
)

// Share runs aggregations once that stand in a plan several times, as those of a WITH
// query do that is read twice.
func Share(root Plan) Plan {
	var all []*HashAggregate
	walkPlans(root, func(p Plan) {
		if a, ok := p.(*HashAggregate); ok {
			all = append(all, a)
		}
	})
	alike := map[uint64][]*HashAggregate{}
	marks := make([]uint64, len(all))
	for i, a := range all {
		marks[i] = planMark(a)
		alike[marks[i]] = append(alike[marks[i]], a)
	}
	s := sharer{places: map[*HashAggregate]*Shared{}, within: map[*HashAggregate]bool{}}
	ids := 0
	for i, a := range all {
		others := alike[marks[i]][1:] // a is the first that is left of them
		alike[marks[i]] = others
		if s.taken(a) {
			continue
		}
		for _, b := range others {
			if s.taken(b) || !same(a, b) {
				continue
			}
			if s.places[a] == nil {
				ids++
				s.take(a, &Shared{ID: ids, input: a, first: true})
			}
			s.take(b, &Shared{ID: ids, input: a})
		}
	}
	if ids == 0 {
		return root
	}
	return s.rewrite(root)
}

// planMark is the same for plans that same finds the same, and mostly another for others. It
// looks at the top of a plan alone, so that plans within plans cost no square of their depth.
func planMark(p Plan) uint64 {
	left, mark := 64, uint64(0)
	var mix func(p Plan)
	mix = func(p Plan) {
		if left--; left < 0 {
			return
		}
		var exprs []expr.Expr
		switch x := p.(type) {
		case *Filter:
			exprs = x.Conds
		case *Project:
			exprs = exprsOf(x.Columns)
		case *HashAggregate:
			exprs = append(exprsOf(x.Spec.Keys), exprsOf(x.Spec.Aggs)...)
		}
		mark = function.Mix(mark, uint64(len(exprs)))
		for _, e := range exprs {
			mark = function.Mix(mark, expr.Hash(e))
		}
		for _, c := range p.Children() {
			mix(c)
		}
	}
	mix(p)
	return mark
}

// walkPlans calls f for p and all below it, from the top.
func walkPlans(p Plan, f func(Plan)) {
	f(p)
	for _, c := range p.Children() {
		walkPlans(c, f)
	}
}

// sharer is what Share has found: what stands for an aggregation, and those that are part
// of one.
type sharer struct {
	places map[*HashAggregate]*Shared
	within map[*HashAggregate]bool
}

func (s *sharer) taken(a *HashAggregate) bool { return s.within[a] }

func (s *sharer) take(a *HashAggregate, p *Shared) {
	s.places[a] = p
	walkPlans(a, func(x Plan) {
		if inner, ok := x.(*HashAggregate); ok {
			s.within[inner] = inner != a || !p.first
		}
	})
}

func (s *sharer) rewrite(p Plan) Plan {
	if a, ok := p.(*HashAggregate); ok && s.places[a] != nil {
		return s.places[a]
	}
	children := p.Children()
	out := make([]Plan, len(children))
	for i, c := range children {
		out[i] = s.rewrite(c)
	}
	if slices.Equal(out, children) {
		return p
	}
	return p.WithChildren(out)
}

// comparison says whether two plans give the same rows. keys are the key sets of one that
// are those of the other.
type comparison struct{ keys map[KeyID]KeyID }

func same(a, b Plan) bool {
	c := comparison{keys: map[KeyID]KeyID{}}
	return c.plans(a, b)
}

func (c comparison) plans(a, b Plan) bool {
	if !a.Schema().Equal(b.Schema()) || !c.nodes(a, b) {
		return false
	}
	return slices.EqualFunc(a.Children(), b.Children(), c.plans)
}

// nodes compares two nodes without their children. What is not listed here is shared only
// as a whole, so never.
func (c comparison) nodes(a, b Plan) bool {
	switch x := a.(type) {
	case *Scan:
		y, ok := b.(*Scan)
		return ok && c.scans(x.spec, y.spec)
	case *Filter:
		y, ok := b.(*Filter)
		return ok && sameExprs(x.Conds, y.Conds)
	case *Project:
		y, ok := b.(*Project)
		return ok && sameNamed(x.Columns, y.Columns)
	case *Coalesce:
		_, ok := b.(*Coalesce)
		return ok
	case *Exchange:
		y, ok := b.(*Exchange)
		return ok && x.Ordered == y.Ordered && sameExprs(x.Keys, y.Keys)
	case *PartialAggregate:
		y, ok := b.(*PartialAggregate)
		return ok && sameSpecs(x.Spec, y.Spec)
	case *HashAggregate:
		y, ok := b.(*HashAggregate)
		return ok && x.Single == y.Single && x.Ordered == y.Ordered && sameSpecs(x.Spec, y.Spec)
	case *HashJoin:
		y, ok := b.(*HashJoin)
		return ok && c.joins(&x.Spec, &y.Spec)
	case *KeyFilter:
		y, ok := b.(*KeyFilter)
		return ok && c.tests(x.Tests, y.Tests)
	}
	return false
}

// scans compares what is read; a scan whose table is not known is like no other.
func (c comparison) scans(a, b ScanSpec) bool {
	return sameTable(a.Table, b.Table) && a.Tap == nil && b.Tap == nil && a.Limit == b.Limit && a.Ordinal == b.Ordinal &&
		slices.Equal(a.Columns, b.Columns) && slices.Equal(a.Hidden, b.Hidden) && sameExprs(a.Filters, b.Filters) && c.tests(a.Keys, b.Keys)
}

func sameTable(a, b connector.Table) bool {
	if a == nil || b == nil {
		return false
	}
	if c, ok := a.(connector.TableComparer); ok {
		return c.SameTable(b)
	}
	return reflect.TypeOf(a).Comparable() && reflect.TypeOf(b).Comparable() && a == b
}

func (c comparison) joins(a, b *JoinSpec) bool {
	residuals := a.Residual == nil && b.Residual == nil || a.Residual != nil && b.Residual != nil && sameExprs([]expr.Expr{a.Residual}, []expr.Expr{b.Residual})
	if !residuals || a.Kind != b.Kind || a.BuildLeft != b.BuildLeft || a.NullAware != b.NullAware || len(a.Gives) != len(b.Gives) ||
		!slices.Equal(a.NullSafe, b.NullSafe) || !sameExprs(a.LeftKeys, b.LeftKeys) || !sameExprs(a.RightKeys, b.RightKeys) {
		return false
	}
	for i, g := range a.Gives {
		if g.Column != b.Gives[i].Column {
			return false
		}
		c.keys[g.Key] = b.Gives[i].Key
	}
	return true
}

// tests compares tests for keys of joins within: those of joins above are not shared.
func (c comparison) tests(a, b []KeyTest) bool {
	return slices.EqualFunc(a, b, func(x, y KeyTest) bool {
		key, ok := c.keys[x.Key]
		return ok && key == y.Key && x.Column == y.Column
	})
}

func sameSpecs(a, b *AggregateSpec) bool {
	return a.Ordinal == b.Ordinal && sameNamed(a.Keys, b.Keys) && sameNamed(a.Aggs, b.Aggs)
}

func sameNamed(a, b []expr.Named) bool { return sameExprs(exprsOf(a), exprsOf(b)) }

// sameExprs compares expressions over positions; volatile ones are like no others.
func sameExprs(a, b []expr.Expr) bool {
	return slices.EqualFunc(a, b, expr.Equal) && !slices.ContainsFunc(a, eval.IsVolatile)
}
