package kernel

import (
	"bytes"
	"slices"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"

	"github.com/tidemill/tidemill/columnar"
)

// EqualPairs keeps the pairs (ar[i], br[i]) of rows for which a and b hold equal
// values, in place and in order, and returns the shortened slices. Both columns have
// one type, though either may be dictionary-encoded. NaN equals NaN, -0.0 equals
// 0.0; nulls are equal to each other if nullsEqual says so, else to nothing.
func EqualPairs(a, b arrow.Array, ar, br []int32, nullsEqual bool) ([]int32, []int32) {
	if a.NullN() > 0 || b.NullN() > 0 || a.DataType().ID() == arrow.DICTIONARY || b.DataType().ID() == arrow.DICTIONARY {
		return equalPairsSlow(a, b, ar, br, nullsEqual)
	}
	switch a.DataType().ID() {
	case arrow.INT8:
		return equalInts(Values[int8](a), Values[int8](b), ar, br)
	case arrow.INT16:
		return equalInts(Values[int16](a), Values[int16](b), ar, br)
	case arrow.INT32, arrow.DATE32:
		return equalInts(Values[int32](a), Values[int32](b), ar, br)
	case arrow.INT64, arrow.TIMESTAMP, arrow.TIME64:
		return equalInts(Values[int64](a), Values[int64](b), ar, br)
	case arrow.DECIMAL128:
		return equalInts(Values[wide](a), Values[wide](b), ar, br)
	case arrow.STRING, arrow.BINARY:
		return equalBytes(bytesOf(a), bytesOf(b), ar, br)
	}
	return equalPairsSlow(a, b, ar, br, nullsEqual)
}

func equalInts[T comparable](a, b []T, ar, br []int32) ([]int32, []int32) {
	k := 0
	for i, x := range ar {
		y := br[i]
		ar[k], br[k] = x, y
		if a[x] == b[y] {
			k++
		}
	}
	return ar[:k], br[:k]
}

func equalBytes(a, b bytesView, ar, br []int32) ([]int32, []int32) {
	k := 0
	for i, x := range ar {
		y := br[i]
		ar[k], br[k] = x, y
		if bytes.Equal(a.at(int(x)), b.at(int(y))) {
			k++
		}
	}
	return ar[:k], br[:k]
}

func equalPairsSlow(a, b arrow.Array, ar, br []int32, nullsEqual bool) ([]int32, []int32) {
	k := 0
	for i, x := range ar {
		y := br[i]
		ar[k], br[k] = x, y
		xn, yn := columnar.IsNull(a, int(x)), columnar.IsNull(b, int(y))
		if xn || yn {
			if xn && yn && nullsEqual {
				k++
			}
			continue
		}
		if compareValues(a, int(x), b, int(y)) == 0 {
			k++
		}
	}
	return ar[:k], br[:k]
}

// compareValues orders two values of one type that are not null: text by bytes, NaN
// equal to itself and above all, arrays and structs element by element with null
// first, maps as arrays of their entries in the order of the keys.
func compareValues(a arrow.Array, i int, b arrow.Array, j int) int {
	if d, ok := a.(*array.Dictionary); ok {
		return compareValues(d.Dictionary(), int(columnar.DictionaryCodes(d)[i]), b, j)
	}
	if d, ok := b.(*array.Dictionary); ok {
		return compareValues(a, i, d.Dictionary(), int(columnar.DictionaryCodes(d)[j]))
	}
	switch a := a.(type) {
	case *array.Boolean:
		return int(b2i(a.Value(i))) - int(b2i(b.(*array.Boolean).Value(j)))
	case *array.Int8:
		return cmpInt(a.Value(i), b.(*array.Int8).Value(j))
	case *array.Int16:
		return cmpInt(a.Value(i), b.(*array.Int16).Value(j))
	case *array.Int32:
		return cmpInt(a.Value(i), b.(*array.Int32).Value(j))
	case *array.Int64:
		return cmpInt(a.Value(i), b.(*array.Int64).Value(j))
	case *array.Date32:
		return cmpInt(a.Value(i), b.(*array.Date32).Value(j))
	case *array.Time64:
		return cmpInt(a.Value(i), b.(*array.Time64).Value(j))
	case *array.Timestamp:
		return cmpInt(a.Value(i), b.(*array.Timestamp).Value(j))
	case *array.Float32:
		return CompareFloats(float64(a.Value(i)), float64(b.(*array.Float32).Value(j)))
	case *array.Float64:
		return CompareFloats(a.Value(i), b.(*array.Float64).Value(j))
	case *array.Decimal128:
		return a.Value(i).Cmp(b.(*array.Decimal128).Value(j))
	case *array.String:
		return bytes.Compare(bytesOf(a).at(i), bytesOf(b).at(j))
	case *array.Binary:
		return bytes.Compare(a.Value(i), b.(*array.Binary).Value(j))
	case *array.MonthDayNanoInterval:
		return compareIntervals(a.Value(i), b.(*array.MonthDayNanoInterval).Value(j))
	case *array.Struct:
		bs := b.(*array.Struct)
		for k := range a.NumField() {
			if c := compareNullable(a.Field(k), i, bs.Field(k), j); c != 0 {
				return c
			}
		}
		return 0
	}
	if m, ok := a.(*array.Map); ok {
		return compareMaps(m, i, b.(*array.Map), j)
	}
	return compareLists(a, i, b, j)
}

