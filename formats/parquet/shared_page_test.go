package parquet

import (
	"bytes"
	"fmt"
	"testing"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/memory"
	pqfile "github.com/apache/arrow-go/v18/parquet"
	"github.com/apache/arrow-go/v18/parquet/compress"
	"github.com/apache/arrow-go/v18/parquet/pqarrow"

	"github.com/tidemill/tidemill/columnar"
	"github.com/tidemill/tidemill/columnar/columnartest"
	"github.com/tidemill/tidemill/formats/codec"
	"github.com/tidemill/tidemill/internal/vfs"
	"github.com/tidemill/tidemill/logical/connector"
)

// sharedTable has numbers that are stored as arrays have them: required, optional without
// nulls, and with nulls in the second half.
func sharedTable(t *testing.T, rows int) arrow.Table {
	t.Helper()
	schema := arrow.NewSchema([]arrow.Field{
		{Name: "required", Type: arrow.PrimitiveTypes.Int64}, columnar.Field("full", columnar.Int64), columnar.Field("some", columnar.Int64),
		columnar.Field("small", columnar.Int32), columnar.Field("f", columnar.Float64),
	}, nil)
	b := array.NewRecordBuilder(memory.DefaultAllocator, schema)
	defer b.Release()
	for i := range rows {
		for c := range 3 {
			b.Field(c).(*array.Int64Builder).Append(int64(i * (c + 1)))
		}
		b.Field(3).(*array.Int32Builder).Append(int32(-i))
		b.Field(4).(*array.Float64Builder).Append(float64(i) / 2)
		if i > rows/2 && i%3 == 0 {
			b.Field(2).(*array.Int64Builder).SetNull(i)
		}
	}
	return array.NewTableFromRecords(schema, []arrow.RecordBatch{b.NewRecordBatch()})
}

// TestSharedPages: arrays that are parts of pages stay what they are when the reader goes
// on and is closed, and give the page back.
func TestSharedPages(t *testing.T) {
	t.Parallel()
	const rows = 20000
	table := sharedTable(t, rows)
	for _, codecs := range []compress.Compression{compress.Codecs.Uncompressed, compress.Codecs.Snappy, compress.Codecs.Zstd} {
		for _, version := range []pqfile.DataPageVersion{pqfile.DataPageV1, pqfile.DataPageV2} {
			for _, pageSize := range []int64{1 << 20, 30000, 100} {
				name := fmt.Sprintf("%s, version %d, pages of %d", codecs, version, pageSize)
				props := pqfile.NewWriterProperties(pqfile.WithCompression(codecs), pqfile.WithDataPageVersion(version), pqfile.WithDataPageSize(pageSize), pqfile.WithDictionaryDefault(false))
				var out bytes.Buffer
				if err := pqarrow.WriteTable(table, &out, rows, props, pqarrow.NewArrowWriterProperties()); err != nil {
					t.Fatal(err)
				}
				m := vfs.NewMem()
				if err := vfs.WriteAtomic(m, "a", out.Bytes()); err != nil {
					t.Fatal(err)
				}
				shared := sameWhenKept(t, name, inputFile(t, m, "a"), table)
				if shared == 0 && pageSize > 100 {
					t.Errorf("%s: no array is a part of a page", name)
				}
			}
		}
	}
}

// sameWhenKept compares a file with a table after the reader is closed; shared is how many
// arrays are parts of others' buffers.
func sameWhenKept(t *testing.T, name string, file codec.File, want arrow.Table) (shared int) {
	t.Helper()
	mem := columnartest.Mem(t)
	f, _ := New(Options{})
	units, err := f.Units(t.Context(), file, codec.Columns{Schema: want.Schema(), CorruptColumn: -1}, connector.ScanRequest{Mem: mem, BatchRows: 1000})
	if err != nil {
		t.Fatal(err)
	}
	var batches []arrow.RecordBatch
	for _, u := range units {
		r, err := u.Open(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		for b, err := range columnar.All(t.Context(), r) {
			if err != nil {
				t.Fatal(name, err)
			}
			b.Retain()
			batches = append(batches, b)
		}
		if err := r.Close(); err != nil {
			t.Fatal(err)
		}
	}
	got := array.NewTableFromRecords(want.Schema(), batches)
	defer got.Release()
	for _, b := range batches {
		for _, c := range b.Columns() {
			if c.Data().Buffers()[1].Parent() != nil {
				shared++
			}
		}
		b.Release()
	}
	if fmt.Sprint(commonTable(got)) != fmt.Sprint(commonTable(want)) {
		t.Errorf("%s: other values", name)
	}
	return shared
}
