package sql

import (
	"cmp"
	"encoding/hex"
	"fmt"
	"math"
	"math/big"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/memory"

	"github.com/tidemill/tidemill/columnar"
	"github.com/tidemill/tidemill/logical/expr"
	"github.com/tidemill/tidemill/logical/sql/ast"
)

func nullLiteral() *expr.Literal { return mustLiteral(nil) }

func boolLiteral(v bool) *expr.Literal { return mustLiteral(v) }

func stringLiteral(s string) *expr.Literal { return mustLiteral(s) }

// mustLiteral is the literal of a Go value of a type that NewLiteral knows.
func mustLiteral(v any) *expr.Literal {
	l, err := expr.NewLiteral(v)
	if err != nil {
		panic("bug: " + err.Error())
	}
	return l
}

// typedLiteral is the literal of a value that a builder of type dt appends.
func typedLiteral(dt arrow.DataType, v any) (*expr.Literal, error) {
	a, err := columnar.Column(memory.DefaultAllocator, dt, v)
	if err != nil {
		return nil, err
	}
	return &expr.Literal{Value: a}, nil
}

// literal gives a constant its type and value.
func (b *binder) literal(x ast.Expr) (expr.Expr, error) {
	switch n := x.(type) {
	case *ast.Number:
		return b.number(n, false)
	case *ast.Blob:
		raw, err := hex.DecodeString(n.Hex)
		if err != nil {
			return nil, b.wrap(n, err)
		}
		return mustLiteral(raw), nil
	case *ast.TypedString:
		types := map[string]arrow.DataType{"DATE": columnar.Date, "TIME": columnar.Time, "TIMESTAMP": columnar.Timestamp}
		return b.parsed(n, n.Value, types[n.Type])
	case *ast.Interval:
		v, err := b.interval(n)
		if err != nil {
			return nil, err
		}
		return mustLiteral(v), nil
	}
	return nil, fmt.Errorf("bug: %T is no literal", x)
}

// number is the value of a number: INTEGER, BIGINT or DECIMAL by size, DECIMAL with
// a point, DOUBLE with an exponent, or what its suffix says.
func (b *binder) number(n *ast.Number, negative bool) (expr.Expr, error) {
	text := strings.ReplaceAll(n.Text, "_", "")
	suffix := strings.ToUpper(strings.TrimLeft(text, "0123456789.eE+-"))
	text = text[:len(text)-len(suffix)]
	if strings.HasSuffix(text, "e") || strings.HasSuffix(text, "E") {
		return nil, b.errorf(n, "%s is not a number", n.Text)
	}
	if negative {
		text = "-" + text
	}
	float := strings.ContainsAny(text, "eE")
	point := strings.Contains(text, ".")
	switch suffix {
	case "L", "S", "Y":
		types := map[string]arrow.DataType{"L": columnar.Int64, "S": columnar.Int16, "Y": columnar.Int8}
		if float || point {
			return nil, b.errorf(n, "%s: the suffix %s is for whole numbers", n.Text, suffix)
		}
		return b.integer(n, text, types[suffix])
	case "F", "D":
		v, err := strconv.ParseFloat(text, 64)
		if err != nil {
			return nil, b.errorf(n, "%s does not fit in DOUBLE", n.Text)
		}
		if suffix == "F" {
			return mustLiteral(float32(v)), nil
		}
		return mustLiteral(v), nil
	case "":
		if float {
			v, err := strconv.ParseFloat(text, 64)
			if err != nil {
				return nil, b.errorf(n, "%s does not fit in DOUBLE", n.Text)
			}
			return mustLiteral(v), nil
		}
		if v, err := strconv.ParseInt(text, 10, 64); err == nil && !point {
			if v >= math.MinInt32 && v <= math.MaxInt32 {
				return mustLiteral(int32(v)), nil
			}
			return mustLiteral(v), nil
		}
	}
	if float {
		return nil, b.errorf(n, "%s: the suffix BD takes no exponent", n.Text)
	}
	return b.decimal(n, text)
}

func (b *binder) integer(n *ast.Number, text string, dt arrow.DataType) (expr.Expr, error) {
	bits := dt.(arrow.FixedWidthDataType).BitWidth()
	v, err := strconv.ParseInt(text, 10, bits)
	if err != nil {
		return nil, b.errorf(n, "%s does not fit in %s", n.Text, columnar.TypeName(dt))
	}
	l, err := typedLiteral(dt, v)
	if err != nil {
		return nil, b.wrap(n, err)
	}
	return l, nil
}

