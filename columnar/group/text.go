package group

import (
	"bytes"
	"encoding/binary"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/zeebo/xxh3"

	"github.com/tidemill/tidemill/columnar"
)

// chunk is the number of rows a probe handles at a time: its scratch stays in the
// first-level cache.
const chunk = 1024

// A cell is one text of sixteen bytes, compared as two words:
//
//	short (up to 12 bytes)   length uint32 | bytes 0-3      bytes 4-11
//	long                     length uint32 | bytes 0-3      place in the arena
//
// Unused bytes are zero. "tide" is {4 | "tide"<<32, 0}.
type cell struct{ a, b uint64 }

const shortText = 12

func (c cell) length() int { return int(uint32(c.a)) }
func (c cell) long() bool  { return uint32(c.a) > shortText }

// mask4 and mask8 keep the bytes of a short text of n bytes.
var (
	mask4 [shortText + 1]uint64
	mask8 [shortText + 1]uint64
)

func init() {
	for n := range mask4 {
		mask4[n] = 1<<(8*min(n, 4)) - 1
		if n > 4 {
			mask8[n] = ^uint64(0) >> (64 - 8*(n-4))
		}
	}
}

// cellAt makes the cell of data[from:to]; a long text's place is from.
func cellAt(data []byte, from, to int) cell {
	n := to - from
	if n <= shortText && from+16 <= len(data) {
		p := data[from : from+16 : len(data)]
		lo := binary.LittleEndian.Uint64(p)
		hi := binary.LittleEndian.Uint64(p[4:])
		return cell{uint64(n) | lo&mask4[n]<<32, hi & mask8[n]}
	}
	if n > shortText {
		return cell{uint64(uint32(n)) | uint64(binary.LittleEndian.Uint32(data[from:]))<<32, uint64(from)}
	}
	var p [16]byte
	copy(p[:], data[from:to])
	return cell{uint64(n) | uint64(binary.LittleEndian.Uint32(p[:]))<<32, binary.LittleEndian.Uint64(p[4:])}
}

// putShort writes the twelve bytes of a short text's cell over dst.
func putShort(dst []byte, c cell) {
	binary.LittleEndian.PutUint32(dst, uint32(c.a>>32))
	binary.LittleEndian.PutUint64(dst[4:], c.b)
}

// texts is a plain VARCHAR or BINARY column, or anything shaped like one.
type texts struct {
	data    []byte
	offsets []int32
	array   arrow.Array // for nulls; nil if there are none
}

// textsOf is the texts of a plain array, borrowed from it.
func textsOf(a arrow.Array) texts {
	t := texts{}
	n := a.Len()
	if n == 0 {
		return t
	}
	d := a.Data()
	t.offsets = arrow.Int32Traits.CastFromBytes(d.Buffers()[1].Bytes())[d.Offset() : d.Offset()+n+1]
	if b := d.Buffers()[2]; b != nil {
		t.data = b.Bytes()
	}
	if a.NullN() > 0 {
		t.array = a
	}
	return t
}

// textTable gives distinct texts dense ids. A null may be given one, too.
type textTable struct {
	index
	res    reservation
	cells  []cell // by id
	arena  []byte
	nullID uint32 // NotFound until a null was interned
	dict   dictCache

	keys  [chunk]cell
	tags  [chunk]uint32
	found [chunk]uint64
	miss  [chunk]uint16
}

func newTextTable(opts Options) *textTable {
	return &textTable{
		index:  newIndex(opts.Groups, opts.tagMask),
		res:    reservation{budget: opts.Budget, who: opts.Who},
		nullID: NotFound,
	}
}

func (t *textTable) bytes() int64 {
	return t.index.bytes() + int64(cap(t.cells))*16 + int64(cap(t.arena)) + t.dict.bytes()
}

func (t *textTable) reset() {
	clear(t.slots)
	t.cells, t.arena = t.cells[:0], t.arena[:0]
	t.nullID = NotFound
	t.dict.clear()
}

func (t *textTable) release() {
	t.slots, t.cells, t.arena = nil, nil, nil
	t.dict.clear()
	t.res.release()
}

// intern looks up a column of texts, plain or encoded. With insert, unknown ones get
// ids; else NotFound. withNulls interns nulls as a value; otherwise the ids of null
// rows are undefined.
func (t *textTable) intern(a arrow.Array, ids []uint32, insert, withNulls bool) error {
	if d := dictionaryOf(a); d != nil {
		return t.internCodes(d, ids, insert, withNulls)
	}
	return t.internTexts(textsOf(a), ids, insert, withNulls)
}

