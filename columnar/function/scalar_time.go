package function

import (
	"fmt"
	"math"
	"math/big"
	"slices"
	"strings"
	"time"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/decimal128"

	"github.com/tidemill/tidemill/columnar"
	"github.com/tidemill/tidemill/columnar/kernel"
)

// timeAdditions are the overloads of + on times and intervals.
func timeAdditions(try bool) []Overload {
	return []Overload{
		moveTime(timestamp, interval, 0, 1, 1, try),
		moveTime(interval, timestamp, 1, 0, 1, try),
		moveDate(date, integerType, 0, 1, 1, try),
		moveDate(integerType, date, 1, 0, 1, try),
		moveClock(timeOfDay, interval, 0, 1, 1),
		moveClock(interval, timeOfDay, 1, 0, 1),
		onIntervals(1, try),
	}
}

// timeSubtractions are the overloads of - on times and intervals.
func timeSubtractions(try bool) []Overload {
	between := func(m Matcher) Overload {
		return Overload{Args: []Matcher{m, m}, Result: always(columnar.Interval), Bind: func([]arrow.DataType, []arrow.Array) (Kernel, error) {
			return onRows(columnar.Interval, func(c *call) (arrow.Array, error) {
				return kernel.SubtractTimes(c.env.Mem, c.args[0], c.args[1], c.rows), nil
			}), nil
		}}
	}
	return []Overload{moveTime(timestamp, interval, 0, 1, -1, try), moveDate(date, integerType, 0, 1, -1, try),
		moveClock(timeOfDay, interval, 0, 1, -1), between(date), between(timestamp), onIntervals(-1, try)}
}

// moveTime moves the instant in argument at by the interval in argument by.
func moveTime(a, b Matcher, at, by int, sign int64, try bool) Overload {
	return Overload{Args: []Matcher{a, b}, Result: always(columnar.Timestamp), Fallible: !try, Bind: func([]arrow.DataType, []arrow.Array) (Kernel, error) {
		return onRows(columnar.Timestamp, func(c *call) (arrow.Array, error) {
			return kernel.AddIntervals(c.env.Mem, c.args[at], c.args[by], c.rows, sign, c.env.Location, c.mode(try))
		}), nil
	}}
}

// moveDate moves the day in argument at by the days in argument by.
func moveDate(a, b Matcher, at, by int, sign int64, try bool) Overload {
	return Overload{Args: []Matcher{a, b}, Result: always(columnar.Date), Fallible: !try, Bind: func(args []arrow.DataType, _ []arrow.Array) (Kernel, error) {
		return onRows(columnar.Date, func(c *call) (arrow.Array, error) {
			days, err := kernel.Cast(c.env.Mem, c.args[by].Array(), columnar.Int64, kernel.CastOptions{})
			if err != nil {
				return nil, err
			}
			defer days.Release()
			from, n, mask := numbersOf[int32](c.args[at]), kernel.Values[int64](days), kernel.RowMask(c.args[by])
			return rowsOrNull(c, try, func(i int) (int32, error) {
				d := n[i&mask]
				v := int64(from.at(i)) + sign*d
				if int64(int32(v)) != v || d > math.MaxInt32*2 || d < math.MinInt32*2 {
					return 0, &kernel.ValueError{Kind: kernel.ErrOverflow, Text: fmt.Sprintf("%s moved by %d days overflows DATE", columnar.AppendDate(nil, int64(from.at(i))), d)}
				}
				return int32(v), nil
			})
		}), nil
	}}
}

// DateMove is how the function of a name, + or - or their form with try_, moves a DATE by an
// INTERVAL, that may come first, of whole days and months: the result is a DATE. Whether an
// interval is such, its type does not say, so that no overload of the function can be this one.
func DateMove(name string, intervalFirst bool) *Signature {
	try, sign := strings.HasPrefix(name, "try_"), int64(1)
	if name == "-" || name == "try_subtract" {
		sign = -1
	}
	args, types, at, by := []Matcher{date, interval}, []arrow.DataType{columnar.Date, columnar.Interval}, 0, 1
	if intervalFirst {
		slices.Reverse(args)
		slices.Reverse(types)
		at, by = 1, 0
	}
	o := overload(args, columnar.Date, func(c *call) (arrow.Array, error) {
		from, d := numbersOf[int32](c.args[at]), numbersOf[arrow.MonthDayNanoInterval](c.args[by])
		return rowsOrNull(c, try, func(i int) (int32, error) {
			day, ok := kernel.MoveDay(int64(from.at(i)), d.at(i), sign)
			if !ok {
				return 0, &kernel.ValueError{Kind: kernel.ErrOverflow, Text: fmt.Sprintf("%s %c (%s) overflows DATE", columnar.AppendDate(nil, int64(from.at(i))), "- +"[sign+1], columnar.AppendInterval(nil, d.at(i)))}
			}
			return int32(day), nil
		})
	})
	o.Fallible = !try
	return &Signature{Overload: &o, Args: types, Result: columnar.Date}
}

// timeOfDay takes a TIME.
var timeOfDay = exactly(columnar.Time)

// moveClock moves the time of day in argument at by the interval in argument by, as the
// hand of a clock: past midnight it begins anew, and whole days and months change nothing.
func moveClock(a, b Matcher, at, by int, sign int64) Overload {
	return Overload{Args: []Matcher{a, b}, Result: always(columnar.Time), Bind: func([]arrow.DataType, []arrow.Array) (Kernel, error) {
		return onRows(columnar.Time, func(c *call) (arrow.Array, error) {
			from, d := numbersOf[int64](c.args[at]), numbersOf[arrow.MonthDayNanoInterval](c.args[by])
			return fixedRows(c, func(i int) int64 {
				moved := from.at(i) + sign*(d.at(i).Nanoseconds/1000%columnar.MicrosPerDay)
				return columnar.FloorMod(moved, columnar.MicrosPerDay)
			})
		}), nil
	}}
}

