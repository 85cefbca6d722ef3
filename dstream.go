package tidemill

import (
	"errors"
	"fmt"
	"time"

	"github.com/tidemill/tidemill/columnar"
	"github.com/tidemill/tidemill/logical"
)

// ArrivalWindow is a window over the time of arrival, as of DStream. A row arrives in the
// batch interval before the batch that reads it: a batch run at 12:00:20 with an interval
// of ten seconds reads the rows of [12:00:10, 12:00:20). A window of Length ends at every
// multiple of Slide since the epoch, and comes out in the first batch at or after its end,
// with that batch's own rows; those missed because batches are late come out then, too. A
// second batch in one interval counts to the next where the window was sent already, so
// that every window of a key comes out once: in output mode append.
//
// The query should run with ProcessingTime(Interval). Windows come out without new data,
// too, as long as they hold something. Over bounded data, which does not arrive, there
// are none.
type ArrivalWindow struct {
	Interval time.Duration // of batches
	Length   time.Duration // a multiple of Interval
	Slide    time.Duration // a multiple of Interval; 0 is Interval
}

// checked is w with its defaults, in microseconds.
func (w ArrivalWindow) checked() (arrival, error) {
	if w.Slide == 0 {
		w.Slide = w.Interval
	}
	switch {
	case w.Interval < time.Millisecond || w.Interval%time.Microsecond != 0:
		return arrival{}, fmt.Errorf("the batch interval %s is not positive, or finer than a millisecond", w.Interval)
	case w.Length <= 0 || w.Length%w.Interval != 0:
		return arrival{}, fmt.Errorf("the length of the window, %s, is not a multiple of the batch interval %s", w.Length, w.Interval)
	case w.Slide < 0 || w.Slide%w.Interval != 0:
		return arrival{}, fmt.Errorf("the slide of the window, %s, is not a multiple of the batch interval %s", w.Slide, w.Interval)
	}
	a := arrival{interval: w.Interval.Microseconds(), length: w.Length.Microseconds(), slide: w.Slide.Microseconds()}
	a.pane = gcd(a.length, a.slide)
	return a, nil
}

// arrival is an ArrivalWindow in microseconds. Rows are reduced into panes, the longest
// pieces of which every window is made.
type arrival struct{ interval, length, slide, pane int64 }

func gcd(a, b int64) int64 {
	for b != 0 {
		a, b = b, a%b
	}
	return a
}

// arrived is when the rows of a batch came, to the interval.
func (a arrival) arrived(batch int64) int64 {
	return columnar.FloorDiv(batch, a.interval)*a.interval - a.interval
}

// endAfter is the end of the first window that ends after t.
func (a arrival) endAfter(t int64) int64 { return (columnar.FloorDiv(t, a.slide) + 1) * a.slide }

// KeyValue is a key and its value: the columns of both, called key and value where they
// are no structs.
type KeyValue[K, V any] struct {
	Key   K `tidemill:"key,inline"`
	Value V `tidemill:"value,inline"`
}

// Windowed is the value of a key in a window.
type Windowed[K, V any] struct {
	Start time.Time `tidemill:"window_start"`
	End   time.Time `tidemill:"window_end"`
	Key   K         `tidemill:"key,inline"`
	Value V         `tidemill:"value,inline"`
}

// windowCount is a row of CountByWindow.
type windowCount struct {
	Start time.Time `tidemill:"window_start"`
	End   time.Time `tidemill:"window_end"`
	Count int64
}

// CountByWindow counts the rows of each window: window_start, window_end, count. After the
// first row it goes on for ever, also with zeros.
func CountByWindow(df *logical.DataFrame, w ArrivalWindow) *logical.DataFrame {
	return arrivalWindows(df.GroupBy(), "countByWindow", w, windowFunctions[struct{}, struct{}, int64]{
		fold:    func(rows []struct{}) int64 { return int64(len(rows)) },
		reduce:  func(a, b int64) int64 { return a + b },
		inverse: func(a, b int64) int64 { return a - b },
	}, func(x Windowed[struct{}, int64]) windowCount { return windowCount{x.Start, x.End, x.Value} })
}

