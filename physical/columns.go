package physical

import (
	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/memory"

	"github.com/tidemill/tidemill/columnar/kernel"
)

// takeColumns is the columns of b at rows; -1 gives nulls. The caller releases them.
func takeColumns(mem memory.Allocator, b arrow.RecordBatch, rows []int32) ([]arrow.Array, error) {
	if isWhole(b, rows) {
		return retained(b.Columns()), nil
	}
	out := make([]arrow.Array, 0, b.NumCols())
	for _, c := range b.Columns() {
		t, err := kernel.Take(mem, c, rows)
		if err != nil {
			releaseAll(out)
			return nil, err
		}
		out = append(out, t)
	}
	return out, nil
}

// isWhole says whether rows are all of b, in order.
func isWhole(b arrow.RecordBatch, rows []int32) bool {
	if int64(len(rows)) != b.NumRows() {
		return false
	}
	for i, r := range rows {
		if int(r) != i {
			return false
		}
	}
	return true
}
