package codec

import (
	"encoding/binary"
	"math"
)

// FromHalfs makes floats of halfs, floats of 16 bits, little-endian. Every half is one
// exactly, those below 2^-14, which have no leading one, too.
func FromHalfs(dst []float32, src []byte) {
	for i := range dst {
		dst[i] = fromHalf(uint32(binary.LittleEndian.Uint16(src[2*i:])))
	}
}

func fromHalf(bits uint32) float32 {
	sign, exponent, fraction := bits>>15<<31, bits>>10&0x1F, bits&0x3FF
	switch exponent {
	case 0:
		small := math.Float32bits(float32(fraction) * 0x1p-24)
		return math.Float32frombits(sign | small)
	case 0x1F: // infinite, or not a number
		return math.Float32frombits(sign | 0xFF<<23 | fraction<<13)
	}
	return math.Float32frombits(sign | (exponent+127-15)<<23 | fraction<<13)
}
