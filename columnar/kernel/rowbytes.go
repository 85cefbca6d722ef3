package kernel

import (
	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"

	"github.com/tidemill/tidemill/columnar"
)

// RowBytes is about how much memory each row of a takes without a dictionary, as a function
// of the row, nil if all take the same; and the most that one takes.
func RowBytes(a arrow.Array) (of func(row int) int64, most int64) {
	switch a := a.(type) {
	case *array.String, *array.Binary:
		o := bytesOf(a).offsets
		return func(row int) int64 { return 5 + int64(o[row+1]-o[row]) }, 5 + widest(o, a.Len())
	case *array.List, *array.Map:
		l := ListsOf(columnar.ColumnDatum(a))
		each := averageBytes(l.Child)
		for i := range a.Len() {
			from, to := l.At(i)
			most = max(most, int64(to-from))
		}
		return func(row int) int64 {
			from, to := l.At(row)
			return 5 + int64(to-from)*each
		}, 5 + most*each
	case *array.Dictionary:
		values, most := RowBytes(a.Dictionary())
		if values == nil {
			return nil, most
		}
		codes := columnar.DictionaryCodes(a)
		return func(row int) int64 {
			if a.IsNull(row) {
				return 5
			}
			return values(int(codes[row]))
		}, most
	}
	return nil, averageBytes(a)
}

// widest is the longest text of n that lie between offsets.
func widest(offsets []int32, n int) int64 {
	most := int32(0)
	for i := range n {
		most = max(most, offsets[i+1]-offsets[i])
	}
	return int64(most)
}

func averageBytes(a arrow.Array) int64 {
	return columnar.DataBytes(a.Data()) / int64(max(a.Len(), 1))
}
