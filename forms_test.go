package tidemill_test

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/apache/arrow-go/v18/arrow"

	"github.com/tidemill/tidemill"
	"github.com/tidemill/tidemill/columnar"
	"github.com/tidemill/tidemill/logical"
)

// TestQueryForms says for each form of a query in SQL how it is said in Go: both give the
// same rows.
func TestQueryForms(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	Col, Lit := tidemill.Col, tidemill.Lit
	s, err := tidemill.NewSession(tidemill.Options{})
	if err != nil {
		t.Fatal(err)
	}
	for _, ddl := range []string{
		`CREATE VIEW t AS SELECT * FROM (VALUES (1, 'a', 10, TIMESTAMP '2024-01-01 00:00:00', [1, 2]), (2, 'b', 20, TIMESTAMP '2024-01-01 00:00:30', []), (3, 'a', NULL, TIMESTAMP '2024-01-01 00:01:10', [3]), (NULL, NULL, 5, NULL, NULL), (3, 'a', 7, TIMESTAMP '2024-01-01 00:05:00', [4, NULL])) AS v (k, s, n, ts, l)`,
		`CREATE VIEW u AS SELECT * FROM (VALUES (1, 'x'), (3, 'y'), (3, 'z'), (NULL, 'w'), (9, 'q')) AS v (k, w)`,
	} {
		if _, err := s.SQL(ctx, ddl); err != nil {
			t.Fatal(err)
		}
	}
	df, u := s.Table(ctx, "t"), s.Table(ctx, "u")
	on := Col("a.k").Eq(Col("b.k"))
	join := func(kind logical.JoinKind) *logical.DataFrame { return df.As("a").Join(u.As("b"), kind, on) }
	kw := func(d *logical.DataFrame) *logical.DataFrame { return d.Select(Col("a.k"), Col("n"), Col("w")) }
	minute := tidemill.Window(Col("ts"), time.Minute)
	byN := tidemill.PartitionBy(Col("s")).OrderBy(Col("n"))
	over := func(t tidemill.Term) *logical.DataFrame { return df.Select(Col("k"), t.Over(byN).As("x")) }
	small := df.Where(Col("n").Lt(Lit(15)))
	for _, form := range []struct {
		sql string
		df  *logical.DataFrame
	}{
		{"SELECT k + 1 AS x, s FROM t", df.Select(Col("k").Add(Lit(int32(1))).As("x"), Col("s"))},
		{"SELECT * EXCLUDE (l, ts) FROM t WHERE n > 5", df.Drop("l", "ts").Where(Col("n").Gt(Lit(5)))},
		{"SELECT * RENAME (n AS m) FROM t", df.Rename("N", "m")},
		{"SELECT * REPLACE (n * 2 AS n) FROM t", df.WithColumn("n", Col("n").Mul(Lit(int32(2))))},
		{"SELECT a.k, n, w FROM t AS a JOIN u AS b ON a.k = b.k", kw(join(logical.InnerJoin))},
		{"SELECT a.k, n, w FROM t AS a LEFT JOIN u AS b ON a.k = b.k", kw(join(logical.LeftJoin))},
		{"SELECT a.k, n, w FROM t AS a RIGHT JOIN u AS b ON a.k = b.k", kw(join(logical.RightJoin))},
		{"SELECT a.k, n, w FROM t AS a FULL JOIN u AS b ON a.k = b.k", kw(join(logical.FullJoin))},
		{"SELECT k, n FROM t AS a SEMI JOIN u AS b ON a.k = b.k", join(logical.SemiJoin).Select(Col("k"), Col("n"))},
		{"SELECT k, n FROM t AS a ANTI JOIN u AS b ON a.k = b.k", join(logical.AntiJoin).Select(Col("k"), Col("n"))},
		{"SELECT n, w FROM t CROSS JOIN u", df.CrossJoin(u).Select(Col("n"), Col("w"))},
		{"SELECT n, w FROM t AS a JOIN u AS b ON a.k < b.k", df.As("a").Join(u.As("b"), logical.InnerJoin, Col("a.k").Lt(Col("b.k"))).Select(Col("n"), Col("w"))},
		{"SELECT * FROM t FULL JOIN u USING (k)", df.JoinUsing(u, logical.FullJoin, "k")},
		{"SELECT n, w FROM t AS a ASOF JOIN u AS b ON a.n >= b.k", df.As("a").AsofJoin(u.As("b"), logical.InnerJoin, Col("a.n").Ge(Col("b.k"))).Select(Col("n"), Col("w"))},
		// A scalar subquery is a cross join of one row, IN and EXISTS are semi joins.
		{"SELECT k, n - (SELECT avg(n) FROM t) AS x FROM t", df.Select(Col("k"), Col("n")).CrossJoin(df.Agg(tidemill.Avg(Col("n")).As("mean"))).Select(Col("k"), Col("n").Sub(Col("mean")).As("x"))},
		{"SELECT k, n FROM t WHERE k IN (SELECT k FROM u)", df.JoinUsing(u, logical.SemiJoin, "k").Select(Col("k"), Col("n"))},
		{"SELECT k, n FROM t WHERE NOT EXISTS (SELECT 1 FROM u WHERE u.k = t.k)", df.JoinUsing(u, logical.AntiJoin, "k").Select(Col("k"), Col("n"))},
		{"SELECT k FROM t UNION ALL SELECT k FROM u", df.Select(Col("k")).Union(u.Select(Col("k")))},
		{"SELECT k FROM t UNION SELECT k FROM u", df.Select(Col("k")).Union(u.Select(Col("k"))).Distinct()},
		{"SELECT k FROM t INTERSECT SELECT k FROM u", df.Select(Col("k")).Intersect(u.Select(Col("k")))},
		{"SELECT k FROM t INTERSECT ALL SELECT k FROM u", df.Select(Col("k")).IntersectAll(u.Select(Col("k")))},
		{"SELECT k FROM t EXCEPT SELECT k FROM u", df.Select(Col("k")).Except(u.Select(Col("k")))},
		{"SELECT k FROM t EXCEPT ALL SELECT k FROM u", df.Select(Col("k")).ExceptAll(u.Select(Col("k")))},
		{"SELECT s, sum(n) FILTER (WHERE k > 1) AS x, count(DISTINCT k) AS d FROM t GROUP BY s HAVING count(*) > 1",
			df.GroupBy(Col("s")).Agg(tidemill.Sum(Col("n")).Filter(Col("k").Gt(Lit(1))).As("x"), tidemill.Count(Col("k")).Distinct().As("d"), tidemill.Count().As("c")).Where(Col("c").Gt(Lit(1))).Drop("c")},
		{"SELECT s, k, sum(n) AS x FROM t GROUP BY GROUPING SETS ((s, k), (k), ())",
			df.GroupingSets([]tidemill.Term{Col("s"), Col("k")}, []tidemill.Term{Col("k")}, nil).Agg(tidemill.Sum(Col("n")).As("x"))},
		{"SELECT s, k, sum(n) AS x, grouping(s, k) AS g FROM t GROUP BY ROLLUP (s, k)",
			df.Rollup(Col("s"), Col("k")).Agg(tidemill.Sum(Col("n")).As("x"), tidemill.Func("grouping", Col("s"), Col("k")).As("g"))},
		{"SELECT s, k, max(k) AS x, coalesce(s, 'all') AS g FROM t GROUP BY CUBE (s, k)",
			df.Cube(Col("s"), Col("k")).Agg(tidemill.Max(Col("k")).As("x"), tidemill.Func("coalesce", Col("s"), Lit("all")).As("g"))},
		{"SELECT window, s, count(*) AS c FROM t GROUP BY ROLLUP (window(ts, '1 minute'), s)", df.Rollup(minute, Col("s")).Agg(tidemill.Count().As("c"))},
		{"SELECT session_window.start AS x, count(*) AS c FROM t GROUP BY session_window(ts, '2 minutes')",
			df.GroupBy(tidemill.SessionWindow(Col("ts"), Lit("2 minutes"))).Agg(tidemill.Count().As("c")).Select(Col("session_window.start").As("x"), Col("c"))},
		{"SELECT k, window_start, window_end FROM HOP(t, ts, INTERVAL '30 seconds', INTERVAL '1 minute')",
			df.WithWindow(tidemill.Window(Col("ts"), time.Minute, 30*time.Second)).Select(Col("k"), Col("window_start"), Col("window_end"))},
		{"SELECT k, window_start FROM SESSION(t, ts, INTERVAL '1 minute', s)",
			df.WithWindow(tidemill.SessionWindow(Col("ts"), Lit(time.Minute)), Col("s")).Select(Col("k"), Col("window_start"))},
		{"SELECT k, row_number() OVER (PARTITION BY s ORDER BY n) AS x FROM t", over(tidemill.Func("row_number"))},
		{"SELECT k, ntile(2) OVER (PARTITION BY s ORDER BY n) AS x FROM t", over(tidemill.Func("ntile", Lit(2)))},
		{"SELECT k, lag(n, 1, -1) OVER (PARTITION BY s ORDER BY n) AS x FROM t", over(tidemill.Func("lag", Col("n"), Lit(1), Lit(int32(-1))))},
		{"SELECT k, last_value(n IGNORE NULLS) OVER (PARTITION BY s ORDER BY n) AS x FROM t", over(tidemill.Func("last_value", Col("n")).IgnoreNulls())},
		{"SELECT k, sum(n) FILTER (WHERE k > 1) OVER (PARTITION BY s ORDER BY n) AS x FROM t", over(tidemill.Sum(Col("n")).Filter(Col("k").Gt(Lit(1))))},
		{"SELECT k, sum(n) OVER (ORDER BY n DESC NULLS LAST ROWS BETWEEN 1 PRECEDING AND 1 FOLLOWING) AS x, count(*) OVER () AS c FROM t",
			df.Select(Col("k"), tidemill.Sum(Col("n")).Over(tidemill.PartitionBy().OrderBy(Col("n").Desc().NullsLast()).Rows(tidemill.Preceding(1), tidemill.Following(1))).As("x"), tidemill.Count().Over(tidemill.PartitionBy()).As("c"))},
		{"SELECT k, count(*) OVER (ORDER BY ts RANGE BETWEEN INTERVAL '1 minute' PRECEDING AND CURRENT ROW) AS x FROM t",
			df.Select(Col("k"), tidemill.Count().Over(tidemill.PartitionBy().OrderBy(Col("ts")).Range(tidemill.Preceding(time.Minute), tidemill.CurrentRow())).As("x"))},
		{"SELECT k, min(n) OVER (ORDER BY k GROUPS BETWEEN UNBOUNDED PRECEDING AND 1 FOLLOWING) AS x FROM t",
			df.Select(Col("k"), tidemill.Min(Col("n")).Over(tidemill.PartitionBy().OrderBy(Col("k")).Groups(tidemill.UnboundedPreceding(), tidemill.Following(1))).As("x"))},
		{"SELECT s, n FROM t QUALIFY rank() OVER (PARTITION BY s ORDER BY n DESC) = 1",
			df.WithColumn("r", tidemill.Func("rank").Over(tidemill.PartitionBy(Col("s")).OrderBy(Col("n").Desc()))).Where(Col("r").Eq(Lit(1))).Select(Col("s"), Col("n"))},
		{"SELECT s, sum(n) AS x, sum(sum(n)) OVER (ORDER BY s) AS y FROM t GROUP BY s",
			df.GroupBy(Col("s")).Agg(tidemill.Sum(Col("n")).As("x")).WithColumn("y", tidemill.Sum(Col("x")).Over(tidemill.PartitionBy().OrderBy(Col("s"))))},
		{"SELECT DISTINCT s FROM t", df.Select(Col("s")).Distinct()},
		{"SELECT DISTINCT ON (s) s, n FROM t ORDER BY s, n DESC", df.OrderBy(Col("s"), Col("n").Desc()).DropDuplicates("s").Select(Col("s"), Col("n"))},
		{"SELECT k, n FROM t ORDER BY n NULLS LAST, k DESC NULLS FIRST LIMIT 3 OFFSET 1", df.Select(Col("k"), Col("n")).OrderBy(Col("n").NullsLast(), Col("k").Desc().NullsFirst()).Offset(1).Limit(3)},
		{"SELECT string_agg(s, ',' ORDER BY n DESC) AS x FROM t", df.OrderBy(Col("n").Desc()).Agg(tidemill.Func("string_agg", Col("s"), Lit(",")).As("x"))},
		{"SELECT * FROM (VALUES (1, DATE '2024-02-29', [1]), (NULL, NULL, NULL)) AS v (a, b, c)",
			s.Values(arrow.NewSchema([]arrow.Field{{Name: "a", Type: columnar.Int32}, {Name: "b", Type: columnar.Date}, {Name: "c", Type: arrow.ListOf(columnar.Int32)}}, nil),
				[]any{1, "2024-02-29", tidemill.Func("array", Lit(int32(1)))}, []any{nil, nil, nil})},
		{"SELECT * FROM range(5, -5, -4)", s.Range(5, -5, -4)},
		{"SELECT k, x FROM t CROSS JOIN UNNEST(l) AS u (x)", df.Explode(Col("l"), "x").Select(Col("k"), Col("x"))},
		{"SELECT k, x FROM t LEFT JOIN UNNEST(l) AS u (x) ON true", df.ExplodeOuter(Col("l"), "x").Select(Col("k"), Col("x"))},
		{"SELECT k, p, x FROM t LATERAL VIEW posexplode(l) AS p, x", df.PosExplode(Col("l"), "p", "x").Select(Col("k"), Col("p"), Col("x"))},
		{"SELECT key, value FROM t CROSS JOIN UNNEST(map(s, n)) WHERE s IS NOT NULL", df.Where(Col("s").IsNotNull()).Explode(tidemill.Func("map", Col("s"), Col("n"))).Select(Col("key"), Col("value"))},
		{"SELECT count(*) AS c FROM t TABLESAMPLE (100 PERCENT)", df.Sample(1).Agg(tidemill.Count().As("c"))},
		{"WITH small AS (SELECT * FROM t WHERE n < 15) SELECT a.k FROM small AS a JOIN small AS b ON a.k = b.k", small.As("a").JoinUsing(small.As("b"), logical.InnerJoin, "k").Select(Col("k"))},
		{"SELECT TRY_CAST(s AS INT) AS x, k IS NOT DISTINCT FROM NULL AS y, CASE WHEN n > 5 THEN 1 ELSE 0 END AS z FROM t",
			df.Select(Col("s").TryCast(columnar.Int32).As("x"), Col("k").EqNull(Lit(nil)).As("y"), tidemill.When(Col("n").Gt(Lit(5)), Lit(int32(1))).Otherwise(Lit(int32(0))).As("z"))},
	} {
		t.Run(form.sql, func(t *testing.T) {
			want, err := s.SQL(ctx, form.sql)
			if err != nil {
				t.Fatal(err)
			}
			if a, b := sortedRows(t, s, form.df), sortedRows(t, s, want); a != b {
				t.Errorf("in Go:\n%s\nin SQL:\n%s", a, b)
			}
		})
	}
	t.Run("a correlated subquery over a DataFrame", func(t *testing.T) {
		if err := s.CreateView("small", small); err != nil {
			t.Fatal(err)
		}
		text := "SELECT u.k, l.n FROM u, LATERAL (SELECT max(n) AS n FROM %s AS small WHERE small.k <= u.k) AS l WHERE EXISTS (SELECT 1 FROM %s AS o WHERE o.k = u.k)"
		got := sortedSQL(t, s, strings.ReplaceAll(text, "%s", "small"))
		if want := sortedSQL(t, s, strings.ReplaceAll(text, "%s", "(SELECT * FROM t WHERE n < 15)")); got != want {
			t.Errorf("%s\nwanted\n%s", got, want)
		}
	})
}

