package kernel

import (
	"math"
	"unsafe"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/memory"
)

// TextWriter makes a VARCHAR or BINARY column row by row: append the value of the
// row to Data, then call End. Null rows need End too.
//
//	for i := range rows {
//		w.Data = append(w.Data, …)
//		w.End()
//	}
//	return w.Finish(columnar.String, valid, nulls)
type TextWriter struct {
	Data []byte // what was written; append to it, change nothing else

	buf     *memory.Buffer // backs Data, unless an append has moved it
	offsets *memory.Buffer
	ends    []int32
	rows    int
}

// NewTextWriter makes room for rows values of about size bytes together.
func NewTextWriter(mem memory.Allocator, rows, size int) *TextWriter {
	w := &TextWriter{buf: memory.NewResizableBuffer(mem)}
	w.buf.Reserve(max(size, 64))
	w.Data = w.buf.Buf()[:0]
	w.offsets, w.ends = Make[int32](mem, rows+1)
	w.ends[0] = 0
	return w
}

// End closes the value of the current row.
func (w *TextWriter) End() {
	if unsafe.SliceData(w.Data) != unsafe.SliceData(w.buf.Buf()) {
		// append has moved the text to the Go heap: bring it back, with room to grow.
		n := len(w.Data)
		w.buf.Resize(0)
		w.buf.Reserve(max(2*n, 64))
		w.Data = w.buf.Buf()[:copy(w.buf.Buf(), w.Data)]
	}
	w.rows++
	w.ends[w.rows] = int32(len(w.Data))
}

// Release gives up without a column.
func (w *TextWriter) Release() {
	w.buf.Release()
	w.offsets.Release()
}

// Finish makes the column; it takes over valid. The only error is more than 2 GiB.
func (w *TextWriter) Finish(dt arrow.DataType, valid *memory.Buffer, nulls int) (arrow.Array, error) {
	if len(w.Data) > math.MaxInt32 {
		release(valid)
		w.Release()
		return nil, errTooMuchText(int64(len(w.Data)))
	}
	w.buf.Resize(len(w.Data))
	return Wrap(dt, w.rows, nulls, valid, w.offsets, w.buf), nil
}
