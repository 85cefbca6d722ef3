package file

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"path"
	"runtime"
	"slices"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/tidemill/tidemill/internal/vfs"
	"github.com/tidemill/tidemill/logical/connector"
)

// foundFile is a file of a listing. rel is its path below the root, the key by which
// a source remembers it.
type foundFile struct {
	rel string
	connector.FileIdentity
}

// compareFiles orders files by modification time, then by path.
func compareFiles(a, b foundFile) int {
	if a.ModTime != b.ModTime {
		if a.ModTime < b.ModTime {
			return -1
		}
		return 1
	}
	return strings.Compare(a.rel, b.rel)
}

// lister finds the files that a path means. It is used by one goroutine.
type lister struct {
	fs         vfs.FS
	path       string
	recursive  bool
	doneMarker string
	skipDir    string // archive_dir, "" if there is none
	skipKey    dirKey // of it, if hasSkipKey
	hasSkipKey bool
	// accept says whether a file counts by its name; a file named as such by the
	// path counts always.
	accept func(name string) bool
	env    *connector.Env

	dirs  map[string]*dirState // what incremental listings remember; nil: nothing
	watch *watch               // directories met are added to it; nil: none
	// patient passes over what may not be looked at, with a warning: it may be some day.
	patient bool
	warned  map[string]bool
	// noTables refuses files of tables that are replaced each batch.
	noTables bool
}

// dirState is what is known of a directory since it was last read.
type dirState struct {
	mtime   time.Time
	changed time.Time // see changeTime
	listed  time.Time // when that began
	restart bool      // read it again in any case
	subdirs []subdir
}

func newDirState(info fs.FileInfo, now time.Time) dirState {
	return dirState{mtime: info.ModTime(), changed: changeTime(info), listed: now}
}

type subdir struct {
	name  string
	state globState
}

// root is the directory that relative paths begin at, and what is matched below it.
type rootOf struct {
	dir      string
	patterns []pattern // nil: everything
	file     string    // the path is this file in dir
	missing  bool      // there is nothing, and nothing can match
}

// find says what the path means now. What exists by that very name is meant, be it
// full of stars; else it is a glob.
func (l *lister) find() (rootOf, error) {
	info, err := l.fs.Stat(l.path)
	switch {
	case err == nil && info.IsDir():
		return rootOf{dir: l.path}, nil
	case err == nil:
		return rootOf{dir: path.Dir(l.path), file: path.Base(l.path)}, nil
	case !isAbsent(err):
		return rootOf{}, err
	case !hasMeta(l.path):
		return rootOf{dir: l.path, missing: true}, nil
	}
	dir, patterns, err := parseGlob(l.path)
	return rootOf{dir: dir, patterns: patterns}, err
}

// isAbsent says whether an error means that there is no such name.
func isAbsent(err error) bool {
	return errors.Is(err, fs.ErrNotExist) || errors.Is(err, syscall.ENOTDIR)
}

// visitor is what a listing tells what it finds. known says that the file need not
// be looked at: its name was met before. dir ends in a slash, or is "".
type visitor struct {
	known func(dir, name string) bool
	found func(f foundFile) error
}

// list visits every file, in no particular order. Directories that cannot have new
// names since the last listing are passed over.
func (l *lister) list(ctx context.Context, v visitor) error {
	root, err := l.find()
	if err != nil || root.missing {
		return err
	}
	if l.skipDir != "" {
		// It may be written differently from how the listing comes to it.
		if info, err := l.fs.Stat(l.skipDir); err == nil {
			l.skipKey, l.hasSkipKey = keyOf(info)
		}
	}
	if root.file != "" {
		return l.visit([]sighting{{full: path.Join(root.dir, root.file), rel: root.file}}, v)
	}
	return l.dir(ctx, dirVisit{dir: root.dir, state: begin(root.patterns)}, v)
}

// all lists every file, sorted.
func (l *lister) all(ctx context.Context) ([]foundFile, error) {
	var files []foundFile
	err := l.list(ctx, visitor{found: func(f foundFile) error {
		files = append(files, f)
		return nil
	}})
	slices.SortFunc(files, compareFiles)
	return files, err
}

// dirVisit is one directory of a listing.
type dirVisit struct {
	dir, rel string
	state    globState
	above    []dirKey // directories on the way here, to find links that lead back
	prefix   string   // rel with a slash, if it is not ""
	marked   marked   // by a done_marker for the directory
}

// marked says whether a marker was found.
type marked uint8

const (
	notLooked marked = iota
	isMarked
	notMarked
)

func (l *lister) dir(ctx context.Context, d dirVisit, v visitor) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	now := l.env.Clock()
	l.watch.add(d.dir) // first, so that nothing comes unnoticed between
	info, err := l.fs.Stat(d.dir)
	if err != nil {
		return l.goneOr(err, d.dir)
	}
	if key, ok := keyOf(info); ok {
		if l.hasSkipKey && key == l.skipKey {
			return nil
		}
		if slices.Contains(d.above, key) {
			l.warn(d.dir, "%s leads back to a folder above it and is not followed", d.dir)
			return nil
		}
		d.above = append(slices.Clip(d.above), key)
	}
	if s := l.dirs[d.dir]; s != nil && s.unchanged(info) {
		return l.below(ctx, d, s.subdirs, v)
	}
	state, err := l.read(d, info, now, v)
	if err != nil || state == nil {
		return err
	}
	if l.dirs != nil {
		l.dirs[d.dir] = state
	}
	return l.below(ctx, d, state.subdirs, v)
}

