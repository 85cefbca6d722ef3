package kernel

import (
	"fmt"
	"math"
	"time"
	"unicode/utf8"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/memory"

	"github.com/tidemill/tidemill/columnar"
)

// CastOptions are what a cast depends on beside the types.
type CastOptions struct {
	Mode
	Location *time.Location // the wall clock of text without offset and of dates; nil is UTC
	// ByPosition casts structs field by field in order, whatever the names; otherwise that
	// is so only if their fields are not the same by name.
	ByPosition bool
}

// CanCast says whether there is a cast between two types, though it may fail for
// some values.
func CanCast(from, to arrow.DataType, o CastOptions) bool {
	if d, ok := from.(*arrow.DictionaryType); ok {
		from = d.ValueType
	}
	if arrow.TypeEqual(from, to) || from.ID() == arrow.NULL {
		return true
	}
	if to.ID() == arrow.STRING {
		return true
	}
	if columnar.IsNested(from) || columnar.IsNested(to) {
		return canCastNested(from, to, o)
	}
	numberLike := func(t arrow.DataType) bool { return columnar.IsNumeric(t) || t.ID() == arrow.BOOL }
	switch {
	case from.ID() == arrow.STRING:
		return to.ID() != arrow.NULL
	case numberLike(from) && numberLike(to):
		return true
	case columnar.IsNumeric(from) && to.ID() == arrow.TIMESTAMP, from.ID() == arrow.TIMESTAMP && columnar.IsNumeric(to):
		return true
	case from.ID() == arrow.DATE32:
		return to.ID() == arrow.TIMESTAMP
	case from.ID() == arrow.TIMESTAMP:
		return to.ID() == arrow.DATE32 || to.ID() == arrow.TIME64
	}
	return false
}

func canCastNested(from, to arrow.DataType, o CastOptions) bool {
	switch f := from.(type) {
	case *arrow.MapType:
		t, ok := to.(*arrow.MapType)
		return ok && CanCast(f.KeyType(), t.KeyType(), o) && CanCast(f.ItemType(), t.ItemType(), o)
	case *arrow.ListType:
		t, ok := to.(*arrow.ListType)
		return ok && CanCast(f.Elem(), t.Elem(), o)
	case *arrow.StructType:
		t, ok := to.(*arrow.StructType)
		if !ok || f.NumFields() != t.NumFields() {
			return false
		}
		for i, k := range o.fieldOrder(f, t) {
			if !CanCast(f.Field(k).Type, t.Field(i).Type, o) {
				return false
			}
		}
		return true
	}
	return false
}

// fieldOrder is which field of from becomes each of to, which has as many.
func (o CastOptions) fieldOrder(from, to *arrow.StructType) []int {
	if !o.ByPosition {
		if order, ok := columnar.FieldOrder(from, to); ok {
			return order
		}
	}
	order := make([]int, to.NumFields())
	for i := range order {
		order[i] = i
	}
	return order
}

// Cast is a as type to, which CanCast allows. Numbers are truncated towards zero on
// their way to integers and rounded half away from zero on their way to decimals; a
// number out of range, and a text that does not read as the type, is an error naming
// the value, or null in try mode; so is a map that gets a key twice. Timestamps become numbers as seconds since 1970.
// Structs are cast field by field, by name or in order as o says; nested values become
// text as JSON. The caller releases the result.
func Cast(mem memory.Allocator, a arrow.Array, to arrow.DataType, o CastOptions) (arrow.Array, error) {
	from := a.DataType()
	if from.ID() == arrow.DICTIONARY {
		plain := columnar.PlainColumn(mem, a)
		defer plain.Release()
		return Cast(mem, plain, to, o)
	}
	switch {
	case arrow.TypeEqual(from, to):
		a.Retain()
		return a, nil
	case from.ID() == arrow.NULL || a.Len() > 0 && a.NullN() == a.Len():
		return columnar.Nulls(mem, to, a.Len()), nil
	case !CanCast(from, to, o):
		return nil, fmt.Errorf("%s cannot be cast to %s", columnar.TypeName(from), columnar.TypeName(to))
	case columnar.IsNested(from) && columnar.IsNested(to):
		return castNested(mem, a, to, o)
	}
	valid, nulls := AndValidity(mem, a.Len(), columnar.ColumnDatum(a))
	c := caster{mem: mem, a: a, n: a.Len(), to: to, o: o, valid: valid, nulls: nulls}
	switch {
	case from.ID() == arrow.STRING:
		return c.fromText()
	case to.ID() == arrow.STRING:
		return c.toText()
	case to.ID() == arrow.TIMESTAMP || from.ID() == arrow.TIMESTAMP:
		return c.timestamps()
	}
	return c.numbers()
}

