package parquet

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"math"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/decimal128"
	"github.com/apache/arrow-go/v18/arrow/memory"
	pqfile "github.com/apache/arrow-go/v18/parquet"
	"github.com/apache/arrow-go/v18/parquet/compress"
	"github.com/apache/arrow-go/v18/parquet/file"
	"github.com/apache/arrow-go/v18/parquet/pqarrow"

	"github.com/tidemill/tidemill/columnar"
	"github.com/tidemill/tidemill/columnar/columnartest"
	"github.com/tidemill/tidemill/internal/vfs"
	"github.com/tidemill/tidemill/logical/connector"
)

// Every kind of column, with every kind of nesting.
var everything = columnar.NewSchema(
	columnar.Field("b", columnar.Boolean),
	columnar.Field("i8", columnar.Int8),
	columnar.Field("i16", columnar.Int16),
	columnar.Field("i32", columnar.Int32),
	columnar.Field("i64", columnar.Int64),
	columnar.Field("f32", columnar.Float32),
	columnar.Field("f64", columnar.Float64),
	columnar.Field("d9", columnar.Decimal(9, 2)),
	columnar.Field("d38", columnar.Decimal(38, 5)),
	columnar.Field("s", columnar.String),
	columnar.Field("few", columnar.String),
	columnar.Field("raw", columnar.Binary),
	columnar.Field("day", columnar.Date),
	columnar.Field("clock", columnar.Time),
	columnar.Field("ts", columnar.Timestamp),
	columnar.Field("l", columnar.ListOf(columnar.Int32)),
	columnar.Field("ll", columnar.ListOf(columnar.ListOf(columnar.String))),
	columnar.Field("st", arrow.StructOf(columnar.Field("a", columnar.Int64), columnar.Field("in", arrow.StructOf(columnar.Field("x", columnar.String))))),
	columnar.Field("m", arrow.MapOf(columnar.String, columnar.Int64)),
	columnar.Field("ls", columnar.ListOf(arrow.StructOf(columnar.Field("k", columnar.String), columnar.Field("v", columnar.ListOf(columnar.Float64))))),
	columnar.Field("ml", arrow.MapOf(columnar.Int32, columnar.ListOf(arrow.MapOf(columnar.String, columnar.Boolean)))),
)

// fill appends a random value to b; the share of nulls is nulls percent.
func fill(r *rand.Rand, b array.Builder, nulls int) {
	if r.IntN(100) < nulls {
		b.AppendNull()
		return
	}
	switch b := b.(type) {
	case *array.BooleanBuilder:
		b.Append(r.IntN(2) == 0)
	case *array.Int8Builder:
		b.Append(int8(r.Uint32()))
	case *array.Int16Builder:
		b.Append(int16(r.Uint32()))
	case *array.Int32Builder:
		b.Append(int32(r.Uint32()))
	case *array.Int64Builder:
		b.Append(int64(r.Uint64()))
	case *array.Float32Builder:
		b.Append(float32(r.NormFloat64()))
	case *array.Float64Builder:
		b.Append([]float64{r.NormFloat64(), 0, math.Copysign(0, -1), math.Inf(1), math.NaN()}[r.IntN(5)])
	case *array.Decimal128Builder:
		t := b.Type().(*arrow.Decimal128Type)
		v := decimal128.FromI64(r.Int64N(1e9) - 5e8)
		if t.Precision > 18 {
			v = v.Mul(decimal128.FromI64(r.Int64()))
		}
		b.Append(v)
	case *array.StringBuilder:
		b.Append([]string{"", "park", "Ünïcode ☃", strings.Repeat("long", r.IntN(40)), fmt.Sprint(r.IntN(10000))}[r.IntN(5)])
	case *array.BinaryBuilder:
		raw := make([]byte, r.IntN(9))
		for i := range raw {
			raw[i] = byte(r.Uint32())
		}
		b.Append(raw)
	case *array.Date32Builder:
		b.Append(arrow.Date32(r.IntN(40000) - 20000))
	case *array.Time64Builder:
		b.Append(arrow.Time64(r.Int64N(dayMicros)))
	case *array.TimestampBuilder:
		b.Append(arrow.Timestamp(r.Int64() - math.MaxInt64/2))
	case *array.ListBuilder:
		b.Append(true)
		for range r.IntN(4) {
			fill(r, b.ValueBuilder(), nulls)
		}
	case *array.MapBuilder:
		b.Append(true)
		for range r.IntN(3) {
			fill(r, b.KeyBuilder(), 0)
			fill(r, b.ItemBuilder(), nulls)
		}
	case *array.StructBuilder:
		b.Append(true)
		for i := range b.NumField() {
			fill(r, b.FieldBuilder(i), nulls)
		}
	default:
		panic(fmt.Sprintf("no values for %T", b))
	}
}

func randomBatch(mem memory.Allocator, r *rand.Rand, s *arrow.Schema, rows, nulls int) arrow.RecordBatch {
	b := array.NewRecordBuilder(mem, s)
	defer b.Release()
	for i := range s.NumFields() {
		for range rows {
			fill(r, b.Field(i), nulls)
		}
	}
	return b.NewRecordBatch()
}

