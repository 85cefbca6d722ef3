package tidemill

import (
	"errors"
	"fmt"
	"io"
	"reflect"
	"slices"
	"strings"
	"time"

	"github.com/apache/arrow-go/v18/arrow"

	"github.com/tidemill/tidemill/columnar/gotype"
	"github.com/tidemill/tidemill/logical"
)

// StatefulProcessor works on the groups of a stream with several named pieces of state a
// key: TransformWithState. K, V and O are Go types of columns, as in MapGroupsWithState.
//
// A processor is made anew for each micro-batch, and once to see what it declares. It may
// also implement TimerHandler and io.Closer. Its methods may be called again with the
// same arguments and state, after a crash or an error; they should change nothing but the
// state. Their errors end the query.
type StatefulProcessor[K, V, O any] interface {
	// Init declares the state variables, with NewValueState and its kin: the same ones
	// each time. A variable may be added later; none may change its kind, type or time to
	// live, or go.
	Init(h *StateHandle) error
	// HandleInputRows is called once a micro-batch for every key that has rows in it, with
	// all of them in order of arrival. Keys come in the order of keys, in one goroutine.
	HandleInputRows(key K, rows []V, c *Call, emit func(O)) error
}

// TimerHandler is a StatefulProcessor that uses timers.
type TimerHandler[K, O any] interface {
	// HandleExpiredTimer is called, after all rows of the micro-batch, for every timer at
	// or before the clock, in the order of timers.
	HandleExpiredTimer(key K, timer time.Time, c *Call, emit func(O)) error
}

// InitialStateHandler is a StatefulProcessor that begins with state: I is a row of it.
type InitialStateHandler[K, V, O, I any] interface {
	StatefulProcessor[K, V, O]
	// HandleInitialState is called once in the life of a query for every row of the
	// initial state, before any input.
	HandleInitialState(key K, row I, c *Call) error
}

// TransformOptions are the parameters of TransformWithState. The zero value has no timers
// and emits rows that stand.
type TransformOptions struct {
	// Time is the clock of timers.
	Time TimeMode
	// Mode is that of what is emitted, Append or Update: the output mode of the query must
	// be the same, unless an aggregate follows.
	Mode OutputMode
}

// TransformWithState runs processors, made by newProcessor, over the groups of a stream.
func TransformWithState[K, V, O any](g *logical.GroupedData, o TransformOptions, newProcessor func() StatefulProcessor[K, V, O]) *logical.DataFrame {
	if newProcessor == nil {
		return noFunction("transformWithState")
	}
	f := transform(o, newProcessor, func(StatefulProcessor[K, V, O], *groupCore) func(int, initialRows) error { return nil })
	return f.apply(g, nil, logical.GroupAliases{})
}

// TransformWithInitialState is TransformWithState that begins with the rows of a bounded
// DataFrame, grouped by the same keys; no key may come twice.
func TransformWithInitialState[K, V, O, I any](g, initial *logical.GroupedData, o TransformOptions, newProcessor func() InitialStateHandler[K, V, O, I]) *logical.DataFrame {
	rows, err := gotype.For[I]()
	if err != nil {
		return logical.FailedDataFrame(logical.Usagef("transformWithState: the type of the initial state: %w", err))
	}
	keys, err := gotype.For[K]()
	if err != nil {
		return logical.FailedDataFrame(logical.Usagef("transformWithState: the type of the key: %w", err))
	}
	if newProcessor == nil {
		return noFunction("transformWithState")
	}
	f := transform(o, func() StatefulProcessor[K, V, O] { return newProcessor() }, func(p StatefulProcessor[K, V, O], run *groupCore) func(int, initialRows) error {
		return func(n int, r initialRows) error {
			all, err := decodeRows(rows, r)
			if err != nil {
				return err
			}
			names := make([]K, n)
			if err := keys.Decode(run.keys, 0, names); err != nil {
				return err
			}
			for i, row := range all {
				r.visit(i)
				if err := p.(InitialStateHandler[K, V, O, I]).HandleInitialState(names[i], row, &Call{run}); err != nil {
					return err
				}
				if run.err != nil {
					return run.err
				}
			}
			return nil
		}
	})
	f.spec.Initial = rows.Fields()
	return f.apply(g, initial, aliases(rows))
}

