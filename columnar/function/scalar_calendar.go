package function

import (
	"fmt"
	"math"
	"strings"
	"time"

	"github.com/apache/arrow-go/v18/arrow"

	"github.com/tidemill/tidemill/columnar"
	"github.com/tidemill/tidemill/columnar/kernel"
)

// calendarScalars are further functions on dates, times and intervals.
func calendarScalars() []*Scalar {
	list := []*Scalar{
		partScalar("decade", "decade(make_date(2024, 5, 6)) = 202", kernel.Decade, nil),
		partScalar("century", "century(make_date(2024, 5, 6)) = 21", kernel.Century, nil),
		partScalar("millennium", "millennium(make_date(2024, 5, 6)) = 3", kernel.Millennium, nil),
		partScalar("millisecond", "millisecond(make_timestamp(2024, 5, 6, 7, 8, 9.5)) = 9500", kernel.Millisecond, nil),
		partScalar("microsecond", "microsecond(make_timestamp(2024, 5, 6, 7, 8, 9.5)) = 9500000", kernel.Microsecond, nil),
		onDays("weekday", "The day of the week of a date or time from 0, Monday, to 6, Sunday, as in Spark; dayofweek counts from 1, Sunday, and isodow from 1, Monday. The part weekday of extract is dayofweek.", "weekday(make_date(2024, 5, 5)) = 6", func(day int64) int32 { return int32(columnar.FloorMod(day+3, 7)) }),
		onDays("yearweek", "The year and the number of the ISO week as one number.", "yearweek(make_date(2024, 5, 6)) = 202419", func(day int64) int32 {
			y, w := time.Unix(day*86400, 0).UTC().ISOWeek()
			return int32(y*100 + w)
		}),
		onDays("days_in_month", "How many days the month of a date has.", "days_in_month(make_date(2024, 2, 1)) = 29", func(day int64) int32 {
			y, m, _ := columnar.CivilFromDays(day)
			return int32(columnar.DaysInMonth(y, m))
		}),
		onDays("unix_date", "Days since 1970 of a date.", "unix_date(make_date(1970, 1, 2)) = 1", func(day int64) int32 { return int32(day) }),
		nameOfDay("dayname", "The name of the day of the week, in English.", "dayname(make_date(2024, 5, 5)) = Sunday", func(day int64) string {
			return time.Weekday(columnar.FloorMod(day+4, 7)).String()
		}),
		nameOfDay("monthname", "The name of the month, in English.", "monthname(make_date(2024, 5, 5)) = May", func(day int64) string {
			_, m, _ := columnar.CivilFromDays(day)
			return time.Month(m).String()
		}),
		define("date_from_unix_date", "The date so many days after 1970-01-01.", "date_from_unix_date(1) = 1970-01-02", []Matcher{exactly(columnar.Int32)}, columnar.Date, func(c *call) (arrow.Array, error) {
			in := numbersOf[int32](c.args[0])
			return fixedRows(c, func(i int) int32 { return in.at(i) })
		}),
		defineFallible("next_day", "The first date after the given one on a day of the week, named in English; null for another word.", "next_day(make_date(2024, 5, 6), 'Monday') = 2024-05-13", []Matcher{date, varchar}, columnar.Date, func(c *call) (arrow.Array, error) {
			in, name := numbersOf[int32](c.args[0]), kernel.TextsOf(c.args[1])
			return someRows(c, func(i int) (int32, bool, error) {
				day, ok := weekdayNamed(string(name.At(i)))
				if !ok {
					return 0, false, nil
				}
				ahead := columnar.FloorMod(day-int64(in.at(i))-4-1, 7) + 1
				next, err := dateOf(int64(in.at(i))+ahead, "the next such day of the week after", in.at(i))
				return next, true, err
			})
		}),
		ageScalar(), makeTimeScalar(), exactSecondScalar(),
		define("epoch", "Seconds since 1970 of a time, or in an interval (a month is 30 days), with a fraction; also written EXTRACT(epoch FROM x).", "epoch(make_timestamp(1970, 1, 1, 0, 0, 1.5)) = 1.5", []Matcher{timestamp}, columnar.Float64, func(c *call) (arrow.Array, error) {
			in := numbersOf[int64](c.args[0])
			return fixedRows(c, func(i int) float64 { return float64(in.at(i)) / 1e6 })
		}).alsoFor([]Matcher{exactly(columnar.Time)}, columnar.Float64, func(c *call) (arrow.Array, error) {
			in := numbersOf[int64](c.args[0])
			return fixedRows(c, func(i int) float64 { return float64(in.at(i)) / 1e6 })
		}).alsoFor([]Matcher{interval}, columnar.Float64, func(c *call) (arrow.Array, error) {
			in := numbersOf[arrow.MonthDayNanoInterval](c.args[0])
			return fixedRows(c, func(i int) float64 {
				v := in.at(i)
				return (float64(v.Months)*30+float64(v.Days))*86400 + float64(v.Nanoseconds)/1e9
			})
		}),
		define("epoch_ns", "Nanoseconds since 1970 of a time; null where they do not fit BIGINT.", "epoch_ns(make_timestamp(1970, 1, 1, 0, 0, 1)) = 1000000000", []Matcher{timestamp}, columnar.Int64, func(c *call) (arrow.Array, error) {
			in := numbersOf[int64](c.args[0])
			return nullableRows(c, func(i int) (int64, bool) {
				us := in.at(i)
				return us * 1000, us <= math.MaxInt64/1000 && us >= math.MinInt64/1000
			})
		}),
		currentZoneScalar(),
		tryTimeScalar("try_to_timestamp", "Like to_timestamp of a text, but null where the text does not read.", "try_to_timestamp('no time') = NULL", columnar.Timestamp, "try_strptime"),
		tryTimeScalar("try_to_date", "Like to_date of a text, but null where the text does not read.", "try_to_date('2024-02-30') = NULL", columnar.Date),
	}
	for _, unit := range []string{"year", "month", "week", "day", "hour", "minute", "second", "millisecond", "microsecond"} {
		list = append(list, intervalOf(unit))
	}
	return list
}

