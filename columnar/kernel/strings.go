package kernel

import (
	"bytes"
	"fmt"
	"regexp"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/memory"

	"github.com/tidemill/tidemill/columnar"
)

// Upper and Lower change the case of each VARCHAR of a. Text of ASCII letters, the
// usual kind, is mapped byte by byte in one pass over the whole column.
func Upper(mem memory.Allocator, a arrow.Array) (arrow.Array, error) {
	return changeCase(mem, a, 'a', unicode.ToUpper)
}

// Lower is Upper the other way.
func Lower(mem memory.Allocator, a arrow.Array) (arrow.Array, error) {
	return changeCase(mem, a, 'A', unicode.ToLower)
}

// changeCase maps the 26 letters from first on to their other case.
func changeCase(mem memory.Allocator, a arrow.Array, first byte, other func(rune) rune) (arrow.Array, error) {
	in, n := bytesOf(a), a.Len()
	valid, nulls := AndValidity(mem, n, columnar.ColumnDatum(a))
	from, to := in.offsets[0], in.offsets[n]
	src := in.data[from:to]
	data, out := Make[byte](mem, len(src))
	var high byte
	for i, c := range src {
		high |= c
		if c-first < 26 {
			c ^= 0x20
		}
		out[i] = c
	}
	if high < utf8.RuneSelf {
		offsets, ends := Make[int32](mem, n+1)
		for i, e := range in.offsets[:n+1] {
			ends[i] = e - from
		}
		return Wrap(a.DataType(), n, nulls, valid, offsets, data), nil
	}
	data.Release()
	w := NewTextWriter(mem, n, len(src))
	for i := range n {
		w.Data = appendCase(w.Data, in.at(i), first, other)
		w.End()
	}
	return w.Finish(a.DataType(), valid, nulls)
}

func appendCase(dst, s []byte, first byte, other func(rune) rune) []byte {
	for len(s) > 0 {
		r, size := utf8.DecodeRune(s)
		switch {
		case r == utf8.RuneError && size == 1:
			dst = append(dst, s[0]) // broken text stays as it is
		case r == 'ß' && first == 'a': // the one common letter whose capital is two
			dst = append(dst, "SS"...)
		default:
			dst = utf8.AppendRune(dst, other(r))
		}
		s = s[size:]
	}
	return dst
}

// AppendUpper is Upper of one text.
func AppendUpper(dst, s []byte) []byte { return appendCase(dst, s, 'a', unicode.ToUpper) }

// Lengths is the length of each VARCHAR or BINARY of a, as INTEGER: its bytes, or its
// characters.
func Lengths(mem memory.Allocator, a arrow.Array, characters bool) arrow.Array {
	in, n := bytesOf(a), a.Len()
	valid, nulls := AndValidity(mem, n, columnar.ColumnDatum(a))
	buf, out := Make[int32](mem, n)
	for i := range out {
		out[i] = in.offsets[i+1] - in.offsets[i]
	}
	if characters && !isASCII(in.data[in.offsets[0]:in.offsets[n]]) {
		for i := range out {
			out[i] = int32(utf8.RuneCount(in.at(i)))
		}
	}
	return Wrap(columnar.Int32, n, nulls, valid, buf)
}

func isASCII(s []byte) bool {
	var high byte
	for _, c := range s {
		high |= c
	}
	return high < utf8.RuneSelf
}

// TextTest is a test of a text against another.
type TextTest uint8

// The tests: whether the text begins with, ends with or contains the other.
const (
	HasPrefix TextTest = iota
	HasSuffix
	Contains
)

// TestText is test for each row of a against b, as BOOLEAN.
func TestText(mem memory.Allocator, test TextTest, a, b columnar.Datum, rows int) arrow.Array {
	x, y := TextsOf(a), TextsOf(b)
	valid, nulls := AndValidity(mem, rows, a, b)
	out := newBitmap(mem, rows)
	for i := 0; i < rows; i += 64 {
		var w uint64
		for k := range min(64, rows-i) {
			s, t := x.At(i+k), y.At(i+k)
			var bit bool
			switch test {
			case HasPrefix:
				bit = bytes.HasPrefix(s, t)
			case HasSuffix:
				bit = bytes.HasSuffix(s, t)
			default:
				bit = bytes.Contains(s, t)
			}
			w |= uint64(b2i(bit)) << (k & 63)
		}
		putWord(out.Bytes(), i, rows, w)
	}
	return Wrap(columnar.Boolean, rows, nulls, valid, out)
}

