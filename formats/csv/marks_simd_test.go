//go:build goexperiment.simd && amd64

package csv

import "testing"

// TestMarksWithoutAVX2 looks for marks as a processor does that has no wide registers.
func TestMarksWithoutAVX2(t *testing.T) {
	has := hasAVX2
	t.Cleanup(func() { hasAVX2 = has })
	hasAVX2 = false
	TestMarks(t)
}