// caster is one cast of one column. valid is owned until finish.
type caster struct {
	mem   memory.Allocator
	a     arrow.Array
	n     int
	to    arrow.DataType
	o     CastOptions
	valid *memory.Buffer
	nulls int
}

// finish wraps values; if failed, bad says which rows could not be cast.
func (c *caster) finish(values *memory.Buffer, failed bool, bad func(i int) bool) (arrow.Array, error) {
	if failed {
		if err := c.settle(bad); err != nil {
			values.Release()
			return nil, err
		}
	}
	return Wrap(c.to, c.n, c.nulls, c.valid, values), nil
}

func (c *caster) settle(bad func(i int) bool) (err error) {
	c.valid, c.nulls, err = c.o.settle(c.mem, c.n, c.valid, c.nulls, func(i int) error {
		if !bad(i) {
			return nil
		}
		return castError(c.a, i, c.to)
	})
	return err
}

func castError(a arrow.Array, i int, to arrow.DataType) error {
	v := columnar.AppendValue(nil, a, i, nil)
	if len(v) > 100 {
		v = append(v[:100], "…"...)
	}
	kind, text := ErrOverflow, string(v)
	if id := a.DataType().ID(); id == arrow.STRING || id == arrow.BINARY {
		kind, text = ErrCast, fmt.Sprintf("%q", v)
	}
	return &ValueError{kind, fmt.Sprintf("cannot cast %s to %s", text, columnar.TypeName(to))}
}

// fromText parses. Each parser is called through a function value once a row: the
// work of parsing outweighs the call.
func (c *caster) fromText() (arrow.Array, error) {
	switch t := c.to.(type) {
	case *arrow.BinaryType:
		release(c.valid)
		return withType(c.a, c.to), nil
	case *arrow.BooleanType:
		return c.parseBools()
	case *arrow.Int8Type:
		return parseTexts(c, parseSmallInt[int8])
	case *arrow.Int16Type:
		return parseTexts(c, parseSmallInt[int16])
	case *arrow.Int32Type:
		return parseTexts(c, parseSmallInt[int32])
	case *arrow.Int64Type:
		return parseTexts(c, columnar.ParseInt[[]byte])
	case *arrow.Float32Type:
		return parseTexts(c, func(s []byte) (float32, bool) {
			v, ok := columnar.ParseFloat(s, 32)
			return float32(v), ok
		})
	case *arrow.Float64Type:
		return parseTexts(c, func(s []byte) (float64, bool) { return columnar.ParseFloat(s, 64) })
	case *arrow.Decimal128Type:
		return parseTexts(c, func(s []byte) (num, bool) { return columnar.ParseDecimal(s, t.Precision, t.Scale) })
	case *arrow.Date32Type:
		return parseTexts(c, columnar.ParseDate[[]byte])
	case *arrow.Time64Type:
		return parseTexts(c, columnar.ParseTime[[]byte])
	case *arrow.TimestampType:
		return parseTexts(c, func(s []byte) (int64, bool) { return columnar.ParseTimestamp(s, c.o.Location) })
	case *arrow.MonthDayNanoIntervalType:
		return parseTexts(c, func(s []byte) (arrow.MonthDayNanoInterval, bool) {
			v, err := columnar.ParseInterval(string(s))
			return v, err == nil
		})
	}
	release(c.valid)
	panic("bug: cast of text to " + c.to.String())
}

func parseSmallInt[T int8 | int16 | int32](s []byte) (T, bool) {
	v, ok := columnar.ParseInt(s)
	return T(v), ok && int64(T(v)) == v
}

func parseTexts[T any](c *caster, parse func([]byte) (T, bool)) (arrow.Array, error) {
	in := bytesOf(c.a)
	buf, out := Make[T](c.mem, c.n)
	var zero T
	failed := false
	for i := range out {
		if c.valid != nil && !bitAt(c.valid.Bytes(), i) {
			out[i] = zero
			continue
		}
		v, ok := parse(in.at(i))
		out[i] = v
		failed = failed || !ok
	}
	return c.finish(buf, failed, func(i int) bool { _, ok := parse(in.at(i)); return !ok })
}

