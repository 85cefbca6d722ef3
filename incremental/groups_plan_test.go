package incremental_test

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/tidemill/tidemill"
	"github.com/tidemill/tidemill/columnar"
	"github.com/tidemill/tidemill/columnar/columnartest"
	"github.com/tidemill/tidemill/columnar/function"
	"github.com/tidemill/tidemill/incremental"
	"github.com/tidemill/tidemill/incremental/streamtest"
	"github.com/tidemill/tidemill/internal/vfs"
	"github.com/tidemill/tidemill/logical"
	"github.com/tidemill/tidemill/logical/connector"
	"github.com/tidemill/tidemill/logical/expr"
)

// static is a bounded DataFrame of users and numbers.
func static(rows ...any) *logical.DataFrame {
	v := &logical.Values{Output: logical.NewSchema(
		&expr.Column{ID: expr.NewID(), Name: "user", DataType: columnar.String},
		&expr.Column{ID: expr.NewID(), Name: "count", DataType: columnar.Int32},
		&expr.Column{ID: expr.NewID(), Name: "sum", DataType: columnar.Int64})}
	for i := 0; i < len(rows); i += 3 {
		v.Rows = append(v.Rows, []expr.Expr{expr.Lit(rows[i]).Expr, expr.Lit(rows[i+1]).Expr, expr.Lit(rows[i+2]).Expr})
	}
	return logical.NewDataFrame(v, function.Builtins())
}

// The initial state is there before the first batch, and only then; keys without rows
// are not called.
func TestInitialState(t *testing.T) {
	(&groupCase{
		columns: plainColumns, mode: connector.Update,
		df: func(events *logical.DataFrame) *logical.DataFrame {
			o := tidemill.GroupsOptions{Initial: static("a", int32(5), int64(50), "z", int32(1), int64(1)).GroupBy(tidemill.Col("user"))}
			return sumUp(o)(events)
		},
		steps: []groupStep{{rows: `{"user":"b","n":1}{"user":"a","n":2}`}, {rows: `{"user":"z","n":1}{"user":"a","n":2}`}},
		state: []string{"groups(user)/state"},
	}).check(t)
}

func TestInitialStateTwice(t *testing.T) {
	(&groupCase{
		columns: plainColumns, mode: connector.Update,
		df: func(events *logical.DataFrame) *logical.DataFrame {
			o := tidemill.GroupsOptions{Initial: static("a", int32(5), int64(50), "a", int32(1), int64(1)).GroupBy(tidemill.Col("user"))}
			return sumUp(o)(events)
		},
		steps: []groupStep{{rows: `{"user":"b","n":1}`}},
	}).check(t)
}

// seeded starts with rows of state, and timers.
type seeded struct {
	n *tidemill.ListState[int64]
}

func (s *seeded) Init(h *tidemill.StateHandle) error {
	s.n = tidemill.NewListState[int64](h, "n")
	return nil
}

func (s *seeded) HandleInitialState(user string, row total, c *tidemill.Call) error {
	s.n.Append(row.Count, row.Sum)
	return c.RegisterTimer(c.BatchTime().Add(4 * time.Second))
}

func (s *seeded) HandleInputRows(user string, rows []int64, _ *tidemill.Call, emit func(string)) error {
	s.n.Append(rows...)
	emit(fmt.Sprint(user, s.n.Get()))
	return nil
}

func (s *seeded) HandleExpiredTimer(user string, _ time.Time, _ *tidemill.Call, emit func(string)) error {
	emit(fmt.Sprint("timer ", user, s.n.Get()))
	s.n.Clear()
	return nil
}

