package vfs

import (
	"errors"
	"io"
	"io/fs"
)

// ErrLocked says that a lock is held, by another process or by this one. Test
// for it with errors.Is.
var ErrLocked = errors.New("locked by another process")

// FS is a filesystem. All methods may be called by several goroutines at a
// time. Errors are *fs.PathError or *os.LinkError values, which name the
// path and answer errors.Is for fs.ErrNotExist, fs.ErrExist, fs.ErrPermission
// and the system's error numbers.
type FS interface {
	// Open opens the file for reading, following links. Nothing on disk
	// changes. Opening something that is not a regular file may block or
	// fail: callers that do not know what a name is call Stat first.
	Open(name string) (File, error)

	// Create opens the file for writing at its start, and makes it if it is
	// not there; an existing file is cut to nothing. It may be read through
	// the returned File, too. After a crash the name may be missing until its
	// directory is synced, and a file that was cut may have its old content,
	// none, or part of the new one, until it is synced.
	Create(name string) (File, error)

	// OpenDir opens the directory, only so that it can be synced. Its Sync
	// makes the names in it durable, not the bytes of the files.
	OpenDir(name string) (File, error)

	// Rename gives the file or directory a new name and replaces a file that
	// has it. It is atomic: after a crash there is the old state or the new
	// one. It is durable once the directory of newname is synced. It does not
	// sync the bytes of the file: a file renamed before its Sync may be found
	// under the new name with nothing in it.
	Rename(oldname, newname string) error

	// Remove takes a file, a link or an empty directory away. After a crash
	// it may be back, until its directory is synced. Files open at the time
	// can still be read.
	Remove(name string) error

	// MkdirAll makes the directory and its missing parents. None of them is
	// durable: use the function MkdirAll, which syncs what it makes.
	MkdirAll(dir string) error

	// ReadDir lists the directory in byte order of names. Links are listed as
	// links, not followed. Names changed while it runs may or may not be
	// there.
	ReadDir(dir string) ([]fs.DirEntry, error)

	// Stat describes the file, following links; a dangling link gives
	// fs.ErrNotExist.
	Stat(name string) (fs.FileInfo, error)

	// Lock takes the exclusive lock that the file name stands for, and makes
	// the file if it is not there; its content is neither read nor written.
	// It does not wait: a lock that is held, by this process too, gives
	// ErrLocked. Close releases it and leaves the file; so does the end of
	// the process, however it ends.
	Lock(name string) (io.Closer, error)
}

// File is an open file. ReadAt may be called by several goroutines at a time,
// the other methods by one.
type File interface {
	io.Reader
	io.ReaderAt
	// Write appends at the place the last Write ended. After a crash the
	// bytes may be missing, zero or cut, until Sync.
	io.Writer
	// Close closes the file and syncs nothing.
	io.Closer

	// Sync returns once the bytes written so far (for OpenDir: the names in
	// the directory) survive a crash. An error is final: write the file
	// anew, do not call Sync again.
	Sync() error

	// Stat describes the open file, also after it was renamed or removed.
	Stat() (fs.FileInfo, error)

	// Name is the name the file was opened by.
	Name() string
}

// Op names a call of FS or File, for traces and for fault rules.
type Op string

// The calls. OpSync is File.Sync of files and of directories alike.
const (
	OpOpen    Op = "open"
	OpCreate  Op = "create"
	OpOpenDir Op = "opendir"
	OpRename  Op = "rename"
	OpRemove  Op = "remove"
	OpMkdir   Op = "mkdir"
	OpReadDir Op = "readdir"
	OpStat    Op = "stat"
	OpLock    Op = "lock"
	OpRead    Op = "read"
	OpWrite   Op = "write"
	OpSync    Op = "sync"
	OpClose   Op = "close"
)

// Mutates reports whether the call may change what is on disk or what of it is
// durable.
func (op Op) Mutates() bool {
	switch op {
	case OpCreate, OpRename, OpRemove, OpMkdir, OpLock, OpWrite, OpSync:
		return true
	}
	return false
}
