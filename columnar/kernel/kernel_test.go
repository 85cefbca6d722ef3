package kernel_test

import (
	"cmp"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/decimal128"
	"github.com/apache/arrow-go/v18/arrow/memory"

	"github.com/tidemill/tidemill/columnar"
	"github.com/tidemill/tidemill/columnar/columnartest"
	"github.com/tidemill/tidemill/columnar/kernel"
)

// typeNames are the types every kernel that takes any type is tested with.
var typeNames = []string{
	"boolean", "tinyint", "smallint", "integer", "bigint", "real", "double", "varchar", "binary", "date", "time",
	"timestamp", "interval", "decimal(9,2)", "decimal(38,10)", "array<bigint>", "array<varchar>", "struct<x bigint, y varchar>",
	"map<varchar, double>", "array<struct<z array<varchar>, w boolean>>", "null",
}

var lengths = []int{0, 1, 63, 64, 65, 200}

// each runs f for every type, length and share of nulls, with random sliced columns.
func each(t *testing.T, f func(t *testing.T, mem memory.Allocator, dt arrow.DataType, seed uint64, o columnartest.RandomOptions)) {
	t.Parallel()
	for _, name := range typeNames {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			mem := columnartest.Mem(t)
			dt, err := columnartest.Type(name)
			if err != nil {
				t.Fatal(err)
			}
			seed := uint64(1)
			for _, n := range lengths {
				for _, nulls := range []float64{-1, 0, 1} {
					for _, dictionary := range []bool{false, true} {
						if dictionary && dt.ID() != arrow.STRING && dt.ID() != arrow.BINARY {
							continue
						}
						seed++
						f(t, mem, dt, seed, columnartest.RandomOptions{Rows: n, Nulls: nulls, Dictionary: dictionary})
					}
				}
			}
		})
	}
}

func text(a arrow.Array, i int) string { return string(columnar.AppendCanonical(nil, a, i, nil)) }

func TestTake(t *testing.T) {
	each(t, func(t *testing.T, mem memory.Allocator, dt arrow.DataType, seed uint64, o columnartest.RandomOptions) {
		a := columnartest.RandomColumn(t, mem, dt, seed, o)
		r := rand.New(rand.NewPCG(seed, 1))
		for _, negative := range []bool{false, true} {
			var rows []int32
			for range o.Rows + 3 {
				if o.Rows > 0 {
					rows = append(rows, int32(r.IntN(o.Rows)))
				}
				if negative && r.IntN(3) == 0 {
					rows = append(rows, -1)
				}
			}
			got, err := kernel.Take(mem, a, rows)
			if err != nil {
				t.Fatal(err)
			}
			defer got.Release()
			if got.Len() != len(rows) || !arrow.TypeEqual(got.DataType(), a.DataType()) {
				t.Fatalf("%d rows of %s", got.Len(), got.DataType())
			}
			for i, row := range rows {
				want := "NULL"
				if row >= 0 {
					want = text(a, int(row))
				}
				if text(got, i) != want {
					t.Fatalf("row %d: want %s, got %s", i, want, text(got, i))
				}
			}
		}
	})
}

func TestFilter(t *testing.T) {
	each(t, func(t *testing.T, mem memory.Allocator, dt arrow.DataType, seed uint64, o columnartest.RandomOptions) {
		a := columnartest.RandomColumn(t, mem, dt, seed, o)
		for _, nulls := range []float64{-1, 0, 1} {
			mask := columnartest.RandomColumn(t, mem, columnar.Boolean, seed, columnartest.RandomOptions{Rows: o.Rows, Nulls: nulls}).(*array.Boolean)
			rows := kernel.SelectTrue([]int32{7}, mask)[1:]
			got := kernel.Filter(mem, a, rows)
			defer got.Release()
			k := 0
			for i := range o.Rows {
				if mask.IsNull(i) || !mask.Value(i) {
					continue
				}
				if k >= len(rows) || int(rows[k]) != i || text(got, k) != text(a, i) {
					t.Fatalf("row %d is not selected row %d", i, k)
				}
				k++
			}
			if k != len(rows) || got.Len() != k {
				t.Fatalf("%d selected, want %d", len(rows), k)
			}
			var marks columnar.Bitmap
			kernel.MarkTrue(&marks, columnar.ColumnDatum(mask), o.Rows)
			if !slices.Equal(marks.Indices(nil), rows) && k > 0 {
				t.Fatalf("MarkTrue differs from SelectTrue")
			}
		}
	})
}

