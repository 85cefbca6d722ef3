package stateful

import (
	"context"
	"fmt"

	"github.com/apache/arrow-go/v18/arrow"

	"github.com/tidemill/tidemill/columnar"
	"github.com/tidemill/tidemill/physical"
)

// Observer is told the event times of rows at a Watermark node: the smallest and
// largest, their sum and number. It is safe for concurrent use.
type Observer interface {
	Observe(label string, least, most int64, sum float64, n int64)
}

// Observe passes rows through and tells an Observer their event times. Every row that
// reaches it counts, late ones too; nulls do not.
type Observe struct {
	input    physical.Plan
	column   int
	label    string
	delay    string
	observer Observer
}

// NewObserve watches a TIMESTAMP column of input.
func NewObserve(input physical.Plan, column int, label, delay string, o Observer) *Observe {
	return &Observe{input: input, column: column, label: label, delay: delay, observer: o}
}

// Schema is the input's.
func (p *Observe) Schema() *arrow.Schema { return p.input.Schema() }

// Children is the input.
func (p *Observe) Children() []physical.Plan { return []physical.Plan{p.input} }

// WithChildren watches another input.
func (p *Observe) WithChildren(c []physical.Plan) physical.Plan {
	n := *p
	n.input = c[0]
	return &n
}

func (p *Observe) String() string {
	return fmt.Sprintf("Watermark column=%s delay=%s", p.input.Schema().Field(p.column).Name, p.delay)
}

// Open watches each Reader of the input.
func (p *Observe) Open(ctx context.Context, ec *physical.ExecContext, n int) ([]columnar.Reader, error) {
	inputs, err := physical.Open(ctx, ec, p.input, n)
	if err != nil {
		return nil, err
	}
	for i, in := range inputs {
		inputs[i] = &observeReader{Reader: in, plan: p}
	}
	return inputs, nil
}

type observeReader struct {
	columnar.Reader
	plan *Observe
}

// Position is the input's.
func (r *observeReader) Position() int64 { return physical.PositionOf(r.Reader) }

func (r *observeReader) Next(ctx context.Context) (arrow.RecordBatch, error) {
	b, err := r.Reader.Next(ctx)
	if err != nil {
		return nil, err
	}
	values, isNull := instants(b.Column(r.plan.column))
	var least, most, n int64
	sum := 0.0
	for i, t := range values {
		if isNull(i) {
			continue
		}
		if n == 0 || t < least {
			least = t
		}
		if n == 0 || t > most {
			most = t
		}
		sum += float64(t)
		n++
	}
	if n > 0 {
		r.plan.observer.Observe(r.plan.label, least, most, sum, n)
	}
	return b, nil
}
