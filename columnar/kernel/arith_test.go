package kernel_test

import (
	"errors"
	"math"
	"math/big"
	"math/rand/v2"
	"testing"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/decimal128"
	"github.com/apache/arrow-go/v18/arrow/memory"

	"github.com/tidemill/tidemill/columnar"
	"github.com/tidemill/tidemill/columnar/columnartest"
	"github.com/tidemill/tidemill/columnar/kernel"
)

// bigOp is op on integers without bounds; ok is false for a zero divisor.
func bigOp(op kernel.ArithOp, x, y *big.Int) (*big.Int, bool) {
	switch op {
	case kernel.Add:
		return new(big.Int).Add(x, y), true
	case kernel.Subtract:
		return new(big.Int).Sub(x, y), true
	case kernel.Multiply:
		return new(big.Int).Mul(x, y), true
	}
	if y.Sign() == 0 {
		return nil, false
	}
	if op == kernel.DivideInt {
		return new(big.Int).Quo(x, y), true
	}
	return new(big.Int).Rem(x, y), true
}

func asInt(v any) (int64, bool) {
	switch v := v.(type) {
	case int8:
		return int64(v), true
	case int16:
		return int64(v), true
	case int32:
		return int64(v), true
	case int64:
		return v, true
	}
	return 0, false
}

// operands gives two random columns, and a constant of each, in all combinations.
func operands(t *testing.T, x, y arrow.Array) [][2]columnar.Datum {
	t.Helper()
	xs, ys := []columnar.Datum{columnar.ColumnDatum(x)}, []columnar.Datum{columnar.ColumnDatum(y)}
	for i := range min(x.Len(), 4) {
		a, b := array.NewSlice(x, int64(i), int64(i+1)), array.NewSlice(y, int64(i), int64(i+1))
		t.Cleanup(a.Release)
		t.Cleanup(b.Release)
		xs, ys = append(xs, columnar.ConstantDatum(a)), append(ys, columnar.ConstantDatum(b))
	}
	var out [][2]columnar.Datum
	for _, a := range xs {
		for _, b := range ys {
			out = append(out, [2]columnar.Datum{a, b})
		}
	}
	return out
}

func TestArithIntegers(t *testing.T) {
	t.Parallel()
	mem := columnartest.Mem(t)
	bounds := map[string]int64{"tinyint": math.MaxInt8, "smallint": math.MaxInt16, "integer": math.MaxInt32, "bigint": math.MaxInt64}
	for name, most := range bounds {
		dt, _ := columnartest.Type(name)
		for seed, n := range []int{0, 1, 63, 64, 65, 300} {
			x := columnartest.RandomColumn(t, mem, dt, uint64(seed), columnartest.RandomOptions{Rows: n})
			y := columnartest.RandomColumn(t, mem, dt, uint64(seed)+50, columnartest.RandomOptions{Rows: n})
			for _, pair := range operands(t, x, y) {
				for _, op := range []kernel.ArithOp{kernel.Add, kernel.Subtract, kernel.Multiply, kernel.DivideInt, kernel.Modulo} {
					got, err := kernel.Arith(mem, op, pair[0], pair[1], n, kernel.Mode{Try: true}, dt)
					if err != nil {
						t.Fatal(err)
					}
					fails := false
					for i := range n {
						u, uok := asInt(at(pair[0], i))
						v, vok := asInt(at(pair[1], i))
						var want any
						if uok && vok {
							r, ok := bigOp(op, big.NewInt(u), big.NewInt(v))
							if ok && r.IsInt64() && r.Int64() <= most && r.Int64() >= -most-1 {
								want = r.Int64()
							} else {
								fails = true
							}
						}
						g := at(got, i)
						if gi, ok := asInt(g); ok {
							g = gi
						}
						if g != want {
							t.Fatalf("%s: %d %s %d = %v, want %v", name, u, op, v, g, want)
						}
					}
					got.Release()
					strict, err := kernel.Arith(mem, op, pair[0], pair[1], n, kernel.Mode{}, dt)
					if (err != nil) != fails {
						t.Fatalf("%s %s: error %v, want one: %v", name, op, err, fails)
					}
					if err == nil {
						strict.Release()
					} else if !errors.Is(err, kernel.ErrOverflow) && !errors.Is(err, kernel.ErrDivideByZero) {
						t.Fatal(err)
					}
				}
			}
		}
	}
}

