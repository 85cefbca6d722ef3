package kernel

import (
	"bytes"
	"math/bits"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/decimal128"
	"github.com/apache/arrow-go/v18/arrow/memory"

	"github.com/tidemill/tidemill/columnar"
)

// CompareOp is a comparison.
type CompareOp uint8

// The comparisons. The last two know no null: null is a value equal to itself.
const (
	Equal CompareOp = iota
	NotEqual
	Less
	LessEqual
	Greater
	GreaterEqual
	DistinctFrom
	NotDistinctFrom
)

// Compare is a op b for each row, as BOOLEAN. Both have one type, of any kind; NaN
// equals NaN and is above all, -0.0 equals 0.0, text is compared by bytes, arrays
// and structs element by element with null lowest. Two constants give a constant.
func Compare(mem memory.Allocator, op CompareOp, a, b columnar.Datum, rows int) columnar.Datum {
	if a.IsConstant() && b.IsConstant() {
		one := Compare(mem, op, columnar.ColumnDatum(a.Array()), columnar.ColumnDatum(b.Array()), 1)
		return columnar.ConstantDatum(one.Array())
	}
	if op == DistinctFrom || op == NotDistinctFrom {
		return distinct(mem, op, a, b, rows)
	}
	valid, nulls := AndValidity(mem, rows, a, b)
	if nulls == rows || a.Type().ID() == arrow.NULL {
		release(valid)
		return columnar.ColumnDatum(columnar.Nulls(mem, columnar.Boolean, rows))
	}
	out := newBitmap(mem, rows)
	compareInto(out.Bytes(), op, a, b, rows)
	return columnar.ColumnDatum(Wrap(columnar.Boolean, rows, nulls, valid, out))
}

// compareInto reduces the six comparisons to two: a > b is b < a, the others are
// negations. That holds because the order is total.
func compareInto(out []byte, op CompareOp, a, b columnar.Datum, rows int) {
	switch op {
	case Greater, LessEqual:
		lessBits(out, b, a, rows)
	case Less, GreaterEqual:
		lessBits(out, a, b, rows)
	default:
		equalBits(out, a, b, rows)
	}
	if op == NotEqual || op == LessEqual || op == GreaterEqual {
		for i := range out {
			out[i] = ^out[i]
		}
	}
}

// distinct compares with null as a value: differs where the values differ or just
// one of them is null.
func distinct(mem memory.Allocator, op CompareOp, a, b columnar.Datum, rows int) columnar.Datum {
	var differ, av, bv columnar.Bitmap
	MarkValid(&av, a, rows)
	MarkValid(&bv, b, rows)
	differ.Reset(rows)
	if a.Type().ID() != arrow.NULL {
		out := make([]byte, (rows+7)/8)
		compareInto(out, NotEqual, a, b, rows)
		differ.SetBits(out, 0)
	}
	words := differ.Words()
	for i, x := range av.Words() {
		y := bv.Words()[i]
		words[i] = words[i]&x&y | (x ^ y)
	}
	if op == NotDistinctFrom {
		for i := range words {
			words[i] = ^words[i]
		}
	}
	return columnar.ColumnDatum(Booleans(mem, &differ, rows))
}

func equalBits(out []byte, a, b columnar.Datum, n int) {
	if a.IsConstant() {
		a, b = b, a
	}
	switch a.Type().ID() {
	case arrow.BOOL:
		for i := 0; i < n; i += 64 {
			putWord(out, i, n, ^(boolWord(a, i, n) ^ boolWord(b, i, n)))
		}
	case arrow.INT8:
		equalValues[int8](out, a, b, n)
	case arrow.INT16:
		equalValues[int16](out, a, b, n)
	case arrow.INT32, arrow.DATE32:
		equalValues[int32](out, a, b, n)
	case arrow.INT64, arrow.TIMESTAMP, arrow.TIME64:
		equalValues[int64](out, a, b, n)
	case arrow.DECIMAL128:
		equalValues[decimal128.Num](out, a, b, n)
	case arrow.FLOAT32:
		equalFloats[float32](out, a, b, n)
	case arrow.FLOAT64:
		equalFloats[float64](out, a, b, n)
	case arrow.STRING, arrow.BINARY:
		equalTexts(out, a, b, n)
	default:
		eachBit(out, n, func(i int) bool { return compareAt(a, b, i) == 0 })
	}
}

