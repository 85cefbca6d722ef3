package ipc

import (
	"bytes"
	"compress/gzip"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"runtime/debug"
	"strings"
	"testing"
	"time"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/ipc"
	"github.com/apache/arrow-go/v18/arrow/memory"

	"github.com/tidemill/tidemill/columnar"
	"github.com/tidemill/tidemill/columnar/columnartest"
	"github.com/tidemill/tidemill/formats/codec"
	"github.com/tidemill/tidemill/formats/codec/codectest"
	"github.com/tidemill/tidemill/logical/connector"
)

// read infers the columns of a file and shows its rows.
func read(t testing.TB, o Options, name string, data []byte, s codectest.Scan) (*arrow.Schema, []string, error) {
	t.Helper()
	f := must(New(o))
	file := codectest.File(t, name, data)
	inferred, ok, err := f.Infer(context.Background(), []codec.File{file})
	if err != nil || !ok {
		return nil, nil, err
	}
	rows, err := codectest.Read(t, f, file, inferred.Schema, s)
	return inferred.Schema, rows, err
}

func must[T any](v T, err error) T {
	if err != nil {
		panic(err)
	}
	return v
}

// foreign is a file or a stream that arrow-go writes of batches of JSON.
func foreign(t testing.TB, isFile bool, schema *arrow.Schema, batches []string, o ...ipc.Option) []byte {
	t.Helper()
	var out bytes.Buffer
	o = append(o, ipc.WithSchema(schema))
	var w interface {
		Write(arrow.RecordBatch) error
		Close() error
	} = ipc.NewWriter(&out, o...)
	if isFile {
		w = must(ipc.NewFileWriter(&out, o...))
	}
	for _, text := range batches {
		b, _, err := array.RecordFromJSON(memory.DefaultAllocator, schema, strings.NewReader(text))
		if err != nil {
			t.Fatal(err)
		}
		if err := w.Write(b); err != nil {
			t.Fatal(err)
		}
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return out.Bytes()
}

func TestRoundTrip(t *testing.T) {
	t.Parallel()
	for _, compression := range []Compression{Uncompressed, LZ4, Zstd} {
		t.Run(compression.String(), func(t *testing.T) {
			t.Parallel()
			f := must(New(Options{Compression: compression}))
			mem := columnartest.Mem(t)
			schema := columnar.NewSchema(
				columnar.Field("b", columnar.Boolean), columnar.Field("i1", columnar.Int8), columnar.Field("i2", columnar.Int16),
				columnar.Field("i4", columnar.Int32), columnar.Field("i8", columnar.Int64), columnar.Field("f4", columnar.Float32),
				columnar.Field("f8", columnar.Float64), columnar.Field("d", columnar.Decimal(38, 10)), columnar.Field("s", columnar.String),
				columnar.Field("x", columnar.Binary), columnar.Field("date", columnar.Date), columnar.Field("time", columnar.Time),
				columnar.Field("ts", columnar.Timestamp), columnar.Field("iv", columnar.Interval), columnar.Field("n", columnar.Null),
				columnar.Field("l", columnar.ListOf(columnar.ListOf(columnar.String))),
				columnar.Field("st", arrow.StructOf(columnar.Field("a", columnar.Int64), columnar.Field("b", columnar.ListOf(columnar.Boolean)))),
				columnar.Field("m", arrow.MapOf(columnar.String, columnar.Int64)),
			)
			var want []string
			var batches []arrow.RecordBatch
			for i, n := range []int{1, 1000, 7, 64} {
				b := columnartest.Random(t, mem, schema, uint64(i), columnartest.RandomOptions{Rows: n})
				batches = append(batches, b)
				want = append(want, codectest.Rows(b)...)
			}
			data, err := codectest.Write(t, f, schema, batches...)
			if err != nil {
				t.Fatal(err)
			}
			for _, rows := range []int{0, 3} {
				got, err := codectest.ReadMem(t, mem, f, codectest.File(t, "x.arrow", []byte(data)), schema, codectest.Scan{BatchRows: rows, Hash: true})
				if err != nil {
					t.Fatal(err)
				}
				same(t, got, want)
			}
		})
	}
}

func same(t testing.TB, got, want []string) {
	t.Helper()
	if len(got) != len(want) {
		t.Fatalf("%d rows, want %d", len(got), len(want))
	}
	for i := range got {
		if got[i] != want[i] {
			t.Fatalf("row %d is\n%s\nwant\n%s", i, got[i], want[i])
		}
	}
}

// Types that the engine does not have become ones that hold all their values.
func TestForeignTypes(t *testing.T) {
	t.Parallel()
	dict := func(index, value arrow.DataType) arrow.DataType {
		return &arrow.DictionaryType{IndexType: index, ValueType: value}
	}
	for name, test := range map[string]struct {
		dt         arrow.DataType
		in         string // values, comma separated JSON
		want, rows string
	}{
		"uint8":         {arrow.PrimitiveTypes.Uint8, `1, null, 255`, "SMALLINT", "1 ∅ 255"},
		"uint16":        {arrow.PrimitiveTypes.Uint16, `1, null, 65535`, "INTEGER", "1 ∅ 65535"},
		"uint32":        {arrow.PrimitiveTypes.Uint32, `1, null, 4294967295`, "BIGINT", "1 ∅ 4294967295"},
		"uint64":        {arrow.PrimitiveTypes.Uint64, `1, null, 18446744073709551615`, "DECIMAL(20,0)", "1 ∅ 18446744073709551615"},
		"half":          {arrow.FixedWidthTypes.Float16, `1.5, null, -0.25`, "REAL", "1.5 ∅ -0.25"},
		"decimal32":     {&arrow.Decimal32Type{Precision: 5, Scale: 2}, `"1.50", null, "-999.99"`, "DECIMAL(5,2)", "1.50 ∅ -999.99"},
		"decimal64":     {&arrow.Decimal64Type{Precision: 18, Scale: 3}, `"1.500", null, "-999999999999999.999"`, "DECIMAL(18,3)", "1.500 ∅ -999999999999999.999"},
		"decimal256":    {&arrow.Decimal256Type{Precision: 38, Scale: 1}, `"1.5", null, "-9999999999999999999999999999999999999.9"`, "DECIMAL(38,1)", "1.5 ∅ -9999999999999999999999999999999999999.9"},
		"date64":        {arrow.FixedWidthTypes.Date64, `"2024-01-02", null, "1969-12-31"`, "DATE", "2024-01-02 ∅ 1969-12-31"},
		"time32 s":      {arrow.FixedWidthTypes.Time32s, `"01:02:03", null`, "TIME", "01:02:03 ∅"},
		"time32 ms":     {arrow.FixedWidthTypes.Time32ms, `"01:02:03.5", null`, "TIME", "01:02:03.500000 ∅"},
		"time64 ns":     {arrow.FixedWidthTypes.Time64ns, `"01:02:03.000001999", null`, "TIME", "01:02:03.000001 ∅"},
		"ts s":          {&arrow.TimestampType{Unit: arrow.Second, TimeZone: "UTC"}, `"2024-01-02T03:04:05Z", null`, "TIMESTAMP", "2024-01-02 03:04:05 ∅"},
		"ts ms":         {&arrow.TimestampType{Unit: arrow.Millisecond, TimeZone: "America/New_York"}, `"2024-01-02T03:04:05.5Z", null`, "TIMESTAMP", "2024-01-02 03:04:05.500000 ∅"},
		"ts ns":         {&arrow.TimestampType{Unit: arrow.Nanosecond, TimeZone: "UTC"}, `"1969-12-31T23:59:59.999999999Z", null`, "TIMESTAMP", "1969-12-31 23:59:59.999999 ∅"},
		"ts wall":       {&arrow.TimestampType{Unit: arrow.Microsecond}, `"2024-01-02T03:04:05", null`, "TIMESTAMP", "2024-01-01 18:04:05 ∅"},
		"duration":      {arrow.FixedWidthTypes.Duration_ms, `"1500ms", null`, "INTERVAL", "00:00:01.5 ∅"},
		"months":        {arrow.FixedWidthTypes.MonthInterval, `{"months": 14}, null`, "INTERVAL", "1 year 2 months ∅"},
		"days":          {arrow.FixedWidthTypes.DayTimeInterval, `{"days": 2, "milliseconds": 1500}, null`, "INTERVAL", "2 days 00:00:01.5 ∅"},
		"large text":    {arrow.BinaryTypes.LargeString, `"a", null, "", "ä"`, "VARCHAR", "a ∅  ä"},
		"large bytes":   {arrow.BinaryTypes.LargeBinary, `"YQ==", null`, "BINARY", "a ∅"},
		"views":         {arrow.BinaryTypes.StringView, `"short", null, "longer than twelve bytes", "another long one, too"`, "VARCHAR", "short ∅ longer than twelve bytes another long one, too"},
		"byte views":    {arrow.BinaryTypes.BinaryView, `"YQ==", null`, "BINARY", "a ∅"},
		"fixed bytes":   {&arrow.FixedSizeBinaryType{ByteWidth: 2}, `"YWI=", null`, "BINARY", "ab ∅"},
		"dictionary":    {dict(arrow.PrimitiveTypes.Int8, columnar.String), `"a", "b", null, "a"`, "VARCHAR", "a b ∅ a"},
		"u16 codes":     {dict(arrow.PrimitiveTypes.Uint16, columnar.Int64), `7, 8, null, 7`, "BIGINT", "7 8 ∅ 7"},
		"no dictionary": {dict(arrow.PrimitiveTypes.Int32, columnar.String), `null, null`, "VARCHAR", "∅ ∅"},
		"fixed list":    {arrow.FixedSizeListOf(2, columnar.Int64), `[1, 2], null, [3, null]`, "ARRAY<BIGINT>", "[1,2] ∅ [3,null]"},
		"large list":    {arrow.LargeListOf(arrow.BinaryTypes.LargeString), `["a"], null, [], ["b", null]`, "ARRAY<VARCHAR>", `["a"] ∅ [] ["b",null]`},
		"list view":     {arrow.ListViewOf(columnar.Int64), `[1, 2], null, [], [3]`, "ARRAY<BIGINT>", "[1,2] ∅ [] [3]"},
		"list of codes": {arrow.ListOf(dict(arrow.PrimitiveTypes.Int32, columnar.String)), `["a", "b"], null, ["a", null]`, "ARRAY<VARCHAR>", `["a","b"] ∅ ["a",null]`},
		"struct":        {arrow.StructOf(arrow.Field{Name: "u", Type: arrow.PrimitiveTypes.Uint8, Nullable: true}), `{"u": 1}, null`, "STRUCT<u SMALLINT>", `{"u":1} ∅`},
		"map":           {arrow.MapOf(columnar.String, arrow.PrimitiveTypes.Uint8), `[{"key": "a", "value": 1}], null`, "MAP<VARCHAR, SMALLINT>", `{"a":1} ∅`},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var batch []string
			for _, v := range splitJSON(test.in) {
				batch = append(batch, `{"other": "x", "c": `+v+`, "last": 1}`)
			}
			text := "[" + strings.Join(batch, ",") + "]"
			schema := arrow.NewSchema([]arrow.Field{
				{Name: "other", Type: arrow.BinaryTypes.StringView, Nullable: true},
				{Name: "c", Type: test.dt, Nullable: true},
				{Name: "last", Type: columnar.Int64, Nullable: true},
			}, nil)
			tokyo := must(time.LoadLocation("Asia/Tokyo"))
			for _, o := range [][]ipc.Option{nil, {ipc.WithLZ4()}, {ipc.WithZstd()}} {
				for _, isFile := range []bool{true, false} {
					data := foreign(t, isFile, schema, []string{text}, o...)
					s, rows, err := read(t, Options{TimeZone: tokyo}, "x.arrow", data, codectest.Scan{Columns: []int{1}})
					if err != nil {
						t.Fatal(err)
					}
					if got := columnar.TypeName(s.Field(1).Type); got != test.want {
						t.Errorf("it is %s, want %s", got, test.want)
					}
					if got := strings.Join(rows, " "); got != test.rows {
						t.Errorf("rows %s\nwant %s", got, test.rows)
					}
				}
			}
		})
	}
}