// transform is the function that runs processors.
func transform[K, V, O any](o TransformOptions, newProcessor func() StatefulProcessor[K, V, O], initial func(StatefulProcessor[K, V, O], *groupCore) func(int, initialRows) error) *groupFunction[K, V, O] {
	f := &groupFunction[K, V, O]{spec: logical.GroupSpec{Verb: "transformWithState", Mode: o.Mode, Time: o.Time}}
	f.declare = func(h *StateHandle) (groupCalls[K, V, O], error) {
		p := newProcessor()
		if p == nil {
			return groupCalls[K, V, O]{}, errors.New("the function that makes processors returned nil")
		}
		calls := groupCalls[K, V, O]{initial: initial(p, h.run)}
		if c, ok := p.(io.Closer); ok {
			calls.close = c.Close
		}
		if err := p.Init(h); err != nil {
			return calls, err
		}
		call := &Call{h.run}
		calls.rows = func(key K, rows []V, emit func(O)) error { return p.HandleInputRows(key, rows, call, emit) }
		t, ok := p.(TimerHandler[K, O])
		if !ok && o.Time != NoTimers {
			return calls, fmt.Errorf("%T has timers of %s, but no method HandleExpiredTimer", p, o.Time)
		}
		if ok {
			calls.timer = func(key K, due time.Time, emit func(O)) error { return t.HandleExpiredTimer(key, due, call, emit) }
		}
		return calls, nil
	}
	return f
}

// Call is what a method of a StatefulProcessor knows beside its arguments: the clocks, and
// the timers of the key. It is valid during the call.
type Call struct{ run *groupCore }

// BatchTime is the time of the micro-batch: the clock of processing time.
func (c *Call) BatchTime() time.Time { return c.run.batchTime() }

// Watermark is the watermark of the micro-batch, the zero time while there is none, and
// always over bounded data. It is an error where the input has none.
func (c *Call) Watermark() (time.Time, error) { return c.run.watermark() }

// RegisterTimer makes HandleExpiredTimer be called for the key when the clock shows t (to
// the microsecond). A timer that is there stays as it is. One that is due already fires
// in this micro-batch; set by HandleExpiredTimer it is an error, for it would fire for
// ever. An error ends the query, also where the method does not return it.
func (c *Call) RegisterTimer(t time.Time) error {
	set, err := c.timers()
	if err != nil {
		return err
	}
	t = microsecond(t)
	if now, ok := c.clock(); ok && c.run.inTimer && !t.After(now) {
		return c.run.fail(fmt.Errorf("a timer at %s, set by a timer, is not after the clock, %s", t.Format(time.RFC3339Nano), now.Format(time.RFC3339Nano)))
	}
	if _, ok := set.Get(t); !ok {
		set.Put(t, struct{}{})
	}
	return nil
}

// DeleteTimer removes a timer of the key, if it is there.
func (c *Call) DeleteTimer(t time.Time) error {
	set, err := c.timers()
	if err == nil {
		set.Remove(microsecond(t))
	}
	return err
}

// ListTimers are the timers of the key, in order.
func (c *Call) ListTimers() ([]time.Time, error) {
	set, err := c.timers()
	if err != nil {
		return nil, err
	}
	var out []time.Time
	for t := range set.All() {
		out = append(out, t)
	}
	slices.SortFunc(out, time.Time.Compare)
	return out, nil
}

func (c *Call) timers() (*MapState[time.Time, struct{}], error) {
	if c.run.timers == nil {
		return nil, c.run.fail(errors.New("there are no timers; set TransformOptions.Time"))
	}
	return c.run.timers, nil
}

// clock is that of timers; ok is false while it shows nothing.
func (c *Call) clock() (now time.Time, ok bool) {
	if c.run.time == ProcessingTimers {
		return c.run.batchTime(), true
	}
	if w := c.run.env.Watermark; w != nil {
		return c.run.instant(*w), true
	}
	return time.Time{}, false
}

// StateHandle is where a StatefulProcessor declares its state variables, in Init only.
type StateHandle struct {
	run      *groupCore
	declared []logical.GroupVariable
	expected []logical.GroupVariable // in a run: what was declared before
	open     bool
	err      error
}

// VariableOption changes a state variable.
type VariableOption func(*logical.GroupVariable)

// TTL lets what is written disappear when d has passed, measured by the batch time from
// the last write: of a value, of an element of a list, of an entry of a map.
func TTL(d time.Duration) VariableOption {
	return func(v *logical.GroupVariable) { v.TTL = d }
}

// NewValueState declares a variable with at most one value a key.
func NewValueState[T any](h *StateHandle, name string, options ...VariableOption) *ValueState[T] {
	h = h.orNone()
	v := &ValueState[T]{stored: stored{run: h.run, name: name}}
	var err error
	if v.codec, err = gotype.For[T](); err != nil {
		h.fail(fmt.Errorf("state variable %s: %w", name, err))
		return v
	}
	h.declare(&v.stored, v, logical.GroupVariable{Kind: logical.ValueVariable, Value: v.codec.Fields()}, options)
	return v
}

