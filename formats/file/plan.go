package file

import (
	"context"
	"errors"
	"io"
	"iter"
	"slices"
	"time"

	"github.com/tidemill/tidemill/formats/codec"
	"github.com/tidemill/tidemill/logical/connector"
)

// sweepFiles is how many files of a sweep are looked at per trigger.
const sweepFiles = 20000

// Target implements connector.Source.
func (s *Source) Target(ctx context.Context) (connector.Offset, error) {
	s.o.lister.patient = false // who asks for all that is there is not to be given a part of it
	if err := s.refresh(ctx); err != nil {
		return "", err
	}
	p := position{Batch: s.last}
	if len(s.pending.files) > 0 {
		p.Listing = s.listing
	}
	return p.offset(), nil
}

// LatestOffset implements connector.Source.
func (s *Source) LatestOffset(ctx context.Context, start connector.Offset, limit connector.Limit) (connector.Offset, error) {
	from, err := parseOffset(start)
	if err != nil {
		return "", err
	}
	if from.Batch > s.last {
		return "", s.missing(from.Batch)
	}
	adopted, err := s.adopt(from.Batch)
	if err != nil {
		return "", err
	}
	if err := s.refresh(ctx); err != nil {
		return "", err
	}
	end := start
	if adopted.files > 0 {
		end = position{Batch: s.last}.offset()
	}
	batch, err := s.choose(ctx, limit, adopted)
	if err != nil || len(batch) == 0 {
		return end, err
	}
	if err := s.putBatch(ctx, batch); err != nil {
		return "", err
	}
	return position{Batch: s.last}.offset(), nil
}

// taken is how much of a batch is decided.
type taken struct{ files, bytes int64 }

// adopt takes over the entries that no offset names: a crash came between the log and
// the offset. They are the first part of the batch, unless a file of them is not what
// was logged any more: nothing depends on them yet, so they are withdrawn.
func (s *Source) adopt(from int64) (taken, error) {
	var t taken
	from = max(from, s.first)
	if from >= s.last {
		return t, nil
	}
	stale := false
	err := s.eachFile(from, s.last, func(_ int64, f loggedFile) error {
		changed, _, err := differs(s.o.env.FS, f.FileIdentity)
		if err != nil {
			return err
		}
		stale = stale || changed
		t.files++
		t.bytes += f.Size
		return nil
	})
	if err != nil || !stale {
		return t, err
	}
	return taken{}, s.withdraw(from)
}

// refresh brings pending up to date with the disk.
func (s *Source) refresh(ctx context.Context) error {
	s.listing++
	full := s.full
	begin := s.last < 0 && s.o.options.Starting == StartNew
	v := visitor{found: s.met}
	handed, err := s.takeOver()
	if err != nil {
		return err
	}
	if full && !handed {
		s.o.lister.restart()
	} else {
		v.known = s.known
	}
	isOutput := false
	err = s.grownUp()
	if err == nil {
		isOutput, err = s.follow(v, full)
	}
	if err == nil && !isOutput {
		err = s.o.lister.list(ctx, v)
	}
	if err != nil {
		if s.o.lister.waits(s.o.options.Path, err) {
			return nil
		}
		return err
	}
	s.full = false
	if begin {
		return s.skipPresent()
	}
	if full {
		return nil
	}
	return s.sweepSome(ctx)
}

// known says that a name need not be looked at between sweeps.
func (s *Source) known(dir, name string) bool {
	rec := s.seen.get(dir, name)
	if rec < 0 {
		return false
	}
	r := s.seen.rec(rec)
	return r.state == stateQueued || !s.isFree(r)
}

// isFree says that a path was cleaned, or should have been, and may hold a new file.
// Cleaning trails by one entry.
func (s *Source) isFree(r *seenRecord) bool {
	return s.o.options.Clean != CleanOff && r.number < s.last
}

// met is told of a file of a listing.
func (s *Source) met(f foundFile) error {
	rec := s.seen.get(splitPath(f.rel))
	if rec < 0 {
		s.enqueue(f)
		return nil
	}
	r := s.seen.rec(rec)
	if r.state == stateQueued || r.same(f) {
		return nil
	}
	return s.rewritten(f, r)
}

