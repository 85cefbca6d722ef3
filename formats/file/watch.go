package file

import "github.com/tidemill/tidemill/internal/vfs"

// mostWatched is how many directories are watched: the system has few watches, and what
// is not watched is listed all the same.
const mostWatched = 1024

// watch watches the directories of a source. The nil one watches nothing.
type watch struct {
	of    vfs.Watch
	known map[string]bool
}

// Notify implements connector.Notifier where the filesystem can watch directories, from
// the next listing on.
func (s *Source) Notify(wake func()) {
	fs, ok := s.o.env.FS.(vfs.Watcher)
	if !ok || s.o.lister.watch != nil {
		return
	}
	if of, err := fs.Watch(wake); err == nil { // else listings must do
		s.o.lister.watch = &watch{of: of, known: map[string]bool{}}
	}
}

func (w *watch) add(dir string) {
	if w == nil || w.known[dir] || len(w.known) >= mostWatched {
		return
	}
	w.known[dir] = w.of.Add(dir) == nil
}

// forget is told of a directory that is gone: one of its name may come again.
func (w *watch) forget(dir string) {
	if w != nil {
		delete(w.known, dir)
	}
}

func (w *watch) close() error {
	if w == nil {
		return nil
	}
	return w.of.Close()
}