// ReduceByWindow reduces the rows of each window to one: window_start, window_end, and the
// columns of V. reduce must be associative and commutative. A window without rows gives
// nothing.
func ReduceByWindow[V any](df *logical.DataFrame, w ArrivalWindow, reduce func(a, b V) V) *logical.DataFrame {
	return arrivalWindows(df.GroupBy(), "reduceByWindow", w, windowFunctions[struct{}, V, V]{fold: folded(reduce), reduce: reduce}, same[struct{}, V])
}

// ReduceByKeyAndWindow is ReduceByWindow for each key. Rows are reduced once, into partial
// results from which every window is combined.
func ReduceByKeyAndWindow[K, V any](g *logical.GroupedData, w ArrivalWindow, reduce func(a, b V) V) *logical.DataFrame {
	return arrivalWindows(g, "reduceByKeyAndWindow", w, windowFunctions[K, V, V]{fold: folded(reduce), reduce: reduce}, same[K, V])
}

// ReduceByKeyAndWindowInverse is ReduceByKeyAndWindow that takes the value of the window
// before, takes out of it what left (inverse(a, b) is a without b), and adds what came:
// the window is never computed anew. A key stays when nothing is left of it, with what
// inverse then gives; unless keep, if it is not nil, says false: then it is forgotten.
func ReduceByKeyAndWindowInverse[K, V any](g *logical.GroupedData, w ArrivalWindow, reduce, inverse func(a, b V) V, keep func(key K, value V) bool) *logical.DataFrame {
	if inverse == nil {
		return logical.FailedDataFrame(logical.Usagef("reduceByKeyAndWindow: there is no inverse function; use ReduceByKeyAndWindow"))
	}
	return arrivalWindows(g, "reduceByKeyAndWindow", w, windowFunctions[K, V, V]{fold: folded(reduce), reduce: reduce, inverse: inverse, keep: keep}, same[K, V])
}

func same[K, V any](x Windowed[K, V]) Windowed[K, V] { return x }

func folded[V any](reduce func(a, b V) V) func(rows []V) V {
	return func(rows []V) V {
		out := rows[0]
		for _, r := range rows[1:] {
			out = reduce(out, r)
		}
		return out
	}
}

// windowFunctions are what makes the value of a window.
type windowFunctions[K, R, V any] struct {
	fold    func(rows []R) V
	reduce  func(a, b V) V
	inverse func(a, b V) V // nil: every window is combined of its panes
	keep    func(key K, value V) bool
}

// arrivalWindows runs windowFunctions.
func arrivalWindows[K, R, V, O any](g *logical.GroupedData, verb string, w ArrivalWindow, f windowFunctions[K, R, V], shape func(Windowed[K, V]) O) *logical.DataFrame {
	a, err := w.checked()
	if err != nil {
		return logical.FailedDataFrame(logical.Usagef("%s: %w", verb, err))
	}
	if f.reduce == nil {
		return noFunction(verb)
	}
	fn := transform(TransformOptions{Time: ProcessingTimers}, func() StatefulProcessor[K, R, O] {
		return &windowProcessor[K, R, V, O]{windowFunctions: f, arrival: a, shape: shape}
	}, func(StatefulProcessor[K, R, O], *groupCore) func(int, initialRows) error { return nil })
	fn.spec.Verb = verb
	return fn.apply(g, nil, logical.GroupAliases{})
}

// windowProcessor keeps the panes of a key that a window may still need, and a timer at
// the end of the next window.
type windowProcessor[K, R, V, O any] struct {
	windowFunctions[K, R, V]
	arrival
	shape func(Windowed[K, V]) O
	panes *MapState[time.Time, V] // by start
	last  lastValue[V]            // with inverse
	sent  *ValueState[time.Time]  // its end
}

