package checkpoint

import (
	"errors"
	"flag"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"strings"
	"testing"

	"github.com/tidemill/tidemill/internal/vfs"
	"github.com/tidemill/tidemill/internal/vfs/faultfs"
)

// world is a checkpoint with committed batches 0 to 4, of which the newest 3 have
// files of their own if it was folded, and perhaps batch 5 on its way.
type world struct {
	t testing.TB
	*vfs.Mem
}

func newWorld(t testing.TB, opts Options) *world { return &world{t, build(t, 5, opts)} }

// plan writes offsets/5.
func (w *world) plan() *world {
	d := open(w.t, w, small)
	defer d.Close()
	must(w.t, d.Offsets().Add(5, offsetsOf(5)))
	return w
}

// prepare writes the state of batch 5 and prepared/5.
func (w *world) prepare() *world {
	d := open(w.t, w, small)
	defer d.Close()
	last, err := d.Commits().Get(4)
	must(w.t, err)
	must(w.t, d.Prepared().Put(5, commitOf(offsetsOf(5), stateAfter(w.t, d, &last, 5))))
	return w
}

func (w *world) remove(names ...string) *world {
	for _, name := range names {
		remove(w.t, w, "/ckpt/"+name)
	}
	return w
}

func (w *world) flip(names ...string) *world {
	for _, name := range names {
		flip(w.t, w, "/ckpt/"+name)
	}
	return w
}

func (w *world) empty(names ...string) *world {
	for _, name := range names {
		cut(w.t, w, "/ckpt/"+name, true)
	}
	return w
}

func (w *world) half(names ...string) *world {
	for _, name := range names {
		cut(w.t, w, "/ckpt/"+name, false)
	}
	return w
}

const stateDir5 = "state/" + testOp + "/groups.%012d.%s.parquet"

func change(version int) string { return fmt.Sprintf(stateDir5, version, Change) }

