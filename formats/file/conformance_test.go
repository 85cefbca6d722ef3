package file

import (
	"fmt"
	"path/filepath"
	"testing"

	"github.com/tidemill/tidemill/columnar/columnartest"
	"github.com/tidemill/tidemill/internal/vfs"
	"github.com/tidemill/tidemill/logical/connector"
	"github.com/tidemill/tidemill/logical/connector/connectortest"
)

func TestTableConformance(t *testing.T) {
	t.Parallel()
	connectortest.TestTable(t, func(t *testing.T) connector.Table {
		w := newWorld(t)
		w.write("in/k=1/a.csv", "a,b\n1,x\n2,y\n")
		w.write("in/k=2/b.csv", "a,b\n3,\"z\"\n4,\n")
		return w.table(w.env("path", "in"))
	})
}

func TestSourceConformance(t *testing.T) {
	t.Parallel()
	for _, options := range [][]string{
		nil,
		{"latest_first", "true"},
		{"same_content", "skip"},
		{"clean_source", "archive", "archive_dir", "in/_old"},
	} {
		t.Run(fmt.Sprint(options), func(t *testing.T) {
			connectortest.TestSource(t, func(t *testing.T) connectortest.SourceCase {
				w := newWorld(t)
				n := 0
				return connectortest.SourceCase{
					Add: func(t *testing.T) {
						n++
						w.write(fmt.Sprintf("in/%d.csv", n), fmt.Sprintf("a\n%d\n%d\n", 2*n, 2*n+1))
					},
					Open: func(t *testing.T, log connector.BatchLog) connector.Source {
						env := w.env(append([]string{"path", "in", "format", "csv"}, options...)...)
						env.Columns, env.Log = schemaOf("a:bigint"), log
						s, err := OpenSource(t.Context(), testFormats, env)
						if err != nil {
							t.Fatalf("OpenSource: %v", err)
						}
						return s
					},
				}
			})
		})
	}
}

// The same on the disk of the machine.
func TestSinkConformanceOnDisk(t *testing.T) {
	t.Parallel()
	connectortest.TestSink(t, func(t *testing.T) connectortest.SinkCase {
		w := newWorld(t)
		w.fs = vfs.OS()
		dir := filepath.ToSlash(t.TempDir()) + "/a/b"
		return connectortest.SinkCase{
			Open: func(t *testing.T, committed int64) connector.Sink {
				env := w.env("path", dir, "format", "csv")
				env.Columns, env.Committed = connectortest.SinkSchema, committed
				s, err := OpenSink(t.Context(), testFormats, env)
				if err != nil {
					t.Fatalf("OpenSink: %v", err)
				}
				return s
			},
			Read: func(t *testing.T) []string { return w.output(dir) },
		}
	})
}

func TestSinkConformance(t *testing.T) {
	t.Parallel()
	for _, mode := range []connector.OutputMode{connector.Append, connector.Complete} {
		t.Run(mode.String(), func(t *testing.T) {
			connectortest.TestSink(t, func(t *testing.T) connectortest.SinkCase {
				w := newWorld(t)
				return connectortest.SinkCase{
					Mode: mode,
					Open: func(t *testing.T, committed int64) connector.Sink {
						env := w.env("path", "out/x", "format", "csv")
						env.Columns, env.Mode, env.Committed = connectortest.SinkSchema, mode, committed
						s, err := OpenSink(t.Context(), testFormats, env)
						if err != nil {
							t.Fatalf("OpenSink: %v", err)
						}
						return s
					},
					Read: func(t *testing.T) []string { return w.output("out/x") },
				}
			})
		})
	}
}

// output is the rows of an output directory, read in both ways: by its manifest, and
// by a glob. Both must say the same.
func (w *world) output(dir string) []string {
	w.t.Helper()
	read := func(p string) []string {
		env := w.env("path", p, "format", "csv", "header", "true")
		env.Columns = connectortest.SinkSchema
		table, err := OpenTable(w.t.Context(), testFormats, env)
		if err != nil {
			return nil
		}
		mem := columnartest.Mem(w.t)
		us, err := table.Units(w.t.Context(), connector.ScanRequest{Mem: mem})
		if err != nil {
			return nil
		}
		return connectortest.Rows(w.t, mem, us)
	}
	byManifest, byGlob := read(dir), read(dir+"/**/*.csv")
	equal(w.t, "read by manifest and by glob", byManifest, byGlob)
	return byManifest
}
