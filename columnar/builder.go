package columnar

import (
	"fmt"
	"strings"
	"time"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/decimal128"
	"github.com/apache/arrow-go/v18/arrow/memory"
)

// Builder makes a column from Go values, one at a time: for literals, VALUES and
// tests. Hot paths write into buffers instead. It is used by one goroutine.
type Builder struct {
	dt arrow.DataType
	b  array.Builder
}

// NewBuilder returns a Builder of columns of type dt, to be released.
func NewBuilder(mem memory.Allocator, dt arrow.DataType) *Builder {
	return &Builder{dt: dt, b: array.NewBuilder(mem, dt)}
}

// Len is the number of values appended.
func (b *Builder) Len() int { return b.b.Len() }

// AppendNull appends NULL.
func (b *Builder) AppendNull() { b.b.AppendNull() }

// NewArray returns the column and makes b empty.
func (b *Builder) NewArray() arrow.Array { return b.b.NewArray() }

// Release gives back what b holds.
func (b *Builder) Release() { b.b.Release() }

// Append appends v: nil for NULL, any Go integer or float for a number that fits,
// bool, string, []byte, decimal128.Num (unscaled), text for a decimal, arrow.Date32,
// arrow.Time64, arrow.Timestamp, time.Time, text for the temporal types, time.Duration
// since midnight for a TIME, arrow.MonthDayNanoInterval, a slice for an ARRAY, map[string]any
// for a STRUCT, by the names of its fields (one that is not there is null), or []any of its
// fields in order, [][2]any or a map, in the order of its keys, for a MAP. It is what Value
// returns. Anything else is an error.
func (b *Builder) Append(v any) error { return appendAny(b.b, b.dt, v) }

// AppendFrom appends value i of a, which has the type of b or is a dictionary of it.
func (b *Builder) AppendFrom(a arrow.Array, i int) error { return b.Append(Value(a, i)) }

func misfit(dt arrow.DataType, v any) error {
	name, article := TypeName(dt), "a"
	if strings.HasPrefix(name, "A") || strings.HasPrefix(name, "I") {
		article = "an"
	}
	return fmt.Errorf("%v (%T) is not %s %s", v, v, article, name)
}

func appendAny(b array.Builder, dt arrow.DataType, v any) error {
	if v == nil {
		b.AppendNull()
		return nil
	}
	switch b := b.(type) {
	case *array.BooleanBuilder:
		if x, ok := v.(bool); ok {
			b.Append(x)
			return nil
		}
	case *array.StringBuilder:
		switch x := v.(type) {
		case string:
			b.Append(x)
			return nil
		case []byte:
			b.Append(string(x))
			return nil
		}
	case *array.BinaryBuilder:
		switch x := v.(type) {
		case string:
			b.Append([]byte(x))
			return nil
		case []byte:
			b.Append(x)
			return nil
		}
	case *array.Float32Builder:
		if x, ok := goFloat(v); ok {
			b.Append(float32(x))
			return nil
		}
	case *array.Float64Builder:
		if x, ok := goFloat(v); ok {
			b.Append(x)
			return nil
		}
	case *array.Decimal128Builder:
		if x, ok := goDecimal(v, dt.(*arrow.Decimal128Type)); ok {
			b.Append(x)
			return nil
		}
	case *array.MonthDayNanoIntervalBuilder:
		return appendInterval(b, v)
	case *array.Date32Builder, *array.Time64Builder, *array.TimestampBuilder:
		if appendTemporal(b, v) {
			return nil
		}
	case *array.ListBuilder, *array.StructBuilder, *array.MapBuilder:
		return appendNested(b, dt, v)
	default:
		if x, ok := goInt(v); ok && appendInt(b, x) {
			return nil
		}
	}
	return misfit(dt, v)
}

