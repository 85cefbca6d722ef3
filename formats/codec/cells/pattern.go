package cells

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/tidemill/tidemill/columnar"
)

// Pattern is a timestamp_format or date_format: how a time is written.
//
// A pattern with a % is strftime's: %Y %y %m %d %e %j %H %I %M %S %f (fraction) %p
// %b %B %a %A %z (offset) %Z (zone) %s (seconds since 1970) %F %T %R %D %%.
// Any other is Java's, as Spark takes it: y M d D E H h m s S a X x Z z V, repeated
// letters for width, 'text' in apostrophes, and [ ] around what may be missing.
//
// Several patterns may be given, with | between them: a text is read by the first that
// fits, and written by the first.
type Pattern struct {
	text  string
	items []item
	next  *Pattern // tried where this one does not fit; nil: none
}

type itemKind uint8

const (
	literal itemKind = iota
	year
	year2     // 2000 to 2099, as in Java
	yearPosix // 1969 to 2068, as in C
	month
	monthName // short or long
	day
	dayOfYear
	weekday // read and not used
	hour24
	hour12
	minute
	second
	fraction // digits after the point
	half     // AM, PM
	offset   // Z, +HH, +HHMM, +HH:MM
	zone     // the same, or a name
	epoch    // seconds since 1970
	optional
)

type item struct {
	kind     itemKind
	text     string // of a literal
	min, max int    // digits, or variant of writing
	inner    []item // of an optional part
	after    int    // of a year, see digitsAfter
}

// String is the pattern as it was written.
func (p *Pattern) String() string {
	if p.next != nil {
		return p.text + "|" + p.next.String()
	}
	return p.text
}

// ParsePattern compiles a format, or a list of them.
func ParsePattern(text string) (*Pattern, error) {
	quoted := false
	for i, c := range text {
		quoted = quoted != (c == '\'')
		if c != '|' || quoted {
			continue
		}
		p, err := parsePattern(text[:i])
		if err == nil {
			p.next, err = ParsePattern(text[i+1:])
		}
		return p, err
	}
	return parsePattern(text)
}

func parsePattern(text string) (*Pattern, error) {
	p := &Pattern{text: text}
	var err error
	letters := javaLetters
	if strings.Contains(text, "%") {
		letters = strftimeLetters
		p.items, err = strftimeItems(text)
	} else {
		var rest string
		p.items, rest, err = javaItems(text, 0)
		if err == nil && rest != "" {
			err = fmt.Errorf("] without [")
		}
	}
	if err == nil {
		err = mistaken(p.items, letters)
	}
	if err != nil {
		return nil, fmt.Errorf("format %q: %w", text, err)
	}
	if !holdsTime(p.items) {
		return nil, fmt.Errorf("format %q names no part of a date or time; write it like yyyy-MM-dd HH:mm:ss or %%Y-%%m-%%d %%H:%%M:%%S", text)
	}
	settleYears(p.items)
	return p, nil
}

func holdsTime(items []item) bool {
	for _, it := range items {
		if it.kind != literal && (it.kind != optional || holdsTime(it.inner)) {
			return true
		}
	}
	return false
}

var strftime = map[byte]item{
	'Y': {kind: year, min: 4, max: 4},
	'y': {kind: yearPosix, min: 2, max: 2},
	'm': {kind: month, min: 2, max: 2},
	'd': {kind: day, min: 2, max: 2},
	'e': {kind: day, min: 1, max: 2},
	'j': {kind: dayOfYear, min: 3, max: 3},
	'H': {kind: hour24, min: 2, max: 2},
	'I': {kind: hour12, min: 2, max: 2},
	'M': {kind: minute, min: 2, max: 2},
	'S': {kind: second, min: 2, max: 2},
	'f': {kind: fraction, min: 6, max: 9},
	'p': {kind: half},
	'b': {kind: monthName, max: 3},
	'h': {kind: monthName, max: 3},
	'B': {kind: monthName, max: 4},
	'a': {kind: weekday, max: 3},
	'A': {kind: weekday, max: 4},
	'z': {kind: offset, max: 4},
	'Z': {kind: zone},
	's': {kind: epoch, min: 1, max: 18},
	'%': {kind: literal, text: "%"},
}

