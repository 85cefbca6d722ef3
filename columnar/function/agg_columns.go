package function

import (
	"unsafe"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/memory"

	"github.com/tidemill/tidemill/columnar"
)

// validity is an Arrow bitmap; without bits nothing is null.
type validity struct {
	bits   []byte
	offset int
}

func (v validity) is(i int) bool {
	return v.bits == nil || v.bits[(v.offset+i)>>3]>>((v.offset+i)&7)&1 != 0
}

func validityOf(a arrow.Array) validity {
	if a.NullN() == 0 {
		return validity{}
	}
	return validity{bits: a.NullBitmapBytes(), offset: a.Data().Offset()}
}

// fixedOf is the values of a fixed-width array (not BOOLEAN), borrowed from it.
func fixedOf[T any](a arrow.Array) []T {
	d := a.Data()
	if d.Len() == 0 {
		return nil
	}
	b := d.Buffers()[1].Bytes()
	var zero T
	all := unsafe.Slice((*T)(unsafe.Pointer(unsafe.SliceData(b))), len(b)/int(unsafe.Sizeof(zero)))
	return all[d.Offset() : d.Offset()+d.Len()]
}

// fixedArg is an argument of n rows as a slice: a constant is repeated in scratch.
// none says that every row is null.
func fixedArg[T any](d columnar.Datum, n int, scratch *[]T) (values []T, valid validity, none bool) {
	a := d.Array()
	if a.DataType().ID() == arrow.NULL || a.NullN() == a.Len() {
		return nil, validity{}, true
	}
	if !d.IsConstant() {
		return fixedOf[T](a), validityOf(a), false
	}
	v := fixedOf[T](a)[0]
	*scratch = sized(*scratch, n)
	for i := range *scratch {
		(*scratch)[i] = v
	}
	return *scratch, validity{}, false
}

// sized returns s with length n, content undefined.
func sized[T any](s []T, n int) []T {
	if cap(s) < n {
		return make([]T, n, doubleCapacity(cap(s), n))
	}
	return s[:n]
}

// out is a fixed-width column being made, value by value, in its Arrow buffer.
type out[T any] struct {
	mem    memory.Allocator
	dt     arrow.DataType
	values []T
	buf    *memory.Buffer
	nulls  nullBits
}

func newOut[T any](mem memory.Allocator, dt arrow.DataType, n int) *out[T] {
	var zero T
	buf := memory.NewResizableBuffer(mem)
	buf.Resize(n * int(unsafe.Sizeof(zero)))
	o := &out[T]{mem: mem, dt: dt, buf: buf, nulls: nullBits{mem: mem, n: n}}
	if n > 0 {
		o.values = unsafe.Slice((*T)(unsafe.Pointer(unsafe.SliceData(buf.Bytes()))), n)
	}
	return o
}

// null makes value i null.
func (o *out[T]) null(i int) {
	var zero T
	o.values[i] = zero
	o.nulls.set(i)
}

// array is the finished column; o may not be used again.
func (o *out[T]) array() arrow.Array {
	defer o.buf.Release()
	return o.nulls.finish(o.dt, o.buf)
}

// nullBits is a validity bitmap that exists only if something is null.
type nullBits struct {
	mem   memory.Allocator
	n     int
	count int
	valid *memory.Buffer
}

func (b *nullBits) set(i int) {
	if b.valid == nil {
		b.valid = memory.NewResizableBuffer(b.mem)
		b.valid.Resize((b.n + 7) / 8)
		for i := range b.valid.Bytes() {
			b.valid.Bytes()[i] = 0xFF
		}
	}
	b.valid.Bytes()[i>>3] &^= 1 << (i & 7)
	b.count++
}

// finish makes an array of the bitmap, which it uses up, and the given buffers.
func (b *nullBits) finish(dt arrow.DataType, buffers ...*memory.Buffer) arrow.Array {
	d := array.NewData(dt, b.n, append([]*memory.Buffer{b.valid}, buffers...), nil, b.count, 0)
	defer d.Release()
	if b.valid != nil {
		b.valid.Release()
		b.valid = nil
	}
	return array.MakeFromData(d)
}

