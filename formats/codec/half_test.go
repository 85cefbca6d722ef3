package codec

import (
	"encoding/binary"
	"math"
	"testing"
)

// TestFromHalfs compares every half with what its bits say: ±(1 + f/1024)·2^(e-15), and
// without the one where the exponent is 0.
func TestFromHalfs(t *testing.T) {
	t.Parallel()
	src := make([]byte, 2<<16)
	for bits := range 1 << 16 {
		binary.LittleEndian.PutUint16(src[2*bits:], uint16(bits))
	}
	got := make([]float32, 1<<16)
	FromHalfs(got, src)
	for bits, g := range got {
		exponent, fraction := bits>>10&0x1F, float64(bits&0x3FF)/1024
		want := math.Ldexp(1+fraction, exponent-15)
		switch {
		case exponent == 0:
			want = math.Ldexp(fraction, -14)
		case exponent == 31 && fraction == 0:
			want = math.Inf(1)
		case exponent == 31:
			want = math.NaN()
		}
		if bits>>15 == 1 {
			want = -want
		}
		same := float64(g) == want && math.Signbit(float64(g)) == math.Signbit(want)
		if !same && !(math.IsNaN(want) && math.IsNaN(float64(g))) {
			t.Fatalf("%#04x is %g, want %g", bits, g, want)
		}
	}
}
