package kernel

import (
	"errors"
	"fmt"
	"math"
	"math/bits"
	"unsafe"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/memory"

	"github.com/tidemill/tidemill/columnar"
)

// ArithOp is an operation on two numbers.
type ArithOp uint8

// The operations. Divide gives DOUBLE or DECIMAL, DivideInt truncates towards zero,
// Modulo has the sign of the dividend.
const (
	Add ArithOp = iota
	Subtract
	Multiply
	Divide
	DivideInt
	Modulo
)

var arithSigns = [...]string{"+", "-", "*", "/", "//", "%"}

// String is the operator as SQL writes it.
func (op ArithOp) String() string { return arithSigns[op] }

// Errors of arithmetic and casts, to be told apart with errors.Is.
var (
	ErrOverflow     = errors.New("overflow")
	ErrDivideByZero = errors.New("division by zero")
	ErrCast         = errors.New("cast")
)

// ValueError says which value an operation failed for. It matches one of the errors
// above.
type ValueError struct {
	Kind error
	Text string
}

func (e *ValueError) Error() string { return e.Text }

// Is makes errors.Is(err, ErrOverflow) and the like hold.
func (e *ValueError) Is(target error) bool { return target == e.Kind }

// Mode says what a kernel does about a value it cannot compute.
type Mode struct {
	Active *columnar.Bitmap // the rows that count; nil is all
	Try    bool             // null instead of an error
}

// settle deals with the rows a kernel could not compute: bad is asked for each row
// that counts; a bad one is an error or, in try mode, null. It takes over valid and
// returns the validity to use.
func (m Mode) settle(mem memory.Allocator, rows int, valid *memory.Buffer, nulls int, bad func(i int) error) (*memory.Buffer, int, error) {
	for i := range rows {
		if valid != nil && !bitAt(valid.Bytes(), i) || !m.Try && !m.Active.Get(i) {
			continue
		}
		err := bad(i)
		if err == nil {
			continue
		}
		if !m.Try {
			release(valid)
			return nil, 0, err
		}
		if valid == nil {
			valid = newBitmap(mem, rows)
			for k := range valid.Bytes() {
				valid.Bytes()[k] = 0xFF
			}
		}
		valid.Bytes()[i>>3] &^= 1 << (i & 7)
		nulls++
	}
	return valid, nulls, nil
}

// Arith is a op b for each row, with result type out. Integers and floats have one
// type on both sides, which is out's (Divide: DOUBLE); decimals may differ, and out
// says to which precision and scale the result is rounded, half away from zero.
// Overflow and division by zero, of floats too, are errors. Two constants give a
// constant.
func Arith(mem memory.Allocator, op ArithOp, a, b columnar.Datum, rows int, m Mode, out arrow.DataType) (columnar.Datum, error) {
	constant := a.IsConstant() && b.IsConstant()
	if constant {
		if rows > 0 && m.Active != nil && m.Active.Count() == 0 {
			return columnar.NullConstant(mem, out), nil
		}
		rows, m.Active = 1, nil
		a, b = columnar.ColumnDatum(a.Array()), columnar.ColumnDatum(b.Array())
	}
	valid, nulls := AndValidity(mem, rows, a, b)
	if nulls == rows || a.Type().ID() == arrow.NULL {
		release(valid)
		if constant {
			return columnar.NullConstant(mem, out), nil
		}
		return columnar.ColumnDatum(columnar.Nulls(mem, out, rows)), nil
	}
	r, err := arithColumn(mem, op, a, b, rows, m, out, valid, nulls)
	if err != nil {
		return columnar.Datum{}, err
	}
	if constant {
		return columnar.ConstantDatum(r), nil
	}
	return columnar.ColumnDatum(r), nil
}

// arithColumn takes over valid.
func arithColumn(mem memory.Allocator, op ArithOp, a, b columnar.Datum, rows int, m Mode, out arrow.DataType, valid *memory.Buffer, nulls int) (arrow.Array, error) {
	args := arithArgs{mem, op, a, b, rows, m, out, valid, nulls}
	switch a.Type().ID() {
	case arrow.INT8:
		return arithInts[int8](args)
	case arrow.INT16:
		return arithInts[int16](args)
	case arrow.INT32:
		return arithInts[int32](args)
	case arrow.INT64:
		return arithInts[int64](args)
	case arrow.FLOAT32:
		return arithFloats[float32](args)
	case arrow.FLOAT64:
		return arithFloats[float64](args)
	case arrow.DECIMAL128:
		return arithDecimals(args)
	}
	release(valid)
	panic("bug: arithmetic on " + a.Type().String())
}

