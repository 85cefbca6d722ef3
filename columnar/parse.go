package columnar

import (
	"fmt"
	"math"
	"strconv"
	"strings"
	"time"
	"unsafe"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/decimal128"
)

// StringOrBytes is what the parsers read: they make no copy of either.
type StringOrBytes interface{ ~string | ~[]byte }

// text views s as a string for the duration of a call.
func text[T StringOrBytes](s T) string {
	return *(*string)(unsafe.Pointer(&s)) // a slice header begins with pointer and length
}

// TrimBlanks removes blanks and control characters from both ends.
func TrimBlanks[T StringOrBytes](s T) T {
	from, to := 0, len(s)
	for from < to && s[from] <= ' ' {
		from++
	}
	for from < to && s[to-1] <= ' ' {
		to--
	}
	return s[from:to]
}

// ParseInt reads a decimal integer of 64 bits: an optional sign and digits, blanks
// around it.
func ParseInt[T StringOrBytes](s T) (int64, bool) {
	s = TrimBlanks(s)
	i, negative := 0, false
	if len(s) > 0 && (s[0] == '-' || s[0] == '+') {
		negative = s[0] == '-'
		i = 1
	}
	if i == len(s) {
		return 0, false
	}
	if len(s)-i <= 18 { // cannot overflow
		v := int64(0)
		for ; i < len(s); i++ {
			d := s[i] - '0'
			if d > 9 {
				return 0, false
			}
			v = v*10 + int64(d)
		}
		if negative {
			v = -v
		}
		return v, true
	}
	return parseLongInt(s, i, negative)
}

func parseLongInt[T StringOrBytes](s T, i int, negative bool) (int64, bool) {
	limit := uint64(math.MaxInt64)
	if negative {
		limit++
	}
	v := uint64(0)
	for ; i < len(s); i++ {
		d := s[i] - '0'
		if d > 9 || v > (limit-uint64(d))/10 {
			return 0, false
		}
		v = v*10 + uint64(d)
	}
	if negative {
		return -int64(v), true
	}
	return int64(v), true
}

// ParseFloat reads a decimal floating point number, blanks around it, NaN,
// Infinity and Inf in any case. A number too large for bits is infinite.
func ParseFloat[T StringOrBytes](s T, bits int) (float64, bool) {
	t := text(TrimBlanks(s))
	for i := range len(t) {
		switch t[i] {
		case '_', 'x', 'X', 'p', 'P':
			return 0, false
		}
	}
	v, err := strconv.ParseFloat(t, bits)
	if err != nil && !math.IsInf(v, 0) {
		return 0, false
	}
	return v, true
}

// ParseBool reads true, t, yes, y, 1 and their opposites in any case, blanks
// around them.
func ParseBool[T StringOrBytes](s T) (value, ok bool) {
	t := text(TrimBlanks(s))
	switch len(t) {
	case 1:
		switch t[0] {
		case 't', 'T', 'y', 'Y', '1':
			return true, true
		case 'f', 'F', 'n', 'N', '0':
			return false, true
		}
	case 2:
		return false, strings.EqualFold(t, "no")
	case 3:
		return true, strings.EqualFold(t, "yes")
	case 4:
		return true, strings.EqualFold(t, "true")
	case 5:
		return false, strings.EqualFold(t, "false")
	}
	return false, false
}

// ParseDecimal reads a decimal number with optional fraction and exponent as the
// unscaled value of a DECIMAL(precision, scale), rounding half away from zero. ok
// is false when it is no number or does not fit.
func ParseDecimal[T StringOrBytes](s T, precision, scale int32) (decimal128.Num, bool) {
	s = TrimBlanks(s)
	i, negative := 0, false
	if len(s) > 0 && (s[0] == '-' || s[0] == '+') {
		negative = s[0] == '-'
		i = 1
	}
	from, point, digits := i, -1, 0
	for ; i < len(s); i++ {
		if s[i] == '.' && point < 0 {
			point = i
		} else if s[i]-'0' <= 9 {
			digits++
		} else {
			break
		}
	}
	to := i
	if digits == 0 {
		return decimal128.Num{}, false
	}
	exponent, ok := parseExponent(s[to:])
	if !ok {
		return decimal128.Num{}, false
	}
	shift := exponent + int(scale)
	if point >= 0 {
		shift -= to - point - 1
	}
	v, ok := scaleDigits(s[from:to], digits, shift)
	if !ok || !v.Less(decimal128.GetScaleMultiplier(int(precision))) {
		return decimal128.Num{}, false
	}
	if negative {
		v = v.Negate()
	}
	return v, true
}

