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
	if year8 == d.year8 && day2 == d.day2 {
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

// clock reads HH:MM:SS at s, and a fraction after it, as microseconds since
// midnight; end is behind it. Digits beyond the sixth of the fraction are dropped.
func clock(buf []byte, s, e int) (us int64, end int, ok bool) {
	if e-s < 8 || buf[s+2] != ':' || buf[s+5] != ':' {
		return 0, 0, false
	}
	hour, ok1 := twoDigits(buf, s)
	minute, ok2 := twoDigits(buf, s+3)
	second, ok3 := twoDigits(buf, s+6)
	if !ok1 || !ok2 || !ok3 || hour > 23 || minute > 59 || second > 59 {
		return 0, 0, false
	}
	us = ((hour*60+minute)*60 + second) * 1_000_000
	end = s + 8
	if end < e && buf[end] == '.' {
		end++
		from := end
		unit := int64(100_000)
		for end < e && buf[end]-'0' <= 9 {
			us += int64(buf[end]-'0') * unit
			unit /= 10
			end++
		}
		ok1 = end > from
	}
	return us, end, ok1
}

// timestamp reads an ISO instant: the usual full forms here, the rest (short hours,
// offsets, zones) in columnar.
func (c *Column) timestamp(buf []byte, s, e int) (int64, bool) {
	if e-s >= 19 && (buf[s+10] == 'T' || buf[s+10] == ' ') {
		days, ok := c.dates.parse(buf, s)
		us, end, ok2 := clock(buf, s+11, e)
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