// outBits is a BOOLEAN column being made.
type outBits struct {
	bits  *memory.Buffer
	nulls nullBits
}

func newOutBits(mem memory.Allocator, n int) *outBits {
	b := memory.NewResizableBuffer(mem)
	b.Resize((n + 7) / 8)
	clear(b.Bytes())
	return &outBits{bits: b, nulls: nullBits{mem: mem, n: n}}
}

func (o *outBits) set(i int)  { o.bits.Bytes()[i>>3] |= 1 << (i & 7) }
func (o *outBits) null(i int) { o.nulls.set(i) }

func (o *outBits) array() arrow.Array {
	defer o.bits.Release()
	return o.nulls.finish(columnar.Boolean, o.bits)
}

// boolsArg is a BOOLEAN argument of n rows as bytes 0 and 1.
func boolsArg(d columnar.Datum, n int, scratch *[]uint8) (values []uint8, valid validity, none bool) {
	a := d.Array()
	if a.DataType().ID() == arrow.NULL || a.NullN() == a.Len() {
		return nil, validity{}, true
	}
	b := a.(*array.Boolean)
	*scratch = sized(*scratch, n)
	if d.IsConstant() {
		v := boolByte(b.Value(0))
		for i := range *scratch {
			(*scratch)[i] = v
		}
		return *scratch, validity{}, false
	}
	for i := range *scratch {
		(*scratch)[i] = boolByte(b.Value(i))
	}
	return *scratch, validityOf(a), false
}

func boolByte(v bool) uint8 {
	if v {
		return 1
	}
	return 0
}

// textsArg is a VARCHAR or BINARY column as memory, borrowed.
type textsArg struct {
	data    []byte
	offsets []int32
	valid   validity
	step    int // 0 for a constant
}

func (t *textsArg) at(i int) []byte {
	i *= t.step
	return t.data[t.offsets[i]:t.offsets[i+1]]
}

func newTextsArg(d columnar.Datum) (t textsArg, none bool) {
	a := d.Array()
	if a.DataType().ID() == arrow.NULL || a.NullN() == a.Len() {
		return t, true
	}
	t = textsOfArray(a)
	if d.IsConstant() {
		t.step = 0
		t.valid = validity{}
	}
	return t, false
}

func textsOfArray(a arrow.Array) textsArg {
	t := textsArg{step: 1, valid: validityOf(a)}
	if a.Len() == 0 {
		return t
	}
	d := a.Data()
	t.offsets = arrow.Int32Traits.CastFromBytes(d.Buffers()[1].Bytes())[d.Offset() : d.Offset()+d.Len()+1]
	if b := d.Buffers()[2]; b != nil {
		t.data = b.Bytes()
	}
	return t
}

// listColumn makes a LIST column: value i has the next lengths[i] of elems, which is
// borrowed. A negative length is null.
func listColumn(mem memory.Allocator, elems arrow.Array, lengths []int) arrow.Array {
	offsets := memory.NewResizableBuffer(mem)
	defer offsets.Release()
	offsets.Resize((len(lengths) + 1) * 4)
	ends := arrow.Int32Traits.CastFromBytes(offsets.Bytes())
	nulls := nullBits{mem: mem, n: len(lengths)}
	ends[0] = 0
	for i, n := range lengths {
		if n < 0 {
			nulls.set(i)
			n = 0
		}
		ends[i+1] = ends[i] + int32(n)
	}
	dt := columnar.ListOf(elems.DataType())
	d := array.NewData(dt, len(lengths), []*memory.Buffer{nulls.valid, offsets}, []arrow.ArrayData{elems.Data()}, nulls.count, 0)
	defer d.Release()
	if nulls.valid != nil {
		nulls.valid.Release()
	}
	return array.MakeFromData(d)
}

// releaseAll releases arrays on an error path.
func releaseAll(arrays []arrow.Array) {
	for _, a := range arrays {
		a.Release()
	}
}
