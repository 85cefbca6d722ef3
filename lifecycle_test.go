package tidemill_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/apache/arrow-go/v18/arrow"

	"github.com/tidemill/tidemill"
	"github.com/tidemill/tidemill/columnar"
	"github.com/tidemill/tidemill/formats/csv"
)

// TestProcessAllAvailableAfterTheEnd is an error if the query was stopped or failed, and
// nil if it had nothing left to do.
func TestProcessAllAvailableAfterTheEnd(t *testing.T) {
	t.Parallel()
	u, x := newUser("Stage"), newSite(t)
	u.upto.Store(3)
	q, err := u.stream(u.session(x, tidemill.Options{}), false).Start(x.ctx)
	x.ok(err)
	x.ok(q.ProcessAllAvailable(x.ctx))
	x.ok(q.Stop(x.ctx))
	if err := q.ProcessAllAvailable(x.ctx); !errors.Is(err, tidemill.ErrStopped) {
		t.Errorf("after Stop: %v", err)
	}
	x.ok(q.Stop(x.ctx)) // again it is nothing
	x.ok(q.Wait(x.ctx))

	q, err = u.stream(u.session(x, tidemill.Options{}), false).Trigger(tidemill.AvailableNow()).Start(x.ctx)
	x.ok(err)
	x.ok(q.Wait(x.ctx))
	if err := q.ProcessAllAvailable(x.ctx); err != nil {
		t.Errorf("after an exhausted trigger: %v", err)
	}

	u.armed.Store(true)
	u.upto.Store(5)
	q, err = u.stream(u.session(x, tidemill.Options{}), false).Start(x.ctx)
	x.ok(err)
	err = q.Wait(x.ctx)
	for name, again := range map[string]error{"ProcessAllAvailable": q.ProcessAllAvailable(x.ctx), "Wait": q.Wait(x.ctx), "Stop": q.Stop(x.ctx), "Err": q.Err()} {
		if err == nil || again == nil || again.Error() != err.Error() {
			t.Errorf("after a failure %s gives %v, not %v", name, again, err)
		}
	}
}

// TestStopDuringABatch lets the batch commit.
func TestStopDuringABatch(t *testing.T) {
	t.Parallel()
	x := newSite(t)
	u := newUser("")
	u.upto.Store(3)
	begun, goOn := make(chan struct{}), make(chan struct{})
	s := u.session(x, tidemill.Options{})
	batches := atomic.Int64{}
	q, err := s.WriteStream(s.ReadStreamFrom("counter", nil, nil)).Checkpoint("ckpt").
		ForeachBatch(func(context.Context, int64, columnar.Reader) error {
			close(begun)
			<-goOn
			batches.Add(1)
			return nil
		}).Start(x.ctx)
	x.ok(err)
	<-begun
	q.RequestStop()
	close(goOn)
	x.ok(q.Stop(x.ctx))
	if p, ok := q.LastProgress(); !ok || p.BatchID != 0 || batches.Load() != 1 {
		t.Errorf("%d batches, the last is %+v", batches.Load(), p)
	}
}

// TestStartTwice refuses what is running: by its checkpoint, its output, its name.
func TestStartTwice(t *testing.T) {
	t.Parallel()
	x := newSite(t)
	x.write("in/a.csv", "n\n1")
	schema := columnar.NewSchema(columnar.Field("n", columnar.Int64))
	write := func(out, checkpoint, name string) *tidemill.StreamWriter {
		return x.WriteStream(x.ReadStream("in", csv.Options{Header: csv.HeaderYes}, schema)).To(out, nil).Checkpoint(checkpoint).Name(name)
	}
	q, err := write("out", "ckpt", "first").Start(x.ctx)
	x.ok(err)
	for _, c := range []struct {
		name string
		w    *tidemill.StreamWriter
		kind tidemill.ErrorKind
		part string
	}{
		{"the same checkpoint", write("out2", "ckpt", "second"), tidemill.RefusalError, "ckpt"},
		{"the same output", write("out", "ckpt2", "second"), tidemill.RefusalError, "out"},
		{"the same name", write("out3", "ckpt3", "first"), tidemill.UsageError, "a query named first is running in this session"},
	} {
		_, err := c.w.Start(x.ctx)
		if tidemill.KindOf(err) != c.kind || !strings.Contains(fmt.Sprint(err), c.part) {
			t.Errorf("%s: kind %d: %v", c.name, tidemill.KindOf(err), err)
		}
	}
	x.ok(q.Stop(x.ctx))
	q, err = write("out", "ckpt", "first").Start(x.ctx)
	x.ok(err)
	x.ok(q.Stop(x.ctx))
}

