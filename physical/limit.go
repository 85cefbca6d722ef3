package physical

import (
	"context"
	"fmt"
	"io"

	"github.com/apache/arrow-go/v18/arrow"

	"github.com/tidemill/tidemill/columnar"
	"github.com/tidemill/tidemill/logical"
)

// Limit skips Offset rows, in the order of arrival, and gives the next Count
// (logical.NoLimit: all). It gives one Reader.
type Limit struct {
	unaryPlan
	Count, Offset int64
	// Serial reads the input with one Reader: nothing is read ahead.
	Serial bool
}

// NewLimit limits input.
func NewLimit(input Plan, count, offset int64, serial bool) *Limit {
	return &Limit{unaryPlan{input}, count, offset, serial}
}

func (p *Limit) Schema() *arrow.Schema { return p.Input.Schema() }

// WithChildren limits another input.
func (p *Limit) WithChildren(c []Plan) Plan { return NewLimit(c[0], p.Count, p.Offset, p.Serial) }

func (p *Limit) String() string {
	count, offset := "", ""
	if p.Count != logical.NoLimit {
		count = fmt.Sprint(p.Count)
	}
	if p.Offset > 0 {
		offset = fmt.Sprint(p.Offset)
	}
	return args("Limit", "count", count, "offset", offset)
}

// Open gathers the input.
func (p *Limit) Open(ctx context.Context, ec *ExecContext, _ int) ([]columnar.Reader, error) {
	n := ec.parallel()
	if p.Serial {
		n = 1
	}
	inputs, err := Open(ctx, ec, p.Input, n)
	if err != nil {
		return nil, err
	}
	r := &limitReader{operator: operator{schema: p.Schema(), input: Gather(ec, p.Schema(), inputs)}, skip: p.Offset, left: p.Count}
	if p.Count == logical.NoLimit {
		r.left = 1<<63 - 1
	}
	return []columnar.Reader{r}, nil
}

type limitReader struct {
	operator
	skip, left int64
}

func (r *limitReader) Next(ctx context.Context) (arrow.RecordBatch, error) {
	for r.left > 0 {
		b, err := r.input.Next(ctx)
		if err != nil {
			return nil, err
		}
		n := b.NumRows()
		if n <= r.skip {
			r.skip -= n
			b.Release()
			continue
		}
		from, to := r.skip, n
		if r.left < n-from {
			to = from + r.left
		}
		r.skip = 0
		r.left -= to - from
		if from == 0 && to == n {
			return b, nil
		}
		out := b.NewSlice(from, to)
		b.Release()
		return out, nil
	}
	// Nothing more is wanted: let the input go now, not when the query ends.
	if err := r.input.Close(); err != nil {
		return nil, err
	}
	return nil, io.EOF
}
