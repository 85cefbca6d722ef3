package file

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"path"
	"strconv"
	"time"

	"github.com/apache/arrow-go/v18/arrow"

	"github.com/tidemill/tidemill/logical/connector"
)

// Source delivers each file of a path once, in the order of modification time and
// path. What was delivered is remembered, exactly and for ever, by its log; seen is
// the log's image in memory.
type Source struct {
	o   *opened
	log connector.BatchLog

	seen     *seenSet
	contents map[string]bool // hashes of what was read; only with same_content = 'skip'
	last     int64           // newest entry of the log, -1: none
	first    int64           // entry 0 if it only says what to begin after, else -1

	pending queue    // what the next batches are made of
	young   []uint32 // records of files that are not yet min_file_age old
	// again is the listing in which a file was first met that is looked for again after a
	// withdrawal.
	again   map[string]int64
	listing int64 // number of the newest listing
	full    bool  // the next listing looks at every file
	sweep   sweep
	handed  *handover // until the first listing
	// followed is how far the manifest was read, where the path is an output directory.
	followed *follower
	newest   int64 // newest modification time met
	tooOld   int64 // files passed over by max_file_age

	reading map[int64]*entryHashes // by entry, for EachHashed
	planned connector.LogEntry     // the newest entry, while its batch is read; Data may be nil
	cleaned int64                  // entries up to here were cleaned; below -1: not known
}

// sweep looks again at files read long ago, a part at each trigger.
type sweep struct {
	next time.Time // when the next one begins
	at   int       // record to look at next; -1: none is going on
}

var (
	_ connector.Source    = (*Source)(nil)
	_ connector.FileSet   = (*Source)(nil)
	_ connector.Describer = (*Source)(nil)
	_ connector.Limiter   = (*Source)(nil)
	_ connector.Hasher    = (*Source)(nil)
	_ connector.Notifier  = (*Source)(nil)
	_ connector.Measured  = (*Source)(nil)
)

// OpenSource opens a stream over files. A *connector.NoFilesError says that its
// columns cannot be known yet.
func OpenSource(ctx context.Context, formats Formats, env connector.Env) (*Source, error) {
	o, err := open(ctx, formats, env, false)
	if err != nil {
		return nil, err
	}
	if err := o.checkStream(); err != nil {
		return nil, err
	}
	if err := o.checkClean(); err != nil {
		return nil, err
	}
	o.lister.dirs, o.lister.patient = map[string]*dirState{}, true
	s := &Source{
		o: o, log: env.Log, seen: newSeenSet(), last: -1, first: -1,
		full: true, reading: map[int64]*entryHashes{}, cleaned: -2,
		sweep: sweep{next: env.Clock().Add(o.options.RescanEvery), at: -1},
	}
	if s.handed = o.handed; s.handed == nil {
		s.handed, _ = env.Listed.(*handover)
	}
	if o.options.Same == SameSkip {
		s.contents = map[string]bool{}
	}
	return s, s.load()
}

// checkClean refuses to clean what is not the user's input, and an archive that would
// be read as input.
func (o *opened) checkClean() error {
	if o.options.Clean == CleanOff {
		return nil
	}
	if info, err := o.env.FS.Stat(path.Join(o.options.Path, controlDir)); err == nil && info.IsDir() {
		return &connector.OptionError{Key: "clean_source", Reason: o.options.Path + " is the output of a query; its files are not to be cleaned away"}
	}
	return nil
}

// load reads the whole log. Files that wait go on waiting.
func (s *Source) load() error {
	s.seen.forgetLogged()
	s.last, s.first = -1, -1
	if s.contents != nil {
		clear(s.contents)
	}
	if s.log == nil {
		return errors.New("bug: a source without a log")
	}
	latest, err := s.log.Latest()
	if err != nil || latest < 0 {
		return err
	}
	return s.rawEntries(-1, latest, func(id int64, data []byte) error {
		pinned, lines, err := cutLogHead(data)
		if err == nil {
			err = eachLogLine(lines, func(f loggedFile, _, _ int) error {
				s.remember(id, f)
				return nil
			})
		}
		if err != nil {
			return s.damaged(id, err)
		}
		s.noteEntry(id, pinned)
		if len(pinned) > 0 {
			return s.o.layout.pin(pinned, s.o.pinned)
		}
		return nil
	})
}