func (c *caster) parseBools() (arrow.Array, error) {
	in := bytesOf(c.a)
	out := newBitmap(c.mem, c.n)
	failed := false
	eachBit(out.Bytes(), c.n, func(i int) bool {
		v, ok := columnar.ParseBool(in.at(i))
		failed = failed || !ok
		return v
	})
	return c.finish(out, failed, func(i int) bool { _, ok := columnar.ParseBool(in.at(i)); return !ok })
}

func (c *caster) toText() (arrow.Array, error) {
	if c.a.DataType().ID() == arrow.BINARY {
		in := bytesOf(c.a)
		bad := func(i int) bool { return !utf8.Valid(in.at(i)) }
		if err := c.settle(bad); err != nil {
			return nil, err
		}
		return c.withValidity(), nil
	}
	w := NewTextWriter(c.mem, c.n, c.n*12)
	for i := range c.n {
		w.Data = columnar.AppendText(w.Data, c.a, i, c.o.Location)
		w.End()
	}
	return w.Finish(c.to, c.valid, c.nulls)
}

// withValidity is the column with c's type and validity and its own other buffers.
func (c *caster) withValidity() arrow.Array {
	d := c.a.Data()
	valid := c.valid
	if valid != nil && d.Offset() > 0 {
		moved := newBitmap(c.mem, d.Offset()+c.n)
		clear(moved.Bytes())
		for i := range c.n {
			j := d.Offset() + i
			moved.Bytes()[j>>3] |= b2i(bitAt(valid.Bytes(), i)) << (j & 7)
		}
		valid.Release()
		valid = moved
	}
	data := array.NewData(c.to, c.n, append([]*memory.Buffer{valid}, d.Buffers()[1:]...), nil, c.nulls, d.Offset())
	defer data.Release()
	release(valid)
	return array.MakeFromData(data)
}

// numbers casts between booleans, integers, floats and decimals.
func (c *caster) numbers() (arrow.Array, error) {
	switch c.a.DataType().ID() {
	case arrow.BOOL:
		ints, out := Make[int8](c.mem, c.n)
		for i := range out {
			out[i] = int8(b2i(c.a.(*array.Boolean).Value(i)))
		}
		wrapped := Wrap(columnar.Int8, c.n, 0, nil, ints)
		defer wrapped.Release()
		c.a = wrapped
		return castFromInts[int8](c)
	case arrow.INT8:
		return castFromInts[int8](c)
	case arrow.INT16:
		return castFromInts[int16](c)
	case arrow.INT32:
		return castFromInts[int32](c)
	case arrow.INT64:
		return castFromInts[int64](c)
	case arrow.FLOAT32:
		return castFromFloats[float32](c, 32)
	case arrow.FLOAT64:
		return castFromFloats[float64](c, 64)
	}
	return c.fromDecimals()
}

func castFromInts[F integer](c *caster) (arrow.Array, error) {
	in := Values[F](c.a)
	switch t := c.to.(type) {
	case *arrow.BooleanType:
		out := newBitmap(c.mem, c.n)
		eachBit(out.Bytes(), c.n, func(i int) bool { return in[i] != 0 })
		return c.finish(out, false, nil)
	case *arrow.Int8Type:
		return castInts[F, int8](c, in)
	case *arrow.Int16Type:
		return castInts[F, int16](c, in)
	case *arrow.Int32Type:
		return castInts[F, int32](c, in)
	case *arrow.Int64Type:
		return castInts[F, int64](c, in)
	case *arrow.Float32Type:
		buf, out := Make[float32](c.mem, c.n)
		for i, v := range in {
			out[i] = float32(v)
		}
		return c.finish(buf, false, nil)
	case *arrow.Float64Type:
		buf, out := Make[float64](c.mem, c.n)
		for i, v := range in {
			out[i] = float64(v)
		}
		return c.finish(buf, false, nil)
	case *arrow.Decimal128Type:
		buf, out := Make[num](c.mem, c.n)
		failed := false
		convert := func(v F) (num, bool) { return rescale(fromInt(int64(v)), 0, t.Scale, t.Precision) }
		for i, v := range in {
			r, ok := convert(v)
			out[i] = r
			failed = failed || !ok
		}
		return c.finish(buf, failed, func(i int) bool { _, ok := convert(in[i]); return !ok })
	}
	release(c.valid)
	panic("bug: cast of an integer to " + c.to.String())
}

