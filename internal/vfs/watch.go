package vfs

import (
	"io"
	"io/fs"

	"github.com/fsnotify/fsnotify"
)

// Watcher is an FS that may notice new names sooner than a listing does. What it says is
// a hint: a name may come without one, and one may come for nothing.
type Watcher interface {
	// Watch begins to watch. wake is called from another goroutine until Close returns;
	// it must not wait, nor use the filesystem.
	Watch(wake func()) (Watch, error)
}

// Watch is a set of directories that are watched.
type Watch interface {
	// Add watches a directory, not what is below it; again is nothing.
	Add(dir string) error
	io.Closer
}

func (osFS) Watch(wake func()) (Watch, error) {
	w, err := fsnotify.NewWatcher()
	if err != nil {
		return nil, err
	}
	o := &osWatch{Watcher: w, done: make(chan struct{})}
	go o.run(wake)
	return o, nil
}

type osWatch struct {
	*fsnotify.Watcher
	done chan struct{}
}

// run passes on that there are new names. Writes are not passed on: while a file grows
// there are many, and when it is whole only a listing can tell.
func (o *osWatch) run(wake func()) {
	defer close(o.done)
	for {
		select {
		case e, ok := <-o.Events:
			if !ok {
				return
			}
			if e.Has(fsnotify.Create) {
				wake()
			}
		case _, ok := <-o.Errors:
			if !ok {
				return
			}
			wake() // some may have been lost
		}
	}
}

func (o *osWatch) Close() error {
	err := o.Watcher.Close()
	<-o.done
	return err
}

// Watch implements Watcher.
func (m *Mem) Watch(wake func()) (Watch, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	w := &memWatch{m: m, wake: wake, dirs: map[*memNode]bool{}}
	if m.watches == nil {
		m.watches = map[*memWatch]bool{}
	}
	m.watches[w] = true
	return w, nil
}

type memWatch struct {
	m    *Mem
	wake func()
	dirs map[*memNode]bool
}

func (w *memWatch) Add(dir string) error {
	w.m.mu.Lock()
	defer w.m.mu.Unlock()
	n, err := w.m.find("watch", dir)
	if err != nil {
		return err
	}
	if !n.mode.IsDir() {
		return &fs.PathError{Op: "watch", Path: dir, Err: errNotDir}
	}
	w.dirs[n] = true
	return nil
}

func (w *memWatch) Close() error {
	w.m.mu.Lock()
	defer w.m.mu.Unlock()
	delete(w.m.watches, w)
	return nil
}
