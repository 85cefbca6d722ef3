package function

import (
	"fmt"
	"strings"
)

// letterForms are the fields of the letters of Java's DateTimeFormatter, one of them, two and so
// on; those of kind 0 are none.
var letterForms = map[byte][]patternItem{
	'y': yearForms(),
	'u': yearForms(),
	'M': append(digitForms('m', 2), patternItem{kind: 'b'}, patternItem{kind: 'B'}),
	'L': append(digitForms('m', 2), patternItem{kind: 'b'}, patternItem{kind: 'B'}),
	'Q': digitForms('q', 4),
	'q': digitForms('q', 4),
	'd': digitForms('d', 2),
	'D': digitForms('j', 3),
	'E': {{kind: 'a'}, {kind: 'a'}, {kind: 'a'}, {kind: 'A'}},
	'a': {{kind: 'p'}},
	'H': digitForms('H', 2),
	'h': digitForms('I', 2),
	'k': digitForms('k', 2),
	'K': digitForms('K', 2),
	'm': digitForms('M', 2),
	's': digitForms('S', 2),
	'S': digitForms('f', 9),
	'X': offsetForms("X", "XX", "XXX", "XXXX", "XXXXX"),
	'x': offsetForms("x", "xx", "xxx", "xxxx", "xxxxx"),
	'Z': offsetForms("xx", "xx", "xx", "OOOO", "XXXXX"),
	'O': {{kind: 'z', text: "O"}, {}, {}, {kind: 'z', text: "OOOO"}},
	'z': {{kind: 'Z'}, {kind: 'Z'}, {kind: 'Z'}},
	'V': {{}, {kind: 'v'}},
}

func digitForms(kind byte, most int) (forms []patternItem) {
	for n := range most {
		forms = append(forms, patternItem{kind: kind, width: n + 1})
	}
	return forms
}

func yearForms() []patternItem {
	forms := digitForms('Y', 6)
	forms[1].kind = 'y'
	return forms
}

func offsetForms(styles ...string) (forms []patternItem) {
	for _, style := range styles {
		forms = append(forms, patternItem{kind: 'z', text: style})
	}
	return forms
}

// letterAdvice says what to write for letters of Java that there are not.
var letterAdvice = map[byte]string{
	'Y': "it is the year of a week in Java; yyyy is the year, %G of strftime the year of a week",
	'w': "it is a week in Java; %V of strftime is the week of ISO 8601",
	'W': "it is a week in Java; %V of strftime is the week of ISO 8601",
	'e': "EEE and EEEE are the day of the week, %u of strftime is its number",
	'c': "EEE and EEEE are the day of the week, %u of strftime is its number",
	'G': "a year before 1 is written with a minus",
	'A': "HH mm ss SSS are the parts of the time of day",
	'N': "HH mm ss SSS are the parts of the time of day",
	'n': "SSSSSS are the digits of the fraction of a second",
	'B': "a is AM or PM",
	'v': "VV is the name of the zone, zzz its short one",
	'p': "letters are repeated for more digits, lpad puts blanks before a text",
}

// compileLetters reads a pattern of Java's DateTimeFormatter.
func compileLetters(source string) (*timePattern, error) {
	p := &timePattern{source: source}
	var open []int // the items that begin a section
	for i := 0; i < len(source); {
		switch c := source[i]; c {
		case '\'':
			n, ok := p.quoted(source[i+1:])
			if !ok {
				return nil, fmt.Errorf("time format %q: a quote is not closed", source)
			}
			i += n + 1
		case '[':
			open = append(open, len(p.items))
			p.field('[', 0)
			i++
		case ']':
			if len(open) == 0 {
				return nil, fmt.Errorf("time format %q: a ] has no [ before it; text is written in single quotes", source)
			}
			first := open[len(open)-1]
			open, p.closed = open[:len(open)-1], len(p.items)
			p.items[first].width = p.closed - first - 1
			i++
		default:
			n := len(source[i:]) - len(strings.TrimLeft(source[i:], source[i:i+1]))
			if c >= 0x80 { // a byte of a character
				n = 1
			}
			if err := p.letters(c, n); err != nil {
				return nil, err
			}
			i += n
		}
	}
	if len(open) > 0 {
		return nil, fmt.Errorf("time format %q: a [ is not closed; text is written in single quotes", source)
	}
	return p, nil
}