func lessBits(out []byte, a, b columnar.Datum, n int) {
	switch a.Type().ID() {
	case arrow.BOOL:
		for i := 0; i < n; i += 64 {
			putWord(out, i, n, ^boolWord(a, i, n)&boolWord(b, i, n))
		}
	case arrow.INT8:
		lessValues[int8](out, a, b, n)
	case arrow.INT16:
		lessValues[int16](out, a, b, n)
	case arrow.INT32, arrow.DATE32:
		lessValues[int32](out, a, b, n)
	case arrow.INT64, arrow.TIMESTAMP, arrow.TIME64:
		lessValues[int64](out, a, b, n)
	case arrow.FLOAT32:
		lessFloats[float32](out, a, b, n)
	case arrow.FLOAT64:
		lessFloats[float64](out, a, b, n)
	case arrow.DECIMAL128:
		lessDecimals(out, a, b, n)
	case arrow.STRING, arrow.BINARY:
		lessTexts(out, a, b, n)
	default:
		eachBit(out, n, func(i int) bool { return compareAt(a, b, i) < 0 })
	}
}

// compareAt compares row i of two columns or constants of any type; a null gives
// anything.
func compareAt(a, b columnar.Datum, i int) int {
	x, y := a.Array(), b.Array()
	xi, yi := i, i
	if a.IsConstant() {
		xi = 0
	}
	if b.IsConstant() {
		yi = 0
	}
	return compareNullable(x, xi, y, yi)
}

func eachBit(out []byte, n int, bit func(i int) bool) {
	clear(out)
	for i := range n {
		out[i>>3] |= b2i(bit(i)) << (i & 7)
	}
}

// boolWord is 64 values of a BOOLEAN column or constant from row i on.
func boolWord(d columnar.Datum, i, n int) uint64 {
	a := d.Array()
	raw, offset := a.Data().Buffers()[1].Bytes(), a.Data().Offset()
	if !d.IsConstant() {
		return word(raw, offset, i, n)
	}
	if bitAt(raw, offset) {
		return ^uint64(0)
	}
	return 0
}

// The loops below make a word of 64 results at a time; the last word may be short.

func equalValues[T comparable](out []byte, a, b columnar.Datum, n int) {
	x := Values[T](a.Array())
	if b.IsConstant() {
		s := Values[T](b.Array())[0]
		for i := 0; i < n; i += 64 {
			putWord(out, i, n, equalWord(x[i:min(i+64, n)], s))
		}
		return
	}
	y := Values[T](b.Array())
	for i := 0; i < n; i += 64 {
		var w uint64
		part := y[i:min(i+64, n)]
		for k, v := range x[i : i+len(part)] {
			w |= uint64(b2i(v == part[k])) << (k & 63)
		}
		putWord(out, i, n, w)
	}
}

func equalFloats[T float32 | float64](out []byte, a, b columnar.Datum, n int) {
	x := Values[T](a.Array())
	if b.IsConstant() {
		s := Values[T](b.Array())[0]
		for i := 0; i < n; i += 64 {
			part := x[i:min(i+64, n)]
			w := equalWord(part, s)
			if s != s {
				w = ^numberWord(part)
			}
			putWord(out, i, n, w)
		}
		return
	}
	y := Values[T](b.Array())
	for i := 0; i < n; i += 64 {
		var w uint64
		part := y[i:min(i+64, n)]
		for k, v := range x[i : i+len(part)] {
			u := part[k]
			w |= uint64(b2i(v == u)|b2i(v != v)&b2i(u != u)) << (k & 63)
		}
		putWord(out, i, n, w)
	}
}

func lessValues[T int8 | int16 | int32 | int64](out []byte, a, b columnar.Datum, n int) {
	x, y := Values[T](a.Array()), Values[T](b.Array())
	switch {
	case b.IsConstant():
		s := y[0]
		for i := 0; i < n; i += 64 {
			putWord(out, i, n, lessWord(x[i:min(i+64, n)], s))
		}
	case a.IsConstant():
		s := x[0]
		for i := 0; i < n; i += 64 {
			putWord(out, i, n, ^lessEqualWord(y[i:min(i+64, n)], s))
		}
	default:
		for i := 0; i < n; i += 64 {
			var w uint64
			part := y[i:min(i+64, n)]
			for k, v := range x[i : i+len(part)] {
				w |= uint64(b2i(v < part[k])) << (k & 63)
			}
			putWord(out, i, n, w)
		}
	}
}

func lessFloats[T float32 | float64](out []byte, a, b columnar.Datum, n int) {
	x, y := Values[T](a.Array()), Values[T](b.Array())
	switch {
	case b.IsConstant():
		s := y[0]
		for i := 0; i < n; i += 64 {
			part := x[i:min(i+64, n)]
			w := lessWord(part, s)
			if s != s {
				w = numberWord(part) // every number is below NaN
			}
			putWord(out, i, n, w)
		}
	case a.IsConstant():
		s := x[0]
		for i := 0; i < n; i += 64 {
			w := ^lessEqualWord(y[i:min(i+64, n)], s) // NaN is not at most s
			if s != s {
				w = 0
			}
			putWord(out, i, n, w)
		}
	default:
		for i := 0; i < n; i += 64 {
			var w uint64
			part := y[i:min(i+64, n)]
			for k, v := range x[i : i+len(part)] {
				u := part[k]
				w |= uint64(b2i(v < u)|b2i(v == v)&b2i(u != u)) << (k & 63)
			}
			putWord(out, i, n, w)
		}
	}
}

