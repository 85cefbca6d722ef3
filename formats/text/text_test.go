package text

import (
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

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

func TestRead(t *testing.T) {
	t.Parallel()
	for text, want := range map[string][]string{
		"":                       {},
		"\n":                     {""},
		"a":                      {"a"},
		"a\n":                    {"a"},
		"a\n\nb\n":               {"a", "", "b"},
		"a\r\nb\rc\n\r\nd":       {"a", "b", "c", "", "d"},
		"a\r\r\n\n":              {"a", "", ""},
		"\xEF\xBB\xBFx, \"y\n\t": {`x, "y`, "\t"},
	} {
		for _, s := range []codectest.Scan{{}, {BatchRows: 1, Hash: true}, {SplitBytes: 4}, {SplitBytes: 5, Backwards: true}, {SplitBytes: 6, BatchRows: 2}, {Columns: []int{0}}} {
			got, err := codectest.Read(t, newFormat(t, Options{}), codectest.File(t, "x.txt", []byte(text)), Schema(), s)
			if err != nil || !slices.Equal(got, want) {
				t.Errorf("%q %+v: %q, %v", text, s, got, err)
			}
		}
	}
}

// lines is what a text should be read as.
func lines(text string) []string {
	text = strings.ReplaceAll(text, "\r\n", "\n")
	text = strings.ReplaceAll(text, "\r", "\n")
	if text == "" {
		return []string{}
	}
	return strings.Split(strings.TrimSuffix(text, "\n"), "\n")
}

func TestRandomTexts(t *testing.T) {
	t.Parallel()
	r := rand.New(rand.NewPCG(1, 2))
	for range 1000 {
		text := make([]byte, r.IntN(40))
		for i := range text {
			text[i] = "\n\r\rab"[r.IntN(5)]
		}
		s := codectest.Scan{SplitBytes: int64(4 + r.IntN(12)), BatchRows: r.IntN(4), Backwards: r.IntN(2) == 0}
		got, err := codectest.Read(t, newFormat(t, Options{}), codectest.File(t, "x.txt", text), Schema(), s)
		if want := lines(string(text)); err != nil || !slices.Equal(got, want) {
			t.Fatalf("%q %+v: %q, want %q, %v", text, s, got, want, err)
		}
	}
}

func FuzzRead(f *testing.F) {
	f.Add("a\r\nb", uint8(1))
	f.Add("\r\r\n\n", uint8(2))
	f.Fuzz(func(t *testing.T, text string, split uint8) {
		if len(text) > 2000 {
			return
		}
		whole, err := codectest.Read(t, newFormat(t, Options{}), codectest.File(t, "x.txt", []byte(text)), Schema(), codectest.Scan{})
		if err != nil {
			t.Fatal(err)
		}
		divided, err := codectest.Read(t, newFormat(t, Options{}), codectest.File(t, "x.txt", []byte(text)), Schema(), codectest.Scan{SplitBytes: int64(split), Backwards: split%2 == 1})
		if err != nil || !slices.Equal(whole, divided) {
			t.Fatalf("%q, divided %q, %v", whole, divided, err)
		}
	})
}

func TestNotUTF8(t *testing.T) {
	t.Parallel()
	const text = "a\n\xff\nb\n"
	for mode, want := range map[codec.Mode][]string{codec.Permissive: {"a", codectest.Null, "b"}, codec.Drop: {"a", "b"}} {
		stats := &connector.ScanStats{}
		got, err := codectest.Read(t, newFormat(t, Options{Mode: mode}), codectest.File(t, "x.txt", []byte(text)), Schema(), codectest.Scan{Stats: stats})
		if err != nil || !slices.Equal(got, want) || stats.MalformedRows.Load() != 1 {
			t.Errorf("%d: %q, %v", mode, got, err)
		}
	}
	_, err := codectest.Read(t, newFormat(t, Options{Mode: codec.Fail}), codectest.File(t, "x.txt", []byte(text)), Schema(), codectest.Scan{})
	if err == nil || !strings.HasPrefix(err.Error(), "x.txt:2: column value: ") {
		t.Error(err)
	}
}

func TestWrite(t *testing.T) {
	t.Parallel()
	b := columnartest.Batch(t, columnartest.Mem(t), "value:varchar\n\"a\"\n\"\"\n\"b\"\n")
	defer b.Release()
	text, err := codectest.Write(t, newFormat(t, Options{}), b.Schema(), b)
	if err != nil || text != "a\n\nb\n" {
		t.Errorf("%q, %v", text, err)
	}
	for value, want := range map[string]string{
		"NULL":   "column value: a text file cannot hold a null, which would be an empty line; use coalesce or another format",
		`"a\nb"`: `column value: a line of a text file cannot hold a line end, as in "a\nb"; use replace or another format`,
		`"a\r"`:  `column value: a line of a text file cannot hold a line end, as in "a\r"; use replace or another format`,
	} {
		b := columnartest.Batch(t, columnartest.Mem(t), "value:varchar\n"+value+"\n")
		if _, err := codectest.Write(t, newFormat(t, Options{}), b.Schema(), b); err == nil || err.Error() != want {
			t.Errorf("%s: %v, want %s", value, err, want)
		}
		b.Release()
	}
	if _, err := codectest.Write(t, newFormat(t, Options{}), columnartest.Schema(t, "a:varchar  b:varchar")); err == nil {
		t.Error("two columns were taken")
	}
}
