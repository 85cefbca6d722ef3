package incremental_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/tidemill/tidemill/columnar/columnartest"
	"github.com/tidemill/tidemill/incremental"
	"github.com/tidemill/tidemill/incremental/streamtest"
	"github.com/tidemill/tidemill/internal/vfs"
	"github.com/tidemill/tidemill/logical/connector"
)

// events are what a Listener was told, in order.
type events struct {
	mu   sync.Mutex
	list []string
}

func (e *events) add(format string, args ...any) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.list = append(e.list, fmt.Sprintf(format, args...))
}

func (e *events) all() []string {
	e.mu.Lock()
	defer e.mu.Unlock()
	return slices.Clone(e.list)
}

// running is a query over /in/t whose batches a Listener notes.
type running struct {
	w      *streamtest.World
	cfg    incremental.Config
	events *events
}

const (
	plainStream = `CREATE STREAM t (ts TIMESTAMP, k VARCHAR, n BIGINT) WITH (path = '/in/t', format = 'json', max_files_per_trigger = 1);`
	timedStream = `CREATE STREAM t (ts TIMESTAMP, k VARCHAR, n BIGINT, WATERMARK FOR ts AS ts)
	               WITH (path = '/in/t', format = 'json', max_files_per_trigger = 1);`
	windowQuery = `SELECT window_start AS w, count(*) AS n FROM TUMBLE(t, ts, INTERVAL '10 seconds') GROUP BY window_start`
)

func newRunning(t *testing.T, ddl, query string, mode connector.OutputMode, trigger incremental.Trigger) *running {
	t.Helper()
	return newRunningOn(t, vfs.NewMem(), ddl, query, mode, trigger)
}

