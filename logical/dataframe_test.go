package logical_test

import (
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/apache/arrow-go/v18/arrow"

	"github.com/tidemill/tidemill/columnar"
	"github.com/tidemill/tidemill/logical"
	"github.com/tidemill/tidemill/logical/connector"
	"github.com/tidemill/tidemill/logical/expr"
)

var (
	col  = expr.Col
	lit  = expr.Lit
	call = expr.Func
)

func exprColumns(e expr.Expr) []expr.ID { return expr.Columns(e) }

func frame(name string) *logical.DataFrame {
	return logical.ReadTable(name, table{tableSchemas[name]}, registry)
}

func streamFrame(name string) *logical.DataFrame {
	stream := &logical.Stream{Name: name, Decl: &logical.SourceDecl{Name: name}, Schema: tableSchemas["t"]}
	return logical.NewDataFrame(logical.NewStreamScan(name, stream), registry)
}

// TestDataFrame compares what verbs build, as text.
func TestDataFrame(t *testing.T) {
	t.Parallel()
	df, u := frame("t"), frame("u")
	hour := time.Hour
	byC := expr.PartitionBy(col("c")).OrderBy(col("b").Desc().NullsFirst())
	here := expr.NewFrameEnd(expr.CurrentRow, expr.Term{})
	for name, test := range map[string]struct {
		df   *logical.DataFrame
		want string
	}{
		"select": {df.Select(col("a"), col("b").Add(lit(1)).As("next"), col("t.c"), col("B").Mul(col("b"))), `
			Project t.a, t.b + 1 AS next, t.c, t.b * t.b
			  Scan t columns=[a, b, c, ts, ok]`},
		"select a column twice": {df.Select(col("a"), col("a")).Select(col("a").As("x")), "error: select: column a is ambiguous; it could be t.a or t.a"},
		"where": {df.Where(col("ok").And(col("a").Gt(lit(1)).Or(col("c").IsNull()))).Where(lit(nil)), `
			Filter CAST(NULL AS BOOLEAN)
			  Filter t.ok AND ((CAST(t.a AS BIGINT) > 1) OR (t.c IS NULL))
			    Scan t columns=[a, b, c, ts, ok]`},
		"withColumn adds, replaces exactly, replaces by case": {df.WithColumn("n", lit(1)).WithColumn("n", lit("x")).WithColumn("C", col("a")), `
			Project t.a, t.b, t.a AS C, t.ts, t.ok, n
			  Project t.a, t.b, t.c, t.ts, t.ok, 'x' AS n
			    Project t.a, t.b, t.c, t.ts, t.ok, 1 AS n
			      Scan t columns=[a, b, c, ts, ok]`},
		"withColumn takes the exact one of two": {frame("cased").WithColumn("ID", lit(1)), `
			Project cased.id, 1 AS ID, cased.Name
			  Scan cased columns=[id, ID, Name]`},
		"drop": {df.Drop("A", "ok"), `
			Project t.b, t.c, t.ts
			  Scan t columns=[a, b, c, ts, ok]`},
		"distinct and dropDuplicates": {df.Distinct().DropDuplicates("a").DropDuplicates(), `
			Distinct
			  Distinct on=[t.a]
			    Distinct
			      Scan t columns=[a, b, c, ts, ok]`},
		"dropDuplicatesWithinWatermark": {streamFrame("s").WithWatermark("ts", hour).DropDuplicatesWithinWatermark("a").DropDuplicatesWithinWatermark(), `
			Distinct on=[s.a, s.b, s.c, s.ts, s.ok] within watermark
			  Distinct on=[s.a] within watermark
			    Watermark ts delay=1h0m0s
			      StreamScan s columns=[a, b, c, ts, ok]`},
		"orderBy and limits": {df.OrderBy(col("a").Desc(), col("b"), col("c").Desc().Asc()).Limit(3).Offset(1), `
			Limit offset=1
			  Limit 3
			    Sort [t.a DESC, t.b, t.c]
			      Scan t columns=[a, b, c, ts, ok]`},
		"union widens": {df.Select(col("a"), col("c")).Union(u.Select(col("a"), col("x"))), `
			Union
			  Project CAST(t.a AS BIGINT) AS a, t.c
			    Project t.a, t.c
			      Scan t columns=[a, b, c, ts, ok]
			  Project u.a, u.x
			    Scan u columns=[a, x, day]`},
		"union with itself": {df.Union(df).Where(col("a").Gt(lit(0))), `
			Filter CAST(a AS BIGINT) > 0
			  Union
			    Scan t columns=[a, b, c, ts, ok]
			    Scan t columns=[a, b, c, ts, ok]`},
		"self-join by alias": {df.As("l").Join(df.As("r"), logical.LeftJoin, col("l.a").Eq(col("r.b"))).Select(col("l.a"), col("r.b").As("x")), `
			Project l.a, r.b AS x
			  Join left on=CAST(l.a AS BIGINT) = r.b
			    Alias l
			      Scan t columns=[a, b, c, ts, ok]
			    Alias r
			      Scan t columns=[a, b, c, ts, ok]`},
		"cross join": {df.CrossJoin(u), `
			Join cross
			  Scan t columns=[a, b, c, ts, ok]
			  Scan u columns=[a, x, day]`},
		"a cross join with a condition is an inner one": {df.Join(u, logical.CrossJoin, col("c").Eq(col("x"))), `
			Join inner on=t.c = u.x
			  Scan t columns=[a, b, c, ts, ok]
			  Scan u columns=[a, x, day]`},
		"using, inner": {df.JoinUsing(u, logical.InnerJoin, "a"), `
			Project t.a, t.b, t.c, t.ts, t.ok, u.x, u.day
			  Join inner on=CAST(t.a AS BIGINT) = u.a
			    Scan t columns=[a, b, c, ts, ok]
			    Scan u columns=[a, x, day]`},
		"using, right": {df.JoinUsing(u, logical.RightJoin, "a").Select(col("u.a")), `
			Project u.a
			  Project u.a, t.b, t.c, t.ts, t.ok, u.x, u.day
			    Join right on=CAST(t.a AS BIGINT) = u.a
			      Scan t columns=[a, b, c, ts, ok]
			      Scan u columns=[a, x, day]`},
		"using, full": {df.JoinUsing(u, logical.FullJoin, "A").Select(col("a")), `
			Project a
			  Project coalesce(CAST(t.a AS BIGINT), u.a) AS a, t.b, t.c, t.ts, t.ok, u.x, u.day
			    Join full on=CAST(t.a AS BIGINT) = u.a
			      Scan t columns=[a, b, c, ts, ok]
			      Scan u columns=[a, x, day]`},
		"using, semi": {df.JoinUsing(u, logical.SemiJoin, "a"), `
			Project t.a, t.b, t.c, t.ts, t.ok
			  Join semi on=CAST(t.a AS BIGINT) = u.a
			    Scan t columns=[a, b, c, ts, ok]
			    Scan u columns=[a, x, day]`},
		"as-of": {df.As("l").AsofJoin(df.As("r"), logical.LeftJoin, col("l.a").Eq(col("r.a")).And(col("r.ts").Lt(col("l.ts"))).And(col("r.ok"))).Select(col("l.a"), col("r.b").As("before")), `
			Project l.a, r.b AS before
			  AsofJoin left on=[l.a = r.a] nearest=l.ts > r.ts
			    Alias l
			      Scan t columns=[a, b, c, ts, ok]
			    Filter r.ok
			      Alias r
			        Scan t columns=[a, b, c, ts, ok]`},
		"as-of, using": {df.AsofJoinUsing(frame("t").Select(col("a"), col("ts"), col("b").As("price")), logical.InnerJoin, "A", "ts"), `
			Project t.a, t.ts, t.b, t.c, t.ok, price
			  AsofJoin inner on=[t.a = t.a] nearest=t.ts >= t.ts
			    Scan t columns=[a, b, c, ts, ok]
			    Project t.a, t.ts, t.b AS price
			      Scan t columns=[a, b, c, ts, ok]`},
		"grouping": {df.GroupBy(col("a"), col("c").IsNull().As("none")).Agg(call("sum", col("b")).As("s"), call("count"), call("count", col("c")).Distinct(), call("max", col("b")).Filter(col("ok"))), `
			Aggregate keys=[t.a, t.c IS NULL AS none] aggs=[sum(t.b) AS s, count(*), count(DISTINCT t.c), max(t.b) FILTER (WHERE t.ok)]
			  Scan t columns=[a, b, c, ts, ok]`},
		"groups of intervals": {df.GroupBy(col("a"), col("ts").Sub(col("ts")).As("i")).Agg(call("count").As("n")), `
Project t.a, i, n
  Aggregate keys=[t.a, t.ts - t.ts AS i] aggs=[count(*) AS n, first(t.ts - t.ts) AS i]
    Scan t columns=[a, b, c, ts, ok]
`},
		"computing with aggregates": {df.GroupBy(col("a")).Agg(call("sum", col("b")).Div(call("count")).As("mean"), call("sum", col("b")).As("s"), col("a").Add(lit(1)).As("next")), `
			Project t.a, sum(t.b) / count(*) AS mean, s, CAST(t.a AS BIGINT) + 1 AS next
			  Aggregate keys=[t.a] aggs=[sum(t.b), count(*), sum(t.b) AS s]
			    Scan t columns=[a, b, c, ts, ok]`},
		"the same key and column twice": {df.GroupBy(col("a"), col("a")).Agg(col("a").As("again"), col("a")), `
			Project t.a, t.a, t.a AS again, t.a
			  Aggregate keys=[t.a, t.a] aggs=[]
			    Scan t columns=[a, b, c, ts, ok]`},
		"everything": {df.Agg(call("count").As("n")), `
			Aggregate keys=[] aggs=[count(*) AS n]
			  Scan t columns=[a, b, c, ts, ok]`},
		"counting groups": {df.GroupBy(col("a")).Count(), `
			Aggregate keys=[t.a] aggs=[count(*) AS count]
			  Scan t columns=[a, b, c, ts, ok]`},
		"windows": {df.GroupBy(expr.Window(col("ts"), hour, 10*time.Minute, -time.Minute), col("a")).Agg(call("count").As("n")).Select(col("window.end"), col("n")), `
			Project field_end(window) AS end, n
			  Project struct(window_start, window_end) AS window, t.a, n
			    Aggregate keys=[window_start, window_end, t.a] aggs=[count(*) AS n]
			      Window hop time=t.ts size=1h0m0s slide=10m0s start=-1m0s
			        Scan t columns=[a, b, c, ts, ok]`},
		"windows of windows": {df.GroupBy(col("a"), expr.Window(col("ts"), hour).As("w")).Agg(call("count").As("n")).GroupBy(expr.Window(col("w"), 24*hour)).Agg(call("sum", col("n")).As("n")), `
			Project struct(window_start, window_end) AS window, n
			  Aggregate keys=[window_start, window_end] aggs=[sum(n) AS n]
			    Window tumble time=window_time(field_end(w)) size=24h0m0s
			      Project t.a, struct(window_start, window_end) AS w, n
			        Aggregate keys=[t.a, window_start, window_end] aggs=[count(*) AS n]
			          Window tumble time=t.ts size=1h0m0s
			            Scan t columns=[a, b, c, ts, ok]`},
		"windows grouped again": {df.GroupBy(col("a"), expr.Window(col("ts"), hour)).Agg(call("count").As("n")).GroupBy(col("window")).Agg(call("max", col("n")).As("n")), `
			Project struct(window_start, window_end) AS window, n
			  Aggregate keys=[field_start(window) AS window_start, field_end(window) AS window_end] aggs=[max(n) AS n]
			    Project t.a, struct(window_start, window_end) AS window, n
			      Aggregate keys=[t.a, window_start, window_end] aggs=[count(*) AS n]
			        Window tumble time=t.ts size=1h0m0s
			          Scan t columns=[a, b, c, ts, ok]`},
		"no such field": {df.GroupBy(expr.Window(col("ts"), hour)).Count().Select(col("window.ends")), "error: select: window has no field ends; its type is STRUCT<start TIMESTAMP, end TIMESTAMP>"},
		"windows of days": {u.GroupBy(expr.Window(col("day"), 24*hour)).Count(), `
			Project struct(window_start, window_end) AS window, count
			  Aggregate keys=[window_start, window_end] aggs=[count(*) AS count]
			    Window tumble time=CAST(u.day AS TIMESTAMP) size=24h0m0s
			      Scan u columns=[a, x, day]`},
		"sessions": {df.GroupBy(expr.SessionWindow(col("ts"), col("c"))).Count(), `
			Project struct(window_start, window_end) AS session_window, count
			  Aggregate keys=[window_start, window_end] aggs=[count(*) AS count]
			    Window session time=t.ts gap=t.c
			      Scan t columns=[a, b, c, ts, ok]`},
		"case": {df.Select(expr.When(col("ok"), lit(1)).When(col("a").Eq(lit(2)), lit(2.5)).Otherwise(lit(nil)).As("x"), expr.When(col("ok"), lit("y")).As("y")), `
			Project CASE WHEN t.ok THEN CAST(1 AS DOUBLE) WHEN CAST(t.a AS BIGINT) = 2 THEN 2.5 ELSE CAST(NULL AS DOUBLE) END AS x, CASE WHEN t.ok THEN 'y' END AS y
			  Scan t columns=[a, b, c, ts, ok]`},
		"other terms": {df.Select(col("a").Between(lit(1), lit(2)).Not().As("x"), col("c").Like("a%").As("y"), col("a").In(lit(1), lit(2)).As("z"), col("a").Cast(columnar.String).As("w"), col("c").IsNotNull().As("v")), `
			Project NOT ((CAST(t.a AS BIGINT) >= 1) AND (CAST(t.a AS BIGINT) <= 2)) AS x, t.c LIKE 'a%' AS y, CAST(t.a AS BIGINT) IN (1, 2) AS z, CAST(t.a AS VARCHAR) AS w, t.c IS NOT NULL AS v
			  Scan t columns=[a, b, c, ts, ok]`},

		// The first mistake is kept to the end, with the verb that made it.
		"no such column":            {df.Where(col("nope").IsNull()).Select(col("neither")), "error: where: there is no column nope; known are a, b, c, ts, ok"},
		"near column":               {df.Select(col("tss")), "error: select: there is no column tss; did you mean ts?"},
		"qualifier":                 {df.As("x").Select(col("t.a")), "error: select: there is no column t.a; did you mean a?"},
		"ambiguous":                 {df.CrossJoin(u).Select(col("a")), "error: select: column a is ambiguous; it could be t.a or u.a"},
		"drop unknown":              {df.Drop("nope"), "error: drop: there is no column nope; known are a, b, c, ts, ok"},
		"not a condition":           {df.Where(col("a")), "error: where: the filter needs a condition, but t.a is INTEGER"},
		"not a join condition":      {df.Join(u, logical.InnerJoin, col("b")), "error: join: the join needs a condition, but t.b is BIGINT"},
		"aggregate in where":        {df.Where(call("sum", col("b")).Gt(lit(1))), "error: where: aggregate function sum cannot stand here"},
		"aggregate of an aggregate": {df.Agg(call("sum", call("max", col("b")))), "error: agg: sum cannot hold an aggregate; aggregate twice instead"},
		"filter of a function":      {df.Select(call("upper", col("c")).Filter(col("ok"))), "error: select: Distinct and Filter apply to an aggregate, not to upper"},
		"filter of a column":        {df.Agg(col("a").Filter(col("ok"))), "error: agg: Filter applies to an aggregate, not to a"},
		"filter no condition":       {df.Agg(call("sum", col("b")).Filter(col("c"))), "error: agg: FILTER needs a condition, but t.c is VARCHAR"},
		"distinct of nothing":       {df.Agg(call("count").Distinct()), "error: agg: a distinct count needs a value to count"},
		"neither grouped nor":       {df.GroupBy(col("a")).Agg(col("b").Add(lit(1))), "error: agg: t.b + 1 is neither grouped by nor aggregated"},
		"no function":               {df.Select(call("uper", col("c"))), "error: select: there is no function uper; did you mean upper?"},
		"bad constant":              {df.Select(lit(struct{}{}).Add(lit(1))), "error: select: a struct {} cannot be a constant; use a bool, number, string, []byte, time.Time or time.Duration"},
		"bad constant in a branch":  {df.Select(expr.When(col("ok"), lit(1)).Otherwise(lit(struct{}{}))), "error: select: a struct {} cannot be a constant; use a bool, number, string, []byte, time.Time or time.Duration"},
		"bad constant in a filter":  {df.Agg(call("sum", col("b")).Filter(lit(struct{}{}))), "error: agg: a struct {} cannot be a constant; use a bool, number, string, []byte, time.Time or time.Duration"},
		"case continued":            {df.Select(expr.When(col("ok"), lit(1)).Otherwise(lit(2)).When(col("ok"), lit(3))), "error: select: When and Otherwise continue a When, not case(ok, 1, 2)"},
		"mixed case":                {df.Select(expr.When(col("ok"), lit(1)).Otherwise(col("ts"))), "error: select: CASE mixes BIGINT and TIMESTAMP; cast one of them"},
		"negative limit":            {df.Limit(-1), "error: limit: -1 is negative"},
		"negative offset":           {df.Offset(-1), "error: offset: -1 is negative"},
		"union of other width":      {df.Union(u), "error: union: one side has 5 columns, the other 3"},
		"union of other types":      {df.Select(col("ok")).Union(u.Select(col("day"))), "error: union: column 1 (ok) is BOOLEAN on one side and DATE on the other; cast one of them"},
		"union with a mistake":      {df.Union(u.Limit(-2)), "error: union: limit: -2 is negative"},
		"join with a mistake":       {df.Join(u.Limit(-2), logical.InnerJoin, lit(true)), "error: join: limit: -2 is negative"},
		"as-of without time":        {df.AsofJoin(u, logical.InnerJoin, col("c").Eq(col("x"))), "error: asofJoin: an as-of join without an inequality of both sides is not supported: nothing says which row is the nearest; add one, such as l.ts >= r.ts, or leave ASOF out"},
		"as-of of another kind":     {df.AsofJoin(u, logical.CrossJoin, col("b").Gt(col("u.a"))), "error: asofJoin: a cross as-of join is not supported; use ASOF JOIN or ASOF LEFT JOIN"},
		"as-of by no condition":     {df.AsofJoin(u, logical.InnerJoin, col("b")), "error: asofJoin: the join needs a condition, but t.b is BIGINT"},
		"as-of using nothing":       {df.AsofJoinUsing(u, logical.InnerJoin), "error: asofJoin: no columns to join on; the last one named is the time"},
		"as-of using twice":         {df.AsofJoinUsing(u, logical.InnerJoin, "a", "A"), "error: asofJoin: column A is named twice"},
		"as-of with a mistake":      {df.AsofJoinUsing(u.Limit(-2), logical.InnerJoin, "a"), "error: asofJoin: limit: -2 is negative"},
		"using nothing":             {df.JoinUsing(u, logical.InnerJoin), "error: join: no columns to join on; use Join with a condition, or CrossJoin"},
		"using twice":               {df.JoinUsing(u, logical.InnerJoin, "a", "A"), "error: join: column A is named twice"},
		"using what is not there":   {df.JoinUsing(u, logical.InnerJoin, "x"), "error: join: left side: there is no column x; known are a, b, c, ts, ok"},
		"watermark on a text":       {df.WithWatermark("c", hour), "error: withWatermark: the watermark column c is VARCHAR; event time must be a TIMESTAMP"},
		"negative delay":            {df.WithWatermark("ts", -hour), "error: withWatermark: the watermark delay -1h0m0s is negative"},
		"second watermark":          {streamFrame("s").WithWatermark("ts", hour).WithWatermark("ts", hour), "error: withWatermark: the stream already has a watermark (s.ts); a second one on ts would redefine it"},
		"window size":               {df.GroupBy(expr.Window(col("ts"), 0)).Count(), "error: agg: the size of a window must be positive"},
		"window slide":              {df.GroupBy(expr.Window(col("ts"), hour, 2*hour)).Count(), "error: agg: the slide of a window may not be longer than its size: rows between windows would be lost"},
		"window slide of nothing":   {df.GroupBy(expr.Window(col("ts"), hour, 0)).Count(), "error: agg: the slide of a window must be positive"},
		"window start":              {df.GroupBy(expr.Window(col("ts"), hour, hour, hour)).Count(), "error: agg: the start of a window must be shorter than its slide"},
		"window of four":            {df.GroupBy(expr.Window(col("ts"), hour, hour, hour, hour)).Count(), "error: agg: a window has a size, a slide and a start, not 4 durations"},
		"window over a number":      {df.GroupBy(expr.Window(col("a"), hour)).Count(), "error: agg: the time of a window is a TIMESTAMP, but t.a is INTEGER"},
		"session gap":               {df.GroupBy(expr.SessionWindow(col("ts"), col("a"))).Count(), "error: agg: the gap of a session is an INTERVAL or a text, but t.a is INTEGER"},
		"window functions": {df.Select(col("a"), call("row_number").Over(byC).As("n"), call("sum", col("b")).Over(byC.Rows(expr.NewFrameEnd(expr.Preceding, lit(2)), expr.NewFrameEnd(expr.CurrentRow, expr.Term{}))).Add(lit(1)).As("s"), call("count").Over(expr.PartitionBy())), `
			Project t.a, row_number() OVER (PARTITION BY t.c ORDER BY t.b DESC NULLS FIRST) AS n, sum(t.b) OVER (PARTITION BY t.c ORDER BY t.b DESC NULLS FIRST ROWS BETWEEN 2 PRECEDING AND CURRENT ROW) + 1 AS s, count(*) OVER ()
			  Over count(*) OVER ()
			    Over row_number() OVER (PARTITION BY t.c ORDER BY t.b DESC NULLS FIRST), sum(t.b) OVER (PARTITION BY t.c ORDER BY t.b DESC NULLS FIRST ROWS BETWEEN 2 PRECEDING AND CURRENT ROW)
			      Scan t columns=[a, b, c, ts, ok]`},
		"window function in where":     {df.Where(call("rank").Over(byC).Eq(lit(1))), "error: where: the window function rank cannot stand here; compute it as a column with Select or WithColumn first"},
		"window function in agg":       {df.GroupBy(col("c")).Agg(call("rank").Over(byC)), "error: agg: the window function rank cannot stand here; compute it as a column with Select or WithColumn first"},
		"window function inside one":   {df.Select(call("sum", call("rank").Over(byC)).Over(byC)), "error: select: the window function rank cannot stand here; compute it as a column with Select or WithColumn first"},
		"window function without":      {df.Select(call("rank")), "error: select: rank is a window function and needs Over(PartitionBy(…).OrderBy(…))"},
		"rank without order":           {df.Select(call("rank").Over(expr.PartitionBy(col("c")))), "Project rank() OVER (PARTITION BY t.c)\n  Over rank() OVER (PARTITION BY t.c)\n    Scan t columns=[a, b, c, ts, ok]"},
		"scalar over":                  {df.Select(call("upper", col("c")).Over(byC)), "error: select: upper is no window function and no aggregate: it takes no Over"},
		"column over":                  {df.Select(col("c").Over(byC)), "error: select: Over applies to a call of a function, not to c"},
		"unknown function over":        {df.Select(call("rnk").Over(byC)), "error: select: there is no function rnk; did you mean rank?"},
		"ntile of a text":              {df.Select(call("ntile", col("c")).Over(byC)), "error: select: ntile takes a whole number here, not VARCHAR"},
		"ignore nulls of rank":         {df.Select(call("rank").IgnoreNulls().Over(byC)), "error: select: rank takes no IGNORE NULLS"},
		"ignore nulls of sum":          {df.Select(call("sum", col("b")).IgnoreNulls().Over(byC)), "error: select: sum takes no IgnoreNulls"},
		"distinct rank":                {df.Select(call("rank").Distinct().Over(byC)), "error: select: Distinct and Filter apply to an aggregate, not to rank"},
		"distinct over a moving frame": {df.Select(call("sum", col("b")).Distinct().Over(byC.Rows(here, here))), "Project sum(DISTINCT t.b) OVER (PARTITION BY t.c ORDER BY t.b DESC NULLS FIRST ROWS BETWEEN CURRENT ROW AND CURRENT ROW)\n  Over sum(DISTINCT t.b) OVER (PARTITION BY t.c ORDER BY t.b DESC NULLS FIRST ROWS BETWEEN CURRENT ROW AND CURRENT ROW)\n    Scan t columns=[a, b, c, ts, ok]"},
		"frames that leave rows out": {df.Select(call("sum", col("b")).Over(byC.Rows(here, here).ExcludeTies()).As("s"), call("count").Over(byC.ExcludeCurrentRow()).As("n"), call("max", col("a")).Over(byC.ExcludeGroup()).As("m")), `
			Project sum(t.b) OVER (PARTITION BY t.c ORDER BY t.b DESC NULLS FIRST ROWS BETWEEN CURRENT ROW AND CURRENT ROW EXCLUDE TIES) AS s, count(*) OVER (PARTITION BY t.c ORDER BY t.b DESC NULLS FIRST RANGE BETWEEN UNBOUNDED PRECEDING AND CURRENT ROW EXCLUDE CURRENT ROW) AS n, max(t.a) OVER (PARTITION BY t.c ORDER BY t.b DESC NULLS FIRST RANGE BETWEEN UNBOUNDED PRECEDING AND CURRENT ROW EXCLUDE GROUP) AS m
			  Over sum(t.b) OVER (PARTITION BY t.c ORDER BY t.b DESC NULLS FIRST ROWS BETWEEN CURRENT ROW AND CURRENT ROW EXCLUDE TIES), count(*) OVER (PARTITION BY t.c ORDER BY t.b DESC NULLS FIRST RANGE BETWEEN UNBOUNDED PRECEDING AND CURRENT ROW EXCLUDE CURRENT ROW), max(t.a) OVER (PARTITION BY t.c ORDER BY t.b DESC NULLS FIRST RANGE BETWEEN UNBOUNDED PRECEDING AND CURRENT ROW EXCLUDE GROUP)
			    Scan t columns=[a, b, c, ts, ok]`},
		"frame backwards":     {df.Select(call("sum", col("b")).Over(byC.Rows(expr.NewFrameEnd(expr.Following, lit(1)), here))), "error: select: the frame ends before it begins; ROWS BETWEEN 1 PRECEDING AND CURRENT ROW"},
		"frame by a fraction": {df.Select(call("sum", col("b")).Over(byC.Rows(expr.NewFrameEnd(expr.Preceding, lit(1.5)), here))), "error: select: ROWS takes a whole number that is not negative, not 1.5"},
		"frame by a column":   {df.Select(call("sum", col("b")).Over(byC.Rows(expr.NewFrameEnd(expr.Preceding, col("a")), here))), "error: select: the offset of a frame is a constant, not a"},
		"order of nulls": {df.OrderBy(col("a").NullsLast(), col("b").Desc().NullsFirst(), col("c").Desc().NullsLast()), `
			Sort [t.a NULLS LAST, t.b DESC NULLS FIRST, t.c DESC]
			  Scan t columns=[a, b, c, ts, ok]`},
		"grouping sets": {df.GroupingSets([]expr.Term{col("a"), col("c")}, []expr.Term{col("A")}).Agg(call("sum", col("a")).As("s"), call("grouping", col("c")).As("g")), `
			Project t.a, c, s, g
			  Project t.a, c, grouping_set, s, CASE WHEN grouping_set = 1 THEN 1 ELSE 0 END AS g
			    Aggregate keys=[t.a, c, grouping_set] aggs=[sum(t.a) AS s]
			      Expand keys=[t.c] sets=[(c), ()]
			        Scan t columns=[a, b, c, ts, ok]`},
		"grouping of no key":    {df.Rollup(col("a")).Agg(call("grouping", col("c"))), "error: agg: grouping takes keys that are grouped by, which t.c is not"},
		"grouping without sets": {df.GroupBy(col("a")).Agg(call("grouping", col("a"))), "error: agg: there is no function grouping"},
		"session in a rollup":   {df.Rollup(expr.SessionWindow(col("ts"), lit("1 minute")), col("a")).Count(), "error: agg: a session window cannot be one of several grouping sets: sessions are merged by all other keys"},
		"cube of too many":      {df.Cube(slices.Repeat([]expr.Term{col("a")}, 13)...).Count(), "error: cube: more than 12 keys make too many grouping sets"},
		"except": {df.Select(col("a")).ExceptAll(u.Select(col("a"))), `
			Except all
			  Project CAST(t.a AS BIGINT) AS a
			    Project t.a
			      Scan t columns=[a, b, c, ts, ok]
			  Project u.a
			    Scan u columns=[a, x, day]`},
		"intersect of other columns": {df.Intersect(u), "error: intersect: one side has 5 columns, the other 3"},
		"rename": {u.Rename("X", "y"), `
			Project u.a, u.x AS y, u.day
			  Scan u columns=[a, x, day]`},
		"sample too much":       {df.Sample(1.5), "error: sample: the probability is from 0 to 1, not 1.5"},
		"explode a number":      {df.Explode(col("a")), "error: explode: t.a is INTEGER; only an ARRAY or a MAP can be unnested"},
		"explode, many names":   {df.Explode(call("array", col("a")), "x", "y"), "error: explode: it makes 1 columns, and 2 names are given"},
		"with a window of none": {df.WithWindow(col("ts")), "error: withWindow: it takes a Window or a SessionWindow"},
		"with a keyed window":   {df.WithWindow(expr.Window(col("ts"), hour), col("a")), "error: withWindow: only a SessionWindow takes keys"},
		"window selected":       {df.Select(expr.Window(col("ts"), hour)), "error: select: window cannot stand here; group by it"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			want := strings.ReplaceAll(strings.TrimSpace(test.want), "\n\t\t\t", "\n")
			if got := describe(t, test.df); got != want {
				t.Errorf("got\n%s\nwant\n%s", got, want)
			}
		})
	}
}

