package columnar

import (
	"math"
	"math/big"

	"github.com/apache/arrow-go/v18/arrow"
)

const nanosPerDay = MicrosPerDay * 1000

// IntervalLength is the length of v, a month taken as 30 days and a day as 24 hours: days
// and a rest of less than a day. Intervals of one length are equal.
func IntervalLength(v arrow.MonthDayNanoInterval) (days, nanos int64) {
	days = int64(v.Months)*30 + int64(v.Days) + FloorDiv(v.Nanoseconds, nanosPerDay)
	return days, FloorMod(v.Nanoseconds, nanosPerDay)
}

// CanonicalInterval is the one form of all intervals that are equal to v: days and hours
// of one sign, without months unless the days are too many for their field.
func CanonicalInterval(v arrow.MonthDayNanoInterval) arrow.MonthDayNanoInterval {
	out := OrderedInterval(v)
	if out.Months == 0 && out.Days < 0 && out.Nanoseconds > 0 {
		out.Days++
		out.Nanoseconds -= nanosPerDay
	}
	return out
}

// OrderedInterval is a form of v, one for all equal intervals, that is ordered by its
// months, then its days, then its rest, as lengths are.
func OrderedInterval(v arrow.MonthDayNanoInterval) arrow.MonthDayNanoInterval {
	days, nanos := IntervalLength(v)
	months := int64(0)
	if days != int64(int32(days)) {
		months = clampInt32(FloorDiv(days, 30))
		days -= months * 30
		most := clampInt32(days)
		days, nanos = most, nanos+(days-most)*nanosPerDay
	}
	return arrow.MonthDayNanoInterval{Months: int32(months), Days: int32(days), Nanoseconds: nanos}
}

func clampInt32(v int64) int64 { return min(max(v, math.MinInt32), math.MaxInt32) }

// IntervalBits is CanonicalInterval of the interval in two words, as Arrow lays it out.
func IntervalBits(lo, hi uint64) (uint64, uint64) {
	v := CanonicalInterval(arrow.MonthDayNanoInterval{Months: int32(lo), Days: int32(lo >> 32), Nanoseconds: int64(hi)})
	return uint64(uint32(v.Months)) | uint64(uint32(v.Days))<<32, uint64(v.Nanoseconds)
}

// DivideInterval is an interval, whose fields may be larger than those of one, divided by
// a number: what is left over of months becomes days, 30 a month, and of days hours. It is
// rounded to microseconds; ok is false if it does not fit.
func DivideInterval(months, days int64, nanos *big.Int, by *big.Rat) (v arrow.MonthDayNanoInterval, ok bool) {
	whole, rest := quotient(new(big.Rat).SetInt64(months), by)
	dayShare := rest.Mul(rest, big.NewRat(30, 1))
	wholeDays, rest := quotient(new(big.Rat).SetInt64(days), by)
	dayShare.Add(dayShare, rest)
	carried, rest := quotient(dayShare, big.NewRat(1, 1))
	wholeDays.Add(wholeDays, carried)
	micros := rest.Mul(rest, big.NewRat(MicrosPerDay, 1))
	micros.Add(micros, new(big.Rat).Quo(new(big.Rat).SetFrac(nanos, big.NewInt(1000)), by))
	half := big.NewRat(int64(micros.Sign()), 2)
	n, _ := quotient(micros.Add(micros, half), big.NewRat(1, 1))
	n.Mul(n, big.NewInt(1000))
	if !whole.IsInt64() || !wholeDays.IsInt64() || !n.IsInt64() {
		return v, false
	}
	v = arrow.MonthDayNanoInterval{Months: int32(whole.Int64()), Days: int32(wholeDays.Int64()), Nanoseconds: n.Int64()}
	return v, int64(v.Months) == whole.Int64() && int64(v.Days) == wholeDays.Int64()
}

// quotient is a / by, truncated, and what is left of it.
func quotient(a, by *big.Rat) (whole *big.Int, rest *big.Rat) {
	q := new(big.Rat).Quo(a, by)
	whole = new(big.Int).Quo(q.Num(), q.Denom())
	return whole, q.Sub(q, new(big.Rat).SetInt(whole))
}
