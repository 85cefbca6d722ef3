package keyenc_test

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"math"
	"slices"
	"testing"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/memory"

	"github.com/tidemill/tidemill/columnar"
	"github.com/tidemill/tidemill/columnar/columnartest"
	"github.com/tidemill/tidemill/columnar/keyenc"
)

var allTypes = []arrow.DataType{
	columnar.Null, columnar.Boolean, columnar.Int8, columnar.Int16, columnar.Int32, columnar.Int64,
	columnar.Float32, columnar.Float64, columnar.Decimal(5, 2), columnar.Decimal(38, 10),
	columnar.String, columnar.Binary, columnar.Date, columnar.Time, columnar.Timestamp, columnar.Interval,
	columnar.ListOf(columnar.Int32), columnar.ListOf(columnar.String),
	arrow.StructOf(columnar.Field("a", columnar.Int64), columnar.Field("b", columnar.ListOf(columnar.Float64))),
	arrow.MapOf(columnar.String, columnar.Int64),
}

// compare is the order of values, written down independently of the encoding.
func compare(a arrow.Array, i, j int) int {
	if a.DataType().ID() == arrow.NULL {
		return 0
	}
	if a.IsNull(i) || a.IsNull(j) {
		return cmp.Compare(btoi(!a.IsNull(i)), btoi(!a.IsNull(j)))
	}
	switch a := a.(type) {
	case *array.Boolean:
		return cmp.Compare(btoi(a.Value(i)), btoi(a.Value(j)))
	case *array.Int8:
		return cmp.Compare(a.Value(i), a.Value(j))
	case *array.Int16:
		return cmp.Compare(a.Value(i), a.Value(j))
	case *array.Int32:
		return cmp.Compare(a.Value(i), a.Value(j))
	case *array.Int64:
		return cmp.Compare(a.Value(i), a.Value(j))
	case *array.Date32:
		return cmp.Compare(a.Value(i), a.Value(j))
	case *array.Time64:
		return cmp.Compare(a.Value(i), a.Value(j))
	case *array.Timestamp:
		return cmp.Compare(a.Value(i), a.Value(j))
	case *array.Float32:
		return compareFloat(float64(a.Value(i)), float64(a.Value(j)))
	case *array.Float64:
		return compareFloat(a.Value(i), a.Value(j))
	case *array.Decimal128:
		return a.Value(i).Cmp(a.Value(j))
	case *array.String:
		return cmp.Compare(a.Value(i), a.Value(j))
	case *array.Binary:
		return bytes.Compare(a.Value(i), a.Value(j))
	case *array.MonthDayNanoInterval:
		xd, xn := columnar.IntervalLength(a.Value(i))
		yd, yn := columnar.IntervalLength(a.Value(j))
		return cmp.Or(cmp.Compare(xd, yd), cmp.Compare(xn, yn))
	case *array.Struct:
		for f := range a.NumField() {
			if c := compare(a.Field(f), i, j); c != 0 {
				return c
			}
		}
		return 0
	case *array.Map:
		return compareEntries(a, i, j)
	case *array.List:
		f1, t1 := a.ValueOffsets(i)
		f2, t2 := a.ValueOffsets(j)
		for f1 < t1 && f2 < t2 {
			if c := compare(a.ListValues(), int(f1), int(f2)); c != 0 {
				return c
			}
			f1++
			f2++
		}
		return cmp.Compare(t1-f1, t2-f2)
	}
	panic(a.DataType())
}

func compareEntries(a *array.Map, i, j int) int {
	entries := func(i int) []int {
		from, to := a.ValueOffsets(i)
		var e []int
		for k := int(from); k < int(to); k++ {
			e = append(e, k)
		}
		slices.SortStableFunc(e, func(x, y int) int {
			return cmp.Or(compare(a.Keys(), x, y), compare(a.Items(), x, y))
		})
		return e
	}
	x, y := entries(i), entries(j)
	for k := range min(len(x), len(y)) {
		if c := cmp.Or(compare(a.Keys(), x[k], y[k]), compare(a.Items(), x[k], y[k])); c != 0 {
			return c
		}
	}
	return cmp.Compare(len(x), len(y))
}

// compareFloat puts NaN after everything; zeros are equal.
func compareFloat(x, y float64) int {
	switch {
	case math.IsNaN(x) || math.IsNaN(y):
		return cmp.Compare(btoi(math.IsNaN(x)), btoi(math.IsNaN(y)))
	case x < y:
		return -1
	case x > y:
		return 1
	}
	return 0
}

func btoi(b bool) int {
	if b {
		return 1
	}
	return 0
}

