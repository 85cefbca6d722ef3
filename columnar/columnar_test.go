package columnar_test

import (
	"context"
	"errors"
	"io"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/memory"

	"github.com/tidemill/tidemill/columnar"
	"github.com/tidemill/tidemill/columnar/columnartest"
)

var typeNames = []string{
	"null", "boolean", "tinyint", "smallint", "integer", "bigint", "real", "double", "varchar", "binary", "date", "time", "timestamp", "interval", "decimal(9,2)",
	"array<bigint>", "struct<x bigint, y varchar>", "map<varchar, double>", "array<map<varchar, array<boolean>>>",
}

func typeOf(t *testing.T, name string) arrow.DataType {
	t.Helper()
	dt, err := columnartest.Type(name)
	if err != nil {
		t.Fatal(err)
	}
	return dt
}

func TestBuilder(t *testing.T) {
	t.Parallel()
	mem := columnartest.Mem(t)
	for i, name := range typeNames[1:] {
		a := columnartest.RandomColumn(t, mem, typeOf(t, name), uint64(i), columnartest.RandomOptions{Rows: 70})
		b := columnar.NewBuilder(mem, a.DataType())
		defer b.Release()
		for k := range a.Len() {
			if err := b.AppendFrom(a, k); err != nil {
				t.Fatal(err)
			}
		}
		if b.Len() != 70 {
			t.Errorf("%d values", b.Len())
		}
		again := b.NewArray()
		columnartest.EqualArrays(t, a, again)
		again.Release()
	}
	for _, bad := range []struct {
		dt arrow.DataType
		v  any
	}{
		{columnar.Int8, 128}, {columnar.Int64, "x"}, {columnar.Boolean, 1}, {columnar.Decimal(3, 1), "99.95"}, {columnar.Date, "2024-02-30"}, {columnar.Interval, "soon"}, {columnar.String, 1},
		{columnar.ListOf(columnar.Int8), []any{1, 300}}, {arrow.StructOf(columnar.Field("a", columnar.Int8)), []any{}}, {columnar.Timestamp, 1.5}, {columnar.Time, columnar.MicrosPerDay}, {arrow.MapOf(columnar.String, columnar.Int8), 1},
	} {
		if a, err := columnar.Column(mem, bad.dt, bad.v); err == nil {
			a.Release()
			t.Errorf("%v is accepted as %s", bad.v, bad.dt)
		}
	}
	a, err := columnar.Column(mem, columnar.Decimal(10, 2), 1, "2.345", 0.5, nil)
	if err != nil {
		t.Fatal(err)
	}
	defer a.Release()
	var got []string
	for i := range a.Len() {
		got = append(got, string(columnar.AppendCanonical(nil, a, i, nil)))
	}
	if !slices.Equal(got, []string{"1.00", "2.35", "0.50", "NULL"}) {
		t.Error(got)
	}
	at, err := columnar.Column(mem, columnar.Timestamp, time.Date(1969, 12, 31, 23, 59, 59, 5e8, time.UTC), "1970-01-01")
	if err != nil {
		t.Fatal(err)
	}
	defer at.Release()
	if columnar.Value(at, 0) != arrow.Timestamp(-500_000) || columnar.Value(at, 1) != arrow.Timestamp(0) {
		t.Error(at)
	}
}

