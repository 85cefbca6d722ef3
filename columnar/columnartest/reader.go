package columnartest

import (
	"context"
	"io"
	"testing"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/memory"

	"github.com/tidemill/tidemill/columnar"
)

// Split reads the rows of batches in batches of the given sizes, over and over; a
// size is cut at the end of an input batch. The batches are borrowed until Close.
func Split(schema *arrow.Schema, batches []arrow.RecordBatch, sizes ...int) columnar.Reader {
	var parts []arrow.RecordBatch
	k := 0
	for _, b := range batches {
		for at := int64(0); at < b.NumRows(); {
			n := min(int64(max(sizes[k%len(sizes)], 1)), b.NumRows()-at)
			k++
			parts = append(parts, b.NewSlice(at, at+n))
			at += n
		}
	}
	r := columnar.FromBatches(schema, parts...)
	for _, p := range parts {
		p.Release()
	}
	return r
}

// FailAt passes on the first rows rows of r, then returns err.
func FailAt(r columnar.Reader, rows int64, err error) columnar.Reader {
	return &failing{Reader: r, left: rows, err: err}
}

type failing struct {
	columnar.Reader
	left int64
	err  error
}

func (f *failing) Next(ctx context.Context) (arrow.RecordBatch, error) {
	if f.left == 0 {
		return nil, f.err
	}
	b, err := f.Reader.Next(ctx)
	if err == io.EOF {
		return nil, f.err
	}
	if err != nil {
		return nil, err
	}
	if b.NumRows() <= f.left {
		f.left -= b.NumRows()
		return b, nil
	}
	defer b.Release()
	part := b.NewSlice(0, f.left)
	f.left = 0
	return part, nil
}

// InjectNulls makes every n-th value of every column null, beginning with the
// first of each batch's column c at row c mod n.
func InjectNulls(mem memory.Allocator, r columnar.Reader, n int) columnar.Reader {
	return &nulling{Reader: r, mem: mem, n: n}
}

type nulling struct {
	columnar.Reader
	mem memory.Allocator
	n   int
}

func (f *nulling) Next(ctx context.Context) (arrow.RecordBatch, error) {
	b, err := f.Reader.Next(ctx)
	if err != nil {
		return nil, err
	}
	defer b.Release()
	columns := make([]arrow.Array, b.NumCols())
	for c, col := range b.Columns() {
		columns[c] = WithNulls(f.mem, col, func(i int) bool { return i%f.n == c%f.n })
		defer columns[c].Release()
	}
	return array.NewRecordBatch(b.Schema(), columns, b.NumRows()), nil
}

// WithNulls is a with the values for which null holds replaced by NULL; it shares
// a's other buffers. The caller releases it.
func WithNulls(mem memory.Allocator, a arrow.Array, null func(i int) bool) arrow.Array {
	data := a.Data()
	if a.DataType().ID() == arrow.NULL {
		a.Retain()
		return a
	}
	size := data.Offset() + a.Len()
	bits := memory.NewResizableBuffer(mem)
	defer bits.Release()
	bits.Resize((size + 7) / 8)
	clear(bits.Bytes())
	nulls := 0
	for i := range a.Len() {
		if a.IsNull(i) || null(i) {
			nulls++
			continue
		}
		j := data.Offset() + i
		bits.Bytes()[j>>3] |= 1 << (j & 7)
	}
	buffers := append([]*memory.Buffer{bits}, data.Buffers()[1:]...)
	var out *array.Data
	if a.DataType().ID() == arrow.DICTIONARY {
		dict := data.Dictionary().(*array.Data)
		out = array.NewDataWithDictionary(a.DataType(), a.Len(), buffers, nulls, data.Offset(), dict)
	} else {
		out = array.NewData(a.DataType(), a.Len(), buffers, data.Children(), nulls, data.Offset())
	}
	defer out.Release()
	return array.MakeFromData(out)
}

// Watch counts what is asked of a Reader. When t ends it must have been closed.
func Watch(t testing.TB, r columnar.Reader) *Watched {
	w := &Watched{Reader: r}
	t.Cleanup(func() {
		if w.Closes == 0 {
			t.Errorf("a Reader was not closed")
		}
	})
	return w
}

// Watched is a Reader that counts.
type Watched struct {
	columnar.Reader
	Batches, Closes int
}

// Next counts a batch and passes it on.
func (w *Watched) Next(ctx context.Context) (arrow.RecordBatch, error) {
	b, err := w.Reader.Next(ctx)
	if err == nil {
		w.Batches++
	}
	return b, err
}

// Close counts a close and passes it on.
func (w *Watched) Close() error {
	w.Closes++
	return w.Reader.Close()
}
