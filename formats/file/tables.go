package file

import (
	"errors"
	"io/fs"
	"strings"

	"github.com/tidemill/tidemill/internal/vfs"
	"github.com/tidemill/tidemill/logical/connector"
)

// lists says whether a file called name, right in the directory, is among those meant.
func (r rootOf) lists(name string) bool {
	switch {
	case r.missing:
		return false
	case r.file != "":
		return r.file == name
	}
	matched, _ := begin(r.patterns).step(name)
	return matched
}

// lists says whether a file called name, right in the directory, is among those visited.
func (d dirVisit) lists(name string) bool {
	matched, _ := d.state.step(name)
	return matched
}

// refuseTable refuses a stream over a table in dir that a query replaces each batch: lists
// says which of the files there the stream would read.
func (l *lister) refuseTable(dir string, lists func(name string) bool) error {
	id, ok, err := readIdentity(l.fs, dir)
	switch {
	case errors.Is(err, errCorrupt):
		return nil // its writer will say so
	case err != nil && !isAbsent(err):
		return err
	case !ok || id.Mode != connector.Complete.String():
		return nil
	case dir == l.path:
		return l.isTable(dir)
	}
	reads := false
	err = vfs.List(l.fs, dir, func(part []fs.DirEntry) error {
		for _, e := range part {
			reads = reads || strings.HasPrefix(e.Name(), tableName+".") && lists(e.Name())
		}
		return nil
	})
	if err != nil && !isAbsent(err) {
		return err
	}
	if reads {
		return l.isTable(dir)
	}
	return nil
}

// isTable is the refusal of a stream over a table that is replaced each batch.
func (l *lister) isTable(dir string) error {
	what := "it is"
	if dir != l.path {
		what = dir + ", of which it would read the files, is"
	}
	return &connector.OptionError{Key: "path", Value: l.path, HasValue: true,
		Reason: what + " the output of a query with output_mode = 'complete': its table is replaced each batch, so there is no stream of new rows; read it as a table"}
}
