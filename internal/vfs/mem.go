package vfs

import (
	"io"
	"io/fs"
	"maps"
	"os"
	"path"
	"slices"
	"strings"
	"sync"
	"syscall"
	"time"
)

// Mem is a filesystem in memory that knows what a power cut would leave of it
// (Crash). Relative names are taken from its root, which always exists. All
// methods may be called by several goroutines at a time.
type Mem struct {
	mu      sync.Mutex
	root    *memNode
	pending []*dirChange // changes of names not yet durable, in order
	clock   func() time.Time
	last    time.Time // newest time given out, so that times only grow
	deny    func(op Op, name string) error
	opened  int // files not closed
	watches map[*memWatch]bool
}

// memNode is a file, a directory or a link. A directory has two images: names
// is what programs see, durable what a crash surely leaves. A file has two
// lengths of content in the same way.
type memNode struct {
	mode    fs.FileMode
	mtime   time.Time
	names   map[string]*memNode // directory
	durable map[string]*memNode // directory
	data    []byte              // file: replaced or appended to, never changed in place
	synced  []byte              // file: data at the last Sync
	target  string              // link
	locked  bool
}

// dirChange is one atomic change of names: one edit, or two for a rename.
type dirChange struct {
	edits []edit
	dir   *memNode // the directory whose Sync makes the change durable
}

// edit says that name in dir now stands for node; nil takes the name away.
type edit struct {
	dir  *memNode
	name string
	node *memNode
}

// entry is a place that changes may be made to.
type entry struct {
	dir  *memNode
	name string
}

// NewMem returns an empty filesystem, whose clock starts at 2024-01-01T00:00:00Z
// and moves a millisecond with every change.
func NewMem() *Mem {
	m := &Mem{last: time.Date(2024, 1, 1, 0, 0, 0, 0, time.UTC)}
	m.root = newMemDir(m.last)
	return m
}

func newMemDir(now time.Time) *memNode {
	return &memNode{
		mode:    fs.ModeDir | 0o777,
		mtime:   now,
		names:   map[string]*memNode{},
		durable: map[string]*memNode{},
	}
}

// SetClock makes now the source of modification times. A time before the newest
// one given out is replaced by that one, so that times never go back; use
// Chtimes for that. nil brings the built-in clock back.
func (m *Mem) SetClock(now func() time.Time) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.clock = now
}

// Chtimes sets the modification time of a file or directory. It is durable at once.
func (m *Mem) Chtimes(name string, mtime time.Time) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	n, err := m.find("chtimes", name)
	if err != nil {
		return err
	}
	n.mtime = mtime
	return nil
}

// Deny makes calls fail: rule is asked before each call on a name (not on an
// open file), and a non-nil answer becomes the call's error, wrapped with the
// name. It must not call m. nil allows everything again.
func (m *Mem) Deny(rule func(op Op, name string) error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.deny = rule
}

// Symlink makes newname a link to target, which is taken from the directory of
// newname when it is relative. The link is durable at once.
func (m *Mem) Symlink(target, newname string) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	dir, base, err := m.parent("symlink", newname)
	if err != nil {
		return err
	}
	if dir.names[base] != nil {
		return &os.LinkError{Op: "symlink", Old: target, New: newname, Err: fs.ErrExist}
	}
	m.change(dir, edit{dir, base, &memNode{mode: fs.ModeSymlink | 0o777, mtime: m.now(), target: target}})
	m.syncDir(dir)
	return nil
}

// OpenFiles is the number of files and directories opened and not yet closed.
func (m *Mem) OpenFiles() int {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.opened
}

func (m *Mem) now() time.Time {
	t := m.last.Add(time.Millisecond)
	if m.clock != nil {
		t = m.clock()
	}
	if t.After(m.last) {
		m.last = t
	}
	return m.last
}

func pathError(op, name string, err error) error {
	return &fs.PathError{Op: op, Path: name, Err: err}
}

// check asks the rule of Deny.
func (m *Mem) check(op Op, name string) error {
	if m.deny == nil {
		return nil
	}
	if err := m.deny(op, name); err != nil {
		return pathError(string(op), name, err)
	}
	return nil
}

// elements splits a name into the names on the way from the root.
func elements(name string) []string {
	clean := path.Clean("/" + name)
	if clean == "/" {
		return nil
	}
	return strings.Split(clean[1:], "/")
}

// maxLinks bounds the links followed for one name, as systems do.
const maxLinks = 40

// find returns what the name stands for, links followed.
func (m *Mem) find(op, name string) (*memNode, error) {
	links := 0
	n, err := m.walk(elements(name), &links)
	if err != nil {
		return nil, pathError(op, name, err)
	}
	return n, nil
}

