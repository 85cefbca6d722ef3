package formats

import (
	"testing"

	"github.com/tidemill/tidemill/columnar/columnartest"
	"github.com/tidemill/tidemill/formats/memory"
	"github.com/tidemill/tidemill/internal/vfs"
	"github.com/tidemill/tidemill/logical/connector"
	"github.com/tidemill/tidemill/logical/connector/connectortest"
)

// Files of the formats that say their columns themselves are sinks and tables as those of
// text are, which package file has.
func TestConformance(t *testing.T) {
	t.Parallel()
	for _, format := range []string{"parquet", "arrow", "avro"} {
		t.Run(format, func(t *testing.T) {
			t.Parallel()
			r := NewRegistry(memory.NewStore())
			read := func(t *testing.T, fsys vfs.FS) connector.Table {
				table, err := r.Table(ctx, "", env(t, fsys, "path", "out"))
				if err != nil {
					return nil
				}
				return table
			}
			connectortest.TestSink(t, func(t *testing.T) connectortest.SinkCase {
				fsys := vfs.NewMem()
				return connectortest.SinkCase{
					Open: func(t *testing.T, committed int64) connector.Sink {
						e := env(t, fsys, "path", "out", "format", format)
						e.Columns, e.Committed = connectortest.SinkSchema, committed
						s, err := r.Sink(ctx, "", e)
						if err != nil {
							t.Fatal(err)
						}
						return s
					},
					Read: func(t *testing.T) []string {
						if read(t, fsys) == nil {
							return nil
						}
						return readTable(t, r, env(t, fsys, "path", "out"))
					},
				}
			})
			connectortest.TestTable(t, func(t *testing.T) connector.Table {
				fsys := vfs.NewMem()
				e := env(t, fsys, "path", "out", "format", format)
				put(t, r, e, columnartest.Batch(t, e.Mem, "a:bigint  b:varchar\n1  x\n2  NULL\n3  z"))
				return read(t, fsys)
			})
		})
	}
}
