package kernel

import (
	"fmt"
	"math"
	"strings"
	"time"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/memory"

	"github.com/tidemill/tidemill/columnar"
)

// Part is a unit of time or a field of a date.
type Part uint8

// The parts. Those up to Millennium are units to truncate to and to count in.
const (
	Microsecond Part = iota
	Millisecond
	Second
	Minute
	Hour
	Day
	Week // ISO: begins on Monday
	Month
	Quarter
	Year
	Decade
	Century
	Millennium
	DayOfWeek    // 1 is Sunday
	ISODayOfWeek // 1 is Monday
	DayOfYear
	WeekOfYear // ISO
	ISOYear    // the year that WeekOfYear belongs to
	Epoch      // whole seconds since 1970
)

var partNames = map[string]Part{
	"microsecond": Microsecond, "us": Microsecond, "usec": Microsecond, "millisecond": Millisecond, "ms": Millisecond, "msec": Millisecond,
	"second": Second, "s": Second, "sec": Second, "minute": Minute, "m": Minute, "min": Minute, "hour": Hour, "h": Hour, "hr": Hour,
	"day": Day, "d": Day, "dd": Day, "week": Week, "w": Week, "month": Month, "mon": Month, "mm": Month, "quarter": Quarter, "qtr": Quarter,
	"year": Year, "y": Year, "yr": Year, "yyyy": Year, "yy": Year, "decade": Decade, "century": Century, "centurie": Century,
	"millennium": Millennium, "millennia": Millennium, "dow": DayOfWeek, "dayofweek": DayOfWeek, "weekday": DayOfWeek,
	"isodow": ISODayOfWeek, "dayofweek_iso": ISODayOfWeek, "doy": DayOfYear, "dayofyear": DayOfYear, "weekofyear": WeekOfYear,
	"isoyear": ISOYear, "yearofweek": ISOYear, "epoch": Epoch,
}

// ParsePart reads the name of a part, singular or plural, in any case.
func ParsePart(name string) (Part, bool) {
	n := strings.ToLower(strings.TrimSpace(name))
	p, ok := partNames[n]
	if !ok {
		p, ok = partNames[strings.TrimSuffix(n, "s")]
	}
	return p, ok
}

// IsUnit says whether one can truncate to p and count in it.
func (p Part) IsUnit() bool { return p <= Millennium }

// micros is the length of the units of fixed length up to a day, else 0.
func (p Part) micros() int64 {
	switch p {
	case Microsecond:
		return 1
	case Millisecond:
		return 1000
	case Second:
		return columnar.MicrosPerSecond
	case Minute:
		return columnar.MicrosPerMinute
	case Hour:
		return columnar.MicrosPerHour
	case Day:
		return columnar.MicrosPerDay
	case Week:
		return 7 * columnar.MicrosPerDay
	}
	return 0
}

// months is the length of the units from a month on.
func (p Part) months() int64 {
	switch p {
	case Month:
		return 1
	case Quarter:
		return 3
	case Year:
		return 12
	case Decade:
		return 120
	case Century:
		return 1200
	case Millennium:
		return 12000
	}
	return 0
}

// TruncateTime is each TIMESTAMP of a cut to the beginning of its unit, on the wall
// clock of loc; a beginning that no TIMESTAMP is, is an error. The caller releases the
// result.
func TruncateTime(mem memory.Allocator, a arrow.Array, unit Part, loc *time.Location, m Mode) (arrow.Array, error) {
	n := a.Len()
	in := Values[int64](a)
	buf, out := Make[int64](mem, n)
	size := unit.micros()
	switch {
	case size > 0 && unit < Day && columnar.IsUTC(loc), unit == Day && columnar.IsUTC(loc):
		for i, v := range in {
			out[i] = v - columnar.FloorMod(v, size)
		}
	default:
		for i, v := range in {
			out[i] = unitStart(v, unit, loc)
		}
	}
	valid, nulls := AndValidity(mem, n, columnar.ColumnDatum(a))
	g := arithArgs{mem: mem, rows: n, m: m, out: columnar.Timestamp, valid: valid, nulls: nulls}
	failed := false
	for i, v := range in {
		failed = failed || wrappedBack(out[i], v)
	}
	return g.finish(buf, failed, func(i int) error {
		if !wrappedBack(out[i], in[i]) {
			return nil
		}
		return beforeFirst(in[i])
	})
}