func encode(t testing.TB, types []arrow.DataType, orders []keyenc.Order, columns []arrow.Array) (*keyenc.Codec, *keyenc.Keys) {
	t.Helper()
	c, err := keyenc.New(types, orders)
	if err != nil {
		t.Fatal(err)
	}
	var k keyenc.Keys
	if err := c.Encode(columns, &k); err != nil {
		t.Fatal(err)
	}
	return c, &k
}

func TestByteOrderIsValueOrder(t *testing.T) {
	t.Parallel()
	orders := []keyenc.Order{{}, {Desc: true}, {NullsLast: true}, {Desc: true, NullsLast: true}}
	for _, dt := range allTypes {
		for _, o := range orders {
			t.Run(fmt.Sprintf("%s/%+v", columnar.TypeName(dt), o), func(t *testing.T) {
				t.Parallel()
				mem := columnartest.Mem(t)
				a := columnartest.RandomColumn(t, mem, dt, 7, columnartest.RandomOptions{Rows: 130})
				_, keys := encode(t, []arrow.DataType{dt}, []keyenc.Order{o}, []arrow.Array{a})
				for i := range a.Len() {
					for j := range a.Len() {
						want := compare(a, i, j)
						null := dt.ID() != arrow.NULL && (a.IsNull(i) || a.IsNull(j))
						if null && o.NullsLast || !null && o.Desc {
							want = -want
						}
						if got := bytes.Compare(keys.Key(i), keys.Key(j)); got != want {
							t.Fatalf("rows %d (%s) and %d (%s): bytes compare %d, values %d", i, a.ValueStr(i), j, a.ValueStr(j), got, want)
						}
						if keyenc.Prefix(keys.Key(i)) < keyenc.Prefix(keys.Key(j)) && want >= 0 {
							t.Fatalf("rows %d and %d: prefixes ascend, values do not", i, j)
						}
					}
				}
			})
		}
	}
}

// TestColumnsInTurn: a key of several columns sorts by the first that differs.
func TestColumnsInTurn(t *testing.T) {
	t.Parallel()
	mem := columnartest.Mem(t)
	types := []arrow.DataType{columnar.String, columnar.Int32, columnar.Float64}
	orders := []keyenc.Order{{}, {Desc: true, NullsLast: true}, {NullsLast: true}}
	var columns []arrow.Array
	for i, dt := range types {
		columns = append(columns, columnartest.RandomColumn(t, mem, dt, uint64(i), columnartest.RandomOptions{Rows: 150, Distinct: 3}))
	}
	_, keys := encode(t, types, orders, columns)
	for i := range 150 {
		for j := range 150 {
			want := 0
			for c, a := range columns {
				if want != 0 {
					break
				}
				want = compare(a, i, j)
				null := a.IsNull(i) || a.IsNull(j)
				if null && orders[c].NullsLast || !null && orders[c].Desc {
					want = -want
				}
			}
			if got := bytes.Compare(keys.Key(i), keys.Key(j)); got != want {
				t.Fatalf("rows %d and %d: bytes compare %d, values %d", i, j, got, want)
			}
		}
	}
}

func TestDecodeGivesBackWhatWasEncoded(t *testing.T) {
	t.Parallel()
	for _, dt := range allTypes {
		for _, o := range []keyenc.Order{{Exact: true}, {Desc: true, NullsLast: true, Exact: true}} {
			mem := columnartest.Mem(t)
			a := columnartest.RandomColumn(t, mem, dt, 3, columnartest.RandomOptions{Rows: 200})
			types := []arrow.DataType{columnar.Int8, dt, columnar.String}
			x := columnartest.RandomColumn(t, mem, columnar.Int8, 4, columnartest.RandomOptions{Rows: 200})
			y := columnartest.RandomColumn(t, mem, columnar.String, 5, columnartest.RandomOptions{Rows: 200})
			columns := []arrow.Array{x, a, y}
			c, keys := encode(t, types, []keyenc.Order{{Exact: true}, o, {Desc: true}}, columns)
			back, err := c.Decode(mem, keys)
			if err != nil {
				t.Fatal(err)
			}
			for i, b := range back {
				columnartest.EqualArrays(t, columns[i], b)
				b.Release()
			}
		}
	}
}

func TestDictionaryEncodesAsPlain(t *testing.T) {
	t.Parallel()
	mem := columnartest.Mem(t)
	a := columnartest.RandomColumn(t, mem, columnar.String, 9, columnartest.RandomOptions{Rows: 100, Distinct: 5, Dictionary: true})
	plain := columnar.PlainColumn(mem, a)
	defer plain.Release()
	types := []arrow.DataType{columnar.String}
	_, k1 := encode(t, types, nil, []arrow.Array{a})
	_, k2 := encode(t, types, nil, []arrow.Array{plain})
	if !bytes.Equal(k1.Data, k2.Data) || !slices.Equal(k1.Offsets, k2.Offsets) {
		t.Fatal("dictionary and plain column have different keys")
	}
}