// describe is the plan of a DataFrame, or its mistake.
func describe(t *testing.T, df *logical.DataFrame) string {
	t.Helper()
	plan, err := df.Plan()
	if err != nil {
		if df.Schema() != nil {
			t.Error("a schema after a mistake")
		}
		return "error: " + err.Error()
	}
	logical.Walk(plan, func(n logical.Node) bool {
		sound(t, n)
		seen := map[expr.ID]bool{}
		for _, c := range n.Schema().Columns {
			if seen[c.ID] {
				t.Errorf("column %s is twice in %s", c, n)
			}
			seen[c.ID] = true
		}
		return true
	})
	return strings.TrimSpace(logical.Format(plan))
}

func TestDataFrameIsAValue(t *testing.T) {
	t.Parallel()
	df := frame("t")
	before := describe(t, df)
	df.Where(col("ok")).Select(col("a"))
	df.Select(col("nope"))
	if after := describe(t, df); after != before {
		t.Errorf("it was\n%s\nand is\n%s", before, after)
	}
	mistake := errors.New("mistake")
	if _, err := logical.FailedDataFrame(mistake).Where(col("a")).GroupBy(col("a")).Count().Union(df).Plan(); !errors.Is(err, mistake) {
		t.Errorf("the mistake became %v", err)
	}
}

