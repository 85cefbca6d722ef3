package checkpoint

import (
	"errors"
	"fmt"
	"io/fs"
	"iter"
	"path"
	"slices"
	"strconv"

	"github.com/tidemill/tidemill/internal/vfs"
)

// Log is a directory with one file per batch, named by the batch number. The entry
// of a visible batch is never replaced; that of an invisible one may be withdrawn.
// A Log keeps nothing in memory; it is written by the one holder of the lock, and
// may be read by anybody.
type Log[T any] struct {
	fs   vfs.FS
	dir  string
	kind string // word in the header
}

func newLog[T any](fsys vfs.FS, dir, kind string) *Log[T] {
	return &Log[T]{fs: fsys, dir: dir, kind: kind}
}

// Path is the file of the batch.
func (l *Log[T]) Path(batchID int64) string { return path.Join(l.dir, strconv.FormatInt(batchID, 10)) }

// Add writes the entry of a batch, durably. It gives ErrExists if there is one
// already. After a crash the entry is there whole or not at all.
func (l *Log[T]) Add(batchID int64, v T) error {
	_, err := l.fs.Stat(l.Path(batchID))
	switch {
	case err == nil:
		return fmt.Errorf("%s: %w", l.Path(batchID), ErrExists)
	case !errors.Is(err, fs.ErrNotExist):
		return err
	}
	return l.Put(batchID, v)
}

// Put is Add that replaces an entry. It is for entries of batches that are not
// visible, and for repairs.
func (l *Log[T]) Put(batchID int64, v T) error {
	if batchID < 0 {
		return fmt.Errorf("bug: batch number %d", batchID)
	}
	body, err := marshalPretty(v)
	if err != nil {
		return fmt.Errorf("%s: %w", l.Path(batchID), err)
	}
	return writeFile(l.fs, l.Path(batchID), l.kind, strconv.FormatInt(batchID, 10), body)
}

// Withdraw removes the newest entry, durably, so that the batch can be planned
// again. An entry that is not the newest is refused; one that is not there is fine.
// After a crash the entry is there whole or not at all.
func (l *Log[T]) Withdraw(batchID int64) error {
	ids, err := l.IDs()
	if err != nil {
		return err
	}
	if i, ok := slices.BinarySearch(ids, batchID); ok && i != len(ids)-1 {
		return fmt.Errorf("bug: %s is not the newest entry, it cannot be withdrawn", l.Path(batchID))
	}
	if err := l.fs.Remove(l.Path(batchID)); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	return vfs.SyncDir(l.fs, l.dir)
}

// Get reads an entry. It gives fs.ErrNotExist if there is none and ErrCorrupt if
// any byte of it was changed.
func (l *Log[T]) Get(batchID int64) (T, error) {
	var v T
	body, err := l.read(batchID)
	if err != nil {
		return v, err
	}
	if err := unmarshal(body, &v); err != nil {
		var none T
		return none, corrupt(l.Path(batchID), batchID, "the content cannot be read", err)
	}
	return v, nil
}

// check is Get without decoding: it finds every change of a byte.
func (l *Log[T]) check(batchID int64) error {
	_, err := l.read(batchID)
	return err
}

// read returns the checked body of the file.
func (l *Log[T]) read(batchID int64) ([]byte, error) {
	return readChecked(l.fs, l.Path(batchID), l.kind, strconv.FormatInt(batchID, 10), batchID)
}

// readChecked reads a file with a header and returns its body.
func readChecked(fsys vfs.FS, name, kind, id string, batch int64) ([]byte, error) {
	data, err := vfs.ReadFile(fsys, name)
	if err != nil {
		return nil, err
	}
	body, err := decodeFile(kind, id, data)
	var version *versionError
	switch {
	case errors.As(err, &version):
		return nil, &IncompatibleError{Path: name, Batch: batch, Reasons: []string{version.Error()}}
	case err != nil:
		return nil, corrupt(name, batch, err.Error(), nil)
	}
	return body, nil
}

// IDs lists the batches that have an entry, in rising order. Files whose name is
// not a plain number are not entries.
func (l *Log[T]) IDs() ([]int64, error) { return listIDs(l.fs, l.dir) }

func listIDs(fsys vfs.FS, dir string) ([]int64, error) {
	entries, err := fsys.ReadDir(dir)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	var ids []int64
	for _, e := range entries {
		if id, ok := parseID(e.Name()); ok && !e.IsDir() {
			ids = append(ids, id)
		}
	}
	slices.Sort(ids)
	return ids, nil
}

// parseID reads a number as FormatInt writes it.
func parseID(name string) (int64, bool) {
	id, err := strconv.ParseInt(name, 10, 64)
	return id, err == nil && id >= 0 && strconv.FormatInt(id, 10) == name
}

// Latest reads the newest entry. Without entries batchID is NoBatch. If the newest
// one is damaged, batchID is its number and err says so.
func (l *Log[T]) Latest() (batchID int64, v T, err error) {
	ids, err := l.IDs()
	if err != nil || len(ids) == 0 {
		return NoBatch, v, err
	}
	batchID = ids[len(ids)-1]
	v, err = l.Get(batchID)
	return batchID, v, err
}

// Range gives the entries from … upto that are there, in order. An error is
// yielded with the number it concerns and ends the iteration.
func (l *Log[T]) Range(from, upto int64) iter.Seq2[int64, Result[T]] {
	return func(yield func(int64, Result[T]) bool) {
		ids, err := l.IDs()
		if err != nil {
			yield(NoBatch, Result[T]{Err: err})
			return
		}
		for _, id := range ids {
			if id < from || id > upto {
				continue
			}
			v, err := l.Get(id)
			if !yield(id, Result[T]{Value: v, Err: err}) || err != nil {
				return
			}
		}
	}
}

// Result is a value or the error that stands in its place.
type Result[T any] struct {
	Value T
	Err   error
}

// Purge removes the entries before a batch, the oldest first, so that a crash
// leaves no gap. What it removes may be back after a crash; purge again then.
func (l *Log[T]) Purge(before int64) error {
	ids, err := l.IDs()
	if err != nil {
		return err
	}
	for _, id := range ids {
		if id >= before {
			break
		}
		if err := l.fs.Remove(l.Path(id)); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return err
		}
	}
	return nil
}