func appendInt(b array.Builder, x int64) bool {
	switch b := b.(type) {
	case *array.Int8Builder:
		b.Append(int8(x))
		return int64(int8(x)) == x
	case *array.Int16Builder:
		b.Append(int16(x))
		return int64(int16(x)) == x
	case *array.Int32Builder:
		b.Append(int32(x))
		return int64(int32(x)) == x
	case *array.Int64Builder:
		b.Append(x)
		return true
	}
	return false
}

func goInt(v any) (int64, bool) {
	switch x := v.(type) {
	case int:
		return int64(x), true
	case int8:
		return int64(x), true
	case int16:
		return int64(x), true
	case int32:
		return int64(x), true
	case int64:
		return x, true
	case uint8:
		return int64(x), true
	case uint16:
		return int64(x), true
	case uint32:
		return int64(x), true
	case uint:
		return int64(x), int64(x) >= 0
	case uint64:
		return int64(x), int64(x) >= 0
	}
	return 0, false
}

func goFloat(v any) (float64, bool) {
	switch x := v.(type) {
	case float64:
		return x, true
	case float32:
		return float64(x), true
	}
	x, ok := goInt(v)
	return float64(x), ok
}

func goDecimal(v any, t *arrow.Decimal128Type) (decimal128.Num, bool) {
	switch x := v.(type) {
	case decimal128.Num:
		return x, FitsPrecision(x, t.Precision)
	case string:
		return ParseDecimal(x, t.Precision, t.Scale)
	case float64, float32:
		f, _ := goFloat(v)
		return ParseDecimal(AppendFloat(nil, f, 64), t.Precision, t.Scale)
	}
	x, ok := goInt(v)
	if !ok {
		return decimal128.Num{}, false
	}
	return ParseDecimal(fmt.Sprint(x), t.Precision, t.Scale)
}

func appendInterval(b *array.MonthDayNanoIntervalBuilder, v any) error {
	switch x := v.(type) {
	case arrow.MonthDayNanoInterval:
		b.Append(x)
		return nil
	case time.Duration:
		b.Append(arrow.MonthDayNanoInterval{Nanoseconds: int64(x)})
		return nil
	case string:
		i, err := ParseInterval(x)
		b.Append(i)
		return err
	}
	return misfit(Interval, v)
}

func appendTemporal(b array.Builder, v any) bool {
	s, isText := v.(string)
	n, isInt := goInt(v)
	t, isTime := v.(time.Time)
	span, isSpan := v.(time.Duration)
	switch b := b.(type) {
	case *array.Date32Builder:
		x, ok := v.(arrow.Date32)
		switch {
		case isText:
			var days int32
			days, ok = ParseDate(s)
			x = arrow.Date32(days)
		case isInt:
			x, ok = arrow.Date32(n), int64(int32(n)) == n
		case isTime:
			x, ok = arrow.Date32(DaysFromCivil(int64(t.Year()), int(t.Month()), t.Day())), true
		}
		b.Append(x)
		return ok
	case *array.Time64Builder:
		x, ok := v.(arrow.Time64)
		switch {
		case isText:
			var us int64
			us, ok = ParseTime(s)
			x = arrow.Time64(us)
		case isInt:
			x, ok = arrow.Time64(n), n >= 0 && n < MicrosPerDay
		case isSpan:
			x, ok = arrow.Time64(span/time.Microsecond), span >= 0 && span < 24*time.Hour
		}
		b.Append(x)
		return ok
	case *array.TimestampBuilder:
		x, ok := v.(arrow.Timestamp)
		switch {
		case isText:
			var us int64
			us, ok = ParseTimestamp(s, nil)
			x = arrow.Timestamp(us)
		case isInt:
			x, ok = arrow.Timestamp(n), true
		case isTime:
			x, ok = arrow.Timestamp(t.UnixMicro()), true
		}
		b.Append(x)
		return ok
	}
	return false
}

