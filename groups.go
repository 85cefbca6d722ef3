package tidemill

import (
	"errors"
	"fmt"
	"time"

	"github.com/tidemill/tidemill/columnar/gotype"
	"github.com/tidemill/tidemill/logical"
)

// TimeMode is the clock of timers and time-outs.
type TimeMode = logical.GroupTime

// The clocks. The event-time clock is the watermark: the stream must have one, and rows
// behind it do not reach the function.
const (
	NoTimers         = logical.NoTimers
	ProcessingTimers = logical.ProcessingTimers
	EventTimers      = logical.EventTimers
)

// GroupsOptions are the parameters of MapGroupsWithState and FlatMapGroupsWithState. The
// zero value has no time-outs and no initial state.
type GroupsOptions struct {
	// Timeout is the clock by which keys time out.
	Timeout TimeMode
	// Mode is that of what FlatMapGroupsWithState emits, Append or Update: the output
	// mode of the query must be the same, unless an aggregate follows. Of
	// MapGroupsWithState it is Update, whatever this says.
	Mode OutputMode
	// Initial is the state before the first batch: a bounded DataFrame, grouped by the
	// same keys, whose columns are those of the state. No key may come twice.
	Initial *logical.GroupedData
}

// MapGroupsWithState calls f once a micro-batch for every key that has rows in it, with
// all of them in order of arrival, and then for every key that timed out, with none; what
// f returns is a row of the output. Keys come in the order of keys, in one goroutine.
//
// K, V, S and O are Go types of columns. A struct stands for several, its exported fields
// by name (UserID is user_id, or as its tag says: `tidemill:"name"`), anything else for
// one: numbers, text, time.Time, slices, maps, structs, and pointers, which may be NULL.
// K is the grouping keys, V a row (fields name the columns that are read), S the state,
// O the output. State is kept in the checkpoint as typed Parquet columns.
//
// f may be called again with the same key, rows and state, after a crash or an error; it
// should change nothing but the state. Over bounded data it is called once a key, with
// the initial state if there is one. Its errors end the query.
func MapGroupsWithState[K, V, S, O any](g *logical.GroupedData, o GroupsOptions, f func(key K, rows []V, state *GroupState[S]) (O, error)) *logical.DataFrame {
	o.Mode = Update
	spec := logical.GroupSpec{Verb: "mapGroupsWithState", Once: true}
	if f == nil {
		return noFunction(spec.Verb)
	}
	return groupsWithState(g, spec, o, func(key K, rows []V, state *GroupState[S], emit func(O)) error {
		out, err := f(key, rows, state)
		if err == nil {
			emit(out)
		}
		return err
	})
}

// FlatMapGroupsWithState is MapGroupsWithState for functions that emit any number of
// rows a call.
func FlatMapGroupsWithState[K, V, S, O any](g *logical.GroupedData, o GroupsOptions, f func(key K, rows []V, state *GroupState[S], emit func(O)) error) *logical.DataFrame {
	spec := logical.GroupSpec{Verb: "flatMapGroupsWithState"}
	if f == nil {
		return noFunction(spec.Verb)
	}
	return groupsWithState(g, spec, o, f)
}

// GroupState is the state of the key a function is called for. It is valid during the
// call.
type GroupState[S any] struct {
	run      *groupCore
	value    *ValueState[S]
	time     TimeMode
	timedOut bool
}

// Get is the state; ok is false if there is none. To change it, Update it.
func (s *GroupState[S]) Get() (state S, ok bool) { return s.value.Get() }

// Exists says whether there is state.
func (s *GroupState[S]) Exists() bool { return s.value.Exists() }

// Update replaces the state.
func (s *GroupState[S]) Update(state S) { s.value.Set(state) }

// Remove removes the state. A time-out that is set stays.
func (s *GroupState[S]) Remove() { s.value.Clear() }

// HasTimedOut says that the call is because the key timed out: there are no rows.
func (s *GroupState[S]) HasTimedOut() bool { return s.timedOut }

