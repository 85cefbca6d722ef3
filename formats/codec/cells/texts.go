package cells

import (
	"bytes"
	"unicode/utf8"
)

// Texts collects texts in a buffer of their own, in front of which and behind which there is
// room for Column. The zero value needs a Reset.
type Texts struct{ buf []byte }

// Reset drops all texts.
func (t *Texts) Reset() { t.buf = append(t.buf[:0], make([]byte, Pad)...) }

// Add takes in a text and gives its cell. Bytes that are not UTF-8 become U+FFFD.
func (t *Texts) Add(text []byte) Cell {
	from := len(t.buf)
	if !utf8.Valid(text) {
		text = bytes.ToValidUTF8(text, []byte("\uFFFD"))
	}
	t.buf = append(t.buf, text...)
	return Quoted(from, len(t.buf))
}

// Buf is the buffer of the cells so far; the next Add spoils it.
func (t *Texts) Buf() []byte { return append(t.buf, make([]byte, Pad)...) }