func TestRecover(t *testing.T) {
	t.Parallel()
	whole := newWorld(t, Options{Retain: 100, ID: testID, Engine: "test"})
	folded := newWorld(t, small)
	at := func(last int64) SinkState { return SinkState{Last: last, Known: true, Name: "out"} }
	replaces := func(last int64) SinkState { return SinkState{Last: last, Known: true, Replaces: true, Name: "out"} }
	unknown := SinkState{Last: NoBatch}

	type want struct {
		action  Action
		batch   int64
		note    string // part of a note; "" for none
		rewrite bool
		corrupt string // file below /ckpt that the error names
		refused string // part of the text of an ErrIncompatible
	}
	tests := []struct {
		name  string
		world func(*world) *world
		sink  SinkState
		want  want
	}{
		// Nothing is wrong.
		{"idle", nil, at(4), want{action: PlanBatch, batch: 5}},
		{"idle, unknown sink", nil, unknown, want{action: PlanBatch, batch: 5}},
		{"planned", (*world).plan, at(4), want{action: RunBatch, batch: 5}},
		{"planned, unknown sink", (*world).plan, unknown, want{action: RunBatch, batch: 5}},
		{"prepared", func(w *world) *world { return w.plan().prepare() }, at(4), want{action: RunBatch, batch: 5}},
		{"prepared, unknown sink", func(w *world) *world { return w.plan().prepare() }, unknown, want{action: RunBatch, batch: 5}},
		{"published", func(w *world) *world { return w.plan().prepare() }, at(5), want{action: RollForward, batch: 5}},
		{"stray files", func(w *world) *world {
			write(t, w, "/ckpt/offsets/5.tmp", "garbage")
			write(t, w, "/ckpt/commits/.5.tmp", "garbage")
			write(t, w, "/ckpt/commits/what", "garbage")
			return w
		}, at(4), want{action: PlanBatch, batch: 5}},
		{"prepared without offsets", func(w *world) *world { return w.plan().prepare().remove("offsets/5") }, at(4),
			want{action: PlanBatch, batch: 5}},

		// The newest commit.
		{"newest commit gone", func(w *world) *world { return w.remove("commits/4") }, at(4),
			want{action: Rebuild, batch: 4, note: "run again for its state"}},
		{"newest commit gone, unknown sink", func(w *world) *world { return w.remove("commits/4") }, unknown,
			want{action: RunBatch, batch: 4}},
		{"newest commit gone, not published", func(w *world) *world { return w.remove("commits/4") }, at(3),
			want{action: RunBatch, batch: 4}},
		{"newest commit empty", func(w *world) *world { return w.empty("commits/4") }, at(4),
			want{action: Rebuild, batch: 4, note: "commits/4 is damaged"}},
		{"newest commit cut, unknown sink", func(w *world) *world { return w.half("commits/4") }, unknown,
			want{action: Rebuild, batch: 4, note: "commits/4 is damaged"}},
		{"newest commit gone, next planned", func(w *world) *world { return w.plan().remove("commits/4") }, at(4),
			want{action: Rebuild, batch: 4, note: "run again"}},
		{"newest commit gone, next planned, unknown sink", func(w *world) *world { return w.plan().remove("commits/4") }, unknown,
			want{action: Rebuild, batch: 4, note: "run again"}},
		{"newest commit damaged, next planned", func(w *world) *world { return w.plan().flip("commits/4") }, at(4),
			want{action: Rebuild, batch: 4, note: "run again"}},
		{"newest commit gone, next published", func(w *world) *world { return w.plan().prepare().remove("commits/4") }, at(5),
			want{action: Rebuild, batch: 4, note: "run again"}},
		{"two newest commits gone", func(w *world) *world { return w.remove("commits/3", "commits/4") }, at(4),
			want{corrupt: "commits/3"}},
		{"three newest commits gone", func(w *world) *world { return w.remove("commits/2", "commits/3", "commits/4") }, at(4),
			want{corrupt: "commits/2"}},
		{"older commit gone", func(w *world) *world { return w.remove("commits/3") }, at(4), want{corrupt: "commits/3"}},
		{"first commit gone", func(w *world) *world { return w.remove("commits/0") }, at(4), want{corrupt: "commits/0"}},
		{"older commit damaged", func(w *world) *world { return w.flip("commits/2") }, at(4), want{corrupt: "commits/2"}},
		{"older commit empty", func(w *world) *world { return w.empty("commits/0") }, at(4), want{corrupt: "commits/0"}},
		{"both entries of the newest batch damaged", func(w *world) *world { return w.flip("commits/4", "offsets/4") }, at(4),
			want{corrupt: "offsets/4"}},
		{"all commits gone", func(w *world) *world {
			return w.remove("commits/0", "commits/1", "commits/2", "commits/3", "commits/4")
		}, at(4), want{corrupt: "commits/0"}},

		// The newest offsets.
		{"newest offsets damaged", func(w *world) *world { return w.flip("offsets/4") }, at(4),
			want{action: PlanBatch, batch: 5, note: "derived from its commit"}},
		{"newest offsets gone", func(w *world) *world { return w.remove("offsets/4") }, at(4),
			want{action: PlanBatch, batch: 5, note: "derived from its commit"}},
		{"newest offsets empty, not published", func(w *world) *world { return w.plan().empty("offsets/5") }, at(4),
			want{action: PlanBatch, batch: 5, note: "planned again"}},
		{"newest offsets empty, unknown sink", func(w *world) *world { return w.plan().empty("offsets/5") }, unknown,
			want{action: PlanBatch, batch: 5, note: "planned again"}},
		{"newest offsets damaged, published", func(w *world) *world { return w.plan().prepare().flip("offsets/5") }, at(5),
			want{action: RollForward, batch: 5, note: "derived from the prepared entry"}},
		{"newest offsets damaged, prepared", func(w *world) *world { return w.plan().prepare().flip("offsets/5") }, at(4),
			want{action: RunBatch, batch: 5, note: "derived from the prepared entry"}},
		{"newest offsets gone, published", func(w *world) *world { return w.plan().prepare().remove("offsets/5") }, at(5),
			want{action: RollForward, batch: 5, note: "derived from the prepared entry"}},
		{"newest offsets damaged, published, nothing else", func(w *world) *world { return w.plan().flip("offsets/5") }, at(5),
			want{corrupt: "offsets/5"}},
		{"newest offsets and prepared damaged, not published", func(w *world) *world {
			return w.plan().prepare().flip("offsets/5", "prepared/5")
		}, at(4), want{action: PlanBatch, batch: 5, note: "planned again"}},
		{"newest offsets and prepared damaged, unknown sink", func(w *world) *world {
			return w.plan().prepare().flip("offsets/5", "prepared/5")
		}, unknown, want{corrupt: "offsets/5"}},
		{"older offsets damaged", func(w *world) *world { return w.flip("offsets/0", "offsets/2") }, at(4),
			want{action: PlanBatch, batch: 5, note: "offsets/2 was damaged"}},
		{"older offsets gone", func(w *world) *world { return w.remove("offsets/0") }, at(4), want{corrupt: "offsets/0"}},
		{"all but the newest offsets gone", func(w *world) *world {
			return w.remove("offsets/0", "offsets/1", "offsets/2", "offsets/3")
		}, at(4), want{corrupt: "offsets/0"}},
		{"all offsets gone", func(w *world) *world {
			return w.remove("offsets/0", "offsets/1", "offsets/2", "offsets/3", "offsets/4")
		}, at(4), want{corrupt: "offsets/0"}},
		{"offsets of the batch before gone, newest planned", func(w *world) *world { return w.plan().remove("offsets/4") }, at(4),
			want{corrupt: "offsets/4"}},

		// The prepared entry.
		{"published, prepared damaged", func(w *world) *world { return w.plan().prepare().flip("prepared/5") }, at(5),
			want{action: Rebuild, batch: 5, note: "run again"}},
		{"published, prepared gone", (*world).plan, at(5), want{action: Rebuild, batch: 5, note: "run again"}},
		{"prepared damaged", func(w *world) *world { return w.plan().prepare().flip("prepared/5") }, at(4),
			want{action: RunBatch, batch: 5}},

		// State.
		{"published, its state damaged", func(w *world) *world { return w.plan().prepare().flip(change(6)) }, at(5),
			want{action: Rebuild, batch: 5, note: "run again"}},
		{"not published, its state damaged", func(w *world) *world { return w.plan().prepare().flip(change(6)) }, at(4),
			want{action: RunBatch, batch: 5}},
		{"newest state damaged", func(w *world) *world { return w.flip(change(5)) }, at(4),
			want{action: Rebuild, batch: 4, note: "run again for its state"}},
		{"newest state gone", func(w *world) *world { return w.remove(change(5)) }, at(4),
			want{action: Rebuild, batch: 4, note: "run again for its state"}},
		{"newest state damaged, next planned", func(w *world) *world { return w.plan().flip(change(5)) }, at(4),
			want{action: Rebuild, batch: 4, note: "run again for its state"}},
		{"snapshot damaged", func(w *world) *world { return w.flip(fmt.Sprintf(stateDir5, 4, Snapshot)) }, at(4),
			want{corrupt: fmt.Sprintf(stateDir5, 4, Snapshot)}},
		{"state of older versions gone", func(w *world) *world { return w.remove(change(1), change(2)) }, at(4),
			want{action: PlanBatch, batch: 5}},

		// The output.
		{"output gone", nil, at(NoBatch), want{refused: "output out holds no batch"}},
		{"output behind", nil, at(2), want{refused: "output out holds batches up to 2 only"}},
		{"output behind, next planned", (*world).plan, at(3), want{refused: "output out holds batches up to 3 only"}},
		{"output ahead", nil, at(7), want{refused: "output out holds batches up to 7"}},
		{"whole table gone", nil, replaces(NoBatch), want{action: PlanBatch, batch: 5, rewrite: true}},
		{"whole table gone, next planned", (*world).plan, replaces(NoBatch), want{action: RunBatch, batch: 5, rewrite: true}},
	}
	for _, base := range []struct {
		name  string
		world *world
	}{{"whole", whole}, {"folded", folded}} {
		for _, tt := range tests {
			if base.name == "folded" && !appliesFolded(tt.name) {
				continue
			}
			t.Run(base.name+"/"+tt.name, func(t *testing.T) {
				t.Parallel()
				w := &world{t, base.world.Clone()}
				if tt.world != nil {
					w = tt.world(w)
				}
				d := open(t, w, small)
				defer d.Close()
				before := tree(t, w, "/ckpt")
				r, err := d.Recover(tt.sink)
				after := tree(t, w, "/ckpt")
				switch {
				case tt.want.corrupt != "":
					wantCorrupt(t, err, "/ckpt/"+tt.want.corrupt)
				case tt.want.refused != "":
					if !errors.Is(err, ErrIncompatible) || !strings.Contains(err.Error(), tt.want.refused) {
						t.Fatalf("error is %v", err)
					}
				case err != nil:
					t.Fatal(err)
				}
				if err != nil {
					if !maps.Equal(before, after) {
						t.Error("a refusal changed the checkpoint")
					}
					return
				}
				notes := strings.Join(r.Notes, "; ")
				if r.Action != tt.want.action || r.Batch != tt.want.batch || r.RewriteOutput != tt.want.rewrite ||
					!strings.Contains(notes, tt.want.note) || (notes == "") != (tt.want.note == "") {
					t.Fatalf("%s %d, rewrite %v, notes %q", r.Action, r.Batch, r.RewriteOutput, notes)
				}
				checkRecovery(t, d, r)
			})
		}
	}
}

