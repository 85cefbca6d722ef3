package eval

import (
	"github.com/apache/arrow-go/v18/arrow"

	"github.com/tidemill/tidemill/columnar"
)

// castMayFail says whether some value of from cannot be cast to to. It errs on the
// side of yes.
func castMayFail(from, to arrow.DataType) bool {
	switch {
	case arrow.TypeEqual(from, to) || from.ID() == arrow.NULL:
		return false
	case columnar.IsInteger(from) && columnar.IsInteger(to):
		return to.(arrow.FixedWidthDataType).BitWidth() < from.(arrow.FixedWidthDataType).BitWidth()
	case columnar.IsInteger(from) && columnar.IsFloat(to):
		return false
	case from.ID() == arrow.FLOAT32 && to.ID() == arrow.FLOAT64:
		return false
	case from.ID() == arrow.BOOL && columnar.IsInteger(to):
		return false
	case to.ID() == arrow.STRING:
		return from.ID() == arrow.BINARY // may not be UTF-8
	case from.ID() == arrow.STRING && to.ID() == arrow.BINARY:
		return false
	}
	return true
}
