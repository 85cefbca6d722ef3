package kernel

import (
	"fmt"
	"math"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/memory"

	"github.com/tidemill/tidemill/columnar"
)

// Take is the rows of a with the given numbers, in that order; a negative number
// gives a null (the unmatched side of an outer join). Dictionary-encoded columns keep
// their dictionary. The only error is text of more than 2 GiB in one result. The
// caller releases it.
func Take(mem memory.Allocator, a arrow.Array, rows []int32) (arrow.Array, error) {
	return take(mem, a, rows, hasNegative(rows))
}

// TakeBatch is Take for every column of b.
func TakeBatch(mem memory.Allocator, b arrow.RecordBatch, rows []int32) (arrow.RecordBatch, error) {
	nullable := hasNegative(rows)
	var built columnar.Releases
	defer built.Release()
	columns := make([]arrow.Array, b.NumCols())
	for i, c := range b.Columns() {
		t, err := take(mem, c, rows, nullable)
		if err != nil {
			return nil, fmt.Errorf("column %s: %w", b.ColumnName(i), err)
		}
		built.Add(t)
		columns[i] = t
	}
	return array.NewRecordBatch(b.Schema(), columns, int64(len(rows))), nil
}

func hasNegative(rows []int32) bool {
	or := int32(0)
	for _, r := range rows {
		or |= r
	}
	return or < 0
}

// take is Take, told whether any number is negative.
func take(mem memory.Allocator, a arrow.Array, rows []int32, nullable bool) (arrow.Array, error) {
	if len(rows) == 0 || a.Len() == 0 { // the latter with negative numbers alone
		return nullsLike(mem, a, len(rows)), nil
	}
	n := len(rows)
	dt := a.DataType()
	if dt.ID() == arrow.NULL {
		return array.NewNull(n), nil
	}
	valid, nulls := takeValidity(mem, a, rows, nullable)
	switch t := dt.(type) {
	case *arrow.BooleanType:
		return Wrap(dt, n, nulls, valid, takeBits(mem, a.Data().Buffers()[1].Bytes(), a.Data().Offset(), rows)), nil
	case *arrow.StringType, *arrow.BinaryType:
		offsets, data, err := takeBytes(mem, bytesOf(a), rows, valid)
		if err != nil {
			release(valid)
			return nil, err
		}
		return Wrap(dt, n, nulls, valid, offsets, data), nil
	case *arrow.DictionaryType:
		return takeCodes(mem, a.(*array.Dictionary), rows, valid, nulls), nil
	case *arrow.ListType, *arrow.MapType:
		return takeLists(mem, a, rows, valid, nulls)
	case *arrow.StructType:
		return takeStruct(mem, a.(*array.Struct), t, rows, nullable, valid, nulls)
	}
	return Wrap(dt, n, nulls, valid, takeFixed(mem, a, byteWidth(dt), rows)), nil
}

func release(b *memory.Buffer) {
	if b != nil {
		b.Release()
	}
}

// nullsLike is n nulls of a's type; a dictionary keeps its values.
func nullsLike(mem memory.Allocator, a arrow.Array, n int) arrow.Array {
	d, ok := a.(*array.Dictionary)
	if !ok {
		return columnar.Nulls(mem, a.DataType(), n)
	}
	codes := columnar.Nulls(mem, columnar.Int32, n)
	defer codes.Release()
	return array.NewDictionaryArray(d.DataType(), codes, d.Dictionary())
}

// takeFixed gathers values of width bytes. A null's slot holds some value.
func takeFixed(mem memory.Allocator, a arrow.Array, width int, rows []int32) *memory.Buffer {
	switch width {
	case 1:
		return gatherValues(mem, Values[uint8](a), rows)
	case 2:
		return gatherValues(mem, Values[uint16](a), rows)
	case 4:
		return gatherValues(mem, Values[uint32](a), rows)
	case 8:
		return gatherValues(mem, Values[uint64](a), rows)
	case 16:
		return gatherValues(mem, Values[wide](a), rows)
	}
	panic(fmt.Sprintf("bug: take of %s", a.DataType()))
}

func gatherValues[T any](mem memory.Allocator, src []T, rows []int32) *memory.Buffer {
	buf, out := Make[T](mem, len(rows))
	for i, r := range rows {
		out[i] = src[max(r, 0)]
	}
	return buf
}

