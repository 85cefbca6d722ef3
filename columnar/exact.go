package columnar

import "github.com/apache/arrow-go/v18/arrow"

// BeyondDecimal says whether types that meet have decimals at one place, they themselves or
// within arrays, structs and maps, whose common type would need more digits than a DECIMAL has.
func BeyondDecimal(types ...arrow.DataType) bool {
	var known []arrow.DataType
	for _, t := range types {
		if t.ID() != arrow.NULL {
			known = append(known, t)
		}
	}
	if len(known) < 2 {
		return false
	}
	switch first := known[0].(type) {
	case *arrow.ListType:
		return beyondWithin(known, func(t arrow.DataType) arrow.DataType {
			if l, ok := t.(*arrow.ListType); ok {
				return l.Elem()
			}
			return nil
		})
	case *arrow.MapType:
		part := func(of func(*arrow.MapType) arrow.DataType) func(arrow.DataType) arrow.DataType {
			return func(t arrow.DataType) arrow.DataType {
				if m, ok := t.(*arrow.MapType); ok {
					return of(m)
				}
				return nil
			}
		}
		return beyondWithin(known, part((*arrow.MapType).KeyType)) || beyondWithin(known, part((*arrow.MapType).ItemType))
	case *arrow.StructType:
		for i := range first.Fields() {
			if beyondWithin(known, func(t arrow.DataType) arrow.DataType { return fieldLike(first, i, t) }) {
				return true
			}
		}
		return false
	}
	return beyondDigits(known)
}

// beyondWithin is BeyondDecimal of a part of each type, nil where it has none.
func beyondWithin(types []arrow.DataType, part func(arrow.DataType) arrow.DataType) bool {
	parts := make([]arrow.DataType, len(types))
	for i, t := range types {
		if parts[i] = part(t); parts[i] == nil {
			return false
		}
	}
	return BeyondDecimal(parts...)
}

// fieldLike is the type that the field i of shape has in the struct t; nil if there is none.
func fieldLike(shape *arrow.StructType, i int, t arrow.DataType) arrow.DataType {
	s, ok := t.(*arrow.StructType)
	if !ok {
		return nil
	}
	order, ok := FieldOrder(s, shape)
	if !ok {
		return nil
	}
	return s.Field(order[i]).Type
}

func beyondDigits(types []arrow.DataType) bool {
	var whole, scale int32
	for _, t := range types {
		d, ok := AsDecimal(t)
		if !ok {
			return false
		}
		whole, scale = max(whole, d.Precision-d.Scale), max(scale, d.Scale)
	}
	return whole+scale > MaxPrecision
}

// WithOwnDecimals is common, the type in which t meets others, but with the decimals that t
// has at their places: no value of t has too many digits for it.
func WithOwnDecimals(common, t arrow.DataType) arrow.DataType {
	switch c := common.(type) {
	case *arrow.Decimal128Type:
		if d, ok := AsDecimal(t); ok {
			return d
		}
	case *arrow.ListType:
		if l, ok := t.(*arrow.ListType); ok {
			return ListOf(WithOwnDecimals(c.Elem(), l.Elem()))
		}
	case *arrow.MapType:
		if m, ok := t.(*arrow.MapType); ok {
			return arrow.MapOf(WithOwnDecimals(c.KeyType(), m.KeyType()), WithOwnDecimals(c.ItemType(), m.ItemType()))
		}
	case *arrow.StructType:
		fields := make([]arrow.Field, c.NumFields())
		for i, f := range c.Fields() {
			own := fieldLike(c, i, t)
			if own == nil {
				return common
			}
			fields[i] = arrow.Field{Name: f.Name, Type: WithOwnDecimals(f.Type, own), Nullable: true}
		}
		return arrow.StructOf(fields...)
	}
	return common
}