// onIntervals adds the second interval, times sign, to the first.
func onIntervals(sign int64, try bool) Overload {
	return Overload{Args: []Matcher{interval, interval}, Result: always(columnar.Interval), Fallible: !try, Bind: func([]arrow.DataType, []arrow.Array) (Kernel, error) {
		return onRows(columnar.Interval, func(c *call) (arrow.Array, error) {
			a, b := numbersOf[arrow.MonthDayNanoInterval](c.args[0]), numbersOf[arrow.MonthDayNanoInterval](c.args[1])
			return rowsOrNull(c, try, func(i int) (arrow.MonthDayNanoInterval, error) {
				x, y := a.at(i), b.at(i)
				months, days := int64(x.Months)+sign*int64(y.Months), int64(x.Days)+sign*int64(y.Days)
				d := sign * y.Nanoseconds
				out := arrow.MonthDayNanoInterval{Months: int32(months), Days: int32(days), Nanoseconds: x.Nanoseconds + d}
				if int64(out.Months) != months || int64(out.Days) != days || (x.Nanoseconds^out.Nanoseconds)&(d^out.Nanoseconds) < 0 {
					return out, &kernel.ValueError{Kind: kernel.ErrOverflow, Text: fmt.Sprintf("(%s) + (%s) overflows INTERVAL", columnar.AppendInterval(nil, x), columnar.AppendInterval(nil, y))}
				}
				return out, nil
			})
		}), nil
	}}
}

// intervalProducts are the overloads of * on an interval and a number.
func intervalProducts() []Overload {
	whole := func(at, by int, args ...Matcher) Overload {
		return Overload{Args: args, Result: always(columnar.Interval), Fallible: true, Bind: func([]arrow.DataType, []arrow.Array) (Kernel, error) {
			return onRows(columnar.Interval, func(c *call) (arrow.Array, error) {
				v, n := numbersOf[arrow.MonthDayNanoInterval](c.args[at]), numbersOf[int64](c.args[by])
				return fallibleRows(c, func(i int) (arrow.MonthDayNanoInterval, error) { return scaleInterval(v.at(i), n.at(i)) })
			}), nil
		}}
	}
	return []Overload{whole(0, 1, interval, bigint), whole(1, 0, bigint, interval), intervalTimes(0, 1, false, interval, double), intervalTimes(1, 0, false, double, interval)}
}

// intervalQuotient is an interval divided by a number.
func intervalQuotient() Overload { return intervalTimes(0, 1, true, interval, double) }

func intervalTimes(at, by int, divide bool, args ...Matcher) Overload {
	return Overload{Args: args, Result: always(columnar.Interval), Fallible: true, Bind: func([]arrow.DataType, []arrow.Array) (Kernel, error) {
		return onRows(columnar.Interval, func(c *call) (arrow.Array, error) {
			v, n := numbersOf[arrow.MonthDayNanoInterval](c.args[at]), numbersOf[float64](c.args[by])
			return fallibleRows(c, func(i int) (arrow.MonthDayNanoInterval, error) {
				f := n.at(i)
				if divide && f == 0 {
					return arrow.MonthDayNanoInterval{}, explain(c.env, &kernel.ValueError{Kind: kernel.ErrDivideByZero, Text: "division by zero: an interval / 0"}, "nullif")
				}
				out, ok := intervalBy(v.at(i), f, divide)
				if !ok {
					sign := map[bool]string{false: "*", true: "/"}[divide]
					return out, &kernel.ValueError{Kind: kernel.ErrOverflow, Text: fmt.Sprintf("(%s) %s %v overflows INTERVAL", columnar.AppendInterval(nil, v.at(i)), sign, f)}
				}
				return out, nil
			})
		}), nil
	}}
}

// intervalBy is v times a number as it is written, or divided by it, if that is not zero.
func intervalBy(v arrow.MonthDayNanoInterval, number float64, divide bool) (out arrow.MonthDayNanoInterval, ok bool) {
	if number == 0 || divide && math.IsInf(number, 0) {
		return out, true
	}
	by, ok := new(big.Rat).SetString(string(columnar.AppendFloat(nil, number, 64)))
	if !ok {
		return out, false
	}
	if !divide {
		by.Inv(by)
	}
	return columnar.DivideInterval(int64(v.Months), int64(v.Days), big.NewInt(v.Nanoseconds), by)
}

