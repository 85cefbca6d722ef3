package vfs

import (
	"os"
	"path"
	"path/filepath"
)

// Resolver is an FS that knows where a name leads.
type Resolver interface {
	// Resolve gives the one absolute name of a file, with the links on the way to it
	// followed, those to nothing too; what is not there is kept as it is.
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
	rest, links := "", 0
	for there := abs; ; {
		if real, err := filepath.EvalSymlinks(there); err == nil {
			return filepath.ToSlash(filepath.Join(real, rest))
		}
		above := filepath.Dir(there)
		if there == above {
			return filepath.ToSlash(abs)
		}
		if to, err := os.Readlink(there); err == nil && links < mostLinks { // to nothing, so far
			if !filepath.IsAbs(to) {
				to = filepath.Join(osFS{}.Resolve(above), to)
			}
			there, links = filepath.Clean(to), links+1
			continue
		}
		rest, there = filepath.Join(filepath.Base(there), rest), above
	}
}

// mostLinks is how many links are followed that lead to nothing: they may lead to each
// other.
const mostLinks = 40
