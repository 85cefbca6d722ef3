package vfs

import (
	"bufio"
	"errors"
	"io"
	"io/fs"
	"path"
	"slices"
	"strings"
	"sync"
)

// TempName is the name of the temporary file that WriteAtomic uses for name. It
// is always the same, so that a left-over is overwritten by the next try and
// traces are stable; one name is written by one goroutine at a time.
func TempName(name string) string {
	dir, base := path.Split(name)
	return dir + "." + base + ".tmp"
}

// IsTemp reports whether the last element of name is that of a temporary file,
// which may be removed whenever no writer runs.
func IsTemp(name string) bool {
	base := path.Base(name)
	return strings.HasPrefix(base, ".") && strings.HasSuffix(base, ".tmp")
}

// WriteAtomic gives the file exactly this content, durably. After a crash, or an
// error, the file has its old content (or is absent as before) or the new one,
// whole; after a nil return it has the new one. A temporary file may be left.
func WriteAtomic(fsys FS, name string, data []byte) error {
	return writeAtomic(fsys, name, func(f File) error {
		_, err := f.Write(data)
		return err
	})
}

// WriteAtomicFunc is WriteAtomic with the content written by write, buffered. An
// error of write is returned as it is and leaves the file as it was. A large file is
// synced as it grows.
func WriteAtomicFunc(fsys FS, name string, write func(w io.Writer) error) error {
	return writeAtomic(fsys, name, func(f File) error {
		w := writers.Get().(*bufio.Writer)
		w.Reset(&steadyWriter{file: f})
		defer func() {
			w.Reset(nil)
			writers.Put(w)
		}()
		if err := write(w); err != nil {
			return err
		}
		return w.Flush()
	})
}

var writers = sync.Pool{New: func() any { return bufio.NewWriterSize(nil, 1<<16) }}

// syncEvery is how many bytes of a large file are written before they are synced: one
// sync of tens of megabytes at the end would hold up every other sync on the device
// for as long, and with it the batches.
const syncEvery = 4 << 20

// steadyWriter syncs a file every syncEvery bytes.
type steadyWriter struct {
	file     File
	unsynced int
}

func (w *steadyWriter) Write(p []byte) (int, error) {
	n, err := w.file.Write(p)
	w.unsynced += n
	if err == nil && w.unsynced >= syncEvery {
		w.unsynced = 0
		err = w.file.Sync()
	}
	return n, err
}

func writeAtomic(fsys FS, name string, write func(File) error) error {
	tmp := TempName(name)
	if err := writeSynced(fsys, tmp, write); err != nil {
		// Tidy, but the first error is the one that counts.
		_ = fsys.Remove(tmp)
		return err
	}
	// A crash here leaves the temporary file, durable or not; name is as before.
	if err := fsys.Rename(tmp, name); err != nil {
		_ = fsys.Remove(tmp)
		return err
	}
	// A crash here leaves the old content or the new one.
	return SyncDir(fsys, path.Dir(name))
}

// Draft is WriteAtomic in two steps, for content that is known before it may count: its
// bytes become durable beside other work, and only the name remains to be given.
type Draft struct {
	fs   FS
	name string
	file File // nil once it is synced
}

// WriteDraft writes data to the temporary file of name. Sync and Publish must follow, or
// Discard.
func WriteDraft(fsys FS, name string, data []byte) (*Draft, error) {
	f, err := fsys.Create(TempName(name))
	if err != nil {
		return nil, err
	}
	if _, err := f.Write(data); err != nil {
		_ = f.Close()
		_ = fsys.Remove(TempName(name))
		return nil, err
	}
	return &Draft{fs: fsys, name: name, file: f}, nil
}

// Sync makes the bytes durable. It may run beside the syncs of other files.
func (d *Draft) Sync() error {
	f := d.file
	d.file = nil
	return errors.Join(f.Sync(), f.Close())
}

// Publish gives the file its name, durably: what WriteAtomic promises holds from here on.
// Sync must have returned nil.
func (d *Draft) Publish() error {
	if err := d.fs.Rename(TempName(d.name), d.name); err != nil {
		return err
	}
	return SyncDir(d.fs, path.Dir(d.name))
}

// Discard removes the temporary file of a Draft that was not published.
func (d *Draft) Discard() error {
	if d.file != nil {
		_ = d.file.Close()
		d.file = nil
	}
	return removeIfThere(d.fs, TempName(d.name))
}

// writeSynced makes the file and returns once its bytes are durable; its name
// is not, yet.
func writeSynced(fsys FS, name string, write func(File) error) error {
	f, err := fsys.Create(name)
	if err != nil {
		return err
	}
	if err := write(f); err != nil {
		_ = f.Close()
		return err
	}
	if err := f.Sync(); err != nil {
		_ = f.Close()
		return err
	}
	return f.Close()
}

