package parquet

import (
	"bytes"
	"encoding/binary"
	"math"

	"github.com/apache/arrow-go/v18/arrow/decimal128"
)

// extremes are the smallest and largest value of a page, and of a chunk. Which
// fields are used depends on the column's type.
type extremes struct {
	known      bool
	minI, maxI int64
	minF, maxF float64
	minD, maxD decimal128.Num
	minB, maxB []byte
}

func (x *extremes) reset() { *x = extremes{minB: x.minB[:0], maxB: x.maxB[:0]} }

func (x *extremes) addInt(low, high int64) {
	if !x.known {
		x.known, x.minI, x.maxI = true, low, high
		return
	}
	x.minI, x.maxI = min(x.minI, low), max(x.maxI, high)
}

func (x *extremes) addFloat(low, high float64) {
	if !x.known {
		x.known, x.minF, x.maxF = true, low, high
		return
	}
	x.minF, x.maxF = min(x.minF, low), max(x.maxF, high)
}

func (x *extremes) addDecimal(v decimal128.Num) {
	if !x.known {
		x.known, x.minD, x.maxD = true, v, v
		return
	}
	if v.Less(x.minD) {
		x.minD = v
	}
	if x.maxD.Less(v) {
		x.maxD = v
	}
}

func (x *extremes) addBytes(v []byte) {
	switch {
	case !x.known:
		x.known = true
		x.minB, x.maxB = append(x.minB[:0], v...), append(x.maxB[:0], v...)
	case bytes.Compare(v, x.minB) < 0:
		x.minB = append(x.minB[:0], v...)
	case bytes.Compare(v, x.maxB) > 0:
		x.maxB = append(x.maxB[:0], v...)
	}
}

// statKind says which fields of extremes a column uses and how they are stored.
type statKind uint8

const (
	statNone statKind = iota
	statBool
	statInt32
	statInt64
	statFloat
	statDouble
	statDecimal
	statBytes
	statText
)

// merge adds the extremes of a page to those of the chunk.
func (x *extremes) merge(kind statKind, o *extremes) {
	if !o.known {
		return
	}
	switch kind {
	case statFloat, statDouble:
		x.addFloat(o.minF, o.maxF)
	case statDecimal:
		x.addDecimal(o.minD)
		x.addDecimal(o.maxD)
	case statBytes, statText:
		x.addBytes(o.minB)
		x.addBytes(o.maxB)
	default:
		x.addInt(o.minI, o.maxI)
	}
}

// encode gives the stored form of both extremes; length is that of stored decimals.
func (x *extremes) encode(kind statKind, length int) (low, high []byte) {
	if !x.known {
		return nil, nil
	}
	switch kind {
	case statBool:
		return []byte{byte(x.minI)}, []byte{byte(x.maxI)}
	case statInt32:
		return binary.LittleEndian.AppendUint32(nil, uint32(x.minI)), binary.LittleEndian.AppendUint32(nil, uint32(x.maxI))
	case statInt64:
		return binary.LittleEndian.AppendUint64(nil, uint64(x.minI)), binary.LittleEndian.AppendUint64(nil, uint64(x.maxI))
	case statFloat, statDouble:
		return x.encodeFloats(kind)
	case statDecimal:
		return appendDecimal(nil, x.minD, length), appendDecimal(nil, x.maxD, length)
	case statBytes, statText:
		return cutLow(x.minB, kind == statText), cutHigh(x.maxB, kind == statText)
	}
	return nil, nil
}

// encodeFloats takes care that both zeros lie between the extremes.
func (x *extremes) encodeFloats(kind statKind) (low, high []byte) {
	least, most := x.minF, x.maxF
	if least == 0 {
		least = math.Copysign(0, -1)
	}
	if most == 0 {
		most = 0
	}
	if kind == statFloat {
		return binary.LittleEndian.AppendUint32(nil, math.Float32bits(float32(least))),
			binary.LittleEndian.AppendUint32(nil, math.Float32bits(float32(most)))
	}
	return binary.LittleEndian.AppendUint64(nil, math.Float64bits(least)),
		binary.LittleEndian.AppendUint64(nil, math.Float64bits(most))
}

func appendDecimal(dst []byte, v decimal128.Num, length int) []byte {
	var full [16]byte
	binary.BigEndian.PutUint64(full[:], uint64(v.HighBits()))
	binary.BigEndian.PutUint64(full[8:], v.LowBits())
	return append(dst, full[16-length:]...)
}

// maxStat is the length from which on texts in statistics are cut off.
const maxStat = 64

// cutLow is a short text not above v.
func cutLow(v []byte, text bool) []byte {
	if len(v) <= maxStat {
		return bytes.Clone(v)
	}
	n := maxStat
	for text && n > 0 && v[n]&0xc0 == 0x80 {
		n--
	}
	return bytes.Clone(v[:n])
}

// cutHigh is a short text above v: a prefix whose last character is raised. v itself
// where there is none.
func cutHigh(v []byte, text bool) []byte {
	if len(v) <= maxStat {
		return bytes.Clone(v)
	}
	limit := byte(0xff)
	if text {
		limit = 0x7f // raise ASCII only: the result stays valid
	}
	for n := maxStat; n > 0; n-- {
		if v[n-1] < limit {
			cut := bytes.Clone(v[:n])
			cut[n-1]++
			return cut
		}
	}
	return bytes.Clone(v)
}
