package json

import (
	"bytes"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/tidemill/tidemill/columnar/columnartest"
	"github.com/tidemill/tidemill/formats/codec"
	"github.com/tidemill/tidemill/formats/codec/codectest"
	"github.com/tidemill/tidemill/internal/vfs"
)

// TestCases reads small files that users of other engines reported as read wrongly.
func TestCases(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name, schema string
		want         []string
	}{
		{"JSON-01", "id:bigint  k:varchar", []string{"9007199254740992|a", "9007199254740993|b", "9223372036854775807|c", "-9223372036854775808|d", "9007199254740993|e"}},
		{"JSON-04", "id:bigint  s:varchar", []string{"1|😀 ok", "2|∅", "3|naïve € / \t end", "4|😀 ok", "5|nul:\x00:"}},
		{"JSON-06", "id:bigint  v:bigint", []string{"1|10", "2|∅", "3|30", "∅|∅", "5|50"}},
		{"JSON-07", "id:bigint", []string{"1", "2", "3"}},
	} {
		paths, err := filepath.Glob(filepath.Join("testdata", "cases", c.name, "*"))
		if err != nil || len(paths) == 0 {
			t.Fatalf("%v, %v", paths, err)
		}
		for _, s := range []codectest.Scan{{Declared: true}, {Declared: true, SplitBytes: 8}, {Declared: true, SplitBytes: 8, Backwards: true}} {
			var got []string
			for _, p := range paths {
				rows, err := codectest.Read(t, newFormat(t, Options{}), codectest.Open(t, vfs.OS(), p), columnartest.Schema(t, c.schema), s)
				if err != nil {
					t.Fatal(err)
				}
				got = append(got, rows...)
			}
			if !slices.Equal(got, c.want) {
				t.Errorf("%s %+v: %q", c.name, s, got)
			}
		}
	}
}

// TestCorpus reads JSONTestSuite from the folder TIDEMILL_CORPUS names, each text as a
// value of a record: what must be read is, what must be refused is malformed.
func TestCorpus(t *testing.T) {
	t.Parallel()
	root := os.Getenv("TIDEMILL_CORPUS")
	if root == "" {
		t.Skip("TIDEMILL_CORPUS is not set: it names a folder with JSONTestSuite in it")
	}
	paths, err := filepath.Glob(filepath.Join(root, "JSONTestSuite", "test_parsing", "*.json"))
	if err != nil || len(paths) == 0 {
		t.Fatalf("no files in %s: %v", root, err)
	}
	for _, p := range paths {
		text, err := vfs.ReadFile(vfs.OS(), p)
		if err != nil {
			t.Fatal(err)
		}
		record := append([]byte(`{"v":`), text...)
		record = append(record, '}')
		_, err = codectest.Read(t, newFormat(t, Options{Multiline: true, Mode: codec.Fail}), codectest.File(t, "x.json", record), columnartest.Schema(t, "v:varchar"), codectest.Scan{})
		name := filepath.Base(p)
		switch {
		case strings.HasPrefix(name, "y_") && err != nil:
			t.Errorf("%s: %v", name, err)
		case strings.HasPrefix(name, "n_") && err == nil:
			t.Errorf("%s was read", name)
		}
	}
}

// FuzzScanner compares the scanner with jsontext: what is JSON, and where it ends.
func FuzzScanner(f *testing.F) {
	for _, s := range []string{`{"a":1,"b":[true,null,{"c":"\u00e9\n"}]}`, `[1.5e-3,-0,0.1]`, `"\ud83d\ude00"`, `{"a":}`, `[1,]`, `01`, `-`, `1e`, "\"\t\"", `{"a" : 1 , "a":2}`, `nul`, `"\x"`, `tru`, `{"":{}}`} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, text []byte) {
		d := jsontext.NewDecoder(bytes.NewReader(text), jsontext.AllowDuplicateNames(true), jsontext.AllowInvalidUTF8(true))
		want := d.SkipValue() == nil
		buf := append(make([]byte, 16), text...)
		buf = append(buf, '\n')
		buf = append(buf, make([]byte, 16)...)
		s := &scanner{buf: buf, hi: 16 + len(text), multiline: true}
		end, ok := s.skip(s.blanks(16))
		if ok != want {
			t.Fatalf("%q: %v, jsontext says %v", text, ok, want)
		}
		if ok && int64(end-16) != d.InputOffset() {
			t.Fatalf("%q: ends at %d, jsontext says %d", text, end-16, d.InputOffset())
		}
	})
}

// oracle reads the values of key a, the last of each record, as jsontext does.
func oracle(text []byte) (values []string, ok bool) {
	for line := range bytes.Lines(text) {
		d := jsontext.NewDecoder(bytes.NewReader(line), jsontext.AllowDuplicateNames(true))
		for {
			v, err := d.ReadValue()
			if err == io.EOF {
				break
			}
			if err != nil || v.Kind() != '{' {
				return nil, false
			}
			value, ok := valueOf(v)
			if !ok {
				return nil, false
			}
			values = append(values, value)
		}
	}
	return values, true
}

