package kernel

import (
	"fmt"
	"math"
	"math/big"
	"math/bits"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/decimal128"

	"github.com/tidemill/tidemill/columnar"
)

// num is the unscaled value of a decimal.
type num = decimal128.Num

// wideUint is a magnitude of 256 bits, least significant word first: the product of
// two decimals before it is rounded.
type wideUint [4]uint64

// magnitude splits v into its absolute value and its sign.
func magnitude(v num) (wideUint, bool) {
	negative := v.Sign() < 0
	if negative {
		v = v.Negate()
	}
	return wideUint{v.LowBits(), uint64(v.HighBits())}, negative
}

// signed is u as a decimal if it is less than ten to the precision.
func (u wideUint) signed(negative bool, precision int32) (num, bool) {
	v := decimal128.New(int64(u[1]), u[0])
	if u[2]|u[3] != 0 || int64(u[1]) < 0 || !v.Less(decimal128.GetScaleMultiplier(int(precision))) {
		return num{}, false
	}
	if negative {
		v = v.Negate()
	}
	return v, true
}

// times is u times a magnitude of 128 bits; ok is false beyond 256.
func (u wideUint) times(lo, hi uint64) (p wideUint, ok bool) {
	ok = true
	for j, w := range [2]uint64{lo, hi} {
		carry := uint64(0)
		if w == 0 {
			continue
		}
		for i, v := range u {
			h, l := bits.Mul64(v, w)
			if i+j > 3 {
				ok = ok && h|l|carry == 0
				continue
			}
			var c uint64
			l, c = bits.Add64(l, carry, 0)
			h += c
			p[i+j], c = bits.Add64(p[i+j], l, 0)
			carry = h + c
		}
		ok = ok && carry == 0
	}
	return p, ok
}

// over is u divided by a word, and the remainder.
func (u wideUint) over(d uint64) (q wideUint, rem uint64) {
	high := 3
	for high > 0 && u[high] == 0 {
		high--
	}
	for i := high; i >= 0; i-- {
		q[i], rem = bits.Div64(rem, u[i], d)
	}
	return q, rem
}

// scaleUp multiplies by ten to the k, 0 <= k <= 76.
func (u wideUint) scaleUp(k int32) (wideUint, bool) {
	ok := true
	for k > 0 && ok {
		step := min(k, 38)
		m := decimal128.GetScaleMultiplier(int(step))
		u, ok = u.times(m.LowBits(), uint64(m.HighBits()))
		k -= step
	}
	return u, ok
}

// scaleDown divides by ten to the k, rounding half up: all digits but one are cut
// off first, and that one decides.
func (u wideUint) scaleDown(k int32) wideUint {
	if k == 0 {
		return u
	}
	u, digit := u.cut(k - 1).over(10)
	if digit >= 5 {
		u = u.increment()
	}
	return u
}

func (u wideUint) increment() wideUint {
	carry := uint64(1)
	for i := range u {
		u[i], carry = bits.Add64(u[i], 0, carry)
	}
	return u
}

// cut divides by ten to the k and drops the remainder.
func (u wideUint) cut(k int32) wideUint {
	for k > 0 {
		step := min(k, 19)
		u, _ = u.over(decimal128.GetScaleMultiplier(int(step)).LowBits())
		k -= step
	}
	return u
}

// fromInt is v as an unscaled value.
func fromInt(v int64) num { return decimal128.New(v>>63, uint64(v)) }

// rescale is v, of scale from, with scale to, rounded half away from zero; ok is
// false if it has more digits than precision.
func rescale(v num, from, to, precision int32) (num, bool) {
	if k := to - from; k >= 0 && k <= 18 && isShort(v) { // below 2^63 * 10^18: fits
		if k > 0 {
			v = v.Mul(decimal128.GetScaleMultiplier(int(k)))
		}
		return v, columnar.FitsPrecision(v, precision)
	}
	u, negative := magnitude(v)
	ok := true
	if to >= from {
		u, ok = u.scaleUp(to - from)
	} else {
		u = u.scaleDown(from - to)
	}
	if !ok {
		return num{}, false
	}
	return u.signed(negative, precision)
}