func castInts[F, T integer](c *caster, in []F) (arrow.Array, error) {
	buf, out := Make[T](c.mem, c.n)
	var differ int64
	for i, v := range in {
		r := T(v)
		differ |= int64(r) ^ int64(v)
		out[i] = r
	}
	return c.finish(buf, differ != 0, func(i int) bool { return int64(T(in[i])) != int64(in[i]) })
}

func castFromFloats[F float32 | float64](c *caster, bits int) (arrow.Array, error) {
	in := Values[F](c.a)
	switch t := c.to.(type) {
	case *arrow.BooleanType:
		out := newBitmap(c.mem, c.n)
		eachBit(out.Bytes(), c.n, func(i int) bool { return in[i] != 0 })
		return c.finish(out, false, nil)
	case *arrow.Int8Type:
		return truncate[F, int8](c, in, math.MinInt8, math.MaxInt8)
	case *arrow.Int16Type:
		return truncate[F, int16](c, in, math.MinInt16, math.MaxInt16)
	case *arrow.Int32Type:
		return truncate[F, int32](c, in, math.MinInt32, math.MaxInt32)
	case *arrow.Int64Type:
		return truncate[F, int64](c, in, math.MinInt64, math.MaxInt64)
	case *arrow.Float32Type:
		buf, out := Make[float32](c.mem, c.n)
		for i, v := range in {
			out[i] = float32(v)
		}
		return c.finish(buf, false, nil)
	case *arrow.Float64Type:
		buf, out := Make[float64](c.mem, c.n)
		for i, v := range in {
			out[i] = float64(v)
		}
		return c.finish(buf, false, nil)
	case *arrow.Decimal128Type:
		buf, out := Make[num](c.mem, c.n)
		failed := false
		for i, v := range in {
			r, ok := floatToDecimal(float64(v), bits, t)
			out[i] = r
			failed = failed || !ok
		}
		return c.finish(buf, failed, func(i int) bool { _, ok := floatToDecimal(float64(in[i]), bits, t); return !ok })
	}
	release(c.valid)
	panic("bug: cast of a float to " + c.to.String())
}

// truncate casts floats to integers towards zero. above is one more than the largest
// integer, exactly.
func truncate[F float32 | float64, T integer](c *caster, in []F, least, greatest float64) (arrow.Array, error) {
	buf, out := Make[T](c.mem, c.n)
	above := greatest + 1
	if greatest >= 1<<53 {
		above = greatest // MaxInt64 as a double is 2^63 already
	}
	fits := func(v F) bool { t := math.Trunc(float64(v)); return t >= least && t < above }
	failed := false
	for i, v := range in {
		if !fits(v) {
			failed = true
			v = 0
		}
		out[i] = T(v)
	}
	return c.finish(buf, failed, func(i int) bool { return !fits(in[i]) })
}

func (c *caster) fromDecimals() (arrow.Array, error) {
	in := Values[num](c.a)
	from := c.a.DataType().(*arrow.Decimal128Type)
	switch t := c.to.(type) {
	case *arrow.BooleanType:
		out := newBitmap(c.mem, c.n)
		eachBit(out.Bytes(), c.n, func(i int) bool { return in[i].Sign() != 0 })
		return c.finish(out, false, nil)
	case *arrow.Int8Type:
		return truncateDecimals[int8](c, in, from.Scale)
	case *arrow.Int16Type:
		return truncateDecimals[int16](c, in, from.Scale)
	case *arrow.Int32Type:
		return truncateDecimals[int32](c, in, from.Scale)
	case *arrow.Int64Type:
		return truncateDecimals[int64](c, in, from.Scale)
	case *arrow.Float32Type:
		buf, out := Make[float32](c.mem, c.n)
		for i, v := range in {
			out[i] = float32(decimalToFloat(v, from.Scale))
		}
		return c.finish(buf, false, nil)
	case *arrow.Float64Type:
		buf, out := Make[float64](c.mem, c.n)
		for i, v := range in {
			out[i] = decimalToFloat(v, from.Scale)
		}
		return c.finish(buf, false, nil)
	case *arrow.Decimal128Type:
		buf, out := Make[num](c.mem, c.n)
		failed := false
		for i, v := range in {
			r, ok := rescale(v, from.Scale, t.Scale, t.Precision)
			out[i] = r
			failed = failed || !ok
		}
		return c.finish(buf, failed, func(i int) bool { _, ok := rescale(in[i], from.Scale, t.Scale, t.Precision); return !ok })
	}
	release(c.valid)
	panic("bug: cast of a decimal to " + c.to.String())
}