// localDays reads a DATE or TIMESTAMP as days since 1970 in the session time zone.
func (c *call) localDays(k int) func(i int) int64 {
	if c.args[k].Type().ID() == arrow.DATE32 {
		in := numbersOf[int32](c.args[k])
		return func(i int) int64 { return int64(in.at(i)) }
	}
	in := numbersOf[int64](c.args[k])
	return func(i int) int64 {
		return localDay(in.at(i), c.env.Location)
	}
}

func localDay(at int64, loc *time.Location) int64 {
	day, _ := columnar.LocalDay(at, loc)
	return day
}

// onDays is a number of a day.
func onDays(name, doc, example string, f func(day int64) int32) *Scalar {
	run := func(c *call) (arrow.Array, error) {
		day := c.localDays(0)
		return fixedRows(c, func(i int) int32 { return f(day(i)) })
	}
	return define(name, doc, example, []Matcher{date}, columnar.Int32, run).alsoFor([]Matcher{timestamp}, columnar.Int32, run)
}

// nameOfDay is a text for a day.
func nameOfDay(name, doc, example string, f func(day int64) string) *Scalar {
	run := func(c *call) (arrow.Array, error) {
		day := c.localDays(0)
		return c.text(c.rows*9, func(dst []byte, i int) ([]byte, error) { return append(dst, f(day(i))...), nil })
	}
	return define(name, doc, example, []Matcher{date}, columnar.String, run).alsoFor([]Matcher{timestamp}, columnar.String, run)
}

// weekdayNamed is 0 for Sunday; names may be cut to two or three letters.
func weekdayNamed(name string) (int64, bool) {
	name = strings.ToLower(strings.TrimSpace(name))
	for d := time.Sunday; d <= time.Saturday; d++ {
		full := strings.ToLower(d.String())
		if name == full || name == full[:3] || name == full[:2] {
			return int64(d), true
		}
	}
	return 0, false
}

// ageScalar is the calendar difference of two times.
func ageScalar() *Scalar {
	return define("age", "How much later the first time is than the second, in months, days of a month and a rest.", "age(make_timestamp(2024, 3, 1, 0, 0, 0), make_timestamp(2024, 1, 31, 0, 0, 0)) = 1 month 1 day", []Matcher{timestamp, timestamp}, columnar.Interval, func(c *call) (arrow.Array, error) {
		a, b := numbersOf[int64](c.args[0]), numbersOf[int64](c.args[1])
		return fixedRows(c, func(i int) arrow.MonthDayNanoInterval {
			return age(a.at(i), b.at(i), c.env.Location)
		})
	})
}

// age takes the parts of two wall clocks apart from each other and borrows: a day is 24
// hours, a month those days that the month of the earlier time has.
func age(later, earlier int64, loc *time.Location) arrow.MonthDayNanoInterval {
	lDay, lRest := columnar.LocalDay(later, loc)
	eDay, eRest := columnar.LocalDay(earlier, loc)
	if lDay < eDay || lDay == eDay && lRest < eRest {
		v := age(earlier, later, loc)
		return arrow.MonthDayNanoInterval{Months: -v.Months, Days: -v.Days, Nanoseconds: -v.Nanoseconds}
	}
	ly, lm, ld := columnar.CivilFromDays(lDay)
	ey, em, ed := columnar.CivilFromDays(eDay)
	months, days := (ly-ey)*12+int64(lm-em), int64(ld-ed)
	rest := lRest - eRest
	if rest < 0 {
		rest, days = rest+columnar.MicrosPerDay, days-1
	}
	if days < 0 {
		months, days = months-1, days+int64(columnar.DaysInMonth(ey, em))
	}
	return arrow.MonthDayNanoInterval{Months: int32(months), Days: int32(days), Nanoseconds: rest * 1000}
}

