package tidemill_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/memory"

	"github.com/tidemill/tidemill"
	"github.com/tidemill/tidemill/columnar"
	"github.com/tidemill/tidemill/columnar/function"
	"github.com/tidemill/tidemill/logical/connector"
)

// TestResultsOfFunctions is what a user's function may return, and what comes of it.
func TestResultsOfFunctions(t *testing.T) {
	t.Parallel()
	errOwn := errors.New("no such thing")
	for _, c := range []struct {
		name   string
		result arrow.DataType
		f      func(n int64) (any, error)
		want   string
	}{
		{"a value", columnar.Int64, func(n int64) (any, error) { return n * 2, nil }, "[<nil> 2 4]"},
		{"another integer", columnar.Int32, func(n int64) (any, error) { return uint8(n), nil }, "[<nil> 1 2]"},
		{"null", columnar.String, func(int64) (any, error) { return nil, nil }, "[<nil> <nil> <nil>]"},
		{"an error", columnar.Int64, func(int64) (any, error) { return nil, errOwn }, "line 1, column 8: f(n): no such thing"},
		{"a wrong type", columnar.Int64, func(int64) (any, error) { return "x", nil }, "line 1, column 8: f(n): x (string) is not a BIGINT"},
		{"a number that does not fit", columnar.Int8, func(n int64) (any, error) { return n * 100, nil }, "line 1, column 8: f(n): 200 (int64) is not a TINYINT"},
		{"no type at all", columnar.String, func(int64) (any, error) { return struct{}{}, nil }, "line 1, column 8: f(n): {} (struct {}) is not a VARCHAR"},
	} {
		s, err := tidemill.NewSession(tidemill.Options{})
		if err != nil {
			t.Fatal(err)
		}
		f := tidemill.ScalarFunc("f", []arrow.DataType{columnar.Int64}, c.result, func(args []any) (any, error) { return c.f(args[0].(int64)) })
		if err := s.RegisterFunction(f); err != nil {
			t.Fatal(err)
		}
		got, err := firstColumn(s, "SELECT f(n) FROM (VALUES (NULL::BIGINT), (1), (2)) AS v (n) ORDER BY n")
		if err != nil {
			got = err.Error()
		}
		if got != c.want {
			t.Errorf("%s: got %s, want %s", c.name, got, c.want)
		}
		if err != nil && tidemill.KindOf(err) != tidemill.FailedError {
			t.Errorf("%s: of kind %d", c.name, tidemill.KindOf(err))
		}
		if c.name == "an error" && !errors.Is(err, errOwn) {
			t.Errorf("the error is not the function's own: %v", err)
		}
	}
}

// firstColumn is the first column of a query.
func firstColumn(s *tidemill.Session, text string) (string, error) {
	df, err := s.SQL(context.Background(), text)
	if err != nil {
		return "", err
	}
	rows, err := s.Collect(context.Background(), df)
	if err != nil {
		return "", err
	}
	defer rows.Release()
	var out []any
	for _, row := range rows.All() {
		out = append(out, row[0])
	}
	return fmt.Sprint(out), nil
}

// TestKernelsThatBreakTheirWord returns from kernel and accumulator what was not promised.
func TestKernelsThatBreakTheirWord(t *testing.T) {
	t.Parallel()
	ints := func(mem memory.Allocator, n int) arrow.Array {
		b := array.NewInt64Builder(mem)
		defer b.Release()
		for range n {
			b.Append(1)
		}
		return b.NewArray()
	}
	for _, c := range []struct {
		name   string
		kernel func(env *function.Env, rows int) (columnar.Datum, error)
		want   string
	}{
		{"too few", func(env *function.Env, rows int) (columnar.Datum, error) {
			return columnar.ColumnDatum(ints(env.Mem, rows-1)), nil
		}, "line 1, column 8: f(n): function f returned 2 values for 3"},
		{"too many", func(env *function.Env, rows int) (columnar.Datum, error) {
			return columnar.ColumnDatum(ints(env.Mem, rows+1)), nil
		}, "line 1, column 8: f(n): function f returned 4 values for 3"},
		{"none", func(*function.Env, int) (columnar.Datum, error) { return columnar.Datum{}, nil }, "line 1, column 8: f(n): function f returned no column"},
		{"another type", func(env *function.Env, rows int) (columnar.Datum, error) {
			return columnar.ColumnDatum(columnar.Nulls(env.Mem, columnar.String, rows)), nil
		}, "line 1, column 8: f(n): function f returned VARCHAR where it promised BIGINT"},
		{"a constant", func(env *function.Env, _ int) (columnar.Datum, error) {
			return columnar.ConstantDatum(ints(env.Mem, 1)), nil
		}, "[1 1 1]"},
	} {
		s, err := tidemill.NewSession(tidemill.Options{})
		if err != nil {
			t.Fatal(err)
		}
		kernel := func(env *function.Env, _ []columnar.Datum, rows int, _ *columnar.Bitmap) (columnar.Datum, error) {
			return c.kernel(env, rows)
		}
		if err := s.RegisterFunction(&function.Scalar{Name: "f", Overloads: []function.Overload{{
			Args: []function.Matcher{function.Exactly(columnar.Int64)}, Result: function.Always(columnar.Int64),
			Bind: func([]arrow.DataType, []arrow.Array) (function.Kernel, error) { return kernel, nil },
		}}}); err != nil {
			t.Fatal(err)
		}
		got, err := firstColumn(s, "SELECT f(n) FROM (VALUES (1::BIGINT), (2), (3)) AS v (n)")
		if err != nil {
			got = err.Error()
		}
		if got != c.want {
			t.Errorf("%s: got %s, want %s", c.name, got, c.want)
		}
	}
}

