package group

import (
	"fmt"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/memory"

	"github.com/tidemill/tidemill/columnar/keyenc"
)

// textKey is the Table of a single text column.
type textKey struct {
	mem   memory.Allocator
	dt    arrow.DataType
	table *textTable
}

func (t *textKey) Len() int     { return len(t.table.cells) }
func (t *textKey) Bytes() int64 { return t.table.bytes() }
func (t *textKey) Reset()       { t.table.reset() }
func (t *textKey) Release()     { t.table.release() }

func (t *textKey) Intern(keys []arrow.Array, ids []uint32) error { return t.probe(keys, ids, true) }
func (t *textKey) Find(keys []arrow.Array, ids []uint32) error   { return t.probe(keys, ids, false) }

func (t *textKey) probe(keys []arrow.Array, ids []uint32, insert bool) error {
	if err := checkKeys([]arrow.DataType{t.dt}, keys, len(ids)); err != nil {
		return err
	}
	return t.table.intern(keys[0], ids, insert, true)
}

func (t *textKey) Keys(ids []uint32) ([]arrow.Array, error) {
	nulls := newNulls(t.mem, len(ids))
	defer nulls.release()
	for i, id := range ids {
		if id == t.table.nullID {
			nulls.set(i)
		}
	}
	a, err := t.table.texts(t.mem, t.dt, ids, nulls)
	if err != nil {
		return nil, err
	}
	return []arrow.Array{a}, nil
}

// texts is the column of the texts with the given numbers; those marked null are not
// looked at.
func (t *textTable) texts(mem memory.Allocator, dt arrow.DataType, ids []uint32, nulls *nulls) (arrow.Array, error) {
	offsets := newBuffer(mem, (len(ids)+1)*4)
	defer offsets.Release()
	ends := arrow.Int32Traits.CastFromBytes(offsets.Bytes())
	total := 0
	ends[0] = 0
	for i, id := range ids {
		if !nulls.is(i) {
			total += t.cells[id].length()
		}
		if total > 1<<31-1 {
			return nil, fmt.Errorf("a column of %d keys is longer than 2 GiB; ask for fewer rows at a time", len(ids))
		}
		ends[i+1] = int32(total)
	}
	data := newBuffer(mem, total+shortText) // short texts are written twelve bytes at a time
	defer data.Release()
	dst := data.Bytes()
	for i, id := range ids {
		if nulls.is(i) {
			continue
		}
		at := int(ends[i])
		c := t.cells[id]
		if c.long() {
			copy(dst[at:], t.arena[c.b:c.b+uint64(c.length())])
			continue
		}
		putShort(dst[at:at+shortText], c)
	}
	data.ResizeNoShrink(total)
	d := array.NewData(dt, len(ids), []*memory.Buffer{nulls.buffer(), offsets, data}, nil, nulls.count, 0)
	defer d.Release()
	return array.MakeFromData(d), nil
}

// Keys gathers the packed columns.
func (t *packedKey) Keys(ids []uint32) ([]arrow.Array, error) {
	out := make([]arrow.Array, 0, len(t.columns))
	for i := range t.columns {
		a, err := t.keyColumn(i, ids)
		if err != nil {
			for _, a := range out {
				a.Release()
			}
			return nil, err
		}
		out = append(out, a)
	}
	return out, nil
}

func (t *packedKey) keyColumn(number int, ids []uint32) (arrow.Array, error) {
	c := &t.columns[number]
	if c.dt.ID() == arrow.NULL {
		return array.NewNull(len(ids)), nil
	}
	nulls := newNulls(t.mem, len(ids))
	defer nulls.release()
	if t.nulls != nil {
		for i, id := range ids {
			if t.nulls[id]>>number&1 != 0 {
				nulls.set(i)
			}
		}
	}
	if c.text != nil {
		c.ids = resized(c.ids, len(ids))
		unpack(c.ids, t.rows, t.stride, c.word, c.shift, ids)
		if c.codec != nil {
			return t.nestedColumn(c, nulls)
		}
		return c.text.texts(t.mem, c.dt, c.ids, nulls)
	}
	return t.fixedColumn(c, ids, nulls), nil
}

func (t *packedKey) fixedColumn(c *column, ids []uint32, nulls *nulls) arrow.Array {
	size := len(ids) * c.width
	if c.dt.ID() == arrow.BOOL {
		size = (len(ids) + 7) / 8
	}
	values := newBuffer(t.mem, size)
	defer values.Release()
	b := values.Bytes()
	switch {
	case c.dt.ID() == arrow.BOOL:
		clear(b)
		for i, id := range ids {
			b[i>>3] |= byte(t.rows[int(id)*t.stride+c.word]>>c.shift&1) << (i & 7)
		}
	case c.width == 1:
		unpack(b, t.rows, t.stride, c.word, c.shift, ids)
	case c.width == 2:
		unpack(arrow.Uint16Traits.CastFromBytes(b), t.rows, t.stride, c.word, c.shift, ids)
	case c.width == 4:
		unpack(arrow.Uint32Traits.CastFromBytes(b), t.rows, t.stride, c.word, c.shift, ids)
	case c.width == 8:
		unpack(arrow.Uint64Traits.CastFromBytes(b), t.rows, t.stride, c.word, 0, ids)
	default:
		w := arrow.Uint64Traits.CastFromBytes(b)
		for i, id := range ids {
			at := int(id)*t.stride + c.word
			w[2*i], w[2*i+1] = t.rows[at], t.rows[at+1]
		}
	}
	d := array.NewData(c.dt, len(ids), []*memory.Buffer{nulls.buffer(), values}, nil, nulls.count, 0)
	defer d.Release()
	return array.MakeFromData(d)
}

