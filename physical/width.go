package physical

import (
	"github.com/apache/arrow-go/v18/arrow"

	"github.com/tidemill/tidemill/columnar/kernel"
)

// RowWidths is about how much memory each row of some columns takes, so that an operator that
// repeats them makes fewer at a time where they are wide.
type RowWidths struct {
	of   []func(row int) int64 // columns whose rows differ
	same int64                 // the others together
	most int64                 // the widest row has no more
}

func WidthsOf(columns []arrow.Array) RowWidths {
	var w RowWidths
	for _, c := range columns {
		of, most := kernel.RowBytes(c)
		if w.most += most; of == nil {
			w.same += most
		} else {
			w.of = append(w.of, of)
		}
	}
	return w
}

// Most is no less than the width of any row.
func (w *RowWidths) Most() int64 { return w.most }

// At is the width of a row; of no row, which is negative, nothing.
func (w *RowWidths) At(row int32) int64 {
	if row < 0 {
		return 0
	}
	n := w.same
	for _, of := range w.of {
		n += of(int(row))
	}
	return n
}

// PartRows is about how many rows an operator should make at a time of rows that take bytes
// together.
func (ec *ExecContext) PartRows(bytes int64, rows int) int {
	if bytes <= ec.PartBytes() {
		return ec.batchRows()
	}
	return int(min(max(ec.PartBytes()/(bytes/int64(max(rows, 1))+1), 1), int64(ec.batchRows())))
}

// RowsWithin is how many of n rows, which have these widths, take no more than most bytes: one
// at least.
func RowsWithin(n int, most int64, width func(i int) int64) int {
	total := int64(0)
	for i := range n {
		if total += width(i); total > most {
			return max(i, 1)
		}
	}
	return n
}