// appliesFolded says which cases make sense if batches 0 and 1 are in the history.
func appliesFolded(name string) bool {
	for _, first := range []string{"first", "older commit empty", "older offsets", "all ", "state of older"} {
		if strings.HasPrefix(name, first) {
			return false
		}
	}
	return true
}

// checkRecovery checks that a Recovery fits together, and that after a repair
// Recover has nothing to say.
func checkRecovery(t *testing.T, d *Dir, r Recovery) {
	t.Helper()
	if (r.Entry != nil) != (r.Action != PlanBatch) || (r.Prepared != nil) != (r.Action == RollForward) {
		t.Errorf("%+v", r)
	}
	if r.Entry != nil && (r.Entry.Batch != r.Batch || r.Entry.Time != offsetsOf(r.Batch).Time) {
		t.Errorf("entry is %+v", r.Entry)
	}
	if r.Last == nil || r.Last.Batch != r.Batch-1 {
		t.Errorf("last is %+v", r.Last)
	}
	ids, err := d.Offsets().IDs()
	must(t, err)
	want := newest(ids)
	if r.Action == PlanBatch && want != r.Batch-1 {
		t.Errorf("newest offsets entry is %d", want)
	}
	if got := r.NamedEntry(0); got != want {
		t.Errorf("newest named source entry is %d, want %d", got, want)
	}
	if r.NamedEntry(1) != NoBatch {
		t.Error("there is no source 1")
	}
	if r.Action == PlanBatch && len(r.Notes) > 0 {
		again, err := d.Recover(SinkState{Last: NoBatch})
		if err != nil || again.Action != PlanBatch || again.Batch != r.Batch || len(again.Notes) > 0 {
			t.Errorf("again: %+v, %v", again, err)
		}
	}
}

