package group

import (
	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/memory"
)

// packedKey is the Table of fixed-width rows: every key but a single text.
type packedKey struct {
	index
	mem     memory.Allocator
	types   []arrow.DataType
	columns []column
	stride  int // words a row
	res     reservation
	n       int
	rows    []uint64 // stride words per id
	nulls   []uint64 // per id; nil until a key holds a null

	direct bool // one 8-byte column that needs no packing
	words  []uint64
	marks  [chunk]uint64 // null bits of the current rows
	tags   [chunk]uint32
	found  [chunk]uint64
	miss   [chunk]uint16
	grid   grid
}

func newPackedKey(mem memory.Allocator, types []arrow.DataType, opts Options) (*packedKey, error) {
	columns, stride, err := layOut(types, opts)
	if err != nil {
		return nil, err
	}
	t := &packedKey{
		index:   newIndex(opts.Groups, opts.tagMask),
		mem:     mem,
		types:   types,
		columns: columns,
		stride:  stride,
		res:     reservation{budget: opts.Budget, who: opts.Who},
		words:   make([]uint64, stride*chunk),
		direct:  len(types) == 1 && columns[0].width == 8 && types[0].ID() != arrow.FLOAT64,
	}
	t.grid.reset()
	return t, nil
}

func (t *packedKey) Len() int { return t.n }

func (t *packedKey) Bytes() int64 {
	n := t.ownBytes(len(t.slots), cap(t.rows), cap(t.nulls))
	for i := range t.columns {
		if c := &t.columns[i]; c.text != nil {
			n += c.text.bytes() + int64(cap(c.ids))*4 + int64(cap(c.keys.Data))
		}
	}
	return n
}

func (t *packedKey) ownBytes(slots, rows, nulls int) int64 {
	return int64(slots+rows+nulls)*8 + int64(len(t.words))*8 + t.grid.bytes()
}

func (t *packedKey) Reset() {
	clear(t.slots)
	t.n, t.rows, t.nulls = 0, t.rows[:0], nil
	t.grid.reset()
	for i := range t.columns {
		if t.columns[i].text != nil {
			t.columns[i].text.reset()
		}
	}
}

func (t *packedKey) Release() {
	t.slots, t.rows, t.nulls, t.words = nil, nil, nil, nil
	t.grid.giveUp()
	for i := range t.columns {
		if t.columns[i].text != nil {
			t.columns[i].text.release()
		}
	}
	t.res.release()
}

func (t *packedKey) Intern(keys []arrow.Array, ids []uint32) error { return t.probe(keys, ids, true) }

// Find needs no care for texts that are not there: no row holds number NotFound.
func (t *packedKey) Find(keys []arrow.Array, ids []uint32) error { return t.probe(keys, ids, false) }

func (t *packedKey) probe(keys []arrow.Array, ids []uint32, insert bool) error {
	if err := checkKeys(t.types, keys, len(ids)); err != nil {
		return err
	}
	nulls := false
	for i, a := range keys {
		c := &t.columns[i]
		if err := c.open(a, insert); err != nil {
			return err
		}
		nulls = nulls || c.src.nulls != nil
	}
	defer t.close()
	for lo := 0; lo < len(ids); lo += chunk {
		hi := min(lo+chunk, len(ids))
		if err := t.probeRows(lo, hi, ids[lo:hi], nulls, insert); err != nil {
			return err
		}
		if insert && t.n >= t.grid.next {
			if err := t.remakeGrid(); err != nil {
				return err
			}
		}
	}
	return nil
}

// probeRows puts the ids of rows lo to hi into ids.
func (t *packedKey) probeRows(lo, hi int, ids []uint32, nulls, insert bool) error {
	if t.grid.ids == nil || nulls {
		t.grid.lacks = t.grid.lacks || insert
		return t.probeChunk(t.pack(lo, hi, nulls), ids, nulls, insert)
	}
	misses := t.lookUp(lo, hi, ids)
	if misses == 0 {
		return nil
	}
	return t.findMissed(lo, hi, misses, ids, insert)
}

