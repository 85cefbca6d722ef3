package logical

import (
	"slices"

	"github.com/tidemill/tidemill/columnar/function"
	"github.com/tidemill/tidemill/logical/expr"
)

// JoinKey is an equality of a join's condition.
type JoinKey struct {
	Left, Right expr.Expr // over columns of that side, of one type
	NullSafe    bool      // IS NOT DISTINCT FROM: null equals null
}

// JoinParts is the condition of a join of two streams, taken apart by what it needs:
// all of it holds where every part does.
type JoinParts struct {
	Keys        []JoinKey
	Left, Right []expr.Expr // over one side alone; they cannot fail
	Rest        []expr.Expr // over pairs
}

// PartsOf takes the condition of j apart. A condition over one side that may fail for
// some value is left to the pairs, which the others have thinned out.
func PartsOf(j *Join) JoinParts {
	var p JoinParts
	left, right := j.Left.Schema(), j.Right.Schema()
	for _, c := range expr.Conjuncts(j.On) {
		if key, ok := keyOf(c, left, right); ok {
			p.Keys = append(p.Keys, key)
			continue
		}
		ids := expr.Columns(c)
		switch {
		case len(ids) == 0 || expr.IsFallible(c):
			p.Rest = append(p.Rest, c)
		case left.Has(ids...):
			p.Left = append(p.Left, c)
		case right.Has(ids...):
			p.Right = append(p.Right, c)
		default:
			p.Rest = append(p.Rest, c)
		}
	}
	return p
}

// keyOf reads left = right and left IS NOT DISTINCT FROM right, either way around.
func keyOf(e expr.Expr, left, right *Schema) (JoinKey, bool) {
	c, ok := e.(*expr.Call)
	if !ok || len(c.Args) != 2 || c.Func.Name != "=" && c.Func.Name != "is_not_distinct_from" {
		return JoinKey{}, false
	}
	key := JoinKey{Left: c.Args[0], Right: c.Args[1], NullSafe: c.Func.Name != "="}
	if isOver(key.Left, left) && isOver(key.Right, right) {
		return key, true
	}
	key.Left, key.Right = key.Right, key.Left
	return key, isOver(key.Left, left) && isOver(key.Right, right)
}

// isOver says whether e is computed from columns of s alone, and of some.
func isOver(e expr.Expr, s *Schema) bool {
	ids := expr.Columns(e)
	return len(ids) > 0 && s.Has(ids...)
}

// HasEquality says whether the condition of a join equates something of both sides.
func HasEquality(j *Join) bool { return len(PartsOf(j).Keys) > 0 }

// StreamJoins brings the joins of two streams into the form their state is made for: the
// condition of an inner or cross join is what says which rows belong together, and what
// only filters stands in Filters, above the join or below it, so that it may change
// without the state. FROM l, r WHERE l.k = r.k is a join by k, and a range of times in
// WHERE that bounds what is kept is part of the join. It is part of analysis, not of
// optimization, for the state of a join depends on it.
func StreamJoins(n Node) (Node, error) {
	return Transform(n, func(x Node) (Node, error) {
		switch x := x.(type) {
		case *Filter:
			in, above := intoStreamJoin(x.Input, expr.Conjuncts(x.Cond))
			if in == x.Input {
				return x, nil
			}
			return filteredBy(in, above), nil
		case *Join:
			in, above := intoStreamJoin(x, nil)
			return filteredBy(in, above), nil
		}
		return x, nil
	})
}

func areStreams(j *Join) bool { return IsStreaming(j.Left) && IsStreaming(j.Right) }

func isInner(j *Join) bool { return j.Kind == InnerJoin || j.Kind == CrossJoin }

func filteredBy(n Node, conds []expr.Expr) Node {
	if len(conds) == 0 {
		return n
	}
	return NewFilter(n, expr.All(conds))
}

// intoStreamJoin gives conds to n, if it is an inner join of streams, perhaps with a filter
// above it; above are those that are to stand above it. Of another n they all are.
func intoStreamJoin(n Node, conds []expr.Expr) (in Node, above []expr.Expr) {
	if f, ok := n.(*Filter); ok {
		if in, above = intoStreamJoin(f.Input, append(expr.Conjuncts(f.Cond), conds...)); in != f.Input {
			return in, above
		}
		return n, conds
	}
	j, ok := n.(*Join)
	if !ok || !isInner(j) || !areStreams(j) {
		return n, conds
	}
	p := placing{j: j, keyed: HasEquality(j), keyless: !HasEquality(j.withOn(append(expr.Conjuncts(j.On), conds...)))}
	p.free = !p.keyed
	for _, c := range expr.Conjuncts(j.On) {
		p.place(c, true)
	}
	for _, c := range conds {
		p.place(c, false)
	}
	if len(p.left)+len(p.right) > 0 {
		j = j.WithChildren([]Node{belowJoin(j.Left, p.left), belowJoin(j.Right, p.right)}).(*Join)
	}
	return j.withOn(p.on), p.above
}

