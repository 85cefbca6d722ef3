package expr_test

import (
	"errors"
	"fmt"
	"math"
	"strings"
	"testing"
	"time"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/decimal128"

	"github.com/tidemill/tidemill/columnar"
	"github.com/tidemill/tidemill/columnar/function"
	"github.com/tidemill/tidemill/logical/expr"
)

var (
	registry = function.Builtins()
	a        = &expr.Column{ID: expr.NewID(), Qualifier: "t", Name: "a", DataType: columnar.Int64, Null: true}
	n        = &expr.Column{ID: expr.NewID(), Name: "n", DataType: columnar.Int64}
	s        = &expr.Column{ID: expr.NewID(), Name: "s", DataType: columnar.String, Null: true}
	ok       = &expr.Column{ID: expr.NewID(), Name: "ok", DataType: columnar.Boolean, Null: true}
)

func lit(v any) *expr.Literal {
	l, err := expr.NewLiteral(v)
	if err != nil {
		panic(err)
	}
	return l
}

func call(name string, args ...expr.Expr) expr.Expr {
	e, err := expr.NewCall(registry, name, args...)
	if err != nil {
		panic(err)
	}
	return e
}

func agg(name string, distinct bool, filter expr.Expr, args ...expr.Expr) expr.Expr {
	e, err := expr.NewAgg(registry, name, distinct, filter, args...)
	if err != nil {
		panic(err)
	}
	return e
}

func logic(op expr.LogicOp, args ...expr.Expr) expr.Expr { return &expr.Logic{Op: op, Args: args} }

// samples are expressions of every kind, no two equal, with their text.
var samples = []struct {
	e    expr.Expr
	text string
}{
	{a, "t.a"},
	{n, "n"},
	{&expr.Ref{Index: 1, Name: "a", DataType: columnar.Int64}, "a"},
	{&expr.Ref{Index: 2, Name: "a", DataType: columnar.Int64}, "a"},
	{lit(nil), "NULL"},
	{lit(true), "TRUE"},
	{lit(false), "FALSE"},
	{lit(1), "1"},
	{lit(int32(1)), "1"},
	{lit(-7), "-7"},
	{lit(0.0), "0"},
	{lit(math.Copysign(0, -1)), "-0"},
	{lit(1.5), "1.5"},
	{lit(math.NaN()), "NaN"},
	{lit(float32(1.5)), "1.5"},
	{lit("it's"), "'it''s'"},
	{lit(""), "''"},
	{lit([]byte{0, 255}), "X'00FF'"},
	{lit(time.Date(2024, 1, 2, 3, 4, 5, 600000000, time.UTC)), "TIMESTAMP '2024-01-02 03:04:05.6'"},
	{lit(90 * time.Second), "INTERVAL '00:01:30'"},
	{lit(arrow.MonthDayNanoInterval{Months: 14, Days: 3}), "INTERVAL '1 year 2 months 3 days'"},
	{lit(decimal128.FromI64(12)), "12"},
	{call("+", a, n), "t.a + n"},
	{call("+", n, a), "n + t.a"},
	{call("*", call("+", a, n), lit(2)), "(t.a + n) * 2"},
	{call("-", a), "-t.a"},
	{call("-", call("+", a, n)), "-(t.a + n)"},
	{call("upper", s), "upper(s)"},
	{call("is_null", call("=", a, n)), "(t.a = n) IS NULL"},
	{call("is_not_null", s), "s IS NOT NULL"},
	{call("not", ok), "NOT ok"},
	{call("not", call("is_null", s)), "NOT (s IS NULL)"},
	{call("is_distinct_from", a, n), "t.a IS DISTINCT FROM n"},
	{call("like", s, lit("a%")), "s LIKE 'a%'"},
	{&expr.Cast{Input: a, To: columnar.Float64}, "CAST(t.a AS DOUBLE)"},
	{&expr.Cast{Input: a, To: columnar.Float64, Try: true}, "TRY_CAST(t.a AS DOUBLE)"},
	{&expr.Cast{Input: a, To: columnar.Decimal(10, 2)}, "CAST(t.a AS DECIMAL(10,2))"},
	{logic(expr.And, ok, call("=", a, n)), "ok AND (t.a = n)"},
	{logic(expr.Or, ok, logic(expr.And, ok, ok)), "ok OR (ok AND ok)"},
	{logic(expr.And, ok, ok, ok), "ok AND ok AND ok"},
	{&expr.Case{Whens: []expr.Expr{ok}, Thens: []expr.Expr{a}}, "CASE WHEN ok THEN t.a END"},
	{&expr.Case{Whens: []expr.Expr{ok}, Thens: []expr.Expr{a}, Else: n}, "CASE WHEN ok THEN t.a ELSE n END"},
	{&expr.Case{Whens: []expr.Expr{ok, call("=", a, n)}, Thens: []expr.Expr{a, n}}, "CASE WHEN ok THEN t.a WHEN t.a = n THEN n END"},
	{&expr.In{Value: a, List: []expr.Expr{n, lit(1)}}, "t.a IN (n, 1)"},
	{&expr.In{Value: call("+", a, n), List: []expr.Expr{lit(1)}}, "(t.a + n) IN (1)"},
	{agg("count", false, nil), "count(*)"},
	{agg("count", false, nil, s), "count(s)"},
	{agg("count", true, nil, s), "count(DISTINCT s)"},
	{agg("sum", false, ok, a), "sum(t.a) FILTER (WHERE ok)"},
	{agg("sum", false, nil, a), "sum(t.a)"},
	{&expr.Name{Qualifier: "x", Name: "y"}, "x.y"},
	{&expr.Name{Name: "y"}, "y"},
	{expr.Func("f", expr.Col("x")).Expr, "f(x)"},
	{expr.Func("f", expr.Col("x")).Distinct().Expr, "f(DISTINCT x)"},
	{expr.Func("f", expr.Col("x")).Filter(expr.Col("y")).Expr, "f(x) FILTER (WHERE y)"},
	{expr.Col("x").Cast(columnar.Int64).Expr, "cast(x)"},
	{expr.Col("x").Cast(columnar.Int32).Expr, "cast(x)"},
	{expr.Window(expr.Col("x"), time.Hour).Expr, "window(x)"},
	{expr.Window(expr.Col("x"), time.Hour, time.Minute).Expr, "window(x)"},
	{expr.SessionWindow(expr.Col("x"), expr.Lit("1 hour")).Expr, "session_window(x)"},
	{expr.SessionWindow(expr.Col("x"), expr.Col("y")).Expr, "session_window(x)"},
}