// bigRescaled is v times ten to the k.
func bigRescaled(v num, k int32) *big.Int {
	return new(big.Int).Mul(v.BigInt(), new(big.Int).Exp(big.NewInt(10), big.NewInt(int64(k)), nil))
}

// fromBig is b as a decimal if it has at most precision digits.
func fromBig(b *big.Int, precision int32) (num, bool) {
	if b.BitLen() > 127 {
		return num{}, false
	}
	v := decimal128.FromBigInt(b)
	return v, columnar.FitsPrecision(v, precision)
}

// decimalOp is one operation for fixed scales: those of the operands and the
// precision and scale of the result.
type decimalOp struct {
	op         ArithOp
	xs, ys     int32
	prec, s    int32
	common     int32 // the larger of xs and ys
	fx, fy     num   // factors to the common scale
	shift      int32 // the larger number of digits an operand is scaled up by
	needRescue bool
}

// isShort says whether v fits into 64 bits.
func isShort(v num) bool { return v.HighBits() == int64(v.LowBits())>>63 }

func newDecimalOp(op ArithOp, x, y, out *arrow.Decimal128Type) decimalOp {
	common := max(x.Scale, y.Scale)
	return decimalOp{
		op: op, xs: x.Scale, ys: y.Scale, prec: out.Precision, s: out.Scale, common: common,
		shift: common - min(x.Scale, y.Scale),
		fx:    decimal128.GetScaleMultiplier(int(common - x.Scale)),
		fy:    decimal128.GetScaleMultiplier(int(common - y.Scale)),
		// An operand scaled up, or the sum of two, may leave 128 bits.
		needRescue: x.Precision+common-x.Scale >= 38 || y.Precision+common-y.Scale >= 38,
	}
}

// apply computes one pair; ok is false on overflow or a zero divisor.
func (d *decimalOp) apply(x, y num) (num, bool) {
	switch d.op {
	case Add, Subtract:
		if d.op == Subtract {
			y = y.Negate()
		}
		if d.needRescue && !(isShort(x) && isShort(y) && d.shift <= 18) {
			return d.addBig(x, y)
		}
		r := x.Mul(d.fx).Add(y.Mul(d.fy))
		if d.common == d.s {
			return r, columnar.FitsPrecision(r, d.prec)
		}
		return rescale(r, d.common, d.s, d.prec)
	case Multiply:
		if d.xs+d.ys == d.s && isShort(x) && isShort(y) {
			r := x.Mul(y)
			return r, columnar.FitsPrecision(r, d.prec)
		}
		u, nx := magnitude(x)
		v, ny := magnitude(y)
		p, ok := u.times(v[0], v[1])
		if !ok {
			return num{}, false
		}
		if k := d.xs + d.ys - d.s; k > 0 {
			p = p.scaleDown(k)
		} else if p, ok = p.scaleUp(-k); !ok {
			return num{}, false
		}
		return p.signed(nx != ny, d.prec)
	case Divide:
		return d.divide(x, y)
	}
	return d.modulo(x, y)
}

// precisionLimit tells quickly of nearly all values that they have no more digits than a
// precision allows.
type precisionLimit struct {
	high  int64 // of what is 10 to the precision in 128 bits
	short int64 // 10 to the precision, or the most 64 bits hold; 0: high decides
}

func newPrecisionLimit(precision int32) precisionLimit {
	power := decimal128.GetScaleMultiplier(int(precision))
	switch {
	case power.HighBits() > 0:
		return precisionLimit{high: power.HighBits()}
	case int64(power.LowBits()) < 0:
		return precisionLimit{short: math.MaxInt64}
	}
	return precisionLimit{short: int64(power.LowBits())}
}

// holds is false where only a closer look can tell.
func (l precisionLimit) holds(hi int64, lo uint64) bool {
	if l.short > 0 {
		v := int64(lo)
		return hi == v>>63 && v < l.short && v > -l.short
	}
	return hi < l.high && hi > -l.high
}

// multiplyAll is apply for all rows. Nearly all products are of operands of 64 bits and
// far from the precision's end; for others apply decides.
func (d *decimalOp) multiplyAll(out, x, y []num, xm, ym int) (failed bool) {
	limit := newPrecisionLimit(d.prec)
	for i := range out {
		u, v := x[i&xm], y[i&ym]
		if isShort(u) && isShort(v) {
			hi, lo := multiplySigned(int64(u.LowBits()), int64(v.LowBits()))
			if limit.holds(hi, lo) {
				out[i] = decimal128.New(hi, lo)
				continue
			}
		}
		r, ok := d.apply(u, v)
		out[i] = r
		failed = failed || !ok
	}
	return failed
}

