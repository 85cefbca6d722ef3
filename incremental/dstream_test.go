package incremental_test

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"github.com/tidemill/tidemill"
	"github.com/tidemill/tidemill/columnar/function"
	"github.com/tidemill/tidemill/incremental/streamtest"
	"github.com/tidemill/tidemill/logical"
	"github.com/tidemill/tidemill/logical/connector"
)

func add(a, b int64) int64      { return a + b }
func subtract(a, b int64) int64 { return a - b }

// ten seconds are a batch; a window is thirty and slides by ten.
var sliding = tidemill.ArrivalWindow{Interval: 10 * time.Second, Length: 30 * time.Second}

func byUser(events *logical.DataFrame) *logical.GroupedData {
	return events.GroupBy(tidemill.Col("user"))
}

func sumWindows(w tidemill.ArrivalWindow) func(*logical.DataFrame) *logical.DataFrame {
	return func(events *logical.DataFrame) *logical.DataFrame {
		return tidemill.ReduceByKeyAndWindow[string](byUser(events), w, add)
	}
}

// arrivals are rows in intervals of ten seconds, with pauses.
var arrivals = []groupStep{
	{rows: `{"user":"a","n":1}{"user":"b","n":10}{"user":"a","n":2}`},
	{clock: 10 * time.Second, rows: `{"user":"a","n":4}`},
	{rows: `{"user":"a","n":8}`}, // in the same interval, or the next
	{clock: 10 * time.Second, rows: `{"user":"c","n":100}`},
	{clock: time.Minute, rows: `{"user":"a","n":16}`},
	{clock: 20 * time.Second},
	{clock: 40 * time.Second},
	{},
}

// Partial results are combined; a key comes out as long as the window has rows of it.
func TestReduceByKeyAndWindow(t *testing.T) {
	(&groupCase{
		columns: plainColumns, df: sumWindows(sliding), mode: connector.Append, steps: arrivals,
		state: []string{"groups(user)/panes", "groups(user)/sent", "groups(user)/timers"},
	}).check(t)
}

// With an inverse a key stays, here with 0.
func TestReduceByKeyAndWindowInverse(t *testing.T) {
	(&groupCase{
		columns: plainColumns, mode: connector.Append, steps: arrivals,
		df: func(events *logical.DataFrame) *logical.DataFrame {
			return tidemill.ReduceByKeyAndWindowInverse[string](byUser(events), sliding, add, subtract, nil)
		},
		state: []string{"groups(user)/panes", "groups(user)/last"},
	}).check(t)
}

// Unless it is not kept.
func TestReduceByKeyAndWindowKeep(t *testing.T) {
	(&groupCase{
		columns: plainColumns, mode: connector.Append, steps: arrivals,
		df: func(events *logical.DataFrame) *logical.DataFrame {
			return tidemill.ReduceByKeyAndWindowInverse(byUser(events), sliding, add, subtract, func(_ string, sum int64) bool { return sum != 0 })
		},
		state: []string{"groups(user)/panes", "groups(user)/last", "groups(user)/timers"},
	}).check(t)
}

// Windows that jump: what arrives between them is in none.
func TestWindowsThatJump(t *testing.T) {
	(&groupCase{
		columns: plainColumns, df: sumWindows(tidemill.ArrivalWindow{Interval: 10 * time.Second, Length: 10 * time.Second, Slide: 30 * time.Second}),
		mode: connector.Append, steps: arrivals, state: []string{"groups(user)/panes", "groups(user)/timers"},
	}).check(t)
}

// A window that tumbles comes out once, also where two batches run in one interval.
func TestTumblingArrival(t *testing.T) {
	(&groupCase{
		columns: plainColumns, df: sumWindows(tidemill.ArrivalWindow{Interval: 10 * time.Second, Length: 10 * time.Second}),
		mode: connector.Append, steps: arrivals, state: []string{"groups(user)/panes", "groups(user)/timers"},
	}).check(t)
}

func TestCountByWindow(t *testing.T) {
	(&groupCase{
		columns: plainColumns, mode: connector.Append, steps: arrivals,
		df:    func(events *logical.DataFrame) *logical.DataFrame { return tidemill.CountByWindow(events, sliding) },
		state: []string{"groups()/panes", "groups()/last"},
	}).check(t)
}

func TestReduceByWindow(t *testing.T) {
	(&groupCase{
		columns: plainColumns, mode: connector.Append, steps: arrivals,
		df: func(events *logical.DataFrame) *logical.DataFrame {
			return tidemill.ReduceByWindow(events, sliding, func(a, b event) event {
				if b.N > a.N {
					return b
				}
				return a
			})
		},
	}).check(t)
}

// Every key is visited in every batch.
func TestUpdateStateByKey(t *testing.T) {
	(&groupCase{
		columns: plainColumns, mode: connector.Update,
		df: func(events *logical.DataFrame) *logical.DataFrame {
			return tidemill.UpdateStateByKey(byUser(events), func(_ string, rows []event, state *tidemill.GroupState[total]) error {
				s, _ := state.Get()
				s.Count++
				for _, r := range rows {
					s.Sum += r.N
				}
				if s.Count == 3 {
					state.Remove()
					return nil
				}
				state.Update(s)
				return nil
			})
		},
		steps: []groupStep{{rows: `{"user":"b","n":1}`}, {rows: `{"user":"a","n":2}{"user":"a","n":3}`}, {rows: `{"user":"c","n":1}`}, {}},
		state: []string{"groups(user)/state"},
	}).check(t)
}

