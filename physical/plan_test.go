package physical_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"

	"github.com/tidemill/tidemill/columnar"
	"github.com/tidemill/tidemill/columnar/columnartest"
	"github.com/tidemill/tidemill/logical"
	"github.com/tidemill/tidemill/logical/expr"
	"github.com/tidemill/tidemill/physical"
	"github.com/tidemill/tidemill/physical/physicaltest"
)

const bids = `
	ts:timestamp          who:varchar  price:bigint  channel:varchar
	2024-01-01T12:00:01Z  ann          10            web
	2024-01-01T12:00:04Z  bob          20            web
	2024-01-01T12:00:14Z  ann          30            app
	NULL                  cid          5             app
	2024-01-01T12:00:31Z  bob          NULL          web
	2024-01-01T12:00:40Z  ann          7             NULL
	2024-01-01T12:01:40Z  ann          1             web
`

const channels = `
	channel:varchar  title:varchar
	web              Web
	tv               Television
	NULL             Nothing
`

// table is text as a table of units of two rows.
func table(t *testing.T, text string) *physicaltest.Table {
	mem := columnartest.Mem(t)
	b := columnartest.Batch(t, mem, text)
	var units [][]arrow.RecordBatch
	for at := int64(0); at < b.NumRows(); at += 2 {
		part := b.NewSlice(at, min(at+2, b.NumRows()))
		t.Cleanup(part.Release)
		units = append(units, []arrow.RecordBatch{part})
	}
	return physicaltest.NewTable(b.Schema(), units...)
}

