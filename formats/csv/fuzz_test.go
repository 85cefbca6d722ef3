package csv

import (
	stdcsv "encoding/csv"
	"fmt"
	"io"
	"math/rand/v2"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"unicode/utf8"

	"github.com/apache/arrow-go/v18/arrow/array"
	"golang.org/x/sync/errgroup"

	"github.com/tidemill/tidemill/columnar"
	"github.com/tidemill/tidemill/formats/codec"
	"github.com/tidemill/tidemill/formats/codec/codectest"
	"github.com/tidemill/tidemill/logical/connector"
)

// seeds are texts that once were, or might be, read wrongly.
var seeds = []string{
	"a,b,c\n1,2,3\n", "a\r\nb\rc\n", "\"a\"\"b\",c\n\"x\ny\",z\n", "\"open,\n1,2", "a,\"b\"c,d\n", "\"\"\"\"\n,\n",
	"\xEF\xBB\xBF\"a\",b\n", "a,b\r\n\"\r\n\",\"\r\"\r\n", "\"a\"\r\r\n\"b\"", "x\"y\"z,\"q\"\"\n", "\"\",\"\"\n\"\"\n", ",\"\",\n\n\n,,\n",
}

// oracle reads text as encoding/csv does; ok is false where the two differ on
// purpose: it refuses stray quotes, and changes line ends inside quotes; \x01 is null here.
func oracle(text string) (records [][]string, ok bool) {
	if strings.ContainsAny(text, "\r\x01") || !utf8.ValidString(text) || strings.HasPrefix(text, "\uFEFF") {
		return nil, false
	}
	r := stdcsv.NewReader(strings.NewReader(text))
	r.FieldsPerRecord = -1
	for {
		record, err := r.Read()
		if err == io.EOF {
			return records, true
		}
		if err != nil {
			return nil, false
		}
		records = append(records, record)
	}
}

