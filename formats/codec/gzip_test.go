package codec

import (
	"bytes"
	"io"
	"strings"
	"testing"
)

// TestGzipMembers: members follow one another, with or without zero bytes between and behind
// them; anything else is damage.
func TestGzipMembers(t *testing.T) {
	t.Parallel()
	member := func(text string) string {
		var out bytes.Buffer
		w, err := Gzip.NewWriter(&out, 0)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := io.WriteString(w, text); err != nil {
			t.Fatal(err)
		}
		if err := w.Close(); err != nil {
			t.Fatal(err)
		}
		return out.String()
	}
	a, b, none, zeros := member("a\n"), member(strings.Repeat("b", 100_000)), member(""), strings.Repeat("\x00", 700)
	for name, test := range map[string]struct {
		file, want string
		damaged    bool
	}{
		"one":          {a, "a\n", false},
		"two":          {a + b, "a\n" + strings.Repeat("b", 100_000), false},
		"empty":        {none + a + none, "a\n", false},
		"zeros behind": {a + zeros, "a\n", false},
		"zeros within": {a + zeros + a + "\x00", "a\na\n", false},
		"garbage":      {a + "garbage, of ten bytes and more", "a\n", true},
		"header cut":   {a + a[:5], "a\n", true},
		"zeros, cut":   {a + zeros + a[:len(a)-3], "a\na\n", true},
		"trailer cut":  {a[:len(a)-3], "a\n", true},
	} {
		r, err := Gzip.NewReader(strings.NewReader(test.file))
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		got, err := io.ReadAll(r)
		if string(got) != test.want || (err != nil) != test.damaged {
			t.Errorf("%s: %d bytes, %v; want %d", name, len(got), err, len(test.want))
		}
	}
}