func TestConcatGather(t *testing.T) {
	each(t, func(t *testing.T, mem memory.Allocator, dt arrow.DataType, seed uint64, o columnartest.RandomOptions) {
		plain := o
		plain.Dictionary = false
		parts := []arrow.Array{
			columnartest.RandomColumn(t, mem, dt, seed, o),
			columnartest.RandomColumn(t, mem, dt, seed+1000, plain),
			columnartest.RandomColumn(t, mem, dt, seed+2000, o),
		}
		got, err := kernel.Concat(mem, parts)
		if err != nil {
			t.Fatal(err)
		}
		defer got.Release()
		k := 0
		var refs []kernel.Ref
		for b, p := range parts {
			for i := range p.Len() {
				if text(got, k) != text(p, i) {
					t.Fatalf("row %d: %s, want %s", k, text(got, k), text(p, i))
				}
				k++
				refs = append(refs, kernel.MakeRef(b, i))
			}
		}
		refs = append(refs, kernel.NoRow)
		rand.New(rand.NewPCG(seed, 2)).Shuffle(len(refs), func(i, j int) { refs[i], refs[j] = refs[j], refs[i] })
		for _, sources := range [][]arrow.Array{parts, parts[:1]} {
			var these []kernel.Ref
			for _, r := range refs {
				if r == kernel.NoRow || r.Batch() < len(sources) {
					these = append(these, r)
				}
			}
			gathered, err := kernel.Gather(mem, sources, these)
			if err != nil {
				t.Fatal(err)
			}
			defer gathered.Release()
			for i, r := range these {
				want := "NULL"
				if r != kernel.NoRow {
					want = text(sources[r.Batch()], r.Row())
				}
				if text(gathered, i) != want {
					t.Fatalf("gathered %d: %s, want %s", i, text(gathered, i), want)
				}
			}
		}
	})
}

func TestConcatShared(t *testing.T) {
	t.Parallel()
	mem := columnartest.Mem(t)
	a := columnartest.RandomColumn(t, mem, columnar.String, 5, columnartest.RandomOptions{Rows: 50, Dictionary: true})
	left, right := array.NewSlice(a, 0, 20), array.NewSlice(a, 20, 50)
	defer left.Release()
	defer right.Release()
	got, err := kernel.Concat(mem, []arrow.Array{left, right})
	if err != nil {
		t.Fatal(err)
	}
	defer got.Release()
	if got.DataType().ID() != arrow.DICTIONARY {
		t.Errorf("a shared dictionary is lost")
	}
	columnartest.EqualArrays(t, a, got)
}

// refCompare is the order of the engine on Go values, null lowest.
func refCompare(a, b any) int {
	if a == nil || b == nil {
		switch {
		case a == b:
			return 0
		case a == nil:
			return -1
		}
		return 1
	}
	switch x := a.(type) {
	case bool:
		return cmp.Compare(map[bool]int{true: 1}[x], map[bool]int{true: 1}[b.(bool)])
	case int8:
		return cmp.Compare(x, b.(int8))
	case int16:
		return cmp.Compare(x, b.(int16))
	case int32:
		return cmp.Compare(x, b.(int32))
	case int64:
		return cmp.Compare(x, b.(int64))
	case float32:
		return refCompare(float64(x), float64(b.(float32)))
	case float64:
		return -cmp.Compare(-x, -b.(float64))*nanFree(x, b.(float64)) + nanOrder(x, b.(float64))
	case string:
		return cmp.Compare(x, b.(string))
	case []byte:
		return cmp.Compare(string(x), string(b.([]byte)))
	case arrow.Date32:
		return cmp.Compare(x, b.(arrow.Date32))
	case arrow.Time64:
		return cmp.Compare(x, b.(arrow.Time64))
	case arrow.Timestamp:
		return cmp.Compare(x, b.(arrow.Timestamp))
	case decimal128.Num:
		return x.BigInt().Cmp(b.(decimal128.Num).BigInt())
	case arrow.MonthDayNanoInterval:
		y := b.(arrow.MonthDayNanoInterval)
		const day = 86400e9
		return cmp.Compare((int64(x.Months)*30+int64(x.Days))*day+x.Nanoseconds, (int64(y.Months)*30+int64(y.Days))*day+y.Nanoseconds)
	case []any:
		return slices.CompareFunc(x, b.([]any), refCompare)
	case [][2]any: // entries have no order
		entry := func(p, q [2]any) int { return slices.CompareFunc(p[:], q[:], refCompare) }
		sorted := func(m [][2]any) [][2]any { return slices.SortedFunc(slices.Values(m), entry) }
		return slices.CompareFunc(sorted(x), sorted(b.([][2]any)), entry)
	}
	panic(fmt.Sprintf("%T", a))
}

