package csv

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"testing"

	"github.com/apache/arrow-go/v18/arrow"

	"github.com/tidemill/tidemill/columnar"
	"github.com/tidemill/tidemill/columnar/columnartest"
	"github.com/tidemill/tidemill/formats/codec"
	"github.com/tidemill/tidemill/formats/codec/codectest"
	"github.com/tidemill/tidemill/logical/connector"
)

const benchSchema = "id1:varchar  id2:varchar  id3:varchar  v1:bigint  v2:bigint  v3:bigint  x:double  y:double"

// benchText is rows like those of group-by benchmarks; one field in quotes in the
// given share of them.
func benchText(rows int, quoted float64) []byte {
	r := rand.New(rand.NewPCG(7, 7))
	var b bytes.Buffer
	b.WriteString("id1,id2,id3,v1,v2,v3,x,y\n")
	for i := range rows {
		id2 := fmt.Sprintf("id%03d", r.IntN(100))
		if r.Float64() < quoted {
			id2 = `"id,` + id2[2:] + `"`
		}
		fmt.Fprintf(&b, "id%03d,%s,id%010d,%d,%d,%d,%.6f,%.3f\n", r.IntN(100), id2, r.IntN(100000), r.IntN(5), r.IntN(100000), i, r.Float64()*100, r.Float64()*1000)
	}
	return b.Bytes()
}

// drain reads every unit and counts rows.
func drain(tb testing.TB, f codec.Format, file codec.File, schema *arrow.Schema, req connector.ScanRequest) (rows int64) {
	tb.Helper()
	ctx := context.Background()
	units, err := f.Units(ctx, file, codec.Columns{Schema: schema, CorruptColumn: -1}, req)
	if err != nil {
		tb.Fatal(err)
	}
	for _, u := range units {
		r, err := u.Open(ctx)
		if err != nil {
			tb.Fatal(err)
		}
		for {
			b, err := r.Next(ctx)
			if errors.Is(err, io.EOF) {
				break
			}
			if err != nil {
				tb.Fatal(err)
			}
			rows += b.NumRows()
			b.Release()
		}
		r.Close()
	}
	return rows
}

func BenchmarkRead(b *testing.B) {
	for _, c := range []struct {
		name    string
		quoted  float64
		columns []int
		hash    bool
	}{{name: "plain"}, {name: "quoted=30%", quoted: 0.3}, {name: "columns=2of8", columns: []int{0, 4}}, {name: "count", columns: []int{}}, {name: "hashed", hash: true}} {
		b.Run(c.name, func(b *testing.B) {
			const rows = 600_000
			text := benchText(rows, c.quoted)
			file := codectest.File(b, "x.csv", text)
			f := newFormat(b, Options{})
			schema := columnartest.Schema(b, benchSchema)
			req := connector.ScanRequest{Mem: columnar.NewPool(), Columns: c.columns}
			b.SetBytes(int64(len(text)))
			for b.Loop() {
				if c.hash {
					file.Hash = codec.NewContentHash(file.Size)
				}
				if n := drain(b, f, file, schema, req); n != rows {
					b.Fatal(n)
				}
			}
			b.ReportMetric(float64(rows)*float64(b.N)/b.Elapsed().Seconds(), "rows/s")
		})
	}
}

func BenchmarkWrite(b *testing.B) {
	mem := columnar.NewPool()
	batch := columnartest.Random(b, mem, columnartest.Schema(b, "i:bigint  s:varchar  t:timestamp  f:double"), 1, columnartest.RandomOptions{Rows: 16384})
	f := newFormat(b, Options{})
	for b.Loop() {
		w, err := f.NewWriter(io.Discard, batch.Schema(), codec.WriterOptions{})
		if err != nil {
			b.Fatal(err)
		}
		if err := errors.Join(w.Write(batch), w.Close()); err != nil {
			b.Fatal(err)
		}
		b.SetBytes(w.Size())
	}
}

// TestAllocations pins that reading allocates per batch and unit, never per row.
func TestAllocations(t *testing.T) {
	mem := columnar.NewPool()
	schema := columnartest.Schema(t, benchSchema)
	f := newFormat(t, Options{})
	allocations := func(rows int) float64 {
		file := codectest.File(t, "x.csv", benchText(rows, 0.3))
		return testing.AllocsPerRun(3, func() { drain(t, f, file, schema, connector.ScanRequest{Mem: mem}) })
	}
	few, many := allocations(1000), allocations(50_000)
	if perRow := (many - few) / 49_000; perRow > 0.02 {
		t.Errorf("%.3f allocations a row", perRow)
	}
}
