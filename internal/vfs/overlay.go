package vfs

import (
	"cmp"
	"errors"
	"io"
	"io/fs"
	"maps"
	"os"
	"path"
	"slices"
	"sync"
	"syscall"
)

// Overlay is a filesystem over another one that it never changes: what is written,
// renamed or removed is so in memory alone, and goes with the Overlay. A query that runs
// on one leaves no trace. All methods may be called by several goroutines at a time.
type Overlay struct {
	mu   sync.Mutex
	base FS
	top  *Mem
	gone map[string]bool // names of base that are hidden, with all below them
}

var _ FS = (*Overlay)(nil)

// NewOverlay returns an overlay that shows what base has.
func NewOverlay(base FS) *Overlay {
	return &Overlay{base: base, top: NewMem(), gone: map[string]bool{}}
}

// Hide makes the file or directory of base look as if it had never been there.
func (o *Overlay) Hide(name string) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.gone[path.Clean(name)] = true
}

// hidden says whether base is not asked for the name.
func (o *Overlay) hidden(name string) bool {
	for name = path.Clean(name); ; name = path.Dir(name) {
		if o.gone[name] {
			return true
		}
		if up := path.Dir(name); up == name {
			return false
		}
	}
}

// either asks the memory, then, for what is not there, the base.
func either[T any](o *Overlay, name string, top, base func(string) (T, error)) (T, error) {
	v, err := top(name)
	if !errors.Is(err, fs.ErrNotExist) || o.hidden(name) {
		return v, err
	}
	return base(name)
}

// Open implements FS.
func (o *Overlay) Open(name string) (File, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	return either(o, name, o.top.Open, o.base.Open)
}

// Stat implements FS.
func (o *Overlay) Stat(name string) (fs.FileInfo, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.stat(name)
}

func (o *Overlay) stat(name string) (fs.FileInfo, error) {
	return either(o, name, o.top.Stat, o.base.Stat)
}

// ReadDir implements FS.
func (o *Overlay) ReadDir(dir string) ([]fs.DirEntry, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.readDir(dir)
}

func (o *Overlay) readDir(dir string) ([]fs.DirEntry, error) {
	above, err := o.top.ReadDir(dir)
	if err != nil && !errors.Is(err, fs.ErrNotExist) || o.hidden(dir) {
		return above, err
	}
	below, baseErr := o.base.ReadDir(dir)
	if baseErr != nil {
		if errors.Is(baseErr, fs.ErrNotExist) && err == nil {
			return above, nil
		}
		return nil, baseErr
	}
	all := map[string]fs.DirEntry{}
	for _, e := range below {
		if !o.gone[path.Join(path.Clean(dir), e.Name())] {
			all[e.Name()] = e
		}
	}
	for _, e := range above {
		all[e.Name()] = e
	}
	return slices.SortedFunc(maps.Values(all), func(a, b fs.DirEntry) int { return cmp.Compare(a.Name(), b.Name()) }), nil
}

// raise makes the directory of a name in memory, if it is one in base.
func (o *Overlay) raise(name string) error {
	dir := path.Dir(path.Clean(name))
	info, err := o.stat(dir)
	switch {
	case err != nil:
		return err
	case !info.IsDir():
		return pathError("open", name, errNotDir)
	}
	return o.top.MkdirAll(dir)
}

// Create implements FS.
func (o *Overlay) Create(name string) (File, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.create(name)
}

func (o *Overlay) create(name string) (File, error) {
	if info, err := o.stat(name); err == nil && info.IsDir() {
		return nil, pathError("open", name, syscall.EISDIR)
	}
	if err := o.raise(name); err != nil {
		return nil, err
	}
	return o.top.Create(name)
}

// OpenDir implements FS.
func (o *Overlay) OpenDir(name string) (File, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	info, err := o.stat(name)
	switch {
	case err != nil:
		return nil, err
	case !info.IsDir():
		return nil, pathError("open", name, errNotDir)
	}
	if err := o.top.MkdirAll(name); err != nil {
		return nil, err
	}
	return o.top.OpenDir(name)
}

// MkdirAll implements FS.
func (o *Overlay) MkdirAll(dir string) error {
	o.mu.Lock()
	defer o.mu.Unlock()
	for up := path.Clean(dir); ; up = path.Dir(up) {
		info, err := o.stat(up)
		if err == nil && !info.IsDir() {
			return pathError("mkdir", dir, errNotDir)
		}
		if err == nil || up == path.Dir(up) {
			break
		}
	}
	return o.top.MkdirAll(dir)
}

// Lock implements FS. Locks of base are not seen: what an Overlay does disturbs nobody.
func (o *Overlay) Lock(name string) (io.Closer, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if err := o.raise(name); err != nil {
		return nil, err
	}
	return o.top.Lock(name)
}

// Remove implements FS.
func (o *Overlay) Remove(name string) error {
	o.mu.Lock()
	defer o.mu.Unlock()
	info, err := o.stat(name)
	if err != nil {
		return err
	}
	if info.IsDir() {
		if list, err := o.readDir(name); err != nil || len(list) > 0 {
			return errors.Join(err, pathError("remove", name, syscall.ENOTEMPTY))
		}
	}
	o.gone[path.Clean(name)] = true
	if err := o.top.Remove(name); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	return nil
}

// Rename implements FS. A directory of base cannot be renamed: nothing here does.
func (o *Overlay) Rename(oldname, newname string) error {
	o.mu.Lock()
	defer o.mu.Unlock()
	if _, err := o.stat(oldname); err != nil {
		return &os.LinkError{Op: "rename", Old: oldname, New: newname, Err: fs.ErrNotExist}
	}
	if err := o.raise(newname); err != nil {
		return err
	}
	if err := o.replaceable(oldname, newname); err != nil {
		return &os.LinkError{Op: "rename", Old: oldname, New: newname, Err: err}
	}
	if _, err := o.top.Stat(oldname); errors.Is(err, fs.ErrNotExist) {
		if err := o.copyUp(oldname); err != nil {
			return err
		}
	}
	if err := o.top.Rename(oldname, newname); err != nil {
		return err
	}
	if path.Clean(oldname) != path.Clean(newname) {
		o.gone[path.Clean(oldname)] = true
	}
	return nil
}

// replaceable says why what is only in base keeps a name from being taken.
func (o *Overlay) replaceable(oldname, newname string) error {
	from, err := o.stat(oldname)
	if err != nil {
		return err
	}
	to, err := o.stat(newname)
	if err != nil {
		return nil // nothing is there
	}
	switch {
	case to.IsDir() && !from.IsDir():
		return syscall.EISDIR
	case !to.IsDir() && from.IsDir():
		return errNotDir
	}
	return nil
}

// copyUp copies a file of base into memory, under its name.
func (o *Overlay) copyUp(name string) error {
	data, err := ReadFile(o.base, name)
	if err != nil {
		return err
	}
	f, err := o.create(name)
	if err != nil {
		return err
	}
	_, err = f.Write(data)
	return errors.Join(err, f.Close())
}
