package incremental_test

import (
	"context"
	"fmt"
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

// groupCase is a stream with a function of groups, and what comes out.
type groupCase struct {
	columns string // of the stream events, with its watermark; JSON
	df      func(events *logical.DataFrame) *logical.DataFrame
	tables  map[string]string // CREATE statements by file name of their data
	mode    connector.OutputMode
	steps   []groupStep
	want    string
	state   []string // operator/table, looked at in the end
}

// groupStep drops a file, or none, moves the clock, and runs all batches there are to run.
type groupStep struct {
	rows  string // JSON lines
	clock time.Duration
}

// run gives the transcript of a case in one variant.
func (c *groupCase) run(t *testing.T, v streamtest.Variant) string {
	t.Helper()
	ctx := t.Context()
	w := streamtest.NewWorld(vfs.NewMem(), columnartest.Mem(t), v)
	w.Declare("CREATE STREAM events (" + c.columns + ") WITH (path = '/in/events', format = 'json');")
	for file, statement := range c.tables {
		w.Declare(statement)
		_ = file
	}
	w.Wrap = func(plan logical.Node) (logical.Node, error) {
		return c.df(logical.NewDataFrame(plan, function.Builtins())).Plan()
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
		_, text, _ = strings.Cut(text, "\n") // the version is another where batches are run twice
		fmt.Fprintf(&sb, "state %s\n%s", s, text)
	}
	return sb.String()
}

// batches runs what there is to run.
func (c *groupCase) batches(ctx context.Context, t *testing.T, w *streamtest.World, sb *strings.Builder) bool {
	t.Helper()
	for n := 0; ; n++ {
		ran, err := w.Step(ctx)
		if err != nil {
			fmt.Fprintf(sb, "failed: %v\n", err)
			return false
		}
		if !ran {
			return true
		}
		if n > 20 {
			t.Fatal("batch after batch runs")
		}
		rows, err := w.Rows(ctx, w.NextBatch()-1, true)
		if err != nil {
			t.Fatal(err)
		}
		fmt.Fprintf(sb, "batch %d\n%s", w.NextBatch()-1, rows)
	}
}

// check runs a case in every variant.
func (c *groupCase) check(t *testing.T) {
	t.Helper()
	t.Parallel()
	for _, v := range streamtest.Matrix() {
		t.Run(v.Name, func(t *testing.T) {
			t.Parallel()
			if got := c.run(t, v); strings.TrimSpace(got) != strings.TrimSpace(c.want) {
				t.Errorf("got\n%s", got)
			}
		})
	}
}

type event struct {
	User string
	N    int64
}

type total struct {
	Count, Sum int64
}

type totalOf struct {
	User   string
	Count  int64
	Sum    int64
	Gone   bool
	Called string
}

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
		columns: "user VARCHAR, n BIGINT",
		df:      sumUp(tidemill.GroupsOptions{}),
		mode:    connector.Update,
		steps: []groupStep{
			{rows: `{"user":"b","n":1}{"user":"a","n":2}{"user":"b","n":3}{"user":"c","n":9}`},
			{rows: `{"user":"a","n":5}{"user":"d","n":1}{"user":"a","n":4}`},
			{},
		},
		want: `
step 0
batch 0
user:varchar  count:bigint  sum:bigint  gone:boolean  called:varchar
a             1             2           false         2
b             2             4           false         1 3
c             1             9           false         9
step 1
batch 1
user:varchar  count:bigint  sum:bigint  gone:boolean  called:varchar
a             3             11          false         5 4
d             1             1           false         1
step 2
state groups(user)/state
user:varchar  count:bigint  sum:bigint
a             3             11
b             2             4
c             1             9
d             1             1
`,
		state: []string{"groups(user)/state"},
	}).check(t)
}

func TestProcessingTimeout(t *testing.T) {
	(&groupCase{
		columns: "user VARCHAR, n BIGINT",
		df:      sumUp(tidemill.GroupsOptions{Timeout: tidemill.ProcessingTimers}),
		mode:    connector.Update,
		steps: []groupStep{
			{rows: `{"user":"b","n":1}{"user":"a","n":2}`},
			{clock: time.Second, rows: `{"user":"a","n":5}`},
			{}, // nothing is due, and nothing runs
			{clock: time.Minute},
			{},
		},
		want: `
step 0
batch 0
user:varchar  count:bigint  sum:bigint  gone:boolean  called:varchar
a             1             2           false         2
b             1             1           false         1
step 1
batch 1
user:varchar  count:bigint  sum:bigint  gone:boolean  called:varchar
a             2             7           false         5
step 2
step 3
batch 2
user:varchar  count:bigint  sum:bigint  gone:boolean  called:varchar
b             1             1           true          0
a             2             7           true          0
step 4
state groups(user)/timers
`,
		state: []string{"groups(user)/timers"},
	}).check(t)
}