// TestGoexit is a user's function that ends its goroutine, as testing.T.FailNow does: an
// error, not a query that never ends.
func TestGoexit(t *testing.T) {
	t.Parallel()
	u, x := newUser(""), newSite(t)
	u.upto.Store(3)
	s := u.session(x, tidemill.Options{})
	err := x.run(s.WriteStream(s.ReadStreamFrom("counter", nil, nil)).Checkpoint("ckpt").
		ForeachBatch(func(context.Context, int64, columnar.Reader) error {
			runtime.Goexit()
			return nil
		}))
	if err == nil || !strings.Contains(err.Error(), "ended its goroutine") {
		t.Errorf("got %v", err)
	}
}

// TestConcurrentSession uses one session from many goroutines: for the race detector.
func TestConcurrentSession(t *testing.T) {
	t.Parallel()
	x := newSite(t)
	x.write("in/a.csv", "k,n\na,1\nb,2\na,3")
	schema := columnar.NewSchema(columnar.Field("k", columnar.String), columnar.Field("n", columnar.Int64))
	options := csv.Options{Header: csv.HeaderYes}
	var wg sync.WaitGroup
	errs := make([]error, 8)
	for i := range errs {
		wg.Go(func() {
			errs[i] = errors.Join(func() []error {
				name := fmt.Sprintf("f%d", i)
				double := tidemill.ScalarFunc(name, []arrow.DataType{columnar.Int64}, columnar.Int64, func(args []any) (any, error) { return 2 * args[0].(int64), nil })
				all := []error{x.RegisterFunction(double), x.Set("threads", fmt.Sprint(1+i%4)), x.CreateView("v"+name, x.Read("in"))}
				rows, err := x.Collect(x.ctx, x.Read("in").Select(tidemill.Func(name, tidemill.Col("n")).As("m")).Agg(tidemill.Sum(tidemill.Col("m"))))
				if err == nil {
					if got := rows.Value(0, 0); got != int64(12) {
						err = fmt.Errorf("the sum is %v", got)
					}
					rows.Release()
				}
				_, sqlErr := x.SQL(x.ctx, "CREATE VIEW w"+name+" AS SELECT * FROM v"+name+"; SELECT k, sum("+name+"(n)) FROM w"+name+" GROUP BY k")
				_, explainErr := x.Explain(x.ctx, x.Table(x.ctx, "v"+name), false)
				q, startErr := x.WriteStream(x.ReadStream("in", options, schema)).To("out/"+name, nil).Name(name).Trigger(tidemill.AvailableNow()).Start(x.ctx)
				if startErr == nil {
					startErr = q.Wait(x.ctx)
				}
				return append(all, err, sqlErr, explainErr, startErr)
			}()...)
		})
	}
	wg.Wait()
	for _, err := range errs {
		if err != nil {
			t.Error(err)
		}
	}
}

