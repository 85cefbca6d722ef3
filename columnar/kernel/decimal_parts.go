package kernel

import (
	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
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

// PartsOf is dt with DecimalParts for its decimals, itself or within arrays, structs and maps.
func PartsOf(dt arrow.DataType) arrow.DataType {
	switch t := dt.(type) {
	case *arrow.Decimal128Type:
		return DecimalParts
	case *arrow.ListType:
		return columnar.ListOf(PartsOf(t.Elem()))
	case *arrow.MapType:
		return arrow.MapOf(PartsOf(t.KeyType()), PartsOf(t.ItemType()))
	case *arrow.StructType:
		fields := make([]arrow.Field, t.NumFields())
		for i, f := range t.Fields() {
			fields[i] = columnar.Field(f.Name, PartsOf(f.Type))
		}
		return arrow.StructOf(fields...)
	}
	return dt
}

// SplitDecimals is a with its decimals, itself or within arrays, structs and maps, as
// DecimalParts. The caller releases it.
func SplitDecimals(mem memory.Allocator, a arrow.Array) arrow.Array {
	switch a.DataType().(type) {
	case *arrow.Decimal128Type:
		return splitDecimals(mem, a)
	case *arrow.ListType, *arrow.StructType, *arrow.MapType:
		return splitWithin(mem, a, PartsOf(a.DataType()))
	}
	a.Retain()
	return a
}

// splitWithin keeps where the values of a are, and splits what they are made of.
func splitWithin(mem memory.Allocator, a arrow.Array, to arrow.DataType) arrow.Array {
	in := a.Data()
	children := make([]arrow.ArrayData, len(in.Children()))
	for i, c := range in.Children() {
		child := array.MakeFromData(c)
		split := SplitDecimals(mem, child)
		child.Release()
		defer split.Release()
		children[i] = split.Data()
	}
	out := array.NewData(to, in.Len(), in.Buffers(), children, in.NullN(), in.Offset())
	defer out.Release()
	return array.MakeFromData(out)
}

func splitDecimals(mem memory.Allocator, a arrow.Array) arrow.Array {
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