// takeBits gathers single bits, eight rows a byte.
func takeBits(mem memory.Allocator, raw []byte, offset int, rows []int32) *memory.Buffer {
	buf := newBitmap(mem, len(rows))
	out := buf.Bytes()
	for b := range out {
		var w byte
		for k, r := range rows[b*8 : min(b*8+8, len(rows))] {
			i := offset + int(max(r, 0))
			w |= raw[i>>3] >> (i & 7) & 1 << k
		}
		out[b] = w
	}
	return buf
}

// takeValidity is the validity of the taken rows, nil if none is null.
func takeValidity(mem memory.Allocator, a arrow.Array, rows []int32, nullable bool) (*memory.Buffer, int) {
	raw, offset := validity(a)
	if raw == nil && !nullable {
		return nil, 0
	}
	buf := newBitmap(mem, len(rows))
	out := buf.Bytes()
	valid := 0
	for b := range out {
		var w byte
		for k, r := range rows[b*8 : min(b*8+8, len(rows))] {
			bit := byte(1)
			if raw != nil {
				i := offset + int(max(r, 0))
				bit = raw[i>>3] >> (i & 7) & 1
			}
			bit &= byte(^r>>31) & 1 // 0 for a negative number
			w |= bit << k
			valid += int(bit)
		}
		out[b] = w
	}
	if valid == len(rows) {
		buf.Release()
		return nil, 0
	}
	return buf, len(rows) - valid
}

// takeBytes gathers text; a row outside of valid gets the empty text.
func takeBytes(mem memory.Allocator, src bytesView, rows []int32, valid *memory.Buffer) (offsets, data *memory.Buffer, err error) {
	offsets, ends := Make[int32](mem, len(rows)+1)
	total := int64(0)
	ends[0] = 0
	for i, r := range rows {
		n := int64(src.offsets[max(r, 0)+1] - src.offsets[max(r, 0)])
		if valid != nil && !bitAt(valid.Bytes(), i) {
			n = 0
		}
		total += n
		ends[i+1] = int32(total)
	}
	if total > math.MaxInt32 {
		offsets.Release()
		return nil, nil, errTooMuchText(total)
	}
	data, out := Make[byte](mem, int(total))
	for i, r := range rows {
		if n := ends[i+1] - ends[i]; n > 0 {
			from := src.offsets[r]
			copy(out[ends[i]:ends[i+1]], src.data[from:from+n])
		}
	}
	return offsets, data, nil
}

func errTooMuchText(total int64) error {
	return fmt.Errorf("%d bytes of text in one batch are more than 2 GiB; make the batches smaller with SET batch_rows", total)
}

func takeCodes(mem memory.Allocator, d *array.Dictionary, rows []int32, valid *memory.Buffer, nulls int) arrow.Array {
	codes := gatherValues(mem, columnar.DictionaryCodes(d), rows)
	indices := Wrap(columnar.Int32, len(rows), nulls, valid, codes)
	defer indices.Release()
	return array.NewDictionaryArray(d.DataType(), indices, d.Dictionary())
}

// takeLists gathers the elements of the taken lists, or entries of maps, by taking
// from the child.
func takeLists(mem memory.Allocator, a arrow.Array, rows []int32, valid *memory.Buffer, nulls int) (arrow.Array, error) {
	src := offsetsOf(a)
	offsets, ends := Make[int32](mem, len(rows)+1)
	var elements []int32
	ends[0] = 0
	for i, r := range rows {
		if valid == nil || bitAt(valid.Bytes(), i) {
			for e := src[r]; e < src[r+1]; e++ {
				elements = append(elements, e)
			}
		}
		ends[i+1] = int32(len(elements))
	}
	child, err := take(mem, childOf(a), elements, false)
	if err == nil && len(elements) > math.MaxInt32 {
		err = fmt.Errorf("%d array elements in one batch are too many; make the batches smaller with SET batch_rows", len(elements))
		child.Release()
	}
	if err != nil {
		release(valid)
		offsets.Release()
		return nil, err
	}
	return wrapNested(a.DataType(), len(rows), nulls, []*memory.Buffer{valid, offsets}, []arrow.Array{child}), nil
}

func takeStruct(mem memory.Allocator, a *array.Struct, t *arrow.StructType, rows []int32, nullable bool, valid *memory.Buffer, nulls int) (arrow.Array, error) {
	children := make([]arrow.Array, 0, t.NumFields())
	for k := range t.NumFields() {
		c, err := take(mem, a.Field(k), rows, nullable)
		if err != nil {
			release(valid)
			for _, c := range children {
				c.Release()
			}
			return nil, err
		}
		children = append(children, c)
	}
	return wrapNested(t, len(rows), nulls, []*memory.Buffer{valid}, children), nil
}
