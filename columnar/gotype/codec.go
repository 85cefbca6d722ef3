package gotype

import (
	"errors"
	"fmt"
	"reflect"
	"time"
	"unsafe"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/decimal128"

	"github.com/tidemill/tidemill/columnar"
)

// codec moves values of one Go type. decode overwrites to.n values from the rows of a
// that begin with from; append appends v.n values.
type codec interface {
	dataType() arrow.DataType
	append(b array.Builder, v strided) error
	decode(a arrow.Array, from int, to strided) error
}

var (
	timeType = reflect.TypeFor[time.Time]()
)

// codec is how values of a type are moved.
func (m mapper) codec(t reflect.Type) (codec, error) {
	if t == timeType {
		return instant{}, nil
	}
	switch t.Kind() {
	case reflect.Bool:
		return boolean{}, nil
	case reflect.Int8:
		return number[int8]{columnar.Int8}, nil
	case reflect.Int16:
		return number[int16]{columnar.Int16}, nil
	case reflect.Int32:
		return number[int32]{columnar.Int32}, nil
	case reflect.Int64:
		return number[int64]{columnar.Int64}, nil
	case reflect.Float32:
		return number[float32]{columnar.Float32}, nil
	case reflect.Float64:
		return number[float64]{columnar.Float64}, nil
	case reflect.Int:
		return widened[int, int64]{columnar.Int64}, nil
	case reflect.Uint8:
		return widened[uint8, int16]{columnar.Int16}, nil
	case reflect.Uint16:
		return widened[uint16, int32]{columnar.Int32}, nil
	case reflect.Uint32:
		return widened[uint32, int64]{columnar.Int64}, nil
	case reflect.Uint64:
		return natural[uint64]{}, nil
	case reflect.Uint:
		return natural[uint]{}, nil
	case reflect.String:
		return text{}, nil
	case reflect.Struct:
		return m.structure(t)
	case reflect.Pointer, reflect.Slice, reflect.Map:
		if err := m.enter(t); err != nil {
			return nil, err
		}
		defer delete(m.open, t)
		return m.container(t)
	}
	return nil, fmt.Errorf("a %s cannot be a column; use numbers, text, time.Time, slices, maps and structs of them", t)
}

// container is how values of a type that holds others are moved.
func (m mapper) container(t reflect.Type) (codec, error) {
	switch t.Kind() {
	case reflect.Pointer:
		return m.pointer(t)
	case reflect.Slice:
		return m.slice(t)
	}
	return m.dictionary(t)
}

var errNull = errors.New("it is NULL, which its Go type cannot be; make it a pointer, or filter the rows")

// noNulls is an error if one of n values from row from is null.
func noNulls(a arrow.Array, from, n int) error {
	if a.NullN() == 0 {
		return nil
	}
	for i := from; i < from+n; i++ {
		if a.IsNull(i) {
			return errNull
		}
	}
	return nil
}

// raw is the values of a fixed-width array from row from, as a slice of T.
func raw[T any](a arrow.Array, from, n int) []T {
	d := a.Data()
	var zero T
	size := int(unsafe.Sizeof(zero))
	b := d.Buffers()[1].Bytes()
	all := unsafe.Slice((*T)(unsafe.Pointer(unsafe.SliceData(b))), len(b)/size)
	return all[d.Offset()+from : d.Offset()+from+n]
}

// gathered is the values of v one behind the other: v itself if they lie so.
func gathered[T any](v strided) []T {
	var zero T
	if v.stride == unsafe.Sizeof(zero) {
		return unsafe.Slice((*T)(v.p), v.n)
	}
	out := make([]T, v.n)
	for i := range out {
		out[i] = *(*T)(v.value(i))
	}
	return out
}

// number is a Go number that is stored as it is.
type number[T any] struct{ dt arrow.DataType }

func (c number[T]) dataType() arrow.DataType { return c.dt }

func (c number[T]) append(b array.Builder, v strided) error {
	b.(interface{ AppendValues([]T, []bool) }).AppendValues(gathered[T](v), nil)
	return nil
}

func (c number[T]) decode(a arrow.Array, from int, to strided) error {
	if err := noNulls(a, from, to.n); err != nil {
		return err
	}
	for i, x := range raw[T](a, from, to.n) {
		*(*T)(to.value(i)) = x
	}
	return nil
}

type integer interface {
	~int | ~int16 | ~int32 | ~int64 | ~uint8 | ~uint16 | ~uint32 | ~uint | ~uint64
}

// widened is a Go integer G that is stored as a wider A.
type widened[G, A integer] struct{ dt arrow.DataType }

func (c widened[G, A]) dataType() arrow.DataType { return c.dt }

func (c widened[G, A]) append(b array.Builder, v strided) error {
	wide := make([]A, v.n)
	for i := range wide {
		wide[i] = A(*(*G)(v.value(i)))
	}
	b.(interface{ AppendValues([]A, []bool) }).AppendValues(wide, nil)
	return nil
}

