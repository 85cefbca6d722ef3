package checkpoint

import (
	"errors"
	"fmt"
	"io/fs"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/tidemill/tidemill/internal/vfs"
)

func TestInspect(t *testing.T) {
	t.Parallel()
	m := build(t, 9, small)
	d := open(t, m, small)
	must(t, d.Offsets().Add(9, offsetsOf(9)))
	must(t, d.SetLastError(LastError{Time: 5, Batch: 9, Message: "out of luck \xff"}))
	before := tree(t, m, "/ckpt")
	must(t, Inspect(m, "/ckpt/", func(v *View) error {
		b, err := v.Batches()
		must(t, err)
		if b.LastPlanned() != 9 || b.LastCommitted() != 8 || b.History != 5 || b.Prepared != NoBatch ||
			!slices.Equal(b.Commits, []int64{6, 7, 8}) || !slices.Equal(b.Offsets, []int64{6, 7, 8, 9}) {
			t.Errorf("%+v", b)
		}
		meta, err := v.Metadata()
		must(t, err)
		plan, err := v.Plan()
		must(t, err)
		if meta.ID != testID || plan.Operators[0].Name != testOp || v.Path() != "/ckpt" {
			t.Errorf("%+v %+v", meta, plan)
		}
		for batch := range int64(10) {
			e, err := v.Offsets(batch)
			must(t, err)
			if e.Time != offsetsOf(batch).Time {
				t.Errorf("batch %d: %+v", batch, e)
			}
		}
		if _, err := v.Offsets(10); !errors.Is(err, fs.ErrNotExist) {
			t.Errorf("error is %v", err)
		}
		if _, err := v.Commit(9); !errors.Is(err, fs.ErrNotExist) {
			t.Errorf("error is %v", err)
		}
		c, err := v.Commit(8)
		must(t, err)
		op, ok := c.StateOf(testOp)
		if !ok || op.Version != 9 || op.Files[0].Kind != Snapshot || len(op.Files) != 6 {
			t.Errorf("%+v", op)
		}
		f, err := v.OpenState(testOp, op.Files[0])
		must(t, err)
		must(t, f.Close())
		last, err := v.LastError()
		must(t, err)
		if last == nil || last.Batch != 9 || last.Message != "out of luck \uFFFD" {
			t.Errorf("%+v", last)
		}
		n := 0
		for _, err := range v.SourceLog(0).Range(-1, everything) {
			must(t, err)
			n++
		}
		if n != 9 {
			t.Errorf("%d source entries", n)
		}
		if locked, err := v.Locked(); err != nil || !locked {
			t.Errorf("locked: %v, %v", locked, err)
		}
		return nil
	}))
	if after := tree(t, m, "/ckpt"); fmt.Sprint(before) != fmt.Sprint(after) {
		t.Error("looking changed the checkpoint")
	}
	must(t, d.Prepared().Put(9, commitOf(offsetsOf(9))))
	must(t, d.Close())
	d = open(t, m, small)
	must(t, d.Commit(9))
	must(t, d.Close())
	must(t, Inspect(m, "/ckpt", func(v *View) error {
		if last, err := v.LastError(); err != nil || last != nil {
			t.Errorf("the error of a run stays after a commit: %+v, %v", last, err)
		}
		if locked, err := v.Locked(); err != nil || locked {
			t.Errorf("locked: %v, %v", locked, err)
		}
		return nil
	}))
	if err := Inspect(m, "/elsewhere", nil); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("error is %v", err)
	}
}

// TestInspectStartsOver checks that a look that loses a file to the running query is
// repeated, and one at a damaged checkpoint is not.
func TestInspectStartsOver(t *testing.T) {
	t.Parallel()
	m := build(t, 9, Options{Retain: 100, ID: testID})
	looks := 0
	must(t, Inspect(m, "/ckpt", func(v *View) error {
		looks++
		b, err := v.Batches()
		must(t, err)
		if looks == 1 {
			d := open(t, m, small)
			must(t, d.Maintain())
			must(t, d.Close())
		}
		_, err = v.d.commits.Get(b.Commits[0])
		return err
	}))
	if looks != 2 {
		t.Errorf("%d looks", looks)
	}
	looks = 0
	err := Inspect(m, "/ckpt", func(v *View) error {
		looks++
		_, err := v.d.commits.Get(0)
		return err
	})
	if looks != 1 || !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("%d looks, %v", looks, err)
	}
}

// TestInspectBesideQuery looks again and again while a query runs.
func TestInspectBesideQuery(t *testing.T) {
	t.Parallel()
	m := vfs.NewMem()
	must(t, open(t, m, small).Close())
	done := make(chan error)
	go func() { done <- simulate(m, 1) }()
	for looks := 0; ; looks++ {
		err := Inspect(m, "/ckpt", func(v *View) error {
			b, err := v.Batches()
			if err != nil {
				return err
			}
			for id := range b.LastCommitted() + 1 {
				if _, err := v.Commit(id); err != nil {
					return err
				}
			}
			return nil
		})
		if err != nil {
			t.Errorf("look %d: %v", looks, err)
		}
		report, err := Verify(m, "/ckpt")
		if err != nil || len(report.Problems) > 0 {
			t.Errorf("look %d: %+v, %v", looks, report, err)
		}
		select {
		case err := <-done:
			must(t, err)
			checkSim(t, m)
			return
		default:
		}
	}
}

