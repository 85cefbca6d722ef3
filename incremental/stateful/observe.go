package stateful

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math"
	"sync/atomic"
	"time"

	"github.com/apache/arrow-go/v18/arrow"

	"github.com/tidemill/tidemill/columnar"
	"github.com/tidemill/tidemill/physical"
)

// Observer is told the event times of rows at a Watermark node: the smallest and
// largest, their sum and number. It is safe for concurrent use.
type Observer interface {
	Observe(label string, least, most int64, sum float64, n int64)
	// Future counts rows further ahead of the batch's clock than the stream allows:
	// they do not move the watermark.
	Future(n int64)
}

// ObserveSpec says what is watched.
type ObserveSpec struct {
	Column    int // a TIMESTAMP column
	Label     string
	Delay     time.Duration
	MaxFuture time.Duration // 0: any time is believed
	Observer  Observer
	// Ended, if not nil, is called once every row was observed.
	Ended func()
}

// Observe passes rows through and tells an Observer their event times. Every row that
// reaches it counts, late ones too; nulls do not.
type Observe struct {
	input physical.Plan
	spec  ObserveSpec
}

// NewObserve watches a column of input.
func NewObserve(input physical.Plan, spec ObserveSpec) *Observe { return &Observe{input, spec} }

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
	return fmt.Sprintf("Watermark column=%s delay=%s", p.input.Schema().Field(p.spec.Column).Name, p.spec.Delay)
}

// Open watches each Reader of the input.
func (p *Observe) Open(ctx context.Context, ec *physical.ExecContext, n int) ([]columnar.Reader, error) {
	inputs, err := physical.Open(ctx, ec, p.input, n)
	if err != nil {
		return nil, err
	}
	open := new(atomic.Int64)
	open.Store(int64(len(inputs)))
	for i, in := range inputs {
		r := &observeReader{Reader: in, spec: &p.spec, latest: math.MaxInt64, open: open}
		if p.spec.MaxFuture > 0 {
			r.latest = ec.Now + p.spec.MaxFuture.Microseconds()
		}
		inputs[i] = r
	}
	return inputs, nil
}

type observeReader struct {
	columnar.Reader
	spec   *ObserveSpec
	latest int64         // the latest time that is believed
	open   *atomic.Int64 // Readers of the same Open that have not come to their end
	ended  bool
}

// Position is the input's.
func (r *observeReader) Position() int64 { return physical.PositionOf(r.Reader) }

func (r *observeReader) Next(ctx context.Context) (arrow.RecordBatch, error) {
	b, err := r.Reader.Next(ctx)
	if err != nil {
		r.end(err)
		return nil, err
	}
	values, isNull := instants(b.Column(r.spec.Column))
	var least, most, n, future int64
	sum := 0.0
	for i, t := range values {
		if isNull(i) {
			continue
		}
		if t > r.latest {
			future++
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
		r.spec.Observer.Observe(r.spec.Label, least, most, sum, n)
	}
	if future > 0 {
		r.spec.Observer.Future(future)
	}
	return b, nil
}

// end tells the spec when the last Reader has come to its end.
func (r *observeReader) end(err error) {
	if r.ended || !errors.Is(err, io.EOF) {
		return
	}
	r.ended = true
	if r.open.Add(-1) == 0 && r.spec.Ended != nil {
		r.spec.Ended()
	}
}
