package physical

import (
	"context"
	"strings"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/memory"

	"github.com/tidemill/tidemill/columnar"
)

// Run opens p and returns its rows as one Reader, in order, plain (no dictionaries)
// and without hidden columns. ec must live until the Reader is closed.
func Run(ctx context.Context, p Plan, ec *ExecContext) (columnar.Reader, error) {
	run := *ec
	run.stop = ctx.Err
	run.shared = &sharedRuns{runs: map[int]*sharedRun{}}
	in, err := OpenOne(ctx, &run, p)
	if err != nil {
		return nil, err
	}
	r := &rootReader{mem: ec.Mem, partBytes: ec.PartBytes()}
	var fields []arrow.Field
	for i, f := range p.Schema().Fields() {
		if !strings.HasPrefix(f.Name, "\x00") {
			fields = append(fields, f)
			r.columns = append(r.columns, i)
		}
	}
	r.operator = operator{schema: arrow.NewSchema(fields, nil), input: in}
	return r, nil
}

// Collect runs p to its end. The batches are the caller's.
func Collect(ctx context.Context, p Plan, ec *ExecContext) ([]arrow.RecordBatch, error) {
	r, err := Run(ctx, p, ec)
	if err != nil {
		return nil, err
	}
	batches, err := columnar.Drain(ctx, r)
	if closeErr := r.Close(); err == nil && closeErr != nil {
		releaseBatches(batches)
		return nil, closeErr
	}
	return batches, err
}

// rootReader holds a batch of which some rows are still to be given.
type rootReader struct {
	operator
	mem       memory.Allocator
	columns   []int
	partBytes int64
	batch     arrow.RecordBatch
}

func (r *rootReader) Next(ctx context.Context) (arrow.RecordBatch, error) {
	b := r.batch
	if r.batch = nil; b == nil {
		var err error
		if b, err = r.input.Next(ctx); err != nil {
			return nil, err
		}
	}
	if n := plainRows(b, r.partBytes); n < b.NumRows() {
		r.batch = b.NewSlice(n, b.NumRows())
		part := b.NewSlice(0, n)
		b.Release()
		b = part
	}
	defer b.Release()
	columns := make([]arrow.Array, len(r.columns))
	for i, c := range r.columns {
		columns[i] = columnar.PlainColumn(r.mem, b.Column(c))
	}
	return takeBatch(r.schema, columns, b.NumRows()), nil
}

func (r *rootReader) Close() error {
	if r.batch != nil {
		r.batch.Release()
		r.batch = nil
	}
	return r.input.Close()
}

// plainRows is how many rows of b to give at once, so that writing out its dictionaries takes
// no more than most bytes: one at least.
func plainRows(b arrow.RecordBatch, most int64) int64 {
	n := b.NumRows()
	for _, c := range b.Columns() {
		d, ok := c.(*array.Dictionary)
		if !ok || n < 2 || columnar.DataBytes(d.Dictionary().Data())*n <= most {
			continue
		}
		for n > 1 && columnar.PlainBytes(d, int(n)) > most {
			n /= 2
		}
	}
	return n
}
