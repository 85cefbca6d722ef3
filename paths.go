package tidemill

import (
	"path"
	"strings"

	"github.com/tidemill/tidemill/internal/vfs"
	"github.com/tidemill/tidemill/logical/connector"
)

// within says whether p is dir or below it, by their names alone.
func within(p, dir string) bool {
	p, dir = path.Clean(p), path.Clean(dir)
	return p == dir || strings.HasPrefix(p, strings.TrimSuffix(dir, "/")+"/")
}

// liesIn says whether p is dir or below it, whichever way either is written: relative or
// absolute, as a file:// address, through links.
func (s *Session) liesIn(p, dir string) bool {
	return within(vfs.Resolve(s.opts.fs, connector.CleanPath(p)), vfs.Resolve(s.opts.fs, connector.CleanPath(dir)))
}

// outputs are the directories of files that the query writes: its own, and those of the
// rows it keeps beside it. A connector that writes no files has none.
func (j *job) outputs() []string {
	out := j.options["path"]
	if out == "" || j.openSink != nil || j.connector != "" && !strings.EqualFold(j.connector, "filesystem") {
		return nil
	}
	dirs := []string{out}
	out = strings.TrimRight(connector.CleanPath(out), "/")
	if j.keepLate {
		dirs = append(dirs, out+".late")
	}
	if j.keepBad {
		dirs = append(dirs, out+".bad")
	}
	return dirs
}

// checkApart refuses a checkpoint and outputs of which one lies in the other: state is
// kept in data files, which the pattern that reads an output would match.
func (s *Session) checkApart(checkpointDir string, outputs []string) error {
	if checkpointDir == "" {
		return nil
	}
	for _, out := range outputs {
		relation := ""
		switch {
		case s.liesIn(checkpointDir, out) && s.liesIn(out, checkpointDir):
			relation = "it is the output directory " + out
		case s.liesIn(checkpointDir, out):
			relation = "it lies in the output directory " + out
		case s.liesIn(out, checkpointDir):
			relation = "the output directory " + out + " lies in it"
		default:
			continue
		}
		return &connector.OptionError{Key: "checkpoint", Value: checkpointDir, HasValue: true,
			Reason: relation + ", and whoever reads the output would take its files for rows; name a directory elsewhere, or leave the option out, which puts it beside the output"}
	}
	return nil
}
