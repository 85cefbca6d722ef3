package incremental_test

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/tidemill/tidemill"
	"github.com/tidemill/tidemill/columnar/function"
	"github.com/tidemill/tidemill/incremental"
	"github.com/tidemill/tidemill/internal/vfs"
	"github.com/tidemill/tidemill/internal/vfs/faultfs"
	"github.com/tidemill/tidemill/logical"
	"github.com/tidemill/tidemill/logical/connector"
)

// A batch that was begun early and cannot be planned, because a file is gone or cannot be
// looked at, is planned again in its turn: no file is lost, and the query goes on.
func TestBegunBatchIsPlannedAgain(t *testing.T) {
	t.Parallel()
	look := faultfs.And(faultfs.On(vfs.OpStat), faultfs.Path("t/2.json"))
	again := 0
	for n := range 8 {
		gone := faultfs.Rule{Action: faultfs.Error, Err: "ENOENT", When: faultfs.From(n, look)}
		tries, err := lookFails(t, gone)
		if err != nil {
			t.Errorf("%s: %v", gone, err)
		}
		broken := faultfs.Rule{Action: faultfs.Error, Err: "EIO", When: faultfs.Nth(n, look)}
		more, _ := lookFails(t, broken) // a listing that fails ends the query
		again += tries + more
	}
	if again < 4 {
		t.Errorf("batches were planned again %d times", again)
	}
}

// lookFails runs a query over three files, where the second cannot be looked at by the
// rule, and then once more without it. It returns how often batches were planned again,
// and what ended the first query.
func lookFails(t *testing.T, rule faultfs.Rule) (again int, err error) {
	t.Helper()
	fsys := faultfs.New(vfs.NewMem())
	r := newRunningOn(t, fsys, plainStream, `SELECT n FROM t`, connector.Append, incremental.Trigger{Kind: incremental.AvailableNow})
	for i := 1; i <= 3; i++ {
		r.write(t, fmt.Sprint(i), i, i)
	}
	r.cfg.Listener.Warn = func(text string) {
		if strings.Contains(text, "again") {
			again++
		}
	}
	fsys.Arm(rule)
	err = r.start(t).Wait(t.Context())
	fsys.Arm()
	r.run(t) // reads what was not there
	out, outErr := r.w.Output(t.Context())
	lines := strings.Split(strings.TrimSpace(out), "\n")
	slices.Sort(lines)
	if got := strings.Join(lines, " "); got != "1 2 3 n:bigint" || outErr != nil {
		t.Errorf("%s: the output is %q, %v", rule, out, outErr)
	}
	return again, err
}

type keyedNumber struct {
	K string
	N int64
}

// A user's function that panics ends its query and no more, also in a batch that was
// begun early, beside the query's goroutine.
func TestPanicInBegunBatch(t *testing.T) {
	t.Parallel()
	r := newRunning(t, plainStream, `SELECT k, n FROM t`, connector.Append, incremental.Trigger{Kind: incremental.AvailableNow})
	for i := 1; i <= 3; i++ {
		r.write(t, fmt.Sprint(i), i, i)
	}
	r.w.Wrap = func(plan logical.Node) (logical.Node, error) {
		rows := logical.NewDataFrame(plan, function.Builtins())
		return tidemill.FlatMapGroupsWithState(rows.GroupBy(tidemill.Col("k")), tidemill.GroupsOptions{},
			func(_ string, rows []keyedNumber, _ *tidemill.GroupState[total], emit func(keyedNumber)) error {
				for _, r := range rows {
					if r.N == 2 {
						panic("two")
					}
					emit(r)
				}
				return nil
			}).Plan()
	}
	plan, err := r.w.Plan(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	r.cfg.Plan = plan
	err = r.start(t).Wait(t.Context())
	var batch *incremental.BatchError
	if !errors.As(err, &batch) || batch.Batch != 1 || !strings.Contains(err.Error(), "two") {
		t.Errorf("the query ended with %v, want the panic in batch 1", err)
	}
	wantEvents(t, r.events.all(), "started test", "batch 0 in=1", "terminated true")
}