// rewritten applies changed_files to a path whose file is not the one that was read.
func (s *Source) rewritten(f foundFile, r *seenRecord) error {
	if s.isFree(r) {
		s.enqueue(f)
		return nil
	}
	switch s.o.options.Changed {
	case ChangedError:
		was := f.FileIdentity
		was.Size, was.ModTime = r.size, r.mtime
		return &connector.FileChangedError{Path: f.Path, Was: was, Read: !r.skipped, Skipped: r.skipped}
	case ChangedReread:
		s.enqueue(f)
	}
	return nil
}

// enqueue makes a file wait for its batch, or for its age.
func (s *Source) enqueue(f foundFile) {
	listing, again := s.again[f.rel]
	if !again {
		listing = s.listing
	}
	rec := s.seen.queue(f, listing)
	s.newest = max(s.newest, f.ModTime)
	if s.isYoung(f.ModTime) {
		s.young = append(s.young, rec)
		return
	}
	delete(s.again, f.rel)
	s.pending.add(queuedFile{f.ModTime, rec})
}

func (s *Source) isYoung(mtime int64) bool {
	return s.o.options.MinFileAge > 0 && ageOf(s.o.env.Clock(), mtime) < s.o.options.MinFileAge
}

// grownUp looks again at files that were too young, once they may be old enough.
func (s *Source) grownUp() error {
	if len(s.young) == 0 {
		return nil
	}
	root, err := s.o.lister.find()
	if err != nil {
		return err
	}
	young := s.young
	s.young = nil
	for i, rec := range young {
		if s.isYoung(s.seen.rec(int(rec)).mtime) {
			s.young = append(s.young, rec)
			continue
		}
		rel := s.seen.path(int(rec))
		id, ok, err := s.o.lister.look(join(root.dir, rel))
		if s.o.lister.waits(join(root.dir, rel), err) {
			s.young = append(s.young, rec)
			continue
		}
		if err != nil {
			s.young = append(s.young, young[i:]...)
			return err
		}
		s.seen.unqueue(rec)
		if !ok {
			continue
		}
		if err := s.met(foundFile{rel, id}); err != nil {
			s.young = append(s.young, young[i+1:]...)
			return err
		}
	}
	return nil
}

// skipPresent writes entry 0 of a query that begins with what is new: everything that
// is there now counts as seen.
func (s *Source) skipPresent() error {
	recs := slices.Clone(s.young)
	for _, f := range s.pending.files {
		recs = append(recs, f.rec)
	}
	slices.SortFunc(recs, func(a, b uint32) int {
		return s.order(queuedFile{s.seen.rec(int(a)).mtime, a}, queuedFile{s.seen.rec(int(b)).mtime, b})
	})
	e := plannedEntry{pinned: map[string]string{pinStarting: "new"}, recs: recs, skipped: func(int) bool { return true }}
	if err := s.put(e); err != nil {
		return err
	}
	s.pending, s.young = queue{}, nil
	return nil
}

// sweepSome looks at some of the files that were read, for one that was rewritten.
// When a sweep begins, every directory is read again, too.
func (s *Source) sweepSome(ctx context.Context) error {
	now := s.o.env.Clock()
	if s.sweep.at < 0 {
		if now.Before(s.sweep.next) {
			return nil
		}
		s.sweep = sweep{next: now.Add(s.o.options.RescanEvery)}
		s.o.lister.restart()
	}
	root, err := s.o.lister.find()
	if err != nil {
		return err
	}
	for range sweepFiles {
		if s.sweep.at >= s.seen.n {
			s.sweep.at = -1
			return nil
		}
		i := s.sweep.at
		s.sweep.at++
		if s.seen.rec(i).state != stateLogged {
			continue
		}
		if err := ctx.Err(); err != nil {
			return err
		}
		rel := s.seen.path(i)
		id, ok, err := s.o.lister.look(join(root.dir, rel))
		if err != nil && !s.o.lister.waits(join(root.dir, rel), err) {
			return err
		}
		if ok {
			if err := s.met(foundFile{rel, id}); err != nil {
				return err
			}
		}
	}
	return nil
}