func compareMaps(a *array.Map, i int, b *array.Map, j int) int {
	ao, bo := entryOrder(a, i), entryOrder(b, j)
	ac, bc := a.ListValues(), b.ListValues()
	for k := range min(len(ao), len(bo)) {
		if c := compareValues(ac, ao[k], bc, bo[k]); c != 0 {
			return c
		}
	}
	return cmpInt(int64(len(ao)), int64(len(bo)))
}

// entryOrder is the places of the entries of map i, in the order of their keys.
func entryOrder(a *array.Map, i int) []int {
	from, to := a.ValueOffsets(i)
	entries := a.ListValues()
	order := make([]int, to-from)
	for k := range order {
		order[k] = int(from) + k
	}
	slices.SortFunc(order, func(x, y int) int { return compareValues(entries, x, entries, y) })
	return order
}

func compareLists(a arrow.Array, i int, b arrow.Array, j int) int {
	ao, bo := offsetsOf(a), offsetsOf(b)
	ac, bc := childOf(a), childOf(b)
	an, bn := ao[i+1]-ao[i], bo[j+1]-bo[j]
	for k := range min(an, bn) {
		if c := compareNullable(ac, int(ao[i]+k), bc, int(bo[j]+k)); c != 0 {
			return c
		}
	}
	return cmpInt(an, bn)
}

// compareNullable is compareValues with null below every value and equal to itself.
func compareNullable(a arrow.Array, i int, b arrow.Array, j int) int {
	an, bn := columnar.IsNull(a, i), columnar.IsNull(b, j)
	if an || bn {
		return int(b2i(bn)) - int(b2i(an))
	}
	return compareValues(a, i, b, j)
}

func b2i(b bool) uint8 {
	if b {
		return 1
	}
	return 0
}

func cmpInt[T ~int8 | ~int16 | ~int32 | ~int64 | ~uint64](a, b T) int {
	switch {
	case a < b:
		return -1
	case a > b:
		return 1
	}
	return 0
}

// CompareFloats orders floats as SQL does here: NaN equals NaN and is above
// everything, -0.0 equals 0.0.
func CompareFloats(a, b float64) int {
	switch {
	case a < b:
		return -1
	case a > b:
		return 1
	case a == b:
		return 0
	}
	return int(b2i(a != a)) - int(b2i(b != b))
}

// compareIntervals orders intervals with a month taken as 30 days and a day as 24
// hours.
func compareIntervals(a, b arrow.MonthDayNanoInterval) int {
	ad, an := columnar.IntervalLength(a)
	bd, bn := columnar.IntervalLength(b)
	if c := cmpInt(ad, bd); c != 0 {
		return c
	}
	return cmpInt(an, bn)
}

// CompareValues orders value i of a and value j of b, which have one type and are not
// null, in the order of Sort.
func CompareValues(a arrow.Array, i int, b arrow.Array, j int) int { return compareValues(a, i, b, j) }
