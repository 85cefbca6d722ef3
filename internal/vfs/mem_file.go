package vfs

import (
	"io"
	"io/fs"
	"path"
	"syscall"
)

// memFile is an open file or directory of a Mem.
type memFile struct {
	m        *Mem
	node     *memNode
	name     string
	writable bool
	pos      int64 // of Read and Write
	closed   bool
}

func (m *Mem) newFile(n *memNode, name string, writable bool) *memFile {
	m.opened++
	return &memFile{m: m, node: n, name: name, writable: writable}
}

// Name implements File.
func (f *memFile) Name() string { return f.name }

// Read implements File.
func (f *memFile) Read(p []byte) (int, error) {
	f.m.mu.Lock()
	defer f.m.mu.Unlock()
	n, err := f.readAt(p, f.pos)
	f.pos += int64(n)
	if n > 0 {
		err = nil // the end is reported by the next call
	}
	return n, err
}

// ReadAt implements File.
func (f *memFile) ReadAt(p []byte, off int64) (int, error) {
	f.m.mu.Lock()
	defer f.m.mu.Unlock()
	return f.readAt(p, off)
}

func (f *memFile) readAt(p []byte, off int64) (int, error) {
	switch {
	case f.closed:
		return 0, pathError("read", f.name, fs.ErrClosed)
	case f.node.mode.IsDir():
		return 0, pathError("read", f.name, syscall.EISDIR)
	case off < 0:
		return 0, pathError("read", f.name, fs.ErrInvalid)
	case len(p) == 0:
		return 0, nil
	case off >= int64(len(f.node.data)):
		return 0, io.EOF
	}
	n := copy(p, f.node.data[off:])
	if n < len(p) {
		return n, io.EOF
	}
	return n, nil
}

// Write implements File.
func (f *memFile) Write(p []byte) (int, error) {
	f.m.mu.Lock()
	defer f.m.mu.Unlock()
	switch {
	case f.closed:
		return 0, pathError("write", f.name, fs.ErrClosed)
	case !f.writable:
		return 0, pathError("write", f.name, syscall.EBADF)
	}
	n := f.node
	if f.pos < int64(len(n.data)) {
		// Another Create cut the file and wrote: two writers of one file. The
		// old bytes may be shared with synced and with clones, so copy.
		data := make([]byte, max(len(n.data), int(f.pos)+len(p)))
		copy(data, n.data)
		copy(data[f.pos:], p)
		n.data = data
	} else {
		for int64(len(n.data)) < f.pos {
			n.data = append(n.data, 0)
		}
		n.data = append(n.data, p...)
	}
	f.pos += int64(len(p))
	n.mtime = f.m.now()
	return len(p), nil
}

// Sync implements File.
func (f *memFile) Sync() error {
	f.m.mu.Lock()
	defer f.m.mu.Unlock()
	switch {
	case f.closed:
		return pathError("sync", f.name, fs.ErrClosed)
	case f.node.mode.IsDir():
		f.m.syncDir(f.node)
	default:
		f.node.synced = f.node.data[:len(f.node.data):len(f.node.data)]
	}
	return nil
}

// Stat implements File.
func (f *memFile) Stat() (fs.FileInfo, error) {
	f.m.mu.Lock()
	defer f.m.mu.Unlock()
	if f.closed {
		return nil, pathError("stat", f.name, fs.ErrClosed)
	}
	return f.node.info(path.Base(path.Clean("/" + f.name))), nil
}

// Close implements File.
func (f *memFile) Close() error {
	f.m.mu.Lock()
	defer f.m.mu.Unlock()
	if f.closed {
		return pathError("close", f.name, fs.ErrClosed)
	}
	f.closed = true
	f.m.opened--
	return nil
}