var strftimeShort = map[byte]string{'F': "%Y-%m-%d", 'T': "%H:%M:%S", 'R': "%H:%M", 'D': "%m/%d/%y"}

func strftimeItems(text string) (items []item, err error) {
	for i := 0; i < len(text); i++ {
		if text[i] != '%' {
			items = appendLiteral(items, text[i:i+1])
			continue
		}
		i++
		if i < len(text) && text[i] == '-' { // %-d: without a leading zero
			i++
		}
		if i == len(text) {
			return nil, fmt.Errorf("%% at its end; write %%%% for a percent sign")
		}
		if long, ok := strftimeShort[text[i]]; ok {
			parts, _ := strftimeItems(long)
			items = append(items, parts...)
			continue
		}
		it, ok := strftime[text[i]]
		if !ok {
			return nil, fmt.Errorf("%%%c is not known", text[i])
		}
		if text[i-1] == '-' {
			it.min = 1
		}
		items = append(items, it)
	}
	return items, nil
}

func appendLiteral(items []item, s string) []item {
	if n := len(items); n > 0 && items[n-1].kind == literal {
		items[n-1].text += s
		return items
	}
	return append(items, item{kind: literal, text: s})
}

// javaItems compiles up to the end or to the ] that ends an optional part.
func javaItems(text string, depth int) (items []item, rest string, err error) {
	for text != "" {
		c := text[0]
		switch {
		case c == '\'':
			word, rest, ok := quotedText(text)
			if !ok {
				return nil, "", fmt.Errorf("an apostrophe is not closed")
			}
			items = appendLiteral(items, word)
			text = rest
		case c == '[':
			inner, rest, err := javaItems(text[1:], depth+1)
			if err != nil {
				return nil, "", err
			}
			if !strings.HasPrefix(rest, "]") {
				return nil, "", fmt.Errorf("[ is not closed")
			}
			items = append(items, item{kind: optional, inner: inner})
			text = rest[1:]
		case c == ']':
			return items, text, nil
		case c|0x20 >= 'a' && c|0x20 <= 'z':
			n := 1
			for n < len(text) && text[n] == c {
				n++
			}
			it, ok := javaItem(c, n)
			if !ok {
				return nil, "", fmt.Errorf("%s is not known%s; text stands in apostrophes", text[:n], meantLetters(c))
			}
			items = append(items, it)
			text = text[n:]
		default:
			items = appendLiteral(items, text[:1])
			text = text[1:]
		}
	}
	return items, "", nil
}

// meantLetters says what is usually meant by a letter that stands for nothing.
func meantLetters(c byte) string {
	switch c {
	case 'Y':
		return " (yyyy is the year)"
	case 'k', 'K':
		return " (HH is the hour)"
	case 'n', 'N', 'A', 'f', 'F':
		return " (SSSSSS is the fraction of a second)"
	}
	return ""
}

// quotedText reads the text in apostrophes that s begins with. Two apostrophes are
// one, inside and outside.
func quotedText(s string) (word, rest string, ok bool) {
	if strings.HasPrefix(s, "''") {
		return "'", s[2:], true
	}
	for i := 1; i < len(s); i++ {
		if s[i] == '\'' {
			if i+1 == len(s) || s[i+1] != '\'' {
				return word, s[i+1:], true
			}
			i++
		}
		word += s[i : i+1]
	}
	return "", "", false
}