func TestBroadcast(t *testing.T) {
	t.Parallel()
	mem := columnartest.Mem(t)
	for i, name := range typeNames {
		dt := typeOf(t, name)
		a := columnartest.RandomColumn(t, mem, dt, uint64(i), columnartest.RandomOptions{Rows: 12})
		for k := range a.Len() {
			one := array.NewSlice(a, int64(k), int64(k+1))
			for _, rows := range []int{0, 1, 63, 64, 65} {
				full := columnar.Broadcast(mem, columnar.ConstantDatum(one), rows)
				if full.Len() != rows || !arrow.TypeEqual(full.DataType(), dt) {
					t.Fatalf("%s: %d rows of %s", name, full.Len(), full.DataType())
				}
				for r := range rows {
					w, g := columnar.AppendCanonical(nil, a, k, nil), columnar.AppendCanonical(nil, full, r, nil)
					if string(w) != string(g) {
						t.Fatalf("%s: %s became %s", name, w, g)
					}
				}
				full.Release()
			}
			one.Release()
		}
		nulls := columnar.Nulls(mem, dt, 65)
		for r := range 65 {
			if !columnar.IsNull(nulls, r) {
				t.Fatalf("%s: row %d is not null", name, r)
			}
		}
		nulls.Release()
		same := columnar.Broadcast(mem, columnar.ColumnDatum(a), 12)
		if same != a {
			t.Errorf("a column is copied")
		}
		same.Release()
	}
}

func TestPlain(t *testing.T) {
	t.Parallel()
	mem := columnartest.Mem(t)
	schema := columnartest.Schema(t, "s:varchar  b:binary  n:bigint")
	for seed := range uint64(6) {
		o := columnartest.RandomOptions{Rows: 100, Distinct: 5}
		plain := columnartest.Random(t, mem, schema, seed, o)
		o.Dictionary = true
		encoded := columnartest.Random(t, mem, schema, seed, o)
		got := columnar.Plain(mem, encoded)
		columnartest.Equal(t, []arrow.RecordBatch{plain}, []arrow.RecordBatch{got}, columnartest.DiffOptions{Ordered: true})
		if !columnar.EqualTypes(got.Schema(), schema) {
			t.Errorf("types %s", got.Schema())
		}
		got.Release()
		same := columnar.Plain(mem, plain)
		if same != plain {
			t.Error("a plain batch is copied")
		}
		same.Release()
	}
	// A code that names a null value is null.
	values := columnartest.Column(t, mem, "varchar", "a", "NULL")
	codes := columnartest.Column(t, mem, "integer", "0", "1", "NULL")
	d := array.NewDictionaryArray(&arrow.DictionaryType{IndexType: columnar.Int32, ValueType: columnar.String}, codes, values)
	defer d.Release()
	p := columnar.PlainColumn(mem, d)
	defer p.Release()
	columnartest.EqualArrays(t, columnartest.Column(t, mem, "varchar", "a", "NULL", "NULL"), p)
	for i := range 3 {
		if columnar.IsNull(d, i) != (i > 0) {
			t.Errorf("IsNull of row %d", i)
		}
	}
}

func TestDatum(t *testing.T) {
	t.Parallel()
	mem := columnartest.Mem(t)
	var zero columnar.Datum
	zero.Release()
	for _, dt := range []arrow.DataType{columnar.Null, columnar.Int64} {
		d := columnar.NullConstant(mem, dt)
		if !d.IsConstant() || !d.IsNullConstant() {
			t.Errorf("the null of %s is none", dt)
		}
		d.Retain().Release()
		d.Release()
	}
	one, err := columnar.Constant(mem, columnar.Int64, 1)
	if err != nil {
		t.Fatal(err)
	}
	defer one.Release()
	if one.IsNullConstant() || columnar.ColumnDatum(one.Array()).IsNullConstant() {
		t.Error("1 is null")
	}
	var kept columnar.Releases
	kept.Add(one.Retain())
	kept.Release()
	kept.Add(one)
	kept.Keep()
	kept.Release()
}