func TestPrint(t *testing.T) {
	t.Parallel()
	for _, x := range samples {
		if got := x.e.String(); got != x.text {
			t.Errorf("%T is printed as %s, not %s", x.e, got, x.text)
		}
	}
	for _, x := range []struct {
		n    expr.Named
		want string
	}{
		{expr.As(call("+", a, n), "sum"), "t.a + n AS sum"},
		{expr.As(a, "b"), "t.a AS b"},
		{expr.Pass(a), "t.a"},
		{expr.As(call("upper", s), "upper(s)"), "upper(s)"},
	} {
		if got := x.n.String(); got != x.want {
			t.Errorf("printed as %s, not %s", got, x.want)
		}
	}
}

// TestEqual: every sample equals a copy of itself and nothing else.
func TestEqual(t *testing.T) {
	t.Parallel()
	for i, x := range samples {
		for k, y := range samples {
			if got := expr.Equal(x.e, rebuilt(y.e)); got != (i == k) {
				t.Errorf("Equal(%s, %s) = %v", x.e, y.e, got)
			}
		}
	}
}

// rebuilt copies every node that has children.
func rebuilt(e expr.Expr) expr.Expr {
	children := e.Children()
	if len(children) == 0 {
		return e
	}
	fresh := make([]expr.Expr, len(children))
	for i, c := range children {
		fresh[i] = rebuilt(c)
	}
	return e.WithChildren(fresh)
}

func TestTransform(t *testing.T) {
	t.Parallel()
	for _, x := range samples {
		same, err := expr.Transform(x.e, func(e expr.Expr) (expr.Expr, error) { return e, nil })
		if err != nil || same != x.e {
			t.Errorf("%s: an identity gives another pointer, or %v", x.e, err)
		}
		before := x.e.String()
		changed, err := expr.Transform(x.e, func(e expr.Expr) (expr.Expr, error) {
			if c, isColumn := e.(*expr.Column); isColumn && c.ID == a.ID {
				return n, nil
			}
			return e, nil
		})
		if want := strings.ReplaceAll(before, "t.a", "n"); err != nil || changed.String() != want {
			t.Errorf("%s became %s (%v), not %s", before, changed, err, want)
		}
		if x.e.String() != before {
			t.Errorf("%s was changed in place", before)
		}
	}
	stop := errors.New("stop")
	if _, err := expr.Transform(call("+", a, n), func(e expr.Expr) (expr.Expr, error) { return nil, stop }); !errors.Is(err, stop) {
		t.Errorf("the error became %v", err)
	}
}

