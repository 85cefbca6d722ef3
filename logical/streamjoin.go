package logical

import (
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

// StreamJoins moves what a filter right above an inner or cross join of two streams
// asks for into the join's condition: FROM l, r WHERE l.k = r.k is a join by k, and a
// range of times in WHERE bounds what is kept. It is part of analysis, not of
// optimization, for the state of a join depends on it.
func StreamJoins(n Node) (Node, error) {
	return Transform(n, func(x Node) (Node, error) {
		f, ok := x.(*Filter)
		if !ok {
			return x, nil
		}
		j, ok := f.Input.(*Join)
		if !ok || j.Kind != InnerJoin && j.Kind != CrossJoin || !IsStreaming(j.Left) || !IsStreaming(j.Right) {
			return x, nil
		}
		return mergeFilter(f, j), nil
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
