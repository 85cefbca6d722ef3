package vfs_test

import (
	"path"
	"testing"
	"time"

	"github.com/tidemill/tidemill/internal/vfs"
)

// A file renamed into a watched directory wakes, on every filesystem.
func TestWatch(t *testing.T) {
	t.Parallel()
	for name, fsys := range map[string]vfs.FS{t.TempDir(): vfs.OS(), "/mem": vfs.NewMem()} {
		dir, beside := path.Join(name, "in"), path.Join(name, "beside")
		for _, d := range []string{dir, beside} {
			if err := vfs.MkdirAll(fsys, d); err != nil {
				t.Fatal(err)
			}
		}
		woken := make(chan struct{}, 100)
		w, err := fsys.(vfs.Watcher).Watch(func() { woken <- struct{}{} })
		if err != nil {
			t.Fatal(err)
		}
		for range 2 {
			if err := w.Add(dir); err != nil {
				t.Fatal(err)
			}
		}
		if err := w.Add(path.Join(dir, "nothing")); err == nil {
			t.Error("a directory that is not there was added")
		}
		if err := vfs.WriteAtomic(fsys, path.Join(beside, "a"), []byte("x")); err != nil {
			t.Fatal(err)
		}
		if err := fsys.Rename(path.Join(beside, "a"), path.Join(dir, "a")); err != nil {
			t.Fatal(err)
		}
		select {
		case <-woken:
		case <-time.After(time.Minute):
			t.Errorf("%T: a file renamed into the directory woke nobody", fsys)
		}
		if err := w.Close(); err != nil {
			t.Fatal(err)
		}
	}
}