// splitJSON splits at commas that are not within brackets or quotes.
func splitJSON(list string) (out []string) {
	depth, quoted, from := 0, false, 0
	for i, c := range list {
		switch {
		case c == '"':
			quoted = !quoted
		case quoted:
		case c == '[' || c == '{':
			depth++
		case c == ']' || c == '}':
			depth--
		case c == ',' && depth == 0:
			out = append(out, list[from:i])
			from = i + 1
		}
	}
	return append(out, list[from:])
}

// Runs of equal values; arrow-go reads no JSON for them.
func TestRunEndEncoded(t *testing.T) {
	t.Parallel()
	ends := must(columnar.Column(memory.DefaultAllocator, columnar.Int32, 2, 3, 6))
	values := must(columnar.Column(memory.DefaultAllocator, columnar.String, "a", nil, "b"))
	a := array.NewRunEndEncodedArray(ends, values, 6, 0)
	schema := arrow.NewSchema([]arrow.Field{{Name: "c", Type: a.DataType(), Nullable: true}}, nil)
	var out bytes.Buffer
	w := ipc.NewWriter(&out, ipc.WithSchema(schema))
	if err := errors.Join(w.Write(array.NewRecordBatch(schema, []arrow.Array{a}, 6)), w.Close()); err != nil {
		t.Fatal(err)
	}
	_, rows, err := read(t, Options{}, "x.arrow", out.Bytes(), codectest.Scan{})
	if err != nil || strings.Join(rows, " ") != "a a ∅ b b b" {
		t.Errorf("rows %q, %v", rows, err)
	}
}