func (t *textTable) internTexts(src texts, ids []uint32, insert, withNulls bool) error {
	for lo := 0; lo < len(ids); lo += chunk {
		hi := min(lo+chunk, len(ids))
		part := texts{data: src.data, offsets: src.offsets[lo : hi+1]}
		if src.array != nil {
			if err := t.internNullable(part, src.array, lo, ids[lo:hi], insert, withNulls); err != nil {
				return err
			}
			continue
		}
		if err := t.internChunk(part, ids[lo:hi], insert); err != nil {
			return err
		}
	}
	return nil
}

// internChunk is the hot path: up to chunk texts, none null.
func (t *textTable) internChunk(src texts, ids []uint32, insert bool) error {
	n := len(ids)
	t.load(src, n)
	slots, shift := t.slots, t.shift
	tags, found := t.tags[:n], t.found[:n]
	for i, tag := range tags {
		found[i] = slots[tag>>(shift&31)]
	}
	misses := 0
	for i, s := range found {
		k := &t.keys[i]
		if uint32(s>>32) == tags[i] {
			id := uint32(s) - 1
			c := &t.cells[id]
			if c.a == k.a && (c.b == k.b && !k.long() || k.long() && t.equalLong(c, k, src.data)) {
				ids[i] = id
				continue
			}
		}
		t.miss[misses] = uint16(i)
		misses++
	}
	if misses == 0 {
		return nil
	}
	return t.resolve(src.data, t.miss[:misses], ids, insert)
}

// load fills keys and tags for n texts.
func (t *textTable) load(src texts, n int) {
	seed, mask := processSeed, t.mask
	from := int(src.offsets[0])
	for i, to := range src.offsets[1 : n+1] {
		c := cellAt(src.data, from, int(to))
		t.keys[i] = c
		var h uint64
		if c.long() {
			h = xxh3.HashSeed(src.data[from:to], seed)
		} else {
			h = hash2(c.a, c.b, seed)
		}
		t.tags[i] = tagOf(h, mask)
		from = int(to)
	}
}

func (t *textTable) equalLong(c, k *cell, data []byte) bool {
	n := k.length()
	return bytes.Equal(t.arena[c.b:c.b+uint64(n)], data[k.b:k.b+uint64(n)])
}

// resolve handles rows whose first slot did not hold their key: collisions and new
// keys, in row order.
func (t *textTable) resolve(data []byte, rows []uint16, ids []uint32, insert bool) error {
	if insert {
		if err := t.ensure(rows); err != nil {
			return err
		}
	}
	for _, i := range rows {
		k, tag := &t.keys[i], t.tags[i]
		p := int(tag >> t.shift)
		id := NotFound
		for {
			s := t.slots[p]
			if s == 0 {
				break
			}
			if uint32(s>>32) == tag {
				c := &t.cells[uint32(s)-1]
				if c.a == k.a && (c.b == k.b && !k.long() || k.long() && t.equalLong(c, k, data)) {
					id = uint32(s) - 1
					break
				}
			}
			p++
			if p == len(t.slots) {
				p = 0
			}
		}
		if id == NotFound && insert {
			id = uint32(len(t.cells))
			t.slots[p] = entry(tag, id)
			t.add(*k, data)
		}
		ids[i] = id
	}
	return nil
}

// ensure makes room for all of rows to be new.
func (t *textTable) ensure(rows []uint16) error {
	more := 0
	for _, i := range rows {
		if t.keys[i].long() {
			more += t.keys[i].length()
		}
	}
	need := len(t.cells) + len(rows) + 1
	if need <= cap(t.cells) && need <= t.limit && len(t.arena)+more <= cap(t.arena) {
		return nil
	}
	size := t.sizeFor(need)
	cells, arena := cap(t.cells), cap(t.arena)
	if need > cells {
		cells = doubled(cells, need)
	}
	if len(t.arena)+more > arena {
		arena = doubled(arena, len(t.arena)+more)
	}
	if err := t.res.set(int64(size)*8 + int64(cells)*16 + int64(arena) + t.dict.bytes()); err != nil {
		return err
	}
	if size > len(t.slots) {
		t.grow(size)
	}
	t.cells = growTo(t.cells, need)
	t.arena = growTo(t.arena, len(t.arena)+more)
	return nil
}

