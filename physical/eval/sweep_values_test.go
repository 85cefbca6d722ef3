package eval_test

import (
	"math"
	"strings"

	"github.com/apache/arrow-go/v18/arrow"

	"github.com/tidemill/tidemill/columnar"
)

// sweepTypes are the types that the arguments of a sweep may have.
var sweepTypes = []arrow.DataType{
	columnar.Int64, columnar.String, columnar.Float64, columnar.Decimal(38, 0), columnar.ListOf(columnar.Int64), columnar.Boolean,
	columnar.Int32, columnar.Int8, columnar.Int16, columnar.Float32, columnar.Decimal(38, 38), columnar.Decimal(10, 2), columnar.Binary,
	columnar.Date, columnar.Time, columnar.Timestamp, columnar.Interval,
	columnar.ListOf(columnar.Float64), columnar.ListOf(columnar.String), columnar.ListOf(columnar.ListOf(columnar.Int64)), sweepStruct,
	columnar.ListOf(sweepStruct), arrow.MapOf(columnar.String, columnar.Int64), arrow.MapOf(columnar.Float64, columnar.String),
	arrow.MapOf(columnar.String, columnar.ListOf(columnar.Int64)), columnar.Null,
}

var sweepStruct = arrow.StructOf(columnar.Field("a", columnar.Int64), columnar.Field("b", columnar.String))

var nines = strings.Repeat("9", 38)

// sweepTexts are texts that mean something to some function, and some that mean nothing.
var sweepTexts = []any{
	"", "a", "ab", "e\u0301\U0001F600x", " 12 ", "\x00", strings.Repeat("日本\U0001F600", 90), "\u200d\u0301", "ǅ ß İ",
	"2024-03-31 02:30:00", "0001-01-01", "10:61:00", "day", "week", "Europe/Berlin", "yyyy-MM-dd HH:mm", "%Y-%m-%d", "%q", "'open", "9999-12-31T23:59:59.999999Z",
	`{"a":[1,null,{"b":"\ud83d\ude00"}]}`, `{"a":`, "[1, 2]", "null", "$.a[0]", "$[*].b", "$.", "a",
	"(a)(b)?", "[a-z", "i", "%", "_%", `\`, "%d and %s", "%5$s", "%1$",
	"https://u:p@host:8080/p/a?q=1&r=%C3%A9#f", "a%zz", "HOST", "QUJD", "!!", "ff", "f", "-1", "1e400", "NaN", "NULL", ",",
	"a:1,b:2", "{} and {:05d}", "{", "999,999.99", "$S9", "utf-16", "mon", "sha",
}

var sweepDoubles = []any{
	0.0, math.Copysign(0, -1), 1.0, -1.0, 0.5, -2.5, 3.0, math.NaN(), math.Inf(1), math.Inf(-1), math.MaxFloat64, -math.MaxFloat64,
	math.SmallestNonzeroFloat64, 9.2233720368547758e18, 1e17 + 2, 2024.0,
}

// sweepValues are awkward values of a type; nulls are not among them.
func sweepValues(dt arrow.DataType) []any {
	switch t := dt.(type) {
	case *arrow.NullType:
		return []any{nil}
	case *arrow.BooleanType:
		return []any{true, false}
	case *arrow.Int8Type:
		return []any{0, 1, -1, 2, math.MaxInt8, math.MinInt8}
	case *arrow.Int16Type:
		return []any{0, 1, -1, 3, math.MaxInt16, math.MinInt16}
	case *arrow.Int32Type:
		return []any{0, 1, -1, 2, 12, 2024, math.MaxInt32, math.MinInt32}
	case *arrow.Int64Type:
		return []any{0, 1, -1, 2, 3, 7, 16, 64, 2024, 1 << 53, math.MaxInt64, math.MinInt64}
	case *arrow.Float32Type, *arrow.Float64Type:
		return sweepDoubles
	case *arrow.Decimal128Type:
		switch {
		case t.Scale == 0:
			return []any{"0", "1", "-1", nines, "-" + nines, "9223372036854775808", "12"}
		case t.Scale == t.Precision:
			return []any{"0", "0." + nines, "-0." + nines, "-0." + strings.Repeat("0", 37) + "1", "0.5"}
		}
		return []any{"0", "2.50", "-2.5", "99999999.99", "-99999999.99", "0.01"}
	case *arrow.StringType:
		return sweepTexts
	case *arrow.BinaryType:
		return []any{[]byte{}, []byte("a"), []byte("é"), []byte{0xff, 0xfe, 0}, []byte{0xc3}}
	}
	return sweepTemporal(dt)
}

func sweepTemporal(dt arrow.DataType) []any {
	switch dt.ID() {
	case arrow.DATE32:
		return []any{"0001-01-01", "9999-12-31", "2024-02-29", "1969-12-31", "1970-01-01", math.MaxInt32, math.MinInt32}
	case arrow.TIME64:
		return []any{"00:00:00", "23:59:59.999999", "12:00:00", "02:30:00"}
	case arrow.TIMESTAMP:
		return []any{
			"0001-01-01T00:00:00Z", "9999-12-31T23:59:59.999999Z", "2024-03-31T01:00:00Z", "2024-03-31T00:59:59.999999Z", "2024-10-27T00:30:00Z",
			"1969-12-31T23:59:59.999999Z", "2024-02-29T12:00:00Z", int64(math.MaxInt64), int64(math.MinInt64),
		}
	case arrow.INTERVAL_MONTH_DAY_NANO:
		return []any{
			arrow.MonthDayNanoInterval{}, arrow.MonthDayNanoInterval{Months: 1, Days: -1}, arrow.MonthDayNanoInterval{Nanoseconds: 1000}, arrow.MonthDayNanoInterval{Days: 1},
			arrow.MonthDayNanoInterval{Months: math.MaxInt32, Days: math.MaxInt32, Nanoseconds: math.MaxInt64 / 1000 * 1000},
			arrow.MonthDayNanoInterval{Months: math.MinInt32, Days: math.MinInt32, Nanoseconds: math.MinInt64 / 1000 * 1000},
		}
	}
	return sweepNested(dt)
}

// sweepNested is empty values, those of a null, and those of the first awkward elements.
func sweepNested(dt arrow.DataType) []any {
	switch t := dt.(type) {
	case *arrow.ListType:
		of := sweepValues(t.Elem())
		return []any{[]any{}, []any{nil}, []any{of[0]}, []any{of[1], nil, of[0], of[1]}, append([]any{}, of...)}
	case *arrow.StructType:
		return []any{[]any{int64(1), "x"}, []any{nil, "e\u0301"}, []any{int64(math.MinInt64), nil}, []any{nil, nil}}
	case *arrow.MapType:
		keys, items := sweepValues(t.KeyType()), sweepValues(t.ItemType())
		return []any{[][2]any{}, [][2]any{{keys[0], nil}}, [][2]any{{keys[2], items[0]}, {keys[3], items[1]}, {keys[4], nil}}}
	}
	return []any{nil}
}