// unitStart is where the unit that the instant v lies in begins on the wall clock of loc; as
// late as can be, and so behind v, where that is before the first TIMESTAMP.
func unitStart(v int64, unit Part, loc *time.Location) int64 {
	var at int64
	ok := true
	switch day, us := columnar.LocalDay(v, loc); {
	case unit < Day:
		// The offset of the zone may not be a whole number of units, and neither what the
		// clock is put forward or back by.
		at, ok = columnar.FromLocalNear(day, us-us%unit.micros(), v, loc)
	default:
		if day = TruncateDays(day, unit); columnar.IsTimestampDay(day) {
			return columnar.StartOfDay(day, loc)
		}
		at, ok = columnar.Instant(day, 0, loc)
	}
	if !ok {
		return math.MaxInt64
	}
	return at
}

// wrappedBack says whether start, the start of what the instant v lies in, was before the
// first TIMESTAMP and came out as a late one.
func wrappedBack(start, v int64) bool { return v < 0 && start > 0 }

func beforeFirst(v int64) error {
	return &ValueError{Kind: ErrOverflow, Text: fmt.Sprintf("what %s lies in begins before the first TIMESTAMP", columnar.AppendTimestamp(nil, v, nil))}
}

// BucketStart is start, of the bucket that v lies in; one that no TIMESTAMP is, is an error.
func BucketStart(v, start int64) (int64, error) {
	if wrappedBack(start, v) {
		return 0, beforeFirst(v)
	}
	return start, nil
}

// TruncateDays is the first day of the unit, a day or longer, that days lies in.
func TruncateDays(days int64, unit Part) int64 {
	switch unit {
	case Day:
		return days
	case Week: // 1970-01-01 was a Thursday
		return days - columnar.FloorMod(days+3, 7)
	}
	year, month, _ := columnar.CivilFromDays(days)
	switch unit {
	case Quarter:
		month = (month-1)/3*3 + 1
	case Year:
		month = 1
	case Decade:
		year, month = year-columnar.FloorMod(year, 10), 1
	case Century: // the 21st began with 2001
		year, month = year-columnar.FloorMod(year-1, 100), 1
	case Millennium:
		year, month = year-columnar.FloorMod(year-1, 1000), 1
	}
	return columnar.DaysFromCivil(year, month, 1)
}

// ExtractTime is a part of each DATE, TIME or TIMESTAMP of a, read from the wall
// clock of loc, as BIGINT. Seconds come without their fraction; milliseconds and
// microseconds with the seconds. The caller releases the result.
func ExtractTime(mem memory.Allocator, a arrow.Array, part Part, loc *time.Location) arrow.Array {
	n := a.Len()
	buf, out := Make[int64](mem, n)
	switch a.DataType().ID() {
	case arrow.DATE32:
		for i, v := range Values[int32](a) {
			out[i] = extractDay(int64(v), part)
		}
	case arrow.TIMESTAMP:
		if part == Epoch {
			loc = nil
		}
		for i, v := range Values[int64](a) {
			out[i] = extractAt(v, part, loc)
		}
	default:
		for i, v := range Values[int64](a) {
			out[i] = extract(v, part)
		}
	}
	valid, nulls := AndValidity(mem, n, columnar.ColumnDatum(a))
	return Wrap(columnar.Int64, n, nulls, valid, buf)
}

// extractAt reads a part off the wall clock of loc at an instant.
func extractAt(v int64, part Part, loc *time.Location) int64 {
	if columnar.IsUTC(loc) {
		return extract(v, part)
	}
	day, us := columnar.LocalDay(v, loc)
	if part <= Hour {
		return extract(us, part)
	}
	return extractDay(day, part)
}