// quoted adds the text behind a quote up to the one that closes it, and says how many bytes that
// were. Two quotes are one, in a text and alone.
func (p *timePattern) quoted(s string) (n int, ok bool) {
	if strings.HasPrefix(s, "'") {
		p.literal("'")
		return 1, true
	}
	for {
		end := strings.IndexByte(s[n:], '\'')
		if end < 0 {
			return 0, false
		}
		p.literal(s[n : n+end])
		n += end + 1
		if !strings.HasPrefix(s[n:], "'") {
			return n, true
		}
		p.literal("'")
		n++
	}
}

// letters adds the field of n letters c, or c itself if it is none.
func (p *timePattern) letters(c byte, n int) error {
	text := strings.Repeat(string([]byte{c}), n)
	forms := letterForms[c]
	switch {
	case n <= len(forms) && forms[n-1].kind != 0:
		p.items = append(p.items, forms[n-1])
	case forms != nil:
		return fmt.Errorf("time format %q: %s is unknown; %s", p.source, text, formsOf(c, forms))
	case letterAdvice[c] != "":
		return fmt.Errorf("time format %q: %s is unknown; %s", p.source, text, letterAdvice[c])
	case c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z':
		return fmt.Errorf("time format %q: %s is unknown; known are yyyy MM dd HH mm ss SSS hh a EEE MMM DDD XXX, and text in single quotes", p.source, text)
	default:
		p.literal(text)
	}
	return nil
}

// formsOf says which numbers of a letter there are.
func formsOf(c byte, forms []patternItem) string {
	var known []string
	for k, form := range forms {
		if form.kind != 0 {
			known = append(known, strings.Repeat(string([]byte{c}), k+1))
		}
	}
	switch n := len(known); {
	case n == 1:
		return "there is " + known[0]
	case n > 4:
		return "there are " + known[0] + " to " + known[n-1]
	default:
		return "there are " + strings.Join(known, ", ")
	}
}

// appendQuarter appends 3 or 03, of three letters Q3, of four 3rd quarter.
func appendQuarter(dst []byte, quarter, letters int) []byte {
	switch letters {
	case 3:
		return append(dst, 'Q', byte('0'+quarter))
	case 4:
		return append(dst, [...]string{"1st quarter", "2nd quarter", "3rd quarter", "4th quarter"}[quarter-1]...)
	}
	return appendPadded(dst, int64(quarter), letters)
}

// appendOffset appends an offset of seconds as the letters of style say: x to xxxxx, X to XXXXX,
// which are Z at UTC, O and OOOO.
func appendOffset(dst []byte, offset int64, style string) []byte {
	sign := byte('+')
	if offset < 0 {
		sign, offset = '-', -offset
	}
	named := style[0] == 'O'
	if named {
		dst = append(dst, "GMT"...)
	} else if len(style) < 4 { // the others have seconds
		offset -= offset % 60
	}
	switch {
	case offset == 0 && named:
		return dst
	case offset == 0 && style[0] == 'X':
		return append(dst, 'Z')
	case offset == 0:
		sign = '+'
	}
	hours, minutes, seconds := offset/3600, offset/60%60, offset%60
	colon := named || len(style) == 3 || len(style) == 5
	part := func(v int64) {
		if colon {
			dst = append(dst, ':')
		}
		dst = appendPadded(dst, v, 2)
	}
	hourDigits := 2
	if style == "O" {
		hourDigits = 1
	}
	dst = appendPadded(append(dst, sign), hours, hourDigits)
	if len(style) > 1 || minutes+seconds > 0 {
		part(minutes)
	}
	if seconds > 0 {
		part(seconds)
	}
	return dst
}