// NewListState declares a variable with a list of values a key.
func NewListState[T any](h *StateHandle, name string, options ...VariableOption) *ListState[T] {
	h = h.orNone()
	l := &ListState[T]{stored: stored{run: h.run, name: name}}
	var err error
	if l.codec, err = gotype.For[T](); err != nil {
		h.fail(fmt.Errorf("state variable %s: %w", name, err))
		return l
	}
	h.declare(&l.stored, l, logical.GroupVariable{Kind: logical.ListVariable, Value: l.codec.Fields()}, options)
	return l
}

// NewMapState declares a variable with a map a key.
func NewMapState[K comparable, V any](h *StateHandle, name string, options ...VariableOption) *MapState[K, V] {
	h = h.orNone()
	m := &MapState[K, V]{stored: stored{run: h.run, name: name}}
	var err, valueErr error
	m.keyCodec, err = gotype.For[K]()
	m.codec, valueErr = gotype.For[V]()
	if err = errors.Join(err, valueErr); err == nil && reflect.TypeFor[K]().Kind() == reflect.Pointer {
		err = fmt.Errorf("%s cannot be the key of a map: pointers differ where values are equal", reflect.TypeFor[K]())
	}
	if err != nil {
		h.fail(fmt.Errorf("state variable %s: %w", name, err))
		return m
	}
	v := logical.GroupVariable{Kind: logical.MapVariable, Key: m.keyCodec.Fields(), Value: m.codec.Fields()}
	if m.keyCodec.IsSingle() {
		v.Key = []arrow.Field{v.Key[0]}
		v.Key[0].Name = "key"
	}
	h.declare(&m.stored, m, v, options)
	return m
}

// orNone is h, or one that keeps nothing where h is nil.
func (h *StateHandle) orNone() *StateHandle {
	if h == nil {
		return &StateHandle{run: &groupCore{slot: noKey}}
	}
	return h
}

// declare notes a variable, or finds its table.
func (h *StateHandle) declare(s *stored, v groupVariable, d logical.GroupVariable, options []VariableOption) {
	d.Name = s.name
	for _, o := range options {
		if o != nil {
			o(&d)
		}
	}
	switch {
	case !h.open:
		h.fail(fmt.Errorf("state variable %s is declared outside of Init", d.Name))
	case !isVariableName(d.Name):
		h.fail(fmt.Errorf("%q cannot be the name of a state variable; use letters, digits and underscores", d.Name))
	case strings.EqualFold(d.Name, "timers"):
		h.fail(fmt.Errorf("the name of state variable %s is taken by the timers", d.Name))
	case slices.ContainsFunc(h.declared, func(o logical.GroupVariable) bool { return strings.EqualFold(o.Name, d.Name) }):
		h.fail(fmt.Errorf("state variable %s is declared twice", d.Name))
	case d.TTL < 0 || d.TTL > 0 && d.TTL < time.Microsecond:
		h.fail(fmt.Errorf("state variable %s: the time to live %s is not positive", d.Name, d.TTL))
	}
	i := len(h.declared)
	h.declared = append(h.declared, d)
	if h.run.env == nil || h.err != nil {
		return
	}
	if i >= len(h.expected) || !sameVariable(h.expected[i], d) {
		h.fail(fmt.Errorf("state variable %s: Init declares other variables than the first time", d.Name))
		return
	}
	s.store = h.run.env.Variable(d.Name)
	h.run.variables = append(h.run.variables, v)
}

func sameVariable(a, b logical.GroupVariable) bool {
	return a.Name == b.Name && a.Kind == b.Kind && a.TTL == b.TTL && a.TypeText() == b.TypeText()
}

func isVariableName(name string) bool {
	for i, r := range name {
		letter := r == '_' && i > 0 || r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z'
		if !letter && (i == 0 || r < '0' || r > '9') {
			return false
		}
	}
	return name != "" && len(name) <= 60
}

func (h *StateHandle) fail(err error) {
	if h.err == nil {
		h.err = err
	}
	if !h.open {
		_ = h.run.fail(err)
	}
}

// finish ends Init: the first mistake, or its error.
func (h *StateHandle) finish(err error) error {
	h.open = false
	switch {
	case err != nil:
		return err
	case h.err != nil:
		return h.err
	case h.run.err != nil:
		return h.run.err
	case h.run.env != nil && len(h.declared) != len(h.expected):
		return errors.New("Init declares fewer state variables than the first time")
	}
	return nil
}
