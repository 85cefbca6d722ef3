package file

import (
	"errors"
	"fmt"
	"io/fs"
	"path"
	"strconv"

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
	if id, _, err := readIdentity(fsys, dir); err == nil && o.layout != nil {
		o.replace(id)
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
	decided, err := s.decided()
	if err != nil {
		return err
	}
	differ, first := 0, ""
	for _, e := range fold(entries) {
		for _, f := range e.Files {
			name := path.Join(s.sideDir(f.Side), f.Path)
			if decided[name] {
				continue // it may have been replaced already
			}
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
		are := "are"
		if differ == 1 {
			are = "is"
		}
		s.env.Warnf("%s: %d of its committed files %s not what was written: %s", s.dir, differ, are, first)
	}
	return nil
}

// decided are the files of batches that are decided but not finished. Reading them is not
// to fail here: Recover says what is wrong with them.
func (s *Sink) decided() (map[string]bool, error) {
	names := map[string]bool{}
	for _, id := range s.pending {
		entries, err := readManifestFile(s.fs, s.control(pendingName), strconv.FormatInt(id, 10))
		if errors.Is(err, errCorrupt) {
			continue
		}
		if err != nil {
			return nil, err
		}
		for _, e := range entries {
			for _, f := range e.Files {
				names[path.Join(s.sideDir(f.Side), f.Path)] = true
			}
		}
	}
	return names, nil
}