// A stream may add to its dictionaries and replace them between batches.
func TestChangingDictionaries(t *testing.T) {
	t.Parallel()
	dt := &arrow.DictionaryType{IndexType: columnar.Int32, ValueType: columnar.String}
	schema := arrow.NewSchema([]arrow.Field{{Name: "c", Type: dt, Nullable: true}}, nil)
	batch := func(words ...string) arrow.RecordBatch {
		var codes []any
		var values []any
		for i, w := range words {
			codes, values = append(codes, len(words)-1-i), append(values, w)
		}
		a := array.NewDictionaryArray(dt, must(columnar.Column(memory.DefaultAllocator, columnar.Int32, codes...)),
			must(columnar.Column(memory.DefaultAllocator, columnar.String, values...)))
		return array.NewRecordBatch(schema, []arrow.Array{a}, int64(len(words)))
	}
	for _, deltas := range []bool{false, true} {
		var out bytes.Buffer
		w := ipc.NewWriter(&out, ipc.WithSchema(schema), ipc.WithDictionaryDeltas(deltas))
		for _, b := range []arrow.RecordBatch{batch("a", "b"), batch("a", "b", "c"), batch("d", "e")} {
			if err := w.Write(b); err != nil {
				t.Fatal(err)
			}
		}
		if err := w.Close(); err != nil {
			t.Fatal(err)
		}
		_, rows, err := read(t, Options{}, "x.arrow", out.Bytes(), codectest.Scan{BatchRows: 2})
		if err != nil || strings.Join(rows, " ") != "b a c b a e d" {
			t.Errorf("rows %q, %v", rows, err)
		}
	}
}

