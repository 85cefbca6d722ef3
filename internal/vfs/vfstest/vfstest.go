// Package vfstest is the conformance suite of vfs.FS. It is not part of the
// public API; only tests import it.
package vfstest

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"sync"
	"testing"
	"time"

	"github.com/tidemill/tidemill/internal/vfs"
)

// TestFS checks that a filesystem does what vfs.FS says. open returns one that
// has an existing empty directory dir, fresh for each test.
func TestFS(t *testing.T, open func(t *testing.T) (fsys vfs.FS, dir string)) {
	tests := []struct {
		name string
		test func(*testing.T, vfs.FS, string)
	}{
		{"create and read", createAndRead},
		{"create cuts", createCuts},
		{"open is read-only", openReadOnly},
		{"missing", missing},
		{"rename", rename},
		{"remove", remove},
		{"open file outlives its name", outlives},
		{"directories", directories},
		{"read dir", readDir},
		{"stat", stat},
		{"not a directory", notDir},
		{"lock", lock},
		{"write atomic", writeAtomic},
		{"remove all", removeAll},
		{"walk", walk},
		{"parallel", parallel},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			fsys, dir := open(t)
			tt.test(t, fsys, dir)
		})
	}
}

// Write gives the file this content, without any durability.
func Write(t testing.TB, fsys vfs.FS, name, data string) {
	t.Helper()
	f, err := fsys.Create(name)
	must(t, err)
	_, err = io.WriteString(f, data)
	must(t, err)
	must(t, f.Close())
}

// Read returns the content of the file.
func Read(t testing.TB, fsys vfs.FS, name string) string {
	t.Helper()
	data, err := vfs.ReadFile(fsys, name)
	must(t, err)
	return string(data)
}

func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func wantErr(t testing.TB, err, want error) {
	t.Helper()
	if !errors.Is(err, want) {
		t.Fatalf("error is %v, want %v", err, want)
	}
}

func want[T comparable](t testing.TB, what string, got, want T) {
	t.Helper()
	if got != want {
		t.Fatalf("%s is %v, want %v", what, got, want)
	}
}

func createAndRead(t *testing.T, fsys vfs.FS, dir string) {
	name := dir + "/a"
	f, err := fsys.Create(name)
	must(t, err)
	want(t, "name", f.Name(), name)
	for _, part := range []string{"hello", ", ", "world"} {
		n, err := f.Write([]byte(part))
		must(t, err)
		want(t, "written", n, len(part))
	}
	must(t, f.Sync())
	p := make([]byte, 5)
	n, err := f.ReadAt(p, 7)
	if err != nil && err != io.EOF {
		t.Fatal(err)
	}
	want(t, "read of the writer", string(p[:n]), "world")
	must(t, f.Close())
	wantErr(t, f.Close(), fs.ErrClosed)

	r, err := fsys.Open(name)
	must(t, err)
	defer r.Close()
	all, err := io.ReadAll(r)
	must(t, err)
	want(t, "content", string(all), "hello, world")
	n, err = r.Read(p)
	want(t, "bytes at the end", n, 0)
	wantErr(t, err, io.EOF)
	n, err = r.ReadAt(p, 10)
	want(t, "bytes across the end", n, 2)
	wantErr(t, err, io.EOF)
	_, err = r.ReadAt(p, 100)
	wantErr(t, err, io.EOF)
}

func createCuts(t *testing.T, fsys vfs.FS, dir string) {
	Write(t, fsys, dir+"/a", "a long content")
	Write(t, fsys, dir+"/a", "short")
	want(t, "content", Read(t, fsys, dir+"/a"), "short")
	Write(t, fsys, dir+"/a", "")
	want(t, "content", Read(t, fsys, dir+"/a"), "")
}

func openReadOnly(t *testing.T, fsys vfs.FS, dir string) {
	Write(t, fsys, dir+"/a", "x")
	f, err := fsys.Open(dir + "/a")
	must(t, err)
	defer f.Close()
	if _, err := f.Write([]byte("y")); err == nil {
		t.Fatal("a file from Open can be written")
	}
	want(t, "content", Read(t, fsys, dir+"/a"), "x")
}

func missing(t *testing.T, fsys vfs.FS, dir string) {
	no := dir + "/no"
	_, err := fsys.Open(no)
	wantErr(t, err, fs.ErrNotExist)
	_, err = fsys.OpenDir(no)
	wantErr(t, err, fs.ErrNotExist)
	_, err = fsys.Stat(no)
	wantErr(t, err, fs.ErrNotExist)
	_, err = fsys.ReadDir(no)
	wantErr(t, err, fs.ErrNotExist)
	wantErr(t, fsys.Remove(no), fs.ErrNotExist)
	wantErr(t, fsys.Rename(no, dir+"/b"), fs.ErrNotExist)
	_, err = fsys.Create(no + "/a")
	wantErr(t, err, fs.ErrNotExist)
	_, err = fsys.Lock(no + "/lock")
	wantErr(t, err, fs.ErrNotExist)
	_, err = vfs.ReadFile(fsys, no)
	wantErr(t, err, fs.ErrNotExist)
	must(t, vfs.RemoveAll(fsys, no))
	must(t, vfs.RemoveTemp(fsys, no))
}