// TestArgumentsMayBeKept keeps the arguments of a function beyond its call: they do not
// change.
func TestArgumentsMayBeKept(t *testing.T) {
	t.Parallel()
	var mu sync.Mutex
	var kept [][]any
	s, err := tidemill.NewSession(tidemill.Options{Settings: map[string]string{"batch_rows": "2", "threads": "1"}})
	if err != nil {
		t.Fatal(err)
	}
	f := tidemill.ScalarFunc("keep", []arrow.DataType{columnar.String, columnar.Binary}, columnar.Boolean, func(args []any) (any, error) {
		mu.Lock()
		defer mu.Unlock()
		kept = append(kept, args)
		return true, nil
	})
	if err := s.RegisterFunction(f); err != nil {
		t.Fatal(err)
	}
	if _, err := firstColumn(s, "SELECT keep('text ' || id::VARCHAR, ('bytes ' || id::VARCHAR)::BINARY) FROM range(100)"); err != nil {
		t.Fatal(err)
	}
	if _, err := firstColumn(s, "SELECT upper('other ' || id::VARCHAR) FROM range(1000)"); err != nil { // takes the same memory again
		t.Fatal(err)
	}
	var got []string
	for _, args := range kept {
		got = append(got, fmt.Sprintf("%s, %s", args[0], args[1]))
	}
	slices.Sort(got)
	var want []string
	for i := range 100 {
		want = append(want, fmt.Sprintf("text %d, bytes %d", i, i))
	}
	slices.Sort(want)
	if !slices.Equal(got, want) {
		t.Errorf("kept %v", got)
	}
}

// TestConcurrentCalls calls a function from several goroutines of a query.
func TestConcurrentCalls(t *testing.T) {
	t.Parallel()
	x := newSite(t)
	u := newUser("")
	s := u.session(x, tidemill.Options{Settings: map[string]string{"threads": "4"}})
	x.ok(s.RegisterTable("t", u.table()))
	got, err := firstColumn(s, "SELECT sum(f(n)) FROM t")
	x.ok(err)
	x.expect("the sum", got, "[5.00005e+09]")
}

// TestAggregateStateOverRestarts saves the state of a user's aggregate after each batch
// and goes on from it in another process: nulls and a group without values among them.
func TestAggregateStateOverRestarts(t *testing.T) {
	t.Parallel()
	x := newSite(t)
	schema := columnar.NewSchema(columnar.Field("k", columnar.String), columnar.Field("v", columnar.Float64))
	for i, c := range []struct{ text, want string }{
		{"k,v\na,2\nb,\na,3", "a 6\nb <nil>"},
		{"k,v\nb,5\nc,7", "a 6\nb 5\nc 7"},
		{"k,v\na,0.5\nc,\nb,2", "a 3\nb 10\nc 7"},
	} {
		x.write(fmt.Sprintf("in/%d.csv", i), c.text)
		s := x.session(tidemill.Options{})
		x.ok(s.RegisterAggregate(product()))
		df := s.ReadStream("in", nil, schema).GroupBy(tidemill.Col("k")).Agg(tidemill.Func("product_of", tidemill.Col("v")).As("p"))
		x.ok(x.run(s.WriteStream(df).To("out", nil).Mode(tidemill.Complete)))
		x.expect(fmt.Sprintf("after batch %d", i), x.rows(x.Read("out")), c.want)
	}
}