func TestTransformWithInitialState(t *testing.T) {
	(&groupCase{
		columns: plainColumns, mode: connector.Append,
		df: func(events *logical.DataFrame) *logical.DataFrame {
			initial := static("a", int32(5), int64(50), "z", int32(1), int64(1)).GroupBy(tidemill.Col("user"))
			return tidemill.TransformWithInitialState(events.GroupBy(tidemill.Col("user")), initial, tidemill.TransformOptions{Time: tidemill.ProcessingTimers},
				func() tidemill.InitialStateHandler[string, int64, string, total] { return &seeded{} })
		},
		steps: []groupStep{{rows: `{"user":"b","n":1}{"user":"a","n":2}`}, {rows: `{"user":"a","n":3}`}, {clock: time.Minute, rows: `{"user":"a","n":4}`}},
		state: []string{"groups(user)/n"},
	}).check(t)
}

// variable is a processor with one variable, declared as it is told.
type variable struct {
	declare func(h *tidemill.StateHandle)
}

func (v *variable) Init(h *tidemill.StateHandle) error {
	v.declare(h)
	return nil
}

func (v *variable) HandleInputRows(string, []event, *tidemill.Call, func(string)) error { return nil }

func (v *variable) HandleExpiredTimer(string, time.Time, *tidemill.Call, func(string)) error {
	return nil
}

func withVariable(o tidemill.TransformOptions, declare func(h *tidemill.StateHandle)) func(*logical.DataFrame) *logical.DataFrame {
	return func(events *logical.DataFrame) *logical.DataFrame {
		return tidemill.TransformWithState(events.GroupBy(tidemill.Col("user")), o,
			func() tidemill.StatefulProcessor[string, event, string] { return &variable{declare} })
	}
}

// A variable may be added. Another kind, type or time to live, another clock, and a
// variable that is gone are refused, by operator and variable.
func TestChangedState(t *testing.T) {
	t.Parallel()
	processing := tidemill.TransformOptions{Time: tidemill.ProcessingTimers}
	first := withVariable(processing, func(h *tidemill.StateHandle) { tidemill.NewValueState[int64](h, "x") })
	for name, c := range map[string]struct {
		then func(*logical.DataFrame) *logical.DataFrame
		want string // "" is accepted
	}{
		"same": {first, ""},
		"added": {withVariable(processing, func(h *tidemill.StateHandle) {
			tidemill.NewListState[total](h, "y")
			tidemill.NewValueState[int64](h, "x")
		}), ""},
		"type": {withVariable(processing, func(h *tidemill.StateHandle) { tidemill.NewValueState[float64](h, "x") }),
			"operator groups(user): its state variable x was value of value BIGINT and is now value of value DOUBLE"},
		"kind": {withVariable(processing, func(h *tidemill.StateHandle) { tidemill.NewListState[int64](h, "x") }),
			"operator groups(user): its state variable x was value of value BIGINT and is now list of value BIGINT"},
		"ttl": {withVariable(processing, func(h *tidemill.StateHandle) {
			tidemill.NewValueState[int64](h, "x", tidemill.TTL(time.Minute))
		}),
			"operator groups(user): its state variable x was value of value BIGINT and is now value of value BIGINT with TTL 1m0s"},
		"gone": {withVariable(processing, func(h *tidemill.StateHandle) {}),
			"operator groups(user): its state variable x (value of value BIGINT) is gone; keep declaring it"},
		"clock": {withVariable(tidemill.TransformOptions{}, func(h *tidemill.StateHandle) { tidemill.NewValueState[int64](h, "x") }),
			"timers=processing time and is now keys=[user VARCHAR] mode=append timers=none"},
		"verb": {func(events *logical.DataFrame) *logical.DataFrame {
			return tidemill.FlatMapGroupsWithState(events.GroupBy(tidemill.Col("user")), tidemill.GroupsOptions{},
				func(string, []event, *tidemill.GroupState[int64], func(string)) error { return nil })
		}, "operator groups(user): it was transformWithState and is now flatMapGroupsWithState"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			g := groupCase{columns: plainColumns, df: first, mode: connector.Append, steps: []groupStep{{rows: `{"user":"a","n":1}`}, {then: c.then, rows: `{"user":"a","n":1}`}}}
			got := g.run(t, streamtest.Variant{})
			if c.want == "" && strings.Contains(got, "refused") || !strings.Contains(got, c.want) {
				t.Errorf("got %s\nwant %s", got, c.want)
			}
		})
	}
}

