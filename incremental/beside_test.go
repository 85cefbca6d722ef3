package incremental_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/apache/arrow-go/v18/arrow"

	"github.com/tidemill/tidemill/columnar"
	"github.com/tidemill/tidemill/incremental"
	"github.com/tidemill/tidemill/internal/vfs"
	"github.com/tidemill/tidemill/internal/vfs/faultfs"
	"github.com/tidemill/tidemill/logical/connector"
)

const countQuery = `SELECT k, count(*) AS c, sum(n) AS s FROM t GROUP BY k`

// besideQuery is a query over five files, a batch each, whose next batch sets out while one
// is staged and saved.
func besideQuery(t *testing.T, fsys vfs.FS) *running {
	t.Helper()
	r := newRunningOn(t, fsys, plainStream, countQuery, connector.Complete, incremental.Trigger{Kind: incremental.AvailableNow})
	r.cfg.Parallel = 2
	for i := 1; i <= 5; i++ {
		r.write(t, fmt.Sprint(i), i, i)
	}
	return r
}

// What a batch that sets out beside another has noted of its sources is on disk only after
// that one has saved its state, and before any offsets name it.
func TestBesideKeepsTheProtocol(t *testing.T) {
	t.Parallel()
	trace := vfs.NewTrace(vfs.NewMem(), "/")
	besideQuery(t, trace).run(t)
	lines := trace.Take()
	at := func(what string) int {
		i := slices.IndexFunc(lines, func(l string) bool { return strings.HasPrefix(l, "rename ") && strings.HasSuffix(l, what) })
		if i < 0 {
			t.Fatalf("nothing was renamed to %s in\n%s", what, strings.Join(lines, "\n"))
		}
		return i
	}
	for n := 1; n < 5; n++ {
		entry, saved := at(fmt.Sprintf("sources/0/%d", n)), at(fmt.Sprintf("groups.%012d.change.parquet", n))
		prepared, committed, offsets := at(fmt.Sprintf("prepared/%d", n-1)), at(fmt.Sprintf("commits/%d", n-1)), at(fmt.Sprintf("offsets/%d", n))
		if saved > entry || entry > offsets || saved > prepared || prepared > committed || committed > offsets {
			t.Errorf("batch %d: state %d, entry %d, prepared %d, committed %d, offsets %d", n, saved, entry, prepared, committed, offsets)
		}
	}
}

// A batch that fails on the device after the next one has set out is run again, and that
// one in its turn: each file counts once.
func TestBesideTurnsBack(t *testing.T) {
	t.Parallel()
	again := 0
	for _, where := range []string{"/checkpoint/state/*/*", "/checkpoint/sources/0/*"} {
		for n := range 4 {
			rule := faultfs.Rule{Action: faultfs.Error, Err: "EIO", When: faultfs.Nth(n, faultfs.And(faultfs.On(vfs.OpSync), faultfs.Path(where)))}
			again += turnsBack(t, rule)
		}
	}
	if again < 4 {
		t.Errorf("batches were tried again %d times", again)
	}
}

// turnsBack runs the query with a fault, and to its end without it. It returns how often a
// batch was tried again.
func turnsBack(t *testing.T, rule faultfs.Rule) (again int) {
	t.Helper()
	fsys := faultfs.New(vfs.NewMem())
	r := besideQuery(t, fsys)
	r.cfg.Listener.Warn = func(text string) {
		if strings.Contains(text, "tried again") {
			again++
		}
	}
	fsys.Arm(rule)
	_ = r.start(t).Wait(t.Context()) // an entry that cannot be written ends the query
	fsys.Arm()
	r.run(t)
	r.wantFive(t, rule.String())
	return again
}

func (r *running) wantFive(t *testing.T, after string) {
	t.Helper()
	out, err := r.w.Output(t.Context())
	if lines := strings.Split(strings.TrimSpace(out), "\n"); err != nil || len(lines) != 2 || strings.Join(strings.Fields(lines[1]), " ") != "a 5 15" {
		t.Errorf("%s: the output is %q, %v", after, out, err)
	}
}

// However little memory there is, batches that overlap give the right rows or the refusal,
// and all of it is given back.
func TestBesideInLittleMemory(t *testing.T) {
	t.Parallel()
	refused, fine := 0, 0
	for limit := int64(1 << 12); limit <= 1<<20; limit += limit / 2 {
		r := besideQuery(t, vfs.NewMem())
		r.cfg.Budget = columnar.NewBudget(limit)
		err := r.start(t).Wait(t.Context())
		switch {
		case err == nil:
			fine++
		case errors.Is(err, columnar.ErrMemory):
			refused++
		default:
			t.Errorf("%d bytes: %v", limit, err)
		}
		if used := r.cfg.Budget.Used(); used != 0 {
			t.Errorf("%d bytes: %d are not given back", limit, used)
		}
		r.cfg.Budget = nil
		r.run(t)
		r.wantFive(t, fmt.Sprint(limit, " bytes"))
	}
	if refused == 0 || fine == 0 {
		t.Errorf("%d budgets were refused, %d were enough", refused, fine)
	}
}

// The next batch sets out once nothing of one is left to be read, and waits neither for the
// rest of its rows nor for the sink: here the sink reads on only when the file of the next
// batch was opened.
func TestBesideSetsOutBeforeTheLastRow(t *testing.T) {
	t.Parallel()
	opened := &openedFiles{FS: vfs.NewMem(), names: map[string]chan struct{}{}}
	for i := 1; i <= 5; i++ {
		opened.names[fmt.Sprintf("t/%d.json", i)] = make(chan struct{})
	}
	r := besideQuery(t, opened)
	open := r.cfg.Sink
	r.cfg.Sink = func(ctx context.Context, o incremental.Output) (connector.Sink, error) {
		s, err := open(ctx, o)
		return &slowSink{s, opened}, err
	}
	r.run(t)
	r.wantFive(t, "a slow sink")
}

// openedFiles tells which of some files were opened.
type openedFiles struct {
	vfs.FS
	mu    sync.Mutex
	names map[string]chan struct{} // closed and removed once they were
}

func (f *openedFiles) Open(name string) (vfs.File, error) {
	f.mu.Lock()
	for n, c := range f.names {
		if strings.HasSuffix(name, n) {
			close(c)
			delete(f.names, n)
		}
	}
	f.mu.Unlock()
	return f.FS.Open(name)
}

// wait returns once the file was opened, at once if it is none of those.
func (f *openedFiles) wait(ctx context.Context, name string) {
	f.mu.Lock()
	c := f.names[name]
	f.mu.Unlock()
	if c == nil {
		return
	}
	select {
	case <-c:
	case <-ctx.Done():
	}
}

// slowSink hands on the end of a batch only once the file of the next one was opened.
type slowSink struct {
	connector.Sink
	opened *openedFiles
}

func (s *slowSink) Stage(ctx context.Context, b connector.SinkBatch) (connector.Staged, error) {
	b.Data = &slowReader{b.Data, s.opened, fmt.Sprintf("t/%d.json", b.ID+2)}
	return s.Sink.Stage(ctx, b)
}

type slowReader struct {
	columnar.Reader
	opened *openedFiles
	next   string
}

func (r *slowReader) Next(ctx context.Context) (arrow.RecordBatch, error) {
	b, err := r.Reader.Next(ctx)
	if err == nil {
		r.opened.wait(ctx, r.next)
	}
	return b, err
}
