package parquet

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/memory"
	"github.com/parquet-go/parquet-go"

	"github.com/tidemill/tidemill/columnar"
	"github.com/tidemill/tidemill/columnar/columnartest"
	"github.com/tidemill/tidemill/columnar/function"
	"github.com/tidemill/tidemill/formats/codec"
	"github.com/tidemill/tidemill/internal/vfs"
	"github.com/tidemill/tidemill/logical/connector"
	"github.com/tidemill/tidemill/logical/expr"
)

func inputFile(t testing.TB, m vfs.FS, path string) codec.File {
	t.Helper()
	info, err := m.Stat(path)
	if err != nil {
		t.Fatal(err)
	}
	return codec.File{FS: m, FileIdentity: connector.FileIdentity{Path: path, Size: info.Size()}}
}

// foreign writes rows with the row writer of parquet-go.
func foreign[T any](t testing.TB, m vfs.FS, path string, rows []T, options ...parquet.WriterOption) codec.File {
	t.Helper()
	h, err := m.Create(path)
	if err != nil {
		t.Fatal(err)
	}
	w := parquet.NewGenericWriter[T](h, options...)
	if _, err := w.Write(rows); err != nil {
		t.Fatal(err)
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	_ = h.Close()
	return inputFile(t, m, path)
}

func TestTypes(t *testing.T) {
	t.Parallel()
	type row struct {
		U8    uint8     `parquet:"u8"`
		U16   uint16    `parquet:"u16"`
		U32   uint32    `parquet:"u32"`
		U64   uint64    `parquet:"u64"`
		I8    int8      `parquet:"i8"`
		UUID  [16]byte  `parquet:"id,uuid"`
		Raw   [3]byte   `parquet:"raw"`
		Enum  string    `parquet:"enum,enum"`
		JSON  string    `parquet:"json,json"`
		Ms    int64     `parquet:"ms,timestamp(millisecond)"`
		Ns    int64     `parquet:"ns,timestamp(nanosecond)"`
		Clock int32     `parquet:"clock,time(millisecond)"`
		Day   int32     `parquet:"day,date"`
		Dec   int64     `parquet:"dec,decimal(2:18)"`
		Opt   *string   `parquet:"opt,optional"`
		Two   []int32   `parquet:"two"`
		Three []string  `parquet:"three,list"`
		Bare  []subject `parquet:"bare"`
	}
	opt := "x"
	m := vfs.NewMem()
	file := foreign(t, m, "a", []row{
		{U8: 255, U16: 65535, U32: math.MaxUint32, U64: math.MaxUint64, I8: -128, UUID: [16]byte{0x12, 15: 0xff}, Raw: [3]byte{1, 2, 3},
			Enum: "E", JSON: "{}", Ms: -1, Ns: -1, Clock: 1500, Day: -1, Dec: -12345, Opt: &opt, Two: []int32{1, 2}, Three: []string{"a", ""}, Bare: []subject{{"n", []int64{7}}, {"o", nil}}},
		{},
	})
	f, err := New(Options{})
	if err != nil {
		t.Fatal(err)
	}
	inferred, ok, err := f.Infer(context.Background(), []codec.File{file})
	if err != nil || !ok {
		t.Fatal(ok, err)
	}
	const want = "u8 SMALLINT, u16 INTEGER, u32 BIGINT, u64 DECIMAL(20,0), i8 TINYINT, id VARCHAR, raw BINARY, enum VARCHAR, json VARCHAR, " +
		"ms TIMESTAMP, ns TIMESTAMP, clock TIME, day DATE, dec DECIMAL(18,2), opt VARCHAR, two ARRAY<INTEGER>, three ARRAY<VARCHAR>, " +
		"bare ARRAY<STRUCT<name VARCHAR, marks ARRAY<BIGINT>>>"
	if got := columnar.SchemaString(inferred.Schema); got != want {
		t.Errorf("schema\n%s, want\n%s", got, want)
	}
	got, err := scan(t, f, []codec.File{file}, inferred.Schema, connector.ScanRequest{Mem: columnartest.Mem(t)})
	lines := []string{
		`255|65535|4294967295|18446744073709551615|-128|12000000-0000-0000-0000-0000000000ff|AQID|E|{}|1969-12-31T23:59:59.999Z|` +
			`1969-12-31T23:59:59.999999Z|00:00:01.500000|1969-12-31|-123.45|x|[1,2]|["a",""]|[{"marks":[7],"name":"n"},{"marks":[],"name":"o"}]`,
		`0|0|0|0|0|00000000-0000-0000-0000-000000000000|AAAA|||1970-01-01T00:00:00Z|1970-01-01T00:00:00Z|00:00:00.000000|1970-01-01|0|(null)|[]|[]|[]`,
	}
	if err != nil || fmt.Sprint(got) != fmt.Sprint(lines) {
		t.Errorf("%v\n%s\nwant\n%s", err, strings.Join(got, "\n"), strings.Join(lines, "\n"))
	}
}

type subject struct {
	Name  string  `parquet:"name"`
	Marks []int64 `parquet:"marks"`
}

func TestRanges(t *testing.T) {
	t.Parallel()
	type row struct {
		TS int64 `parquet:"ts,timestamp(millisecond)"`
	}
	m := vfs.NewMem()
	file := foreign(t, m, "a", []row{{1}, {math.MaxInt64 / 10}})
	f, _ := New(Options{})
	_, err := scan(t, f, []codec.File{file}, columnar.NewSchema(columnar.Field("ts", columnar.Timestamp)), connector.ScanRequest{Mem: columnartest.Mem(t)})
	if err == nil || err.Error() != "a: column ts: row group 0: a value is outside the range of its type" {
		t.Errorf("%v", err)
	}
}

func TestLocalTime(t *testing.T) {
	t.Parallel()
	type row struct {
		TS int64 `parquet:"ts,timestamp(microsecond:local)"`
	}
	m := vfs.NewMem()
	file := foreign(t, m, "a", []row{{0}})
	zone := time.FixedZone("x", 3600)
	for _, c := range []struct {
		zone *time.Location
		want string
	}{{nil, "1970-01-01T00:00:00Z"}, {zone, "1969-12-31T23:00:00Z"}} {
		f, _ := New(Options{TimeZone: c.zone})
		got, err := scan(t, f, []codec.File{file}, columnar.NewSchema(columnar.Field("ts", columnar.Timestamp)), connector.ScanRequest{Mem: columnartest.Mem(t)})
		if err != nil || len(got) != 1 || got[0] != c.want {
			t.Errorf("%v, %v, want %s", got, err, c.want)
		}
	}
}

func TestWanted(t *testing.T) {
	t.Parallel()
	type row struct {
		A int32    `parquet:"a"`
		F float32  `parquet:"f"`
		D int32    `parquet:"d,date"`
		S string   `parquet:"s"`
		L []int32  `parquet:"l,list"`
		P *subject `parquet:"p,optional"`
	}
	m := vfs.NewMem()
	file := foreign(t, m, "a", []row{{7, 1.5, 1, "x", []int32{1}, &subject{Name: "n"}}, {A: -7}})
	field := columnar.Field
	for _, c := range []struct {
		want arrow.Field
		text string // or an error
	}{
		{field("a", columnar.Int64), "7 -7"},
		{field("A", columnar.Float64), "7 -7"},
		{field("a", columnar.Decimal(12, 2)), "7 -7"},
		{field("f", columnar.Float64), "1.5 0"},
		{field("d", columnar.Timestamp), "1970-01-02T00:00:00Z 1970-01-01T00:00:00Z"},
		{field("s", columnar.Binary), "eA== "},
		{field("l", columnar.ListOf(columnar.Int64)), "[1] []"},
		{field("none", columnar.ListOf(columnar.Int64)), "(null) (null)"},
		{field("p", arrow.StructOf(field("NAME", columnar.String), field("more", columnar.Float64))), `{"NAME":"n","more":null} (null)`},
		{field("p", arrow.StructOf(field("more", columnar.Float64))), `{"more":null} (null)`},
		{field("a", columnar.Int16), "a: column a: it is INTEGER in the file, which does not fit SMALLINT; declare the column INTEGER, or keep such values as JSON with schema_evolution = 'rescue'"},
		{field("s", columnar.Int64), "a: column s: it is VARCHAR in the file, which does not fit BIGINT; declare the column VARCHAR, or keep such values as JSON with schema_evolution = 'rescue'"},
		{field("l", columnar.Int64), "a: column l: it is ARRAY<INTEGER> in the file, wanted is BIGINT; declare the column ARRAY<INTEGER>, or keep such values as JSON with schema_evolution = 'rescue'"},
	} {
		f, _ := New(Options{})
		got, err := scan(t, f, []codec.File{file}, columnar.NewSchema(c.want), connector.ScanRequest{Mem: columnartest.Mem(t)})
		text := strings.Join(got, " ")
		if err != nil {
			text = err.Error()
		}
		if text != c.text {
			t.Errorf("%s %s: %s, want %s", c.want.Name, columnar.TypeName(c.want.Type), text, c.text)
		}
	}
}

// TestDictionary checks that codes are given out, that batches of a row group share
// the dictionary, and that a chunk that gives its dictionary up goes on as texts.
func TestDictionary(t *testing.T) {
	t.Parallel()
	mem := columnartest.Mem(t)
	schema := columnar.NewSchema(columnar.Field("s", columnar.String))
	b := array.NewRecordBuilder(mem, schema)
	defer b.Release()
	s := b.Field(0).(*array.StringBuilder)
	var want []string
	const rows = 300000
	for i := range rows {
		v := fmt.Sprint("few ", i%10)
		if i >= rows*2/5 {
			v = fmt.Sprint("many ", i)
		}
		if i%100 < 7 { // a batch may begin with nulls
			s.AppendNull()
			want = append(want, array.NullValueStr)
			continue
		}
		s.Append(v)
		want = append(want, v)
	}
	batch := b.NewRecordBatch()
	defer batch.Release()
	m := vfs.NewMem()
	writeFile(t, m, "a", schema, WriterConfig{RowGroupRows: rows}, batch)
	f, _ := New(Options{})
	units, err := f.Units(context.Background(), inputFile(t, m, "a"), codec.Columns{Schema: schema}, connector.ScanRequest{Mem: mem, BatchRows: 17001, SplitBytes: codec.MaxRange})
	if err != nil || len(units) != 1 {
		t.Fatal(units, err)
	}
	r, err := units[0].Open(context.Background())
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	var got []string
	var first arrow.ArrayData
	codes, plain := 0, 0
	for x, err := range columnar.All(context.Background(), r) {
		if err != nil {
			t.Fatal(err)
		}
		if !arrow.TypeEqual(x.Schema().Field(0).Type, x.Column(0).DataType()) {
			t.Fatal("the batch's schema differs from its column")
		}
		if d, ok := x.Column(0).(*array.Dictionary); ok {
			codes++
			if first == nil {
				first = d.Dictionary().Data()
			}
			if d.Dictionary().Data() != first {
				t.Error("another dictionary in the same row group")
			}
		} else {
			plain++
		}
		for i := range x.Column(0).Len() {
			got = append(got, strings.Clone(x.Column(0).ValueStr(i)))
		}
	}
	if codes == 0 || plain == 0 {
		t.Errorf("%d batches of codes, %d of texts; want both", codes, plain)
	}
	if !slices.Equal(got, want) {
		t.Error("wrong values")
	}
}

// TestNumberDictionary writes numbers of few values, then of many: the chunk gives its
// dictionary up.
func TestNumberDictionary(t *testing.T) {
	t.Parallel()
	mem := columnartest.Mem(t)
	schema := columnar.NewSchema(columnar.Field("i", columnar.Int64), columnar.Field("j", columnar.Int32), columnar.Field("f", columnar.Float64))
	b := array.NewRecordBuilder(mem, schema)
	defer b.Release()
	const rows = 200000
	value := func(i int) int64 {
		if i < rows/2 {
			return int64(i%7) - 3
		}
		return int64(i) * 1_000_003 % 1_000_000_007
	}
	for i := range rows {
		if i%10 == 9 {
			b.Field(0).AppendNull()
		} else {
			b.Field(0).(*array.Int64Builder).Append(value(i))
		}
		b.Field(1).(*array.Int32Builder).Append(int32(value(i)))
		b.Field(2).(*array.Float64Builder).Append(float64(i % 3))
	}
	batch := b.NewRecordBatch()
	defer batch.Release()
	m := vfs.NewMem()
	writeFile(t, m, "a", schema, WriterConfig{RowGroupRows: rows}, batch)
	if info, _ := m.Stat("a"); info.Size() > 2_000_000 {
		t.Errorf("%d bytes; few values should be small", info.Size())
	}
	want := array.NewTableFromRecords(schema, []arrow.RecordBatch{batch})
	defer want.Release()
	got := readAll(t, mem, m, "a", nil)
	defer got.Release()
	sameTable(t, got, want)
	crossCheck(t, m, "a", want)
}

// TestUniqueNumbers encodes pages of numbers that hardly repeat, which the sample finds out
// before a code is given, and of such as look like it and do repeat.
func TestUniqueNumbers(t *testing.T) {
	t.Parallel()
	mixed := func(i int) uint64 { return valueHash(uint64(i)) }
	for _, c := range []struct {
		name  string
		n     int
		value func(i int) uint64
		coded bool
		sized int // slots, which tell how far it went
	}{
		{"ascending keys", 20000, func(i int) uint64 { return uint64(i) }, false, 0},
		{"scattered keys", 20000, func(i int) uint64 { return uint64(i) * 0x9e3779b97f4a7c15 }, false, 0},
		{"pairs of keys", 20000, func(i int) uint64 { return uint64(i / 2) }, false, 1 << 16},
		{"few in turn", 20000, func(i int) uint64 { return uint64(i % 100) }, true, 1 << 16},
		{"as many in turn as the sample is long", 20000, func(i int) uint64 { return uint64(i % 512) }, true, 1 << 16},
		{"some thousands at random", 20000, func(i int) uint64 { return mixed(i) % 2000 }, true, 1 << 16},
		{"long runs", 20000, func(i int) uint64 { return uint64(i / 1000) }, true, 1 << 16},
		{"too few to tell", 200, func(i int) uint64 { return uint64(i) }, true, 1 << 10},
	} {
		for _, size := range []int{4, 8} {
			var values []byte
			for i := range c.n {
				if size == 8 {
					values = binary.LittleEndian.AppendUint64(values, c.value(i))
				} else {
					values = binary.LittleEndian.AppendUint32(values, uint32(c.value(i)))
				}
			}
			before := slices.Clone(values)
			d := &valueDictionary{}
			coded := d.encode(values, size)
			if coded != c.coded || len(d.slots) > c.sized || !slices.Equal(values, before) {
				t.Errorf("%s of %d bytes: coded %v with %d slots", c.name, size, coded, len(d.slots))
			}
			for i, code := range d.codes {
				if coded && d.values[code] != numberAt(values, size, i) {
					t.Fatalf("%s of %d bytes: value %d has the code of %d", c.name, size, i, d.values[code])
				}
			}
			if !coded && len(d.values) > 0 {
				t.Errorf("%s of %d bytes: %d values are left", c.name, size, len(d.values))
			}
		}
	}
}

// TestWriteDictionary writes encoded batches with different dictionaries.
func TestWriteDictionary(t *testing.T) {
	t.Parallel()
	mem := columnartest.Mem(t)
	schema := columnar.NewSchema(columnar.Field("s", columnar.String))
	var batches []arrow.RecordBatch
	var want []string
	for k := range 5 {
		dt := &arrow.DictionaryType{IndexType: arrow.PrimitiveTypes.Int32, ValueType: columnar.String}
		b := array.NewDictionaryBuilder(mem, dt).(*array.BinaryDictionaryBuilder)
		for i := range 1000 {
			if i%11 == 3 {
				b.AppendNull()
				want = append(want, array.NullValueStr)
				continue
			}
			v := fmt.Sprint("v", (i*k)%50)
			if err := b.AppendString(v); err != nil {
				t.Fatal(err)
			}
			want = append(want, v)
		}
		a := b.NewArray()
		b.Release()
		x := array.NewRecordBatch(columnar.NewSchema(columnar.Field("s", dt)), []arrow.Array{a}, 1000)
		a.Release()
		defer x.Release()
		batches = append(batches, x)
	}
	for _, noDict := range []bool{false, true} {
		m := vfs.NewMem()
		writeFile(t, m, "a", schema, WriterConfig{RowGroupRows: 2500, NoDictionary: noDict}, batches...)
		table := readAll(t, mem, m, "a", nil)
		if got := text(table.Column(0).Data()); !slices.Equal(got, want) {
			t.Errorf("dictionary off %v: wrong values", noDict)
		}
		table.Release()
	}
}

// call builds a function call over a column and a literal.
func call(t testing.TB, name string, args ...expr.Expr) expr.Expr {
	t.Helper()
	e, err := expr.NewCall(function.Builtins(), name, args...)
	if err != nil {
		t.Fatal(err)
	}
	return e
}

func int64Literal(v int64) expr.Expr {
	b := array.NewInt64Builder(memory.DefaultAllocator)
	b.Append(v)
	return &expr.Literal{Value: b.NewArray()}
}

func TestPrune(t *testing.T) {
	t.Parallel()
	mem := columnartest.Mem(t)
	schema := columnar.NewSchema(columnar.Field("id", columnar.Int64), columnar.Field("v", columnar.Int64))
	b := array.NewRecordBuilder(mem, schema)
	defer b.Release()
	for i := range 400000 {
		b.Field(0).(*array.Int64Builder).Append(int64(i))
		b.Field(1).AppendNull()
	}
	batch := b.NewRecordBatch()
	defer batch.Release()
	m := vfs.NewMem()
	writeFile(t, m, "a", schema, WriterConfig{RowGroupRows: 100000}, batch)
	file := inputFile(t, m, "a")
	id := &expr.Ref{Index: 0, Name: "id", DataType: columnar.Int64, Null: true}
	v := &expr.Ref{Index: 1, Name: "v", DataType: columnar.Int64, Null: true}
	for _, c := range []struct {
		filter expr.Expr
		groups int
	}{
		{call(t, "<", id, int64Literal(100000)), 1},
		{call(t, ">=", id, int64Literal(99999)), 4},
		{call(t, "=", id, int64Literal(250000)), 1},
		{call(t, ">", id, int64Literal(400000)), 0},
		{call(t, "is_null", v), 4},
		{call(t, "is_not_null", v), 0},
		{call(t, "=", v, int64Literal(1)), 0},
		{&expr.In{Value: id, List: []expr.Expr{int64Literal(5), int64Literal(399999)}}, 2},
	} {
		f, _ := New(Options{})
		stats := &connector.ScanStats{}
		units, err := f.Units(context.Background(), file, codec.Columns{Schema: schema}, connector.ScanRequest{Mem: mem, Filters: []expr.Expr{c.filter}, Stats: stats})
		if err != nil || len(units) != c.groups || stats.GroupsPruned.Load() != int64(4-c.groups) {
			t.Errorf("%s: %d row groups, %d pruned, %v; want %d", c.filter, len(units), stats.GroupsPruned.Load(), err, c.groups)
		}
	}
}

func TestHiddenAndEmpty(t *testing.T) {
	t.Parallel()
	mem := columnartest.Mem(t)
	batch := randomBatch(mem, rand.New(rand.NewPCG(3, 3)), everything, 10, 10)
	defer batch.Release()
	m := vfs.NewMem()
	if err := m.MkdirAll("in"); err != nil {
		t.Fatal(err)
	}
	writeFile(t, m, "in/a.parquet", everything, WriterConfig{RowGroupRows: 4}, batch)
	f, _ := New(Options{})
	got, err := scan(t, f, []codec.File{inputFile(t, m, "in/a.parquet")}, everything,
		connector.ScanRequest{Mem: mem, Columns: []int{}, Hidden: []string{connector.HiddenFile}})
	if err != nil || len(got) != 10 || got[9] != "in/a.parquet" {
		t.Errorf("%q, %v", got, err)
	}
	got, err = scan(t, f, []codec.File{inputFile(t, m, "in/a.parquet")}, everything, connector.ScanRequest{Mem: mem, Columns: []int{}})
	if err != nil || len(got) != 10 {
		t.Errorf("%q, %v", got, err)
	}
	n, err := RowCount(inputFile(t, m, "in/a.parquet"))
	if err != nil || n != 10 {
		t.Errorf("%d rows, %v", n, err)
	}
	writeFile(t, m, "none.parquet", everything, WriterConfig{})
	units, err := f.Units(context.Background(), inputFile(t, m, "none.parquet"), codec.Columns{Schema: everything}, connector.ScanRequest{Mem: mem})
	if err != nil || len(units) != 0 {
		t.Errorf("%d units of an empty file, %v", len(units), err)
	}
}

func TestInfer(t *testing.T) {
	t.Parallel()
	m := vfs.NewMem()
	type a struct {
		X int32  `parquet:"x"`
		Y string `parquet:"y"`
	}
	type b struct {
		Z float32 `parquet:"z"`
		X float64 `parquet:"x"`
	}
	type c struct {
		X string `parquet:"x"`
	}
	files := []codec.File{foreign(t, m, "a", []a{{}}), foreign(t, m, "b", []b{{}}), foreign(t, m, "c", []c{{}})}
	f, _ := New(Options{})
	got, ok, err := f.Infer(context.Background(), files[:2])
	if err != nil || !ok || columnar.SchemaString(got.Schema) != "x DOUBLE, y VARCHAR, z REAL" {
		t.Errorf("%v %v %v", got.Schema, ok, err)
	}
	if _, _, err := f.Infer(context.Background(), files); err == nil || !strings.Contains(err.Error(), "c: column x: it is VARCHAR here and DOUBLE in earlier files") {
		t.Errorf("%v", err)
	}
	_, err = f.Units(context.Background(), files[1], codec.Columns{Schema: columnar.NewSchema(columnar.Field("x", columnar.Float64))}, connector.ScanRequest{})
	var re *connector.RecordError
	if !errors.As(err, &re) || re.Column != "z" || re.File != "b" {
		t.Errorf("%v, want an error about column z", err)
	}
}

func TestFileChanged(t *testing.T) {
	t.Parallel()
	m := vfs.NewMem()
	file := foreign(t, m, "a", []subject{{Name: "x"}})
	f, _ := New(Options{})
	schema := columnar.NewSchema(columnar.Field("name", columnar.String))
	units, err := f.Units(context.Background(), file, codec.Columns{Schema: schema, Declared: true}, connector.ScanRequest{})
	if err != nil {
		t.Fatal(err)
	}
	foreign(t, m, "a", []subject{{Name: "x"}, {Name: "much longer"}})
	var changed *connector.FileChangedError
	if _, err := units[0].Open(context.Background()); !errors.As(err, &changed) {
		t.Errorf("%v", err)
	}
	if _, err := f.Units(context.Background(), file, codec.Columns{Schema: schema, Declared: true}, connector.ScanRequest{}); !errors.As(err, &changed) {
		t.Errorf("%v", err)
	}
}

func TestOptions(t *testing.T) {
	t.Parallel()
	o, err := ParseOptions(map[string]string{"Mode": "drop", "compression": "zstd", "row_group_rows": "1000", "time_zone": "Europe/Vienna"})
	if err != nil || o.Mode != codec.Drop || o.Compression != Zstd || o.RowGroupRows != 1000 || o.TimeZone.String() != "Europe/Vienna" {
		t.Errorf("%+v, %v", o, err)
	}
	for _, c := range []struct{ key, value, want string }{
		{"compresion", "zstd", `option compresion: there is no such option; did you mean compression?`},
		{"compression", "lzo", `option compression = "lzo": it takes snappy, zstd, gzip or none`},
		{"compression_level", "23", `option compression_level = "23": it takes a number from 1, fast, to 22, small`},
		{"row_group_rows", "0", `option row_group_rows = "0": it takes an integer of at least 1`},
		{"mode", "x", `option mode = "x": it takes permissive, drop or fail`},
		{"time_zone", "Mars/Base", `option time_zone = "Mars/Base": time zone "Mars/Base" is unknown; name one like Europe/Berlin, UTC or +02:00`},
	} {
		if _, err := ParseOptions(map[string]string{c.key: c.value}); err == nil || err.Error() != c.want {
			t.Errorf("%v, want %s", err, c.want)
		}
	}
}

// TestAllocations bounds the allocations of reading a batch of flat columns.
func TestAllocations(t *testing.T) {
	m := vfs.NewMem()
	batches := benchBatches(columnar.DefaultBatchRows*10, 0)
	writeFile(t, m, "a", benchSchema, WriterConfig{}, batches...)
	for _, b := range batches {
		b.Release()
	}
	f, err := OpenFile(m, "a")
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	pool := columnar.NewPool()
	r, err := f.Reader(pool, nil)
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	n := testing.AllocsPerRun(8, func() {
		b, err := r.Next(context.Background())
		if err != nil {
			t.Fatal(err)
		}
		b.Release()
	})
	if n > 100 {
		t.Errorf("%v allocations for a batch of 7 columns", n)
	}
}

// TestParallel reads the row groups of a file by several goroutines.
func TestParallel(t *testing.T) {
	t.Parallel()
	mem := columnartest.Mem(t)
	batch := randomBatch(memory.DefaultAllocator, rand.New(rand.NewPCG(8, 8)), everything, 400, 10)
	defer batch.Release()
	m := vfs.NewMem()
	writeFile(t, m, "a", everything, WriterConfig{RowGroupRows: 40, Compression: Zstd}, batch)
	f, err := OpenFile(m, "a")
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	var wg sync.WaitGroup
	for range 4 {
		wg.Go(func() {
			r, err := f.Reader(mem, nil)
			if err != nil {
				t.Error(err)
				return
			}
			defer r.Close()
			rows := int64(0)
			for b, err := range columnar.All(context.Background(), r) {
				if err != nil {
					t.Error(err)
					return
				}
				rows += b.NumRows()
			}
			if rows != 400 {
				t.Errorf("%d rows", rows)
			}
		})
	}
	wg.Wait()
}