type arithArgs struct {
	mem   memory.Allocator
	op    ArithOp
	a, b  columnar.Datum
	rows  int
	m     Mode
	out   arrow.DataType
	valid *memory.Buffer
	nulls int
}

type integer interface{ int8 | int16 | int32 | int64 }

// finish wraps values, of which some are wrong if failed says so.
func (g *arithArgs) finish(values *memory.Buffer, failed bool, bad func(i int) error) (arrow.Array, error) {
	if failed {
		var err error
		if g.valid, g.nulls, err = g.m.settle(g.mem, g.rows, g.valid, g.nulls, bad); err != nil {
			values.Release()
			return nil, err
		}
	}
	return Wrap(g.out, g.rows, g.nulls, g.valid, values), nil
}

func arithInts[T integer](g arithArgs) (arrow.Array, error) {
	x, y := Values[T](g.a.Array()), Values[T](g.b.Array())
	xm, ym := RowMask(g.a), RowMask(g.b)
	if g.op == Divide {
		return divideInts(g, x, y)
	}
	buf, out := Make[T](g.mem, g.rows)
	var failed bool
	switch {
	case g.op == Add && ym == 0:
		failed = addConstant(out, x, y[0])
	case g.op == Add && xm == 0:
		failed = addConstant(out, y, x[0])
	case g.op == Add:
		failed = addColumns(out, x, y)
	case g.op == Subtract && ym == 0:
		failed = subtractConstant(out, x, y[0])
	case g.op == Subtract && xm == 0:
		failed = subtractFrom(out, x[0], y)
	case g.op == Subtract:
		failed = subtractColumns(out, x, y)
	case g.op == Multiply && ym == 0:
		failed = multiplyConstant(out, x, y[0])
	case g.op == Multiply && xm == 0:
		failed = multiplyConstant(out, y, x[0])
	case g.op == Multiply:
		failed = multiplyColumns(out, x, y)
	case g.op == DivideInt:
		failed = divideTruncating(out, x, y, xm, ym)
	case g.op == Modulo:
		failed = modulo(out, x, y, xm, ym)
	}
	return g.finish(buf, failed, func(i int) error { return badInts(g, x[i&xm], y[i&ym]) })
}

// badInts is the error of one pair, nil if there is none.
func badInts[T integer](g arithArgs, x, y T) error {
	overflows := false
	switch g.op {
	case Add:
		r := x + y
		overflows = (x^r)&(y^r) < 0
	case Subtract:
		r := x - y
		overflows = (x^y)&(x^r) < 0
	case Multiply:
		overflows = multiplyOverflows(x, y)
	case DivideInt, Modulo:
		if y == 0 {
			return divideByZero(g.op, x)
		}
		overflows = g.op == DivideInt && y == -1 && x != 0 && x == -x
	}
	if !overflows {
		return nil
	}
	return overflow(fmt.Sprintf("%d %s %d", x, g.op, y), g.out)
}

func overflow(what string, dt arrow.DataType) error {
	return &ValueError{ErrOverflow, fmt.Sprintf("%s overflows %s", what, columnar.TypeName(dt))}
}

func divideByZero(op ArithOp, x any) error {
	return &ValueError{ErrDivideByZero, fmt.Sprintf("division by zero: %v %s 0", x, op)}
}

// In the loops a sign bit gathers whether any row overflowed: no branch, and one
// test at the end. addition overflows when both operands differ in sign from the sum.

func addColumns[T integer](out, x, y []T) bool {
	var bad T
	x, y = x[:len(out)], y[:len(out)]
	for i := range out {
		r := x[i] + y[i]
		bad |= (x[i] ^ r) & (y[i] ^ r)
		out[i] = r
	}
	return bad < 0
}

func addConstant[T integer](out, x []T, y T) bool {
	var bad T
	x = x[:len(out)]
	for i := range out {
		r := x[i] + y
		bad |= (x[i] ^ r) & (y ^ r)
		out[i] = r
	}
	return bad < 0
}

func subtractColumns[T integer](out, x, y []T) bool {
	var bad T
	x, y = x[:len(out)], y[:len(out)]
	for i := range out {
		r := x[i] - y[i]
		bad |= (x[i] ^ y[i]) & (x[i] ^ r)
		out[i] = r
	}
	return bad < 0
}

func subtractConstant[T integer](out, x []T, y T) bool {
	var bad T
	x = x[:len(out)]
	for i := range out {
		r := x[i] - y
		bad |= (x[i] ^ y) & (x[i] ^ r)
		out[i] = r
	}
	return bad < 0
}