// stateless is a function in a mode, with a clock.
func inMode(mode connector.OutputMode, clock tidemill.TimeMode) func(*logical.DataFrame) *logical.DataFrame {
	return func(events *logical.DataFrame) *logical.DataFrame {
		return tidemill.FlatMapGroupsWithState(events.GroupBy(tidemill.Col("user")), tidemill.GroupsOptions{Mode: mode, Timeout: clock},
			func(string, []event, *tidemill.GroupState[int64], func(event)) error { return nil })
	}
}

func mapped(events *logical.DataFrame) *logical.DataFrame {
	return tidemill.MapGroupsWithState(events.GroupBy(tidemill.Col("user")), tidemill.GroupsOptions{},
		func(user string, _ []event, _ *tidemill.GroupState[int64]) (event, error) { return event{}, nil })
}

// The matrix of output modes and what stands above and below.
func TestGroupModes(t *testing.T) {
	t.Parallel()
	appending, updating := inMode(connector.Append, tidemill.NoTimers), inMode(connector.Update, tidemill.NoTimers)
	eventTime := inMode(connector.Append, tidemill.EventTimers)
	counted := func(f func(*logical.DataFrame) *logical.DataFrame) func(*logical.DataFrame) *logical.DataFrame {
		return func(events *logical.DataFrame) *logical.DataFrame {
			return f(events).GroupBy(tidemill.Col("user")).Agg(tidemill.Count().As("n"))
		}
	}
	twice := func(f, g func(*logical.DataFrame) *logical.DataFrame) func(*logical.DataFrame) *logical.DataFrame {
		return func(events *logical.DataFrame) *logical.DataFrame { return g(f(events)) }
	}
	for i, c := range []struct {
		df   func(*logical.DataFrame) *logical.DataFrame
		mode connector.OutputMode
		want string // part of the refusal; "" is legal
	}{
		{mapped, connector.Update, ""},
		{mapped, connector.Append, "mapGroupsWithState in mode update in output mode append is not supported: the two must be the same; use output_mode = 'update'"},
		{mapped, connector.Complete, "nothing is aggregated"},
		{appending, connector.Append, ""},
		{appending, connector.Update, "flatMapGroupsWithState in mode append in output mode update"},
		{updating, connector.Update, ""},
		{updating, connector.Append, "flatMapGroupsWithState in mode update in output mode append"},
		{counted(appending), connector.Complete, ""},
		{counted(appending), connector.Update, ""},
		{counted(appending), connector.Append, "without a watermark on a grouping key no group is ever finished"},
		{counted(updating), connector.Complete, "flatMapGroupsWithState in mode update below an aggregate"},
		{counted(eventTime), connector.Complete, "flatMapGroupsWithState with timers of event time below an aggregate"},
		{twice(appending, appending), connector.Append, ""},
		{twice(appending, eventTime), connector.Append, "with timers of event time is not supported: its input has no watermark"},
		{twice(eventTime, appending), connector.Append, "with timers of event time below flatMapGroupsWithState"},
		{twice(appending, updating), connector.Update, "in mode update beside another function with state"},
		{twice(mapped, mapped), connector.Update, "mapGroupsWithState in mode update beside another function with state"},
		{eventTime, connector.Append, ""},
		{func(events *logical.DataFrame) *logical.DataFrame {
			f := tidemill.FlatMapGroupsWithState(events.GroupBy(tidemill.Col("user")), tidemill.GroupsOptions{},
				func(string, []event, *tidemill.GroupState[int64], func(timedEvent)) error { return nil })
			return f.WithWatermark("ts", time.Second)
		}, connector.Append, "a watermark above flatMapGroupsWithState"},
		{func(events *logical.DataFrame) *logical.DataFrame {
			windows := events.GroupBy(tidemill.Window(tidemill.Col("ts"), time.Minute), tidemill.Col("user")).Agg(tidemill.Count().As("n"))
			return inMode(connector.Append, tidemill.NoTimers)(windows)
		}, connector.Append, ""},
		{func(events *logical.DataFrame) *logical.DataFrame {
			return appending(events).DropDuplicates("user")
		}, connector.Append, ""},
	} {
		g := groupCase{columns: timedColumns, df: c.df, mode: c.mode, steps: []groupStep{{rows: `{"ts":"2024-01-01T12:00:01Z","user":"b","n":5}`}, {}}}
		got := g.run(t, streamtest.Variant{})
		if c.want == "" && (strings.Contains(got, "refused") || strings.Contains(got, "failed")) || !strings.Contains(got, c.want) {
			t.Errorf("case %d: got %s\nwant %s", i, got, c.want)
		}
	}
}

