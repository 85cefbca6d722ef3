package ipc

import (
	"fmt"
	"math"
	"math/bits"
	"time"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/decimal128"

	"github.com/tidemill/tidemill/columnar"
	"github.com/tidemill/tidemill/formats/codec"
)

// conversion makes n values of the engine's type of values of a fixed width. The zero
// value is that of a type the engine has as it is.
type conversion struct {
	// width is the bytes of a value in the engine.
	width int
	run   func(dst, src []byte, n int, zone *time.Location)
	// fits says whether a value fits; nil: all do. What run makes of one that does not,
	// as a row that is null may hold, does not matter.
	fits func(src []byte, i int) bool
}

func (f *field) setInt(width int, signed bool) error {
	f.layout, f.width = layoutFixed, width/8
	switch {
	case signed:
		types := map[int]arrow.DataType{8: columnar.Int8, 16: columnar.Int16, 32: columnar.Int32, 64: columnar.Int64}
		f.typ = types[width]
	case width == 8:
		f.typ, f.convert = columnar.Int16, numbers[uint8, int16](2)
	case width == 16:
		f.typ, f.convert = columnar.Int32, numbers[uint16, int32](4)
	case width == 32:
		f.typ, f.convert = columnar.Int64, numbers[uint32, int64](8)
	case width == 64:
		f.typ, f.convert = columnar.Decimal(20, 0), conversion{width: 16, run: func(dst, src []byte, n int, _ *time.Location) {
			d := arrow.Decimal128Traits.CastFromBytes(dst)[:n]
			for i, v := range arrow.Uint64Traits.CastFromBytes(src)[:n] {
				d[i] = decimal128.FromU64(v)
			}
		}}
	}
	switch {
	case f.typ != nil:
	case width == 128:
		f.why = "it is an integer of 128 bits (cast it to a decimal or a text where it is written)"
	default:
		return errMetadata
	}
	return nil
}

type number interface {
	~uint8 | ~uint16 | ~uint32 | ~int32 | ~int64 | ~int16 | ~float32
}

func numbers[A, B number](width int) conversion {
	return conversion{width: width, run: func(dst, src []byte, n int, _ *time.Location) {
		d := arrow.GetData[B](dst)[:n]
		for i, v := range arrow.GetData[A](src)[:n] {
			d[i] = B(v)
		}
	}}
}

func (f *field) setFloat(precision int) error {
	f.layout = layoutFixed
	switch precision {
	case 0:
		f.width, f.typ = 2, columnar.Float32
		f.convert = conversion{width: 4, run: func(dst, src []byte, n int, _ *time.Location) {
			codec.FromHalfs(arrow.Float32Traits.CastFromBytes(dst)[:n], src)
		}}
	case 1:
		f.width, f.typ = 4, columnar.Float32
	case 2:
		f.width, f.typ = 8, columnar.Float64
	default:
		return errMetadata
	}
	return nil
}

func (f *field) setTemporal(number int, t table) error {
	f.layout = layoutFixed
	switch number {
	case typeDecimal:
		return f.setDecimal(t.i32(0, 0), t.i32(1, 0), t.i32(2, 128))
	case typeDate:
		f.width, f.typ = 4, columnar.Date
		if t.i16(0, 1) == 1 { // milliseconds
			f.width, f.convert = 8, dateOfMillis
		}
	case typeTime:
		return f.setTime(t.i16(0, 1), t.i32(1, 32))
	case typeTimestamp:
		return f.setTimestamp(t.i16(0, 0), t.text(1))
	case typeInterval:
		return f.setInterval(t.i16(0, 0))
	case typeDuration:
		return f.setDuration(t.i16(0, 1))
	}
	return nil
}