func javaItem(c byte, n int) (item, bool) {
	two := func(k itemKind) (item, bool) { return item{kind: k, min: min(n, 2), max: 2}, n <= 2 }
	switch c {
	case 'y', 'u':
		if n == 2 {
			return item{kind: year2, min: 2, max: 2}, true
		}
		return item{kind: year, min: min(n, 4), max: max(4, n)}, n <= 6
	case 'M', 'L':
		if n >= 3 {
			return item{kind: monthName, max: n}, n <= 4
		}
		return two(month)
	case 'd':
		return two(day)
	case 'D':
		return item{kind: dayOfYear, min: n, max: 3}, n <= 3
	case 'E':
		return item{kind: weekday, max: max(n, 3)}, n <= 4
	case 'H':
		return two(hour24)
	case 'h':
		return two(hour12)
	case 'm':
		return two(minute)
	case 's':
		return two(second)
	case 'S':
		return item{kind: fraction, min: n, max: 9}, n <= 9
	case 'a':
		return item{kind: half}, n == 1
	case 'X', 'x', 'Z', 'O':
		width := [...]int{0, 2, 4, 5, 4, 5}[min(n, 5)]
		if c == 'Z' || c == 'O' {
			width = 4
		}
		return item{kind: offset, min: int(c), max: width}, n <= 5
	case 'z', 'V':
		return item{kind: zone}, n <= 4
	}
	return item{}, false
}

// instant is what the parts of a text say so far.
type instant struct {
	year, month, day, yearDay          int64
	hour, minute, second, micros, half int64 // half: 0 none, 1 AM, 2 PM
	epoch                              int64
	hasEpoch, hasZone                  bool
	offset                             int64
	loc                                *time.Location
}

// Parse reads all of b as an instant, in microseconds; without a zone in the text
// the clock of loc is meant.
func (p *Pattern) Parse(b []byte, loc *time.Location) (us int64, ok bool) {
	for ; p != nil; p = p.next {
		v := instant{year: 1970, month: 1, day: 1}
		rest, ok := parseItems(p.items, b, &v)
		if !ok || len(rest) != 0 {
			continue
		}
		if us, ok := v.micro(loc); ok {
			return us, true
		}
	}
	return 0, false
}

func (v *instant) micro(loc *time.Location) (int64, bool) {
	if v.hasEpoch {
		return v.epoch*columnar.MicrosPerSecond + v.micros, v.epoch < 1<<40 && v.epoch > -1<<40
	}
	days, us, ok := v.clock()
	switch {
	case !ok:
		return 0, false
	case v.loc != nil:
		return columnar.Instant(days, us, v.loc)
	case v.hasZone:
		return columnar.Instant(days, us-v.offset, nil)
	}
	return columnar.Instant(days, us, loc)
}

// clock is the day, since 1970, and the microseconds since its midnight.
func (v *instant) clock() (days, us int64, ok bool) {
	hour := v.hour
	if v.half > 0 {
		if hour < 1 || hour > 12 {
			return 0, 0, false
		}
		hour = hour%12 + (v.half-1)*12
	}
	if v.yearDay > 0 {
		days = columnar.DaysFromCivil(v.year, 1, 1) + v.yearDay - 1
		if v.yearDay > 366 || v.yearDay == 366 && !columnar.IsLeap(v.year) {
			return 0, 0, false
		}
	} else {
		if v.month < 1 || v.month > 12 || v.day < 1 || v.day > int64(columnar.DaysInMonth(v.year, int(v.month))) {
			return 0, 0, false
		}
		days = columnar.DaysFromCivil(v.year, int(v.month), int(v.day))
	}
	if hour > 23 || v.minute > 59 || v.second > 59 {
		return 0, 0, false
	}
	return days, hour*columnar.MicrosPerHour + v.minute*columnar.MicrosPerMinute + v.second*columnar.MicrosPerSecond + v.micros, true
}

func parseItems(items []item, b []byte, v *instant) (rest []byte, ok bool) {
	for i := range items {
		it := &items[i]
		if it.kind == optional {
			saved := *v
			// What stands in brackets is there or not, and what follows decides:
			// [.SSS][XXX] tries the first, then without it.
			if rest, ok := parseItems(it.inner, b, v); ok {
				if end, ok := parseItems(items[i+1:], rest, v); ok {
					return end, true
				}
			}
			*v = saved
			continue
		}
		if b, ok = it.parse(b, v); !ok {
			return b, false
		}
	}
	return b, true
}

