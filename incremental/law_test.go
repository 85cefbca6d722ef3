package incremental_test

import (
	"flag"
	"testing"

	"github.com/tidemill/tidemill/columnar/columnartest"
	"github.com/tidemill/tidemill/incremental/streamtest"
)

var (
	lawCases   = flag.Int("cases", 300, "how many generated queries TestBatchIsStream runs")
	modelCases = flag.Int("model-cases", 60, "how many runs TestOperatorsAreTheirModels and TestJoinIsNestedLoop make")
	lawSeed    = flag.Uint64("seed", 1, "seed of the first")
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
			found, vacuous := 0, map[string]int{}
			for i := worker; i < *lawCases; i += workers {
				c := streamtest.Generate(*lawSeed + uint64(i))
				difference, why := c.Check(t.Context(), mem)
				if why != "" {
					vacuous[why]++
				}
				if difference == "" {
					continue
				}
				c = c.Minimise(t.Context(), mem, 500)
				difference, _ = c.Check(t.Context(), mem)
				t.Errorf("seed %d:\n%s\n%s", c.Seed, difference, c.Golden())
				if found++; found == 5 {
					return
				}
			}
			for why, n := range vacuous {
				t.Logf("%d cases say nothing: %s", n, why)
			}
		})
	}
}