func TestColumnsByName(t *testing.T) {
	t.Parallel()
	in := arrow.NewSchema([]arrow.Field{
		{Name: "n", Type: columnar.Int32, Nullable: true}, {Name: "s", Type: columnar.String, Nullable: true},
		{Name: "st", Type: arrow.StructOf(arrow.Field{Name: "b", Type: columnar.Int8, Nullable: true}, arrow.Field{Name: "z", Type: columnar.String, Nullable: true}), Nullable: true},
		{Name: "u", Type: arrow.DenseUnionOf([]arrow.Field{{Name: "x", Type: columnar.Int8, Nullable: true}}, []arrow.UnionTypeCode{0})}, {Name: "z", Type: columnar.Int32, Nullable: true},
	}, nil)
	data := foreign(t, true, in, []string{`[{"n": 1, "s": "x", "z": 7, "st": {"b": 2, "z": "y"}}, {"n": null, "s": "y", "st": null}]`})
	f := must(New(Options{}))
	file := codectest.File(t, "x.arrow", data)
	want := columnar.NewSchema(columnar.Field("S", columnar.Binary), columnar.Field("n", columnar.Decimal(12, 1)), columnar.Field("absent", columnar.Date), columnar.Field("z", columnar.Int64),
		columnar.Field("st", arrow.StructOf(columnar.Field("a", columnar.String), columnar.Field("b", columnar.Int64))))
	rows, err := codectest.Read(t, f, file, want, codectest.Scan{Declared: true})
	if err != nil || strings.Join(rows, " ") != `x|1.0|∅|7|{"a":null,"b":2} y|∅|∅|∅|∅` {
		t.Errorf("rows %q, %v", rows, err)
	}
	if rows, err = codectest.Read(t, f, file, want, codectest.Scan{Declared: true, Columns: []int{}}); err != nil || len(rows) != 2 {
		t.Errorf("rows without columns %q, %v", rows, err)
	}
	for text, test := range map[string]struct {
		schema *arrow.Schema
		s      codectest.Scan
	}{
		"column st.z: the source had no such column":   {want, codectest.Scan{}},
		"column u: the source had no such column":      {arrow.NewSchema(append(in.Fields()[:3:3], in.Fields()[4]), nil), codectest.Scan{}},
		"column n: it is INTEGER in the file":          {columnar.NewSchema(columnar.Field("n", columnar.Int16)), codectest.Scan{Declared: true}},
		"column u: it is a union, which cannot be rea": {columnar.NewSchema(columnar.Field("u", columnar.Int16)), codectest.Scan{Declared: true}},
	} {
		if _, err := codectest.Read(t, f, file, test.schema, test.s); err == nil || !strings.Contains(err.Error(), text) {
			t.Errorf("%v\nwant %s", err, text)
		}
	}
	if _, _, err := f.Infer(t.Context(), []codec.File{file}); err == nil || !strings.Contains(err.Error(), "declare the columns") {
		t.Errorf("a union is inferred: %v", err)
	}
}

