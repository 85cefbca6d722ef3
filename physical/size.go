package physical

import (
	"github.com/apache/arrow-go/v18/arrow"

	"github.com/tidemill/tidemill/columnar"
)

// batchBytes is about how much memory the rows of b take. A dictionary counts with
// its codes only: it is shared.
func batchBytes(b arrow.RecordBatch) int64 {
	n := int64(64)
	for _, c := range b.Columns() {
		n += columnar.DataBytes(c.Data())
	}
	return n
}

// BatchBytes is about how much memory the rows of b take; a dictionary counts with its
// codes only.
func BatchBytes(b arrow.RecordBatch) int64 { return batchBytes(b) }
