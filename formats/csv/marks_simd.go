//go:build goexperiment.simd && amd64

package csv

import (
	"encoding/binary"
	"simd/archsimd"
)

// A pattern finds a byte in text, marksWide bytes at a time.
type pattern struct {
	wide archsimd.Uint8x32
	word uint64
}

const (
	marksWide = 32 // bytes looked at at once
	marksStep = 0  // two to its power is the bits between one byte's mark and the next one's
)

// hasAVX2 is whether the processor compares 32 bytes at once; else four words are compared.
var hasAVX2 = archsimd.X86.AVX2()

func patternOf(c byte) pattern {
	p := pattern{word: uint64(c) * lows}
	if hasAVX2 {
		p.wide = archsimd.BroadcastUint8x32(c)
	}
	return p
}

// marks is a bit for each byte of buf[at:at+marksWide] that is the pattern's, exactly.
func (p *pattern) marks(buf []byte, at int) uint64 {
	if hasAVX2 {
		return uint64(archsimd.LoadUint8x32((*[marksWide]uint8)(buf[at:])).Equal(p.wide).ToBits())
	}
	return p.wordByWord(buf[at : at+marksWide])
}

func (p *pattern) wordByWord(text []byte) (marks uint64) {
	for i := range marksWide / 8 {
		m := wordMarks(binary.LittleEndian.Uint64(text[8*i:]) ^ p.word)
		marks |= m * gather >> 56 << (8 * i)
	}
	return marks
}

// gather multiplied with the lowest bits of eight bytes has them side by side on top.
const gather = 0x0102040810204080

// marksEnd is to be called behind the last marks: code without AVX, such as that of package
// bytes, would be slowed down.
func marksEnd() {
	if hasAVX2 {
		archsimd.ClearAVXUpperBits()
	}
}
