package kernel

import (
	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/memory"
)

// Filter is the rows of a that a selection vector names: ascending numbers without
// repetition, as SelectTrue makes them. A selection without gaps is a slice that
// shares a's memory. The caller releases the result.
func Filter(mem memory.Allocator, a arrow.Array, rows []int32) arrow.Array {
	if from, ok := gapless(rows); ok {
		return array.NewSlice(a, int64(from), int64(from+len(rows)))
	}
	return part(mem, a, rows)
}

// part is a copy of the rows of a that a selection vector names, without gaps too.
func part(mem memory.Allocator, a arrow.Array, rows []int32) arrow.Array {
	out, err := take(mem, a, rows, false)
	if err != nil {
		panic("bug: a part of a column is larger than the column: " + err.Error())
	}
	return out
}

// FilterBatch is Filter for every column of b.
func FilterBatch(mem memory.Allocator, b arrow.RecordBatch, rows []int32) arrow.RecordBatch {
	if from, ok := gapless(rows); ok {
		return b.NewSlice(int64(from), int64(from+len(rows)))
	}
	columns := make([]arrow.Array, b.NumCols())
	for i, c := range b.Columns() {
		columns[i] = Filter(mem, c, rows)
		defer columns[i].Release()
	}
	return array.NewRecordBatch(b.Schema(), columns, int64(len(rows)))
}

// gapless says whether rows are consecutive, and where they begin.
func gapless(rows []int32) (from int, ok bool) {
	if len(rows) == 0 {
		return 0, true
	}
	from = int(rows[0])
	return from, int(rows[len(rows)-1])-from == len(rows)-1
}