// errIsCheckpoint ends the reading of a directory that is a checkpoint.
var errIsCheckpoint = errors.New("a checkpoint")

// read visits the files of one directory; state is nil if there is nothing to visit.
func (l *lister) read(d dirVisit, info fs.FileInfo, now time.Time, v visitor) (state *dirState, err error) {
	begun := newDirState(info, now)
	state = &begun
	if d.prefix = d.rel; d.rel != "" {
		d.prefix += "/"
	}
	var found []sighting
	first, isOutput := true, false
	var other error // not of the listing itself
	err = vfs.List(l.fs, d.dir, func(part []fs.DirEntry) error {
		if first && l.isCheckpoint(d.dir, part) {
			other = errIsCheckpoint
			return other
		}
		first, found = false, found[:0]
		for _, e := range part {
			isOutput = isOutput || e.Name() == controlDir
			if found, other = l.entry(&d, e, state, v, found); other != nil {
				return other
			}
		}
		other = l.visit(found, v)
		for _, f := range found {
			state.restart = state.restart || f.err != nil && !isAbsent(f.err)
		}
		return other
	})
	switch {
	case errors.Is(other, errIsCheckpoint):
		return nil, nil
	case other != nil:
		return nil, other
	case err != nil:
		return nil, l.goneOr(err, d.dir)
	case l.noTables && isOutput:
		return state, l.refuseTable(d.dir, d.lists)
	}
	return state, nil
}

// unchanged says that no name can have come since the directory was read: it was not
// changed since, and had not just been changed then, when the clock of its times may
// have been too coarse to tell.
func (s *dirState) unchanged(info fs.FileInfo) bool {
	const coarse = 2 * time.Second
	settled := s.listed.Add(-coarse)
	return !s.restart && s.mtime.Equal(info.ModTime()) && s.changed.Equal(changeTime(info)) &&
		s.mtime.Before(settled) && s.changed.Before(settled)
}

func (l *lister) below(ctx context.Context, d dirVisit, subdirs []subdir, v visitor) error {
	for _, s := range subdirs {
		next := dirVisit{dir: path.Join(d.dir, s.name), rel: path.Join(d.rel, s.name), state: s.state, above: d.above}
		if err := l.dir(ctx, next, v); err != nil {
			return err
		}
	}
	return nil
}

// sighting is a name of a directory that may be a file to visit.
type sighting struct {
	full, rel string
	info      fs.FileInfo
	err       error
}

// entry looks at one name of a directory and adds it to found if it may be a file.
func (l *lister) entry(d *dirVisit, e fs.DirEntry, state *dirState, v visitor, found []sighting) ([]sighting, error) {
	name := e.Name()
	matched, below := d.state.step(name)
	if !matched && len(below) == 0 {
		return found, nil
	}
	if !e.IsDir() && e.Type()&fs.ModeSymlink == 0 && (!matched || v.known != nil && v.known(d.prefix, name)) {
		return found, nil
	}
	full := path.Join(d.dir, name)
	if full == l.skipDir {
		return found, nil
	}
	isDir := e.IsDir()
	if e.Type()&fs.ModeSymlink != 0 {
		info, err := l.fs.Stat(full)
		if err != nil {
			state.restart = true // its target may come without a change here
			if isAbsent(err) || errors.Is(err, syscall.ELOOP) {
				l.warn(full, "%s is a link to nothing and is skipped", full)
				return found, nil
			}
			if l.waits(full, err) {
				return found, nil
			}
			return found, err
		}
		isDir = info.IsDir()
	}
	switch {
	case isDir && strings.HasSuffix(name, ".checkpoint"):
		return found, nil // also while it is being made, when what is in it does not tell yet
	case isDir && d.state.enters(below, l.recursive):
		state.subdirs = append(state.subdirs, subdir{name, below})
		return found, nil
	case isDir || !matched || !l.accept(name) || v.known != nil && v.known(d.prefix, name):
		return found, nil
	}
	if done, err := l.done(d, name); err != nil || !done {
		return found, err
	}
	rel := full[len(full)-len(d.prefix)-len(name):] // one text for both: there may be millions
	return append(found, sighting{full: full, rel: rel}), nil
}

// done says whether the marker that a file waits for is there.
func (l *lister) done(d *dirVisit, name string) (bool, error) {
	before, after, each := strings.Cut(l.doneMarker, "*")
	switch {
	case l.doneMarker == "":
		return true, nil
	case !each && name == l.doneMarker:
		return false, nil // markers are no data themselves
	case each && strings.HasPrefix(name, before) && strings.HasSuffix(name, after) && len(before)+len(after) > 0:
		return false, nil
	case each:
		return l.isThere(path.Join(d.dir, before+name+after))
	}
	if d.marked == notLooked {
		there, err := l.isThere(path.Join(d.dir, l.doneMarker))
		if err != nil {
			return false, err
		}
		if d.marked = notMarked; there {
			d.marked = isMarked
		}
	}
	return d.marked == isMarked, nil
}

