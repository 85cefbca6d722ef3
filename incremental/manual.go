package incremental

import (
	"context"

	"github.com/google/uuid"
)

// Manual runs a query one micro-batch at a time, in the caller's goroutine: for tests
// and for replaying.
type Manual struct {
	x *streamExecution
	q *Query
}

// OpenManual opens a query and recovers: what an earlier run left open is finished.
func OpenManual(ctx context.Context, cfg Config) (*Manual, error) {
	cfg = cfg.withDefaults()
	x, err := open(ctx, cfg)
	if err != nil {
		return nil, err
	}
	x.q = newQuery(cfg, x.dir.Metadata().ID, uuid.NewString(), func() {})
	m := &Manual{x: x, q: x.q}
	if err := x.recover(ctx); err != nil {
		_ = x.close()
		return nil, err
	}
	return m, nil
}

// Step runs the next batch, with data or to evict; ran is false if there is nothing to
// do.
func (m *Manual) Step(ctx context.Context) (ran bool, err error) {
	return m.x.step(ctx, dataOrEviction)
}

// RunAhead lets Step begin the next batch while it publishes one, as a query does whose
// trigger does not wait.
func (m *Manual) RunAhead() { m.x.eager = true }

// NextBatch is the id of the next batch, which is also the version of the state.
func (m *Manual) NextBatch() int64 { return m.x.currentBatchID }

// Watermarks are the one the last batch evicted by and the one of the next batch, as
// text, "-" for none; declared is false for a query without.
func (m *Manual) Watermarks() (last, next string, declared bool) {
	text := func(w *int64) string {
		if w == nil {
			return "-"
		}
		return formatTime(*w)
	}
	w := m.x.watermarks
	return text(w.late), text(w.evict), w.declared()
}

// LastProgress is the report of the last batch; ok is false before the first.
func (m *Manual) LastProgress() (p Progress, ok bool) { return m.q.LastProgress() }

// Close releases the checkpoint and the output.
func (m *Manual) Close() error { return m.x.close() }
