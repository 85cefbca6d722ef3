package kernel_test

import (
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/memory"

	"github.com/tidemill/tidemill/columnar"
	"github.com/tidemill/tidemill/columnar/columnartest"
	"github.com/tidemill/tidemill/columnar/kernel"
)

const benchRows = columnar.DefaultBatchRows

// measure runs f over and over and reports rows a second.
func measure(b *testing.B, rows int, f func()) {
	b.Helper()
	b.ReportAllocs()
	for b.Loop() {
		f()
	}
	b.ReportMetric(float64(rows)*float64(b.N)/b.Elapsed().Seconds(), "rows/s")
}

// benchColumn is a dense column of small values without nulls, or with some.
func benchColumn(b *testing.B, pool *columnar.Pool, dt arrow.DataType, nulls bool) arrow.Array {
	b.Helper()
	r := rand.New(rand.NewPCG(1, 1))
	build := columnar.NewBuilder(pool, dt)
	defer build.Release()
	for range benchRows {
		var v any
		n := r.IntN(1000) + 1
		switch {
		case nulls && n%8 == 0:
		case dt.ID() == arrow.STRING:
			v = fmt.Sprintf("value number %d", n)
		case dt.ID() == arrow.BOOL:
			v = n%2 == 0
		default:
			v = n
		}
		if err := build.Append(v); err != nil {
			b.Fatal(err)
		}
	}
	a := build.NewArray()
	b.Cleanup(a.Release)
	return a
}

func BenchmarkArith(b *testing.B) {
	pool := columnar.NewPool()
	for _, name := range []string{"integer", "bigint", "double", "decimal(18,2)"} {
		dt, _ := columnartest.Type(name)
		x := columnar.ColumnDatum(benchColumn(b, pool, dt, false))
		y := columnar.ColumnDatum(benchColumn(b, pool, dt, true))
		one, err := columnar.Constant(pool, dt, 3)
		if err != nil {
			b.Fatal(err)
		}
		b.Cleanup(one.Release)
		for op, sign := range map[kernel.ArithOp]string{kernel.Add: "add", kernel.Multiply: "multiply", kernel.Modulo: "modulo"} {
			for kind, right := range map[string]columnar.Datum{"column": y, "constant": one} {
				b.Run(name+"/"+sign+"/"+kind, func(b *testing.B) {
					measure(b, benchRows, func() {
						d, err := kernel.Arith(pool, op, x, right, benchRows, kernel.Mode{}, dt)
						if err != nil {
							b.Fatal(err)
						}
						d.Release()
					})
				})
			}
		}
	}
}

func BenchmarkCompare(b *testing.B) {
	pool := columnar.NewPool()
	for _, name := range []string{"integer", "bigint", "double", "decimal(18,2)", "varchar"} {
		dt, _ := columnartest.Type(name)
		x := columnar.ColumnDatum(benchColumn(b, pool, dt, false))
		one := array.NewSlice(x.Array(), 5, 6)
		b.Cleanup(one.Release)
		for op, sign := range map[kernel.CompareOp]string{kernel.Equal: "equal", kernel.Less: "less"} {
			b.Run(name+"/"+sign, func(b *testing.B) {
				measure(b, benchRows, func() {
					d := kernel.Compare(pool, op, x, columnar.ConstantDatum(one), benchRows)
					d.Release()
				})
			})
		}
	}
}

func BenchmarkFilter(b *testing.B) {
	pool := columnar.NewPool()
	mask := benchColumn(b, pool, columnar.Boolean, false)
	rows := kernel.SelectTrue(nil, mask)
	b.Run("select", func(b *testing.B) {
		measure(b, benchRows, func() { rows = kernel.SelectTrue(rows[:0], mask) })
	})
	for _, name := range []string{"bigint", "double", "varchar", "boolean"} {
		for _, nulls := range []bool{false, true} {
			dt, _ := columnartest.Type(name)
			x := benchColumn(b, pool, dt, nulls)
			b.Run(fmt.Sprintf("%s/nulls=%v", name, nulls), func(b *testing.B) {
				measure(b, benchRows, func() { kernel.Filter(pool, x, rows).Release() })
			})
		}
	}
}

func BenchmarkTake(b *testing.B) {
	pool := columnar.NewPool()
	r := rand.New(rand.NewPCG(1, 2))
	rows := make([]int32, benchRows)
	for i := range rows {
		rows[i] = int32(r.IntN(benchRows))
	}
	for _, name := range []string{"bigint", "varchar"} {
		dt, _ := columnartest.Type(name)
		x := benchColumn(b, pool, dt, false)
		b.Run(name, func(b *testing.B) {
			measure(b, benchRows, func() {
				t, err := kernel.Take(pool, x, rows)
				if err != nil {
					b.Fatal(err)
				}
				t.Release()
			})
		})
	}
}

func BenchmarkHash(b *testing.B) {
	pool := columnar.NewPool()
	dst := make([]uint64, benchRows)
	for _, name := range []string{"bigint", "double", "varchar", "decimal(18,2)"} {
		dt, _ := columnartest.Type(name)
		x := []arrow.Array{benchColumn(b, pool, dt, false)}
		b.Run(name, func(b *testing.B) {
			measure(b, benchRows, func() { kernel.Hash(dst, x, 1) })
		})
	}
}

