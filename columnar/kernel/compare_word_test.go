package kernel

import (
	"cmp"
	"math"
	"math/rand/v2"
	"testing"
)

// TestWords compares words of comparisons, of 64 values and of fewer, with one comparison at
// a time.
func TestWords(t *testing.T) {
	testWords(t, "int32", []int32{math.MinInt32, -2, -1, 0, 1, 2, math.MaxInt32})
	testWords(t, "int64", []int64{math.MinInt64, math.MinInt32 - 1, -1, 0, 1, 1 << 32, math.MaxInt64})
	testWords(t, "float32", []float32{float32(math.Inf(-1)), -1, 0, float32(math.Copysign(0, -1)), 1, float32(math.NaN())})
	testWords(t, "float64", []float64{math.Inf(-1), -1, 0, math.Copysign(0, -1), math.SmallestNonzeroFloat64, math.Inf(1), math.NaN()})
	testWords(t, "string", []string{"", "a", "a\x00", "b"})
}

func testWords[T cmp.Ordered](t *testing.T, name string, values []T) {
	r := rand.New(rand.NewPCG(3, 5))
	for n := range 65 {
		x := make([]T, n)
		for i := range x {
			x[i] = values[r.IntN(len(values))]
		}
		for _, s := range values {
			var below, most, same uint64
			for i, v := range x {
				below |= uint64(b2i(v < s)) << i
				most |= uint64(b2i(v <= s)) << i
				same |= uint64(b2i(v == s)) << i
			}
			if got := [3]uint64{lessWord(x, s), lessEqualWord(x, s), equalWord(x, s)}; got != [3]uint64{below, most, same} {
				t.Fatalf("%s: %v with %v: %b, not %b", name, x, s, got, [3]uint64{below, most, same})
			}
		}
	}
}
