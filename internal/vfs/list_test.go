package vfs_test

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"slices"
	"testing"

	"github.com/tidemill/tidemill/internal/vfs"
)

// A directory comes whole, in parts of which only the last may be short.
func TestList(t *testing.T) {
	t.Parallel()
	disk := t.TempDir()
	mem := vfs.NewMem()
	for name, c := range map[string]struct {
		fs  vfs.FS
		dir string
	}{"disk": {vfs.OS(), disk}, "memory": {mem, "/d"}} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			made := 0
			for _, n := range []int{0, 1, vfs.ListPart - 1, vfs.ListPart, vfs.ListPart + 1} {
				if err := c.fs.MkdirAll(c.dir); err != nil {
					t.Fatal(err)
				}
				for ; made < n; made++ {
					f, err := c.fs.Create(fmt.Sprintf("%s/%d", c.dir, made))
					if err != nil {
						t.Fatal(err)
					}
					if err := f.Close(); err != nil {
						t.Fatal(err)
					}
				}
				checkList(t, c.fs, c.dir)
			}
			mine := errors.New("mine")
			if err := vfs.List(c.fs, c.dir, func([]fs.DirEntry) error { return mine }); !errors.Is(err, mine) {
				t.Errorf("the visitor's error became %v", err)
			}
			if err := vfs.List(c.fs, c.dir+"/none", func([]fs.DirEntry) error { return nil }); !errors.Is(err, os.ErrNotExist) {
				t.Errorf("a directory that is not there gives %v", err)
			}
		})
	}
}

func checkList(t *testing.T, fsys vfs.FS, dir string) {
	t.Helper()
	var got, want []string
	parts, short := 0, false
	err := vfs.List(fsys, dir, func(part []fs.DirEntry) error {
		if short {
			t.Error("a short part is not the last")
		}
		parts, short = parts+1, len(part) < vfs.ListPart
		for _, e := range part {
			got = append(got, e.Name())
		}
		return nil
	})
	entries, readErr := fsys.ReadDir(dir)
	if err := errors.Join(err, readErr); err != nil {
		t.Fatal(err)
	}
	for _, e := range entries {
		want = append(want, e.Name())
	}
	slices.Sort(got)
	if !slices.Equal(got, want) || parts == 0 {
		t.Errorf("%d names in %d parts, not %d", len(got), parts, len(want))
	}
}