type wrongKey struct{ Nobody string }

// Mistakes in types and declarations are found when the DataFrame is built.
func TestGroupMistakes(t *testing.T) {
	t.Parallel()
	user := tidemill.Col("user")
	for want, df := range map[string]func(events *logical.DataFrame) *logical.DataFrame{
		"the Go type of the key: there is no column nobody": func(e *logical.DataFrame) *logical.DataFrame {
			return tidemill.MapGroupsWithState(e.GroupBy(user), tidemill.GroupsOptions{}, func(wrongKey, []event, *tidemill.GroupState[int]) (int, error) { return 0, nil })
		},
		"it is grouped by 2 keys, but the Go type of the key has 1 fields": func(e *logical.DataFrame) *logical.DataFrame {
			return tidemill.MapGroupsWithState(e.GroupBy(user, tidemill.Col("n")), tidemill.GroupsOptions{}, func(struct{ User string }, []event, *tidemill.GroupState[int]) (int, error) { return 0, nil })
		},
		"the key is a plain Go type, which takes one column, and there are 2 (user, n); select one, or use a struct": func(e *logical.DataFrame) *logical.DataFrame {
			return tidemill.MapGroupsWithState(e.GroupBy(user, tidemill.Col("n")), tidemill.GroupsOptions{}, func(string, []event, *tidemill.GroupState[int]) (int, error) { return 0, nil })
		},
		"column n is BIGINT, but the Go type of a row takes VARCHAR; cast it, or change the Go type": func(e *logical.DataFrame) *logical.DataFrame {
			return tidemill.MapGroupsWithState(e.GroupBy(user), tidemill.GroupsOptions{}, func(string, []struct{ N string }, *tidemill.GroupState[int]) (int, error) { return 0, nil })
		},
		"column n is BIGINT, but the Go type of a row takes INTEGER; cast it": func(e *logical.DataFrame) *logical.DataFrame {
			return tidemill.MapGroupsWithState(e.GroupBy(user), tidemill.GroupsOptions{}, func(string, []struct{ N int32 }, *tidemill.GroupState[int]) (int, error) { return 0, nil })
		},
		"mapGroupsWithState: the type of the state: func(): a func() cannot be a column": func(e *logical.DataFrame) *logical.DataFrame {
			return tidemill.MapGroupsWithState(e.GroupBy(user), tidemill.GroupsOptions{}, func(string, []event, *tidemill.GroupState[func()]) (int, error) { return 0, nil })
		},
		"initial state: the Go type of a row: there is no column nobody": func(e *logical.DataFrame) *logical.DataFrame {
			o := tidemill.GroupsOptions{Initial: static("a", int32(1), int64(1)).GroupBy(user)}
			return tidemill.MapGroupsWithState(e.GroupBy(user), o, func(string, []event, *tidemill.GroupState[wrongKey]) (int, error) { return 0, nil })
		},
		"initial state: initial state that is a stream is not supported": func(e *logical.DataFrame) *logical.DataFrame {
			o := tidemill.GroupsOptions{Initial: e.GroupBy(user)}
			return tidemill.MapGroupsWithState(e.GroupBy(user), o, func(string, []event, *tidemill.GroupState[wrongKey]) (int, error) { return 0, nil })
		},
		"a window cannot be a key of a function with state": func(e *logical.DataFrame) *logical.DataFrame {
			window := tidemill.Window(tidemill.Col("n"), time.Minute)
			return tidemill.MapGroupsWithState(e.GroupBy(window), tidemill.GroupsOptions{}, func(time.Time, []event, *tidemill.GroupState[int]) (int, error) { return 0, nil })
		},
		"state variable X is declared twice": withVariable(tidemill.TransformOptions{}, func(h *tidemill.StateHandle) {
			tidemill.NewListState[int64](h, "x")
			tidemill.NewValueState[int64](h, "X")
		}),
		"the name of state variable timers is taken":   withVariable(tidemill.TransformOptions{}, func(h *tidemill.StateHandle) { tidemill.NewListState[int64](h, "timers") }),
		`"a b" cannot be the name of a state variable`: withVariable(tidemill.TransformOptions{}, func(h *tidemill.StateHandle) { tidemill.NewListState[int64](h, "a b") }),
		"state variable x: the time to live -1s is not positive": withVariable(tidemill.TransformOptions{}, func(h *tidemill.StateHandle) {
			tidemill.NewListState[int64](h, "x", tidemill.TTL(-time.Second))
		}),
		"state variable x was used outside of a call": withVariable(tidemill.TransformOptions{}, func(h *tidemill.StateHandle) { tidemill.NewListState[int64](h, "x").Append(1) }),
		"*string cannot be the key of a map":          withVariable(tidemill.TransformOptions{}, func(h *tidemill.StateHandle) { tidemill.NewMapState[*string, int64](h, "x") }),
		"but no method HandleExpiredTimer": func(e *logical.DataFrame) *logical.DataFrame {
			return tidemill.TransformWithState(e.GroupBy(user), tidemill.TransformOptions{Time: tidemill.ProcessingTimers},
				func() tidemill.StatefulProcessor[string, event, string] { return plainProcessor{} })
		},
	} {
		g := groupCase{columns: plainColumns, mode: connector.Append}
		w := streamtest.NewWorld(vfs.NewMem(), columnartest.Mem(t), streamtest.Variant{})
		w.Declare("CREATE STREAM events (" + g.columns + ") WITH (path = '/in/events', format = 'json');")
		w.Wrap = func(plan logical.Node) (logical.Node, error) {
			return df(logical.NewDataFrame(plan, function.Builtins())).Plan()
		}
		if err := w.Query("SELECT * FROM events", g.mode, nil); err != nil {
			t.Fatal(err)
		}
		if _, err := w.Plan(t.Context()); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("got  %v\nwant %s", err, want)
		}
	}
}

