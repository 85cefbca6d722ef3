package kernel_test

import (
	"math"
	"math/rand/v2"
	"testing"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/memory"

	"github.com/tidemill/tidemill/columnar"
	"github.com/tidemill/tidemill/columnar/columnartest"
	"github.com/tidemill/tidemill/columnar/kernel"
)

// scattered scatters sources in a random order and compares every row, in slices.
func scattered(t *testing.T, mem memory.Allocator, seed uint64, sources ...arrow.Array) {
	t.Helper()
	rows := 0
	for _, s := range sources {
		rows += s.Len()
	}
	to := make([]uint32, rows)
	for i, p := range rand.New(rand.NewPCG(seed, 3)).Perm(rows) {
		to[i] = uint32(p)
	}
	n, err := kernel.Scatter(mem, sources, to)
	if err != nil {
		t.Fatal(err)
	}
	defer n.Release()
	middle := rows / 3
	low, high := n.Slice(mem, 0, middle), n.Slice(mem, middle, rows)
	defer low.Release()
	defer high.Release()
	at := 0
	for _, s := range sources {
		for i := range s.Len() {
			slice, row := low, int(to[at])
			if row >= middle {
				slice, row = high, row-middle
			}
			if got, want := text(slice, row), text(s, i); got != want {
				t.Fatalf("row %d is %s, want %s", at, got, want)
			}
			at++
		}
	}
	if !arrow.TypeEqual(low.DataType(), sources[0].DataType()) {
		t.Fatalf("%s became %s", sources[0].DataType(), low.DataType())
	}
}

func TestScatter(t *testing.T) {
	each(t, func(t *testing.T, mem memory.Allocator, dt arrow.DataType, seed uint64, o columnartest.RandomOptions) {
		first := columnartest.RandomColumn(t, mem, dt, seed, o)
		scattered(t, mem, seed, first)
		if o.Rows < 2 || o.Dictionary && o.Rows < 64 {
			return
		}
		tail := array.NewSlice(first, 1, int64(first.Len())) // of the same dictionary
		defer tail.Release()
		scattered(t, mem, seed, first, tail)
	})
}

// TestScatterSpans has columns at the ends of what a code of so many bytes reaches.
func TestScatterSpans(t *testing.T) {
	t.Parallel()
	mem := columnartest.Mem(t)
	for _, c := range []struct {
		values []any
		bytes  int64
	}{
		{[]any{int64(7), int64(7), int64(7)}, 3},
		{[]any{int64(-1), int64(254), nil}, 3 + 1},
		{[]any{int64(-1), int64(255), int64(0)}, 6},
		{[]any{int64(math.MinInt64), int64(math.MinInt64 + math.MaxUint16), int64(math.MinInt64)}, 6},
		{[]any{int64(0), int64(math.MaxUint16 + 1), int64(1)}, 12},
		{[]any{int64(math.MaxInt64), int64(math.MaxInt64 - math.MaxUint32), int64(math.MaxInt64)}, 12},
		{[]any{int64(0), int64(math.MaxUint32 + 1), int64(0)}, 24},
		{[]any{int64(math.MinInt64), int64(math.MaxInt64), int64(0)}, 24},
		{[]any{nil, nil, nil}, 3 + 1},
		{[]any{nil, int64(math.MaxInt64), nil}, 3 + 1},
	} {
		a, err := columnar.Column(mem, columnar.Int64, c.values...)
		if err != nil {
			t.Fatal(err)
		}
		defer a.Release()
		scattered(t, mem, 1, a)
		n, err := kernel.Scatter(mem, []arrow.Array{a}, []uint32{2, 0, 1})
		if err != nil {
			t.Fatal(err)
		}
		defer n.Release()
		if n.Bytes() != c.bytes {
			t.Errorf("%v takes %d bytes, want %d", c.values, n.Bytes(), c.bytes)
		}
	}
}
