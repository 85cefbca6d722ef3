package vfs

import (
	"fmt"
	"io"
	"io/fs"
	"path"
	"strings"
	"sync"
)

// Trace is a filesystem that passes everything to another one and notes each
// call that may change the disk, in the order the calls end, for golden files:
//
//	mkdir ckpt/offsets
//	create ckpt/offsets/.0.tmp
//	write ckpt/offsets/.0.tmp 512
//	sync ckpt/offsets/.0.tmp
//	rename ckpt/offsets/.0.tmp ckpt/offsets/0
//	syncdir ckpt/offsets
//	remove ckpt/offsets/0
//	lock ckpt/lock
//	unlock ckpt/lock
//
// Writes that follow each other on one file are one line. A call that fails has
// " error" at its end.
type Trace struct {
	fs    FS
	root  string
	reads bool

	mu    sync.Mutex
	lines []traceLine
}

// traceLine is a line; writes keep their count so that the next one is added.
type traceLine struct {
	text    string
	written int64
	file    *traceFile // of a write
}

// NewTrace returns a Trace over fsys. Names below root are printed without it.
func NewTrace(fsys FS, root string) *Trace {
	return &Trace{fs: fsys, root: strings.TrimSuffix(path.Clean(root), "/") + "/"}
}

// Reads makes the trace note open, readdir and stat, too, from now on.
func (t *Trace) Reads(on bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.reads = on
}

// Take returns the lines noted since the last Take.
func (t *Trace) Take() []string {
	t.mu.Lock()
	defer t.mu.Unlock()
	lines := make([]string, len(t.lines))
	for i, l := range t.lines {
		lines[i] = l.text
		if l.file != nil {
			lines[i] = fmt.Sprintf("%s %d", l.text, l.written)
		}
	}
	t.lines = nil
	return lines
}

func (t *Trace) short(name string) string {
	if rest, ok := strings.CutPrefix(path.Clean(name), t.root); ok {
		return rest
	}
	return path.Clean(name)
}

func (t *Trace) note(err error, what string, names ...string) {
	for _, name := range names {
		what += " " + t.short(name)
	}
	if err != nil {
		what += " error"
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	t.lines = append(t.lines, traceLine{text: what})
}

func (t *Trace) noteRead(err error, what, name string) {
	t.mu.Lock()
	reads := t.reads
	t.mu.Unlock()
	if reads {
		t.note(err, what, name)
	}
}

// Open implements FS.
func (t *Trace) Open(name string) (File, error) {
	f, err := t.fs.Open(name)
	t.noteRead(err, "open", name)
	return f, err
}

// Create implements FS.
func (t *Trace) Create(name string) (File, error) {
	f, err := t.fs.Create(name)
	t.note(err, "create", name)
	if err != nil {
		return nil, err
	}
	return &traceFile{File: f, t: t, sync: "sync"}, nil
}

// OpenDir implements FS.
func (t *Trace) OpenDir(name string) (File, error) {
	f, err := t.fs.OpenDir(name)
	if err != nil {
		t.note(err, "opendir", name)
		return nil, err
	}
	return &traceFile{File: f, t: t, sync: "syncdir"}, nil
}

// Rename implements FS.
func (t *Trace) Rename(oldname, newname string) error {
	err := t.fs.Rename(oldname, newname)
	t.note(err, "rename", oldname, newname)
	return err
}

// Remove implements FS.
func (t *Trace) Remove(name string) error {
	err := t.fs.Remove(name)
	t.note(err, "remove", name)
	return err
}

// MkdirAll implements FS.
func (t *Trace) MkdirAll(dir string) error {
	err := t.fs.MkdirAll(dir)
	t.note(err, "mkdir", dir)
	return err
}

// ReadDir implements FS.
func (t *Trace) ReadDir(dir string) ([]fs.DirEntry, error) {
	entries, err := t.fs.ReadDir(dir)
	t.noteRead(err, "readdir", dir)
	return entries, err
}

// Stat implements FS.
func (t *Trace) Stat(name string) (fs.FileInfo, error) {
	info, err := t.fs.Stat(name)
	t.noteRead(err, "stat", name)
	return info, err
}

// Lock implements FS.
func (t *Trace) Lock(name string) (io.Closer, error) {
	c, err := t.fs.Lock(name)
	t.note(err, "lock", name)
	if err != nil {
		return nil, err
	}
	return traceLock{c, t, name}, nil
}

type traceLock struct {
	io.Closer
	t    *Trace
	name string
}

func (l traceLock) Close() error {
	err := l.Closer.Close()
	l.t.note(err, "unlock", l.name)
	return err
}

// traceFile notes writes and syncs.
type traceFile struct {
	File
	t    *Trace
	sync string // the word for Sync
}

func (f *traceFile) Write(p []byte) (int, error) {
	n, err := f.File.Write(p)
	if err != nil {
		f.t.note(err, "write", f.Name())
		return n, err
	}
	f.t.mu.Lock()
	defer f.t.mu.Unlock()
	if last := len(f.t.lines) - 1; last >= 0 && f.t.lines[last].file == f {
		f.t.lines[last].written += int64(n)
		return n, nil
	}
	text := "write " + f.t.short(f.Name())
	f.t.lines = append(f.t.lines, traceLine{text: text, written: int64(n), file: f})
	return n, nil
}

func (f *traceFile) Sync() error {
	err := f.File.Sync()
	f.t.note(err, f.sync, f.Name())
	return err
}
