package physical_test

import (
	"context"
	"testing"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"

	"github.com/tidemill/tidemill/columnar"
	"github.com/tidemill/tidemill/columnar/columnartest"
	"github.com/tidemill/tidemill/logical/expr"
	"github.com/tidemill/tidemill/physical"
	"github.com/tidemill/tidemill/physical/physicaltest"
)

// manyRows is 200,000 rows of 150,000 keys, one a null, beside random columns: plain text
// in one unit, dictionaries that change from batch to batch in the others.
func manyRows(t *testing.T, mem *columnar.Pool) *physicaltest.Table {
	schema := columnartest.Schema(t, "k:bigint  s:varchar  x:bigint  y:integer  f:double  t:varchar  b:boolean")
	var units [][]arrow.RecordBatch
	row := 0
	for u := range 4 {
		var unit []arrow.RecordBatch
		for range 5 {
			const rows = 10_000
			random := columnartest.Random(t, mem, schema, uint64(row+1), columnartest.RandomOptions{Rows: rows, Nulls: 0.1, Dictionary: u > 0})
			keys := array.NewInt64Builder(mem)
			for range rows {
				if k := row * 7919 % 150_000; k == 0 {
					keys.AppendNull()
				} else {
					keys.Append(int64(k) << 20)
				}
				row++
			}
			columns := append([]arrow.Array{keys.NewArray()}, random.Columns()[1:]...)
			b := array.NewRecordBatch(random.Schema(), columns, rows)
			columns[0].Release()
			t.Cleanup(b.Release)
			unit = append(unit, b)
		}
		units = append(units, unit)
	}
	return physicaltest.NewTable(schema, units...)
}

// TestManyRows compares an aggregation that steps aside and merges rows by parts with one
// that has all rows in one table.
func TestManyRows(t *testing.T) {
	t.Parallel()
	mem := columnar.NewPool()
	in := physical.NewNumber(physicaltest.Scan(t, manyRows(t, mem)))
	s := in.Schema()
	keys := named(t, s, col("k"), col("s"))
	aggs := named(t, s,
		fn("count").As("n"), fn("count", col("x")).Filter(col("b")).As("nf"), fn("sum", col("y")).As("sy"), fn("avg", col("y")).As("ay"),
		fn("sum", col("f")).As("sf"), fn("max", col("t")).As("mt"), fn("min", col("x")).Filter(lit(true)).As("mx"), fn("count", lit(1)).As("one"),
		fn("first", col("t")).As("ft"), fn("last", col("y")).As("ly"), fn("percentile", col("f"), lit(0.25)).As("p"))
	for _, few := range [][]expr.Named{aggs, aggs[:3]} {
		spec, err := physical.NewAggregateSpec(s, keys, few, s.NumFields()-1)
		if err != nil {
			t.Fatal(err)
		}
		collect := func(p physical.Plan) []arrow.RecordBatch {
			t.Helper()
			out, err := physical.Collect(context.Background(), p, &physical.ExecContext{Mem: mem})
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() {
				for _, b := range out {
					b.Release()
				}
			})
			return out
		}
		want := collect(physical.NewSingleAggregate(in, spec, true))
		ordered := len(few) > 3
		got := collect(physical.NewHashAggregate(physical.NewPartialAggregate(in, spec), spec, ordered))
		columnartest.Equal(t, want, got, columnartest.DiffOptions{Ordered: ordered})
	}
}

// BenchmarkScatteredRows is an aggregation of about as many groups as rows.
func BenchmarkScatteredRows(b *testing.B) {
	const rows = 1 << 20
	in := numbers(b, rows, rows)
	p := aggregate(b, physicaltest.Scan(b, in), false, []expr.Term{col("g")}, []expr.Term{fn("count").As("n"), fn("sum", col("i")).As("s")})
	ec := &physical.ExecContext{Mem: columnar.NewPool(), Parallel: 2, Budget: columnar.NewBudget(0)}
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
	b.ReportMetric(rows*float64(b.N)/b.Elapsed().Seconds(), "rows/s")
	b.ReportMetric(float64(ec.Budget.Peak())/rows, "peak-B/row")
}
