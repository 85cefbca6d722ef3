//go:build unix

package file

import (
	"io/fs"
	"syscall"
)

// dirKey tells directories apart, whatever way they were reached by.
type dirKey struct{ dev, ino uint64 }

func keyOf(info fs.FileInfo) (dirKey, bool) {
	s, ok := info.Sys().(*syscall.Stat_t)
	if !ok {
		return dirKey{}, false
	}
	return dirKey{uint64(s.Dev), s.Ino}, true
}
