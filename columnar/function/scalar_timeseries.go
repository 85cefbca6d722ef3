package function

import (
	"fmt"
	"math"

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
	zone := c.env.Zone()
	return sequences(c, columnar.Timestamp, func(dst []int64, i int) ([]int64, error) {
		from := first.at(i)
		way := timeWay{first: from, last: last.at(i), step: step(i), micros: 1, moved: func(by arrow.MonthDayNanoInterval) (int64, bool) {
			return kernel.AddInterval(from, by, 1, zone)
		}}
		way.even = way.step.Months == 0 && way.step.Nanoseconds%1000 == 0 && (way.step.Days == 0 || columnar.IsUTC(zone))
		return appendTimes(c, dst, &way)
	})
}

// dateSequences is timeSequences of days: by whole days and months.
func dateSequences(c *call) (arrow.Array, error) {
	first, last := numbersOf[int32](c.args[0]), numbersOf[int32](c.args[1])
	step := stepsOf(c, func(i int) bool { return first.at(i) > last.at(i) })
	return sequences(c, columnar.Date, func(dst []int32, i int) ([]int32, error) {
		if err := wholeDays(step(i)); err != nil {
			return nil, err
		}
		from := int64(first.at(i))
		return appendTimes(c, dst, &timeWay{first: from, last: int64(last.at(i)), step: step(i), micros: columnar.MicrosPerDay, moved: func(by arrow.MonthDayNanoInterval) (int64, bool) {
			return kernel.MoveDay(from, by, 1)
		}})
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

// timeWay is what one row asks for: the places, instants or days, from one to another by a step.
type timeWay struct {
	first, last int64
	step        arrow.MonthDayNanoInterval
	micros      int64 // how long one place is
	// moved is the first place moved; not ok beyond all places.
	moved func(by arrow.MonthDayNanoInterval) (int64, bool)
	even  bool // all steps are as long as the first
}

// appendTimes appends the places on a way to dst.
func appendTimes[T int32 | int64](c *call, dst []T, w *timeWay) ([]T, error) {
	second, ok := w.moved(w.step)
	if !ok || w.first == w.last {
		// A step beyond all places ends the way, if it goes there.
		days, nanos := columnar.IntervalLength(w.step)
		onward := days > 0 || days == 0 && nanos > 0
		if w.first == w.last || onward == (w.first < w.last) {
			return append(dst, T(w.first)), nil
		}
	}
	if !ok || second == w.first || (second > w.first) != (w.last > w.first) {
		return nil, fmt.Errorf("a sequence by %s never arrives; give the step the sign of the way", columnar.AppendInterval(nil, w.step))
	}
	if w.surelyTooMany() {
		return nil, errTooMany("sequence", maxElements+1)
	}
	forth := second > w.first
	for k, at := int64(1), w.first; forth && at <= w.last || !forth && at >= w.last; k++ {
		if dst = append(dst, T(at)); k > maxElements {
			return nil, errTooMany("sequence", k)
		}
		if k%roomEvery == 0 {
			if err := c.room(8 * int64(len(dst))); err != nil {
				return nil, err
			}
		}
		if w.even {
			next := at + (second - w.first)
			if (next > at) != forth {
				break // beyond all times
			}
			at = next
			continue
		}
		moved, err := scaleInterval(w.step, k)
		if err != nil {
			return nil, err
		}
		if at, ok = w.moved(moved); !ok {
			break
		}
	}
	return dst, nil
}

// surelyTooMany says whether steps as long as they can be, a month of 31 days and a day of
// 25 hours, are still too many.
func (w *timeWay) surelyTooMany() bool {
	way := float64(uint64(max(w.first, w.last))-uint64(min(w.first, w.last))) * float64(w.micros)
	longest := (math.Abs(float64(w.step.Months))*31+math.Abs(float64(w.step.Days)))*25*3600e6 + math.Abs(float64(w.step.Nanoseconds))/1000
	return way > longest*maxElements
}