// polars writes integers of 128 bits, which are no type of Arrow: they are refused by name, and
// other columns can be read.
func TestWideIntegers(t *testing.T) {
	t.Parallel()
	for _, signed := range []bool{true, false} {
		f := &field{}
		if err := f.setInt(128, signed); err != nil || f.typ != nil || f.width != 16 || !strings.Contains(f.why, "128 bits") {
			t.Errorf("%+v, %v", f, err)
		}
		if err := (&field{}).setInt(7, signed); err == nil {
			t.Error("integers of 7 bits were taken")
		}
	}
}

// What is no Arrow file, or was one, is refused in words that name it; mode drop leaves it
// out and counts it.
func TestRefused(t *testing.T) {
	t.Parallel()
	schema := arrow.NewSchema([]arrow.Field{{Name: "a", Type: columnar.Int64, Nullable: true}}, nil)
	file := foreign(t, true, schema, []string{`[{"a": 1}, {"a": 2}]`})
	stream := foreign(t, false, schema, []string{`[{"a": 1}, {"a": 2}]`})
	ns := arrow.NewSchema([]arrow.Field{{Name: "a", Type: arrow.FixedWidthTypes.Timestamp_s, Nullable: true}}, nil)
	far := foreign(t, true, ns, []string{`[{"a": 9000000000000000}]`})
	late := func(typ arrow.DataType, was, is int64) []byte {
		one := foreign(t, true, arrow.NewSchema([]arrow.Field{{Name: "a", Type: typ, Nullable: true}}, nil), []string{`[{"a": "23:59:59"}]`})
		width := typ.(arrow.FixedWidthDataType).Bytes()
		return bytes.Replace(one, binary.LittleEndian.AppendUint64(nil, uint64(was))[:width], binary.LittleEndian.AppendUint64(nil, uint64(is))[:width], 1)
	}
	bad := foreign(t, true, arrow.NewSchema([]arrow.Field{{Name: "a", Type: columnar.String, Nullable: true}}, nil), []string{`[{"a": "abcdefgh"}]`})
	for name, test := range map[string]struct {
		data []byte
		says string
	}{
		"empty":       {nil, "the file is empty"},
		"text":        {[]byte("hello, world, this is text\n"), "does not begin as an Arrow file or stream"},
		"short":       {[]byte("hi"), "does not begin as an Arrow file or stream"},
		"zeros":       {make([]byte, 64), "does not begin as an Arrow file or stream"},
		"feather 1":   {[]byte("FEA1xxxxxxxxxxxxxxxx"), "version 1"},
		"parquet":     {[]byte("PAR1xxxxxxxxxxxxxxxx"), "format = 'parquet'"},
		"file cut":    {file[:len(file)-3], "cut off"},
		"stream cut":  {stream[:len(stream)-24], "unexpected EOF"},
		"no end":      {stream[:len(stream)-8], "the mark of its end is missing"},
		"two streams": {append(bytes.Clone(stream), stream...), "bytes stand behind the mark of its end"},
		"only magic":  {[]byte("ARROW1\x00\x00"), "cut off"},
		"out of time": {far, "row 1 of a batch is out of range of TIMESTAMP"},
		"a day":       {late(arrow.FixedWidthTypes.Time32ms, 86_399_000, 86_400_000), "row 1 of a batch is out of range of TIME"},
		"a day, us":   {late(arrow.FixedWidthTypes.Time64us, 86_399_000_000, -1), "row 1 of a batch is out of range of TIME"},
		"a day, ns":   {late(arrow.FixedWidthTypes.Time64ns, 86_399_000_000_000, 86_400_000_000_000), "row 1 of a batch is out of range of TIME"},
		"no UTF-8":    {bytes.Replace(bad, []byte("abcdefgh"), []byte("abc\xffefgh"), 1), "row 1 of a batch is not UTF-8"},
		"gzip cut":    {zipped(file)[:40], "damaged"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			_, _, err := read(t, Options{}, "x.arrow", test.data, codectest.Scan{})
			var e *connector.RecordError
			if !errors.As(err, &e) || e.File != "x.arrow" || !strings.Contains(err.Error(), test.says) {
				t.Errorf("%v\nwant %s", err, test.says)
			}
			stats := &connector.ScanStats{Kept: connector.NewBadRecords(nil)}
			f := must(New(Options{Mode: codec.Drop}))
			rows, err := codectest.Read(t, f, codectest.File(t, "x.arrow", test.data), columnar.NewSchema(columnar.Field("a", columnar.Timestamp)),
				codectest.Scan{Stats: stats, Declared: true, Hash: true})
			if name == "no UTF-8" || strings.HasPrefix(name, "a day") {
				return // declared as another type, it is refused for that
			}
			if err != nil || len(rows) > 0 || stats.MalformedFiles.Load() != 1 {
				t.Errorf("mode drop: %d rows, %d files, %v", len(rows), stats.MalformedFiles.Load(), err)
			}
			if files, err := stats.Kept.Files(); err != nil || len(files) != 1 || len(files[0].Records) != 1 {
				t.Errorf("kept %v, %v", files, err)
			}
		})
	}
}

