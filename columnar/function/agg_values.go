package function

import (
	"bytes"
	"fmt"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/memory"

	"github.com/tidemill/tidemill/columnar"
	"github.com/tidemill/tidemill/columnar/arena"
	"github.com/tidemill/tidemill/columnar/keyenc"
)

// valueStore keeps one value of a column's type per group (or per list entry), null
// until one is put. It is what first, last, min_by and collect_list are made of.
type valueStore interface {
	resize(n int)
	// put stores value rows[i] of a for groups[i], in that order. a has the type of
	// the store.
	put(groups, rows []uint32, a arrow.Array) error
	clear(groups []uint32)
	column(groups []uint32) (arrow.Array, error)
	bytes() int64
	release()
}

func newValueStore(mem memory.Allocator, dt arrow.DataType) (valueStore, error) {
	switch dt.ID() {
	case arrow.BOOL:
		return &boolStore{mem: mem}, nil
	case arrow.STRING, arrow.BINARY:
		return &textStore{mem: mem, dt: dt}, nil
	case arrow.LIST, arrow.STRUCT, arrow.MAP:
		codec, err := keyenc.New([]arrow.DataType{dt}, []keyenc.Order{{Exact: true}})
		if err != nil {
			return nil, err
		}
		return &nestedStore{text: textStore{mem: mem, dt: columnar.Binary}, codec: codec}, nil
	}
	fixed, ok := dt.(arrow.FixedWidthDataType)
	if !ok {
		return nil, fmt.Errorf("bug: no store for values of %s", dt)
	}
	switch fixed.BitWidth() {
	case 8:
		return &fixedStore[uint8]{mem: mem, dt: dt}, nil
	case 16:
		return &fixedStore[uint16]{mem: mem, dt: dt}, nil
	case 32:
		return &fixedStore[uint32]{mem: mem, dt: dt}, nil
	case 64:
		return &fixedStore[uint64]{mem: mem, dt: dt}, nil
	case 128:
		return &fixedStore[[2]uint64]{mem: mem, dt: dt}, nil
	}
	return nil, fmt.Errorf("bug: no store for values of %s", dt)
}

// fixedStore holds values of one width as they lie in Arrow buffers.
type fixedStore[T any] struct {
	mem    memory.Allocator
	dt     arrow.DataType
	values []T
	set    []bool // not null
}

func (s *fixedStore[T]) resize(n int) {
	var zero T
	s.values = extend(s.values, n, zero)
	s.set = extend(s.set, n, false)
}

func (s *fixedStore[T]) put(groups, rows []uint32, a arrow.Array) error {
	values, valid := fixedOf[T](a), validityOf(a)
	for i, g := range groups {
		r := rows[i]
		s.values[g] = values[r]
		s.set[g] = valid.is(int(r))
	}
	return nil
}

func (s *fixedStore[T]) clear(groups []uint32) {
	for _, g := range groups {
		s.set[g] = false
	}
}

func (s *fixedStore[T]) column(groups []uint32) (arrow.Array, error) {
	o := newOut[T](s.mem, s.dt, len(groups))
	for i, g := range groups {
		if s.set[g] {
			o.values[i] = s.values[g]
		} else {
			o.null(i)
		}
	}
	return o.array(), nil
}

func (s *fixedStore[T]) bytes() int64 {
	return int64(cap(s.values))*int64(s.dt.(arrow.FixedWidthDataType).BitWidth()/8) + int64(cap(s.set))
}

func (s *fixedStore[T]) release() { s.values, s.set = nil, nil }

// boolStore holds booleans: 0 null, 1 false, 2 true.
type boolStore struct {
	mem    memory.Allocator
	values []uint8
}

func (s *boolStore) resize(n int) { s.values = extend(s.values, n, 0) }

func (s *boolStore) put(groups, rows []uint32, a arrow.Array) error {
	b := a.(*array.Boolean)
	for i, g := range groups {
		if r := int(rows[i]); b.IsNull(r) {
			s.values[g] = 0
		} else {
			s.values[g] = 1 + boolByte(b.Value(r))
		}
	}
	return nil
}

func (s *boolStore) clear(groups []uint32) {
	for _, g := range groups {
		s.values[g] = 0
	}
}

func (s *boolStore) column(groups []uint32) (arrow.Array, error) {
	o := newOutBits(s.mem, len(groups))
	for i, g := range groups {
		switch s.values[g] {
		case 0:
			o.null(i)
		case 2:
			o.set(i)
		}
	}
	return o.array(), nil
}

func (s *boolStore) bytes() int64 { return int64(cap(s.values)) }
func (s *boolStore) release()     { s.values = nil }

// textCell is a group's place in the arena of a textStore: n bytes at it, and room for
// size bytes there.
type textCell struct {
	at   uint64
	n    uint32
	size uint32
}

// unsetText marks a null in textCell.n.
const unsetText = ^uint32(0)

// textStore holds texts in an arena. A value that fits the place of the one before is
// written over it; otherwise the place is dead, and the arena is copied once half of it
// is.
type textStore struct {
	mem   memory.Allocator
	dt    arrow.DataType
	cells []textCell
	arena arena.Arena
}

// staleText is the least dead text that is worth going through all groups.
const staleText = 1 << 16

func (s *textStore) resize(n int) { s.cells = extend(s.cells, n, textCell{n: unsetText}) }