func makeTimeScalar() *Scalar {
	return defineFallible("make_time", "The time of day of an hour, minute and second.", "make_time(12, 30, 1.5) = 12:30:01.500000", []Matcher{bigint, bigint, double}, columnar.Time, func(c *call) (arrow.Array, error) {
		hour, minute, second := numbersOf[int64](c.args[0]), numbersOf[int64](c.args[1]), numbersOf[float64](c.args[2])
		return fallibleRows(c, func(i int) (int64, error) {
			h, m, s := hour.at(i), minute.at(i), second.at(i)
			if h < 0 || h > 23 || m < 0 || m > 59 || !(s >= 0 && s < 60) {
				return 0, fmt.Errorf("there is no time of day %d:%02d:%v", h, m, s)
			}
			return h*columnar.MicrosPerHour + m*columnar.MicrosPerMinute + int64(math.Round(s*1e6)), nil
		})
	})
}

func currentZoneScalar() *Scalar {
	return &Scalar{Name: "current_timezone", Doc: "The name of the session time zone.", Example: "current_timezone() = UTC", Overloads: []Overload{{
		Result: always(columnar.String), Volatility: Stable,
		Bind: func([]arrow.DataType, []arrow.Array) (Kernel, error) {
			return func(env *Env, _ []columnar.Datum, _ int, _ *columnar.Bitmap) (columnar.Datum, error) {
				return columnar.Constant(env.Mem, columnar.String, env.Zone().String())
			}, nil
		},
	}}}
}

// tryTimeScalar reads a text, in ISO form or by a pattern, as a time or date.
func tryTimeScalar(name, doc, example string, out arrow.DataType, aliases ...string) *Scalar {
	iso := Overload{Args: []Matcher{varchar}, Result: always(out), NullSafe: true, Bind: func([]arrow.DataType, []arrow.Array) (Kernel, error) {
		return func(env *Env, args []columnar.Datum, rows int, active *columnar.Bitmap) (columnar.Datum, error) {
			return Cast(env, args[0], out, true, rows, active)
		}, nil
	}}
	pattern := Overload{Args: []Matcher{varchar, varchar}, Result: always(out), Fallible: true, Bind: func(_ []arrow.DataType, constants []arrow.Array) (Kernel, error) {
		source, err := patternOf(constants, 1, compileParsed)
		if err != nil {
			return nil, err
		}
		return onRows(out, func(c *call) (arrow.Array, error) {
			if out.ID() == arrow.TIMESTAMP {
				return tryParseRows(c, source(c), parsedTime.instant)
			}
			return tryParseRows(c, source(c), parsedTime.date)
		}), nil
	}}
	return &Scalar{Name: name, Aliases: aliases, Doc: doc, Example: example, Overloads: []Overload{iso, pattern}}
}

// tryParseRows is parseRows with nulls for errors, but for patterns that are none.
func tryParseRows[T any](c *call, of func(i int) (*timePattern, error), value func(t parsedTime, loc *time.Location) (T, bool)) (arrow.Array, error) {
	in := kernel.TextsOf(c.args[0])
	return someRows(c, func(i int) (v T, ok bool, err error) {
		p, err := of(i)
		if err != nil {
			return v, false, err
		}
		t, ok := p.parse(string(in.At(i)))
		if !ok {
			return v, false, nil
		}
		v, ok = value(t, c.env.Location)
		return v, ok, nil
	})
}

// intervalOf is a number of units as an interval.
func intervalOf(unit string) *Scalar {
	name := "to_" + unit + "s"
	one, _ := columnar.IntervalUnit(unit)
	example := map[string]string{
		"year": "to_years(2) = 2 years", "month": "to_months(3) = 3 months", "week": "to_weeks(2) = 14 days", "day": "to_days(2) = 2 days",
		"hour": "to_hours(2) = 02:00:00", "minute": "to_minutes(90) = 01:30:00", "second": "to_seconds(90) = 00:01:30",
		"millisecond": "to_milliseconds(1500) = 00:00:01.5", "microsecond": "to_microseconds(5) = 00:00:00.000005",
	}[unit]
	return defineFallible(name, "So many "+unit+"s as an INTERVAL.", example, []Matcher{bigint}, columnar.Interval, func(c *call) (arrow.Array, error) {
		n := numbersOf[int64](c.args[0])
		return fallibleRows(c, func(i int) (arrow.MonthDayNanoInterval, error) { return scaleInterval(one, n.at(i)) })
	})
}