func (it *item) parse(b []byte, v *instant) (rest []byte, ok bool) {
	switch it.kind {
	case literal:
		if len(b) < len(it.text) || string(b[:len(it.text)]) != it.text {
			return b, false
		}
		return b[len(it.text):], true
	case monthName:
		return parseName(b, months[:], &v.month)
	case weekday:
		var unused int64
		return parseName(b, weekdays[:], &unused)
	case half:
		return parseHalf(b, v)
	case offset, zone:
		return it.parseZone(b, v)
	case fraction:
		return it.parseFraction(b, v)
	case year:
		return it.parseYear(b, v)
	}
	negative := it.kind == epoch && len(b) > 0 && b[0] == '-'
	if negative {
		b = b[1:]
	}
	n, x := 0, int64(0)
	for n < len(b) && n < it.max && b[n]-'0' <= 9 {
		x = x*10 + int64(b[n]-'0')
		n++
	}
	if n < it.min || n == 0 {
		return b, false
	}
	if negative {
		x = -x
	}
	it.store(x, v)
	return b[n:], true
}

// store puts the number of an item into its place.
func (it *item) store(x int64, v *instant) {
	switch it.kind {
	case year2:
		v.year = 2000 + x
	case yearPosix:
		v.year = 2000 + x
		if x >= 69 {
			v.year = 1900 + x
		}
	case month:
		v.month = x
	case day:
		v.day = x
	case dayOfYear:
		v.yearDay = x
	case hour24, hour12:
		v.hour = x
		if it.kind == hour12 && v.half == 0 {
			v.half = 1
		}
	case minute:
		v.minute = x
	case second:
		v.second = x
	case epoch:
		v.epoch, v.hasEpoch = x, true
	}
}

func parseHalf(b []byte, v *instant) ([]byte, bool) {
	if len(b) < 2 || b[1]|0x20 != 'm' {
		return b, false
	}
	switch b[0] | 0x20 {
	case 'a':
		v.half = 1
	case 'p':
		v.half = 2
	default:
		return b, false
	}
	return b[2:], true
}

// parseFraction reads digits of a second; those beyond the sixth are dropped.
func (it *item) parseFraction(b []byte, v *instant) ([]byte, bool) {
	n, unit := 0, int64(100_000)
	v.micros = 0
	for n < len(b) && n < it.max && b[n]-'0' <= 9 {
		v.micros += int64(b[n]-'0') * unit
		unit /= 10
		n++
	}
	return b[n:], n > 0
}

// parseZone reads Z, UTC, GMT, an offset, or, of a zone, its name.
func (it *item) parseZone(b []byte, v *instant) ([]byte, bool) {
	v.hasZone, v.offset, v.loc = true, 0, nil
	for _, word := range [...]string{"UTC", "GMT", "Z", "z"} {
		if len(b) >= len(word) && string(b[:len(word)]) == word {
			return b[len(word):], true
		}
	}
	if len(b) >= 3 && (b[0] == '+' || b[0] == '-') {
		return parseOffset(b, v)
	}
	if it.kind != zone {
		return b, false
	}
	n := 0
	for n < len(b) && (b[n]|0x20 >= 'a' && b[n]|0x20 <= 'z' || b[n] == '/' || b[n] == '_') {
		n++
	}
	loc, err := time.LoadLocation(string(b[:n]))
	v.loc = loc
	return b[n:], n > 1 && err == nil && string(b[:n]) != "Local"
}

func parseOffset(b []byte, v *instant) ([]byte, bool) {
	hours, ok := twoDigits(b, 1)
	if !ok || hours > 18 {
		return b, false
	}
	v.offset = hours * columnar.MicrosPerHour
	rest := b[3:]
	tail := rest
	if len(tail) > 0 && tail[0] == ':' {
		tail = tail[1:]
	}
	if len(tail) >= 2 {
		if minutes, ok := twoDigits(tail, 0); ok && minutes < 60 {
			v.offset += minutes * columnar.MicrosPerMinute
			rest = tail[2:]
		}
	}
	if b[0] == '-' {
		v.offset = -v.offset
	}
	return rest, true
}

