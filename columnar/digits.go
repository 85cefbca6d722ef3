package columnar

import "github.com/apache/arrow-go/v18/arrow/decimal128"

// FitsPrecision says whether v, whatever its scale, has at most so many digits. The
// module's own FitsInPrecision takes -2^127, the one number that has no opposite, for one
// that has.
func FitsPrecision(v decimal128.Num, precision int32) bool {
	return v.FitsInPrecision(precision) && (v.HighBits() != -1<<63 || v.LowBits() != 0)
}