func subtractFrom[T integer](out []T, x T, y []T) bool {
	var bad T
	y = y[:len(out)]
	for i := range out {
		r := x - y[i]
		bad |= (x ^ y[i]) & (x ^ r)
		out[i] = r
	}
	return bad < 0
}

// multiplyHigh is zero if the product x*y, as 128 bits, fits into 64.
func multiplyHigh(x, y int64) uint64 {
	hi, lo := bits.Mul64(uint64(x), uint64(y))
	hi -= uint64(x>>63) & uint64(y)
	hi -= uint64(y>>63) & uint64(x)
	return hi ^ uint64(int64(lo)>>63)
}

func multiplyOverflows[T integer](x, y T) bool {
	r := x * y
	return multiplyHigh(int64(x), int64(y)) != 0 || int64(r) != int64(x)*int64(y)
}

func multiplyColumns[T integer](out, x, y []T) bool {
	x, y = x[:len(out)], y[:len(out)]
	if unsafe.Sizeof(out[0]) < 8 {
		var differ int64
		for i := range out {
			r := int64(x[i]) * int64(y[i])
			differ |= r ^ int64(T(r))
			out[i] = T(r)
		}
		return differ != 0
	}
	var bad uint64
	for i := range out {
		bad |= multiplyHigh(int64(x[i]), int64(y[i]))
		out[i] = x[i] * y[i]
	}
	return bad != 0
}

func multiplyConstant[T integer](out, x []T, y T) bool {
	x = x[:len(out)]
	if unsafe.Sizeof(y) < 8 {
		var differ int64
		for i := range out {
			r := int64(x[i]) * int64(y)
			differ |= r ^ int64(T(r))
			out[i] = T(r)
		}
		return differ != 0
	}
	var bad uint64
	for i := range out {
		bad |= multiplyHigh(int64(x[i]), int64(y))
		out[i] = x[i] * y
	}
	return bad != 0
}

func divideTruncating[T integer](out, x, y []T, xm, ym int) bool {
	failed := false
	for i := range out {
		u, v := x[i&xm], y[i&ym]
		if v == 0 || v == -1 && u == -u {
			failed = failed || v == 0 || u != 0
			v = 1
		}
		out[i] = u / v
	}
	return failed
}

func modulo[T integer](out, x, y []T, xm, ym int) bool {
	failed := false
	for i := range out {
		v := y[i&ym]
		if v == 0 {
			failed = true
			v = 1
		}
		out[i] = x[i&xm] % v
	}
	return failed
}

// divideInts is / on integers, which gives DOUBLE.
func divideInts[T integer](g arithArgs, x, y []T) (arrow.Array, error) {
	buf, out := Make[float64](g.mem, g.rows)
	xm, ym := RowMask(g.a), RowMask(g.b)
	failed := false
	for i := range out {
		v := y[i&ym]
		failed = failed || v == 0
		out[i] = float64(x[i&xm]) / float64(v)
	}
	return g.finish(buf, failed, func(i int) error {
		if y[i&ym] == 0 {
			return divideByZero(g.op, x[i&xm])
		}
		return nil
	})
}

func arithFloats[T float32 | float64](g arithArgs) (arrow.Array, error) {
	x, y := Values[T](g.a.Array()), Values[T](g.b.Array())
	xm, ym := RowMask(g.a), RowMask(g.b)
	zero := func(i int) error {
		if y[i&ym] == 0 {
			return divideByZero(g.op, x[i&xm])
		}
		return nil
	}
	switch g.op {
	case Divide:
		buf, out := Make[float64](g.mem, g.rows)
		failed := false
		for i := range out {
			v := y[i&ym]
			failed = failed || v == 0
			out[i] = float64(x[i&xm]) / float64(v)
		}
		return g.finish(buf, failed, zero)
	case DivideInt:
		return divideFloatsTruncating(g, x, y)
	}
	buf, out := Make[T](g.mem, g.rows)
	failed := false
	switch {
	case g.op == Add && xm&ym != 0:
		x, y := x[:len(out)], y[:len(out)]
		for i := range out {
			out[i] = x[i] + y[i]
		}
	case g.op == Add:
		for i := range out {
			out[i] = x[i&xm] + y[i&ym]
		}
	case g.op == Subtract:
		for i := range out {
			out[i] = x[i&xm] - y[i&ym]
		}
	case g.op == Multiply && xm&ym != 0:
		x, y := x[:len(out)], y[:len(out)]
		for i := range out {
			out[i] = x[i] * y[i]
		}
	case g.op == Multiply:
		for i := range out {
			out[i] = x[i&xm] * y[i&ym]
		}
	case g.op == Modulo:
		for i := range out {
			v := y[i&ym]
			failed = failed || v == 0
			out[i] = T(math.Mod(float64(x[i&xm]), float64(v)))
		}
	}
	return g.finish(buf, failed, zero)
}