// timeScalars are the functions on dates, times and intervals.
func timeScalars() []*Scalar {
	list := []*Scalar{
		batchTime("now", "The time of the batch: the same in every row, and when a batch is run again.", "now() >= make_timestamp(2000, 1, 1, 0, 0, 0) = true", "current_timestamp", "localtimestamp", "transaction_timestamp"),
		todayScalar(), currentTimeScalar(),
		truncateScalar(), datePartScalar(),
		fromSeconds(), fromUnixtimeScalar(), epochScalar(),
		scaled("epoch_ms", "Milliseconds since 1970 as a TIMESTAMP, or of one.", "epoch_ms(make_timestamp(1970, 1, 1, 0, 0, 1)) = 1000", 1000, "timestamp_millis", "unix_millis"),
		scaled("epoch_us", "Microseconds since 1970 as a TIMESTAMP, or of one.", "epoch_us(make_timestamp(1970, 1, 1, 0, 0, 1)) = 1000000", 1, "timestamp_micros", "unix_micros"),
		dateAddScalar("date_add", "A date moved by days, or a time by an interval; with a unit first, by so many units.", "date_add(make_date(2024, 2, 28), 2) = 2024-03-01", 1, "dateadd", "timestampadd", "adddate"),
		dateAddScalar("date_sub", "A date moved back by days, or a time by an interval.", "date_sub(make_date(2024, 3, 1), 1) = 2024-02-29", -1, "subdate"),
		addMonthsScalar(), monthsBetweenScalar(), lastDayScalar(),
		dateDiffScalar(), makeDateScalar(), makeTimestampScalar(),
		formatScalar(), parseScalar(), toDateScalar(),
		fromUTCScalar("from_utc_timestamp", "The wall clock of a time zone at an instant, as if it were one of UTC.", "from_utc_timestamp(make_timestamp(2024, 7, 1, 0, 0, 0), 'Europe/Berlin') = 2024-07-01 02:00:00", true),
		fromUTCScalar("to_utc_timestamp", "The instant at which the wall clock of a time zone shows a time.", "to_utc_timestamp(make_timestamp(2024, 7, 1, 2, 0, 0), 'Europe/Berlin') = 2024-07-01 00:00:00", false),
		makeIntervalScalar(),
	}
	for _, p := range []struct {
		name, example string
		part          kernel.Part
		aliases       []string
	}{
		{"year", "year(make_date(2024, 5, 6)) = 2024", kernel.Year, nil},
		{"quarter", "quarter(make_date(2024, 5, 6)) = 2", kernel.Quarter, nil},
		{"month", "month(make_date(2024, 5, 6)) = 5", kernel.Month, nil},
		{"week", "week(make_date(2024, 1, 1)) = 1", kernel.WeekOfYear, []string{"weekofyear"}},
		{"day", "day(make_date(2024, 5, 6)) = 6", kernel.Day, []string{"dayofmonth"}},
		{"dayofweek", "dayofweek(make_date(2024, 5, 5)) = 1", kernel.DayOfWeek, nil},
		{"isodow", "isodow(make_date(2024, 5, 5)) = 7", kernel.ISODayOfWeek, nil},
		{"dayofyear", "dayofyear(make_date(2024, 12, 31)) = 366", kernel.DayOfYear, nil},
		{"hour", "hour(make_timestamp(2024, 5, 6, 7, 8, 9)) = 7", kernel.Hour, nil},
		{"minute", "minute(make_timestamp(2024, 5, 6, 7, 8, 9)) = 8", kernel.Minute, nil},
		{"second", "second(make_timestamp(2024, 5, 6, 7, 8, 9.5)) = 9", kernel.Second, nil},
		{"isoyear", "isoyear(make_date(2024, 12, 31)) = 2025", kernel.ISOYear, nil},
	} {
		f := partScalar(p.name, p.example, p.part, p.aliases)
		if doc := partDocs[p.name]; doc != "" {
			f.Doc = doc
		}
		list = append(list, f)
	}
	return list
}

// partDocs are for the parts whose name does not say what they count.
var partDocs = map[string]string{
	"week":      "The number of the ISO week of a date or time: weeks begin on Monday, and week 1 has the year's first Thursday. Its year is isoyear.",
	"dayofweek": "The day of the week of a date or time from 1, Sunday, to 7, Saturday, in the session time zone; isodow counts from 1, Monday, and weekday from 0, Monday.",
	"isodow":    "The ISO day of the week of a date or time from 1, Monday, to 7, Sunday, in the session time zone.",
	"isoyear":   "The year that the ISO week of a date or time belongs to, which at the turn of the year may be the one before or after: see week.",
}

// anyTime takes DATE, TIME and TIMESTAMP as they are.
var anyTime = class("DATE, TIME or TIMESTAMP", columnar.Timestamp, columnar.IsTemporal)

func batchTime(name, doc, example string, aliases ...string) *Scalar {
	return &Scalar{Name: name, Aliases: aliases, Doc: doc, Example: example, Overloads: []Overload{{
		Result: always(columnar.Timestamp), Volatility: Stable,
		Bind: func([]arrow.DataType, []arrow.Array) (Kernel, error) {
			return func(env *Env, _ []columnar.Datum, _ int, _ *columnar.Bitmap) (columnar.Datum, error) {
				return columnar.Constant(env.Mem, columnar.Timestamp, env.Now)
			}, nil
		},
	}}}
}

func todayScalar() *Scalar {
	return &Scalar{Name: "current_date", Aliases: []string{"today", "curdate"}, Doc: "The date of the batch in the session time zone.", Example: "current_date() >= make_date(2000, 1, 1) = true", Overloads: []Overload{{
		Result: always(columnar.Date), Volatility: Stable,
		Bind: func([]arrow.DataType, []arrow.Array) (Kernel, error) {
			return func(env *Env, _ []columnar.Datum, _ int, _ *columnar.Bitmap) (columnar.Datum, error) {
				return columnar.Constant(env.Mem, columnar.Date, localDay(env.Now, env.Location))
			}, nil
		},
	}}}
}

func currentTimeScalar() *Scalar {
	return &Scalar{Name: "current_time", Doc: "The time of day of the batch in the session time zone.", Example: "hour(current_time()) < 24 = true", Overloads: []Overload{{
		Result: always(columnar.Time), Volatility: Stable,
		Bind: func([]arrow.DataType, []arrow.Array) (Kernel, error) {
			return func(env *Env, _ []columnar.Datum, _ int, _ *columnar.Bitmap) (columnar.Datum, error) {
				_, us := columnar.LocalDay(env.Now, env.Location)
				return columnar.Constant(env.Mem, columnar.Time, us)
			}, nil
		},
	}}}
}