func TestVerify(t *testing.T) {
	t.Parallel()
	base := build(t, 9, small)
	for _, tt := range []struct {
		name     string
		damage   func(*world)
		problem  string // path and batch, as printed; "" for none
		lastGood int64
	}{
		{"whole", func(*world) {}, "", 8},
		{"commit damaged", func(w *world) { w.flip("commits/7") }, "/ckpt/commits/7 (batch 7): the checksum does not match", 6},
		{"commit missing", func(w *world) { w.remove("commits/7") }, "/ckpt/commits/7 (batch 7): the file is missing", 6},
		{"newest commit damaged", func(w *world) { w.empty("commits/8") }, "/ckpt/commits/8 (batch 8): the file is empty", 7},
		{"offsets damaged", func(w *world) { w.half("offsets/8") }, "/ckpt/offsets/8 (batch 8): ", 7},
		{"newest state damaged", func(w *world) { w.flip(change(9)) }, "its hash is not the one its commit names", 7},
		{"newest state cut", func(w *world) { w.half(change(9)) }, "bytes, its commit says", 7},
		{"snapshot gone", func(w *world) { w.remove(fmt.Sprintf(stateDir5, 4, Snapshot)) }, "the file is missing", NoBatch},
		{"history damaged", func(w *world) { w.flip("history/0-1") }, "/ckpt/history/0-1: the checksum does not match", 8},
		{"history gap", func(w *world) { w.remove("history/0-1") }, "(batch 0): the batch is missing", 8},
		{"history gone", func(w *world) { must(w.t, vfs.RemoveAll(w, "/ckpt/history")) },
			"batches 0 to 5 are neither here nor in the history", NoBatch},
		{"metadata damaged", func(w *world) { w.flip("metadata") }, "/ckpt/metadata: ", 8},
		{"plan gone", func(w *world) { w.remove("plan.json") }, "/ckpt/plan.json: the file is missing", 8},
		{"source entry damaged", func(w *world) { w.flip("sources/0/4") }, "/ckpt/sources/0/4: the checksum", 8},
		{"sources do not join up", func(w *world) {
			e := offsetsOf(8)
			e.Sources[0].Start = offset(3)
			must(w.t, newDir(w, "/ckpt", small).offsets.Put(8, e))
		}, `source bids starts at {"logOffset":3}, the batch before ended at {"logOffset":7}`, 7},
		{"copy differs", func(w *world) {
			e := offsetsOf(8)
			e.Seed++
			must(w.t, newDir(w, "/ckpt", small).offsets.Put(8, e))
		}, "its copy of the offsets is not that of the offsets file", 7},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			w := &world{t, base.Clone()}
			tt.damage(w)
			write(t, w, "/ckpt/offsets/9.tmp", "x")
			report, err := Verify(w, "/ckpt")
			must(t, err)
			var text strings.Builder
			for _, p := range report.Problems {
				fmt.Fprintln(&text, p)
			}
			if !strings.Contains(text.String(), tt.problem) || report.Whole() != (tt.problem == "") {
				t.Errorf("problems are:\n%swant %s", text.String(), tt.problem)
			}
			if report.LastGood != tt.lastGood {
				t.Errorf("last good batch is %d, want %d", report.LastGood, tt.lastGood)
			}
			if !slices.Equal(report.Strays, []string{"/ckpt/offsets/9.tmp"}) {
				t.Errorf("strays are %q", report.Strays)
			}
		})
	}
	if _, err := Verify(vfs.NewMem(), "/nothing"); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("error is %v", err)
	}
}

// A checkpoint on a filesystem that cannot be written to can be looked at.
func TestInspectReadOnly(t *testing.T) {
	t.Parallel()
	m := build(t, 3, small)
	for _, why := range []error{syscall.EROFS, syscall.EACCES} {
		m.Deny(func(op vfs.Op, name string) error {
			if op == vfs.OpLock || op == vfs.OpCreate {
				return &fs.PathError{Op: string(op), Path: name, Err: why}
			}
			return nil
		})
		must(t, Inspect(m, "/ckpt", func(v *View) error {
			if running, err := v.Locked(); err != nil || running {
				t.Errorf("%v: running is %v, %v", why, running, err)
			}
			return nil
		}))
	}
}

// Who asks whether a query runs does not keep one from starting.
func TestAskingDoesNotLockOut(t *testing.T) {
	t.Parallel()
	m := build(t, 3, small)
	asking, err := m.Lock("/ckpt/" + lockName)
	must(t, err)
	done := time.AfterFunc(10*time.Millisecond, func() { _ = asking.Close() })
	defer done.Stop()
	d, err := Open(m, "/ckpt", small)
	must(t, err)
	must(t, d.Close())
}
