package kernel

import (
	"encoding/binary"
	"math"
	"math/bits"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/zeebo/xxh3"

	"github.com/tidemill/tidemill/columnar"
)

// Hash writes the hash of each row of columns to dst, one a row. Rows that are equal
// column by column hash the same, where NaN equals NaN, -0.0 equals 0.0, null equals
// null, and a dictionary-encoded value equals the plain one. The seed keeps hostile
// keys from being prepared in advance; hashes must not be stored beyond it.
func Hash(dst []uint64, columns []arrow.Array, seed uint64) {
	seed = mix(seed^k0, k1)
	for i := range dst {
		dst[i] = seed
	}
	for _, c := range columns {
		hashColumn(dst, c)
	}
}

const (
	k0       = 0xa0761d6478bd642f
	k1       = 0xe7037ed1a0b428db
	k2       = 0x8ebc6af09c88c6e3
	nullHash = 0x589965cc75374cc3
)

// mix folds the 128-bit product of a and b.
func mix(a, b uint64) uint64 {
	hi, lo := bits.Mul64(a, b)
	return hi ^ lo
}

// hash64 combines the hash h so far with the value v.
func hash64(h, v uint64) uint64 { return mix(mix(h^k2, v^k1), h|1) }

// HashUint64 is the hash of one 64-bit value under seed, as Hash makes it for a
// single BIGINT column.
func HashUint64(seed, v uint64) uint64 { return hash64(mix(seed^k0, k1), v) }

// hashBytes combines h with a text.
func hashBytes(h uint64, s []byte) uint64 {
	n := len(s)
	switch {
	case n > 16:
		return mix(xxh3.HashSeed(s, h), k1)
	case n >= 8:
		return mix(binary.LittleEndian.Uint64(s)^h^k2, mix(binary.LittleEndian.Uint64(s[n-8:])^k1, h^uint64(n)^k0))
	case n >= 4:
		return hash64(h^uint64(n)<<32, uint64(binary.LittleEndian.Uint32(s))|uint64(binary.LittleEndian.Uint32(s[n-4:]))<<32)
	case n > 0:
		return hash64(h^uint64(n)<<32, uint64(s[0])|uint64(s[n>>1])<<8|uint64(s[n-1])<<16)
	}
	return hash64(h, k0)
}

// hashColumn combines every dst[i] with the hash of value i of a.
func hashColumn(dst []uint64, a arrow.Array) {
	if a.Len() == 0 {
		return
	}
	raw, offset := validity(a)
	if raw == nil {
		hashValues(dst, a)
		return
	}
	before := append([]uint64(nil), dst...)
	if a.DataType().ID() != arrow.NULL {
		hashValues(dst, a)
	}
	for i := range dst {
		if !bitAt(raw, offset+i) {
			dst[i] = mix(before[i]^nullHash, k2)
		}
	}
}

// hashValues is hashColumn for the values that are not null; others get anything.
func hashValues(dst []uint64, a arrow.Array) {
	switch a := a.(type) {
	case *array.Boolean:
		values, offset := a.Data().Buffers()[1].Bytes(), a.Data().Offset()
		for i := range dst {
			dst[i] = hash64(dst[i], uint64(values[(offset+i)>>3]>>((offset+i)&7)&1))
		}
	case *array.Int8:
		hashInts(dst, a.Int8Values())
	case *array.Int16:
		hashInts(dst, a.Int16Values())
	case *array.Int32:
		hashInts(dst, a.Int32Values())
	case *array.Date32:
		hashInts(dst, Values[int32](a))
	case *array.Int64, *array.Timestamp, *array.Time64:
		hashInts(dst, Values[int64](a))
	case *array.Float32:
		hashFloats(dst, a.Float32Values())
	case *array.Float64:
		hashFloats(dst, a.Float64Values())
	case *array.MonthDayNanoInterval:
		for i, v := range a.MonthDayNanoIntervalValues()[:len(dst)] {
			days, nanos := columnar.IntervalLength(v)
			dst[i] = hash64(hash64(dst[i], uint64(days)), uint64(nanos))
		}
	case *array.Decimal128:
		for i, v := range Values[wide](a)[:len(dst)] {
			dst[i] = hash64(hash64(dst[i], v[0]), v[1])
		}
	case *array.String, *array.Binary:
		v := bytesOf(a)
		for i := range dst {
			dst[i] = hashBytes(dst[i], v.data[v.offsets[i]:v.offsets[i+1]])
		}
	case *array.Dictionary:
		hashDictionary(dst, a)
	case *array.Struct:
		for k := range a.NumField() {
			hashColumn(dst, a.Field(k))
		}
	default:
		hashLists(dst, a)
	}
}

func hashInts[T int8 | int16 | int32 | int64](dst []uint64, values []T) {
	for i, v := range values[:len(dst)] {
		dst[i] = hash64(dst[i], uint64(int64(v)))
	}
}

func hashFloats[T float32 | float64](dst []uint64, values []T) {
	for i, v := range values[:len(dst)] {
		dst[i] = hash64(dst[i], canonicalBits(float64(v)))
	}
}

// canonicalBits are the bits of v, the same for all values that are equal: one NaN,
// one zero.
func canonicalBits(v float64) uint64 {
	if v != v {
		return 0x7ff8000000000001
	}
	return math.Float64bits(v + 0) // -0.0 + 0 is 0.0
}

// hashDictionary looks values up by code. What was hashed before differs from row to
// row, so the values are hashed again for each row; only the null test is by value.
func hashDictionary(dst []uint64, d *array.Dictionary) {
	v := bytesOf(d.Dictionary())
	raw, offset := validity(d.Dictionary())
	codes := columnar.DictionaryCodes(d)
	for i := range dst {
		if d.IsNull(i) {
			continue
		}
		c := codes[i]
		if raw != nil && !bitAt(raw, offset+int(c)) {
			dst[i] = mix(dst[i]^nullHash, k2)
			continue
		}
		dst[i] = hashBytes(dst[i], v.data[v.offsets[c]:v.offsets[c+1]])
	}
}

// hashLists hashes the elements once, then combines those of each list or map, whose
// entries have no order.
func hashLists(dst []uint64, a arrow.Array) {
	offsets := offsetsOf(a)
	from, to := offsets[0], offsets[len(dst)]
	part := array.NewSlice(childOf(a), int64(from), int64(to))
	defer part.Release()
	elements := make([]uint64, to-from)
	hashColumn(elements, part)
	isMap := a.DataType().ID() == arrow.MAP
	for i := range dst {
		h := hash64(dst[i], uint64(offsets[i+1]-offsets[i]))
		sum := uint64(0)
		for _, e := range elements[offsets[i]-from : offsets[i+1]-from] {
			if isMap {
				sum += e
				continue
			}
			h = hash64(h, e)
		}
		if isMap {
			h = hash64(h, sum)
		}
		dst[i] = h
	}
}
