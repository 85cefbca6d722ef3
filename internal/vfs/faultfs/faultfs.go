package faultfs

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"sync"
	"syscall"

	"github.com/tidemill/tidemill/internal/vfs"
)

// ErrCrashed is the error of the call that a crash rule stopped and of every
// call after it.
var ErrCrashed = errors.New("filesystem crashed by a fault rule")

// ErrInjected is what every error made by a rule is, ErrCrashed included.
var ErrInjected = errors.New("injected by a fault rule")

// InjectedError is an error made by a rule. It is (errors.Is) ErrInjected and
// the error it stands for.
type InjectedError struct {
	Op   vfs.Op
	Path string
	Rule string // text form of the rule
	Err  error
}

// Error returns a text like that of a system error, with the rule.
func (e *InjectedError) Error() string {
	return fmt.Sprintf("%s %s: %v %s", e.Op, e.Path, e.Err, e.Rule)
}

// Unwrap returns the error it stands for and ErrInjected.
func (e *InjectedError) Unwrap() []error { return []error{e.Err, ErrInjected} }

// FS passes calls to another filesystem, but for those that its rules stop.
type FS struct {
	fs vfs.FS

	// calls is held for reading by every call while it is made, and for
	// writing by a crash: nothing reaches the disk after it.
	calls   sync.RWMutex
	crashed *InjectedError

	mu       sync.Mutex
	rules    []*armed
	mutating int
	reading  int
}

// armed is a rule with its counts.
type armed struct {
	rule  Rule
	when  *counter
	fired int
}

// New returns a filesystem that behaves as fsys until a rule matches.
func New(fsys vfs.FS, rules ...Rule) *FS {
	f := &FS{fs: fsys}
	f.Arm(rules...)
	return f
}

// Arm replaces the rules and starts their counts and those of Calls from 0. A
// crash that has happened is not undone.
func (f *FS) Arm(rules ...Rule) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.rules = nil
	f.mutating, f.reading = 0, 0
	for _, r := range rules {
		f.rules = append(f.rules, &armed{rule: r, when: newCounter(r.When)})
	}
}

// Calls returns how many calls that may change the disk, and how many others,
// were judged since Arm. A loop over the first counts k = 0 … n-1 in
// (nth k mutating) visits every one.
func (f *FS) Calls() (mutating, reading int) {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.mutating, f.reading
}

// Fired returns how often each rule stopped a call.
func (f *FS) Fired() []int {
	f.mu.Lock()
	defer f.mu.Unlock()
	fired := make([]int, len(f.rules))
	for i, a := range f.rules {
		fired[i] = a.fired
	}
	return fired
}

// Crashed reports whether a crash rule has matched. From then on the inner
// filesystem does not change any more: take its vfs.Mem.Crash.
func (f *FS) Crashed() bool {
	f.calls.RLock()
	defer f.calls.RUnlock()
	return f.crashed != nil
}

// judge finds the first rule that stops the call; every rule counts it.
func (f *FS) judge(k call) *Rule {
	f.mu.Lock()
	defer f.mu.Unlock()
	if k.op.Mutates() {
		f.mutating++
	} else {
		f.reading++
	}
	var first *armed
	for _, a := range f.rules {
		if a.when.holds(k) && first == nil {
			first = a
		}
	}
	if first == nil {
		return nil
	}
	first.fired++
	return &first.rule
}

// do makes one call: run, unless a rule stops it. short, if not nil, is run for
// a short write.
func (f *FS) do(op vfs.Op, run, short func() error, names ...string) error {
	k := call{op, names}
	rule := f.judge(k)
	if rule != nil && rule.Action == Crash {
		f.calls.Lock()
		if f.crashed == nil {
			f.crashed = &InjectedError{op, names[0], rule.String(), ErrCrashed}
		}
		f.calls.Unlock()
	}
	f.calls.RLock()
	defer f.calls.RUnlock()
	switch {
	case f.crashed != nil:
		return &InjectedError{op, names[0], f.crashed.Rule, ErrCrashed}
	case rule == nil:
		return run()
	case rule.Action == Short && short != nil:
		if err := short(); err != nil {
			return err
		}
		return &InjectedError{op, names[0], rule.String(), syscall.ENOSPC}
	case rule.Action == Short:
		return &InjectedError{op, names[0], rule.String(), syscall.EIO}
	}
	return &InjectedError{op, names[0], rule.String(), Errors[rule.Err]}
}

