package tidemill

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"path"
	"slices"

	"github.com/tidemill/tidemill/checkpoint"
	"github.com/tidemill/tidemill/incremental"
	"github.com/tidemill/tidemill/internal/vfs"
	"github.com/tidemill/tidemill/logical/connector"
)

// logged is an INSERT whose batches are looked at, or run again, from what its checkpoint
// says of them. It changes nothing on disk and takes no lock.
type logged struct {
	sc   *Script
	in   *insert
	meta checkpoint.Metadata
	plan checkpoint.Plan
	// batches are those planned, from 0 on.
	batches   []loggedBatch
	committed int64 // the newest committed one
	operators bool  // the query keeps state
}

// loggedBatch is a batch as it was planned and, unless commit is nil, committed.
type loggedBatch struct {
	entry  checkpoint.OffsetEntry
	commit *checkpoint.CommitEntry
	// kept says that the names of the state it left are there, too.
	kept bool
}

// on is the script on another filesystem.
func (sc *Script) on(fsys vfs.FS) *Script {
	own, moved := *sc.s, *sc
	own.opts.fs = fsys
	moved.s = &own
	return &moved
}

// logged reads what the checkpoint of an INSERT says, and refuses a query that is not
// the checkpoint's.
func (sc *Script) logged(ctx context.Context, in *insert) (*logged, error) {
	l := &logged{sc: sc, in: in}
	err := checkpoint.Inspect(sc.s.opts.fs, in.checkpoint, l.read)
	var none *checkpoint.NoCheckpointError
	if errors.As(err, &none) {
		return nil, &connector.RefusedError{Path: in.checkpoint, Reason: "it is no checkpoint: " + none.Why(),
			Remedy: "run the query first, or name its checkpoint"}
	}
	if err != nil {
		return nil, err
	}
	_, cfg, err := l.config(ctx, sc)
	if err != nil {
		return nil, err
	}
	now, err := incremental.Describe(cfg, l.plan)
	if err != nil {
		return nil, err
	}
	l.operators = len(now.Operators) > 0
	return l, l.plan.Check(in.checkpoint, now)
}

// read gathers everything; it may be called again.
func (l *logged) read(v *checkpoint.View) (err error) {
	l.batches = nil
	if l.meta, err = v.Metadata(); err != nil {
		return err
	}
	if l.plan, err = v.Plan(); err != nil {
		return err
	}
	b, err := v.Batches()
	if err != nil {
		return err
	}
	l.committed = b.LastCommitted()
	for c, err := range v.History().Range(0, b.History) {
		if err != nil {
			return err
		}
		l.batches = append(l.batches, loggedBatch{entry: c.Offsets, commit: &c})
	}
	for id := int64(len(l.batches)); id <= b.LastPlanned(); id++ {
		batch := loggedBatch{}
		if slices.Contains(b.Commits, id) {
			c, err := v.Commit(id)
			if err != nil {
				return err
			}
			batch = loggedBatch{entry: c.Offsets, commit: &c, kept: true}
		} else if batch.entry, err = v.Offsets(id); err != nil {
			return err
		}
		l.batches = append(l.batches, batch)
	}
	return nil
}

// config plans the INSERT on the filesystem of sc.
func (l *logged) config(ctx context.Context, sc *Script) (*job, incremental.Config, error) {
	j, plan, err := sc.plan(ctx, l.in)
	if err != nil {
		return nil, incremental.Config{}, err
	}
	cfg, err := j.config(ctx, plan)
	return j, cfg, err
}

// overlay is the filesystem on which the batches are run again: neither they nor the
// output seem to be there yet. From batch 0 on there is no state either.
func (l *logged) overlay(from int64) (*vfs.Overlay, error) {
	o := vfs.NewOverlay(l.sc.s.opts.fs)
	checkpoint.Rewind(o, l.in.checkpoint, from > 0)
	for _, dir := range []string{l.in.path, l.in.path + ".late", l.in.path + ".bad"} {
		if l.in.path == "" {
			break
		}
		dir = connector.CleanPath(dir)
		entries, err := l.sc.s.opts.fs.ReadDir(dir)
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			return nil, err
		}
		for _, e := range entries {
			if name := path.Join(dir, e.Name()); !within(l.in.checkpoint, name) {
				o.Hide(name)
			}
		}
	}
	return o, nil
}

// commitBefore is the commit that batch id starts from, nil for batch 0; ok is false if
// its state is not kept any more.
func (l *logged) commitBefore(id int64) (c *checkpoint.CommitEntry, ok bool, err error) {
	if id == 0 {
		return nil, true, nil
	}
	before := l.batches[id-1]
	if before.commit == nil || l.operators && !before.kept {
		return nil, false, nil
	}
	ok, err = l.stateThere(before.commit)
	return before.commit, ok, err
}

// stateThere says whether the state files that a commit names are there. Whether they are
// whole is found when they are read.
func (l *logged) stateThere(c *checkpoint.CommitEntry) (there bool, err error) {
	err = checkpoint.Inspect(l.sc.s.opts.fs, l.in.checkpoint, func(v *checkpoint.View) error {
		for _, op := range c.State {
			for _, f := range op.Files {
				if _, err := l.sc.s.opts.fs.Stat(v.StatePath(op.Operator, f)); err != nil {
					return err
				}
			}
		}
		return nil
	})
	if errors.Is(err, fs.ErrNotExist) {
		return false, nil
	}
	return err == nil, err
}

// lostText says which inputs of a batch are not there as they were.
func lostText(lost []incremental.LostInput) string {
	l := lost[0]
	text := l.Path + " of " + l.Name
	switch {
	case l.Cleaned:
		text += " was cleaned away"
	case l.Gone:
		text += " is gone"
	default:
		text += " changed since"
	}
	if n := len(lost) - 1; n > 0 {
		text += fmt.Sprintf(", and %d more", n)
	}
	return text
}
