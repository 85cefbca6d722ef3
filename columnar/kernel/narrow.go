package kernel

import (
	"math"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/memory"

	"github.com/tidemill/tidemill/columnar"
)

// Narrow is a column that is kept for later in as few bytes as its values need. Whole
// numbers, times and codes of a dictionary are counted from the least of them, in one,
// two or four bytes each where that will do: 10:00:00, 10:00:07 is a base of 10:00:00 and
// the codes 0, 7000000. Everything else is kept as it is. It is immutable.
type Narrow struct {
	plain arrow.Array // the column, if it is not narrowed

	dt    arrow.DataType
	rows  int
	base  int64
	width int // bytes of a code
	codes *memory.Buffer
	valid *memory.Buffer // nil if nothing is null
	dict  arrow.Array    // of codes of a dictionary
}

// Scatter puts the rows of sources, one source after the other, into the places that to
// names: a permutation of all of them. Sources have one type and none or one dictionary.
// The only error is text of more than 2 GiB. The caller releases the result.
func Scatter(mem memory.Allocator, sources []arrow.Array, to []uint32) (*Narrow, error) {
	nullable := false
	for _, s := range sources {
		nullable = nullable || s.NullN() > 0
	}
	dt := sources[0].DataType()
	switch {
	case dt.ID() == arrow.INT64 || dt.ID() == arrow.TIMESTAMP || dt.ID() == arrow.TIME64:
		return scatterInts[int64](mem, sources, to, nullable), nil
	case dt.ID() == arrow.INT32 || dt.ID() == arrow.DATE32 || dt.ID() == arrow.DICTIONARY:
		return scatterInts[int32](mem, sources, to, nullable), nil
	case nullable:
	case byteWidth(dt) == 8:
		return scatterPlain[uint64](mem, sources, to), nil
	case byteWidth(dt) == 16:
		return scatterPlain[wide](mem, sources, to), nil
	}
	refs := make([]Ref, len(to))
	at := 0
	for b, s := range sources {
		for i := range s.Len() {
			refs[to[at]] = MakeRef(b, i)
			at++
		}
	}
	a, err := Gather(mem, sources, refs)
	if err != nil {
		return nil, err
	}
	return &Narrow{plain: a}, nil
}

func scatterPlain[T any](mem memory.Allocator, sources []arrow.Array, to []uint32) *Narrow {
	buf, out := Make[T](mem, len(to))
	for _, s := range sources {
		place := to[:s.Len()]
		for i, v := range Values[T](s) {
			out[place[i]] = v
		}
		to = to[len(place):]
	}
	return &Narrow{plain: Wrap(sources[0].DataType(), len(out), 0, nil, buf)}
}

func scatterInts[T int32 | int64](mem memory.Allocator, sources []arrow.Array, to []uint32, nullable bool) *Narrow {
	n := &Narrow{dt: sources[0].DataType(), rows: len(to)}
	if nullable {
		n.valid = scatterValidity(mem, sources, to)
	}
	least, most := rangeOf[T](sources)
	n.base = int64(least)
	if d, ok := sources[0].(*array.Dictionary); ok {
		n.dict = d.Dictionary()
		n.dict.Retain()
	}
	switch span := uint64(most) - uint64(least); {
	case span <= math.MaxUint8:
		n.width, n.codes = 1, scatterCodes[T, uint8](mem, sources, to, least)
	case span <= math.MaxUint16:
		n.width, n.codes = 2, scatterCodes[T, uint16](mem, sources, to, least)
	case span <= math.MaxUint32:
		n.width, n.codes = 4, scatterCodes[T, uint32](mem, sources, to, least)
	default:
		n.width, n.codes = 8, scatterCodes[T, uint64](mem, sources, to, least)
	}
	return n
}

// codesOf is the values of a, or its codes if it is dictionary-encoded.
func codesOf[T int32 | int64](a arrow.Array) []T {
	if d, ok := a.(*array.Dictionary); ok {
		return Values[T](d.Indices())
	}
	return Values[T](a)
}

