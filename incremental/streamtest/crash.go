package streamtest

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"path"
	"slices"
	"strings"
	"testing"
	"time"

	arrowmemory "github.com/apache/arrow-go/v18/arrow/memory"

	"github.com/tidemill/tidemill/checkpoint"
	"github.com/tidemill/tidemill/columnar/columnartest"
	"github.com/tidemill/tidemill/internal/vfs"
	"github.com/tidemill/tidemill/internal/vfs/faultfs"
	"github.com/tidemill/tidemill/logical"
	"github.com/tidemill/tidemill/logical/connector"
)

// Scenario is a query and what happens to it, for CrashEverywhere.
type Scenario struct {
	Name string
	// SQL is the CREATE statements, Query the query in Mode.
	SQL   string
	Query string
	Mode  connector.OutputMode
	// Sink is that of World: "" for memory, noop, or a format of files.
	Sink        string
	SinkOptions map[string]string
	// Keep are the rows kept beside the output: late, bad.
	Keep   []string
	Shards int
	Steps  []Step
	Ahead  bool // as in World: it needs several files a step and a limit
	// NamedInputs is that of World.
	NamedInputs int
	// Hours says that the clock shows whole hours: what a query makes of the time does not
	// depend on how often it was started.
	Hours bool
	// Wrap is that of World.
	Wrap func(plan logical.Node) (logical.Node, error)
}

// Step moves the clock and drops files, then runs the query until there is nothing left
// to do; Restart stops and starts it before that.
type Step struct {
	Clock   time.Duration
	Files   map[string]string
	Restart bool
}

// Faults says which of the faults of a scenario are tried.
type Faults struct {
	// All tries every call in every mode; otherwise about one of Every is drawn with
	// Seed.
	All   bool
	Every int
	Seed  uint64
}

// fault is one thing that goes wrong.
type fault struct {
	rule faultfs.Rule
	keep float64 // of a crash
	seed uint64
}

func (f fault) String() string {
	if f.rule.Action != faultfs.Crash {
		return f.rule.String()
	}
	return fmt.Sprintf("%s keep=%g seed=%d", f.rule, f.keep*100, f.seed)
}

// faultsAt are the faults tried at mutating call k.
func faultsAt(k int) []fault {
	at := faultfs.Nth(k, faultfs.Mutating())
	crash := faultfs.Rule{Action: faultfs.Crash, When: at}
	return []fault{
		{rule: crash, keep: 0},
		{rule: crash, keep: 0.5, seed: 1},
		{rule: crash, keep: 0.5, seed: 2},
		{rule: crash, keep: 0.5, seed: 3},
		{rule: crash, keep: 1},
		{rule: faultfs.Rule{Action: faultfs.Error, Err: "ENOSPC", When: at}},
		{rule: faultfs.Rule{Action: faultfs.Error, Err: "EIO", When: at}},
		{rule: faultfs.Rule{Action: faultfs.Short, When: at}},
	}
}

// outcome is what a run of a scenario must come to, whatever went wrong on the way.
type outcome struct {
	output string // every row that came out, by batch where the sink tells
	state  string
	files  string // the names of data files
	batch  int64  // the newest
}

// CrashEverywhere runs a scenario without faults, then again with a crash, an error and a
// short write at each call that may change the disk. After an error the query is started
// again on what is there, after a crash on what a power cut left. Each run must come to
// the rows, files and state of the first, with a whole checkpoint and nothing left over.
func CrashEverywhere(t *testing.T, s Scenario, f Faults) {
	t.Helper()
	mem := columnartest.Mem(t)
	want, calls, err := s.reference(t.Context(), mem)
	if err != nil {
		t.Fatal(err)
	}
	rnd := rand.New(rand.NewPCG(f.Seed, uint64(calls)))
	if s.Sink != "noop" && strings.Count(want.output, "\n") < 2 {
		t.Fatalf("%s gives no rows, so that none could be lost", s.Name)
	}
	tried := 0
	for k := range calls {
		for _, fault := range faultsAt(k) {
			if !f.All && rnd.IntN(max(f.Every, 1)) != 0 {
				continue
			}
			tried++
			if err := s.faulted(t.Context(), mem, fault, want); err != nil {
				t.Errorf("%s: %v\n%v", s.Name, fault, err)
			}
			if t.Failed() && tried > 2000 || t.Context().Err() != nil {
				return
			}
		}
	}
	t.Logf("%s: %d mutating calls, %d faults tried (seed %d)", s.Name, calls, tried, f.Seed)
}

