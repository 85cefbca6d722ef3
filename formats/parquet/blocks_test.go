package parquet

import (
	"bytes"
	"math/rand/v2"
	"testing"
)

// TestBlocks: what goes in comes out, in whatever pieces; and the blocks are used again.
func TestBlocks(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	for range 50 {
		var b blocks
		for range 2 {
			var want, got []byte
			for range r.IntN(60) {
				p := make([]byte, r.IntN([]int{10, 5000, 200_000}[r.IntN(3)]))
				for i := range p {
					p[i] = byte(r.Uint32())
				}
				b.append(p)
				want = append(want, p...)
			}
			if b.size != int64(len(want)) {
				t.Fatalf("size %d, want %d", b.size, len(want))
			}
			if err := b.writeTo(func(p []byte) error {
				got = append(got, p...)
				return nil
			}); err != nil {
				t.Fatal(err)
			}
			if !bytes.Equal(got, want) {
				t.Fatal("other bytes came out")
			}
			b.reset()
		}
	}
	page, rounds := make([]byte, 300<<10), 20
	var b blocks
	n := testing.AllocsPerRun(rounds, func() {
		for range 10 {
			b.append(page)
		}
		b.reset()
	})
	if n > 8 { // under the race detector a pool drops some
		t.Errorf("%v allocations for a chunk of 3 MB", n)
	}
}