// setDecimal takes decimals of 32 to 256 bits, if the engine has their digits.
func (f *field) setDecimal(precision, scale, width int) error {
	f.width = width / 8
	if width != 32 && width != 64 && width != 128 && width != 256 || precision < 1 || precision > 76 {
		return errMetadata
	}
	if precision > columnar.MaxPrecision || scale < 0 || scale > precision {
		f.why = fmt.Sprintf("it is a decimal of %d digits, %d of them behind the point", precision, scale)
		return nil
	}
	f.typ = columnar.Decimal(int32(precision), int32(scale))
	switch width {
	case 32:
		f.convert = decimals(func(src []byte, i int) int64 { return int64(arrow.Int32Traits.CastFromBytes(src)[i]) })
	case 64:
		f.convert = decimals(func(src []byte, i int) int64 { return arrow.Int64Traits.CastFromBytes(src)[i] })
	case 256:
		f.convert = conversion{width: 16, run: func(dst, src []byte, n int, _ *time.Location) {
			for i := range n {
				copy(dst[16*i:16*i+16], src[32*i:])
			}
		}, fits: func(src []byte, i int) bool {
			w := arrow.Int64Traits.CastFromBytes(src[32*i:])
			sign := w[1] >> 63
			return w[2] == sign && w[3] == sign
		}}
	}
	return nil
}

func decimals(value func(src []byte, i int) int64) conversion {
	return conversion{width: 16, run: func(dst, src []byte, n int, _ *time.Location) {
		d := arrow.Decimal128Traits.CastFromBytes(dst)[:n]
		for i := range d {
			d[i] = decimal128.FromI64(value(src, i))
		}
	}}
}

const (
	dayMillis  = 24 * 60 * 60 * 1000
	secondNano = 1_000_000_000
)

var dateOfMillis = conversion{width: 4, run: func(dst, src []byte, n int, _ *time.Location) {
	d := arrow.Int32Traits.CastFromBytes(dst)[:n]
	for i, v := range arrow.Int64Traits.CastFromBytes(src)[:n] {
		d[i] = int32(columnar.FloorDiv(v, dayMillis))
	}
}, fits: func(src []byte, i int) bool {
	v := columnar.FloorDiv(arrow.Int64Traits.CastFromBytes(src)[i], dayMillis)
	return v == int64(int32(v))
}}

// setTime takes seconds and milliseconds of 32 bits, micro- and nanoseconds of 64.
func (f *field) setTime(unit, width int) error {
	f.width, f.typ = width/8, columnar.Time
	switch {
	case width == 32 && unit <= 1 && unit >= 0:
		factor := int64([...]int{1_000_000, 1_000}[unit])
		f.convert = conversion{width: 8, run: func(dst, src []byte, n int, _ *time.Location) {
			d := arrow.Int64Traits.CastFromBytes(dst)[:n]
			for i, v := range arrow.Int32Traits.CastFromBytes(src)[:n] {
				d[i] = int64(v) * factor
			}
		}, fits: func(src []byte, i int) bool { return isTime(int64(arrow.Int32Traits.CastFromBytes(src)[i]) * factor) }}
	case width == 64 && unit == 2:
		f.convert = conversion{width: 8, run: func(dst, src []byte, n int, _ *time.Location) {
			copy(dst, src[:8*n])
		}, fits: func(src []byte, i int) bool { return isTime(arrow.Int64Traits.CastFromBytes(src)[i]) }}
	case width == 64 && unit == 3:
		f.convert = floored(1000)
		f.convert.fits = func(src []byte, i int) bool {
			return isTime(columnar.FloorDiv(arrow.Int64Traits.CastFromBytes(src)[i], 1000))
		}
	default:
		return errMetadata
	}
	return nil
}

// isTime says whether microseconds are a time of day.
func isTime(us int64) bool { return us >= 0 && us < columnar.MicrosPerDay }

func floored(by int64) conversion {
	return conversion{width: 8, run: func(dst, src []byte, n int, _ *time.Location) {
		d := arrow.Int64Traits.CastFromBytes(dst)[:n]
		for i, v := range arrow.Int64Traits.CastFromBytes(src)[:n] {
			d[i] = columnar.FloorDiv(v, by)
		}
	}}
}

