//go:build goexperiment.simd && amd64

package kernel

import (
	"simd/archsimd"
	"unsafe"
)

var hasAVX2 = archsimd.X86.AVX2()

// wideWord compares 64 values, four or eight at a time; ok is false if the processor or
// the type does not allow it.
func wideWord[T comparable](x []T, s T, is relation) (w uint64, ok bool) {
	if !hasAVX2 || len(x) != 64 {
		return 0, false
	}
	switch any(s).(type) {
	case int64:
		w = wideInt64((*[64]int64)(unsafe.Pointer(unsafe.SliceData(x))), *(*int64)(unsafe.Pointer(&s)), is)
	case int32:
		w = wideInt32((*[64]int32)(unsafe.Pointer(unsafe.SliceData(x))), *(*int32)(unsafe.Pointer(&s)), is)
	case float64:
		w = wideFloat64((*[64]float64)(unsafe.Pointer(unsafe.SliceData(x))), *(*float64)(unsafe.Pointer(&s)), is)
	default:
		return 0, false
	}
	archsimd.ClearAVXUpperBits() // code without AVX would be slowed down
	return w, true
}

func wideInt64(x *[64]int64, s int64, is relation) (w uint64) {
	y := archsimd.BroadcastInt64x4(s)
	for k := 0; k < 64; k += 4 {
		v := archsimd.LoadInt64x4((*[4]int64)(x[k:]))
		var m archsimd.Mask64x4
		switch is {
		case less:
			m = y.Greater(v)
		case lessEqual:
			m = v.Greater(y)
		default:
			m = v.Equal(y)
		}
		w |= uint64(m.ToBits()) << k
	}
	if is == lessEqual {
		w = ^w
	}
	return w
}

func wideInt32(x *[64]int32, s int32, is relation) (w uint64) {
	y := archsimd.BroadcastInt32x8(s)
	for k := 0; k < 64; k += 8 {
		v := archsimd.LoadInt32x8((*[8]int32)(x[k:]))
		var m archsimd.Mask32x8
		switch is {
		case less:
			m = y.Greater(v)
		case lessEqual:
			m = v.Greater(y)
		default:
			m = v.Equal(y)
		}
		w |= uint64(m.ToBits()) << k
	}
	if is == lessEqual {
		w = ^w
	}
	return w
}

// wideFloat64 compares as Go does: with NaN nothing holds.
func wideFloat64(x *[64]float64, s float64, is relation) (w uint64) {
	y := archsimd.BroadcastFloat64x4(s)
	for k := 0; k < 64; k += 4 {
		v := archsimd.LoadFloat64x4((*[4]float64)(x[k:]))
		var m archsimd.Mask64x4
		switch is {
		case less:
			m = v.Less(y)
		case lessEqual:
			m = v.LessEqual(y)
		default:
			m = v.Equal(y)
		}
		w |= uint64(m.ToBits()) << k
	}
	return w
}