func TestArithFloats(t *testing.T) {
	t.Parallel()
	mem := columnartest.Mem(t)
	n := 300
	x := columnartest.RandomColumn(t, mem, columnar.Float64, 1, columnartest.RandomOptions{Rows: n})
	y := columnartest.RandomColumn(t, mem, columnar.Float64, 2, columnartest.RandomOptions{Rows: n})
	for _, pair := range operands(t, x, y) {
		for op := kernel.Add; op <= kernel.Modulo; op++ {
			if op == kernel.DivideInt {
				continue
			}
			got, err := kernel.Arith(mem, op, pair[0], pair[1], n, kernel.Mode{Try: true}, columnar.Float64)
			if err != nil {
				t.Fatal(err)
			}
			for i := range n {
				u, uok := at(pair[0], i).(float64)
				v, vok := at(pair[1], i).(float64)
				want, known := 0.0, uok && vok && (op < kernel.Divide || v != 0)
				if known {
					want = []float64{u + v, u - v, u * v, u / v, 0, math.Mod(u, v)}[op]
				}
				g, ok := at(got, i).(float64)
				if ok != known || ok && g != want && !(math.IsNaN(g) && math.IsNaN(want)) {
					t.Fatalf("%v %s %v = %v, want %v", u, op, v, g, want)
				}
			}
			got.Release()
		}
	}
}

func bigPow(k int32) *big.Int {
	return new(big.Int).Exp(big.NewInt(10), big.NewInt(int64(k)), nil)
}

// roundRat is r with scale digits, half away from zero.
func roundRat(r *big.Rat, scale int32) *big.Int {
	scaled := new(big.Rat).Mul(r, new(big.Rat).SetInt(bigPow(scale)))
	num, den := new(big.Int).Abs(scaled.Num()), scaled.Denom()
	num.Lsh(num, 1).Add(num, den)
	q := num.Quo(num, new(big.Int).Lsh(den, 1))
	if scaled.Sign() < 0 {
		q.Neg(q)
	}
	return q
}

func TestArithDecimals(t *testing.T) {
	t.Parallel()
	mem := columnartest.Mem(t)
	r := rand.New(rand.NewPCG(9, 9))
	for seed := range uint64(60) {
		px, py := int32(r.IntN(38)+1), int32(r.IntN(38)+1)
		xt := &arrow.Decimal128Type{Precision: px, Scale: int32(r.IntN(int(px) + 1))}
		yt := &arrow.Decimal128Type{Precision: py, Scale: int32(r.IntN(int(py) + 1))}
		n := 80
		x := columnartest.RandomColumn(t, mem, xt, seed, columnartest.RandomOptions{Rows: n})
		y := columnartest.RandomColumn(t, mem, yt, seed+99, columnartest.RandomOptions{Rows: n})
		po := int32(r.IntN(38) + 1)
		for op := kernel.Add; op <= kernel.Modulo; op++ {
			out := &arrow.Decimal128Type{Precision: po, Scale: int32(r.IntN(int(po) + 1))}
			if op == kernel.DivideInt {
				checkDecimals(t, op, x, y, columnar.Int64, mustArith(t, mem, op, x, y, columnar.Int64))
				continue
			}
			checkDecimals(t, op, x, y, out, mustArith(t, mem, op, x, y, out))
		}
	}
}

func mustArith(t *testing.T, mem memory.Allocator, op kernel.ArithOp, x, y arrow.Array, out arrow.DataType) arrow.Array {
	t.Helper()
	d, err := kernel.Arith(mem, op, columnar.ColumnDatum(x), columnar.ColumnDatum(y), x.Len(), kernel.Mode{Try: true}, out)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(d.Release)
	return d.Array()
}

func rat(a arrow.Array, i int) *big.Rat {
	v := columnar.Value(a, i).(decimal128.Num)
	return new(big.Rat).SetFrac(v.BigInt(), bigPow(a.DataType().(*arrow.Decimal128Type).Scale))
}

