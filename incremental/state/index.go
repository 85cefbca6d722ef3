package state

import (
	"math/bits"

	"github.com/tidemill/tidemill/columnar"
)

// A slot of the index is tag (32 hash bits, never 0) << 32 | row; 0 is empty. The upper
// six bits of the tag choose one of 64 parts, the next ones the place in it. The parts
// grow at different loads, 0.40 to 0.72, so that no batch pays for all of them.
const (
	indexBits  = 6
	indexParts = 1 << indexBits
	minPart    = 16
)

// index finds rows by the hash of their key. Comparing keys is the caller's.
type index struct {
	parts [indexParts]indexPart
}

type indexPart struct {
	slots []uint64
	shift uint // place = tag << indexBits >> shift
	n     int
	limit int
}

// tagOf is the part of a hash that a slot keeps.
func tagOf(h uint64) uint32 { return uint32(h>>32) | 1 }

func (p *indexPart) make(number, size int) {
	p.slots = make([]uint64, size)
	p.shift = uint(32 - bits.TrailingZeros(uint(size)))
	p.limit = size * (80 + number) / 200
}

func (p *indexPart) home(tag uint32) int { return int(tag << indexBits >> p.shift) }

// part is where a tag lives, ready to be probed.
func (x *index) part(tag uint32) *indexPart {
	p := &x.parts[tag>>(32-indexBits)]
	if p.slots == nil {
		p.make(int(tag>>(32-indexBits)), minPart)
	}
	return p
}

// first is the slot a probe of tag begins with, 0 if it is empty.
func (x *index) first(tag uint32) uint64 {
	p := &x.parts[tag>>(32-indexBits)]
	if p.slots == nil {
		return 0
	}
	return p.slots[tag<<indexBits>>(p.shift&31)]
}

// insert adds a row whose key is not there.
func (x *index) insert(tag, row uint32) {
	p := x.part(tag)
	if p.n >= p.limit {
		p.grow(int(tag>>(32-indexBits)), len(p.slots)*2)
	}
	p.place(uint64(tag)<<32 | uint64(row))
	p.n++
}

// empty is the place that a row with a tag would be put in.
func (p *indexPart) empty(tag uint32) int {
	i := p.home(tag)
	for p.slots[i] != 0 {
		i = (i + 1) & (len(p.slots) - 1)
	}
	return i
}

func (p *indexPart) place(s uint64) { p.slots[p.empty(uint32(s>>32))] = s }

func (p *indexPart) grow(number, size int) {
	old := p.slots
	p.make(number, size)
	columnar.Touch(p.slots)
	for _, s := range old {
		if s != 0 {
			p.place(s)
		}
	}
}

// indexLoad collects slots to be put into an index at once: part after part, so that the
// places of one part stay in cache.
type indexLoad struct {
	parts [indexParts][]uint64
	gone  []uint32 // rows that only hide what older files hold of their keys
}

func (l *indexLoad) add(tag, row uint32) {
	part := tag >> (32 - indexBits)
	l.parts[part] = append(l.parts[part], uint64(tag)<<32|uint64(row))
}

// into adds the slots to x and forgets them.
func (l *indexLoad) into(x *index) {
	for i, slots := range l.parts {
		if len(slots) == 0 {
			continue
		}
		p := &x.parts[i]
		n := p.n + len(slots)
		p.expect(i, n)
		for _, s := range slots {
			p.place(s)
		}
		p.n = n
		l.parts[i] = slots[:0]
	}
}

// expect makes room for n rows.
func (x *index) expect(n int) {
	for i := range x.parts {
		x.parts[i].expect(i, n/indexParts)
	}
}

func (p *indexPart) expect(number, n int) {
	size := max(minPart, len(p.slots))
	for size*(80+number)/200 < n+n/8+4 {
		size *= 2
	}
	if size > len(p.slots) {
		p.grow(number, size)
	}
}

// find is the place of a row in its part, which must hold it.
func (p *indexPart) find(tag, row uint32) int {
	want := uint64(tag)<<32 | uint64(row)
	i := p.home(tag)
	for p.slots[i] != want {
		if p.slots[i] == 0 {
			panic("bug: a row is not in the index of its key")
		}
		i = (i + 1) & (len(p.slots) - 1)
	}
	return i
}

// holds says whether row is in the index, rather than behind the head of its key.
func (x *index) holds(tag, row uint32) bool {
	p := x.part(tag)
	want := uint64(tag)<<32 | uint64(row)
	for i := p.home(tag); p.slots[i] != 0; i = (i + 1) & (len(p.slots) - 1) {
		if p.slots[i] == want {
			return true
		}
	}
	return false
}

// replace puts another row in the place of row.
func (x *index) replace(tag, row, by uint32) {
	p := x.part(tag)
	p.slots[p.find(tag, row)] = uint64(tag)<<32 | uint64(by)
}

// remove takes a row out and moves back those that it had pushed on.
func (x *index) remove(tag, row uint32) {
	p := x.part(tag)
	mask := len(p.slots) - 1
	hole := p.find(tag, row)
	for i := (hole + 1) & mask; p.slots[i] != 0; i = (i + 1) & mask {
		home := p.home(uint32(p.slots[i] >> 32))
		// The entry may move into the hole unless its home lies after the hole.
		if (i-home)&mask >= (i-hole)&mask {
			p.slots[hole] = p.slots[i]
			hole = i
		}
	}
	p.slots[hole] = 0
	p.n--
}

func (x *index) bytes() int64 {
	n := 0
	for i := range x.parts {
		n += len(x.parts[i].slots)
	}
	return int64(n) * 8
}
