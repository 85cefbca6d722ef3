package arena_test

import (
	"bytes"
	"math/rand/v2"
	"testing"

	"github.com/tidemill/tidemill/columnar/arena"
)

// TestArena: texts of all lengths stay what they were, and little room is lost.
func TestArena(t *testing.T) {
	t.Parallel()
	r := rand.New(rand.NewPCG(5, 6))
	var a arena.Arena
	var places []uint64
	var texts [][]byte
	total, widest := 0, 0
	for range 1500 {
		text := make([]byte, r.IntN([]int{1, 20, 3000, 400_000}[min(r.IntN(40), 3)]+1))
		for i := range text {
			text[i] = byte(r.Uint32())
		}
		places, texts = append(places, a.Keep(text)), append(texts, text)
		total, widest = total+len(text), max(widest, len(text))
	}
	copy(a.Text(places[7], len(texts[7])), bytes.Repeat([]byte{1}, len(texts[7])))
	texts[7] = bytes.Repeat([]byte{1}, len(texts[7]))
	for i, want := range texts {
		if !bytes.Equal(a.Text(places[i], len(want)), want) {
			t.Fatalf("text %d of %d bytes is another one", i, len(want))
		}
	}
	if a.Room() < total || a.Room() > total+total/2 || a.Widest() != widest {
		t.Errorf("room %d for %d bytes; widest %d, want %d", a.Room(), total, a.Widest(), widest)
	}
	if a.IsStale(1) {
		t.Error("nothing is dead, but it is stale")
	}
	a.Drop(total / 2)
	if !a.IsStale(1000) || a.IsStale(total) {
		t.Error("half of it is dead: stale from there on, unless more is asked for")
	}
}
