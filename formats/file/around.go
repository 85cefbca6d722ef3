package file

import (
	"errors"
	"io/fs"
	"path"
	"slices"
	"strings"

	"github.com/tidemill/tidemill/internal/vfs"
)

// Place is where a query keeps something: its output, the rows kept beside it, or its
// checkpoint.
type Place struct {
	Path       string
	Checkpoint bool
	Beside     bool // late or bad rows
}

// Around finds what another query keeps around own, in its place, or in it,
// links followed; where is how a message about own begins to say so.
func Around(fsys vfs.FS, own Place) (where string, other Place, ok bool) {
	at := vfs.Resolve(fsys, own.Path)
	if other, ok = Instead(fsys, own); ok {
		return "it is ", other, true
	}
	for at != path.Dir(at) {
		at = path.Dir(at)
		if list := placesAt(fsys, at); len(list) > 0 {
			return "it lies in ", list[0], true
		}
	}
	other, ok = placeBelow(fsys, own.Path)
	return "in it lies ", other, ok
}

// Instead finds what another query keeps at the path of own.
func Instead(fsys vfs.FS, own Place) (Place, bool) {
	for _, p := range placesAt(fsys, vfs.Resolve(fsys, own.Path)) {
		if p.Checkpoint != own.Checkpoint || p.Beside != own.Beside {
			return p, true
		}
	}
	return Place{}, false
}

// IsTaken says whether the directory is used as what p says already.
func IsTaken(fsys vfs.FS, p Place) bool {
	switch {
	case p.Checkpoint:
		return isCheckpointAt(fsys, p.Path)
	case p.Beside:
		return holdsSide(fsys, p.Path)
	}
	return isOutput(fsys, p.Path)
}

// Withdraw unbinds an output that was just made and holds nothing, so that it is no place
// any more.
func Withdraw(fsys vfs.FS, dir string) error {
	return fsys.Remove(path.Join(dir, controlDir, idName))
}

// placeBelow finds a place that lies in dir, or that a link in it leads to. What cannot be
// listed holds none.
func placeBelow(fsys vfs.FS, dir string) (found Place, ok bool) {
	errFound := errors.New("found")
	_ = vfs.Walk(fsys, dir, func(name string, e fs.DirEntry) error {
		isLink := e.Type()&fs.ModeSymlink != 0
		switch {
		case e.Name() == controlDir && e.IsDir():
			return fs.SkipDir
		case e.IsDir() || isLink:
			if list := placesAt(fsys, name); len(list) > 0 {
				found, ok = list[0], true
				return errFound
			}
		}
		return nil
	})
	return found, ok
}

// placesAt lists what dir is, told by what is there; nothing keeps two queries from using
// it at once.
func placesAt(fsys vfs.FS, dir string) (list []Place) {
	if isOutput(fsys, dir) {
		list = append(list, Place{Path: dir})
	}
	if isBeside(fsys, dir) {
		list = append(list, Place{Path: dir, Beside: true})
	}
	if isCheckpointAt(fsys, dir) {
		list = append(list, Place{Path: dir, Checkpoint: true})
	}
	return list
}

func isOutput(fsys vfs.FS, dir string) bool {
	return isThere(fsys, false, dir, controlDir, idName)
}

func isCheckpointAt(fsys vfs.FS, dir string) bool {
	return isThere(fsys, false, dir, "metadata") && (isThere(fsys, true, dir, "offsets") || isThere(fsys, true, dir, "commits"))
}

// isBeside says whether dir is for the late or bad rows of an output: it holds some, or
// the query keeps them.
func isBeside(fsys vfs.FS, dir string) bool {
	for _, side := range sides[1:] {
		of, ok := strings.CutSuffix(dir, "."+side)
		if !ok || !isOutput(fsys, of) {
			continue
		}
		id, _, err := readIdentity(fsys, of)
		return holdsSide(fsys, dir) || err == nil && slices.Contains(id.Kept, side)
	}
	return false
}

// holdsSide says whether rows beside an output were written to dir.
func holdsSide(fsys vfs.FS, dir string) bool {
	return isThere(fsys, true, dir, "."+stagingName)
}

// isThere says whether name is a directory, or a file.
func isThere(fsys vfs.FS, isDir bool, name ...string) bool {
	info, err := fsys.Stat(path.Join(name...))
	return err == nil && info.IsDir() == isDir
}
