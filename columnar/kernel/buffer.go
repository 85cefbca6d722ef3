package kernel

import (
	"unsafe"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/memory"

	"github.com/tidemill/tidemill/columnar"
)

// Make allocates a buffer of n values of T, undefined in content, and the slice to
// write them through. The caller owns the buffer.
func Make[T any](mem memory.Allocator, n int) (*memory.Buffer, []T) {
	var zero T
	b := memory.NewResizableBuffer(mem)
	b.Resize(n * int(unsafe.Sizeof(zero)))
	return b, view[T](b.Bytes(), n)
}

// view is n values of T at the start of b.
func view[T any](b []byte, n int) []T {
	if n == 0 {
		return nil
	}
	return unsafe.Slice((*T)(unsafe.Pointer(unsafe.SliceData(b))), n)
}

// Values is the fixed-width values of a (integers, floats, dates, decimals, codes of
// a dictionary …), one a row, those of null rows undefined. T must be as wide as the
// type. It is borrowed from a.
func Values[T any](a arrow.Array) []T {
	d := a.Data()
	if d.Len() == 0 {
		return nil
	}
	return view[T](d.Buffers()[1].Bytes(), d.Offset()+d.Len())[d.Offset():]
}

// Wrap makes an array of n values, nulls of them null, of buffers it takes over: the
// validity bitmap (nil if nothing is null), then those of the type.
func Wrap(dt arrow.DataType, n, nulls int, buffers ...*memory.Buffer) arrow.Array {
	return wrapNested(dt, n, nulls, buffers, nil)
}

// wrapNested is Wrap for types with children, which it takes over too.
func wrapNested(dt arrow.DataType, n, nulls int, buffers []*memory.Buffer, children []arrow.Array) arrow.Array {
	var datas []arrow.ArrayData
	for _, c := range children {
		datas = append(datas, c.Data())
	}
	data := array.NewData(dt, n, buffers, datas, nulls, 0)
	defer data.Release()
	for _, b := range buffers {
		if b != nil {
			b.Release()
		}
	}
	for _, c := range children {
		c.Release()
	}
	return array.MakeFromData(data)
}

// withType is a with another type of the same layout. The caller releases it.
func withType(a arrow.Array, dt arrow.DataType) arrow.Array {
	d := a.Data()
	data := array.NewData(dt, d.Len(), d.Buffers(), d.Children(), a.NullN(), d.Offset())
	defer data.Release()
	return array.MakeFromData(data)
}

// bytesView is the values of a VARCHAR or BINARY column: value i is
// data[offsets[i]:offsets[i+1]].
type bytesView struct {
	offsets []int32
	data    []byte
}

// bytesOf views a plain VARCHAR or BINARY column.
func bytesOf(a arrow.Array) bytesView {
	d := a.Data()
	if d.Len() == 0 {
		return bytesView{offsets: []int32{0}}
	}
	v := bytesView{offsets: view[int32](d.Buffers()[1].Bytes(), d.Offset()+d.Len()+1)[d.Offset():]}
	if b := d.Buffers()[2]; b != nil {
		v.data = b.Bytes()
	}
	return v
}

func (v bytesView) at(i int) []byte { return v.data[v.offsets[i]:v.offsets[i+1]] }

// offsetsOf is the n+1 offsets of a list or map column into its child.
func offsetsOf(a arrow.Array) []int32 {
	d := a.Data()
	if d.Len() == 0 {
		return []int32{0}
	}
	return view[int32](d.Buffers()[1].Bytes(), d.Offset()+d.Len()+1)[d.Offset():]
}

// childOf is the child column of a list or map, unsliced: what offsets point into.
func childOf(a arrow.Array) arrow.Array {
	switch a := a.(type) {
	case *array.Map:
		return a.ListValues()
	case *array.List:
		return a.ListValues()
	}
	panic("bug: child of " + a.DataType().String())
}

// byteWidth is the width of a fixed-width type in bytes, 0 for any other and for
// BOOLEAN.
func byteWidth(dt arrow.DataType) int {
	if f, ok := dt.(arrow.FixedWidthDataType); ok && dt.ID() != arrow.BOOL {
		return f.BitWidth() / 8
	}
	return 0
}

// String views b as a string; it is valid as long as b is not written.
func viewString(b []byte) string { return unsafe.String(unsafe.SliceData(b), len(b)) }

// wide is a 16-byte value moved as a whole: a decimal or an interval.
type wide [2]uint64

// Texts is the values of a VARCHAR or BINARY column or constant, row by row.
type Texts struct {
	view bytesView
	mask int
}

// TextsOf views d, which it borrows; d is plain.
func TextsOf(d columnar.Datum) Texts { return Texts{bytesOf(d.Array()), RowMask(d)} }

// At is the bytes of row i, to be read only; those of a null row are undefined.
func (t Texts) At(i int) []byte { return t.view.at(i & t.mask) }

// Size is about the number of bytes of rows rows together.
func (t Texts) Size(rows int) int {
	o := t.view.offsets
	if t.mask == 0 {
		return rows * int(o[1]-o[0])
	}
	return int(o[len(o)-1] - o[0])
}

// RowMask makes i&mask the place of row i: i in a column, 0 in a constant.
func RowMask(d columnar.Datum) int {
	if d.IsConstant() {
		return 0
	}
	return -1
}

// Lists is the values of an ARRAY or MAP column or constant, row by row: row i is the
// elements from, up to, but not with, to of Child.
type Lists struct {
	Child   arrow.Array // borrowed; of a MAP a STRUCT of keys and values
	offsets []int32
	mask    int
}

// ListsOf views d, which it borrows.
func ListsOf(d columnar.Datum) Lists {
	return Lists{childOf(d.Array()), offsetsOf(d.Array()), RowMask(d)}
}

// At is where the elements of row i are; those of a null row are undefined.
func (l Lists) At(i int) (from, to int) {
	i &= l.mask
	return int(l.offsets[i]), int(l.offsets[i+1])
}

// WrapList makes an ARRAY or MAP of rows values of its child and where each value
// begins and ends in it: ends has rows+1 entries. It takes over all three.
func WrapList(dt arrow.DataType, rows, nulls int, valid, ends *memory.Buffer, child arrow.Array) arrow.Array {
	return wrapNested(dt, rows, nulls, []*memory.Buffer{valid, ends}, []arrow.Array{child})
}

// WrapStruct makes a STRUCT of its fields; it takes over valid and fields.
func WrapStruct(dt arrow.DataType, rows, nulls int, valid *memory.Buffer, fields []arrow.Array) arrow.Array {
	return wrapNested(dt, rows, nulls, []*memory.Buffer{valid}, fields)
}