// addAll is apply for all rows, of Add and Subtract, in the same way.
func (d *decimalOp) addAll(out, x, y []num, xm, ym int) (failed bool) {
	limit := newPrecisionLimit(d.prec)
	fx, fy := int64(d.fx.LowBits()), int64(d.fy.LowBits())
	for i := range out {
		u, v := x[i&xm], y[i&ym]
		if isShort(u) && isShort(v) {
			uh, ul := multiplySigned(int64(u.LowBits()), fx)
			vh, vl := multiplySigned(int64(v.LowBits()), fy)
			hi, lo := addWide(uh, ul, vh, vl, d.op == Subtract)
			if limit.holds(hi, lo) {
				out[i] = decimal128.New(hi, lo)
				continue
			}
		}
		r, ok := d.apply(u, v)
		out[i] = r
		failed = failed || !ok
	}
	return failed
}

// multiplySigned is x times y, in two words.
func multiplySigned(x, y int64) (hi int64, lo uint64) {
	h, lo := bits.Mul64(uint64(x), uint64(y))
	return int64(h) - x>>63&y - y>>63&x, lo
}

// addWide is x plus y, or minus y, of two words each; it wraps around.
func addWide(xh int64, xl uint64, yh int64, yl uint64, minus bool) (hi int64, lo uint64) {
	if minus {
		lo, borrow := bits.Sub64(xl, yl, 0)
		return xh - yh - int64(borrow), lo
	}
	lo, carry := bits.Add64(xl, yl, 0)
	return xh + yh + int64(carry), lo
}

func (d *decimalOp) addBig(x, y num) (num, bool) {
	sum := bigRescaled(x, d.common-d.xs)
	sum.Add(sum, bigRescaled(y, d.common-d.ys))
	return roundBig(sum, d.common-d.s, d.prec)
}

// roundBig divides by ten to the k, rounding half away from zero; for a negative k it
// multiplies.
func roundBig(v *big.Int, k, precision int32) (num, bool) {
	power := new(big.Int).Exp(big.NewInt(10), big.NewInt(int64(max(k, -k))), nil)
	if k > 0 {
		v = divideBig(v, power)
	} else if k < 0 {
		v = power.Mul(power, v)
	}
	return fromBig(v, precision)
}

// divideBig is x/y, rounded half away from zero.
func divideBig(x, y *big.Int) *big.Int {
	q, r := new(big.Int).QuoRem(x, y, new(big.Int))
	if r.Abs(r).Lsh(r, 1).CmpAbs(y) >= 0 {
		q.Add(q, big.NewInt(int64(x.Sign()*y.Sign())))
	}
	return q
}

// divide is x/y with scale s: x times ten to the (s - xs + ys), over y.
func (d *decimalOp) divide(x, y num) (num, bool) {
	if y.Sign() == 0 {
		return num{}, false
	}
	k := d.s - d.xs + d.ys
	u, nx := magnitude(x)
	v, ny := magnitude(y)
	if k >= 0 && v[1] == 0 {
		if p, ok := u.scaleUp(k); ok {
			q, rem := p.over(v[0])
			if rem >= v[0]-rem {
				q = q.increment()
			}
			return q.signed(nx != ny, d.prec)
		}
	}
	if k >= 0 {
		return fromBig(divideBig(bigRescaled(x, k), y.BigInt()), d.prec)
	}
	return fromBig(divideBig(x.BigInt(), bigRescaled(y, -k)), d.prec)
}

func (d *decimalOp) modulo(x, y num) (num, bool) {
	if y.Sign() == 0 {
		return num{}, false
	}
	if u, v, ok := d.sameScale(x, y); ok && d.common == d.s {
		r := fromInt(u % v)
		return r, columnar.FitsPrecision(r, d.prec)
	}
	r := new(big.Int).Rem(bigRescaled(x, d.common-d.xs), bigRescaled(y, d.common-d.ys))
	return roundBig(r, d.common-d.s, d.prec)
}

