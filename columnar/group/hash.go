package group

import (
	"math/bits"

	"github.com/tidemill/tidemill/columnar"
)

// Odd constants with irregular bits.
const (
	mix1 = 0x9E3779B97F4A7C15
	mix2 = 0xD6E8FEB86659FD93
	mix3 = 0xA0761D6478BD642F
)

// fold multiplies to 128 bits and folds the halves: one multiplication gives every
// bit of the result a share of every bit of x.
func fold(x, k uint64) uint64 {
	hi, lo := bits.Mul64(x, k)
	return hi ^ lo
}

// hash1 is the hash of a one-word key.
func hash1(x, seed uint64) uint64 { return fold(x^seed, mix1) * mix2 }

// hash2 is the hash of a two-word key.
func hash2(x, y, seed uint64) uint64 {
	return fold(fold(x^seed, mix1)^y, mix3) * mix2
}

// hashWords is the hash of a longer key.
func hashWords(words []uint64, seed uint64) uint64 {
	h := seed
	for _, w := range words {
		h = fold(h^w, mix1) + mix3
	}
	return h * mix2
}

// tagOf is the part of a hash that a slot keeps: its upper half, never 0, so that an
// empty slot matches no tag.
func tagOf(h uint64, mask uint32) uint32 { return uint32(h>>32)&mask | 1 }

// index is the open-addressing part that all tables share.
type index struct {
	slots []uint64
	shift uint // position = tag >> shift
	mask  uint32
	limit int // entries that make it grow
}

const minSlots = 1024

func newIndex(groups int, tagMask uint32) index {
	x := index{mask: tagMask}
	n := minSlots
	for n*6/10 < groups && n < 1<<31 {
		n *= 2
	}
	x.make(n)
	return x
}

func (x *index) make(n int) {
	x.slots = make([]uint64, n)
	x.shift = uint(32 - bits.TrailingZeros(uint(n)))
	x.limit = n * 6 / 10
}

// sizeFor is the number of slots that n entries need.
func (x *index) sizeFor(n int) int {
	size := len(x.slots)
	for size*6/10 < n && size < 1<<32 {
		size *= 2
	}
	return size
}

// grow moves to size slots. Entries keep their order, up to wrap-around, since the
// position is the upper bits of the tag.
func (x *index) grow(size int) {
	old := x.slots
	x.make(size)
	columnar.Touch(x.slots)
	for _, s := range old {
		if s != 0 {
			x.insert(s)
		}
	}
}

// insert puts an entry known to be new into the first free slot of its run.
func (x *index) insert(s uint64) {
	p := int(uint32(s>>32) >> x.shift)
	for x.slots[p] != 0 {
		p++
		if p == len(x.slots) {
			p = 0
		}
	}
	x.slots[p] = s
}

func (x *index) bytes() int64 { return int64(len(x.slots)) * 8 }

// entry is the slot of an id.
func entry(tag, id uint32) uint64 { return uint64(tag)<<32 | uint64(id+1) }
