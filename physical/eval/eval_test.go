package eval_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/memory"

	"github.com/tidemill/tidemill/columnar"
	"github.com/tidemill/tidemill/columnar/columnartest"
	"github.com/tidemill/tidemill/columnar/function"
	"github.com/tidemill/tidemill/logical/expr"
	"github.com/tidemill/tidemill/physical/eval"
)

var registry = function.Builtins()

// bind resolves a term over the columns of s and gives it positions.
func bind(t testing.TB, s *arrow.Schema, term expr.Term) expr.Expr {
	t.Helper()
	if term.Err() != nil {
		t.Fatal(term.Err())
	}
	r := &expr.Resolver{Registry: registry, Lookup: func(_, name string) (*expr.Column, error) {
		i, _ := columnar.Lookup(s, name)
		return &expr.Column{ID: expr.ID(i + 1), Name: name, DataType: s.Field(i).Type, Null: true}, nil
	}}
	e, err := r.Resolve(term.Expr)
	if err != nil {
		t.Fatal(err)
	}
	e, err = expr.BindRefs(e, func(id expr.ID) int { return int(id) - 1 })
	if err != nil {
		t.Fatal(err)
	}
	return e
}

func run(t testing.TB, mem memory.Allocator, b arrow.RecordBatch, e expr.Expr) (string, error) {
	t.Helper()
	fields := make([]arrow.Field, b.NumCols())
	for i, f := range b.Schema().Fields() {
		if d, ok := f.Type.(*arrow.DictionaryType); ok {
			f.Type = d.ValueType
		}
		fields[i] = f
	}
	p, err := eval.Compile(arrow.NewSchema(fields, nil), e)
	if err != nil {
		t.Fatal(err)
	}
	out, err := p.EvalColumns(&eval.Env{Mem: mem}, b)
	if err != nil {
		return "", err
	}
	defer out[0].Release()
	var parts []string
	for i := range out[0].Len() {
		parts = append(parts, string(columnar.AppendJSON(nil, out[0], i)))
	}
	return strings.Join(parts, " "), nil
}

