package columnar

import (
	"fmt"
	"slices"
	"strings"

	"github.com/apache/arrow-go/v18/arrow"
)

// The Arrow types the engine computes with. Readers convert what they find into
// one of these: unsigned integers are widened (UBIGINT becomes DECIMAL(20,0)),
// timestamps of any unit become microseconds of UTC.
var (
	Null      arrow.DataType = arrow.Null
	Boolean   arrow.DataType = arrow.FixedWidthTypes.Boolean
	Int8      arrow.DataType = arrow.PrimitiveTypes.Int8
	Int16     arrow.DataType = arrow.PrimitiveTypes.Int16
	Int32     arrow.DataType = arrow.PrimitiveTypes.Int32
	Int64     arrow.DataType = arrow.PrimitiveTypes.Int64
	Float32   arrow.DataType = arrow.PrimitiveTypes.Float32
	Float64   arrow.DataType = arrow.PrimitiveTypes.Float64
	String    arrow.DataType = arrow.BinaryTypes.String
	Binary    arrow.DataType = arrow.BinaryTypes.Binary
	Date      arrow.DataType = arrow.FixedWidthTypes.Date32
	Time      arrow.DataType = arrow.FixedWidthTypes.Time64us
	Timestamp arrow.DataType = &arrow.TimestampType{Unit: arrow.Microsecond, TimeZone: "UTC"}
	Interval  arrow.DataType = arrow.FixedWidthTypes.MonthDayNanoInterval
)

// MaxPrecision is the largest number of decimal digits a DECIMAL holds.
const MaxPrecision = 38

// OrdinalName is the hidden BIGINT column a scan adds when a plan needs the order
// of its rows: unit index << 40 | row number in the unit.
const OrdinalName = "\x00ordinal"

// OrdinalShift is the number of low bits of an ordinal that hold the row number.
const OrdinalShift = 40

// Decimal is DECIMAL(precision, scale), 128 bits wide.
func Decimal(precision, scale int32) arrow.DataType {
	return &arrow.Decimal128Type{Precision: precision, Scale: scale}
}

// ListOf is ARRAY<elem>; elements may be null.
func ListOf(elem arrow.DataType) arrow.DataType { return arrow.ListOf(elem) }

// IsInteger says whether dt is one of the signed integer types.
func IsInteger(dt arrow.DataType) bool {
	switch dt.ID() {
	case arrow.INT8, arrow.INT16, arrow.INT32, arrow.INT64:
		return true
	}
	return false
}

// IsFloat says whether dt is REAL or DOUBLE.
func IsFloat(dt arrow.DataType) bool {
	return dt.ID() == arrow.FLOAT32 || dt.ID() == arrow.FLOAT64
}

// HasEqualForms says whether functions may tell apart values of dt that are equal as keys:
// 0.0 and -0.0, 24 hours and 1 day, maps with their entries in another order.
func HasEqualForms(dt arrow.DataType) bool {
	if n, ok := dt.(arrow.NestedType); ok {
		return dt.ID() == arrow.MAP || slices.ContainsFunc(n.Fields(), func(f arrow.Field) bool { return HasEqualForms(f.Type) })
	}
	return IsFloat(dt) || dt.ID() == arrow.INTERVAL_MONTH_DAY_NANO
}

// LosesForm says whether the key of a value of dt forgets how the value was written: as a
// key 1 month is 30 days, and the entries of a map are sorted. What hands such values on
// keeps one beside the key.
func LosesForm(dt arrow.DataType) bool {
	if n, ok := dt.(arrow.NestedType); ok {
		return dt.ID() == arrow.MAP || slices.ContainsFunc(n.Fields(), func(f arrow.Field) bool { return LosesForm(f.Type) })
	}
	return dt.ID() == arrow.INTERVAL_MONTH_DAY_NANO
}

// HasDecimal says whether dt is a DECIMAL, or has one inside.
func HasDecimal(dt arrow.DataType) bool {
	if n, ok := dt.(arrow.NestedType); ok {
		return slices.ContainsFunc(n.Fields(), func(f arrow.Field) bool { return HasDecimal(f.Type) })
	}
	return IsDecimal(dt)
}

// IsDecimal says whether dt is a DECIMAL.
func IsDecimal(dt arrow.DataType) bool { return dt.ID() == arrow.DECIMAL128 }

// IsWord says whether values of dt are signed integers of at most eight bytes, be it as
// dates or times: equal exactly if the numbers are.
func IsWord(dt arrow.DataType) bool {
	switch dt.ID() {
	case arrow.INT8, arrow.INT16, arrow.INT32, arrow.INT64, arrow.DATE32, arrow.TIME64, arrow.TIMESTAMP:
		return true
	}
	return false
}