// parseExponent reads what follows the digits: nothing, or e and an integer. Huge
// exponents are cut, far outside of what a decimal holds.
func parseExponent[T StringOrBytes](s T) (int, bool) {
	if len(s) == 0 {
		return 0, true
	}
	if s[0] != 'e' && s[0] != 'E' || len(s) > 1 && s[1] <= ' ' {
		return 0, false
	}
	e, ok := ParseInt(s[1:])
	return int(max(min(e, 1000), -1_000_000)), ok
}

// scaleDigits is the number that digits (a point among them is passed over) spell,
// times ten to the shift, rounded half up.
func scaleDigits[T StringOrBytes](s T, digits, shift int) (decimal128.Num, bool) {
	ten := decimal128.FromU64(10)
	var v decimal128.Num
	significant := 0
	push := func(d byte) bool {
		if significant > 0 || d > 0 {
			significant++
		}
		if significant > MaxPrecision {
			return false
		}
		v = v.Mul(ten).Add(decimal128.FromU64(uint64(d)))
		return true
	}
	keep := digits + min(shift, 0)
	if keep < 0 {
		return v, true // below half a unit of the last place
	}
	seen := 0
	for i := range len(s) {
		if s[i] == '.' {
			continue
		}
		if seen == keep { // the first digit dropped decides
			if s[i] >= '5' {
				v = v.Add(decimal128.FromU64(1))
			}
			break
		}
		if !push(s[i] - '0') {
			return v, false
		}
		seen++
	}
	for range shift {
		if significant == 0 {
			break
		}
		if !push(0) {
			return v, false
		}
	}
	return v, true
}

// scanner reads fields of fixed kinds from the front of a text.
type scanner[T StringOrBytes] struct {
	s T
	i int
}

// number reads min to max digits.
func (p *scanner[T]) number(min, max int) (v int64, ok bool) {
	n := 0
	for p.i < len(p.s) && n < max && p.s[p.i]-'0' <= 9 {
		v = v*10 + int64(p.s[p.i]-'0')
		p.i++
		n++
	}
	return v, n >= min
}

func (p *scanner[T]) skip(c byte) bool {
	if p.i < len(p.s) && p.s[p.i] == c {
		p.i++
		return true
	}
	return false
}

// date reads YYYY-M-D as days since the epoch. Years have four to seven digits and may have a
// sign, or (BC) behind the day, as DuckDB writes it: 0044-03-15 (BC) is of the year -43.
func (p *scanner[T]) date() (days int64, ok bool) {
	negative := p.skip('-')
	signed := negative || p.skip('+')
	year, ok := p.number(4, 7)
	if !ok || !p.skip('-') {
		return 0, false
	}
	month, ok := p.number(1, 2)
	if !ok || month < 1 || month > 12 || !p.skip('-') {
		return 0, false
	}
	day, ok := p.number(1, 2)
	if negative {
		year = -year
	} else if !signed && year > 0 && p.beforeChrist() {
		year = 1 - year
	}
	if !ok || day < 1 || day > int64(DaysInMonth(year, int(month))) {
		return 0, false
	}
	return DaysFromCivil(year, int(month), int(day)), true
}

// beforeChrist reads " (BC)".
func (p *scanner[T]) beforeChrist() bool {
	const mark = " (BC)"
	if len(p.s)-p.i < len(mark) || text(p.s[p.i:p.i+len(mark)]) != mark {
		return false
	}
	p.i += len(mark)
	return true
}

// clock reads H:M[:S[.F]] as microseconds since midnight. Digits beyond the sixth
// of the fraction are dropped.
func (p *scanner[T]) clock() (us int64, ok bool) {
	hour, ok := p.number(1, 2)
	if !ok || hour > 23 || !p.skip(':') {
		return 0, false
	}
	minute, ok := p.number(1, 2)
	if !ok || minute > 59 {
		return 0, false
	}
	us = hour*MicrosPerHour + minute*MicrosPerMinute
	if !p.skip(':') {
		return us, true
	}
	second, ok := p.number(1, 2)
	if !ok || second > 59 {
		return 0, false
	}
	us += second * MicrosPerSecond
	if p.skip('.') {
		unit := int64(100_000)
		from := p.i
		for p.i < len(p.s) && p.s[p.i]-'0' <= 9 {
			us += int64(p.s[p.i]-'0') * unit
			unit /= 10
			p.i++
		}
		ok = p.i > from
	}
	return us, ok
}

