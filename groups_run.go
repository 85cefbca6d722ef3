package tidemill

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/apache/arrow-go/v18/arrow"

	"github.com/tidemill/tidemill/columnar"
	"github.com/tidemill/tidemill/columnar/gotype"
	"github.com/tidemill/tidemill/logical"
)

// groupFunction is a typed function of groups as a logical.GroupFunction.
type groupFunction[K, V, O any] struct {
	spec logical.GroupSpec
	// declare declares the state variables at h and returns what calls the function.
	declare func(h *StateHandle) (groupCalls[K, V, O], error)

	keys *gotype.Rows[K]
	rows *gotype.Rows[V]
	out  *gotype.Rows[O]
}

// groupCalls calls the function for the current key.
type groupCalls[K, V, O any] struct {
	rows    func(key K, rows []V, emit func(O)) error
	timer   func(key K, due time.Time, emit func(O)) error
	initial func(n int, rows initialRows) error // nil: there is none
	close   func() error                        // nil: nothing to do
}

// closed ends the calls.
func (f *groupFunction[K, V, O]) closed(c groupCalls[K, V, O]) error {
	if c.close == nil {
		return nil
	}
	return columnar.Guard(f.what(), c.close)
}

// what names the function of a user's in a panic.
func (f *groupFunction[K, V, O]) what() string { return "the function of " + f.spec.Verb }

// declared declares the state variables at h.
func (f *groupFunction[K, V, O]) declared(h *StateHandle) (calls groupCalls[K, V, O], err error) {
	err = columnar.Guard(f.what(), func() error {
		calls, err = f.declare(h)
		return err
	})
	return calls, err
}

// initialRows are the rows of initial state, one a key.
type initialRows struct {
	columns []arrow.Array
	n       int
	visit   func(i int) // makes key i the current one
}

// decodeRows is rows as values.
func decodeRows[T any](codec *gotype.Rows[T], rows initialRows) ([]T, error) {
	out := make([]T, rows.n)
	err := codec.Decode(rows.columns, 0, out)
	if err != nil {
		out = nil
	}
	return out, err
}

func aliases[T any](r *gotype.Rows[T]) logical.GroupAliases {
	a := logical.GroupAliases{Value: r.IsSingle()}
	for i := range r.Fields() {
		a.Names = append(a.Names, r.Aliases(i))
	}
	return a
}

// apply looks at the types, lets the function declare its state, and makes the node.
func (f *groupFunction[K, V, O]) apply(g, initial *logical.GroupedData, initialAliases logical.GroupAliases) *logical.DataFrame {
	if err := f.describe(); err != nil {
		return logical.FailedDataFrame(logical.Usagef("%s: %w", f.spec.Verb, err))
	}
	return g.MapGroups(f, aliases(f.keys), aliases(f.rows), initial, initialAliases)
}

func (f *groupFunction[K, V, O]) describe() (err error) {
	if f.keys, err = gotype.For[K](); err != nil {
		return fmt.Errorf("the type of the key: %w", err)
	}
	if f.rows, err = gotype.For[V](); err != nil {
		return fmt.Errorf("the type of a row: %w", err)
	}
	if f.out, err = gotype.For[O](); err != nil {
		return fmt.Errorf("the type of the output: %w", err)
	}
	if len(f.out.Fields()) == 0 {
		return errors.New("the type of the output has no columns")
	}
	if f.spec.Mode >= Complete {
		return errors.New("what a function emits stands (Append) or is the newest (Update); use output mode complete above an aggregate")
	}
	if f.spec.Time > EventTimers {
		return fmt.Errorf("%s is no clock; use NoTimers, ProcessingTimers or EventTimers", f.spec.Time)
	}
	f.spec.Key, f.spec.Row, f.spec.Output = f.keys.Fields(), f.rows.Fields(), f.out.Fields()
	h := &StateHandle{run: &groupCore{slot: noKey}, open: true}
	calls, err := f.declared(h)
	f.spec.Variables = h.declared
	return errors.Join(h.finish(err), f.closed(calls))
}

// Spec implements logical.GroupFunction.
func (f *groupFunction[K, V, O]) Spec() *logical.GroupSpec { return &f.spec }

// Open implements logical.GroupFunction.
func (f *groupFunction[K, V, O]) Open(env *logical.GroupEnv) (logical.GroupRun, error) {
	core := &groupCore{env: env, time: f.spec.Time, slot: noKey}
	h := &StateHandle{run: core, expected: f.spec.Variables, open: true}
	if env.Timers != nil {
		core.timers = newTimers(core)
	}
	calls, err := f.declared(h)
	if err = h.finish(err); err != nil {
		return nil, errors.Join(err, f.closed(calls))
	}
	return &groupRunner[K, V, O]{f: f, core: core, calls: calls, what: f.what()}, nil
}

// noKey is the slot while no function is called.
const noKey = -1

// groupCore is one run without its types: the current key and its state.
type groupCore struct {
	env       *logical.GroupEnv
	time      TimeMode
	variables []groupVariable
	timers    *MapState[time.Time, struct{}] // nil without timers
	keys      []arrow.Array                  // of the chunk
	n         int
	slot      int // the current key, or noKey
	inTimer   bool
	err       error // the first mistake
}