func TestEval(t *testing.T) {
	t.Parallel()
	col, lit := expr.Col, expr.Lit
	const rows = `
		a:bigint  b:bigint  s:varchar  p:boolean  q:boolean
		1         0         x          true       true
		2         2         y          true       false
		NULL      3         NULL       NULL       true
		4         NULL      x          false      NULL
		5         0         zz         NULL       NULL
		6         1         ""         true       NULL
	`
	cases := []struct {
		name string
		e    expr.Term
		want string
		err  string
	}{
		{"column", col("a"), `1 2 null 4 5 6`, ""},
		{"literal", lit(3), `3 3 3 3 3 3`, ""},
		{"add", col("a").Add(col("b")), `1 4 null null 5 7`, ""},
		{"same twice", col("a").Add(col("b")).Mul(col("a").Add(col("b"))), `1 16 null null 25 49`, ""},
		{"and", col("p").And(col("q")), `true false null false null null`, ""},
		{"or", col("p").Or(col("q")), `true true true null null true`, ""},
		{"not", col("p").Not(), `false false null true null false`, ""},
		{"division by zero", col("a").IntDiv(col("b")), ``, "zero"},
		{"guarded by and", col("b").Ne(lit(0)).And(col("a").IntDiv(col("b")).Ge(lit(1))), `false true null null false true`, ""},
		{"guarded by or", col("b").Eq(lit(0)).Or(col("a").IntDiv(col("b")).Ge(lit(1))), `true true null null true true`, ""},
		{"guarded by case", expr.When(col("b").Ne(lit(0)), col("a").IntDiv(col("b"))).Otherwise(lit(int64(-1))), `-1 1 null -1 -1 6`, ""},
		{"case without else", expr.When(col("b").Eq(lit(0)), col("s")), `"x" null null null "zz" null`, ""},
		{"case of texts", expr.When(col("p"), col("s")).When(col("q"), lit("Q")).Otherwise(lit("-")), `"x" "y" "Q" "-" "-" ""`, ""},
		{"case of numbers", expr.When(col("p"), lit(1)).Otherwise(lit(2)), `1 1 2 2 2 1`, ""},
		{"constant guard", expr.When(lit(false), lit(1).IntDiv(lit(0))).Otherwise(lit(7)), `7 7 7 7 7 7`, ""},
		{"coalesce", expr.Func("coalesce", col("a"), col("b")), `1 2 3 4 5 6`, ""},
		{"coalesce guards", expr.Func("coalesce", col("a"), col("b").IntDiv(lit(1)), col("b").IntDiv(lit(0))), `1 2 3 4 5 6`, ""},
		{"in", col("a").In(lit(int64(1)), lit(int64(5))), `true false null false true false`, ""},
		{"in with null", col("a").In(lit(int64(1)), lit(nil)), `true null null null null null`, ""},
		{"in of texts", col("s").In(lit("x"), lit("zz")), `true false null true true false`, ""},
		{"in of columns", col("a").In(col("b"), lit(int64(1))), `true true null null false false`, ""},
		{"not in", col("s").In(lit("x")).Not(), `false true null false true true`, ""},
		{"is null", col("s").IsNull(), `false false true false false false`, ""},
		{"upper", expr.Func("upper", col("s")), `"X" "Y" null "X" "ZZ" ""`, ""},
		{"concat of one text", expr.Func("concat", col("s"), lit("!")), `"x!" "y!" null "x!" "zz!" "!"`, ""},
		{"two texts", expr.Func("concat", col("s"), col("s")), `"xx" "yy" null "xx" "zzzz" ""`, ""},
		{"length", expr.Func("length", col("s")), `1 1 null 1 2 0`, ""},
		{"equal text", col("s").Eq(lit("x")), `true false null true false false`, ""},
		{"cast", col("s").Cast(columnar.Int64), ``, `"x"`},
		{"guarded cast", expr.When(col("s").Eq(lit("9")), col("s").Cast(columnar.Int64)).Otherwise(col("a")), `1 2 null 4 5 6`, ""},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			mem := columnartest.Mem(t)
			plain := columnartest.Batch(t, mem, rows)
			e := bind(t, plain.Schema(), c.e)
			for _, b := range []arrow.RecordBatch{plain, encoded(t, mem, plain), sliced(t, mem, rows)} {
				got, err := run(t, mem, b, e)
				switch {
				case c.err != "":
					if err == nil || !strings.Contains(err.Error(), c.err) {
						t.Errorf("error %v, want one with %q", err, c.err)
					} else if !strings.Contains(err.Error(), e.String()) {
						t.Errorf("error %q does not name %s", err, e)
					}
				case err != nil:
					t.Error(err)
				case got != c.want:
					t.Errorf("got  %s\nwant %s", got, c.want)
				}
			}
		})
	}
}

// encoded is b with its text dictionary-encoded.
func encoded(t testing.TB, mem memory.Allocator, b arrow.RecordBatch) arrow.RecordBatch {
	columns := make([]arrow.Array, b.NumCols())
	fields := append([]arrow.Field(nil), b.Schema().Fields()...)
	for i, c := range b.Columns() {
		if c.DataType().ID() == arrow.STRING {
			columns[i] = columnartest.Encode(mem, c)
		} else {
			c.Retain()
			columns[i] = c
		}
		defer columns[i].Release()
		fields[i].Type = columns[i].DataType()
	}
	out := array.NewRecordBatch(arrow.NewSchema(fields, nil), columns, b.NumRows())
	t.Cleanup(out.Release)
	return out
}

// sliced is the rows of text as a slice of a larger batch.
func sliced(t testing.TB, mem memory.Allocator, text string) arrow.RecordBatch {
	lines := strings.Split(strings.TrimSpace(text), "\n")
	bad := "9  0  bad  true  true"
	larger := columnartest.Batch(t, mem, strings.Join(append([]string{lines[0], bad, bad, bad}, append(lines[1:], bad)...), "\n"))
	out := larger.NewSlice(3, larger.NumRows()-1)
	t.Cleanup(out.Release)
	return out
}

