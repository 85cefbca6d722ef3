package codec_test

import (
	"bytes"
	"encoding/base64"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/ulikunitz/xz"

	"github.com/tidemill/tidemill/columnar/columnartest"
	"github.com/tidemill/tidemill/formats/codec"
	"github.com/tidemill/tidemill/formats/codec/codectest"
	"github.com/tidemill/tidemill/formats/csv"
	"github.com/tidemill/tidemill/formats/json"
	"github.com/tidemill/tidemill/formats/text"
	"github.com/tidemill/tidemill/internal/vfs"
	"github.com/tidemill/tidemill/logical/connector"
)

func compress(t testing.TB, c codec.Compression, text string) []byte {
	t.Helper()
	var b bytes.Buffer
	open := func(w io.Writer) (io.WriteCloser, error) { return c.NewWriter(w, 0) }
	if c == codec.XZ { // which is read only
		open = func(w io.Writer) (io.WriteCloser, error) { return xz.NewWriter(w) }
	}
	w, err := open(&b)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := io.WriteString(w, text); err != nil {
		t.Fatal(err)
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

// read reads all of a file through an Input, a little at a time.
func read(t testing.TB, f codec.File, spec codec.InputSpec) (string, error) {
	t.Helper()
	spec.File, spec.Range = f, codec.Range{End: f.Size}
	in, err := codec.OpenInput(spec)
	if err != nil {
		return "", err
	}
	defer in.Close()
	var out []byte
	for {
		out = append(out, in.Buf()[in.Lo():in.Hi()]...)
		if in.Final() {
			return string(out), in.Finish()
		}
		if err := in.More(in.Hi()); err != nil {
			return "", err
		}
	}
}

func TestCompression(t *testing.T) {
	t.Parallel()
	content := strings.Repeat("some text, some more\n", 100_000)
	for _, c := range []codec.Compression{codec.CompressionNone, codec.Gzip, codec.Zstd, codec.LZ4, codec.Snappy, codec.XZ} {
		for _, name := range []string{"x.txt" + c.Extension(), "named-otherwise"} {
			f := codectest.File(t, name, compress(t, c, content))
			f.Hash = codec.NewContentHash(f.Size)
			got, err := read(t, f, codec.InputSpec{})
			if err != nil || got != content {
				t.Errorf("%s in %s: %d bytes, %v", c, name, len(got), err)
			}
			if _, err := f.Hash.Sum(); err != nil {
				t.Errorf("%s: %v", c, err)
			}
		}
	}
	bz, err := base64.StdEncoding.DecodeString("QlpoOTFBWSZTWacUK3cAAALBgAAQAgGEgCAAIYAMAjj1G4u5IpwoSFOKFbuA")
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"x.bz2", "named-otherwise"} {
		if got, err := read(t, codectest.File(t, name, bz), codec.InputSpec{}); err != nil || got != "one\ntwo\n" {
			t.Errorf("bzip2 in %s: %q, %v", name, got, err)
		}
	}
	for head, want := range map[string]codec.Compression{
		"BZh91AY&SY": codec.Bzip2, "BZh1\x17\x72\x45\x38\x50\x90": codec.Bzip2, "BZh91AY&S": codec.CompressionNone, "BZh01AY&SY": codec.CompressionNone, "BZhat,cost": codec.CompressionNone,
	} {
		if got := codec.DetectCompression("x.csv", []byte(head)); got != want {
			t.Errorf("%q: %s, want %s", head, got, want)
		}
	}
	for _, c := range []codec.Compression{codec.Bzip2, codec.XZ} {
		if _, err := c.NewWriter(io.Discard, 0); err == nil {
			t.Errorf("%s was written", c)
		}
	}
	if got, err := read(t, codectest.File(t, "x.bz2", slices.Concat(bz, bz)), codec.InputSpec{}); err != nil || got != "one\ntwo\none\ntwo\n" {
		t.Errorf("two streams of bzip2: %q, %v", got, err)
	}
}

// TestMark writes texts whose beginning would be taken for something else.
func TestMark(t *testing.T) {
	t.Parallel()
	for text, mark := range map[string]bool{
		"plain\n": false, "": false, "BZhat\n": false, "\xEF\xBB\xBFx": true, "BZh91AY&SY\n": true, "\x04\x22\x4d\x18": true,
		"a\x00b\x00": true, "\x00a\x00b": true, "\xFF\xFEx": true, "a\x00bc": false,
	} {
		for _, c := range []codec.Compression{codec.CompressionNone, codec.Zstd} {
			var b bytes.Buffer
			w, err := codec.NewTextWriter(&b, c, 0)
			if err != nil {
				t.Fatal(err)
			}
			if err := errors.Join(w.Took(append(w.Buffer(), text...)), w.Close()); err != nil {
				t.Fatal(err)
			}
			got, err := read(t, codectest.File(t, "x", b.Bytes()), codec.InputSpec{})
			if err != nil || got != text {
				t.Errorf("%q %s: %q, %v", text, c, got, err)
			}
			if got := strings.HasPrefix(b.String(), "\xEF\xBB\xBF"); c == codec.CompressionNone && got != mark {
				t.Errorf("%q: a mark is there: %v", text, got)
			}
		}
	}
}

// TestMembers reads files made by appending compressed files.
func TestMembers(t *testing.T) {
	t.Parallel()
	for _, c := range []codec.Compression{codec.Gzip, codec.Zstd, codec.LZ4, codec.Snappy, codec.XZ} {
		data := append(compress(t, c, "one\n"), compress(t, c, "")...)
		data = append(data, compress(t, c, "two\n")...)
		got, err := read(t, codectest.File(t, "x"+c.Extension(), data), codec.InputSpec{})
		if err != nil || got != "one\ntwo\n" {
			t.Errorf("%s: %q, %v", c, got, err)
		}
	}
}

func TestDamaged(t *testing.T) {
	t.Parallel()
	content := strings.Repeat("some text, some more\n", 1000)
	for _, c := range []codec.Compression{codec.Gzip, codec.Zstd, codec.LZ4, codec.Snappy, codec.XZ} {
		data := compress(t, c, content)
		for name, bad := range map[string][]byte{"cut": data[:len(data)-9], "head": append([]byte("xx"), data...)} {
			f := codectest.File(t, "x.txt"+c.Extension(), bad)
			_, err := read(t, f, codec.InputSpec{})
			var record *connector.RecordError
			if !errors.As(err, &record) || record.File != f.Path {
				t.Errorf("%s %s: %v", c, name, err)
			}
			stats := &connector.ScanStats{}
			got, err := read(t, f, codec.InputSpec{Mode: codec.Drop, Stats: stats})
			if err != nil || got != "" || stats.MalformedFiles.Load() != 1 {
				t.Errorf("%s %s: dropped %q, %v", c, name, got, err)
			}
		}
	}
}

// TestCut reads compressed files that end too early, wherever: none is taken for a whole one.
func TestCut(t *testing.T) {
	t.Parallel()
	for _, c := range []codec.Compression{codec.Gzip, codec.Zstd, codec.LZ4, codec.Snappy, codec.XZ} {
		for _, content := range []string{"", "one\n"} {
			data := compress(t, c, content)
			for n := 1; n < len(data); n++ {
				got, err := read(t, codectest.File(t, "x.txt"+c.Extension(), data[:n]), codec.InputSpec{})
				if err == nil && !(c == codec.Snappy && got == "") {
					t.Errorf("%s of %q: the first %d bytes of %d were read as %q", c, content, n, len(data), got)
				}
			}
		}
	}
}

func TestEncodings(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ name, raw, want string }{
		{"utf-8", "\xEF\xBB\xBFé", "é"},
		{"utf-8", "\xFE\xFF\x00a\x20\xAC", "a€"},
		{"utf-16le", "a\x00\xAC\x20", "a€"},
		{"UTF-16", "\x00a", "a"},
		{"latin1", "\xE9\x80", "é\u0080"},
		{"ISO-8859-15", "\xA4", "€"},
		{"windows-1252", "\x80", "€"},
		{"cp1251", "\xC0", "А"},
		{"koi8-r", "\xC1", "а"},
	} {
		e, err := codec.ParseEncoding(c.name)
		if err != nil {
			t.Error(err)
			continue
		}
		got, err := read(t, codectest.File(t, "x", []byte(c.raw)), codec.InputSpec{Encoding: e})
		if err != nil || got != c.want {
			t.Errorf("%s: %q, %v", c.name, got, err)
		}
	}
	if _, err := codec.ParseEncoding("ebcdic"); err == nil {
		t.Error("ebcdic was taken")
	}
}

