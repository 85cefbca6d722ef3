package kernel

import (
	"fmt"
	"math"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/memory"

	"github.com/tidemill/tidemill/columnar"
)

// Rounding is a direction to round in.
type Rounding uint8

// The directions: up, down, to the nearest with halves away from zero, towards zero, to the
// nearest with halves to the even neighbour.
const (
	Ceil Rounding = iota
	Floor
	HalfUp
	TowardZero
	HalfEven
)

// Round is the numbers of a with digits after the point, or tens, hundreds and so on
// for negative digits, as type out: that of a for integers and floats (ceil and floor
// of floats included), a decimal for decimals. Overflow is an error.
func Round(mem memory.Allocator, a arrow.Array, way Rounding, digits int64, out arrow.DataType, m Mode) (arrow.Array, error) {
	digits = max(min(digits, 1000), -1000) // no number has as many
	n := a.Len()
	valid, nulls := AndValidity(mem, n, columnar.ColumnDatum(a))
	g := arithArgs{mem: mem, rows: n, m: m, out: out, valid: valid, nulls: nulls}
	switch a.DataType().ID() {
	case arrow.INT8:
		return roundInts[int8](g, a, way, digits)
	case arrow.INT16:
		return roundInts[int16](g, a, way, digits)
	case arrow.INT32:
		return roundInts[int32](g, a, way, digits)
	case arrow.INT64:
		return roundInts[int64](g, a, way, digits)
	case arrow.FLOAT32:
		return roundFloats[float32](g, a, way, digits)
	case arrow.FLOAT64:
		return roundFloats[float64](g, a, way, digits)
	case arrow.DECIMAL128:
		return roundDecimals(g, a, way, digits)
	}
	release(valid)
	panic("bug: rounding of " + a.DataType().String())
}

func roundInts[T integer](g arithArgs, a arrow.Array, way Rounding, digits int64) (arrow.Array, error) {
	in := Values[T](a)
	buf, out := Make[T](g.mem, g.rows)
	if digits >= 0 {
		copy(out, in)
		return g.finish(buf, false, nil)
	}
	failed := false
	for i, v := range in {
		r, ok := roundInt(int64(v), way, -digits)
		out[i] = T(r)
		failed = failed || !ok || int64(T(r)) != r
	}
	return g.finish(buf, failed, func(i int) error {
		if r, ok := roundInt(int64(in[i]), way, -digits); ok && int64(T(r)) == r {
			return nil
		}
		return overflow(fmt.Sprintf("%d rounded to %d digits", in[i], digits), g.out)
	})
}

// roundInt makes the last digits of v zero.
func roundInt(v int64, way Rounding, digits int64) (int64, bool) {
	if digits > 19 {
		digits = 19
	}
	u, negative := magnitude(fromInt(v))
	r, ok := u.round(way, int32(digits), negative).scaleUp(int32(digits))
	if !ok || r[1]|r[2]|r[3] != 0 || r[0] > 1<<63 || r[0] == 1<<63 && !negative {
		return 0, false
	}
	if negative {
		return -int64(r[0]), true
	}
	return int64(r[0]), true
}

// round divides a magnitude by ten to the k, rounding the signed value as told.
func (u wideUint) round(way Rounding, k int32, negative bool) wideUint {
	if k <= 0 {
		return u
	}
	if way == HalfUp {
		return u.scaleDown(k)
	}
	if way == HalfEven {
		return u.roundEven(k)
	}
	q := u.cut(k)
	back, _ := q.scaleUp(k)
	if back != u && (way == Ceil && !negative || way == Floor && negative) {
		q = q.increment()
	}
	return q
}

// roundEven divides by ten to the k, k at least one, and rounds half to the even neighbour.
func (u wideUint) roundEven(k int32) wideUint {
	near, down, digits := u.scaleDown(k), u.cut(k), u.cut(k-1)
	whole, _ := digits.scaleUp(k - 1)
	if isHalf := whole == u && digits[0]-10*down[0] == 5; isHalf && near[0]&1 == 1 {
		return down
	}
	return near
}

func roundFloats[T float32 | float64](g arithArgs, a arrow.Array, way Rounding, digits int64) (arrow.Array, error) {
	in := Values[T](a)
	buf, out := Make[T](g.mem, g.rows)
	for i, v := range in {
		out[i] = T(roundFloat(float64(v), way, digits))
	}
	return g.finish(buf, false, nil)
}

func roundFloat(v float64, way Rounding, digits int64) float64 {
	if digits == 0 {
		return roundWhole(v, way)
	}
	if math.IsNaN(v) || math.IsInf(v, 0) || digits > 308 {
		return v
	}
	if digits < -308 {
		return 0
	}
	scale := math.Pow10(int(max(digits, -digits)))
	if digits < 0 {
		return roundWhole(v/scale, way) * scale
	}
	scaled := v * scale
	if math.Abs(scaled) >= 1<<52 || math.IsInf(scaled, 0) {
		return v // has no digits to drop
	}
	// 1.005 * 100 is 100.49999999999999: a product within an ulp or two of a half is
	// one that was meant to be it.
	if way == HalfUp || way == HalfEven {
		if nudged := math.Nextafter(scaled, math.Copysign(math.Inf(1), scaled)); math.Abs(nudged-math.Trunc(nudged)) == 0.5 {
			scaled = nudged
		}
	}
	return roundWhole(scaled, way) / scale
}

func roundWhole(v float64, way Rounding) float64 {
	switch way {
	case Ceil:
		return math.Ceil(v)
	case Floor:
		return math.Floor(v)
	case HalfUp:
		return math.Round(v)
	case HalfEven:
		return math.RoundToEven(v)
	}
	return math.Trunc(v)
}

func roundDecimals(g arithArgs, a arrow.Array, way Rounding, digits int64) (arrow.Array, error) {
	in := Values[num](a)
	from, to := a.DataType().(*arrow.Decimal128Type), g.out.(*arrow.Decimal128Type)
	drop := int32(max(min(int64(from.Scale)-digits, 76), 0))
	round := func(v num) (num, bool) {
		u, negative := magnitude(v)
		u = u.round(way, drop, negative)
		// What remains has scale from.Scale-drop and is brought to that of the result.
		if k := to.Scale - (from.Scale - drop); k >= 0 {
			var ok bool
			if u, ok = u.scaleUp(k); !ok {
				return num{}, false
			}
		} else {
			u = u.scaleDown(-k)
		}
		return u.signed(negative, to.Precision)
	}
	buf, out := Make[num](g.mem, g.rows)
	failed := false
	for i, v := range in {
		r, ok := round(v)
		out[i] = r
		failed = failed || !ok
	}
	return g.finish(buf, failed, func(i int) error {
		if _, ok := round(in[i]); ok {
			return nil
		}
		return overflow(fmt.Sprintf("%s rounded to %d digits", columnar.AppendDecimal(nil, in[i], from.Scale), digits), g.out)
	})
}
