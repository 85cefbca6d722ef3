package file

import (
	"errors"
	"io/fs"
	"path"
	"strings"

	"github.com/tidemill/tidemill/internal/vfs"
)

// Place is where a query keeps something, told by what is there: its output, or its
// checkpoint.
type Place struct {
	Path       string
	Checkpoint bool
}

// Above finds the place that dir lies in, or is, links followed.
func Above(fsys vfs.FS, dir string) (Place, bool) {
	for at := vfs.Resolve(fsys, dir); ; at = path.Dir(at) {
		if p, ok := PlaceAt(fsys, at); ok {
			return p, true
		}
		if at == path.Dir(at) {
			return Place{}, false
		}
	}
}

// Below finds a place that lies in dir, or that a link in it leads to. What cannot be
// listed holds none.
func Below(fsys vfs.FS, dir string) (found Place, ok bool) {
	errFound := errors.New("found")
	_ = vfs.Walk(fsys, dir, func(name string, e fs.DirEntry) error {
		isLink := e.Type()&fs.ModeSymlink != 0
		switch {
		case e.Name() == controlDir && e.IsDir():
			return fs.SkipDir
		case e.IsDir() || isLink:
			if found, ok = PlaceAt(fsys, name); ok {
				return errFound
			}
		}
		return nil
	})
	return found, ok
}

// PlaceAt says what dir is; ok is false if it is neither.
func PlaceAt(fsys vfs.FS, dir string) (p Place, ok bool) {
	is := func(isDir bool, name ...string) bool {
		info, err := fsys.Stat(path.Join(name...))
		return err == nil && info.IsDir() == isDir
	}
	isOutput := func(dir string) bool { return is(false, dir, controlDir, idName) }
	if isOutput(dir) {
		return Place{Path: dir}, true
	}
	for _, side := range sides[1:] {
		if of, ok := strings.CutSuffix(dir, "."+side); ok && is(true, dir, "."+stagingName) && isOutput(of) {
			return Place{Path: dir}, true
		}
	}
	if is(false, dir, "metadata") && (is(true, dir, "offsets") || is(true, dir, "commits")) {
		return Place{Path: dir, Checkpoint: true}, true
	}
	return Place{}, false
}
