package checkpoint

import (
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"path"
	"strconv"
	"strings"
	"time"

	"github.com/tidemill/tidemill/internal/vfs"
)

// Metadata is the file metadata: what the checkpoint is.
type Metadata struct {
	// ID is the query id, a UUID. Outputs are bound to it.
	ID            string `json:"id"`
	FormatVersion int    `json:"format_version"`
	// Engine is the version of the engine that made the checkpoint.
	Engine string `json:"engine"`
	// Checksum is "xxh3:" and the HashBytes of the file without it.
	Checksum string `json:"checksum"`
}

// Options are choices of a Dir. The zero value is useful.
type Options struct {
	// Retain is how many of the newest batches keep their own files in offsets and
	// commits, 0 for 100; less than 2 is taken as 2.
	Retain int
	// FoldEvery is how many batches are folded into history at a time, 0 for 50.
	FoldEvery int
	// ID is the query id of a new checkpoint; empty for a random one.
	ID string
	// Engine is the version of the engine, for a new checkpoint.
	Engine string
}

func (o Options) withDefaults() Options {
	if o.Retain == 0 {
		o.Retain = 100
	}
	o.Retain = max(o.Retain, 2)
	if o.FoldEvery <= 0 {
		o.FoldEvery = 50
	}
	if o.Engine == "" {
		o.Engine = "devel"
	}
	return o
}

// Dir is a checkpoint that this process has locked. Its methods are used by one
// goroutine, those that only read by any.
type Dir struct {
	fs   vfs.FS
	path string
	opts Options
	lock io.Closer
	meta Metadata
	// failed is set while there is a last_error.
	failed bool
	// made is set if there was no checkpoint before Open.
	made bool
	// newest is the newest batch that Commit was told of; before nextFold there is
	// nothing to fold into the history.
	newest, nextFold int64
	// preparing is the entry that Prepare wrote last, recent those of later commits that
	// are not in the history yet: they need not be read to be folded.
	preparing *CommitEntry
	recent    map[int64]*CommitEntry

	offsets  *Log[OffsetEntry]
	prepared *Log[CommitEntry]
	commits  *Log[CommitEntry]
	history  *History
}

// The names in a checkpoint.
const (
	metadataName  = "metadata"
	planName      = "plan.json"
	lockName      = "lock"
	offsetsName   = "offsets"
	preparedName  = "prepared"
	commitsName   = "commits"
	historyName   = "history"
	sourcesName   = "sources"
	stateName     = "state"
	lastErrorName = "last_error"
)

// logDirs always exist in a whole checkpoint.
var logDirs = []string{offsetsName, preparedName, commitsName, historyName}

// Open locks the checkpoint and opens it; a directory that is not there or empty
// becomes a new one. A directory with something else in it is refused. Left-over
// temporary files are removed. Errors: ErrLocked, ErrCorrupt, ErrIncompatible, or
// those of the filesystem.
//
// A crash leaves no checkpoint, or one that Open makes whole: metadata is written
// last.
func Open(fsys vfs.FS, dir string, opts Options) (*Dir, error) {
	d := newDir(fsys, path.Clean(dir), opts.withDefaults())
	if err := vfs.MkdirAll(fsys, d.path); err != nil {
		return nil, err
	}
	if err := d.checkForeign(); err != nil {
		return nil, err
	}
	if err := d.takeLock(); err != nil {
		return nil, err
	}
	if err := d.open(); err != nil {
		_ = d.lock.Close()
		return nil, err
	}
	return d, nil
}

// takeLock takes the lock, or gives a LockedError. Whoever asks whether a query runs
// (View.Locked) holds it for a moment, so it is tried a few times.
func (d *Dir) takeLock() (err error) {
	const tries, pause = 4, 25 * time.Millisecond
	for try := 1; ; try++ {
		d.lock, err = d.fs.Lock(path.Join(d.path, lockName))
		switch {
		case err == nil:
			return nil
		case !errors.Is(err, vfs.ErrLocked):
			return err
		case try == tries:
			return &LockedError{Path: d.path, Err: err}
		}
		time.Sleep(pause)
	}
}

// newDir knows the layout and touches nothing.
func newDir(fsys vfs.FS, dir string, opts Options) *Dir {
	d := &Dir{fs: fsys, path: dir, opts: opts, recent: map[int64]*CommitEntry{}}
	d.offsets = newLog[OffsetEntry](fsys, path.Join(dir, offsetsName), "offsets")
	d.prepared = newLog[CommitEntry](fsys, path.Join(dir, preparedName), "commit")
	d.commits = newLog[CommitEntry](fsys, path.Join(dir, commitsName), "commit")
	d.history = newHistory(fsys, path.Join(dir, historyName))
	return d
}

