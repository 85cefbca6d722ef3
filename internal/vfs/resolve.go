package vfs

import (
	"path"
	"path/filepath"
)

// Resolver is an FS that knows where a name leads.
type Resolver interface {
	// Resolve gives the one absolute name of a file, with the links on the way to it
	// followed as far as there is something; the rest is kept as it is.
	Resolve(name string) string
}

// Resolve tells names of one file apart from those of two. On a filesystem that does not
// know it is the name, tidied.
func Resolve(fsys FS, name string) string {
	if r, ok := fsys.(Resolver); ok {
		return r.Resolve(name)
	}
	return path.Clean(name)
}

// Resolve implements Resolver.
func (osFS) Resolve(name string) string {
	abs, err := filepath.Abs(name)
	if err != nil {
		return path.Clean(name)
	}
	rest := ""
	for there := abs; ; there = filepath.Dir(there) {
		if real, err := filepath.EvalSymlinks(there); err == nil {
			return filepath.ToSlash(filepath.Join(real, rest))
		}
		if there == filepath.Dir(there) {
			return filepath.ToSlash(abs)
		}
		rest = filepath.Join(filepath.Base(there), rest)
	}
}
