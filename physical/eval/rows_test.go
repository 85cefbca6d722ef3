package eval_test

import (
	"fmt"
	"testing"

	"github.com/apache/arrow-go/v18/arrow"

	"github.com/tidemill/tidemill/columnar"
	"github.com/tidemill/tidemill/columnar/columnartest"
	"github.com/tidemill/tidemill/logical/expr"
	"github.com/tidemill/tidemill/physical/eval"
)

// TestRandomRows checks that the random value of a row is the same however the rows are
// cut into batches.
func TestRandomRows(t *testing.T) {
	t.Parallel()
	mem := columnartest.Mem(t)
	whole := columnartest.Batch(t, mem, "a:bigint\n1\n2\n3\n4\n5\n")
	p, err := eval.Compile(whole.Schema(), bind(t, whole.Schema(), expr.Func("random")), bind(t, whole.Schema(), expr.Func("uuid")),
		bind(t, whole.Schema(), expr.Func("random", expr.Lit(int64(7)))))
	if err != nil {
		t.Fatal(err)
	}
	draw := func(sizes ...int64) string {
		env := &eval.Env{Mem: mem, Seed: 3}
		rows, from := "", int64(0)
		for _, n := range sizes {
			b := whole.NewSlice(from, from+n)
			from += n
			env.Begin(b)
			columns, err := p.EvalColumns(env, b)
			b.Release()
			if err != nil {
				t.Fatal(err)
			}
			rows += rowsOf(columns)
			for _, c := range columns {
				c.Release()
			}
		}
		return rows
	}
	want := draw(5)
	for _, sizes := range [][]int64{{1, 1, 1, 1, 1}, {2, 3}, {4, 1}} {
		if got := draw(sizes...); got != want {
			t.Errorf("in batches of %v rows:\n%s\nin one:\n%s", sizes, got, want)
		}
	}
}

func rowsOf(columns []arrow.Array) (rows string) {
	for i := range columns[0].Len() {
		for _, c := range columns {
			rows += fmt.Sprint(columnar.Value(c, i), " ")
		}
		rows += "\n"
	}
	return rows
}