func TestRecoverFresh(t *testing.T) {
	t.Parallel()
	d := open(t, vfs.NewMem(), small)
	defer d.Close()
	for _, sink := range []SinkState{{Last: NoBatch, Known: true}, {Last: NoBatch}} {
		r, err := d.Recover(sink)
		must(t, err)
		if r.Action != PlanBatch || r.Batch != 0 || r.Last != nil || r.NamedEntry(0) != NoBatch {
			t.Errorf("%+v", r)
		}
	}
	_, err := d.Recover(SinkState{Last: 3, Known: true, Name: "out"})
	if !errors.Is(err, ErrIncompatible) || !strings.Contains(err.Error(), "output out holds batches up to 3") {
		t.Errorf("error is %v", err)
	}
}

func TestRecoverFirstBatch(t *testing.T) {
	t.Parallel()
	m := build(t, 1, small)
	flip(t, m, "/ckpt/commits/0")
	d := open(t, m, small)
	defer d.Close()
	r, err := d.Recover(SinkState{Last: 0, Known: true})
	must(t, err)
	if r.Action != Rebuild || r.Batch != 0 || r.Last != nil {
		t.Errorf("%+v", r)
	}
	must(t, m.Remove("/ckpt/commits/0"))
	flip(t, m, "/ckpt/offsets/0")
	r, err = d.Recover(SinkState{Last: NoBatch, Known: true})
	must(t, err)
	if r.Action != PlanBatch || r.Batch != 0 || r.Last != nil {
		t.Errorf("%+v", r)
	}
	if ids, _ := d.Offsets().IDs(); len(ids) != 0 {
		t.Errorf("offsets are %v", ids)
	}
}

