package keyenc

import (
	"bytes"
	"encoding/binary"
	"math"
	"slices"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"

	"github.com/tidemill/tidemill/columnar"
)

// bytesOf is value i of a VARCHAR or BINARY array, borrowed from it.
func bytesOf(a arrow.Array, i int) []byte {
	switch a := a.(type) {
	case *array.Binary:
		return a.Value(i)
	case *array.String:
		d := a.Data()
		offsets := arrow.Int32Traits.CastFromBytes(d.Buffers()[1].Bytes())
		from, to := offsets[d.Offset()+i], offsets[d.Offset()+i+1]
		if from == to {
			return nil
		}
		return d.Buffers()[2].Bytes()[from:to]
	}
	panic("bug: no bytes in an array of " + a.DataType().String())
}

// isNull is a.IsNull(i), also for arrays of type NULL, which have no bitmap.
func isNull(a arrow.Array, i int) bool { return a.IsNull(i) || a.DataType().ID() == arrow.NULL }

// Text ends with 0x00 0x00; a zero byte inside is written 0x00 0xFF. So a text sorts
// before every longer one it begins.
const escaped byte = 0xFF

func textSize(v []byte) int { return len(v) + bytes.Count(v, []byte{0}) + 2 }

func putText(dst, v []byte) int {
	at := 0
	for {
		i := bytes.IndexByte(v, 0)
		if i < 0 {
			at += copy(dst[at:], v)
			dst[at], dst[at+1] = 0, 0
			return at + 2
		}
		at += copy(dst[at:], v[:i+1])
		dst[at] = escaped
		at++
		v = v[i+1:]
	}
}

// putFixed writes value i of a fixed-width array over the whole of dst.
func putFixed(dst []byte, a arrow.Array, i int, exact bool) {
	switch a := a.(type) {
	case *array.Boolean:
		dst[0] = 0
		if a.Value(i) {
			dst[0] = 1
		}
	case *array.Int8:
		dst[0] = byte(a.Value(i)) ^ 0x80
	case *array.Int16:
		binary.BigEndian.PutUint16(dst, uint16(a.Value(i))^1<<15)
	case *array.Int32:
		binary.BigEndian.PutUint32(dst, uint32(a.Value(i))^1<<31)
	case *array.Date32:
		binary.BigEndian.PutUint32(dst, uint32(a.Value(i))^1<<31)
	case *array.Int64:
		binary.BigEndian.PutUint64(dst, uint64(a.Value(i))^1<<63)
	case *array.Time64:
		binary.BigEndian.PutUint64(dst, uint64(a.Value(i))^1<<63)
	case *array.Timestamp:
		binary.BigEndian.PutUint64(dst, uint64(a.Value(i))^1<<63)
	case *array.Float32:
		binary.BigEndian.PutUint32(dst, float32Bits(a.Value(i), exact))
	case *array.Float64:
		binary.BigEndian.PutUint64(dst, float64Bits(a.Value(i), exact))
	case *array.Decimal128:
		v := a.Value(i)
		binary.BigEndian.PutUint64(dst, uint64(v.HighBits())^1<<63)
		binary.BigEndian.PutUint64(dst[8:], v.LowBits())
	case *array.MonthDayNanoInterval:
		v := a.Value(i)
		if !exact {
			v = columnar.OrderedInterval(v)
		}
		binary.BigEndian.PutUint32(dst, uint32(v.Months)^1<<31)
		binary.BigEndian.PutUint32(dst[4:], uint32(v.Days)^1<<31)
		binary.BigEndian.PutUint64(dst[8:], uint64(v.Nanoseconds)^1<<63)
	default:
		panic("bug: no fixed width in an array of " + a.DataType().String())
	}
}

// float64Bits maps floats to unsigned integers of the same order, NaN last.
func float64Bits(v float64, exact bool) uint64 {
	u := math.Float64bits(v)
	if !exact {
		if v == 0 {
			u = 0
		} else if v != v {
			u = 0x7FF8000000000000
		}
	}
	return u ^ (uint64(int64(u)>>63) | 1<<63)
}

func float64From(u uint64) float64 {
	return math.Float64frombits(u ^ (uint64(int64(^u)>>63) | 1<<63))
}

func float32Bits(v float32, exact bool) uint32 {
	u := math.Float32bits(v)
	if !exact {
		if v == 0 {
			u = 0
		} else if v != v {
			u = 0x7FC00000
		}
	}
	return u ^ (uint32(int32(u)>>31) | 1<<31)
}

func float32From(u uint32) float32 {
	return math.Float32frombits(u ^ (uint32(int32(^u)>>31) | 1<<31))
}

// appendCell appends value i of a with its marker, nulls first.
func appendCell(dst []byte, a arrow.Array, i int, exact bool) []byte {
	if isNull(a, i) {
		return append(dst, nullFirst)
	}
	return appendValue(append(dst, present), a, i, exact)
}

// appendValue appends the value of row i, which is not null.
func appendValue(dst []byte, a arrow.Array, i int, exact bool) []byte {
	if w := fixedWidth(a.DataType()); w > 0 {
		n := len(dst)
		dst = slices.Grow(dst, w)[:n+w]
		putFixed(dst[n:], a, i, exact)
		return dst
	}
	switch a := a.(type) {
	case *array.Struct:
		for f := range a.NumField() {
			dst = appendCell(dst, a.Field(f), i, exact)
		}
		return dst
	case *array.Map: // before List, which it embeds
		return appendMap(dst, a, i, exact)
	case *array.List:
		from, to := a.ValueOffsets(i)
		for j := int(from); j < int(to); j++ {
			dst = appendCell(append(dst, listMore), a.ListValues(), j, exact)
		}
		return append(dst, listEnd)
	}
	v := bytesOf(a, i)
	n := len(dst)
	dst = slices.Grow(dst, textSize(v))[:n+textSize(v)]
	putText(dst[n:], v)
	return dst
}

// appendMap writes the entries in the order of their bytes, unless exact: maps with
// the same entries are equal.
func appendMap(dst []byte, a *array.Map, i int, exact bool) []byte {
	from, to := a.ValueOffsets(i)
	entries := make([][]byte, 0, to-from)
	for j := int(from); j < int(to); j++ {
		e := appendCell([]byte{listMore}, a.Keys(), j, exact)
		entries = append(entries, appendCell(e, a.Items(), j, exact))
	}
	if !exact {
		slices.SortFunc(entries, bytes.Compare)
	}
	for _, e := range entries {
		dst = append(dst, e...)
	}
	return append(dst, listEnd)
}