func rename(t *testing.T, fsys vfs.FS, dir string) {
	Write(t, fsys, dir+"/a", "new")
	Write(t, fsys, dir+"/b", "old")
	must(t, fsys.Rename(dir+"/a", dir+"/b"))
	want(t, "content", Read(t, fsys, dir+"/b"), "new")
	_, err := fsys.Stat(dir + "/a")
	wantErr(t, err, fs.ErrNotExist)

	must(t, fsys.Rename(dir+"/b", dir+"/b"))
	must(t, fsys.MkdirAll(dir+"/d/e"))
	must(t, fsys.Rename(dir+"/b", dir+"/d/b"))
	must(t, fsys.Rename(dir+"/d", dir+"/f"))
	want(t, "content", Read(t, fsys, dir+"/f/b"), "new")
	if err := fsys.Rename(dir+"/f", dir+"/f/e/g"); err == nil {
		t.Fatal("a directory can be moved into itself")
	}
	Write(t, fsys, dir+"/file", "")
	if err := fsys.Rename(dir+"/file", dir+"/f"); err == nil {
		t.Fatal("a file can replace a directory")
	}
}

func remove(t *testing.T, fsys vfs.FS, dir string) {
	must(t, fsys.MkdirAll(dir+"/d"))
	Write(t, fsys, dir+"/d/a", "x")
	if err := fsys.Remove(dir + "/d"); err == nil {
		t.Fatal("a directory with a file in it can be removed")
	}
	must(t, fsys.Remove(dir+"/d/a"))
	must(t, fsys.Remove(dir+"/d"))
	_, err := fsys.Stat(dir + "/d")
	wantErr(t, err, fs.ErrNotExist)
}

func outlives(t *testing.T, fsys vfs.FS, dir string) {
	Write(t, fsys, dir+"/a", "old")
	f, err := fsys.Open(dir + "/a")
	must(t, err)
	defer f.Close()
	Write(t, fsys, dir+"/b", "newer")
	must(t, fsys.Rename(dir+"/b", dir+"/a"))
	all, err := io.ReadAll(f)
	must(t, err)
	want(t, "content", string(all), "old")
	info, err := f.Stat()
	must(t, err)
	want(t, "size", info.Size(), 3)
	must(t, fsys.Remove(dir+"/a"))
	p := make([]byte, 3)
	_, err = f.ReadAt(p, 0)
	if err != nil && err != io.EOF {
		t.Fatal(err)
	}
	want(t, "content after remove", string(p), "old")
}

func directories(t *testing.T, fsys vfs.FS, dir string) {
	must(t, fsys.MkdirAll(dir+"/a/b/c"))
	must(t, fsys.MkdirAll(dir+"/a/b"))
	must(t, vfs.MkdirAll(fsys, dir+"/a/d/e"))
	must(t, vfs.MkdirAll(fsys, dir+"/a/d/e"))
	for _, d := range []string{"/a", "/a/b/c", "/a/d/e"} {
		info, err := fsys.Stat(dir + d)
		must(t, err)
		want(t, d+" is a directory", info.IsDir(), true)
	}
	must(t, vfs.SyncDir(fsys, dir+"/a"))
	d, err := fsys.OpenDir(dir)
	must(t, err)
	must(t, d.Sync())
	must(t, d.Close())
}

func readDir(t *testing.T, fsys vfs.FS, dir string) {
	for _, name := range []string{"b", "a", "10", "9", ".x"} {
		Write(t, fsys, dir+"/"+name, name)
	}
	must(t, fsys.MkdirAll(dir+"/A"))
	entries, err := fsys.ReadDir(dir)
	must(t, err)
	got := ""
	for _, e := range entries {
		got += e.Name()
		if e.IsDir() {
			got += "/"
		}
		info, err := e.Info()
		must(t, err)
		if !e.IsDir() {
			want(t, "size of "+e.Name(), info.Size(), int64(len(e.Name())))
		}
		got += " "
	}
	want(t, "listing", got, ".x 10 9 A/ a b ")
}

func stat(t *testing.T, fsys vfs.FS, dir string) {
	Write(t, fsys, dir+"/a", "12345")
	info, err := fsys.Stat(dir + "/a")
	must(t, err)
	want(t, "name", info.Name(), "a")
	want(t, "size", info.Size(), 5)
	want(t, "regular", info.Mode().IsRegular(), true)
	f, err := fsys.Open(dir + "/a")
	must(t, err)
	defer f.Close()
	open, err := f.Stat()
	must(t, err)
	want(t, "time of the open file", open.ModTime(), info.ModTime())
	if info.ModTime().Before(time.Date(2000, 1, 1, 0, 0, 0, 0, time.UTC)) {
		t.Fatalf("modification time is %v", info.ModTime())
	}
}

