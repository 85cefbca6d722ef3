package eval_test

import (
	"errors"
	"strings"
	"testing"

	"github.com/tidemill/tidemill/columnar"
	"github.com/tidemill/tidemill/columnar/columnartest"
	"github.com/tidemill/tidemill/logical/expr"
	"github.com/tidemill/tidemill/physical/eval"
)

// TestResultsAreReserved checks that a result out of proportion to its arguments needs memory
// of the budget, whichever function makes it, and gives it back.
func TestResultsAreReserved(t *testing.T) {
	t.Parallel()
	n, s := expr.Col("n"), expr.Col("s")
	number := func(v int64) expr.Term { return expr.Lit(v) }
	for _, c := range []struct {
		term expr.Term
		fits bool
	}{
		{expr.Func("repeat", s, number(4_000_000)), false},
		{expr.Func("repeat", s, number(1000)), true},
		{expr.Func("repeat", s, n), false},
		{expr.Func("space", number(8_000_000)), false},
		{expr.Func("lpad", s, number(4_000_000)), false},
		{expr.Func("replace", s, expr.Lit("x"), expr.Lit(strings.Repeat("y", 600_000))), false},
		{expr.Func("sequence", number(1), n), false},
		{expr.Func("sequence", number(1), number(1000)), true},
		{expr.Func("array_repeat", s, n), false},
		{expr.Func("upper", s), true},
	} {
		mem := columnartest.Mem(t)
		b := columnartest.Batch(t, mem, "n:bigint  s:varchar\n800000  xxxxx\n900000  xxxxx\n900000  x")
		p, err := eval.Compile(b.Schema(), bind(t, b.Schema(), c.term))
		if err != nil {
			t.Fatal(err)
		}
		budget := columnar.NewBudget(5 << 20)
		out, err := p.EvalColumns(&eval.Env{Mem: mem, Budget: budget}, b)
		for _, a := range out {
			a.Release()
		}
		b.Release()
		if fits := !errors.Is(err, columnar.ErrMemory); fits != c.fits {
			t.Errorf("%s: %v, should fit: %v", c.term.Expr, err, c.fits)
		}
		if budget.Used() != 0 {
			t.Errorf("%s: %d bytes are not given back", c.term.Expr, budget.Used())
		}
	}
}