func partScalar(name, example string, part kernel.Part, aliases []string) *Scalar {
	return &Scalar{Name: name, Aliases: aliases, Doc: "The " + name + " of a date or time, in the session time zone.", Example: example, Overloads: []Overload{{
		Args: []Matcher{anyTime}, Result: always(columnar.Int32),
		Bind: func([]arrow.DataType, []arrow.Array) (Kernel, error) {
			return onRows(columnar.Int32, func(c *call) (arrow.Array, error) {
				wide := kernel.ExtractTime(c.env.Mem, c.args[0].Array(), part, c.env.Location)
				defer wide.Release()
				return kernel.Cast(c.env.Mem, wide, columnar.Int32, kernel.CastOptions{})
			}), nil
		},
	}}}
}

// parsePart reads the name of a part, or says which there are.
func parsePart(name string, unit bool) (kernel.Part, error) {
	p, ok := kernel.ParsePart(name)
	if ok && (p.IsUnit() || !unit) {
		return p, nil
	}
	known := []string{"microsecond", "millisecond", "second", "minute", "hour", "day", "week", "month", "quarter", "year"}
	if !unit {
		known = append(known, "dayofweek", "isodow", "dayofyear", "epoch", "isoyear")
	}
	return 0, fmt.Errorf("%q is no part of a time%s", name, columnar.DidYouMean(name, known))
}

// byPart binds a function whose first argument names a part: once if it is a literal,
// else row by row.
func byPart(out arrow.DataType, unit bool, constants []arrow.Array, f func(c *call, part kernel.Part) (arrow.Array, error)) (Kernel, error) {
	if name, ok := constantText(constants, 0); ok {
		part, err := parsePart(name, unit)
		if err != nil {
			return nil, err
		}
		return onRows(out, func(c *call) (arrow.Array, error) { return f(c, part) }), nil
	}
	return onRows(out, func(c *call) (arrow.Array, error) { return perPart(c, unit, f) }), nil
}

// perPart computes the rows of each part that occurs and puts them together.
func perPart(c *call, unit bool, f func(c *call, part kernel.Part) (arrow.Array, error)) (arrow.Array, error) {
	names := kernel.TextsOf(c.args[0])
	valid, _ := c.validity()
	defer releaseBuffer(valid)
	rowsOf := map[kernel.Part]*columnar.Bitmap{}
	var parts []kernel.Part
	which := make([]int, c.rows)
	for i := range which {
		which[i] = -1
		if !isSet(valid, i) || !c.active.Get(i) {
			continue
		}
		part, err := parsePart(string(names.At(i)), unit)
		if err != nil {
			return nil, err
		}
		if rowsOf[part] == nil {
			rowsOf[part] = columnar.NewBitmap(c.rows)
			parts = append(parts, part)
		}
		rowsOf[part].Set(i)
		which[i] = slices.Index(parts, part)
	}
	if len(parts) == 0 {
		return columnar.Nulls(c.env.Mem, c.out, c.rows), nil
	}
	var built columnar.Releases
	defer built.Release()
	columns := make([]arrow.Array, len(parts))
	for k, part := range parts {
		some := *c
		some.active = rowsOf[part]
		a, err := f(&some, part)
		if err != nil {
			return nil, err
		}
		built.Add(a)
		columns[k] = a
	}
	refs := make([]kernel.Ref, c.rows)
	for i, k := range which {
		switch {
		case k < 0:
			refs[i] = kernel.NoRow
		case columns[k].Len() == 1: // of a constant
			refs[i] = kernel.MakeRef(k, 0)
		default:
			refs[i] = kernel.MakeRef(k, i)
		}
	}
	return c.gather(columns, refs)
}

func truncateScalar() *Scalar {
	return &Scalar{Name: "date_trunc", Aliases: []string{"datetrunc"}, Doc: "The beginning of the unit a time lies in, in the session time zone; weeks begin on Monday.", Example: "date_trunc('month', make_timestamp(2024, 5, 6, 7, 8, 9)) = 2024-05-01 00:00:00", Overloads: []Overload{{
		Args: []Matcher{varchar, timestamp}, Result: always(columnar.Timestamp), Fallible: true,
		Bind: func(_ []arrow.DataType, constants []arrow.Array) (Kernel, error) {
			return byPart(columnar.Timestamp, true, constants, func(c *call, unit kernel.Part) (arrow.Array, error) {
				return kernel.TruncateTime(c.env.Mem, c.args[1].Array(), unit, c.env.Location, c.mode(false))
			})
		},
	}}}
}

func datePartScalar() *Scalar {
	s := &Scalar{Name: "date_part", Aliases: []string{"datepart", "extract"}, Doc: "A part of a date or time as a whole number, in the session time zone; also written EXTRACT(part FROM x). The parts second and epoch, written out, have their fraction.", Example: "date_part('dayofyear', make_date(2024, 2, 1)) = 32", Overloads: []Overload{{
		Args: []Matcher{varchar, anyTime}, Result: always(columnar.Int64), Fallible: true,
		Bind: func(_ []arrow.DataType, constants []arrow.Array) (Kernel, error) {
			return byPart(columnar.Int64, false, constants, func(c *call, part kernel.Part) (arrow.Array, error) {
				return kernel.ExtractTime(c.env.Mem, c.args[1].Array(), part, c.env.Location), nil
			})
		},
	}}}
	s.Overloads = append(s.Overloads, Overload{
		Args: []Matcher{varchar, interval}, Result: always(columnar.Int64), Fallible: true,
		Bind: func(_ []arrow.DataType, constants []arrow.Array) (Kernel, error) {
			return byPart(columnar.Int64, false, constants, func(c *call, part kernel.Part) (arrow.Array, error) {
				in := numbersOf[arrow.MonthDayNanoInterval](c.args[1])
				return fixedRows(c, func(i int) int64 { return intervalPart(in.at(i), part) })
			})
		},
	})
	return s
}

