package cells

import (
	"encoding/binary"
	"math"
	"time"
)

// Pad is the number of bytes a buffer must have before and after its values.
const Pad = 32

// MaxOffset is the largest offset a Cell can hold.
const MaxOffset = math.MaxInt32

// Cell is the span of one value in a buffer, and how it was written there. The span
// of a quoted value is what stands between the quotes.
type Cell uint64

const (
	quoted  Cell = 1 << 31
	escaped Cell = 1 << 63
)

// Absent stands for a value that is not there: a field the record lacks, or a JSON
// null.
const Absent = quoted | escaped

// Plain is an unquoted value.
func Plain(start, end int) Cell { return Cell(uint32(start)) | Cell(end)<<32 }

// Quoted is a value in quotes that stands for itself, byte by byte.
func Quoted(start, end int) Cell { return Plain(start, end) | quoted }

// Escaped is a value in quotes that has escapes.
func Escaped(start, end int) Cell { return Plain(start, end) | quoted | escaped }

// Container is the JSON text of an object or array.
func Container(start, end int) Cell { return Plain(start, end) | escaped }

// Span is where the value stands.
func (c Cell) Span() (start, end int) {
	return int(uint32(c) &^ (1 << 31)), int(uint32(c>>32) &^ (1 << 31))
}

// IsQuoted says whether the value stood in quotes.
func (c Cell) IsQuoted() bool { return c&quoted != 0 && c != Absent }

// isContainer says whether c is the text of an object or array.
func (c Cell) isContainer() bool { return c&Absent == escaped }

// Rules say how cells are read.
type Rules struct {
	// JSON: quotes have meaning (a number in quotes is text) and escapes are JSON's.
	// Otherwise they are CSV's.
	JSON bool
	// Quote and Escape are CSV's; 0 if there is none.
	Quote, Escape byte
	// EmptyIsNull: an unquoted value of no bytes is null in VARCHAR columns, too.
	// In all others it always is.
	EmptyIsNull bool
	// Thousands may stand between groups of three digits of a number; 0: nothing may.
	Thousands byte
	// Inferred: what would have made a column another one when its type was inferred, such
	// as 00123 of BIGINT, is no value of it. Otherwise what can be read as its type is.
	Inferred bool
	// Location is the clock of timestamps without a zone; nil is UTC.
	Location *time.Location
	// Timestamp and Date replace ISO 8601; nil keeps it.
	Timestamp, Date *Pattern
}

// AppendText appends the text that cell c of buf stands for. ok is false if an
// escape in it stands for nothing.
func (r *Rules) AppendText(dst, buf []byte, c Cell) (text []byte, ok bool) {
	s, e := c.Span()
	switch {
	case c == Absent:
		return dst, true
	case c&escaped == 0:
		return append(dst, buf[s:e]...), true
	case c.isContainer():
		return appendCompact(dst, buf[s:e]), true
	case r.JSON:
		return appendUnescaped(dst, buf[s:e])
	}
	return r.appendUnquoted(dst, buf[s:e]), true
}

// appendUnquoted appends the inside of a CSV field, without the bytes that only
// protect others: a doubled quote is one, an escape before a quote or another escape
// goes.
func (r *Rules) appendUnquoted(dst, src []byte) []byte {
	for i := 0; i < len(src); i++ {
		c := src[i]
		if i+1 < len(src) {
			next := src[i+1]
			if c == r.Quote && next == r.Quote || c == r.Escape && r.Escape != 0 && (next == r.Quote || next == r.Escape) {
				c = next
				i++
			}
		}
		dst = append(dst, c)
	}
	return dst
}

func load64(b []byte, i int) uint64 { return binary.LittleEndian.Uint64(b[i:]) }

// hasHighBit says whether a byte of b is not ASCII.
func hasHighBit(b []byte) bool {
	const high = 0x8080808080808080
	i := 0
	acc := uint64(0)
	for ; i+32 <= len(b); i += 32 {
		acc |= load64(b, i) | load64(b, i+8) | load64(b, i+16) | load64(b, i+24)
		if acc&high != 0 {
			return true
		}
	}
	for ; i < len(b); i++ {
		acc |= uint64(b[i])
	}
	return acc&high != 0
}
