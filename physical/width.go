package physical

import (
	"github.com/apache/arrow-go/v18/arrow"

	"github.com/tidemill/tidemill/columnar/kernel"
)

// rowWidths is about how much memory the rows of some columns take, so that an operator that
// repeats them makes fewer at a time where they are wide.
type rowWidths struct {
	of   []func(row int) int64 // columns whose rows differ
	same int64                 // the others together
	most int64                 // the widest row has no more
}

func widthsOf(columns []arrow.Array) rowWidths {
	var w rowWidths
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

// at is the width of a row; of no row, which is negative, nothing.
func (w *rowWidths) at(row int32) int64 {
	if row < 0 {
		return 0
	}
	n := w.same
	for _, of := range w.of {
		n += of(int(row))
	}
	return n
}

// rowsWithin is how many of n rows, which have these widths, take no more than most bytes: one
// at least.
func rowsWithin(n int, most int64, width func(i int) int64) int {
	total := int64(0)
	for i := range n {
		if total += width(i); total > most {
			return max(i, 1)
		}
	}
	return n
}
