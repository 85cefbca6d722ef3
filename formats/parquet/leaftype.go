package parquet

import (
	"encoding/binary"
	"errors"
	"fmt"
	"math"
	"time"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/decimal128"
	"github.com/parquet-go/parquet-go/deprecated"
	"github.com/parquet-go/parquet-go/format"

	"github.com/tidemill/tidemill/columnar"
	"github.com/tidemill/tidemill/formats/codec"
)

// leafType is the engine's type of a primitive column. signed says that the
// deprecated statistics, which are ordered as signed values, may be trusted.
func leafType(e *format.SchemaElement) (dt arrow.DataType, signed bool, err error) {
	a := annotationOf(e)
	switch e.Type.V {
	case format.Boolean:
		return columnar.Boolean, true, nil
	case format.Int32:
		dt, err = int32Type(a)
		return dt, !a.unsigned, err
	case format.Int64:
		dt, err = int64Type(a)
		return dt, !a.unsigned, err
	case format.Int96:
		return columnar.Timestamp, false, nil
	case format.Float:
		return columnar.Float32, true, nil
	case format.Double:
		return columnar.Float64, true, nil
	case format.ByteArray:
		switch a.kind {
		case annText:
			return columnar.String, false, nil
		case annDecimal:
			dt, err = a.decimalType()
			return dt, false, err
		}
		return plainOrNull(a, columnar.Binary), false, nil
	case format.FixedLenByteArray:
		dt, err = fixedType(a, int(e.TypeLength.V))
		return dt, false, err
	}
	return nil, false, fmt.Errorf("physical type %d is unknown", e.Type.V)
}

// plainOrNull is dt, or the NULL type where the column says it holds nothing else.
func plainOrNull(a annotation, dt arrow.DataType) arrow.DataType {
	if a.kind == annNull {
		return columnar.Null
	}
	return dt
}

func int32Type(a annotation) (arrow.DataType, error) {
	switch a.kind {
	case annInt:
		switch {
		case a.bits == 8 && a.unsigned, a.bits == 16 && !a.unsigned:
			return columnar.Int16, nil
		case a.bits == 8:
			return columnar.Int8, nil
		case a.bits == 16:
			return columnar.Int32, nil
		case a.unsigned:
			return columnar.Int64, nil
		}
	case annDate:
		return columnar.Date, nil
	case annTime:
		return columnar.Time, nil
	case annDecimal:
		return a.decimalType()
	}
	return plainOrNull(a, columnar.Int32), nil
}

func int64Type(a annotation) (arrow.DataType, error) {
	switch a.kind {
	case annInt:
		if a.unsigned {
			return columnar.Decimal(20, 0), nil
		}
	case annTime:
		return columnar.Time, nil
	case annTimestamp:
		return columnar.Timestamp, nil
	case annDecimal:
		return a.decimalType()
	}
	return plainOrNull(a, columnar.Int64), nil
}

const intervalLength, uuidLength = 12, 16

func fixedType(a annotation, length int) (arrow.DataType, error) {
	if length <= 0 || length > 1<<20 {
		return nil, fmt.Errorf("its values are %d bytes long", length)
	}
	switch {
	case a.kind == annDecimal:
		return a.decimalType()
	case a.kind == annUUID && length == uuidLength:
		return columnar.String, nil
	case a.kind == annFloat16 && length == 2:
		return columnar.Float32, nil
	case a.kind == annInterval && length == intervalLength:
		return columnar.Interval, nil
	}
	return plainOrNull(a, columnar.Binary), nil
}

// annotation is what the logical type, or the older converted type, of a schema
// element says.
type annotation struct {
	kind             annKind
	bits             int
	unsigned         bool
	precision, scale int32
	unit             time.Duration
	local            bool // not adjusted to UTC
}

type annKind uint8

const (
	annNone annKind = iota
	annText
	annInt
	annDecimal
	annDate
	annTime
	annTimestamp
	annUUID
	annFloat16
	annInterval
	annNull
)