func unpack[T uint8 | uint16 | uint32 | uint64](dst []T, rows []uint64, stride, word int, shift uint, ids []uint32) {
	for i, id := range ids {
		dst[i] = T(rows[int(id)*stride+word] >> (shift & 63))
	}
}

// nestedColumn decodes the keyenc bytes of a nested column's values.
func (t *packedKey) nestedColumn(c *column, nulls *nulls) (arrow.Array, error) {
	var keys keyenc.Keys
	for i, id := range c.ids {
		if nulls.is(i) {
			keys.Append([]byte{0}) // the marker of null, first
			continue
		}
		keys.Append(c.text.bytesOf(id))
	}
	out, err := c.codec.Decode(t.mem, &keys)
	if err != nil {
		return nil, fmt.Errorf("bug: grouping key: %w", err)
	}
	return out[0], nil
}

// bytesOf is the text with the given number, borrowed or copied.
func (t *textTable) bytesOf(id uint32) []byte {
	c := t.cells[id]
	if c.long() {
		return t.arena[c.b : c.b+uint64(c.length())]
	}
	b := make([]byte, shortText)
	putShort(b, c)
	return b[:c.length()]
}

// encodedKey is the Table of keys without columns and of keys too wide for packing:
// the whole row is one binary key.
type encodedKey struct {
	mem   memory.Allocator
	types []arrow.DataType
	codec *keyenc.Codec
	table *textTable
	keys  keyenc.Keys
}

func newEncodedKey(mem memory.Allocator, types []arrow.DataType, opts Options) (*encodedKey, error) {
	codec, err := keyenc.New(types, nil)
	if err != nil {
		return nil, err
	}
	return &encodedKey{mem: mem, types: types, codec: codec, table: newTextTable(opts)}, nil
}

func (t *encodedKey) Len() int     { return len(t.table.cells) }
func (t *encodedKey) Bytes() int64 { return t.table.bytes() + int64(cap(t.keys.Data)) }
func (t *encodedKey) Reset()       { t.table.reset() }
func (t *encodedKey) Release()     { t.table.release() }

func (t *encodedKey) Intern(keys []arrow.Array, ids []uint32) error { return t.probe(keys, ids, true) }
func (t *encodedKey) Find(keys []arrow.Array, ids []uint32) error   { return t.probe(keys, ids, false) }

func (t *encodedKey) probe(keys []arrow.Array, ids []uint32, insert bool) error {
	if err := checkKeys(t.types, keys, len(ids)); err != nil {
		return err
	}
	offsets := make([]int32, len(ids)+1)
	t.keys.Reset()
	if len(keys) > 0 {
		if err := t.codec.Encode(keys, &t.keys); err != nil {
			return err
		}
		for i, o := range t.keys.Offsets {
			offsets[i] = int32(o)
		}
	}
	return t.table.internTexts(texts{data: t.keys.Data, offsets: offsets}, ids, insert, false)
}

func (t *encodedKey) Keys(ids []uint32) ([]arrow.Array, error) {
	if len(t.types) == 0 {
		return nil, nil
	}
	var keys keyenc.Keys
	for _, id := range ids {
		keys.Append(t.table.bytesOf(id))
	}
	out, err := t.codec.Decode(t.mem, &keys)
	if err != nil {
		return nil, fmt.Errorf("bug: grouping key: %w", err)
	}
	return out, nil
}

// nulls builds a validity bitmap, only if something is null.
type nulls struct {
	mem   memory.Allocator
	n     int
	count int
	valid *memory.Buffer
}

func newNulls(mem memory.Allocator, n int) *nulls { return &nulls{mem: mem, n: n} }

func (b *nulls) set(i int) {
	if b.valid == nil {
		b.valid = newBuffer(b.mem, (b.n+7)/8)
		for i := range b.valid.Bytes() {
			b.valid.Bytes()[i] = 0xFF
		}
	}
	b.valid.Bytes()[i>>3] &^= 1 << (i & 7)
	b.count++
}

func (b *nulls) is(i int) bool {
	return b.valid != nil && b.valid.Bytes()[i>>3]>>(i&7)&1 == 0
}

// buffer is the bitmap, nil if nothing is null; borrowed.
func (b *nulls) buffer() *memory.Buffer { return b.valid }

func (b *nulls) release() {
	if b.valid != nil {
		b.valid.Release()
	}
}

func newBuffer(mem memory.Allocator, size int) *memory.Buffer {
	b := memory.NewResizableBuffer(mem)
	b.Resize(size)
	return b
}

var _ = []Table{(*textKey)(nil), (*packedKey)(nil), (*encodedKey)(nil)}