// rangeOf is the least and the greatest value that is not null; 0, 0 if all are.
func rangeOf[T int32 | int64](sources []arrow.Array) (least, most T) {
	first := true
	for _, s := range sources {
		raw, offset := validity(s)
		for i, v := range codesOf[T](s) {
			if raw != nil && !bitAt(raw, offset+i) {
				continue
			}
			if first {
				least, most, first = v, v, false
			}
			least, most = min(least, v), max(most, v)
		}
	}
	return least, most
}

func scatterCodes[T int32 | int64, C uint8 | uint16 | uint32 | uint64](mem memory.Allocator, sources []arrow.Array, to []uint32, base T) *memory.Buffer {
	buf, out := Make[C](mem, len(to))
	for _, s := range sources {
		place := to[:s.Len()]
		for i, v := range codesOf[T](s) {
			out[place[i]] = C(v - base)
		}
		to = to[len(place):]
	}
	return buf
}

func scatterValidity(mem memory.Allocator, sources []arrow.Array, to []uint32) *memory.Buffer {
	buf := newBitmap(mem, len(to))
	out := buf.Bytes()
	clear(out)
	at := 0
	for _, s := range sources {
		raw, offset := validity(s)
		for i := range s.Len() {
			if raw == nil || bitAt(raw, offset+i) {
				out[to[at]>>3] |= 1 << (to[at] & 7)
			}
			at++
		}
	}
	return buf
}

// Slice is the rows from, up to, but not with, to. The caller releases it.
func (n *Narrow) Slice(mem memory.Allocator, from, to int) arrow.Array {
	if n.plain != nil {
		return array.NewSlice(n.plain, int64(from), int64(to))
	}
	valid, nulls := n.sliceValidity(mem, from, to)
	switch {
	case n.dict != nil:
		codes := Wrap(columnar.Int32, to-from, nulls, valid, widen[int32](mem, n, from, to))
		defer codes.Release()
		return array.NewDictionaryArray(n.dt, codes, n.dict)
	case byteWidth(n.dt) == 4:
		return Wrap(n.dt, to-from, nulls, valid, widen[int32](mem, n, from, to))
	}
	return Wrap(n.dt, to-from, nulls, valid, widen[int64](mem, n, from, to))
}

func widen[T int32 | int64](mem memory.Allocator, n *Narrow, from, to int) *memory.Buffer {
	buf, out := Make[T](mem, to-from)
	base := T(n.base)
	switch n.width {
	case 1:
		widenCodes(out, view[uint8](n.codes.Bytes(), n.rows)[from:to], base)
	case 2:
		widenCodes(out, view[uint16](n.codes.Bytes(), n.rows)[from:to], base)
	case 4:
		widenCodes(out, view[uint32](n.codes.Bytes(), n.rows)[from:to], base)
	default:
		widenCodes(out, view[uint64](n.codes.Bytes(), n.rows)[from:to], base)
	}
	return buf
}

func widenCodes[T int32 | int64, C uint8 | uint16 | uint32 | uint64](out []T, codes []C, base T) {
	codes = codes[:len(out)]
	for i := range out {
		out[i] = base + T(codes[i])
	}
}

func (n *Narrow) sliceValidity(mem memory.Allocator, from, to int) (*memory.Buffer, int) {
	if n.valid == nil {
		return nil, 0
	}
	buf := newBitmap(mem, to-from)
	out, in := buf.Bytes(), n.valid.Bytes()
	clear(out)
	nulls := 0
	for i := from; i < to; i++ {
		if bitAt(in, i) {
			out[(i-from)>>3] |= 1 << ((i - from) & 7)
		} else {
			nulls++
		}
	}
	if nulls == 0 {
		buf.Release()
		return nil, 0
	}
	return buf, nulls
}

// Kept is the column itself if it is kept as it is, else nil; it is borrowed.
func (n *Narrow) Kept() arrow.Array { return n.plain }

// Bytes is the memory held of a narrowed column, 0 of one kept as it is.
func (n *Narrow) Bytes() int64 {
	if n.plain != nil {
		return 0
	}
	size := int64(n.codes.Len())
	if n.valid != nil {
		size += int64(n.valid.Len())
	}
	return size
}

// Release gives the column back.
func (n *Narrow) Release() {
	if n.plain != nil {
		n.plain.Release()
		return
	}
	n.codes.Release()
	release(n.valid)
	if n.dict != nil {
		n.dict.Release()
	}
}
