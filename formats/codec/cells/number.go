package cells

import (
	"math"
	"math/bits"
	"strconv"
	"unsafe"
)

const (
	zeros  = 0x3030303030303030
	nibble = 0xF0F0F0F0F0F0F0F0
)

// digits8 reads the n digits (1 to 8) that end at e, all eight bytes at once.
func digits8(buf []byte, e, n int) (v uint64, ok bool) {
	x := load64(buf, e-8)
	shift := uint(64 - 8*n)
	// The bytes before the number become zeros.
	x = x>>shift<<shift | zeros&(1<<shift-1)
	if x&nibble != zeros || (x+0x0606060606060606)&nibble != zeros {
		return 0, false
	}
	// Neighbours are joined: to numbers of two digits, of four, of eight.
	x = x & 0x0F0F0F0F0F0F0F0F * (10<<8 + 1) >> 8
	x = x & 0x00FF00FF00FF00FF * (100<<16 + 1) >> 16
	return x & 0x0000FFFF0000FFFF * (10000<<32 + 1) >> 32, true
}

// integer reads buf[s:e] as a decimal integer of 64 bits with an optional sign and
// nothing else.
func integer(buf []byte, s, e int) (int64, bool) {
	negative := false
	if s < e && (buf[s] == '-' || buf[s] == '+') {
		negative = buf[s] == '-'
		s++
	}
	n := e - s
	var v uint64
	switch {
	case n <= 0:
		return 0, false
	case n <= 8:
		low, ok := digits8(buf, e, n)
		if !ok {
			return 0, false
		}
		v = low
	case n <= 16:
		low, ok1 := digits8(buf, e, 8)
		high, ok2 := digits8(buf, e-8, n-8)
		if !ok1 || !ok2 {
			return 0, false
		}
		v = high*100000000 + low
	default:
		return longInteger(buf[s:e], negative)
	}
	if negative {
		return -int64(v), true
	}
	return int64(v), true
}

func longInteger(digits []byte, negative bool) (int64, bool) {
	limit := uint64(math.MaxInt64)
	if negative {
		limit++
	}
	v := uint64(0)
	for _, c := range digits {
		d := uint64(c - '0')
		hi, lo := bits.Mul64(v, 10)
		if d > 9 || hi != 0 || lo > limit-d {
			return 0, false
		}
		v = lo + d
	}
	if negative {
		return -int64(v), true
	}
	return int64(v), true
}

// The powers of ten a float64 holds exactly.
var exactPowers = [...]float64{1e0, 1e1, 1e2, 1e3, 1e4, 1e5, 1e6, 1e7, 1e8, 1e9, 1e10, 1e11,
	1e12, 1e13, 1e14, 1e15, 1e16, 1e17, 1e18, 1e19, 1e20, 1e21, 1e22}

// pointed reads the usual number: up to seven digits, a point, up to eight digits. All
// others are left to float. Unlike float it reads bytes around the number.
func pointed(buf []byte, s, e int) (float64, bool) {
	negative := buf[s] == '-'
	if negative {
		s++
	}
	x := load64(buf, s) ^ '.'*0x0101010101010101
	zero := (x - 0x0101010101010101) &^ x & 0x8080808080808080
	point := s + bits.TrailingZeros64(zero)>>3
	before, behind := point-s, e-point-1
	if zero == 0 || before == 0 || behind <= 0 || behind > 8 {
		return 0, false
	}
	whole, ok1 := digits8(buf, point, before)
	fraction, ok2 := digits8(buf, e, behind)
	if !ok1 || !ok2 {
		return 0, false
	}
	v := float64(whole*uint64(powers[behind])+fraction) / exactPowers[behind]
	if negative {
		v = -v
	}
	return v, true
}

// float reads buf[s:e] as a decimal number: sign, digits with an optional point,
// optional exponent. Few digits and a small exponent make one exact operation; the
// rest is strconv's. A number too large is none.
func float(buf []byte, s, e int) (float64, bool) {
	i := s
	negative := false
	if i < e && (buf[i] == '-' || buf[i] == '+') {
		negative = buf[i] == '-'
		i++
	}
	mantissa := uint64(0)
	from := i
	for i < e {
		d := buf[i] - '0'
		if d > 9 {
			break
		}
		mantissa = mantissa*10 + uint64(d)
		i++
	}
	digits := i - from
	power := 0
	if i < e && buf[i] == '.' {
		i++
		from = i
		for i < e {
			d := buf[i] - '0'
			if d > 9 {
				break
			}
			mantissa = mantissa*10 + uint64(d)
			i++
		}
		digits += i - from
		power = from - i
	}
	if digits == 0 {
		return 0, false
	}
	if i < e {
		x, ok := exponent(buf[i:e])
		if !ok {
			return 0, false
		}
		power += x
	}
	if digits > 19 || mantissa >= 1<<53 || power < -22 || power > 22 {
		return slowFloat(buf[s:e], 64)
	}
	v := float64(mantissa)
	if power < 0 {
		v /= exactPowers[-power]
	} else if power > 0 {
		v *= exactPowers[power]
	}
	if negative {
		v = -v
	}
	return v, true
}

// exponent reads e, a sign and digits. Huge ones are cut: the caller leaves them to
// strconv.
func exponent(b []byte) (int, bool) {
	if len(b) < 2 || b[0]|0x20 != 'e' {
		return 0, false
	}
	i := 1
	negative := false
	if b[i] == '-' || b[i] == '+' {
		negative = b[i] == '-'
		i++
	}
	if i == len(b) {
		return 0, false
	}
	v := 0
	for ; i < len(b); i++ {
		d := b[i] - '0'
		if d > 9 {
			return 0, false
		}
		v = min(v*10+int(d), 100000)
	}
	if negative {
		v = -v
	}
	return v, true
}

func slowFloat(b []byte, size int) (float64, bool) {
	v, err := strconv.ParseFloat(view(b), size)
	return v, err == nil
}

// float32Value reads a REAL: rounded once, from the text.
func float32Value(buf []byte, s, e int) (float32, bool) {
	if _, ok := float(buf, s, e); !ok {
		return 0, false
	}
	v, ok := slowFloat(buf[s:e], 32)
	return float32(v), ok
}

// special reads NaN, Infinity and Inf with an optional sign, in any case.
func special(b []byte) (float64, bool) {
	sign := 1
	if len(b) > 0 && (b[0] == '-' || b[0] == '+') {
		if b[0] == '-' {
			sign = -1
		}
		b = b[1:]
	}
	switch {
	case equalFold(b, "nan"):
		return math.NaN(), true
	case equalFold(b, "infinity"), equalFold(b, "inf"):
		return math.Inf(sign), true
	}
	return 0, false
}

// equalFold compares b to a word in lower case.
func equalFold(b []byte, word string) bool {
	if len(b) != len(word) {
		return false
	}
	for i := range b {
		if b[i]|0x20 != word[i] {
			return false
		}
	}
	return true
}

// view is b as a string for the duration of a call.
func view(b []byte) string { return unsafe.String(unsafe.SliceData(b), len(b)) }
