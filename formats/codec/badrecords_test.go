package codec_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/tidemill/tidemill/columnar"
	"github.com/tidemill/tidemill/columnar/columnartest"
	"github.com/tidemill/tidemill/formats/codec"
	"github.com/tidemill/tidemill/formats/codec/codectest"
	"github.com/tidemill/tidemill/formats/csv"
	"github.com/tidemill/tidemill/formats/json"
	"github.com/tidemill/tidemill/formats/text"
	"github.com/tidemill/tidemill/logical/connector"
)

// kept reads a file, keeping bad records, and shows each as line|column|text.
func kept(t *testing.T, f codec.Format, file codec.File, schema string, most int, s codectest.Scan) []string {
	t.Helper()
	s.Stats = &connector.ScanStats{Kept: connector.NewBadRecords(nil)}
	if _, err := codectest.Read(t, f, file, columnartest.Schema(t, schema), s); err != nil {
		t.Fatal(err)
	}
	files, err := s.Stats.Kept.Files()
	if err != nil {
		t.Fatal(err)
	}
	out := []string{}
	for _, f := range files {
		var spans []connector.Span
		for _, r := range f.Records {
			spans = append(spans, r.At)
		}
		err := f.Text.Read(t.Context(), spans, most, func(i int, line int64, text []byte) error {
			out = append(out, fmt.Sprintf("%d|%s|%s", line, f.Records[i].Column, text))
			return nil
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	if n := s.Stats.MalformedRows.Load(); n != int64(len(out)) {
		t.Errorf("%d records are counted, %d kept", n, len(out))
	}
	return out
}

func TestBadRecordsAreKept(t *testing.T) {
	t.Parallel()
	csvDrop := must(csv.New(csv.Options{Header: csv.HeaderYes, Mode: codec.Drop}))
	csvPermissive := must(csv.New(csv.Options{Header: csv.HeaderYes, Encoding: must(codec.ParseEncoding("latin1"))}))
	jsonDrop := must(json.New(json.Options{Mode: codec.Drop}))
	jsonPermissive := must(json.New(json.Options{}))
	textDrop := must(text.New(text.Options{Mode: codec.Drop}))
	gzip := func(s string) string { return string(compress(t, codec.Gzip, s)) }
	for name, test := range map[string]struct {
		format       codec.Format
		file, in     string
		schema, want string
		most         int
	}{
		"csv": {csvDrop, "a.csv", "a,b\n1,x\n\n2\r\n3,\"two\nlines\",4\nx,\"y\nz\"\n5,y", "a:bigint  b:varchar",
			"4||2;5||3,\"two\nlines\",4;7|a|x,\"y\nz\"", 99},
		"csv, latin1": {csvPermissive, "a.csv", "a,b\n1,\xe4\n\xe4,\xf6\n", "a:bigint  b:varchar", "3|a|ä,ö", 99},
		"csv, gzip":   {csvDrop, "a.csv.gz", gzip("a,b\n1,x\nno,y\n"), "a:bigint  b:varchar", "3|a|no,y", 99},
		"cut off":     {csvDrop, "a.csv", "a,b\nlong,record\n1,fine\nshort,r\n", "a:bigint  b:varchar", "2|a|long,r;4|a|short,", 6},
		"json":        {jsonDrop, "a.json", "{\"a\":1}\n{\"a\":\n{\"a\":2} {\"a\":\"x\"}\n7", "a:bigint", "2||{\"a\":;3|a|{\"a\":\"x\"};4||7", 99},
		"json, kept":  {jsonPermissive, "a.json", "oops\n{\"a\":1}\n{\"a\":{}}\n", "a:bigint", "1||oops;3|a|{\"a\":{}}", 99},
		"text":        {textDrop, "a.txt", "fine\nb\xffd\nfine", "value:varchar", "2|value|b\xffd", 99},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			file := codectest.File(t, test.file, []byte(test.in))
			got := kept(t, test.format, file, test.schema, test.most, codectest.Scan{Declared: true})
			if text := strings.Join(got, ";"); text != test.want {
				t.Errorf("kept %q\nwant %q", text, test.want)
			}
		})
	}
}

// Ranges of a file meet their bad records in any order; each has the line it has in the
// whole file.
func TestBadRecordsOfRanges(t *testing.T) {
	t.Parallel()
	var in strings.Builder
	var want []string
	for i := range 500 {
		if i%7 == 3 {
			fmt.Fprintf(&in, "bad%d\n", i)
			want = append(want, fmt.Sprintf("%d|a|bad%d", i+1, i))
		} else {
			fmt.Fprintf(&in, "%d\n", i)
		}
	}
	f := must(csv.New(csv.Options{Header: csv.HeaderNo}))
	file := codectest.File(t, "a.csv", []byte(in.String()))
	got := kept(t, f, file, "a:bigint", 99, codectest.Scan{Declared: true, SplitBytes: 100, Backwards: true})
	if strings.Join(got, " ") != strings.Join(want, " ") {
		t.Errorf("kept %v\nwant %v", got, want)
	}
}

func TestBadRecordsNeedMemory(t *testing.T) {
	t.Parallel()
	b := connector.NewBadRecords(columnar.NewBudget(100))
	s := &connector.ScanStats{Kept: b}
	for range 3 {
		s.Malformed(connector.RecordError{File: "f", Reason: "none"})
	}
	if _, err := b.Files(); !errors.Is(err, columnar.ErrMemory) {
		t.Errorf("got %v", err)
	}
	b.Release()
}

func must[T any](v T, err error) T {
	if err != nil {
		panic(err)
	}
	return v
}