// extract reads a part off a wall clock.
func extract(wall int64, part Part) int64 {
	switch part {
	case Microsecond:
		return columnar.FloorMod(wall, columnar.MicrosPerMinute)
	case Millisecond:
		return columnar.FloorMod(wall, columnar.MicrosPerMinute) / 1000
	case Second:
		return columnar.FloorMod(wall, columnar.MicrosPerMinute) / columnar.MicrosPerSecond
	case Minute:
		return columnar.FloorMod(wall, columnar.MicrosPerHour) / columnar.MicrosPerMinute
	case Hour:
		return columnar.FloorMod(wall, columnar.MicrosPerDay) / columnar.MicrosPerHour
	case Epoch:
		return columnar.FloorDiv(wall, columnar.MicrosPerSecond)
	}
	return extractDay(columnar.FloorDiv(wall, columnar.MicrosPerDay), part)
}

// extractDay reads a part off the midnight of a day.
func extractDay(days int64, part Part) int64 {
	switch part {
	case Microsecond, Millisecond, Second, Minute, Hour:
		return 0
	case Epoch:
		return days * (columnar.MicrosPerDay / columnar.MicrosPerSecond)
	case DayOfWeek:
		return columnar.FloorMod(days+4, 7) + 1
	case ISODayOfWeek:
		return columnar.FloorMod(days+3, 7) + 1
	case Week, WeekOfYear:
		_, week := isoWeek(days)
		return week
	case ISOYear:
		year, _ := isoWeek(days)
		return year
	}
	year, month, day := columnar.CivilFromDays(days)
	switch part {
	case Day:
		return int64(day)
	case Month:
		return int64(month)
	case Quarter:
		return int64(month-1)/3 + 1
	case Year:
		return year
	case Decade:
		return columnar.FloorDiv(year, 10)
	case Century:
		return columnar.FloorDiv(year-1, 100) + 1
	case Millennium:
		return columnar.FloorDiv(year-1, 1000) + 1
	}
	return days - columnar.DaysFromCivil(year, 1, 1) + 1 // DayOfYear
}

// isoWeek is the year and week of the Thursday of the same week.
func isoWeek(days int64) (year, week int64) {
	thursday := days - columnar.FloorMod(days+3, 7) + 3
	year, _, _ = columnar.CivilFromDays(thursday)
	return year, (thursday-columnar.DaysFromCivil(year, 1, 1))/7 + 1
}

// AddMonths is a day moved by months; the day of the month is cut to the length of the
// month it arrives in.
func AddMonths(days, months int64) int64 {
	year, month, day := columnar.CivilFromDays(days)
	m := year*12 + int64(month) - 1 + months
	year, month = columnar.FloorDiv(m, 12), int(columnar.FloorMod(m, 12))+1
	return columnar.DaysFromCivil(year, month, min(day, columnar.DaysInMonth(year, month)))
}

// MoveDay is a day, counted from 1970, moved by the months and days of an interval times sign;
// not ok if the result is no DATE.
func MoveDay(day int64, by arrow.MonthDayNanoInterval, sign int64) (int64, bool) {
	if by.Months != 0 {
		day = AddMonths(day, sign*int64(by.Months))
	}
	day += sign * int64(by.Days)
	return day, int64(int32(day)) == day
}

// AddInterval is the instant v moved by an interval times sign (1 or -1): months and
// days on the wall clock of loc, the rest in elapsed time. ok is false if the result
// cannot be held.
func AddInterval(v int64, by arrow.MonthDayNanoInterval, sign int64, loc *time.Location) (int64, bool) {
	if by.Months != 0 || by.Days != 0 {
		days, rest := columnar.LocalDay(v, loc)
		if by.Months != 0 {
			days = AddMonths(days, sign*int64(by.Months))
		}
		days += sign * int64(by.Days)
		var ok bool
		if v, ok = columnar.FromLocalNear(days, rest, v, loc); !ok {
			return 0, false
		}
	}
	d := sign * columnar.FloorDiv(by.Nanoseconds, 1000)
	r := v + d
	return r, (v^r)&(d^r) >= 0
}

