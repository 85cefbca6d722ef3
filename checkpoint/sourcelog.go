package checkpoint

import (
	"errors"
	"fmt"
	"io/fs"
	"iter"
	"path"
	"slices"
	"strconv"
	"sync"

	"github.com/tidemill/tidemill/internal/vfs"
	"github.com/tidemill/tidemill/logical/connector"
)

// SourceLog is the durable memory of one source: a connector.BatchLog in
// sources/I, one file an entry, older ones joined into segments. Nothing is ever
// dropped. Its methods may be called by several goroutines.
type SourceLog struct {
	mu    sync.Mutex
	fs    vfs.FS
	dir   string
	named int64
	segs  segments
}

var _ connector.BatchLog = (*SourceLog)(nil)

// SourceLog keeps the newest keepSingle named entries as files of their own, since
// a batch may still be withdrawn, and joins older ones foldSingle at a time.
const (
	keepSingle = 8
	foldSingle = 32
)

const sourceKind = "source"

func newSourceLog(fsys vfs.FS, dir string, named int64) *SourceLog {
	return &SourceLog{
		fs: fsys, dir: dir, named: named,
		segs: segments{fs: fsys, dir: dir, kind: sourceKind},
	}
}

// openSourceLog opens the log for its one writer. An unreadable entry that no
// offsets name is removed, with those after it: it belongs to no batch.
func openSourceLog(fsys vfs.FS, dir string, named int64) (*SourceLog, error) {
	l := newSourceLog(fsys, dir, named)
	ids, err := listIDs(fsys, dir)
	if err != nil {
		return nil, err
	}
	for _, id := range ids {
		if id <= named {
			continue
		}
		_, err := l.get(id)
		if errors.Is(err, ErrCorrupt) {
			return l, l.removeFrom(id)
		}
		if err != nil {
			return nil, err
		}
	}
	return l, nil
}

// Path is the file of an entry while it is one of its own, for messages.
func (l *SourceLog) Path(id int64) string { return path.Join(l.dir, strconv.FormatInt(id, 10)) }

func (l *SourceLog) get(id int64) ([]byte, error) {
	return readChecked(l.fs, l.Path(id), sourceKind, strconv.FormatInt(id, 10), NoBatch)
}

// SetNamed says that the offsets now name the entries up to id: they can no longer
// be replaced. It is called after offsets/N is written, with the source's
// SourceRange.LastEntry.
func (l *SourceLog) SetNamed(id int64) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.named = id
}

// Put writes entry id, durably. It replaces one that no offsets name, and refuses
// (ErrExists) one that is named. After a crash there is the old entry or the new.
func (l *SourceLog) Put(id int64, entry []byte) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	if id < 0 {
		return fmt.Errorf("bug: source entry number %d", id)
	}
	if id <= l.named {
		return fmt.Errorf("%s, which a batch has named: %w", l.Path(id), ErrExists)
	}
	return vfs.WriteAtomic(l.fs, l.Path(id), encodeFile(sourceKind, strconv.FormatInt(id, 10), entry))
}

// Latest is the newest entry's number, -1 if there is none.
func (l *SourceLog) Latest() (int64, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.latest()
}

func (l *SourceLog) latest() (int64, error) {
	ids, err := listIDs(l.fs, l.dir)
	if err != nil {
		return -1, err
	}
	last, err := l.segs.last()
	if err != nil || len(ids) == 0 {
		return last, err
	}
	return max(last, ids[len(ids)-1]), nil
}

// Range gives the entries of (after, upto], in order. An error is yielded once and
// ends the iteration. The bytes belong to the caller.
func (l *SourceLog) Range(after, upto int64) iter.Seq2[connector.LogEntry, error] {
	return func(yield func(connector.LogEntry, error) bool) {
		stopped := false
		err := l.each(after, upto, func(e connector.LogEntry) bool {
			stopped = !yield(e, nil)
			return !stopped
		})
		if err != nil && !stopped {
			yield(connector.LogEntry{}, err)
		}
	}
}

// each visits segments, then single files. The lock is not held while visiting: a
// source may Put while it reads.
func (l *SourceLog) each(after, upto int64, visit func(connector.LogEntry) bool) error {
	ids, live, err := l.list()
	if err != nil {
		return err
	}
	more, err := l.segs.eachOf(live, after, upto, visit)
	if err != nil || !more {
		return err
	}
	if n := len(live); n > 0 {
		after = max(after, live[n-1].to)
	}
	for _, id := range ids {
		if id <= after || id > upto {
			continue
		}
		data, err := l.get(id)
		if err != nil {
			return err
		}
		if !visit(connector.LogEntry{ID: id, Data: data}) {
			return nil
		}
	}
	return nil
}

// list returns the single files and the segments. Singles are listed first: one
// that is joined meanwhile, by a query beside an inspection, is in a segment then.
func (l *SourceLog) list() ([]int64, []segment, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	ids, err := listIDs(l.fs, l.dir)
	if err != nil {
		return nil, nil, err
	}
	live, _, err := l.segs.list()
	return ids, live, err
}

// Withdraw removes the entries after a number, the newest first, durably: the batch
// that named them was withdrawn, or none did. Entries that are joined already
// belong to visible batches and are refused.
func (l *SourceLog) Withdraw(after int64) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	folded, err := l.segs.last()
	if err != nil {
		return err
	}
	if folded > after {
		return fmt.Errorf("bug: entries of %s up to %d belong to visible batches and cannot be withdrawn", l.dir, folded)
	}
	l.named = min(l.named, after)
	return l.removeFrom(after + 1)
}

// removeFrom removes single entries, the newest first and each durably before the
// next: a crash leaves no gap.
func (l *SourceLog) removeFrom(first int64) error {
	ids, err := listIDs(l.fs, l.dir)
	if err != nil {
		return err
	}
	for _, id := range slices.Backward(ids) {
		if id < first {
			break
		}
		if err := l.fs.Remove(l.Path(id)); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return err
		}
		if err := vfs.SyncDir(l.fs, l.dir); err != nil {
			return err
		}
	}
	return nil
}

// Compact joins old entries into segments; it changes nothing that Range gives. It
// is called between batches, and is cheap when there is little to join.
func (l *SourceLog) Compact() error {
	l.mu.Lock()
	defer l.mu.Unlock()
	ids, err := listIDs(l.fs, l.dir)
	if err != nil {
		return err
	}
	folded, err := l.segs.last()
	if err != nil {
		return err
	}
	// What a crash left between the steps below.
	for len(ids) > 0 && ids[0] <= folded {
		if err := l.fs.Remove(l.Path(ids[0])); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return err
		}
		ids = ids[1:]
	}
	n, _ := slices.BinarySearch(ids, l.named+1)
	n -= keepSingle
	if n < foldSingle {
		return nil
	}
	return l.fold(ids[:n])
}

// fold joins single entries. The segment is durable before they go.
func (l *SourceLog) fold(ids []int64) error {
	entries := make([]connector.LogEntry, len(ids))
	for i, id := range ids {
		data, err := l.get(id)
		if err != nil {
			return err
		}
		entries[i] = connector.LogEntry{ID: id, Data: data}
	}
	if err := l.segs.write(segment{from: ids[0], to: ids[len(ids)-1]}, entries); err != nil {
		return err
	}
	for _, id := range ids {
		if err := l.fs.Remove(l.Path(id)); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return err
		}
	}
	return l.segs.merge()
}