func nanFree(a, b float64) int {
	if math.IsNaN(a) || math.IsNaN(b) {
		return 0
	}
	return 1
}

func nanOrder(a, b float64) int {
	return cmp.Compare(map[bool]int{true: 1}[math.IsNaN(a)], map[bool]int{true: 1}[math.IsNaN(b)])
}

func TestCompare(t *testing.T) {
	each(t, func(t *testing.T, mem memory.Allocator, dt arrow.DataType, seed uint64, o columnartest.RandomOptions) {
		if o.Dictionary {
			return
		}
		o.Distinct = 6
		a := columnartest.RandomColumn(t, mem, dt, seed, o)
		b := columnartest.RandomColumn(t, mem, dt, seed, o) // the same: equal values are frequent
		if o.Rows > 2 {
			b = columnartest.RandomColumn(t, mem, dt, seed, columnartest.RandomOptions{Rows: o.Rows, Distinct: 6, Nulls: o.Nulls, Dense: true})
		}
		data := []columnar.Datum{columnar.ColumnDatum(a), columnar.ColumnDatum(b)}
		for i := range min(o.Rows, 3) {
			one := array.NewSlice(a, int64(i), int64(i+1))
			defer one.Release()
			data = append(data, columnar.ConstantDatum(one))
		}
		for _, x := range data {
			for _, y := range data {
				for op := kernel.Equal; op <= kernel.NotDistinctFrom; op++ {
					checkCompare(t, mem, op, x, y, o.Rows)
				}
			}
		}
	})
}

func at(d columnar.Datum, i int) any {
	if d.IsConstant() {
		i = 0
	}
	if d.Type().ID() == arrow.NULL {
		return nil
	}
	return columnar.Value(d.Array(), i)
}

func checkCompare(t *testing.T, mem memory.Allocator, op kernel.CompareOp, x, y columnar.Datum, rows int) {
	t.Helper()
	got := kernel.Compare(mem, op, x, y, rows)
	defer got.Release()
	if got.IsConstant() != (x.IsConstant() && y.IsConstant()) {
		t.Fatalf("constant: %v", got.IsConstant())
	}
	for i := range rows {
		u, v := at(x, i), at(y, i)
		c := refCompare(u, v)
		var want any = []bool{c == 0, c != 0, c < 0, c <= 0, c > 0, c >= 0, c != 0, c == 0}[op]
		if (u == nil || v == nil) && op < kernel.DistinctFrom {
			want = nil
		}
		if at(got, i) != want {
			t.Fatalf("row %d: %v op %d %v = %v, want %v", i, u, op, v, at(got, i), want)
		}
	}
}