func TestPlanner(t *testing.T) {
	t.Parallel()
	count, sum := fn("count").As("n"), fn("sum", col("price")).As("total")
	cases := []struct {
		name  string
		query func(bids, channels *logical.DataFrame) *logical.DataFrame
		plan  string
		want  string
	}{
		{
			"where and select",
			func(b, _ *logical.DataFrame) *logical.DataFrame {
				return b.Where(col("price").Gt(lit(int64(9)))).Select(col("who"), col("price").Mul(lit(int64(2))).As("double"))
			},
			`
Project who, price * 2 AS double
  Filter price > 9
    Scan table=bids columns=[ts, who, price, channel]`,
			`
who:varchar  double:bigint
ann          20
bob          40
ann          60`,
		},
		{
			"group by",
			func(b, _ *logical.DataFrame) *logical.DataFrame { return b.GroupBy(col("who")).Agg(count, sum) },
			`
HashAggregate mode=final keys=[who] aggs=[count(*) AS n, sum(price) AS total]
  PartialAggregate keys=[who] aggs=[count(*) AS n, sum(price) AS total]
    Scan table=bids columns=[ts, who, price, channel]`,
			`
who:varchar  n:bigint  total:bigint
ann          4         48
bob          2         20
cid          1         5`,
		},
		{
			"count distinct",
			func(b, _ *logical.DataFrame) *logical.DataFrame {
				return b.GroupBy(col("who")).Agg(fn("count", col("channel")).Distinct().As("n"))
			},
			`
HashAggregate mode=final keys=[who] aggs=[count(channel) AS n]
  PartialAggregate keys=[who] aggs=[count(channel) AS n]
    HashAggregate mode=final keys=[who, channel AS argument0]
      PartialAggregate keys=[who, channel AS argument0]
        Scan table=bids columns=[ts, who, price, channel]`,
			`
who:varchar  n:bigint
ann          2
bob          1
cid          1`,
		},
		{
			"several distinct aggregates",
			func(b, _ *logical.DataFrame) *logical.DataFrame {
				return b.GroupBy(col("who")).Agg(fn("count", col("channel")).Distinct().As("n"), fn("sum", fn("length", col("channel"))).Distinct().As("l"), count)
			},
			`
HashAggregate mode=single keys=[who] aggs=[count(DISTINCT channel) AS n, sum(DISTINCT length(channel)) AS l, count(*) AS n]
  Exchange hash=[who]
    Scan table=bids columns=[ts, who, price, channel]`,
			"",
		},
		{
			"first in order of arrival",
			func(b, _ *logical.DataFrame) *logical.DataFrame {
				return b.GroupBy(col("channel")).Agg(fn("first", col("who")).As("first"), fn("last", col("who")).As("last"))
			},
			`
HashAggregate mode=final keys=[channel] aggs=[first(who) AS first, last(who) AS last]
  PartialAggregate keys=[channel] aggs=[first(who) AS first, last(who) AS last]
    Scan table=bids columns=[ts, who, price, channel, $ordinal]`,
			`
channel:varchar  first:varchar  last:varchar
web              ann            ann
app              ann            cid
NULL             ann            ann`,
		},
		{
			"first after a join",
			func(b, c *logical.DataFrame) *logical.DataFrame {
				return b.JoinUsing(c, logical.InnerJoin, "channel").Agg(fn("first", col("who")).As("first"), fn("last", col("price")).As("last"))
			},
			`
HashAggregate mode=final aggs=[first(who) AS first, last(price) AS last]
  PartialAggregate aggs=[first(who) AS first, last(price) AS last]
    Project channel, ts, who, price, title, $ordinal
      Number
        Coalesce
          HashJoin kind=inner on=[channel = channel] build=right
            Scan table=bids columns=[ts, who, price, channel]
            Scan table=channels columns=[channel, title]`,
			`
first:varchar  last:bigint
ann            1`,
		},
		{
			"distinct on and limit",
			func(b, _ *logical.DataFrame) *logical.DataFrame {
				return b.DropDuplicates("who").Select(col("who"), col("price")).Limit(2)
			},
			`
Limit count=2
  Project who, price
    Distinct keys=[who]
      Distinct mode=partial keys=[who]
        Scan table=bids columns=[ts, who, price, channel]`,
			`
who:varchar  price:bigint
ann          10
bob          20`,
		},
		{
			"sort",
			func(b, _ *logical.DataFrame) *logical.DataFrame {
				return b.Select(col("who"), col("price")).OrderBy(col("who"), col("price").Desc())
			},
			`
Sort keys=[who, price DESC]
  Project who, price
    Scan table=bids columns=[ts, who, price, channel]`,
			`
who:varchar  price:bigint
ann          30
ann          10
ann          7
ann          1
bob          20
bob          NULL
cid          5`,
		},
		{
			"left join with null keys",
			func(b, c *logical.DataFrame) *logical.DataFrame {
				return b.Select(col("who"), col("channel")).Join(c.Select(col("channel").As("c"), col("title")), logical.LeftJoin, col("channel").Eq(col("c"))).OrderBy(col("who"), col("title"))
			},
			`
Sort keys=[who, title]
  Coalesce
    HashJoin kind=left on=[channel = c] build=right
      Project who, channel
        Scan table=bids columns=[ts, who, price, channel]
      Project channel AS c, title
        Scan table=channels columns=[channel, title]`,
			`
who:varchar  channel:varchar  c:varchar  title:varchar
ann          app              NULL       NULL
ann          NULL             NULL       NULL
ann          web              web        Web
ann          web              web        Web
bob          web              web        Web
bob          web              web        Web
cid          app              NULL       NULL`,
		},
		{
			"full join counts",
			func(b, c *logical.DataFrame) *logical.DataFrame {
				return b.Join(c.Select(col("channel").As("c")), logical.FullJoin, fn("is_not_distinct_from", col("channel"), col("c"))).GroupBy(col("channel"), col("c")).Agg(count).OrderBy(col("channel"), col("c"))
			},
			"",
			`
channel:varchar  c:varchar  n:bigint
NULL             NULL       1
NULL             tv         1
app              NULL       2
web              web        4`,
		},
		{
			"anti join by range",
			func(b, c *logical.DataFrame) *logical.DataFrame {
				low := b.Select(col("price").As("low"))
				return b.Select(col("who"), col("price")).Join(low, logical.AntiJoin, col("price").Lt(col("low")))
			},
			`
LoopJoin kind=anti on=price < low
  Project who, price
    Scan table=bids columns=[ts, who, price, channel]
  Project price AS low
    Scan table=bids columns=[ts, who, price, channel]`,
			`
who:varchar  price:bigint
ann          30
bob          NULL`,
		},
		{
			"tumbling windows",
			func(b, _ *logical.DataFrame) *logical.DataFrame {
				return b.GroupBy(expr.Window(col("ts"), 10e9), col("channel")).Agg(count)
			},
			"",
			`
window:struct<start timestamp, end timestamp>  channel:varchar  n:bigint
{"start":"2024-01-01T12:00:00Z","end":"2024-01-01T12:00:10Z"}  web              2
{"start":"2024-01-01T12:00:10Z","end":"2024-01-01T12:00:20Z"}  app              1
{"start":"2024-01-01T12:00:30Z","end":"2024-01-01T12:00:40Z"}  web              1
{"start":"2024-01-01T12:00:40Z","end":"2024-01-01T12:00:50Z"}  NULL             1
{"start":"2024-01-01T12:01:40Z","end":"2024-01-01T12:01:50Z"}  web              1`,
		},
		{
			"session windows",
			func(b, _ *logical.DataFrame) *logical.DataFrame {
				return b.GroupBy(expr.SessionWindow(col("ts"), expr.Lit("30 seconds")), col("who")).Agg(count)
			},
			"",
			`
session_window:struct<start timestamp, end timestamp>  who:varchar  n:bigint
{"start":"2024-01-01T12:00:01Z","end":"2024-01-01T12:01:10Z"}  ann          3
{"start":"2024-01-01T12:00:04Z","end":"2024-01-01T12:01:01Z"}  bob          2
{"start":"2024-01-01T12:01:40Z","end":"2024-01-01T12:02:10Z"}  ann          1`,
		},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			d := c.query(logical.ReadTable("bids", table(t, bids), registry), logical.ReadTable("channels", table(t, channels), registry))
			n, err := d.Plan()
			if err != nil {
				t.Fatal(err)
			}
			p, err := physical.NewPlanner().Plan(n)
			if err != nil {
				t.Fatal(err)
			}
			if got := physical.Explain(p); c.plan != "" && strings.TrimSpace(got) != strings.TrimSpace(c.plan) {
				t.Errorf("plan\n%s", got)
			}
			for _, parallel := range []int{1, 2, 4} {
				mem := columnartest.Mem(t)
				got, err := physical.Collect(context.Background(), p, &physical.ExecContext{Mem: mem, Parallel: parallel, Metrics: &physical.Metrics{}})
				if err != nil {
					t.Fatal(err)
				}
				if c.want != "" {
					want := columnartest.Batch(t, mem, c.want)
					if d := columnartest.Diff([]arrow.RecordBatch{want}, got, columnartest.DiffOptions{Ordered: true}); d != "" {
						t.Errorf("with %d goroutines:\n%s", parallel, d)
					}
				}
				for _, b := range got {
					b.Release()
				}
			}
		})
	}
}