func (c widened[G, A]) decode(a arrow.Array, from int, to strided) error {
	if err := noNulls(a, from, to.n); err != nil {
		return err
	}
	for i, x := range raw[A](a, from, to.n) {
		g := G(x)
		if A(g) != x || (g < 0) != (x < 0) {
			return fmt.Errorf("%v does not fit %T", x, g)
		}
		*(*G)(to.value(i)) = g
	}
	return nil
}

// natural is an unsigned integer of 64 bits.
type natural[G ~uint | ~uint64] struct{}

func (natural[G]) dataType() arrow.DataType { return columnar.Decimal(20, 0) }

func (natural[G]) append(b array.Builder, v strided) error {
	wide := make([]decimal128.Num, v.n)
	for i := range wide {
		wide[i] = decimal128.FromU64(uint64(*(*G)(v.value(i))))
	}
	b.(*array.Decimal128Builder).AppendValues(wide, nil)
	return nil
}

func (natural[G]) decode(a arrow.Array, from int, to strided) error {
	if err := noNulls(a, from, to.n); err != nil {
		return err
	}
	d := a.(*array.Decimal128)
	for i := range to.n {
		x := d.Value(from + i)
		g := G(x.LowBits())
		if x.HighBits() != 0 || uint64(g) != x.LowBits() {
			return fmt.Errorf("%s does not fit %T", x.ToString(0), g)
		}
		*(*G)(to.value(i)) = g
	}
	return nil
}

type boolean struct{}

func (boolean) dataType() arrow.DataType { return columnar.Boolean }

func (boolean) append(b array.Builder, v strided) error {
	b.(*array.BooleanBuilder).AppendValues(gathered[bool](v), nil)
	return nil
}

func (boolean) decode(a arrow.Array, from int, to strided) error {
	if err := noNulls(a, from, to.n); err != nil {
		return err
	}
	d := a.(*array.Boolean)
	for i := range to.n {
		*(*bool)(to.value(i)) = d.Value(from + i)
	}
	return nil
}

type text struct{}

func (text) dataType() arrow.DataType { return columnar.String }

func (text) append(b array.Builder, v strided) error {
	b.(*array.StringBuilder).AppendValues(gathered[string](v), nil)
	return nil
}

func (text) decode(a arrow.Array, from int, to strided) error {
	if err := noNulls(a, from, to.n); err != nil {
		return err
	}
	d := a.Data()
	offsets := arrow.Int32Traits.CastFromBytes(d.Buffers()[1].Bytes())[d.Offset()+from : d.Offset()+from+to.n+1]
	start, end := offsets[0], offsets[to.n]
	if start == end {
		for i := range to.n {
			*(*string)(to.value(i)) = ""
		}
		return nil
	}
	all := append([]byte(nil), d.Buffers()[2].Bytes()[start:end]...)
	shared := unsafe.String(unsafe.SliceData(all), len(all)) // all is never written again
	for i := range to.n {
		*(*string)(to.value(i)) = shared[offsets[i]-start : offsets[i+1]-start]
	}
	return nil
}

// bytes is []byte; nil is NULL.
type bytes struct{}

func (bytes) dataType() arrow.DataType { return columnar.Binary }

func (bytes) append(b array.Builder, v strided) error {
	w := b.(*array.BinaryBuilder)
	for i := range v.n {
		if x := *(*[]byte)(v.value(i)); x == nil {
			w.AppendNull()
		} else {
			w.Append(x)
		}
	}
	return nil
}

func (bytes) decode(a arrow.Array, from int, to strided) error {
	d := a.(*array.Binary)
	for i := range to.n {
		p := (*[]byte)(to.value(i))
		if d.IsNull(from + i) {
			*p = nil
		} else {
			*p = append([]byte{}, d.Value(from+i)...)
		}
	}
	return nil
}

type instant struct{}

func (instant) dataType() arrow.DataType { return columnar.Timestamp }

func (instant) append(b array.Builder, v strided) error {
	micros := make([]arrow.Timestamp, v.n)
	for i := range micros {
		t := *(*time.Time)(v.value(i))
		us := t.UnixMicro()
		if year := t.Year(); year < -200_000 || year > 200_000 {
			return fmt.Errorf("the year %d is beyond TIMESTAMP", year)
		}
		micros[i] = arrow.Timestamp(us)
	}
	b.(*array.TimestampBuilder).AppendValues(micros, nil)
	return nil
}

func (instant) decode(a arrow.Array, from int, to strided) error {
	if err := noNulls(a, from, to.n); err != nil {
		return err
	}
	for i, us := range raw[int64](a, from, to.n) {
		*(*time.Time)(to.value(i)) = time.UnixMicro(us).UTC()
	}
	return nil
}
