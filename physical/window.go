package physical

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"

	"github.com/tidemill/tidemill/columnar"
	"github.com/tidemill/tidemill/columnar/kernel"
	"github.com/tidemill/tidemill/logical/expr"
	"github.com/tidemill/tidemill/physical/eval"
)

// Window gives each row the event-time windows it falls into: its columns, then start
// and end. A row of a hopping window is repeated, earliest window first; a session is
// [t, t+gap), not merged yet. Rows with a null time are left out, and so are rows whose
// gap is null, not positive or unreadable.
type Window struct {
	unaryPlan
	Time expr.Expr
	Spec expr.WindowSpec
	// Dropped is told of rows left out for their gap; nil: nobody is.
	Dropped func(rows int64)
	schema  *arrow.Schema
	program *eval.Program // time, then gap
	start   string
	end     string
}

// NewWindow assigns windows; time and gap are over positions of input's columns, start
// and end name the new columns.
func NewWindow(input Plan, timeExpr expr.Expr, spec expr.WindowSpec, start, end string) (*Window, error) {
	exprs := []expr.Expr{timeExpr}
	if spec.Gap != nil {
		exprs = append(exprs, spec.Gap)
	} else if spec.Size <= 0 || spec.Slide <= 0 {
		return nil, fmt.Errorf("bug: window of size %d and slide %d", spec.Size, spec.Slide)
	}
	program, err := eval.Compile(input.Schema(), exprs...)
	if err != nil {
		return nil, err
	}
	in := withoutOrdinal(input.Schema()).Fields()
	schema := arrow.NewSchema(append(in[:len(in):len(in)], columnar.Field(start, columnar.Timestamp), columnar.Field(end, columnar.Timestamp)), nil)
	if HasOrdinal(input.Schema()) {
		schema = withOrdinal(schema)
	}
	return &Window{unaryPlan: unaryPlan{input}, Time: timeExpr, Spec: spec, schema: schema, program: program, start: start, end: end}, nil
}

func (p *Window) Schema() *arrow.Schema { return p.schema }

// WithChildren assigns windows to another input.
func (p *Window) WithChildren(c []Plan) Plan {
	n := *p
	n.Input = c[0]
	return &n
}

func (p *Window) String() string {
	us := func(n int64) string { return (time.Duration(n) * time.Microsecond).String() }
	switch {
	case p.Spec.Gap != nil:
		return args("Window", "time", p.Time.String(), "gap", p.Spec.Gap.String())
	case p.Spec.Slide == p.Spec.Size && p.Spec.Start == 0:
		return args("Window", "time", p.Time.String(), "size", us(p.Spec.Size))
	}
	return args("Window", "time", p.Time.String(), "size", us(p.Spec.Size), "slide", us(p.Spec.Slide), "start", us(p.Spec.Start))
}

// Open assigns windows to each Reader of the input.
func (p *Window) Open(ctx context.Context, ec *ExecContext, n int) ([]columnar.Reader, error) {
	inputs, err := openAs(ctx, ec, p.Input, n, p.program.IsVolatile())
	if err != nil {
		return nil, err
	}
	for i, in := range inputs {
		inputs[i] = &windowReader{operator: operator{schema: p.schema, input: in}, plan: p, env: ec.Env(), limit: ec.batchRows(), partBytes: ec.PartBytes(), windowRoom: windowRooms.Get().(*windowRoom)}
	}
	return inputs, nil
}

// windowReader holds windows of one batch: row rows[i] has [starts[i], ends[i]). A row may
// have very many sliding windows, so they are made for some rows at a time.
type windowReader struct {
	operator
	plan  *Window
	env   *eval.Env
	limit int

	partBytes int64
	width     RowWidths // of the batch

	batch arrow.RecordBatch
	times []arrow.Array // of the batch: times, and gaps
	at    int           // rows of the batch before it have their windows
	*windowRoom
	next int
}

// windowRoom is memory of a windowReader that outlives it: a stream has one a batch.
type windowRoom struct {
	rows         []int32
	starts, ends []int64
}

var windowRooms = sync.Pool{New: func() any { return new(windowRoom) }}

func (r *windowReader) Next(ctx context.Context) (arrow.RecordBatch, error) {
	for {
		if r.batch != nil && r.next < len(r.rows) {
			return r.give()
		}
		if r.batch == nil || r.at == int(r.batch.NumRows()) {
			if err := r.advance(ctx); err != nil {
				return nil, err
			}
		}
		if err := r.assign(); err != nil {
			return nil, err
		}
	}
}

// advance takes the next batch.
func (r *windowReader) advance(ctx context.Context) (err error) {
	r.drop()
	if r.batch, err = r.input.Next(ctx); err != nil {
		return err
	}
	r.at, r.width = 0, WidthsOf(r.batch.Columns())
	if r.times, err = r.plan.program.EvalColumns(r.env, r.batch); err != nil {
		return err
	}
	if r.times[0].DataType().ID() != arrow.TIMESTAMP {
		return fmt.Errorf("bug: windows over %s", r.times[0].DataType())
	}
	return nil
}

// assign computes the windows of the next rows.
func (r *windowReader) assign() error {
	r.rows, r.starts, r.ends, r.next = r.rows[:0], r.starts[:0], r.ends[:0], 0
	times := kernel.Values[int64](r.times[0])
	s := &r.plan.Spec
	if s.Gap == nil && s.Slide != s.Size {
		return r.assignHopping(times, r.times[0])
	}
	r.at = len(times)
	if s.Gap != nil {
		return r.assignSessions(times, r.times[0], r.times[1])
	}
	return r.assignTumbling(times, r.times[0])
}

