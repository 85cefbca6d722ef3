package logical

import (
	"fmt"
	"time"

	"github.com/tidemill/tidemill/columnar"
	"github.com/tidemill/tidemill/logical/expr"
)

// Watermark marks a column as event time: the watermark trails the largest value
// seen by Delay. Over bounded data it does nothing.
type Watermark struct {
	unary
	Column expr.ID
	Delay  time.Duration // not negative; a month counts 31 days
	// Label is the stable name of this watermark node in checkpoints: the stream's
	// name and the column's.
	Label string
}

// NewWatermark declares the event time of input.
func NewWatermark(input Node, column expr.ID, delay time.Duration, label string) *Watermark {
	return &Watermark{unary{input}, column, delay, label}
}

func (w *Watermark) Schema() *Schema { return w.Input.Schema() }
func (w *Watermark) WithChildren(c []Node) Node {
	return NewWatermark(c[0], w.Column, w.Delay, w.Label)
}

// Exprs is the event-time column, so that rewriting and pruning see it used.
func (w *Watermark) Exprs() []expr.Expr {
	if i := w.Input.Schema().Index(w.Column); i >= 0 {
		return []expr.Expr{w.Input.Schema().Columns[i]}
	}
	return nil
}
func (w *Watermark) WithExprs(exprs []expr.Expr) Node {
	if c, ok := exprs[0].(*expr.Column); ok {
		return NewWatermark(w.Input, c.ID, w.Delay, w.Label)
	}
	return w
}
func (w *Watermark) String() string {
	name := "?"
	if i := w.Input.Schema().Index(w.Column); i >= 0 {
		name = w.Input.Schema().Columns[i].Name
	}
	return fmt.Sprintf("Watermark %s delay=%s", name, w.Delay)
}

// Window gives each row the event-time windows it falls into: a tumbling or hopping
// window repeats the row once a window; a session window gives it the session it is in,
// of all rows of its partition, or if it is Grouped [t, t+gap). Rows whose time is null are dropped, and so are
// rows whose gap is null, not positive or unreadable. Output is the input's columns,
// then start and end (TIMESTAMP).
type Window struct {
	unary
	Time  expr.Expr // TIMESTAMP
	Spec  expr.WindowSpec
	Start *expr.Column // window_start
	End   *expr.Column // window_end
	// PartitionKeys are the keys of SESSION(t, ts, gap, key…); nil for the others.
	PartitionKeys []expr.Expr
	// Grouped is set for session_window(…) in GROUP BY: the aggregate above merges the
	// sessions of the rows it is given, by its other keys.
	Grouped bool
}

// MostWindows is how many sliding windows one row may be in: more would be a slip of the
// unit, and no memory would do.
const MostWindows = 100_000

// NewWindow assigns windows; fresh IDs for start and end.
func NewWindow(input Node, time expr.Expr, spec expr.WindowSpec, keys []expr.Expr) *Window {
	return &Window{
		unary: unary{input}, Time: time, Spec: spec, PartitionKeys: keys,
		Start: &expr.Column{ID: expr.NewID(), Name: "window_start", DataType: columnar.Timestamp},
		End:   &expr.Column{ID: expr.NewID(), Name: "window_end", DataType: columnar.Timestamp},
	}
}

// IsSession says whether it is a session window.
func (w *Window) IsSession() bool { return w.Spec.Gap != nil }

func (w *Window) Schema() *Schema {
	in := w.Input.Schema().Columns
	return NewSchema(append(in[:len(in):len(in)], w.Start, w.End)...)
}
func (w *Window) WithChildren(c []Node) Node {
	n := *w
	n.Input = c[0]
	return &n
}

// Exprs are the time, the gap of a session, and the partition keys.
func (w *Window) Exprs() []expr.Expr {
	out := []expr.Expr{w.Time}
	if w.Spec.Gap != nil {
		out = append(out, w.Spec.Gap)
	}
	return append(out, w.PartitionKeys...)
}
func (w *Window) WithExprs(exprs []expr.Expr) Node {
	n := *w
	n.Time, exprs = exprs[0], exprs[1:]
	if w.Spec.Gap != nil {
		n.Spec.Gap, exprs = exprs[0], exprs[1:]
	}
	n.PartitionKeys = exprs
	return &n
}
func (w *Window) String() string {
	us := func(n int64) time.Duration { return time.Duration(n) * time.Microsecond }
	switch {
	case w.IsSession():
		return fmt.Sprintf("Window session time=%s gap=%s", w.Time, w.Spec.Gap)
	case w.Spec.Slide == w.Spec.Size && w.Spec.Start == 0:
		return fmt.Sprintf("Window tumble time=%s size=%s", w.Time, us(w.Spec.Size))
	}
	return fmt.Sprintf("Window hop time=%s size=%s slide=%s start=%s", w.Time, us(w.Spec.Size), us(w.Spec.Slide), us(w.Spec.Start))
}