func truncateDecimals[T integer](c *caster, in []num, scale int32) (arrow.Array, error) {
	buf, out := Make[T](c.mem, c.n)
	failed := false
	for i, v := range in {
		r, ok := wholePart(v, scale)
		out[i] = T(r)
		failed = failed || !ok || int64(T(r)) != r
	}
	return c.finish(buf, failed, func(i int) bool {
		r, ok := wholePart(in[i], scale)
		return !ok || int64(T(r)) != r
	})
}

// wholePart is v of the given scale without its fraction.
func wholePart(v num, scale int32) (int64, bool) {
	u, negative := magnitude(v)
	u = u.cut(scale)
	if u[1]|u[2]|u[3] != 0 || u[0] > math.MaxInt64 && !(negative && u[0] == 1<<63) {
		return 0, false
	}
	if negative {
		return -int64(u[0]), true
	}
	return int64(u[0]), true
}

// timestamps casts to and from TIMESTAMP.
func (c *caster) timestamps() (arrow.Array, error) {
	loc := c.o.Location
	switch {
	case c.a.DataType().ID() == arrow.DATE32:
		buf, out := Make[int64](c.mem, c.n)
		in, failed := Values[int32](c.a), false
		for i, v := range in {
			if !columnar.IsTimestampDay(int64(v)) {
				out[i], failed = 0, true
				continue
			}
			out[i] = columnar.StartOfDay(int64(v), loc)
		}
		return c.finish(buf, failed, func(i int) bool { return !columnar.IsTimestampDay(int64(in[i])) })
	case c.to.ID() == arrow.DATE32:
		buf, out := Make[int32](c.mem, c.n)
		for i, v := range Values[int64](c.a) {
			day, _ := columnar.LocalDay(v, loc)
			out[i] = int32(day)
		}
		return c.finish(buf, false, nil)
	case c.to.ID() == arrow.TIME64:
		buf, out := Make[int64](c.mem, c.n)
		for i, v := range Values[int64](c.a) {
			_, out[i] = columnar.LocalDay(v, loc)
		}
		return c.finish(buf, false, nil)
	}
	return c.seconds()
}

// seconds casts between TIMESTAMP and numbers by way of DECIMAL(20,6), or of the
// integer for integers.
func (c *caster) seconds() (arrow.Array, error) {
	if c.to.ID() == arrow.TIMESTAMP {
		return c.fromSeconds()
	}
	release(c.valid)
	in := c.a
	switch {
	case columnar.IsInteger(c.to):
		buf, out := Make[int64](c.mem, c.n)
		for i, v := range Values[int64](in) {
			out[i] = columnar.FloorDiv(v, columnar.MicrosPerSecond)
		}
		valid, nulls := AndValidity(c.mem, c.n, columnar.ColumnDatum(in))
		whole := Wrap(columnar.Int64, c.n, nulls, valid, buf)
		defer whole.Release()
		return Cast(c.mem, whole, c.to, c.o)
	default:
		buf, out := Make[num](c.mem, c.n)
		for i, v := range Values[int64](in) {
			out[i] = fromInt(v)
		}
		valid, nulls := AndValidity(c.mem, c.n, columnar.ColumnDatum(in))
		exact := Wrap(columnar.Decimal(20, 6), c.n, nulls, valid, buf)
		defer exact.Release()
		return Cast(c.mem, exact, c.to, c.o)
	}
}