// Pattern is a compiled LIKE pattern: % stands for any text, _ for one character.
type Pattern struct {
	parts []string       // the literal texts between the %, in order: prefix, …, suffix
	re    *regexp.Regexp // instead, where case or _ matter
}

// NoEscape is the escape character of patterns that have none.
const NoEscape = rune(-1)

// CompileLike compiles a LIKE pattern; escape makes the character after it stand for
// itself. With fold set, case does not count.
func CompileLike(pattern string, escape rune, fold bool) (*Pattern, error) {
	p := &Pattern{}
	var re strings.Builder
	re.WriteString("(?s)^")
	if fold {
		re.WriteString("(?i)")
	}
	var part strings.Builder
	simple := !fold
	runes := []rune(pattern)
	for i := 0; i < len(runes); i++ {
		r := runes[i]
		switch {
		case r == escape:
			i++
			if i == len(runes) {
				return nil, fmt.Errorf("the pattern %q ends with its escape character; double it to mean the character", pattern)
			}
			part.WriteRune(runes[i])
			re.WriteString(regexp.QuoteMeta(string(runes[i])))
		case r == '%':
			p.parts = append(p.parts, part.String())
			part.Reset()
			re.WriteString(".*")
		case r == '_':
			simple = false
			re.WriteString(".")
		default:
			part.WriteRune(r)
			re.WriteString(regexp.QuoteMeta(string(r)))
		}
	}
	p.parts = append(p.parts, part.String())
	if simple {
		return p, nil
	}
	re.WriteString("$")
	var err error
	p.re, err = regexp.Compile(re.String())
	return p, err
}

// Match says whether the whole of s matches.
func (p *Pattern) Match(s []byte) bool {
	if p.re != nil {
		return p.re.Match(s)
	}
	first, last := p.parts[0], p.parts[len(p.parts)-1]
	if len(p.parts) == 1 {
		return string(s) == first
	}
	if len(s) < len(first)+len(last) || string(s[:len(first)]) != first || string(s[len(s)-len(last):]) != last {
		return false
	}
	s = s[len(first) : len(s)-len(last)]
	for _, part := range p.parts[1 : len(p.parts)-1] {
		at := strings.Index(viewString(s), part)
		if at < 0 {
			return false
		}
		s = s[at+len(part):]
	}
	return true
}

// Like is whether each row of a matches p, as BOOLEAN.
func Like(mem memory.Allocator, a columnar.Datum, p *Pattern, rows int) arrow.Array {
	in := TextsOf(a)
	valid, nulls := AndValidity(mem, rows, a)
	out := newBitmap(mem, rows)
	for i := 0; i < rows; i += 64 {
		var w uint64
		for k := range min(64, rows-i) {
			if valid == nil || bitAt(valid.Bytes(), i+k) {
				w |= uint64(b2i(p.Match(in.At(i+k)))) << (k & 63)
			}
		}
		putWord(out.Bytes(), i, rows, w)
	}
	return Wrap(columnar.Boolean, rows, nulls, valid, out)
}

// Substring is the part of s from its start-th character on (1 is the first, negative
// counts from the end, 0 is taken as 1), at most length characters long; a negative
// length is none. ASCII text is cut without decoding it.
func Substring(s []byte, start, length int64) []byte {
	n := int64(len(s))
	ascii := isASCII(s)
	if !ascii {
		n = int64(utf8.RuneCount(s))
	}
	start = max(start, -1<<40)
	from := start - 1
	switch {
	case start == 0:
		from = 0
	case start < 0:
		from = n + start
	}
	to := n
	if length < n-from {
		to = from + max(length, 0)
	}
	from, to = min(max(from, 0), n), min(max(to, 0), n)
	if from >= to {
		return nil
	}
	if ascii {
		return s[from:to]
	}
	return s[runeOffset(s, from):runeOffset(s, to)]
}

// runeOffset is the byte at which the k-th character of s, from 0, begins.
func runeOffset(s []byte, k int64) int {
	at := 0
	for ; k > 0 && at < len(s); k-- {
		_, size := utf8.DecodeRune(s[at:])
		at += size
	}
	return at
}
