package incremental_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/tidemill/tidemill"
	"github.com/tidemill/tidemill/columnar/function"
	"github.com/tidemill/tidemill/incremental/streamtest"
	"github.com/tidemill/tidemill/logical"
	"github.com/tidemill/tidemill/logical/connector"
)

// ledger keeps values, lists and maps, and event-time timers.
type ledger struct {
	sum  *tidemill.ValueState[int64]
	log  *tidemill.ListState[timedEvent]
	seen *tidemill.MapState[int64, []string]
}

func (l *ledger) Init(h *tidemill.StateHandle) error {
	l.sum = tidemill.NewValueState[int64](h, "sum")
	l.log = tidemill.NewListState[timedEvent](h, "log")
	l.seen = tidemill.NewMapState[int64, []string](h, "seen")
	return nil
}

func (l *ledger) HandleInitialState(user string, row total, c *tidemill.Call) error {
	l.sum.Set(row.Sum)
	return c.RegisterTimer(time.Date(2024, 1, 1, 12, 0, 5, 0, time.UTC))
}

func (l *ledger) HandleInputRows(user string, rows []timedEvent, c *tidemill.Call, emit func(string)) error {
	for _, r := range rows {
		s, _ := l.sum.Get()
		l.sum.Set(s + r.N)
		l.log.Append(r)
		seen, _ := l.seen.Get(r.N % 3)
		l.seen.Put(r.N%3, append(seen, fmt.Sprint(user, r.N)))
		if err := c.RegisterTimer(r.Ts.Add(time.Duration(r.N) * time.Second)); err != nil {
			return err
		}
	}
	s, _ := l.sum.Get()
	emit(fmt.Sprint(user, " ", s))
	return nil
}

func (l *ledger) HandleExpiredTimer(user string, timer time.Time, c *tidemill.Call, emit func(string)) error {
	log := l.log.Get()
	emit(fmt.Sprint(user, timer.Format(" 15:04:05 "), len(log), l.seen.Len()))
	if len(log) > 1 {
		l.log.Set(log[1:])
	}
	l.seen.Remove(int64(len(log)) % 3)
	if timers, err := c.ListTimers(); err != nil || len(timers) > 0 {
		return err
	}
	l.sum.Clear()
	return nil
}

func ledgers(events *logical.DataFrame) *logical.DataFrame {
	initial := static("z", int32(1), int64(7)).GroupBy(tidemill.Col("user"))
	return tidemill.TransformWithInitialState(events.GroupBy(tidemill.Col("user")), initial, tidemill.TransformOptions{Time: tidemill.EventTimers},
		func() tidemill.InitialStateHandler[string, timedEvent, string, total] { return &ledger{} })
}

// at is a row of the scenarios below.
func at(second int, user string, n int) string {
	return fmt.Sprintf("{\"ts\":\"2024-01-01T12:00:%02dZ\",\"user\":%q,\"n\":%d}\n", second, user, n)
}

var groupSteps = []streamtest.Step{
	{Files: map[string]string{"events/1.json": at(1, "a", 3) + at(2, "b", 4) + at(3, "a", 5)}},
	{Files: map[string]string{"events/2.json": at(16, "b", 1) + at(12, "c", 9)}, Restart: true},
	{Files: map[string]string{"events/3.json": at(25, "a", 2) + at(1, "c", 1), "events/4.json": at(26, "d", 1)}},
	{Files: map[string]string{"events/5.json": at(59, "d", 8)}, Restart: true},
}

var hourSteps = []streamtest.Step{
	{Files: map[string]string{"events/1.json": at(1, "a", 3) + at(2, "b", 4) + at(3, "a", 5)}},
	{Clock: 2 * time.Hour, Files: map[string]string{"events/2.json": at(16, "b", 1) + at(12, "c", 0)}, Restart: true},
	{Clock: time.Hour, Files: map[string]string{"events/3.json": at(25, "a", 2) + at(1, "c", -1), "events/4.json": at(26, "d", 1)}},
	{Clock: 3 * time.Hour, Restart: true},
	{Clock: 2 * time.Hour, Files: map[string]string{"events/5.json": at(59, "d", 8)}},
}

// hourly keeps values, lists and maps that live two hours, and timers of the clock.
type hourly struct {
	sum  *tidemill.ValueState[int64]
	log  *tidemill.ListState[int64]
	seen *tidemill.MapState[int64, string]
}

func (l *hourly) Init(h *tidemill.StateHandle) error {
	l.sum = tidemill.NewValueState[int64](h, "sum", tidemill.TTL(2*time.Hour))
	l.log = tidemill.NewListState[int64](h, "log", tidemill.TTL(3*time.Hour))
	l.seen = tidemill.NewMapState[int64, string](h, "seen", tidemill.TTL(time.Hour))
	return nil
}

