package cells

import (
	"strings"

	"github.com/tidemill/tidemill/columnar"
)

// yearDigits is how many digits a year of a DATE has at most.
const yearDigits = 7

// settleYears tells the years how many digits follow them without anything between.
func settleYears(items []item) {
	for i := range items {
		switch items[i].kind {
		case year:
			items[i].after = digitsAfter(items[i+1:])
		case optional:
			settleYears(items[i].inner)
		}
	}
}

// digitsAfter is how many digits items begin with, -1 if with something else.
func digitsAfter(items []item) int {
	digits := -1
	for i := range items {
		switch it := &items[i]; it.kind {
		case literal:
			if n := len(it.text) - len(strings.TrimLeft(it.text, "0123456789")); n > 0 {
				digits = max(digits, 0) + n
			}
			return digits
		case optional:
			if digitsAfter(it.inner) >= 0 {
				digits = max(digits, 0)
			}
			return digits
		case monthName, weekday, half, offset, zone:
			return digits
		default:
			digits = max(digits, 0) + it.max
		}
	}
	return digits
}

// parseYear reads a year as strptime does: with or without a sign, and of as many digits as
// there are; in front of other digits of as many as the pattern says, unless a sign says that it
// has all but those.
func (it *item) parseYear(b []byte, v *instant) (rest []byte, ok bool) {
	signed := len(b) > 0 && (b[0] == '+' || b[0] == '-')
	negative := signed && b[0] == '-'
	if signed {
		b = b[1:]
	}
	n := 0
	for n < len(b) && b[n]-'0' <= 9 {
		n++
	}
	switch {
	case it.after < 0:
		n = min(n, yearDigits)
	case signed:
		n = min(n-it.after, yearDigits)
	default:
		n = min(n, it.max)
	}
	if n < max(it.min, 1) {
		return b, false
	}
	v.year = 0
	for _, c := range b[:n] {
		v.year = v.year*10 + int64(c-'0')
	}
	if negative {
		v.year = -v.year
	}
	return b[n:], true
}

// ParseDay reads all of b as a DATE, in days since 1970; with a zone in the text it is that of
// UTC then. A DATE goes further than an instant.
func (p *Pattern) ParseDay(b []byte) (day int32, ok bool) {
	for ; p != nil; p = p.next {
		v := instant{year: 1970, month: 1, day: 1}
		rest, ok := parseItems(p.items, b, &v)
		if !ok || len(rest) != 0 {
			continue
		}
		if v.hasZone || v.hasEpoch {
			us, ok := v.micro(nil)
			return int32(columnar.FloorDiv(us, columnar.MicrosPerDay)), ok
		}
		if days, _, ok := v.clock(); ok && int64(int32(days)) == days {
			return int32(days), true
		}
	}
	return 0, false
}
