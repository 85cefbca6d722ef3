package function

import (
	"encoding/binary"
	"math"
	"math/bits"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/decimal128"

	"github.com/tidemill/tidemill/columnar"
)

// hashScalar is hash(any, …), MurmurHash3 of 32 bits as Spark computes it: each value is
// hashed with the hash of those before it as the seed, the first with 42; nulls are passed
// over.
func hashScalar() *Scalar {
	return &Scalar{Name: "hash", Doc: "A hash of values (MurmurHash3, 32 bits, seed 42, as Spark's), the same in every release; nulls are passed over. A MAP has none.", Example: "hash('Spark', array(123), 2) = -1321691492", Overloads: []Overload{{
		Args: []Matcher{hashableType}, Variadic: true, NullSafe: true, Result: always(columnar.Int32), Bind: func([]arrow.DataType, []arrow.Array) (Kernel, error) {
			return onAllRows(columnar.Int32, func(c *call) (arrow.Array, error) {
				whole := *c
				whole.args = nil // the hash of a null is a number
				return fixedRows(&whole, func(i int) int32 {
					h := uint32(42)
					for k, a := range c.args {
						h = murmur(h, a.Array(), c.place(k, i))
					}
					return int32(h)
				})
			}), nil
		},
	}}}
}

var hashableType = matcher{"any but MAP", func(a arrow.DataType) (arrow.DataType, int, bool) { return a, 0, hashable(a) }}

func hashable(dt arrow.DataType) bool {
	switch t := dt.(type) {
	case *arrow.MapType:
		return false
	case *arrow.ListType:
		return hashable(t.Elem())
	case *arrow.StructType:
		for _, f := range t.Fields() {
			if !hashable(f.Type) {
				return false
			}
		}
	}
	return true
}

// murmur goes on from seed with value i of a.
func murmur(seed uint32, a arrow.Array, i int) uint32 {
	if columnar.IsNull(a, i) {
		return seed
	}
	switch a := a.(type) {
	case *array.List:
		from, to := a.ValueOffsets(i)
		for j := from; j < to; j++ {
			seed = murmur(seed, a.ListValues(), int(j))
		}
		return seed
	case *array.Struct:
		for k := range a.NumField() {
			seed = murmur(seed, a.Field(k), i)
		}
		return seed
	}
	switch v := columnar.Value(a, i).(type) {
	case bool:
		if v {
			return murmurInt(seed, 1)
		}
		return murmurInt(seed, 0)
	case int8:
		return murmurInt(seed, uint32(v))
	case int16:
		return murmurInt(seed, uint32(v))
	case int32:
		return murmurInt(seed, uint32(v))
	case arrow.Date32:
		return murmurInt(seed, uint32(v))
	case int64:
		return murmurLong(seed, uint64(v))
	case arrow.Timestamp:
		return murmurLong(seed, uint64(v))
	case arrow.Time64:
		return murmurLong(seed, uint64(v))
	case float32:
		if v != v {
			v = float32(math.NaN()) // there is one
		}
		return murmurInt(seed, math.Float32bits(v+0)) // -0.0 is 0.0
	case float64:
		if v != v {
			return murmurLong(seed, 0x7ff8000000000000) // the one of Java
		}
		return murmurLong(seed, math.Float64bits(v+0))
	case decimal128.Num:
		if a.DataType().(*arrow.Decimal128Type).Precision <= 18 {
			return murmurLong(seed, v.LowBits())
		}
		return murmurBytes(seed, leastBytes(v))
	case arrow.MonthDayNanoInterval:
		seed = murmurInt(murmurInt(seed, uint32(v.Months)), uint32(v.Days))
		return murmurLong(seed, uint64(v.Nanoseconds))
	case string:
		return murmurBytes(seed, []byte(v))
	case []byte:
		return murmurBytes(seed, v)
	}
	return seed
}

// leastBytes is a number in two's complement, big-endian, in as few bytes as hold it.
func leastBytes(v decimal128.Num) []byte {
	b := binary.BigEndian.AppendUint64(binary.BigEndian.AppendUint64(nil, uint64(v.HighBits())), v.LowBits())
	for len(b) > 1 && (b[0] == 0 && b[1] < 0x80 || b[0] == 0xff && b[1] >= 0x80) {
		b = b[1:]
	}
	return b
}

func murmurMix(h, k uint32) uint32 {
	k = bits.RotateLeft32(k*0xcc9e2d51, 15) * 0x1b873593
	return bits.RotateLeft32(h^k, 13)*5 + 0xe6546b64
}

func murmurEnd(h, length uint32) uint32 {
	h ^= length
	h = (h ^ h>>16) * 0x85ebca6b
	h = (h ^ h>>13) * 0xc2b2ae35
	return h ^ h>>16
}

func murmurInt(seed, v uint32) uint32 { return murmurEnd(murmurMix(seed, v), 4) }

func murmurLong(seed uint32, v uint64) uint32 {
	return murmurEnd(murmurMix(murmurMix(seed, uint32(v)), uint32(v>>32)), 8)
}

// murmurBytes mixes what is left after the last four bytes byte by byte, with their signs.
func murmurBytes(h uint32, b []byte) uint32 {
	n := uint32(len(b))
	for ; len(b) >= 4; b = b[4:] {
		h = murmurMix(h, binary.LittleEndian.Uint32(b))
	}
	for _, x := range b {
		h = murmurMix(h, uint32(int8(x)))
	}
	return murmurEnd(h, n)
}