func (a annotation) decimalType() (arrow.DataType, error) {
	if a.precision < 1 || a.precision > columnar.MaxPrecision || a.scale < 0 || a.scale > a.precision {
		return nil, fmt.Errorf("DECIMAL(%d,%d) is not supported: at most %d digits are", a.precision, a.scale, columnar.MaxPrecision)
	}
	return columnar.Decimal(a.precision, a.scale), nil
}

func annotationOf(e *format.SchemaElement) annotation {
	switch t := e.LogicalType.Value.(type) {
	case *format.StringType, *format.EnumType, *format.JsonType:
		return annotation{kind: annText}
	case *format.DecimalType:
		return annotation{kind: annDecimal, precision: t.Precision, scale: t.Scale}
	case *format.DateType:
		return annotation{kind: annDate}
	case *format.TimeType:
		if t.Unit.Value != nil {
			return annotation{kind: annTime, unit: t.Unit.Value.Duration()}
		}
	case *format.TimestampType:
		if t.Unit.Value != nil {
			return annotation{kind: annTimestamp, unit: t.Unit.Value.Duration(), local: !t.IsAdjustedToUTC}
		}
	case *format.IntType:
		return annotation{kind: annInt, bits: int(t.BitWidth), unsigned: !t.IsSigned}
	case *format.UUIDType:
		return annotation{kind: annUUID}
	case *format.Float16Type:
		return annotation{kind: annFloat16}
	case *format.NullType:
		return annotation{kind: annNull}
	}
	if e.ConvertedType.Valid {
		return convertedAnnotation(e)
	}
	return annotation{}
}

func convertedAnnotation(e *format.SchemaElement) annotation {
	switch e.ConvertedType.V {
	case deprecated.UTF8, deprecated.Enum, deprecated.Json:
		return annotation{kind: annText}
	case deprecated.Decimal:
		return annotation{kind: annDecimal, precision: e.Precision.V, scale: e.Scale.V}
	case deprecated.Date:
		return annotation{kind: annDate}
	case deprecated.TimeMillis:
		return annotation{kind: annTime, unit: time.Millisecond}
	case deprecated.TimeMicros:
		return annotation{kind: annTime, unit: time.Microsecond}
	case deprecated.TimestampMillis:
		return annotation{kind: annTimestamp, unit: time.Millisecond}
	case deprecated.TimestampMicros:
		return annotation{kind: annTimestamp, unit: time.Microsecond}
	case deprecated.Uint8, deprecated.Uint16, deprecated.Uint32, deprecated.Uint64:
		return annotation{kind: annInt, bits: 8 << (e.ConvertedType.V - deprecated.Uint8), unsigned: true}
	case deprecated.Int8, deprecated.Int16, deprecated.Int32, deprecated.Int64:
		return annotation{kind: annInt, bits: 8 << (e.ConvertedType.V - deprecated.Int8)}
	case deprecated.Interval:
		return annotation{kind: annInterval}
	}
	return annotation{}
}

// converter turns n stored values of fixed length (little-endian, as in a PLAIN
// page) into values of an Arrow buffer. Booleans are a byte each on both sides.
type converter func(dst, src []byte, n int) error

var errRange = errors.New("a value is outside the range of its type")

// storedWidth is the number of bytes of a stored value, 0 if they vary.
func storedWidth(n *node) int {
	switch n.physical {
	case format.Boolean:
		return 1
	case format.Int32, format.Float:
		return 4
	case format.Int64, format.Double:
		return 8
	case format.Int96:
		return 12
	case format.FixedLenByteArray:
		return n.length
	}
	return 0
}

// width is the number of bytes of a value of dt in a vector, 0 for text and binary.
func width(dt arrow.DataType) int {
	switch dt.ID() {
	case arrow.STRING, arrow.BINARY:
		return 0
	case arrow.BOOL:
		return 1
	}
	if f, ok := dt.(arrow.FixedWidthDataType); ok {
		return f.BitWidth() / 8
	}
	return 1 // NULL
}

