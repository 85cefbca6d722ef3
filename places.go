package tidemill

import (
	"cmp"
	"context"
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
	if err := j.checkOutputsAlone(func(p file.Place) bool { return !file.IsTaken(fsys, p) }); err != nil {
		return err
	}
	dir := checkpointDir(j.checkpoint, j.options["path"])
	own := file.Place{Path: dir, Checkpoint: true}
	if dir == "" || file.IsTaken(fsys, own) {
		return nil
	}
	return cmp.Or(canBeFolder(fsys, "checkpoint", dir), checkAlone(fsys, own))
}

// checkOutputsAlone refuses an output that is new in a place of another query, or around
// one, and rows kept newly beside one that is there where another query keeps something:
// what nests already goes on.
func (j *job) checkOutputsAlone(isNew func(file.Place) bool) error {
	fsys, madeNow := j.session.opts.fs, false
	for i, out := range j.outputs() {
		own := file.Place{Path: connector.CleanPath(out), Beside: i > 0}
		var err error
		switch {
		case i == 0 && isNew(own):
			madeNow = true
			err = checkAlone(fsys, own)
		case i > 0 && madeNow:
			err = checkAlone(fsys, own)
		case i > 0 && isNew(own):
			if other, ok := file.Instead(fsys, own); ok {
				err = notAlone(own, "it is ", other)
			}
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// checkMade looks around once more when the output and the checkpoint of a query that has
// written nothing yet were made: of two queries that start at the same moment, and of which
// neither saw the other before, the one that is made last sees the other now. The output is
// withdrawn, so that it is in nobody's way.
func (j *job) checkMade(ctx context.Context, sink connector.Sink, committed int64) error {
	if committed > 0 {
		return nil
	}
	outputs := j.outputs()
	if len(outputs) > 0 {
		last, _, err := sink.LastBatch(ctx)
		if err != nil || last >= 0 {
			return err
		}
	}
	fsys := j.session.opts.fs
	err := j.checkOutputsAlone(func(file.Place) bool { return true })
	if dir := checkpointDir(j.checkpoint, j.options["path"]); err == nil && dir != "" {
		err = checkAlone(fsys, file.Place{Path: dir, Checkpoint: true})
	}
	if err != nil && len(outputs) > 0 {
		return errors.Join(err, file.Withdraw(fsys, connector.CleanPath(outputs[0])))
	}
	return err
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
func checkAlone(fsys vfs.FS, own file.Place) error {
	own.Path = connector.CleanPath(own.Path)
	where, other, ok := file.Around(fsys, own)
	if !ok {
		return nil
	}
	return notAlone(own, where, other)
}

// notAlone says where own is.
func notAlone(own file.Place, where string, other file.Place) error {
	key, thing := "path", "the output"
	if own.Checkpoint {
		key = "checkpoint"
	}
	if other.Checkpoint {
		thing = "the checkpoint"
	}
	return &connector.OptionError{Key: key, Value: own.Path, HasValue: true,
		Reason: where + thing + " " + other.Path + " of another query, and whoever reads the one by a pattern would take files of the other for rows; name a directory elsewhere"}
}
