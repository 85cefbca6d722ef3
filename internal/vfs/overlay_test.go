package vfs_test

import (
	"errors"
	"io/fs"
	"testing"

	"github.com/tidemill/tidemill/internal/vfs"
	"github.com/tidemill/tidemill/internal/vfs/vfstest"
)

func TestOverlay(t *testing.T) {
	t.Parallel()
	vfstest.TestFS(t, func(t *testing.T) (vfs.FS, string) {
		base := vfs.NewMem()
		must(t, base.MkdirAll("some/dir"))
		t.Cleanup(func() {
			if list, err := base.ReadDir("some/dir"); err != nil || len(list) > 0 {
				t.Errorf("the base has %v, %v", list, err)
			}
		})
		return vfs.NewOverlay(base), "some/dir"
	})
}

// TestOverlayLeavesTheBase does everything to files that the base has.
func TestOverlayLeavesTheBase(t *testing.T) {
	t.Parallel()
	base := vfs.NewMem()
	must(t, base.MkdirAll("d/sub"))
	for _, name := range []string{"d/a", "d/b", "d/c", "d/sub/x"} {
		vfstest.Write(t, base, name, name)
	}
	base.Deny(func(op vfs.Op, name string) error {
		if op.Mutates() {
			t.Errorf("%s %s reached the base", op, name)
		}
		return nil
	})
	o := vfs.NewOverlay(base)
	must(t, o.Remove("d/a"))
	must(t, o.Rename("d/b", "d/a"))
	vfstest.Write(t, o, "d/c", "new")
	must(t, o.MkdirAll("d/sub/more"))
	vfstest.Write(t, o, "d/sub/y", "y")
	lock, err := o.Lock("d/lock")
	must(t, err)
	must(t, lock.Close())
	names := func(dir string) (out string) {
		list, err := o.ReadDir(dir)
		must(t, err)
		for _, e := range list {
			out += e.Name() + " "
		}
		return out
	}
	if got := names("d") + names("./d/sub"); got != "a c lock sub more x y " {
		t.Errorf("the overlay has %s", got)
	}
	if got := vfstest.Read(t, o, "d/a") + vfstest.Read(t, o, "d/c"); got != "d/bnew" {
		t.Errorf("the files hold %q", got)
	}
	o.Hide("d/sub")
	if _, err := o.Stat("d/sub/x"); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("a file of a hidden directory: %v", err)
	}
	if got := vfstest.Read(t, base, "d/b") + vfstest.Read(t, base, "d/c"); got != "d/bd/c" {
		t.Errorf("the base holds %q", got)
	}
}