// BatchTime is the time of the micro-batch: the clock of processing time.
func (s *GroupState[S]) BatchTime() time.Time { return s.run.batchTime() }

// Watermark is the watermark of the micro-batch, the zero time while there is none, and
// always over bounded data. It is an error where the input has none.
func (s *GroupState[S]) Watermark() (time.Time, error) { return s.run.watermark() }

// SetTimeoutDuration makes the key time out when more than d has passed since the batch
// time, unless the function is called for it before: every call clears the time-out. An
// error ends the query, also where f does not return it.
func (s *GroupState[S]) SetTimeoutDuration(d time.Duration) error {
	switch {
	case s.time != ProcessingTimers:
		return s.run.fail(errors.New("a time-out duration needs GroupsOptions.Timeout = ProcessingTimers"))
	case d < time.Microsecond:
		return s.run.fail(fmt.Errorf("the time-out duration %s is not positive", d))
	}
	s.setTimeout(s.run.batchTime().Add(d))
	return nil
}

// SetTimeoutTimestamp makes the key time out when the watermark is later than t, unless
// the function is called for it before: every call clears the time-out. A t before the
// watermark is an error, which ends the query, also where f does not return it.
func (s *GroupState[S]) SetTimeoutTimestamp(t time.Time) error {
	if s.time != EventTimers {
		return s.run.fail(errors.New("a time-out timestamp needs GroupsOptions.Timeout = EventTimers"))
	}
	if w := s.run.env.Watermark; w != nil && t.UnixMicro() < *w {
		return s.run.fail(fmt.Errorf("the time-out %s is before the watermark %s", t.UTC().Format(time.RFC3339Nano), s.run.instant(*w).Format(time.RFC3339Nano)))
	}
	s.setTimeout(t)
	return nil
}

func (s *GroupState[S]) setTimeout(t time.Time) {
	s.run.timers.Clear()
	s.run.timers.Put(microsecond(t), struct{}{})
}

// noFunction is the DataFrame of a verb that was given none.
func noFunction(verb string) *logical.DataFrame {
	return logical.FailedDataFrame(logical.Usagef("%s: the function is nil", verb))
}

// stateVariable is the variable of the state of (flat)mapGroupsWithState.
const stateVariable = "state"

// groupsWithState is the common part of MapGroupsWithState and FlatMapGroupsWithState.
func groupsWithState[K, V, S, O any](g *logical.GroupedData, spec logical.GroupSpec, o GroupsOptions, f func(key K, rows []V, state *GroupState[S], emit func(O)) error) *logical.DataFrame {
	spec.Mode, spec.Time, spec.Strict = o.Mode, o.Timeout, true
	states, err := gotype.For[S]()
	if err != nil {
		return logical.FailedDataFrame(logical.Usagef("%s: the type of the state: %w", spec.Verb, err))
	}
	fn := &groupFunction[K, V, O]{spec: spec}
	fn.declare = func(h *StateHandle) (groupCalls[K, V, O], error) {
		value := NewValueState[S](h, stateVariable)
		call := func(timedOut bool) *GroupState[S] {
			if o.Timeout != NoTimers {
				value.run.timers.Clear()
			}
			return &GroupState[S]{run: value.run, value: value, time: o.Timeout, timedOut: timedOut}
		}
		return groupCalls[K, V, O]{
			rows: func(key K, rows []V, emit func(O)) error { return f(key, rows, call(false), emit) },
			timer: func(key K, _ time.Time, emit func(O)) error {
				return f(key, nil, call(true), emit)
			},
			initial: func(_ int, rows initialRows) error {
				all, err := decodeRows(states, rows)
				for i := range all {
					rows.visit(i)
					value.Set(all[i])
				}
				return err
			},
		}, nil
	}
	fn.spec.Initial = states.Fields()
	return fn.apply(g, o.Initial, aliases(states))
}