// decimal is a DECIMAL with exactly the digits written, leading zeros aside.
func (b *binder) decimal(n *ast.Number, text string) (expr.Expr, error) {
	whole, fraction, _ := strings.Cut(strings.TrimPrefix(text, "-"), ".")
	whole = strings.TrimLeft(whole, "0")
	precision, scale := int32(len(whole)+len(fraction)), int32(len(fraction))
	if precision > columnar.MaxPrecision {
		return nil, b.hinted(n, "write it as a DOUBLE, which keeps 15 digits of it: "+clip(n.Text, 60)+"e0", "%s has more than %d digits", clip(n.Text, 60), columnar.MaxPrecision)
	}
	dt := columnar.Decimal(max(precision, 1), scale)
	v, ok := columnar.ParseDecimal(text, max(precision, 1), scale)
	if !ok {
		return nil, b.errorf(n, "%s is not a number", n.Text)
	}
	bld := array.NewBuilder(memory.DefaultAllocator, dt).(*array.Decimal128Builder)
	defer bld.Release()
	bld.Append(v)
	return &expr.Literal{Value: bld.NewArray()}, nil
}

// textAs reads a text as a value of type dt.
func (b *binder) textAs(s *ast.String, dt arrow.DataType) (expr.Expr, error) {
	switch {
	case dt.ID() == arrow.BOOL:
		switch strings.ToLower(strings.TrimSpace(s.Value)) {
		case "true", "t", "yes", "y", "1":
			return boolLiteral(true), nil
		case "false", "f", "no", "n", "0":
			return boolLiteral(false), nil
		}
		return nil, b.errorf(s, "%s is not a BOOLEAN", quote(s.Value))
	case columnar.IsNumeric(dt):
		return b.textNumber(s, dt)
	}
	return b.parsed(s, s.Value, dt)
}

// textNumber reads a text beside a number: as that type if it fits, else as what it is.
func (b *binder) textNumber(s *ast.String, dt arrow.DataType) (expr.Expr, error) {
	text := strings.TrimSpace(s.Value)
	n := &ast.Number{Span: s.Span, Text: strings.TrimPrefix(text, "-")}
	if _, err := strconv.ParseFloat(text, 64); err != nil || strings.Trim(n.Text, "0123456789.eE+-") != "" {
		return nil, b.hinted(s, "a comparison with a number needs a number", "%s is not a number", quote(s.Value))
	}
	x, err := b.number(n, strings.HasPrefix(text, "-"))
	if err != nil || !columnar.IsFloat(dt) {
		return x, err
	}
	return expr.CastTo(x, dt), nil
}

// parsed reads the text of a date, time, timestamp or interval.
func (b *binder) parsed(n ast.Node, text string, dt arrow.DataType) (expr.Expr, error) {
	var v any
	ok := true
	form := ""
	switch dt.ID() {
	case arrow.DATE32:
		var d int32
		d, ok = columnar.ParseDate(text)
		v, form = arrow.Date32(d), "'2024-12-31'"
	case arrow.TIME64:
		var t int64
		t, ok = columnar.ParseTime(text)
		v, form = arrow.Time64(t), "'23:59:59'"
	case arrow.TIMESTAMP:
		var t int64
		t, ok = columnar.ParseTimestamp(text, b.p.Location)
		v, form = arrow.Timestamp(t), "'2024-12-31 23:59:59', with or without offset"
	case arrow.INTERVAL_MONTH_DAY_NANO:
		i, err := columnar.ParseInterval(text)
		if err != nil {
			return nil, b.wrap(n, err)
		}
		return mustLiteral(i), nil
	default:
		x, err := expr.NewCast(stringLiteral(text), dt, false)
		return x, b.wrap(n, err)
	}
	if !ok {
		return nil, b.hinted(n, "write it like "+form, "%s is not a %s", quote(text), columnar.TypeName(dt))
	}
	bld := array.NewBuilder(memory.DefaultAllocator, dt)
	defer bld.Release()
	switch x := bld.(type) {
	case *array.Date32Builder:
		x.Append(v.(arrow.Date32))
	case *array.Time64Builder:
		x.Append(v.(arrow.Time64))
	case *array.TimestampBuilder:
		x.Append(v.(arrow.Timestamp))
	}
	return &expr.Literal{Value: bld.NewArray()}, nil
}