// AddIntervals is a, TIMESTAMP, moved by the intervals b times sign, row by row; an
// instant that cannot be held is an error.
func AddIntervals(mem memory.Allocator, a, b columnar.Datum, rows int, sign int64, loc *time.Location, m Mode) (arrow.Array, error) {
	x, y := Values[int64](a.Array()), Values[arrow.MonthDayNanoInterval](b.Array())
	xm, ym := RowMask(a), RowMask(b)
	valid, nulls := AndValidity(mem, rows, a, b)
	buf, out := Make[int64](mem, rows)
	g := arithArgs{mem: mem, rows: rows, m: m, out: columnar.Timestamp, valid: valid, nulls: nulls}
	failed := false
	if by := intervalConstant(b); by != nil && by.Months == 0 && (by.Days == 0 || columnar.IsUTC(loc)) && int64(by.Days) < math.MaxInt32/4 && int64(by.Days) > math.MinInt32/4 {
		// The usual case, a fixed number of microseconds: one addition a row.
		d := sign * (int64(by.Days)*columnar.MicrosPerDay + columnar.FloorDiv(by.Nanoseconds, 1000))
		if xm == 0 {
			r := x[0] + d
			failed = (x[0]^r)&(d^r) < 0
			for i := range out {
				out[i] = r
			}
		} else {
			failed = addConstant(out, x, d)
		}
	} else {
		for i := range out {
			r, ok := AddInterval(x[i&xm], y[i&ym], sign, loc)
			out[i] = r
			failed = failed || !ok
		}
	}
	return g.finish(buf, failed, func(i int) error {
		if _, ok := AddInterval(x[i&xm], y[i&ym], sign, loc); ok {
			return nil
		}
		return overflow(fmt.Sprintf("%s + (%s)", columnar.AppendTimestamp(nil, x[i&xm], nil), columnar.AppendInterval(nil, y[i&ym])), columnar.Timestamp)
	})
}

func intervalConstant(d columnar.Datum) *arrow.MonthDayNanoInterval {
	if !d.IsConstant() || d.IsNullConstant() {
		return nil
	}
	return &Values[arrow.MonthDayNanoInterval](d.Array())[0]
}

// SubtractTimes is a - b for two columns of TIMESTAMP or two of DATE as INTERVAL:
// whole days and the rest, both of the sign of the difference.
func SubtractTimes(mem memory.Allocator, a, b columnar.Datum, rows int) arrow.Array {
	buf, out := Make[arrow.MonthDayNanoInterval](mem, rows)
	xm, ym := RowMask(a), RowMask(b)
	if a.Type().ID() == arrow.DATE32 {
		x, y := Values[int32](a.Array()), Values[int32](b.Array())
		for i := range out {
			out[i] = arrow.MonthDayNanoInterval{Days: x[i&xm] - y[i&ym]}
		}
	} else {
		x, y := Values[int64](a.Array()), Values[int64](b.Array())
		for i := range out {
			u, v := x[i&xm], y[i&ym]
			days := u/columnar.MicrosPerDay - v/columnar.MicrosPerDay
			rest := u%columnar.MicrosPerDay - v%columnar.MicrosPerDay
			days, rest = days+rest/columnar.MicrosPerDay, rest%columnar.MicrosPerDay
			switch { // one sign for both
			case days > 0 && rest < 0:
				days, rest = days-1, rest+columnar.MicrosPerDay
			case days < 0 && rest > 0:
				days, rest = days+1, rest-columnar.MicrosPerDay
			}
			out[i] = arrow.MonthDayNanoInterval{Days: int32(days), Nanoseconds: rest * 1000}
		}
	}
	valid, nulls := AndValidity(mem, rows, a, b)
	return Wrap(columnar.Interval, rows, nulls, valid, buf)
}