// zone reads Z, UTC, GMT, an offset (+H, +HH, +HHMM, +HH:MM, also with seconds), or
// the name of a zone.
func (p *scanner[T]) zone() (loc *time.Location, offset int64, ok bool) {
	rest := text(p.s[p.i:])
	if len(rest) == 1 && (rest[0] == 'Z' || rest[0] == 'z') {
		p.i++
		return nil, 0, true
	}
	for _, prefix := range [...]string{"UTC", "GMT"} {
		if strings.HasPrefix(rest, prefix) {
			p.i += 3
			rest = rest[3:]
			if rest == "" {
				return nil, 0, true
			}
			break
		}
	}
	if rest == "" {
		return nil, 0, false
	}
	if rest[0] == '+' || rest[0] == '-' {
		p.i++
		offset, ok = p.zoneOffset()
		if rest[0] == '-' {
			offset = -offset
		}
		return nil, offset, ok
	}
	if rest[0] < 'A' || rest == "Local" {
		return nil, 0, false
	}
	loc, err := time.LoadLocation(strings.Clone(rest))
	p.i = len(p.s)
	return loc, 0, err == nil
}

func (p *scanner[T]) zoneOffset() (int64, bool) {
	hours, ok := p.number(1, 2)
	if !ok {
		return 0, false
	}
	p.skip(':')
	minutes, seconds := int64(0), int64(0)
	if p.i < len(p.s) {
		if minutes, ok = p.number(2, 2); !ok {
			return 0, false
		}
		p.skip(':')
	}
	if p.i < len(p.s) {
		if seconds, ok = p.number(2, 2); !ok {
			return 0, false
		}
	}
	offset := hours*MicrosPerHour + minutes*MicrosPerMinute + seconds*MicrosPerSecond
	return offset, minutes < 60 && seconds < 60 && offset <= 18*MicrosPerHour
}

// ParseDate reads YYYY-MM-DD as days since the epoch, blanks around it. A time of
// day after a T or a blank is checked and dropped.
func ParseDate[T StringOrBytes](s T) (int32, bool) {
	p := scanner[T]{s: TrimBlanks(s)}
	days, ok := p.date()
	if ok && p.i < len(p.s) {
		_, ok = p.timeOfDay()
	}
	return int32(days), ok && days == int64(int32(days))
}

// ParseDay is ParseDate for what is stored, which nothing may be lost of: of times of day
// only midnight, in UTC if there is a zone, may follow.
func ParseDay[T StringOrBytes](s T) (int32, bool) {
	p := scanner[T]{s: TrimBlanks(s)}
	days, ok := p.date()
	if ok && p.i < len(p.s) {
		var t zonedTime
		t, ok = p.timeOfDay()
		ok = ok && (t == zonedTime{zoned: t.zoned})
	}
	return int32(days), ok && days == int64(int32(days))
}

// ParseTime reads HH:MM[:SS[.F]] as microseconds since midnight, blanks around it.
func ParseTime[T StringOrBytes](s T) (int64, bool) {
	p := scanner[T]{s: TrimBlanks(s)}
	us, ok := p.clock()
	return us, ok && p.i == len(p.s)
}

// ParseTimestamp reads YYYY-MM-DD, then, after a T or a blank, HH:MM[:SS[.F]] and an
// optional zone, as an instant in microseconds since the epoch, blanks around it.
// Text without a zone is read on a wall clock of loc; nil is UTC.
func ParseTimestamp[T StringOrBytes](s T, loc *time.Location) (int64, bool) {
	p := scanner[T]{s: TrimBlanks(s)}
	days, ok := p.date()
	if !ok {
		return 0, false
	}
	var t zonedTime
	if p.i < len(p.s) {
		if t, ok = p.timeOfDay(); !ok {
			return 0, false
		}
	}
	if t.zoned {
		loc = t.zone
	}
	return Instant(days, t.us-t.offset, loc)
}

// zonedTime is a time of day: where it is zoned, on the clock of zone, nil being UTC, or of an
// offset from UTC.
type zonedTime struct {
	us, offset int64
	zone       *time.Location
	zoned      bool
}