// eachFile visits the files of the log entries of (after, upto], with their full paths.
func (s *Source) eachFile(after, upto int64, visit func(id int64, f loggedFile) error) error {
	root, err := s.o.lister.find()
	if err != nil {
		return err
	}
	return s.rawEntries(after, upto, func(id int64, data []byte) error {
		_, lines, err := cutLogHead(data)
		if err == nil {
			err = eachLogLine(lines, func(f loggedFile, _, _ int) error {
				f.foundFile = f.below(root.dir)
				return visit(id, f)
			})
		}
		if errors.Is(err, errLogEntry) {
			return s.damaged(id, err)
		}
		return err
	})
}

// rawEntries visits the log entries of (after, upto] as they were written.
func (s *Source) rawEntries(after, upto int64, visit func(id int64, data []byte) error) error {
	next := after + 1
	if next == upto && next == s.planned.ID && s.planned.Data != nil {
		return visit(next, s.planned.Data)
	}
	for raw, err := range s.log.Range(after, upto) {
		if err != nil {
			return err
		}
		if raw.ID != next {
			return s.missing(next)
		}
		next++
		if err := visit(raw.ID, raw.Data); err != nil {
			return err
		}
	}
	if next <= upto {
		return s.missing(next)
	}
	return nil
}

func (s *Source) damaged(id int64, err error) error {
	return &connector.RefusedError{Path: s.o.env.Checkpoint, Reason: fmt.Sprintf("entry %d", id), Err: err,
		Remedy: "restore the checkpoint from a copy, or start over with a new one and a new output"}
}

func (s *Source) missing(id int64) error {
	where := s.o.env.Checkpoint
	if l, ok := s.log.(interface{ Path(id int64) string }); ok {
		where = l.Path(id)
	}
	return &connector.RefusedError{Path: where, Reason: fmt.Sprintf("%s: entry %d of the record of files read is missing", s.Description(), id),
		Remedy: "restore the checkpoint from a copy, or start over with a new one and a new output"}
}

// remember notes that an entry names the file.
func (s *Source) remember(id int64, f loggedFile) {
	s.seen.put(f, id)
	s.newest = max(s.newest, f.ModTime)
	if s.contents != nil && f.hash != "" {
		s.contents[f.hash] = true
	}
}

// noteEntry notes that there is an entry.
func (s *Source) noteEntry(id int64, pinned map[string]string) {
	if pinned[pinStarting] != "" {
		s.first = id
	}
	s.last = max(s.last, id)
}

// Schema implements connector.Source.
func (s *Source) Schema() *arrow.Schema { return s.o.layout.schema }

// Description implements connector.Describer.
func (s *Source) Description() string { return "FileSource[" + s.o.options.Path + "]" }

// Limit implements connector.Limiter.
func (s *Source) Limit() connector.Limit {
	return connector.Limit{Files: s.o.options.MaxFiles, Bytes: s.o.options.MaxBytes}
}

// Metrics implements connector.Measured: how many files wait to be read and, with
// max_file_age, how many it has passed over since the start.
func (s *Source) Metrics() map[string]string {
	m := map[string]string{"numFilesOutstanding": strconv.Itoa(len(s.pending.files))}
	if s.o.options.MaxFileAge > 0 {
		m["numFilesTooOld"] = strconv.FormatInt(s.tooOld, 10)
	}
	return m
}

// Pinned are the choices that keep the columns as they are, for the checkpoint.
func (s *Source) Pinned() map[string]string { return maps.Clone(s.o.pinned) }

// Close implements connector.Source.
func (s *Source) Close() error { return s.o.lister.watch.close() }

