package checkpoint

import (
	"errors"
	"io/fs"
	"path"
	"strconv"
	"syscall"

	"github.com/tidemill/tidemill/internal/vfs"
)

// View is a checkpoint that is looked at without its lock, perhaps while its query
// runs. Everything it reads is as of the moment of reading; Inspect starts over
// when that does not fit together.
type View struct {
	d *Dir
}

// inspectTries bounds how often Inspect starts over.
const inspectTries = 20

// Inspect calls look with a View and returns its error. If look fails because a
// file that was listed has gone, or the like, and the query has moved on meanwhile,
// look is called again: it should gather what it wants and print it after Inspect
// returned. A directory that is no checkpoint gives a *NoCheckpointError, which is fs.ErrNotExist.
func Inspect(fsys vfs.FS, dir string, look func(*View) error) error {
	v := &View{d: newDir(fsys, path.Clean(dir), Options{}.withDefaults())}
	if _, err := fsys.Stat(v.d.file(metadataName)); err != nil {
		if _, err2 := fsys.Stat(v.d.file(offsetsName)); err2 != nil {
			if !errors.Is(err, fs.ErrNotExist) && !errors.Is(err, syscall.ENOTDIR) {
				return err
			}
			_, dirErr := fsys.Stat(path.Clean(dir))
			return &NoCheckpointError{Dir: dir, Absent: errors.Is(dirErr, fs.ErrNotExist), Err: err}
		}
	}
	for try := 1; ; try++ {
		before, err := v.mark()
		if err != nil {
			return err
		}
		err = look(v)
		gone := errors.Is(err, fs.ErrNotExist) || errors.Is(err, ErrCorrupt)
		if !gone || try == inspectTries {
			return err
		}
		after, markErr := v.mark()
		if markErr != nil {
			return markErr
		}
		if before == after {
			return err
		}
	}
}

// mark tells states of a checkpoint apart: whatever a query removes, it adds a
// batch or a history file before, or withdraws a batch.
func (v *View) mark() (string, error) {
	mark := ""
	for _, name := range logDirs {
		entries, err := v.d.fs.ReadDir(v.d.file(name))
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			return "", err
		}
		for _, e := range entries {
			if !isTemp(e.Name()) {
				mark += name + "/" + e.Name() + "\n"
			}
		}
	}
	return mark, nil
}

// Path is the checkpoint's directory.
func (v *View) Path() string { return v.d.path }

// Metadata reads metadata.
func (v *View) Metadata() (Metadata, error) { return readMetadata(v.d.fs, v.d.path) }

// Plan reads plan.json; fs.ErrNotExist if there is none yet.
func (v *View) Plan() (Plan, error) { return v.d.Plan() }

// Locked reports whether a query runs on the checkpoint now. It does not disturb
// one, but one that starts at this very moment may find the lock taken; so it is
// only called for people.
func (v *View) Locked() (bool, error) {
	name := v.d.file(lockName)
	if _, err := v.d.fs.Stat(name); err != nil {
		if errors.Is(err, fs.ErrNotExist) {
			return false, nil
		}
		return false, err
	}
	lock, err := v.d.fs.Lock(name)
	switch {
	case errors.Is(err, vfs.ErrLocked):
		return true, nil
	case errors.Is(err, fs.ErrPermission) || errors.Is(err, syscall.EROFS):
		return false, nil // who may not write here cannot ask, and runs no query here
	case err != nil:
		return false, err
	}
	return false, lock.Close()
}

// Batches is what batches a checkpoint has. NoBatch stands for none.
type Batches struct {
	// History is the newest batch in the history; all from 0 to it are there.
	History int64
	// Offsets and Commits are the batches with files of their own, in order.
	Offsets, Commits []int64
	// Prepared is the batch that is being made visible.
	Prepared int64
}

// LastPlanned is the newest batch with an offsets entry.
func (b Batches) LastPlanned() int64 { return max(newest(b.Offsets), b.History) }

// LastCommitted is the newest batch with a commit.
func (b Batches) LastCommitted() int64 { return max(newest(b.Commits), b.History) }

// Batches lists them.
func (v *View) Batches() (Batches, error) {
	var b Batches
	var err error
	if b.Offsets, err = v.d.offsets.IDs(); err != nil {
		return b, err
	}
	if b.Commits, err = v.d.commits.IDs(); err != nil {
		return b, err
	}
	prepared, err := v.d.prepared.IDs()
	if err != nil {
		return b, err
	}
	b.Prepared = newest(prepared)
	b.History, err = v.d.history.Last()
	return b, err
}

// Offsets reads the intent of a batch, wherever it is; fs.ErrNotExist if the batch
// was not planned.
func (v *View) Offsets(batchID int64) (OffsetEntry, error) {
	e, err := v.d.offsets.Get(batchID)
	if !errors.Is(err, fs.ErrNotExist) {
		return e, err
	}
	c, err := v.d.history.Get(batchID)
	return c.Offsets, err
}

// Commit reads what a batch left, wherever it is: from the history it comes without
// the names of state files. fs.ErrNotExist if the batch is not committed.
func (v *View) Commit(batchID int64) (CommitEntry, error) {
	c, err := v.d.commits.Get(batchID)
	if !errors.Is(err, fs.ErrNotExist) {
		return c, err
	}
	return v.d.history.Get(batchID)
}

// Prepared reads the entry of a batch that is being made visible.
func (v *View) Prepared(batchID int64) (CommitEntry, error) { return v.d.prepared.Get(batchID) }

// History gives access to the old batches.
func (v *View) History() *History { return v.d.history }

// LastError is why the last run ended; nil if it ended well.
func (v *View) LastError() (*LastError, error) {
	data, err := vfs.ReadFile(v.d.fs, v.d.file(lastErrorName))
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	var e LastError
	if err := unmarshal(data, &e); err != nil {
		return nil, corrupt(v.d.file(lastErrorName), NoBatch, "the content cannot be read", err)
	}
	return &e, nil
}

// SourceLog reads the memory of source i; it must not be written.
func (v *View) SourceLog(i int) *SourceLog {
	dir := path.Join(v.d.file(sourcesName), strconv.Itoa(i))
	return newSourceLog(v.d.fs, dir, everything)
}

// OpenState opens a state file after it checked size and hash.
func (v *View) OpenState(operator string, file StateFile) (vfs.File, error) {
	return v.d.OpenState(operator, file)
}

// StatePath is the path of a state file.
func (v *View) StatePath(operator string, file StateFile) string {
	return v.d.StatePath(operator, file)
}