// world is the scenario's query over fsys.
func (s *Scenario) world(fsys vfs.FS, mem arrowmemory.Allocator) (*World, error) {
	w := NewWorld(fsys, mem, Variant{Shards: s.Shards, Snapshots: checkpoint.SnapshotPolicy{Always: true}})
	w.Sink, w.SinkOptions, w.Retain, w.FoldEvery = s.Sink, s.SinkOptions, 2, 1
	w.Wrap, w.Keep, w.Ahead, w.NamedInputs = s.Wrap, s.Keep, s.Ahead, s.NamedInputs
	if s.Hours {
		w.Clock.grain = time.Hour
	}
	w.Declare(s.SQL)
	return w, w.Query(s.Query, s.Mode, nil)
}

// reference is the run without faults.
func (s *Scenario) reference(ctx context.Context, mem arrowmemory.Allocator) (*outcome, int, error) {
	fsys := newFaulty(vfs.NewMem())
	w, err := s.world(fsys, mem)
	if err != nil {
		return nil, 0, err
	}
	defer func() { _ = w.Release() }()
	// The user's files are written past the faults, and not counted.
	for i := range s.Steps {
		if err := s.step(ctx, w, i, true); err != nil {
			return nil, 0, err
		}
	}
	if err := w.Close(); err != nil {
		return nil, 0, err
	}
	calls, _ := fsys.Calls()
	out, err := s.outcome(ctx, w)
	return out, calls, err
}

// step writes the files of step i and runs the query. A second try leaves files alone.
func (s *Scenario) step(ctx context.Context, w *World, i int, fresh bool) error {
	if fresh {
		w.Clock.now = w.Clock.now.Add(s.Steps[i].Clock)
		for _, name := range sortedKeys(s.Steps[i].Files) {
			w.Clock.now = w.Clock.now.Add(1e9)
			mem := memOf(w.FS)
			if err := writeFile(mem, path.Join(inputDir, name), []byte(s.Steps[i].Files[name]), w.Clock.now); err != nil {
				return err
			}
		}
	}
	if s.Steps[i].Restart {
		if err := w.Close(); err != nil {
			return err
		}
	}
	for {
		ran, err := w.Step(ctx)
		if err != nil {
			return err
		}
		// What Open finished counts as a batch for Step, and there may be more.
		before := w.reported
		w.reported = w.m.NextBatch()
		if !ran && w.reported == before {
			return nil
		}
	}
}

// faulted runs the scenario with one fault and compares what it comes to.
func (s *Scenario) faulted(ctx context.Context, mem arrowmemory.Allocator, f fault, want *outcome) error {
	fsys := newFaulty(vfs.NewMem(), f.rule)
	w, err := s.world(fsys, mem)
	if err != nil {
		return err
	}
	defer func() { _ = w.Release() }()
	for i := range s.Steps {
		err := s.step(ctx, w, i, true)
		if err == nil {
			continue
		}
		if !errors.Is(err, faultfs.ErrInjected) {
			return fmt.Errorf("step %d failed with something else than the fault: %w", i, err)
		}
		if err := s.recoverFrom(w, f); err != nil {
			return err
		}
		if err := s.step(ctx, w, i, false); err != nil {
			return fmt.Errorf("step %d after the fault: %w", i, err)
		}
	}
	if err := w.Close(); err != nil && !errors.Is(err, faultfs.ErrInjected) {
		return fmt.Errorf("close: %w", err)
	}
	if err := s.recoverFrom(w, f); err != nil {
		return err
	}
	return s.compare(ctx, w, want, "")
}