// TestBlame names the part that failed, and not the sink that read it.
func TestBlame(t *testing.T) {
	t.Parallel()
	errOwn := errors.New("the dog ate it")
	type number struct{ N int64 }
	for _, c := range []struct {
		name string
		run  func(x *site, s *tidemill.Session) *tidemill.StreamWriter
		want string
	}{
		{"a source", func(x *site, s *tidemill.Session) *tidemill.StreamWriter {
			u := newUser("")
			c := u.connector()
			c.Name, c.Source = "broken", func(context.Context, connector.Env) (connector.Source, error) {
				u.upto.Store(3)
				return &brokenSource{&counter{u.upto}, errOwn}, nil
			}
			x.ok(s.RegisterConnector(c))
			return s.WriteStream(s.ReadStreamFrom("broken", nil, nil))
		}, "query q, batch 0: source broken: the dog ate it"},
		{"a function", func(x *site, s *tidemill.Session) *tidemill.StreamWriter {
			x.ok(s.RegisterFunction(tidemill.ScalarFunc("g", []arrow.DataType{columnar.Int64}, columnar.Int64, func([]any) (any, error) { return nil, errOwn })))
			return s.WriteStream(s.ReadStreamFrom("counter", nil, nil).Select(tidemill.Func("g", tidemill.Col("n"))))
		}, "query q, batch 0: g(n): the dog ate it"},
		{"a function of groups", func(_ *site, s *tidemill.Session) *tidemill.StreamWriter {
			g := s.ReadStreamFrom("counter", nil, nil).GroupBy(tidemill.Col("n"))
			return s.WriteStream(tidemill.FlatMapGroupsWithState(g, tidemill.GroupsOptions{}, func(int64, []number, *tidemill.GroupState[int64], func(number)) error { return errOwn }))
		}, "query q, batch 0: flatMapGroupsWithState for key 0: the dog ate it"},
	} {
		for _, to := range []string{"ledger", "files", "foreachBatch"} {
			x, u := newSite(t), newUser("")
			u.upto.Store(3)
			w := c.run(x, u.session(x, tidemill.Options{})).Name("q").Checkpoint("ckpt")
			switch to {
			case "ledger":
				w = w.ToSink("ledger", u.sink)
			case "files":
				w = w.To("out", nil)
			case "foreachBatch":
				w = w.ForeachBatch(func(ctx context.Context, _ int64, rows columnar.Reader) error {
					_, err := columnar.Drain(ctx, rows)
					return err
				})
			}
			err := x.run(w)
			if err == nil || err.Error() != c.want || !errors.Is(err, errOwn) {
				t.Errorf("%s into %s:\n got %v\nwant %s", c.name, to, err, c.want)
			}
		}
	}
	x, u := newSite(t), newUser("")
	u.upto.Store(3)
	s := u.session(x, tidemill.Options{})
	err := x.run(s.WriteStream(s.ReadStreamFrom("counter", nil, nil)).Name("q").Checkpoint("ckpt").
		ForeachBatch(func(context.Context, int64, columnar.Reader) error { return errOwn }))
	if err == nil || !strings.HasPrefix(err.Error(), "query q, batch 0: sink foreachBatch: the dog") {
		t.Errorf("a sink's own error is %v", err)
	}
}

// brokenSource has units that cannot be read.
type brokenSource struct {
	*counter
	err error
}

func (s *brokenSource) Units(ctx context.Context, start, end connector.Offset, req connector.ScanRequest) ([]connector.Unit, error) {
	units, err := s.counter.Units(ctx, start, end, req)
	for i, u := range units {
		units[i] = &brokenUnit{u, s.err}
	}
	return units, err
}

type brokenUnit struct {
	connector.Unit
	err error
}

func (u *brokenUnit) Open(context.Context) (columnar.Reader, error) { return nil, u.err }

