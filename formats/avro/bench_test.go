package avro

import (
	"bytes"
	"io"
	"testing"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/twmb/avro/ocf"

	"github.com/tidemill/tidemill/columnar"
	"github.com/tidemill/tidemill/columnar/columnartest"
	"github.com/tidemill/tidemill/formats/codec"
	"github.com/tidemill/tidemill/formats/codec/codectest"
	"github.com/tidemill/tidemill/logical/connector"
)

const benchRows = 100_000

func benchBatch(b *testing.B) arrow.RecordBatch {
	b.Helper()
	schema := columnar.NewSchema(
		columnar.Field("ts", columnar.Timestamp), columnar.Field("id", columnar.Int64), columnar.Field("amount", columnar.Float64),
		columnar.Field("n", columnar.Int32), columnar.Field("city", columnar.String), columnar.Field("note", columnar.String))
	return columnartest.Random(b, columnartest.Mem(b), schema, 7, columnartest.RandomOptions{Rows: benchRows, Distinct: 500})
}

func reportRows(b *testing.B, bytes int) {
	b.SetBytes(int64(bytes))
	b.ReportMetric(float64(benchRows*b.N)/b.Elapsed().Seconds(), "rows/s")
}

func BenchmarkRead(b *testing.B) {
	in := benchBatch(b)
	for name, columns := range map[string][]int{"all": nil, "two": {1, 4}} {
		for c := Snappy; c <= Zstd; c++ {
			f := must(New(Options{Compression: c}))
			data := must(codectest.Write(b, f, in.Schema(), in))
			file := codectest.File(b, "x.avro", []byte(data))
			b.Run(name+"/"+c.String(), func(b *testing.B) {
				for b.Loop() {
					units := must(f.Units(b.Context(), file, codec.Columns{Schema: in.Schema()}, connector.ScanRequest{Columns: columns}))
					for _, u := range units {
						r := must(u.Open(b.Context()))
						for batch, err := range columnar.All(b.Context(), r) {
							if err != nil {
								b.Fatal(err)
							}
							_ = batch
						}
						if err := r.Close(); err != nil {
							b.Fatal(err)
						}
					}
				}
				reportRows(b, len(data))
			})
		}
	}
}

// BenchmarkLibrary is what decoding into values of Go costs.
func BenchmarkLibrary(b *testing.B) {
	in := benchBatch(b)
	data := must(codectest.Write(b, must(New(Options{Compression: Uncompressed})), in.Schema(), in))
	for b.Loop() {
		r := must(ocf.NewReader(bytes.NewReader([]byte(data))))
		for {
			var v struct {
				TS     *int64   `avro:"ts"`
				ID     *int64   `avro:"id"`
				Amount *float64 `avro:"amount"`
				N      *int32   `avro:"n"`
				City   *string  `avro:"city"`
				Note   *string  `avro:"note"`
			}
			if err := r.Decode(&v); err == io.EOF {
				break
			} else if err != nil {
				b.Fatal(err)
			}
		}
	}
	reportRows(b, len(data))
}

func BenchmarkWrite(b *testing.B) {
	in := benchBatch(b)
	for c := Snappy; c <= Zstd; c++ {
		b.Run(c.String(), func(b *testing.B) {
			f := must(New(Options{Compression: c}))
			var size int64
			for b.Loop() {
				w := must(f.NewWriter(io.Discard, in.Schema(), codec.WriterOptions{}))
				if err := w.Write(in); err != nil {
					b.Fatal(err)
				}
				if err := w.Close(); err != nil {
					b.Fatal(err)
				}
				size = w.Size()
			}
			reportRows(b, int(size))
		})
	}
}
