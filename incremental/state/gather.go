package state

import (
	"encoding/binary"
	"fmt"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/memory"

	"github.com/tidemill/tidemill/columnar/keyenc"
)

// column is one column of the given rows.
func (s *rowStore) column(mem memory.Allocator, rows []uint32, number int) (arrow.Array, error) {
	c := &s.columns[number]
	valid, nulls := s.validity(mem, rows, number)
	if valid != nil {
		defer valid.Release()
	}
	switch {
	case c.codec != nil:
		return s.nestedColumn(mem, rows, number)
	case c.text:
		return s.textColumn(mem, rows, number, valid, nulls)
	}
	size := len(rows) * c.width
	if c.dt.ID() == arrow.BOOL {
		size = (len(rows) + 7) / 8
	}
	values := memory.NewResizableBuffer(mem)
	defer values.Release()
	values.Resize(size)
	b := values.Bytes()
	switch {
	case c.dt.ID() == arrow.BOOL:
		clear(b)
		for i, row := range rows {
			b[i>>3] |= byte(s.words.row(row)[c.word]>>c.shift&1) << (i & 7)
		}
	case c.width == 1:
		unpack(b, s, rows, c)
	case c.width == 2:
		unpack(arrow.Uint16Traits.CastFromBytes(b), s, rows, c)
	case c.width == 4:
		unpack(arrow.Uint32Traits.CastFromBytes(b), s, rows, c)
	case c.width == 8:
		w := arrow.Uint64Traits.CastFromBytes(b)
		unpack(w, s, rows, c)
		if c.derived {
			for i := range w {
				w[i] += uint64(c.plus)
			}
		}
	default:
		w := arrow.Uint64Traits.CastFromBytes(b)
		for i, row := range rows {
			words := s.words.row(row)
			w[2*i], w[2*i+1] = words[c.word], words[c.word+1]
		}
	}
	d := array.NewData(c.dt, len(rows), []*memory.Buffer{valid, values}, nil, nulls, 0)
	defer d.Release()
	return array.MakeFromData(d), nil
}

func unpack[T uint8 | uint16 | uint32 | uint64](dst []T, s *rowStore, rows []uint32, c *rowColumn) {
	word, shift, segs, stride := c.word, c.shift&63, s.words.segs, s.stride
	for i, row := range rows {
		dst[i] = T(segs[row>>segmentBits][int(row&(segmentRows-1))*stride+word] >> shift)
	}
}

// validity is the bitmap of a column, nil if nothing is null.
func (s *rowStore) validity(mem memory.Allocator, rows []uint32, number int) (*memory.Buffer, int) {
	if s.nulls.segs == nil {
		return nil, 0
	}
	nulls := 0
	for _, row := range rows {
		if s.isNull(row, number) {
			nulls++
		}
	}
	if nulls == 0 {
		return nil, 0
	}
	valid := memory.NewResizableBuffer(mem)
	valid.Resize((len(rows) + 7) / 8)
	b := valid.Bytes()
	clear(b)
	for i, row := range rows {
		if !s.isNull(row, number) {
			b[i>>3] |= 1 << (i & 7)
		}
	}
	return valid, nulls
}

func (s *rowStore) textColumn(mem memory.Allocator, rows []uint32, number int, valid *memory.Buffer, nulls int) (arrow.Array, error) {
	c := &s.columns[number]
	offsets := memory.NewResizableBuffer(mem)
	defer offsets.Release()
	offsets.Resize((len(rows) + 1) * 4)
	ends := arrow.Int32Traits.CastFromBytes(offsets.Bytes())
	total := 0
	ends[0] = 0
	for i, row := range rows {
		total += int(uint32(s.words.row(row)[c.word]))
		if total > 1<<31-1 {
			return nil, fmt.Errorf("%d texts of state are longer than 2 GiB", len(rows))
		}
		ends[i+1] = int32(total)
	}
	data := memory.NewResizableBuffer(mem)
	defer data.Release()
	data.Resize(total)
	dst := data.Bytes()
	for i, row := range rows {
		s.copyText(dst[ends[i]:ends[i+1]], s.words.row(row)[c.word:])
	}
	d := array.NewData(c.dt, len(rows), []*memory.Buffer{valid, offsets, data}, nil, nulls, 0)
	defer d.Release()
	return array.MakeFromData(d), nil
}

// copyText writes the text of a cell over dst, which has its length.
func (s *rowStore) copyText(dst []byte, cell []uint64) {
	if len(dst) > shortText {
		copy(dst, s.arena.Text(cell[1], len(dst)))
		return
	}
	var b [16]byte
	binary.LittleEndian.PutUint32(b[:], uint32(cell[0]>>32))
	binary.LittleEndian.PutUint64(b[4:], cell[1])
	copy(dst, b[:])
}

func (s *rowStore) nestedColumn(mem memory.Allocator, rows []uint32, number int) (arrow.Array, error) {
	c := &s.columns[number]
	var keys keyenc.Keys
	var buf []byte
	for _, row := range rows {
		if s.isNull(row, number) {
			keys.Append([]byte{0}) // the marker of null, first
			continue
		}
		words := s.words.row(row)
		buf = resized(buf, int(uint32(words[c.word])))
		s.copyText(buf, words[c.word:])
		keys.Append(buf)
	}
	out, err := c.codec.Decode(mem, &keys)
	if err != nil {
		return nil, fmt.Errorf("bug: state column: %w", err)
	}
	return out[0], nil
}

// gather is the columns of rows: all if columns is nil.
func (s *rowStore) gather(mem memory.Allocator, rows []uint32, columns []int) ([]arrow.Array, error) {
	if columns == nil {
		for i := range s.columns {
			columns = append(columns, i)
		}
	}
	out := make([]arrow.Array, 0, len(columns))
	for _, c := range columns {
		a, err := s.column(mem, rows, c)
		if err != nil {
			releaseAll(out)
			return nil, err
		}
		out = append(out, a)
	}
	return out, nil
}

func releaseAll(arrays []arrow.Array) {
	for _, a := range arrays {
		a.Release()
	}
}