// groupVariable is a state variable in a run.
type groupVariable interface {
	// begin forgets the chunk before.
	begin()
	// flush writes what the calls of a chunk changed.
	flush() error
}

// fail notes the first mistake: it ends the query even if the function drops the error.
func (c *groupCore) fail(err error) error {
	if c.err == nil {
		c.err = err
	}
	return err
}

func (c *groupCore) instant(micros int64) time.Time { return time.UnixMicro(micros).UTC() }

func (c *groupCore) batchTime() time.Time { return c.instant(c.env.Now) }

func (c *groupCore) watermark() (time.Time, error) {
	switch {
	case !c.env.HasWatermark:
		return time.Time{}, c.fail(errors.New("there is no watermark to read; declare one with WithWatermark before the grouping"))
	case c.env.Watermark == nil || c.env.Bounded:
		return time.Time{}, nil
	}
	return c.instant(*c.env.Watermark), nil
}

func (c *groupCore) begin(keys []arrow.Array, n int) {
	c.keys, c.n, c.slot = keys, n, noKey
	for _, v := range c.variables {
		v.begin()
	}
}

func (c *groupCore) flush() error {
	c.slot = noKey
	if c.err != nil {
		return c.err
	}
	for _, v := range c.variables {
		if err := v.flush(); err != nil {
			return err
		}
	}
	return nil
}

// groupRunner is a logical.GroupRun.
type groupRunner[K, V, O any] struct {
	f     *groupFunction[K, V, O]
	core  *groupCore
	calls groupCalls[K, V, O]
	what  string // in a panic
	out   []O
}

func (r *groupRunner[K, V, O]) emit(o O) { r.out = append(r.out, o) }

// call makes slot the current key and calls f.
func (r *groupRunner[K, V, O]) call(slot int, key K, f func() error) error {
	r.core.slot = slot
	err := columnar.Guard(r.what, f)
	if err == nil {
		err = r.core.err
	}
	var panicked *PanicError
	if errors.As(err, &panicked) {
		return fmt.Errorf("key %v: %w", key, err)
	}
	if err != nil {
		return fmt.Errorf("%s for key %v: %w", r.f.spec.Verb, key, err)
	}
	return nil
}

// begin starts a chunk and decodes its keys.
func (r *groupRunner[K, V, O]) begin(keys []arrow.Array, n int) ([]K, error) {
	r.core.begin(keys, n)
	out := make([]K, n)
	if err := r.f.keys.Decode(keys, 0, out); err != nil {
		return nil, fmt.Errorf("%s: the key: %w", r.f.spec.Verb, err)
	}
	return out, nil
}

// Initial implements logical.GroupRun.
func (r *groupRunner[K, V, O]) Initial(_ context.Context, keys []arrow.Array, n int, rows []arrow.Array) error {
	if _, err := r.begin(keys, n); err != nil {
		return err
	}
	if r.calls.initial == nil {
		return nil
	}
	err := columnar.Guard(r.what, func() error {
		return r.calls.initial(n, initialRows{columns: rows, n: n, visit: func(i int) { r.core.slot = i }})
	})
	if err != nil {
		return err
	}
	return r.core.flush()
}

// Rows implements logical.GroupRun.
func (r *groupRunner[K, V, O]) Rows(ctx context.Context, keys []arrow.Array, n int, rows []arrow.Array, from []int) error {
	list, err := r.begin(keys, n)
	if err != nil {
		return err
	}
	values := make([]V, from[n])
	if err := r.f.rows.Decode(rows, 0, values); err != nil {
		return fmt.Errorf("%s: a row: %w", r.f.spec.Verb, err)
	}
	for i, key := range list {
		if err := ctx.Err(); err != nil {
			return err
		}
		err := r.call(i, key, func() error {
			return r.calls.rows(key, values[from[i]:from[i+1]:from[i+1]], r.emit)
		})
		if err != nil {
			return err
		}
	}
	return r.core.flush()
}

// Timers implements logical.GroupRun.
func (r *groupRunner[K, V, O]) Timers(ctx context.Context, keys []arrow.Array, n int, of []int, due []int64) error {
	list, err := r.begin(keys, n)
	if err != nil {
		return err
	}
	r.core.inTimer = true
	defer func() { r.core.inTimer = false }()
	for i, slot := range of {
		if err := ctx.Err(); err != nil {
			return err
		}
		at := r.core.instant(due[i])
		r.core.slot = slot
		if _, ok := r.core.timers.Get(at); !ok {
			continue // an earlier call deleted it
		}
		r.core.timers.Remove(at)
		if err := r.call(slot, list[slot], func() error { return r.calls.timer(list[slot], at, r.emit) }); err != nil {
			return err
		}
	}
	return r.core.flush()
}

// Take implements logical.GroupRun.
func (r *groupRunner[K, V, O]) Take() ([]arrow.Array, int, error) {
	n := len(r.out)
	if n == 0 {
		return nil, 0, nil
	}
	columns, err := r.f.out.Encode(r.core.env.Mem, r.out)
	if err != nil {
		return nil, 0, fmt.Errorf("%s: the output: %w", r.f.spec.Verb, err)
	}
	clear(r.out) // what they refer to may go
	r.out = r.out[:0]
	return columns, n, nil
}

// Close implements logical.GroupRun.
func (r *groupRunner[K, V, O]) Close() error { return r.f.closed(r.calls) }
