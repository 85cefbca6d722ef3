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
	// IsOpen is set where no watermark tells that the column's value is finished: of a
	// session's start, from which its end cannot be told, and of what is made of that.
	IsOpen bool
	// pair is set for the struct of a window's start and end; the other fields are then
	// those of its end, and start is the mark of its start.
	pair  bool
	start *EventTime
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
	marks := eventTimes(n)
	for id, m := range marks {
		if m.pair {
			delete(marks, id) // only its fields are times
		}
	}
	return marks
}

// eventTimes is EventTimes with the structs of windows, whose fields are times.
func eventTimes(n Node) map[expr.ID]EventTime {
	marks := map[expr.ID]EventTime{}
	switch x := n.(type) {
	case *Watermark:
		inherit(marks, x.Input)
		marks[x.Column] = EventTime{Kind: RawTime, Label: x.Label, Delay: x.Delay}
	case *Window:
		below := eventTimes(x.Input)
		inherit(marks, x.Input)
		if m, ok := markOf(x.Time, below); ok {
			windowMarks(marks, x, m)
		}
	case *Project:
		named(marks, x.Columns, eventTimes(x.Input))
	case *Aggregate:
		named(marks, x.Keys, eventTimes(x.Input))
	case *Union:
		unionMarks(marks, x)
	case *Scan, *StreamScan, *Values, *MapGroups:
	case *Join:
		inherit(marks, x.Left)
		if x.Kind != SemiJoin && x.Kind != AntiJoin {
			inherit(marks, x.Right)
		}
	case *AsofJoin: // which row of the right side is nearest says nothing of its time
		inherit(marks, x.Left)
	default:
		for _, c := range n.Children() {
			inherit(marks, c)
		}
	}
	return marks
}

func inherit(marks map[expr.ID]EventTime, n Node) {
	for id, m := range eventTimes(n) {
		marks[id] = m
	}
}

// windowMarks marks the bounds of a window over a time. Of a time that is closed late, as
// a window's start is by its size, the bounds are, too.
func windowMarks(marks map[expr.ID]EventTime, w *Window, m EventTime) {
	end := EventTime{Kind: WindowTime, Label: m.Label, Delay: m.Delay, Offset: m.Offset, IsOpen: m.IsOpen}
	start := end
	if w.IsSession() {
		end.Kind, end.Offset, end.IsOpen = SessionTime, 0, m.IsOpen || m.Offset != 0
		start = end
		start.IsOpen = true
	} else {
		start.Offset += w.Spec.Size
	}
	marks[w.End.ID], marks[w.Start.ID] = end, start
}

// markOf is the mark of an expression that is a time: of a column, of a name for one,
// of window_time over one, or of a bound taken out of the struct of a window.
func markOf(e expr.Expr, below map[expr.ID]EventTime) (EventTime, bool) {
	m, ok := anyMark(e, below)
	return m, ok && !m.pair
}

// anyMark is markOf that knows the structs of windows, too.
func anyMark(e expr.Expr, below map[expr.ID]EventTime) (EventTime, bool) {
	x, ok := e.(*expr.Call)
	if !ok {
		c, ok := e.(*expr.Column)
		if !ok {
			return EventTime{}, false
		}
		m, ok := below[c.ID]
		return m, ok
	}
	if of, field, ok := expr.FieldOf(x); ok {
		m, ok := anyMark(of, below)
		return m.bound(field), ok && m.pair
	}
	switch {
	case x.Func.Name == WindowTimeFunction && len(x.Args) == 1:
		m, ok := markOf(x.Args[0], below)
		m.Kind = RawTime
		return m, ok
	case x.Func.Name == expr.StructName && len(x.Args) == 2:
		start, ok1 := markOf(x.Args[0], below)
		m, ok2 := markOf(x.Args[1], below)
		m.pair, m.start = true, &start
		return m, ok1 && ok2 && start.Kind == m.Kind && m.Kind != RawTime && m.Offset == 0 && !m.IsOpen
	}
	return EventTime{}, false
}

// bound is the mark of one field of the struct of a window.
func (t EventTime) bound(field string) EventTime {
	if !t.pair {
		return EventTime{}
	}
	if field == "start" {
		return *t.start
	}
	t.pair, t.start = false, nil
	return t
}

// WindowTimeFunction is the scalar function over a window's end that gives its last
// instant, end minus one microsecond; it carries the watermark.
const WindowTimeFunction = "window_time"

func named(marks map[expr.ID]EventTime, columns []expr.Named, below map[expr.ID]EventTime) {
	for _, c := range columns {
		if m, ok := anyMark(c.Expr, below); ok {
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
			m, ok := eventTimes(in)[in.Schema().Columns[i].ID]
			if k == 0 {
				mark = m
			}
			everywhere = everywhere && ok && !m.pair && m.Kind == mark.Kind && m.Offset == mark.Offset && m.IsOpen == mark.IsOpen
			mark.Delay = max(mark.Delay, m.Delay)
		}
		if everywhere {
			marks[c.ID] = mark
		}
	}
}