// fromSeconds multiplies by a million, exactly for integers and decimals; a fraction
// of a microsecond is cut off.
func (c *caster) fromSeconds() (arrow.Array, error) {
	buf, out := Make[int64](c.mem, c.n)
	failed := false
	var convert func(i int) (int64, bool)
	switch t := c.a.DataType().(type) {
	case *arrow.Float32Type, *arrow.Float64Type:
		convert = func(i int) (int64, bool) {
			v := math.Floor(floatAt(c.a, i) * 1e6)
			return int64(v), v >= math.MinInt64 && v < math.MaxInt64
		}
	case *arrow.Decimal128Type:
		in := Values[num](c.a)
		convert = func(i int) (int64, bool) {
			if t.Scale >= 6 {
				return wholePart(in[i], t.Scale-6)
			}
			v, ok := rescale(in[i], t.Scale, 6, columnar.MaxPrecision)
			if !ok {
				return 0, false
			}
			return wholePart(v, 0)
		}
	default:
		convert = func(i int) (int64, bool) {
			v := intAt(c.a, i)
			return v * columnar.MicrosPerSecond, multiplyHigh(v, columnar.MicrosPerSecond) == 0
		}
	}
	for i := range out {
		v, ok := convert(i)
		out[i] = v
		failed = failed || !ok
	}
	return c.finish(buf, failed, func(i int) bool { _, ok := convert(i); return !ok })
}

func floatAt(a arrow.Array, i int) float64 {
	if f, ok := a.(*array.Float32); ok {
		return float64(f.Value(i))
	}
	return a.(*array.Float64).Value(i)
}

func intAt(a arrow.Array, i int) int64 {
	switch a := a.(type) {
	case *array.Int8:
		return int64(a.Value(i))
	case *array.Int16:
		return int64(a.Value(i))
	case *array.Int32:
		return int64(a.Value(i))
	}
	return a.(*array.Int64).Value(i)
}

// castNested casts element by element and keeps the shape.
func castNested(mem memory.Allocator, a arrow.Array, to arrow.DataType, o CastOptions) (arrow.Array, error) {
	valid, nulls := AndValidity(mem, a.Len(), columnar.ColumnDatum(a))
	var children []arrow.Array
	fail := func(err error) (arrow.Array, error) {
		release(valid)
		for _, c := range children {
			c.Release()
		}
		return nil, err
	}
	inner := o
	if s, ok := a.(*array.Struct); ok {
		inner.Active = countingRows(a, o.Active)
		t := to.(*arrow.StructType)
		for i, k := range o.fieldOrder(s.DataType().(*arrow.StructType), t) {
			c, err := Cast(mem, s.Field(k), t.Field(i).Type, inner)
			if err != nil {
				return fail(err)
			}
			children = append(children, c)
		}
		return wrapNested(to, a.Len(), nulls, []*memory.Buffer{valid}, children), nil
	}
	src := offsetsOf(a)
	from := src[0]
	part := array.NewSlice(childOf(a), int64(from), int64(src[a.Len()]))
	defer part.Release()
	inner.Active = countingElements(a, src, o.Active)
	c, err := Cast(mem, part, childType(to), inner)
	if err != nil {
		return fail(err)
	}
	if m, ok := to.(*arrow.MapType); ok && !arrow.TypeEqual(m.KeyType(), a.DataType().(*arrow.MapType).KeyType()) {
		return castMaps(mem, a, m, o, c, valid, nulls)
	}
	children = append(children, c)
	offsets, ends := Make[int32](mem, a.Len()+1)
	for i, e := range src[:a.Len()+1] {
		ends[i] = e - from
	}
	return wrapNested(to, a.Len(), nulls, []*memory.Buffer{valid, offsets}, children), nil
}

func childType(dt arrow.DataType) arrow.DataType {
	if m, ok := dt.(*arrow.MapType); ok {
		return m.Elem()
	}
	return dt.(*arrow.ListType).Elem()
}

// countingRows is the active rows of a that are not null; nil if all are.
func countingRows(a arrow.Array, active *columnar.Bitmap) *columnar.Bitmap {
	if a.NullN() == 0 {
		return active
	}
	b := columnar.NewBitmap(a.Len())
	MarkValid(b, columnar.ColumnDatum(a), a.Len())
	b.And(active)
	return b
}

// countingElements is the elements, counted from the first list's first, that belong
// to lists that count; nil if all do.
func countingElements(a arrow.Array, offsets []int32, active *columnar.Bitmap) *columnar.Bitmap {
	rows := countingRows(a, active)
	if rows == nil {
		return nil
	}
	from := offsets[0]
	b := columnar.NewBitmap(int(offsets[a.Len()] - from))
	for i := range a.Len() {
		if rows.Get(i) {
			for e := offsets[i]; e < offsets[i+1]; e++ {
				b.Set(int(e - from))
			}
		}
	}
	return b
}