// CountUnits is how many whole units lie between two instants, negative if the second
// is the earlier; units from a day on are counted on the wall clock of loc.
func CountUnits(from, to int64, unit Part, loc *time.Location) int64 {
	if unit < Day {
		return wholeUnits(from, to, unit.micros())
	}
	fromDay, fromRest := columnar.LocalDay(from, loc)
	toDay, toRest := columnar.LocalDay(to, loc)
	if size := unit.micros(); size > 0 {
		days := toDay - fromDay
		switch {
		case days > 0 && toRest < fromRest:
			days--
		case days < 0 && toRest > fromRest:
			days++
		}
		return days / (size / columnar.MicrosPerDay)
	}
	return countMonths(fromDay, fromRest, toDay, toRest) / unit.months()
}

// wholeUnits is (to - from) / size, truncated, without forming the difference, which
// may overflow.
func wholeUnits(from, to, size int64) int64 {
	q, r := to/size-from/size, to%size-from%size
	q += r / size
	r %= size
	switch {
	case q > 0 && r < 0:
		q--
	case q < 0 && r > 0:
		q++
	}
	return q
}

// countMonths is how many whole months lie between two readings of a clock, each a day and the
// microseconds since its midnight.
func countMonths(fd, fromRest, td, toRest int64) int64 {
	fy, fm, _ := columnar.CivilFromDays(fd)
	ty, tm, _ := columnar.CivilFromDays(td)
	months := (ty-fy)*12 + int64(tm-fm)
	// How far into their months both are decides whether the last one is whole.
	fRest := (fd-columnar.DaysFromCivil(fy, fm, 1))*columnar.MicrosPerDay + fromRest
	tRest := (td-columnar.DaysFromCivil(ty, tm, 1))*columnar.MicrosPerDay + toRest
	switch {
	case months > 0 && tRest < fRest:
		months--
	case months < 0 && tRest > fRest:
		months++
	}
	return months
}

// WindowStart is the start of the latest window that contains the instant v, of
// windows that begin every slide microseconds from origin on, in both directions.
func WindowStart(v, slide, origin int64) int64 {
	return v - columnar.FloorMod(columnar.FloorMod(v, slide)-columnar.FloorMod(origin, slide), slide)
}

// WindowStarts is, for each TIMESTAMP of a, the start of the window that contains it
// and began k slides before the latest. An instant that cannot be held is an error.
func WindowStarts(mem memory.Allocator, a columnar.Datum, rows int, slide, origin, k int64, m Mode) (arrow.Array, error) {
	if slide <= 0 {
		return nil, fmt.Errorf("a window must slide by more than nothing, not by %d microseconds", slide)
	}
	in, mask := Values[int64](a.Array()), RowMask(a)
	back := k * slide
	if multiplyHigh(k, slide) != 0 {
		return nil, overflow(fmt.Sprintf("%d windows of %d microseconds", k, slide), columnar.Timestamp)
	}
	valid, nulls := AndValidity(mem, rows, a)
	buf, out := Make[int64](mem, rows)
	shift := columnar.FloorMod(origin, slide)
	var bad int64
	for i := range out {
		v := in[i&mask]
		r := v%slide - shift
		r += slide & (r >> 63)
		r += slide & (r >> 63) // v%slide may be negative and shift up to slide-1
		start := v - r
		last := start - back
		bad |= (v^r)&(v^start) | (start^back)&(start^last)
		out[i] = last
	}
	g := arithArgs{mem: mem, rows: rows, m: m, out: columnar.Timestamp, valid: valid, nulls: nulls}
	return g.finish(buf, bad < 0, func(i int) error {
		v := in[i&mask]
		if start := WindowStart(v, slide, origin); start <= v && (start^back)&(start^(start-back)) >= 0 {
			return nil
		}
		return overflow(fmt.Sprintf("the window of %s", columnar.AppendTimestamp(nil, v, nil)), columnar.Timestamp)
	})
}