// TestRowsOutliveTheirFiles keeps what was collected when the files go, and says so when
// they are asked for again.
func TestRowsOutliveTheirFiles(t *testing.T) {
	t.Parallel()
	dir := filepath.Join(t.TempDir(), "in")
	if err := os.MkdirAll(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dir, "a.csv"), []byte("s\nkept\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	s, err := tidemill.NewSession(tidemill.Options{})
	if err != nil {
		t.Fatal(err)
	}
	df := s.Read(dir, csv.Options{Header: csv.HeaderYes})
	rows, err := s.Collect(t.Context(), df)
	if err != nil {
		t.Fatal(err)
	}
	defer rows.Release()
	if err := os.RemoveAll(dir); err != nil {
		t.Fatal(err)
	}
	if got := rows.Value(0, 0); got != "kept" {
		t.Errorf("got %v", got)
	}
	if _, err := s.Collect(t.Context(), df); err == nil || !strings.Contains(err.Error(), dir) {
		t.Errorf("the files that are gone give %v", err)
	}
}

// TestConcurrentQuery calls everything of a running query from many goroutines, several of
// which stop it: each returns, those that waited for data by ErrStopped at the latest.
func TestConcurrentQuery(t *testing.T) {
	t.Parallel()
	for range 20 {
		u, x := newUser(""), newSite(t)
		u.upto.Store(3)
		q, err := u.stream(u.session(x, tidemill.Options{}), false).Start(x.ctx)
		x.ok(err)
		var wg sync.WaitGroup
		for i := range 4 {
			wg.Go(func() {
				if err := q.ProcessAllAvailable(x.ctx); err != nil && !errors.Is(err, tidemill.ErrStopped) {
					t.Errorf("ProcessAllAvailable: %v", err)
				}
			})
			wg.Go(func() {
				q.LastProgress()
				q.RecentProgress()
				q.Status()
				if q.ID() == "" || q.RunID() == "" || q.Name() == "" {
					t.Error("the query has no identity")
				}
				if i%2 == 0 {
					q.RequestStop()
				}
				if err := q.Stop(x.ctx); err != nil {
					t.Errorf("Stop: %v", err)
				}
			})
			wg.Go(func() {
				if err := q.Wait(x.ctx); err != nil || q.Err() != nil {
					t.Errorf("Wait: %v", err)
				}
				<-q.Done()
			})
		}
		wg.Wait()
		if status := q.Status(); status.Message != "Stopped" || status.IsTriggerActive {
			t.Errorf("status %+v", status)
		}
	}
}

// TestStopFromAListener asks for the end from within, where nothing may be waited for.
func TestStopFromAListener(t *testing.T) {
	t.Parallel()
	u, x := newUser(""), newSite(t)
	u.upto.Store(3)
	started := make(chan *tidemill.Query, 1)
	q, err := u.stream(u.session(x, tidemill.Options{}), false).Listen(tidemill.Listener{
		Progress: func(tidemill.Progress) { (<-started).RequestStop() },
	}).Start(x.ctx)
	x.ok(err)
	started <- q
	x.ok(q.Wait(x.ctx))
}

// TestScriptStartsOnce refuses to start a script again.
func TestScriptStartsOnce(t *testing.T) {
	t.Parallel()
	x := newSite(t)
	x.landBids()
	once := tidemill.AvailableNow()
	sc, err := x.OpenScript(x.ctx, "s.sql", `CREATE STREAM s WITH (path = 'in/bids'); CREATE SINK k WITH (path = 'out'); INSERT INTO k SELECT * FROM s;`, tidemill.RunOptions{Trigger: &once})
	x.ok(err)
	first := sc.Start(x.ctx)
	second := sc.Start(x.ctx)
	second.RequestStop()
	second.Kill()
	if err := second.Wait(); tidemill.KindOf(err) != tidemill.UsageError || !strings.Contains(err.Error(), "open it again") {
		t.Errorf("the second start: %v", err)
	}
	x.ok(first.Wait())
	x.ok(first.Wait())
}

// TestStdoutPanics names the writer.
func TestStdoutPanics(t *testing.T) {
	t.Parallel()
	x := newSite(t)
	x.landBids()
	b := &bomb{place: "Write"}
	b.armed.Store(true)
	s := x.session(tidemill.Options{Stdout: bombedWriter{b}})
	err := x.run(s.WriteStream(s.ReadStream("in/bids", nil, nil)).ToConnector("console", nil).Name("q"))
	checkPanic(t, err, "query q, batch 0: console: Options.Stdout panicked: boom at Write")
}

type bombedWriter struct{ *bomb }

func (w bombedWriter) Write(p []byte) (int, error) {
	w.at("Write")
	return len(p), nil
}
