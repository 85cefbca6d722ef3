package function

import (
	"math/big"
	"slices"

	"github.com/apache/arrow-go/v18/arrow"

	"github.com/tidemill/tidemill/columnar"
)

// intervalCases are the aggregates of intervals, and percentiles of times and of several
// shares.
func intervalCases() []aggCase {
	types := func(t ...arrow.DataType) []arrow.DataType { return t }
	lists := columnar.ListOf(columnar.Float64)
	return []aggCase{
		{name: "sum", args: types(columnar.Interval), want: wantIntervals(false)},
		{name: "avg", args: types(columnar.Interval), want: wantIntervals(true)},
		{name: "mode", args: types(columnar.Interval), want: wantMode},
		{name: "mode", args: types(columnar.String), want: wantMode},
		{name: "min_by", args: types(columnar.Interval, columnar.Interval), want: wantBy(-1)},
		{name: "median", args: types(columnar.Timestamp), want: wantTimes(func(v []int64) any { return arrow.Timestamp(middle(v)) })},
		{name: "median", args: types(columnar.Time), want: wantTimes(func(v []int64) any { return arrow.Time64(middle(v)) })},
		{name: "percentile_disc", args: types(columnar.Date, columnar.Float64), constant: "0.25", want: wantTimes(func(v []int64) any { return arrow.Date32(v[(len(v)+3)/4-1]) })},
		{name: "percentile_disc", args: types(columnar.Timestamp, lists), constant: "[0,0.25,1]", want: func(rows []aggRow) any {
			v := times(rows)
			if v == nil {
				return nil
			}
			return []any{arrow.Timestamp(v[0]), arrow.Timestamp(v[(len(v)+3)/4-1]), arrow.Timestamp(v[len(v)-1])}
		}},
		{name: "percentile_disc", args: types(columnar.Int64, columnar.Float64), constant: "0.55", want: wantPlace(func(n int) int { return (n*55 + 99) / 100 })},
		{name: "percentile_disc", args: types(columnar.Decimal(38, 5), columnar.Float64), constant: "0.55", want: wantPlace(func(n int) int { return (n*55 + 99) / 100 })},
		{name: "percentile_disc", args: types(columnar.Decimal(9, 2), lists), constant: "[1,0]", want: func(rows []aggRow) any {
			if wantFirst(false, true)(rows) == nil {
				return nil
			}
			return []any{wantPlace(func(n int) int { return n })(rows), wantPlace(func(int) int { return 1 })(rows)}
		}},
		{name: "percentile", args: types(columnar.Float64, lists), constant: "[0.5,0.3,1]", want: func(rows []aggRow) any {
			if wantFirst(false, true)(rows) == nil {
				return nil
			}
			return []any{wantPercentile(0.5)(rows), wantPercentile(0.3)(rows), wantPercentile(1)(rows)}
		}},
	}
}

func wantIntervals(mean bool) func(rows []aggRow) any {
	return func(rows []aggRow) any {
		rows = present(rows)
		if len(rows) == 0 {
			return nil
		}
		var months, days, nanos int64
		for _, r := range rows {
			v := r.args[0].(arrow.MonthDayNanoInterval)
			months, days, nanos = months+int64(v.Months), days+int64(v.Days), nanos+v.Nanoseconds
		}
		n := int64(1)
		if mean {
			n = int64(len(rows))
		}
		v, _ := columnar.DivideInterval(months, days, big.NewInt(nanos), new(big.Rat).SetInt64(n))
		return v
	}
}

// wantPlace is the value at a place, from 1, of those that are there in order.
func wantPlace(place func(n int) int) func(rows []aggRow) any {
	return func(rows []aggRow) any {
		rows = present(rows)
		if len(rows) == 0 {
			return nil
		}
		slices.SortFunc(rows, func(x, y aggRow) int { return compareAny(x.args[0], y.args[0]) })
		return rows[place(len(rows))-1].args[0]
	}
}

func wantMode(rows []aggRow) any {
	var best any
	most := 0
	for _, r := range present(rows) {
		n := 0
		for _, o := range present(rows) {
			n += b2i(compareAny(o.args[0], r.args[0]) == 0)
		}
		if n > most || n == most && compareAny(r.args[0], best) < 0 {
			best, most = r.args[0], n
		}
	}
	return best
}

// times are the values of rows in order; nil if there are none.
func times(rows []aggRow) []int64 {
	var v []int64
	for _, r := range rows {
		switch x := r.args[0].(type) {
		case arrow.Timestamp:
			v = append(v, int64(x))
		case arrow.Time64:
			v = append(v, int64(x))
		case arrow.Date32:
			v = append(v, int64(x))
		}
	}
	slices.Sort(v)
	return v
}

func wantTimes(of func(sorted []int64) any) func(rows []aggRow) any {
	return func(rows []aggRow) any {
		if v := times(rows); v != nil {
			return of(v)
		}
		return nil
	}
}

// middle is the middle of sorted values, half a microsecond away from the lower.
func middle(v []int64) int64 {
	low, high := v[(len(v)-1)/2], v[len(v)/2]
	return low + (high-low+1)/2
}
