package incremental_test

import (
	"context"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/tidemill/tidemill"
	"github.com/tidemill/tidemill/columnar/columnartest"
	"github.com/tidemill/tidemill/columnar/function"
	"github.com/tidemill/tidemill/incremental/streamtest"
	"github.com/tidemill/tidemill/internal/vfs"
	"github.com/tidemill/tidemill/logical"
	"github.com/tidemill/tidemill/logical/connector"
)

// groupCase is a stream with a function of groups. What comes out stands in
// testdata/groups, where -rewrite puts it.
type groupCase struct {
	columns string // of the stream events, with its watermark; JSON
	df      func(events *logical.DataFrame) *logical.DataFrame
	mode    connector.OutputMode
	steps   []groupStep
	state   []string // operator/table, looked at in the end
}

// groupStep drops a file, or none, moves the clock, and runs all batches there are to
// run. Writing a file and every try to run a batch take a second each. then replaces the
// query.
type groupStep struct {
	rows  string // JSON lines
	clock time.Duration
	then  func(events *logical.DataFrame) *logical.DataFrame
}

// run gives the transcript of a case in one variant.
func (c *groupCase) run(t *testing.T, v streamtest.Variant) string {
	t.Helper()
	ctx := t.Context()
	w := streamtest.NewWorld(vfs.NewMem(), columnartest.Mem(t), v)
	w.Declare("CREATE STREAM events (" + c.columns + ") WITH (path = '/in/events', format = 'json');")
	df := c.df
	w.Wrap = func(plan logical.Node) (logical.Node, error) {
		return df(logical.NewDataFrame(plan, function.Builtins())).Plan()
	}
	defer func() {
		if err := w.Release(); err != nil {
			t.Error(err)
		}
	}()
	if err := w.Query("SELECT * FROM events", c.mode, nil); err != nil {
		t.Fatal(err)
	}
	if err := w.Open(ctx); err != nil {
		return "refused: " + err.Error() + "\n"
	}
	var sb strings.Builder
	for i, s := range c.steps {
		if err := w.Clock.Sleep(ctx, s.clock); err != nil {
			t.Fatal(err)
		}
		if s.rows != "" {
			if err := w.WriteInput(ctx, fmt.Sprintf("events/%04d.json", i), []byte(strings.TrimSpace(s.rows)+"\n")); err != nil {
				t.Fatal(err)
			}
		}
		fmt.Fprintf(&sb, "step %d\n", i)
		if s.then != nil {
			df = s.then
			if err := w.Reopen(ctx); err != nil {
				fmt.Fprintf(&sb, "refused: %v\n", err)
				return sb.String()
			}
		}
		if !c.batches(ctx, t, w, &sb) {
			return sb.String()
		}
	}
	for _, s := range c.state {
		op, table, _ := strings.Cut(s, "/")
		text, err := w.State(ctx, op, table)
		if err != nil {
			t.Fatal(err)
		}
		_, text, _ = strings.Cut(text, "\n")
		fmt.Fprintf(&sb, "state %s\n%s", s, text)
	}
	return sb.String()
}

// batches runs what there is to run.
func (c *groupCase) batches(ctx context.Context, t *testing.T, w *streamtest.World, sb *strings.Builder) bool {
	t.Helper()
	for range 20 {
		ran, err := w.Step(ctx)
		if err != nil {
			fmt.Fprintf(sb, "failed: %v\n", err)
			return false
		}
		commits, err := w.NewCommits() // what was finished by a start counts
		if err != nil {
			t.Fatal(err)
		}
		if !ran && len(commits) == 0 {
			return true
		}
		for _, b := range commits {
			rows, err := w.Rows(ctx, b.Batch, c.mode != connector.Complete)
			if err != nil {
				t.Fatal(err)
			}
			fmt.Fprintf(sb, "batch %d", b.Batch)
			if b.Counters.Late > 0 {
				fmt.Fprintf(sb, " late=%d", b.Counters.Late)
			}
			fmt.Fprintf(sb, "\n%s", rows)
		}
	}
	t.Fatal("batch after batch runs")
	return false
}

