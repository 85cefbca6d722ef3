package vfs_test

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/tidemill/tidemill/internal/vfs"
	"github.com/tidemill/tidemill/internal/vfs/faultfs"
	"github.com/tidemill/tidemill/internal/vfs/vfstest"
)

func TestOS(t *testing.T) {
	t.Parallel()
	vfstest.TestFS(t, func(t *testing.T) (vfs.FS, string) {
		return vfs.OS(), filepath.ToSlash(t.TempDir())
	})
}

func TestMem(t *testing.T) {
	t.Parallel()
	vfstest.TestFS(t, func(t *testing.T) (vfs.FS, string) {
		m := vfs.NewMem()
		t.Cleanup(func() {
			if n := m.OpenFiles(); n != 0 {
				t.Errorf("%d files left open", n)
			}
		})
		must(t, m.MkdirAll("some/dir"))
		return m, "some/dir"
	})
}

func TestTraceAndFaultsPassThrough(t *testing.T) {
	t.Parallel()
	vfstest.TestFS(t, func(t *testing.T) (vfs.FS, string) {
		m := vfs.NewMem()
		must(t, m.MkdirAll("/dir"))
		return vfs.NewTrace(faultfs.New(m, faultfs.MustParse(`(crash (path "never"))`)), "/"), "/dir"
	})
}

// TestLockOfDeadProcess starts this test binary as a second process that takes
// the lock and dies with it.
func TestLockOfDeadProcess(t *testing.T) {
	const env = "VFS_TEST_LOCK"
	if name := os.Getenv(env); name != "" {
		l, err := vfs.OS().Lock(name)
		if err != nil {
			os.Exit(3)
		}
		defer l.Close() // never: it keeps the collector from closing the file
		fmt.Println("held")
		select {}
	}
	t.Parallel()
	name := filepath.Join(t.TempDir(), "lock")
	cmd := exec.Command(os.Args[0], "-test.run=^TestLockOfDeadProcess$")
	cmd.Env = append(os.Environ(), env+"="+name)
	out, err := cmd.StdoutPipe()
	must(t, err)
	must(t, cmd.Start())
	line := make([]byte, 5)
	if _, err := out.Read(line); err != nil || string(line[:4]) != "held" {
		t.Fatalf("the other process says %q, %v", line, err)
	}
	if _, err := vfs.OS().Lock(name); !errors.Is(err, vfs.ErrLocked) {
		t.Fatalf("error is %v, want ErrLocked", err)
	}
	must(t, cmd.Process.Kill())
	_ = cmd.Wait()
	l, err := vfs.OS().Lock(name)
	must(t, err)
	must(t, l.Close())
}

func TestMemClock(t *testing.T) {
	t.Parallel()
	m := vfs.NewMem()
	vfstest.Write(t, m, "a", "x")
	vfstest.Write(t, m, "b", "x")
	if a, b := mtime(t, m, "a"), mtime(t, m, "b"); !a.Before(b) {
		t.Fatalf("times do not grow: %v, %v", a, b)
	}
	now := time.Date(2025, 2, 3, 4, 5, 6, 0, time.UTC)
	m.SetClock(func() time.Time { return now })
	vfstest.Write(t, m, "a", "y")
	if got := mtime(t, m, "a"); !got.Equal(now) {
		t.Fatalf("time is %v, want %v", got, now)
	}
	later := now
	now = now.Add(-time.Hour)
	vfstest.Write(t, m, "b", "y")
	if got := mtime(t, m, "b"); !got.Equal(later) {
		t.Fatalf("time went back to %v", got)
	}
	must(t, m.Chtimes("b", now))
	if got := mtime(t, m, "b"); !got.Equal(now) {
		t.Fatalf("time is %v, want %v", got, now)
	}
	if got := mtime(t, m.Crash(1, 0.5), "/"); got.IsZero() {
		t.Fatal("no time after a crash")
	}
}

func mtime(t *testing.T, m *vfs.Mem, name string) time.Time {
	t.Helper()
	info, err := m.Stat(name)
	must(t, err)
	return info.ModTime()
}

func TestMemDeny(t *testing.T) {
	t.Parallel()
	m := vfs.NewMem()
	must(t, m.MkdirAll("d"))
	vfstest.Write(t, m, "d/a", "x")
	m.Deny(func(op vfs.Op, name string) error {
		if op.Mutates() && strings.HasPrefix(name, "d/") {
			return fs.ErrPermission
		}
		return nil
	})
	_, err := m.Create("d/b")
	if !errors.Is(err, fs.ErrPermission) || !strings.Contains(err.Error(), "d/b") {
		t.Fatalf("error is %v", err)
	}
	vfstest.Write(t, m, "a", "x")
	if err := m.Rename("a", "d/b"); !errors.Is(err, fs.ErrPermission) {
		t.Fatalf("error is %v", err)
	}
	if got := vfstest.Read(t, m, "d/a"); got != "x" {
		t.Fatalf("content is %q", got)
	}
	m.Deny(nil)
	must(t, m.Rename("a", "d/b"))
}

