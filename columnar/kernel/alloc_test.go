package kernel_test

import (
	"testing"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"

	"github.com/tidemill/tidemill/columnar"
	"github.com/tidemill/tidemill/columnar/columnartest"
	"github.com/tidemill/tidemill/columnar/kernel"
)

// TestKernelAllocations pins what a batch costs each kernel once the pool is warm: the
// heads of the arrays it makes, and nothing per row.
func TestKernelAllocations(t *testing.T) {
	pool := columnar.NewPool()
	column := func(name string, nulls float64) arrow.Array {
		dt, _ := columnartest.Type(name)
		a := columnartest.RandomColumn(t, pool, dt, 1, columnartest.RandomOptions{Rows: 4096, Nulls: nulls})
		t.Cleanup(a.Release)
		return a
	}
	constant := func(a arrow.Array) columnar.Datum {
		one := array.NewSlice(a, 5, 6)
		t.Cleanup(one.Release)
		return columnar.ConstantDatum(one)
	}
	ints, reals, texts, mask := column("integer", -1), column("double", -1), column("varchar", -1), column("boolean", -1)
	nulls := column("integer", 0.2)
	oneInt, oneText := constant(ints), constant(texts)
	rows := kernel.SelectTrue(make([]int32, 0, 4096), mask)
	places := make([]uint32, 4096)
	for i := range places {
		places[i] = uint32(4095 - i)
	}
	hashes, words := make([]uint64, 4096), make([]uint64, 0, 4096)
	var bits columnar.Bitmap
	datum := columnar.ColumnDatum
	arrays := func(a arrow.Array, err error) {
		if err != nil {
			t.Fatal(err)
		}
		a.Release()
	}
	for _, c := range []struct {
		name string
		most float64
		run  func()
	}{
		{"compare integer", 4, func() { kernel.Compare(pool, kernel.Less, datum(ints), oneInt, 4096).Release() }},
		{"compare double", 4, func() { kernel.Compare(pool, kernel.Equal, datum(reals), datum(reals), 4096).Release() }},
		{"compare varchar", 4, func() { kernel.Compare(pool, kernel.Equal, datum(texts), oneText, 4096).Release() }},
		{"compare nulls", 5, func() { kernel.Compare(pool, kernel.Less, datum(nulls), datum(ints), 4096).Release() }},
		{"multiply", 4, func() {
			d, err := kernel.Arith(pool, kernel.Multiply, datum(reals), datum(reals), 4096, kernel.Mode{}, columnar.Float64)
			if err != nil {
				t.Fatal(err)
			}
			d.Release()
		}},
		{"cast", 4, func() { arrays(kernel.Cast(pool, ints, columnar.Float64, kernel.CastOptions{})) }},
		{"filter", 4, func() { kernel.Filter(pool, ints, rows).Release() }},
		{"filter nulls", 5, func() { kernel.Filter(pool, nulls, rows).Release() }},
		{"filter varchar", 5, func() { kernel.Filter(pool, texts, rows).Release() }},
		{"take varchar", 5, func() { arrays(kernel.Take(pool, texts, rows)) }},
		{"scatter", 8, func() {
			n, err := kernel.Scatter(pool, []arrow.Array{ints}, places)
			if err != nil {
				t.Fatal(err)
			}
			n.Slice(pool, 0, 4096).Release()
			n.Release()
		}},
		{"select", 0, func() { rows = kernel.SelectTrue(rows[:0], mask) }},
		{"mark", 0, func() { kernel.MarkTrue(&bits, datum(mask), 4096) }},
		{"hash", 0, func() { kernel.Hash(hashes, []arrow.Array{ints, reals, texts}, 1) }},
		{"order words", 0, func() { words, _ = kernel.OrderWords(words[:0], reals) }},
		{"sort", 24, func() { kernel.Sort([]kernel.SortKey{{Columns: []arrow.Array{reals}}}) }},
	} {
		if n := testing.AllocsPerRun(20, c.run); n > c.most {
			t.Errorf("%s: %v allocations, at most %v", c.name, n, c.most)
		}
	}
}
