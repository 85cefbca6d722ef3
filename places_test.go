package tidemill_test

import (
	"context"
	"fmt"
	"path"
	"strings"
	"sync"
	"testing"

	"github.com/tidemill/tidemill"
	"github.com/tidemill/tidemill/internal/vfs"
)

// meanwhileFS does something once, before a file gets the name.
type meanwhileFS struct {
	*vfs.Mem
	name string
	do   func()
	once sync.Once
}

func (f *meanwhileFS) Rename(oldname, newname string) error {
	if path.Clean(newname) == f.name {
		f.once.Do(f.do)
	}
	return f.Mem.Rename(oldname, newname)
}

// runInto runs a query into out until it is drained.
func runInto(ctx context.Context, fsys vfs.FS, out, checkpoint, more string) error {
	s, err := tidemill.NewSession(tidemill.Options{}.WithFS(fsys))
	if err != nil {
		return err
	}
	script, err := s.OpenScript(ctx, "q.sql", fmt.Sprintf(`CREATE STREAM t (k VARCHAR) WITH (path = 'in', format = 'csv');
CREATE SINK o WITH (path = '%s', checkpoint = '%s', trigger = 'available-now'%s);
INSERT INTO o SELECT k FROM t;`, out, checkpoint, more), tidemill.RunOptions{})
	if err != nil {
		return err
	}
	return script.Start(ctx).Wait()
}

// Two queries of which one would write into what the other keeps start at the same moment:
// neither was there when the other looked around first.
func TestPlacesMadeAtOnce(t *testing.T) {
	t.Parallel()
	type query struct{ out, checkpoint, more string }
	for _, c := range []struct {
		name string
		a, b query
	}{
		{"outputs", query{"out", "ck/a", ""}, query{"out/sub", "ck/b", ""}},
		{"late rows", query{"out", "ck/a", ", late_rows = 'keep'"}, query{"out.late", "ck/b", ""}},
		{"bad rows", query{"out", "ck/a", ", bad_rows = 'keep'"}, query{"out.bad/sub", "ck/b", ""}},
		{"checkpoint in an output", query{"out", "ck/a", ""}, query{"b", "out/ck", ""}},
		{"checkpoints", query{"a", "ck", ""}, query{"b", "ck/sub", ""}},
	} {
		for _, pair := range [][2]query{{c.a, c.b}, {c.b, c.a}} {
			slow, quick := pair[0], pair[1]
			t.Run(c.name+"/"+slow.out+" slow", func(t *testing.T) {
				t.Parallel()
				x := newSite(t)
				x.write("in/1.csv", "k\na")
				var errQuick error
				at := &meanwhileFS{Mem: x.fs, name: slow.out + "/.tidemill/id", do: func() {
					errQuick = runInto(x.ctx, x.fs, quick.out, quick.checkpoint, quick.more)
				}}
				if strings.HasPrefix(c.name, "checkpoint") {
					at.name = slow.checkpoint + "/metadata"
				}
				err := runInto(x.ctx, at, slow.out, slow.checkpoint, slow.more)
				first, second := quick, slow
				if errQuick != nil { // it met what the slow one had made by then
					first, second, err, errQuick = slow, quick, errQuick, err
				}
				x.ok(errQuick)
				refused := func(err error) {
					t.Helper()
					if kind := tidemill.KindOf(err); kind != tidemill.UsageError && kind != tidemill.RefusalError {
						t.Errorf("the other one: %v", err)
					}
				}
				refused(err)
				x.ok(runInto(x.ctx, x.fs, first.out, first.checkpoint, first.more))
				refused(runInto(x.ctx, x.fs, second.out, second.checkpoint, second.more))
			})
		}
	}
}