func (d *Dir) open() error {
	meta, err := readMetadata(d.fs, d.path)
	if err == nil {
		d.meta = meta
		return d.tidy()
	}
	switch {
	case errors.Is(err, fs.ErrNotExist):
		fresh, newErr := d.isNew()
		switch {
		case newErr != nil:
			return newErr
		case fresh:
			meta, err, d.made = d.newMetadata(d.opts.ID), nil, true
		default:
			meta, err = d.rescueMetadata(corrupt(d.file(metadataName), NoBatch, "the file is missing", nil))
		}
	case errors.Is(err, ErrCorrupt):
		meta, err = d.rescueMetadata(err)
	}
	if err != nil {
		return err
	}
	d.meta = meta
	if err := d.tidy(); err != nil {
		return err
	}
	return vfs.WriteAtomic(d.fs, d.file(metadataName), encodeMetadata(meta))
}

// checkForeign refuses a directory that is no checkpoint before anything is put into it.
func (d *Dir) checkForeign() error {
	for _, name := range []string{lockName, metadataName} {
		if _, err := d.fs.Stat(d.file(name)); !errors.Is(err, fs.ErrNotExist) {
			return err
		}
	}
	_, err := d.isNew()
	return err
}

// isNew reports whether there is nothing here but what a crashed first Open may
// have left. It refuses a directory that is no checkpoint.
func (d *Dir) isNew() (bool, error) {
	entries, err := d.fs.ReadDir(d.path)
	if err != nil {
		return false, err
	}
	known := map[string]bool{lockName: true, planName: true, lastErrorName: true, sourcesName: true, stateName: true}
	for _, name := range logDirs {
		known[name] = true
	}
	fresh := true
	for _, e := range entries {
		if !known[e.Name()] && !isTemp(e.Name()) {
			return false, incompatible(d.path, fmt.Sprintf(
				"the directory holds %q and is not a checkpoint; give an empty or new directory", e.Name()))
		}
		if e.IsDir() {
			inside, err := d.fs.ReadDir(d.file(e.Name()))
			if err != nil {
				return false, err
			}
			for _, f := range inside {
				fresh = fresh && isTemp(f.Name())
			}
		}
	}
	return fresh, nil
}

func (d *Dir) newMetadata(id string) Metadata {
	if id == "" {
		id = newID()
	}
	return Metadata{ID: id, FormatVersion: FormatVersion, Engine: d.opts.Engine}
}

// newID makes a random UUID (version 4).
func newID() string {
	var b [16]byte
	_, _ = rand.Read(b[:]) // never fails
	b[6] = b[6]&0x0f | 0x40
	b[8] = b[8]&0x3f | 0x80
	return fmt.Sprintf("%x-%x-%x-%x-%x", b[:4], b[4:6], b[6:8], b[8:10], b[10:])
}

// rescueMetadata derives lost metadata from the query id in the newest readable
// log entry; cause is returned if there is none.
func (d *Dir) rescueMetadata(cause error) (Metadata, error) {
	for _, find := range []func() (int64, string, error){
		func() (int64, string, error) { n, e, err := d.offsets.Latest(); return n, e.Query, err },
		func() (int64, string, error) { n, e, err := d.commits.Latest(); return n, e.Offsets.Query, err },
		func() (int64, string, error) { n, e, err := d.prepared.Latest(); return n, e.Offsets.Query, err },
	} {
		if n, id, err := find(); err == nil && n != NoBatch && id != "" {
			return d.newMetadata(id), nil
		}
	}
	return Metadata{}, cause
}

// tidy looks what is there, makes the directories and removes temporary files.
func (d *Dir) tidy() error {
	_, err := d.fs.Stat(d.file(lastErrorName))
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	d.failed = err == nil
	dirs := []string{d.path}
	for _, name := range logDirs {
		dirs = append(dirs, d.file(name))
	}
	if err := vfs.MkdirAll(d.fs, dirs...); err != nil {
		return err
	}
	for _, name := range []string{sourcesName, stateName} {
		entries, err := d.fs.ReadDir(d.file(name))
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			return err
		}
		for _, e := range entries {
			if e.IsDir() {
				dirs = append(dirs, path.Join(d.file(name), e.Name()))
			}
		}
	}
	for _, dir := range dirs {
		if err := removeTemp(d.fs, dir); err != nil {
			return err
		}
	}
	return nil
}

// isTemp is wider than vfs.IsTemp: nothing that ends in .tmp is ours to keep.
func isTemp(name string) bool { return strings.HasSuffix(name, ".tmp") }

func removeTemp(fsys vfs.FS, dir string) error {
	entries, err := fsys.ReadDir(dir)
	if err != nil {
		return err
	}
	for _, e := range entries {
		if e.IsDir() || !isTemp(e.Name()) {
			continue
		}
		if err := fsys.Remove(path.Join(dir, e.Name())); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return err
		}
	}
	return nil
}

func encodeMetadata(m Metadata) []byte { return seal(m, metadataChecksum) }

func metadataChecksum(m *Metadata) *string { return &m.Checksum }

func readMetadata(fsys vfs.FS, dir string) (Metadata, error) {
	name := path.Join(dir, metadataName)
	data, err := vfs.ReadFile(fsys, name)
	if err != nil {
		return Metadata{}, err
	}
	return decodeMetadata(name, data)
}

