package function

import (
	"fmt"
	"math"
	"time"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"

	"github.com/tidemill/tidemill/columnar"
	"github.com/tidemill/tidemill/columnar/kernel"
)

// timeSequences are the instants from one to another, each a multiple of the step from the
// first, so that the days of months do not drift. Without a step it is a day, either way.
func timeSequences(c *call) (arrow.Array, error) {
	first, last := numbersOf[int64](c.args[0]), numbersOf[int64](c.args[1])
	step := stepsOf(c, func(i int) bool { return first.at(i) > last.at(i) })
	return sequences(c, columnar.Timestamp, func(dst []int64, i int) ([]int64, error) {
		return c.appendTimes(dst, 0, first.at(i), last.at(i), step(i), c.env.Zone())
	})
}

// dateSequences is timeSequences of days: by whole days and months.
func dateSequences(c *call) (arrow.Array, error) {
	first, last := numbersOf[int32](c.args[0]), numbersOf[int32](c.args[1])
	step := stepsOf(c, func(i int) bool { return first.at(i) > last.at(i) })
	var times []int64
	return sequences(c, columnar.Date, func(dst []int32, i int) (_ []int32, err error) {
		if err := wholeDays(step(i)); err != nil {
			return nil, err
		}
		times, err = c.appendTimes(times[:0], len(dst), int64(first.at(i))*columnar.MicrosPerDay, int64(last.at(i))*columnar.MicrosPerDay, step(i), time.UTC)
		for _, t := range times {
			dst = append(dst, int32(t/columnar.MicrosPerDay))
		}
		return dst, err
	})
}

// dateSequence is the overload for dates. A constant step with a time of day is refused
// before there are rows.
func dateSequence() Overload {
	o := overload([]Matcher{date, date, interval}, columnar.ListOf(columnar.Date), dateSequences)
	bind := o.Bind
	o.Fallible = true
	o.Bind = func(types []arrow.DataType, constants []arrow.Array) (Kernel, error) {
		if step, ok := constants[2].(*array.MonthDayNanoInterval); ok && step.Len() > 0 && step.IsValid(0) {
			if err := wholeDays(step.Value(0)); err != nil {
				return nil, err
			}
		}
		return bind(types, constants)
	}
	return o
}

func wholeDays(step arrow.MonthDayNanoInterval) error {
	if step.Nanoseconds == 0 {
		return nil
	}
	return fmt.Errorf("a sequence of dates goes by whole days and months, not by %s; cast the dates to TIMESTAMP", columnar.AppendInterval(nil, step))
}

// stepsOf is the step of each row: the third argument, or a day, backwards where back says so.
func stepsOf(c *call, back func(i int) bool) func(i int) arrow.MonthDayNanoInterval {
	if len(c.args) > 2 {
		return numbersOf[arrow.MonthDayNanoInterval](c.args[2]).at
	}
	return func(i int) arrow.MonthDayNanoInterval {
		if back(i) {
			return arrow.MonthDayNanoInterval{Days: -1}
		}
		return arrow.MonthDayNanoInterval{Days: 1}
	}
}

// roomEvery is after how many values of a row memory is asked for.
const roomEvery = 1 << 14

// sequences is the list of each row, made by extend.
func sequences[T int32 | int64](c *call, elem arrow.DataType, extend func(dst []T, i int) ([]T, error)) (arrow.Array, error) {
	valid, nulls := c.validity()
	var values []T
	buf, ends := kernel.Make[int32](c.env.Mem, c.rows+1)
	ends[0] = 0
	for i := range c.rows {
		if isSet(valid, i) && c.active.Get(i) {
			var err error
			if values, err = extend(values, i); err == nil {
				err = c.room(8 * int64(len(values)))
			}
			if err != nil {
				buf.Release()
				releaseBuffer(valid)
				return nil, err
			}
		}
		ends[i+1] = int32(len(values))
	}
	data, out := kernel.Make[T](c.env.Mem, len(values))
	copy(out, values)
	return kernel.WrapList(c.out, c.rows, nulls, valid, buf, kernel.Wrap(elem, len(values), 0, nil, data)), nil
}

// appendTimes appends the times of one row to dst; the rows before have made so many others.
func (c *call) appendTimes(dst []int64, before int, first, last int64, step arrow.MonthDayNanoInterval, zone *time.Location) ([]int64, error) {
	second, ok := kernel.AddInterval(first, step, 1, zone)
	if !ok || second == first || second > first && first > last || second < first && first < last {
		if first == last {
			return append(dst, first), nil
		}
		return nil, fmt.Errorf("a sequence by %s never arrives; give the step the sign of the way", columnar.AppendInterval(nil, step))
	}
	if surelyTooMany(first, last, step) {
		return nil, errTooMany("sequence", maxElements+1)
	}
	even := step.Months == 0 && step.Nanoseconds%1000 == 0 && (step.Days == 0 || columnar.IsUTC(zone)) // all steps are as long as the first
	for k, at := int64(1), first; second > first && at <= last || second < first && at >= last; k++ {
		if dst = append(dst, at); k > maxElements {
			return nil, errTooMany("sequence", k)
		}
		if k%roomEvery == 0 {
			if err := c.room(8 * int64(before+len(dst))); err != nil {
				return nil, err
			}
		}
		if even {
			next := at + (second - first)
			if (next > at) != (second > first) {
				break // beyond all times
			}
			at = next
			continue
		}
		moved, err := scaleInterval(step, k)
		if err != nil {
			return nil, err
		}
		if at, ok = kernel.AddInterval(first, moved, 1, zone); !ok {
			break // beyond all times
		}
	}
	return dst, nil
}

// surelyTooMany says whether steps as long as they can be, a month of 31 days and a day of
// 25 hours, are still too many.
func surelyTooMany(first, last int64, step arrow.MonthDayNanoInterval) bool {
	way := uint64(max(first, last)) - uint64(min(first, last))
	longest := (math.Abs(float64(step.Months))*31+math.Abs(float64(step.Days)))*25*3600e6 + math.Abs(float64(step.Nanoseconds))/1000
	return float64(way) > longest*maxElements
}
