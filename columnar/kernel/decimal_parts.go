package kernel

import (
	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/decimal128"
	"github.com/apache/arrow-go/v18/arrow/memory"

	"github.com/tidemill/tidemill/columnar"
)

// DecimalParts is a decimal of any precision and scale, taken apart at its point: what is
// before and what is after it, both with its sign. Structs of this type compare as the
// numbers do.
var DecimalParts = arrow.StructOf(
	columnar.Field("whole", columnar.Decimal(columnar.MaxPrecision, 0)),
	columnar.Field("part", columnar.Decimal(columnar.MaxPrecision, columnar.MaxPrecision)))

// SplitDecimals is the decimals of a as DecimalParts.
func SplitDecimals(mem memory.Allocator, a arrow.Array) arrow.Array {
	n := a.Len()
	scale := a.DataType().(*arrow.Decimal128Type).Scale
	one, rest := decimal128.GetScaleMultiplier(int(scale)), decimal128.GetScaleMultiplier(int(columnar.MaxPrecision-scale))
	wholes, whole := Make[num](mem, n)
	parts, part := Make[num](mem, n)
	for i, v := range Values[num](a) {
		u, negative := magnitude(v)
		u = u.cut(scale)
		whole[i] = decimal128.New(int64(u[1]), u[0])
		if negative {
			whole[i] = whole[i].Negate()
		}
		part[i] = v.Sub(whole[i].Mul(one)).Mul(rest)
	}
	fields := []arrow.Array{
		Wrap(DecimalParts.Field(0).Type, n, 0, nil, wholes),
		Wrap(DecimalParts.Field(1).Type, n, 0, nil, parts),
	}
	valid, nulls := AndValidity(mem, n, columnar.ColumnDatum(a))
	return WrapStruct(DecimalParts, n, nulls, valid, fields)
}