func TestExplainAnalyze(t *testing.T) {
	t.Parallel()
	mem := columnartest.Mem(t)
	n, err := logical.ReadTable("bids", table(t, bids), registry).GroupBy(col("who")).Agg(fn("count").As("n")).Plan()
	if err != nil {
		t.Fatal(err)
	}
	p, err := physical.NewPlanner().Plan(n)
	if err != nil {
		t.Fatal(err)
	}
	m := &physical.Metrics{}
	got, err := physical.Collect(context.Background(), p, &physical.ExecContext{Mem: mem, Metrics: m})
	if err != nil {
		t.Fatal(err)
	}
	for _, b := range got {
		b.Release()
	}
	lines := strings.Split(physical.ExplainAnalyze(p, m), "\n")
	for i, want := range []string{"(rows=3 batches=1 ", "(rows=3 ", "(rows=7 batches=4 "} {
		if !strings.Contains(lines[i], want) {
			t.Errorf("line %q does not hold %q", lines[i], want)
		}
	}
}

// numbers is n rows (i, i mod groups as text, i mod groups) in units of 50,000 rows.
func numbers(tb testing.TB, n, groups int) *physicaltest.Table {
	mem := columnar.NewPool()
	schema := columnartest.Schema(tb, "i:bigint  s:varchar  g:bigint")
	const batch, unit = columnar.DefaultBatchRows, 4
	var units [][]arrow.RecordBatch
	for at := 0; at < n; at += batch {
		rows := min(batch, n-at)
		i, s, g := array.NewInt64Builder(mem), array.NewStringBuilder(mem), array.NewInt64Builder(mem)
		for k := range rows {
			// Scattered, so that neighbours are of different groups.
			v := (at + k) * 7919 % groups
			i.Append(int64(at + k))
			s.Append(fmt.Sprintf("key%09d", v))
			g.Append(int64(v))
		}
		columns := []arrow.Array{i.NewArray(), s.NewArray(), g.NewArray()}
		b := array.NewRecordBatch(schema, columns, int64(rows))
		for _, c := range columns {
			c.Release()
		}
		if at/batch%unit == 0 {
			units = append(units, nil)
		}
		units[len(units)-1] = append(units[len(units)-1], b)
	}
	return physicaltest.NewTable(schema, units...)
}