// exactSecondScalar is the part second of a time: Spark gives it its fraction, but not to
// the function second.
func exactSecondScalar() *Scalar {
	dt := columnar.Decimal(8, 6)
	return define("second_with_fraction", "The second of a time, or of an interval, with its fraction; also written EXTRACT(second FROM x).", "second_with_fraction(make_timestamp(2024, 5, 6, 7, 8, 9.5)) = 9.500000", []Matcher{anyTime}, dt, func(c *call) (arrow.Array, error) {
		us := kernel.ExtractTime(c.env.Mem, c.args[0].Array(), kernel.Microsecond, c.env.Location)
		defer us.Release()
		in := kernel.Values[int64](us)
		return fixedRows(c, func(i int) decimal128.Num { return decimal128.FromI64(in[i]) })
	}).alsoFor([]Matcher{interval}, dt, func(c *call) (arrow.Array, error) {
		in := numbersOf[arrow.MonthDayNanoInterval](c.args[0])
		return fixedRows(c, func(i int) decimal128.Num { return decimal128.FromI64(intervalPart(in.at(i), kernel.Microsecond)) })
	})
}

// intervalPart is a part of an interval as it is written: 1 year 2 months 3 days …
func intervalPart(v arrow.MonthDayNanoInterval, part kernel.Part) int64 {
	us := v.Nanoseconds / 1000
	switch part {
	case kernel.Year:
		return int64(v.Months / 12)
	case kernel.Quarter:
		return int64(v.Months%12)/3 + 1
	case kernel.Month:
		return int64(v.Months % 12)
	case kernel.Week, kernel.WeekOfYear:
		return int64(v.Days / 7)
	case kernel.Day, kernel.DayOfYear:
		return int64(v.Days)
	case kernel.Hour:
		return us / columnar.MicrosPerHour
	case kernel.Minute:
		return us / columnar.MicrosPerMinute % 60
	case kernel.Second:
		return us / columnar.MicrosPerSecond % 60
	case kernel.Millisecond:
		return us % columnar.MicrosPerMinute / 1000
	case kernel.Microsecond:
		return us % columnar.MicrosPerMinute
	case kernel.Epoch:
		return int64(v.Months)*30*86400 + int64(v.Days)*86400 + us/columnar.MicrosPerSecond
	}
	return 0
}

// fromSeconds is to_timestamp: seconds since 1970, or text, with a format if it is
// not ISO.
func fromSeconds() *Scalar {
	seconds := func(m Matcher) Overload {
		return Overload{Args: []Matcher{m}, Result: always(columnar.Timestamp), Fallible: true, Bind: castTo(columnar.Timestamp)}
	}
	return &Scalar{Name: "to_timestamp", Aliases: []string{"timestamp_seconds", "to_timestamp_ltz"}, Doc: "Seconds since 1970 as a TIMESTAMP; or a text read as one, in ISO form or in the form of a pattern (see strptime).", Example: "to_timestamp(90.5) = 1970-01-01 00:01:30.500000",
		Overloads: []Overload{seconds(decimalType), seconds(floatType), seconds(varchar), seconds(timestamp), parseOverload()}}
}

// castTo binds a function of one argument that is a cast.
func castTo(to arrow.DataType) func([]arrow.DataType, []arrow.Array) (Kernel, error) {
	return func([]arrow.DataType, []arrow.Array) (Kernel, error) {
		return func(env *Env, args []columnar.Datum, rows int, active *columnar.Bitmap) (columnar.Datum, error) {
			return Cast(env, args[0], to, false, rows, active)
		}, nil
	}
}

func epochScalar() *Scalar {
	s := &Scalar{Name: "unix_timestamp", Aliases: []string{"to_unix_timestamp", "unix_seconds"}, Doc: "Whole seconds since 1970 of a time, a date, or a text that reads as one, in ISO form or in the form of a pattern (see strptime); of the batch if none is given.", Example: "unix_timestamp(make_timestamp(1970, 1, 2, 0, 0, 0)) = 86400", Overloads: []Overload{
		{Args: []Matcher{timestamp}, Result: always(columnar.Int64), Bind: castTo(columnar.Int64)},
		{Args: []Matcher{varchar}, Result: always(columnar.Int64), Fallible: true, Bind: func([]arrow.DataType, []arrow.Array) (Kernel, error) {
			return func(env *Env, args []columnar.Datum, rows int, active *columnar.Bitmap) (columnar.Datum, error) {
				at, err := Cast(env, args[0], columnar.Timestamp, false, rows, active)
				if err != nil {
					return columnar.Datum{}, err
				}
				defer at.Release()
				return Cast(env, at, columnar.Int64, false, rows, active)
			}, nil
		}},
		{Result: always(columnar.Int64), Volatility: Stable, Bind: func([]arrow.DataType, []arrow.Array) (Kernel, error) {
			return func(env *Env, _ []columnar.Datum, _ int, _ *columnar.Bitmap) (columnar.Datum, error) {
				return columnar.Constant(env.Mem, columnar.Int64, columnar.FloorDiv(env.Now, columnar.MicrosPerSecond))
			}, nil
		}},
	}}
	s.Overloads = append(s.Overloads, unixTimeByPattern()...)
	return s
}

