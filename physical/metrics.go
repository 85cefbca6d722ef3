package physical

import (
	"context"
	"errors"
	"io"
	"sync"
	"sync/atomic"
	"time"

	"github.com/apache/arrow-go/v18/arrow"

	"github.com/tidemill/tidemill/columnar"
	"github.com/tidemill/tidemill/logical/connector"
)

// Metrics counts what the operators of one run do. Its zero value is ready; it is
// safe for concurrent use. Methods of a nil *Metrics count nothing.
type Metrics struct {
	mu        sync.Mutex
	operators map[Plan]*OperatorMetrics
}

// OperatorMetrics is the counters of one operator, over all its Readers.
type OperatorMetrics struct {
	Rows    atomic.Int64 // given to the operator above
	Batches atomic.Int64
	// Nanos is the time spent in Next, children included, summed over Readers.
	Nanos  atomic.Int64
	Memory atomic.Int64 // reserved now
	Peak   atomic.Int64 // reserved at most
	scan   *connector.ScanStats
}

// ScanStats is what s counts, for an ExecContext.
func (m *Metrics) ScanStats(s *Scan) *connector.ScanStats {
	o := m.of(s)
	if o == nil {
		return nil
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	if o.scan == nil {
		o.scan = &connector.ScanStats{}
	}
	return o.scan
}

// Of is the counters of p, nil if it was not opened under m.
func (m *Metrics) Of(p Plan) *OperatorMetrics {
	if m == nil {
		return nil
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.operators[p]
}

// of is Of, making the counters on first use.
func (m *Metrics) of(p Plan) *OperatorMetrics {
	if m == nil {
		return nil
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.operators == nil {
		m.operators = map[Plan]*OperatorMetrics{}
	}
	o := m.operators[p]
	if o == nil {
		o = &OperatorMetrics{}
		m.operators[p] = o
	}
	return o
}

// memory counts a change of what is reserved.
func (o *OperatorMetrics) memory(change int64) {
	if o == nil {
		return
	}
	now := o.Memory.Add(change)
	for p := o.Peak.Load(); now > p && !o.Peak.CompareAndSwap(p, now); p = o.Peak.Load() {
	}
}

// observe wraps readers of p so that they count.
func (m *Metrics) observe(p Plan, readers []columnar.Reader) []columnar.Reader {
	if m == nil {
		return readers
	}
	o := m.of(p)
	out := make([]columnar.Reader, len(readers))
	for i, r := range readers {
		out[i] = &countingReader{Reader: r, metrics: o}
	}
	return out
}

type countingReader struct {
	columnar.Reader
	metrics *OperatorMetrics
}

func (r *countingReader) Next(ctx context.Context) (arrow.RecordBatch, error) {
	start := time.Now()
	b, err := r.Reader.Next(ctx)
	r.metrics.Nanos.Add(int64(time.Since(start)))
	if err == nil {
		r.metrics.Rows.Add(b.NumRows())
		r.metrics.Batches.Add(1)
	}
	return b, err
}

func (r *countingReader) Position() int64 { return PositionOf(r.Reader) }

// observed wraps readers of p so that ec.Observe sees their batches.
func (ec *ExecContext) observed(p Plan, readers []columnar.Reader) []columnar.Reader {
	if ec.Observe == nil {
		return readers
	}
	ec.Observe(p, nil)
	out := make([]columnar.Reader, len(readers))
	for i, r := range readers {
		out[i] = &observedReader{Reader: r, plan: p, observe: ec.Observe}
	}
	return out
}

type observedReader struct {
	columnar.Reader
	plan    Plan
	observe func(p Plan, b arrow.RecordBatch)
}

func (r *observedReader) Next(ctx context.Context) (arrow.RecordBatch, error) {
	b, err := r.Reader.Next(ctx)
	if err == nil {
		r.observe(r.plan, b)
	}
	return b, err
}

func (r *observedReader) Position() int64 { return PositionOf(r.Reader) }

// unwrapped is the operator's own Reader below what counts, and its counters.
func unwrapped(r columnar.Reader) (columnar.Reader, *OperatorMetrics) {
	if c, ok := r.(*countingReader); ok {
		return c.Reader, c.metrics
	}
	return r, nil
}

func isEnd(err error) bool { return errors.Is(err, io.EOF) }