func TestEqualValuesHaveEqualBytes(t *testing.T) {
	t.Parallel()
	mem := columnartest.Mem(t)
	b := array.NewFloat64Builder(mem)
	defer b.Release()
	b.AppendValues([]float64{0, math.Copysign(0, -1), math.NaN(), math.Float64frombits(0xFFF8000000000007)}, nil)
	a := b.NewArray()
	defer a.Release()
	_, keys := encode(t, []arrow.DataType{columnar.Float64}, nil, []arrow.Array{a})
	if !bytes.Equal(keys.Key(0), keys.Key(1)) || !bytes.Equal(keys.Key(2), keys.Key(3)) {
		t.Fatal("equal floats have different keys")
	}
}

func TestUnsupportedType(t *testing.T) {
	t.Parallel()
	if _, err := keyenc.New([]arrow.DataType{arrow.PrimitiveTypes.Uint8}, nil); err == nil {
		t.Fatal("an unsigned column was accepted")
	}
}

// FuzzDecode: any bytes give an error or columns that encode to the same bytes.
func FuzzDecode(f *testing.F) {
	types := []arrow.DataType{
		columnar.String, columnar.Int64,
		columnar.ListOf(arrow.StructOf(columnar.Field("a", columnar.Boolean), columnar.Field("b", columnar.Binary))),
		arrow.MapOf(columnar.Int16, columnar.Decimal(38, 3)), columnar.Float64,
	}
	orders := []keyenc.Order{{Exact: true}, {Desc: true, NullsLast: true, Exact: true}, {Desc: true, Exact: true}, {Exact: true}, {Exact: true}}
	c, err := keyenc.New(types, orders)
	if err != nil {
		f.Fatal(err)
	}
	var columns []arrow.Array
	for i, dt := range types {
		columns = append(columns, columnartest.RandomColumn(f, memory.NewGoAllocator(), dt, uint64(i), columnartest.RandomOptions{Rows: 30}))
	}
	var keys keyenc.Keys
	if err := c.Encode(columns, &keys); err != nil {
		f.Fatal(err)
	}
	for i := range keys.Len() {
		f.Add(bytes.Clone(keys.Key(i)))
	}
	f.Add([]byte{})
	f.Add([]byte{1, 'a', 0, 0, 1, 1, 2, 3})
	f.Fuzz(func(t *testing.T, data []byte) {
		mem := columnartest.Mem(t)
		var in, out keyenc.Keys
		in.Append(data)
		columns, err := c.Decode(mem, &in)
		if err != nil {
			if !errors.Is(err, keyenc.ErrMalformed) {
				t.Fatalf("error of another kind: %v", err)
			}
			return
		}
		if err := c.Encode(columns, &out); err != nil {
			t.Fatal(err)
		}
		if !bytes.Equal(out.Key(0), data) {
			t.Fatalf("%x was decoded, and encodes to %x", data, out.Key(0))
		}
		for _, a := range columns {
			a.Release()
		}
	})
}

func ExampleCodec() {
	c, err := keyenc.New([]arrow.DataType{columnar.Int8}, []keyenc.Order{{Desc: true}})
	if err != nil {
		panic(err)
	}
	b := array.NewInt8Builder(memory.NewGoAllocator())
	defer b.Release()
	b.AppendValues([]int8{1, 2}, nil)
	a := b.NewArray()
	defer a.Release()
	var keys keyenc.Keys
	if err := c.Encode([]arrow.Array{a}, &keys); err != nil {
		panic(err)
	}
	fmt.Println(bytes.Compare(keys.Key(0), keys.Key(1)))
	// Output: 1
}

func BenchmarkEncode(b *testing.B) {
	const rows = 16384
	mem := memory.NewGoAllocator()
	for _, types := range [][]arrow.DataType{{columnar.Int64}, {columnar.Timestamp, columnar.Int64}, {columnar.String}} {
		var columns []arrow.Array
		for i, dt := range types {
			columns = append(columns, columnartest.RandomColumn(b, mem, dt, uint64(i), columnartest.RandomOptions{Rows: rows, Nulls: -1}))
		}
		c, _ := keyenc.New(types, nil)
		b.Run(fmt.Sprint(types), func(b *testing.B) {
			var keys keyenc.Keys
			for b.Loop() {
				keys.Reset()
				if err := c.Encode(columns, &keys); err != nil {
					b.Fatal(err)
				}
			}
			b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/rows, "ns/row")
		})
	}
}
