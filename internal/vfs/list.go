package vfs

import (
	"errors"
	"io"
	"io/fs"
	"os"
)

// ListPart is how many entries List gives at a time. A directory with fewer comes in one
// part.
const ListPart = 4096

// Lister is an FS that need not hold a whole directory in memory to list it.
type Lister interface {
	// List calls visit with the entries of the directory, as ReadDir gives them but in no
	// particular order, in parts: every one but the last has ListPart of them. An error of
	// visit ends it and is returned.
	List(dir string, visit func(part []fs.DirEntry) error) error
}

// List lists a directory in parts, or in one on a filesystem that cannot. visit is called
// at least once if there is no error.
func List(fsys FS, dir string, visit func(part []fs.DirEntry) error) error {
	if l, ok := fsys.(Lister); ok {
		return l.List(dir, visit)
	}
	entries, err := fsys.ReadDir(dir)
	if err != nil {
		return err
	}
	return visit(entries)
}

// List implements Lister.
func (osFS) List(dir string, visit func(part []fs.DirEntry) error) error {
	f, err := os.Open(dir)
	if err != nil {
		return err
	}
	defer f.Close()
	for first := true; ; first = false {
		part, err := f.ReadDir(ListPart)
		if errors.Is(err, io.EOF) {
			if first {
				return visit(nil)
			}
			return nil
		}
		if err != nil {
			return err
		}
		if err := visit(part); err != nil {
			return err
		}
	}
}