func TestHashEqual(t *testing.T) {
	each(t, func(t *testing.T, mem memory.Allocator, dt arrow.DataType, seed uint64, o columnartest.RandomOptions) {
		o.Distinct, o.Rows = 20, min(o.Rows, 65)
		a := columnartest.RandomColumn(t, mem, dt, seed, o)
		plain := columnar.PlainColumn(mem, a)
		defer plain.Release()
		other := columnartest.RandomColumn(t, mem, columnar.Int64, seed, columnartest.RandomOptions{Rows: o.Rows, Distinct: 2})
		h, hp := make([]uint64, o.Rows), make([]uint64, o.Rows)
		kernel.Hash(h, []arrow.Array{other, a}, 42)
		kernel.Hash(hp, []arrow.Array{other, plain}, 42)
		if !slices.Equal(h, hp) {
			t.Fatalf("a dictionary hashes differently")
		}
		var ar, br []int32
		for i := range o.Rows {
			for j := range o.Rows {
				equal := refCompare(at(columnar.ColumnDatum(plain), i), at(columnar.ColumnDatum(plain), j)) == 0 && refCompare(columnar.Value(other, i), columnar.Value(other, j)) == 0
				if equal != (h[i] == h[j]) {
					t.Fatalf("rows %d, %d: %s %s: equal %v, hashes %x %x", i, j, text(a, i), text(a, j), equal, h[i], h[j])
				}
				ar, br = append(ar, int32(i)), append(br, int32(j))
			}
		}
		for _, nullsEqual := range []bool{false, true} {
			x, y := kernel.EqualPairs(a, plain, slices.Clone(ar), slices.Clone(br), nullsEqual)
			k := 0
			for i := range ar {
				u, v := at(columnar.ColumnDatum(plain), int(ar[i])), at(columnar.ColumnDatum(plain), int(br[i]))
				if refCompare(u, v) == 0 && (nullsEqual || u != nil) {
					if k >= len(x) || x[k] != ar[i] || y[k] != br[i] {
						t.Fatalf("pair %d, %d is missing", ar[i], br[i])
					}
					k++
				}
			}
			if k != len(x) {
				t.Fatalf("%d pairs, want %d", len(x), k)
			}
		}
	})
}

func TestSort(t *testing.T) {
	each(t, func(t *testing.T, mem memory.Allocator, dt arrow.DataType, seed uint64, o columnartest.RandomOptions) {
		if o.Rows == 63 || o.Rows == 64 { // no word of a bitmap ends here
			return
		}
		r := rand.New(rand.NewPCG(seed, 3))
		if r.IntN(2) == 0 {
			o.Distinct = 5
		}
		keys := make([]kernel.SortKey, 2)
		var lengths []int
		for b := range 3 {
			keys[0].Columns = append(keys[0].Columns, columnartest.RandomColumn(t, mem, dt, seed+uint64(b), o))
			keys[1].Columns = append(keys[1].Columns, columnartest.RandomColumn(t, mem, columnar.String, seed+uint64(b), columnartest.RandomOptions{Rows: o.Rows, Distinct: 4}))
			lengths = append(lengths, o.Rows)
		}
		for mode := range 16 {
			if o.Rows > 100 && mode%5 != 0 {
				continue
			}
			for k := range keys {
				keys[k].Descending, keys[k].NullsLast = mode>>(2*k)&1 != 0, mode>>(2*k)&2 != 0
			}
			want := kernel.AllRefs(lengths...)
			slices.SortStableFunc(want, func(a, b kernel.Ref) int {
				for _, k := range keys {
					x, y := at(columnar.ColumnDatum(k.Columns[a.Batch()]), a.Row()), at(columnar.ColumnDatum(k.Columns[b.Batch()]), b.Row())
					c := refCompare(x, y)
					if x == nil || y == nil {
						if k.NullsLast {
							c = -c
						}
					} else if k.Descending {
						c = -c
					}
					if c != 0 {
						return c
					}
				}
				return 0
			})
			if got := kernel.Sort(keys); !slices.Equal(got, want) {
				t.Fatalf("mode %d: order differs", mode)
			}
			for _, n := range []int{0, 1, 7, len(want)} {
				if got := kernel.Top(keys, n); !slices.Equal(got, want[:min(n, len(want))]) {
					t.Fatalf("mode %d: top %d differs", mode, n)
				}
			}
		}
	})
}

// TestOrderWords: words compare as values do, where the type has any.
func TestOrderWords(t *testing.T) {
	each(t, func(t *testing.T, mem memory.Allocator, dt arrow.DataType, seed uint64, o columnartest.RandomOptions) {
		a := columnartest.RandomColumn(t, mem, dt, seed, o)
		words, ok := kernel.OrderWords([]uint64{1}, a)
		decimal, isDecimal := dt.(*arrow.Decimal128Type)
		fits := columnar.IsInteger(dt) || columnar.IsFloat(dt) || dt.ID() == arrow.TIMESTAMP || dt.ID() == arrow.DATE32 || dt.ID() == arrow.TIME64 || isDecimal && decimal.Precision <= 18
		if ok != fits || kernel.HasOrderWords(dt) != fits {
			t.Fatalf("words of %s: %v", dt, ok)
		}
		if !ok {
			return
		}
		if len(words) != 1+a.Len() || words[0] != 1 {
			t.Fatalf("%d words for %d rows", len(words), a.Len())
		}
		d := columnar.ColumnDatum(a)
		for i := range a.Len() {
			for j := range min(a.Len(), 100) {
				if x, y := at(d, i), at(d, j); x != nil && y != nil && cmp.Compare(words[1+i], words[1+j]) != refCompare(x, y) {
					t.Fatalf("%v and %v compare as %d", x, y, refCompare(x, y))
				}
			}
		}
	})
}