// sameScale brings both to the common scale, if they then fit into 64 bits.
func (d *decimalOp) sameScale(x, y num) (u, v int64, ok bool) {
	if !isShort(x) || !isShort(y) || d.shift > 18 {
		return 0, 0, false
	}
	x, y = x.Mul(d.fx), y.Mul(d.fy)
	return int64(x.LowBits()), int64(y.LowBits()), isShort(x) && isShort(y)
}

// quotient is x/y truncated, as BIGINT.
func (d *decimalOp) quotient(x, y num) (int64, bool) {
	if y.Sign() == 0 {
		return 0, false
	}
	if u, v, ok := d.sameScale(x, y); ok && v != -1 {
		return u / v, true
	}
	q := new(big.Int).Quo(bigRescaled(x, d.common-d.xs), bigRescaled(y, d.common-d.ys))
	return q.Int64(), q.IsInt64()
}

func arithDecimals(g arithArgs) (arrow.Array, error) {
	xt, yt := g.a.Type().(*arrow.Decimal128Type), g.b.Type().(*arrow.Decimal128Type)
	x, y := Values[num](g.a.Array()), Values[num](g.b.Array())
	xm, ym := RowMask(g.a), RowMask(g.b)
	bad := func(fails func(u, v num) bool) func(i int) error {
		return func(i int) error {
			u, v := x[i&xm], y[i&ym]
			if !fails(u, v) {
				return nil
			}
			left := string(columnar.AppendDecimal(nil, u, xt.Scale))
			if g.op >= Divide && v.Sign() == 0 {
				return divideByZero(g.op, left)
			}
			return overflow(fmt.Sprintf("%s %s %s", left, g.op, columnar.AppendDecimal(nil, v, yt.Scale)), g.out)
		}
	}
	failed := false
	if g.op == DivideInt {
		d := newDecimalOp(g.op, xt, yt, xt)
		buf, out := Make[int64](g.mem, g.rows)
		for i := range out {
			r, ok := d.quotient(x[i&xm], y[i&ym])
			out[i] = r
			failed = failed || !ok
		}
		return g.finish(buf, failed, bad(func(u, v num) bool { _, ok := d.quotient(u, v); return !ok }))
	}
	d := newDecimalOp(g.op, xt, yt, g.out.(*arrow.Decimal128Type))
	buf, out := Make[num](g.mem, g.rows)
	switch {
	case g.op == Multiply && d.xs+d.ys == d.s:
		failed = d.multiplyAll(out, x, y, xm, ym)
	case (g.op == Add || g.op == Subtract) && d.common == d.s && d.shift <= 18:
		failed = d.addAll(out, x, y, xm, ym)
	default:
		for i := range out {
			r, ok := d.apply(x[i&xm], y[i&ym])
			out[i] = r
			failed = failed || !ok
		}
	}
	return g.finish(buf, failed, bad(func(u, v num) bool { _, ok := d.apply(u, v); return !ok }))
}

func negateDecimals(g arithArgs, a arrow.Array, negate bool) (arrow.Array, error) {
	buf, out := Make[num](g.mem, g.rows)
	for i, v := range Values[num](a) {
		if negate {
			out[i] = v.Negate()
		} else {
			out[i] = v.Abs()
		}
	}
	return g.finish(buf, false, nil)
}

// decimalToFloat is v, of the given scale, as the nearest double.
func decimalToFloat(v num, scale int32) float64 {
	const exact = 1 << 53
	if hi, lo := v.HighBits(), v.LowBits(); scale <= 22 && (hi == 0 && lo < exact || hi == -1 && -lo < exact && lo != 0) {
		// Both are exact doubles, so the quotient is rounded once.
		return float64(int64(lo)) / math.Pow10(int(scale))
	}
	f, _ := columnar.ParseFloat(columnar.AppendDecimal(nil, v, scale), 64)
	return f
}

// floatToDecimal is the decimal nearest to the shortest text of f.
func floatToDecimal(f float64, bits int, t *arrow.Decimal128Type) (num, bool) {
	if math.IsNaN(f) || math.IsInf(f, 0) {
		return num{}, false
	}
	var digits [48]byte
	return columnar.ParseDecimal(columnar.AppendFloat(digits[:0], f, bits), t.Precision, t.Scale)
}
