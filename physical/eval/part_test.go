package eval_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/memory"

	"github.com/tidemill/tidemill/columnar"
	"github.com/tidemill/tidemill/columnar/columnartest"
	"github.com/tidemill/tidemill/logical/expr"
	"github.com/tidemill/tidemill/physical/eval"
)

// partBatch is 600 rows of a number and a text.
func partBatch(t *testing.T, mem memory.Allocator) arrow.RecordBatch {
	t.Helper()
	var text strings.Builder
	text.WriteString("n:bigint  s:varchar")
	for i := range 600 {
		fmt.Fprintf(&text, "\n%d  v%d", i, i%7)
	}
	return columnartest.Batch(t, mem, text.String())
}

// TestParts checks that results out of proportion to their input are computed for few rows at
// a time, and are what they are at once.
func TestParts(t *testing.T) {
	t.Parallel()
	mem := columnartest.Mem(t)
	b := partBatch(t, mem)
	defer b.Release()
	encoded := partBatch(t, mem)
	encoded = dictionaries(t, mem, encoded)
	defer encoded.Release()
	n, s := expr.Col("n"), expr.Col("s")
	size := expr.Func("+", expr.Lit(int64(3000)), expr.Func("%", n, expr.Lit(int64(3))))
	wide := expr.Func("repeat", s, size)
	for _, c := range []struct {
		term  expr.Term
		parts bool
	}{
		{n, false}, {s, false}, {expr.Func("upper", s), false}, {expr.Func("random"), false},
		{wide, true}, {expr.Func("length", wide), true}, {expr.Lit(strings.Repeat("x", 5000)), true},
		{expr.Func("concat", wide, expr.Func("random")), true}, {expr.Func("sequence", expr.Lit(int64(1)), size), true},
		{expr.Func("concat", expr.Lit(strings.Repeat("x", 5000)), s), true}, {expr.Func("struct", expr.Lit(strings.Repeat("x", 5000)), s), true},
		{expr.Func("array", expr.Lit(strings.Repeat("x", 5000)), s), true},
		{expr.Func("replace", s, expr.Lit("v"), expr.Lit(strings.Repeat("y", 6000))), true},
	} {
		for name, in := range map[string]arrow.RecordBatch{"plain": b, "encoded": encoded} {
			p, err := eval.Compile(b.Schema(), bind(t, b.Schema(), c.term), bind(t, b.Schema(), n))
			if err != nil {
				t.Fatal(err)
			}
			how := fmt.Sprintf("%s over %s columns", c.term.Expr, name)
			whole := evalColumns(t, p, &eval.Env{Mem: mem, Seed: 1, PartBytes: 1 << 40}, in)
			env := &eval.Env{Mem: mem, Seed: 1, PartBytes: 1 << 20}
			together := evalColumns(t, p, env, in)
			if !slices.Equal(together, whole) {
				t.Errorf("%s: the parts together differ", how)
			}
			env = &eval.Env{Mem: mem, Seed: 1, PartBytes: 1 << 20}
			env.Begin(in)
			rows, parts := []string{}, 0
			for from := 0; from < int(in.NumRows()); parts++ {
				columns, k, err := p.EvalColumnsPart(env, in, from)
				if err != nil {
					t.Fatal(err)
				}
				rows = append(rows, rowTexts(mem, columns)...)
				from += k
			}
			if !slices.Equal(rows, whole) {
				t.Errorf("%s: the parts one by one differ", how)
			}
			if c.parts != (parts > 1) && name == "plain" {
				t.Errorf("%s: %d parts", how, parts)
			}
		}
	}
}

// evalColumns is the rows of the results.
func evalColumns(t *testing.T, p *eval.Program, env *eval.Env, b arrow.RecordBatch) []string {
	t.Helper()
	env.Begin(b)
	columns, err := p.EvalColumns(env, b)
	if err != nil {
		t.Fatal(err)
	}
	return rowTexts(env.Mem, columns)
}

// rowTexts are rows as text; it releases the columns.
func rowTexts(mem memory.Allocator, columns []arrow.Array) []string {
	var rows []string
	for k, c := range columns {
		plain := columnar.PlainColumn(mem, c)
		for i := range plain.Len() {
			if k == 0 {
				rows = append(rows, "")
			}
			rows[i] += "|" + string(columnar.AppendCanonical(nil, plain, i, nil))
		}
		plain.Release()
		c.Release()
	}
	return rows
}

// TestFilterInParts checks the same of conditions.
func TestFilterInParts(t *testing.T) {
	t.Parallel()
	mem := columnartest.Mem(t)
	b := partBatch(t, mem)
	defer b.Release()
	n, s := expr.Col("n"), expr.Col("s")
	length := expr.Func("length", expr.Func("repeat", s, expr.Func("+", expr.Lit(int64(3000)), n)))
	for _, cond := range []expr.Term{
		expr.Func(">", length, expr.Lit(int64(0))),
		expr.Func("<", length, expr.Lit(int64(0))),
		expr.Func("<", length, expr.Lit(int64(8000))),
		expr.Func("=", expr.Func("%", length, expr.Lit(int64(4))), expr.Lit(int64(0))),
	} {
		f, err := eval.CompileFilter(b.Schema(), bind(t, b.Schema(), cond), bind(t, b.Schema(), expr.Func("<>", n, expr.Lit(int64(-1)))))
		if err != nil {
			t.Fatal(err)
		}
		before := []int32{7}
		want, wantAll, err := f.Select(&eval.Env{Mem: mem, PartBytes: 1 << 40}, b, slices.Clone(before))
		if err != nil {
			t.Fatal(err)
		}
		got, all, err := f.Select(&eval.Env{Mem: mem, PartBytes: 1 << 20}, b, slices.Clone(before))
		if err != nil || all != wantAll || !slices.Equal(got, want) {
			t.Errorf("%s: %d rows, all: %v, %v; at once %d, %v", cond.Expr, len(got), all, err, len(want), wantAll)
		}
	}
}
