package file

import (
	"errors"
	"fmt"
	"io/fs"
	"path"

	"github.com/tidemill/tidemill/logical/connector"
)

// published lists an output directory by its manifest; ok is false if it is none.
func (o *opened) published() (files []foundFile, ok bool, err error) {
	dir, fsys := o.options.Path, o.env.FS
	manifest, ok, err := o.manifest()
	if err != nil || !ok {
		return nil, false, err
	}
	entries, err := readEntries(fsys, manifest)
	if errors.Is(err, fs.ErrNotExist) {
		o.warnGone()
		return nil, false, nil
	}
	if errors.Is(err, errCorrupt) {
		return nil, false, damagedManifest(dir, err)
	}
	if err != nil {
		return nil, false, err
	}
	for _, e := range fold(entries) {
		for _, f := range e.Files {
			if f.Side != "" || !o.lister.accept(f.Path) {
				continue
			}
			name := path.Join(dir, f.Path)
			info, err := fsys.Stat(name)
			if err != nil {
				if isAbsent(err) {
					o.lister.warn(name, "%s is in the manifest but gone, and is skipped", name)
					continue
				}
				return nil, false, err
			}
			files = append(files, foundFile{f.Path, connector.FileIdentity{Path: name, Size: info.Size(), ModTime: info.ModTime().UnixMicro()}})
		}
	}
	return files, true, nil
}

// verify reads the whole manifest, which must be as it was written, and warns of files in
// it that are not: what somebody else took out of the output, or wrote into it, is theirs
// to know about, and no reason to stop adding to it.
func (s *Sink) verify() error {
	entries, err := s.names.read(s.fs, s.control(manifestDir))
	if err != nil {
		return err
	}
	differ, first := 0, ""
	for _, e := range fold(entries) {
		for _, f := range e.Files {
			name := path.Join(s.sideDir(f.Side), f.Path)
			what := ""
			info, err := s.fs.Stat(name)
			switch {
			case isAbsent(err):
				what = "is gone"
			case err != nil:
				return err
			case info.Size() != f.Size:
				what = fmt.Sprintf("has %d bytes, %d were written", info.Size(), f.Size)
			default:
				continue
			}
			if differ++; differ == 1 {
				first = name + " " + what
			}
		}
	}
	if differ > 0 {
		s.env.Warnf("%s: %d of its committed files are not what was written: %s", s.dir, differ, first)
	}
	return nil
}
