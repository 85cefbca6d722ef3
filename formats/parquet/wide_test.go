package parquet

import (
	"fmt"
	"strings"
	"testing"

	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/memory"

	"github.com/tidemill/tidemill/columnar"
	"github.com/tidemill/tidemill/columnar/columnartest"
	"github.com/tidemill/tidemill/formats/codec"
	"github.com/tidemill/tidemill/internal/vfs"
	"github.com/tidemill/tidemill/logical/connector"
)

// TestWideRows: a batch of wide rows has few of them, by what the footer says and by what the
// rows before have; one of narrow rows has as many as are asked for.
func TestWideRows(t *testing.T) {
	t.Parallel()
	schema := columnar.NewSchema(columnar.Field("id", columnar.Int64), columnar.Field("wide", columnar.String))
	b := array.NewRecordBuilder(memory.DefaultAllocator, schema)
	defer b.Release()
	const rows, wide, most = 1000, 10_000, 1 << 20
	for i := range int64(rows) {
		b.Field(0).(*array.Int64Builder).Append(i)
		b.Field(1).(*array.StringBuilder).Append(fmt.Sprint(i, strings.Repeat("x", wide)))
	}
	batch := b.NewRecordBatch()
	defer batch.Release()
	m := vfs.NewMem()
	writeFile(t, m, "a", schema, WriterConfig{Compression: Zstd}, batch)
	for _, c := range []struct {
		columns []int
		atLeast int64 // rows of a batch
		atMost  int64
	}{{[]int{0, 1}, most / wide / 2, most / wide}, {[]int{0}, rows, rows}} {
		mem := columnartest.Mem(t)
		f, _ := New(Options{})
		units, err := f.Units(t.Context(), inputFile(t, m, "a"), codec.Columns{Schema: schema, CorruptColumn: -1},
			connector.ScanRequest{Mem: mem, Columns: c.columns, BatchBytes: most, SplitBytes: codec.MaxRange})
		if err != nil {
			t.Fatal(err)
		}
		next := int64(0)
		for _, u := range units {
			r, err := u.Open(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			for b, err := range columnar.All(t.Context(), r) {
				if err != nil {
					t.Fatal(err)
				}
				for _, id := range b.Column(0).(*array.Int64).Int64Values() {
					if id != next {
						t.Fatalf("row %d instead of %d", id, next)
					}
					next++
				}
				if n := b.NumRows(); n > c.atMost || n < c.atLeast && next < rows {
					t.Errorf("columns %v: a batch of %d rows", c.columns, n)
				}
			}
			if err := r.Close(); err != nil {
				t.Error(err)
			}
		}
		if next != rows {
			t.Errorf("columns %v: %d rows", c.columns, next)
		}
	}
}