// TestManyGroups drives aggregation through its stages: one table, tables merged,
// parts, and stepping aside.
func TestManyGroups(t *testing.T) {
	t.Parallel()
	for _, groups := range []int{1000, 150_000, 400_000} {
		const rows = 420_000
		in := numbers(t, rows, groups)
		aggs := []expr.Term{fn("count").As("n"), fn("sum", col("i")).As("si"), fn("min", col("i")).As("mi")}
		for _, ordered := range []bool{false, true} {
			for _, parallel := range []int{1, 3, 4} {
				if parallel == 4 {
					aggs = append(aggs[:3], fn("median", col("i")).As("m")) // holds all values
				}
				p := aggregate(t, physicaltest.Scan(t, in), ordered, []expr.Term{col("s"), col("g")}, aggs)
				out, err := physical.Collect(context.Background(), p, &physical.ExecContext{Mem: columnar.NewPool(), Parallel: parallel})
				if err != nil {
					t.Fatal(err)
				}
				checkGroups(t, out, rows, groups, ordered || groups == 1000)
				for _, b := range out {
					b.Release()
				}
			}
		}
	}
}

// checkGroups compares the result of TestManyGroups with what it must be.
func checkGroups(t *testing.T, out []arrow.RecordBatch, rows, groups int, ordered bool) {
	t.Helper()
	seen, next := make([]bool, groups), int64(0)
	total, counted := int64(0), int64(0)
	for _, b := range out {
		g, n := b.Column(1).(*array.Int64), b.Column(2).(*array.Int64)
		s, sum, first := b.Column(0).(*array.String), b.Column(3).(*array.Int64), b.Column(4).(*array.Int64)
		for i := range int(b.NumRows()) {
			v := g.Value(i)
			if seen[v] || s.Value(i) != fmt.Sprintf("key%09d", v) {
				t.Fatalf("group %d (%s) came twice or is mixed up", v, s.Value(i))
			}
			seen[v] = true
			counted += n.Value(i)
			total += sum.Value(i)
			if ordered {
				if first.Value(i) < next {
					t.Fatalf("a group first seen at row %d came after one of row %d", first.Value(i), next)
				}
				next = first.Value(i)
			}
		}
	}
	if counted != int64(rows) || total != int64(rows)*int64(rows-1)/2 {
		t.Errorf("%d groups: %d rows with a sum of %d", groups, counted, total)
	}
}

func TestMemoryLimit(t *testing.T) {
	t.Parallel()
	in := numbers(t, 100_000, 100_000)
	scan := physicaltest.Scan(t, in)
	plans := map[string]physical.Plan{
		"aggregate": aggregate(t, scan, false, []expr.Term{col("s")}, []expr.Term{fn("count").As("n")}),
		"sort":      must[*physical.Sort](t)(physical.NewSort(scan, sortKeys(t, scan.Schema(), col("i")))),
		"join":      hashJoin2(t, scan, scan),
		"as-of":     asof{logical.InnerJoin, []string{"s"}, "i", ">="}.plan(t, scan, scan),
		"distinct":  must[*physical.Distinct](t)(physical.NewDistinct(scan, exprs(t, scan.Schema(), col("i")), false)),
	}
	for name, p := range plans {
		for _, parallel := range []int{1, 2} {
			budget := columnar.NewBudget(1 << 20)
			out, err := physical.Collect(context.Background(), p, &physical.ExecContext{Mem: columnar.NewPool(), Budget: budget, Parallel: parallel})
			if !errors.Is(err, columnar.ErrMemory) {
				t.Errorf("%s: %v and %d batches instead of a refusal", name, err, len(out))
			}
			if budget.Used() != 0 {
				t.Errorf("%s: %d bytes were not given back", name, budget.Used())
			}
		}
	}
}