// timeOfDay reads all that may stand behind a date: a T or a blank, a time, and a zone.
func (p *scanner[T]) timeOfDay() (t zonedTime, ok bool) {
	if !p.skip('T') && !p.skip(' ') && !p.skip('t') {
		return t, false
	}
	if t.us, ok = p.clock(); !ok || p.i == len(p.s) {
		return t, ok
	}
	for p.skip(' ') {
	}
	t.zoned = true
	t.zone, t.offset, ok = p.zone()
	return t, ok && p.i == len(p.s)
}

// IntervalUnit is the interval that a unit of time names: microsecond to
// millennium, singular or plural, in any case, or us, ms, s, sec, min, m, h, d, w, y.
func IntervalUnit(name string) (arrow.MonthDayNanoInterval, bool) {
	u := strings.ToLower(name)
	if v, ok := intervalUnits[u]; ok {
		return v, true
	}
	v, ok := intervalUnits[strings.TrimSuffix(u, "s")]
	return v, ok
}

var intervalUnits = func() map[string]arrow.MonthDayNanoInterval {
	units := map[string]arrow.MonthDayNanoInterval{}
	add := func(v arrow.MonthDayNanoInterval, names ...string) {
		for _, n := range names {
			units[n] = v
		}
	}
	add(arrow.MonthDayNanoInterval{Nanoseconds: 1}, "nanosecond", "ns")
	add(arrow.MonthDayNanoInterval{Nanoseconds: 1e3}, "microsecond", "us", "usec", "µs")
	add(arrow.MonthDayNanoInterval{Nanoseconds: 1e6}, "millisecond", "ms", "msec")
	add(arrow.MonthDayNanoInterval{Nanoseconds: 1e9}, "second", "s", "sec")
	add(arrow.MonthDayNanoInterval{Nanoseconds: 60e9}, "minute", "min", "m")
	add(arrow.MonthDayNanoInterval{Nanoseconds: 3600e9}, "hour", "h", "hr")
	add(arrow.MonthDayNanoInterval{Days: 1}, "day", "d")
	add(arrow.MonthDayNanoInterval{Days: 7}, "week", "w")
	add(arrow.MonthDayNanoInterval{Months: 1}, "month", "mon")
	add(arrow.MonthDayNanoInterval{Months: 3}, "quarter")
	add(arrow.MonthDayNanoInterval{Months: 12}, "year", "y", "yr")
	add(arrow.MonthDayNanoInterval{Months: 120}, "decade")
	add(arrow.MonthDayNanoInterval{Months: 1200}, "century", "centurie")
	add(arrow.MonthDayNanoInterval{Months: 12000}, "millennium", "millennia")
	return units
}()

// ParseInterval reads a duration: numbers with units ("1 day 2 hours", "-1.5 s",
// "10seconds"), a time of day ("04:05:06.5") among them, with or without the word
// INTERVAL in front.
func ParseInterval(s string) (arrow.MonthDayNanoInterval, error) {
	var sum arrow.MonthDayNanoInterval
	rest := TrimBlanks(s)
	if len(rest) > 8 && strings.EqualFold(rest[:8], "interval") && rest[8] <= ' ' {
		rest = rest[9:]
	}
	bad := func(why string) (arrow.MonthDayNanoInterval, error) {
		return sum, fmt.Errorf("%q is not an interval: %s; write it like '1 day 2 hours'", s, why)
	}
	if TrimBlanks(rest) == "" {
		return bad("it is empty")
	}
	for rest = TrimBlanks(rest); rest != ""; rest = TrimBlanks(rest) {
		n := 0
		for n < len(rest) && strings.IndexByte("+-.:0123456789", rest[n]) >= 0 {
			n++
		}
		number := rest[:n]
		rest = TrimBlanks(rest[n:])
		if strings.Contains(number, ":") {
			part, ok := parseClockInterval(number)
			if !ok || !addInterval(&sum, part) {
				return bad(fmt.Sprintf("%q is no time", number))
			}
			continue
		}
		m := 0
		for m < len(rest) && (rest[m]|0x20 >= 'a' && rest[m]|0x20 <= 'z' || rest[m] >= 0x80) {
			m++
		}
		word := rest[:m]
		rest = rest[m:]
		unit, ok := IntervalUnit(word)
		switch {
		case number == "":
			return bad(fmt.Sprintf("a number is missing before %q", word+rest))
		case word == "":
			return bad(fmt.Sprintf("a unit is missing after %s", number))
		case !ok:
			return bad(fmt.Sprintf("%q is no unit", word))
		}
		part, ok := MulInterval(number, unit)
		if !ok || !addInterval(&sum, part) {
			return bad(fmt.Sprintf("%s %s cannot be held", number, word))
		}
		rest = strings.TrimPrefix(rest, ",")
	}
	return sum, nil
}