func BenchmarkSort(b *testing.B) {
	pool := columnar.NewPool()
	for _, name := range []string{"bigint", "double", "varchar"} {
		dt, _ := columnartest.Type(name)
		var keys []arrow.Array
		for range 8 {
			keys = append(keys, benchColumn(b, pool, dt, false))
		}
		b.Run(name, func(b *testing.B) {
			measure(b, 8*benchRows, func() { kernel.Sort([]kernel.SortKey{{Columns: keys}}) })
		})
		b.Run(name+"/top10", func(b *testing.B) {
			measure(b, 8*benchRows, func() { kernel.Top([]kernel.SortKey{{Columns: keys}}, 10) })
		})
	}
}

func BenchmarkCast(b *testing.B) {
	pool := columnar.NewPool()
	ints := benchColumn(b, pool, columnar.Int64, false)
	texts, err := kernel.Cast(pool, ints, columnar.String, kernel.CastOptions{})
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(texts.Release)
	for _, c := range []struct {
		name string
		in   arrow.Array
		to   arrow.DataType
	}{{"bigint-double", ints, columnar.Float64}, {"bigint-integer", ints, columnar.Int32}, {"bigint-decimal", ints, columnar.Decimal(18, 2)}, {"bigint-varchar", ints, columnar.String}, {"varchar-bigint", texts, columnar.Int64}, {"varchar-double", texts, columnar.Float64}} {
		b.Run(c.name, func(b *testing.B) {
			measure(b, benchRows, func() {
				a, err := kernel.Cast(pool, c.in, c.to, kernel.CastOptions{})
				if err != nil {
					b.Fatal(err)
				}
				a.Release()
			})
		})
	}
}

func BenchmarkText(b *testing.B) {
	pool := columnar.NewPool()
	x := benchColumn(b, pool, columnar.String, false)
	like, err := kernel.CompileLike("%number 9%", kernel.NoEscape, false)
	if err != nil {
		b.Fatal(err)
	}
	b.Run("like", func(b *testing.B) {
		measure(b, benchRows, func() { kernel.Like(pool, columnar.ColumnDatum(x), like, benchRows).Release() })
	})
	b.Run("upper", func(b *testing.B) {
		measure(b, benchRows, func() {
			a, err := kernel.Upper(pool, x)
			if err != nil {
				b.Fatal(err)
			}
			a.Release()
		})
	})
}

// truncated is kernel.TruncateTime of what fails for no row.
func truncated(t testing.TB, mem memory.Allocator, a arrow.Array, unit kernel.Part, loc *time.Location) arrow.Array {
	t.Helper()
	out, err := kernel.TruncateTime(mem, a, unit, loc, kernel.Mode{})
	if err != nil {
		t.Fatal(err)
	}
	return out
}

func BenchmarkTime(b *testing.B) {
	pool := columnar.NewPool()
	x := benchColumn(b, pool, columnar.Timestamp, false)
	b.Run("truncate/hour", func(b *testing.B) {
		measure(b, benchRows, func() { truncated(b, pool, x, kernel.Hour, nil).Release() })
	})
	b.Run("truncate/month", func(b *testing.B) {
		measure(b, benchRows, func() { truncated(b, pool, x, kernel.Month, nil).Release() })
	})
	b.Run("extract/year", func(b *testing.B) {
		measure(b, benchRows, func() { kernel.ExtractTime(pool, x, kernel.Year, nil).Release() })
	})
	b.Run("window", func(b *testing.B) {
		measure(b, benchRows, func() {
			a, err := kernel.WindowStarts(pool, columnar.ColumnDatum(x), benchRows, 10_000_000, 0, 0, kernel.Mode{})
			if err != nil {
				b.Fatal(err)
			}
			a.Release()
		})
	})
}

func BenchmarkLogic(b *testing.B) {
	pool := columnar.NewPool()
	x, y := columnar.ColumnDatum(benchColumn(b, pool, columnar.Boolean, true)), columnar.ColumnDatum(benchColumn(b, pool, columnar.Boolean, true))
	b.Run("and", func(b *testing.B) {
		measure(b, benchRows, func() {
			d := kernel.And(pool, x, y, benchRows)
			d.Release()
		})
	})
}

func BenchmarkScatter(b *testing.B) {
	pool := columnar.NewPool()
	to := make([]uint32, benchRows)
	for i, p := range rand.New(rand.NewPCG(1, 2)).Perm(benchRows) {
		to[i] = uint32(p)
	}
	for _, name := range []string{"bigint", "double", "varchar"} {
		dt, _ := columnartest.Type(name)
		source := []arrow.Array{benchColumn(b, pool, dt, false)}
		b.Run(name, func(b *testing.B) {
			measure(b, benchRows, func() {
				n, err := kernel.Scatter(pool, source, to)
				if err != nil {
					b.Fatal(err)
				}
				n.Slice(pool, 0, benchRows).Release()
				n.Release()
			})
		})
	}
}