// interval is the value of INTERVAL.
func (b *binder) interval(n *ast.Interval) (arrow.MonthDayNanoInterval, error) {
	if n.To != "" {
		return b.intervalTo(n)
	}
	var text strings.Builder
	for _, part := range n.Parts {
		amount := strings.ReplaceAll(part.Text, "_", "")
		if part.Unit != "" && part.Quoted {
			amount = strings.TrimSpace(amount)
		}
		if part.Negative {
			if strings.HasPrefix(strings.TrimSpace(amount), "-") {
				return arrow.MonthDayNanoInterval{}, b.errorf(n, "the interval has two signs")
			}
			amount = "-" + amount
		}
		text.WriteString(amount + " " + part.Unit + " ")
	}
	v, err := columnar.ParseInterval(text.String())
	if err != nil {
		return v, b.wrap(n, fmt.Errorf("%s", strings.Replace(err.Error(), fmt.Sprintf("%q", text.String()), quote(strings.TrimSpace(text.String())), 1)))
	}
	return v, nil
}

// spans lists, for INTERVAL '…' A TO B, the units from A to B and how they are
// separated in the text.
var intervalOrder = []string{"YEAR", "MONTH", "DAY", "HOUR", "MINUTE", "SECOND"}

// intervalTo reads '1:30' MINUTE TO SECOND, '1 02:30' DAY TO MINUTE, '1-6' YEAR TO MONTH.
func (b *binder) intervalTo(n *ast.Interval) (arrow.MonthDayNanoInterval, error) {
	part := n.Parts[0]
	from, to := indexOf(intervalOrder, part.Unit), indexOf(intervalOrder, n.To)
	var none arrow.MonthDayNanoInterval
	if from < 0 || to <= from || from < 2 && to > 1 {
		return none, b.hinted(n, "INTERVAL '1:30' MINUTE TO SECOND", "an interval cannot go from %s to %s", part.Unit, n.To)
	}
	text := strings.TrimSpace(part.Text)
	negative := part.Negative
	if rest, ok := strings.CutPrefix(text, "-"); ok {
		negative = !negative
		text = rest
	}
	fields := strings.FieldsFunc(text, func(r rune) bool { return r == ':' || r == ' ' || r == '-' })
	units := intervalOrder[from : to+1]
	if len(fields) != len(units) {
		return none, b.errorf(n, "%s does not have the %d parts of %s TO %s", quote(part.Text), len(units), part.Unit, n.To)
	}
	var list strings.Builder
	for i, f := range fields {
		if negative {
			f = "-" + f
		}
		list.WriteString(f + " " + units[i] + " ")
	}
	v, err := columnar.ParseInterval(list.String())
	if err != nil {
		return none, b.errorf(n, "%s is not an interval from %s to %s", quote(part.Text), part.Unit, n.To)
	}
	return v, nil
}

func indexOf(list []string, s string) int {
	for i, x := range list {
		if x == s {
			return i
		}
	}
	return -1
}

// wholeNumber reads a number without point, sign and suffix.
func wholeNumber(x ast.Expr) (int64, bool) {
	n, ok := ast.Unparen(x).(*ast.Number)
	if !ok {
		return 0, false
	}
	v, err := strconv.ParseInt(strings.ReplaceAll(n.Text, "_", ""), 10, 64)
	return v, err == nil
}

// microseconds is the length of an interval with a fixed length: months have none.
func microseconds(v arrow.MonthDayNanoInterval) (int64, error) {
	if v.Months != 0 {
		return 0, fmt.Errorf("months and years have no fixed length; give it in days")
	}
	total := new(big.Int).Mul(big.NewInt(int64(v.Days)), big.NewInt(columnar.MicrosPerDay))
	total.Add(total, big.NewInt(v.Nanoseconds/1000))
	if v.Nanoseconds%1000 != 0 {
		return 0, fmt.Errorf("it is finer than a microsecond, which is the unit of time here")
	}
	if !total.IsInt64() {
		return 0, fmt.Errorf("it is too long to count in microseconds")
	}
	return total.Int64(), nil
}

// delay is the length of a watermark delay: a month has 31 days, a year twelve of those.
func delay(v arrow.MonthDayNanoInterval) (time.Duration, error) {
	v.Days, v.Months = v.Days+v.Months*31, 0
	us, err := microseconds(v)
	if err != nil || us > math.MaxInt64/1000 || us < math.MinInt64/1000 {
		return 0, fmt.Errorf("the delay is too long")
	}
	return time.Duration(us) * time.Microsecond, nil
}

