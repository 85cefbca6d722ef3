package checkpoint

import (
	"errors"
	"fmt"
	"io/fs"
	"iter"

	"github.com/tidemill/tidemill/internal/vfs"
	"github.com/tidemill/tidemill/logical/connector"
)

// History holds the batches that were folded out of offsets and commits: their
// commit entries, with the copy of offsets in them and without the names of state
// files, which are gone. It is never shortened, and takes about 100 bytes a batch.
type History struct {
	segs segments
}

func newHistory(fsys vfs.FS, dir string) *History {
	return &History{segments{fs: fsys, dir: dir, kind: "history", packed: true}}
}

// Last is the newest batch in the history, NoBatch if there is none. All batches
// from 0 to it are there.
func (h *History) Last() (int64, error) { return h.segs.last() }

// Range gives the entries of the batches from … upto that are in the history, in
// order. An error is yielded once and ends the iteration.
func (h *History) Range(from, upto int64) iter.Seq2[CommitEntry, error] {
	return func(yield func(CommitEntry, error) bool) {
		var failed error
		stopped := false
		err := h.segs.each(from-1, upto, func(e connector.LogEntry) bool {
			var c CommitEntry
			if err := unmarshal(e.Data, &c); err != nil {
				failed = corrupt(h.segs.dir, e.ID, "the content cannot be read", err)
				return false
			}
			stopped = !yield(c, nil)
			return !stopped
		})
		if err == nil {
			err = failed
		}
		if err != nil && !stopped {
			yield(CommitEntry{}, err)
		}
	}
}

// Get reads one batch; it gives fs.ErrNotExist if it is not in the history.
func (h *History) Get(batchID int64) (CommitEntry, error) {
	for c, err := range h.Range(batchID, batchID) {
		return c, err
	}
	return CommitEntry{}, &fs.PathError{Op: "read", Path: h.segs.dir, Err: fs.ErrNotExist}
}

// add writes the next batches as one segment.
func (h *History) add(commits []CommitEntry) error {
	entries := make([]connector.LogEntry, len(commits))
	for i, c := range commits {
		c.State = nil
		data, err := marshal(c)
		if err != nil {
			return err
		}
		entries[i] = connector.LogEntry{ID: c.Batch, Data: data}
	}
	return h.segs.write(segment{from: commits[0].Batch, to: commits[len(commits)-1].Batch}, entries)
}

// Maintain folds old batches into the history and removes state files that nothing
// needs any more: step 6. inUse are files that no entry names yet (a snapshot just
// written). It is cheap when there is nothing to do, which it is for most batches.
func (d *Dir) Maintain(inUse ...OperatorState) error {
	folded, err := d.fold()
	if err != nil || !folded {
		return err
	}
	return d.CollectState(inUse...)
}

// fold moves the batches before the newest Retain into the history, FoldEvery or
// more at a time. First the history is durable, then the files go: after a crash a
// batch is in both, and the next fold removes it.
func (d *Dir) fold() (bool, error) {
	if d.newest < d.nextFold {
		return false, nil
	}
	last, err := d.history.Last()
	if err != nil {
		return false, err
	}
	ids, err := d.commits.IDs()
	if err != nil || len(ids) == 0 {
		return false, err
	}
	cut := ids[len(ids)-1] - int64(d.opts.Retain)
	if cut-last < int64(d.opts.FoldEvery) {
		if err := d.purgeFolded(last, ids); err != nil {
			return false, err
		}
		d.nextFold = last + int64(d.opts.FoldEvery) + int64(d.opts.Retain)
		return false, nil
	}
	commits := make([]CommitEntry, 0, cut-last)
	for id := last + 1; id <= cut; id++ {
		c, err := d.committed(id)
		if errors.Is(err, fs.ErrNotExist) {
			err = corrupt(d.commits.Path(id), id, "the file is missing", nil)
		}
		if err != nil {
			return false, fmt.Errorf("fold into history: %w", err)
		}
		commits = append(commits, *c)
	}
	if err := d.history.add(commits); err != nil {
		return false, err
	}
	if err := d.purgeFolded(cut, ids); err != nil {
		return false, err
	}
	return true, d.history.segs.merge()
}

// purgeFolded removes the files of batches that are in the history.
func (d *Dir) purgeFolded(last int64, commits []int64) error {
	if commits[0] > last {
		return nil
	}
	for _, id := range commits {
		if id <= last {
			delete(d.recent, id)
		}
	}
	if err := d.offsets.Purge(last + 1); err != nil {
		return err
	}
	return d.commits.Purge(last + 1)
}
