package expr_test

import (
	"fmt"
	"testing"

	"github.com/tidemill/tidemill/logical/expr"
)

func TestSet(t *testing.T) {
	t.Parallel()
	var all []expr.Expr
	for i := range 200 {
		all = append(all, lit(int64(i)), lit(fmt.Sprint(i)), lit(float64(i)), lit(int32(i)), call("+", n, lit(int64(i))),
			&expr.In{Value: n, List: []expr.Expr{lit(int64(i))}}, deep(70, i))
	}
	var s expr.Set
	for i, e := range all {
		if at, added := s.Add(e); !added || at != i {
			t.Fatalf("%s: added %v as %d, not as %d", e, added, at, i)
		}
	}
	for i, e := range all {
		again := e.WithChildren(append([]expr.Expr(nil), e.Children()...)) // another pointer
		if at, added := s.Add(again); added || at != i || s.Find(again) != i {
			t.Errorf("%s is not found again", e)
		}
	}
	if s.Len() != len(all) || s.Find(lit(int64(-1))) >= 0 {
		t.Errorf("%d expressions, %d expected", s.Len(), len(all))
	}
}

// deep differs from its like only below more nodes than are hashed.
func deep(levels, i int) expr.Expr {
	e := call("+", n, lit(int64(i)))
	for range levels {
		e = call("+", e, n)
	}
	return e
}