// walk follows elements from the root. It keeps the way it came, to resolve
// relative links.
func (m *Mem) walk(elems []string, links *int) (*memNode, error) {
	n := m.root
	for i, elem := range elems {
		if !n.mode.IsDir() {
			return nil, errNotDir
		}
		next := n.names[elem]
		if next == nil {
			return nil, fs.ErrNotExist
		}
		if next.mode&fs.ModeSymlink != 0 {
			if *links++; *links > maxLinks {
				return nil, syscall.ELOOP
			}
			target := next.target
			if !path.IsAbs(target) {
				target = path.Join("/", path.Join(elems[:i]...), target)
			}
			var err error
			if next, err = m.walk(elements(target), links); err != nil {
				return nil, err
			}
		}
		n = next
	}
	return n, nil
}

// parent returns the directory of the name, which must exist, and the last
// element, which need not.
func (m *Mem) parent(op, name string) (*memNode, string, error) {
	elems := elements(name)
	if len(elems) == 0 {
		return nil, "", pathError(op, name, fs.ErrInvalid)
	}
	links := 0
	dir, err := m.walk(elems[:len(elems)-1], &links)
	if err == nil && !dir.mode.IsDir() {
		err = errNotDir
	}
	if err != nil {
		return nil, "", pathError(op, name, err)
	}
	return dir, elems[len(elems)-1], nil
}

// change makes the edits visible and notes them as not durable until dir is
// synced.
func (m *Mem) change(dir *memNode, edits ...edit) {
	for _, e := range edits {
		apply(e.dir.names, e)
		e.dir.mtime = m.now()
		for w := range m.watches {
			if e.node != nil && w.dirs[e.dir] {
				w.wake()
			}
		}
	}
	m.pending = append(m.pending, &dirChange{edits: edits, dir: dir})
}

func apply(names map[string]*memNode, e edit) {
	if e.node == nil {
		delete(names, e.name)
	} else {
		names[e.name] = e.node
	}
}

// syncDir makes the changes of dir durable, and with them the earlier changes
// they build on (a file is made in one directory, renamed into another, and
// only that one is synced).
func (m *Mem) syncDir(dir *memNode) {
	needed := map[entry]bool{}
	durable := make([]bool, len(m.pending))
	for i, c := range slices.Backward(m.pending) {
		durable[i] = c.dir == dir || slices.ContainsFunc(c.edits, func(e edit) bool {
			return needed[entry{e.dir, e.name}]
		})
		if durable[i] {
			for _, e := range c.edits {
				needed[entry{e.dir, e.name}] = true
			}
		}
	}
	var rest []*dirChange
	for i, c := range m.pending {
		if !durable[i] {
			rest = append(rest, c)
			continue
		}
		for _, e := range c.edits {
			apply(e.dir.durable, e)
		}
	}
	m.pending = rest
}

// Open implements FS.
func (m *Mem) Open(name string) (File, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if err := m.check(OpOpen, name); err != nil {
		return nil, err
	}
	n, err := m.find("open", name)
	if err != nil {
		return nil, err
	}
	return m.newFile(n, name, false), nil
}

// Create implements FS.
func (m *Mem) Create(name string) (File, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if err := m.check(OpCreate, name); err != nil {
		return nil, err
	}
	n, err := m.createNode("open", name)
	if err != nil {
		return nil, err
	}
	n.data = nil
	n.mtime = m.now()
	return m.newFile(n, name, true), nil
}

// createNode returns the file of that name and makes it if it is not there.
func (m *Mem) createNode(op, name string) (*memNode, error) {
	dir, base, err := m.parent(op, name)
	if err != nil {
		return nil, err
	}
	if dir.names[base] == nil {
		n := &memNode{mode: 0o666, mtime: m.now()}
		m.change(dir, edit{dir, base, n})
		return n, nil
	}
	n, err := m.find(op, name)
	if err != nil {
		return nil, err
	}
	if n.mode.IsDir() {
		return nil, pathError(op, name, syscall.EISDIR)
	}
	return n, nil
}

// OpenDir implements FS.
func (m *Mem) OpenDir(name string) (File, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if err := m.check(OpOpenDir, name); err != nil {
		return nil, err
	}
	n, err := m.find("open", name)
	if err != nil {
		return nil, err
	}
	if !n.mode.IsDir() {
		return nil, pathError("open", name, errNotDir)
	}
	return m.newFile(n, name, false), nil
}

