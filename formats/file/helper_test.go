package file

import (
	"context"
	"fmt"
	"io/fs"
	"path"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/apache/arrow-go/v18/arrow"

	"github.com/tidemill/tidemill/columnar"
	"github.com/tidemill/tidemill/columnar/columnartest"
	"github.com/tidemill/tidemill/internal/vfs"
	"github.com/tidemill/tidemill/logical/connector"
	"github.com/tidemill/tidemill/logical/connector/connectortest"
)

// world is a filesystem, a clock and what was warned about.
type world struct {
	t        testing.TB
	fs       vfs.FS
	mem      *vfs.Mem
	now      time.Time
	slept    time.Duration
	onSleep  func()
	warnings []string
}

var epoch = time.Date(2024, 1, 1, 0, 0, 0, 0, time.UTC)

func newWorld(t testing.TB) *world {
	m := vfs.NewMem()
	w := &world{t: t, fs: m, mem: m, now: epoch.Add(time.Hour)}
	return w
}

// env is what a connector is opened with; options alternate keys and values.
func (w *world) env(options ...string) connector.Env {
	env := connector.Env{
		FS: w.fs, Mem: columnartest.Mem(w.t), Options: map[string]string{}, QueryID: "q1", Checkpoint: "ckpt",
		Warn: func(s string) { w.warnings = append(w.warnings, s) },
		Now:  func() time.Time { return w.now },
		Sleep: func(_ context.Context, d time.Duration) error {
			w.slept += d
			w.now = w.now.Add(d)
			if w.onSleep != nil {
				w.onSleep()
			}
			return nil
		},
	}
	for i := 0; i < len(options); i += 2 {
		env.Options[options[i]] = options[i+1]
	}
	return env
}

// write makes a file with its directories.
func (w *world) write(name, content string) {
	w.t.Helper()
	if err := w.mem.MkdirAll(path.Dir(name)); err != nil {
		w.t.Fatal(err)
	}
	if err := vfs.WriteAtomic(w.mem, name, []byte(content)); err != nil {
		w.t.Fatal(err)
	}
}

// writeAt is write with a modification time, in seconds after epoch.
func (w *world) writeAt(seconds int, name, content string) {
	w.t.Helper()
	w.write(name, content)
	if err := w.mem.Chtimes(name, epoch.Add(time.Duration(seconds)*time.Second)); err != nil {
		w.t.Fatal(err)
	}
}

func (w *world) read(name string) string {
	w.t.Helper()
	data, err := vfs.ReadFile(w.mem, name)
	if err != nil {
		w.t.Fatal(err)
	}
	return string(data)
}

func (w *world) exists(name string) bool {
	_, err := w.mem.Stat(name)
	return err == nil
}

// tree lists all files below dir.
func tree(t testing.TB, fsys vfs.FS, dir string) []string {
	t.Helper()
	files, err := treeOf(fsys, dir)
	if err != nil {
		t.Fatal(err)
	}
	return files
}

func schemaOf(fields ...string) *arrow.Schema {
	var list []arrow.Field
	for _, f := range fields {
		name, typ, _ := strings.Cut(f, ":")
		dt, err := columnartest.Type(typ)
		if err != nil {
			panic(err)
		}
		list = append(list, columnar.Field(name, dt))
	}
	return columnar.NewSchema(list...)
}

// rows reads a table.
func (w *world) rows(table connector.Table, columns ...int) []string {
	w.t.Helper()
	mem := columnartest.Mem(w.t)
	us, err := table.Units(w.t.Context(), connector.ScanRequest{Mem: mem, Columns: columns})
	if err != nil {
		w.t.Fatalf("Units: %v", err)
	}
	return connectortest.Rows(w.t, mem, us)
}

func (w *world) table(env connector.Env) *Table {
	w.t.Helper()
	table, err := OpenTable(w.t.Context(), testFormats, env)
	if err != nil {
		w.t.Fatalf("OpenTable: %v", err)
	}
	return table
}

func equal(t testing.TB, what string, got, want []string) {
	t.Helper()
	if !slices.Equal(got, want) {
		t.Errorf("%s:\n  got  %q\n  want %q", what, got, want)
	}
}

func wantError(t testing.TB, err error, parts ...string) {
	t.Helper()
	if err == nil {
		t.Errorf("no error, wanted one with %q", parts)
		return
	}
	for _, p := range parts {
		if !strings.Contains(err.Error(), p) {
			t.Errorf("error %q lacks %q", err, p)
		}
	}
}

func treeOf(fsys vfs.FS, dir string) ([]string, error) {
	var names []string
	entries, err := fsys.ReadDir(dir)
	if err != nil {
		return nil, fmt.Errorf("tree of %s: %w", dir, err)
	}
	for _, e := range entries {
		name := path.Join(dir, e.Name())
		if !e.IsDir() {
			names = append(names, name)
			continue
		}
		below, err := treeOf(fsys, name)
		if err != nil {
			return nil, err
		}
		names = append(names, below...)
	}
	return names, nil
}

// readCount counts how often directories are read.
type readCount struct {
	vfs.FS
	reads int
}

func newReadCount(fsys vfs.FS) *readCount { return &readCount{FS: fsys} }

func (c *readCount) ReadDir(dir string) ([]fs.DirEntry, error) {
	c.reads++
	return c.FS.ReadDir(dir)
}