// TestRecoverLostHistory checks that old batches which are nowhere are missed.
func TestRecoverLostHistory(t *testing.T) {
	t.Parallel()
	m := build(t, 9, small)
	must(t, vfs.RemoveAll(m, "/ckpt/history"))
	d := open(t, m, small)
	defer d.Close()
	_, err := d.Recover(SinkState{Last: 8, Known: true})
	wantCorrupt(t, err, "/ckpt/commits/0")
}

func TestRecoverEmptyBatchesNeedNoOutput(t *testing.T) {
	t.Parallel()
	m := build(t, 3, small)
	d := open(t, m, small)
	defer d.Close()
	last, err := d.Commits().Get(2)
	must(t, err)
	c := commitOf(offsetsOf(3), stateAfter(t, d, &last, 3))
	c.Counters.Out = 0
	must(t, d.Offsets().Add(3, offsetsOf(3)))
	must(t, d.Prepared().Put(3, c))
	must(t, d.Commit(3))
	r, err := d.Recover(SinkState{Last: 2, Known: true})
	must(t, err)
	if r.Action != PlanBatch || r.Batch != 4 {
		t.Errorf("%+v", r)
	}
}

func TestWithdrawBatch(t *testing.T) {
	t.Parallel()
	w := newWorld(t, small).plan().prepare()
	d := open(t, w, small)
	defer d.Close()
	if err := d.WithdrawBatch(4); err == nil {
		t.Error("a committed batch can be withdrawn")
	}
	must(t, d.WithdrawBatch(5))
	r, err := d.Recover(SinkState{Last: 4, Known: true})
	must(t, err)
	if r.Action != PlanBatch || r.Batch != 5 {
		t.Errorf("%+v", r)
	}
}

// The simulation: a query with one source, one operator and a sink that follows the
// protocol of doc.go. Its output of a batch is a text made from the offsets entry,
// its state the list of the seeds of all batches.

const simBatches = 9

// Every call takes half a minute; every fifth finds what a change breaks.
var crashAll = flag.Bool("crash-all", false, "crash and fail at every call, not at some")

// simulate runs until all batches are done, or an error. attempt tells runs apart,
// so that a batch planned anew differs from the one before.
func simulate(fsys vfs.FS, attempt int) error {
	d, err := Open(fsys, "/ckpt", small)
	if err != nil {
		return err
	}
	defer d.Close()
	if err := d.CheckPlan(testPlan()); err != nil {
		return err
	}
	if err := vfs.MkdirAll(fsys, "/out"); err != nil {
		return err
	}
	for {
		visible, err := listIDs(fsys, "/out")
		if err != nil {
			return err
		}
		r, err := d.Recover(SinkState{Last: newest(visible), Known: true, Name: "out"})
		if err != nil {
			return err
		}
		log, err := d.SourceLog(0, r.NamedEntry(0))
		if err != nil {
			return err
		}
		if r.Action == PlanBatch {
			if r.Batch == simBatches {
				return nil
			}
			if r.Entry, err = simPlan(d, log, r, attempt); err != nil {
				return err
			}
		}
		if err := simRun(fsys, d, r); err != nil {
			return err
		}
		if err := d.Commit(r.Batch); err != nil {
			return err
		}
		if err := d.Maintain(); err != nil {
			return err
		}
		if err := log.Compact(); err != nil {
			return err
		}
	}
}

// simPlan is step 1. An entry of the source that no offsets name is adopted.
func simPlan(d *Dir, log *SourceLog, r Recovery, attempt int) (*OffsetEntry, error) {
	latest, err := log.Latest()
	if err != nil {
		return nil, err
	}
	if latest < r.Batch {
		if err := log.Put(r.Batch, []byte(num(r.Batch))); err != nil {
			return nil, err
		}
	}
	e := offsetsOf(r.Batch)
	e.Seed = uint64(r.Batch)*1000 + uint64(attempt)
	e.Plan = testPlan().Fingerprint()
	if err := d.Offsets().Add(r.Batch, e); err != nil {
		return nil, err
	}
	log.SetNamed(r.Batch)
	return &e, nil
}