// IsNumeric says whether arithmetic is defined on dt.
func IsNumeric(dt arrow.DataType) bool { return IsInteger(dt) || IsFloat(dt) || IsDecimal(dt) }

// IsTemporal says whether dt is DATE, TIME or TIMESTAMP.
func IsTemporal(dt arrow.DataType) bool {
	switch dt.ID() {
	case arrow.DATE32, arrow.TIME64, arrow.TIMESTAMP:
		return true
	}
	return false
}

// IsNested says whether dt is an ARRAY, STRUCT or MAP.
func IsNested(dt arrow.DataType) bool {
	switch dt.ID() {
	case arrow.LIST, arrow.STRUCT, arrow.MAP:
		return true
	}
	return false
}

// Supported says whether the engine computes with dt as it is.
func Supported(dt arrow.DataType) bool {
	switch t := dt.(type) {
	case *arrow.TimestampType:
		return t.Unit == arrow.Microsecond && t.TimeZone == "UTC"
	case *arrow.Time64Type:
		return t.Unit == arrow.Microsecond
	case *arrow.Decimal128Type:
		return t.Precision >= 1 && t.Precision <= MaxPrecision && t.Scale >= 0 && t.Scale <= t.Precision
	case *arrow.MapType:
		return Supported(t.KeyType()) && Supported(t.ItemType())
	case *arrow.ListType:
		return Supported(t.Elem())
	case *arrow.StructType:
		for _, f := range t.Fields() {
			if !Supported(f.Type) {
				return false
			}
		}
		return true
	}
	switch dt.ID() {
	case arrow.NULL, arrow.BOOL, arrow.INT8, arrow.INT16, arrow.INT32, arrow.INT64,
		arrow.FLOAT32, arrow.FLOAT64, arrow.STRING, arrow.BINARY, arrow.DATE32, arrow.INTERVAL_MONTH_DAY_NANO:
		return true
	}
	return false
}

// TypeName is the SQL name of dt, as CAST accepts it and DESCRIBE prints it.
func TypeName(dt arrow.DataType) string {
	switch t := dt.(type) {
	case *arrow.Decimal128Type:
		return fmt.Sprintf("DECIMAL(%d,%d)", t.Precision, t.Scale)
	case *arrow.MapType:
		return "MAP<" + TypeName(t.KeyType()) + ", " + TypeName(t.ItemType()) + ">"
	case *arrow.ListType:
		return "ARRAY<" + TypeName(t.Elem()) + ">"
	case *arrow.StructType:
		parts := make([]string, t.NumFields())
		for i, f := range t.Fields() {
			parts[i] = quoteName(f.Name) + " " + TypeName(f.Type)
		}
		return "STRUCT<" + strings.Join(parts, ", ") + ">"
	case *arrow.DictionaryType:
		return TypeName(t.ValueType)
	}
	if name, ok := typeNames[dt.ID()]; ok {
		return name
	}
	return strings.ToUpper(dt.String())
}

var typeNames = map[arrow.Type]string{
	arrow.NULL: "NULL", arrow.BOOL: "BOOLEAN",
	arrow.INT8: "TINYINT", arrow.INT16: "SMALLINT", arrow.INT32: "INTEGER", arrow.INT64: "BIGINT",
	arrow.FLOAT32: "REAL", arrow.FLOAT64: "DOUBLE",
	arrow.STRING: "VARCHAR", arrow.BINARY: "BINARY",
	arrow.DATE32: "DATE", arrow.TIME64: "TIME", arrow.TIMESTAMP: "TIMESTAMP",
	arrow.INTERVAL_MONTH_DAY_NANO: "INTERVAL",
}

// quoteName writes a field name as an identifier: bare where it reads back as one.
func quoteName(name string) string {
	for i, r := range name {
		letter := r == '_' || r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z'
		if !letter && (i == 0 || r < '0' || r > '9') {
			return `"` + strings.ReplaceAll(name, `"`, `""`) + `"`
		}
	}
	if name == "" {
		return `""`
	}
	return name
}

// intDigits is the number of decimal digits that hold every value of an integer type.
func intDigits(dt arrow.DataType) int32 {
	switch dt.ID() {
	case arrow.INT8:
		return 3
	case arrow.INT16:
		return 5
	case arrow.INT32:
		return 10
	}
	return 19
}

// AsDecimal is the DECIMAL that holds every value of the integer or decimal type dt.
func AsDecimal(dt arrow.DataType) (*arrow.Decimal128Type, bool) {
	if d, ok := dt.(*arrow.Decimal128Type); ok {
		return d, true
	}
	if IsInteger(dt) {
		return &arrow.Decimal128Type{Precision: intDigits(dt), Scale: 0}, true
	}
	return nil, false
}

