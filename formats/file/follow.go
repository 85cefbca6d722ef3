package file

import (
	"errors"
	"fmt"
	"io/fs"
	"path"

	"github.com/tidemill/tidemill/logical/connector"
)

// follower is how far a stream has read the manifest of an output directory. What is not
// in the manifest is no part of the output: files laid there by hand, and those of a batch
// that is decided but not committed yet.
type follower struct {
	query string   // whose output it was
	upto  int64    // the newest batch that was met, -1: none
	dir   dirState // of the manifest
}

// manifest is the manifest directory of an output; ok is false if the path is none.
func (o *opened) manifest() (dir string, ok bool, err error) {
	control := path.Join(o.options.Path, controlDir)
	info, err := o.env.FS.Stat(control)
	if isAbsent(err) || err == nil && !info.IsDir() {
		return "", false, nil
	}
	return path.Join(control, manifestDir), err == nil, err
}

// warnGone tells of an output without its manifest, which is then read as a folder. One
// without its id, too, is only being made.
func (o *opened) warnGone() {
	dir := o.options.Path
	if _, ok, _ := readIdentity(o.env.FS, dir); ok {
		o.lister.warn(path.Join(dir, controlDir), "%s: its manifest is gone; reading the files that are there", dir)
	}
}

func damagedManifest(dir string, err error) error {
	return &connector.RefusedError{Path: dir, Reason: "its manifest cannot be read", Err: err,
		Remedy: "bring the file back, or read the files themselves: '" + dir + "/**/part-*'"}
}

// follow lists an output directory by what its manifest has got since the last listing,
// or by all of it; isOutput is false if the path is none.
func (s *Source) follow(v visitor, full bool) (isOutput bool, err error) {
	dir, ok, err := s.o.manifest()
	if err != nil || !ok {
		s.followed = nil
		return false, err
	}
	if err := s.o.checkClean(); err != nil {
		return true, err
	}
	fsys := s.o.env.FS
	s.o.lister.watch.add(dir)
	now := s.o.env.Clock()
	info, err := fsys.Stat(dir)
	if isAbsent(err) {
		s.o.lister.watch.forget(dir)
		s.o.warnGone()
		s.followed = nil
		return false, nil
	}
	if err != nil {
		return false, err
	}
	if f := s.followed; !full && f != nil && f.dir.unchanged(info) {
		return true, nil
	}
	id, _, err := readIdentity(fsys, s.o.options.Path)
	if errors.Is(err, errCorrupt) {
		err = nil // its writer will say so
	}
	if err == nil && id.Mode == connector.Complete.String() {
		err = s.o.lister.isTable(s.o.options.Path)
	}
	if err != nil {
		return true, err
	}
	s.o.replace(id)
	next := &follower{query: id.Query, upto: -1, dir: newDirState(info, now)}
	if f := s.followed; !full && f != nil && f.query == id.Query {
		next.upto = f.upto
	} else {
		v.known = nil // names that were met may be those of other files
	}
	if err := s.followFrom(next, dir, v); err != nil {
		return true, err
	}
	s.followed = next
	return true, nil
}

// followFrom visits the files of the entries that f has not met.
func (s *Source) followFrom(f *follower, dir string, v visitor) error {
	entries, last, err := readEntriesAfter(s.o.env.FS, dir, f.upto)
	if err == nil && last < f.upto { // it was made anew
		v.known = nil
		entries, last, err = readEntriesAfter(s.o.env.FS, dir, -1)
	}
	if errors.Is(err, errCorrupt) {
		return damagedManifest(s.o.options.Path, err)
	}
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	if err != nil {
		return nil // it went away: the next listing will tell
	}
	left := fold(entries)
	for i, e := range entries {
		if e.Kind == kindComplete {
			return s.o.lister.isTable(s.o.options.Path)
		}
		skip, err := s.replaces(e)
		if err == nil && !skip {
			err = s.visitEntry(left[i], v)
		}
		if err != nil {
			return err
		}
	}
	f.upto = last
	return nil
}

// visitEntry visits the files that one batch added.
func (s *Source) visitEntry(e manifestEntry, v visitor) error {
	root, l := s.o.options.Path, s.o.lister
	var found []sighting
	for _, f := range e.Files {
		if f.Side != "" || !l.accept(f.Path) {
			continue
		}
		if dir, base := splitPath(f.Path); v.known != nil && v.known(dir, base) {
			continue
		}
		found = append(found, sighting{full: join(root, f.Path), rel: f.Path})
	}
	if err := l.visit(found, v); err != nil {
		return err
	}
	for _, f := range found {
		if isAbsent(f.err) && s.seen.get(splitPath(f.rel)) < 0 {
			l.warn(f.full, "%s is in the manifest but gone, and is skipped", f.full)
		}
	}
	return nil
}

// replaces deals with an entry whose files took the place of others: they hold the rows of
// those. If all of those were read, there is nothing new in it; if none was, it is read in
// their place; else no stream can tell its new rows from the old.
func (s *Source) replaces(e manifestEntry) (skip bool, err error) {
	if e.Kind != kindReplace {
		return false, nil
	}
	read := 0
	for _, name := range e.Removed {
		rec := s.seen.get(splitPath(name))
		if rec < 0 {
			continue
		}
		if s.seen.wasLogged(uint32(rec)) {
			read++
			continue
		}
		s.seen.unqueue(uint32(rec))
	}
	s.dropVanished()
	switch {
	case read > 0 && read == len(e.Removed):
		return true, nil
	case read == 0 && (len(e.Removed) > 0 || s.seen.len() == 0):
		return false, nil
	}
	for _, f := range e.Files {
		if s.seen.get(splitPath(f.Path)) < 0 {
			return false, &connector.RefusedError{Path: s.o.options.Path,
				Reason: fmt.Sprintf("batch %d joined files that were read with files that were not, in %s", e.Batch, f.Path),
				Remedy: "start over with a new checkpoint and a new output"}
		}
	}
	return false, nil
}