// scaled is a number of units of so many microseconds as TIMESTAMP, and back.
func scaled(name, doc, example string, micros int64, aliases ...string) *Scalar {
	return &Scalar{Name: name, Aliases: aliases, Doc: doc, Example: example, Overloads: []Overload{
		{Args: []Matcher{timestamp}, Result: always(columnar.Int64), Bind: func([]arrow.DataType, []arrow.Array) (Kernel, error) {
			return onRows(columnar.Int64, func(c *call) (arrow.Array, error) {
				in := numbersOf[int64](c.args[0])
				return fixedRows(c, func(i int) int64 { return columnar.FloorDiv(in.at(i), micros) })
			}), nil
		}},
		{Args: []Matcher{bigint}, Result: always(columnar.Timestamp), Fallible: true, Bind: func([]arrow.DataType, []arrow.Array) (Kernel, error) {
			return onRows(columnar.Timestamp, func(c *call) (arrow.Array, error) {
				in := numbersOf[int64](c.args[0])
				return fallibleRows(c, func(i int) (int64, error) {
					v := in.at(i)
					if v > math.MaxInt64/micros || v < math.MinInt64/micros {
						return 0, &kernel.ValueError{Kind: kernel.ErrOverflow, Text: fmt.Sprintf("%s(%d) overflows TIMESTAMP", name, v)}
					}
					return v * micros, nil
				})
			}), nil
		}},
	}}
}

// dateAddScalar is a date moved by days or an interval, or a time by units.
func dateAddScalar(name, doc, example string, sign int64, aliases ...string) *Scalar {
	return &Scalar{Name: name, Aliases: aliases, Doc: doc, Example: example, Overloads: []Overload{
		moveDate(date, integerType, 0, 1, sign, false),
		moveTime(timestamp, interval, 0, 1, sign, false),
		{Args: []Matcher{varchar, bigint, timestamp}, Result: always(columnar.Timestamp), Fallible: true, Bind: func(_ []arrow.DataType, constants []arrow.Array) (Kernel, error) {
			return byPart(columnar.Timestamp, true, constants, func(c *call, unit kernel.Part) (arrow.Array, error) {
				n, at := numbersOf[int64](c.args[1]), numbersOf[int64](c.args[2])
				one, _ := columnar.IntervalUnit(unitWord(unit))
				return fallibleRows(c, func(i int) (int64, error) {
					by, err := scaleInterval(one, n.at(i))
					if err != nil {
						return 0, err
					}
					v, ok := kernel.AddInterval(at.at(i), by, sign, c.env.Location)
					if !ok {
						return 0, &kernel.ValueError{Kind: kernel.ErrOverflow, Text: fmt.Sprintf("%s moved by %s overflows TIMESTAMP", columnar.AppendTimestamp(nil, at.at(i), nil), columnar.AppendInterval(nil, by))}
					}
					return v, nil
				})
			})
		}},
	}}
}

var unitWords = [...]string{"microsecond", "millisecond", "second", "minute", "hour", "day", "week", "month", "quarter", "year", "decade", "century", "millennium"}

func unitWord(p kernel.Part) string { return unitWords[p] }

func addMonthsScalar() *Scalar {
	return &Scalar{Name: "add_months", Doc: "A date moved by months; the day is cut to the length of the month it arrives in.", Example: "add_months(make_date(2024, 1, 31), 1) = 2024-02-29", Overloads: []Overload{{
		Args: []Matcher{date, bigint}, Result: always(columnar.Date), Fallible: true,
		Bind: func([]arrow.DataType, []arrow.Array) (Kernel, error) {
			return onRows(columnar.Date, func(c *call) (arrow.Array, error) {
				days, months := numbersOf[int32](c.args[0]), numbersOf[int64](c.args[1])
				return fallibleRows(c, func(i int) (int32, error) {
					by, err := scaleInterval(arrow.MonthDayNanoInterval{Months: 1}, months.at(i))
					if err != nil {
						return 0, err
					}
					d := kernel.AddMonths(int64(days.at(i)), int64(by.Months))
					if int64(int32(d)) != d {
						return 0, &kernel.ValueError{Kind: kernel.ErrOverflow, Text: fmt.Sprintf("a date moved by %d months overflows DATE", months.at(i))}
					}
					return int32(d), nil
				})
			}), nil
		},
	}}}
}

func monthsBetweenScalar() *Scalar {
	run := func(c *call) (arrow.Array, error) {
		a, b := numbersOf[int64](c.args[0]), numbersOf[int64](c.args[1])
		return fixedRows(c, func(i int) float64 {
			v := monthsBetween(a.at(i), b.at(i), c.env.Location)
			if len(c.args) > 2 && !columnar.Value(c.args[2].Array(), c.place(2, i)).(bool) {
				return v
			}
			return math.Round(v*1e8) / 1e8
		})
	}
	return define("months_between", "Months from the second time to the first, with a fraction of a month of 31 days; whole if both are the same day of the month or the last. To eight digits after the point, unless a third argument is false.", "months_between(make_date(2024, 3, 31), make_date(2024, 2, 29)) = 1",
		[]Matcher{timestamp, timestamp}, columnar.Float64, run).alsoFor([]Matcher{timestamp, timestamp, boolean}, columnar.Float64, run)
}

func monthsBetween(a, b int64, loc *time.Location) float64 {
	ad, aus := columnar.LocalDay(a, loc)
	bd, bus := columnar.LocalDay(b, loc)
	ay, am, aday := columnar.CivilFromDays(ad)
	by, bm, bday := columnar.CivilFromDays(bd)
	months := float64((ay-by)*12 + int64(am-bm))
	if aday == bday || aday == columnar.DaysInMonth(ay, am) && bday == columnar.DaysInMonth(by, bm) {
		return months
	}
	rest := (int64(aday-bday))*columnar.MicrosPerDay + aus - bus
	return months + float64(rest)/float64(31*columnar.MicrosPerDay)
}