func TestConjuncts(t *testing.T) {
	t.Parallel()
	p, q, r := call("=", a, n), call("is_null", s), expr.Expr(ok)
	for _, x := range []struct {
		e    expr.Expr
		want []expr.Expr
	}{
		{nil, nil},
		{p, []expr.Expr{p}},
		{logic(expr.And, p, q, r), []expr.Expr{p, q, r}},
		{logic(expr.And, logic(expr.And, p, q), r), []expr.Expr{p, q, r}},
		{logic(expr.Or, p, q), []expr.Expr{logic(expr.Or, p, q)}},
		{logic(expr.And, p, logic(expr.Or, q, r)), []expr.Expr{p, logic(expr.Or, q, r)}},
	} {
		got := expr.Conjuncts(x.e)
		if expr.List(got) != expr.List(x.want) {
			t.Errorf("%v has the conjuncts %s, not %s", x.e, expr.List(got), expr.List(x.want))
		}
		if again := expr.All(got); (again == nil) != (x.e == nil) || again != nil && expr.List(expr.Conjuncts(again)) != expr.List(x.want) {
			t.Errorf("All(Conjuncts(%v)) = %v", x.e, again)
		}
	}
}

func TestColumns(t *testing.T) {
	t.Parallel()
	e := logic(expr.And, call("=", n, a), call("=", a, lit(1)), &expr.In{Value: n, List: []expr.Expr{lit(2)}})
	if got := expr.Columns(e); len(got) != 2 || got[0] != n.ID || got[1] != a.ID {
		t.Errorf("columns %v", got)
	}
	if !expr.HasAggregate(call("+", agg("sum", false, nil, a), lit(1))) || expr.HasAggregate(e) {
		t.Error("HasAggregate is wrong")
	}
	if expr.IsResolved(expr.Col("x").Eq(expr.Lit(1)).Expr) || !expr.IsResolved(e) {
		t.Error("IsResolved is wrong")
	}
}

func TestNullable(t *testing.T) {
	t.Parallel()
	for _, x := range []struct {
		e    expr.Expr
		want bool
	}{
		{a, true}, {n, false}, {lit(1), false}, {lit(nil), true},
		{call("+", n, lit(1)), false}, {call("+", n, a), true},
		{call("=", n, n), false}, {call("is_null", a), false}, {call("is_distinct_from", a, n), false},
		{call("coalesce", a, n), false}, {call("coalesce", a, a), true},
		{call("nullif", n, n), true}, {call("try_divide", n, n), true},
		{&expr.Cast{Input: n, To: columnar.String}, false}, {&expr.Cast{Input: n, To: columnar.String, Try: true}, true},
		{logic(expr.And, ok, ok), true},
		{&expr.Case{Whens: []expr.Expr{ok}, Thens: []expr.Expr{n}}, true},
		{&expr.Case{Whens: []expr.Expr{ok}, Thens: []expr.Expr{n}, Else: n}, false},
		{&expr.In{Value: n, List: []expr.Expr{n, lit(1)}}, false}, {&expr.In{Value: n, List: []expr.Expr{a}}, true},
		{agg("count", false, nil), false}, {agg("sum", false, nil, n), true},
	} {
		if got := x.e.Nullable(); got != x.want {
			t.Errorf("Nullable of %s is %v", x.e, got)
		}
	}
}

func TestBindRefs(t *testing.T) {
	t.Parallel()
	position := func(id expr.ID) int {
		if id == a.ID {
			return 3
		}
		return -1
	}
	e, err := expr.BindRefs(call("+", a, lit(1)), position)
	if err != nil {
		t.Fatal(err)
	}
	if r := e.(*expr.Call).Args[0].(*expr.Ref); r.Index != 3 || r.Name != "a" || !r.Null {
		t.Errorf("bound to %+v", r)
	}
	if _, err := expr.BindRefs(n, position); err == nil || !strings.HasPrefix(err.Error(), "bug: ") {
		t.Errorf("an unknown column: %v", err)
	}
}