func hashJoin2(t testing.TB, l, r physical.Plan) physical.Plan {
	return must[*physical.HashJoin](t)(physical.NewHashJoin(l, r, physical.JoinSpec{
		LeftKeys: exprs(t, l.Schema(), col("s")), RightKeys: exprs(t, r.Schema(), col("s")),
	}))
}

// panicking is a Reader with a bug.
type panicking struct{ columnar.Reader }

func (panicking) Next(context.Context) (arrow.RecordBatch, error) { panic("a bug of a reader") }

func TestPanicInGoroutine(t *testing.T) {
	t.Parallel()
	in := numbers(t, 100_000, 10)
	in.Wrap = func(unit int, r columnar.Reader) columnar.Reader {
		if unit == 1 {
			return panicking{r}
		}
		return r
	}
	_, err := physical.Collect(context.Background(), physicaltest.Scan(t, in), &physical.ExecContext{Mem: columnar.NewPool(), Parallel: 2})
	var p *columnar.PanicError
	if !errors.As(err, &p) || !strings.Contains(string(p.Stack), "panicking") {
		t.Errorf("a panic came out as %v", err)
	}
}

func TestVolatileIsRepeatable(t *testing.T) {
	t.Parallel()
	in := numbers(t, 200_000, 10)
	scan := physicaltest.Scan(t, in)
	p := must[*physical.Project](t)(physical.NewProject(scan, named(t, scan.Schema(), fn("random").As("r"), fn("random").As("q"))))
	sum := aggregate(t, p, false, nil, []expr.Term{fn("sum", col("r")).As("s"), fn("count", col("r")).Distinct().As("n")})
	var results []string
	for _, parallel := range []int{1, 2, 4} {
		out, err := physical.Collect(context.Background(), sum, &physical.ExecContext{Mem: columnar.NewPool(), Parallel: parallel, Seed: 5})
		if err != nil {
			t.Fatal(err)
		}
		results = append(results, fmt.Sprint(out[0].Column(0), out[0].Column(1)))
	}
	if results[0] != results[1] || results[0] != results[2] || !strings.Contains(results[0], "[200000]") {
		t.Errorf("random values differ: %v", results)
	}
}

func BenchmarkAggregate(b *testing.B) {
	for _, groups := range []int{100, 100_000, 2_000_000} {
		for _, key := range []string{"s", "g"} {
			b.Run(fmt.Sprintf("groups=%d/key=%s", groups, key), func(b *testing.B) {
				const rows = 2_000_000
				in := numbers(b, rows, groups)
				p := aggregate(b, physicaltest.Scan(b, in), false, []expr.Term{col(key)}, []expr.Term{fn("sum", col("i")).As("n")})
				benchmark(b, p, rows)
			})
		}
	}
}