func TestEndsInNewline(t *testing.T) {
	t.Parallel()
	for content, want := range map[string]bool{"": true, "a\n": true, "a\r": true, "a": false, "a\nb": false, "a\x00\n\x00": true, "a\x00b\x00": false} {
		if got, err := codec.EndsInNewline(codectest.File(t, "x.csv", []byte(content))); err != nil || got != want {
			t.Errorf("%q: %v, %v", content, got, err)
		}
	}
	if got, err := codec.EndsInNewline(codectest.File(t, "x.csv", compress(t, codec.Gzip, "a"))); err != nil || !got {
		t.Errorf("gzip: %v, %v", got, err)
	}
}

// TestChangedFile finds that a file is no longer the one that was listed.
func TestChangedFile(t *testing.T) {
	t.Parallel()
	f := codectest.File(t, "x.txt", []byte("one\ntwo\n"))
	changed := func(f codec.File) bool {
		_, err := read(t, f, codec.InputSpec{})
		var e *connector.FileChangedError
		return errors.As(err, &e)
	}
	longer := f
	longer.Size++
	if !changed(longer) {
		t.Error("a shorter file was read")
	}
	gone := f
	gone.Path = "y.txt"
	if !changed(gone) {
		t.Error("an absent file was read")
	}
	shorter := f
	shorter.Size = 4
	if got, err := read(t, shorter, codec.InputSpec{}); got != "one\n" || err != nil {
		t.Errorf("a file that grew: %q, %v", got, err)
	}
	shorter.Hash = codec.NewContentHash(4)
	if !changed(shorter) {
		t.Error("a logged file that grew was read")
	}
	if err := f.FS.(*vfs.Mem).Chtimes("x.txt", time.Unix(1, 0)); err != nil {
		t.Fatal(err)
	}
	f.Hash = codec.NewContentHash(f.Size)
	if !changed(f) {
		t.Error("a logged file of another time was read")
	}
}