func TestSortText(t *testing.T) {
	t.Parallel()
	mem := columnartest.Mem(t)
	r := rand.New(rand.NewPCG(1, 1))
	b := columnar.NewBuilder(mem, columnar.String)
	defer b.Release()
	words := []string{"", "x", "x\x00", "x\x00\x00", "https://example.org/", "https://example.org/a", "https://example.org/\x00", "https://example.org/a/much/longer/path", "https://example.com"}
	for range 2000 {
		_ = b.Append(words[r.IntN(len(words))])
	}
	a := b.NewArray()
	defer a.Release()
	for _, desc := range []bool{false, true} {
		refs := kernel.Sort([]kernel.SortKey{{Columns: []arrow.Array{a}, Descending: desc}})
		for i := 1; i < len(refs); i++ {
			x, y := a.(*array.String).Value(refs[i-1].Row()), a.(*array.String).Value(refs[i].Row())
			c := cmp.Compare(x, y)
			if desc {
				c = -c
			}
			if c > 0 || c == 0 && refs[i-1] > refs[i] {
				t.Fatalf("desc %v: %q before %q", desc, x, y)
			}
		}
	}
}

func TestMinMax(t *testing.T) {
	each(t, func(t *testing.T, mem memory.Allocator, dt arrow.DataType, seed uint64, o columnartest.RandomOptions) {
		a := columnartest.RandomColumn(t, mem, dt, seed, o)
		least, greatest := -1, -1
		for i := range o.Rows {
			v := at(columnar.ColumnDatum(a), i)
			if v == nil {
				continue
			}
			if least < 0 || refCompare(v, columnar.Value(a, least)) < 0 {
				least = i
			}
			if greatest < 0 || refCompare(v, columnar.Value(a, greatest)) > 0 {
				greatest = i
			}
		}
		if l, g := kernel.MinMax(a); l != least || g != greatest {
			t.Fatalf("rows %d, %d, want %d, %d", l, g, least, greatest)
		}
	})
}

func TestLogic(t *testing.T) {
	t.Parallel()
	mem := columnartest.Mem(t)
	and := func(a, b any) any {
		switch {
		case a == false || b == false:
			return false
		case a == nil || b == nil:
			return nil
		}
		return true
	}
	not := func(a any) any {
		if a == nil {
			return nil
		}
		return !a.(bool)
	}
	for _, n := range []int{0, 1, 2, 63, 64, 65, 130} {
		for seed := range uint64(4) {
			x := columnar.ColumnDatum(columnartest.RandomColumn(t, mem, columnar.Boolean, seed, columnartest.RandomOptions{Rows: n, Nulls: []float64{-1, 0.3, 1, 0}[seed]}))
			y := columnar.ColumnDatum(columnartest.RandomColumn(t, mem, columnar.Boolean, seed+9, columnartest.RandomOptions{Rows: n}))
			data := []columnar.Datum{x, y}
			for _, v := range []string{"true", "false", "NULL"} {
				data = append(data, columnar.ConstantDatum(columnartest.Column(t, mem, "boolean", v)))
			}
			for _, a := range data {
				for _, b := range data {
					gotAnd, gotOr, gotNot := kernel.And(mem, a, b, n), kernel.Or(mem, a, b, n), kernel.Not(mem, a, n)
					defer gotAnd.Release()
					defer gotOr.Release()
					defer gotNot.Release()
					for i := range n {
						u, v := at(a, i), at(b, i)
						if at(gotAnd, i) != and(u, v) || at(gotOr, i) != not(and(not(u), not(v))) || at(gotNot, i) != not(u) {
							t.Fatalf("%v, %v: and %v, or %v, not %v", u, v, at(gotAnd, i), at(gotOr, i), at(gotNot, i))
						}
					}
				}
			}
		}
	}
}
