package columnar

import (
	"math/bits"
	"slices"
)

// Bitmap marks rows, least significant bit first as in Arrow. A nil *Bitmap marks
// every row. It is plain memory: nothing to release, not safe for concurrent use.
type Bitmap struct {
	words []uint64
	n     int
}

// NewBitmap returns a bitmap of n rows, none marked.
func NewBitmap(n int) *Bitmap { return &Bitmap{words: make([]uint64, (n+63)/64), n: n} }

// Reset makes b a bitmap of n rows, none marked, reusing its memory.
func (b *Bitmap) Reset(n int) {
	k := (n + 63) / 64
	if cap(b.words) < k {
		b.words = make([]uint64, k)
	}
	b.words = b.words[:k]
	clear(b.words)
	b.n = n
}

// Len is the number of rows.
func (b *Bitmap) Len() int { return b.n }

// Words are the bits, 64 rows a word; bits at and beyond Len are zero.
func (b *Bitmap) Words() []uint64 { return b.words }

// Get says whether row i is marked; a nil bitmap marks all.
func (b *Bitmap) Get(i int) bool { return b == nil || b.words[i>>6]>>(i&63)&1 != 0 }

// Set marks row i.
func (b *Bitmap) Set(i int) { b.words[i>>6] |= 1 << (i & 63) }

// Unset removes the mark of row i.
func (b *Bitmap) Unset(i int) { b.words[i>>6] &^= 1 << (i & 63) }

// SetAll marks every row.
func (b *Bitmap) SetAll() {
	for i := range b.words {
		b.words[i] = ^uint64(0)
	}
	b.trim()
}

// trim clears the bits beyond Len.
func (b *Bitmap) trim() {
	if tail := b.n & 63; tail != 0 {
		b.words[len(b.words)-1] &= 1<<tail - 1
	}
}

// Count is the number of marked rows.
func (b *Bitmap) Count() int {
	n := 0
	for _, w := range b.words {
		n += bits.OnesCount64(w)
	}
	return n
}

// And keeps the marks that o has too; a nil o marks all.
func (b *Bitmap) And(o *Bitmap) {
	if o == nil {
		return
	}
	for i, w := range o.words {
		b.words[i] &= w
	}
}

// AndNot removes the marks that o has.
func (b *Bitmap) AndNot(o *Bitmap) {
	for i, w := range o.words {
		b.words[i] &^= w
	}
}

// Or adds the marks of o.
func (b *Bitmap) Or(o *Bitmap) {
	for i, w := range o.words {
		b.words[i] |= w
	}
}

// Clone copies b.
func (b *Bitmap) Clone() *Bitmap {
	return &Bitmap{words: append([]uint64(nil), b.words...), n: b.n}
}

// SetBits marks the rows whose bit is set in an Arrow bitmap that begins at bit
// offset; b keeps its length.
func (b *Bitmap) SetBits(raw []byte, offset int) {
	for i := range b.n {
		j := offset + i
		b.words[i>>6] |= uint64(raw[j>>3]>>(j&7)&1) << (i & 63)
	}
}

// Indices appends the numbers of the marked rows to rows.
func (b *Bitmap) Indices(rows []int32) []int32 {
	at := len(rows)
	rows = slices.Grow(rows, b.Count())
	rows = rows[:cap(rows)]
	for w, word := range b.words {
		for word != 0 {
			rows[at] = int32(w<<6 + bits.TrailingZeros64(word))
			word &= word - 1
			at++
		}
	}
	return rows[:at]
}