func lastDayScalar() *Scalar {
	return &Scalar{Name: "last_day", Doc: "The last day of the month a date lies in.", Example: "last_day(make_date(2024, 2, 3)) = 2024-02-29", Overloads: []Overload{{
		Args: []Matcher{date}, Result: always(columnar.Date), Fallible: true,
		Bind: func([]arrow.DataType, []arrow.Array) (Kernel, error) {
			return onRows(columnar.Date, func(c *call) (arrow.Array, error) {
				in := numbersOf[int32](c.args[0])
				return fallibleRows(c, func(i int) (int32, error) {
					y, m, _ := columnar.CivilFromDays(int64(in.at(i)))
					return dateOf(columnar.DaysFromCivil(y, m, columnar.DaysInMonth(y, m)), "the last day of the month of", in.at(i))
				})
			}), nil
		},
	}}}
}

// dateDiffScalar is datediff(end, start) in days and datediff(unit, start, end).
func dateDiffScalar() *Scalar {
	return &Scalar{Name: "datediff", Aliases: []string{"date_diff", "timestampdiff"}, Doc: "Days from the second date to the first; with a unit first, whole units from the second argument to the third.", Example: "datediff(make_date(2024, 3, 1), make_date(2024, 2, 28)) = 2", Overloads: []Overload{
		{Args: []Matcher{date, date}, Result: always(columnar.Int32), Bind: func([]arrow.DataType, []arrow.Array) (Kernel, error) { return daysBetween(), nil }},
		{Args: []Matcher{timestamp, timestamp}, Result: always(columnar.Int32), Bind: func([]arrow.DataType, []arrow.Array) (Kernel, error) { return daysBetween(), nil }},
		{Args: []Matcher{varchar, timestamp, timestamp}, Result: always(columnar.Int64), Fallible: true, Bind: func(_ []arrow.DataType, constants []arrow.Array) (Kernel, error) {
			return byPart(columnar.Int64, true, constants, func(c *call, unit kernel.Part) (arrow.Array, error) {
				from, to := numbersOf[int64](c.args[1]), numbersOf[int64](c.args[2])
				return fallibleRows(c, func(i int) (int64, error) {
					a, b := from.at(i), to.at(i)
					if d := b - a; unit == kernel.Microsecond && (b^a)&(b^d) < 0 {
						return 0, &kernel.ValueError{Kind: kernel.ErrOverflow, Text: "the microseconds between the two times overflow BIGINT"}
					}
					return kernel.CountUnits(a, b, unit, c.env.Location), nil
				})
			})
		}},
	}}
}

// daysBetween counts the dates between two times.
func daysBetween() Kernel {
	return onRows(columnar.Int32, func(c *call) (arrow.Array, error) {
		end, start := c.localDays(0), c.localDays(1)
		return fixedRows(c, func(i int) int32 { return int32(end(i) - start(i)) })
	})
}

func makeDateScalar() *Scalar {
	return &Scalar{Name: "make_date", Doc: "The date of a year, month and day.", Example: "make_date(2024, 2, 29) = 2024-02-29", Overloads: []Overload{{
		Args: []Matcher{bigint, bigint, bigint}, Result: always(columnar.Date), Fallible: true,
		Bind: func([]arrow.DataType, []arrow.Array) (Kernel, error) {
			return onRows(columnar.Date, func(c *call) (arrow.Array, error) {
				y, m, d := numbersOf[int64](c.args[0]), numbersOf[int64](c.args[1]), numbersOf[int64](c.args[2])
				return fallibleRows(c, func(i int) (int32, error) {
					days, err := civil(y.at(i), m.at(i), d.at(i))
					return int32(days), err
				})
			}), nil
		},
	}}}
}

// civil is the day of a DATE, counted from 1970.
func civil(y, m, d int64) (int64, error) {
	const furthest = 6_000_000 // a year that is none of a DATE
	if y > -furthest && y < furthest && m >= 1 && m <= 12 && d >= 1 && d <= int64(columnar.DaysInMonth(y, int(m))) {
		if day := columnar.DaysFromCivil(y, int(m), int(d)); day == int64(int32(day)) {
			return day, nil
		}
	}
	return 0, fmt.Errorf("there is no date with year %d, month %d, day %d", y, m, d)
}

// makeTimestampScalar is make_timestamp(year, month, day, hour, minute, second [, zone]). A
// second 60 without a fraction begins the next minute, as in Spark.
func makeTimestampScalar() *Scalar {
	run := func(c *call) (arrow.Array, error) {
		var n [5]numbers[int64]
		for k := range n {
			n[k] = numbersOf[int64](c.args[k])
		}
		second := numbersOf[float64](c.args[5])
		zones := newZones(c)
		return fallibleRows(c, func(i int) (int64, error) {
			days, err := civil(n[0].at(i), n[1].at(i), n[2].at(i))
			if err != nil {
				return 0, err
			}
			h, m, s := n[3].at(i), n[4].at(i), second.at(i)
			if h < 0 || h > 23 || m < 0 || m > 59 || !(s >= 0 && s < 60 || s == 60) {
				return 0, fmt.Errorf("there is no time of day %d:%02d:%v", h, m, s)
			}
			loc := c.env.Location
			if len(c.args) > 6 {
				if loc, err = zones(6, i); err != nil {
					return 0, err
				}
			}
			us := h*columnar.MicrosPerHour + m*columnar.MicrosPerMinute + int64(math.Round(s*1e6))
			at, ok := columnar.Instant(days, us, loc)
			if !ok {
				return 0, &kernel.ValueError{Kind: kernel.ErrOverflow, Text: fmt.Sprintf("year %d overflows TIMESTAMP", n[0].at(i))}
			}
			return at, nil
		})
	}
	fields := []Matcher{bigint, bigint, bigint, bigint, bigint, double}
	f := defineFallible("make_timestamp", "The instant at which a clock in a time zone, that of the session unless one is named, shows a year, month, day, hour, minute and second.", "make_timestamp(2024, 2, 29, 12, 30, 1.5) = 2024-02-29 12:30:01.500000",
		fields, columnar.Timestamp, run, "make_timestamp_ltz").alsoFor(append(fields[:6:6], varchar), columnar.Timestamp, run)
	return textChecked(f, 6, columnar.LoadZone)
}

