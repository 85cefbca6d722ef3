package function

import (
	"github.com/apache/arrow-go/v18/arrow"

	"github.com/tidemill/tidemill/columnar"
)

// CastMayFail says whether a cast that CanCast allows fails for some value. Of structs and
// maps it errs on the side of yes.
func CastMayFail(from, to arrow.DataType) bool {
	switch {
	case arrow.TypeEqual(from, to) || from.ID() == arrow.NULL:
		return false
	case from.ID() == arrow.LIST && to.ID() == arrow.LIST:
		return CastMayFail(elemOf(from), elemOf(to))
	case columnar.IsNested(to):
		_, implicit := ImplicitCost(from, to)
		return !implicit || columnar.HasDecimal(to)
	case to.ID() == arrow.STRING:
		return from.ID() == arrow.BINARY // which may be no UTF-8
	case from.ID() == arrow.STRING:
		return to.ID() != arrow.BINARY
	case columnar.IsFloat(from):
		return columnar.IsInteger(to) || columnar.IsDecimal(to) || to.ID() == arrow.TIMESTAMP
	case columnar.IsInteger(to):
		return !fitsInteger(from, to)
	case to.ID() == arrow.TIMESTAMP:
		return from.ID() == arrow.DATE32 || wholeDigits(from) >= secondsDigits
	case columnar.IsDecimal(to):
		t := to.(*arrow.Decimal128Type)
		digits := wholeDigits(from)
		if columnar.IsDecimal(from) && from.(*arrow.Decimal128Type).Scale > t.Scale {
			digits++ // rounded up
		}
		return digits > int(t.Precision-t.Scale)
	}
	return false
}

// secondsDigits is how many digits the seconds of the last TIMESTAMP have.
const secondsDigits = 13

// wholeDigits is how many digits the whole part of a number of type dt has at most, of a
// TIMESTAMP that of its seconds.
func wholeDigits(dt arrow.DataType) int {
	switch t := dt.(type) {
	case *arrow.BooleanType:
		return 1
	case *arrow.Int8Type:
		return 3
	case *arrow.Int16Type:
		return 5
	case *arrow.Int32Type:
		return 10
	case *arrow.Int64Type:
		return 19
	case *arrow.Decimal128Type:
		return int(t.Precision - t.Scale)
	}
	return secondsDigits
}

// fitsInteger says whether all numbers of type from are among those of an integer type.
func fitsInteger(from, to arrow.DataType) bool {
	if columnar.IsInteger(from) {
		return wholeDigits(from) <= wholeDigits(to)
	}
	return wholeDigits(from) < wholeDigits(to)
}