func (l *lister) isThere(name string) (bool, error) {
	_, err := l.fs.Stat(name)
	if isAbsent(err) {
		return false, nil
	}
	return err == nil, err
}

// manyStats is how many files there are before they are looked at by several goroutines.
const manyStats = 64

// visit looks at files and visits those that are, in their order.
func (l *lister) visit(found []sighting, v visitor) error {
	workers := min(runtime.GOMAXPROCS(0), 16)
	if len(found) < manyStats {
		workers = 1
	}
	var wait sync.WaitGroup
	for w := range workers {
		look := func() {
			for i := w; i < len(found); i += workers {
				found[i].info, found[i].err = l.fs.Stat(found[i].full)
			}
		}
		if w == workers-1 {
			look()
		} else {
			wait.Go(look)
		}
	}
	wait.Wait()
	for i := range found {
		f := &found[i]
		id, ok, err := l.identify(f.full, f.info, f.err)
		if err != nil && !l.waits(f.full, err) {
			return err
		}
		if ok {
			if err := v.found(foundFile{f.rel, id}); err != nil {
				return err
			}
		}
	}
	return nil
}

// look is the identity of one file; ok is false if it is gone, or is no file.
func (l *lister) look(full string) (id connector.FileIdentity, ok bool, err error) {
	info, err := l.fs.Stat(full)
	return l.identify(full, info, err)
}

func (l *lister) identify(full string, info fs.FileInfo, err error) (id connector.FileIdentity, ok bool, _ error) {
	switch {
	case err != nil && isAbsent(err):
		return id, false, nil // gone since it was listed
	case err != nil:
		return id, false, err
	case info.IsDir():
		return id, false, nil
	case !info.Mode().IsRegular():
		l.warn(full, "%s is %s, not a file, and is skipped", full, kindOf(info.Mode()))
		return id, false, nil
	}
	return connector.FileIdentity{Path: full, Size: info.Size(), ModTime: info.ModTime().UnixMicro()}, true, nil
}

func kindOf(m fs.FileMode) string {
	switch {
	case m&fs.ModeNamedPipe != 0:
		return "a FIFO"
	case m&fs.ModeSocket != 0:
		return "a socket"
	case m&fs.ModeDevice != 0:
		return "a device"
	}
	return "something else"
}

// waits says whether an error about a name is to be waited out.
func (l *lister) waits(name string, err error) bool {
	if !l.patient || !errors.Is(err, fs.ErrPermission) {
		return false
	}
	l.warn("\x00wait"+name, "%s cannot be looked at and is waited for: %v", name, err)
	return true
}

// goneOr passes over a directory that went away since it was listed.
func (l *lister) goneOr(err error, dir string) error {
	if isAbsent(err) {
		delete(l.dirs, dir)
		l.watch.forget(dir)
		return nil
	}
	if l.waits(dir, err) {
		return nil
	}
	return fmt.Errorf("listing %s: %w", dir, err)
}

// warn tells once about a name.
func (l *lister) warn(name, format string, args ...any) {
	if l.warned[name] {
		return
	}
	if l.warned == nil {
		l.warned = map[string]bool{}
	}
	l.warned[name] = true
	l.env.Warnf(format, args...)
}

// restart makes the next listing read every directory.
func (l *lister) restart() {
	for _, s := range l.dirs {
		s.restart = true
	}
}

// checkpointNames are what the folder of a checkpoint holds.
var checkpointNames = []string{
	"lock", "metadata", "plan.json", "offsets", "prepared", "commits", "history", "sources", "state", "last_error",
}

// isCheckpoint recognizes the folder of a query's checkpoint by the first part of what is
// in it. One with more names than a part holds is no checkpoint that is being made.
func (l *lister) isCheckpoint(dir string, part []fs.DirEntry) bool {
	if len(part) < vfs.ListPart {
		return isCheckpoint(part)
	}
	is := func(name string, isDir bool) bool {
		info, err := l.fs.Stat(path.Join(dir, name))
		return err == nil && info.IsDir() == isDir
	}
	return is("metadata", false) && (is("offsets", true) || is("commits", true))
}

// isCheckpoint recognizes the folder of a query's checkpoint by what is in it, also
// while it is being made: the lock comes first.
func isCheckpoint(entries []fs.DirEntry) bool {
	has := func(name string, dir bool) bool {
		return slices.ContainsFunc(entries, func(e fs.DirEntry) bool { return e.Name() == name && e.IsDir() == dir })
	}
	if has("metadata", false) && (has("offsets", true) || has("commits", true)) {
		return true
	}
	stranger := func(e fs.DirEntry) bool { return !isHidden(e.Name()) && !slices.Contains(checkpointNames, e.Name()) }
	return has("lock", false) && !slices.ContainsFunc(entries, stranger)
}
