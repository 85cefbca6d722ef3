package file

import (
	"errors"
	"fmt"
	"io/fs"
	"path"
	"slices"
	"strings"

	"github.com/tidemill/tidemill/internal/vfs"
)

// Unpublished is what an output directory, and those of its late and bad rows, hold that
// no batch has published.
type Unpublished struct {
	// Strays are files that whoever reads the directory by a pattern takes for rows of the
	// output, though nothing says that a batch wrote them.
	Strays []string
	// Nested are places of other queries in these directories, or instead of one that holds
	// rows of this output; their files are no strays.
	Nested []Place
	// Decided are batches whose publication is begun: it goes on now, or the next start
	// ends it.
	Decided []int64
	// Staged are files of a batch that is not decided: it runs now, or was cut off, and the
	// next start removes them. No pattern matches them.
	Staged []string
}

// FindUnpublished looks through an output directory with these sink options; a query may
// be writing it.
func FindUnpublished(fsys vfs.FS, formats Formats, options map[string]string) (found Unpublished, err error) {
	s := &Sink{fs: fsys, dir: path.Clean(PinnedOptions(formats, options)["path"])}
	format, err := formats.byName(PinnedOptions(formats, options)["format"])
	if err != nil {
		return found, err
	}
	for _, side := range sides {
		if side != "" {
			format, _ = formats.byName("parquet")
		}
		if err := s.findUnknown(&found, side, format); err != nil {
			return found, err
		}
	}
	// Looked at in the order in which a batch takes them: what had its name before is in
	// one of both.
	decided, err := Decided(fsys, s.dir)
	if err != nil {
		return found, err
	}
	published, _, err := Published(fsys, s.dir)
	if err != nil {
		return found, err
	}
	known := map[string]bool{}
	for _, p := range slices.Concat(decided, published) {
		for _, f := range p.Files {
			known[f.Path] = true
		}
	}
	found.Strays = slices.DeleteFunc(found.Strays, func(name string) bool { return known[name] })
	for _, d := range decided {
		if !slices.ContainsFunc(published, func(p Publication) bool { return p.Batch == d.Batch }) {
			found.Decided = append(found.Decided, d.Batch)
		}
	}
	return found, s.findStaged(&found)
}

// findUnknown lists what looks like a file of the output, by its name or as one of its
// format, and leaves out what another query keeps there.
func (s *Sink) findUnknown(found *Unpublished, side string, format Format) error {
	dir := s.sideDir(side)
	if other, ok := Instead(s.fs, Place{Path: dir, Beside: side != ""}); ok {
		if side == "" || holdsSide(s.fs, dir) {
			other.Path = dir
			found.Nested = append(found.Nested, other)
		}
		return nil
	}
	err := vfs.Walk(s.fs, dir, func(name string, e fs.DirEntry) error {
		switch {
		case isHidden(e.Name()) && e.IsDir():
			return fs.SkipDir
		case e.IsDir():
			if list := placesAt(s.fs, name); len(list) > 0 {
				found.Nested = append(found.Nested, list[0])
				return fs.SkipDir
			}
		case isHidden(e.Name()):
		case strings.HasPrefix(e.Name(), "part-") || slices.Contains(format.Extensions, splitExtension(name)):
			found.Strays = append(found.Strays, name)
		}
		return nil
	})
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	return err
}

// findStaged lists what waits in staging and is not part of a decided batch.
func (s *Sink) findStaged(found *Unpublished) error {
	for _, side := range sides {
		list, err := s.fs.ReadDir(s.stagingDir(side))
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			return err
		}
		for _, e := range list {
			var batch int64
			if _, err := fmt.Sscanf(e.Name(), "%d-", &batch); err == nil && slices.Contains(found.Decided, batch) {
				continue
			}
			found.Staged = append(found.Staged, path.Join(s.stagingDir(side), e.Name()))
		}
	}
	return nil
}