func simOutput(e *OffsetEntry) string { return fmt.Sprintf("batch %d seed %d\n", e.Batch, e.Seed) }

// simRun is steps 2 to 4.
func simRun(fsys vfs.FS, d *Dir, r Recovery) error {
	if r.Action == RollForward {
		return nil
	}
	state, err := simState(d, r.Last)
	if err != nil {
		return err
	}
	output := simOutput(r.Entry)
	version := r.Batch + 1
	op := OperatorState{Operator: testOp, Version: version}
	if before, ok := r.Last.StateOf(testOp); ok {
		op.Files = append(op.Files, before.Files...)
	}
	f := StateFile{Table: "t", Kind: Change, From: r.Batch, To: version}
	if version%4 == 0 {
		f.Kind, f.From, op.Files = Snapshot, 0, nil
		output = state + output
	}
	f, err = d.WriteState(testOp, f, func(w io.Writer) error {
		_, err := io.WriteString(w, output)
		return err
	})
	if err != nil {
		return err
	}
	op.Files = append(op.Files, f)
	if err := d.Prepared().Put(r.Batch, commitOf(*r.Entry, op)); err != nil {
		return err
	}
	if r.Action == Rebuild {
		return nil
	}
	name := "/out/" + num(r.Batch)
	if _, err := fsys.Stat(name); !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("batch %d is published twice: %w", r.Batch, err)
	}
	return vfs.WriteAtomic(fsys, name, []byte(simOutput(r.Entry)))
}

// simState reads the state that a commit names.
func simState(d *Dir, c *CommitEntry) (string, error) {
	var b strings.Builder
	op, _ := c.StateOf(testOp)
	for _, f := range op.Files {
		r, err := d.OpenState(testOp, f)
		if err != nil {
			return "", err
		}
		_, err = io.Copy(&b, struct{ io.Reader }{r})
		if err := errors.Join(err, r.Close()); err != nil {
			return "", err
		}
	}
	return b.String(), nil
}

// checkSim checks a finished simulation: each batch published once, from the
// offsets that its commit has; state made from the same; nothing damaged or lost.
func checkSim(t testing.TB, m *vfs.Mem) {
	t.Helper()
	var state strings.Builder
	must(t, Inspect(m, "/ckpt", func(v *View) error {
		for batch := range int64(simBatches) {
			c, err := v.Commit(batch)
			if err != nil {
				return err
			}
			want := simOutput(&c.Offsets)
			state.WriteString(want)
			if got := read(t, m, "/out/"+num(batch)); got != want {
				t.Errorf("batch %d has output %q, its commit says %q", batch, got, want)
			}
		}
		c, err := v.Commit(simBatches - 1)
		if err != nil {
			return err
		}
		got, err := simState(v.d, &c)
		if got != state.String() {
			t.Errorf("state is %q, want %q", got, state.String())
		}
		return err
	}))
	report, err := Verify(m, "/ckpt")
	must(t, err)
	if !report.Whole() || report.LastGood != simBatches-1 || len(report.Strays) != 0 {
		t.Errorf("%+v", report)
	}
	log := newSourceLog(m, "/ckpt/sources/0", everything)
	next := int64(0)
	for e, err := range log.Range(-1, everything) {
		must(t, err)
		if e.ID != next || string(e.Data) != num(next) {
			t.Errorf("source entry %d is %+v", next, e)
		}
		next++
	}
	if next != simBatches {
		t.Errorf("%d source entries", next)
	}
	if m.OpenFiles() != 0 {
		t.Errorf("%d files left open", m.OpenFiles())
	}
}