// FuzzRead compares with encoding/csv, and one way of dividing a file with another.
func FuzzRead(f *testing.F) {
	for i, s := range seeds {
		f.Add(s, int64(i*3), uint8(i))
	}
	columns := columnar.NewSchema(columnar.Field("x", columnar.String), columnar.Field("y", columnar.String))
	f.Fuzz(func(t *testing.T, text string, split int64, variant uint8) {
		if len(text) > 2000 {
			return // dividing it into the smallest ranges takes long
		}
		o := Options{Header: HeaderNo, NullValue: "\x01", Encoding: encoding(t, "utf-8"), NoQuote: variant%7 == 6}
		if variant%5 == 4 {
			o.Escape = `\`
		}
		read := func(s codectest.Scan) []string {
			rows, err := codectest.Read(t, newFormat(t, o), codectest.File(t, "x.csv", []byte(text)), columns, s)
			if err != nil {
				t.Fatal(err)
			}
			return rows
		}
		whole := read(codectest.Scan{Declared: true})
		divided := read(codectest.Scan{Declared: true, SplitBytes: split%64 + 1, Backwards: variant%2 == 1, BatchRows: int(variant % 3)})
		if !slices.Equal(whole, divided) {
			t.Fatalf("whole %q, divided %q", whole, divided)
		}
		if records, ok := oracle(text); ok && o.Escape == "" && !o.NoQuote {
			var want []string
			for _, r := range records {
				r = append(r, codectest.Null)[:2]
				want = append(want, strings.Join(r, "|"))
			}
			if !slices.Equal(whole, want) && len(whole)+len(want) > 0 {
				t.Fatalf("%q, encoding/csv has %q", whole, want)
			}
		}
	})
}

// TestRandomTexts is FuzzRead with texts made of the bytes that matter.
func TestRandomTexts(t *testing.T) {
	t.Parallel()
	r := rand.New(rand.NewPCG(1, 2))
	columns := columnar.NewSchema(columnar.Field("x", columnar.String), columnar.Field("y", columnar.String))
	const alphabet = "\"\"\",,\n\n\rab\\"
	for range 800 {
		text := make([]byte, r.IntN(60))
		for i := range text {
			text[i] = alphabet[r.IntN(len(alphabet))]
		}
		o := Options{Header: HeaderNo}
		if r.IntN(4) == 0 {
			o.Escape = `\`
		}
		f := newFormat(t, o)
		file := codectest.File(t, "x.csv", text)
		whole, err := codectest.Read(t, f, file, columns, codectest.Scan{Declared: true})
		if err != nil {
			t.Fatal(err)
		}
		for range 4 {
			s := codectest.Scan{Declared: true, SplitBytes: int64(4 + r.IntN(20)), Backwards: r.IntN(2) == 0, BatchRows: r.IntN(4)}
			divided, err := codectest.Read(t, f, file, columns, s)
			if err != nil || !slices.Equal(whole, divided) {
				t.Fatalf("%q, %+v:\n%q\n%q %v", text, s, whole, divided, err)
			}
		}
		if records, ok := oracle(string(text)); ok && o.Escape == "" {
			if len(records) != len(whole) {
				t.Fatalf("%q: %q, encoding/csv has %q", text, whole, records)
			}
		}
	}
}

// FuzzInfer must not fail on any bytes.
func FuzzInfer(f *testing.F) {
	for i, s := range seeds {
		f.Add([]byte(s), uint8(i))
	}
	f.Add([]byte("#\na;b|c\n1;2|3\n"), uint8(3))
	f.Add([]byte("a\x00,\x00b\x00\n\x001\x00,\x00\x00\xd8\n\x00"), uint8(0))
	f.Add([]byte("\xff\xfe\x00\x00a\x00\x00\x00\n\x00\x00\x00\x00\x00\x11\x00"), uint8(1))
	f.Add([]byte("a\x81,b\n\xd2,\xff\n"), uint8(14))
	f.Add([]byte("a\x00,\x00b\x00\n\x001\x00,\x00"), uint8(4))
	f.Fuzz(func(t *testing.T, text []byte, variant uint8) {
		o := Options{Header: Header(variant % 3), Mode: codec.Mode(variant / 3 % 3), UnionByName: variant > 100}
		if variant%4 == 3 {
			o.Delimiter, o.Comment = "auto", "#"
		}
		if variant%5 == 4 {
			o.Encoding = encoding(t, []string{"utf-16le", "utf-16be", "windows-1252", "koi8-r"}[variant/5%4])
		}
		file := codectest.File(t, "x.csv", text)
		inferred, ok, err := newFormat(t, o).Infer(t.Context(), []codec.File{file})
		if err != nil || !ok {
			return
		}
		pinned, err := newFormat(t, o).WithPinned(inferred.Pinned)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := codectest.Read(t, pinned, file, inferred.Schema, codectest.Scan{}); err != nil && o.Mode != codec.Fail {
			t.Fatal(err)
		}
	})
}

// TestManyReaders opens the units of one file from several goroutines at once.
func TestManyReaders(t *testing.T) {
	t.Parallel()
	var text strings.Builder
	text.WriteString("id,s\n")
	for i := range 20_000 {
		fmt.Fprintf(&text, "%d,\"a \"\"%d\"\"\n,%d\"\n", i, i, i)
	}
	file := codectest.File(t, "x.csv", []byte(text.String()))
	file.Hash = nil
	schema := columnar.NewSchema(columnar.Field("id", columnar.Int64), columnar.Field("s", columnar.String))
	units, err := newFormat(t, Options{}).Units(t.Context(), file, codec.Columns{Schema: schema, CorruptColumn: -1}, connector.ScanRequest{SplitBytes: 10_000, Mem: columnar.NewPool()})
	if err != nil {
		t.Fatal(err)
	}
	var next, rows atomic.Int64
	var sum atomic.Int64
	var g errgroup.Group
	for range 4 {
		g.Go(func() error {
			for {
				i := int(next.Add(1)) - 1
				if i >= len(units) {
					return nil
				}
				r, err := units[i].Open(t.Context())
				if err != nil {
					return err
				}
				for b, err := range columnar.All(t.Context(), r) {
					if err != nil {
						return err
					}
					rows.Add(b.NumRows())
					for _, v := range b.Column(0).(*array.Int64).Int64Values() {
						sum.Add(v)
					}
				}
				if err := r.Close(); err != nil {
					return err
				}
			}
		})
	}
	if err := g.Wait(); err != nil {
		t.Fatal(err)
	}
	if rows.Load() != 20_000 || sum.Load() != 20_000*19_999/2 {
		t.Errorf("%d rows, sum %d", rows.Load(), sum.Load())
	}
}