// maxTime bounds event times so that no window arithmetic overflows: about 146,000
// years either side of 1970.
const maxTime = int64(1) << 62

func (r *windowReader) outOfRange(t int64) error {
	return &eval.Error{Expr: r.plan.Time.String(), Place: r.plan.Spec.Place, Err: fmt.Errorf("time %s is too far from 1970 to have a window; leave such rows out with WHERE, or make the time null", columnar.AppendTimestamp(nil, t, nil))}
}

func (r *windowReader) assignTumbling(times []int64, valid arrow.Array) error {
	size, offset := r.plan.Spec.Size, r.plan.Spec.Start
	nulls := valid.NullN() > 0
	start, end := int64(1), int64(0) // an empty window: the first row looks for its own
	r.rows, r.starts, r.ends = slices.Grow(r.rows, len(times)), slices.Grow(r.starts, len(times)), slices.Grow(r.ends, len(times))
	for i, t := range times {
		if nulls && valid.IsNull(i) {
			continue
		}
		if t < start || t >= end { // rows mostly follow each other in time
			if t > maxTime || t < -maxTime {
				return r.outOfRange(t)
			}
			start = t - columnar.FloorMod(t-offset, size)
			end = start + size
		}
		r.rows = append(r.rows, int32(i))
		r.starts = append(r.starts, start)
		r.ends = append(r.ends, end)
	}
	return nil
}

func (r *windowReader) assignHopping(times []int64, valid arrow.Array) error {
	s := &r.plan.Spec
	count := (s.Size + s.Slide - 1) / s.Slide
	for ; r.at < len(times) && len(r.rows) < r.limit; r.at++ {
		i, t := r.at, times[r.at]
		if valid.IsNull(i) {
			continue
		}
		if t > maxTime || t < -maxTime {
			return r.outOfRange(t)
		}
		last := t - columnar.FloorMod(t-s.Start, s.Slide)
		for k := count - 1; k >= 0; k-- {
			if start := last - k*s.Slide; t < start+s.Size {
				r.rows = append(r.rows, int32(i))
				r.starts = append(r.starts, start)
				r.ends = append(r.ends, start+s.Size)
			}
		}
	}
	return nil
}

func (r *windowReader) assignSessions(times []int64, valid, gaps arrow.Array) error {
	dropped := int64(0)
	for i, t := range times {
		if valid.IsNull(i) {
			continue
		}
		if t > maxTime || t < -maxTime {
			return r.outOfRange(t)
		}
		gap, ok := gapAt(gaps, i)
		if !ok || gap <= 0 || gap > maxTime {
			dropped++
			continue
		}
		r.rows = append(r.rows, int32(i))
		r.starts = append(r.starts, t)
		r.ends = append(r.ends, t+gap)
	}
	if dropped > 0 && r.plan.Dropped != nil {
		r.plan.Dropped(dropped)
	}
	return nil
}

// gapAt is a gap in microseconds: an interval or its text. A month counts 31 days.
func gapAt(a arrow.Array, i int) (us int64, ok bool) {
	if a.IsNull(i) {
		return 0, false
	}
	var v arrow.MonthDayNanoInterval
	switch a := a.(type) {
	case *array.MonthDayNanoInterval:
		v = a.Value(i)
	case *array.String:
		var err error
		if v, err = columnar.ParseInterval(a.Value(i)); err != nil {
			return 0, false
		}
	case *array.Dictionary:
		return gapAt(a.Dictionary(), a.GetValueIndex(i))
	default:
		return 0, false
	}
	days := int64(v.Months)*31 + int64(v.Days)
	if days > maxTime/columnar.MicrosPerDay {
		return 0, false
	}
	return days*columnar.MicrosPerDay + v.Nanoseconds/1000, true
}

// give is the next rows with windows, at most limit.
func (r *windowReader) give() (arrow.RecordBatch, error) {
	from, to := r.next, min(r.next+r.limit, len(r.rows))
	if r.width.most*int64(to-from) > r.partBytes {
		to = from + RowsWithin(to-from, r.partBytes, func(i int) int64 { return r.width.At(r.rows[from+i]) })
	}
	r.next = to
	n := to - from
	columns, err := takeColumns(r.env.Mem, r.batch, r.rows[from:to])
	if err != nil {
		return nil, err
	}
	ordinal := len(columns)
	if HasOrdinal(r.schema) {
		ordinal--
	}
	tail := columns[ordinal:]
	out := append(columns[:ordinal:ordinal], r.timestamps(r.starts[from:to]), r.timestamps(r.ends[from:to]))
	return takeBatch(r.schema, append(out, tail...), int64(n)), nil
}

func (r *windowReader) timestamps(values []int64) arrow.Array {
	buf, out := kernel.Make[int64](r.env.Mem, len(values))
	copy(out, values)
	return kernel.Wrap(columnar.Timestamp, len(values), 0, nil, buf)
}

func (r *windowReader) drop() {
	releaseAll(r.times)
	r.times = nil
	if r.batch != nil {
		r.batch.Release()
		r.batch = nil
	}
}

func (r *windowReader) Close() error {
	r.drop()
	room := r.windowRoom
	r.windowRoom, r.next = new(windowRoom), 0
	if n := cap(room.rows); 0 < n && n <= 4*r.limit {
		windowRooms.Put(room)
	}
	return r.input.Close()
}
