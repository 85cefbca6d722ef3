//go:build !(goexperiment.simd && amd64)

package csv

import "encoding/binary"

// A pattern finds a byte in text, marksWide bytes at a time.
type pattern uint64

const (
	marksWide = 8 // bytes looked at at once
	marksStep = 3 // two to its power is the bits between one byte's mark and the next one's
)

func patternOf(c byte) pattern { return pattern(c) * lows }

// marks is a bit for each byte of buf[at:at+marksWide] that is the pattern's, exactly.
func (p pattern) marks(buf []byte, at int) uint64 {
	return wordMarks(binary.LittleEndian.Uint64(buf[at:]) ^ uint64(p))
}

// marksEnd is to be called behind the last marks.
func marksEnd() {}
