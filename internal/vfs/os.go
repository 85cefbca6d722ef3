package vfs

import (
	"errors"
	"io"
	"io/fs"
	"os"
	"runtime"
	"syscall"
)

var errNotDir error = syscall.ENOTDIR

// isNotDir reports whether a listing failed because the name is not that of a
// directory.
func isNotDir(err error) bool { return errors.Is(err, errNotDir) }

// OS returns the filesystem of the operating system. Names are used as they
// are; there is no root.
func OS() FS { return osFS{} }

type osFS struct{}

func (osFS) Open(name string) (File, error) {
	f, err := os.Open(name)
	if err != nil {
		return nil, err
	}
	return f, nil
}

func (osFS) Create(name string) (File, error) {
	f, err := os.OpenFile(name, os.O_RDWR|os.O_CREATE|os.O_TRUNC, 0o666)
	if err != nil {
		return nil, err
	}
	return f, nil
}

func (osFS) OpenDir(name string) (File, error) {
	f, err := os.Open(name)
	if err != nil {
		return nil, err
	}
	info, err := f.Stat()
	if err == nil && !info.IsDir() {
		err = &fs.PathError{Op: "open", Path: name, Err: errNotDir}
	}
	if err != nil {
		_ = f.Close()
		return nil, err
	}
	return osDir{f}, nil
}

func (osFS) Rename(oldname, newname string) error      { return os.Rename(oldname, newname) }
func (osFS) Remove(name string) error                  { return os.Remove(name) }
func (osFS) MkdirAll(dir string) error                 { return os.MkdirAll(dir, 0o777) }
func (osFS) ReadDir(dir string) ([]fs.DirEntry, error) { return os.ReadDir(dir) }
func (osFS) Stat(name string) (fs.FileInfo, error)     { return os.Stat(name) }

func (osFS) Lock(name string) (io.Closer, error) {
	for {
		f, err := os.OpenFile(name, os.O_RDWR|os.O_CREATE, 0o666)
		if err != nil {
			return nil, err
		}
		if err := lockFile(f); err != nil {
			_ = f.Close()
			return nil, &fs.PathError{Op: "lock", Path: name, Err: err}
		}
		// Who held it may have removed the file before giving it up: then the lock is on
		// something that nobody else finds.
		held, err := f.Stat()
		if err == nil {
			var there fs.FileInfo
			if there, err = os.Stat(name); err == nil && os.SameFile(held, there) {
				return f, nil // closing the file releases the lock
			}
		}
		_ = f.Close()
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			return nil, err
		}
	}
}

// osDir is a directory open to be synced.
type osDir struct{ *os.File }

// Sync syncs the directory. Windows has no such call, and makes names durable
// with the file.
func (d osDir) Sync() error {
	if runtime.GOOS == "windows" {
		return nil
	}
	return d.File.Sync()
}
