package function

import (
	"math/rand/v2"
	"slices"
	"testing"
)

func TestNth(t *testing.T) {
	t.Parallel()
	r := rand.New(rand.NewPCG(1, 1))
	for size := range 300 {
		for _, values := range []int64{1, 2, 10, 1 << 62} { // few mean many equal ones
			w := make([]int64, size+1)
			for i := range w {
				w[i] = r.Int64N(values) - values/2
			}
			sorted := slices.Sorted(slices.Values(w))
			if values == 10 {
				copy(w, sorted)
			}
			n := r.IntN(len(w))
			if got := nth(w, n); got != sorted[n] {
				t.Fatalf("%d of %v: %d, want %d", n, sorted, got, sorted[n])
			}
			if n+1 < len(w) && slices.Min(w[n+1:]) != sorted[n+1] {
				t.Fatalf("behind %d of %v: %v", n, sorted, w[n+1:])
			}
		}
	}
}