// choose takes the files of the next batch out of pending. A file that changed since
// it was listed may have another place in the order: then all begins anew, a few times.
func (s *Source) choose(ctx context.Context, limit connector.Limit, t taken) ([]uint32, error) {
	root, err := s.o.lister.find()
	if err != nil {
		if s.o.lister.waits(s.o.options.Path, err) {
			return nil, nil
		}
		return nil, err
	}
	s.dropOld(root)
	const tries = 3
	for try := 1; ; try++ {
		s.pending.sort(s.order)
		batch, moved, err := s.chooseOnce(ctx, root, limit, t, try == tries)
		if err != nil || !moved {
			return batch, err
		}
	}
}

// chooseOnce stops at a file that changed, unless accept says to take it as it is;
// moved says that it did. Then pending is what it was, with the file's new identity.
func (s *Source) chooseOnce(ctx context.Context, root rootOf, limit connector.Limit, t taken, accept bool) (batch []uint32, moved bool, err error) {
	upto := int64(-1) // newest listing that counts, -1: all
	if limit.Until != "" {
		until, err := parseOffset(limit.Until)
		if err != nil {
			return nil, false, err
		}
		upto = until.Listing
	}
	var left []queuedFile // passed over for being beyond limit.Until
	end := len(s.pending.files)
	for i, q := range s.pending.files {
		if err := ctx.Err(); err != nil {
			s.dropVanished()
			return nil, false, err
		}
		r := s.seen.rec(int(q.rec))
		if upto >= 0 && r.number > upto {
			left = append(left, q)
			continue
		}
		if limit.Files > 0 && t.files >= limit.Files || limit.Bytes > 0 && t.files > 0 && t.bytes+r.size > limit.Bytes {
			end = i
			break
		}
		// As it is now, just before it is logged.
		full := join(root.dir, s.seen.path(int(q.rec)))
		id, ok, err := s.o.lister.look(full)
		switch {
		case err != nil && s.o.lister.waits(full, err):
			left = append(left, q)
			continue
		case err != nil:
			s.dropVanished()
			return nil, false, err
		case !ok:
			s.seen.unqueue(q.rec) // it was never read, so it never was
			continue
		}
		moved := id.Size != r.size || id.ModTime != r.mtime
		r.size, r.mtime = id.Size, id.ModTime
		if moved && !accept {
			s.pending.remove(func(p queuedFile) bool { return p.rec == q.rec })
			s.pending.add(queuedFile{id.ModTime, q.rec})
			s.dropVanished()
			return nil, true, nil
		}
		batch = append(batch, q.rec)
		t.files++
		t.bytes += id.Size
	}
	s.pending.take(end, left)
	return batch, false, nil
}

// dropVanished takes files out of pending that do not wait any more.
func (s *Source) dropVanished() {
	s.pending.remove(func(p queuedFile) bool { return s.seen.rec(int(p.rec)).state != stateQueued })
}

// dropOld passes over what max_file_age excludes: older than the newest file by more.
// It stays queued, so that it is counted once.
func (s *Source) dropOld(root rootOf) {
	age := s.o.options.MaxFileAge
	if age <= 0 {
		return
	}
	before := s.newest - age.Microseconds()
	dropped, first := int64(0), uint32(0)
	s.pending.remove(func(q queuedFile) bool {
		if q.mtime >= before {
			return false
		}
		if dropped++; dropped == 1 {
			first = q.rec
		}
		return true
	})
	if dropped == 0 {
		return
	}
	s.tooOld += dropped
	s.o.env.Warnf("files older than the newest by more than max_file_age are passed over: %d, %s first", dropped, join(root.dir, s.seen.path(int(first))))
}

// putBatch writes the entry of a batch.
func (s *Source) putBatch(ctx context.Context, batch []uint32) error {
	e := plannedEntry{recs: batch}
	err := s.prepare(ctx, &e)
	if err == nil {
		err = s.put(e)
	}
	if err == nil {
		return nil
	}
	for _, rec := range batch {
		if r := s.seen.rec(int(rec)); r.state == stateQueued {
			s.pending.add(queuedFile{r.mtime, rec})
		}
	}
	return err
}

// plannedEntry is an entry of the log to be written. Its files are those of records of
// the seenSet.
type plannedEntry struct {
	// pinned are choices of the format made for this entry's files.
	pinned map[string]string
	recs   []uint32
	// skipped and hash tell what is to be logged of the files, by their number; nil is
	// nothing.
	skipped func(i int) bool
	hash    func(i int) string
}