// A function a row, and one call for a key that was quiet for too long.
func TestMapWithState(t *testing.T) {
	(&groupCase{
		columns: plainColumns, mode: connector.Append,
		df: func(events *logical.DataFrame) *logical.DataFrame {
			return tidemill.MapWithState(byUser(events), tidemill.MapWithStateOptions{Timeout: 20 * time.Second},
				func(user string, row *event, state *tidemill.GroupState[int64]) (string, bool, error) {
					s, _ := state.Get()
					if row == nil {
						return fmt.Sprint(user, " leaves with ", s), true, nil
					}
					state.Update(s + row.N)
					return fmt.Sprint(user, " has ", s+row.N), row.N != 0, nil
				})
		},
		steps: []groupStep{{rows: `{"user":"b","n":1}{"user":"b","n":0}{"user":"a","n":2}{"user":"b","n":4}`}, {clock: 10 * time.Second, rows: `{"user":"b","n":5}`}, {clock: 15 * time.Second}, {clock: time.Minute}},
		state: []string{"groups(user)/state", "groups(user)/timers"},
	}).check(t)
}

func TestUpdateOfTimedOutState(t *testing.T) {
	(&groupCase{
		columns: plainColumns, mode: connector.Append,
		df: func(events *logical.DataFrame) *logical.DataFrame {
			return tidemill.MapWithState(byUser(events), tidemill.MapWithStateOptions{Timeout: 20 * time.Second},
				func(_ string, _ *event, state *tidemill.GroupState[int64]) (string, bool, error) {
					state.Update(1)
					return "", false, nil
				})
		},
		steps: []groupStep{{rows: `{"user":"b","n":1}`}, {clock: time.Minute}},
	}).check(t)
}

func TestArrivalWindowMistakes(t *testing.T) {
	t.Parallel()
	for want, w := range map[string]tidemill.ArrivalWindow{
		"the batch interval 0s is not positive":                                  {Length: time.Second},
		"the length of the window, 15s, is not a multiple of the batch interval": {Interval: 10 * time.Second, Length: 15 * time.Second},
		"the length of the window, 0s, is not a multiple":                        {Interval: 10 * time.Second},
		"the slide of the window, 5s, is not a multiple of the batch interval":   {Interval: 10 * time.Second, Length: 20 * time.Second, Slide: 5 * time.Second},
		"the slide of the window, -10s, is not a multiple":                       {Interval: 10 * time.Second, Length: 20 * time.Second, Slide: -10 * time.Second},
	} {
		df := logical.NewDataFrame(&logical.Values{Output: logical.NewSchema()}, function.Builtins())
		if _, err := tidemill.CountByWindow(df, w).Plan(); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("got  %v\nwant %s", err, want)
		}
	}
}

// With and without an inverse come to the same sums, as long as there are rows, and to
// those that a plain look at all rows gives.
func TestInverseWindowsAgree(t *testing.T) {
	t.Parallel()
	type window struct{ length, slide int64 }
	for seed := range uint64(10) {
		r := rand.New(rand.NewPCG(seed, 3))
		w := window{10 * (1 + r.Int64N(6)), 10 * (1 + r.Int64N(6))}
		var steps []groupStep
		for range 2 + r.IntN(6) {
			s := groupStep{clock: time.Duration(r.IntN(45)) * time.Second}
			for range r.IntN(4) {
				s.rows += fmt.Sprintf("{\"user\":\"u%d\",\"n\":%d}", r.IntN(3), 1+r.IntN(9))
			}
			steps = append(steps, s)
		}
		steps = append(steps, groupStep{clock: 100 * time.Second}, groupStep{})
		aw := tidemill.ArrivalWindow{Interval: 10 * time.Second, Length: time.Duration(w.length) * time.Second, Slide: time.Duration(w.slide) * time.Second}
		run := func(df func(*logical.DataFrame) *logical.DataFrame) string {
			g := groupCase{columns: plainColumns, df: df, mode: connector.Append, steps: steps}
			return g.run(t, streamtest.Variant{Shards: int(seed % 3)})
		}
		plain := rowsOf(run(sumWindows(aw)))
		inverse := rowsOf(run(func(events *logical.DataFrame) *logical.DataFrame {
			return tidemill.ReduceByKeyAndWindowInverse(byUser(events), aw, add, subtract, func(_ string, sum int64) bool { return sum != 0 })
		}))
		if plain != inverse {
			t.Errorf("seed %d, %v: without inverse\n%swith\n%s", seed, w, plain, inverse)
		}
	}
}

// rowsOf is the rows of a transcript, without its batches.
func rowsOf(transcript string) string {
	var sb strings.Builder
	for line := range strings.Lines(transcript) {
		if strings.HasPrefix(line, "20") {
			sb.WriteString(strings.Join(strings.Fields(line), " ") + "\n")
		}
	}
	return sb.String()
}