// Units implements connector.Source.
func (s *Source) Units(ctx context.Context, start, end connector.Offset, req connector.ScanRequest) ([]connector.Unit, error) {
	from, to, err := s.span(start, end)
	if err != nil {
		return nil, err
	}
	root, err := s.o.lister.find()
	if err != nil {
		return nil, err
	}
	var units []connector.Unit
	err = s.rawEntries(from, to, func(id int64, data []byte) error {
		more, err := s.entryUnits(ctx, id, data, root.dir, req)
		units = append(units, more...)
		if errors.Is(err, errLogEntry) {
			return s.damaged(id, err)
		}
		return err
	})
	return units, err
}

// entryUnits lists the work of one entry of the log.
func (s *Source) entryUnits(ctx context.Context, id int64, data []byte, root string, req connector.ScanRequest) ([]connector.Unit, error) {
	_, lines, err := cutLogHead(data)
	if err != nil {
		return nil, err
	}
	count := countLogged(lines)
	var hashes *entryHashes // of rows that are looked at once more nothing is noted
	if !req.Again {
		hashes = newEntryHashes(count)
		s.reading[id] = hashes
	}
	if count >= manyFiles {
		s.planned.Data = nil // the units have it, in less room
		return s.o.layout.loggedUnits(ctx, root, lines, count, req, hashes)
	}
	files := make([]foundFile, 0, count)
	err = eachLogLine(lines, func(f loggedFile, _, _ int) error {
		if !f.skipped {
			files = append(files, f.below(root))
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	return s.o.layout.units(ctx, files, req, hashes)
}

// span reads two offsets as a range of entries.
func (s *Source) span(start, end connector.Offset) (from, to int64, err error) {
	a, err := parseOffset(start)
	if err != nil {
		return 0, 0, err
	}
	b, err := parseOffset(end)
	if err != nil {
		return 0, 0, err
	}
	if b.Batch > s.last {
		return 0, 0, s.missing(b.Batch)
	}
	return a.Batch, b.Batch, nil
}

// EachHashed implements connector.Hasher.
func (s *Source) EachHashed(_ context.Context, start, end connector.Offset, visit func(f connector.FileHash) error) error {
	from, to, err := s.span(start, end)
	if err != nil {
		return err
	}
	for id := from + 1; id <= to; id++ {
		if err := s.entryHashed(id, visit); err != nil {
			return err
		}
	}
	for id := from + 1; id <= to; id++ {
		delete(s.reading, id)
	}
	s.planned.Data = nil
	return nil
}

// entryHashed is EachHashed of one entry.
func (s *Source) entryHashed(id int64, visit func(f connector.FileHash) error) error {
	hashes := s.reading[id]
	if hashes != nil && hashes.runs != nil {
		return hashes.eachOf(visit)
	}
	i := 0 // the file's number in its entry
	return s.eachRead(id-1, id, func(_ int64, f loggedFile) error {
		i++
		return visit(connector.FileHash{FileIdentity: f.FileIdentity, Hash: hashes.sum(i - 1)})
	})
}

// eachRead is eachFile without those that are skipped.
func (s *Source) eachRead(after, upto int64, visit func(id int64, f loggedFile) error) error {
	return s.eachFile(after, upto, func(id int64, f loggedFile) error {
		if f.skipped {
			return nil
		}
		return visit(id, f)
	})
}

// Files implements connector.FileSet.
func (s *Source) Files(_ context.Context, start, end connector.Offset) ([]connector.FileIdentity, error) {
	from, to, err := s.span(start, end)
	if err != nil {
		return nil, err
	}
	var out []connector.FileIdentity
	err = s.eachRead(from, to, func(_ int64, f loggedFile) error {
		out = append(out, f.FileIdentity)
		return nil
	})
	return out, err
}

// Changed implements connector.FileSet.
func (s *Source) Changed(ctx context.Context, logged []connector.FileIdentity) ([]connector.FileIdentity, error) {
	return changedFiles(ctx, s.o.env, logged, readsLines(s.o.layout.format))
}

// Withdraw implements connector.Source.
func (s *Source) Withdraw(_ context.Context, start, _ connector.Offset) error {
	from, err := parseOffset(start)
	if err != nil {
		return err
	}
	return s.withdraw(max(from.Batch, s.first))
}

// withdraw forgets every entry after id. Their files are looked for again; what waited
// goes on waiting.
func (s *Source) withdraw(id int64) error {
	if id >= s.last {
		return nil
	}
	if err := s.meetAgain(id); err != nil {
		return err
	}
	if err := s.log.Withdraw(id); err != nil {
		return err
	}
	s.full, s.planned.Data = true, nil
	for withdrawn := range s.reading {
		if withdrawn > id {
			delete(s.reading, withdrawn)
		}
	}
	// What an entry replaced is known to the log alone, so it is read anew.
	return s.load()
}

// meetAgain remembers in which listing the files were met that a withdrawal makes to be
// looked for again: what was there at the start of an available-now run stays part of it.
func (s *Source) meetAgain(id int64) error {
	if s.again == nil {
		s.again = map[string]int64{}
	}
	return s.eachFile(id, s.last, func(_ int64, f loggedFile) error {
		s.again[f.rel] = 0
		if rec := s.seen.get(splitPath(f.rel)); rec >= 0 && s.seen.rec(rec).state == stateQueued {
			s.seen.rec(rec).number = 0 // it waits to be read once more
		}
		return nil
	})
}

// Commit implements connector.Source: it cleans the files of (.., end].
func (s *Source) Commit(ctx context.Context, end connector.Offset) error {
	to, err := parseOffset(end)
	if err != nil || s.o.options.Clean == CleanOff {
		return err
	}
	// A process that ended between commit and cleaning left at most its last batches.
	const lookBack = 8
	from := s.cleaned
	if from < -1 {
		from = max(to.Batch-lookBack, -1)
	}
	upto := min(to.Batch, s.last)
	if upto <= from {
		return nil
	}
	err = s.eachFile(from, upto, func(_ int64, f loggedFile) error {
		if err := ctx.Err(); err != nil {
			return err
		}
		if err := s.clean(f); err != nil {
			// The file stays remembered, so nothing is read twice.
			s.o.lister.warn(f.Path, "%s cannot be cleaned away: %v", f.Path, err)
		}
		return nil
	})
	if err == nil {
		s.cleaned = upto
	}
	return err
}

// clean archives or deletes a file that is still the one that was read.
func (s *Source) clean(f loggedFile) error {
	fsys := s.o.env.FS
	changed, _, err := differs(fsys, f.FileIdentity)
	if err != nil || changed {
		return err
	}
	if s.o.options.Clean == CleanDelete {
		return fsys.Remove(f.Path)
	}
	to, err := s.archiveName(f.rel)
	if err != nil {
		return err
	}
	if err := fsys.MkdirAll(path.Dir(to)); err != nil {
		return err
	}
	return fsys.Rename(f.Path, to)
}

// archiveName is the file's place in the archive; a name that is taken there gets a
// number: nothing archived is ever overwritten.
func (s *Source) archiveName(rel string) (string, error) {
	name := path.Join(s.o.options.ArchiveDir, rel)
	ext := path.Ext(name)
	for n := 0; ; n++ {
		try := name
		if n > 0 {
			try = fmt.Sprintf("%s.%d%s", name[:len(name)-len(ext)], n, ext)
		}
		if _, err := s.o.env.FS.Stat(try); err != nil {
			if isAbsent(err) {
				return try, nil
			}
			return "", err
		}
	}
}

// order compares files in the order they are read in.
func (s *Source) order(a, b queuedFile) int {
	if a.mtime != b.mtime {
		if (a.mtime < b.mtime) != s.o.options.LatestFirst {
			return -1
		}
		return 1
	}
	return s.seen.comparePaths(a.rec, b.rec)
}