func (s *textStore) isSet(g uint32) bool { return s.cells[g].n != unsetText }

// get is the text of g, which is set; borrowed until the next change.
func (s *textStore) get(g uint32) []byte {
	c := &s.cells[g]
	return s.arena.Text(c.at, int(c.n))
}

func (s *textStore) setText(g uint32, v []byte) {
	c := &s.cells[g]
	if len(v) <= int(c.size) {
		c.n = uint32(len(v))
		copy(s.arena.Text(c.at, len(v)), v)
		return
	}
	s.arena.Drop(int(c.size))
	c.size = 0 // so that compact drops the place
	if s.arena.IsStale(staleText) {
		c.n = unsetText
		s.compact()
	}
	*c = textCell{at: s.arena.Keep(v), n: uint32(len(v)), size: uint32(len(v))}
}

// compact copies the live texts into a new arena.
func (s *textStore) compact() {
	var live arena.Arena
	for g := range s.cells {
		c := &s.cells[g]
		if c.n == unsetText {
			c.size = 0
			continue
		}
		c.at, c.size = live.Keep(s.get(uint32(g))), c.n
	}
	s.arena = live
}

func (s *textStore) put(groups, rows []uint32, a arrow.Array) error {
	t := textsOfArray(a)
	for i, g := range groups {
		if r := int(rows[i]); t.valid.is(r) {
			s.setText(g, t.at(r))
		} else {
			s.unset(g)
		}
	}
	return nil
}

// unset makes g null; its place can be used again by g.
func (s *textStore) unset(g uint32) { s.cells[g].n = unsetText }

func (s *textStore) clear(groups []uint32) {
	for _, g := range groups {
		c := &s.cells[g]
		s.arena.Drop(int(c.size))
		*c = textCell{n: unsetText}
	}
}

func (s *textStore) column(groups []uint32) (arrow.Array, error) {
	offsets := memory.NewResizableBuffer(s.mem)
	defer offsets.Release()
	offsets.Resize((len(groups) + 1) * 4)
	ends := arrow.Int32Traits.CastFromBytes(offsets.Bytes())
	nulls := nullBits{mem: s.mem, n: len(groups)}
	total := 0
	ends[0] = 0
	for i, g := range groups {
		if c := &s.cells[g]; c.n != unsetText {
			total += int(c.n)
		} else {
			nulls.set(i)
		}
		if total > 1<<31-1 {
			nulls.release()
			return nil, fmt.Errorf("the texts of %d groups are longer than 2 GiB", len(groups))
		}
		ends[i+1] = int32(total)
	}
	data := memory.NewResizableBuffer(s.mem)
	defer data.Release()
	data.Resize(total)
	dst := data.Bytes()
	for i, g := range groups {
		if s.isSet(g) {
			copy(dst[ends[i]:], s.get(g))
		}
	}
	return nulls.finish(s.dt, offsets, data), nil
}

func (b *nullBits) release() {
	if b.valid != nil {
		b.valid.Release()
		b.valid = nil
	}
}

func (s *textStore) bytes() int64 { return int64(cap(s.cells))*16 + int64(s.arena.Room()) }
func (s *textStore) release()     { s.cells, s.arena = nil, arena.Arena{} }

// nestedStore holds lists, structs and maps as the bytes keyenc makes of them.
type nestedStore struct {
	text  textStore
	codec *keyenc.Codec
	keys  keyenc.Keys
}

func (s *nestedStore) resize(n int)          { s.text.resize(n) }
func (s *nestedStore) clear(groups []uint32) { s.text.clear(groups) }
func (s *nestedStore) bytes() int64          { return s.text.bytes() + int64(cap(s.keys.Data)) }
func (s *nestedStore) release()              { s.text.release() }

func (s *nestedStore) put(groups, rows []uint32, a arrow.Array) error {
	s.keys.Reset()
	if err := s.codec.Encode([]arrow.Array{a}, &s.keys); err != nil {
		return err
	}
	for i, g := range groups {
		s.text.setText(g, s.keys.Key(int(rows[i])))
	}
	return nil
}

func (s *nestedStore) column(groups []uint32) (arrow.Array, error) {
	return decodeKeys(s.text.mem, s.codec, &s.text, groups)
}

// nullKey is the keyenc bytes of a null, first.
var nullKey = []byte{0}

// decodeKeys turns keyenc bytes back into a column, the last of those encoded.
func decodeKeys(mem memory.Allocator, codec *keyenc.Codec, text *textStore, groups []uint32) (arrow.Array, error) {
	var keys keyenc.Keys
	null := bytes.Repeat(nullKey, len(codec.Types()))
	for _, g := range groups {
		if text.isSet(g) {
			keys.Append(text.get(g))
		} else {
			keys.Append(null)
		}
	}
	out, err := codec.Decode(mem, &keys)
	if err != nil {
		return nil, fmt.Errorf("bug: stored value: %w", err)
	}
	last := len(out) - 1
	releaseAll(out[:last])
	return out[last], nil
}

// beaten says whether v is to replace the text of g: it is unset, or v is smaller
// (larger, if byLarger).
func (s *textStore) beaten(g uint32, v []byte, byLarger bool) bool {
	if !s.isSet(g) {
		return true
	}
	c := bytes.Compare(v, s.get(g))
	if byLarger {
		return c > 0
	}
	return c < 0
}
