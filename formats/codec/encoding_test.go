package codec_test

import (
	"encoding/binary"
	"fmt"
	"io"
	"math/rand/v2"
	"strings"
	"testing"
	"testing/iotest"
	"unicode/utf16"
	"unicode/utf8"

	"github.com/tidemill/tidemill/formats/codec"
	"github.com/tidemill/tidemill/formats/codec/codectest"
)

// inUnits is text in UTF-16 or UTF-32.
func inUnits(order binary.AppendByteOrder, size int, text string) []byte {
	var out []byte
	if size == 4 {
		for _, c := range text {
			out = order.AppendUint32(out, uint32(c))
		}
		return out
	}
	for _, u := range utf16.Encode([]rune(text)) {
		out = order.AppendUint16(out, u)
	}
	return out
}

// What a file is in is told by the option, by its mark, or by the zero bytes beside letters;
// what is no text in it becomes no valid UTF-8, nor U+FFFD.
func TestDecoders(t *testing.T) {
	t.Parallel()
	little, big := binary.LittleEndian, binary.BigEndian
	const text = "a,b\n1,h\u00e9\U0001F600\n"
	for _, c := range []struct {
		name, encoding string
		data           []byte
		want           string
	}{
		{"utf-8", "", []byte(text), text},
		{"utf-8 with a mark", "", []byte("\uFEFF" + text), text},
		{"utf-16le by its mark", "", inUnits(little, 2, "\uFEFF"+text), text},
		{"utf-16be by its mark", "utf-8", inUnits(big, 2, "\uFEFF"+text), text},
		{"utf-32le by its mark", "", inUnits(little, 4, "\uFEFF"+text), text},
		{"utf-32be by its mark", "", inUnits(big, 4, "\uFEFF"+text), text},
		{"utf-16le by its zeros", "", inUnits(little, 2, "col_a,col_b\n\u20ac"), "col_a,col_b\n\u20ac"},
		{"utf-16be by its zeros", "utf-16", inUnits(big, 2, "col_a,col_b\n\u20ac"), "col_a,col_b\n\u20ac"},
		{"utf-16le stated as utf-16", "utf-16", inUnits(little, 2, "col_a,col_b\n"), "col_a,col_b\n"},
		{"utf-16le stated as utf-16, not all ASCII", "utf-16", inUnits(little, 2, "\u20ac,b\n"), "\u20ac,b\n"},
		{"zeros in stated utf-8 are data", "utf8", []byte("a\x00b\x00"), "a\x00b\x00"},
		{"one zero is data", "", []byte("a\x00b,c,d"), "a\x00b,c,d"},
		{"utf-16le stated", "utf-16le", inUnits(little, 2, "\u20ac,x"), "\u20ac,x"},
		{"a mark counts more than the option", "utf-16le", inUnits(big, 2, "\uFEFF\u20ac"), "\u20ac"},
		{"utf-32 stated", "utf-32", inUnits(big, 4, text), text},
		{"latin1", "latin1", []byte("\xe9\x80"), "\u00e9\u0080"},
		{"windows-1252", "windows-1252", []byte("\x80\x9f"), "\u20ac\u0178"},
		{"not in windows-1252", "cp1252", []byte("a\x81b"), "a\x81b"},
		{"not in iso-8859-8", "iso-8859-8", []byte("\xe0\xfb\xa1"), "\u05d0\xff\xa1"},
		{"half of a pair", "utf-16le", []byte("a\x00\x00\xd8b\x00"), "a\xed\xa0\x80b"},
		{"the other half", "utf-16be", []byte("\xdc\x01\x00b"), "\xed\xb0\x81b"},
		{"half of a pair at the end", "utf-16le", []byte("a\x00\x00\xd8"), "a\xed\xa0\x80"},
		{"half a unit at the end", "utf-16le", []byte("a\x00b"), "a\xff"},
		{"beyond Unicode", "utf-32le", []byte("a\x00\x00\x00\x00\x00\x11\x00"), "a\xff"},
		{"one byte", "utf-16", []byte("a"), "\xff"},
	} {
		spec := codec.InputSpec{}
		if c.encoding != "" {
			var err error
			if spec.Encoding, err = codec.ParseEncoding(c.encoding); err != nil {
				t.Fatal(err)
			}
		}
		got, err := read(t, codectest.File(t, "x.csv", c.data), spec)
		if err != nil || got != c.want {
			t.Errorf("%s: %q, %v", c.name, got, err)
		}
	}
	if _, err := codec.ParseEncoding(""); err == nil {
		t.Error("no encoding is one")
	}
}

// TestDecodersInPieces: where the text is cut by reads, within a pair of surrogates too,
// changes nothing, and valid text is what the standard library makes of it.
func TestDecodersInPieces(t *testing.T) {
	t.Parallel()
	r := rand.New(rand.NewPCG(7, 8))
	for range 300 {
		units := make([]uint16, r.IntN(40))
		valid := true
		for i := range units {
			units[i] = [...]uint16{'a', 0xE9, 0x20AC, 0xD83D, 0xDE00, 0xFFFD}[r.IntN(6)]
		}
		var data []byte
		for _, u := range units {
			data = binary.LittleEndian.AppendUint16(data, u)
		}
		decoded := utf16.Decode(units)
		for i := 0; i < len(units); i++ {
			switch {
			case !utf16.IsSurrogate(rune(units[i])):
			case i+1 < len(units) && utf16.DecodeRune(rune(units[i]), rune(units[i+1])) != utf8.RuneError:
				i++
			default:
				valid = false
			}
		}
		e, err := codec.ParseEncoding("utf-16le")
		if err != nil {
			t.Fatal(err)
		}
		whole, err1 := io.ReadAll(e.NewReader(strings.NewReader(string(data))))
		pieces, err2 := io.ReadAll(e.NewReader(iotest.OneByteReader(strings.NewReader(string(data)))))
		if err1 != nil || err2 != nil || string(whole) != string(pieces) || utf8.Valid(whole) != valid || valid && string(whole) != string(decoded) {
			t.Fatal(fmt.Errorf("%x: %q, in pieces %q, %v %v, valid %v", units, whole, pieces, err1, err2, valid))
		}
	}
}
