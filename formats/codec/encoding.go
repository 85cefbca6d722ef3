package codec

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"io"
	"strings"

	"golang.org/x/text/encoding/charmap"
	"golang.org/x/text/transform"

	"github.com/tidemill/tidemill/logical/connector"
)

// Encoding is how text is written as bytes. The zero value is UTF-8, which gives way
// to UTF-16 and UTF-32 where a file begins as they do.
type Encoding struct{ of *charset }

// charset is a stated encoding.
type charset struct {
	name    string
	decoder func() transform.Transformer // nil: UTF-8
}

// String is the word of the encoding option.
func (e Encoding) String() string {
	if e.of == nil {
		return "utf-8"
	}
	return e.of.name
}

// IsStated says whether e is more than the zero value.
func (e Encoding) IsStated() bool { return e.of != nil }

// isUTF8 says whether text in e needs no decoder.
func (e Encoding) isUTF8() bool { return e.of == nil || e.of.decoder == nil }

// EncodingKey is the option encoding.
func EncodingKey(p *Encoding) connector.Key {
	return connector.FuncKey("encoding", "an encoding", func(text string) error {
		e, err := ParseEncoding(text)
		*p = e
		return err
	})
}

var (
	utf8Stated = Encoding{&charset{name: "utf-8"}}
	utf16Any   = units("utf-16", binary.BigEndian, 2)
	utf16LE    = units("utf-16le", binary.LittleEndian, 2)
	utf16BE    = units("utf-16be", binary.BigEndian, 2)
	utf32LE    = units("utf-32le", binary.LittleEndian, 4)
	utf32BE    = units("utf-32be", binary.BigEndian, 4)
)

func units(name string, order binary.ByteOrder, size int) Encoding {
	return Encoding{&charset{name, func() transform.Transformer { return &unitDecoder{order: order, size: size} }}}
}

// ParseEncoding reads the text of the encoding option: UTF-8, UTF-16 or UTF-32 (LE, BE), or
// a charset of one byte a character by its usual names: latin1, ISO-8859-15,
// windows-1252, cp1251, koi8-r, ….
func ParseEncoding(text string) (Encoding, error) {
	word := squeeze(text)
	switch word {
	case "utf8", "ascii", "usascii":
		return utf8Stated, nil
	case "utf16":
		return utf16Any, nil
	case "utf16be":
		return utf16BE, nil
	case "utf16le":
		return utf16LE, nil
	case "utf32", "utf32be":
		return utf32BE, nil
	case "utf32le":
		return utf32LE, nil
	case "latin1":
		word = "iso88591"
	}
	if n, ok := strings.CutPrefix(word, "cp"); ok {
		word = "windows" + n
	}
	for _, c := range charmap.All {
		name := fmt.Sprint(c)
		if s := squeeze(name); s == word || s == "ibmcodepage"+strings.TrimPrefix(word, "windows") {
			chars, ok := c.(*charmap.Charmap)
			if !ok {
				continue
			}
			return Encoding{&charset{strings.ToLower(strings.ReplaceAll(name, " ", "-")),
				func() transform.Transformer { return newCharDecoder(chars) }}}, nil
		}
	}
	return Encoding{}, fmt.Errorf("it is not known; there are utf-8, utf-16, utf-16le, utf-16be, utf-32, latin1, iso-8859-2 to -16, windows-1250 to -1258, koi8-r and more of one byte a character")
}

// squeeze keeps letters and digits, in lower case.
func squeeze(s string) string {
	return strings.Map(func(r rune) rune {
		switch {
		case r >= 'A' && r <= 'Z':
			return r + 'a' - 'A'
		case r >= 'a' && r <= 'z', r >= '0' && r <= '9':
			return r
		}
		return -1
	}, s)
}

// headOfText is how many bytes detect looks at.
const headOfText = 16

// detect is e, or what a text that begins with head is in where e leaves that open: by its
// mark, or by the zero bytes that UTF-16 has beside each letter of ASCII. Where nothing is
// stated all of them must be there.
func (e Encoding) detect(head []byte) Encoding {
	switch {
	case e.isUTF8() && bytes.HasPrefix(head, []byte{0xFF, 0xFE, 0, 0}):
		return utf32LE
	case e.isUTF8() && bytes.HasPrefix(head, []byte{0, 0, 0xFE, 0xFF}):
		return utf32BE
	case e.isUTF8() && bytes.HasPrefix(head, []byte{0xFF, 0xFE}):
		return utf16LE
	case e.isUTF8() && bytes.HasPrefix(head, []byte{0xFE, 0xFF}):
		return utf16BE
	case e == utf16Any:
		if first, second := zeroBytes(head); second > first {
			return utf16LE
		}
	case !e.IsStated():
		first, second := zeroBytes(head)
		switch pairs := min(len(head), headOfText) / 2; {
		case pairs < 2:
		case first == 0 && second == pairs:
			return utf16LE
		case first == pairs && second == 0:
			return utf16BE
		}
	}
	return e
}

// zeroBytes is how often the first and the second of two bytes are zero in the first pairs.
func zeroBytes(head []byte) (first, second int) {
	head = head[:min(len(head), headOfText)&^1]
	for i := 0; i < len(head); i += 2 {
		if head[i] == 0 {
			first++
		}
		if head[i+1] == 0 {
			second++
		}
	}
	return first, second
}

// NewReader turns text in e into UTF-8.
func (e Encoding) NewReader(r io.Reader) io.Reader {
	if e.isUTF8() {
		return r
	}
	return transform.NewReader(r, e.of.decoder())
}
