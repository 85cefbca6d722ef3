package avro

import (
	"encoding/binary"
	"errors"
	"fmt"
	"math"
	"time"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/decimal128"

	"github.com/tidemill/tidemill/columnar"
	"github.com/tidemill/tidemill/columnar/kernel"
)

// encoder appends the value of a row of a column.
type encoder func(dst []byte, row int) ([]byte, error)

// Branches of the unions that are written.
const (
	branchNull  = 0 // zigzag of 0
	branchValue = 2 // of 1
)

// encodeOptional appends values that may be null.
func encodeOptional(a arrow.Array) (encoder, error) {
	if a.DataType().ID() == arrow.NULL {
		return func(dst []byte, _ int) ([]byte, error) { return dst, nil }, nil
	}
	value, err := encodeValue(a)
	if err != nil || a.NullN() == 0 {
		return func(dst []byte, row int) ([]byte, error) { return value(append(dst, branchValue), row) }, err
	}
	return func(dst []byte, row int) ([]byte, error) {
		if a.IsNull(row) {
			return append(dst, branchNull), nil
		}
		return value(append(dst, branchValue), row)
	}, nil
}

// encodeValue appends values that are not null.
func encodeValue(a arrow.Array) (encoder, error) {
	switch a := a.(type) {
	case *array.Boolean:
		return func(dst []byte, row int) ([]byte, error) {
			if a.Value(row) {
				return append(dst, 1), nil
			}
			return append(dst, 0), nil
		}, nil
	case *array.Int8:
		return encodeNumbers[int8](a), nil
	case *array.Int16:
		return encodeNumbers[int16](a), nil
	case *array.Int32:
		return encodeNumbers[int32](a), nil
	case *array.Date32:
		return encodeNumbers[int32](a), nil
	case *array.Int64, *array.Time64, *array.Timestamp:
		return encodeNumbers[int64](a), nil
	case *array.Float32:
		values := a.Float32Values()
		return func(dst []byte, row int) ([]byte, error) {
			return binary.LittleEndian.AppendUint32(dst, math.Float32bits(values[row])), nil
		}, nil
	case *array.Float64:
		values := a.Float64Values()
		return func(dst []byte, row int) ([]byte, error) {
			return binary.LittleEndian.AppendUint64(dst, math.Float64bits(values[row])), nil
		}, nil
	case *array.Decimal128:
		return func(dst []byte, row int) ([]byte, error) { return appendDecimal(dst, a.Value(row)), nil }, nil
	case *array.MonthDayNanoInterval:
		return func(dst []byte, row int) ([]byte, error) { return appendDuration(dst, a.Value(row)) }, nil
	case *array.String, *array.Binary:
		texts := kernel.TextsOf(columnar.ColumnDatum(a))
		return func(dst []byte, row int) ([]byte, error) {
			text := texts.At(row)
			return append(binary.AppendVarint(dst, int64(len(text))), text...), nil
		}, nil
	}
	return encodeNested(a)
}

func encodeNumbers[T int8 | int16 | int32 | int64](a arrow.Array) encoder {
	values := kernel.Values[T](a)
	return func(dst []byte, row int) ([]byte, error) { return binary.AppendVarint(dst, int64(values[row])), nil }
}

// appendDecimal appends the shortest two's complement, the first byte first.
func appendDecimal(dst []byte, v decimal128.Num) []byte {
	var raw [16]byte
	binary.BigEndian.PutUint64(raw[:8], uint64(v.HighBits()))
	binary.BigEndian.PutUint64(raw[8:], v.LowBits())
	p := raw[:]
	for len(p) > 1 && (p[0] == 0 && p[1] < 0x80 || p[0] == 0xFF && p[1] >= 0x80) {
		p = p[1:]
	}
	return append(binary.AppendVarint(dst, int64(len(p))), p...)
}

// appendDuration appends an interval, whose parts a duration has without sign and in
// milliseconds.
func appendDuration(dst []byte, v arrow.MonthDayNanoInterval) ([]byte, error) {
	const milli = int64(time.Millisecond)
	if v.Months < 0 || v.Days < 0 || v.Nanoseconds < 0 || v.Nanoseconds%milli != 0 || v.Nanoseconds/milli > math.MaxUint32 {
		return nil, fmt.Errorf("the interval %s cannot be written to an Avro file, whose durations are not negative and of whole milliseconds; CAST it to VARCHAR",
			columnar.AppendInterval(nil, v))
	}
	dst = binary.LittleEndian.AppendUint32(dst, uint32(v.Months))
	dst = binary.LittleEndian.AppendUint32(dst, uint32(v.Days))
	return binary.LittleEndian.AppendUint32(dst, uint32(v.Nanoseconds/milli)), nil
}

func encodeNested(a arrow.Array) (encoder, error) {
	switch a := a.(type) {
	case *array.Struct:
		fields := make([]arrow.Array, a.NumField())
		for i := range fields {
			fields[i] = a.Field(i)
		}
		return encodeRecord(a.DataType().(*arrow.StructType).Fields(), fields)
	case *array.Map:
		value, err := encodeOptional(a.Items())
		if err != nil {
			return nil, err
		}
		keys := kernel.TextsOf(columnar.ColumnDatum(a.Keys()))
		return encodeElements(a, func(dst []byte, i int) ([]byte, error) {
			key := keys.At(i)
			return value(append(binary.AppendVarint(dst, int64(len(key))), key...), i)
		}), nil
	case *array.List:
		item, err := encodeOptional(a.ListValues())
		return encodeElements(a, item), err
	}
	return nil, errors.New(columnar.TypeName(a.DataType()) + " cannot be written to an Avro file")
}

// encodeElements appends arrays or maps of elements: their number, they, and a 0.
func encodeElements(a array.ListLike, element encoder) encoder {
	return func(dst []byte, row int) ([]byte, error) {
		from, to := a.ValueOffsets(row)
		if from < to {
			dst = binary.AppendVarint(dst, to-from)
		}
		for i := from; i < to; i++ {
			var err error
			if dst, err = element(dst, int(i)); err != nil {
				return nil, err
			}
		}
		return append(dst, 0), nil
	}
}

// encodeRecord appends records of columns.
func encodeRecord(fields []arrow.Field, columns []arrow.Array) (encoder, error) {
	encoders := make([]encoder, len(columns))
	for i, c := range columns {
		var err error
		if encoders[i], err = encodeOptional(c); err != nil {
			return nil, err
		}
	}
	return func(dst []byte, row int) ([]byte, error) {
		for i, e := range encoders {
			var err error
			if dst, err = e(dst, row); err != nil {
				return nil, &fieldError{fields[i].Name, err}
			}
		}
		return dst, nil
	}, nil
}
