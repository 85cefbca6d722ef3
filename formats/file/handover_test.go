package file

import (
	"io/fs"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/tidemill/tidemill/internal/vfs"
	"github.com/tidemill/tidemill/logical/connector"
	"github.com/tidemill/tidemill/logical/connector/connectortest"
)

// lookedFS counts how often something is asked about a CSV file.
type lookedFS struct {
	vfs.FS
	looked atomic.Int64
}

func (l *lookedFS) Stat(name string) (fs.FileInfo, error) {
	if strings.HasSuffix(name, ".csv") {
		l.looked.Add(1)
	}
	return l.FS.Stat(name)
}

// TestHandover starts a stream whose columns were just found: the files that were looked at
// for it are not looked at again, new ones are found, and a source opened later lists by
// itself.
func TestHandover(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	look := &lookedFS{FS: w.mem}
	w.fs = look
	w.writeAt(1, "in/d=1/a.csv", "v\n1\n")
	w.writeAt(2, "in/d=2/b.csv", "v\n2\n")
	w.writeAt(3, "in/notes.md", "not data\n")
	env := w.env("path", "in", "header", "true")
	found, err := Discover(t.Context(), testFormats, env)
	if err != nil {
		t.Fatal(err)
	}
	if found.Listed == nil {
		t.Fatal("nothing was handed on")
	}
	w.writeAt(4, "in/d=2/c.csv", "v\n3\n")
	s := &stream{world: w, log: connectortest.NewLog()}
	env.Log, env.Pinned, env.Listed = s.log, found.Pinned, found.Listed
	if s.source, err = OpenSource(t.Context(), testFormats, env); err != nil {
		t.Fatal(err)
	}
	before := look.looked.Load()
	if _, err := s.source.Target(t.Context()); err != nil {
		t.Fatal(err)
	}
	if n := look.looked.Load() - before; n != 1 {
		t.Errorf("%d files were looked at, of which one is new", n)
	}
	equal(t, "first batch", s.next(connector.Limit{}), []string{"1|1", "2|2", "3|2"})

	env.Log = connectortest.NewLog()
	again, err := OpenSource(t.Context(), testFormats, env)
	if err != nil {
		t.Fatal(err)
	}
	before = look.looked.Load()
	if _, err := again.Target(t.Context()); err != nil {
		t.Fatal(err)
	}
	if n := look.looked.Load() - before; n != 3 {
		t.Errorf("%d files were looked at by a source that came later", n)
	}
}

// TestHandoverOfDeclared opens a stream of declared columns whose files leave the format's
// choices open: what Discover listed to make them is not listed again.
func TestHandoverOfDeclared(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	look := &lookedFS{FS: w.mem}
	w.fs = look
	w.writeAt(1, "in/a.csv", "")
	w.writeAt(2, "in/b.csv", "")
	env := w.env("path", "in", "format", "csv")
	env.Columns = schemaOf("v:bigint")
	found, err := Discover(t.Context(), testFormats, env)
	if err != nil {
		t.Fatal(err)
	}
	env.Log, env.Pinned, env.Listed = connectortest.NewLog(), found.Pinned, found.Listed
	before := look.looked.Load()
	source, err := OpenSource(t.Context(), testFormats, env)
	if err != nil {
		t.Fatal(err)
	}
	if source.o.handed == nil {
		t.Error("the source has no listing")
	}
	if _, err := source.Target(t.Context()); err != nil {
		t.Fatal(err)
	}
	if n := look.looked.Load() - before; n != 0 {
		t.Errorf("%d files were looked at again", n)
	}
}