var (
	months = [...]string{"january", "february", "march", "april", "may", "june", "july", "august",
		"september", "october", "november", "december"}
	weekdays = [...]string{"monday", "tuesday", "wednesday", "thursday", "friday", "saturday", "sunday"}
)

// parseName reads one of names, whole or its first three letters, in any case; which
// becomes its number from 1.
func parseName(b []byte, names []string, which *int64) ([]byte, bool) {
	for i, name := range names {
		for _, n := range [...]int{len(name), 3} {
			if len(b) >= n && equalFold(b[:n], name[:n]) {
				*which = int64(i + 1)
				return b[n:], true
			}
		}
	}
	return b, false
}

// Append writes an instant on the clock of loc. Optional parts are written. A year outside
// of 1 to 9999, which other readers of such a file take for a mistake, is an error.
func (p *Pattern) Append(dst []byte, us int64, loc *time.Location) ([]byte, error) {
	if loc == nil {
		loc = time.UTC
	}
	t := time.UnixMicro(us).In(loc)
	if y := t.Year(); (y < 1 || y > 9999) && holdsYear(p.items) {
		return dst, fmt.Errorf("the format %q writes the years 1 to 9999, not %d; write without a format, which takes any year", p.String(), y)
	}
	return appendItems(dst, p.items, us, t), nil
}

// holdsYear says whether a year is written.
func holdsYear(items []item) bool {
	return slices.ContainsFunc(items, func(it item) bool {
		return it.kind == year || it.kind == year2 || it.kind == yearPosix || it.kind == optional && holdsYear(it.inner)
	})
}

func appendItems(dst []byte, items []item, us int64, t time.Time) []byte {
	for i := range items {
		it := &items[i]
		switch it.kind {
		case literal:
			dst = append(dst, it.text...)
		case optional:
			dst = appendItems(dst, it.inner, us, t)
		case monthName:
			dst = appendName(dst, t.Month().String(), it.max)
		case weekday:
			dst = appendName(dst, t.Weekday().String(), it.max)
		case half:
			dst = t.AppendFormat(dst, "PM")
		case offset:
			dst = it.appendOffset(dst, t)
		case zone:
			dst = append(dst, t.Location().String()...)
		case fraction:
			digits := fmt.Sprintf("%09d", t.Nanosecond())
			dst = append(dst, digits[:it.min]...)
		case epoch:
			dst = strconv.AppendInt(dst, t.Unix(), 10)
		default:
			dst = appendPadded(dst, it.number(t), it.min)
		}
	}
	return dst
}

func (it *item) number(t time.Time) int {
	switch it.kind {
	case year:
		return t.Year()
	case year2, yearPosix:
		return t.Year() % 100
	case month:
		return int(t.Month())
	case day:
		return t.Day()
	case dayOfYear:
		return t.YearDay()
	case hour24:
		return t.Hour()
	case hour12:
		return (t.Hour()+11)%12 + 1
	case minute:
		return t.Minute()
	}
	return t.Second()
}

func appendName(dst []byte, name string, letters int) []byte {
	if letters <= 3 {
		name = name[:3]
	}
	return append(dst, name...)
}

func appendPadded(dst []byte, v, width int) []byte {
	digits := strconv.Itoa(v)
	for range width - len(digits) {
		dst = append(dst, '0')
	}
	return append(dst, digits...)
}

// appendOffset writes +HH, +HHMM or +HH:MM; X writes Z for none.
func (it *item) appendOffset(dst []byte, t time.Time) []byte {
	_, seconds := t.Zone()
	if seconds == 0 && it.min == 'X' {
		return append(dst, 'Z')
	}
	return t.AppendFormat(dst, [...]string{2: "-07", 3: "-07", 4: "-0700", 5: "-07:00"}[it.max])
}
