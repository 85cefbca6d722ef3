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

// State of one's own survives whatever goes wrong.
func TestGroupsCrash(t *testing.T) {
	t.Parallel()
	for name, df := range map[string]func(*logical.DataFrame) *logical.DataFrame{"sessions": sessions, "ledger": ledgers} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			streamtest.CrashEverywhere(t, streamtest.Scenario{
				Name: name, Mode: connector.Append, Sink: "json", Shards: 2,
				SQL: `CREATE STREAM events (ts TIMESTAMP, user VARCHAR, n BIGINT, WATERMARK FOR ts AS ts - INTERVAL '10 seconds')
				      WITH (path = '/in/events', format = 'json');`,
				Query: `SELECT * FROM events`, Steps: groupSteps,
				Wrap: func(plan logical.Node) (logical.Node, error) {
					return df(logical.NewDataFrame(plan, function.Builtins())).Plan()
				},
			}, streamtest.Faults{All: *crashAll, Every: 60, Seed: *crashSeed})
		})
	}
}