func TestMemSymlink(t *testing.T) {
	t.Parallel()
	m := vfs.NewMem()
	must(t, m.MkdirAll("a/b"))
	vfstest.Write(t, m, "a/b/f", "content")
	must(t, m.Symlink("b/f", "a/link"))
	must(t, m.Symlink("/a/b", "dirlink"))
	must(t, m.Symlink("../a/no", "a/dangling"))
	must(t, m.Symlink("loop", "loop"))
	for _, name := range []string{"a/link", "dirlink/f"} {
		if got := vfstest.Read(t, m, name); got != "content" {
			t.Errorf("%s has %q", name, got)
		}
	}
	if _, err := m.Stat("a/dangling"); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("a dangling link: %v", err)
	}
	if _, err := m.Stat("loop/x"); err == nil {
		t.Error("a loop of links is followed for ever")
	}
	entries, err := m.ReadDir("a")
	must(t, err)
	for _, e := range entries {
		if isLink := e.Type()&fs.ModeSymlink != 0; isLink != (e.Name() != "b") {
			t.Errorf("%s listed as %v", e.Name(), e.Type())
		}
	}
	if err := m.Symlink("x", "a/link"); !errors.Is(err, fs.ErrExist) {
		t.Errorf("a link over a link: %v", err)
	}
	after := m.Crash(1, 0)
	if _, err := after.ReadDir("/"); err != nil {
		t.Error(err)
	}
	must(t, m.Remove("a/link"))
	if got := vfstest.Read(t, m, "a/b/f"); got != "content" {
		t.Errorf("removing a link removed the file: %q", got)
	}
}

// outcomes are the different answers of show over many crashes of m.
func outcomes(m *vfs.Mem, keep float64, show func(*vfs.Mem) string) []string {
	seen := map[string]bool{}
	for seed := range uint64(400) {
		seen[show(m.Crash(seed, keep))] = true
	}
	var list []string
	for s := range seen {
		list = append(list, s)
	}
	slices.Sort(list)
	return list
}

// show prints a file, or - if it is not there, for each of names.
func show(names ...string) func(*vfs.Mem) string {
	return func(m *vfs.Mem) string {
		var parts []string
		for _, name := range names {
			data, err := vfs.ReadFile(m, name)
			switch {
			case err != nil:
				parts = append(parts, "-")
			default:
				parts = append(parts, fmt.Sprintf("%q", data))
			}
		}
		return strings.Join(parts, " ")
	}
}

func check(t *testing.T, what string, got []string, want ...string) {
	t.Helper()
	slices.Sort(want)
	if !slices.Equal(got, want) {
		t.Errorf("%s:\n got %v\nwant %v", what, got, want)
	}
}

func TestCrashNames(t *testing.T) {
	t.Parallel()
	m := vfs.NewMem()
	must(t, vfs.WriteAtomic(m, "a", []byte("A")))
	must(t, vfs.WriteAtomic(m, "b", []byte("B")))
	must(t, m.Rename("a", "c"))
	must(t, m.Remove("b"))

	see := show("a", "b", "c")
	check(t, "nothing kept", outcomes(m, 0, see), `"A" "B" -`)
	check(t, "all kept", outcomes(m, 1, see), `- - "A"`)
	check(t, "some kept", outcomes(m, 0.5, see),
		`"A" "B" -`, `"A" - -`, `- "B" "A"`, `- - "A"`)
	if got := see(m); got != `- - "A"` {
		t.Errorf("a crash changed the filesystem itself: %s", got)
	}
	must(t, vfs.SyncDir(m, "/"))
	check(t, "synced", outcomes(m, 0, see), `- - "A"`)
}

func TestCrashKeepsOrderOfOneName(t *testing.T) {
	t.Parallel()
	m := vfs.NewMem()
	must(t, vfs.WriteAtomic(m, "a", []byte("1")))
	must(t, vfs.WriteAtomic(m, "t", []byte("2")))
	must(t, m.Rename("t", "a"))
	must(t, m.Rename("a", "b"))
	check(t, "a and b", outcomes(m, 0.5, show("a", "b", "t")),
		`"1" - "2"`, `"2" - -`, `- "2" -`)
}