// writeFile writes batches into a file of m.
func writeFile(t testing.TB, m vfs.FS, path string, s *arrow.Schema, o WriterConfig, batches ...arrow.RecordBatch) {
	t.Helper()
	h, err := m.Create(path)
	if err != nil {
		t.Fatal(err)
	}
	defer h.Close()
	w, err := NewFileWriter(h, s, o)
	if err != nil {
		t.Fatal(err)
	}
	for _, b := range batches {
		if err := w.Write(b); err != nil {
			t.Fatal(err)
		}
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	info, _ := h.Stat()
	if w.Size() != info.Size() {
		t.Errorf("Size is %d, the file has %d bytes", w.Size(), info.Size())
	}
}

// readAll reads a file as one table of plain columns.
func readAll(t testing.TB, mem memory.Allocator, m vfs.FS, path string, columns []int) arrow.Table {
	t.Helper()
	f, err := OpenFile(m, path)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	r, err := f.Reader(mem, columns)
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	batches, err := columnar.Drain(context.Background(), r)
	if err != nil {
		t.Fatal(err)
	}
	table := array.NewTableFromRecords(r.Schema(), batches)
	for _, b := range batches {
		b.Release()
	}
	return table
}

// text is the values of a column, one a line.
func text(c *arrow.Chunked) []string {
	var out []string
	for _, a := range c.Chunks() {
		for i := range a.Len() {
			out = append(out, strings.Clone(a.ValueStr(i)))
		}
	}
	return out
}

// sameTable compares two tables value by value.
func sameTable(t *testing.T, got, want arrow.Table) {
	t.Helper()
	if got.NumRows() != want.NumRows() || got.NumCols() != want.NumCols() {
		t.Fatalf("%d rows of %d columns, want %d of %d", got.NumRows(), got.NumCols(), want.NumRows(), want.NumCols())
	}
	for i := range int(got.NumCols()) {
		g, w := text(got.Column(i).Data()), text(want.Column(i).Data())
		for j := range g {
			if g[j] != w[j] {
				t.Fatalf("column %s, row %d: %s, want %s", got.Schema().Field(i).Name, j, g[j], w[j])
			}
		}
	}
}

func TestRoundTrip(t *testing.T) {
	t.Parallel()
	for i, config := range []WriterConfig{{}, {Compression: Uncompressed}, {Compression: Zstd}, {Compression: Gzip}, {Hasty: true}} {
		for _, nulls := range []int{0, 20, 100} {
			t.Run(fmt.Sprintf("%s/%d/%d%%null", config.Compression, i, nulls), func(t *testing.T) {
				t.Parallel()
				mem := columnartest.Mem(t)
				r := rand.New(rand.NewPCG(uint64(nulls), uint64(i)))
				m := vfs.NewMem()
				var batches []arrow.RecordBatch
				for _, rows := range []int{1, 7, 64, 1000, 333} {
					b := randomBatch(mem, r, everything, rows, nulls)
					defer b.Release()
					batches = append(batches, b)
				}
				config := config
				config.RowGroupRows, config.Metadata = 500, map[string]string{"k": "v"}
				writeFile(t, m, "a.parquet", everything, config, batches...)
				want := array.NewTableFromRecords(everything, batches)
				defer want.Release()
				got := readAll(t, mem, m, "a.parquet", nil)
				defer got.Release()
				sameTable(t, got, want)
				crossCheck(t, m, "a.parquet", want)
			})
		}
	}
}

// crossCheck reads the file with another implementation.
func crossCheck(t *testing.T, m vfs.FS, path string, want arrow.Table) {
	t.Helper()
	data, err := vfs.ReadFile(m, path)
	if err != nil {
		t.Fatal(err)
	}
	f, err := file.NewParquetReader(bytes.NewReader(data))
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	r, err := pqarrow.NewFileReader(f, pqarrow.ArrowReadProperties{}, memory.DefaultAllocator)
	if err != nil {
		t.Fatal(err)
	}
	table, err := r.ReadTable(context.Background())
	if err != nil {
		t.Fatal(err)
	}
	defer table.Release()
	sameTable(t, table, want)
}

// TestReadForeign reads what the other implementation wrote, in its many ways.
func TestReadForeign(t *testing.T) {
	t.Parallel()
	for i, props := range foreignProperties() {
		t.Run(fmt.Sprint(i), func(t *testing.T) {
			t.Parallel()
			mem := columnartest.Mem(t)
			r := rand.New(rand.NewPCG(uint64(i), 9))
			b := randomBatch(mem, r, everything, 700, 15)
			defer b.Release()
			want := array.NewTableFromRecords(everything, []arrow.RecordBatch{b})
			defer want.Release()
			m := vfs.NewMem()
			h, err := m.Create("a.parquet")
			if err != nil {
				t.Fatal(err)
			}
			if err := pqarrow.WriteTable(want, nopCloser{h}, 300, props, pqarrow.NewArrowWriterProperties()); err != nil {
				t.Fatal(err)
			}
			_ = h.Close()
			got := readAll(t, mem, m, "a.parquet", nil)
			defer got.Release()
			sameTable(t, got, want)
		})
	}
}

type nopCloser struct{ io.Writer }

func (nopCloser) Close() error { return nil }

func TestProjection(t *testing.T) {
	t.Parallel()
	mem := columnartest.Mem(t)
	m := vfs.NewMem()
	b := randomBatch(mem, rand.New(rand.NewPCG(1, 2)), everything, 100, 10)
	defer b.Release()
	writeFile(t, m, "a.parquet", everything, WriterConfig{}, b)
	columns := []int{19, 3, 9}
	got := readAll(t, mem, m, "a.parquet", columns)
	defer got.Release()
	for i, c := range columns {
		if g, w := got.Schema().Field(i).Name, everything.Field(c).Name; g != w {
			t.Errorf("column %d is %s, want %s", i, g, w)
		}
	}
	none := readAll(t, mem, m, "a.parquet", []int{})
	defer none.Release()
	f, err := OpenFile(m, "a.parquet")
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	if f.NumRows() != 100 || !f.Schema().Equal(everything) {
		t.Errorf("%d rows of %s", f.NumRows(), f.Schema())
	}
}

func TestNotParquet(t *testing.T) {
	t.Parallel()
	for name, content := range map[string]string{
		"empty": "", "short": "PAR1", "text": "id,name\n1,park\n2,sea\n", "encrypted": "PARE....................PARE",
		"footer": "PAR1xxxxxxxx\xff\xff\xff\x7fPAR1", "rubbish": "PAR1xxxxxxxx\x08\x00\x00\x00PAR1",
	} {
		m := vfs.NewMem()
		if err := vfs.WriteAtomic(m, "f", []byte(content)); err != nil {
			t.Fatal(err)
		}
		_, err := OpenFile(m, "f")
		var re *connector.RecordError
		if !errors.As(err, &re) || re.File != "f" {
			t.Errorf("%s: %v, want a RecordError that names the file", name, err)
		}
	}
	if _, err := OpenFile(vfs.NewMem(), "none"); err == nil || errors.As(err, new(*connector.RecordError)) {
		t.Errorf("a missing file: %v", err)
	}
}

// TestEncrypted reads files with an encrypted footer, and with a legible one that is signed.
func TestEncrypted(t *testing.T) {
	t.Parallel()
	b := columnartest.Batch(t, columnartest.Mem(t), "a:bigint\n1\n")
	defer b.Release()
	table := array.NewTableFromRecords(b.Schema(), []arrow.RecordBatch{b})
	defer table.Release()
	for name, options := range map[string][]pqfile.EncryptOption{"footer": nil, "columns": {pqfile.WithPlaintextFooter()}} {
		m := vfs.NewMem()
		f, err := m.Create("f")
		if err != nil {
			t.Fatal(err)
		}
		props := pqfile.NewWriterProperties(pqfile.WithEncryptionProperties(pqfile.NewFileEncryptionProperties("0123456789012345", options...)))
		if err := pqarrow.WriteTable(table, f, 300, props, pqarrow.NewArrowWriterProperties()); err != nil {
			t.Fatal(err)
		}
		const want = "f: the Parquet file is encrypted, which is not supported; have it written without encryption, or left out by mode = 'drop'"
		if _, err := OpenFile(m, "f"); err == nil || err.Error() != want {
			t.Errorf("%s: %v, want %s", name, err, want)
		}
	}
}

func foreignProperties() []*pqfile.WriterProperties {
	var all []*pqfile.WriterProperties
	for _, v := range []pqfile.DataPageVersion{pqfile.DataPageV1, pqfile.DataPageV2} {
		for _, c := range []compress.Compression{compress.Codecs.Uncompressed, compress.Codecs.Snappy, compress.Codecs.Brotli, compress.Codecs.Lz4Raw, compress.Codecs.Zstd} {
			for _, dict := range []bool{true, false} {
				all = append(all, pqfile.NewWriterProperties(pqfile.WithDataPageVersion(v), pqfile.WithCompression(c),
					pqfile.WithDictionaryDefault(dict), pqfile.WithDataPageSize(2000), pqfile.WithDictionaryPageSizeLimit(3000), pqfile.WithBatchSize(100)))
			}
		}
	}
	for column, e := range map[string]pqfile.Encoding{
		"i64": pqfile.Encodings.DeltaBinaryPacked, "i32": pqfile.Encodings.DeltaBinaryPacked, "s": pqfile.Encodings.DeltaByteArray,
		"few": pqfile.Encodings.DeltaLengthByteArray, "f64": pqfile.Encodings.ByteStreamSplit, "f32": pqfile.Encodings.ByteStreamSplit,
		"b": pqfile.Encodings.RLE,
	} {
		all = append(all, pqfile.NewWriterProperties(pqfile.WithDictionaryDefault(false), pqfile.WithEncodingFor(column, e), pqfile.WithDataPageVersion(pqfile.DataPageV2)))
	}
	return all
}
