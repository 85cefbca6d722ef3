package csv

import (
	"bytes"
	"math/rand/v2"
	"testing"
)

// TestMarks finds a byte among those that differ from it by a bit.
func TestMarks(t *testing.T) {
	r := rand.New(rand.NewPCG(2, 4))
	for _, c := range []byte{',', ';', '\t', '|', 0, 0xFF, 0x80} {
		p := patternOf(c)
		for range 1000 {
			text := bytes.Repeat([]byte{c}, 2*marksWide)
			for i := range text {
				if r.IntN(3) > 0 {
					text[i] ^= 1 << r.IntN(8)
				}
			}
			at := r.IntN(marksWide)
			var want uint64
			for i := range marksWide {
				if text[at+i] == c {
					want |= 1 << (i << marksStep)
				}
			}
			if got := p.marks(text, at); got != want {
				t.Fatalf("%q in %q: %b, not %b", c, text[at:at+marksWide], got, want)
			}
			marksEnd()
		}
	}
}
