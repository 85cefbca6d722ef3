package kernel

import "cmp"

// The functions here make a word of up to 64 comparisons with one value. Eight at a
// time with fixed shifts take half as long as a shift by the row.

// A relation is what a value is to the one it is compared with.
type relation uint8

const (
	less relation = iota
	lessEqual
	equal
)

func lessWord[T cmp.Ordered](x []T, s T) (w uint64) {
	if w, ok := wideWord(x, s, less); ok {
		return w
	}
	k := 0
	for ; k+8 <= len(x); k += 8 {
		p := (*[8]T)(x[k:])
		w |= (uint64(b2i(p[0] < s)) | uint64(b2i(p[1] < s))<<1 | uint64(b2i(p[2] < s))<<2 | uint64(b2i(p[3] < s))<<3 |
			uint64(b2i(p[4] < s))<<4 | uint64(b2i(p[5] < s))<<5 | uint64(b2i(p[6] < s))<<6 | uint64(b2i(p[7] < s))<<7) << (k & 63)
	}
	for ; k < len(x); k++ {
		w |= uint64(b2i(x[k] < s)) << (k & 63)
	}
	return w
}

func lessEqualWord[T cmp.Ordered](x []T, s T) (w uint64) {
	if w, ok := wideWord(x, s, lessEqual); ok {
		return w
	}
	k := 0
	for ; k+8 <= len(x); k += 8 {
		p := (*[8]T)(x[k:])
		w |= (uint64(b2i(p[0] <= s)) | uint64(b2i(p[1] <= s))<<1 | uint64(b2i(p[2] <= s))<<2 | uint64(b2i(p[3] <= s))<<3 |
			uint64(b2i(p[4] <= s))<<4 | uint64(b2i(p[5] <= s))<<5 | uint64(b2i(p[6] <= s))<<6 | uint64(b2i(p[7] <= s))<<7) << (k & 63)
	}
	for ; k < len(x); k++ {
		w |= uint64(b2i(x[k] <= s)) << (k & 63)
	}
	return w
}

func equalWord[T comparable](x []T, s T) (w uint64) {
	if w, ok := wideWord(x, s, equal); ok {
		return w
	}
	k := 0
	for ; k+8 <= len(x); k += 8 {
		p := (*[8]T)(x[k:])
		w |= (uint64(b2i(p[0] == s)) | uint64(b2i(p[1] == s))<<1 | uint64(b2i(p[2] == s))<<2 | uint64(b2i(p[3] == s))<<3 |
			uint64(b2i(p[4] == s))<<4 | uint64(b2i(p[5] == s))<<5 | uint64(b2i(p[6] == s))<<6 | uint64(b2i(p[7] == s))<<7) << (k & 63)
	}
	for ; k < len(x); k++ {
		w |= uint64(b2i(x[k] == s)) << (k & 63)
	}
	return w
}

// numberWord marks what is not NaN.
func numberWord[T float32 | float64](x []T) (w uint64) {
	for k, v := range x {
		w |= uint64(b2i(v == v)) << (k & 63)
	}
	return w
}