// close drops the references to the batch.
func (t *packedKey) close() {
	for i := range t.columns {
		t.columns[i].src = source{}
	}
}

// pack makes the words of rows lo to hi, and their null bits if there are nulls.
func (t *packedKey) pack(lo, hi int, nulls bool) []uint64 {
	if t.direct && !nulls {
		return t.columns[0].src.u64[lo:hi]
	}
	n := hi - lo
	words := t.words[:n*t.stride]
	clear(words)
	for i := range t.columns {
		t.columns[i].pack(words, t.stride, lo, hi)
	}
	if nulls {
		clear(t.marks[:n])
		for i := range t.columns {
			if c := &t.columns[i]; c.src.nulls != nil {
				c.packNulls(words, t.marks[:n], t.stride, i, lo, hi)
			}
		}
	}
	return words
}

func (t *packedKey) probeChunk(words []uint64, ids []uint32, nulls, insert bool) error {
	t.hash(words, len(ids), nulls)
	slots, shift := t.slots, t.shift
	tags, found := t.tags[:len(ids)], t.found[:len(ids)]
	for i, tag := range tags {
		found[i] = slots[tag>>(shift&31)]
	}
	var misses int
	switch {
	case nulls || t.nulls != nil:
		if !nulls {
			clear(t.marks[:len(ids)])
		}
		misses = t.compareNullable(words, ids)
	case t.stride == 1:
		misses = t.compare1(words, ids)
	case t.stride == 2:
		misses = t.compare2(words, ids)
	default:
		misses = t.compareAny(words, ids)
	}
	if misses == 0 {
		return nil
	}
	return t.resolve(words, t.miss[:misses], ids, insert)
}

// hash fills tags. Null bits are added at the end, so that keys without nulls hash
// alike whether or not others have some.
func (t *packedKey) hash(words []uint64, n int, nulls bool) {
	seed, mask := processSeed, t.mask
	tags := t.tags[:n]
	switch {
	case nulls:
		for i := range tags {
			h := t.hashRow(words[i*t.stride:(i+1)*t.stride], t.marks[i])
			tags[i] = tagOf(h, mask)
		}
	case t.stride == 1:
		for i, w := range words[:n] {
			tags[i] = tagOf(hash1(w, seed), mask)
		}
	case t.stride == 2:
		words = words[:2*n]
		for i := range tags {
			tags[i] = tagOf(hash2(words[2*i], words[2*i+1], seed), mask)
		}
	default:
		for i := range tags {
			tags[i] = tagOf(hashWords(words[i*t.stride:(i+1)*t.stride], seed), mask)
		}
	}
}

func (t *packedKey) hashRow(row []uint64, nulls uint64) uint64 {
	var h uint64
	switch t.stride {
	case 1:
		h = hash1(row[0], processSeed)
	case 2:
		h = hash2(row[0], row[1], processSeed)
	default:
		h = hashWords(row, processSeed)
	}
	return h ^ nulls*mix3
}

func (t *packedKey) compare1(words []uint64, ids []uint32) int {
	rows, tags, found := t.rows, t.tags[:len(ids)], t.found[:len(ids)]
	words = words[:len(ids)]
	misses := 0
	for i := range ids {
		s := found[i]
		if uint32(s>>32) == tags[i] {
			id := uint32(s) - 1
			if rows[id] == words[i] {
				ids[i] = id
				continue
			}
		}
		t.miss[misses] = uint16(i)
		misses++
	}
	return misses
}

func (t *packedKey) compare2(words []uint64, ids []uint32) int {
	rows, tags, found := t.rows, t.tags[:len(ids)], t.found[:len(ids)]
	words = words[:2*len(ids)]
	misses := 0
	for i := range ids {
		s := found[i]
		if uint32(s>>32) == tags[i] {
			id := uint32(s) - 1
			r := rows[2*int(id) : 2*int(id)+2]
			if r[0] == words[2*i] && r[1] == words[2*i+1] {
				ids[i] = id
				continue
			}
		}
		t.miss[misses] = uint16(i)
		misses++
	}
	return misses
}