// TestNestedResults has a function return what it was given, of every type, nested ones as
// the maps and lists they come as; and what Go code makes itself.
func TestNestedResults(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		typ  string // of argument and result
		text string // a value
		f    func(v any) any
		want string
	}{
		{"STRUCT(a BIGINT, b VARCHAR)", "{'a': 1, 'b': 'x'}", nil, ""},
		{"STRUCT(a STRUCT(b BIGINT[]), c MAP(VARCHAR, STRUCT(d DATE)))", "{'a': {'b': [1, NULL]}, 'c': MAP {'k': {'d': DATE '2024-02-29'}, 'l': NULL}}", nil, ""},
		{"BIGINT[][]", "[[1, 2], [], NULL]", nil, ""},
		{"MAP(BIGINT, VARCHAR[])", "MAP {2: ['x'], 1: NULL}", nil, ""},
		{"DECIMAL(10,2)[]", "[1.50, -2.25]", nil, ""},
		{"TIME", "TIME '23:59:59.999999'", nil, ""},
		{"TIMESTAMP", "TIMESTAMP '1969-12-31 23:59:59.5'", nil, ""},
		{"INTERVAL", "INTERVAL '1 month 2 days 3 seconds'", nil, ""},
		{"BLOB", "'\\x00\\xFF'::BLOB", nil, ""},
		{"DOUBLE", "'NaN'::DOUBLE", nil, ""},
		{"TINYINT", "(-128)::TINYINT", nil, ""},
		{"VARCHAR[]", "['a']", func(any) any { return []string{"b", "c"} }, "[b c]"},
		{"MAP(VARCHAR, BIGINT)", "MAP {'a': 1}", func(any) any { return map[string]int{"z": 1, "b": 2} }, "[[b 2] [z 1]]"},
		{"MAP(BIGINT, BIGINT)", "MAP {1: 1}", func(any) any { return map[int]any{10: 1, 9: nil} }, "[[9 <nil>] [10 1]]"},
		{"STRUCT(a BIGINT, b VARCHAR)", "{'a': 1, 'b': 'x'}", func(any) any { return map[string]any{"b": "y"} }, "map[a:<nil> b:y]"},
		{"STRUCT(a BIGINT, b VARCHAR)", "{'a': 1, 'b': 'x'}", func(any) any { return map[string]any{"a": 1, "c": 2} },
			": STRUCT<a BIGINT, b VARCHAR> has no field c; its fields are a, b"},
		{"STRUCT(a BIGINT, b VARCHAR)", "{'a': 1, 'b': 'x'}", func(any) any { return []any{1} }, ": [1] ([]interface {}) is not a STRUCT<a BIGINT, b VARCHAR>"},
		{"BIGINT[]", "[1]", func(any) any { return []byte("x") }, ": [120] ([]uint8) is not an ARRAY<BIGINT>"},
		{"MAP(VARCHAR, BIGINT)", "MAP {'a': 1}", func(any) any { return map[any]any{nil: 1} }, ": a key of a MAP<VARCHAR, BIGINT> is null"},
	} {
		s, err := tidemill.NewSession(tidemill.Options{})
		if err != nil {
			t.Fatal(err)
		}
		given, err := s.SQL(t.Context(), fmt.Sprintf("SELECT CAST(%s AS %s) AS x", c.text, c.typ))
		if err != nil {
			t.Fatal(err)
		}
		dt := given.Schema().Columns[0].DataType
		f := tidemill.ScalarFunc("f", []arrow.DataType{dt}, dt, func(args []any) (any, error) {
			if c.f == nil {
				return args[0], nil
			}
			return c.f(args[0]), nil
		})
		if err := s.RegisterFunction(f); err != nil {
			t.Fatal(err)
		}
		rows, err := s.Collect(t.Context(), given.Select(tidemill.Col("x"), tidemill.Func("f", tidemill.Col("x"))))
		if err != nil {
			if c.want == "" || !strings.HasSuffix(err.Error(), c.want) {
				t.Errorf("%s: got %v, want %s", c.typ, err, c.want)
			}
			continue
		}
		want := c.want
		if c.f == nil {
			want = fmt.Sprint(rows.Value(0, 0))
		}
		if got := fmt.Sprint(rows.Value(0, 1)); got != want {
			t.Errorf("%s: got %s, want %s", c.typ, got, want)
		}
		rows.Release()
	}
}

// TestConstantsAtStart has Start find what every batch would fail by.
func TestConstantsAtStart(t *testing.T) {
	t.Parallel()
	text := tidemill.Lit("five").Cast(columnar.Int64)
	n := tidemill.Col("n")
	for name, c := range map[string]struct {
		term tidemill.Term
		want string
	}{
		"a cast":      {n.Add(text), `CAST('five' AS BIGINT): cannot cast "five" to BIGINT`},
		"a pattern":   {tidemill.Func("regexp_matches", n.Cast(columnar.String), tidemill.Lit("(")), "regexp_matches(CAST(n AS VARCHAR), '('): regular expression \"(\": missing closing ): `(`"},
		"a zone":      {tidemill.Func("from_utc_timestamp", tidemill.Lit(time.Time{}), tidemill.Lit("Nowhere")), `from_utc_timestamp(TIMESTAMP '0001-01-01 00:00:00', 'Nowhere'): time zone "Nowhere" is unknown; name one like Europe/Berlin, UTC or +02:00`},
		"a branch":    {tidemill.When(n.Gt(tidemill.Lit(5)), text).Otherwise(n), ""},
		"what may be": {tidemill.Lit("five").TryCast(columnar.Int64), ""},
		"an argument": {tidemill.Func("coalesce", n, text), ""},
	} {
		s := zeroSession(t)
		q, err := s.WriteStream(zeroStream(s).Select(c.term.As("x"))).To("out", nil).Trigger(tidemill.Once()).Start(t.Context())
		if err == nil {
			err = q.Wait(t.Context())
		}
		got := ""
		if err != nil {
			got = err.Error()
		}
		if got != c.want {
			t.Errorf("%s: got %s, want %s", name, got, c.want)
		}
		if err != nil && tidemill.KindOf(err) != tidemill.UsageError {
			t.Errorf("%s: of kind %d", name, tidemill.KindOf(err))
		}
	}
}