// divideFloatsTruncating is // on floats, which gives BIGINT.
func divideFloatsTruncating[T float32 | float64](g arithArgs, x, y []T) (arrow.Array, error) {
	buf, out := Make[int64](g.mem, g.rows)
	xm, ym := RowMask(g.a), RowMask(g.b)
	failed := false
	fits := func(q float64) bool { return q >= math.MinInt64 && q < math.MaxInt64 }
	for i := range out {
		q := math.Trunc(float64(x[i&xm]) / float64(y[i&ym]))
		if !fits(q) {
			failed = true
			q = 0
		}
		out[i] = int64(q)
	}
	return g.finish(buf, failed, func(i int) error {
		u, v := x[i&xm], y[i&ym]
		switch {
		case v == 0:
			return divideByZero(g.op, u)
		case !fits(math.Trunc(float64(u) / float64(v))):
			return overflow(fmt.Sprintf("%v // %v", u, v), g.out)
		}
		return nil
	})
}

// Negate is -a for each row, and Abs the absolute value, of the type of a. The
// smallest integer of a type has neither: an error.
func Negate(mem memory.Allocator, a columnar.Datum, rows int, m Mode) (columnar.Datum, error) {
	return onNumber(mem, a, rows, m, true)
}

// Abs is the absolute value of each row; see Negate.
func Abs(mem memory.Allocator, a columnar.Datum, rows int, m Mode) (columnar.Datum, error) {
	return onNumber(mem, a, rows, m, false)
}

func onNumber(mem memory.Allocator, a columnar.Datum, rows int, m Mode, negate bool) (columnar.Datum, error) {
	in := a.Array()
	if a.IsConstant() {
		if m.Active != nil && m.Active.Count() == 0 {
			return columnar.NullConstant(mem, a.Type()), nil
		}
		rows, m.Active = 1, nil
	}
	var out arrow.Array
	var err error
	valid, nulls := AndValidity(mem, rows, columnar.ColumnDatum(in))
	g := arithArgs{mem: mem, rows: rows, m: m, out: a.Type(), valid: valid, nulls: nulls}
	switch in.DataType().ID() {
	case arrow.INT8:
		out, err = negateInts[int8](g, in, negate)
	case arrow.INT16:
		out, err = negateInts[int16](g, in, negate)
	case arrow.INT32:
		out, err = negateInts[int32](g, in, negate)
	case arrow.INT64:
		out, err = negateInts[int64](g, in, negate)
	case arrow.FLOAT32:
		out, err = negateFloats[float32](g, in, negate)
	case arrow.FLOAT64:
		out, err = negateFloats[float64](g, in, negate)
	case arrow.DECIMAL128:
		out, err = negateDecimals(g, in, negate)
	default:
		release(valid)
		panic("bug: sign of " + in.DataType().String())
	}
	if err != nil {
		return columnar.Datum{}, err
	}
	if a.IsConstant() {
		return columnar.ConstantDatum(out), nil
	}
	return columnar.ColumnDatum(out), nil
}

func negateInts[T integer](g arithArgs, a arrow.Array, negate bool) (arrow.Array, error) {
	x := Values[T](a)
	buf, out := Make[T](g.mem, g.rows)
	failed := false
	for i, v := range x {
		r := v
		if negate || v < 0 {
			r = -v
		}
		failed = failed || v == -v && v != 0
		out[i] = r
	}
	return g.finish(buf, failed, func(i int) error {
		if x[i] != -x[i] || x[i] == 0 {
			return nil
		}
		if negate {
			return overflow(fmt.Sprintf("-(%d)", x[i]), g.out)
		}
		return overflow(fmt.Sprintf("abs(%d)", x[i]), g.out)
	})
}

func negateFloats[T float32 | float64](g arithArgs, a arrow.Array, negate bool) (arrow.Array, error) {
	buf, out := Make[T](g.mem, g.rows)
	for i, v := range Values[T](a) {
		if negate {
			out[i] = -v
		} else {
			out[i] = T(math.Abs(float64(v)))
		}
	}
	return g.finish(buf, false, nil)
}