// newConverter returns how the stored values of a leaf become its engine type; nil if they
// are that as they stand.
// zone is what times without zone are read in.
func newConverter(n *node, zone *time.Location) converter {
	a := annotationOf(n.element)
	switch n.typ.ID() {
	case arrow.INT8:
		return narrow(arrow.Int8Traits.CastFromBytes)
	case arrow.INT16:
		if a.unsigned {
			return narrowUnsigned(math.MaxUint8, arrow.Int16Traits.CastFromBytes)
		}
		return narrow(arrow.Int16Traits.CastFromBytes)
	case arrow.INT32:
		if a.unsigned {
			return narrowUnsigned(math.MaxUint16, arrow.Int32Traits.CastFromBytes)
		}
	case arrow.INT64:
		if n.physical == format.Int32 {
			return convertUint32
		}
	case arrow.DECIMAL128:
		return decimalConverter(n, a)
	case arrow.TIME64:
		return timeConverter(n, a)
	case arrow.TIMESTAMP:
		return timestampConverter(n, a, zone)
	case arrow.FLOAT32:
		if n.physical == format.FixedLenByteArray {
			return convertFloat16
		}
	case arrow.INTERVAL_MONTH_DAY_NANO:
		if n.length == exactIntervalLength {
			return convertExactInterval
		}
		return convertInterval
	case arrow.NULL:
		return func(dst, _ []byte, n int) error { clear(dst[:n]); return nil }
	}
	return nil
}

// narrow stores 32-bit values that fit T.
func narrow[T int8 | int16](out func([]byte) []T) converter {
	return func(dst, src []byte, n int) error {
		d, bad := out(dst)[:n], int32(0)
		for i := range d {
			v := int32(binary.LittleEndian.Uint32(src[4*i:]))
			d[i] = T(v)
			bad |= int32(T(v)) ^ v
		}
		if bad != 0 {
			return errRange
		}
		return nil
	}
}

// narrowUnsigned stores unsigned 32-bit values of at most limit.
func narrowUnsigned[T int16 | int32](limit uint32, out func([]byte) []T) converter {
	return func(dst, src []byte, n int) error {
		d, largest := out(dst)[:n], uint32(0)
		for i := range d {
			v := binary.LittleEndian.Uint32(src[4*i:])
			d[i] = T(v)
			largest = max(largest, v)
		}
		if largest > limit {
			return errRange
		}
		return nil
	}
}

func convertUint32(dst, src []byte, n int) error {
	out := arrow.Int64Traits.CastFromBytes(dst)[:n]
	for i := range out {
		out[i] = int64(binary.LittleEndian.Uint32(src[4*i:]))
	}
	return nil
}

func convertFloat16(dst, src []byte, n int) error {
	codec.FromHalfs(arrow.Float32Traits.CastFromBytes(dst)[:n], src)
	return nil
}

func decimalConverter(n *node, a annotation) converter {
	switch n.physical {
	case format.Int32:
		return func(dst, src []byte, n int) error {
			out := arrow.Decimal128Traits.CastFromBytes(dst)[:n]
			for i := range out {
				out[i] = decimal128.FromI64(int64(int32(binary.LittleEndian.Uint32(src[4*i:]))))
			}
			return nil
		}
	case format.Int64:
		if a.unsigned {
			return func(dst, src []byte, n int) error {
				out := arrow.Decimal128Traits.CastFromBytes(dst)[:n]
				for i := range out {
					out[i] = decimal128.FromU64(binary.LittleEndian.Uint64(src[8*i:]))
				}
				return nil
			}
		}
		return func(dst, src []byte, n int) error {
			out := arrow.Decimal128Traits.CastFromBytes(dst)[:n]
			for i := range out {
				out[i] = decimal128.FromI64(int64(binary.LittleEndian.Uint64(src[8*i:])))
			}
			return nil
		}
	}
	length := n.length
	return func(dst, src []byte, n int) error {
		out := arrow.Decimal128Traits.CastFromBytes(dst)[:n]
		for i := range out {
			v, err := bigEndianDecimal(src[length*i : length*i+length])
			if err != nil {
				return err
			}
			out[i] = v
		}
		return nil
	}
}

