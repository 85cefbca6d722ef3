package json

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

const benchSchema = "ts:timestamp  user:varchar  page:varchar  country:varchar  agent:varchar  status:bigint  bytes:bigint  seconds:double"

// benchText is lines of eight fields, about 150 bytes each.
func benchText(rows int) []byte {
	r := rand.New(rand.NewPCG(7, 7))
	var b bytes.Buffer
	for i := range rows {
		fmt.Fprintf(&b, `{"ts":"2024-01-01T%02d:%02d:%02d.%03dZ","user":"user%06d","page":"/products/%d","country":"C%02d","agent":"Mozilla/5.0 %d","status":%d,"bytes":%d,"seconds":%.4f}`+"\n",
			i/3600%24, i/60%60, i%60, r.IntN(1000), r.IntN(100000), r.IntN(1000), r.IntN(40), r.IntN(100), 200+r.IntN(5), r.IntN(1000000), r.Float64())
	}
	return b.Bytes()
}

// benchNested is lines with a struct, an array and a map.
func benchNested(rows int) []byte {
	r := rand.New(rand.NewPCG(7, 7))
	var b bytes.Buffer
	for i := range rows {
		fmt.Fprintf(&b, `{"id":%d,"actor":{"id":%d,"login":"user%d","url":"https://example.com/users/%d"},"tags":["t%d","t%d"],"m":{"a":%d}}`+"\n",
			i, r.IntN(100000), r.IntN(1000), r.IntN(1000), r.IntN(10), r.IntN(10), r.IntN(100))
	}
	return b.Bytes()
}

const nestedSchema = "id:bigint  actor:struct<id bigint, login varchar, url varchar>  tags:array<varchar>  m:map<varchar, bigint>"

// drain reads every unit and counts rows.
func drain(tb testing.TB, f codec.Format, file codec.File, schema *arrow.Schema, req connector.ScanRequest) (rows int64) {
	tb.Helper()
	ctx := context.Background()
	units, err := f.Units(ctx, file, codec.Columns{Schema: schema, Declared: true, CorruptColumn: -1}, req)
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
		name, schema string
		columns      []int
		text         func(int) []byte
	}{
		{"flat", benchSchema, nil, benchText}, {"columns=2of8", benchSchema, []int{0, 6}, benchText},
		{"count", benchSchema, []int{}, benchText}, {"nested", nestedSchema, nil, benchNested},
	} {
		b.Run(c.name, func(b *testing.B) {
			const rows = 200_000
			text := c.text(rows)
			file := codectest.File(b, "x.json", text)
			f := newFormat(b, Options{})
			schema := columnartest.Schema(b, c.schema)
			req := connector.ScanRequest{Mem: columnar.NewPool(), Columns: c.columns}
			b.SetBytes(int64(len(text)))
			for b.Loop() {
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
	f := newFormat(t, Options{})
	for _, c := range []struct {
		schema string
		text   func(int) []byte
	}{{benchSchema, benchText}, {"id:bigint  actor:struct<id bigint, login varchar, url varchar>  tags:array<varchar>", benchNested}} {
		schema := columnartest.Schema(t, c.schema)
		allocations := func(rows int) float64 {
			file := codectest.File(t, "x.json", c.text(rows))
			return testing.AllocsPerRun(3, func() { drain(t, f, file, schema, connector.ScanRequest{Mem: mem, SplitBytes: 1 << 30}) })
		}
		few, many := allocations(2000), allocations(40_000)
		if perRow := (many - few) / 38_000; perRow > 0.02 {
			t.Errorf("%.3f allocations a row of %s", perRow, c.schema)
		}
	}
}