func sortedSQL(t *testing.T, s *tidemill.Session, text string) string {
	t.Helper()
	df, err := s.SQL(context.Background(), text)
	if err != nil {
		t.Fatal(err)
	}
	return sortedRows(t, s, df)
}

// sortedRows is the columns and rows of a DataFrame as text, the rows sorted.
func sortedRows(t *testing.T, s *tidemill.Session, df *logical.DataFrame) string {
	t.Helper()
	rows, err := s.Collect(context.Background(), df)
	if err != nil {
		t.Fatal(err)
	}
	defer rows.Release()
	var lines []string
	for _, row := range rows.All() {
		lines = append(lines, fmt.Sprint(row))
	}
	slices.Sort(lines)
	return columnar.SchemaString(rows.Schema()) + "\n" + strings.Join(lines, "\n")
}

// TestShareAggregations: an aggregation that stands in a query twice is run once, unless
// disabled_rules names that.
func TestShareAggregations(t *testing.T) {
	t.Parallel()
	const query = "WITH c AS (SELECT id % 2 AS k, count(*) AS n FROM range(10) GROUP BY id % 2) SELECT * FROM c AS a JOIN c AS b USING (k)"
	for disabled, places := range map[string]int{"": 2, "share_aggregations": 0} {
		settings := map[string]string{}
		if disabled != "" {
			settings["disabled_rules"] = disabled
		}
		s, err := tidemill.NewSession(tidemill.Options{Settings: settings})
		if err != nil {
			t.Fatal(err)
		}
		plan, err := s.ExplainSQL(context.Background(), "", query, false)
		if err != nil {
			t.Fatal(err)
		}
		if n := strings.Count(plan, "Shared "); n != places {
			t.Errorf("disabled_rules = %q: shared in %d places, not %d:\n%s", disabled, n, places, plan)
		}
		if got, want := sortedSQL(t, s, query), "k BIGINT, n BIGINT, n BIGINT\n[0 5 5]\n[1 5 5]"; got != want {
			t.Errorf("disabled_rules = %q:\n%s", disabled, got)
		}
	}
}
