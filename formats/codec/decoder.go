package codec

import (
	"encoding/binary"
	"unicode/utf16"
	"unicode/utf8"

	"golang.org/x/text/encoding/charmap"
	"golang.org/x/text/transform"
)

// The decoders turn text into UTF-8. What is no text in the encoding becomes bytes that are
// no UTF-8, not U+FFFD, so that it is judged as invalid UTF-8 in a plain file is.

// notUTF8 stands in UTF-8 nowhere.
const notUTF8 = 0xFF

// unitDecoder decodes UTF-16 and UTF-32. A mark at the beginning is passed over, and counts
// more than order.
type unitDecoder struct {
	order binary.ByteOrder
	size  int // bytes of a unit: 2 or 4
	begun bool
}

// Reset implements transform.Transformer; a decoder is used for one text.
func (d *unitDecoder) Reset() {}

// Transform implements transform.Transformer.
func (d *unitDecoder) Transform(dst, src []byte, atEOF bool) (nDst, nSrc int, err error) {
	if !d.begun && len(src) >= d.size {
		d.begun = true
		nSrc = d.mark(src)
	}
	var text [utf8.UTFMax]byte
	for len(src)-nSrc >= d.size {
		out, n := d.next(text[:0], src[nSrc:], atEOF)
		switch {
		case n == 0:
			return nDst, nSrc, transform.ErrShortSrc
		case nDst+len(out) > len(dst):
			return nDst, nSrc, transform.ErrShortDst
		}
		nDst += copy(dst[nDst:], out)
		nSrc += n
	}
	switch {
	case nSrc == len(src):
		return nDst, nSrc, nil
	case !atEOF:
		return nDst, nSrc, transform.ErrShortSrc
	case nDst == len(dst):
		return nDst, nSrc, transform.ErrShortDst
	}
	dst[nDst] = notUTF8 // half a unit
	return nDst + 1, len(src), nil
}

// mark takes in the mark that p may begin with, and is its length.
func (d *unitDecoder) mark(p []byte) int {
	for _, order := range []binary.ByteOrder{binary.LittleEndian, binary.BigEndian} {
		if d.unit(order, p) == 0xFEFF {
			d.order = order
			return d.size
		}
	}
	return 0
}

func (d *unitDecoder) unit(order binary.ByteOrder, p []byte) uint32 {
	if d.size == 2 {
		return uint32(order.Uint16(p))
	}
	return order.Uint32(p)
}

// next appends the first character of src; n is its length there, 0 if more of src must be
// known.
func (d *unitDecoder) next(dst, src []byte, atEOF bool) (out []byte, n int) {
	u := d.unit(d.order, src)
	switch {
	case u < 0xD800 || u > 0xDFFF && u <= utf8.MaxRune:
		return utf8.AppendRune(dst, rune(u)), d.size
	case d.size == 4 || u > 0xDFFF:
		return append(dst, notUTF8), d.size
	case u < 0xDC00 && len(src) < 4 && !atEOF:
		return nil, 0
	case len(src) >= 4:
		if c := utf16.DecodeRune(rune(u), rune(d.unit(d.order, src[2:]))); c != utf8.RuneError {
			return utf8.AppendRune(dst, c), 4
		}
	}
	// A surrogate without its other half, as UTF-8 would write it if it allowed it.
	return append(dst, 0xE0|byte(u>>12), 0x80|byte(u>>6)&0x3F, 0x80|byte(u)&0x3F), 2
}

// charDecoder decodes an encoding of one byte a character.
type charDecoder struct{ table [256]string }

func newCharDecoder(c *charmap.Charmap) *charDecoder {
	d := &charDecoder{}
	for i := range d.table {
		switch r := c.DecodeByte(byte(i)); {
		case r != utf8.RuneError:
			d.table[i] = string(r)
		case i < 0xC0:
			d.table[i] = string([]byte{byte(i)}) // begins no character, so it is none
		default:
			d.table[i] = string([]byte{notUTF8})
		}
	}
	return d
}

// Reset implements transform.Transformer.
func (d *charDecoder) Reset() {}

// Transform implements transform.Transformer.
func (d *charDecoder) Transform(dst, src []byte, _ bool) (nDst, nSrc int, err error) {
	for _, c := range src {
		text := d.table[c]
		if nDst+len(text) > len(dst) {
			return nDst, nSrc, transform.ErrShortDst
		}
		nDst += copy(dst[nDst:], text)
		nSrc++
	}
	return nDst, nSrc, nil
}
