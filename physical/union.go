package physical

import (
	"context"
	"io"

	"github.com/apache/arrow-go/v18/arrow"

	"github.com/tidemill/tidemill/columnar"
)

// Union is all rows of its inputs, in order of the inputs.
type Union struct {
	Inputs []Plan
	schema *arrow.Schema
}

// NewUnion concatenates inputs of the same column types; schema names the columns.
func NewUnion(schema *arrow.Schema, inputs ...Plan) *Union { return &Union{inputs, schema} }

func (p *Union) Schema() *arrow.Schema { return p.schema }

// Children are the inputs.
func (p *Union) Children() []Plan { return p.Inputs }

// WithChildren concatenates other inputs.
func (p *Union) WithChildren(c []Plan) Plan { return NewUnion(p.schema, c...) }

func (p *Union) String() string { return "Union" }

// Open opens each input with n Readers; Reader i is the i-th ones of all inputs, one
// after another.
func (p *Union) Open(ctx context.Context, ec *ExecContext, n int) ([]columnar.Reader, error) {
	var out []*unionReader
	for i, in := range p.Inputs {
		readers, err := Open(ctx, ec, in, n)
		if err != nil {
			for _, r := range out {
				_ = r.Close() // the first error counts
			}
			return nil, err
		}
		for k, r := range readers {
			if k == len(out) {
				out = append(out, &unionReader{schema: p.schema})
			}
			out[k].parts = append(out[k].parts, unionPart{r, int64(i)})
		}
	}
	readers := make([]columnar.Reader, len(out))
	for i, r := range out {
		readers[i] = r
	}
	return readers, nil
}

type unionPart struct {
	reader columnar.Reader
	input  int64
}

// inputShift leaves 2^8 inputs and 2^55 positions below them: 32,768 units of 2^40
// rows. Beyond that rows of an input may come before those of an earlier one.
const inputShift = 55

type unionReader struct {
	schema   *arrow.Schema
	parts    []unionPart
	position int64
}

func (r *unionReader) Schema() *arrow.Schema { return r.schema }

func (r *unionReader) Position() int64 { return r.position }

func (r *unionReader) Next(ctx context.Context) (arrow.RecordBatch, error) {
	for len(r.parts) > 0 {
		p := r.parts[0]
		b, err := p.reader.Next(ctx)
		if isEnd(err) {
			r.parts = r.parts[1:]
			if err := p.reader.Close(); err != nil {
				return nil, err
			}
			continue
		}
		if err != nil {
			return nil, err
		}
		r.position = min(PositionOf(p.reader), 1<<inputShift-1) | min(p.input, 127)<<inputShift
		defer b.Release()
		return takeBatch(r.schema, retained(b.Columns()), b.NumRows()), nil
	}
	return nil, io.EOF
}

func (r *unionReader) Close() error {
	var first error
	for _, p := range r.parts {
		if err := p.reader.Close(); err != nil && first == nil {
			first = err
		}
	}
	r.parts = nil
	return first
}