func valueOf(object jsontext.Value) (string, bool) {
	d := jsontext.NewDecoder(bytes.NewReader(object), jsontext.AllowDuplicateNames(true))
	if _, err := d.ReadToken(); err != nil {
		return "", false
	}
	out := codectest.Null
	for d.PeekKind() != '}' {
		key, err := d.ReadToken()
		if err != nil {
			return "", false
		}
		name := key.String()
		v, err := d.ReadValue()
		if err != nil {
			return "", false
		}
		if name != "a" {
			continue
		}
		switch v.Kind() {
		case 'n':
			out = codectest.Null
		case '"':
			text, err := jsontext.AppendUnquote(nil, v)
			if err != nil {
				return "", false
			}
			out = string(text)
		default:
			out = string(appendCompacted(v))
		}
	}
	return out, true
}

// appendCompacted removes blanks outside of texts.
func appendCompacted(v jsontext.Value) (out []byte) {
	inText := false
	for i := 0; i < len(v); i++ {
		c := v[i]
		switch {
		case inText && c == '\\':
			out = append(out, c)
			i++
			c = v[i]
		case c == '"':
			inText = !inText
		case !inText && (c == ' ' || c == '\t' || c == '\r' || c == '\n'):
			continue
		}
		out = append(out, c)
	}
	return out
}

// FuzzRead compares with jsontext, and one way of dividing a file with another.
func FuzzRead(f *testing.F) {
	for i, s := range []string{"{\"a\":1}\n{\"a\":\"x\"}\n", "{\"b\":{\"a\":2},\"a\":[1, 2]}{\"a\":null}\n\n", "{\"a\":1,\"a\":2}\r\n{\"\\u0061\":3}", "[{\"a\":1},{\"a\":2}]", "{\"a\":1\n{\"a\":2}", "{\"a\":\"\\ud800\"}", "\xEF\xBB\xBF{}"} {
		f.Add([]byte(s), int64(i*5), uint8(i))
	}
	schema := columnartest.Schema(f, "a:varchar")
	f.Fuzz(func(t *testing.T, text []byte, split int64, variant uint8) {
		if len(text) > 2000 {
			return // dividing it into the smallest ranges takes long
		}
		read := func(s codectest.Scan) []string {
			o := Options{Multiline: variant%4 == 3, Mode: codec.Mode(variant / 4 % 2)}
			s.Declared = true
			rows, err := codectest.Read(t, newFormat(t, o), codectest.File(t, "x.json", text), schema, s)
			if err != nil {
				t.Fatal(err)
			}
			return rows
		}
		whole := read(codectest.Scan{})
		divided := read(codectest.Scan{SplitBytes: split%64 + 1, Backwards: variant%2 == 1, BatchRows: int(variant % 3)})
		if !slices.Equal(whole, divided) {
			t.Fatalf("whole %q, divided %q", whole, divided)
		}
		if bytes.HasPrefix(text, []byte("\xEF\xBB\xBF")) || bytes.HasPrefix(text, []byte("\xFF\xFE")) || bytes.HasPrefix(text, []byte("\xFE\xFF")) {
			return
		}
		if want, ok := oracle(text); ok && !slices.Equal(whole, want) && len(whole)+len(want) > 0 {
			t.Fatalf("%q, jsontext has %q", whole, want)
		}
	})
}

// FuzzInfer reads anything with the columns found in it: whatever the sample has seen
// whole fits, and has no other keys.
func FuzzInfer(f *testing.F) {
	for i, s := range []string{
		`{"a":1,"b":{"c":[1,2.5]},"d":"2024-01-01"}` + "\n" + `{"b":{"c":[],"x":null},"A":true}`,
		"[{\"a\":1},\n{\"a\":\"x\"}]", `{"a":1} 7 {"a":`, "\"a\":12\n{\"\\u0061\":1,\"\\ud800\":2}",
	} {
		f.Add([]byte(s), uint8(i))
	}
	f.Fuzz(func(t *testing.T, text []byte, variant uint8) {
		o := Options{Multiline: variant%2 == 1, Mode: codec.Mode(variant / 2 % 2)}
		file := codectest.File(t, "x.json", text)
		inferred, ok, err := newFormat(t, o).Infer(t.Context(), []codec.File{file})
		if err != nil || !ok {
			return
		}
		for _, f := range inferred.Schema.Fields() {
			if !Readable(f.Type) {
				return
			}
		}
		if _, err := codectest.Read(t, newFormat(t, o), file, inferred.Schema, codectest.Scan{}); err != nil {
			t.Fatal(err)
		}
	})
}