func zipped(data []byte) []byte {
	var out bytes.Buffer
	w := gzip.NewWriter(&out)
	_, _ = w.Write(data) // a buffer does not fail
	_ = w.Close()
	return out.Bytes()
}

func TestCompressedAsAWhole(t *testing.T) {
	t.Parallel()
	schema := arrow.NewSchema([]arrow.Field{{Name: "a", Type: columnar.Int64, Nullable: true}}, nil)
	for _, isFile := range []bool{true, false} {
		data := zipped(foreign(t, isFile, schema, []string{`[{"a": 1}]`, `[{"a": 2}]`}))
		_, rows, err := read(t, Options{}, "x.arrow.gz", data, codectest.Scan{Hash: true})
		if err != nil || strings.Join(rows, " ") != "1 2" {
			t.Errorf("rows %q, %v", rows, err)
		}
	}
}

// Many batches are several units, in the order of the file; only the wanted columns are
// read.
func TestUnits(t *testing.T) {
	t.Parallel()
	f := must(New(Options{}))
	mem := columnartest.Mem(t)
	schema := columnar.NewSchema(columnar.Field("a", columnar.Int64), columnar.Field("long", columnar.String))
	long := strings.Repeat("x", 1<<20)
	var want []string
	var batches []arrow.RecordBatch
	for i := range 10 {
		a := must(columnar.Column(mem, columnar.Int64, i))
		s := must(columnar.Column(mem, columnar.String, long))
		b := array.NewRecordBatch(schema, []arrow.Array{a, s}, 1)
		defer b.Release()
		a.Release()
		s.Release()
		batches = append(batches, b)
		want = append(want, fmt.Sprint(i))
	}
	data, err := codectest.Write(t, f, schema, batches...)
	if err != nil {
		t.Fatal(err)
	}
	file := codectest.File(t, "x.arrow", []byte(data))
	units, err := f.Units(t.Context(), file, codec.Columns{Schema: schema}, connector.ScanRequest{Mem: mem})
	if err != nil || len(units) < 3 || units[0].Name() != "x.arrow batches 0-2" {
		t.Fatalf("units %v, %v", units, err)
	}
	stats := &connector.ScanStats{}
	rows, err := codectest.ReadMem(t, mem, f, file, schema, codectest.Scan{Columns: []int{0}, Stats: stats, Hash: true})
	if err != nil {
		t.Fatal(err)
	}
	same(t, rows, want)
	if n := stats.Bytes.Load(); n > 10*64 {
		t.Errorf("%d bytes were read for ten numbers", n)
	}
	if n, err := RowCount(file); err != nil || n != 10 {
		t.Errorf("%d rows, %v", n, err)
	}
}

