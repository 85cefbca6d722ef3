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
// after another. Where positions have no room for all inputs there is one Reader.
func (p *Union) Open(ctx context.Context, ec *ExecContext, n int) ([]columnar.Reader, error) {
	var out []*unionReader
	counted := p.spans() > maxSpans
	first := int64(0)
	for _, in := range p.Inputs {
		readers, err := openAs(ctx, ec, in, n, counted)
		if err != nil {
			for _, r := range out {
				_ = r.Close() // the first error counts
			}
			return nil, err
		}
		room := positionSpans(in) << spanShift
		for k, r := range readers {
			if k == len(out) {
				out = append(out, &unionReader{schema: p.schema, counted: counted})
			}
			out[k].parts = append(out[k].parts, unionPart{r, first, room})
		}
		first += room
	}
	readers := make([]columnar.Reader, len(out))
	for i, r := range out {
		readers[i] = r
	}
	return readers, nil
}

// unionPart is an input and the positions that are its own.
type unionPart struct {
	reader      columnar.Reader
	first, room int64
}

// A span is the positions of an input that is no Union: 32,768 units of 2^40 rows. Beyond
// that rows of an input may come in another order.
const (
	spanShift = 55
	maxSpans  = 1<<(63-spanShift) - 1
)

// spans is the number of spans that the inputs take up.
func (p *Union) spans() int64 {
	n := int64(0)
	for _, in := range p.Inputs {
		n += positionSpans(in)
	}
	return n
}

// positionSpans is the number of spans that the positions of p take up at most.
func positionSpans(p Plan) int64 {
	if u, ok := p.(*Union); ok {
		if n := u.spans(); n <= maxSpans {
			return n
		}
		return 1 // its rows are counted
	}
	n := int64(1)
	for _, c := range p.Children() {
		n = max(n, positionSpans(c))
	}
	return n
}

type unionReader struct {
	schema   *arrow.Schema
	parts    []unionPart
	counted  bool // the position is the number of rows before
	rows     int64
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
		r.position = p.first + min(PositionOf(p.reader), p.room-1)
		if r.counted {
			r.position = r.rows
			r.rows += b.NumRows()
		}
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
