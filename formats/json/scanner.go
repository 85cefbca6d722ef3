package json

import (
	"encoding/binary"
	"math/bits"

	"github.com/tidemill/tidemill/formats/codec/cells"
)

// maxDepth bounds nesting, as jsontext does.
const maxDepth = 10000

// scanner goes through JSON text. Its methods take the index of the first byte of
// something and return the index behind it; ok is false if it is not there. buf[hi]
// is a line feed that does not belong to the text, and cells.Pad bytes follow.
type scanner struct {
	buf []byte
	hi  int
	// multiline: a line feed is a blank; otherwise it ends the record.
	multiline bool
	depth     int
	scratch   []byte
}

const (
	lows  = 0x0101010101010101
	highs = 0x8080808080808080
)

// blanks passes over blanks.
func (s *scanner) blanks(p int) int {
	for {
		switch s.buf[p] {
		case ' ', '\t', '\r':
		case '\n':
			if !s.multiline || p >= s.hi {
				return p
			}
		default:
			return p
		}
		p++
	}
}

// text scans a string from its opening quote at p; end is its closing quote.
func (s *scanner) text(p int) (end int, hasEscape, ok bool) {
	buf := s.buf
	p++
	for {
		x := binary.LittleEndian.Uint64(buf[p:])
		quote, slash := x^lows*'"', x^lows*'\\'
		// A high bit for each byte that is a quote, a backslash or a control
		// character. Only the lowest one can be trusted, and only it is used.
		m := ((quote-lows)&^quote | (slash-lows)&^slash | (x-lows*0x20)&^x) & highs
		if m == 0 {
			p += 8
			continue
		}
		p += bits.TrailingZeros64(m) >> 3
		switch buf[p] {
		case '"':
			return p, hasEscape, true
		case '\\':
			hasEscape = true
			after := s.escape(p)
			if after < 0 {
				if p+6 > s.hi { // the window may have cut it off
					p = s.hi
				}
				return p, true, false
			}
			p = after
		default:
			return p, hasEscape, false
		}
	}
}

// escape is the index behind the escape at p, -1 if it is none.
func (s *scanner) escape(p int) int {
	switch s.buf[p+1] {
	case '"', '\\', '/', 'b', 'f', 'n', 'r', 't':
		return p + 2
	case 'u':
		for _, c := range s.buf[p+2 : p+6] {
			if c-'0' > 9 && (c|0x20 < 'a' || c|0x20 > 'f') {
				return -1
			}
		}
		return p + 6
	}
	return -1
}

// number scans a number.
func (s *scanner) number(p int) (end int, ok bool) {
	buf := s.buf
	if buf[p] == '-' {
		p++
	}
	if buf[p] == '0' {
		p++
	} else {
		from := p
		for buf[p]-'0' <= 9 {
			p++
		}
		if p == from {
			return p, false
		}
	}
	if buf[p] == '.' {
		p++
		from := p
		for buf[p]-'0' <= 9 {
			p++
		}
		if p == from {
			return p, false
		}
	}
	if buf[p]|0x20 == 'e' {
		p++
		if buf[p] == '+' || buf[p] == '-' {
			p++
		}
		from := p
		for buf[p]-'0' <= 9 {
			p++
		}
		if p == from {
			return p, false
		}
	}
	return p, true
}

// literal scans word.
func (s *scanner) literal(p int, word string) (end int, ok bool) {
	if end = p + len(word); end > s.hi || string(s.buf[p:end]) != word {
		// A word that the window cuts off may go on behind it.
		for i := 0; i < len(word) && p < s.hi && s.buf[p] == word[i]; i++ {
			p++
		}
		return p, false
	}
	return end, true
}

// quoted scans a string, as a cell.
func (s *scanner) quoted(p int) (cell cells.Cell, end int, ok bool) {
	end, hasEscape, ok := s.text(p)
	switch {
	case !ok:
		return 0, end, false
	case hasEscape:
		return cells.Escaped(p+1, end), end + 1, true
	}
	return cells.Quoted(p+1, end), end + 1, true
}

// scalar scans anything but an object or array, as a cell.
func (s *scanner) scalar(p int) (cell cells.Cell, end int, ok bool) {
	switch c := s.buf[p]; {
	case c == '"':
		return s.quoted(p)
	case c == '-' || c-'0' <= 9:
		end, ok = s.number(p)
		return cells.Plain(p, end), end, ok
	case c == 'n':
		end, ok = s.literal(p, "null")
		return cells.Absent, end, ok
	case c == 't':
		end, ok = s.literal(p, "true")
		return cells.Plain(p, end), end, ok
	case c == 'f':
		end, ok = s.literal(p, "false")
		return cells.Plain(p, end), end, ok
	}
	return 0, p, false
}

// cell scans any value, as a cell.
func (s *scanner) cell(p int) (cell cells.Cell, end int, ok bool) {
	if c := s.buf[p]; c == '{' || c == '[' {
		end, ok = s.skip(p)
		return cells.Container(p, end), end, ok
	}
	return s.scalar(p)
}

// skip scans any value.
func (s *scanner) skip(p int) (end int, ok bool) {
	switch s.buf[p] {
	case '{':
		return s.members(p, func(_, _, p int) (int, bool) { return s.skip(p) })
	case '[':
		return s.elements(p, s.skip)
	}
	_, end, ok = s.scalar(p)
	return end, ok
}

// enter and leave count nesting.
func (s *scanner) enter() bool {
	s.depth++
	return s.depth <= maxDepth
}

// members scans the object at p; value scans each value, and is given the span of
// its key, without the quotes.
func (s *scanner) members(p int, value func(keyStart, keyEnd, p int) (int, bool)) (end int, ok bool) {
	if !s.enter() {
		return p, false
	}
	p = s.blanks(p + 1)
	if s.buf[p] == '}' {
		s.depth--
		return p + 1, true
	}
	for {
		if s.buf[p] != '"' {
			return p, false
		}
		keyEnd, _, ok := s.text(p)
		if !ok {
			return keyEnd, false
		}
		keyStart := p + 1
		if p = s.blanks(keyEnd + 1); s.buf[p] != ':' {
			return p, false
		}
		if p, ok = value(keyStart, keyEnd, s.blanks(p+1)); !ok {
			return p, false
		}
		p = s.blanks(p)
		switch s.buf[p] {
		case ',':
			p = s.blanks(p + 1)
		case '}':
			s.depth--
			return p + 1, true
		default:
			return p, false
		}
	}
}

// elements scans the array at p; value scans each element.
func (s *scanner) elements(p int, value func(p int) (int, bool)) (end int, ok bool) {
	if !s.enter() {
		return p, false
	}
	p = s.blanks(p + 1)
	if s.buf[p] == ']' {
		s.depth--
		return p + 1, true
	}
	for {
		if p, ok = value(p); !ok {
			return p, false
		}
		p = s.blanks(p)
		switch s.buf[p] {
		case ',':
			p = s.blanks(p + 1)
		case ']':
			s.depth--
			return p + 1, true
		default:
			return p, false
		}
	}
}