// Common is the type both a and b are implicitly cast to where they meet (in
// comparisons, CASE branches, UNION columns); ok is false if there is none.
// Integers widen, integers and decimals meet in a decimal (digits after the point
// are kept when 38 do not suffice, so that a value that does not fit is an error of the
// cast and none is rounded), anything with a float is DOUBLE,
// DATE meets TIMESTAMP in TIMESTAMP, NULL meets everything. Structs meet by the names
// of their fields, in the order of a. Text and numbers do
// not meet; Meet is the wider rule of expressions.
func Common(a, b arrow.DataType) (dt arrow.DataType, ok bool) {
	switch {
	case arrow.TypeEqual(a, b):
		return a, true
	case a.ID() == arrow.NULL:
		return b, true
	case b.ID() == arrow.NULL:
		return a, true
	case IsNumeric(a) && IsNumeric(b):
		return commonNumeric(a, b), true
	case a.ID() == arrow.DATE32 && b.ID() == arrow.TIMESTAMP, a.ID() == arrow.TIMESTAMP && b.ID() == arrow.DATE32:
		return Timestamp, true
	case a.ID() == arrow.STRING && b.ID() == arrow.BINARY, a.ID() == arrow.BINARY && b.ID() == arrow.STRING:
		return Binary, true
	}
	return commonNested(a, b, Common)
}

// Meet is Common where the operands of an expression meet, and what Spark's ANSI mode
// adds: a text becomes what it stands beside, a BIGINT beside an integer, a DOUBLE beside
// another number, else a BOOLEAN, DATE, TIME or TIMESTAMP. A text that is none is an
// error of the cast, so the schemas of files never meet this way.
func Meet(a, b arrow.DataType) (dt arrow.DataType, ok bool) {
	if dt, ok := Common(a, b); ok {
		return dt, true
	}
	if a.ID() == arrow.STRING {
		a, b = b, a
	}
	if b.ID() != arrow.STRING {
		return commonNested(a, b, Meet)
	}
	switch {
	case IsInteger(a):
		return Int64, true
	case IsNumeric(a):
		return Float64, true
	}
	return a, a.ID() == arrow.BOOL || IsTemporal(a)
}

func commonNumeric(a, b arrow.DataType) arrow.DataType {
	if IsFloat(a) || IsFloat(b) {
		if a.ID() == arrow.FLOAT32 && b.ID() == arrow.FLOAT32 {
			return Float32
		}
		return Float64
	}
	if IsInteger(a) && IsInteger(b) {
		if a.(arrow.FixedWidthDataType).BitWidth() >= b.(arrow.FixedWidthDataType).BitWidth() {
			return a
		}
		return b
	}
	da, _ := AsDecimal(a)
	db, _ := AsDecimal(b)
	scale := max(da.Scale, db.Scale)
	whole := max(da.Precision-da.Scale, db.Precision-db.Scale)
	return Decimal(min(whole+scale, MaxPrecision), scale)
}

// commonNested is the common type of two nested types, whose parts meet by meet.
func commonNested(a, b arrow.DataType, meet func(a, b arrow.DataType) (arrow.DataType, bool)) (arrow.DataType, bool) {
	switch ta := a.(type) {
	case *arrow.MapType:
		tb, ok := b.(*arrow.MapType)
		if !ok {
			return nil, false
		}
		k, ok1 := meet(ta.KeyType(), tb.KeyType())
		v, ok2 := meet(ta.ItemType(), tb.ItemType())
		if !ok1 || !ok2 {
			return nil, false
		}
		return arrow.MapOf(k, v), true
	case *arrow.ListType:
		tb, ok := b.(*arrow.ListType)
		if !ok {
			return nil, false
		}
		e, ok := meet(ta.Elem(), tb.Elem())
		if !ok {
			return nil, false
		}
		return ListOf(e), true
	case *arrow.StructType:
		tb, ok := b.(*arrow.StructType)
		if !ok {
			return nil, false
		}
		order, ok := FieldOrder(tb, ta)
		if !ok {
			return nil, false
		}
		fields := make([]arrow.Field, ta.NumFields())
		for i, k := range order {
			t, ok := meet(ta.Field(i).Type, tb.Field(k).Type)
			if !ok {
				return nil, false
			}
			fields[i] = arrow.Field{Name: ta.Field(i).Name, Type: t, Nullable: true}
		}
		return arrow.StructOf(fields...), true
	}
	return nil, false
}
