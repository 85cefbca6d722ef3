package stateful

import (
	"cmp"
	"context"
	"io"
	"slices"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"

	"github.com/tidemill/tidemill/columnar"
	"github.com/tidemill/tidemill/columnar/kernel"
	"github.com/tidemill/tidemill/physical"
)

// inOrder gives the rows of an exchange in the order of their ordinals, which several
// workers have mixed up. It reads its input to the end first.
type inOrder struct {
	input   columnar.Reader
	ec      *physical.ExecContext
	read    bool
	batches []arrow.RecordBatch // plain
	refs    []kernel.Ref        // the order of their rows; nil: as they stand
	at      int                 // of refs, or of batches
	held    int64
}

func (r *inOrder) Schema() *arrow.Schema { return r.input.Schema() }

func (r *inOrder) Next(ctx context.Context) (arrow.RecordBatch, error) {
	if !r.read {
		if err := r.readAll(ctx); err != nil {
			return nil, err
		}
	}
	if r.refs == nil {
		if r.at == len(r.batches) {
			return nil, io.EOF
		}
		b := r.batches[r.at]
		b.Retain()
		r.at++
		return b, nil
	}
	if r.at == len(r.refs) {
		return nil, io.EOF
	}
	to := min(r.at+r.ec.PartRows(r.held, len(r.refs)), len(r.refs))
	b, err := kernel.GatherBatch(r.ec.Mem, r.batches[0].Schema(), r.batches, r.refs[r.at:to])
	r.at = to
	return b, err
}

func (r *inOrder) Close() error {
	for _, b := range r.batches {
		b.Release()
	}
	r.ec.Budget.Return(r.held)
	r.batches, r.refs, r.held, r.at, r.read = nil, nil, 0, 0, true
	return r.input.Close()
}

func (r *inOrder) readAll(ctx context.Context) error {
	r.read = true
	for {
		b, err := r.input.Next(ctx)
		if err == io.EOF {
			break
		}
		if err != nil {
			return err
		}
		plain := columnar.Plain(r.ec.Mem, b)
		b.Release()
		r.batches = append(r.batches, plain)
		n := physical.BatchBytes(plain)
		if err := r.ec.Budget.Reserve("join", n); err != nil {
			return err
		}
		r.held += n
	}
	r.order()
	return nil
}

// order sorts the rows, if they must be. Rows of one ordinal, which a hopping window
// has made of one, keep the order in which they came.
func (r *inOrder) order() {
	lengths, sorted, last := make([]int, len(r.batches)), true, int64(-1)
	for i, b := range r.batches {
		lengths[i] = int(b.NumRows())
		for _, o := range ordinalsOf(b) {
			sorted = sorted && o >= last
			last = o
		}
	}
	if sorted {
		return
	}
	columns := make([][]int64, len(r.batches))
	for i, b := range r.batches {
		columns[i] = ordinalsOf(b)
	}
	r.refs = kernel.AllRefs(lengths...)
	slices.SortStableFunc(r.refs, func(a, b kernel.Ref) int {
		return cmp.Compare(columns[a.Batch()][a.Row()], columns[b.Batch()][b.Row()])
	})
}

// ordinalsOf is the hidden last column of b.
func ordinalsOf(b arrow.RecordBatch) []int64 {
	return b.Column(int(b.NumCols()) - 1).(*array.Int64).Int64Values()
}