func newRunningOn(t *testing.T, fsys vfs.FS, ddl, query string, mode connector.OutputMode, trigger incremental.Trigger) *running {
	t.Helper()
	r := &running{w: streamtest.NewWorld(fsys, columnartest.Mem(t), streamtest.Variant{}), events: &events{}}
	t.Cleanup(func() {
		if err := r.w.Release(); err != nil {
			t.Error(err)
		}
	})
	r.w.Declare(ddl)
	if err := r.w.Query(query, mode, nil); err != nil {
		t.Fatal(err)
	}
	plan, err := r.w.Plan(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	r.cfg = r.w.Config(plan)
	r.cfg.Trigger, r.cfg.Clock, r.cfg.Poll = trigger, nil, time.Millisecond
	r.cfg.Listener = incremental.Listener{
		Started:    func(id, _, name string) { r.events.add("started %s", name) },
		Progress:   func(p incremental.Progress) { r.events.add("batch %d in=%d", p.BatchID, p.NumInputRows) },
		Terminated: func(err error) { r.events.add("terminated %v", err != nil) },
	}
	return r
}

// write makes one file of one row: seconds after the start of 2024, and a number.
func (r *running) write(t *testing.T, name string, second, n int) {
	t.Helper()
	row := fmt.Sprintf(`{"ts":"2024-01-01T00:00:%02dZ","k":"a","n":%d}`, second, n)
	if err := r.w.WriteInput(t.Context(), "t/"+name+".json", []byte(row+"\n")); err != nil {
		t.Fatal(err)
	}
}

func (r *running) start(t *testing.T) *incremental.Query {
	t.Helper()
	q, err := incremental.Start(t.Context(), r.cfg)
	if err != nil {
		t.Fatal(err)
	}
	return q
}

// run starts the query, waits for its end and returns what the listener was told.
func (r *running) run(t *testing.T) []string {
	t.Helper()
	r.events.list = nil
	if err := r.start(t).Wait(t.Context()); err != nil {
		t.Fatal(err)
	}
	return r.events.all()
}

func wantEvents(t *testing.T, got []string, want ...string) {
	t.Helper()
	if !slices.Equal(got, want) {
		t.Errorf("the listener was told\n  %s\nwant\n  %s", strings.Join(got, "\n  "), strings.Join(want, "\n  "))
	}
}

// Available-now runs what is there at the start, as many batches as the limit asks for,
// then the closing batch, and does nothing when run again.
func TestAvailableNow(t *testing.T) {
	t.Parallel()
	r := newRunning(t, timedStream, windowQuery, connector.Append, incremental.Trigger{Kind: incremental.AvailableNow})
	wantEvents(t, r.run(t), "started test", "terminated false")
	r.write(t, "1", 1, 1)
	r.write(t, "2", 15, 1)
	wantEvents(t, r.run(t), "started test", "batch 0 in=1", "batch 1 in=1", "batch 2 in=0", "terminated false")
	wantEvents(t, r.run(t), "started test", "terminated false")
	r.write(t, "3", 30, 1)
	wantEvents(t, r.run(t), "started test", "batch 3 in=1", "batch 4 in=0", "terminated false")
}

// A stop between batches forgets the one that had set out already; the next start reads
// each file once.
func TestStopForgetsBegun(t *testing.T) {
	t.Parallel()
	r := newRunning(t, plainStream, `SELECT n FROM t`, connector.Append, incremental.Trigger{Kind: incremental.AvailableNow})
	for i := 1; i <= 3; i++ {
		r.write(t, fmt.Sprint(i), i, i)
	}
	running := make(chan *incremental.Query, 1)
	progress := r.cfg.Listener.Progress
	r.cfg.Listener.Progress = func(p incremental.Progress) {
		progress(p)
		if p.BatchID == 0 {
			(<-running).RequestStop()
		}
	}
	q := r.start(t)
	running <- q
	if err := q.Wait(t.Context()); err != nil {
		t.Fatal(err)
	}
	wantEvents(t, r.events.all(), "started test", "batch 0 in=1", "terminated false")
	wantEvents(t, r.run(t), "started test", "batch 1 in=1", "batch 2 in=1", "terminated false")
	out, err := r.w.Output(t.Context())
	if want := "n:bigint\n1\n2\n3\n"; out != want || err != nil {
		t.Errorf("the output is %q, %v", out, err)
	}
}

// Once runs one batch over everything, limits ignored, and no closing batch; a pending
// one runs first and does not stand for it.
func TestOnce(t *testing.T) {
	t.Parallel()
	r := newRunning(t, timedStream, windowQuery, connector.Append, incremental.Trigger{Kind: incremental.Once})
	r.write(t, "1", 1, 1)
	r.write(t, "2", 15, 1)
	wantEvents(t, r.run(t), "started test", "batch 0 in=2", "terminated false")
	r.write(t, "3", 30, 1)
	wantEvents(t, r.run(t), "started test", "batch 1 in=0", "batch 2 in=1", "terminated false")
}

// The default trigger goes on until it is stopped.
func TestProcessAllAvailableAndStop(t *testing.T) {
	t.Parallel()
	r := newRunning(t, plainStream, `SELECT n FROM t`, connector.Append, incremental.Trigger{})
	r.write(t, "1", 1, 1)
	q := r.start(t)
	for i := 2; i < 5; i++ {
		if err := q.ProcessAllAvailable(t.Context()); err != nil {
			t.Fatal(err)
		}
		if p, ok := q.LastProgress(); !ok || p.BatchID != int64(i-2) {
			t.Errorf("after file %d the newest batch is %d, %v", i-1, p.BatchID, ok)
		}
		r.write(t, fmt.Sprint(i), i, i)
	}
	if err := q.ProcessAllAvailable(t.Context()); err != nil {
		t.Fatal(err)
	}
	if err := q.Stop(t.Context()); err != nil {
		t.Fatal(err)
	}
	if got := q.Status().Message; got != "Stopped" {
		t.Errorf("the status is %q", got)
	}
	if n := len(q.RecentProgress()); n != 4 {
		t.Errorf("%d progress reports, want 4", n)
	}
	out, err := r.w.Output(t.Context())
	if want := "n:bigint\n1\n2\n3\n4\n"; out != want || err != nil {
		t.Errorf("the output is %q, %v", out, err)
	}
}

// An interval waits for its multiples; a stop does not wait for the next.
func TestStopBetweenIntervals(t *testing.T) {
	t.Parallel()
	r := newRunning(t, plainStream, `SELECT n FROM t`, connector.Append,
		incremental.Trigger{Kind: incremental.ProcessingTime, Interval: time.Hour})
	r.write(t, "1", 1, 1)
	first := make(chan struct{})
	progress := r.cfg.Listener.Progress
	r.cfg.Listener.Progress = func(p incremental.Progress) {
		progress(p)
		if p.BatchID == 0 {
			close(first)
		}
	}
	q := r.start(t)
	<-first
	if err := q.Stop(t.Context()); err != nil {
		t.Fatal(err)
	}
	wantEvents(t, r.events.all(), "started test", "batch 0 in=1", "terminated false")
}

// Kill ends a query at once; the next run comes to the same rows.
func TestKill(t *testing.T) {
	t.Parallel()
	r := newRunning(t, plainStream, `SELECT n FROM t`, connector.Append, incremental.Trigger{})
	r.write(t, "1", 1, 1)
	r.write(t, "2", 2, 2)
	q := r.start(t)
	q.Kill()
	if err := q.Wait(t.Context()); err != nil && !errors.Is(err, context.Canceled) {
		t.Errorf("a killed query ended with %v", err)
	}
	r.cfg.Trigger = incremental.Trigger{Kind: incremental.AvailableNow}
	r.run(t)
	out, err := r.w.Output(t.Context())
	if want := "n:bigint\n1\n2\n"; out != want || err != nil {
		t.Errorf("the output is %q, %v", out, err)
	}
}

// A batch that fails ends the query with an error that names query and batch.
func TestFailedBatch(t *testing.T) {
	t.Parallel()
	r := newRunning(t, plainStream, `SELECT 1 % n AS r FROM t`, connector.Append, incremental.Trigger{Kind: incremental.AvailableNow})
	r.write(t, "1", 1, 1)
	r.write(t, "2", 2, 0)
	q := r.start(t)
	err := q.Wait(t.Context())
	var batch *incremental.BatchError
	if !errors.As(err, &batch) || batch.Batch != 1 || batch.Query != "test" {
		t.Errorf("got %v, want an error of batch 1", err)
	}
	if got := q.Status().Message; !strings.Contains(got, "Terminated with exception") {
		t.Errorf("the status is %q", got)
	}
	wantEvents(t, r.events.all(), "started test", "batch 0 in=1", "terminated true")
}

func TestParseTrigger(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		"": "default", "once": "once", "Available-Now": "available-now", "10 seconds": "10s", "0 seconds": "0s",
	} {
		got, err := incremental.ParseTrigger(text, connector.ParseDuration)
		if err != nil || got.String() != want {
			t.Errorf("%q is %s, %v, want %s", text, got, err, want)
		}
	}
	for _, text := range []string{"sometimes", "-1 seconds"} {
		if _, err := incremental.ParseTrigger(text, connector.ParseDuration); err == nil {
			t.Errorf("%q is a trigger", text)
		}
	}
}
