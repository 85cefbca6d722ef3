package function

import (
	"fmt"
	"math"

	"github.com/apache/arrow-go/v18/arrow"

	"github.com/tidemill/tidemill/columnar"
	"github.com/tidemill/tidemill/columnar/kernel"
)

// timeSequences are the instants from one to another, each a multiple of the step from the
// first, so that the days of months do not drift.
func timeSequences(c *call) (arrow.Array, error) {
	first, last, step := numbersOf[int64](c.args[0]), numbersOf[int64](c.args[1]), numbersOf[arrow.MonthDayNanoInterval](c.args[2])
	valid, nulls := c.validity()
	var values []int64
	buf, ends := kernel.Make[int32](c.env.Mem, c.rows+1)
	ends[0] = 0
	for i := range c.rows {
		if isSet(valid, i) && c.active.Get(i) {
			var err error
			if values, err = appendTimes(values, first.at(i), last.at(i), step.at(i), c.env); err != nil {
				buf.Release()
				releaseBuffer(valid)
				return nil, err
			}
		}
		ends[i+1] = int32(len(values))
	}
	data, out := kernel.Make[int64](c.env.Mem, len(values))
	copy(out, values)
	return kernel.WrapList(c.out, c.rows, nulls, valid, buf, kernel.Wrap(columnar.Timestamp, len(values), 0, nil, data)), nil
}

func appendTimes(dst []int64, first, last int64, step arrow.MonthDayNanoInterval, env *Env) ([]int64, error) {
	second, ok := kernel.AddInterval(first, step, 1, env.Zone())
	if !ok || second == first || second > first && first > last || second < first && first < last {
		if first == last {
			return append(dst, first), nil
		}
		return nil, fmt.Errorf("a sequence by %s never arrives; give the step the sign of the way", columnar.AppendInterval(nil, step))
	}
	if surelyTooMany(first, last, step) {
		return nil, errTooMany("sequence", maxElements+1)
	}
	for k, at := int64(1), first; second > first && at <= last || second < first && at >= last; k++ {
		if dst = append(dst, at); k > maxElements {
			return nil, errTooMany("sequence", k)
		}
		moved, err := scaleInterval(step, k)
		if err != nil {
			return nil, err
		}
		if at, ok = kernel.AddInterval(first, moved, 1, env.Zone()); !ok {
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
