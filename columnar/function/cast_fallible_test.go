package function_test

import (
	"fmt"
	"maps"
	"math"
	"strings"
	"testing"

	"github.com/apache/arrow-go/v18/arrow"

	"github.com/tidemill/tidemill/columnar"
	"github.com/tidemill/tidemill/columnar/columnartest"
	"github.com/tidemill/tidemill/columnar/function"
)

// castExtremes are the values of each type that are the likeliest not to be there in another.
var castExtremes = map[string][]any{
	"null":                        {nil},
	"boolean":                     {true, false},
	"tinyint":                     {math.MinInt8, math.MaxInt8, 0},
	"smallint":                    {math.MinInt16, math.MaxInt16, 0},
	"integer":                     {math.MinInt32, math.MaxInt32, 0},
	"bigint":                      {math.MinInt64, math.MaxInt64, 0},
	"real":                        {math.MaxFloat32, -math.MaxFloat32, math.NaN(), math.Inf(1), math.Inf(-1), 0.5},
	"double":                      {math.MaxFloat64, -math.MaxFloat64, math.NaN(), math.Inf(1), math.Inf(-1), 0.5},
	"varchar":                     {"", "x", "1", "\u0000", "1e400"},
	"binary":                      {[]byte{0xff}, []byte("a"), []byte{}},
	"date":                        {math.MinInt32, math.MaxInt32, 0},
	"time":                        {"00:00:00", "23:59:59.999999"},
	"timestamp":                   {int64(math.MinInt64), int64(math.MaxInt64), int64(0)},
	"interval":                    {arrow.MonthDayNanoInterval{Months: math.MaxInt32, Days: math.MinInt32, Nanoseconds: math.MaxInt64 / 1000 * 1000}, arrow.MonthDayNanoInterval{}},
	"array<tinyint>":              {[]any{math.MinInt8, nil}, []any{}},
	"array<bigint>":               {[]any{math.MinInt64, nil, math.MaxInt64}, []any{}},
	"array<double>":               {[]any{math.NaN(), nil, math.MaxFloat64}},
	"array<varchar>":              {[]any{"x", nil, ""}},
	"array<binary>":               {[]any{[]byte{0xff}, nil}},
	"array<date>":                 {[]any{math.MinInt32, math.MaxInt32}},
	"array<timestamp>":            {[]any{int64(math.MinInt64), int64(math.MaxInt64)}},
	"struct<x bigint, y varchar>": {[]any{int64(math.MinInt64), "x"}, []any{nil, nil}},
	"struct<x double, y binary>":  {[]any{math.NaN(), []byte{0xff}}},
	"map<varchar, bigint>":        {[][2]any{{"x", int64(math.MaxInt64)}}},
	"map<binary, date>":           {[][2]any{{[]byte{0xff}, math.MaxInt32}}},
}

// decimalExtremes are the values of a DECIMAL farthest from 0.
func decimalExtremes(precision, scale int) []any {
	nines := strings.Repeat("9", precision)
	nines = "0" + nines[:precision-scale] + "." + nines[precision-scale:]
	return []any{nines, "-" + nines, "0"}
}

// TestCastMayFail casts the extremes of every type to every other: a cast that is said not to
// fail does not, in any time zone, and one that is said to may.
func TestCastMayFail(t *testing.T) {
	t.Parallel()
	mem := columnartest.Mem(t)
	env := &function.Env{Mem: mem}
	all := maps.Clone(castExtremes)
	for _, d := range [][2]int{{1, 0}, {2, 0}, {3, 0}, {4, 0}, {5, 0}, {9, 0}, {10, 0}, {12, 0}, {13, 0}, {18, 0}, {19, 0}, {38, 0}, {38, 38}, {9, 2}, {9, 1}, {7, 0}, {8, 0}, {19, 6}, {18, 6}, {13, 1}, {6, 5}, {5, 5}} {
		all[fmt.Sprintf("decimal(%d,%d)", d[0], d[1])] = decimalExtremes(d[0], d[1])
	}
	for from, values := range all {
		ft, err := columnartest.Type(from)
		if err != nil {
			t.Fatal(err)
		}
		for to := range all {
			tt, err := columnartest.Type(to)
			if err != nil {
				t.Fatal(err)
			}
			if !function.CanCast(ft, tt) {
				continue
			}
			failed := false
			for _, v := range values {
				a, err := columnar.Column(mem, ft, v)
				if err != nil {
					t.Fatalf("%s %v: %v", from, v, err)
				}
				d, err := function.Cast(env, columnar.ColumnDatum(a), tt, false, 1, nil)
				a.Release()
				if err == nil {
					d.Release()
					continue
				}
				failed = true
				if !function.CastMayFail(ft, tt) {
					t.Errorf("%s to %s cannot fail: %v", from, to, err)
				}
			}
			if !failed && function.CastMayFail(ft, tt) {
				t.Errorf("%s to %s may fail, and no extreme does", from, to)
			}
		}
	}
}