func TestCrashAcrossDirectories(t *testing.T) {
	t.Parallel()
	m := vfs.NewMem()
	must(t, vfs.MkdirAll(m, "from"))
	must(t, vfs.MkdirAll(m, "to"))
	f, err := m.Create("from/a")
	must(t, err)
	_, err = f.Write([]byte("A"))
	must(t, err)
	must(t, f.Sync())
	must(t, f.Close())
	must(t, m.Rename("from/a", "to/a"))
	see := show("from/a", "to/a")
	check(t, "not synced", outcomes(m, 0.5, see), `- -`, `"A" -`, `- "A"`)
	must(t, vfs.SyncDir(m, "to"))
	check(t, "synced", outcomes(m, 0, see), `- "A"`)
}

func TestCrashDirectories(t *testing.T) {
	t.Parallel()
	m := vfs.NewMem()
	must(t, m.MkdirAll("a/b"))
	vfstest.Write(t, m, "a/b/f", "x")
	must(t, vfs.SyncDir(m, "a/b"))
	check(t, "parents not synced", outcomes(m, 0, show("a/b/f")), "-")
	must(t, vfs.SyncDir(m, "a"))
	must(t, vfs.SyncDir(m, "/"))
	check(t, "bytes not synced", outcomes(m, 0, show("a/b/f")), `""`)

	must(t, vfs.MkdirAll(m, "c/d/e"))
	if _, err := m.Crash(0, 0).Stat("c/d/e"); err != nil {
		t.Errorf("vfs.MkdirAll is not durable: %v", err)
	}
}

func TestCrashBytes(t *testing.T) {
	t.Parallel()
	m := vfs.NewMem()
	must(t, vfs.WriteAtomic(m, "a", []byte("ab")))
	f, err := m.Create("a")
	must(t, err)
	defer f.Close()
	check(t, "cut, not synced", outcomes(m, 0.5, show("a")), `"ab"`, `""`)
	_, err = f.Write([]byte("xy"))
	must(t, err)
	must(t, f.Sync())
	_, err = f.Write([]byte("z1"))
	must(t, err)
	check(t, "nothing kept", outcomes(m, 0, show("a")), `"xy"`)
	check(t, "all kept", outcomes(m, 1, show("a")), `"xyz1"`)
	check(t, "some kept", outcomes(m, 0.5, show("a")),
		`"xy"`, `"xyz"`, `"xyz1"`, `"xyz\x00"`, `"xy\x00\x00"`)
	before := m.Crash(3, 0.5)
	if a, b := show("a")(before), show("a")(m.Crash(3, 0.5)); a != b {
		t.Errorf("one seed gives %s and %s", a, b)
	}
}

func TestCrashFreesLocks(t *testing.T) {
	t.Parallel()
	m := vfs.NewMem()
	l, err := m.Lock("lock")
	must(t, err)
	defer l.Close()
	after := m.Crash(0, 1)
	again, err := after.Lock("lock")
	must(t, err)
	must(t, again.Close())
	if _, err := m.Lock("lock"); !errors.Is(err, vfs.ErrLocked) {
		t.Errorf("the lock of the living filesystem: %v", err)
	}
	clone := m.Clone()
	vfstest.Write(t, clone, "x", "x")
	if _, err := m.Stat("x"); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("a clone shares names: %v", err)
	}
}

// TestWriteAtomicCrash crashes WriteAtomic at every call and looks at what is
// left: the old content or the new one, never another; the new one once it
// returned nil.
func TestWriteAtomicCrash(t *testing.T) {
	t.Parallel()
	for _, old := range []string{"", "old"} {
		for k := 0; ; k++ {
			m := vfs.NewMem()
			must(t, vfs.MkdirAll(m, "d"))
			if old != "" {
				must(t, vfs.WriteAtomic(m, "d/a", []byte(old)))
			}
			ff := faultfs.New(m, faultfs.MustParse(fmt.Sprintf("(crash (nth %d any))", k)))
			err := vfs.WriteAtomic(ff, "d/a", []byte("new content"))
			if err != nil && !errors.Is(err, faultfs.ErrCrashed) {
				t.Fatal(err)
			}
			for seed := range uint64(60) {
				after := m.Crash(seed, []float64{0, 0.5, 1}[seed%3])
				got := show("d/a")(after)
				isOld := got == fmt.Sprintf("%q", old) || old == "" && got == "-"
				if got != `"new content"` && (err == nil || !isOld) {
					t.Fatalf("crash at call %d, seed %d, error %v: %s", k, seed, err, got)
				}
				must(t, vfs.RemoveTemp(after, "d"))
				must(t, vfs.WriteAtomic(after, "d/a", []byte("again")))
			}
			if err == nil {
				break
			}
		}
	}
}

