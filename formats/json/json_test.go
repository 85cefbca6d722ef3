package json

import (
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
var waysToRead = []codectest.Scan{
	{}, {BatchRows: 1}, {BatchRows: 2, Hash: true},
	{SplitBytes: 4}, {SplitBytes: 5, Backwards: true}, {SplitBytes: 6, BatchRows: 1}, {SplitBytes: 7}, {SplitBytes: 9}, {SplitBytes: 17, Backwards: true}, {SplitBytes: 64},
}

func readAll(t *testing.T, o Options, schema *arrow.Schema, text string, scan codectest.Scan) []string {
	t.Helper()
	var want []string
	for i, way := range waysToRead {
		way.Corrupt, way.Declared, way.Columns = scan.Corrupt, scan.Declared, scan.Columns
		got, err := codectest.Read(t, newFormat(t, o), codectest.File(t, "x.json", []byte(text)), schema, way)
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
		name, schema, text string
		want               []string
		opts               Options
		scan               codectest.Scan
	}{
		{name: "lines", schema: "a:bigint  b:varchar", text: "{\"a\":1,\"b\":\"x\"}\n{\"a\":2,\"b\":\"y\"}\n", want: []string{"1|x", "2|y"}},
		{name: "blanks", schema: "id:bigint", text: "\xEF\xBB\xBF{\"id\":1}\r\n\r\n  { \"id\" : 2 }  \n\n\t\n{\"id\":3}", want: []string{"1", "2", "3"}},
		{name: "several on a line", schema: "a:bigint", text: "{\"a\":1} {\"a\":2}{\"a\":3}\n{\"a\":4}", want: []string{"1", "2", "3", "4"}},
		{name: "array", schema: "a:bigint", text: " \n[ {\"a\":1},\n{\"a\":\n2}\n, {\"a\":3} ]\n", want: []string{"1", "2", "3"}},
		{name: "empty array", schema: "a:bigint", text: "[]", want: []string{}},
		{name: "no bytes", schema: "a:bigint", text: "", want: []string{}},
		{name: "multiline", schema: "a:bigint  b:varchar", text: "{\n \"a\": 1,\n \"b\": \"x\"\n}\n{\"a\":2,\n\"b\":null}", opts: Options{Multiline: true}, want: []string{"1|x", "2|∅"}},
		{name: "other orders", schema: "a:bigint  b:bigint  c:bigint", text: "{\"a\":1,\"b\":2,\"c\":3}\n{\"c\":6,\"a\":4,\"b\":5}\n{\"b\":8}\n{}\n{\"x\":{\"a\":[1,{}]},\"c\":9,\"y\":null}\n", scan: codectest.Scan{Declared: true},
			want: []string{"1|2|3", "4|5|6", "∅|8|∅", "∅|∅|∅", "∅|∅|9"}},
		{name: "exact keys, the last wins", schema: "a:bigint  A:bigint", text: "{\"a\":1,\"A\":2,\"a\":3}\n{\"A\":4,\"\\u0061\":5}\n", want: []string{"3|2", "5|4"}},
		{name: "exact integers", schema: "a:bigint", text: "{\"a\":9007199254740993}\n{\"a\":-9223372036854775808}\n{\"a\":1.0}\n{\"a\":12e2}\n", want: []string{"9007199254740993", "-9223372036854775808", "1", "1200"}},
		{name: "decimals", schema: "d:decimal(20,2)", text: "{\"d\":123456789012345678.91}\n{\"d\":\"1.005\"}\n{\"d\":1e3}\n", want: []string{"123456789012345678.91", "1.01", "1000.00"}},
		{name: "escapes", schema: "s:varchar", text: `{"s":"\ud83d\ude00 ok"}` + "\n" + `{"s":"na\u00efve \u20ac \/ \t"}` + "\n" + `{"s":"nul:\u0000:"}` + "\n" + `{"s":"\"\\"}` + "\n", want: []string{"😀 ok", "naïve € / \t", "nul:\x00:", `"\`}},
		{name: "conflicting kinds", schema: "s:varchar", text: `{"s":"x"}` + "\n" + `{"s":1.50}` + "\n" + `{"s":{"b": [1, "a b"], "c":null}}` + "\n" + `{"s":true}` + "\n" + `{"s":null}` + "\n", want: []string{"x", "1.50", `{"b":[1,"a b"],"c":null}`, "true", "∅"}},
		{name: "nested", schema: "s:struct<x bigint, y array<struct<z varchar>>>  m:map<varchar, bigint>",
			text: `{"s":{"x":1,"y":[{"z":"a"},null,{}]},"m":{"k":1,"l":null,"k":2}}` + "\n" + `{"s":null}` + "\n" + `{"m":{},"s":{"y":[]}}` + "\n",
			want: []string{`{"x":1,"y":[{"z":"a"},null,{"z":null}]}|{"l":null,"k":2}`, "∅|∅", `{"x":null,"y":[]}|{}`}},
		{name: "doubled nested", schema: "l:array<bigint>  s:struct<a bigint>", text: `{"l":[1,2],"s":{"a":1},"l":[3],"s":{}}` + "\n" + `{"l":[4]}` + "\n", want: []string{`[3]|{"a":null}`, `[4]|∅`}},
		{name: "times", schema: "t:timestamp  d:date  c:time", text: `{"t":"2024-01-01T10:00:00.5+02:00","d":"2024-02-29","c":"01:02:03"}` + "\n", want: []string{"2024-01-01 08:00:00.500000|2024-02-29|01:02:03"}},
		{name: "floats", schema: "f:double  b:boolean", text: `{"f":1e300,"b":true}` + "\n" + `{"f":-0.1,"b":false}` + "\n" + `{"f":"NaN"}` + "\n", want: []string{"1e+300|true", "-0.1|false", "NaN|∅"}},
		{name: "some columns", schema: "a:bigint  b:varchar  c:bigint", text: `{"a":1,"b":"x","c":2}` + "\n", scan: codectest.Scan{Columns: []int{2, 1, 2}}, want: []string{"2|x|2"}},
		{name: "no columns", schema: "a:bigint", text: `{"a":1}` + "\n" + `{"a":2}` + "\n", scan: codectest.Scan{Columns: []int{}}, want: []string{"", ""}},
		{name: "binary", schema: "b:binary", text: `{"b":"AAH/"}` + "\n", want: []string{`\x00\x01\xFF`}},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			if got := readAll(t, c.opts, columnartest.Schema(t, c.schema), c.text, c.scan); !slices.Equal(got, c.want) {
				t.Errorf("\n got %q\nwant %q", got, c.want)
			}
		})
	}
}

const messy = `{"id":1,"v":10,"t":"a"}
{"id":2,"v":"ten","t":"b"}
{"id":3,"v":30,"t":["c"]}
{"id":4,"v":40,"t":"d"
{"id":5,"v":5.5,"t":"\ud800"}
[1]
{"id":7,"v":70,"t":"g"} nonsense
{"id":8,"v":80,"t":"` + "\xff" + `"}
{"id":9,"v":99999999999999999999}
`

func TestPermissive(t *testing.T) {
	t.Parallel()
	schema := columnartest.Schema(t, "id:bigint  v:bigint  t:varchar")
	got := readAll(t, Options{}, schema, messy, codectest.Scan{})
	want := []string{"1|10|a", "2|∅|b", `3|30|["c"]`, "∅|∅|∅", "5|∅|∅", "∅|∅|∅", "7|70|g", "∅|∅|∅", "8|80|∅", "9|∅|∅"}
	if !slices.Equal(got, want) {
		t.Errorf("%q", got)
	}
	stats := &connector.ScanStats{}
	if _, err := codectest.Read(t, newFormat(t, Options{}), codectest.File(t, "m.json", []byte(messy)), schema, codectest.Scan{Stats: stats}); err != nil {
		t.Fatal(err)
	}
	if n := stats.MalformedRows.Load(); n != 7 {
		t.Errorf("%d malformed rows", n)
	}
	var reasons []string
	for _, s := range stats.Samples() {
		reasons = append(reasons, s.Error())
	}
	all := strings.Join(reasons, "\n")
	for _, want := range []string{
		`m.json:2: column v: "ten" is no BIGINT`,
		`m.json:4: the record is not JSON: `,
		`m.json:5: column v: 5.5 is no BIGINT`,
		`m.json:6: the record is not an object`,
	} {
		if !strings.Contains(all, want) {
			t.Errorf("no %s in\n%s", want, all)
		}
	}
}

func TestCorruptColumn(t *testing.T) {
	t.Parallel()
	schema := columnartest.Schema(t, "raw:varchar  id:bigint  v:bigint  t:varchar")
	for _, columns := range [][]int{nil, {0}} {
		got := readAll(t, Options{CorruptColumn: "raw"}, schema, messy, codectest.Scan{Corrupt: 1, Columns: columns})
		for i, raw := range []string{"∅", `{"id":2,"v":"ten","t":"b"}`, "∅", `{"id":4,"v":40,"t":"d"`, `{"id":5,"v":5.5,"t":"\ud800"}`, "[1]", "∅", "nonsense", "{\"id\":8,\"v\":80,\"t\":\"\uFFFD\"}", `{"id":9,"v":99999999999999999999}`} {
			if got[i] != raw && !strings.HasPrefix(got[i], raw+"|") {
				t.Errorf("row %d: %q", i, got[i])
			}
		}
	}
}

func TestDrop(t *testing.T) {
	t.Parallel()
	schema := columnartest.Schema(t, "id:bigint  v:bigint  t:varchar  l:array<struct<x bigint>>")
	text := messy + `{"id":10,"l":[{"x":1},{"x":"no"}]}` + "\n" + `{"id":11,"l":[{"x":1}]}` + "\n"
	if got := readAll(t, Options{Mode: codec.Drop}, schema, text, codectest.Scan{Columns: []int{0, 3}}); !slices.Equal(got, []string{"1|∅", "3|∅", "7|∅", `11|[{"x":1}]`}) {
		t.Errorf("%q", got)
	}
	stats := &connector.ScanStats{}
	if _, err := codectest.Read(t, newFormat(t, Options{Mode: codec.Drop}), codectest.File(t, "m.json", []byte(text)), schema, codectest.Scan{Stats: stats, Columns: []int{}}); err != nil {
		t.Fatal(err)
	}
	if stats.MalformedRows.Load() != 8 || stats.Rows.Load() != 4 {
		t.Errorf("%d malformed, %d rows", stats.MalformedRows.Load(), stats.Rows.Load())
	}
}

func TestFail(t *testing.T) {
	t.Parallel()
	schema := columnartest.Schema(t, "id:bigint  l:array<struct<x bigint>>")
	for text, want := range map[string]string{
		"{\"id\":1}\n\n{\"id\":2,\"l\":[{},{\"x\":1.5}]}\n": "m.json:3: column l.element.x: 1.5 is no BIGINT",
		"{\"id\":1}\n{\"id\":2\n":                           "m.json:2: the record is not JSON: ",
		"{\"id\":1}\n{\"l\":7}\n":                           "m.json:2: column l: the value is no ARRAY<STRUCT<x BIGINT>>",
		"[{\"id\":1},\n{\"id\":2}":                          "m.json:2: the array is not closed before the file ends",
	} {
		for _, split := range []int64{0, 8} {
			_, err := codectest.Read(t, newFormat(t, Options{Mode: codec.Fail}), codectest.File(t, "m.json", []byte(text)), schema, codectest.Scan{SplitBytes: split, Columns: []int{0}})
			var bad *connector.RecordError
			if !errors.As(err, &bad) || !strings.HasPrefix(err.Error(), want) {
				t.Errorf("%q: %v", text, err)
			}
		}
	}
}

func TestArrayFaults(t *testing.T) {
	t.Parallel()
	schema := columnartest.Schema(t, "a:bigint")
	for text, want := range map[string][]string{
		`[{"a":1},,{"a":2}]`:  {"1", "∅"},
		`[{"a":1} {"a":2}]`:   {"1", "∅"},
		`[{"a":1},]`:          {"1", "∅"},
		`[{"a":1},5,{"a":2}]`: {"1", "∅", "2"},
		`[{"a":1}`:            {"1", "∅"},
		`[{"a":1}] x`:         {"1", "∅"},
		`[{"a":1}][{"a":2}]`:  {"1", "2"},
		`[[{"a":1}]]`:         {"∅"},
	} {
		if got := readAll(t, Options{}, schema, text, codectest.Scan{}); !slices.Equal(got, want) {
			t.Errorf("%s: %q", text, got)
		}
	}
}

func TestInfer(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ name, text, want string }{
		{"scalars", `{"i":1,"f":1.5,"b":true,"s":"x","d":"2024-01-01","t":"2024-01-01T00:00:00Z","n":null,"q":"5","big":123456789012345678901}` + "\n" + `{"i":2,"f":3,"d":"2024-01-02"}`,
			"i BIGINT, f DOUBLE, b BOOLEAN, s VARCHAR, d DATE, t TIMESTAMP, n VARCHAR, q VARCHAR, big VARCHAR"},
		{"nested", `{"o":{"a":1,"b":[1,2.5]},"l":[],"e":{},"m":[{"x":1},{"y":"z"}]}`, "o STRUCT<a BIGINT, b ARRAY<DOUBLE>>, l ARRAY<VARCHAR>, e VARCHAR, m ARRAY<STRUCT<x BIGINT, y VARCHAR>>"},
		{"conflicts", `{"a":1,"b":{"x":1},"c":[1],"d":true,"e":"2024-01-01"}` + "\n" + `{"a":"x","b":2,"c":{},"d":1,"e":"2024-01-01 10:00:00"}`, "a VARCHAR, b VARCHAR, c VARCHAR, d VARCHAR, e TIMESTAMP"},
		{"broken lines", `{"a":1` + "\n" + `{"b":2}` + "\n5\n", "b BIGINT"},
		{"array", "[{\"a\":1},\n{\"B\":2,\"b\":1}]", `a BIGINT, B BIGINT, b BIGINT`},
	} {
		got, ok, err := newFormat(t, Options{}).Infer(context.Background(), []codec.File{codectest.File(t, "x.json", []byte(c.text))})
		if err != nil || !ok {
			t.Errorf("%s: %v, %v", c.name, ok, err)
			continue
		}
		if s := columnar.SchemaString(got.Schema); s != c.want {
			t.Errorf("%s:\n got %s\nwant %s", c.name, s, c.want)
		}
	}
	if _, ok, err := newFormat(t, Options{}).Infer(context.Background(), []codec.File{codectest.File(t, "x.json", []byte("\n"))}); ok || err != nil {
		t.Errorf("%v, %v", ok, err)
	}
}

func TestWrite(t *testing.T) {
	t.Parallel()
	mem := columnartest.Mem(t)
	b := columnartest.Batch(t, mem, `
id:bigint  s:varchar  t:timestamp                  d:decimal(5,2)  l:array<bigint>
1          "a\"b"     2024-01-01T10:00:00Z         1.50            [1,null]
NULL       ""         2024-01-01T10:00:00.000001Z  NULL            NULL
`)
	defer b.Release()
	text, err := codectest.Write(t, newFormat(t, Options{}), b.Schema(), b)
	want := `{"id":1,"s":"a\"b","t":"2024-01-01T10:00:00Z","d":1.50,"l":[1,null]}` + "\n" +
		`{"id":null,"s":"","t":"2024-01-01T10:00:00.000001Z","d":null,"l":null}` + "\n"
	if err != nil || text != want {
		t.Errorf("%v\n%s", err, text)
	}
}

// TestRoundTrip writes random batches and reads them back.
func TestRoundTrip(t *testing.T) {
	t.Parallel()
	schema := columnartest.Schema(t, "b:boolean  i8:tinyint  i:bigint  f:double  r:real  d:decimal(38,10)  s:varchar  x:binary  y:date  ts:timestamp  tm:time  l:array<varchar>  st:struct<a bigint, b array<double>>")
	for seed := range uint64(6) {
		for _, o := range []Options{{}, {Multiline: true}, {Compression: codec.Gzip}} {
			mem := columnartest.Mem(t)
			b := columnartest.Random(t, mem, schema, seed, columnartest.RandomOptions{Rows: 200})
			text, err := codectest.Write(t, newFormat(t, o), schema, b)
			if err != nil {
				t.Fatal(err)
			}
			want := codectest.Rows(b)
			got, err := codectest.ReadMem(t, mem, newFormat(t, o), codectest.File(t, "x.json", []byte(text)), schema, codectest.Scan{SplitBytes: int64(100 * seed)})
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

func TestOptions(t *testing.T) {
	t.Parallel()
	if _, err := ParseOptions(map[string]string{"multi_line": "true"}); err == nil || !strings.Contains(err.Error(), "multiline") {
		t.Errorf("%v", err)
	}
	if o, err := ParseOptions(map[string]string{"Multiline": "true", "mode": "fail"}); err != nil || !o.Multiline || o.Mode != codec.Fail {
		t.Errorf("%+v, %v", o, err)
	}
	if _, err := New(Options{DateFormat: "'"}); err == nil {
		t.Error("a wrong format was taken")
	}
}

// TestManyRecords reads records of growing size over many windows.
func TestManyRecords(t *testing.T) {
	t.Parallel()
	var b strings.Builder
	for i := range 3000 {
		fmt.Fprintf(&b, "{\"id\":%d,\"s\":%q}\n", i, strings.Repeat("x", i))
	}
	schema := columnartest.Schema(t, "id:bigint  s:varchar")
	for _, o := range []Options{{}, {Multiline: true}} {
		got, err := codectest.Read(t, newFormat(t, o), codectest.File(t, "x.json", []byte(b.String())), schema, codectest.Scan{SplitBytes: 100_000})
		if err != nil || len(got) != 3000 {
			t.Fatalf("%d rows, %v", len(got), err)
		}
		for i, row := range got {
			if row != fmt.Sprintf("%d|%s", i, strings.Repeat("x", i)) {
				t.Fatalf("row %d is %.20q", i, row)
			}
		}
	}
}

// Each fault of a record has words of its own, which say what to do where something can be.
func TestReasons(t *testing.T) {
	t.Parallel()
	schema := columnartest.Schema(t, "a:varchar  t:timestamp")
	for text, want := range map[string]string{
		`{"a":"x\ud800y"}`:               `x.json:1: column a: "x\ud800y" holds half of a surrogate pair, which is no character`,
		`{"t":1700000000}`:               `x.json:1: column t: 1700000000 is a number, no TIMESTAMP; declare it BIGINT and compute the time, t AS to_timestamp(seconds)`,
		`{"t":true}`:                     `x.json:1: column t: true is no TIMESTAMP`,
		"{\n\"a\":1}":                    `x.json:1: the record is not JSON: the line ends within it; objects over several lines need multiline = true`,
		"[{\"a\":\"x\"},\n{\"a\":":       `x.json:2: the record is not JSON: the file ends within it`,
		"[{\"a\":\"x\"},\n{\"a\":\"y\"}": `x.json:2: the array is not closed before the file ends`,
		"[{\"a\":\"x\"}]\n{\"a\":\"y\"}": `x.json:2: something follows the end of the array`,
		`[{"a":"x"} {"a":"y"}]`:          `x.json:1: there is no comma between two elements of the array`,
		`[{"a":"x"},7]`:                  `x.json:1: the record is not an object`,
	} {
		for _, mode := range []codec.Mode{codec.Permissive, codec.Drop, codec.Fail} {
			stats := &connector.ScanStats{}
			_, err := codectest.Read(t, newFormat(t, Options{Mode: mode}), codectest.File(t, "x.json", []byte(text)), schema, codectest.Scan{Stats: stats, Declared: true})
			if mode != codec.Fail && err == nil && len(stats.Samples()) > 0 {
				err = &stats.Samples()[0]
			}
			if err == nil || err.Error() != want {
				t.Errorf("%q, mode %d: %v", text, mode, err)
			}
		}
	}
}

// TestInferBehindEmpty: files without records, however many, leave their place to others.
func TestInferBehindEmpty(t *testing.T) {
	t.Parallel()
	var files []codec.File
	for i := range 40 {
		files = append(files, codectest.File(t, fmt.Sprintf("%02d.json", i), []byte([]string{"\n", "[]", " \n \n", "{}"}[i%4])))
	}
	files = append(files, codectest.File(t, "z.json", []byte(`{"a":1}`)))
	got, ok, err := newFormat(t, Options{}).Infer(t.Context(), files)
	if err != nil || !ok || columnar.SchemaString(got.Schema) != "a BIGINT" {
		t.Errorf("%v, %v, %v", got.Schema, ok, err)
	}
}
