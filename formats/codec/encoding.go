package codec

import (
	"bytes"
	"fmt"
	"io"
	"strings"

	"golang.org/x/text/encoding"
	"golang.org/x/text/encoding/charmap"
	"golang.org/x/text/encoding/unicode"
	"golang.org/x/text/transform"

	"github.com/tidemill/tidemill/logical/connector"
)

// Encoding is how text is written as bytes. The zero value is UTF-8, which gives way
// to UTF-16 where a file begins with its mark.
type Encoding struct {
	name string
	dec  encoding.Encoding // nil: UTF-8
}

// String is the word of the encoding option.
func (e Encoding) String() string {
	if e.dec == nil {
		return "utf-8"
	}
	return e.name
}

// EncodingKey is the option encoding.
func EncodingKey(p *Encoding) connector.Key {
	return connector.FuncKey("encoding", "an encoding", func(text string) error {
		e, err := ParseEncoding(text)
		*p = e
		return err
	})
}

var (
	utf16LE = Encoding{"utf-16le", unicode.UTF16(unicode.LittleEndian, unicode.UseBOM)}
	utf16BE = Encoding{"utf-16be", unicode.UTF16(unicode.BigEndian, unicode.UseBOM)}
)

// ParseEncoding reads the text of the encoding option: UTF-8, UTF-16 (LE, BE), or a
// charset of one byte a character by its usual names: latin1, ISO-8859-15,
// windows-1252, cp1251, koi8-r, ….
func ParseEncoding(text string) (Encoding, error) {
	word := squeeze(text)
	switch word {
	case "utf8", "ascii", "usascii", "":
		return Encoding{}, nil
	case "utf16", "utf16be":
		return utf16BE, nil
	case "utf16le":
		return utf16LE, nil
	case "latin1":
		word = "iso88591"
	}
	if n, ok := strings.CutPrefix(word, "cp"); ok {
		word = "windows" + n
	}
	for _, c := range charmap.All {
		name := fmt.Sprint(c)
		if s := squeeze(name); s == word || s == "ibmcodepage"+strings.TrimPrefix(word, "windows") {
			return Encoding{strings.ToLower(strings.ReplaceAll(name, " ", "-")), c}, nil
		}
	}
	return Encoding{}, fmt.Errorf("it is not known; there are utf-8, utf-16, utf-16le, utf-16be, latin1, iso-8859-2 to -16, windows-1250 to -1258, koi8-r and more of one byte a character")
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

// detect is e, or UTF-16 if e is UTF-8 and head begins with the mark of UTF-16.
func (e Encoding) detect(head []byte) Encoding {
	if e.dec == nil {
		switch {
		case bytes.HasPrefix(head, []byte{0xFF, 0xFE}):
			return utf16LE
		case bytes.HasPrefix(head, []byte{0xFE, 0xFF}):
			return utf16BE
		}
	}
	return e
}

// NewReader turns text in e into UTF-8.
func (e Encoding) NewReader(r io.Reader) io.Reader {
	if e.dec == nil {
		return r
	}
	return transform.NewReader(r, e.dec.NewDecoder())
}
