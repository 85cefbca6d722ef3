package function

import (
	"errors"
	"fmt"
	"strings"
	"unicode/utf16"
	"unicode/utf8"

	"github.com/apache/arrow-go/v18/arrow"

	"github.com/tidemill/tidemill/columnar"
	"github.com/tidemill/tidemill/columnar/kernel"
)

// charsetScalars turn text into bytes and bytes into text.
func charsetScalars() []*Scalar {
	binary := exactly(columnar.Binary)
	bytesOf := func(c *call) (arrow.Array, error) { return c.encoded(func(s charset) transcoder { return s.encode }) }
	textOf := func(c *call) (arrow.Array, error) { return c.encoded(func(s charset) transcoder { return s.decode }) }
	return []*Scalar{
		textChecked(defineFallible("encode", "The bytes of a text as BINARY, in UTF-8 or the character set named: US-ASCII, ISO-8859-1, UTF-8, UTF-16, UTF-16BE or UTF-16LE. A character that is not in it is an error.", "hex(encode('é', 'ISO-8859-1')) = E9",
			[]Matcher{varchar}, columnar.Binary, bytesOf).alsoFor([]Matcher{varchar, varchar}, columnar.Binary, bytesOf), 1, charsetNamed),
		textChecked(defineFallible("decode", "The text that a BINARY is, in UTF-8 or the character set named (see encode). Bytes that are no text are an error.", "decode(unhex('E9'), 'ISO-8859-1') = é",
			[]Matcher{binary}, columnar.String, textOf).alsoFor([]Matcher{binary, varchar}, columnar.String, textOf), 1, charsetNamed),
		define("make_valid_utf8", "The text of bytes, with what is not UTF-8 replaced by �.", "make_valid_utf8(unhex('61FF')) = a�", []Matcher{textType}, columnar.String, func(c *call) (arrow.Array, error) {
			in := kernel.TextsOf(c.args[0])
			return c.text(in.Size(c.rows), func(dst []byte, i int) ([]byte, error) {
				return append(dst, strings.ToValidUTF8(string(in.At(i)), "\uFFFD")...), nil
			})
		}),
		defineFallible("validate_utf8", "The text of bytes; what is not UTF-8 is an error.", "validate_utf8(unhex('61')) = a", []Matcher{textType}, columnar.String, textOf),
		define("try_validate_utf8", "The text of bytes, null if it is not UTF-8.", "try_validate_utf8(unhex('61FF')) = NULL", []Matcher{textType}, columnar.String, func(c *call) (arrow.Array, error) {
			in := kernel.TextsOf(c.args[0])
			return c.nullableText(in.Size(c.rows), func(dst []byte, i int) ([]byte, bool) {
				return append(dst, in.At(i)...), utf8.Valid(in.At(i))
			})
		}),
	}
}

// charset is a way to write characters as bytes.
type charset struct{ encode, decode transcoder }

// transcoder appends in, written otherwise, to dst.
type transcoder func(dst, in []byte) ([]byte, error)

// encoded appends each text of the first argument as the character set of the second
// writes it, UTF-8 if there is none.
func (c *call) encoded(way func(charset) transcoder) (arrow.Array, error) {
	in := kernel.TextsOf(c.args[0])
	cache := newCompiled(func(name, _ string) (charset, error) { return charsetNamed(name) })
	return c.text(in.Size(c.rows), func(dst []byte, i int) ([]byte, error) {
		name := []byte("utf-8")
		if len(c.args) > 1 {
			name = kernel.TextsOf(c.args[1]).At(i)
		}
		set, err := cache.get(name, "")
		if err != nil {
			return dst, err
		}
		return way(set)(dst, in.At(i))
	})
}

func charsetNamed(name string) (charset, error) {
	switch strings.ToLower(strings.ReplaceAll(name, "_", "-")) {
	case "utf-8", "utf8":
		return charset{appendBytes, appendUTF8}, nil
	case "us-ascii", "ascii":
		return singleByte("US-ASCII", 0x7f), nil
	case "iso-8859-1", "latin1", "latin-1":
		return singleByte("ISO-8859-1", 0xff), nil
	case "utf-16":
		return charset{
			func(dst, text []byte) ([]byte, error) { return appendUTF16(append(dst, 0xfe, 0xff), text, 0), nil },
			decodeUTF16Marked,
		}, nil
	case "utf-16be", "utf-16le":
		high := 0 // the place of the high byte
		if strings.HasSuffix(strings.ToLower(name), "le") {
			high = 1
		}
		return charset{
			func(dst, text []byte) ([]byte, error) { return appendUTF16(dst, text, high), nil },
			func(dst, data []byte) ([]byte, error) { return decodeUTF16(dst, data, high) },
		}, nil
	}
	return charset{}, fmt.Errorf("character set %q is unknown; there are US-ASCII, ISO-8859-1, UTF-8, UTF-16, UTF-16BE and UTF-16LE", name)
}

func appendBytes(dst, b []byte) ([]byte, error) { return append(dst, b...), nil }

func appendUTF8(dst, data []byte) ([]byte, error) {
	if !utf8.Valid(data) {
		return dst, errors.New("the bytes are no UTF-8; make_valid_utf8 replaces what is not")
	}
	return append(dst, data...), nil
}

// singleByte writes each character up to most as its number.
func singleByte(name string, most rune) charset {
	return charset{
		func(dst, text []byte) ([]byte, error) {
			for _, r := range string(text) {
				if r > most {
					return dst, fmt.Errorf("%q is not in %s", r, name)
				}
				dst = append(dst, byte(r))
			}
			return dst, nil
		},
		func(dst, data []byte) ([]byte, error) {
			for _, b := range data {
				if rune(b) > most {
					return dst, fmt.Errorf("byte %#x is not in %s", b, name)
				}
				dst = utf8.AppendRune(dst, rune(b))
			}
			return dst, nil
		},
	}
}

// appendUTF16 appends the units of a text with their high byte at place high of two.
func appendUTF16(dst, text []byte, high int) []byte {
	for _, r := range string(text) {
		for _, u := range utf16.AppendRune(nil, r) {
			pair := [2]byte{byte(u), byte(u)}
			pair[high] = byte(u >> 8)
			dst = append(dst, pair[:]...)
		}
	}
	return dst
}

// decodeUTF16Marked reads UTF-16 with or without a byte order mark; without, big-endian.
func decodeUTF16Marked(dst, data []byte) ([]byte, error) {
	if len(data) >= 2 && data[0] == 0xff && data[1] == 0xfe {
		return decodeUTF16(dst, data[2:], 1)
	}
	if len(data) >= 2 && data[0] == 0xfe && data[1] == 0xff {
		data = data[2:]
	}
	return decodeUTF16(dst, data, 0)
}

func decodeUTF16(dst, data []byte, high int) ([]byte, error) {
	if len(data)%2 != 0 {
		return dst, fmt.Errorf("%d bytes are no UTF-16, whose characters have two or four", len(data))
	}
	for i := 0; i < len(data); i += 2 {
		r := rune(data[i+high])<<8 | rune(data[i+1-high])
		if utf16.IsSurrogate(r) && i+4 <= len(data) {
			r = utf16.DecodeRune(r, rune(data[i+2+high])<<8|rune(data[i+3-high]))
			i += 2
		}
		if utf16.IsSurrogate(r) || r == utf8.RuneError {
			return dst, fmt.Errorf("the bytes from %d on are no UTF-16", i+1)
		}
		dst = utf8.AppendRune(dst, r)
	}
	return dst, nil
}