// setTimestamp takes any unit. Without a zone the values are wall clocks.
func (f *field) setTimestamp(unit int, zone string) error {
	f.width, f.typ = 8, columnar.Timestamp
	switch unit {
	case 0:
		f.convert = multiplied(1_000_000)
	case 1:
		f.convert = multiplied(1_000)
	case 2:
		f.convert = conversion{width: 8}
	case 3:
		f.convert = floored(1000)
	default:
		return errMetadata
	}
	if zone != "" {
		return nil
	}
	scale := f.convert.run
	f.convert.run = func(dst, src []byte, n int, zone *time.Location) {
		if scale != nil {
			scale(dst, src, n, zone)
		} else {
			copy(dst, src[:8*n])
		}
		if !columnar.IsUTC(zone) {
			d := arrow.Int64Traits.CastFromBytes(dst)[:n]
			for i, wall := range d {
				d[i] = columnar.FromLocal(wall, zone)
			}
		}
	}
	return nil
}

func multiplied(by int64) conversion {
	return conversion{width: 8, run: func(dst, src []byte, n int, _ *time.Location) {
		d := arrow.Int64Traits.CastFromBytes(dst)[:n]
		for i, v := range arrow.Int64Traits.CastFromBytes(src)[:n] {
			d[i] = v * by
		}
	}, fits: func(src []byte, i int) bool {
		v := arrow.Int64Traits.CastFromBytes(src)[i]
		return v >= math.MinInt64/by && v <= math.MaxInt64/by
	}}
}

func (f *field) setInterval(unit int) error {
	f.typ = columnar.Interval
	intervals := func(of func(src []byte, i int) arrow.MonthDayNanoInterval) conversion {
		return conversion{width: 16, run: func(dst, src []byte, n int, _ *time.Location) {
			d := arrow.MonthDayNanoIntervalTraits.CastFromBytes(dst)[:n]
			for i := range d {
				d[i] = of(src, i)
			}
		}}
	}
	switch unit {
	case 0: // months
		f.width, f.convert = 4, intervals(func(src []byte, i int) arrow.MonthDayNanoInterval {
			return arrow.MonthDayNanoInterval{Months: arrow.Int32Traits.CastFromBytes(src)[i]}
		})
	case 1: // days and milliseconds
		f.width, f.convert = 8, intervals(func(src []byte, i int) arrow.MonthDayNanoInterval {
			v := arrow.Int32Traits.CastFromBytes(src)[2*i:]
			return arrow.MonthDayNanoInterval{Days: v[0], Nanoseconds: int64(v[1]) * 1_000_000}
		})
	case 2:
		f.width = 16
	default:
		return errMetadata
	}
	return nil
}

// setDuration makes intervals of durations.
func (f *field) setDuration(unit int) error {
	if unit < 0 || unit > 3 {
		return errMetadata
	}
	by := [...]int64{secondNano, 1_000_000, 1_000, 1}[unit]
	f.width, f.typ = 8, columnar.Interval
	f.convert = conversion{width: 16, run: func(dst, src []byte, n int, _ *time.Location) {
		d := arrow.MonthDayNanoIntervalTraits.CastFromBytes(dst)[:n]
		for i, v := range arrow.Int64Traits.CastFromBytes(src)[:n] {
			d[i] = arrow.MonthDayNanoInterval{Nanoseconds: v * by}
		}
	}, fits: func(src []byte, i int) bool {
		high, low := bits.Mul64(magnitude(arrow.Int64Traits.CastFromBytes(src)[i]), uint64(by))
		return high == 0 && low <= math.MaxInt64
	}}
	return nil
}

func magnitude(v int64) uint64 {
	if v < 0 {
		return -uint64(v)
	}
	return uint64(v)
}