// IsNull says whether value i of a is null: also in a column of type NULL, of which
// Arrow's own IsNull says false, and where a dictionary's code names a null.
func IsNull(a arrow.Array, i int) bool {
	switch a := a.(type) {
	case *array.Null:
		return true
	case *array.Dictionary:
		return a.IsNull(i) || a.Dictionary().IsNull(a.GetValueIndex(i))
	}
	return a.IsNull(i)
}

// Value is value i of a as a Go value: nil for NULL, bool, int8 to int64, float32,
// float64, string, []byte (a copy), decimal128.Num, arrow.Date32, arrow.Time64,
// arrow.Timestamp, arrow.MonthDayNanoInterval, []any for an ARRAY or a STRUCT,
// [][2]any for a MAP.
func Value(a arrow.Array, i int) any {
	if IsNull(a, i) {
		return nil
	}
	switch a := a.(type) {
	case *array.Boolean:
		return a.Value(i)
	case *array.Int8:
		return a.Value(i)
	case *array.Int16:
		return a.Value(i)
	case *array.Int32:
		return a.Value(i)
	case *array.Int64:
		return a.Value(i)
	case *array.Float32:
		return a.Value(i)
	case *array.Float64:
		return a.Value(i)
	case *array.Decimal128:
		return a.Value(i)
	case *array.String:
		return string([]byte(a.Value(i)))
	case *array.Binary:
		return append([]byte{}, a.Value(i)...)
	case *array.Date32:
		return a.Value(i)
	case *array.Time64:
		return a.Value(i)
	case *array.Timestamp:
		return a.Value(i)
	case *array.MonthDayNanoInterval:
		return a.Value(i)
	case *array.Dictionary:
		return Value(a.Dictionary(), a.GetValueIndex(i))
	case *array.Map:
		from, to := a.ValueOffsets(i)
		out := make([][2]any, 0, to-from)
		for j := int(from); j < int(to); j++ {
			out = append(out, [2]any{Value(a.Keys(), j), Value(a.Items(), j)})
		}
		return out
	case *array.List:
		from, to := a.ValueOffsets(i)
		out := make([]any, 0, to-from)
		for j := int(from); j < int(to); j++ {
			out = append(out, Value(a.ListValues(), j))
		}
		return out
	case *array.Struct:
		out := make([]any, a.NumField())
		for k := range out {
			out[k] = Value(a.Field(k), i)
		}
		return out
	}
	panic("bug: value of type " + a.DataType().String())
}

// Column makes a column of type dt of the given Go values (see Builder.Append). The
// caller releases it.
func Column(mem memory.Allocator, dt arrow.DataType, values ...any) (arrow.Array, error) {
	b := NewBuilder(mem, dt)
	defer b.Release()
	for _, v := range values {
		if err := b.Append(v); err != nil {
			return nil, err
		}
	}
	return b.NewArray(), nil
}

// Constant is one Go value (see Builder.Append) as a constant Datum of type dt.
func Constant(mem memory.Allocator, dt arrow.DataType, v any) (Datum, error) {
	a, err := Column(mem, dt, v)
	if err != nil {
		return Datum{}, err
	}
	return ConstantDatum(a), nil
}

// NullConstant is the constant NULL of type dt.
func NullConstant(mem memory.Allocator, dt arrow.DataType) Datum {
	return ConstantDatum(Nulls(mem, dt, 1))
}