func BenchmarkDictionaryKey(b *testing.B) {
	const rows = 2_000_000
	in := numbers(b, rows, 100)
	units, err := in.Units(context.Background(), scanAll)
	if err != nil {
		b.Fatal(err)
	}
	var encoded [][]arrow.RecordBatch
	mem := columnar.NewPool()
	for _, u := range units {
		r, err := u.Open(context.Background())
		if err != nil {
			b.Fatal(err)
		}
		batches, err := columnar.Drain(context.Background(), r)
		if err != nil {
			b.Fatal(err)
		}
		// One dictionary a unit, as a row group has.
		all := make([]arrow.Array, len(batches))
		for i, x := range batches {
			all[i] = x.Column(1)
		}
		whole, err := array.Concatenate(all, mem)
		if err != nil {
			b.Fatal(err)
		}
		codes := columnartest.Encode(mem, whole)
		var out []arrow.RecordBatch
		at := int64(0)
		for _, x := range batches {
			part := array.NewSlice(codes, at, at+x.NumRows())
			at += x.NumRows()
			fields := append([]arrow.Field(nil), in.Schema().Fields()...)
			fields[1].Type = part.DataType()
			out = append(out, array.NewRecordBatch(arrow.NewSchema(fields, nil), []arrow.Array{x.Column(0), part, x.Column(2)}, x.NumRows()))
		}
		encoded = append(encoded, out)
	}
	table := physicaltest.NewTable(in.Schema(), encoded...)
	p := aggregate(b, physicaltest.Scan(b, table), false, []expr.Term{col("s")}, []expr.Term{fn("sum", col("i")).As("n")})
	benchmark(b, p, rows)
}

func BenchmarkFilter(b *testing.B) {
	const rows = 2_000_000
	scan := physicaltest.Scan(b, numbers(b, rows, 100))
	f := must[*physical.Filter](b)(physical.NewFilter(scan, bind(b, scan.Schema(), col("g").Lt(lit(int64(50))))))
	benchmark(b, aggregate(b, f, false, nil, []expr.Term{fn("count").As("n"), fn("sum", col("i")).As("s")}), rows)
}

func BenchmarkJoin(b *testing.B) {
	const rows = 2_000_000
	probe, build := physicaltest.Scan(b, numbers(b, rows, 100_000)), physicaltest.Scan(b, numbers(b, 100_000, 100_000))
	j := must[*physical.HashJoin](b)(physical.NewHashJoin(probe, build, physical.JoinSpec{
		LeftKeys: exprs(b, probe.Schema(), col("g")), RightKeys: exprs(b, build.Schema(), col("g")),
	}))
	benchmark(b, j, rows)
}

func BenchmarkSort(b *testing.B) {
	const rows = 2_000_000
	scan := physicaltest.Scan(b, numbers(b, rows, 100_000))
	benchmark(b, must[*physical.Sort](b)(physical.NewSort(scan, sortKeys(b, scan.Schema(), col("g"), col("i")))), rows)
}

func BenchmarkTop(b *testing.B) {
	const rows = 2_000_000
	scan := physicaltest.Scan(b, numbers(b, rows, 100_000))
	benchmark(b, must[*physical.TopK](b)(physical.NewTopK(scan, sortKeys(b, scan.Schema(), col("g").Desc()), 100)), rows)
}

func benchmark(b *testing.B, p physical.Plan, rows int) {
	ec := &physical.ExecContext{Mem: columnar.NewPool(), Parallel: 2}
	b.ReportAllocs()
	for b.Loop() {
		out, err := physical.Collect(context.Background(), p, ec)
		if err != nil {
			b.Fatal(err)
		}
		for _, x := range out {
			x.Release()
		}
	}
	b.ReportMetric(float64(rows)*float64(b.N)/b.Elapsed().Seconds()/1e6, "Mrows/s")
}

// TestAllocations pins what a batch costs: nothing is allocated per row.
func TestAllocations(t *testing.T) {
	const rows, batches = 100 * columnar.DefaultBatchRows, 100
	scan := physicaltest.Scan(t, numbers(t, rows, 100))
	filter := must[*physical.Filter](t)(physical.NewFilter(scan, bind(t, scan.Schema(), col("g").Lt(lit(int64(50))))))
	p := aggregate(t, filter, false, []expr.Term{col("s")}, []expr.Term{fn("count").As("n"), fn("sum", col("i")).As("si")})
	ec := &physical.ExecContext{Mem: columnar.NewPool()}
	allocs := testing.AllocsPerRun(3, func() {
		out, err := physical.Collect(context.Background(), p, ec)
		if err != nil {
			t.Fatal(err)
		}
		for _, b := range out {
			b.Release()
		}
	})
	if perBatch := allocs / batches; perBatch > 120 {
		t.Errorf("%.0f allocations a batch", perBatch)
	}
}
