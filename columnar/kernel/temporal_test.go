package kernel_test

import (
	"math"
	"testing"
	"time"
	_ "time/tzdata"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/memory"

	"github.com/tidemill/tidemill/columnar"
	"github.com/tidemill/tidemill/columnar/columnartest"
	"github.com/tidemill/tidemill/columnar/kernel"
)

func loadZone(t *testing.T, name string) *time.Location {
	t.Helper()
	loc, err := time.LoadLocation(name)
	if err != nil {
		t.Fatal(err)
	}
	return loc
}

// trunc is the reference of TruncateTime for units from a day on, and in UTC.
func trunc(v time.Time, unit kernel.Part) (time.Time, bool) {
	y, m, d := v.Date()
	at := func(y int, m time.Month, d int) (time.Time, bool) {
		return time.Date(y, m, d, 0, 0, 0, 0, v.Location()), true
	}
	switch unit {
	case kernel.Day:
		return at(y, m, d)
	case kernel.Week:
		return at(y, m, d-(int(v.Weekday())+6)%7)
	case kernel.Month:
		return at(y, m, 1)
	case kernel.Quarter:
		return at(y, (m-1)/3*3+1, 1)
	case kernel.Year:
		return at(y, 1, 1)
	case kernel.Hour:
		return v.Add(-time.Duration(v.Minute())*time.Minute - time.Duration(v.Second())*time.Second - time.Duration(v.Nanosecond())), true
	case kernel.Minute:
		return v.Add(-time.Duration(v.Second())*time.Second - time.Duration(v.Nanosecond())), true
	}
	return v, false
}

func checkTimeLaws(t *testing.T, mem memory.Allocator, loc *time.Location) {
	t.Helper()
	n := 500
	a := columnartest.RandomColumn(t, mem, columnar.Timestamp, 3, columnartest.RandomOptions{Rows: n})
	zone := loc
	if zone == nil {
		zone = time.UTC
	}
	local := func(i int) time.Time {
		return time.UnixMicro(int64(a.(*array.Timestamp).Value(i))).In(zone)
	}
	for unit := kernel.Minute; unit <= kernel.Year; unit++ {
		got := truncated(t, mem, a, unit, loc)
		for i := range n {
			if a.IsNull(i) {
				continue
			}
			want, ok := trunc(local(i), unit)
			// Wall clocks that do not exist or exist twice are settled otherwise by
			// the time package.
			if g := int64(got.(*array.Timestamp).Value(i)); ok && g != want.UnixMicro() && time.UnixMicro(g).In(zone).Format(time.DateTime) != want.Format(time.DateTime) {
				t.Fatalf("%v cut to %d: %v, want %v", local(i), unit, time.UnixMicro(g).In(zone), want)
			}
		}
		got.Release()
	}
	for part := kernel.Minute; part <= kernel.Epoch; part++ {
		got := kernel.ExtractTime(mem, a, part, loc)
		for i := range n {
			if a.IsNull(i) {
				continue
			}
			v := local(i)
			isoYear, isoWeek := v.ISOWeek()
			want := map[kernel.Part]int{
				kernel.Minute: v.Minute(), kernel.Hour: v.Hour(), kernel.Day: v.Day(), kernel.Week: isoWeek, kernel.WeekOfYear: isoWeek, kernel.Month: int(v.Month()),
				kernel.Quarter: (int(v.Month())-1)/3 + 1, kernel.Year: v.Year(), kernel.Decade: v.Year() / 10, kernel.Century: (v.Year()-1)/100 + 1, kernel.Millennium: (v.Year()-1)/1000 + 1,
				kernel.DayOfWeek: int(v.Weekday()) + 1, kernel.ISODayOfWeek: (int(v.Weekday())+6)%7 + 1, kernel.DayOfYear: v.YearDay(), kernel.ISOYear: isoYear, kernel.Epoch: int(v.Unix()),
			}[part]
			if g := got.(*array.Int64).Value(i); g != int64(want) {
				t.Fatalf("part %d of %v: %d, want %d", part, v, g, want)
			}
		}
		got.Release()
	}
}

func TestWindowStart(t *testing.T) {
	t.Parallel()
	mem := columnartest.Mem(t)
	times := []int64{0, 1, -1, 9, 10, 11, -10, -11, 999_999_999_999, -999_999_999_999, math.MaxInt64, math.MinInt64 + 100}
	b := columnar.NewBuilder(mem, columnar.Timestamp)
	defer b.Release()
	for _, v := range times {
		_ = b.Append(v)
	}
	a := b.NewArray()
	defer a.Release()
	for _, slide := range []int64{1, 7, 10, 1 << 40} {
		for _, origin := range []int64{0, 3, -3, 12, -12, math.MaxInt64, math.MinInt64} {
			for k := range int64(2) {
				got, err := kernel.WindowStarts(mem, columnar.ColumnDatum(a), len(times), slide, origin, k, kernel.Mode{Try: true})
				if err != nil {
					t.Fatal(err)
				}
				for i, v := range times {
					if got.IsNull(i) {
						if v > math.MinInt64+100+2*slide {
							t.Fatalf("%d in windows of %d is null", v, slide)
						}
						continue
					}
					start := int64(got.(*array.Timestamp).Value(i)) + k*slide
					if start > v || v-start >= slide || columnar.FloorMod(start, slide) != columnar.FloorMod(origin, slide) {
						t.Fatalf("%d is in the window from %d (slide %d, origin %d)", v, start, slide, origin)
					}
				}
				got.Release()
			}
		}
	}
	if _, err := kernel.WindowStarts(mem, columnar.ColumnDatum(a), len(times), 0, 0, 0, kernel.Mode{}); err == nil {
		t.Errorf("a slide of nothing is accepted")
	}
}