// belowJoin puts conds over a side of a join, which may be a join of streams itself.
func belowJoin(n Node, conds []expr.Expr) Node {
	in, above := intoStreamJoin(n, conds)
	return filteredBy(in, above)
}

// placing sorts conditions of an inner join of streams by where they belong.
type placing struct {
	j           *Join
	keyless     bool // there is no equality at all
	free        bool // none stands in ON
	keyed       bool // one is among on
	on, above   []expr.Expr
	left, right []expr.Expr // below
}

// place finds the place of c, which isOwn if it stands in ON. What may fail is asked of
// the pairs, which the other conditions have thinned out, and both sides of an equality
// are computed for every row.
func (p *placing) place(c expr.Expr, isOwn bool) {
	ids := expr.Columns(c)
	l, r := p.j.Left.Schema(), p.j.Right.Schema()
	isLeft, isRight := l.Has(ids...), r.Has(ids...)
	_, isKey := keyOf(c, l, r)
	switch {
	case isVolatile(c) || len(ids) == 0:
		p.keep(c, isOwn)
	case (isLeft || isRight) && expr.IsFallible(c):
		p.keep(c, false)
	case isLeft:
		p.left = append(p.left, c)
	case isRight:
		p.right = append(p.right, c)
	case isOwn, p.keyless, isKey && p.free && !(p.keyed && expr.IsFallible(c)), p.bounds(c):
		p.keyed = p.keyed || isKey
		p.keep(c, true)
	default:
		p.keep(c, false)
	}
}

func (p *placing) keep(c expr.Expr, on bool) {
	if on {
		p.on = append(p.on, c)
	} else {
		p.above = append(p.above, c)
	}
}

// bounds says whether c bounds how long rows are kept, beyond what the conditions do that
// are the join's already.
func (p *placing) bounds(c expr.Expr) bool {
	l, r := JoinBounds(p.j.withOn(p.on))
	left, right := JoinBounds(p.j.withOn(append(slices.Clone(p.on), c)))
	return !l.equal(left) || !r.equal(right)
}

func (b *JoinBound) equal(o *JoinBound) bool {
	if b == nil || o == nil {
		return b == o
	}
	return b.Time.String() == o.Time.String() && b.Offset == o.Offset && b.Range == o.Range
}

// withOn is the join with the condition on: an inner join, if it was one of all pairs.
func (j *Join) withOn(on []expr.Expr) *Join {
	kind := j.Kind
	if kind == CrossJoin && len(on) > 0 {
		kind = InnerJoin
	}
	return j.over(NewJoin(kind, j.Left, j.Right, expr.All(on)))
}

// FormerStreamJoins is StreamJoins as it was for checkpoints of form 1: all that a filter
// right above an inner or cross join of two streams asks for is part of its condition.
func FormerStreamJoins(n Node) (Node, error) {
	return Transform(n, func(x Node) (Node, error) {
		f, ok := x.(*Filter)
		if !ok {
			return x, nil
		}
		if j, ok := f.Input.(*Join); ok && isInner(j) && areStreams(j) {
			return mergeFilter(f, j), nil
		}
		return x, nil
	})
}

func mergeFilter(f *Filter, j *Join) Node {
	on := expr.Conjuncts(j.On)
	keyed := HasEquality(j)
	var above []expr.Expr
	for _, c := range expr.Conjuncts(f.Cond) {
		// Both sides of an equality are computed for every row, not for the pairs that
		// other conditions leave.
		_, isKey := keyOf(c, j.Left.Schema(), j.Right.Schema())
		if len(above) > 0 || isVolatile(c) || isKey && keyed && expr.IsFallible(c) {
			above = append(above, c)
			continue
		}
		on = append(on, c)
		keyed = keyed || isKey
	}
	if len(above) == len(expr.Conjuncts(f.Cond)) {
		return f
	}
	merged := Node(j.over(NewJoin(InnerJoin, j.Left, j.Right, expr.All(on))))
	if len(above) > 0 {
		merged = NewFilter(merged, expr.All(above))
	}
	return merged
}

// isVolatile says whether two evaluations of e may differ.
func isVolatile(e expr.Expr) bool {
	return callsAny(e, func(o *function.Overload) bool { return o.Volatility == function.Volatile })
}

func callsAny(e expr.Expr, is func(o *function.Overload) bool) bool {
	if e == nil {
		return false
	}
	found := false
	expr.Walk(e, func(x expr.Expr) bool {
		if c, ok := x.(*expr.Call); ok && is(c.Signature.Overload) {
			found = true
		}
		return !found
	})
	return found
}