// check runs a case in every variant.
func (c *groupCase) check(t *testing.T) {
	t.Helper()
	t.Parallel()
	file := filepath.Join("testdata", "groups", t.Name()+".txt")
	if f := flag.Lookup("rewrite"); f != nil && f.Value.String() == "true" {
		if err := os.WriteFile(file, []byte(c.run(t, streamtest.Variant{})), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	for i, v := range streamtest.Matrix() {
		if testing.Short() && i > 1 && i != 2+len(t.Name())%(len(streamtest.Matrix())-2) {
			continue
		}
		t.Run(v.Name, func(t *testing.T) {
			t.Parallel()
			if got := c.run(t, v); got != string(want) {
				t.Errorf("got\n%s", got)
			}
		})
	}
}

type event struct {
	User string
	N    int64
}

type timedEvent struct {
	Ts   time.Time
	User string
	N    int64
}

type total struct{ Count, Sum int64 }

type totalOf struct {
	User   string
	Count  int64
	Sum    int64
	Gone   bool
	Called string
}

const (
	plainColumns = "user VARCHAR, n BIGINT"
	timedColumns = "ts TIMESTAMP, user VARCHAR, n BIGINT, WATERMARK FOR ts AS ts - INTERVAL '10 seconds'"
)

// sumUp counts and sums a user's rows; five quiet seconds end it.
func sumUp(o tidemill.GroupsOptions) func(*logical.DataFrame) *logical.DataFrame {
	return func(events *logical.DataFrame) *logical.DataFrame {
		return tidemill.MapGroupsWithState(events.GroupBy(tidemill.Col("user")), o,
			func(user string, rows []event, state *tidemill.GroupState[total]) (totalOf, error) {
				s, _ := state.Get()
				if state.HasTimedOut() {
					state.Remove()
					return totalOf{user, s.Count, s.Sum, true, fmt.Sprint(len(rows))}, nil
				}
				called := ""
				for _, r := range rows {
					s.Count++
					s.Sum += r.N
					called += fmt.Sprint(r.N, " ")
				}
				state.Update(s)
				if o.Timeout == tidemill.ProcessingTimers {
					if err := state.SetTimeoutDuration(5 * time.Second); err != nil {
						return totalOf{}, err
					}
				}
				return totalOf{user, s.Count, s.Sum, false, strings.TrimSpace(called)}, nil
			})
	}
}

func TestMapGroupsWithState(t *testing.T) {
	(&groupCase{
		columns: plainColumns, df: sumUp(tidemill.GroupsOptions{}), mode: connector.Update,
		steps: []groupStep{
			{rows: `{"user":"b","n":1}{"user":"a","n":2}{"user":"b","n":3}{"user":"c","n":9}`},
			{rows: `{"user":"a","n":5}{"user":"d","n":1}{"user":"a","n":4}`},
			{},
		},
		state: []string{"groups(user)/state"},
	}).check(t)
}

// A key times out when its time-out is before the batch time, not when it is equal; a
// batch without data runs when one is due, and not before.
func TestProcessingTimeout(t *testing.T) {
	(&groupCase{
		columns: plainColumns, df: sumUp(tidemill.GroupsOptions{Timeout: tidemill.ProcessingTimers}), mode: connector.Update,
		steps: []groupStep{
			{rows: `{"user":"b","n":1}{"user":"a","n":2}`},
			{clock: time.Second, rows: `{"user":"a","n":5}`},
			{}, // b's is at this second exactly: tried once more, a second later
			{},
			{rows: `{"user":"a","n":7}{"user":"b","n":7}`}, // a's is due, but there are rows
			{clock: time.Minute},
			{},
		},
		state: []string{"groups(user)/timers", "groups(user)/state"},
	}).check(t)
}

type session struct {
	Start, End time.Time
	N          []int64
}

type sessionOf struct {
	User  string
	Start time.Time
	End   time.Time
	N     []int64
	Left  *int64
}

// sessions ends a session five seconds of event time after its last row.
func sessions(events *logical.DataFrame) *logical.DataFrame {
	o := tidemill.GroupsOptions{Timeout: tidemill.EventTimers}
	return tidemill.FlatMapGroupsWithState(events.GroupBy(tidemill.Col("user")), o,
		func(user string, rows []timedEvent, state *tidemill.GroupState[session], emit func(sessionOf)) error {
			s, ok := state.Get()
			if state.HasTimedOut() {
				state.Remove()
				emit(sessionOf{User: user, Start: s.Start, End: s.End, N: s.N})
				return nil
			}
			if !ok {
				s.Start = rows[0].Ts
			}
			for _, r := range rows {
				s.N = append(s.N, r.N)
				if end := r.Ts.Add(5 * time.Second); end.After(s.End) {
					s.End = end
				}
			}
			state.Update(s)
			w, err := state.Watermark()
			if err != nil {
				return err
			}
			if s.End.Before(w) {
				s.End = w
			}
			return state.SetTimeoutTimestamp(s.End)
		})
}

// Event-time time-outs fire when the watermark is later, not when it is equal. Rows
// behind the watermark do not arrive.
func TestEventTimeout(t *testing.T) {
	(&groupCase{
		columns: timedColumns, df: sessions, mode: connector.Append,
		steps: []groupStep{
			{rows: `{"ts":"2024-01-01T12:00:01Z","user":"a","n":1}{"ts":"2024-01-01T12:00:02Z","user":"b","n":2}`},
			{rows: `{"ts":"2024-01-01T12:00:16Z","user":"c","n":3}`},                                               // watermark 12:00:06: a's time exactly
			{rows: `{"ts":"2024-01-01T12:00:17Z","user":"c","n":4}{"ts":"2024-01-01T12:00:05Z","user":"b","n":5}`}, // 12:00:07; b is late
			{rows: `{"ts":"2024-01-01T12:01:00Z","user":"c","n":6}`},
			{},
		},
		state: []string{"groups(user)/timers", "groups(user)/state"},
	}).check(t)
}

func TestTimeoutBeforeWatermark(t *testing.T) {
	df := func(events *logical.DataFrame) *logical.DataFrame {
		o := tidemill.GroupsOptions{Timeout: tidemill.EventTimers}
		return tidemill.FlatMapGroupsWithState(events.GroupBy(tidemill.Col("user")), o,
			func(user string, rows []timedEvent, state *tidemill.GroupState[int64], emit func(string)) error {
				_ = state.SetTimeoutTimestamp(time.Date(2024, 1, 1, 12, 0, 0, 0, time.UTC)) // also unseen, it ends the query
				return nil
			})
	}
	(&groupCase{
		columns: timedColumns, df: df, mode: connector.Append,
		steps: []groupStep{
			{rows: `{"ts":"2024-01-01T12:00:10Z","user":"a","n":1}`},
			{rows: `{"ts":"2024-01-01T12:00:10.000001Z","user":"b","n":1}`}, // the watermark is the time exactly
			{rows: `{"ts":"2024-01-01T12:00:15Z","user":"a","n":1}`},
		},
	}).check(t)
}

// visits uses every kind of state.
type visits struct {
	total  *tidemill.ValueState[total]
	log    *tidemill.ListState[event]
	byN    *tidemill.MapState[int64, place]
	recent *tidemill.ListState[int64]
	fresh  *tidemill.ValueState[string]
}

type place struct {
	First int64
	Tags  map[string][]int32
	At    *time.Time
}

type report struct {
	User   string
	What   string
	Total  *total
	Log    []string
	ByN    string
	Recent []int64
	Fresh  *string
	Timers []time.Time
}

func (v *visits) Init(h *tidemill.StateHandle) error {
	v.total = tidemill.NewValueState[total](h, "total")
	v.log = tidemill.NewListState[event](h, "log")
	v.byN = tidemill.NewMapState[int64, place](h, "by_n")
	v.recent = tidemill.NewListState[int64](h, "recent", tidemill.TTL(7*time.Second))
	v.fresh = tidemill.NewValueState[string](h, "fresh", tidemill.TTL(7*time.Second))
	return nil
}

func (v *visits) report(user, what string, c *tidemill.Call) report {
	r := report{User: user, What: what, Recent: v.recent.Get()}
	if t, ok := v.total.Get(); ok {
		r.Total = &t
	}
	for _, e := range v.log.Get() {
		r.Log = append(r.Log, fmt.Sprint(e.User, e.N))
	}
	for n, p := range v.byN.All() {
		r.ByN += fmt.Sprint(n, ":", p.First, p.Tags, " ")
	}
	if f, ok := v.fresh.Get(); ok {
		r.Fresh = &f
	}
	r.Timers, _ = c.ListTimers()
	return r
}

func (v *visits) HandleInputRows(user string, rows []event, c *tidemill.Call, emit func(report)) error {
	t, _ := v.total.Get()
	for _, r := range rows {
		t.Count++
		t.Sum += r.N
		switch {
		case r.N == 0:
			v.total.Clear()
			v.log.Clear()
			v.byN.Clear()
			emit(v.report(user, "cleared", c))
			return nil
		case r.N < 0:
			v.byN.Remove(-r.N)
			v.fresh.Clear()
			if err := c.DeleteTimer(c.BatchTime().Add(100 * time.Second)); err != nil { // there is none
				return err
			}
			continue
		}
		p, ok := v.byN.Get(r.N)
		if !ok {
			p = place{First: t.Count}
		}
		if p.Tags == nil {
			p.Tags = map[string][]int32{}
		}
		p.Tags[user] = append(p.Tags[user], int32(t.Sum))
		v.byN.Put(r.N, p)
		v.log.Append(r)
		v.recent.Append(r.N)
		v.fresh.Set(fmt.Sprint("saw ", r.N))
		if err := c.RegisterTimer(c.BatchTime().Add(time.Duration(r.N) * time.Second)); err != nil {
			return err
		}
	}
	v.total.Set(t)
	emit(v.report(user, "rows", c))
	return nil
}

func (v *visits) HandleExpiredTimer(user string, timer time.Time, c *tidemill.Call, emit func(report)) error {
	emit(v.report(user, timer.Format("timer 05"), c))
	return nil
}

func transformVisits(events *logical.DataFrame) *logical.DataFrame {
	return tidemill.TransformWithState(events.GroupBy(tidemill.Col("user")), tidemill.TransformOptions{Time: tidemill.ProcessingTimers},
		func() tidemill.StatefulProcessor[string, event, report] { return &visits{} })
}

// Values, lists, maps, time to live, several timers. Timers fire when the batch time is
// equal; rows come first. A value is gone when its time is equal.
func TestTransformWithState(t *testing.T) {
	(&groupCase{
		columns: plainColumns, df: transformVisits, mode: connector.Append,
		steps: []groupStep{
			{rows: `{"user":"b","n":3}{"user":"a","n":2}{"user":"b","n":60}{"user":"a","n":2}`},
			{rows: `{"user":"a","n":5}{"user":"b","n":3}{"user":"a","n":-2}`},
			{rows: `{"user":"c","n":1}`},
			{rows: `{"user":"b","n":1}{"user":"b","n":2}`},
			{rows: `{"user":"b","n":0}`},
			{clock: time.Minute},
		},
		state: []string{"groups(user)/total", "groups(user)/log", "groups(user)/by_n", "groups(user)/recent", "groups(user)/fresh", "groups(user)/timers"},
	}).check(t)
}

// reminders sets event-time timers.
type reminders struct{ n *tidemill.ValueState[int64] }

func (r *reminders) Init(h *tidemill.StateHandle) error {
	r.n = tidemill.NewValueState[int64](h, "n")
	return nil
}

type reminder struct {
	User  string
	At    time.Time
	N     int64
	Water string
}

func (r *reminders) HandleInputRows(_ string, rows []timedEvent, c *tidemill.Call, _ func(reminder)) error {
	n, _ := r.n.Get()
	r.n.Set(n + int64(len(rows)))
	for _, e := range rows {
		if err := c.RegisterTimer(e.Ts.Add(time.Duration(e.N) * time.Second)); err != nil {
			return err
		}
	}
	return nil
}

func (r *reminders) HandleExpiredTimer(user string, timer time.Time, c *tidemill.Call, emit func(reminder)) error {
	n, _ := r.n.Get()
	w, err := c.Watermark()
	emit(reminder{user, timer, n, w.Format("15:04:05")})
	if n == 13 {
		return c.RegisterTimer(timer)
	}
	if timers, _ := c.ListTimers(); len(timers) > 0 && n == 4 {
		return c.DeleteTimer(timers[0]) // it is due, too
	}
	return err
}

func transformReminders(events *logical.DataFrame) *logical.DataFrame {
	return tidemill.TransformWithState(events.GroupBy(tidemill.Col("user")), tidemill.TransformOptions{Time: tidemill.EventTimers},
		func() tidemill.StatefulProcessor[string, timedEvent, reminder] { return &reminders{} })
}

// Event-time timers fire when the watermark is equal, those of the past in the batch that
// sets them; a timer that a call deletes does not fire.
func TestEventTimers(t *testing.T) {
	(&groupCase{
		columns: timedColumns, df: transformReminders, mode: connector.Append,
		steps: []groupStep{
			{rows: `{"ts":"2024-01-01T12:00:01Z","user":"b","n":5}{"ts":"2024-01-01T12:00:01Z","user":"a","n":5}{"ts":"2024-01-01T12:00:01Z","user":"a","n":5}`},
			{rows: `{"ts":"2024-01-01T12:00:16Z","user":"c","n":0}`},
			{rows: `{"ts":"2024-01-01T12:00:20Z","user":"c","n":-15}{"ts":"2024-01-01T12:00:20Z","user":"c","n":1}{"ts":"2024-01-01T12:00:20Z","user":"c","n":2}`},
			{rows: `{"ts":"2024-01-01T12:01:20Z","user":"d","n":1}{"ts":"2024-01-01T12:00:10Z","user":"d","n":1}`},
			{},
		},
		state: []string{"groups(user)/n", "groups(user)/timers"},
	}).check(t)
}

func TestTimerSetByTimerInThePast(t *testing.T) {
	row := `{"ts":"2024-01-01T12:00:01Z","user":"b","n":5}`
	(&groupCase{
		columns: timedColumns, df: transformReminders, mode: connector.Append,
		steps: []groupStep{{rows: strings.Repeat(row, 13)}, {rows: `{"ts":"2024-01-01T12:02:01Z","user":"c","n":5}`}},
	}).check(t)
}

// A function over all rows: no keys.
func TestGlobalGroup(t *testing.T) {
	df := func(events *logical.DataFrame) *logical.DataFrame {
		return tidemill.FlatMapGroupsWithState(events.GroupBy(), tidemill.GroupsOptions{Timeout: tidemill.ProcessingTimers},
			func(_ struct{}, rows []event, state *tidemill.GroupState[map[string]int64], emit func(string)) error {
				s, _ := state.Get()
				if s == nil {
					s = map[string]int64{}
				}
				for _, r := range rows {
					s[r.User] += r.N
				}
				state.Update(s)
				emit(fmt.Sprint(s, state.HasTimedOut()))
				return state.SetTimeoutDuration(30 * time.Second)
			})
	}
	(&groupCase{
		columns: plainColumns, df: df, mode: connector.Append,
		steps: []groupStep{
			{rows: `{"user":"b","n":3}{"user":"a","n":2}`}, {rows: `{"user":"b","n":4}`}, {clock: time.Minute},
		},
		state: []string{"groups()/state"},
	}).check(t)
}

// What a function emits can be aggregated, in output mode complete.
func TestAggregateAboveGroups(t *testing.T) {
	df := func(events *logical.DataFrame) *logical.DataFrame {
		firsts := tidemill.FlatMapGroupsWithState(events.GroupBy(tidemill.Col("user"), tidemill.Col("n").Mod(tidemill.Lit(2)).As("odd")), tidemill.GroupsOptions{},
			func(key struct {
				User string
				Odd  int64
			}, rows []event, state *tidemill.GroupState[bool], emit func(event)) error {
				if !state.Exists() {
					emit(rows[0])
					state.Update(true)
				}
				return nil
			})
		return firsts.GroupBy(tidemill.Col("user")).Agg(tidemill.Sum(tidemill.Col("n")).As("firsts"))
	}
	(&groupCase{
		columns: plainColumns, df: df, mode: connector.Complete,
		steps: []groupStep{
			{rows: `{"user":"b","n":3}{"user":"a","n":2}{"user":"b","n":5}`},
			{rows: `{"user":"b","n":8}{"user":"b","n":10}{"user":"b","n":7}`},
		},
		state: []string{"groups(user, odd)/state"},
	}).check(t)
}

// Errors of the function end the query and name the key.
func TestGroupErrors(t *testing.T) {
	df := func(events *logical.DataFrame) *logical.DataFrame {
		return tidemill.FlatMapGroupsWithState(events.GroupBy(tidemill.Col("user")), tidemill.GroupsOptions{},
			func(user string, rows []event, _ *tidemill.GroupState[bool], emit func(string)) error {
				if rows[0].N == 13 {
					return fmt.Errorf("%d is unlucky", rows[0].N)
				}
				return nil
			})
	}
	(&groupCase{
		columns: plainColumns, df: df, mode: connector.Append,
		steps: []groupStep{{rows: `{"user":"b","n":3}`}, {rows: `{"user":"b","n":3}{"user":"c","n":13}`}},
	}).check(t)
}

func TestNullKeyAndValue(t *testing.T) {
	for name, c := range map[string]struct {
		df   func(events *logical.DataFrame) *logical.DataFrame
		rows string
	}{
		"key":   {sumUp(tidemill.GroupsOptions{}), `{"n":3}`},
		"value": {sumUp(tidemill.GroupsOptions{}), `{"user":"b"}`},
		"pointers": {func(events *logical.DataFrame) *logical.DataFrame {
			return tidemill.MapGroupsWithState(events.GroupBy(tidemill.Col("user")), tidemill.GroupsOptions{},
				func(user *string, rows []*int64, state *tidemill.GroupState[int]) (string, error) {
					n, _ := state.Get()
					state.Update(n + len(rows))
					return fmt.Sprint(user == nil, rows[0] == nil, n), nil
				})
		}, `{"n":3}{"user":"b"}`},
	} {
		t.Run(name, func(t *testing.T) {
			(&groupCase{columns: plainColumns, df: c.df, mode: connector.Update, steps: []groupStep{{rows: c.rows}, {rows: c.rows}}}).check(t)
		})
	}
}
