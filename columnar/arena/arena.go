// Package arena holds many texts in a few large pieces of memory without pointers.
package arena

// Sizes of chunks: the first ones are small, since most tables are.
const (
	firstChunk = 4 << 10
	wholeChunk = 1 << 20
	ownChunk   = wholeChunk / 4 // a longer text has a chunk to itself
)

// Arena holds texts in chunks, so that growing copies nothing. The place of a text is
// the number of its chunk << 32 | where in it the text begins. The zero Arena is empty. One
// goroutine changes it at a time, and nobody reads meanwhile.
type Arena struct {
	chunks [][]byte
	open   int // the chunk that is being filled
	room   int // bytes of all chunks
	used   int // bytes of all texts
	dead   int // of these, those nobody refers to any more
	widest int // no text is longer
}

// Text is the n bytes at a place. They are the arena's: who owns their place may write
// over them.
func (a *Arena) Text(at uint64, n int) []byte {
	if n == 0 {
		return nil // which need not have a place
	}
	from := uint64(uint32(at))
	return a.chunks[at>>32][from : from+uint64(n)]
}

// Keep copies a text into the arena and returns its place.
func (a *Arena) Keep(text []byte) (at uint64) {
	a.used += len(text)
	a.widest = max(a.widest, len(text))
	if len(text) > ownChunk {
		return a.addTo(a.newChunk(len(text)), text)
	}
	if len(a.chunks) == 0 || cap(a.chunks[a.open])-len(a.chunks[a.open]) < len(text) {
		a.open = a.newChunk(max(len(text), min(max(a.room, firstChunk), wholeChunk)))
	}
	return a.addTo(a.open, text)
}

func (a *Arena) addTo(chunk int, text []byte) (at uint64) {
	c := a.chunks[chunk]
	a.chunks[chunk] = append(c, text...)
	return uint64(chunk)<<32 | uint64(len(c))
}

func (a *Arena) newChunk(size int) int {
	a.chunks = append(a.chunks, make([]byte, 0, size))
	a.room += size
	return len(a.chunks) - 1
}

// Drop says that nobody refers to n bytes of text any more. Their room is lost: see IsStale.
func (a *Arena) Drop(n int) { a.dead += n }

// IsStale says whether so much is dead, at least some bytes, that copying the rest into
// another arena is worth it.
func (a *Arena) IsStale(least int) bool { return a.dead >= least && a.dead >= a.used/2 }

// Room is the memory it takes, in bytes.
func (a *Arena) Room() int { return a.room }

// Widest is the length of the longest text it ever had.
func (a *Arena) Widest() int { return a.widest }
