package physical

import (
	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/memory"

	"github.com/tidemill/tidemill/columnar/kernel"
)

// takeColumns is the columns of b at rows; -1 gives nulls. The caller releases them.
func takeColumns(mem memory.Allocator, b arrow.RecordBatch, rows []int32) ([]arrow.Array, error) {
	return takeArrays(mem, b.Columns(), b.NumRows(), rows)
}

// takeArrays is takeColumns of columns of n rows.
func takeArrays(mem memory.Allocator, columns []arrow.Array, n int64, rows []int32) ([]arrow.Array, error) {
	if isWhole(n, rows) {
		return retained(columns), nil
	}
	out := make([]arrow.Array, 0, len(columns))
	for _, c := range columns {
		t, err := kernel.Take(mem, c, rows)
		if err != nil {
			releaseAll(out)
			return nil, err
		}
		out = append(out, t)
	}
	return out, nil
}

// isWhole says whether rows are all of n rows, in order.
func isWhole(n int64, rows []int32) bool {
	if int64(len(rows)) != n {
		return false
	}
	for i, r := range rows {
		if int(r) != i {
			return false
		}
	}
	return true
}