// TestDraftCrash crashes a draft at every call: until it is published there is the old
// content, then the old or the new one, and the new one once Publish returned nil.
func TestDraftCrash(t *testing.T) {
	t.Parallel()
	for k := 0; ; k++ {
		m := vfs.NewMem()
		must(t, vfs.MkdirAll(m, "d"))
		must(t, vfs.WriteAtomic(m, "d/a", []byte("old")))
		ff := faultfs.New(m, faultfs.MustParse(fmt.Sprintf("(crash (nth %d any))", k)))
		drafted := false
		d, err := vfs.WriteDraft(ff, "d/a", []byte("new content"))
		if err == nil {
			if err = d.Sync(); err == nil {
				drafted = true
				err = d.Publish()
			}
		}
		for seed := range uint64(60) {
			after := m.Crash(seed, []float64{0, 0.5, 1}[seed%3])
			got := show("d/a")(after)
			if got != `"new content"` && (err == nil || got != `"old"`) || got != `"old"` && !drafted {
				t.Fatalf("crash at call %d, seed %d, error %v: %s", k, seed, err, got)
			}
			must(t, vfs.RemoveTemp(after, "d"))
		}
		if err == nil {
			return
		}
	}
}

// A draft that is discarded leaves nothing, synced or not.
func TestDraftDiscard(t *testing.T) {
	t.Parallel()
	for _, synced := range []bool{false, true} {
		m := vfs.NewMem()
		must(t, vfs.WriteAtomic(m, "a", []byte("old")))
		d, err := vfs.WriteDraft(m, "a", []byte("new"))
		must(t, err)
		if synced {
			must(t, d.Sync())
		}
		must(t, d.Discard())
		entries, err := m.ReadDir("/")
		must(t, err)
		if len(entries) != 1 || m.OpenFiles() != 0 || vfstest.Read(t, m, "a") != "old" {
			t.Errorf("synced %v: %v is left, %d files are open", synced, entries, m.OpenFiles())
		}
	}
}

// TestWriteAtomicError makes every call fail, and writes short, once.
func TestWriteAtomicError(t *testing.T) {
	t.Parallel()
	for _, action := range []string{"error EIO", "short"} {
		for k := 0; ; k++ {
			m := vfs.NewMem()
			must(t, vfs.WriteAtomic(m, "a", []byte("old")))
			ff := faultfs.New(m, faultfs.MustParse(fmt.Sprintf("(%s (nth %d mutating))", action, k)))
			err := vfs.WriteAtomic(ff, "a", []byte("new content"))
			got := vfstest.Read(t, m, "a")
			if err == nil {
				if got != "new content" {
					t.Fatalf("no error, and %q", got)
				}
				break
			}
			if !errors.Is(err, faultfs.ErrInjected) || got != "old" && got != "new content" {
				t.Fatalf("%s at call %d: %v, %q", action, k, err, got)
			}
			entries, err := m.ReadDir("/")
			must(t, err)
			if len(entries) != 1 {
				t.Fatalf("%s at call %d leaves %v", action, k, entries)
			}
			must(t, vfs.WriteAtomic(ff, "a", []byte("again")))
		}
	}
}

func TestTrace(t *testing.T) {
	t.Parallel()
	tr := vfs.NewTrace(vfs.NewMem(), "/ckpt")
	must(t, vfs.MkdirAll(tr, "/ckpt/offsets"))
	must(t, vfs.WriteAtomic(tr, "/ckpt/offsets/0", []byte("entry")))
	f, err := tr.Create("/ckpt/two")
	must(t, err)
	for range 3 {
		_, err := f.Write([]byte("12"))
		must(t, err)
	}
	must(t, f.Close())
	l, err := tr.Lock("/ckpt/lock")
	must(t, err)
	must(t, l.Close())
	must(t, tr.Remove("/ckpt/two"))
	_ = tr.Remove("/elsewhere")
	tr.Reads(true)
	_, _ = tr.Stat("/ckpt/two")
	got := strings.Join(tr.Take(), "\n")
	want := strings.TrimSpace(`
mkdir offsets
syncdir /
syncdir /ckpt
create offsets/.0.tmp
write offsets/.0.tmp 5
sync offsets/.0.tmp
rename offsets/.0.tmp offsets/0
syncdir offsets
create two
write two 6
lock lock
unlock lock
remove two
remove /elsewhere error
stat two error`)
	if got != want {
		t.Errorf("got:\n%s\nwant:\n%s", got, want)
	}
	if rest := tr.Take(); len(rest) != 0 {
		t.Errorf("taken twice: %v", rest)
	}
}

func TestTempNames(t *testing.T) {
	t.Parallel()
	for name, want := range map[string]bool{"a/.b.tmp": true, "a.tmp": false, "a/.b": false, ".tmp/b": false} {
		if got := vfs.IsTemp(name); got != want {
			t.Errorf("IsTemp(%q) is %v", name, got)
		}
	}
	if got := vfs.TempName("a/b.parquet"); got != "a/.b.parquet.tmp" || !vfs.IsTemp(got) {
		t.Errorf("TempName is %q", got)
	}
}

func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}
