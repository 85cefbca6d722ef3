package columnar

import (
	"slices"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
)

// DataBytes is about how much memory the rows of d take. A dictionary counts with its codes
// only: it is shared.
func DataBytes(d arrow.ArrayData) int64 {
	rows := int64(d.Len())
	n := 64 + rows/8
	switch t := d.DataType().(type) {
	case *arrow.DictionaryType:
		return n + 4*rows
	case *arrow.StringType, *arrow.BinaryType:
		return n + 4*rows + textBytes(d)
	case *arrow.ListType, *arrow.MapType:
		n += 4 * rows
		if c := d.Children()[0]; c.Len() > 0 && rows > 0 {
			o := offsetsOfData(d)
			n += DataBytes(c) * int64(o[rows]-o[0]) / int64(c.Len())
		}
		return n
	case *arrow.StructType:
		for _, c := range d.Children() {
			if c.Len() > 0 {
				n += DataBytes(c) * rows / int64(c.Len())
			}
		}
		return n
	case arrow.FixedWidthDataType:
		return n + rows*int64(t.BitWidth())/8
	}
	return n
}

// TakenBytes is about how much memory rows of a would take as a column of their own, without a
// dictionary; a negative row takes none.
func TakenBytes(a arrow.Array, rows []int32) int64 {
	switch a.DataType().ID() {
	case arrow.STRING, arrow.BINARY:
		n := int64(64 + 5*len(rows))
		if a.Len() == 0 {
			return n
		}
		o := offsetsOfData(a.Data())
		for _, r := range rows {
			if r >= 0 {
				n += int64(o[r+1] - o[r])
			}
		}
		return n
	case arrow.DICTIONARY:
		d := a.(*array.Dictionary)
		codes := make([]int32, len(rows))
		for i, r := range rows {
			if codes[i] = -1; r >= 0 && d.IsValid(int(r)) {
				codes[i] = DictionaryCodes(d)[r]
			}
		}
		return TakenBytes(d.Dictionary(), codes)
	}
	return DataBytes(a.Data()) * int64(len(rows)) / int64(max(a.Len(), 1))
}

// PlainBytes is about how much memory the first rows of d would take without the dictionary.
func PlainBytes(d *array.Dictionary, rows int) int64 {
	codes := DictionaryCodes(d)[:rows]
	if d.NullN() > 0 {
		codes = slices.Clone(codes)
		for i := range codes {
			if d.IsNull(i) {
				codes[i] = -1
			}
		}
	}
	return TakenBytes(d.Dictionary(), codes)
}

func offsetsOfData(d arrow.ArrayData) []int32 {
	return arrow.Int32Traits.CastFromBytes(d.Buffers()[1].Bytes())[d.Offset():]
}

func textBytes(d arrow.ArrayData) int64 {
	if d.Len() == 0 {
		return 0
	}
	o := offsetsOfData(d)
	return int64(o[d.Len()] - o[0])
}