func TestSharing(t *testing.T) {
	t.Parallel()
	mem := columnartest.Mem(t)
	calls := 0
	f := &function.Scalar{Name: "probe", Overloads: []function.Overload{{
		Args:   []function.Matcher{registryMatcher(t)},
		Result: func([]arrow.DataType) (arrow.DataType, error) { return columnar.Int64, nil },
		Bind: func([]arrow.DataType, []arrow.Array) (function.Kernel, error) {
			return func(_ *function.Env, args []columnar.Datum, _ int, _ *columnar.Bitmap) (columnar.Datum, error) {
				calls++
				return args[0].Retain(), nil
			}, nil
		},
	}}}
	b := columnartest.Batch(t, mem, "a:bigint\n1\n2\n")
	call := &expr.Call{Func: f, Signature: &function.Signature{Overload: &f.Overloads[0], Args: []arrow.DataType{columnar.Int64}, Result: columnar.Int64},
		Args: []expr.Expr{&expr.Ref{Name: "a", DataType: columnar.Int64}}}
	again := *call
	p, err := eval.Compile(b.Schema(), call, &again)
	if err != nil {
		t.Fatal(err)
	}
	out, err := p.Eval(&eval.Env{Mem: mem}, b)
	if err != nil {
		t.Fatal(err)
	}
	for _, d := range out {
		d.Release()
	}
	if calls != 1 {
		t.Errorf("equal expressions were computed %d times", calls)
	}
}

func registryMatcher(t testing.TB) function.Matcher {
	f, ok := registry.Scalar("length")
	if !ok {
		t.Fatal("no length")
	}
	return f.Overloads[0].Args[0]
}

func TestFilter(t *testing.T) {
	t.Parallel()
	col, lit := expr.Col, expr.Lit
	mem := columnartest.Mem(t)
	b := columnartest.Batch(t, mem, `
		a:bigint  b:bigint
		1         0
		2         2
		NULL      1
		8         2
	`)
	cases := []struct {
		e    expr.Term
		want []int32
		all  bool
	}{
		{col("a").Gt(lit(1)), []int32{1, 3}, false},
		{lit(true), nil, true},
		{lit(false), nil, false},
		{lit(nil).Cast(columnar.Boolean), nil, false},
		{col("b").Ge(lit(0)), nil, true},
		{col("b").Gt(lit(0)).And(col("a").IntDiv(col("b")).Gt(lit(1))), []int32{3}, false},
		{col("b").Gt(lit(7)).And(col("a").IntDiv(col("b")).Gt(lit(1))), nil, false},
	}
	for _, c := range cases {
		e := bind(t, b.Schema(), c.e)
		f, err := eval.CompileFilter(b.Schema(), e)
		if err != nil {
			t.Fatal(err)
		}
		rows, all, err := f.Select(&eval.Env{Mem: mem}, b, nil)
		if err != nil || all != c.all || len(rows) != len(c.want) {
			t.Errorf("%s: %v %v %v", e, rows, all, err)
			continue
		}
		for i := range rows {
			if rows[i] != c.want[i] {
				t.Errorf("%s: rows %v, want %v", e, rows, c.want)
			}
		}
	}
}

func TestCanBeTrue(t *testing.T) {
	t.Parallel()
	col, lit := expr.Col, expr.Lit
	mem := columnartest.Mem(t)
	schema := columnartest.Schema(t, "i:bigint  f:double  s:varchar  n:bigint  k:bigint")
	one := func(typ, v string) arrow.Array { return columnartest.Column(t, mem, typ, v) }
	bounds := map[int]eval.Bounds{
		0: {Min: one("bigint", "10"), Max: one("bigint", "20"), Nulls: 0, Rows: 100},
		1: {Min: one("double", "1"), Max: one("double", "2"), Rows: 100},
		2: {Min: one("varchar", "b"), Max: one("varchar", "d"), Nulls: 3, Rows: 100},
		3: {Nulls: 100, Rows: 100},
	}
	cases := []struct {
		e    expr.Term
		want bool
	}{
		{col("i").Eq(lit(int64(9))), false},
		{col("i").Eq(lit(int64(10))), true},
		{col("i").Gt(lit(int64(20))), false},
		{col("i").Ge(lit(int64(20))), true},
		{lit(int64(20)).Lt(col("i")), false},
		{col("i").Lt(lit(int64(10))), false},
		{col("i").Ne(lit(int64(10))), true},
		{col("i").IsNull(), false},
		{col("i").IsNotNull(), true},
		{col("i").In(lit(int64(1)), lit(int64(2))), false},
		{col("i").In(lit(int64(1)), lit(int64(12))), true},
		{col("i").Gt(lit(int64(20))).Not(), true},
		{col("i").Le(lit(int64(20))).Not(), false},
		{col("f").Gt(lit(5.0)), true}, // NaN is above everything and not in the bounds
		{col("f").Lt(lit(0.5)), false},
		{col("f").Eq(lit(3.0)), false},
		{col("s").Eq(lit("a")), false},
		{col("s").IsNull(), true},
		{col("n").Eq(lit(int64(1))), false},
		{col("n").IsNotNull(), false},
		{col("k").Eq(lit(int64(1))), true},
		{col("i").Gt(lit(int64(20))).And(col("k").Eq(lit(int64(1)))), false},
		{col("i").Gt(lit(int64(20))).Or(col("k").Eq(lit(int64(1)))), true},
		{col("i").Gt(lit(int64(20))).Or(col("i").Lt(lit(int64(3)))), false},
		// The division comes first and would be an error.
		{lit(int64(1)).IntDiv(col("k")).Gt(lit(int64(0))).And(col("i").Gt(lit(int64(20)))), true},
		{col("i").Gt(lit(int64(20))).And(lit(int64(1)).IntDiv(col("k")).Gt(lit(int64(0)))), false},
		{lit(false), false},
		{col("i").Eq(lit(nil)), false},
	}
	for _, c := range cases {
		e := bind(t, schema, c.e)
		if got := eval.CanBeTrue(e, func(i int) eval.Bounds { return bounds[i] }); got != c.want {
			t.Errorf("%s: %v", e, got)
		}
	}
}