func TestReaders(t *testing.T) {
	t.Parallel()
	mem := columnartest.Mem(t)
	schema := columnartest.Schema(t, "a:bigint")
	b := columnartest.Random(t, mem, schema, 1, columnartest.RandomOptions{Rows: 10})
	empty := columnartest.Random(t, mem, schema, 1, columnartest.RandomOptions{})
	ctx := t.Context()
	r := columnar.Concat(schema, columnar.FromBatches(schema, empty), columnar.FromBatches(schema, b, empty), columnar.FromBatches(schema, b))
	got, err := columnar.Drain(ctx, r)
	if err != nil || len(got) != 2 {
		t.Fatalf("%d batches, %v", len(got), err)
	}
	for _, g := range got {
		g.Release()
	}
	for range 2 {
		if _, err := r.Next(ctx); err != io.EOF {
			t.Errorf("after the end: %v", err)
		}
		if err := r.Close(); err != nil {
			t.Error(err)
		}
	}
	broken := errors.New("broken")
	failing := columnartest.Watch(t, columnartest.FailAt(columnar.FromBatches(schema, b, b), 15, broken))
	if got, err := columnar.Drain(ctx, failing); !errors.Is(err, broken) || got != nil {
		t.Errorf("%v, %v", got, err)
	}
	_ = failing.Close()
	rows := int64(0)
	early := columnar.FromBatches(schema, b, b)
	for batch, err := range columnar.All(ctx, early) {
		if err != nil {
			t.Fatal(err)
		}
		rows += batch.NumRows()
		break
	}
	_ = early.Close()
	if rows != 10 {
		t.Errorf("%d rows", rows)
	}
	cancelled, cancel := context.WithCancel(ctx)
	cancel()
	stopped := columnar.FromBatches(schema, b)
	defer stopped.Close()
	for _, err := range columnar.All(cancelled, stopped) {
		if !errors.Is(err, context.Canceled) {
			t.Error(err)
		}
	}
}

func TestTypes(t *testing.T) {
	t.Parallel()
	for _, name := range typeNames {
		dt := typeOf(t, name)
		if !columnar.Supported(dt) {
			t.Errorf("%s is not supported", name)
		}
		if again := typeOf(t, columnar.TypeName(dt)); !arrow.TypeEqual(again, dt) {
			t.Errorf("%s is printed %s", name, columnar.TypeName(dt))
		}
		for _, other := range typeNames {
			o := typeOf(t, other)
			ab, ok := columnar.Common(dt, o)
			ba, same := columnar.Common(o, dt)
			if ok != same || ok && !arrow.TypeEqual(ab, ba) {
				t.Errorf("%s and %s meet in %v, but the other way in %v", name, other, ab, ba)
			}
			if !ok {
				continue
			}
			if again, ok := columnar.Common(ab, o); !ok || !arrow.TypeEqual(again, ab) {
				t.Errorf("%s and %s meet in %s, which does not hold %s", name, other, ab, other)
			}
		}
	}
	for _, dt := range []arrow.DataType{arrow.PrimitiveTypes.Uint8, arrow.FixedWidthTypes.Timestamp_ns, &arrow.TimestampType{Unit: arrow.Microsecond}, arrow.ListOf(arrow.PrimitiveTypes.Uint8), columnar.Decimal(39, 0), arrow.BinaryTypes.LargeString} {
		if columnar.Supported(dt) {
			t.Errorf("%s is supported", dt)
		}
	}
	for _, c := range [][3]string{{"tinyint", "bigint", "BIGINT"}, {"bigint", "decimal(5,2)", "DECIMAL(21,2)"}, {"real", "integer", "DOUBLE"}, {"date", "timestamp", "TIMESTAMP"}, {"null", "varchar", "VARCHAR"}, {"array<integer>", "array<double>", "ARRAY<DOUBLE>"}, {"decimal(38,2)", "decimal(38,30)", "DECIMAL(38,30)"}} {
		got, ok := columnar.Common(typeOf(t, c[0]), typeOf(t, c[1]))
		if !ok || columnar.TypeName(got) != c[2] {
			t.Errorf("%s and %s meet in %v", c[0], c[1], got)
		}
	}
}

