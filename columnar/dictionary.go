package columnar

import (
	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/memory"
)

// decodeDictionary writes out the values a dictionary-encoded VARCHAR or BINARY
// column stands for. A null code, and a code of a null value, is null.
func decodeDictionary(mem memory.Allocator, d *array.Dictionary) arrow.Array {
	n := d.Len()
	values, offsets, valid := dictionaryValues(d)
	codes := DictionaryCodes(d)
	out := newBuffer(mem, (n+1)*4)
	defer out.Release()
	ends := arrow.Int32Traits.CastFromBytes(out.Bytes())
	bitmap := newBuffer(mem, (n+7)/8)
	defer bitmap.Release()
	clear(bitmap.Bytes())
	ends[0] = 0
	total, nulls := int32(0), 0
	for i := range n {
		if d.IsNull(i) || !valid(int(codes[i])) {
			nulls++
		} else {
			c := codes[i]
			total += offsets[c+1] - offsets[c]
			bitmap.Bytes()[i>>3] |= 1 << (i & 7)
		}
		ends[i+1] = total
	}
	data := newBuffer(mem, int(total))
	defer data.Release()
	at := 0
	for i := range n {
		if ends[i+1] > ends[i] {
			c := codes[i]
			at += copy(data.Bytes()[at:], values[offsets[c]:offsets[c+1]])
		}
	}
	dt := d.DataType().(*arrow.DictionaryType).ValueType
	ad := array.NewData(dt, n, []*memory.Buffer{bitmap, out, data}, nil, nulls, 0)
	defer ad.Release()
	return array.MakeFromData(ad)
}

// DictionaryCodes is the int32 codes of d, one a row; those of null rows are
// undefined. It is borrowed from d.
func DictionaryCodes(d *array.Dictionary) []int32 {
	return d.Indices().(*array.Int32).Int32Values()
}

// Share makes b ready to be read by several goroutines at once: arrow counts nulls and makes
// the array of a dictionary when it is first asked, without a lock, and of two arrays that
// were made at the same time it would never release one.
func Share(b arrow.RecordBatch) {
	for _, c := range b.Columns() {
		share(c)
	}
}

func share(a arrow.Array) {
	a.NullN()
	switch a := a.(type) {
	case *array.Dictionary:
		a.Indices().NullN()
		share(a.Dictionary())
	case array.ListLike:
		share(a.ListValues())
	case *array.Struct:
		for i := range a.NumField() {
			share(a.Field(i))
		}
	}
}

// SameMemory says whether two arrays of one type are the same memory, such as the
// dictionary of two batches.
func SameMemory(a, b arrow.Array) bool {
	if a == b {
		return true
	}
	x, y := a.Data(), b.Data()
	if x.Len() != y.Len() || x.Offset() != y.Offset() {
		return false
	}
	for i, p := range x.Buffers() {
		if p != y.Buffers()[i] {
			return false
		}
	}
	return true
}

func dictionaryValues(d *array.Dictionary) (values []byte, offsets []int32, valid func(int) bool) {
	v, ok := d.Dictionary().(interface{ ValueOffsets() []int32 })
	if !ok {
		panic("bug: dictionary of " + d.Dictionary().DataType().String())
	}
	if data := d.Dictionary().Data().Buffers()[2]; data != nil {
		values = data.Bytes()
	}
	return values, v.ValueOffsets(), d.Dictionary().IsValid
}

func newBuffer(mem memory.Allocator, size int) *memory.Buffer {
	b := memory.NewResizableBuffer(mem)
	b.Resize(size)
	return b
}
