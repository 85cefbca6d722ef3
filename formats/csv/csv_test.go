package csv

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/apache/arrow-go/v18/arrow"

	"github.com/tidemill/tidemill/columnar"
	"github.com/tidemill/tidemill/columnar/columnartest"
	"github.com/tidemill/tidemill/formats/codec"
	"github.com/tidemill/tidemill/formats/codec/codectest"
	"github.com/tidemill/tidemill/logical/connector"
)

func newFormat(t testing.TB, o Options) codec.Format {
	t.Helper()
	f, err := New(o)
	if err != nil {
		t.Fatal(err)
	}
	return f
}

// waysToRead are ways to read a file that must not change its rows.
func waysToRead(size int) []codectest.Scan {
	ways := []codectest.Scan{{}, {BatchRows: 1}, {BatchRows: 3, Hash: true}}
	splits := []int64{4, 5, 6, 7, 9, 13, 64, 1000}
	if size > 2000 {
		splits = []int64{101, 1024, 4096, 65536}
	}
	for _, split := range splits {
		ways = append(ways, codectest.Scan{SplitBytes: split}, codectest.Scan{SplitBytes: split, Backwards: true, BatchRows: 5})
	}
	return ways
}

// readAll reads text in every way and returns the rows.
func readAll(t *testing.T, o Options, schema *arrow.Schema, name, text string, scan codectest.Scan) []string {
	t.Helper()
	var want []string
	for i, way := range waysToRead(len(text)) {
		way.Corrupt, way.Declared, way.Evolution, way.Columns = scan.Corrupt, scan.Declared, scan.Evolution, scan.Columns
		got, err := codectest.Read(t, newFormat(t, o), codectest.File(t, name, []byte(text)), schema, way)
		if err != nil {
			t.Fatalf("%+v: %v", way, err)
		}
		if i == 0 {
			want = got
		} else if !slices.Equal(want, got) {
			t.Fatalf("%+v:\n%q\nbut in one go\n%q", way, got, want)
		}
	}
	return want
}

