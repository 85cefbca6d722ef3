package cells

import (
	"encoding/binary"

	"github.com/tidemill/tidemill/columnar"
)

// dates turns YYYY-MM-DD into days. It remembers the last one: neighbouring records
// mostly share their date.
type dates struct {
	year8, day2 uint64 // the ten bytes
	days        int64
}

// parse reads exactly the ten bytes at s.
func (d *dates) parse(buf []byte, s int) (days int64, ok bool) {
	year8 := load64(buf, s)
	day2 := uint64(binary.LittleEndian.Uint16(buf[s+8:]))
	if year8 == d.year8 && day2 == d.day2 && year8 != 0 {
		return d.days, true
	}
	if buf[s+4] != '-' || buf[s+7] != '-' {
		return 0, false
	}
	century, ok1 := twoDigits(buf, s)
	year, ok2 := twoDigits(buf, s+2)
	month, ok3 := twoDigits(buf, s+5)
	day, ok4 := twoDigits(buf, s+8)
	if !ok1 || !ok2 || !ok3 || !ok4 {
		return 0, false
	}
	year += century * 100
	if month < 1 || month > 12 || day < 1 || int(day) > columnar.DaysInMonth(year, int(month)) {
		return 0, false
	}
	days = columnar.DaysFromCivil(year, int(month), int(day))
	*d = dates{year8: year8, day2: day2, days: days}
	return days, true
}

func twoDigits(buf []byte, i int) (int64, bool) {
	a, b := buf[i]-'0', buf[i+1]-'0'
	return int64(a)*10 + int64(b), a <= 9 && b <= 9
}

// clocks turns HH:MM:SS into microseconds since midnight. It remembers the last one: records
// that follow each other often share their second.
type clocks struct {
	text uint64
	us   int64
}

// parse reads HH:MM:SS at s, and a fraction after it, as microseconds since midnight; end is
// behind it. Digits beyond the sixth of the fraction are dropped.
func (c *clocks) parse(buf []byte, s, e int) (us int64, end int, ok bool) {
	if e-s < 8 {
		return 0, 0, false
	}
	if text := load64(buf, s); text != c.text || text == 0 {
		us, ok := wholeSeconds(buf, s)
		if !ok {
			return 0, 0, false
		}
		*c = clocks{text, us}
	}
	end = s + 8
	if end == e || buf[end] != '.' {
		return c.us, end, true
	}
	us, end, ok = micros(buf, end+1, e)
	return c.us + us, end, ok
}

// wholeSeconds reads HH:MM:SS at s as microseconds.
func wholeSeconds(buf []byte, s int) (us int64, ok bool) {
	hour, ok1 := twoDigits(buf, s)
	minute, ok2 := twoDigits(buf, s+3)
	second, ok3 := twoDigits(buf, s+6)
	ok = ok1 && ok2 && ok3 && hour <= 23 && minute <= 59 && second <= 59 && buf[s+2] == ':' && buf[s+5] == ':'
	return ((hour*60+minute)*60 + second) * 1_000_000, ok
}

// micros reads the digits of a fraction from s on as microseconds.
func micros(buf []byte, s, e int) (us int64, end int, ok bool) {
	n := e - s
	if n > 0 && buf[e-1] == 'Z' {
		n--
	}
	if 0 < n && n <= 6 {
		if v, ok := digits8(buf, s+n, n); ok {
			return int64(v) * powers[6-n], s + n, true
		}
	}
	unit := int64(100_000)
	for end = s; end < e && buf[end]-'0' <= 9; end++ {
		us += int64(buf[end]-'0') * unit
		unit /= 10
	}
	return us, end, end > s
}

// timestamp reads an ISO instant: the usual full forms here, the rest (short hours,
// offsets, zones) in columnar.
func (c *Column) timestamp(buf []byte, s, e int) (int64, bool) {
	if e-s >= 19 && (buf[s+10] == 'T' || buf[s+10] == ' ') {
		days, ok := c.dates.parse(buf, s)
		us, end, ok2 := c.clocks.parse(buf, s+11, e)
		if ok && ok2 {
			wall := days*columnar.MicrosPerDay + us
			if end == e {
				return columnar.FromLocal(wall, c.rules.Location), true
			}
			if end == e-1 && buf[end] == 'Z' {
				return wall, true
			}
		}
	}
	return columnar.ParseTimestamp(buf[s:e], c.rules.Location)
}