// Nulls is a column of n nulls of type dt. The caller releases it.
func Nulls(mem memory.Allocator, dt arrow.DataType, n int) arrow.Array {
	if dt.ID() == arrow.NULL {
		return array.NewNull(n)
	}
	zeros := func(size int) *memory.Buffer {
		b := newBuffer(mem, size)
		clear(b.Bytes())
		return b
	}
	buffers := []*memory.Buffer{zeros((n + 7) / 8)}
	var children []arrow.ArrayData
	child := func(t arrow.DataType, n int) {
		c := Nulls(mem, t, n)
		defer c.Release()
		c.Data().Retain()
		children = append(children, c.Data())
	}
	switch t := dt.(type) {
	case *arrow.StructType:
		for _, f := range t.Fields() {
			child(f.Type, n)
		}
	case *arrow.MapType:
		buffers = append(buffers, zeros((n+1)*4))
		child(t.Elem(), 0)
	case *arrow.ListType:
		buffers = append(buffers, zeros((n+1)*4))
		child(t.Elem(), 0)
	case *arrow.StringType, *arrow.BinaryType:
		buffers = append(buffers, zeros((n+1)*4), zeros(0))
	case arrow.FixedWidthDataType:
		buffers = append(buffers, zeros((n*t.BitWidth()+7)/8))
	default:
		panic("bug: nulls of type " + dt.String())
	}
	data := array.NewData(dt, n, buffers, children, n, 0)
	defer data.Release()
	for _, b := range buffers {
		b.Release()
	}
	for _, c := range children {
		c.Release()
	}
	return array.MakeFromData(data)
}

// Broadcast is d as a column of rows values: the column itself with one more
// reference, or the constant repeated. The caller releases the result.
func Broadcast(mem memory.Allocator, d Datum, rows int) arrow.Array {
	a := d.Array()
	if !d.IsConstant() {
		a.Retain()
		return a
	}
	if IsNull(a, 0) {
		return Nulls(mem, a.DataType(), rows)
	}
	switch t := a.DataType().(type) {
	case *arrow.BooleanType:
		return repeatBool(mem, a.(*array.Boolean).Value(0), rows)
	case *arrow.StringType:
		return repeatBytes(mem, t, []byte(a.(*array.String).Value(0)), rows)
	case *arrow.BinaryType:
		return repeatBytes(mem, t, a.(*array.Binary).Value(0), rows)
	case *arrow.StructType, *arrow.MapType, *arrow.ListType:
		return repeatNested(mem, a, rows)
	case arrow.FixedWidthDataType:
		width := t.BitWidth() / 8
		from := a.Data().Offset() * width
		out := newBuffer(mem, rows*width)
		repeatInto(out.Bytes(), a.Data().Buffers()[1].Bytes()[from:from+width])
		return wrapBuffers(t, rows, nil, out)
	}
	panic("bug: broadcast of type " + a.DataType().String())
}

// repeatInto fills dst, a multiple of len(v) long, with v.
func repeatInto(dst, v []byte) {
	n := copy(dst, v)
	for n > 0 && n < len(dst) {
		n += copy(dst[n:], dst[:n])
	}
}

func repeatBool(mem memory.Allocator, v bool, rows int) arrow.Array {
	out := newBuffer(mem, (rows+7)/8)
	fill := byte(0)
	if v {
		fill = 0xFF
	}
	repeatInto(out.Bytes(), []byte{fill})
	return wrapBuffers(Boolean, rows, nil, out)
}

func repeatBytes(mem memory.Allocator, dt arrow.DataType, v []byte, rows int) arrow.Array {
	offsets := newBuffer(mem, (rows+1)*4)
	ends := arrow.Int32Traits.CastFromBytes(offsets.Bytes())
	for i := range ends {
		ends[i] = int32(i * len(v))
	}
	data := newBuffer(mem, rows*len(v))
	repeatInto(data.Bytes(), v)
	return wrapBuffers(dt, rows, nil, offsets, data)
}

func repeatNested(mem memory.Allocator, a arrow.Array, rows int) arrow.Array {
	b := NewBuilder(mem, a.DataType())
	defer b.Release()
	v := Value(a, 0)
	for range rows {
		if err := b.Append(v); err != nil {
			panic("bug: " + err.Error())
		}
	}
	return b.NewArray()
}

// wrapBuffers makes an array without nulls of buffers it takes over.
func wrapBuffers(dt arrow.DataType, n int, buffers ...*memory.Buffer) arrow.Array {
	data := array.NewData(dt, n, buffers, nil, 0, 0)
	defer data.Release()
	for _, b := range buffers {
		if b != nil {
			b.Release()
		}
	}
	return array.MakeFromData(data)
}
