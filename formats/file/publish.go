package file

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"path"
	"slices"
	"strconv"

	"golang.org/x/sync/errgroup"

	"github.com/tidemill/tidemill/internal/vfs"
	"github.com/tidemill/tidemill/logical/connector"
)

// syncers is how many files or directories are synced at a time.
const syncers = 8

// staged is a batch whose files wait in staging.
type staged struct {
	s       *Sink
	entry   manifestEntry
	draft   *vfs.Draft // of the decision; nil once Publish has tried it
	rows    int64
	decided bool // Publish was called: the decision may be on disk
	done    bool
}

var _ connector.Staged = (*staged)(nil)

// Rows implements connector.Staged.
func (st *staged) Rows() int64 { return st.rows }

// Publish implements connector.Staged. After an error the decision may or may not
// have been made: it is repeated, by this process or by Recover of the next.
func (st *staged) Publish(ctx context.Context) error {
	if st.done {
		return nil
	}
	if err := ctx.Err(); err != nil {
		return err
	}
	st.decided = true
	if err := st.decide(); err != nil {
		return st.s.wrap(err)
	}
	if len(st.entry.Files) > 0 {
		// Decided: a crash from here on is rolled forward.
		if err := st.s.finish(st.entry); err != nil {
			return st.s.wrap(err)
		}
	}
	st.done = true
	st.s.published(st.entry.Batch)
	return nil
}

// decision is the file whose being there makes the batch part of the output. Without
// files there is nothing to rename, and that is the entry of the manifest itself.
func (st *staged) decision() string {
	dir := pendingName
	if len(st.entry.Files) == 0 {
		dir = manifestDir
	}
	return path.Join(st.s.control(dir), strconv.FormatInt(st.entry.Batch, 10))
}

// writeDraft writes the decision, all but its name.
func (st *staged) writeDraft() error {
	data, err := encodeEntry(st.entry)
	if err != nil {
		return err
	}
	st.draft, err = vfs.WriteDraft(st.s.fs, st.decision(), data)
	return err
}

// decide makes the decision; if an earlier try failed, from its beginning.
func (st *staged) decide() error {
	if draft := st.draft; draft != nil {
		st.draft = nil
		return draft.Publish()
	}
	data, err := encodeEntry(st.entry)
	if err != nil {
		return err
	}
	return vfs.WriteAtomic(st.s.fs, st.decision(), data)
}

// Discard implements connector.Staged.
func (st *staged) Discard() error {
	if st.decided {
		return nil
	}
	var err error
	if st.draft != nil {
		err = st.draft.Discard()
		st.draft = nil
	}
	return errors.Join(err, st.s.clearStaging())
}

// recovered is what an earlier process decided.
type recovered struct {
	s       *Sink
	entries []manifestEntry
}

// Rows implements connector.Staged.
func (r *recovered) Rows() int64 {
	rows := int64(0)
	for _, e := range r.entries {
		rows += e.rows()
	}
	return rows
}

// Discard implements connector.Staged: the decision stands.
func (r *recovered) Discard() error { return nil }

// Publish implements connector.Staged.
func (r *recovered) Publish(context.Context) error {
	for len(r.entries) > 0 {
		e := r.entries[0]
		if err := r.s.finish(e); err != nil {
			return r.s.wrap(err)
		}
		r.s.published(e.Batch)
		r.entries = r.entries[1:]
	}
	return r.s.clearStaging()
}

// rows counts the rows of the output proper.
func (e *manifestEntry) rows() int64 {
	rows := int64(0)
	for _, f := range e.Files {
		if f.Side == "" {
			rows += f.Rows
		}
	}
	return rows
}

// finish makes a decided batch visible, from wherever an earlier try stopped.
func (s *Sink) finish(e manifestEntry) error {
	var dirs []string
	for _, f := range e.Files {
		final := path.Join(s.sideDir(f.Side), f.Path)
		if err := s.place(path.Join(s.stagingDir(f.Side), f.Staged), final, f); err != nil {
			return err
		}
		if d := path.Dir(final); !slices.Contains(dirs, d) {
			dirs = append(dirs, d)
		}
	}
	// All names must be durable before pending/N may go.
	if err := syncDirs(s.fs, dirs); err != nil {
		return err
	}
	id := strconv.FormatInt(e.Batch, 10)
	err := s.fs.Rename(path.Join(s.control(pendingName), id), path.Join(s.control(manifestDir), id))
	if errors.Is(err, fs.ErrNotExist) {
		// An earlier try came this far.
		_, err = s.fs.Stat(path.Join(s.control(manifestDir), id))
	}
	if err != nil {
		return err
	}
	return vfs.SyncDir(s.fs, s.control(manifestDir))
}

// place renames a staged file, or finds that it was.
func (s *Sink) place(from, to string, f outFile) error {
	err := s.fs.Rename(from, to)
	if !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	if info, err := s.fs.Stat(to); err == nil {
		if info.Size() != f.Size {
			return fmt.Errorf("%s has %d bytes, not %d as decided", to, info.Size(), f.Size)
		}
		return nil
	}
	// Someone took the folder away.
	if _, err := s.fs.Stat(from); err != nil {
		return fmt.Errorf("%s is gone", from)
	}
	if err := vfs.MkdirAll(s.fs, path.Dir(to)); err != nil {
		return err
	}
	return s.fs.Rename(from, to)
}

func syncDirs(fsys vfs.FS, dirs []string) error {
	if len(dirs) == 1 {
		return vfs.SyncDir(fsys, dirs[0])
	}
	var g errgroup.Group
	g.SetLimit(syncers)
	for _, d := range dirs {
		g.Go(func() error { return vfs.SyncDir(fsys, d) })
	}
	return g.Wait()
}

// published notes that a batch is visible and finished, and compacts the manifest
// where that is due. A compaction that goes wrong costs nothing but space.
func (s *Sink) published(batch int64) {
	s.last = max(s.last, batch)
	s.lost = false
	s.pending = slices.DeleteFunc(s.pending, func(id int64) bool { return id == batch })
	if !slices.Contains(s.names.entries, batch) {
		s.names.entries = append(s.names.entries, batch)
	}
	if len(s.pending) > 0 || !compactionDue(s.names, s.least) {
		return
	}
	names, err := compactManifest(s.fs, s.control(manifestDir))
	if err != nil {
		s.env.Warnf("sink %s: the manifest could not be compacted: %v", s.dir, err)
		return
	}
	s.names = names
}