func TestRead(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name, schema, text, want string
		opts                     Options
		scan                     codectest.Scan
		file                     string
	}{
		{name: "plain", schema: "a:bigint  b:varchar", text: "a,b\n1,x\n2,y\n", want: "1|x;2|y"},
		{name: "no final line end", schema: "a:bigint  b:varchar", text: "a,b\n1,x\n2,y", want: "1|x;2|y"},
		{name: "crlf", schema: "a:bigint  b:varchar", text: "a,b\r\n1,x\r\n2,y\r\n", want: "1|x;2|y"},
		{name: "cr", schema: "a:bigint  b:varchar", text: "a,b\r1,x\r2,y\r", want: "1|x;2|y"},
		{name: "mixed line ends", schema: "a:bigint  b:varchar", text: "a,b\r1,x\n2,y\r\n\r\n\n\r3,z", want: "1|x;2|y;3|z"},
		{name: "blank lines", schema: "a:bigint  b:varchar", text: "\n\na,b\n\n1,x\n\n\n2,y\n\n", want: "1|x;2|y"},
		{name: "quotes", schema: "a:varchar  b:varchar", text: "a,b\n\"x,1\",\"say \"\"hi\"\"\"\n\"two\nlines\",\"\"\"\"\n", want: "x,1|say \"hi\";two\nlines|\""},
		{name: "empty and null", schema: "a:varchar  b:bigint", text: "a,b\n\"\",\"\"\n,\n\" \",5\n", want: "|∅;∅|∅; |5"},
		{name: "quote in the middle", schema: "a:bigint  b:varchar", text: "a,b\n1,3/4\" pipe\n2,say \"hi\" now\n", want: `1|3/4" pipe;2|say "hi" now`},
		{name: "quoted header after a mark", schema: "id:bigint  n:varchar", text: "\xEF\xBB\xBF\"id\",n\n1,x\n", want: "1|x"},
		{name: "header only", schema: "a:bigint", text: "a\n", want: ""},
		{name: "no bytes", schema: "a:bigint", text: "", want: ""},
		{name: "no header", schema: "a:bigint  b:varchar", text: "1,x\n2,y\n", opts: Options{Header: HeaderNo}, want: "1|x;2|y"},
		{name: "no header, all text, declared", schema: "a:varchar  b:varchar", text: "p,q\nr,s\n", scan: codectest.Scan{Declared: true}, want: "p|q;r|s"},
		{name: "types", schema: "b:boolean  i:tinyint  r:real  d:decimal(6,2)  t:timestamp  y:date  c:time",
			text: "b,i,r,d,t,y,c\ntrue,-128,1.5,-12.5,2024-02-29T12:00:01.5Z,2024-02-29,01:02:03\nFALSE,7,1e3,0.005,2024-01-01 00:00,1969-12-31,23:59\n",
			want: "true|-128|1.5|-12.50|2024-02-29 12:00:01.500000|2024-02-29|01:02:03;false|7|1000|0.01|2024-01-01 00:00:00|1969-12-31|23:59:00"},
		{name: "integers", schema: "a:bigint", text: "a\n9223372036854775807\n-9223372036854775808\n+5\n 12 \n007\n123456789012345678\n", want: "9223372036854775807;-9223372036854775808;5;12;7;123456789012345678", scan: codectest.Scan{Declared: true}},
		{name: "integers, inferred", schema: "a:bigint", text: "a\n+5\n 12 \n007\n-007\n 007 \n0\n-0\n00000000123456789012\n", want: "5;12;∅;∅;∅;0;0;∅"},
		{name: "floats", schema: "a:double", text: "a\n0.1\n1e-400\n123456789.123456789\n.5\n5.\nNaN\n-inf\n4.9e-324\n", want: "0.1;0;123456789.12345679;0.5;5;NaN;-Infinity;5e-324"},
		{name: "semicolons", schema: "a:bigint  b:double", text: "a;b\n1;2.5\n", opts: Options{Delimiter: ";"}, want: "1|2.5"},
		{name: "tsv", file: "x.tsv", schema: "a:bigint  b:varchar", text: "a\tb\n1\tx,y\n", want: "1|x,y"},
		{name: "long delimiter", schema: "a:varchar  b:varchar", text: "a::b\n1:2::\"x::y\"\n::\n", opts: Options{Delimiter: "::"}, want: "1:2|x::y;∅|∅"},
		{name: "backslash escape", schema: "a:varchar  b:bigint", text: "a,b\n\"x\\\"y\\\\\",1\n\"p\\q\",2\n\"\\\",\",3\n", opts: Options{Escape: `\`}, want: `x"y\|1;p\q|2;",|3`},
		{name: "no quote", schema: "a:varchar  b:varchar", text: "a,b\n\"x,y\"\n", opts: Options{NoQuote: true}, want: `"x|y"`},
		{name: "null value", schema: "a:varchar  b:bigint", text: "a,b\nNA,NA\n\"NA\",1\n,2\n", opts: Options{NullValue: "NA"}, want: "∅|∅;NA|1;|2"},
		{name: "columns in another order", schema: "b:varchar  a:bigint  z:bigint", text: "A,x,b\n1,9,y\n", opts: Options{UnionByName: true}, want: "y|1|∅"},
		{name: "a new column ignored", schema: "a:bigint", text: "a,b\n1,2\n", scan: codectest.Scan{Evolution: codec.EvolveIgnore}, want: "1"},
		{name: "latin1", schema: "a:varchar", text: "a\n\xe9\n", opts: Options{Encoding: encoding(t, "latin1")}, want: "é"},
		{name: "windows-1252", schema: "a:varchar", text: "a\n\x80\n", opts: Options{Encoding: encoding(t, "cp1252")}, want: "€"},
		{name: "not in windows-1252", schema: "a:varchar  b:bigint", text: "a,b\nx\x81,1\ny,2\n", opts: Options{Encoding: encoding(t, "cp1252")}, want: "∅|1;y|2"},
		{name: "half a pair in utf-16", schema: "a:varchar  b:bigint", text: "\xff\xfea\x00,\x00b\x00\n\x00\x00\xd8,\x001\x00", want: "∅|1"},
		{name: "utf-16", schema: "a:varchar  b:bigint", text: "\xff\xfea\x00,\x00b\x00\n\x00\xac\x20,\x001\x00", want: "€|1"},
		{name: "formats", schema: "t:timestamp  d:date", text: "t,d\n31.12.2023 23:59:58,01/02/24\n",
			opts: Options{TimestampFormat: "dd.MM.yyyy HH:mm:ss[.SSS]", DateFormat: "%m/%d/%y"}, want: "2023-12-31 23:59:58|2024-01-02"},
		{name: "lists of formats", schema: "t:timestamp  d:date", text: "t,d\n31.12.2023 23:59,2024-01-02\n2023-12-31 23:59,02.01.2024\n2023/12/31 23:59,2.1.2024\n",
			opts: Options{TimestampFormat: "dd.MM.yyyy HH:mm|yyyy-MM-dd HH:mm", DateFormat: "yyyy-MM-dd|dd.MM.yyyy"},
			want: "2023-12-31 23:59:00|2024-01-02;2023-12-31 23:59:00|2024-01-02;∅|∅"},
		{name: "comments", schema: "a:varchar  b:varchar", text: "# one, \"two\na,b\n#\n1,\"x\n#y\"\n #2,#\r\n#\r\n3,z\n# the end", opts: Options{Comment: "#"}, want: "1|x\n#y; #2|#;3|z"},
		{name: "thousands", schema: "i:bigint  f:double  d:decimal(12,2)", text: "i;f;d\n1,234;-12,345.5;1,234,567.891\n12,34;1,2345;,123\n999;1e3;-1\n1,234,567;123,456e1;+1,000\n",
			opts: Options{Delimiter: ";", Thousands: ","}, want: "1234|-12345.5|1234567.89;∅|∅|∅;999|1000|-1.00;1234567|1234560|1000.00"},
		{name: "nested", schema: "a:array<bigint>  s:struct<x bigint, y varchar>  m:map<varchar, double>",
			text: "a,s,m\n\"[1,2,null]\",\"{\"\"x\"\":1,\"\"y\"\":\"\"p\"\"}\",\"{\"\"k\"\":1.5}\"\n,,\n[],{},{}\n",
			want: `[1,2,null]|{"x":1,"y":"p"}|{"k":1.5};∅|∅|∅;[]|{"x":null,"y":null}|{}`},
		{name: "binary", schema: "a:binary", text: "a\nx\\x00\\xffy\\z\n", want: `x\x00\xFFy\x5Cz`},
		{name: "some columns", schema: "a:bigint  b:varchar  c:double", text: "a,b,c\n1,x,2.5\n2,\"y\",3.5\n", scan: codectest.Scan{Columns: []int{2, 0, 2}}, want: "2.5|1|2.5;3.5|2|3.5"},
		{name: "no columns", schema: "a:bigint  b:varchar", text: "a,b\n1,x\n2,y\n", scan: codectest.Scan{Columns: []int{}}, want: ";"},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			if c.file == "" {
				c.file = "x.csv"
			}
			want := strings.Split(c.want, ";")
			if c.want == "" {
				want = []string{}
			}
			if got := readAll(t, c.opts, columnartest.Schema(t, c.schema), c.file, c.text, c.scan); !slices.Equal(got, want) {
				t.Errorf("\n got %q\nwant %q", got, want)
			}
		})
	}
}

func encoding(t testing.TB, name string) codec.Encoding {
	t.Helper()
	e, err := codec.ParseEncoding(name)
	if err != nil {
		t.Fatal(err)
	}
	return e
}

const messy = "id,v,t\n" +
	"1,10,ok\n" +
	"2,ten,bad number\n" +
	"3,30\n" +
	"4,40,d,extra\n" +
	"5,50,\"quoted\"junk\n" +
	"6,60,\xff\n" +
	"7,99999999999999999999,big\n" +
	"8,80,fine\n"

func TestPermissive(t *testing.T) {
	t.Parallel()
	stats := &connector.ScanStats{}
	schema := columnartest.Schema(t, "id:bigint  v:bigint  t:varchar")
	got, err := codectest.Read(t, newFormat(t, Options{}), codectest.File(t, "m.csv", []byte(messy)), schema, codectest.Scan{Stats: stats})
	want := []string{"1|10|ok", "2|∅|bad number", "3|30|∅", "4|40|d", "5|50|∅", "6|60|∅", "7|∅|big", "8|80|fine"}
	if err != nil || !slices.Equal(got, want) {
		t.Errorf("%q, %v", got, err)
	}
	if n := stats.MalformedRows.Load(); n != 6 {
		t.Errorf("%d malformed rows", n)
	}
	if n := stats.Rows.Load(); n != 8 {
		t.Errorf("%d rows", n)
	}
	var reasons []string
	for _, s := range stats.Samples() {
		reasons = append(reasons, s.Error())
	}
	wantReasons := []string{
		`m.csv:4: the record has too few fields: 3 are expected`,
		`m.csv:5: the record has too many fields: 3 are expected`,
		`m.csv:3: column v: "ten" is no BIGINT`,
		`m.csv:6: column t: text follows the closing quote`,
		`m.csv:7: column t: "\xff" is not valid UTF-8; set encoding, or declare the column BINARY`,
	}
	slices.Sort(reasons)
	slices.Sort(wantReasons)
	if !slices.Equal(reasons, wantReasons) {
		t.Errorf("reasons\n%s", strings.Join(reasons, "\n"))
	}
}

func TestCorruptColumn(t *testing.T) {
	t.Parallel()
	schema := columnartest.Schema(t, "id:bigint  raw:varchar  v:bigint  t:varchar")
	for _, columns := range [][]int{nil, {0, 1}} {
		got := readAll(t, Options{CorruptColumn: "raw"}, schema, "m.csv", messy, codectest.Scan{Corrupt: 2, Columns: columns})
		for i, raw := range []string{"∅", "2,ten,bad number", "3,30", "4,40,d,extra", `5,50,"quoted"junk`, "6,60,\uFFFD", "7,99999999999999999999,big", "∅"} {
			if want := fmt.Sprintf("%d|%s", i+1, raw); got[i] != want && !strings.HasPrefix(got[i], want+"|") {
				t.Errorf("%q", got[i])
			}
		}
	}
}

func TestDrop(t *testing.T) {
	t.Parallel()
	schema := columnartest.Schema(t, "id:bigint  v:bigint  t:varchar")
	for _, columns := range [][]int{{0}, {2, 0}} {
		got := readAll(t, Options{Mode: codec.Drop}, schema, "m.csv", messy, codectest.Scan{Columns: columns})
		want := []string{"1", "8"}
		if len(columns) == 2 {
			want = []string{"ok|1", "fine|8"}
		}
		if !slices.Equal(got, want) {
			t.Errorf("columns %v: %q", columns, got)
		}
	}
	stats := &connector.ScanStats{}
	if _, err := codectest.Read(t, newFormat(t, Options{Mode: codec.Drop}), codectest.File(t, "m.csv", []byte(messy)), schema, codectest.Scan{Stats: stats, Columns: []int{}}); err != nil {
		t.Fatal(err)
	}
	if stats.MalformedRows.Load() != 6 || stats.Rows.Load() != 2 {
		t.Errorf("%d malformed, %d rows", stats.MalformedRows.Load(), stats.Rows.Load())
	}
}

func TestFail(t *testing.T) {
	t.Parallel()
	schema := columnartest.Schema(t, "id:bigint  v:bigint  t:varchar")
	for _, split := range []int64{0, 8, 32} {
		_, err := codectest.Read(t, newFormat(t, Options{Mode: codec.Fail}), codectest.File(t, "m.csv", []byte(messy)), schema, codectest.Scan{SplitBytes: split, Columns: []int{0}})
		var bad *connector.RecordError
		if !errors.As(err, &bad) || bad.File != "m.csv" || bad.Line != 3 || bad.Column != "v" {
			t.Errorf("%v", err)
		}
	}
}

func TestHeaderMismatch(t *testing.T) {
	t.Parallel()
	schema := columnartest.Schema(t, "a:bigint  b:varchar")
	for text, want := range map[string]string{
		"b,a\nx,1\n":     `x.csv:1: column a: the header has "b" in its place`,
		"a\n1\n":         `x.csv:1: column b: the header has no such column`,
		"a,A\n1,x\n":     `x.csv:1: column b: the header has "A1" in its place`,
		"a,b,c\n1,x,2\n": `x.csv:1: column c: the header has a column that the source has not`,
		"a,B2\n1,x\n":    `x.csv:1: column b: the header has "B2" in its place`,
	} {
		for _, split := range []int64{0, 5} {
			_, err := codectest.Read(t, newFormat(t, Options{Header: HeaderYes}), codectest.File(t, "x.csv", []byte(text)), schema, codectest.Scan{Declared: true, SplitBytes: split})
			if err == nil || !strings.HasPrefix(err.Error(), want) {
				t.Errorf("%q: %v", text, err)
			}
		}
	}
}

func TestNotClosedQuote(t *testing.T) {
	t.Parallel()
	schema := columnartest.Schema(t, "a:bigint  b:varchar")
	text := "a,b\n1,x\n2,\"never\n3,z\n4,w\n"
	got := readAll(t, Options{}, schema, "x.csv", text, codectest.Scan{})
	if want := []string{"1|x", "2|∅"}; !slices.Equal(got, want) {
		t.Errorf("%q", got)
	}
}

func TestInfer(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name, want string
		files      []string
		opts       Options
		header     string
		delimiter  string
	}{
		{name: "types", header: "true", files: []string{"i,f,b,d,t,s,z,l,n,e\n1,1.5,true,2024-01-01,2024-01-01T00:00:00Z,x,007,12345678901234567890,,\"\"\n-2,3,FALSE,2024-01-02,2024-01-02 10:00:00,1,1,1,,\n"},
			want: "i BIGINT, f DOUBLE, b BOOLEAN, d DATE, t TIMESTAMP, s VARCHAR, z VARCHAR, l VARCHAR, n VARCHAR, e VARCHAR"},
		{name: "no header", header: "false", files: []string{"1,x\n2,y\n"}, want: "_c0 BIGINT, _c1 VARCHAR"},
		{name: "date in the first record", header: "false", files: []string{"a,2024-01-01\n"}, want: "_c0 VARCHAR, _c1 DATE"},
		{name: "empty field in the first record", header: "false", files: []string{"a,\n"}, want: "_c0 VARCHAR, _c1 VARCHAR"},
		{name: "same names", header: "false", files: []string{"a,A\n"}, want: "_c0 VARCHAR, _c1 VARCHAR"},
		{name: "stated header with gaps", header: "true", opts: Options{Header: HeaderYes}, files: []string{"a,,a\n1,2,3\n"}, want: "a0 BIGINT, _c1 BIGINT, a2 BIGINT"},
		{name: "over files", header: "true", files: []string{"", "a,b\n", "a,b\n1,2\n", "a,b\n1.5,2\n"}, want: "a DOUBLE, b BIGINT"},
		{name: "behind files without records", header: "true", files: append(slices.Repeat([]string{"a,b\n", "\n\r\n"}, 20), "a,b\n1,2024-01-01\n"), want: "a BIGINT, b DATE"},
		{name: "union", header: "true", opts: Options{UnionByName: true}, files: []string{"a,b\n1,2\n", "c,a\nx,2\n"}, want: "a BIGINT, b BIGINT, c VARCHAR"},
		{name: "union, names alike", header: "true", opts: Options{UnionByName: true}, files: []string{"a,b\n1,2\n", "A,b,a\nx,3,4\n", "B,b,b\nx,x,x\n", "d,d\nx,1\n"},
			want: "a BIGINT, b BIGINT, d0 VARCHAR, d1 BIGINT"},
		{name: "nan", header: "true", files: []string{"a,b\nNaN,NaN\n1.5,x\n"}, want: "a DOUBLE, b VARCHAR"},
		{name: "date and time", header: "true", files: []string{"a\n2024-01-01\n2024-01-01 10:00:00+02:00\n"}, want: "a TIMESTAMP"},
		{name: "thousands", header: "true", opts: Options{Thousands: ","}, files: []string{"a,b\n\"1,234\",\"1,2\"\n"}, want: "a BIGINT, b VARCHAR"},
		{name: "delimiter found out", header: "true", opts: Options{Delimiter: "auto"}, files: []string{"", "a;b\n\"1;,,,\";2\n", "a,b\n1,2\n"}, delimiter: ";", want: "a VARCHAR, b BIGINT"},
		{name: "delimiter of more fields", header: "true", opts: Options{Delimiter: "auto"}, files: []string{"a|b,x|c\n1|2,3|4\n"}, delimiter: "|", want: `a BIGINT, "b,x" VARCHAR, c BIGINT`},
		{name: "no delimiter", header: "true", opts: Options{Delimiter: "auto"}, files: []string{"a\n1\n"}, delimiter: ",", want: "a BIGINT"},
		{name: "null value", header: "true", opts: Options{NullValue: "NA"}, files: []string{"a\nNA\n1\n"}, want: "a BIGINT"},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			var files []codec.File
			for i, text := range c.files {
				files = append(files, codectest.File(t, fmt.Sprintf("%d.csv", i), []byte(text)))
			}
			got, ok, err := newFormat(t, c.opts).Infer(context.Background(), files)
			if err != nil || !ok {
				t.Fatalf("%v, %v", ok, err)
			}
			if s := columnar.SchemaString(got.Schema); s != c.want {
				t.Errorf("\n got %s\nwant %s", s, c.want)
			}
			if got.Pinned["header"] != c.header || got.Pinned["delimiter"] != c.delimiter {
				t.Errorf("pinned %v", got.Pinned)
			}
		})
	}
	if _, _, err := newFormat(t, Options{}).Infer(context.Background(), []codec.File{codectest.File(t, "l.csv", []byte("a,caf\xe9\n1,2\n"))}); err == nil ||
		err.Error() != `l.csv:1: the name of column 2, "caf\xe9", is not valid UTF-8; set encoding` {
		t.Errorf("a name that is no text: %v", err)
	}
	if _, ok, err := newFormat(t, Options{}).Infer(context.Background(), []codec.File{codectest.File(t, "e.csv", nil)}); ok || err != nil {
		t.Errorf("an empty file: %v, %v", ok, err)
	}
}

func TestPin(t *testing.T) {
	t.Parallel()
	schema := codec.Columns{Schema: columnartest.Schema(t, "a:bigint  b:varchar"), Declared: true, CorruptColumn: -1}
	for text, want := range map[string]string{"b,x\n": "true", "1,2\n": "false", "p,q\n": "false"} {
		pins, err := newFormat(t, Options{}).(codec.Pinner).Pin([]codec.File{codectest.File(t, "0.csv", nil), codectest.File(t, "1.csv", []byte(text))}, schema)
		if err != nil || pins["header"] != want {
			t.Errorf("%q: %v, %v", text, pins, err)
		}
	}
}

func TestOptions(t *testing.T) {
	t.Parallel()
	o, err := ParseOptions(map[string]string{"HEADER": "true", "delimiter": `\t`, "quote": "'", "null_value": "NA", "mode": "DROP", "compression": "zst", "encoding": "latin1", "union_by_name": "yes"})
	if err != nil || o.Header != HeaderYes || o.Quote != "'" || o.Mode != codec.Drop || o.Compression != codec.Zstd || o.Encoding.String() != "iso-8859-1" || !o.UnionByName {
		t.Errorf("%+v, %v", o, err)
	}
	for key, value := range map[string]string{"delimeter": ",", "header": "maybe", "quote": "ab", "mode": "skip", "encoding": "ebcdic", "timestamp_format": "%Q", "delimiter": "\"", "escape": ",", "comment": ",", "thousands": ".", "null_value": "\"NULL\""} {
		_, err := ParseOptions(map[string]string{key: value})
		var bad *connector.OptionError
		if !errors.As(err, &bad) {
			t.Errorf("%s = %q: %v", key, value, err)
		}
	}
	for _, key := range []string{"delimiter", "date_format", "timestamp_format", "corrupt_column", "encoding"} {
		_, err := ParseOptions(map[string]string{key: ""})
		var bad *connector.OptionError
		if !errors.As(err, &bad) || bad.Key != key {
			t.Errorf("%s = nothing: %v", key, err)
		}
	}
	if _, err := ParseOptions(map[string]string{"delimeter": ","}); err == nil || !strings.Contains(err.Error(), "delimiter") {
		t.Errorf("%v", err)
	}
}

func TestWrite(t *testing.T) {
	t.Parallel()
	mem := columnartest.Mem(t)
	b := columnartest.Batch(t, mem, `
id:bigint  s:varchar        t:timestamp                  f:double  ok:boolean  d:decimal(5,2)  l:array<bigint>
1          "a,b"            2024-01-01T10:00:00Z         0.1       true        1.50            [1,2]
2          ""               2024-01-01T10:00:00.000001Z  NULL      false       NULL            NULL
3          "say \"hi\"\n"   NULL                         1e300     NULL        -0.01           []
`)
	defer b.Release()
	text, err := codectest.Write(t, newFormat(t, Options{}), b.Schema(), b)
	want := "id,s,t,f,ok,d,l\n" +
		"1,\"a,b\",2024-01-01 10:00:00,0.1,true,1.50,\"[1,2]\"\n" +
		"2,\"\",2024-01-01 10:00:00.000001,,false,,\n" +
		"3,\"say \"\"hi\"\"\n\",,1e+300,,-0.01,[]\n"
	if err != nil || text != want {
		t.Errorf("%v\n%s", err, text)
	}
}

func TestWriteOneColumn(t *testing.T) {
	t.Parallel()
	mem := columnartest.Mem(t)
	b := columnartest.Batch(t, mem, "s:varchar\n\"x\"\nNULL\n\"NA\"\n")
	defer b.Release()
	if _, err := codectest.Write(t, newFormat(t, Options{}), b.Schema(), b); err == nil || !strings.Contains(err.Error(), "column s") {
		t.Errorf("%v", err)
	}
	var printed bytes.Buffer
	w, err := newFormat(t, Options{}).NewWriter(&printed, b.Schema(), codec.WriterOptions{Printed: true})
	if err == nil {
		err = errors.Join(w.Write(b), w.Close())
	}
	if err != nil || printed.String() != "s\nx\n\nNA\n" {
		t.Errorf("printed %q, %v", printed.String(), err)
	}
	text, err := codectest.Write(t, newFormat(t, Options{NullValue: "NA"}), b.Schema(), b)
	if err != nil || text != "s\nx\nNA\n\"NA\"\n" {
		t.Errorf("%q, %v", text, err)
	}
}

// TestRoundTrip writes random batches and reads them back.
// A format that writes four digits of a year refuses the others, which would not come back.
func TestWriteYears(t *testing.T) {
	t.Parallel()
	mem := columnartest.Mem(t)
	for _, rows := range []string{"d:date\n-0001-01-01", "d:timestamp\n10000-01-01T00:00:00Z"} {
		b := columnartest.Batch(t, mem, rows)
		f := newFormat(t, Options{DateFormat: "dd.MM.yyyy", TimestampFormat: "dd.MM.yyyy HH:mm"})
		if text, err := codectest.Write(t, f, b.Schema(), b); err == nil || !strings.Contains(err.Error(), "column d: the format \"dd.MM.yyyy") {
			t.Errorf("%q, %v", text, err)
		}
		b.Release()
	}
}

func TestRoundTrip(t *testing.T) {
	t.Parallel()
	schema := columnartest.Schema(t, "b:boolean  i8:tinyint  i:bigint  f:double  r:real  d:decimal(38,10)  s:varchar  x:binary  y:date  ts:timestamp  tm:time  l:array<varchar>  st:struct<a bigint, b varchar>")
	for seed := range uint64(6) {
		for _, o := range []Options{{}, {Delimiter: "||", NullValue: "NULL"}, {Quote: "'", Escape: `\`, Delimiter: "\t"}, {Compression: codec.Gzip}, {Compression: codec.Zstd}} {
			mem := columnartest.Mem(t)
			b := columnartest.Random(t, mem, schema, seed, columnartest.RandomOptions{Rows: 200})
			text, err := codectest.Write(t, newFormat(t, o), schema, b)
			if err != nil {
				t.Fatal(err)
			}
			want := codectest.Rows(b)
			got, err := codectest.ReadMem(t, mem, newFormat(t, o), codectest.File(t, "x.csv", []byte(text)), schema, codectest.Scan{SplitBytes: int64(100 * seed)})
			if err != nil {
				t.Fatal(err)
			}
			for i := range want {
				if i >= len(got) || got[i] != want[i] {
					t.Fatalf("seed %d, %+v: row %d\n got %q\nwant %q", seed, o, i, got[min(i, len(got)-1)], want[i])
				}
			}
		}
	}
}

// A column none of whose values fits has another type, however the file is divided; one
// value that fits, in any range, makes the others malformed records.
func TestOtherType(t *testing.T) {
	t.Parallel()
	schema := columnartest.Schema(t, "a:bigint  b:varchar")
	for _, c := range []struct {
		text string
		mode codec.Mode
		fail bool
	}{
		{text: "a,b\nx,1\ny,2\n,3\nz,4\n", fail: true},
		{text: "a,b\nx,1\ny,2\n,3\nz,4\n", mode: codec.Drop, fail: true},
		{text: "a,b\nx,1\ny,2\n,3\n4,z\n"},
		{text: "a,b\n,1\n,2\n"},
		{text: "a,b\n"},
	} {
		for _, split := range []int64{0, 4, 7, 12} {
			for _, columns := range [][]int{nil, {1}} {
				_, err := codectest.Read(t, newFormat(t, Options{Header: HeaderYes, Mode: c.mode}), codectest.File(t, "x.csv", []byte(c.text)), schema,
					codectest.Scan{SplitBytes: split, Columns: columns, Backwards: split == 7, Stats: &connector.ScanStats{}})
				want := c.fail && (columns == nil || c.mode == codec.Drop)
				if (err != nil) != want || want && !strings.HasPrefix(err.Error(), "x.csv: column a: none of its values") {
					t.Errorf("%q, %d bytes, columns %v: %v", c.text, split, columns, err)
				}
			}
		}
	}
}

// A field that all records of a file without a header have beyond the columns is a column;
// one that some have makes those malformed.
func TestLongerRecords(t *testing.T) {
	t.Parallel()
	schema := columnartest.Schema(t, "a:bigint  b:varchar")
	for _, c := range []struct {
		text, want string
		declared   bool
		evolution  codec.Evolution
		bad        int64
		unknown    bool
	}{
		{text: "1,x,9\n2,\"y\",8,7\n", unknown: true},
		{text: "1,x,9\n2,\"y\",8,7\n", evolution: codec.EvolveAdd, unknown: true},
		{text: "1,x,9\n2,y\n3,z,8\n", want: "1|x;2|y;3|z", bad: 2},
		{text: "1,x,9\n2,y,8\n", declared: true, want: "1|x;2|y", bad: 2},
		{text: "1,x,9\n2,y\n", evolution: codec.EvolveIgnore, want: "1|x;2|y"},
		{text: "1,x,9\n2,y\n", declared: true, evolution: codec.EvolveIgnore, want: "1|x;2|y", bad: 1},
		{text: "1\n2\n3,x\n", want: "1|∅;2|∅;3|x", bad: 2},
		{text: "1\n2\n3,x\n", evolution: codec.EvolveAdd, want: "1|∅;2|∅;3|x"},
		{text: "1,x\n2\n", evolution: codec.EvolveAdd, want: "1|x;2|∅", bad: 1},
	} {
		for i, way := range waysToRead(len(c.text)) {
			stats := &connector.ScanStats{}
			way.Declared, way.Evolution, way.Stats = c.declared, c.evolution, stats
			rows, err := codectest.Read(t, newFormat(t, Options{Header: HeaderNo}), codectest.File(t, "x.csv", []byte(c.text)), schema, way)
			if c.unknown {
				if err == nil || !strings.HasPrefix(err.Error(), "x.csv: column _c2: ") {
					t.Errorf("%q, %d: %v", c.text, i, err)
				}
				continue
			}
			if got := strings.Join(rows, ";"); err != nil || got != c.want || stats.MalformedRows.Load() != c.bad {
				t.Errorf("%q, %+v: %q, %v, %d malformed", c.text, way, got, err, stats.MalformedRows.Load())
				break
			}
		}
	}
}