func TestWatermarkLabels(t *testing.T) {
	t.Parallel()
	for want, df := range map[string]*logical.DataFrame{
		"s.ts":   streamFrame("s").WithWatermark("TS", time.Hour),
		"s+r.ts": streamFrame("s").Union(streamFrame("r")).Union(streamFrame("s")).WithWatermark("ts", time.Hour),
		"ts":     frame("t").WithWatermark("ts", 0),
	} {
		plan, err := df.Plan()
		if err != nil {
			t.Fatal(err)
		}
		if got := plan.(*logical.Watermark).Label; got != want {
			t.Errorf("label %q, want %q", got, want)
		}
	}
}

// TestWatermarkThroughWindowStructs: the struct of a window carries the watermark of
// its bounds to whatever groups by it, by a field of it, or by a window over it.
func TestWatermarkThroughWindowStructs(t *testing.T) {
	t.Parallel()
	hourly := streamFrame("s").WithWatermark("ts", time.Minute).
		GroupBy(expr.Window(col("ts"), time.Hour), col("a")).Agg(call("count").As("n"))
	for name, df := range map[string]*logical.DataFrame{
		"window":          hourly.GroupBy(col("window")).Agg(call("max", col("n")).As("n")),
		"field":           hourly.GroupBy(col("window.end")).Agg(call("max", col("n")).As("n")),
		"passed on":       hourly.Select(col("window").As("w"), col("n")).GroupBy(col("w")).Count(),
		"window over one": hourly.GroupBy(expr.Window(col("window"), 24*time.Hour)).Count(),
	} {
		plan, err := df.Plan()
		if err != nil {
			t.Fatal(err)
		}
		if err := logical.Check(plan, connector.Append); err != nil {
			t.Errorf("%s: %v", name, err)
		}
		for id := range logical.EventTimes(plan) {
			c := plan.Schema().Columns[plan.Schema().Index(id)]
			if c.DataType.ID() != arrow.TIMESTAMP {
				t.Errorf("%s: %s of type %s is called event time", name, c, c.DataType)
			}
		}
	}
}