func TestConstructors(t *testing.T) {
	t.Parallel()
	typed := func(e expr.Expr, err error) string {
		if err != nil {
			return "error: " + err.Error()
		}
		return fmt.Sprintf("%s: %s", e, columnar.TypeName(e.Type()))
	}
	small := &expr.Column{ID: expr.NewID(), Name: "small", DataType: columnar.Int32}
	ts := &expr.Column{ID: expr.NewID(), Name: "ts", DataType: columnar.Timestamp}
	for want, got := range map[string]string{
		"CAST(small AS BIGINT) + t.a: BIGINT":                          typed(expr.NewCall(registry, "+", small, a)),
		"small = CAST(NULL AS INTEGER): BOOLEAN":                       typed(expr.NewCall(registry, "=", small, lit(nil))),
		"small IN (1, 2): BOOLEAN":                                     typed(expr.NewIn(small, []expr.Expr{lit(int32(1)), lit(int32(2))})),
		"CAST(small AS BIGINT) IN (t.a): BOOLEAN":                      typed(expr.NewIn(small, []expr.Expr{a})),
		"CASE WHEN ok THEN CAST(small AS BIGINT) ELSE t.a END: BIGINT": typed(expr.NewCase([]expr.Expr{ok}, []expr.Expr{small}, a)),
		"CASE WHEN CAST(NULL AS BOOLEAN) THEN 's' END: VARCHAR":        typed(expr.NewCase([]expr.Expr{lit(nil)}, []expr.Expr{lit("s")}, nil)),
		"ok AND CAST(NULL AS BOOLEAN): BOOLEAN":                        typed(expr.NewLogic(expr.And, ok, lit(nil))),
		"small: INTEGER":                                               typed(expr.NewCast(small, columnar.Int32, false)),
		"TRY_CAST(s AS INTEGER): INTEGER":                              typed(expr.NewCast(s, columnar.Int32, true)),
		"error: AND needs a condition, but small is INTEGER":           typed(expr.NewLogic(expr.And, ok, small)),
		"error: WHEN needs a condition, but s is VARCHAR":              typed(expr.NewCase([]expr.Expr{s}, []expr.Expr{a}, nil)),
		"error: CASE mixes BIGINT and TIMESTAMP; cast one of them":     typed(expr.NewCase([]expr.Expr{ok}, []expr.Expr{a}, ts)),
		"error: IN mixes BIGINT and TIMESTAMP; cast one of them":       typed(expr.NewIn(a, []expr.Expr{ts})),
		"error: cannot cast ok from BOOLEAN to TIMESTAMP":              typed(expr.NewCast(ok, columnar.Timestamp, false)),
		"error: sum is an aggregate function and cannot stand here":    typed(expr.NewCall(registry, "sum", a)),
		"error: there is no function uper; did you mean upper?":        typed(expr.NewCall(registry, "uper", s)),
	} {
		if got != want {
			t.Errorf("got\n%s\nwant\n%s", got, want)
		}
	}
	if _, err := expr.NewAgg(registry, "upper", false, nil, s); err == nil {
		t.Error("upper is no aggregate")
	}
	if e := agg("max", true, nil, a).(*expr.Agg); e.Distinct {
		t.Error("DISTINCT changes nothing for max, and should be dropped")
	}
}

