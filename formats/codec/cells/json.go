package cells

import (
	"unicode/utf16"
	"unicode/utf8"
)

// appendUnescaped appends the text of the inside of a JSON string. ok is false for
// an escape that is none, and for a lone surrogate, which no UTF-8 text can hold.
func appendUnescaped(dst, src []byte) (text []byte, ok bool) {
	for i := 0; i < len(src); i++ {
		c := src[i]
		if c != '\\' {
			dst = append(dst, c)
			continue
		}
		i++
		if i == len(src) {
			return dst, false
		}
		switch src[i] {
		case '"', '\\', '/':
			dst = append(dst, src[i])
		case 'b':
			dst = append(dst, '\b')
		case 'f':
			dst = append(dst, '\f')
		case 'n':
			dst = append(dst, '\n')
		case 'r':
			dst = append(dst, '\r')
		case 't':
			dst = append(dst, '\t')
		case 'u':
			r, size := decodeUnicode(src[i-1:])
			if size == 0 {
				return dst, false
			}
			dst = utf8.AppendRune(dst, r)
			i += size - 2
		default:
			return dst, false
		}
	}
	return dst, true
}

// decodeUnicode reads \uXXXX, or a surrogate pair of them, at the front of src; size
// is 0 if that is not there.
func decodeUnicode(src []byte) (r rune, size int) {
	hi, ok := hex4(src)
	if !ok {
		return 0, 0
	}
	if !utf16.IsSurrogate(hi) {
		return hi, 6
	}
	lo, ok := hex4(src[6:])
	if !ok {
		return 0, 0
	}
	if r = utf16.DecodeRune(hi, lo); r == utf8.RuneError {
		return 0, 0
	}
	return r, 12
}

func hex4(src []byte) (rune, bool) {
	if len(src) < 6 || src[0] != '\\' || src[1] != 'u' {
		return 0, false
	}
	v := rune(0)
	for _, c := range src[2:6] {
		switch {
		case c >= '0' && c <= '9':
			c -= '0'
		case c|0x20 >= 'a' && c|0x20 <= 'f':
			c = c | 0x20 - 'a' + 10
		default:
			return 0, false
		}
		v = v<<4 | rune(c)
	}
	return v, true
}

// appendCompact appends JSON text without the blanks between its tokens.
func appendCompact(dst, src []byte) []byte {
	for i := 0; i < len(src); {
		switch c := src[i]; c {
		case ' ', '\t', '\n', '\r':
			i++
		case '"':
			end := i + 1
			for end < len(src) && src[end] != '"' {
				if src[end] == '\\' {
					end++
				}
				end++
			}
			end = min(end+1, len(src))
			dst = append(dst, src[i:end]...)
			i = end
		default:
			dst = append(dst, c)
			i++
		}
	}
	return dst
}