// lessDecimals compares by the borrow of a 128-bit subtraction.
func lessDecimals(out []byte, a, b columnar.Datum, n int) {
	x, y := Values[wide](a.Array()), Values[wide](b.Array())
	xm, ym := RowMask(a), RowMask(b)
	const sign = 1 << 63
	if b.IsConstant() && !a.IsConstant() {
		low, high := y[0][0], y[0][1]^sign
		for i := 0; i < n; i += 64 {
			var w uint64
			for k, u := range x[i:min(i+64, n)] {
				_, borrow := bits.Sub64(u[0], low, 0)
				_, borrow = bits.Sub64(u[1]^sign, high, borrow)
				w |= borrow << (k & 63)
			}
			putWord(out, i, n, w)
		}
		return
	}
	for i := 0; i < n; i += 64 {
		var w uint64
		for k := range min(64, n-i) {
			u, v := x[(i+k)&xm], y[(i+k)&ym]
			_, borrow := bits.Sub64(u[0], v[0], 0)
			_, borrow = bits.Sub64(u[1]^sign, v[1]^sign, borrow)
			w |= borrow << (k & 63)
		}
		putWord(out, i, n, w)
	}
}

func equalTexts(out []byte, a, b columnar.Datum, n int) {
	x, y := bytesOf(a.Array()), bytesOf(b.Array())
	if b.IsConstant() {
		s := y.at(0)
		for i := 0; i < n; i += 64 {
			var w uint64
			from := x.offsets[i]
			for k, to := range x.offsets[i+1 : min(i+64, n)+1] {
				if int(to-from) == len(s) && string(x.data[from:to]) == string(s) {
					w |= 1 << (k & 63)
				}
				from = to
			}
			putWord(out, i, n, w)
		}
		return
	}
	for i := 0; i < n; i += 64 {
		var w uint64
		for k := range min(64, n-i) {
			w |= uint64(b2i(bytes.Equal(x.at(i+k), y.at(i+k)))) << (k & 63)
		}
		putWord(out, i, n, w)
	}
}

func lessTexts(out []byte, a, b columnar.Datum, n int) {
	x, y := bytesOf(a.Array()), bytesOf(b.Array())
	xm, ym := RowMask(a), RowMask(b)
	for i := 0; i < n; i += 64 {
		var w uint64
		for k := range min(64, n-i) {
			w |= uint64(b2i(bytes.Compare(x.at((i+k)&xm), y.at((i+k)&ym)) < 0)) << (k & 63)
		}
		putWord(out, i, n, w)
	}
}

// MinMax is the rows of the smallest and the largest value of a, the first of
// equals, or -1, -1 if all are null.
func MinMax(a arrow.Array) (least, greatest int) {
	least, greatest = -1, -1
	if a.DataType().ID() == arrow.DICTIONARY || a.NullN() > 0 {
		return minMaxSlow(a)
	}
	switch a.DataType().ID() {
	case arrow.INT32, arrow.DATE32:
		return minMaxInts(Values[int32](a))
	case arrow.INT64, arrow.TIMESTAMP, arrow.TIME64:
		return minMaxInts(Values[int64](a))
	}
	return minMaxSlow(a)
}

func minMaxInts[T int32 | int64](values []T) (least, greatest int) {
	if len(values) == 0 {
		return -1, -1
	}
	least, greatest = 0, 0
	for i, v := range values {
		if v < values[least] {
			least = i
		}
		if v > values[greatest] {
			greatest = i
		}
	}
	return least, greatest
}

func minMaxSlow(a arrow.Array) (least, greatest int) {
	least, greatest = -1, -1
	for i := range a.Len() {
		if columnar.IsNull(a, i) {
			continue
		}
		if least < 0 {
			least, greatest = i, i
			continue
		}
		if compareValues(a, i, a, least) < 0 {
			least = i
		}
		if compareValues(a, i, a, greatest) > 0 {
			greatest = i
		}
	}
	return least, greatest
}

// IsNaN marks in out, a bitmap of n rows, the NaN of a REAL or DOUBLE column.
func IsNaN(mem memory.Allocator, a arrow.Array) arrow.Array {
	n := a.Len()
	out := newBitmap(mem, n)
	switch f := a.(type) {
	case *array.Float32:
		eachBit(out.Bytes(), n, func(i int) bool { return f.Value(i) != f.Value(i) })
	case *array.Float64:
		eachBit(out.Bytes(), n, func(i int) bool { return f.Value(i) != f.Value(i) })
	default:
		clear(out.Bytes())
	}
	valid, nulls := AndValidity(mem, n, columnar.ColumnDatum(a))
	return Wrap(columnar.Boolean, n, nulls, valid, out)
}