func checkDecimals(t *testing.T, op kernel.ArithOp, x, y arrow.Array, out arrow.DataType, got arrow.Array) {
	t.Helper()
	for i := range x.Len() {
		if x.IsNull(i) || y.IsNull(i) {
			if !got.IsNull(i) {
				t.Fatalf("a null gave a value")
			}
			continue
		}
		u, v := rat(x, i), rat(y, i)
		exact := new(big.Rat)
		known := true
		switch op {
		case kernel.Add:
			exact.Add(u, v)
		case kernel.Subtract:
			exact.Sub(u, v)
		case kernel.Multiply:
			exact.Mul(u, v)
		default:
			if known = v.Sign() != 0; known {
				q := new(big.Rat).Quo(u, v)
				whole := new(big.Int).Quo(q.Num(), q.Denom())
				switch op {
				case kernel.Divide:
					exact = q
				case kernel.DivideInt:
					exact.SetInt(whole)
				default:
					exact.Sub(u, new(big.Rat).Mul(v, new(big.Rat).SetInt(whole)))
				}
			}
		}
		var want *big.Int
		if known {
			scale, limit := int32(0), new(big.Int).SetInt64(math.MaxInt64)
			if d, ok := out.(*arrow.Decimal128Type); ok {
				scale, limit = d.Scale, new(big.Int).Sub(bigPow(d.Precision), big.NewInt(1))
			}
			want = roundRat(exact, scale)
			known = want.CmpAbs(limit) <= 0
		}
		if got.IsNull(i) == known {
			t.Fatalf("%s %s %s as %s: %s, want %v", u.RatString(), op, v.RatString(), out, text(got, i), want)
		}
		if !known {
			continue
		}
		var g *big.Int
		if d, ok := columnar.Value(got, i).(decimal128.Num); ok {
			g = d.BigInt()
		} else {
			g = big.NewInt(columnar.Value(got, i).(int64))
		}
		if g.Cmp(want) != 0 {
			t.Fatalf("%s %s %s as %s: %s, want %s", u.RatString(), op, v.RatString(), out, g, want)
		}
	}
}

func TestErrorsOfRowsThatCount(t *testing.T) {
	t.Parallel()
	mem := columnartest.Mem(t)
	b := columnartest.Batch(t, mem, "x:bigint  y:bigint\n1  0\n9223372036854775807  1\nNULL  0\n5  5")
	x, y := columnar.ColumnDatum(b.Column(0)), columnar.ColumnDatum(b.Column(1))
	active := columnar.NewBitmap(4)
	active.Set(2)
	active.Set(3)
	for op := kernel.Add; op <= kernel.Modulo; op++ {
		out := columnar.Int64
		if op == kernel.Divide {
			out = columnar.Float64
		}
		d, err := kernel.Arith(mem, op, x, y, 4, kernel.Mode{Active: active}, out)
		if err != nil {
			t.Errorf("%s: %v", op, err)
			continue
		}
		if !d.Array().IsNull(2) || d.Array().IsNull(3) {
			t.Errorf("%s: nulls are wrong", op)
		}
		d.Release()
	}
	if _, err := kernel.Arith(mem, kernel.Add, x, y, 4, kernel.Mode{}, columnar.Int64); err == nil || err.Error() != "9223372036854775807 + 1 overflows BIGINT" {
		t.Errorf("got %v", err)
	}
	if _, err := kernel.Arith(mem, kernel.Modulo, x, y, 4, kernel.Mode{}, columnar.Int64); err == nil || err.Error() != "division by zero: 1 % 0" {
		t.Errorf("got %v", err)
	}
}

// TestTimeLaws checks truncation, extraction and counting against the time package.
func TestTimeLaws(t *testing.T) {
	t.Parallel()
	mem := columnartest.Mem(t)
	checkTimeLaws(t, mem, nil)
	checkTimeLaws(t, mem, loadZone(t, "America/New_York"))
	checkTimeLaws(t, mem, loadZone(t, "Asia/Kathmandu"))
}
