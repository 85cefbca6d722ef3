package parquet

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"math/rand/v2"
	"testing"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/memory"
	"github.com/apache/arrow-go/v18/parquet/file"
	"github.com/apache/arrow-go/v18/parquet/pqarrow"

	"github.com/tidemill/tidemill/columnar"
	"github.com/tidemill/tidemill/formats/codec"
	"github.com/tidemill/tidemill/internal/vfs"
	"github.com/tidemill/tidemill/logical/connector"
)

// benchSchema is a table of events: a timestamp, ids, amounts, two texts of few
// values and one of many.
var benchSchema = columnar.NewSchema(
	columnar.Field("ts", columnar.Timestamp),
	columnar.Field("id", columnar.Int64),
	columnar.Field("amount", columnar.Float64),
	columnar.Field("n", columnar.Int32),
	columnar.Field("city", columnar.String),
	columnar.Field("channel", columnar.String),
	columnar.Field("note", columnar.String),
)

// benchBatches makes rows rows; a nulls-th of the values is null, none if it is 0.
func benchBatches(rows, nulls int) []arrow.RecordBatch {
	r := rand.New(rand.NewPCG(7, 7))
	b := array.NewRecordBuilder(memory.DefaultAllocator, benchSchema)
	defer b.Release()
	var out []arrow.RecordBatch
	for i := range rows {
		for c := range benchSchema.NumFields() {
			if nulls > 0 && r.IntN(nulls) == 0 {
				b.Field(c).AppendNull()
				continue
			}
			switch f := b.Field(c).(type) {
			case *array.TimestampBuilder:
				f.Append(arrow.Timestamp(1700000000000000 + int64(i)*1000 + r.Int64N(1000)))
			case *array.Int64Builder:
				f.Append(r.Int64N(1 << 40))
			case *array.Float64Builder:
				f.Append(float64(r.IntN(1000000)) / 100)
			case *array.Int32Builder:
				f.Append(r.Int32N(1000))
			case *array.StringBuilder:
				switch c {
				case 4:
					f.Append(fmt.Sprintf("city-%03d", r.IntN(500)))
				case 5:
					f.Append([]string{"web", "app", "shop", "phone"}[r.IntN(4)])
				default:
					f.Append(fmt.Sprintf("note %d", r.Int64N(1<<30)))
				}
			}
		}
		if (i+1)%columnar.DefaultBatchRows == 0 || i+1 == rows {
			out = append(out, b.NewRecordBatch())
		}
	}
	return out
}

const benchRows = 1 << 20

// benchFile writes the table into memory.
func benchFile(b *testing.B, nulls int) (codec.File, *arrow.Schema) {
	b.Helper()
	m := vfs.NewMem()
	batches := benchBatches(benchRows, nulls)
	writeFile(b, m, "bench.parquet", benchSchema, WriterConfig{}, batches...)
	for _, x := range batches {
		x.Release()
	}
	info, err := m.Stat("bench.parquet")
	if err != nil {
		b.Fatal(err)
	}
	return codec.File{FS: m, FileIdentity: connector.FileIdentity{Path: "bench.parquet", Size: info.Size()}}, benchSchema
}

func BenchmarkRead(b *testing.B) {
	for _, nulls := range []int{0, 10} {
		f, schema := benchFile(b, nulls)
		for _, c := range []struct {
			name    string
			columns []int
		}{
			{"all", nil}, {"ts", []int{0}}, {"id", []int{1}}, {"n", []int{3}}, {"city", []int{4}}, {"note", []int{6}}, {"ts+amount", []int{0, 2}}, {"none", []int{}},
		} {
			b.Run(fmt.Sprintf("nulls=%d/%s", nulls, c.name), func(b *testing.B) {
				p, err := New(Options{})
				if err != nil {
					b.Fatal(err)
				}
				pool := columnar.NewPool()
				b.ReportAllocs()
				for b.Loop() {
					units, err := p.Units(context.Background(), f, codec.Columns{Schema: schema}, connector.ScanRequest{Columns: c.columns, Mem: pool})
					if err != nil {
						b.Fatal(err)
					}
					rows := int64(0)
					for _, u := range units {
						r, err := u.Open(context.Background())
						if err != nil {
							b.Fatal(err)
						}
						for x, err := range columnar.All(context.Background(), r) {
							if err != nil {
								b.Fatal(err)
							}
							rows += x.NumRows()
						}
						_ = r.Close()
					}
					if rows != benchRows {
						b.Fatalf("%d rows", rows)
					}
				}
				b.ReportMetric(float64(benchRows)*float64(b.N)/b.Elapsed().Seconds()/1e6, "Mrows/s")
			})
		}
	}
}

func BenchmarkWrite(b *testing.B) {
	batches := benchBatches(benchRows, 0)
	for _, c := range []Compression{Snappy, Zstd, Uncompressed} {
		b.Run(c.String(), func(b *testing.B) {
			b.ReportAllocs()
			size := int64(0)
			for b.Loop() {
				w, err := NewFileWriter(io.Discard, benchSchema, WriterConfig{Compression: c})
				if err != nil {
					b.Fatal(err)
				}
				for _, x := range batches {
					if err := w.Write(x); err != nil {
						b.Fatal(err)
					}
				}
				if err := w.Close(); err != nil {
					b.Fatal(err)
				}
				size = w.Size()
			}
			b.ReportMetric(float64(benchRows)*float64(b.N)/b.Elapsed().Seconds()/1e6, "Mrows/s")
			b.ReportMetric(float64(size)/1e6, "MB")
		})
	}
}

// BenchmarkReadOther reads the same file with pqarrow, for comparison.
func BenchmarkReadOther(b *testing.B) {
	f, _ := benchFile(b, 0)
	data, err := vfs.ReadFile(f.FS, f.Path)
	if err != nil {
		b.Fatal(err)
	}
	for b.Loop() {
		pf, err := file.NewParquetReader(bytes.NewReader(data))
		if err != nil {
			b.Fatal(err)
		}
		r, err := pqarrow.NewFileReader(pf, pqarrow.ArrowReadProperties{BatchSize: 64 << 10}, memory.DefaultAllocator)
		if err != nil {
			b.Fatal(err)
		}
		rr, err := r.GetRecordReader(context.Background(), nil, nil)
		if err != nil {
			b.Fatal(err)
		}
		rows := int64(0)
		for rr.Next() {
			rows += rr.RecordBatch().NumRows()
		}
		rr.Release()
		if rows != benchRows {
			b.Fatalf("%d rows", rows)
		}
	}
	b.ReportMetric(float64(benchRows)*float64(b.N)/b.Elapsed().Seconds()/1e6, "Mrows/s")
}