// plainTypes are the names of types without arguments.
var plainTypes = map[string]arrow.DataType{
	"boolean": columnar.Boolean, "bool": columnar.Boolean,
	"tinyint": columnar.Int8, "byte": columnar.Int8, "int1": columnar.Int8,
	"smallint": columnar.Int16, "short": columnar.Int16, "int2": columnar.Int16, "utinyint": columnar.Int16,
	"integer": columnar.Int32, "int": columnar.Int32, "int4": columnar.Int32, "usmallint": columnar.Int32,
	"bigint": columnar.Int64, "long": columnar.Int64, "int8": columnar.Int64, "uinteger": columnar.Int64,
	"ubigint": columnar.Decimal(20, 0), "hugeint": columnar.Decimal(38, 0),
	"real": columnar.Float32, "float": columnar.Float32, "float4": columnar.Float32,
	"double": columnar.Float64, "float8": columnar.Float64,
	"varchar": columnar.String, "string": columnar.String, "text": columnar.String, "char": columnar.String, "character": columnar.String,
	"binary": columnar.Binary, "bytea": columnar.Binary, "blob": columnar.Binary, "varbinary": columnar.Binary, "bytes": columnar.Binary,
	"date": columnar.Date, "time": columnar.Time, "interval": columnar.Interval,
	"timestamp": columnar.Timestamp, "timestamptz": columnar.Timestamp, "timestamp_ltz": columnar.Timestamp,
	"timestamp_ntz": columnar.Timestamp, "datetime": columnar.Timestamp,
}

// dataType is the type that a type name means.
func (b *binder) dataType(t *ast.Type) (arrow.DataType, error) {
	switch {
	case t.Key != nil:
		key, err := b.dataType(t.Key)
		if err != nil {
			return nil, err
		}
		value, err := b.dataType(t.Elem)
		if err != nil {
			return nil, err
		}
		return arrow.MapOf(key, value), nil
	case t.Elem != nil:
		elem, err := b.dataType(t.Elem)
		if err != nil {
			return nil, err
		}
		return columnar.ListOf(elem), nil
	case len(t.Fields) > 0:
		return b.structType(t)
	}
	switch t.Name {
	case "decimal", "numeric", "dec":
		return b.decimalType(t)
	case "array", "map", "struct":
		return nil, b.hinted(t, "ARRAY<BIGINT>, MAP<VARCHAR, BIGINT>, STRUCT<a BIGINT>", "the type %s needs the types of its parts", strings.ToUpper(t.Name))
	}
	dt, ok := plainTypes[t.Name]
	if !ok {
		names := []string{"decimal", "numeric", "array", "map", "struct"}
		for n := range plainTypes {
			names = append(names, n)
		}
		slices.SortFunc(names, func(x, y string) int { return cmp.Or(cmp.Compare(len(x), len(y)), cmp.Compare(x, y)) })
		hint := ""
		if known, ok := foreignTypes[t.Name]; ok {
			hint = "use " + known
		} else if n := nearest(t.Name, names); n != "" {
			hint = "did you mean " + strings.ToUpper(n) + "?"
		}
		return nil, b.hinted(t, hint, "there is no type %s", strings.ToUpper(t.Name))
	}
	return dt, b.checkTypeArgs(t, dt)
}

// checkTypeArgs accepts the length of texts, which says nothing, and the precision of
// times.
func (b *binder) checkTypeArgs(t *ast.Type, dt arrow.DataType) error {
	switch {
	case len(t.Args) == 0:
		return nil
	case dt.ID() == arrow.STRING || dt.ID() == arrow.BINARY:
		return nil
	case (dt.ID() == arrow.TIMESTAMP || dt.ID() == arrow.TIME64) && len(t.Args) == 1:
		if t.Args[0] > 6 {
			return b.hinted(t, "use a precision of at most 6", "%s has microseconds, no finer", columnar.TypeName(dt))
		}
		return nil
	}
	return b.errorf(t, "the type %s takes no arguments", columnar.TypeName(dt))
}

// decimalType is DECIMAL(p, s); without arguments DECIMAL(10, 0), as in Spark.
func (b *binder) decimalType(t *ast.Type) (arrow.DataType, error) {
	precision, scale := 10, 0
	if len(t.Args) > 0 {
		precision = t.Args[0]
	}
	if len(t.Args) > 1 {
		scale = t.Args[1]
	}
	if len(t.Args) > 2 || precision < 1 || precision > columnar.MaxPrecision || scale > precision {
		return nil, b.hinted(t, "DECIMAL(10, 2)", "DECIMAL takes 1 to %d digits, and at most as many behind the point", columnar.MaxPrecision)
	}
	return columnar.Decimal(int32(precision), int32(scale)), nil
}

func (b *binder) structType(t *ast.Type) (arrow.DataType, error) {
	fields := make([]arrow.Field, len(t.Fields))
	for i, f := range t.Fields {
		dt, err := b.dataType(f.Type)
		if err != nil {
			return nil, err
		}
		for _, g := range fields[:i] {
			if g.Name == f.Name.Text {
				return nil, b.errorf(f.Name, "the field %s is there twice", f.Name.Text)
			}
		}
		fields[i] = columnar.Field(f.Name.Text, dt)
	}
	return arrow.StructOf(fields...), nil
}
