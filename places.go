package tidemill

import (
	"cmp"
	"errors"
	"io/fs"
	"path"
	"syscall"

	"github.com/tidemill/tidemill/formats/file"
	"github.com/tidemill/tidemill/internal/vfs"
	"github.com/tidemill/tidemill/logical/connector"
)

// checkPlaces refuses, before anything is made, an output or a checkpoint where no
// directory can be, and a new one that lies in what another query keeps, or around it: a
// pattern that reads the one would read the other.
func (j *job) checkPlaces() error {
	fsys := j.session.opts.fs
	outputs := j.outputs()
	for _, out := range outputs {
		if err := canBeFolder(fsys, "path", out); err != nil {
			return err
		}
	}
	if len(outputs) > 0 && !isPlace(fsys, outputs[0], false) {
		for _, out := range outputs {
			if err := checkAlone(fsys, "path", out); err != nil {
				return err
			}
		}
	}
	dir := checkpointDir(j.checkpoint, j.options["path"])
	if dir == "" || isPlace(fsys, dir, true) {
		return nil
	}
	return cmp.Or(canBeFolder(fsys, "checkpoint", dir), checkAlone(fsys, "checkpoint", dir))
}

// isPlace says whether dir is an output, or a checkpoint, already: this query's, or its
// owner refuses it.
func isPlace(fsys vfs.FS, dir string, isCheckpoint bool) bool {
	p, ok := file.PlaceAt(fsys, connector.CleanPath(dir))
	return ok && p.Checkpoint == isCheckpoint
}

// canBeFolder refuses what is no directory and cannot become one: itself, or what it is to
// lie in.
func canBeFolder(fsys vfs.FS, key, dir string) error {
	dir = connector.CleanPath(dir)
	refuse := func(reason string) error {
		return &connector.OptionError{Key: key, Value: dir, HasValue: true, Reason: reason}
	}
	for at, missing := path.Clean(dir), ""; ; at = path.Dir(at) {
		info, err := fsys.Stat(at)
		switch {
		case err == nil && !info.IsDir():
			return refuse(what(at, dir) + " is a file, not a directory; name a directory")
		case err == nil && missing != "" && vfs.Resolve(fsys, missing) != path.Join(vfs.Resolve(fsys, at), path.Base(missing)):
			return refuse(what(missing, dir) + " is a link that leads to nothing, " + vfs.Resolve(fsys, missing) + "; make that, or name a directory")
		case err == nil:
			return nil
		case errors.Is(err, syscall.ELOOP), errors.Is(err, syscall.ENAMETOOLONG), errors.Is(err, fs.ErrInvalid):
			return refuse(err.Error() + "; name a directory")
		case !errors.Is(err, fs.ErrNotExist) && !errors.Is(err, syscall.ENOTDIR):
			return asRefusal(dir, err)
		case at == path.Dir(at):
			return nil
		}
		missing = at
	}
}

// what is how a message about dir calls it, or something that it lies in.
func what(at, dir string) string {
	if at == path.Clean(dir) {
		return "it"
	}
	return at
}

// checkAlone refuses a new directory in a place of another query, or around one.
func checkAlone(fsys vfs.FS, key, dir string) error {
	dir = connector.CleanPath(dir)
	where := "it lies in "
	p, ok := file.Above(fsys, dir)
	if ok && p.Path == vfs.Resolve(fsys, dir) {
		where = "it is "
	}
	if !ok && key == "path" {
		where = "in it lies "
		p, ok = file.Below(fsys, dir)
	}
	if !ok {
		return nil
	}
	thing := "the output"
	if p.Checkpoint {
		thing = "the checkpoint"
	}
	return &connector.OptionError{Key: key, Value: dir, HasValue: true,
		Reason: where + thing + " " + p.Path + " of another query, and whoever reads the one by a pattern would take files of the other for rows; name a directory elsewhere"}
}
