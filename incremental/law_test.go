package incremental_test

import (
	"flag"
	"testing"

	"github.com/tidemill/tidemill/columnar/columnartest"
	"github.com/tidemill/tidemill/incremental/streamtest"
)

var (
	lawCases = flag.Int("cases", 200, "how many generated queries TestBatchIsStream runs")
	lawSeed  = flag.Uint64("seed", 1, "seed of the first")
)

// TestBatchIsStream holds generated queries to the law that the result of a stream is
// that of the batch. A difference is shown as a golden file, made as small as it gets;
// it is committed to testdata/stream/found.
func TestBatchIsStream(t *testing.T) {
	const workers = 2
	for worker := range workers {
		t.Run("", func(t *testing.T) {
			t.Parallel()
			mem := columnartest.Mem(t)
			found := 0
			for i := worker; i < *lawCases; i += workers {
				c := streamtest.Generate(*lawSeed + uint64(i))
				if c.Check(t.Context(), mem) == "" {
					continue
				}
				c = c.Minimise(t.Context(), mem, 500)
				t.Errorf("seed %d:\n%s\n%s", c.Seed, c.Check(t.Context(), mem), c.Golden())
				if found++; found == 5 {
					return
				}
			}
		})
	}
}
