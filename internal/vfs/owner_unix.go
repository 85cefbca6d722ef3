//go:build darwin || dragonfly || freebsd || linux || netbsd || openbsd

package vfs

import (
	"io/fs"
	"os"
	"syscall"
)

// TakeOwner gives f the owner and the group that old has, as far as this process may: what
// it may not change stays as it is.
func TakeOwner(f *os.File, old fs.FileInfo) {
	was, ok := old.Sys().(*syscall.Stat_t)
	if !ok {
		return
	}
	if f.Chown(int(was.Uid), int(was.Gid)) != nil {
		_ = f.Chown(-1, int(was.Gid)) // of its groups a user may choose
	}
}