// lastValue is the value of the window sent last, if it is kept.
type lastValue[V any] struct{ *ValueState[V] }

func (l lastValue[V]) exists() bool { return l.ValueState != nil && l.Exists() }

func (p *windowProcessor[K, R, V, O]) Init(h *StateHandle) error {
	p.panes = NewMapState[time.Time, V](h, "panes")
	p.sent = NewValueState[time.Time](h, "sent")
	if p.inverse != nil {
		p.last.ValueState = NewValueState[V](h, "last")
	}
	return nil
}

func (p *windowProcessor[K, R, V, O]) HandleInputRows(_ K, rows []R, c *Call, _ func(O)) error {
	arrived := p.arrived(c.run.env.Now)
	if sent, ok := p.sent.Get(); ok {
		arrived = max(arrived, sent.UnixMicro())
	}
	start := time.UnixMicro(columnar.FloorDiv(arrived, p.pane) * p.pane).UTC()
	value := p.fold(rows)
	if old, ok := p.panes.Get(start); ok {
		value = p.reduce(old, value)
	}
	p.panes.Put(start, value)
	timers, err := c.ListTimers()
	if err != nil || len(timers) > 0 {
		return err
	}
	return c.RegisterTimer(time.UnixMicro(p.endAfter(arrived)))
}

// HandleExpiredTimer sends the window that ends at the timer, and those after it whose end
// has passed, too.
func (p *windowProcessor[K, R, V, O]) HandleExpiredTimer(key K, timer time.Time, c *Call, emit func(O)) error {
	now := c.run.env.Now
	for end := timer.UnixMicro(); ; end += p.slide {
		if end > now {
			return c.RegisterTimer(time.UnixMicro(end))
		}
		value, ok := p.window(end)
		switch {
		case ok && p.keep != nil && !p.keep(key, value):
			p.last.Clear()
			p.forget(end) // what is left came after this window
		case ok:
			p.sent.Set(time.UnixMicro(end).UTC())
			emit(p.shape(Windowed[K, V]{Start: time.UnixMicro(end - p.length).UTC(), End: time.UnixMicro(end).UTC(), Key: key, Value: value}))
			fallthrough
		default:
			p.forget(p.needed(end))
		}
		if p.panes.Exists() {
			continue
		}
		if !p.last.exists() && !p.mayRepeat(now) {
			p.sent.Clear()
			return nil
		}
		// After a long pause in which nothing moved only the newest windows are made up for.
		end = max(end, columnar.FloorDiv(now, p.slide)*p.slide-maxIdleWindows*p.slide)
	}
}

// maxIdleWindows is how many windows come out at most of a pause without batches, once
// nothing moves in them any more.
const maxIdleWindows = 1000

// mayRepeat says whether rows of another batch in the interval of now would fall into the
// window sent last: then the key is remembered for one more slide.
func (p *windowProcessor[K, R, V, O]) mayRepeat(now int64) bool {
	sent, ok := p.sent.Get()
	return ok && sent.UnixMicro() > p.arrived(now)
}

// window is the value of the window that ends at end; ok is false if it has none.
func (p *windowProcessor[K, R, V, O]) window(end int64) (value V, ok bool) {
	if p.inverse == nil {
		return p.combined(end-p.length, end)
	}
	value, ok = p.last.Get()
	if gone, some := p.combined(end-p.slide-p.length, min(end-p.length, end-p.slide)); ok && some {
		value = p.inverse(value, gone)
	}
	if came, some := p.combined(max(end-p.slide, end-p.length), end); some {
		if ok {
			came = p.reduce(value, came)
		}
		value, ok = came, true
	}
	if ok {
		p.last.Set(value)
	}
	return value, ok
}

// combined is the panes from one time up to another, reduced.
func (p *windowProcessor[K, R, V, O]) combined(from, to int64) (value V, ok bool) {
	for t := from; t < to; t += p.pane {
		v, some := p.panes.Get(time.UnixMicro(t).UTC())
		switch {
		case some && ok:
			value = p.reduce(value, v)
		case some:
			value, ok = v, true
		}
	}
	return value, ok
}