type plainProcessor struct{}

func (plainProcessor) Init(*tidemill.StateHandle) error { return nil }

func (plainProcessor) HandleInputRows(string, []event, *tidemill.Call, func(string)) error {
	return nil
}

// Whatever the cut into files and the shards, a running function sees the rows of a key
// in the order in which they came, once.
func TestGroupsSeeEveryRowOnce(t *testing.T) {
	t.Parallel()
	for seed := range uint64(12) {
		r := rand.New(rand.NewPCG(seed, 7))
		want := map[string]string{}
		var steps []groupStep
		for range 1 + r.IntN(4) {
			var sb strings.Builder
			for range r.IntN(400) {
				user, n := fmt.Sprint("u", r.IntN(40)), r.IntN(1000)
				fmt.Fprintf(&sb, "{\"user\":%q,\"n\":%d}\n", user, n)
				want[user] += fmt.Sprint(n, ",")
			}
			steps = append(steps, groupStep{rows: sb.String()})
		}
		got := map[string]string{}
		df := func(events *logical.DataFrame) *logical.DataFrame {
			return tidemill.MapGroupsWithState(events.GroupBy(tidemill.Col("user")), tidemill.GroupsOptions{},
				func(user string, rows []event, state *tidemill.GroupState[string]) (int, error) {
					s, _ := state.Get()
					for _, r := range rows {
						s += fmt.Sprint(r.N, ",")
					}
					state.Update(s)
					got[user] = s
					return len(rows), nil
				})
		}
		variants := streamtest.Matrix()
		g := groupCase{columns: plainColumns, df: df, mode: connector.Update, steps: steps}
		g.run(t, variants[int(seed)%len(variants)])
		if !maps.Equal(got, want) {
			t.Errorf("seed %d: %d keys, want %d, %v", seed, len(got), len(want), slices.Sorted(maps.Keys(got)))
		}
	}
}