// TestResolve: resolving twice changes nothing, not even the pointer.
func TestResolve(t *testing.T) {
	t.Parallel()
	columns := map[string]*expr.Column{"a": a, "n": n, "s": s, "ok": ok}
	r := &expr.Resolver{Registry: registry, Aggregates: true, Lookup: func(_, name string) (*expr.Column, error) {
		if c := columns[name]; c != nil {
			return c, nil
		}
		return nil, fmt.Errorf("no column %s", name)
	}}
	c := expr.Col
	for want, term := range map[string]expr.Term{
		"t.a + n":                      c("a").Add(c("n")),
		"t.a - n":                      c("a").Sub(c("n")),
		"t.a * n":                      c("a").Mul(c("n")),
		"t.a // n":                     c("a").IntDiv(c("n")),
		"t.a % n":                      c("a").Mod(c("n")),
		"t.a <> n":                     c("a").Ne(c("n")),
		"t.a < n":                      c("a").Lt(c("n")),
		"(t.a >= 1) AND (t.a <= 2)":    c("a").Between(expr.Lit(1), expr.Lit(2)),
		"NOT (ok OR (s IS NULL))":      c("ok").Or(c("s").IsNull()).Not(),
		"CAST(t.a AS VARCHAR)":         c("a").Cast(columnar.String),
		"t.a IN (1, 2)":                c("a").In(expr.Lit(1), expr.Lit(2)),
		"sum(t.a) FILTER (WHERE ok)":   expr.Func("sum", c("a")).Filter(c("ok")),
		"count(DISTINCT s) + count(*)": expr.Func("count", c("s")).Distinct().Add(expr.Func("count")),
		"upper(s) LIKE 'A%'":           expr.Func("UPPER", c("s")).Like("A%"),
		"CASE WHEN ok THEN 1 WHEN t.a = 2 THEN 2 ELSE 3 END": expr.When(c("ok"), expr.Lit(1)).When(c("a").Eq(expr.Lit(2)), expr.Lit(2)).Otherwise(expr.Lit(3)),
	} {
		if term.Err() != nil {
			t.Errorf("%s: %v", want, term.Err())
			continue
		}
		e, err := r.Resolve(term.Expr)
		if err != nil || e.String() != want {
			t.Errorf("resolved to %v (%v), not %s", e, err, want)
			continue
		}
		if again, err := r.Resolve(e); err != nil || again != e {
			t.Errorf("%s: resolved again it is another", want)
		}
	}
	r.Aggregates = false
	for want, term := range map[string]expr.Term{
		"no column x": c("ok").And(c("x")),
		"aggregate function sum cannot stand here":                expr.Func("sum", c("a")).Add(expr.Lit(1)),
		"window cannot stand here; group by it":                   expr.Window(c("a"), time.Hour),
		"Distinct and Filter apply to an aggregate, not to upper": expr.Func("upper", c("s")).Distinct(),
		"cannot cast ok from BOOLEAN to TIMESTAMP":                c("ok").Cast(columnar.Timestamp),
	} {
		if _, err := r.Resolve(term.Expr); err == nil || err.Error() != want {
			t.Errorf("got the error %v, want %s", err, want)
		}
	}
}

// TestTerms: terms are values, and the first mistake wins.
// TestChainsAreFlat: a long chain of conditions is one node, so that no rule looks at a part of
// it over and over.
func TestChainsAreFlat(t *testing.T) {
	t.Parallel()
	r := &expr.Resolver{Registry: function.Builtins(), Lookup: func(_, name string) (*expr.Column, error) {
		return &expr.Column{ID: 1, Name: name, DataType: columnar.Boolean}, nil
	}}
	chain := expr.Col("a")
	for range 500 {
		chain = chain.And(expr.Col("a")).And(expr.Col("a").And(expr.Col("a").Or(expr.Col("a"))))
	}
	e, err := r.Resolve(chain.Expr)
	if err != nil {
		t.Fatal(err)
	}
	if l, ok := e.(*expr.Logic); !ok || l.Op != expr.And || len(l.Args) != 1501 {
		t.Errorf("a chain of 1501 conditions has become %T with %d", e, len(e.Children()))
	}
}

func TestTerms(t *testing.T) {
	t.Parallel()
	base := expr.Func("count", expr.Col("x"))
	base.Distinct()
	base.Filter(expr.Col("y"))
	if got := base.Expr.String(); got != "count(x)" {
		t.Errorf("a method changed its receiver to %s", got)
	}
	bad := expr.Lit(struct{}{})
	for i, term := range []expr.Term{
		bad.Eq(expr.Lit(1)), expr.Lit(1).Eq(bad), bad.Cast(columnar.Int64), bad.In(expr.Lit(1)), expr.Col("x").In(bad), bad.As("x"), bad.Desc(),
		expr.When(bad, expr.Lit(1)), expr.When(expr.Col("x"), expr.Lit(1)).When(bad, expr.Lit(1)), expr.When(expr.Col("x"), expr.Lit(1)).Otherwise(bad),
		base.Filter(bad), expr.Func("f", bad).Distinct(), bad.Distinct(), expr.SessionWindow(expr.Col("x"), bad), expr.Window(bad, time.Hour),
	} {
		if term.Err() == nil || !strings.HasPrefix(term.Err().Error(), "a struct {} cannot be a constant") {
			t.Errorf("term %d has the error %v", i, term.Err())
		}
	}
	if err := expr.Col("x").Distinct().Err(); err == nil || err.Error() != "Distinct applies to an aggregate, not to x" {
		t.Errorf("Distinct of a column: %v", err)
	}
	if term := expr.Col("x").As("y").Desc(); term.Name != "y" || !term.Descending || term.Asc().Descending {
		t.Errorf("As and Desc give %+v", term)
	}
}
