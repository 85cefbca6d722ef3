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

	// writer says that nobody else changes the directory: what it holds is remembered.
	writer bool
	known  *sourceNames // nil: to be listed
	newest connector.LogEntry
	held   heldEntries
}

// sourceNames is what the directory of a SourceLog holds.
type sourceNames struct {
	singles []int64 // in order
	live    []segment
}

// folded is the newest entry that a segment holds, -1 if none does.
func (n *sourceNames) folded() int64 {
	if len(n.live) == 0 {
		return -1
	}
	return n.live[len(n.live)-1].to
}

var _ connector.BatchLog = (*SourceLog)(nil)

// SourceLog keeps the newest keepSingle named entries as files of their own, since
// a batch may still be withdrawn, and joins older ones foldSingle at a time.
const (
	keepSingle = 8
	foldSingle = 32
)

// rememberedEntry is how large the newest entry may be to be kept in memory, too: it is
// asked for several times while its batch runs.
const rememberedEntry = 64 << 10

const sourceKind = "source"

func newSourceLog(fsys vfs.FS, dir string, named int64) *SourceLog {
	return &SourceLog{
		fs: fsys, dir: dir, named: named, newest: connector.LogEntry{ID: NoBatch},
		segs: segments{fs: fsys, dir: dir, kind: sourceKind},
	}
}

// openSourceLog opens the log for its one writer. An unreadable entry that no
// offsets name is removed, with those after it: it belongs to no batch.
func openSourceLog(fsys vfs.FS, dir string, named int64) (*SourceLog, error) {
	l := newSourceLog(fsys, dir, named)
	l.writer = true
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

// names is what the directory holds. Singles are listed first: one that is joined
// meanwhile, by a query beside an inspection, is in a segment then.
func (l *SourceLog) names() (*sourceNames, error) {
	if l.known != nil {
		return l.known, nil
	}
	ids, err := listIDs(l.fs, l.dir)
	if err != nil {
		return nil, err
	}
	live, _, err := l.segs.list()
	if err != nil {
		return nil, err
	}
	n := &sourceNames{singles: ids, live: live}
	if l.writer {
		l.known = n
	}
	return n, nil
}

// changing forgets what is remembered, before the directory changes.
func (l *SourceLog) changing() {
	l.known, l.newest = nil, connector.LogEntry{ID: NoBatch}
}

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

// Put writes entry id, durably unless Hold was called. It replaces one that no offsets
// name, and refuses (ErrExists) one that is named. After a crash there is the old entry or
// the new.
func (l *SourceLog) Put(id int64, entry []byte) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	if id < 0 {
		return fmt.Errorf("bug: source entry number %d", id)
	}
	if id <= l.named {
		return fmt.Errorf("%s, which a batch has named: %w", l.Path(id), ErrExists)
	}
	if l.held.on {
		l.held.put(id, entry)
		return nil
	}
	return l.write(id, entry)
}

func (l *SourceLog) write(id int64, entry []byte) error {
	names, err := l.names()
	if err != nil {
		return err
	}
	l.changing()
	if err := writeFile(l.fs, l.Path(id), sourceKind, strconv.FormatInt(id, 10), entry); err != nil {
		return err
	}
	if at, there := slices.BinarySearch(names.singles, id); !there {
		names.singles = slices.Insert(names.singles, at, id)
	}
	if !l.writer {
		return nil
	}
	l.known = names
	if len(entry) <= rememberedEntry {
		l.newest = connector.LogEntry{ID: id, Data: slices.Clone(entry)}
	}
	return nil
}

// Latest is the newest entry's number, -1 if there is none.
func (l *SourceLog) Latest() (int64, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.latest()
}

func (l *SourceLog) latest() (int64, error) {
	names, err := l.names()
	if err != nil {
		return -1, err
	}
	newest := max(names.folded(), l.held.latest())
	if n := len(names.singles); n > 0 {
		newest = max(newest, names.singles[n-1])
	}
	return newest, nil
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
	l.mu.Lock()
	names, err := l.names()
	var singles []int64
	var live []segment
	folded := int64(-1)
	newest, held := l.newest, heldEntries{entries: slices.Clone(l.held.entries)}
	if err == nil {
		singles, live, folded = held.with(names.singles), slices.Clone(names.live), names.folded()
	}
	l.mu.Unlock()
	if err != nil {
		return err
	}
	more, err := l.segs.eachOf(live, after, upto, visit)
	if err != nil || !more {
		return err
	}
	for _, id := range singles {
		if id <= max(after, folded) || id > upto {
			continue
		}
		data, ok := held.get(id)
		if !ok && id == newest.ID {
			data, ok = slices.Clone(newest.Data), true
		}
		if !ok {
			if data, err = l.get(id); err != nil {
				return err
			}
		}
		if !visit(connector.LogEntry{ID: id, Data: data}) {
			return nil
		}
	}
	return nil
}

// Withdraw removes the entries after a number, the newest first, durably: the batch
// that named them was withdrawn, or none did. Entries that are joined already
// belong to visible batches and are refused.
func (l *SourceLog) Withdraw(after int64) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	names, err := l.names()
	if err != nil {
		return err
	}
	if names.folded() > after {
		return fmt.Errorf("bug: entries of %s up to %d belong to visible batches and cannot be withdrawn", l.dir, names.folded())
	}
	l.named = min(l.named, after)
	l.held.dropAfter(after)
	return l.removeFrom(after + 1)
}

// removeFrom removes single entries, the newest first and each durably before the
// next: a crash leaves no gap.
func (l *SourceLog) removeFrom(first int64) error {
	l.changing()
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
	names, err := l.names()
	if err != nil {
		return err
	}
	ids, folded := names.singles, names.folded()
	if len(ids) > 0 && ids[0] <= folded {
		l.changing()
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
	l.changing()
	return l.fold(ids[:n])
}

// foldBytes is about how large a segment becomes that is made of single entries: one may
// name a million files.
const foldBytes = 16 << 20

// fold joins single entries into segments of about foldBytes.
func (l *SourceLog) fold(ids []int64) error {
	for len(ids) > 0 {
		n, err := l.foldSome(ids)
		if err != nil {
			return err
		}
		ids = ids[n:]
	}
	return l.segs.merge()
}

// foldSome joins the first n of ids. The segment is durable before they go.
func (l *SourceLog) foldSome(ids []int64) (n int, err error) {
	var entries []connector.LogEntry
	for bytes := 0; n < len(ids) && bytes < foldBytes; n++ {
		data, err := l.get(ids[n])
		if err != nil {
			return 0, err
		}
		entries = append(entries, connector.LogEntry{ID: ids[n], Data: data})
		bytes += len(data)
	}
	if err := l.segs.write(segment{from: ids[0], to: ids[n-1]}, entries); err != nil {
		return 0, err
	}
	for _, id := range ids[:n] {
		if err := l.fs.Remove(l.Path(id)); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return 0, err
		}
	}
	return n, nil
}
