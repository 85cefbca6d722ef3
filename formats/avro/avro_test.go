package avro

import (
	"bytes"
	"encoding/base64"
	"errors"
	"fmt"
	"io"
	"math/big"
	"runtime/debug"
	"strings"
	"testing"
	"time"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/memory"
	"github.com/klauspost/compress/flate"
	"github.com/twmb/avro"
	"github.com/twmb/avro/ocf"
	"github.com/ulikunitz/xz"

	"github.com/tidemill/tidemill/columnar"
	"github.com/tidemill/tidemill/columnar/columnartest"
	"github.com/tidemill/tidemill/formats/codec"
	"github.com/tidemill/tidemill/formats/codec/codectest"
	"github.com/tidemill/tidemill/logical/connector"
)

// read infers the columns of a file and shows its rows.
func read(t testing.TB, o Options, data []byte, s codectest.Scan) (*arrow.Schema, []string, error) {
	t.Helper()
	f := must(New(o))
	file := codectest.File(t, "x.avro", data)
	inferred, ok, err := f.Infer(t.Context(), []codec.File{file})
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

// xzCodec is one that the library has not.
type xzCodec struct{}

func (xzCodec) Name() string { return codecXZ }
func (xzCodec) Close() error { return nil }

func (xzCodec) Compress(src []byte) ([]byte, error) {
	var out bytes.Buffer
	w := must(xz.NewWriter(&out))
	_, err := w.Write(src)
	err = errors.Join(err, w.Close())
	return out.Bytes(), err
}

func (xzCodec) Decompress([]byte) ([]byte, error) { return nil, errors.ErrUnsupported }

// foreign is a file that the library writes, perBlock records a block; 0: as many as it
// likes.
func foreign(t testing.TB, schema string, c ocf.Codec, perBlock int, rows ...any) []byte {
	t.Helper()
	var out bytes.Buffer
	o := []ocf.WriterOpt{ocf.WithSyncMarker([16]byte([]byte("0123456789abcdef")))}
	if c != nil {
		o = append(o, ocf.WithCodec(c))
	}
	if perBlock > 0 {
		o = append(o, ocf.WithBlockCount(perBlock))
	}
	w, err := ocf.NewWriter(&out, must(avro.Parse(schema)), o...)
	if err != nil {
		t.Fatal(err)
	}
	for _, row := range rows {
		if err := w.Encode(row); err != nil {
			t.Fatal(err)
		}
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return out.Bytes()
}

type row = map[string]any

// written is the columns that files can hold as they are.
func written() *arrow.Schema {
	return columnar.NewSchema(
		columnar.Field("b", columnar.Boolean), columnar.Field("i4", columnar.Int32), columnar.Field("i8", columnar.Int64),
		columnar.Field("f4", columnar.Float32), columnar.Field("f8", columnar.Float64), columnar.Field("d", columnar.Decimal(38, 10)),
		columnar.Field("s", columnar.String), columnar.Field("x", columnar.Binary), columnar.Field("date", columnar.Date),
		columnar.Field("time", columnar.Time), columnar.Field("ts", columnar.Timestamp), columnar.Field("n", columnar.Null),
		columnar.Field("l", columnar.ListOf(columnar.ListOf(columnar.String))),
		columnar.Field("st", arrow.StructOf(columnar.Field("a", columnar.Int64), columnar.Field("b", columnar.ListOf(columnar.Boolean)))),
		columnar.Field("m", arrow.MapOf(columnar.String, columnar.Int64)),
		columnar.Field("deep", columnar.ListOf(arrow.StructOf(columnar.Field("m", arrow.MapOf(columnar.String, arrow.StructOf(columnar.Field("d", columnar.Decimal(5, 2)))))))),
	)
}

func TestRoundTrip(t *testing.T) {
	t.Parallel()
	for c := Snappy; c <= Zstd; c++ {
		t.Run(c.String(), func(t *testing.T) {
			t.Parallel()
			f := must(New(Options{Compression: c}))
			mem := columnartest.Mem(t)
			schema := written()
			var want []string
			var batches []arrow.RecordBatch
			nulls := []float64{1, 0, 0, -1} // the first batch is null, the last has no null
			for i, n := range []int{1, 1000, 7, 64} {
				b := columnartest.Random(t, mem, schema, uint64(i), columnartest.RandomOptions{Rows: n, Dictionary: i == 2, Nulls: nulls[i]})
				batches = append(batches, b)
				want = append(want, codectest.Rows(b)...)
			}
			data, err := codectest.Write(t, f, schema, batches...)
			if err != nil {
				t.Fatal(err)
			}
			if again := must(codectest.Write(t, f, schema, batches...)); again != data {
				t.Error("the same rows written again are another file")
			}
			for _, rows := range []int{0, 3} {
				got, err := codectest.ReadMem(t, mem, f, codectest.File(t, "x.avro", []byte(data)), schema, codectest.Scan{BatchRows: rows, Hash: true})
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

// Small integers come back as what they are, also to others, who read an int; intervals as
// durations where they are some.
func TestNarrowTypes(t *testing.T) {
	t.Parallel()
	mem := columnartest.Mem(t)
	in := columnartest.Batch(t, mem, `
a:tinyint  b:smallint  iv:interval                     l:ARRAY<interval>
-128       32767       14 months 2 days 00:00:01.5     NULL
NULL       NULL        NULL                            NULL
`)
	f := must(New(Options{}))
	data, err := codectest.Write(t, f, in.Schema(), in)
	if err != nil {
		t.Fatal(err)
	}
	schema, rows, err := read(t, Options{}, []byte(data), codectest.Scan{})
	if err != nil || strings.Join(rows, " ") != "-128|32767|1 year 2 months 2 days 00:00:01.5|∅ ∅|∅|∅|∅" {
		t.Errorf("rows %q, %v", rows, err)
	}
	if got := schema.Field(0).Type.String() + " " + schema.Field(1).Type.String(); got != "int8 int16" {
		t.Errorf("TINYINT, SMALLINT come back as %s", got)
	}
	foreignInt := foreign(t, `{"type":"record","name":"r","fields":[{"name":"a","type":{"type":"int","tidemill.type":"TINYINT"}}]}`, nil, 1, row{"a": int32(300)})
	if _, _, err := read(t, Options{}, foreignInt, codectest.Scan{}); err == nil || !strings.Contains(err.Error(), "too large for the type that its schema says") {
		t.Errorf("300 as TINYINT: %v", err)
	}
}

// Some writers give the record of a row no name.
func TestNoName(t *testing.T) {
	t.Parallel()
	file := foreign(t, plain, nil, 1, row{"a": int64(1), "s": "xyz"})
	file = bytes.Replace(file, []byte(`"name":"r"`), []byte(`"name":"" `), 1)
	if _, rows, err := read(t, Options{}, file, codectest.Scan{}); err != nil || strings.Join(rows, " ") != "1|xyz" {
		t.Errorf("rows %q, %v", rows, err)
	}
	file = bytes.Replace(file, []byte(`"name":"s"`), []byte(`"name":"" `), 1)
	if _, _, err := read(t, Options{}, file, codectest.Scan{}); err == nil || !strings.Contains(err.Error(), "field 2 of a record in it has no name") {
		t.Errorf("a field without a name: %v", err)
	}
}

// Two's complements of any length are read if their value fits.
func TestBigEndian(t *testing.T) {
	t.Parallel()
	least := append([]byte{0x80}, make([]byte, 15)...)
	for _, test := range []struct {
		in   []byte
		want string // "": more digits than 38
	}{
		{nil, "0"}, {[]byte{0xFF}, "-1"}, {[]byte{0x00, 0xFF}, "255"}, {[]byte{0xFF, 0x7F}, "-129"},
		{append(bytes.Repeat([]byte{0xFF}, 30), 0x80), "-128"}, {append(make([]byte, 30), 0x7F), "127"},
		{least, ""}, {bytes.Repeat([]byte{0x7F}, 16), ""}, {append([]byte{0}, least...), ""}, {append([]byte{1}, make([]byte, 16)...), ""},
		{[]byte("\x4b\x3b\x4c\xa8\x5a\x86\xc4\x7a\x09\x8a\x22\x3f\xff\xff\xff\xff"), "99999999999999999999999999999999999999"},
		{[]byte("\x4b\x3b\x4c\xa8\x5a\x86\xc4\x7a\x09\x8a\x22\x40\x00\x00\x00\x00"), ""},
	} {
		v, ok := bigEndian(test.in)
		got := ""
		if ok = ok && fits(v, 38); ok {
			got = v.ToString(0)
		}
		if got != test.want {
			t.Errorf("%x is %q, want %q", test.in, got, test.want)
		}
	}
}

// What a file cannot hold is refused in words that name the column and what to do.
func TestNotWritable(t *testing.T) {
	t.Parallel()
	f := must(New(Options{}))
	mem := columnartest.Mem(t)
	for says, schema := range map[string]*arrow.Schema{
		`column "count(*)" cannot be written`: columnar.NewSchema(columnar.Field("count(*)", columnar.Int64)),
		"two columns are named a":             columnar.NewSchema(columnar.Field("a", columnar.Int64), columnar.Field("a", columnar.Int64)),
		"column m: it is MAP<BIGINT, BIGINT>": columnar.NewSchema(columnar.Field("m", arrow.MapOf(columnar.Int64, columnar.Int64))),
		`column s: column "1" cannot`:         columnar.NewSchema(columnar.Field("s", arrow.StructOf(columnar.Field("1", columnar.Int64)))),
	} {
		if _, err := codectest.Write(t, f, schema); err == nil || !strings.Contains(err.Error(), says) {
			t.Errorf("%v\nwant %s", err, says)
		}
	}
	for _, text := range []string{"-1 months", "00:00:00.0001", "-00:00:01"} {
		in := columnartest.Batch(t, mem, "iv:interval\n"+text+"\n")
		_, err := codectest.Write(t, f, in.Schema(), in)
		if err == nil || !strings.Contains(err.Error(), "column iv: the interval") || !strings.Contains(err.Error(), "CAST it to VARCHAR") {
			t.Errorf("%s: %v", text, err)
		}
	}
}

func utc(text string) time.Time { return must(time.Parse(time.RFC3339Nano, text)) }

// Each type of Avro becomes one that holds its values.
func TestForeignTypes(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		schema     string
		values     []any
		want, rows string
	}{
		"null":            {`"null"`, []any{nil}, "NULL", ""},
		"boolean":         {`"boolean"`, []any{true, false}, "BOOLEAN", "true false"},
		"int":             {`"int"`, []any{int32(-1 << 31), int32(1<<31 - 1)}, "INTEGER", "-2147483648 2147483647"},
		"long":            {`"long"`, []any{int64(-1 << 63), int64(1<<63 - 1), int64(0)}, "BIGINT", "-9223372036854775808 9223372036854775807 0"},
		"float":           {`"float"`, []any{float32(1.5)}, "REAL", "1.5"},
		"double":          {`"double"`, []any{-0.25}, "DOUBLE", "-0.25"},
		"bytes":           {`"bytes"`, []any{[]byte("ab"), []byte{}}, "BINARY", "ab "},
		"string":          {`"string"`, []any{"ä", ""}, "VARCHAR", "ä "},
		"enum":            {`{"type":"enum","name":"e","symbols":["A","B"]}`, []any{"B", "A"}, "VARCHAR", "B A"},
		"fixed":           {`{"type":"fixed","name":"f","size":2}`, []any{[]byte("ab")}, "BINARY", "ab"},
		"array":           {`{"type":"array","items":["null","int"]}`, []any{[]any{int32(1), nil}, []any{}}, "ARRAY<INTEGER>", "[1,null] []"},
		"map":             {`{"type":"map","values":"long"}`, []any{row{"k": int64(1)}, row{}}, "MAP<VARCHAR, BIGINT>", `{"k":1} {}`},
		"record":          {`{"type":"record","name":"r","fields":[{"name":"a","type":"int"},{"name":"b","type":["string","null"]}]}`, []any{row{"a": int32(1), "b": "x"}, row{"a": int32(2), "b": nil}}, "STRUCT<a INTEGER, b VARCHAR>", `{"a":1,"b":"x"} {"a":2,"b":null}`},
		"null first":      {`["null","long"]`, []any{int64(7), nil}, "BIGINT", "7 ∅"},
		"null last":       {`["long","null"]`, []any{int64(7), nil}, "BIGINT", "7 ∅"},
		"union of one":    {`["long"]`, []any{int64(7)}, "BIGINT", "7"},
		"decimal":         {`{"type":"bytes","logicalType":"decimal","precision":5,"scale":2}`, []any{big.NewRat(-1, 100), big.NewRat(99999, 100), big.NewRat(128, 100)}, "DECIMAL(5,2)", "-0.01 999.99 1.28"},
		"fixed decimal":   {`{"type":"fixed","name":"f","size":20,"logicalType":"decimal","precision":38,"scale":0}`, []any{big.NewRat(-129, 1), big.NewRat(255, 1)}, "DECIMAL(38,0)", "-129 255"},
		"date":            {`{"type":"int","logicalType":"date"}`, []any{utc("1969-12-31T00:00:00Z"), utc("2024-02-29T00:00:00Z")}, "DATE", "1969-12-31 2024-02-29"},
		"time-millis":     {`{"type":"int","logicalType":"time-millis"}`, []any{1500 * time.Millisecond}, "TIME", "00:00:01.500000"},
		"time-micros":     {`{"type":"long","logicalType":"time-micros"}`, []any{1500 * time.Microsecond}, "TIME", "00:00:00.001500"},
		"ts-millis":       {`{"type":"long","logicalType":"timestamp-millis"}`, []any{utc("1969-12-31T23:59:59.999Z")}, "TIMESTAMP", "1969-12-31 23:59:59.999000"},
		"ts-micros":       {`{"type":"long","logicalType":"timestamp-micros"}`, []any{utc("1960-01-01T00:00:00.000001Z")}, "TIMESTAMP", "1960-01-01 00:00:00.000001"},
		"ts-nanos":        {`{"type":"long","logicalType":"timestamp-nanos"}`, []any{utc("1969-12-31T23:59:59.999999999Z")}, "TIMESTAMP", "1969-12-31 23:59:59.999999"},
		"local-ts-millis": {`{"type":"long","logicalType":"local-timestamp-millis"}`, []any{int64(1000)}, "TIMESTAMP", "1969-12-31 15:00:01"},
		"local-ts-micros": {`{"type":"long","logicalType":"local-timestamp-micros"}`, []any{int64(-1)}, "TIMESTAMP", "1969-12-31 14:59:59.999999"},
		"local-ts-nanos":  {`{"type":"long","logicalType":"local-timestamp-nanos"}`, []any{int64(-1)}, "TIMESTAMP", "1969-12-31 14:59:59.999999"},
		"uuid":            {`{"type":"string","logicalType":"uuid"}`, []any{"2c1e7a30-5a27-4f0c-9a41-0d8a2f6f7a11"}, "VARCHAR", "2c1e7a30-5a27-4f0c-9a41-0d8a2f6f7a11"},
		"fixed uuid":      {`{"type":"fixed","name":"u","size":16,"logicalType":"uuid"}`, []any{[]byte("\x2c\x1e\x7a\x30\x5a\x27\x4f\x0c\x9a\x41\x0d\x8a\x2f\x6f\x7a\x11")}, "VARCHAR", "2c1e7a30-5a27-4f0c-9a41-0d8a2f6f7a11"},
		"duration":        {`{"type":"fixed","name":"d","size":12,"logicalType":"duration"}`, []any{avro.Duration{Months: 14, Days: 2, Milliseconds: 1500}}, "INTERVAL", "1 year 2 months 2 days 00:00:01.5"},
		"unknown logical": {`{"type":"int","logicalType":"celsius"}`, []any{int32(3)}, "INTEGER", "3"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			schema := `{"type":"record","name":"top","fields":[{"name":"other","type":["null",{"type":"array","items":"string"}]},{"name":"c","type":` +
				test.schema + `},{"name":"last","type":"long"}]}`
			var rows []any
			for i, v := range test.values {
				rows = append(rows, row{"other": []string{"x", "yy"}, "c": v, "last": int64(i)})
			}
			tokyo := must(time.LoadLocation("Asia/Tokyo"))
			for _, c := range []ocf.Codec{nil, ocf.SnappyCodec(), ocf.DeflateCodec(flate.DefaultCompression), ocf.MustZstdCodec(nil, nil), xzCodec{}} {
				data := foreign(t, schema, c, 1, rows...)
				s, got, err := read(t, Options{TimeZone: tokyo}, data, codectest.Scan{Columns: []int{1}})
				if err != nil {
					t.Fatal(err)
				}
				if got := columnar.TypeName(s.Field(1).Type); got != test.want {
					t.Errorf("it is %s, want %s", got, test.want)
				}
				if got := strings.Join(got, " "); got != test.rows {
					t.Errorf("rows %s\nwant %s", got, test.rows)
				}
				if _, got, err := read(t, Options{}, data, codectest.Scan{Columns: []int{2}}); err != nil || len(got) != len(rows) || got[len(got)-1] != fmt.Sprint(len(rows)-1) {
					t.Errorf("behind it: rows %q, %v", got, err)
				}
			}
		})
	}
}

// Of bzip2 there is no writer: the file is one of fastavro's.
func TestBzip2(t *testing.T) {
	t.Parallel()
	data := must(base64.StdEncoding.DecodeString("T2JqAQQUYXZyby5jb2RlYwpiemlwMhZhdnJvLnNjaGVtYdYBeyJ0eXBlIjogInJlY29yZCIsICJuYW1lIjogInIiLCAiZmllbGRzIjogW3sib" +
		"mFtZSI6ICJhIiwgInR5cGUiOiAibG9uZyJ9LCB7Im5hbWUiOiAicyIsICJ0eXBlIjogInN0cmluZyJ9XX0AMDEyMzQ1Njc4OWFiY2RlZgRiQlpoOTFBWSZTWX2ZVlAAAABBgBUAOAAAcC" +
		"AAMQZMQQZMmihOpjp4u5IpwoSD7MqygDAxMjM0NTY3ODlhYmNkZWY="))
	if _, rows, err := read(t, Options{}, data, codectest.Scan{}); err != nil || strings.Join(rows, " ") != "1|xyz 2|abc" {
		t.Errorf("rows %q, %v", rows, err)
	}
}

// The library reads what we write.
func TestReadByLibrary(t *testing.T) {
	t.Parallel()
	mem := columnartest.Mem(t)
	schema := written()
	in := columnartest.Random(t, mem, schema, 1, columnartest.RandomOptions{Rows: 500})
	s := codectest.Scan{Columns: []int{0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13}} // it writes maps in any order
	for c := Snappy; c <= Zstd; c++ {
		f := must(New(Options{Compression: c}))
		data := must(codectest.Write(t, f, schema, in))
		r, err := ocf.NewReader(strings.NewReader(data))
		if err != nil {
			t.Fatal(err)
		}
		// What it decodes it writes again, and that must be the same rows.
		var out bytes.Buffer
		w, err := ocf.NewWriter(&out, r.Schema())
		if err != nil {
			t.Fatal(err)
		}
		for range in.NumRows() {
			var v any
			if err := errors.Join(r.Decode(&v), w.Encode(v)); err != nil {
				t.Fatal(err)
			}
		}
		if err := w.Close(); err != nil {
			t.Fatal(err)
		}
		want := must(codectest.Read(t, f, codectest.File(t, "x.avro", []byte(data)), schema, s))
		got, err := codectest.Read(t, f, codectest.File(t, "x.avro", out.Bytes()), schema, s)
		if err != nil {
			t.Fatal(err)
		}
		same(t, got, want)
	}
}

const unions = `{"type":"record","name":"top","namespace":"n","fields":[
	{"name":"n","type":["null","int"]}, {"name":"s","type":"string"},
	{"name":"st","type":["null",{"type":"record","name":"inner","fields":[{"name":"b","type":"int"},{"name":"u","type":["int","string"]},{"name":"z","type":"string"}]}]},
	{"name":"u","type":["null","int","string"]},
	{"name":"again","type":["null","inner"]},
	{"name":"tree","type":["null",{"type":"record","name":"tree","fields":[{"name":"v","type":"int"},{"name":"kids","type":{"type":"array","items":"tree"}}]}]},
	{"name":"z","type":"int"}]}`

func TestColumnsByName(t *testing.T) {
	t.Parallel()
	leaf := row{"v": int32(2), "kids": []any{}}
	data := foreign(t, unions, nil, 0,
		row{"n": int32(1), "s": "x", "st": row{"b": int32(2), "u": "q", "z": "y"}, "u": "t", "again": row{"b": int32(9), "u": int32(3), "z": ""}, "tree": row{"v": int32(1), "kids": []any{leaf, leaf}}, "z": int32(7)},
		row{"n": nil, "s": "y", "st": nil, "u": int32(5), "again": nil, "tree": nil, "z": int32(8)})
	f := must(New(Options{}))
	file := codectest.File(t, "x.avro", data)
	st := arrow.StructOf(columnar.Field("a", columnar.String), columnar.Field("B", columnar.Int64))
	want := columnar.NewSchema(columnar.Field("S", columnar.Binary), columnar.Field("n", columnar.Decimal(12, 1)), columnar.Field("absent", columnar.Date), columnar.Field("z", columnar.Int64),
		columnar.Field("st", st), columnar.Field("again", st))
	rows, err := codectest.Read(t, f, file, want, codectest.Scan{Declared: true})
	if err != nil || strings.Join(rows, " ") != `x|1.0|∅|7|{"a":null,"B":2}|{"a":null,"B":9} y|∅|∅|8|∅|∅` {
		t.Errorf("rows %q, %v", rows, err)
	}
	if rows, err = codectest.Read(t, f, file, want, codectest.Scan{Declared: true, Columns: []int{}}); err != nil || len(rows) != 2 {
		t.Errorf("rows without columns %q, %v", rows, err)
	}
	if rows, err = codectest.Read(t, f, file, want, codectest.Scan{Declared: true, Columns: []int{2}}); err != nil || strings.Join(rows, " ") != "∅ ∅" {
		t.Errorf("rows of a column it has not %q, %v", rows, err)
	}
	// Of what is recursive, as much as is declared.
	node := arrow.StructOf(columnar.Field("v", columnar.Int32))
	tree := columnar.NewSchema(columnar.Field("tree", arrow.StructOf(columnar.Field("v", columnar.Int32), columnar.Field("kids", columnar.ListOf(node)))))
	if rows, err = codectest.Read(t, f, file, tree, codectest.Scan{Declared: true}); err != nil || strings.Join(rows, " ") != `{"v":1,"kids":[{"v":2},{"v":2}]} ∅` {
		t.Errorf("rows of a tree %q, %v", rows, err)
	}
	for text, test := range map[string]struct {
		schema *arrow.Schema
		s      codectest.Scan
	}{
		"column st: the source had no such column":               {columnar.NewSchema(columnar.Field("n", columnar.Int32), columnar.Field("s", columnar.String)), codectest.Scan{}},
		"column n: it is INTEGER in the file":                    {columnar.NewSchema(columnar.Field("n", columnar.Int16)), codectest.Scan{Declared: true}},
		"column z: it is INTEGER in the file":                    {columnar.NewSchema(columnar.Field("z", st)), codectest.Scan{Declared: true}},
		"column tree: it is RECORD in the file":                  {columnar.NewSchema(columnar.Field("tree", columnar.Int16)), codectest.Scan{Declared: true}},
		"column u: it is a union of null, int, string":           {columnar.NewSchema(columnar.Field("u", columnar.Int32)), codectest.Scan{Declared: true}},
		"column st.u: it is a union of int, string, for which":   {columnar.NewSchema(columnar.Field("st", arrow.StructOf(columnar.Field("u", columnar.Int32)))), codectest.Scan{Declared: true}},
		"or let its writer use a union of one type and null":     {columnar.NewSchema(columnar.Field("u", columnar.Int32)), codectest.Scan{Declared: true}},
		"column s: it is VARCHAR in the file, which does not fi": {columnar.NewSchema(columnar.Field("s", columnar.Int64)), codectest.Scan{Declared: true}},
	} {
		if _, err := codectest.Read(t, f, file, test.schema, test.s); err == nil || !strings.Contains(err.Error(), text) {
			t.Errorf("%v\nwant %s", err, text)
		}
	}
	if _, _, err := f.Infer(t.Context(), []codec.File{file}); err == nil || !strings.Contains(err.Error(), "x.avro: column st: it is a union of int, string, for which there is no type; declare the columns") {
		t.Errorf("a union is inferred: %v", err)
	}
	recursive := foreign(t, `{"type":"record","name":"r","fields":[{"name":"v","type":"int"},{"name":"next","type":["null","r"]}]}`, nil, 0)
	if _, _, err := read(t, Options{}, recursive, codectest.Scan{}); err == nil || !strings.Contains(err.Error(), "column next: it is recursive, for which there is no type; declare the columns") {
		t.Errorf("a recursive type is inferred: %v", err)
	}
}

const plain = `{"type":"record","name":"r","fields":[{"name":"a","type":"long"},{"name":"s","type":"string"}]}`

// TestTimeOfDay reads times of no day.
func TestTimeOfDay(t *testing.T) {
	t.Parallel()
	for typ, d := range map[string]time.Duration{
		`{"type":"int","logicalType":"time-millis"}`: 24 * time.Hour, `{"type":"long","logicalType":"time-micros"}`: -time.Microsecond,
	} {
		file := foreign(t, `{"type":"record","name":"r","fields":[{"name":"a","type":`+typ+`}]}`, nil, 1, row{"a": d})
		want := fmt.Sprintf("a time of day of it, %d µs, is out of range of TIME", d.Microseconds())
		if _, _, err := read(t, Options{}, file, codectest.Scan{}); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %s", typ, err, want)
		}
	}
}

// What is no Avro file, or was one, is refused in words that name it; mode drop leaves it
// out and counts it.
func TestRefused(t *testing.T) {
	t.Parallel()
	file := foreign(t, plain, nil, 1, row{"a": int64(1), "s": "xyz"}, row{"a": int64(2), "s": "abc"})
	deflated := foreign(t, plain, ocf.DeflateCodec(1), 1, row{"a": int64(1), "s": "xyz"})
	edit := func(old, new string) []byte { return bytes.Replace(file, []byte(old), []byte(new), 1) }
	for name, test := range map[string]struct {
		data []byte
		says string
	}{
		"empty":       {nil, "the file is empty"},
		"no magic":    {[]byte("a,b\n1,2\n"), "it does not begin as an Avro container file does"},
		"parquet":     {[]byte("PAR1PAR1"), "read it as format = 'parquet'"},
		"gzip":        {[]byte("\x1f\x8b\x08\x00\x00\x00\x00\x00"), "compressed as a whole (gzip); decompress it"},
		"header cut":  {file[:30], "damaged at byte 30: it is cut off in its header"},
		"block cut":   {file[:len(file)-1], "a block of 5 bytes is cut off: the file ends at byte"},
		"marker":      {edit("xyz0123", "xyz0124"), "does not end in the file's marker"},
		"codec":       {bytes.Replace(deflated, []byte("deflate"), []byte("deflatf"), 1), `compressed by "deflatf"; have it written with one of null, deflate`},
		"schema":      {edit(`"long"`, `"lung"`), "its schema cannot be read"},
		"no record":   {edit(plain, strings.Repeat(" ", len(plain)-6)+`"long"`), "it is one of long, not of a record"},
		"no UTF-8":    {edit("xyz", "x\xFFz"), "column s: the block at byte"},
		"text length": {edit("\x06xyz", "\x08xyz"), "it is cut off"},
		"left over":   {edit("\x06xyz", "\x04xyz"), "1 bytes are left behind the last record"},
		"no end":      {edit("\x02\x06xyz", "\xFF\xFF\xFF\xFF\xFF"), "cut off"},
		"rows":        {edit("\x02\x0A\x02\x06xyz", "\x08\x0A\x02\x06xyz"), "a block of 5 bytes claims to have 4 records"},
		"block size":  {edit("\x02\x0A\x02\x06xyz", "\x02\xFF\xFF\xFF\xFF\x7F"), "bytes; at most 512 MiB can be read"},
		"negative":    {edit("\x02\x0A\x02\x06xyz", "\x02\x09\x02\x06xyz"), "a block claims to have -5 bytes"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			_, _, err := read(t, Options{}, test.data, codectest.Scan{})
			var e *connector.RecordError
			if !errors.As(err, &e) || e.File != "x.avro" || !strings.Contains(err.Error(), test.says) {
				t.Errorf("%v\nwant %s", err, test.says)
			}
			stats := &connector.ScanStats{Kept: connector.NewBadRecords(nil)}
			f := must(New(Options{Mode: codec.Drop}))
			schema := columnar.NewSchema(columnar.Field("a", columnar.Int64), columnar.Field("s", columnar.String))
			rows, err := codectest.Read(t, f, codectest.File(t, "x.avro", test.data), schema, codectest.Scan{Stats: stats, Hash: true})
			if err != nil || len(rows) > 0 || stats.MalformedFiles.Load() != 1 {
				t.Errorf("mode drop: %d rows, %d files, %v", len(rows), stats.MalformedFiles.Load(), err)
			}
			if files, err := stats.Kept.Files(); err != nil || len(files) != 1 || len(files[0].Records) != 1 {
				t.Errorf("kept %v, %v", files, err)
			}
		})
	}
}

// A file cut anywhere, or with any byte changed, gives an error or rows.
func TestDamagedAnywhere(t *testing.T) {
	t.Parallel()
	for _, c := range []ocf.Codec{nil, ocf.SnappyCodec(), ocf.DeflateCodec(1), ocf.MustZstdCodec(nil, nil)} {
		file := foreign(t, plain, c, 1, row{"a": int64(1), "s": "xyz"}, row{"a": int64(2), "s": "abc"}, row{"a": int64(3), "s": ""})
		_, whole, err := read(t, Options{}, file, codectest.Scan{})
		if err != nil || len(whole) != 3 {
			t.Fatalf("rows %q, %v", whole, err)
		}
		for i := range file {
			_, rows, err := read(t, Options{}, file[:i], codectest.Scan{})
			if err == nil && (len(rows) >= len(whole) || strings.Join(rows, " ") != strings.Join(whole[:len(rows)], " ")) {
				t.Errorf("cut at %d: rows %q", i, rows)
			}
			for _, bits := range []byte{0x01, 0x80, 0xFF} {
				bad := bytes.Clone(file)
				bad[i] ^= bits
				if _, _, err := read(t, Options{}, bad, codectest.Scan{}); err != nil {
					var e *connector.RecordError
					if !errors.As(err, &e) {
						t.Errorf("byte %d: %T: %v", i, err, err)
					}
				}
			}
		}
	}
}

// A file without rows has columns.
func TestNoRows(t *testing.T) {
	t.Parallel()
	f := must(New(Options{}))
	schema := written()
	for _, data := range []string{must(codectest.Write(t, f, schema)), string(foreign(t, plain, nil, 0))} {
		s, rows, err := read(t, Options{}, []byte(data), codectest.Scan{Hash: true})
		if err != nil || len(rows) > 0 || s.NumFields() == 0 {
			t.Errorf("%d rows of %v, %v", len(rows), s, err)
		}
		if n, err := RowCount(codectest.File(t, "x.avro", []byte(data))); err != nil || n != 0 {
			t.Errorf("%d rows, %v", n, err)
		}
	}
}

// Many blocks are several units, in the order of the file; blocks of few rows are read
// into one batch.
func TestUnits(t *testing.T) {
	t.Parallel()
	f := must(New(Options{Compression: Uncompressed}))
	mem := columnartest.Mem(t)
	var rows []any
	var want []string
	long := strings.Repeat("x", 1<<20)
	for i := range 10 {
		rows = append(rows, row{"a": int64(i), "s": long})
		want = append(want, fmt.Sprint(i))
	}
	file := codectest.File(t, "x.avro", foreign(t, plain, nil, 1, rows...))
	schema := columnar.NewSchema(columnar.Field("a", columnar.Int64), columnar.Field("s", columnar.String))
	units, err := f.Units(t.Context(), file, codec.Columns{Schema: schema}, connector.ScanRequest{Mem: mem})
	if err != nil || len(units) < 3 || units[0].Name() != "x.avro blocks 0-2" {
		t.Fatalf("units %v, %v", units, err)
	}
	stats := &connector.ScanStats{}
	for _, backwards := range []bool{false, true} {
		got, err := codectest.ReadMem(t, mem, f, file, schema, codectest.Scan{Columns: []int{0}, Stats: stats, Hash: true, Backwards: backwards})
		if err != nil {
			t.Fatal(err)
		}
		same(t, got, want)
	}
	if n := stats.Bytes.Load(); n < 2*10<<20 || n > 2*file.Size {
		t.Errorf("%d bytes of %d were read", n, 2*file.Size)
	}
	if n, err := RowCount(file); err != nil || n != 10 {
		t.Errorf("%d rows, %v", n, err)
	}
	r := must(units[0].Open(t.Context()))
	b := must(r.Next(t.Context()))
	if b.NumRows() != 3 {
		t.Errorf("a batch of %d rows", b.NumRows())
	}
	b.Release()
	if err := r.Close(); err != nil {
		t.Error(err)
	}
}

// The header has what a sink tells of the batch, and a marker that depends on it.
func TestMetadata(t *testing.T) {
	t.Parallel()
	f := must(New(Options{Compression: Zstd}))
	file := func(meta map[string]string) (*index, map[string][]byte) {
		var out bytes.Buffer
		w := must(f.NewWriter(&out, columnar.NewSchema(columnar.Field("a", columnar.Int64)), codec.WriterOptions{Metadata: meta}))
		if err := w.Close(); err != nil {
			t.Fatal(err)
		}
		x, _, err := readHeader(bytes.NewReader(out.Bytes()), "x.avro", int64(out.Len()))
		if err != nil {
			t.Fatal(err)
		}
		return x, must(ocf.NewReader(&out)).Metadata()
	}
	one, meta := file(map[string]string{"tidemill.query": "q", "tidemill.batch": "1"})
	if string(meta["tidemill.batch"]) != "1" || string(meta["tidemill.query"]) != "q" || string(meta["avro.codec"]) != "zstandard" ||
		string(meta["avro.schema"]) != `{"type":"record","name":"row","fields":[{"name":"a","type":["null","long"]}]}` {
		t.Errorf("metadata %q", meta)
	}
	again, _ := file(map[string]string{"tidemill.query": "q", "tidemill.batch": "1"})
	two, _ := file(map[string]string{"tidemill.query": "q", "tidemill.batch": "2"})
	if one.marker != again.marker || one.marker == two.marker {
		t.Errorf("markers %x, %x, %x", one.marker, again.marker, two.marker)
	}
}

// Elements that take no bytes, and types that multiply, do not stand for any memory.
func TestBounded(t *testing.T) {
	t.Parallel()
	nulls := foreign(t, `{"type":"record","name":"r","fields":[{"name":"a","type":{"type":"array","items":"null"}}]}`, nil, 0, row{"a": []any{nil, nil, nil}})
	if _, rows, err := read(t, Options{}, nulls, codectest.Scan{}); err != nil || strings.Join(rows, " ") != "[null,null,null]" {
		t.Errorf("rows %q, %v", rows, err)
	}
	bomb := bytes.Replace(nulls, []byte("\x02\x04\x06\x00"), []byte("\x02\x0C\xFE\xFF\xFF\xFF\x0F\x00"), 1)
	if _, _, err := read(t, Options{}, bomb, codectest.Scan{}); err == nil || !strings.Contains(err.Error(), "elements that are nothing") {
		t.Errorf("two billion elements: %v", err)
	}
	fields := `{"name":"v","type":"int"}`
	for i := range 30 {
		fields = fmt.Sprintf(`{"name":"a","type":{"type":"record","name":"r%d","fields":[%s]}},{"name":"b","type":"r%d"}`, i, fields, i)
	}
	laughs := foreign(t, `{"type":"record","name":"top","fields":[`+fields+`]}`, nil, 0)
	if _, _, err := read(t, Options{}, laughs, codectest.Scan{}); err == nil || !strings.Contains(err.Error(), "too many fields") {
		t.Errorf("a type of 2^30 fields: %v", err)
	}
	list := must(readSchema(`{"type":"record","name":"r","fields":[{"name":"next","type":["null","r"]}]}`))
	c := &cursor{buf: bytes.Repeat([]byte{2}, 1<<20)}
	if list.skip(c); c.err == nil || !strings.Contains(c.err.Error(), "nested more than 10000 deep") {
		t.Errorf("a list of a million: %v", c.err)
	}
	c = &cursor{buf: append(bytes.Repeat([]byte{2}, 9000), 0)}
	if list.skip(c); c.err != nil || c.rest() > 0 {
		t.Errorf("a list of 9000: %v", c.err)
	}
}

func TestOptions(t *testing.T) {
	t.Parallel()
	o, err := ParseOptions(map[string]string{"mode": "drop", "compression": "ZSTD", "compression_level": "9", "time_zone": "Asia/Tokyo"})
	if err != nil || o.Mode != codec.Drop || o.Compression != Zstd || o.CompressionLevel != 9 || o.TimeZone.String() != "Asia/Tokyo" {
		t.Errorf("%+v, %v", o, err)
	}
	for _, wrong := range []map[string]string{{"compression": "gzip"}, {"mode": "x"}, {"time_zone": "Mars"}, {"modus": "drop"}, {"compression_level": "0"}} {
		var option *connector.OptionError
		if _, err := ParseOptions(wrong); !errors.As(err, &option) {
			t.Errorf("%v: %v", wrong, err)
		}
	}
	for _, wrong := range []Options{{Compression: 9}, {Mode: 9}, {CompressionLevel: 99}} {
		if _, err := New(wrong); err == nil {
			t.Errorf("%+v is taken", wrong)
		}
	}
}

// A damaged file gives an error or rows, never a crash and never memory without bound.
func FuzzRead(f *testing.F) {
	const nested = `{"type":"record","name":"top","fields":[
		{"name":"e","type":{"type":"enum","name":"e","symbols":["A","B"]}},
		{"name":"f","type":["null",{"type":"fixed","name":"f","size":3}]},
		{"name":"d","type":{"type":"bytes","logicalType":"decimal","precision":9,"scale":2}},
		{"name":"l","type":{"type":"array","items":["null",{"type":"record","name":"in","fields":[{"name":"m","type":{"type":"map","values":"double"}},{"name":"n","type":"null"}]}]}},
		{"name":"t","type":{"type":"long","logicalType":"timestamp-millis"}}]}`
	rows := []any{
		row{"e": "B", "f": []byte("abc"), "d": big.NewRat(-5, 4), "l": []any{nil, row{"m": row{"k": 1.5}, "n": nil}}, "t": int64(-1)},
		row{"e": "A", "f": nil, "d": big.NewRat(0, 1), "l": []any{}, "t": int64(1)},
	}
	for _, c := range []ocf.Codec{nil, ocf.SnappyCodec(), ocf.DeflateCodec(1), ocf.MustZstdCodec(nil, nil), xzCodec{}} {
		f.Add(foreign(f, nested, c, 1, rows...))
	}
	f.Add(foreign(f, `{"type":"record","name":"r","fields":[{"name":"a","type":{"type":"array","items":"null"}}]}`, nil, 0, row{"a": []any{nil, nil}}))
	declared := columnartest.Schema(f, "e:varchar  l:array<struct<m map<varchar, double>>>  t:timestamp  other:bigint")
	f.Fuzz(func(t *testing.T, data []byte) {
		format := must(New(Options{}))
		file := codectest.File(t, "x.avro", data)
		if inferred, ok, err := format.Infer(t.Context(), []codec.File{file}); err == nil && ok {
			drain(t, format, file, codec.Columns{Schema: inferred.Schema, CorruptColumn: -1})
		}
		drain(t, format, file, codec.Columns{Schema: declared, Declared: true, CorruptColumn: -1})
	})
}

// drain reads a file that may be damaged, up to some rows.
func drain(t *testing.T, format codec.Format, file codec.File, columns codec.Columns) {
	units, err := format.Units(t.Context(), file, columns, connector.ScanRequest{Mem: &bounded{memory.DefaultAllocator, t}})
	if err != nil && !errors.As(err, new(*connector.RecordError)) {
		t.Errorf("%T: %v", err, err)
	}
	for _, u := range units {
		r := must(u.Open(t.Context()))
		for total := int64(0); total < 1<<16; {
			b, err := r.Next(t.Context())
			if err != nil {
				if !errors.Is(err, io.EOF) && !errors.As(err, new(*connector.RecordError)) {
					t.Errorf("%T: %v", err, err)
				}
				break
			}
			total += b.NumRows()
			b.Release()
		}
		if err := r.Close(); err != nil {
			t.Error(err)
		}
	}
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