// TestHashOfRanges takes the same hash however a file is divided, and in whatever order
// its ranges are read.
func TestHashOfRanges(t *testing.T) {
	t.Parallel()
	line := strings.Repeat("0123456789", 100) + "\n"
	content := []byte(strings.Repeat(line, 20_000)) // 20 MB
	inOrder := func([]connector.Unit) {}
	sum := func(split int64, f codec.Format, reorder func([]connector.Unit)) string {
		file := codectest.File(t, "x.txt", content)
		file.Hash = codec.NewContentHash(file.Size)
		units, err := f.Units(t.Context(), file, codec.Columns{Schema: text.Schema(), CorruptColumn: -1}, connector.ScanRequest{SplitBytes: split, Columns: []int{}})
		if err != nil {
			t.Fatal(err)
		}
		rows := int64(0)
		reorder(units)
		for _, u := range units {
			r, err := u.Open(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			for {
				b, err := r.Next(t.Context())
				if err == io.EOF {
					break
				}
				if err != nil {
					t.Fatal(err)
				}
				rows += b.NumRows()
				b.Release()
			}
			r.Close()
		}
		if rows != 20_000 {
			t.Errorf("%d rows", rows)
		}
		s, err := file.Hash.Sum()
		if err != nil {
			t.Fatal(err)
		}
		return s
	}
	f, err := text.New(text.Options{})
	if err != nil {
		t.Fatal(err)
	}
	whole := sum(1<<30, f, inOrder)
	for _, split := range []int64{0, 1 << 20, 3_333_333, codec.HashBlock} {
		for _, reorder := range []func([]connector.Unit){inOrder, slices.Reverse[[]connector.Unit], func(us []connector.Unit) {
			rand.New(rand.NewPCG(1, uint64(split))).Shuffle(len(us), func(i, j int) { us[i], us[j] = us[j], us[i] })
		}} {
			if divided := sum(split, f, reorder); divided != whole {
				t.Errorf("in ranges of %d: %s and %s", split, whole, divided)
			}
		}
	}
	latin, _ := codec.ParseEncoding("latin1")
	f, _ = text.New(text.Options{Encoding: latin})
	if streamed := sum(0, f, inOrder); streamed != whole {
		t.Errorf("%s and %s", whole, streamed)
	}
}

// TestLongLines reads records larger than any window.
func TestLongLines(t *testing.T) {
	t.Parallel()
	long := strings.Repeat("x", 5<<20)
	c, _ := csv.New(csv.Options{})
	j, _ := json.New(json.Options{})
	x, _ := text.New(text.Options{})
	for _, k := range []struct {
		f       codec.Format
		schema  string
		content string
		want    []string
	}{
		{c, "a:varchar  b:bigint", "a,b\n1,1\n" + long + ",2\n\"" + long + "\n\",3\ny,4\n", []string{"1|1", long + "|2", long + "\n|3", "y|4"}},
		{j, "a:varchar", fmt.Sprintf("{\"a\":%q}\n{\"a\":\"s\"}\n", long), []string{long, "s"}},
		{x, "value:varchar", long + "\nz", []string{long, "z"}},
	} {
		for _, zip := range []codec.Compression{codec.CompressionNone, codec.Gzip} {
			file := codectest.File(t, "x.csv", compress(t, zip, k.content))
			got, err := codectest.Read(t, k.f, file, columnartest.Schema(t, k.schema), codectest.Scan{SplitBytes: 1 << 20})
			if err != nil || len(got) != len(k.want) {
				t.Fatalf("%s: %d rows, %v", k.f.Name(), len(got), err)
			}
			for i := range got {
				if got[i] != k.want[i] {
					t.Errorf("%s: row %d differs", k.f.Name(), i)
				}
			}
		}
	}
}

// FuzzDecompress feeds anything to every decompressor: an error or text, never a panic, and
// never without end.
func FuzzDecompress(f *testing.F) {
	for c := codec.Gzip; c <= codec.XZ; c++ {
		if c != codec.Bzip2 {
			f.Add(compress(f, c, strings.Repeat("some text\n", 30)), uint8(c))
		}
	}
	f.Add([]byte("BZh91AY&SY"), uint8(codec.Bzip2))
	f.Add([]byte("\x00\x00\x00\x02\x00\x00\x00\x04\x02\x04hi"), uint8(codec.Snappy)) // Hadoop's
	f.Fuzz(func(t *testing.T, data []byte, which uint8) {
		c := codec.Gzip + codec.Compression(which)%(codec.XZ-codec.Gzip+1)
		r, err := c.NewReader(bytes.NewReader(data))
		if err != nil {
			return
		}
		defer r.Close()
		_, _ = io.CopyN(io.Discard, r, 16<<20)
	})
}
