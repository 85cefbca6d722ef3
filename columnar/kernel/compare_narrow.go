//go:build !(goexperiment.simd && amd64)

package kernel

// wideWord is what the processor can say of many values at once: nothing here.
func wideWord[T comparable]([]T, T, relation) (uint64, bool) { return 0, false }