func decodeMetadata(name string, data []byte) (Metadata, error) {
	m, err := unseal(name, data, metadataChecksum)
	switch {
	case err != nil:
		return Metadata{}, err
	case m.FormatVersion > FormatVersion:
		return Metadata{}, incompatible(name, (&versionError{m.FormatVersion}).Error())
	case m.FormatVersion < 1 || m.ID == "":
		return Metadata{}, corrupt(name, NoBatch, "there is no format version or no query id", nil)
	}
	return m, nil
}

// Close releases the lock. Nothing is pending: every method made durable what it
// did.
func (d *Dir) Close() error { return d.lock.Close() }

// Discard closes a checkpoint whose query was refused before anything ran; one that
// Open made is removed. The files go while the lock is held, metadata first: what a
// crash leaves of them is no checkpoint.
func (d *Dir) Discard() error {
	if !d.made {
		return d.Close()
	}
	err := d.fs.Remove(d.file(metadataName))
	for _, name := range append([]string{planName, sourcesName, stateName, lockName}, logDirs...) {
		if err == nil {
			err = vfs.RemoveAll(d.fs, d.file(name))
		}
	}
	if err == nil {
		_ = d.fs.Remove(d.path) // not empty if another start came in between: then it is its
	}
	return errors.Join(err, d.Close())
}

// Path is the directory.
func (d *Dir) Path() string { return d.path }

// FS is the filesystem the directory is on.
func (d *Dir) FS() vfs.FS { return d.fs }

// Metadata says what the checkpoint is.
func (d *Dir) Metadata() Metadata { return d.meta }

// Offsets is the log of intents.
func (d *Dir) Offsets() *Log[OffsetEntry] { return d.offsets }

// Prepared is the log of batches that may not be visible yet. Its entries come from
// Prepare.
func (d *Dir) Prepared() *Log[CommitEntry] { return d.prepared }

// Commits is the log of visible batches. Its entries come from Commit.
func (d *Dir) Commits() *Log[CommitEntry] { return d.commits }

// History has the batches that are no longer in Offsets and Commits.
func (d *Dir) History() *History { return d.history }

func (d *Dir) file(name string) string { return path.Join(d.path, name) }

// Prepare writes prepared/N, durably: the end of step 3. The entry must not be changed
// any more.
func (d *Dir) Prepare(c *CommitEntry) error {
	d.preparing = nil
	if err := d.prepared.Put(c.Batch, *c); err != nil {
		return err
	}
	d.preparing = c
	return nil
}

// rememberedFiles is how many input files an entry may have to be kept in memory.
const rememberedFiles = 256

// Commit renames prepared/N to commits/N, durably: step 5. After a crash the entry
// is in one of the two.
func (d *Dir) Commit(batchID int64) error {
	d.newest = batchID
	if err := d.fs.Rename(d.prepared.Path(batchID), d.commits.Path(batchID)); err != nil {
		return err
	}
	if err := vfs.SyncDir(d.fs, path.Dir(d.commits.Path(batchID))); err != nil {
		return err
	}
	if c := d.preparing; c != nil && c.Batch == batchID && c.InputFiles() <= rememberedFiles {
		d.recent[batchID] = c
	}
	d.preparing = nil
	if !d.failed {
		return nil
	}
	if err := d.fs.Remove(d.file(lastErrorName)); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	d.failed = false
	return nil
}

// committed is commits/N, from memory if this process wrote it.
func (d *Dir) committed(batchID int64) (*CommitEntry, error) {
	if c := d.recent[batchID]; c != nil {
		return c, nil
	}
	c, err := d.commits.Get(batchID)
	return &c, err
}

// WithdrawBatch forgets an invisible batch: prepared/N, then offsets/N, so that it
// can be planned again. After a crash both may be there, or offsets alone: Recover
// then says to run it.
func (d *Dir) WithdrawBatch(batchID int64) error {
	if _, err := d.fs.Stat(d.commits.Path(batchID)); err == nil {
		return fmt.Errorf("bug: batch %d is committed, it cannot be withdrawn", batchID)
	}
	if err := d.prepared.Withdraw(batchID); err != nil {
		return err
	}
	return d.offsets.Withdraw(batchID)
}

// SourceLog opens the durable memory of source i, in sources/i. named is the
// newest entry that the offsets name (OffsetEntry.NamedEntry of the newest entry
// that stands).
func (d *Dir) SourceLog(i int, named int64) (*SourceLog, error) {
	dir := path.Join(d.file(sourcesName), strconv.Itoa(i))
	if err := vfs.MkdirAll(d.fs, dir); err != nil {
		return nil, err
	}
	return openSourceLog(d.fs, dir, named)
}

// LastError is the error that ended a run.
type LastError struct {
	Time    int64  `json:"time_us"`
	Batch   int64  `json:"batch"` // NoBatch if it was outside one
	Message string `json:"message"`
}

// SetLastError remembers why a run ended, for status. The next Commit forgets it.
func (d *Dir) SetLastError(e LastError) error {
	e.Message = strings.ToValidUTF8(e.Message, "\uFFFD")
	d.failed = true
	return vfs.WriteAtomic(d.fs, d.file(lastErrorName), mustPretty(e))
}