func addInterval(sum *arrow.MonthDayNanoInterval, v arrow.MonthDayNanoInterval) bool {
	months := int64(sum.Months) + int64(v.Months)
	days := int64(sum.Days) + int64(v.Days)
	nanos := sum.Nanoseconds + v.Nanoseconds
	overflow := (sum.Nanoseconds^nanos)&(v.Nanoseconds^nanos) < 0
	*sum = arrow.MonthDayNanoInterval{Months: int32(months), Days: int32(days), Nanoseconds: nanos}
	return int64(sum.Months) == months && int64(sum.Days) == days && !overflow
}

// parseClockInterval reads [-]H:MM[:SS[.F]]; hours may be many.
func parseClockInterval(s string) (v arrow.MonthDayNanoInterval, ok bool) {
	negative := strings.HasPrefix(s, "-")
	p := scanner[string]{s: strings.TrimLeft(s, "+-")}
	hours, ok := p.number(1, 6)
	if !ok || !p.skip(':') {
		return v, false
	}
	minutes, ok := p.number(1, 2)
	if !ok || minutes > 59 {
		return v, false
	}
	v.Nanoseconds = hours*3600e9 + minutes*60e9
	if p.skip(':') {
		seconds, ok := ParseDecimal(p.s[p.i:], 11, 9)
		if !ok || seconds.HighBits() != 0 || seconds.LowBits() >= 60e9 {
			return v, false
		}
		v.Nanoseconds += int64(seconds.LowBits())
	} else if p.i != len(p.s) {
		return v, false
	}
	if negative {
		v.Nanoseconds = -v.Nanoseconds
	}
	return v, true
}

// MulInterval is number times unit, for a decimal number as text; a fraction of a
// month becomes days of a thirtieth, a fraction of a day hours. ok is false if
// number is none, or the product cannot be held.
func MulInterval(number string, unit arrow.MonthDayNanoInterval) (v arrow.MonthDayNanoInterval, ok bool) {
	n, ok := ParseDecimal(number, 28, 9)
	if !ok {
		return v, false
	}
	const one = int64(1e9)
	scaled := n.BigInt()
	if !scaled.IsInt64() {
		return v, false
	}
	whole, fraction := scaled.Int64()/one, scaled.Int64()%one
	months, nanosOver := whole*int64(unit.Months), int64(0)
	monthPart := fraction * int64(unit.Months) // billionths of a month
	months += monthPart / one
	dayPart := monthPart % one * 30
	days := whole*int64(unit.Days) + dayPart/one
	dayPart = dayPart%one + fraction*int64(unit.Days)%one
	days += fraction * int64(unit.Days) / one
	nanosOver = dayPart * 86400 // billionths of a day are 86,400 ns
	nanos := whole * unit.Nanoseconds
	if unit.Nanoseconds != 0 && nanos/unit.Nanoseconds != whole {
		return v, false
	}
	part := int64(math.Round(float64(fraction) / float64(one) * float64(unit.Nanoseconds)))
	v = arrow.MonthDayNanoInterval{Months: int32(months), Days: int32(days), Nanoseconds: nanos}
	ok = int64(v.Months) == months && int64(v.Days) == days
	return v, ok && addInterval(&v, arrow.MonthDayNanoInterval{Nanoseconds: part + nanosOver})
}

// UnescapeBinary gives, in place, the bytes of a BINARY that AppendValue wrote: \xHH is one,
// other backslashes are data.
func UnescapeBinary(b []byte) []byte {
	to := 0
	for i := 0; i < len(b); i++ {
		v := b[i]
		if v == '\\' && i+3 < len(b) && b[i+1] == 'x' {
			high, ok1 := hexDigit(b[i+2])
			low, ok2 := hexDigit(b[i+3])
			if ok1 && ok2 {
				v = high<<4 | low
				i += 3
			}
		}
		b[to] = v
		to++
	}
	return b[:to]
}

func hexDigit(c byte) (byte, bool) {
	switch {
	case c >= '0' && c <= '9':
		return c - '0', true
	case c|0x20 >= 'a' && c|0x20 <= 'f':
		return c | 0x20 - 'a' + 10, true
	}
	return 0, false
}