// recoverFrom puts the world on what the fault left of the disk, without faults.
func (s *Scenario) recoverFrom(w *World, f fault) error {
	if err := w.Close(); err != nil && !errors.Is(err, faultfs.ErrInjected) {
		return err
	}
	fsys, ok := w.FS.(*faulty)
	if !ok {
		return nil
	}
	if n := fsys.mem.OpenFiles(); n != 0 && !fsys.Crashed() {
		return fmt.Errorf("%d files were left open", n)
	}
	left := fsys.mem
	if fsys.Crashed() {
		left = fsys.mem.Crash(f.seed, f.keep)
	}
	w.FS = left
	return nil
}

// compare starts the query once more, so that it cleans up, and looks at everything.
// damaged is a file that may be found damaged.
func (s *Scenario) compare(ctx context.Context, w *World, want *outcome, damaged string) error {
	if err := w.Open(ctx); err != nil {
		return fmt.Errorf("the last start: %w", err)
	}
	if err := w.Close(); err != nil {
		return err
	}
	got, err := s.outcome(ctx, w)
	if err != nil {
		return err
	}
	switch {
	case got.batch != want.batch:
		return fmt.Errorf("the newest batch is %d, without the fault %d", got.batch, want.batch)
	case got.output != want.output:
		return fmt.Errorf("the output is\n%swithout the fault\n%s", got.output, want.output)
	case got.files != want.files:
		return fmt.Errorf("the output files are\n%swithout the fault\n%s", got.files, want.files)
	case got.state != want.state:
		return fmt.Errorf("the state is\n%swithout the fault\n%s", got.state, want.state)
	}
	return s.leftOver(w, damaged)
}

// leftOver looks for temporary files and staged rows that nobody needs, and verifies the
// checkpoint.
func (s *Scenario) leftOver(w *World, damaged string) error {
	report, err := checkpoint.Verify(w.FS, checkpointDir)
	if err != nil {
		return err
	}
	problems := slices.DeleteFunc(report.Problems, func(p checkpoint.Problem) bool { return p.Path == damaged })
	if len(problems) > 0 || len(report.Strays) > 0 {
		return fmt.Errorf("the checkpoint is not whole: %v, strays %v", problems, report.Strays)
	}
	for _, dir := range append(s.sides(), checkpointDir, outputDir) {
		names, err := w.List(dir)
		if err != nil && dir == checkpointDir {
			return err
		}
		for _, name := range names {
			if vfs.IsTemp(name) || strings.Contains(name, "/staging/") || strings.Contains(name, "/pending/") {
				return fmt.Errorf("%s was left over", name)
			}
		}
	}
	return nil
}

// outcome looks at what a run came to.
func (s *Scenario) outcome(ctx context.Context, w *World) (*outcome, error) {
	o := &outcome{}
	c, err := w.LastCommit()
	if err != nil {
		return nil, err
	}
	o.batch = c.Batch
	if s.Sink == "" && s.Mode != connector.Complete {
		for id := range c.Batch + 1 {
			rows, err := w.Rows(ctx, id, false)
			if err != nil {
				return nil, err
			}
			o.output += fmt.Sprintf("batch %d\n%s", id, rows)
		}
	} else if o.output, err = w.Output(ctx); err != nil {
		return nil, err
	}
	if o.state, err = w.AllState(ctx); err != nil {
		return nil, err
	}
	for _, name := range s.Keep {
		rows, err := w.Side(ctx, name, "*")
		if err != nil {
			return nil, err
		}
		o.output += name + "\n" + rows
	}
	for _, dir := range append(s.sides(), outputDir) {
		names, err := w.List(dir)
		if err != nil {
			continue // the output is not files
		}
		for _, name := range names {
			if strings.HasPrefix(path.Base(name), "part-") {
				o.files += name + "\n"
			}
		}
	}
	return o, nil
}

// sides are the directories of what is kept beside the output.
func (s *Scenario) sides() []string {
	dirs := make([]string, len(s.Keep))
	for i, name := range s.Keep {
		dirs[i] = outputDir + "." + name
	}
	return dirs
}