// bigEndianDecimal reads a two's complement number of any length.
func bigEndianDecimal(b []byte) (decimal128.Num, error) {
	if len(b) == 0 {
		return decimal128.Num{}, nil
	}
	sign := byte(int8(b[0]) >> 7)
	for len(b) > 16 {
		if b[0] != sign || byte(int8(b[1])>>7) != sign {
			return decimal128.Num{}, errRange
		}
		b = b[1:]
	}
	var full [16]byte
	for i := range 16 - len(b) {
		full[i] = sign
	}
	copy(full[16-len(b):], b)
	return decimal128.New(int64(binary.BigEndian.Uint64(full[:])), binary.BigEndian.Uint64(full[8:])), nil
}

const dayMicros = 24 * int64(time.Hour/time.Microsecond)

func timeConverter(n *node, a annotation) converter {
	if n.physical == format.Int32 {
		// TIME in INT32 is milliseconds, whatever the unit says.
		return func(dst, src []byte, n int) error {
			out := arrow.Int64Traits.CastFromBytes(dst)[:n]
			for i := range out {
				v := int64(int32(binary.LittleEndian.Uint32(src[4*i:]))) * 1000
				if uint64(v) > uint64(dayMicros) {
					return errRange
				}
				out[i] = v
			}
			return nil
		}
	}
	divide := int64(1)
	if a.unit == time.Nanosecond {
		divide = 1000
	}
	return func(dst, src []byte, n int) error {
		out := arrow.Int64Traits.CastFromBytes(dst)[:n]
		for i := range out {
			v := int64(binary.LittleEndian.Uint64(src[8*i:]))
			if v < 0 || v/divide > dayMicros {
				return errRange
			}
			out[i] = v / divide
		}
		return nil
	}
}

func timestampConverter(n *node, a annotation, zone *time.Location) converter {
	c := instantConverter(n, a)
	if !a.local || zone == nil || zone == time.UTC {
		return c
	}
	return func(dst, src []byte, n int) error {
		if c == nil {
			copy(dst, src)
		} else if err := c(dst, src, n); err != nil {
			return err
		}
		out := arrow.Int64Traits.CastFromBytes(dst)[:n]
		for i, v := range out {
			out[i] = localMicros(v, zone)
		}
		return nil
	}
}

// localMicros reads v, microseconds of a wall clock, as an instant in zone.
func localMicros(v int64, zone *time.Location) int64 {
	t := time.UnixMicro(v).UTC()
	return time.Date(t.Year(), t.Month(), t.Day(), t.Hour(), t.Minute(), t.Second(), t.Nanosecond(), zone).UnixMicro()
}

func instantConverter(n *node, a annotation) converter {
	switch {
	case n.physical == format.Int96:
		return convertInt96
	case a.unit == time.Millisecond:
		return convertMillis
	case a.unit == time.Nanosecond:
		return convertNanos
	}
	return nil
}

func convertMillis(dst, src []byte, n int) error {
	out := arrow.Int64Traits.CastFromBytes(dst)[:n]
	bad := uint64(0)
	for i := range out {
		v := int64(binary.LittleEndian.Uint64(src[8*i:]))
		us := v * 1000
		bad |= uint64((us / 1000) ^ v)
		out[i] = us
	}
	if bad != 0 {
		return errRange
	}
	return nil
}

// convertNanos rounds down to whole microseconds.
func convertNanos(dst, src []byte, n int) error {
	out := arrow.Int64Traits.CastFromBytes(dst)[:n]
	for i := range out {
		v := int64(binary.LittleEndian.Uint64(src[8*i:]))
		us := v / 1000
		if us*1000 > v {
			us--
		}
		out[i] = us
	}
	return nil
}

// julianEpoch is the Julian day number of 1970-01-01.
const julianEpoch = 2440588

// convertInt96 reads nanoseconds of the day and a Julian day number. The arithmetic
// wraps around on purpose: Spark, the main writer of this type, wraps when it writes
// years beyond 290,000, so that only wrapping gives them back.
func convertInt96(dst, src []byte, n int) error {
	out := arrow.Int64Traits.CastFromBytes(dst)[:n]
	for i := range out {
		v := src[12*i:]
		nanos := int64(binary.LittleEndian.Uint64(v))
		days := int64(int32(binary.LittleEndian.Uint32(v[8:]))) - julianEpoch
		us := nanos / 1000
		if us*1000 > nanos {
			us--
		}
		out[i] = days*dayMicros + us
	}
	return nil
}