// SyncDir makes the names in the directory durable.
func SyncDir(fsys FS, dir string) error {
	d, err := fsys.OpenDir(dir)
	if err != nil {
		return err
	}
	if err := d.Sync(); err != nil {
		_ = d.Close()
		return err
	}
	return d.Close()
}

// MkdirAll makes directories and their missing parents, and syncs the parent of each
// directory it made, once: when it returns nil they survive a crash. Directories that were
// there already are left alone.
func MkdirAll(fsys FS, dirs ...string) error {
	parents, err := MkdirUnsynced(fsys, dirs...)
	if err != nil {
		return err
	}
	for _, d := range parents {
		if err := SyncDir(fsys, d); err != nil {
			return err
		}
	}
	return nil
}

// MkdirUnsynced makes directories and their missing parents. They survive a crash once the
// directories it returns were synced.
func MkdirUnsynced(fsys FS, dirs ...string) (parents []string, err error) {
	listed := map[string]bool{}
	for _, dir := range dirs {
		missing, err := missingDirs(fsys, path.Clean(dir))
		if err != nil {
			return nil, err
		}
		if len(missing) == 0 {
			continue
		}
		if err := fsys.MkdirAll(path.Clean(dir)); err != nil {
			return nil, err
		}
		for _, m := range slices.Backward(missing) {
			if p := path.Dir(m); !listed[p] {
				listed[p] = true
				parents = append(parents, p)
			}
		}
	}
	return parents, nil
}

// missingDirs is dir and its parents as far as they are not there, the innermost first.
func missingDirs(fsys FS, dir string) (missing []string, err error) {
	for d := dir; ; d = path.Dir(d) {
		info, err := fsys.Stat(d)
		if err == nil && !info.IsDir() {
			return nil, &fs.PathError{Op: "mkdir", Path: d, Err: errNotDir}
		}
		if err == nil {
			return missing, nil
		}
		if !errors.Is(err, fs.ErrNotExist) {
			return nil, err
		}
		missing = append(missing, d)
		if d == path.Dir(d) {
			return missing, nil
		}
	}
}

// ReadFile returns the content of the file.
func ReadFile(fsys FS, name string) ([]byte, error) {
	f, err := fsys.Open(name)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		return nil, err
	}
	// One byte more than the size, so that the read that finds the end does
	// not grow the slice.
	data := make([]byte, 0, max(info.Size(), 0)+1)
	for {
		n, err := f.Read(data[len(data):cap(data)])
		data = data[:len(data)+n]
		if err == io.EOF {
			return data, nil
		}
		if err != nil {
			return nil, err
		}
		if len(data) == cap(data) {
			data = append(data, 0)[:len(data)]
		}
	}
}

// RemoveAll removes dir and everything in it, links as links. A name that is not
// there is fine. After a crash any part may be back, until the directories
// concerned are synced; so do not rely on the order.
func RemoveAll(fsys FS, dir string) error {
	entries, err := fsys.ReadDir(dir)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil
	case err != nil && !isNotDir(err):
		return err
	}
	for _, e := range entries {
		name := path.Join(dir, e.Name())
		if e.IsDir() {
			err = RemoveAll(fsys, name)
		} else {
			err = removeIfThere(fsys, name)
		}
		if err != nil {
			return err
		}
	}
	return removeIfThere(fsys, dir)
}

// RemoveTemp removes the temporary files directly in dir. It is for the one
// writer of the directory, before it writes. A missing directory is fine.
func RemoveTemp(fsys FS, dir string) error {
	entries, err := fsys.ReadDir(dir)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	for _, e := range entries {
		if e.IsDir() || !IsTemp(e.Name()) {
			continue
		}
		if err := removeIfThere(fsys, path.Join(dir, e.Name())); err != nil {
			return err
		}
	}
	return nil
}

func removeIfThere(fsys FS, name string) error {
	if err := fsys.Remove(name); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	return nil
}

// Walk calls visit for everything below dir (not for dir itself) in byte order
// of names, a directory before what is in it. Links are not followed. visit may
// return fs.SkipDir for a directory; any other error ends the walk and is
// returned, as is an error of listing.
func Walk(fsys FS, dir string, visit func(name string, e fs.DirEntry) error) error {
	entries, err := fsys.ReadDir(dir)
	if err != nil {
		return err
	}
	for _, e := range entries {
		name := path.Join(dir, e.Name())
		err := visit(name, e)
		if errors.Is(err, fs.SkipDir) && e.IsDir() {
			continue
		}
		if err != nil {
			return err
		}
		if e.IsDir() {
			if err := Walk(fsys, name, visit); err != nil {
				return err
			}
		}
	}
	return nil
}
