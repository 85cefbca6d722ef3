package columnar

import "github.com/apache/arrow-go/v18/arrow"

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