// files are the files of an entry, with their full paths.
func (s *Source) files(e *plannedEntry, root string) iter.Seq[foundFile] {
	return func(yield func(foundFile) bool) {
		for _, rec := range e.recs {
			f := loggedFile{foundFile: s.seen.file(rec)}
			if !yield(f.below(root)) {
				return
			}
		}
	}
}

// prepare does what must be known before an entry is written: new columns, the
// choices of the format, contents met before.
func (s *Source) prepare(ctx context.Context, e *plannedEntry) error {
	o := s.o
	grows := o.options.Evolution == codec.EvolveAdd && !o.layout.declared
	pins := o.layout.declared && !o.hasFormatPins()
	if !grows && !pins && s.contents == nil {
		return nil
	}
	root, err := o.lister.find()
	if err != nil {
		return err
	}
	if grows {
		if err := s.checkGrown(ctx, slices.Collect(s.files(e, root.dir))); err != nil {
			return err
		}
	}
	if pins {
		choices, err := o.pinBy(s.files(e, root.dir))
		if err != nil {
			return err
		}
		for k, v := range choices {
			if e.pinned == nil {
				e.pinned = map[string]string{}
			}
			e.pinned[pinFormat+k] = v
		}
	}
	if s.contents == nil {
		return nil
	}
	return s.skipSame(ctx, e, root.dir)
}

func (s *Source) checkGrown(ctx context.Context, files []foundFile) error {
	schema, first, err := s.o.grown(ctx, files)
	if err != nil || first == "" {
		return err
	}
	pinned := s.Pinned()
	pinned[pinColumns] = connector.EncodeSchema(schema)
	return &connector.SchemaGrownError{Stream: s.o.env.Name, File: first, Schema: schema, Pinned: pinned}
}

// skipSame hashes the files and marks those whose content was met before.
func (s *Source) skipSame(ctx context.Context, e *plannedEntry, root string) error {
	met := map[string]bool{}
	var hashes []string
	var same []bool
	for f := range s.files(e, root) {
		hash, err := hashFile(ctx, s.o.env, f.FileIdentity)
		if err != nil {
			return err
		}
		hashes, same = append(hashes, hash), append(same, s.contents[hash] || met[hash])
		met[hash] = true
	}
	e.hash = func(i int) string { return hashes[i] }
	e.skipped = func(i int) bool { return same[i] }
	return nil
}

func hashFile(ctx context.Context, env *connector.Env, id connector.FileIdentity) (string, error) {
	f, err := env.FS.Open(id.Path)
	if err != nil {
		return "", err
	}
	defer f.Close()
	h := newBlockHasher()
	buf := make([]byte, 1<<18)
	for {
		if err := ctx.Err(); err != nil {
			return "", err
		}
		n, err := f.Read(buf)
		h.write(buf[:n])
		if errors.Is(err, io.EOF) {
			return h.hash()
		}
		if err != nil {
			return "", err
		}
	}
}

// put writes the next entry of the log.
func (s *Source) put(e plannedEntry) error {
	data, err := appendLogHead(nil, e.pinned)
	if err != nil {
		return err
	}
	data = slices.Grow(data, s.seen.logBytes(e.recs))
	for i, rec := range e.recs {
		f := loggedFile{foundFile: s.seen.file(rec)}
		f.skipped = e.skipped != nil && e.skipped(i)
		if e.hash != nil {
			f.hash = e.hash(i)
		}
		data = f.append(data)
	}
	id := s.last + 1
	if err := s.log.Put(id, data); err != nil {
		return err
	}
	for i, rec := range e.recs {
		s.seen.logNow(rec, id, e.skipped != nil && e.skipped(i))
		s.newest = max(s.newest, s.seen.rec(int(rec)).mtime)
		if e.hash != nil {
			s.contents[e.hash(i)] = true
		}
	}
	s.noteEntry(id, e.pinned)
	s.planned = connector.LogEntry{ID: id, Data: data}
	return nil
}

func join(root, rel string) string {
	if root == "." {
		return rel
	}
	if root == "/" {
		return "/" + rel
	}
	return root + "/" + rel
}

// RescanDue is when the next sweep for rewritten files begins.
func (s *Source) RescanDue() time.Time { return s.sweep.next }