func fromUTCScalar(name, doc, example string, from bool) *Scalar {
	return &Scalar{Name: name, Doc: doc, Example: example, Overloads: []Overload{{
		Args: []Matcher{timestamp, varchar}, Result: always(columnar.Timestamp), Fallible: true,
		Bind: func(_ []arrow.DataType, constants []arrow.Array) (Kernel, error) {
			if name, ok := constantText(constants, 1); ok {
				if _, err := columnar.LoadZone(name); err != nil {
					return nil, err
				}
			}
			return onRows(columnar.Timestamp, func(c *call) (arrow.Array, error) {
				at, zones := numbersOf[int64](c.args[0]), kernel.TextsOf(c.args[1])
				cache := newCompiled(func(name, _ string) (*time.Location, error) { return columnar.LoadZone(name) })
				return fallibleRows(c, func(i int) (int64, error) {
					loc, err := cache.get(zones.At(i), "")
					if err != nil {
						return 0, err
					}
					if from {
						return moveZone(at.at(i), loc, time.UTC)
					}
					return moveZone(at.at(i), time.UTC, loc)
				})
			}), nil
		},
	}}}
}

// moveZone is the instant at which a clock in the zone to shows what one in the zone from shows
// at an instant.
func moveZone(at int64, from, to *time.Location) (int64, error) {
	day, us := columnar.LocalDay(at, from)
	moved, ok := columnar.Instant(day, us, to)
	if !ok {
		return 0, &kernel.ValueError{Kind: kernel.ErrOverflow, Text: fmt.Sprintf("what clocks in %s show at %s overflows TIMESTAMP in %s", zoneName(from), columnar.AppendTimestamp(nil, at, nil), zoneName(to))}
	}
	return moved, nil
}

// zoneName is for messages; nil is UTC.
func zoneName(loc *time.Location) string {
	if loc == nil {
		return "UTC"
	}
	return loc.String()
}

// dateOf is a day, counted from 1970, that what is said of a date, as a DATE.
func dateOf(day int64, what string, of int32) (int32, error) {
	if int64(int32(day)) != day {
		return 0, &kernel.ValueError{Kind: kernel.ErrOverflow, Text: fmt.Sprintf("%s %s overflows DATE", what, columnar.AppendDate(nil, int64(of)))}
	}
	return int32(day), nil
}

// makeIntervalScalar is make_interval and to_days and the like in one: make_interval('day', 3), and
// Spark's make_interval(years, months, weeks, days, hours, minutes, seconds), of which any may be
// left out from the end.
func makeIntervalScalar() *Scalar {
	f := &Scalar{Name: "make_interval", Doc: "So many units of time as an INTERVAL; or so many years, months, weeks, days, hours, minutes and seconds, of which the last may be left out.", Example: "make_interval('hour', 36) = 36:00:00", Overloads: []Overload{{
		Args: []Matcher{varchar, bigint}, Result: always(columnar.Interval), Fallible: true,
		Bind: func(_ []arrow.DataType, constants []arrow.Array) (Kernel, error) {
			return byPart(columnar.Interval, true, constants, func(c *call, unit kernel.Part) (arrow.Array, error) {
				one, _ := columnar.IntervalUnit(unitWord(unit))
				n := numbersOf[int64](c.args[1])
				return fallibleRows(c, func(i int) (arrow.MonthDayNanoInterval, error) { return scaleInterval(one, n.at(i)) })
			})
		},
	}}}
	parts := []Matcher{bigint, bigint, bigint, bigint, bigint, bigint, double}
	for n := range len(parts) + 1 {
		f.alsoFor(parts[:n], columnar.Interval, intervalOfParts)
	}
	return f
}

func intervalOfParts(c *call) (arrow.Array, error) {
	var n [6]numbers[int64]
	var seconds numbers[float64]
	for k, a := range c.args {
		if k < len(n) {
			n[k] = numbersOf[int64](a)
		} else {
			seconds = numbersOf[float64](a)
		}
	}
	return fallibleRows(c, func(i int) (arrow.MonthDayNanoInterval, error) {
		at := func(k int, times int64) *big.Int {
			if k >= len(c.args) {
				return new(big.Int)
			}
			return new(big.Int).Mul(big.NewInt(n[k].at(i)), big.NewInt(times))
		}
		months, days := new(big.Int).Add(at(0, 12), at(1, 1)), new(big.Int).Add(at(2, 7), at(3, 1))
		micros := new(big.Int).Add(at(4, columnar.MicrosPerHour), at(5, columnar.MicrosPerMinute))
		if len(c.args) > len(n) {
			us := math.RoundToEven(seconds.at(i) * 1e6)
			if !(math.Abs(us) < 1<<63) {
				return arrow.MonthDayNanoInterval{}, errIntervalParts
			}
			micros.Add(micros, big.NewInt(int64(us)))
		}
		nanos := micros.Mul(micros, big.NewInt(1000))
		out := arrow.MonthDayNanoInterval{Months: int32(months.Int64()), Days: int32(days.Int64()), Nanoseconds: nanos.Int64()}
		if !months.IsInt64() || !days.IsInt64() || !nanos.IsInt64() || int64(out.Months) != months.Int64() || int64(out.Days) != days.Int64() {
			return out, errIntervalParts
		}
		return out, nil
	})
}

var errIntervalParts = &kernel.ValueError{Kind: kernel.ErrOverflow, Text: "so much time overflows INTERVAL"}
