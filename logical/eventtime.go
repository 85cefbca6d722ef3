package logical

import (
	"time"

	"github.com/tidemill/tidemill/logical/expr"
)

// EventTime says how a column carries a watermark.
type EventTime struct {
	Kind EventTimeKind
	// Label is that of the Watermark node it comes from, Delay its delay.
	Label string
	Delay time.Duration
	// Offset is what must be added to the column to get the instant at which the
	// watermark closes it: zero for a time, a window's and a session's end, the size for
	// a window's start.
	Offset int64 // microseconds
	// IsStart is set for a session's start, from which its end cannot be told.
	IsStart bool
}

// EventTimeKind is raw time or a window's bound.
type EventTimeKind uint8

const (
	RawTime     EventTimeKind = iota // the row's own time: late when at or before the watermark
	WindowTime                       // a window's start or end: closed when its end is at or before it
	SessionTime                      // a session's start or end
)

// EventTimes finds the output columns of n that carry a watermark: the declared
// column itself, the bounds of windows over it, and what passes them through
// projections, aliases, unions, grouping keys and joins.
func EventTimes(n Node) map[expr.ID]EventTime {
	marks := map[expr.ID]EventTime{}
	switch x := n.(type) {
	case *Watermark:
		inherit(marks, x.Input)
		marks[x.Column] = EventTime{Kind: RawTime, Label: x.Label, Delay: x.Delay}
	case *Window:
		below := EventTimes(x.Input)
		inherit(marks, x.Input)
		if m, ok := markOf(x.Time, below); ok {
			windowMarks(marks, x, m)
		}
	case *Project:
		named(marks, x.Columns, EventTimes(x.Input))
	case *Aggregate:
		named(marks, x.Keys, EventTimes(x.Input))
	case *Union:
		unionMarks(marks, x)
	case *Scan, *StreamScan, *Values:
	case *Join:
		inherit(marks, x.Left)
		if x.Kind != SemiJoin && x.Kind != AntiJoin {
			inherit(marks, x.Right)
		}
	default:
		for _, c := range n.Children() {
			inherit(marks, c)
		}
	}
	return marks
}

func inherit(marks map[expr.ID]EventTime, n Node) {
	for id, m := range EventTimes(n) {
		marks[id] = m
	}
}

func windowMarks(marks map[expr.ID]EventTime, w *Window, m EventTime) {
	if w.IsSession() {
		marks[w.End.ID] = EventTime{Kind: SessionTime, Label: m.Label, Delay: m.Delay}
		marks[w.Start.ID] = EventTime{Kind: SessionTime, Label: m.Label, Delay: m.Delay, IsStart: true}
		return
	}
	marks[w.End.ID] = EventTime{Kind: WindowTime, Label: m.Label, Delay: m.Delay}
	marks[w.Start.ID] = EventTime{Kind: WindowTime, Label: m.Label, Delay: m.Delay, Offset: w.Spec.Size}
}

// markOf is the mark of an expression: of a column, of a name for one, or of
// window_time over one.
func markOf(e expr.Expr, below map[expr.ID]EventTime) (EventTime, bool) {
	switch x := e.(type) {
	case *expr.Column:
		m, ok := below[x.ID]
		return m, ok
	case *expr.Call:
		if x.Func.Name == WindowTimeFunction && len(x.Args) == 1 {
			m, ok := markOf(x.Args[0], below)
			m.Kind = RawTime
			return m, ok
		}
	}
	return EventTime{}, false
}

// WindowTimeFunction is the scalar function over a window's end that gives its last
// instant, end minus one microsecond; it carries the watermark.
const WindowTimeFunction = "window_time"

func named(marks map[expr.ID]EventTime, columns []expr.Named, below map[expr.ID]EventTime) {
	for _, c := range columns {
		if m, ok := markOf(c.Expr, below); ok {
			marks[c.ID] = m
		}
	}
}

// unionMarks marks a column that carries a watermark in every input, closed by the
// same rule. The longest delay counts.
func unionMarks(marks map[expr.ID]EventTime, u *Union) {
	for i, c := range u.Output.Columns {
		var mark EventTime
		everywhere := true
		for k, in := range u.Inputs {
			m, ok := EventTimes(in)[in.Schema().Columns[i].ID]
			if k == 0 {
				mark = m
			}
			everywhere = everywhere && ok && m.Kind == mark.Kind && m.Offset == mark.Offset && m.IsStart == mark.IsStart
			mark.Delay = max(mark.Delay, m.Delay)
		}
		if everywhere {
			marks[c.ID] = mark
		}
	}
}
