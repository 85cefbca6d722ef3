package columnar

import (
	"math"
	"time"
)

// Microseconds of the units of time.
const (
	MicrosPerSecond = int64(1_000_000)
	MicrosPerMinute = 60 * MicrosPerSecond
	MicrosPerHour   = 60 * MicrosPerMinute
	MicrosPerDay    = 24 * MicrosPerHour
)

// FloorDiv is a/b rounded towards minus infinity, for b > 0: unlike Go's division
// it puts times before 1970 into the right unit.
func FloorDiv(a, b int64) int64 {
	q := a / b
	if a%b < 0 {
		q--
	}
	return q
}

// FloorMod is the remainder of FloorDiv, never negative.
func FloorMod(a, b int64) int64 {
	m := a % b
	if m < 0 {
		m += b
	}
	return m
}

// DaysFromCivil is the number of days from 1970-01-01 to a date of the proleptic
// Gregorian calendar. Months beyond 1 to 12 carry into years.
func DaysFromCivil(year int64, month, day int) int64 {
	m := int64(month) - 1
	year += FloorDiv(m, 12)
	m = FloorMod(m, 12)
	// Years begin in March, so that the leap day is the last of its year.
	if m < 2 {
		year--
		m += 10
	} else {
		m -= 2
	}
	era := FloorDiv(year, 400)
	yearOfEra := year - era*400
	dayOfYear := (153*m+2)/5 + int64(day) - 1
	dayOfEra := yearOfEra*365 + yearOfEra/4 - yearOfEra/100 + dayOfYear
	return era*146097 + dayOfEra - 719468
}

// CivilFromDays is the inverse of DaysFromCivil.
func CivilFromDays(days int64) (year int64, month, day int) {
	days += 719468
	era := FloorDiv(days, 146097)
	dayOfEra := days - era*146097
	yearOfEra := (dayOfEra - dayOfEra/1460 + dayOfEra/36524 - dayOfEra/146096) / 365
	dayOfYear := dayOfEra - (365*yearOfEra + yearOfEra/4 - yearOfEra/100)
	m := (5*dayOfYear + 2) / 153
	day = int(dayOfYear-(153*m+2)/5) + 1
	year = yearOfEra + era*400
	if m < 10 {
		return year, int(m) + 3, day
	}
	return year + 1, int(m) - 9, day
}

// IsLeap says whether year has a 29th of February.
func IsLeap(year int64) bool { return year%4 == 0 && (year%100 != 0 || year%400 == 0) }

// DaysInMonth is the length of a month, 1 to 12.
func DaysInMonth(year int64, month int) int {
	switch month {
	case 2:
		if IsLeap(year) {
			return 29
		}
		return 28
	case 4, 6, 9, 11:
		return 30
	}
	return 31
}

// IsUTC says whether loc needs no look-up of offsets; nil is UTC.
func IsUTC(loc *time.Location) bool { return loc == nil || loc == time.UTC }

// clamped is a + b, or the end of the range that it goes beyond: the hours at both ends of
// what a TIMESTAMP holds, which a zone would move out of it, are read as the end.
func clamped(a, b int64) int64 {
	r := a + b
	if (a^r)&(b^r) >= 0 {
		return r
	}
	if b > 0 {
		return math.MaxInt64
	}
	return math.MinInt64
}

// zoneOffset is the offset of loc from UTC at an instant, in microseconds.
func zoneOffset(us int64, loc *time.Location) int64 {
	_, seconds := time.Unix(FloorDiv(us, MicrosPerSecond), 0).In(loc).Zone()
	return int64(seconds) * MicrosPerSecond
}

// LocalDay is the reading of a wall clock in loc at an instant, microseconds since the epoch: the
// day, counted from 1970, and the microseconds since its midnight. At both ends of the range the
// clock may show what is no instant in UTC.
func LocalDay(at int64, loc *time.Location) (day, us int64) {
	day, us = FloorDiv(at, MicrosPerDay), FloorMod(at, MicrosPerDay)
	if IsUTC(loc) {
		return day, us
	}
	us += zoneOffset(at, loc)
	return day + FloorDiv(us, MicrosPerDay), FloorMod(us, MicrosPerDay)
}

// FromLocal is the instant at which a wall clock in loc shows wall. Of two such
// instants (the clock was put back) it is the earlier; where there is none (the
// clock was put forward) the clock is read as if it had not been.
func FromLocal(wall int64, loc *time.Location) int64 {
	if IsUTC(loc) {
		return wall
	}
	before := zoneOffset(clamped(wall, -MicrosPerDay), loc)
	if at := clamped(wall, -before); zoneOffset(at, loc) == before {
		return at
	}
	after := zoneOffset(clamped(wall, MicrosPerDay), loc)
	if at := clamped(wall, -after); zoneOffset(at, loc) == after {
		return at
	}
	return clamped(wall, -before)
}

// FromLocalNear is Instant for a wall clock that was moved from the instant from: of two
// instants it is the one with the offset that loc has at from, if there is one.
func FromLocalNear(day, us, from int64, loc *time.Location) (at int64, ok bool) {
	if !IsUTC(loc) && IsTimestampDay(day) {
		offset := zoneOffset(from, loc)
		if at := day*MicrosPerDay + us - offset; zoneOffset(at, loc) == offset {
			return at, true
		}
	}
	return Instant(day, us, loc)
}

// LastTimestampDay is how far a day may be from 1970, either way, for all of it to be a
// TIMESTAMP in any zone. A DATE goes further.
const LastTimestampDay = math.MaxInt64/MicrosPerDay - 2

// IsTimestampDay says whether day, counted from 1970, is within LastTimestampDay.
func IsTimestampDay(day int64) bool { return -LastTimestampDay <= day && day <= LastTimestampDay }

// StartOfDay is the first instant of a day in loc, counted from 1970: midnight, unless the
// clock was put forward over it. The day must be within LastTimestampDay.
func StartOfDay(day int64, loc *time.Location) int64 {
	midnight := day * MicrosPerDay
	at := FromLocal(midnight, loc)
	if onDay, us := LocalDay(at, loc); onDay == day && us == 0 {
		return at
	}
	start, _ := time.UnixMicro(at).In(loc).ZoneBounds()
	return start.UnixMicro()
}

// Instant is the instant at which a wall clock in loc shows us, which may be negative or more
// than a day, after the midnight that begins day, counted from 1970; not ok where there is no
// such TIMESTAMP.
func Instant(day, us int64, loc *time.Location) (at int64, ok bool) {
	if IsTimestampDay(day) {
		return FromLocal(day*MicrosPerDay+us, loc), true
	}
	if !IsUTC(loc) { // the days at the ends have one offset
		end := int64(math.MaxInt64)
		if day < 0 {
			end = math.MinInt64
		}
		us -= zoneOffset(end, loc)
	}
	day += FloorDiv(us, MicrosPerDay)
	us = FloorMod(us, MicrosPerDay)
	const last = math.MaxInt64 / MicrosPerDay
	if day < -last-1 || day > last {
		return 0, false
	}
	// The product may leave the range at its low end, and the sum come back into it.
	at = day*MicrosPerDay + us
	return at, (at < 0) == (day < 0)
}
