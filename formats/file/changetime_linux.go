package file

import (
	"io/fs"
	"syscall"
	"time"
)

// changeTime is when a directory was last changed in any way: unlike its modification time
// nobody can put it back, as rsync -t, tar and touch -d do.
func changeTime(info fs.FileInfo) time.Time {
	s, ok := info.Sys().(*syscall.Stat_t)
	if !ok {
		return info.ModTime()
	}
	return time.Unix(s.Ctim.Unix())
}
