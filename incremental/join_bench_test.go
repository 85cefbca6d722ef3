package incremental_test

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"github.com/tidemill/tidemill/columnar"
	"github.com/tidemill/tidemill/incremental/streamtest"
	"github.com/tidemill/tidemill/internal/vfs"
	"github.com/tidemill/tidemill/logical/connector"
)

// BenchmarkStreamJoin is batches of a join by a key and a range of times, once its state
// has reached its size: what a batch costs must not depend on how many came before.
func BenchmarkStreamJoin(b *testing.B) {
	const rows = 50_000
	for _, kind := range []string{"INNER", "LEFT", "SEMI"} {
		b.Run(kind, func(b *testing.B) {
			ctx := b.Context()
			fsys := vfs.NewMem()
			w := streamtest.NewWorld(fsys, columnar.NewPool(), streamtest.Variant{})
			w.Sink = "noop"
			fsys.SetClock(w.Clock.Now)
			for _, name := range []string{"l", "r"} {
				w.Declare(fmt.Sprintf("CREATE STREAM %s (k BIGINT, v BIGINT, ts TIMESTAMP, WATERMARK FOR ts AS ts - INTERVAL '10 seconds') WITH (path = '/in/%s', format = 'csv');", name, name))
			}
			query := fmt.Sprintf("SELECT l.k, l.v FROM l %s JOIN r ON l.k = r.k AND r.ts BETWEEN l.ts - INTERVAL '5 minutes' AND l.ts + INTERVAL '5 minutes'", kind)
			if err := w.Query(query, connector.Append, nil); err != nil {
				b.Fatal(err)
			}
			if err := w.Open(ctx); err != nil {
				b.Fatal(err)
			}
			rng := rand.New(rand.NewPCG(1, 2))
			batch := 0
			step := func() {
				b.StopTimer()
				for _, name := range []string{"l", "r"} {
					if err := w.WriteInput(ctx, fmt.Sprintf("%s/%d.csv", name, batch), benchRows(rng, batch, rows)); err != nil {
						b.Fatal(err)
					}
				}
				batch++
				b.StartTimer()
				if _, err := w.Step(ctx); err != nil {
					b.Fatal(err)
				}
			}
			step()
			step()
			for b.Loop() {
				step()
			}
			b.ReportMetric(2*rows*float64(b.N)/b.Elapsed().Seconds(), "rows/s")
			if err := w.Close(); err != nil {
				b.Fatal(err)
			}
		})
	}
}

// benchRows is a file of ten minutes.
func benchRows(rng *rand.Rand, batch, rows int) []byte {
	var sb strings.Builder
	sb.WriteString("k,v,ts\n")
	start := time.Date(2024, 1, 1, 0, 0, 0, 0, time.UTC).Add(time.Duration(batch) * 10 * time.Minute)
	for i := range rows {
		at := start.Add(time.Duration(rng.IntN(600_000_000)) * time.Microsecond)
		fmt.Fprintf(&sb, "%d,%d,%s\n", rng.IntN(25_000), i, at.Format("2006-01-02T15:04:05.000000Z"))
	}
	return []byte(sb.String())
}