func TestSchema(t *testing.T) {
	t.Parallel()
	s := columnartest.Schema(t, "a:bigint  A:double  b:varchar  B2:date  x:bigint  x:bigint")
	for _, c := range []struct {
		name     string
		index, n int
	}{{"a", 0, 1}, {"A", 1, 1}, {"B", 2, 1}, {"b2", 3, 1}, {"x", -1, 2}, {"none", -1, 0}} {
		if i, n := columnar.Lookup(s, c.name); i != c.index || n != c.n {
			t.Errorf("%s is field %d of %d", c.name, i, n)
		}
	}
	if got := columnar.SchemaString(columnar.Select(s, []int{2, 0})); got != "b VARCHAR, a BIGINT" {
		t.Error(got)
	}
	for name, want := range map[string]string{"usr_id": "user_id", "USER_ID": "user_id", "zzzzzz": "", "user_di": "user_id"} {
		if got := columnar.NearestName(name, []string{"user_id", "country", "price"}); got != want {
			t.Errorf("near %s is %q", name, got)
		}
	}
	if got := columnar.DidYouMean("zzzzzz", []string{"a", "b"}); !strings.Contains(got, "known are a, b") {
		t.Error(got)
	}
}

func TestBitmap(t *testing.T) {
	t.Parallel()
	for _, n := range []int{0, 1, 63, 64, 65, 200} {
		b, thirds := columnar.NewBitmap(n), columnar.NewBitmap(n)
		var want []int32
		for i := range n {
			if i%2 == 0 {
				b.Set(i)
			}
			if i%3 == 0 {
				thirds.Set(i)
			}
			if i%6 == 0 {
				want = append(want, int32(i))
			}
		}
		both := b.Clone()
		both.And(thirds)
		both.And(nil)
		if got := both.Indices(nil); !slices.Equal(got, want) || both.Count() != len(want) {
			t.Errorf("%d rows: %v", n, got)
		}
		either := b.Clone()
		either.Or(thirds)
		either.AndNot(thirds)
		only := b.Clone()
		only.AndNot(thirds)
		if !slices.Equal(either.Indices(nil), only.Indices(nil)) {
			t.Errorf("%d rows: a or b without b is not a without b", n)
		}
		b.SetAll()
		if b.Count() != n {
			t.Errorf("%d of %d rows", b.Count(), n)
		}
		for i := range n {
			b.Unset(i)
		}
		var none *columnar.Bitmap
		if b.Count() != 0 || !none.Get(5) {
			t.Error("marks are wrong")
		}
	}
}

func TestPool(t *testing.T) {
	t.Parallel()
	p := columnar.NewPool()
	for _, size := range []int{0, 1, 64, 65, 80, 81, 1000, 1 << 20, 100 << 20} {
		b := p.Allocate(size)
		if len(b) != size {
			t.Fatalf("%d bytes, want %d", len(b), size)
		}
		b = p.Reallocate(size+1, b)
		if len(b) != size+1 {
			t.Fatalf("%d bytes, want %d", len(b), size+1)
		}
		p.Free(b)
	}
	if p.Live() != 0 {
		t.Errorf("%d bytes live", p.Live())
	}
	a := p.Allocate(1000)
	p.Free(a)
	if b := p.Allocate(990); &a[0] != &b[0] {
		t.Error("a freed buffer is not used again")
	}
	var _ memory.Allocator = p
}

func TestBudget(t *testing.T) {
	t.Parallel()
	b := columnar.NewBudget(100)
	if err := b.Reserve("join", 60); err != nil {
		t.Fatal(err)
	}
	err := b.Reserve("aggregation", 50)
	var e *columnar.MemoryError
	if !errors.Is(err, columnar.ErrMemory) || !errors.As(err, &e) || e.Who != "aggregation" || e.Used != 60 {
		t.Errorf("%v", err)
	}
	b.Return(20)
	if err := b.Reserve("aggregation", 50); err != nil || b.Used() != 90 || b.Peak() != 90 {
		t.Errorf("%v, used %d, peak %d", err, b.Used(), b.Peak())
	}
	var none *columnar.Budget
	if none.Reserve("x", 1<<60) != nil {
		t.Error("a nil budget refuses")
	}
	none.Return(1)
}