func TestGroupsExplain(t *testing.T) {
	t.Parallel()
	w := streamtest.NewWorld(vfs.NewMem(), columnartest.Mem(t), streamtest.Variant{})
	w.Declare("CREATE STREAM events (" + timedColumns + ") WITH (path = '/in/events', format = 'json');")
	w.Wrap = func(plan logical.Node) (logical.Node, error) {
		return ledgers(logical.NewDataFrame(plan, function.Builtins())).Plan()
	}
	if err := w.Query("SELECT * FROM events WHERE n > 0", connector.Append, nil); err != nil {
		t.Fatal(err)
	}
	plan, err := w.Plan(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if got, want := plan.String(), "MapGroups transformWithState keys=[events.user] mode=append timers=event-time"; got != want {
		t.Errorf("got %s, want %s", got, want)
	}
	text, err := incremental.Explain(w.Config(plan))
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"MapGroups groups(user) transformWithState mode=append\n", "  Values ", "Watermark ", "Scan "} {
		if !strings.Contains(text, want) {
			t.Errorf("%q is not in\n%s", want, text)
		}
	}
}

// Late rows that a function does not see are kept, where they are to be.
func TestGroupsKeepLateRows(t *testing.T) {
	t.Parallel()
	ctx := t.Context()
	w := streamtest.NewWorld(vfs.NewMem(), columnartest.Mem(t), streamtest.Variant{Shards: 2})
	w.Sink, w.Keep = "json", []string{"late"}
	w.Declare("CREATE STREAM events (" + timedColumns + ") WITH (path = '/in/events', format = 'json');")
	w.Wrap = func(plan logical.Node) (logical.Node, error) {
		return sessions(logical.NewDataFrame(plan, function.Builtins())).Plan()
	}
	defer func() {
		if err := w.Release(); err != nil {
			t.Error(err)
		}
	}()
	if err := w.Query("SELECT * FROM events", connector.Append, nil); err != nil {
		t.Fatal(err)
	}
	if err := w.Open(ctx); err != nil {
		t.Fatal(err)
	}
	for i, rows := range []string{at(1, "a", 3) + at(30, "b", 4), at(20, "a", 5) + at(31, "b", 6)} {
		if err := w.WriteInput(ctx, fmt.Sprintf("events/%d.json", i), []byte(rows)); err != nil {
			t.Fatal(err)
		}
		for ran := true; ran; {
			var err error
			if ran, err = w.Step(ctx); err != nil {
				t.Fatal(err)
			}
		}
	}
	rows, err := w.Side(ctx, "late", "ts, user, n")
	if err != nil {
		t.Fatal(err)
	}
	if want := "ts:timestamp          user:varchar  n:bigint\n2024-01-01T12:00:20Z  a             5\n"; rows != want {
		t.Errorf("got\n%s\nwant\n%s", rows, want)
	}
}