// open is do for the calls that return a file.
func (f *FS) open(op vfs.Op, name string, open func(string) (vfs.File, error)) (vfs.File, error) {
	var inner vfs.File
	err := f.do(op, func() (err error) {
		inner, err = open(name)
		return err
	}, nil, name)
	if err != nil {
		return nil, err
	}
	return &file{f, inner}, nil
}

// Open implements vfs.FS.
func (f *FS) Open(name string) (vfs.File, error) { return f.open(vfs.OpOpen, name, f.fs.Open) }

// Create implements vfs.FS.
func (f *FS) Create(name string) (vfs.File, error) { return f.open(vfs.OpCreate, name, f.fs.Create) }

// OpenDir implements vfs.FS.
func (f *FS) OpenDir(name string) (vfs.File, error) { return f.open(vfs.OpOpenDir, name, f.fs.OpenDir) }

// Rename implements vfs.FS.
func (f *FS) Rename(oldname, newname string) error {
	return f.do(vfs.OpRename, func() error { return f.fs.Rename(oldname, newname) }, nil, oldname, newname)
}

// Remove implements vfs.FS.
func (f *FS) Remove(name string) error {
	return f.do(vfs.OpRemove, func() error { return f.fs.Remove(name) }, nil, name)
}

// MkdirAll implements vfs.FS.
func (f *FS) MkdirAll(dir string) error {
	return f.do(vfs.OpMkdir, func() error { return f.fs.MkdirAll(dir) }, nil, dir)
}

// ReadDir implements vfs.FS.
func (f *FS) ReadDir(dir string) (entries []fs.DirEntry, err error) {
	err = f.do(vfs.OpReadDir, func() (err error) {
		entries, err = f.fs.ReadDir(dir)
		return err
	}, nil, dir)
	return entries, err
}

// Stat implements vfs.FS.
func (f *FS) Stat(name string) (info fs.FileInfo, err error) {
	err = f.do(vfs.OpStat, func() (err error) {
		info, err = f.fs.Stat(name)
		return err
	}, nil, name)
	return info, err
}

// Lock implements vfs.FS. After a crash the lock of the inner filesystem stays
// held; vfs.Mem.Crash frees it.
func (f *FS) Lock(name string) (io.Closer, error) {
	var inner io.Closer
	err := f.do(vfs.OpLock, func() (err error) {
		inner, err = f.fs.Lock(name)
		return err
	}, nil, name)
	if err != nil {
		return nil, err
	}
	return &lock{f, inner, name}, nil
}

// lock is a held lock. Its release counts as a close.
type lock struct {
	f     *FS
	inner io.Closer
	name  string
}

func (l *lock) Close() error { return l.f.do(vfs.OpClose, l.inner.Close, nil, l.name) }

// file is an open file.
type file struct {
	f     *FS
	inner vfs.File
}

func (f *file) Name() string { return f.inner.Name() }

func (f *file) Read(p []byte) (n int, err error) {
	err = f.f.do(vfs.OpRead, func() (err error) {
		n, err = f.inner.Read(p)
		return err
	}, nil, f.Name())
	return n, err
}

func (f *file) ReadAt(p []byte, off int64) (n int, err error) {
	err = f.f.do(vfs.OpRead, func() (err error) {
		n, err = f.inner.ReadAt(p, off)
		return err
	}, nil, f.Name())
	return n, err
}

func (f *file) Write(p []byte) (n int, err error) {
	write := func(p []byte) func() error {
		return func() (err error) {
			n, err = f.inner.Write(p)
			return err
		}
	}
	err = f.f.do(vfs.OpWrite, write(p), write(p[:len(p)/2]), f.Name())
	return n, err
}

func (f *file) Sync() error { return f.f.do(vfs.OpSync, f.inner.Sync, nil, f.Name()) }

// Close closes the inner file whatever the rules say, so that no descriptor is
// lost, and then reports the injected error.
func (f *file) Close() error {
	err := f.f.do(vfs.OpClose, func() error { return nil }, nil, f.Name())
	return errors.Join(err, f.inner.Close())
}

func (f *file) Stat() (info fs.FileInfo, err error) {
	err = f.f.do(vfs.OpStat, func() (err error) {
		info, err = f.inner.Stat()
		return err
	}, nil, f.Name())
	return info, err
}