func (l *hourly) show(user, what string, c *tidemill.Call) string {
	s, ok := l.sum.Get()
	timers, err := c.ListTimers()
	return fmt.Sprint(user, " ", what, c.BatchTime().Format(" 15:04 "), s, ok, l.log.Get(), l.seen.Len(), len(timers), err)
}

func (l *hourly) HandleInputRows(user string, rows []timedEvent, c *tidemill.Call, emit func(string)) error {
	for _, r := range rows {
		s, _ := l.sum.Get()
		l.sum.Set(s + r.N)
		l.log.Append(r.N)
		l.seen.Put(r.N, user)
		if err := c.RegisterTimer(c.BatchTime().Add(time.Duration(r.N) * time.Hour)); err != nil {
			return err
		}
	}
	emit(l.show(user, "rows", c))
	return nil
}

func (l *hourly) HandleExpiredTimer(user string, timer time.Time, c *tidemill.Call, emit func(string)) error {
	emit(l.show(user, timer.Format("timer 15:04"), c))
	return nil
}

func hours(events *logical.DataFrame) *logical.DataFrame {
	return tidemill.TransformWithState(events.GroupBy(tidemill.Col("user")), tidemill.TransformOptions{Time: tidemill.ProcessingTimers},
		func() tidemill.StatefulProcessor[string, timedEvent, string] { return &hourly{} })
}

// hourTotals sums a user's rows until there are none for an hour.
func hourTotals(events *logical.DataFrame) *logical.DataFrame {
	o := tidemill.GroupsOptions{Timeout: tidemill.ProcessingTimers}
	return tidemill.MapGroupsWithState(events.GroupBy(tidemill.Col("user")), o,
		func(user string, rows []timedEvent, state *tidemill.GroupState[total]) (totalOf, error) {
			s, _ := state.Get()
			if state.HasTimedOut() {
				state.Remove()
				return totalOf{User: user, Count: s.Count, Sum: s.Sum, Gone: true}, nil
			}
			for _, r := range rows {
				s.Count++
				s.Sum += r.N
			}
			state.Update(s)
			return totalOf{User: user, Count: s.Count, Sum: s.Sum}, state.SetTimeoutDuration(time.Hour)
		})
}

// aboveGroups aggregates what a function of groups emits: each number of a user once.
func aboveGroups(events *logical.DataFrame) *logical.DataFrame {
	fresh := tidemill.FlatMapGroupsWithState(events.GroupBy(tidemill.Col("user")), tidemill.GroupsOptions{},
		func(user string, rows []event, state *tidemill.GroupState[map[int64]bool], emit func(event)) error {
			seen, _ := state.Get()
			if seen == nil {
				seen = map[int64]bool{}
			}
			for _, r := range rows {
				if !seen[r.N] {
					emit(r)
				}
				seen[r.N] = true
			}
			state.Update(seen)
			return nil
		})
	return fresh.GroupBy(tidemill.Col("n")).Agg(tidemill.Count().As("users"))
}

// State of one's own survives whatever goes wrong.
func TestGroupsCrash(t *testing.T) {
	t.Parallel()
	json := func(s streamtest.Scenario) streamtest.Scenario {
		s.Mode, s.Sink, s.Steps = connector.Append, "json", groupSteps
		return s
	}
	for name, c := range map[string]struct {
		df       func(*logical.DataFrame) *logical.DataFrame
		scenario streamtest.Scenario
	}{
		"sessions": {sessions, json(streamtest.Scenario{})},
		"ledger":   {ledgers, json(streamtest.Scenario{})},
		"late":     {sessions, json(streamtest.Scenario{Keep: []string{"late"}})},
		"above":    {aboveGroups, streamtest.Scenario{Mode: connector.Complete, Sink: "json", Steps: groupSteps}},
		"hours":    {hours, streamtest.Scenario{Mode: connector.Append, Sink: "json", Steps: hourSteps, Hours: true}},
		"totals":   {hourTotals, streamtest.Scenario{Mode: connector.Update, Steps: hourSteps, Hours: true}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := c.scenario
			s.Name, s.Shards = name, 2
			s.SQL = `CREATE STREAM events (ts TIMESTAMP, user VARCHAR, n BIGINT, WATERMARK FOR ts AS ts - INTERVAL '10 seconds')
			         WITH (path = '/in/events', format = 'json');`
			s.Query = `SELECT * FROM events`
			s.Wrap = func(plan logical.Node) (logical.Node, error) {
				return c.df(logical.NewDataFrame(plan, function.Builtins())).Plan()
			}
			streamtest.CrashEverywhere(t, s, streamtest.Faults{All: *crashAll, Every: 120, Seed: *crashSeed})
		})
	}
}