func TestOptions(t *testing.T) {
	t.Parallel()
	o, err := ParseOptions(map[string]string{"mode": "drop", "compression": "ZSTD", "time_zone": "Asia/Tokyo"})
	if err != nil || o.Mode != codec.Drop || o.Compression != Zstd || o.TimeZone.String() != "Asia/Tokyo" {
		t.Errorf("%+v, %v", o, err)
	}
	for _, wrong := range []map[string]string{{"compression": "gzip"}, {"mode": "x"}, {"time_zone": "Mars"}, {"modus": "drop"}} {
		var option *connector.OptionError
		if _, err := ParseOptions(wrong); !errors.As(err, &option) {
			t.Errorf("%v: %v", wrong, err)
		}
	}
	if _, err := New(Options{Compression: 9}); err == nil {
		t.Error("a compression that is none is taken")
	}
}

// A damaged file gives an error or rows, never a crash and never memory without bound.
func FuzzRead(f *testing.F) {
	schema := arrow.NewSchema([]arrow.Field{
		{Name: "a", Type: arrow.PrimitiveTypes.Uint64, Nullable: true},
		{Name: "v", Type: arrow.BinaryTypes.StringView, Nullable: true},
		{Name: "d", Type: &arrow.DictionaryType{IndexType: columnar.Int8, ValueType: columnar.String}, Nullable: true},
		{Name: "l", Type: arrow.ListOf(arrow.StructOf(arrow.Field{Name: "x", Type: arrow.BinaryTypes.LargeString, Nullable: true})), Nullable: true},
		{Name: "lv", Type: arrow.LargeListViewOf(columnar.Int64), Nullable: true},
		{Name: "m", Type: arrow.MapOf(columnar.String, columnar.Boolean), Nullable: true},
		{Name: "t", Type: arrow.FixedWidthTypes.Timestamp_s, Nullable: true},
	}, nil)
	rows := []string{`[{"a": 1, "v": "a text that is long enough", "d": "x", "l": [{"x": "y"}], "lv": [1], "m": [{"key": "k", "value": true}], "t": 1}, {}]`, `[{"d": "x"}]`}
	for _, isFile := range []bool{true, false} {
		f.Add(foreign(f, isFile, schema, rows))
		f.Add(foreign(f, isFile, schema, rows, ipc.WithLZ4()))
		f.Add(foreign(f, isFile, schema, rows, ipc.WithZstd()))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		format := must(New(Options{}))
		file := codectest.File(t, "x.arrow", data)
		inferred, ok, err := format.Infer(t.Context(), []codec.File{file})
		if err != nil || !ok {
			return
		}
		mem := &bounded{Allocator: memory.DefaultAllocator, t: t}
		units, err := format.Units(t.Context(), file, codec.Columns{Schema: inferred.Schema, CorruptColumn: -1}, connector.ScanRequest{Mem: mem})
		if err != nil {
			return
		}
		for _, u := range units {
			r, err := u.Open(t.Context())
			if err != nil {
				return
			}
			for total := int64(0); total < 1<<16; {
				b, err := r.Next(t.Context())
				if err != nil {
					var e *connector.RecordError
					if !errors.Is(err, io.EOF) && !errors.As(err, &e) {
						t.Errorf("%T: %v", err, err)
					}
					break
				}
				codectest.Rows(b)
				total += b.NumRows()
				b.Release()
			}
			if err := r.Close(); err != nil {
				t.Error(err)
			}
		}
	})
}

// bounded fails where more memory is asked for than a small file is worth.
type bounded struct {
	memory.Allocator
	t *testing.T
}

func (b *bounded) Allocate(n int) []byte {
	if n > 1<<28 {
		b.t.Errorf("%d bytes are asked for\n%s", n, debug.Stack())
	}
	return b.Allocator.Allocate(n)
}
