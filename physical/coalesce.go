package physical

import (
	"context"

	"github.com/apache/arrow-go/v18/arrow"

	"github.com/tidemill/tidemill/columnar"
	"github.com/tidemill/tidemill/columnar/kernel"
)

// Coalesce fills thin batches up: each Reader puts consecutive batches together until
// they have about BatchRows rows, or as many bytes as a batch of wide values should have.
type Coalesce struct{ unaryPlan }

// NewCoalesce fills up the batches of input.
func NewCoalesce(input Plan) *Coalesce { return &Coalesce{unaryPlan{input}} }

func (p *Coalesce) Schema() *arrow.Schema { return p.Input.Schema() }

// WithChildren fills up the batches of another input.
func (p *Coalesce) WithChildren(c []Plan) Plan { return NewCoalesce(c[0]) }

func (p *Coalesce) String() string { return "Coalesce" }

// Open fills up each Reader of the input.
func (p *Coalesce) Open(ctx context.Context, ec *ExecContext, n int) ([]columnar.Reader, error) {
	return each(ctx, ec, p.Input, n, func(in columnar.Reader) columnar.Reader {
		return &coalesceReader{operator: operator{schema: p.Schema(), input: in}, ec: ec}
	})
}

type coalesceReader struct {
	operator
	ec       *ExecContext
	held     []arrow.RecordBatch
	rows     int64
	bytes    int64
	position int64 // of the first held
	given    int64 // of the batch returned last
	ended    error
}

func (r *coalesceReader) Position() int64 { return r.given }

func (r *coalesceReader) Next(ctx context.Context) (arrow.RecordBatch, error) {
	full := int64(r.ec.batchRows())
	for r.ended == nil {
		b, err := r.input.Next(ctx)
		if err != nil && !isEnd(err) {
			return nil, err
		}
		if err != nil {
			r.ended = err
			break
		}
		// What follows must belong behind what is held also for a merge with other
		// Readers: the same unit.
		position := PositionOf(r.input)
		sameUnit := len(r.held) == 0 || position>>columnar.OrdinalShift == r.position>>columnar.OrdinalShift
		if !sameUnit || r.rows+b.NumRows() > full || r.bytes > r.ec.PartBytes() {
			out, err := r.flush()
			r.hold(b, position)
			if out != nil || err != nil {
				return out, err
			}
		} else {
			r.hold(b, position)
		}
		if r.rows >= full-full/4 {
			return r.flush()
		}
	}
	if out, err := r.flush(); out != nil || err != nil {
		return out, err
	}
	return nil, r.ended
}

func (r *coalesceReader) hold(b arrow.RecordBatch, position int64) {
	if len(r.held) == 0 {
		r.position = position
	}
	r.held = append(r.held, b)
	r.rows += b.NumRows()
	r.bytes += batchBytes(b)
}

// flush is what is held as one batch; nil if nothing is.
func (r *coalesceReader) flush() (arrow.RecordBatch, error) {
	if len(r.held) == 0 {
		return nil, nil
	}
	out, err := kernel.ConcatBatches(r.ec.Mem, r.schema, r.held)
	if err != nil {
		return nil, err
	}
	r.given = r.position
	r.drop()
	return out, nil
}

func (r *coalesceReader) drop() {
	releaseBatches(r.held)
	clear(r.held)
	r.held, r.rows, r.bytes = r.held[:0], 0, 0
}

func (r *coalesceReader) Close() error {
	r.drop()
	return r.input.Close()
}