func notDir(t *testing.T, fsys vfs.FS, dir string) {
	Write(t, fsys, dir+"/a", "x")
	for what, err := range map[string]error{
		"OpenDir":      second(fsys.OpenDir(dir + "/a")),
		"ReadDir":      second(fsys.ReadDir(dir + "/a")),
		"MkdirAll":     fsys.MkdirAll(dir + "/a"),
		"MkdirAll in":  fsys.MkdirAll(dir + "/a/b"),
		"vfs.MkdirAll": vfs.MkdirAll(fsys, dir+"/a"),
		"Create in":    second(fsys.Create(dir + "/a/b")),
	} {
		if err == nil {
			t.Errorf("%s of a file does not fail", what)
		}
	}
	if _, err := fsys.Create(dir); err == nil {
		t.Error("Create of a directory does not fail")
	}
}

func second[T any](_ T, err error) error { return err }

func lock(t *testing.T, fsys vfs.FS, dir string) {
	name := dir + "/lock"
	l, err := fsys.Lock(name)
	must(t, err)
	_, err = fsys.Lock(name)
	wantErr(t, err, vfs.ErrLocked)
	want(t, "content", Read(t, fsys, name), "")
	must(t, l.Close())
	if err := l.Close(); err == nil {
		t.Fatal("a lock can be released twice")
	}
	l, err = fsys.Lock(name)
	must(t, err)
	must(t, l.Close())
	Write(t, fsys, dir+"/other", "kept")
	l, err = fsys.Lock(dir + "/other")
	must(t, err)
	want(t, "content", Read(t, fsys, dir+"/other"), "kept")
	must(t, l.Close())
}

func writeAtomic(t *testing.T, fsys vfs.FS, dir string) {
	name := dir + "/a"
	must(t, vfs.WriteAtomic(fsys, name, []byte("one")))
	want(t, "content", Read(t, fsys, name), "one")
	big := bytes.Repeat([]byte("two "), 50_000)
	must(t, vfs.WriteAtomicFunc(fsys, name, func(w io.Writer) error {
		for part := big; len(part) > 0; part = part[100:] {
			if _, err := w.Write(part[:100]); err != nil {
				return err
			}
		}
		return nil
	}))
	want(t, "content", Read(t, fsys, name), string(big))
	mine := errors.New("mine")
	err := vfs.WriteAtomicFunc(fsys, name, func(io.Writer) error { return mine })
	wantErr(t, err, mine)
	want(t, "content", Read(t, fsys, name), string(big))
	entries, err := fsys.ReadDir(dir)
	must(t, err)
	want(t, "files", len(entries), 1)

	Write(t, fsys, vfs.TempName(name), "left over")
	must(t, vfs.RemoveTemp(fsys, dir))
	entries, err = fsys.ReadDir(dir)
	must(t, err)
	want(t, "files", len(entries), 1)
}

func removeAll(t *testing.T, fsys vfs.FS, dir string) {
	must(t, fsys.MkdirAll(dir+"/a/b/c"))
	Write(t, fsys, dir+"/a/x", "x")
	Write(t, fsys, dir+"/a/b/y", "y")
	must(t, vfs.RemoveAll(fsys, dir+"/a"))
	entries, err := fsys.ReadDir(dir)
	must(t, err)
	want(t, "files", len(entries), 0)
	Write(t, fsys, dir+"/f", "x")
	must(t, vfs.RemoveAll(fsys, dir+"/f"))
}

func walk(t *testing.T, fsys vfs.FS, dir string) {
	must(t, fsys.MkdirAll(dir+"/a/b"))
	must(t, fsys.MkdirAll(dir+"/skip/b"))
	Write(t, fsys, dir+"/a/b/y", "y")
	Write(t, fsys, dir+"/z", "z")
	got := ""
	must(t, vfs.Walk(fsys, dir, func(name string, e fs.DirEntry) error {
		got += name[len(dir):] + " "
		if e.Name() == "skip" {
			return fs.SkipDir
		}
		return nil
	}))
	want(t, "walk", got, "/a /a/b /a/b/y /skip /z ")
	mine := errors.New("mine")
	wantErr(t, vfs.Walk(fsys, dir, func(string, fs.DirEntry) error { return mine }), mine)
}

func parallel(t *testing.T, fsys vfs.FS, dir string) {
	var wg sync.WaitGroup
	for i := range 4 {
		wg.Go(func() {
			name := fmt.Sprintf("%s/%d", dir, i)
			for range 10 {
				if err := vfs.WriteAtomic(fsys, name, []byte(name)); err != nil {
					t.Error(err)
				}
				if data, err := vfs.ReadFile(fsys, name); err != nil || string(data) != name {
					t.Errorf("%q, %v", data, err)
				}
				if _, err := fsys.ReadDir(dir); err != nil {
					t.Error(err)
				}
			}
		})
	}
	wg.Wait()
}