func TestHoldsForConstants(t *testing.T) {
	t.Parallel()
	col, lit := expr.Col, expr.Lit
	mem := columnartest.Mem(t)
	schema := columnartest.Schema(t, "day:varchar  hour:bigint  x:bigint")
	values := map[int]arrow.Array{0: columnartest.Column(t, mem, "varchar", "2024-05-01"), 1: columnartest.Column(t, mem, "bigint", "7")}
	cases := []struct {
		e    expr.Term
		want bool
	}{
		{col("day").Eq(lit("2024-05-01")), true},
		{col("day").Like("2024-06%"), false},
		{col("hour").Add(lit(1)).Eq(lit(8)), true},
		{col("hour").Mod(lit(2)).Eq(lit(0)), false},
		{lit(1).IntDiv(col("hour").Sub(lit(7))).Eq(lit(0)), true}, // an error is met later
		{col("hour").Gt(lit(int64(9))).And(col("x").Gt(lit(int64(1)))), false},
		{col("hour").Gt(col("x")), true},
	}
	for _, c := range cases {
		e := bind(t, schema, c.e)
		if got := eval.HoldsForConstants(e, func(i int) arrow.Array { return values[i] }); got != c.want {
			t.Errorf("%s: %v", e, got)
		}
	}
}

func TestVolatile(t *testing.T) {
	t.Parallel()
	mem := columnartest.Mem(t)
	b := columnartest.Batch(t, mem, "a:bigint\n1\n2\n3\n")
	e := bind(t, b.Schema(), expr.Func("random"))
	e.(*expr.Call).Place = expr.Place{}
	p, err := eval.Compile(b.Schema(), e, e)
	if err != nil {
		t.Fatal(err)
	}
	if !p.IsVolatile() {
		t.Error("random is not volatile")
	}
	values := func(seed uint64) []float64 {
		out, err := p.EvalColumns(&eval.Env{Mem: mem, Seed: seed}, b)
		if err != nil {
			t.Fatal(err)
		}
		var all []float64
		for _, a := range out {
			all = append(all, a.(*array.Float64).Float64Values()...)
			a.Release()
		}
		return all
	}
	a, again, other := values(1), values(1), values(2)
	seen := map[float64]bool{}
	for i := range a {
		if a[i] != again[i] {
			t.Error("the same seed gives other values")
		}
		seen[a[i]], seen[other[i]] = true, true
	}
	if len(seen) != 12 {
		t.Errorf("%d different values of 12", len(seen))
	}
}

