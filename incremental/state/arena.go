package state

// Chunks of an arena: the first ones are small, since most tables are.
const (
	firstChunk = 4 << 10
	wholeChunk = 1 << 20
	ownChunk   = wholeChunk / 4 // a longer text has a chunk to itself
)

// arena holds long texts in chunks, so that growing copies nothing. The place of a text is
// the number of its chunk << 32 | where in it the text begins.
type arena struct {
	chunks [][]byte
	open   int // the chunk that is being filled
	room   int // bytes of all chunks
	used   int // bytes of all texts
	dead   int // of these, those nobody refers to any more
	widest int // no text is longer
}

func (a *arena) text(at uint64, n int) []byte {
	from := uint64(uint32(at))
	return a.chunks[at>>32][from : from+uint64(n)]
}

// keep copies a text into the arena and returns its place.
func (a *arena) keep(text []byte) (at uint64) {
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

func (a *arena) addTo(chunk int, text []byte) (at uint64) {
	c := a.chunks[chunk]
	a.chunks[chunk] = append(c, text...)
	return uint64(chunk)<<32 | uint64(len(c))
}

func (a *arena) newChunk(size int) int {
	a.chunks = append(a.chunks, make([]byte, 0, size))
	a.room += size
	return len(a.chunks) - 1
}

// isStale says whether so much is dead that copying the rest is worth it.
func (a *arena) isStale() bool { return a.dead >= 1<<20 && a.dead >= a.used/2 }