func (t *packedKey) compareAny(words []uint64, ids []uint32) int {
	misses := 0
	w := t.stride
	for i := range ids {
		s := t.found[i]
		if uint32(s>>32) == t.tags[i] {
			id := uint32(s) - 1
			if equalWords(t.rows[int(id)*w:(int(id)+1)*w], words[i*w:(i+1)*w]) {
				ids[i] = id
				continue
			}
		}
		t.miss[misses] = uint16(i)
		misses++
	}
	return misses
}

func (t *packedKey) compareNullable(words []uint64, ids []uint32) int {
	misses := 0
	for i := range ids {
		s := t.found[i]
		if uint32(s>>32) == t.tags[i] && t.equal(uint32(s)-1, words, i) {
			ids[i] = uint32(s) - 1
			continue
		}
		t.miss[misses] = uint16(i)
		misses++
	}
	return misses
}

func equalWords(a, b []uint64) bool {
	b = b[:len(a)]
	for i, w := range a {
		if w != b[i] {
			return false
		}
	}
	return true
}

// equal compares a stored key with row i of the current words and marks. Marks count
// only where one of the two sides can hold nulls; they are zero otherwise.
func (t *packedKey) equal(id uint32, words []uint64, i int) bool {
	w := t.stride
	if !equalWords(t.rows[int(id)*w:(int(id)+1)*w], words[i*w:(i+1)*w]) {
		return false
	}
	if t.nulls == nil {
		return t.marks[i] == 0
	}
	return t.nulls[id] == t.marks[i]
}

// resolve handles rows whose first slot did not hold their key: collisions and new
// keys, in row order.
func (t *packedKey) resolve(words []uint64, rows []uint16, ids []uint32, insert bool) error {
	if !t.marked() {
		clear(t.marks[:len(ids)])
	}
	if insert {
		if err := t.ensure(len(rows)); err != nil {
			return err
		}
	}
	for _, r := range rows {
		i, tag := int(r), t.tags[r]
		p := int(tag >> t.shift)
		id := NotFound
		for s := t.slots[p]; s != 0; s = t.slots[p] {
			if uint32(s>>32) == tag && t.equal(uint32(s)-1, words, i) {
				id = uint32(s) - 1
				break
			}
			p++
			if p == len(t.slots) {
				p = 0
			}
		}
		if id == NotFound && insert {
			id = uint32(t.n)
			t.slots[p] = entry(tag, id)
			t.add(words[i*t.stride:(i+1)*t.stride], t.marks[i])
		}
		ids[i] = id
	}
	return nil
}

// marked says whether marks were filled for the current batch.
func (t *packedKey) marked() bool {
	if t.nulls != nil {
		return true
	}
	for i := range t.columns {
		if t.columns[i].src.nulls != nil {
			return true
		}
	}
	return false
}

// ensure makes room for more new keys.
func (t *packedKey) ensure(more int) error {
	need := t.n + more
	if need*t.stride <= cap(t.rows) && need <= t.limit && (t.nulls == nil || need <= cap(t.nulls)) {
		return nil
	}
	size, rows, nulls := t.sizeFor(need), cap(t.rows), cap(t.nulls)
	if need*t.stride > rows {
		rows = doubled(rows, need*t.stride)
	}
	if t.nulls != nil && need > nulls {
		nulls = doubled(nulls, need)
	}
	if err := t.res.set(t.ownBytes(size, rows, nulls)); err != nil {
		return err
	}
	if size > len(t.slots) {
		t.grow(size)
	}
	t.rows = growTo(t.rows, need*t.stride)
	if t.nulls != nil {
		t.nulls = growTo(t.nulls, need)
	}
	return nil
}

// add appends a new key; ensure has made room.
func (t *packedKey) add(row []uint64, nulls uint64) {
	t.rows = append(t.rows, row...)
	if nulls != 0 && t.nulls == nil {
		t.nulls = make([]uint64, t.n, max(cap(t.rows)/t.stride, 1024))
	}
	if t.nulls != nil {
		t.nulls = append(t.nulls, nulls)
	}
	t.n++
}