// Rename implements FS.
func (m *Mem) Rename(oldname, newname string) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	for _, name := range []string{oldname, newname} {
		if err := m.check(OpRename, name); err != nil {
			return err
		}
	}
	from, oldbase, err := m.parent("rename", oldname)
	if err != nil {
		return err
	}
	to, newbase, err := m.parent("rename", newname)
	if err != nil {
		return err
	}
	n, there := from.names[oldbase], to.names[newbase]
	if err := renameAllowed(n, there, to, m.root); err != nil {
		return &os.LinkError{Op: "rename", Old: oldname, New: newname, Err: err}
	}
	if n == there {
		return nil
	}
	m.change(to, edit{from, oldbase, nil}, edit{to, newbase, n})
	return nil
}

// renameAllowed says why n may not take the place of there in the directory to.
func renameAllowed(n, there, to, root *memNode) error {
	switch {
	case n == nil:
		return fs.ErrNotExist
	case n.mode.IsDir() && (n == to || contains(n, to)):
		return fs.ErrInvalid
	case there == nil || there == n:
		return nil
	case there.mode.IsDir() && !n.mode.IsDir():
		return syscall.EISDIR
	case !there.mode.IsDir() && n.mode.IsDir():
		return errNotDir
	case there.mode.IsDir() && len(there.names) > 0:
		return syscall.ENOTEMPTY
	}
	return nil
}

// contains reports whether n is somewhere below dir.
func contains(dir, n *memNode) bool {
	for _, c := range dir.names {
		if c == n || c.mode.IsDir() && contains(c, n) {
			return true
		}
	}
	return false
}

// Remove implements FS.
func (m *Mem) Remove(name string) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	if err := m.check(OpRemove, name); err != nil {
		return err
	}
	dir, base, err := m.parent("remove", name)
	if err != nil {
		return err
	}
	n := dir.names[base]
	if n == nil {
		return pathError("remove", name, fs.ErrNotExist)
	}
	if len(n.names) > 0 {
		return pathError("remove", name, syscall.ENOTEMPTY)
	}
	m.change(dir, edit{dir, base, nil})
	return nil
}

// MkdirAll implements FS.
func (m *Mem) MkdirAll(name string) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	if err := m.check(OpMkdir, name); err != nil {
		return err
	}
	elems := elements(name)
	dir := m.root
	for i, elem := range elems {
		if dir.names[elem] == nil {
			m.change(dir, edit{dir, elem, newMemDir(m.now())})
		}
		links := 0
		next, err := m.walk(elems[:i+1], &links)
		if err == nil && !next.mode.IsDir() {
			err = errNotDir
		}
		if err != nil {
			return pathError("mkdir", name, err)
		}
		dir = next
	}
	return nil
}

// ReadDir implements FS.
func (m *Mem) ReadDir(name string) ([]fs.DirEntry, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if err := m.check(OpReadDir, name); err != nil {
		return nil, err
	}
	n, err := m.find("open", name)
	if err != nil {
		return nil, err
	}
	if !n.mode.IsDir() {
		return nil, pathError("readdir", name, errNotDir)
	}
	entries := make([]fs.DirEntry, 0, len(n.names))
	for _, base := range slices.Sorted(maps.Keys(n.names)) {
		entries = append(entries, fs.FileInfoToDirEntry(n.names[base].info(base)))
	}
	return entries, nil
}

// Stat implements FS.
func (m *Mem) Stat(name string) (fs.FileInfo, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if err := m.check(OpStat, name); err != nil {
		return nil, err
	}
	n, err := m.find("stat", name)
	if err != nil {
		return nil, err
	}
	return n.info(path.Base(path.Clean("/" + name))), nil
}

// Lock implements FS.
func (m *Mem) Lock(name string) (io.Closer, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if err := m.check(OpLock, name); err != nil {
		return nil, err
	}
	n, err := m.createNode("lock", name)
	if err != nil {
		return nil, err
	}
	if n.locked {
		return nil, pathError("lock", name, ErrLocked)
	}
	n.locked = true
	return &memLock{m: m, node: n}, nil
}

// memLock is a lock that is held.
type memLock struct {
	m    *Mem
	node *memNode
	done bool
}

// Close releases the lock, once.
func (l *memLock) Close() error {
	l.m.mu.Lock()
	defer l.m.mu.Unlock()
	if l.done {
		return fs.ErrClosed
	}
	l.done = true
	l.node.locked = false
	return nil
}

func (n *memNode) info(name string) memInfo {
	return memInfo{name: name, size: int64(len(n.data)), mode: n.mode, mtime: n.mtime}
}

// memInfo is a fs.FileInfo.
type memInfo struct {
	name  string
	size  int64
	mode  fs.FileMode
	mtime time.Time
}

func (i memInfo) Name() string       { return i.name }
func (i memInfo) Size() int64        { return i.size }
func (i memInfo) Mode() fs.FileMode  { return i.mode }
func (i memInfo) ModTime() time.Time { return i.mtime }
func (i memInfo) IsDir() bool        { return i.mode.IsDir() }
func (i memInfo) Sys() any           { return nil }