// add appends a new key; ensure has made room.
func (t *textTable) add(k cell, data []byte) {
	if k.long() {
		from := k.b
		k.b = uint64(len(t.arena))
		t.arena = append(t.arena, data[from:from+uint64(k.length())]...)
	}
	t.cells = append(t.cells, k)
}

// internNullable handles a chunk with nulls by its runs of texts between them.
func (t *textTable) internNullable(src texts, a arrow.Array, base int, ids []uint32, insert, withNulls bool) error {
	for i := 0; i < len(ids); {
		if a.IsNull(base + i) {
			if withNulls {
				id, err := t.internNull(insert)
				if err != nil {
					return err
				}
				ids[i] = id
			}
			i++
			continue
		}
		j := i + 1
		for j < len(ids) && a.IsValid(base+j) {
			j++
		}
		run := texts{data: src.data, offsets: src.offsets[i : j+1]}
		if err := t.internChunk(run, ids[i:j], insert); err != nil {
			return err
		}
		i = j
	}
	return nil
}

func (t *textTable) internNull(insert bool) (uint32, error) {
	if t.nullID == NotFound && insert {
		if err := t.ensure(nil); err != nil {
			return 0, err
		}
		// The null's cell is never looked at by a probe: no slot holds its id.
		t.nullID = uint32(len(t.cells))
		t.cells = append(t.cells, cell{})
	}
	return t.nullID, nil
}

// dictCache remembers the ids of the codes of the dictionary seen last.
type dictCache struct {
	dict arrow.Array // retained: its address cannot be given to another meanwhile
	ids  []uint32    // by code; NotFound where not looked up yet
	todo []int32
}

func (c *dictCache) bytes() int64 { return int64(cap(c.ids)) * 4 }

func (c *dictCache) clear() {
	if c.dict != nil {
		c.dict.Release()
	}
	c.dict = nil
}

// use prepares the cache for the dictionary of d.
func (c *dictCache) use(d *array.Dictionary) {
	dict := d.Dictionary()
	if c.dict != nil && columnar.SameMemory(c.dict, dict) {
		return
	}
	c.clear()
	dict.Retain()
	c.dict = dict
	c.ids = resized(c.ids, dict.Len())
	for i := range c.ids {
		c.ids[i] = NotFound
	}
}

// internCodes looks each code up once per dictionary; rows then cost one load.
func (t *textTable) internCodes(d *array.Dictionary, ids []uint32, insert, withNulls bool) error {
	t.dict.use(d)
	codes := d.Indices().(*array.Int32).Int32Values()
	if d.NullN() > 0 || d.Dictionary().NullN() > 0 {
		return t.internNullableCodes(d, codes, ids, insert, withNulls)
	}
	known := t.dict.ids
	missing := false
	for i, c := range codes {
		id := known[c]
		ids[i] = id
		missing = missing || id == NotFound
	}
	if !missing {
		return nil
	}
	// Unknown codes in order of first sight; a code met again finds its mark.
	const pending = NotFound - 1
	todo := t.dict.todo[:0]
	for i, c := range codes {
		if ids[i] == NotFound && known[c] == NotFound {
			known[c] = pending
			todo = append(todo, c)
		}
	}
	t.dict.todo = todo
	for k, c := range todo {
		if err := t.internOne(d.Dictionary(), int(c), &known[c], insert); err != nil {
			for _, c := range todo[k:] {
				known[c] = NotFound
			}
			return err
		}
	}
	for i, c := range codes {
		ids[i] = known[c]
	}
	return nil
}

func (t *textTable) internNullableCodes(d *array.Dictionary, codes []int32, ids []uint32, insert, withNulls bool) error {
	known := t.dict.ids
	for i := range ids {
		if d.IsNull(i) || d.Dictionary().IsNull(int(codes[i])) {
			if withNulls {
				id, err := t.internNull(insert)
				if err != nil {
					return err
				}
				ids[i] = id
			}
			continue
		}
		c := codes[i]
		if known[c] == NotFound {
			if err := t.internOne(d.Dictionary(), int(c), &known[c], insert); err != nil {
				return err
			}
		}
		ids[i] = known[c]
	}
	return nil
}

// internOne looks up text i of a plain array.
func (t *textTable) internOne(values arrow.Array, i int, id *uint32, insert bool) error {
	src := textsOf(values)
	src.offsets = src.offsets[i : i+2]
	one := [1]uint32{}
	if err := t.internChunk(src, one[:], insert); err != nil {
		return err
	}
	*id = one[0]
	return nil
}