// TestVolatilePlaces has calls of one text draw each for itself, but a call that is there
// twice, as the operand of BETWEEN, once.
func TestVolatilePlaces(t *testing.T) {
	t.Parallel()
	mem := columnartest.Mem(t)
	b := columnartest.Batch(t, mem, "a:bigint\n1\n2\n3\n")
	text := &expr.Source{Text: "random() BETWEEN random() AND 1"}
	at := func(offset int) expr.Expr {
		e := bind(t, b.Schema(), expr.Func("random"))
		e.(*expr.Call).Place = expr.Place{Source: text, Offset: offset}
		return e
	}
	values := func(e ...expr.Expr) (all [][]float64) {
		p, err := eval.Compile(b.Schema(), e...)
		if err != nil {
			t.Fatal(err)
		}
		out, err := p.EvalColumns(&eval.Env{Mem: mem, Seed: 1}, b)
		if err != nil {
			t.Fatal(err)
		}
		for _, a := range out {
			all = append(all, slices.Clone(a.(*array.Float64).Float64Values()))
			a.Release()
		}
		return all
	}
	first := strings.LastIndex(text.Text, "random")
	v := values(at(0), at(first), at(0))
	if !slices.Equal(v[0], v[2]) {
		t.Errorf("one call gives %v and %v", v[0], v[2])
	}
	if slices.Equal(v[0], v[1]) {
		t.Errorf("two calls give %v", v[0])
	}
	if other := values(at(first)); !slices.Equal(other[0], v[1]) {
		t.Errorf("a call gives %v beside another and %v alone", v[1], other[0])
	}
}

// TestEvalAllocations pins what a batch costs an expression once the pool is warm: the
// heads of the arrays it makes, whatever the number of rows.
func TestEvalAllocations(t *testing.T) {
	mem := columnar.NewPool()
	schema := columnartest.Schema(t, "a:bigint  b:bigint  s:varchar  d:double")
	col, lit := expr.Col, expr.Lit
	for name, c := range map[string]struct {
		term expr.Term
		most float64
	}{
		"add":     {col("d").Add(col("d")), 8},
		"compare": {col("a").Gt(lit(int64(500))).And(col("s").Eq(lit("x"))), 24},
		"case":    {expr.When(col("a").Gt(lit(int64(500))), col("b")).Otherwise(lit(int64(0))), 24},
	} {
		p, err := eval.Compile(schema, bind(t, schema, c.term))
		if err != nil {
			t.Fatal(err)
		}
		for _, rows := range []int{1024, 65536} {
			fields := make([]arrow.Array, schema.NumFields())
			for i := range fields {
				fields[i] = columnartest.RandomColumn(t, mem, schema.Field(i).Type, uint64(i), columnartest.RandomOptions{Rows: rows, Nulls: -1})
			}
			rb := array.NewRecordBatch(schema, fields, int64(rows))
			env := &eval.Env{Mem: mem}
			n := testing.AllocsPerRun(20, func() {
				out, err := p.Eval(env, rb)
				if err != nil {
					t.Fatal(err)
				}
				out[0].Release()
			})
			if n > c.most {
				t.Errorf("%s, %d rows: %v allocations, at most %v", name, rows, n, c.most)
			}
			rb.Release()
			for _, f := range fields {
				f.Release()
			}
		}
	}
}

func BenchmarkEval(b *testing.B) {
	mem := columnar.NewPool()
	n := columnar.DefaultBatchRows
	buf := array.NewInt64Builder(mem)
	for i := range n {
		buf.Append(int64(i))
	}
	a := buf.NewArray()
	defer a.Release()
	rb := array.NewRecordBatch(columnartest.Schema(b, "a:bigint  b:bigint"), []arrow.Array{a, a}, int64(n))
	defer rb.Release()
	col, lit := expr.Col, expr.Lit
	for name, e := range map[string]expr.Term{
		"add":    col("a").Add(col("b")),
		"filter": col("a").Gt(lit(int64(500))).And(col("b").Lt(lit(int64(9000)))),
		"case":   expr.When(col("a").Gt(lit(int64(500))), col("b")).Otherwise(lit(int64(0))),
	} {
		b.Run(name, func(b *testing.B) {
			p, err := eval.Compile(rb.Schema(), bind(b, rb.Schema(), e))
			if err != nil {
				b.Fatal(err)
			}
			env := &eval.Env{Mem: mem}
			for b.Loop() {
				out, err := p.Eval(env, rb)
				if err != nil {
					b.Fatal(err)
				}
				out[0].Release()
			}
			b.ReportMetric(float64(n)*float64(b.N)/b.Elapsed().Seconds(), "rows/s")
		})
	}
}