// TestCrashEverywhere crashes the simulation at every call that may change the
// disk (some of them, without -crash-all), runs on, and crashes a second time soon
// after.
func TestCrashEverywhere(t *testing.T) {
	t.Parallel()
	clean := vfs.NewMem()
	count := faultfs.New(clean)
	must(t, simulate(count, 0))
	checkSim(t, clean)
	calls, _ := count.Calls()
	step := 5
	if *crashAll {
		step = 1
	}
	for k := 0; k < calls; k += step {
		for seed, keep := range []float64{0, 0.5, 0.5, 1} {
			m := vfs.NewMem()
			rule := faultfs.MustParse(fmt.Sprintf("(crash (nth %d mutating))", k))
			if err := simulate(faultfs.New(m, rule), 1); !errors.Is(err, faultfs.ErrCrashed) {
				t.Fatalf("%s: %v", rule, err)
			}
			m = m.Crash(uint64(seed), keep)
			again := faultfs.MustParse(fmt.Sprintf("(crash (nth %d mutating))", (k*7+seed)%23))
			if err := simulate(faultfs.New(m, again), 2); err != nil {
				if !errors.Is(err, faultfs.ErrCrashed) {
					t.Fatalf("%s seed %d keep %g: %v", rule, seed, keep, err)
				}
				m = m.Crash(uint64(seed), keep)
			}
			if err := simulate(m, 3); err != nil {
				t.Fatalf("%s and %s, seed %d, keep %g: %v", rule, again, seed, keep, err)
			}
			if checkSim(t, m); t.Failed() {
				t.Fatalf("%s and %s, seed %d, keep %g", rule, again, seed, keep)
			}
		}
	}
}

// TestErrorEverywhere makes each call (some, without -crash-all) fail once: the run must end with that error
// and the next one go on.
func TestErrorEverywhere(t *testing.T) {
	t.Parallel()
	for _, action := range []string{"error EIO", "short"} {
		step := 17
		if *crashAll {
			step = 1
		}
		for k := 0; ; k += step {
			m := vfs.NewMem()
			ff := faultfs.New(m, faultfs.MustParse(fmt.Sprintf("(%s (nth %d any))", action, k)))
			err := simulate(ff, 1)
			if ff.Fired()[0] == 0 {
				must(t, err)
				break
			}
			// An error of a release comes after everything is done.
			if err != nil && !errors.Is(err, faultfs.ErrInjected) {
				t.Fatalf("%s at call %d: %v", action, k, err)
			}
			m = m.Clone() // a process ends, its locks go; nothing is lost
			if err := simulate(m, 2); err != nil {
				t.Fatalf("%s at call %d: %v", action, k, err)
			}
			if checkSim(t, m); t.Failed() {
				t.Fatalf("%s at call %d", action, k)
			}
		}
	}
}

// TestDamageEverywhere damages each file of a finished checkpoint in turn: going on
// either works and gives what it should, or is refused naming the file.
func TestDamageEverywhere(t *testing.T) {
	t.Parallel()
	whole := vfs.NewMem()
	must(t, simulate(whole, 0))
	for name := range tree(t, whole, "/ckpt") {
		if name == lockName {
			continue
		}
		for what, damage := range map[string]func(*vfs.Mem){
			"flipped": func(m *vfs.Mem) { flip(t, m, "/ckpt/"+name) },
			"halved":  func(m *vfs.Mem) { cut(t, m, "/ckpt/"+name, false) },
			"emptied": func(m *vfs.Mem) { cut(t, m, "/ckpt/"+name, true) },
			"removed": func(m *vfs.Mem) { remove(t, m, "/ckpt/"+name) },
		} {
			m := whole.Clone()
			damage(m)
			report, err := Verify(m, "/ckpt")
			must(t, err)
			if report.Whole() && !(what == "removed" && (name == "commits/8" || strings.HasPrefix(name, "sources/"))) {
				t.Errorf("%s %s: not noticed by Verify", name, what)
			}
			err = simulate(m, 1)
			switch {
			case errors.Is(err, ErrCorrupt):
				if !strings.Contains(err.Error(), name) && !(what == "removed" && strings.HasPrefix(name, "history/")) {
					t.Errorf("%s %s: the error is %v", name, what, err)
				}
			case err != nil:
				t.Errorf("%s %s: %v", name, what, err)
			default:
				for batch := range int64(simBatches) {
					out := "/out/" + num(batch)
					if read(t, m, out) != read(t, whole, out) {
						t.Errorf("%s %s: the output of batch %d changed", name, what, batch)
					}
				}
			}
		}
	}
}