func TestCountUnits(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		from, to string
		unit     kernel.Part
		want     int64
	}{
		{"2024-01-31", "2024-02-29", kernel.Month, 0},
		{"2024-02-29", "2024-01-31", kernel.Month, 0},
		{"2024-01-31", "2024-03-31", kernel.Month, 2},
		{"2024-03-01", "2024-01-31", kernel.Month, -1},
		{"1969-12-31 23:59:59", "1970-01-01 00:00:01", kernel.Second, 2},
		{"1970-01-01 00:00:01", "1969-12-31 23:59:59.5", kernel.Second, -1},
		{"2024-01-01", "2024-01-08", kernel.Week, 1},
		{"2024-01-01 12:00:00", "2024-01-08 11:00:00", kernel.Week, 0},
		{"2020-02-29", "2024-02-28", kernel.Year, 3},
	} {
		from, _ := columnar.ParseTimestamp(c.from, nil)
		to, _ := columnar.ParseTimestamp(c.to, nil)
		if got := kernel.CountUnits(from, to, c.unit, nil); got != c.want {
			t.Errorf("from %s to %s: %d units of %d, want %d", c.from, c.to, got, c.unit, c.want)
		}
	}
	if got := kernel.CountUnits(math.MinInt64, math.MaxInt64, kernel.Day, nil); got != 213503982 {
		t.Errorf("all of time is %d days", got)
	}
}

// TestSubtractTimes checks that a difference added to the subtrahend is the minuend.
func TestSubtractTimes(t *testing.T) {
	t.Parallel()
	mem := columnartest.Mem(t)
	n := 200
	a := columnar.ColumnDatum(columnartest.RandomColumn(t, mem, columnar.Timestamp, 1, columnartest.RandomOptions{Rows: n}))
	b := columnar.ColumnDatum(columnartest.RandomColumn(t, mem, columnar.Timestamp, 2, columnartest.RandomOptions{Rows: n}))
	d := kernel.SubtractTimes(mem, a, b, n)
	defer d.Release()
	back, err := kernel.AddIntervals(mem, b, columnar.ColumnDatum(d), n, 1, nil, kernel.Mode{})
	if err != nil {
		t.Fatal(err)
	}
	defer back.Release()
	for i := range n {
		if !back.IsNull(i) && at(columnar.ColumnDatum(back), i) != at(a, i) {
			t.Fatalf("row %d: %s + %s = %s, want %s", i, text(b.Array(), i), text(d, i), text(back, i), text(a.Array(), i))
		}
		v := d.(*array.MonthDayNanoInterval).Value(i)
		if !d.IsNull(i) && (int64(v.Days) > 0 && v.Nanoseconds < 0 || v.Days < 0 && v.Nanoseconds > 0) {
			t.Fatalf("mixed signs: %v", v)
		}
	}
}

// TestAddIntervalConstant checks that the fast path agrees with the slow one.
func TestAddIntervalConstant(t *testing.T) {
	t.Parallel()
	mem := columnartest.Mem(t)
	n := 100
	a := columnartest.RandomColumn(t, mem, columnar.Timestamp, 1, columnartest.RandomOptions{Rows: n})
	for _, by := range []arrow.MonthDayNanoInterval{{Days: 3, Nanoseconds: -5000}, {Nanoseconds: 1e12}, {Days: -400}, {Months: -7}, {Months: 1, Days: 1, Nanoseconds: 1}} {
		for _, loc := range []*time.Location{nil, loadZone(t, "Europe/Berlin")} {
			one, err := columnar.Constant(mem, columnar.Interval, by)
			if err != nil {
				t.Fatal(err)
			}
			defer one.Release()
			for _, sign := range []int64{1, -1} {
				got, err := kernel.AddIntervals(mem, columnar.ColumnDatum(a), one, n, sign, loc, kernel.Mode{})
				if err != nil {
					t.Fatal(err)
				}
				for i := range n {
					if a.IsNull(i) {
						continue
					}
					want, _ := kernel.AddInterval(int64(a.(*array.Timestamp).Value(i)), by, sign, loc)
					if g := int64(got.(*array.Timestamp).Value(i)); g != want {
						t.Fatalf("%s + %v: %d, want %d", text(a, i), by, g, want)
					}
				}
				got.Release()
			}
		}
	}
}
