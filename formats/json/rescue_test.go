package json

import (
	"io"
	"slices"
	"strings"
	"testing"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/tidemill/tidemill/columnar/columnartest"
	"github.com/tidemill/tidemill/formats/codec"
	"github.com/tidemill/tidemill/formats/codec/codectest"
	"github.com/tidemill/tidemill/logical/connector"
)

const rescueSchema = "a:bigint  s:struct<x bigint, y varchar>  l:array<bigint>  m:map<varchar, double>  r:varchar"

func TestRescue(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ name, text, rescued string }{
		{"all fits", `{"a":1,"s":{"x":2,"y":"p"},"l":[1,null],"m":{"k":1.5}}`, "∅"},
		{"unknown keys in order", `{"z":1,"a":1,"b":[true, {"c":null}],"":"e"}`, `{"z":1,"b":[true, {"c":null}],"":"e"}`},
		{"the last of a doubled key", `{"b":1,"a":"x","b":2,"a":3}`, `{"b":2}`},
		{"a doubled key whose last value is null", `{"b":1,"b":null}`, "∅"},
		{"nulls", `{"b":null,"s":{"q":null},"l":null}`, "∅"},
		{"escapes", `{"\u0062\n":"\ud83d\ude00\"","a":"1"}`, `{"b\n":"\ud83d\ude00\"","a":"1"}`},
		{"a lone surrogate", `{"b":"\ud800","\udc00":1}`, `{"b":"\ud800","\\udc00":1}`},
		{"a key that is no text", `{"a":1,"\udc00":2,"s":{"x":1,"\ud800":true}}`, `{"\\udc00":2,"s":{"\\ud800":true}}`},
		{"within a struct", `{"s":{"x":1.5,"y":{"q":1},"z":{}}}`, `{"s":{"x":1.5,"z":{}}}`},
		{"a list is kept whole", `{"l":[1,2.5,3]}`, `{"l":[1,2.5,3]}`},
		{"a map is kept whole", `{"m":{"k":"x","j":1}}`, `{"m":{"k":"x","j":1}}`},
		{"other kinds", `{"s":[1],"l":{"x":1},"m":7,"a":{}}`, `{"s":[1],"l":{"x":1},"m":7,"a":{}}`},
		{"out of range", `{"a":9223372036854775808}`, `{"a":9223372036854775808}`},
		{"the name of the rescued column", `{"r":"x"}`, `{"r":"x"}`},
		{"a key of the schema in other letters", `{"A":1}`, `{"A":1}`},
	} {
		stats := &connector.ScanStats{}
		scan := codectest.Scan{Evolution: codec.EvolveRescue, Rescued: "r", Columns: []int{4}, Stats: stats}
		got, err := codectest.Read(t, newFormat(t, Options{}), codectest.File(t, "x.json", []byte(c.text)), columnartest.Schema(t, rescueSchema), scan)
		want := strings.TrimSuffix(c.rescued, "}")
		if c.rescued != codectest.Null {
			want += `,"_file_path":"x.json"}`
		}
		if err != nil || len(got) != 1 || got[0] != want || stats.MalformedRows.Load() != 0 {
			t.Errorf("%s: %q %v, %d malformed\nwant %q", c.name, got, err, stats.MalformedRows.Load(), want)
		}
	}
}

// TestRescueModes: what is rescued is not malformed, what is no JSON still is; and a query
// that does not ask for the rescued column has the same rows.
func TestRescueModes(t *testing.T) {
	t.Parallel()
	const text = `{"a":1,"b":2}` + "\n" + `{"a":` + "\n" + `{"a":"x"}` + "\n" + `{"s":{"y":"\ud800"}}` + "\n" + `{"a":4}` + "\n"
	for _, c := range []struct {
		mode    codec.Mode
		columns []int
		want    string
		bad     int64
	}{
		{codec.Permissive, []int{0, 4}, `1|{"b":2,F};∅|∅;∅|{"a":"x",F};∅|{"s":{"y":"\ud800"},F};4|∅`, 2},
		{codec.Permissive, []int{0}, `1;∅;∅;∅;4`, 1},
		{codec.Drop, []int{0, 4}, `1|{"b":2,F};∅|{"a":"x",F};4|∅`, 2},
		{codec.Drop, []int{0}, `1;∅;4`, 2},
	} {
		for _, batch := range []int{0, 1, 2} {
			stats := &connector.ScanStats{}
			scan := codectest.Scan{Evolution: codec.EvolveRescue, Rescued: "r", Columns: c.columns, Stats: stats, BatchRows: batch}
			rows, err := codectest.Read(t, newFormat(t, Options{Mode: c.mode}), codectest.File(t, "x.json", []byte(text)), columnartest.Schema(t, rescueSchema), scan)
			got := strings.ReplaceAll(strings.Join(rows, ";"), `"_file_path":"x.json"`, "F")
			if err != nil || got != c.want || stats.MalformedRows.Load() != c.bad {
				t.Errorf("%d %v: %s, %v, %d malformed\nwant %s, %d", c.mode, c.columns, got, err, stats.MalformedRows.Load(), c.want, c.bad)
			}
		}
	}
}

// FuzzRescue: what is rescued is one object, however the file is divided.
func FuzzRescue(f *testing.F) {
	for i, s := range []string{`{"a":1,"b":2}` + "\n" + `{"a":"x","s":{"x":1,"z":[]}}`, `[{"l":[1,"x"]},{"m":{"k":{}}}]`, `{"b":"\ud800","\u0062":1}`, "{\"b\":\"\xff\"}"} {
		f.Add([]byte(s), int64(i*3), uint8(i))
	}
	schema := columnartest.Schema(f, rescueSchema)
	f.Fuzz(func(t *testing.T, text []byte, split int64, variant uint8) {
		if len(text) > 2000 {
			return // dividing it into the smallest ranges takes long
		}
		read := func(s codectest.Scan) []string {
			s.Evolution, s.Rescued, s.Columns = codec.EvolveRescue, "r", []int{4}
			o := Options{Multiline: variant%4 == 3, Mode: codec.Mode(variant / 4 % 2)}
			rows, err := codectest.Read(t, newFormat(t, o), codectest.File(t, "x.json", text), schema, s)
			if err != nil {
				t.Fatal(err)
			}
			return rows
		}
		whole := read(codectest.Scan{})
		if divided := read(codectest.Scan{SplitBytes: split%64 + 1, BatchRows: int(variant % 3)}); !slices.Equal(whole, divided) {
			t.Fatalf("whole %q, divided %q", whole, divided)
		}
		for _, rescued := range whole {
			if rescued == codectest.Null {
				continue
			}
			d := jsontext.NewDecoder(strings.NewReader(rescued), jsontext.AllowInvalidUTF8(true), jsontext.AllowDuplicateNames(true))
			if v, err := d.ReadValue(); err != nil || v.Kind() != '{' {
				t.Fatalf("%q: %v", rescued, err)
			}
			if _, err := d.ReadValue(); err != io.EOF {
				t.Fatalf("%q: %v", rescued, err)
			}
		}
	})
}