// needed is the start of the first pane that a window after the one that ends at end
// needs: with inverse, those that leave then are needed to be taken out.
func (p *windowProcessor[K, R, V, O]) needed(end int64) int64 {
	if p.inverse != nil {
		return end - p.length
	}
	return end + p.slide - p.length
}

// forget removes the panes that end at or before a time.
func (p *windowProcessor[K, R, V, O]) forget(before int64) {
	for t := range p.panes.All() {
		if t.UnixMicro()+p.pane <= before {
			p.panes.Remove(t)
		}
	}
}

// UpdateStateByKey calls f in every micro-batch for every key that has state or rows, and
// gives key and state of all that then have state, each batch: output mode update. It is
// MapGroupsWithState that visits every key; f removes a key by removing its state.
func UpdateStateByKey[K, V, S any](g *logical.GroupedData, f func(key K, rows []V, state *GroupState[S]) error) *logical.DataFrame {
	spec := logical.GroupSpec{Verb: "updateStateByKey", VisitAll: true}
	if f == nil {
		return noFunction(spec.Verb)
	}
	return groupsWithState(g, spec, GroupsOptions{Mode: Update},
		func(key K, rows []V, state *GroupState[S], emit func(KeyValue[K, S])) error {
			if err := f(key, rows, state); err != nil {
				return err
			}
			if s, ok := state.Get(); ok {
				emit(KeyValue[K, S]{key, s})
			}
			return nil
		})
}

// MapWithStateOptions are the parameters of MapWithState. The zero value keeps keys for
// ever.
type MapWithStateOptions struct {
	// Mode is that of what is emitted, Append or Update; see GroupsOptions.
	Mode OutputMode
	// Timeout is after how long without rows a key is forgotten; 0 is never.
	Timeout time.Duration
	// Initial is the state before the first batch, as in GroupsOptions.
	Initial *logical.GroupedData
}

// MapWithState calls f for every row, in order of arrival within its key, and once with
// row nil for a key that timed out, whose state then goes: f must not update it. It
// gives what f returns with true.
func MapWithState[K, V, S, O any](g *logical.GroupedData, o MapWithStateOptions, f func(key K, row *V, state *GroupState[S]) (out O, ok bool, err error)) *logical.DataFrame {
	options, spec := GroupsOptions{Mode: o.Mode, Initial: o.Initial}, logical.GroupSpec{Verb: "mapWithState"}
	if f == nil {
		return noFunction(spec.Verb)
	}
	if o.Timeout < 0 || o.Timeout%time.Microsecond != 0 {
		return logical.FailedDataFrame(logical.Usagef("%s: the time-out %s is not a positive number of microseconds", spec.Verb, o.Timeout))
	}
	if o.Timeout != 0 {
		options.Timeout = ProcessingTimers
	}
	return groupsWithState(g, spec, options, func(key K, rows []V, state *GroupState[S], emit func(O)) error {
		call := func(row *V) error {
			out, ok, err := f(key, row, state)
			if ok && err == nil {
				emit(out)
			}
			return err
		}
		if state.HasTimedOut() {
			return timedOut(state, func() error { return call(nil) })
		}
		for i := range rows {
			if err := call(&rows[i]); err != nil {
				return err
			}
		}
		if o.Timeout == 0 || !state.Exists() {
			return nil
		}
		return state.SetTimeoutDuration(o.Timeout)
	})
}

// timedOut makes the last call for a key and removes its state.
func timedOut[S any](state *GroupState[S], call func() error) error {
	changed := len(state.value.dirty)
	if err := call(); err != nil {
		return err
	}
	if len(state.value.dirty) > changed && state.Exists() {
		return errors.New("the state of a key that timed out cannot be updated")
	}
	state.Remove()
	return nil
}
