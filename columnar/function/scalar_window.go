package function

import (
	"fmt"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"

	"github.com/tidemill/tidemill/columnar"
	"github.com/tidemill/tidemill/columnar/kernel"
)

// windowScalars are what event-time windows are computed with. __window_start is for
// plans, not for people: its name cannot be written without quotes.
func windowScalars() []*Scalar {
	return []*Scalar{
		{
			Name: "__window_start", Doc: "The start of the window that contains a time and began k slides before the latest that does; windows begin every slide microseconds from start on.",
			Example: "__window_start(to_timestamp(-1), 10000000, 5000000, 0) = 1969-12-31 23:59:55",
			Overloads: []Overload{{
				Args: []Matcher{timestamp, bigint, bigint, bigint}, Result: always(columnar.Timestamp), Fallible: true,
				Bind: func([]arrow.DataType, []arrow.Array) (Kernel, error) {
					return onRows(columnar.Timestamp, windowStarts), nil
				},
			}},
		},
		{
			Name: "window_time", Doc: "The last microsecond of a window, given its end; it carries the watermark like the end.",
			Example: "window_time(to_timestamp(10)) = 1970-01-01 00:00:09.999999",
			Overloads: []Overload{{
				Args: []Matcher{timestamp}, Result: always(columnar.Timestamp),
				Bind: func([]arrow.DataType, []arrow.Array) (Kernel, error) {
					return onRows(columnar.Timestamp, func(c *call) (arrow.Array, error) {
						in := numbersOf[int64](c.args[0])
						return fixedRows(c, func(i int) int64 { return in.at(i) - 1 })
					}), nil
				},
			}},
		},
		timeBucketScalar(),
	}
}

// windowStarts has a fast path for the usual case: everything but the time is
// constant.
func windowStarts(c *call) (arrow.Array, error) {
	same := true
	for _, a := range c.args[1:] {
		same = same && a.IsConstant()
	}
	var n [3]numbers[int64]
	for k := range n {
		n[k] = numbersOf[int64](c.args[k+1])
	}
	if same && n[0].at(0) > 0 {
		return kernel.WindowStarts(c.env.Mem, c.args[0], c.rows, n[0].at(0), n[1].at(0), n[2].at(0), c.mode(false))
	}
	at := numbersOf[int64](c.args[0])
	return fallibleRows(c, func(i int) (int64, error) {
		v, slide, back := at.at(i), n[0].at(i), n[2].at(i)
		if slide <= 0 {
			return 0, fmt.Errorf("a window must slide by more than nothing, not by %d microseconds", slide)
		}
		by := back * slide
		if by/slide != back {
			return 0, &kernel.ValueError{Kind: kernel.ErrOverflow, Text: fmt.Sprintf("%d windows of %d microseconds overflows TIMESTAMP", back, slide)}
		}
		start := kernel.WindowStart(v, slide, n[1].at(i))
		if start > v || (start^by)&(start^(start-by)) < 0 {
			return 0, &kernel.ValueError{Kind: kernel.ErrOverflow, Text: fmt.Sprintf("the window of %s overflows TIMESTAMP", columnar.AppendTimestamp(nil, v, nil))}
		}
		return start - by, nil
	})
}

// timeBucketScalar is time_bucket(width, time [, origin]).
func timeBucketScalar() *Scalar {
	bind := func(_ []arrow.DataType, constants []arrow.Array) (Kernel, error) {
		if err := checkWidth(constants[0]); err != nil {
			return nil, err
		}
		return onRows(columnar.Timestamp, func(c *call) (arrow.Array, error) {
			width, at := numbersOf[arrow.MonthDayNanoInterval](c.args[0]), numbersOf[int64](c.args[1])
			return fallibleRows(c, func(i int) (int64, error) {
				w := width.at(i)
				if w.Months != 0 {
					return monthBucket(w, at.at(i), c, i)
				}
				slide, err := bucketWidth(w)
				if err != nil {
					return 0, err
				}
				origin := int64(0)
				if len(c.args) > 2 {
					origin = numbersOf[int64](c.args[2]).at(i)
				}
				return kernel.BucketStart(at.at(i), kernel.WindowStart(at.at(i), slide, origin))
			})
		}), nil
	}
	return &Scalar{Name: "time_bucket", Doc: "The start of the interval of a given width that a time lies in, counted from 1970 in UTC, as windows are, or from an origin; date_trunc goes by the session time zone.", Example: "time_bucket(make_interval('minute', 15), make_timestamp(2024, 1, 1, 10, 38, 0)) = 2024-01-01 10:30:00", Overloads: []Overload{
		{Args: []Matcher{interval, timestamp}, Result: always(columnar.Timestamp), Fallible: true, Bind: bind},
		{Args: []Matcher{interval, timestamp, timestamp}, Result: always(columnar.Timestamp), Fallible: true, Bind: bind},
	}}
}

// checkWidth refuses a width that is no width whatever the row.
func checkWidth(constant arrow.Array) error {
	if constant == nil || constant.Len() == 0 || constant.IsNull(0) || constant.DataType().ID() != arrow.INTERVAL_MONTH_DAY_NANO {
		return nil
	}
	w := constant.(*array.MonthDayNanoInterval).Value(0)
	if w.Months != 0 {
		return checkMonths(w)
	}
	_, err := bucketWidth(w)
	return err
}

func checkMonths(w arrow.MonthDayNanoInterval) error {
	if w.Days != 0 || w.Nanoseconds != 0 || w.Months < 0 {
		return fmt.Errorf("time_bucket: the width %s mixes months with days, or is negative", columnar.AppendInterval(nil, w))
	}
	return nil
}

// bucketWidth is a width without months, in microseconds.
func bucketWidth(w arrow.MonthDayNanoInterval) (int64, error) {
	slide := int64(w.Days)*columnar.MicrosPerDay + w.Nanoseconds/1000
	if slide <= 0 {
		return 0, fmt.Errorf("time_bucket: the width %s is not positive", columnar.AppendInterval(nil, w))
	}
	return slide, nil
}

// monthBucket is the bucket of whole months, counted from January 1970 or the month
// of the origin.
func monthBucket(w arrow.MonthDayNanoInterval, at int64, c *call, i int) (int64, error) {
	if err := checkMonths(w); err != nil {
		return 0, err
	}
	month := func(us int64) int64 {
		y, m, _ := columnar.CivilFromDays(columnar.FloorDiv(us, columnar.MicrosPerDay))
		return y*12 + int64(m) - 1
	}
	origin := int64(0)
	if len(c.args) > 2 {
		origin = numbersOf[int64](c.args[2]).at(i)
	}
	m := kernel.WindowStart(month(at), int64(w.Months), month(origin))
	days := columnar.DaysFromCivil(columnar.FloorDiv(m, 12), int(columnar.FloorMod(m, 12))+1, 1)
	return kernel.BucketStart(at, days*columnar.MicrosPerDay)
}
