package function

import (
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/apache/arrow-go/v18/arrow/array"

	"github.com/tidemill/tidemill/columnar"
	"github.com/tidemill/tidemill/columnar/columnartest"
)

// TestQuantileLists: groups of very different sizes, some of them cleared and filled
// again, in lists over several segments; then all absorbed by another accumulator.
func TestQuantileLists(t *testing.T) {
	t.Parallel()
	mem := columnartest.Mem(t)
	r := rand.New(rand.NewPCG(3, 4))
	const groups = 40
	a, b := newQuantile(mem, nil), newQuantile(mem, nil)
	a.Resize(groups)
	b.Resize(2 * groups)
	want := make([][]float64, groups)
	for round := range 3 {
		for range 10 {
			fillQuantile(t, a, r, want)
		}
		if round == 1 {
			a.Clear([]uint32{0, 7, 39})
			want[0], want[7], want[39] = nil, nil, nil
		}
	}
	if len(a.segments) < 3 {
		t.Fatalf("%d segments", len(a.segments))
	}
	all := rangeIDs(0, groups)
	checkQuantile(t, a, all, want)
	if err := b.Absorb(rangeIDs(groups, groups), a, all); err != nil {
		t.Fatal(err)
	}
	checkQuantile(t, b, rangeIDs(groups, groups), want)
	state, err := a.State(all)
	if err != nil {
		t.Fatal(err)
	}
	defer releaseAll(state)
	if err := b.Load(all, state); err != nil {
		t.Fatal(err)
	}
	checkQuantile(t, b, all, want)
}

// fillQuantile gives low groups many values, high ones few.
func fillQuantile(t *testing.T, a *quantile, r *rand.Rand, want [][]float64) {
	t.Helper()
	build := array.NewFloat64Builder(a.mem)
	defer build.Release()
	ids := make([]uint32, 8192)
	for i := range ids {
		ids[i] = uint32(min(r.IntN(len(want)), r.IntN(len(want)), r.IntN(len(want))))
		v := r.NormFloat64()
		build.Append(v)
		want[ids[i]] = append(want[ids[i]], v)
	}
	values := build.NewArray()
	defer values.Release()
	if err := a.Update(ids, []columnar.Datum{columnar.ColumnDatum(values)}); err != nil {
		t.Fatal(err)
	}
}

func checkQuantile(t *testing.T, a *quantile, groups []uint32, want [][]float64) {
	t.Helper()
	got, err := a.Result(groups)
	if err != nil {
		t.Fatal(err)
	}
	defer got.Release()
	for i, v := range want {
		v = slices.Sorted(slices.Values(v))
		if len(v) == 0 != got.IsNull(i) || len(v) > 0 && got.(*array.Float64).Value(i) != interpolated(v, 0.5) {
			t.Errorf("group %d of %d values: %v", i, len(v), got.ValueStr(i))
		}
	}
}

// BenchmarkQuantile collects and finishes 1,000 values a group.
func BenchmarkQuantile(b *testing.B) {
	const groups, rows = 1000, 1 << 20
	mem := columnar.NewPool()
	values := columnartest.RandomColumn(b, mem, columnar.Float64, 1, columnartest.RandomOptions{Rows: rows, Nulls: -1})
	defer values.Release()
	r := rand.New(rand.NewPCG(1, 1))
	ids := make([]uint32, rows)
	for i := range ids {
		ids[i] = uint32(r.IntN(groups))
	}
	a, all := newQuantile(mem, nil), rangeIDs(0, groups)
	a.Resize(groups)
	for b.Loop() {
		if err := a.Update(ids, []columnar.Datum{columnar.ColumnDatum(values)}); err != nil {
			b.Fatal(err)
		}
		m, err := a.Result(all)
		if err != nil {
			b.Fatal(err)
		}
		m.Release()
		a.Clear(all)
	}
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/rows, "ns/row")
}
