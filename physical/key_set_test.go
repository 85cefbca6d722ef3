package physical

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/memory"

	"github.com/tidemill/tidemill/columnar"
)

// TestKeySet checks that no row is left out whose value is in the set, that nulls are, and
// that a set of close values leaves out every other row.
func TestKeySet(t *testing.T) {
	t.Parallel()
	r := rand.New(rand.NewPCG(1, 2))
	spread := func(n int, span int64) []int64 {
		out := make([]int64, n)
		for i := range out {
			out[i] = r.Int64N(span) - span/2
		}
		return out
	}
	cases := map[string]struct {
		types  []arrow.DataType
		values []int64
		exact  bool
	}{
		"none":         {words(8), nil, true},
		"one":          {words(8), []int64{-7}, true},
		"bytes":        {words(1), []int64{-128, 127, 3}, true},
		"shorts":       {words(2), spread(50, 1<<16), true},
		"ints":         {words(4), spread(1000, 1<<20), true},
		"dates":        {[]arrow.DataType{columnar.Date}, spread(10, 20000), true},
		"times":        {[]arrow.DataType{columnar.Timestamp}, spread(1000, math.MaxInt64), false},
		"extremes":     {words(8), []int64{math.MinInt64, math.MaxInt64, 0, -1}, false},
		"far apart":    {words(8), spread(100_000, math.MaxInt64), false},
		"many, close":  {words(8), spread(300_000, 16<<20), true},
		"equal values": {words(8), slices.Repeat([]int64{5}, 9000), true},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			for _, dt := range c.types {
				checkKeySet(t, dt, c.values, c.exact)
			}
		})
	}
}

// words are the types of integers of at least so many bytes.
func words(bytes int) []arrow.DataType {
	all := []arrow.DataType{columnar.Int8, columnar.Int16, columnar.Int32, columnar.Int64}
	return slices.DeleteFunc(all, func(dt arrow.DataType) bool { return dt.(arrow.FixedWidthDataType).Bytes() < bytes })
}

func checkKeySet(t *testing.T, dt arrow.DataType, values []int64, exact bool) {
	t.Helper()
	ec := &ExecContext{Mem: memory.DefaultAllocator, Budget: columnar.NewBudget(1 << 30)}
	set := &keySet{account: ec.account(nil, "join")}
	for part := range slices.Chunk(values, 1000) {
		set.add(wordColumn(t, dt, part))
	}
	if set.ready.Load() != nil {
		t.Fatal("a set is used before it is complete")
	}
	set.complete()
	defer set.release()
	in := map[int64]bool{}
	for _, v := range values {
		in[v] = true
	}
	r := rand.New(rand.NewPCG(3, 4))
	limit := int64(1) << (8*dt.(arrow.FixedWidthDataType).Bytes() - 1)
	probe := slices.Clone(values)
	for range 20_000 {
		v := r.Int64()
		if limit > 0 {
			v = r.Int64N(2*limit) - limit
		}
		probe = append(probe, v)
	}
	a := wordColumn(t, dt, probe)
	for _, from := range []int64{0, 13} {
		s := array.NewSlice(a, min(from, int64(a.Len())), int64(a.Len()))
		some := make([]int32, 0, s.Len())
		for i := range int32(s.Len()) {
			if i%3 == 0 {
				some = append(some, i)
			}
		}
		for _, rows := range [][]int32{nil, some} {
			kept := set.ready.Load().keep(s, rows, nil)
			checkKept(t, s, rows, kept, in, exact)
			if rows != nil {
				if inPlace := set.ready.Load().keep(s, rows, rows[:0]); !slices.Equal(inPlace, kept) {
					t.Error("another result in place")
				}
			}
		}
	}
}

func checkKept(t *testing.T, a arrow.Array, rows, kept []int32, in map[int64]bool, exact bool) {
	t.Helper()
	if !slices.IsSorted(kept) {
		t.Error("the rows kept do not ascend")
	}
	if rows == nil {
		for i := range int32(a.Len()) {
			rows = append(rows, i)
		}
	}
	wrong := 0
	for _, row := range rows {
		_, got := slices.BinarySearch(kept, row)
		want := a.IsValid(int(row)) && in[wordAt(a, int(row))]
		switch {
		case want && !got:
			t.Fatalf("row %d is left out", row)
		case got && !want:
			wrong++
		case got && a.IsNull(int(row)):
			t.Fatalf("row %d is null", row)
		}
	}
	if exact && wrong > 0 || wrong > len(rows)/10 {
		t.Errorf("%d of %d rows are kept for nothing", wrong, len(rows))
	}
}

// wordColumn is values, a null behind every eighth.
func wordColumn(t *testing.T, dt arrow.DataType, values []int64) arrow.Array {
	t.Helper()
	list := make([]any, 0, len(values))
	for i, v := range values {
		list = append(list, fromWord(dt, v))
		if i%8 == 7 {
			list = append(list, nil)
		}
	}
	a, err := columnar.Column(memory.DefaultAllocator, dt, list...)
	if err != nil {
		t.Fatal(err)
	}
	return a
}

func fromWord(dt arrow.DataType, v int64) any {
	switch dt.ID() {
	case arrow.INT8:
		return int8(v)
	case arrow.INT16:
		return int16(v)
	case arrow.INT32:
		return int32(v)
	case arrow.DATE32:
		return arrow.Date32(v)
	case arrow.TIMESTAMP:
		return arrow.Timestamp(v)
	}
	return v
}

func wordAt(a arrow.Array, i int) int64 {
	switch x := a.(type) {
	case *array.Int8:
		return int64(x.Value(i))
	case *array.Int16:
		return int64(x.Value(i))
	case *array.Int32:
		return int64(x.Value(i))
	case *array.Date32:
		return int64(x.Value(i))
	case *array.Timestamp:
		return int64(x.Value(i))
	case *array.Int64:
		return x.Value(i)
	}
	panic(fmt.Sprint("no word: ", a.DataType()))
}

// TestKeySetRefused checks that a set for which there is no memory keeps every row.
func TestKeySetRefused(t *testing.T) {
	t.Parallel()
	ec := &ExecContext{Mem: memory.DefaultAllocator, Budget: columnar.NewBudget(100)}
	set := &keySet{account: ec.account(nil, "join")}
	set.add(wordColumn(t, columnar.Int64, []int64{1, 2, 3}))
	set.complete()
	if set.ready.Load() != nil {
		t.Error("a set without memory is used")
	}
	set.release()
}
