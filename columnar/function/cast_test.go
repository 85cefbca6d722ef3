package function_test

import (
	"testing"

	"github.com/apache/arrow-go/v18/arrow"

	"github.com/tidemill/tidemill/columnar"
	"github.com/tidemill/tidemill/columnar/columnartest"
	"github.com/tidemill/tidemill/columnar/function"
)

func TestCast(t *testing.T) {
	cases{
		{"CAST('12' AS BIGINT)", "12"}, {"CAST(' -12 ' AS TINYINT)", "-12"}, {"CAST('128' AS TINYINT)", `error: cannot cast "128" to TINYINT`}, {"TRY_CAST('128' AS TINYINT)", "NULL"},
		{"CAST('1.5' AS BIGINT)", `error: cannot cast "1.5" to BIGINT`}, {"CAST('' AS INTEGER)", "error: cannot cast"}, {"CAST('9223372036854775808' AS BIGINT)", "error: cannot cast"},
		{"CAST('-9223372036854775808' AS BIGINT)", "-9223372036854775808"}, {"CAST('0x10' AS BIGINT)", "error: cannot cast"}, {"CAST('+5' AS SMALLINT)", "5"},
		{"CAST('1e3' AS DOUBLE)", "1000"}, {"CAST('-inf' AS DOUBLE)", "-Infinity"}, {"CAST('nan' AS REAL)", "NaN"}, {"CAST('1_0' AS DOUBLE)", "error: cannot cast"}, {"CAST('0x1p3' AS DOUBLE)", "error: cannot cast"},
		{"CAST('yes' AS BOOLEAN)", "true"}, {"CAST('2' AS BOOLEAN)", "error: cannot cast"}, {"CAST(2 AS BOOLEAN)", "true"}, {"CAST(true AS INTEGER)", "1"}, {"CAST(true AS DECIMAL(3,1))", "1.0"}, {"CAST(0.0 AS BOOLEAN)", "false"},
		{"CAST('1.005' AS DECIMAL(5,2))", "1.01"}, {"CAST('-1.005' AS DECIMAL(5,2))", "-1.01"}, {"CAST('999.995' AS DECIMAL(5,2))", "error: cannot cast"}, {"CAST('1e-3' AS DECIMAL(5,3))", "0.001"}, {"CAST('1e40' AS DECIMAL(38,0))", "error: cannot cast"},
		{"CAST('.5' AS DECIMAL(2,1))", "0.5"}, {"CAST('1.' AS DECIMAL(2,1))", "1.0"}, {"CAST('.' AS DECIMAL(2,1))", "error: cannot cast"}, {"CAST('0e999999999999' AS DECIMAL(2,1))", "0.0"},
		{"CAST(1.9 AS INTEGER)", "1"}, {"CAST(-1.9 AS INTEGER)", "-1"}, {"CAST(2147483648.0 AS INTEGER)", "error: cannot cast 2147483648.0 to INTEGER"}, {"TRY_CAST(300 AS TINYINT)", "NULL"},
		{"CAST(-1.9e0 AS BIGINT)", "-1"}, {"CAST(9.3e18 AS BIGINT)", "error: cannot cast"}, {"CAST(CAST('NaN' AS DOUBLE) AS INTEGER)", "error: cannot cast NaN to INTEGER"}, {"CAST(127.9e0 AS TINYINT)", "127"}, {"CAST(-128.9e0 AS TINYINT)", "-128"},
		{"CAST(1e-1 AS DECIMAL(3,2))", "0.10"}, {"CAST(1e3 AS DECIMAL(3,2))", "error: cannot cast"}, {"CAST(1.255 AS DECIMAL(3,2))", "1.26"}, {"CAST(-12.345 AS DECIMAL(3,1))", "-12.3"},
		{"CAST(12345678901234567890 AS DOUBLE)", "12345678901234567000"}, {"CAST(0.1 AS DOUBLE)", "0.1"}, {"CAST(0.1 AS REAL)", "0.1"}, {"CAST(1e300 AS REAL)", "Infinity"},
		{"CAST('2024-02-29' AS DATE)", "2024-02-29"}, {"CAST('2023-02-29' AS DATE)", "error: cannot cast"}, {"CAST('2024-1-5' AS DATE)", "2024-01-05"}, {"CAST('2024-01-01 10:00' AS DATE)", "2024-01-01"}, {"CAST('20240101' AS DATE)", "error: cannot cast"},
		{"CAST('10:11' AS TIME)", "10:11:00"}, {"CAST('24:00:00' AS TIME)", "error: cannot cast"}, {"CAST(TIMESTAMP '1969-12-31 23:59:59.5' AS TIME)", "23:59:59.500000"},
		{"CAST('2024-01-01T00:00:00.1234567Z' AS TIMESTAMP)", "2024-01-01 00:00:00.123456"}, {"CAST('2024-01-01 00:00:00+01' AS TIMESTAMP)", "2023-12-31 23:00:00"}, {"CAST('2024-01-01 00:00:00 -01:30' AS TIMESTAMP)", "2024-01-01 01:30:00"},
		{"CAST('2024-01-01 00:00:00 Europe/Berlin' AS TIMESTAMP)", "2023-12-31 23:00:00"}, {"CAST('2024-01-01 25:00:00' AS TIMESTAMP)", "error: cannot cast"}, {"CAST('2024-01-01x' AS TIMESTAMP)", "error: cannot cast"}, {"CAST('1900-01-01 00:00:00' AS TIMESTAMP)", "1900-01-01 00:00:00"},
		{"CAST(TIMESTAMP '1969-12-31 23:59:59.5' AS BIGINT)", "-1"}, {"CAST(TIMESTAMP '1969-12-31 23:59:59.5' AS DOUBLE)", "-0.5"}, {"CAST(TIMESTAMP '1970-01-01 00:00:01.5' AS DECIMAL(10,2))", "1.50"}, {"CAST(1.5 AS TIMESTAMP)", "1970-01-01 00:00:01.500000"}, {"CAST(-1 AS TIMESTAMP)", "1969-12-31 23:59:59"},
		{"CAST(9223372036854775807 AS TIMESTAMP)", "error: cannot cast"}, {"CAST(DATE '1969-12-31' AS TIMESTAMP)", "1969-12-31 00:00:00"}, {"CAST(TIMESTAMP '1969-12-31 23:00:00' AS DATE)", "1969-12-31"},
		{"CAST('1 day 2 hours' AS INTERVAL)", "1 day 02:00:00"}, {"CAST('-1.5 s' AS INTERVAL)", "-00:00:01.5"}, {"CAST('a while' AS INTERVAL)", "error: cannot cast"}, {"CAST(INTERVAL '14 months -1 day' AS VARCHAR)", "1 year 2 months -1 day"},
		{"CAST(unhex('C3A9') AS VARCHAR)", "é"}, {"CAST(unhex('FF') AS VARCHAR)", "error: cannot cast"}, {"TRY_CAST(unhex('FF') AS VARCHAR)", "NULL"}, {"CAST('é' AS BINARY)", `\xC3\xA9`},
		{"CAST(1.50 AS VARCHAR)", "1.50"}, {"CAST(true AS VARCHAR)", "true"}, {"CAST(1e21 AS VARCHAR)", "1.0E21"}, {"CAST(42e0 AS VARCHAR)", "42.0"}, {"CAST(-0e0 AS VARCHAR)", "-0.0"},
		{"CAST(1e7 AS VARCHAR)", "1.0E7"}, {"CAST(9999999e0 AS VARCHAR)", "9999999.0"}, {"CAST(1e-3 AS VARCHAR)", "0.001"}, {"CAST(9.5e-4 AS VARCHAR)", "9.5E-4"},
		{"CAST(CAST('NaN' AS DOUBLE) AS VARCHAR)", "NaN"}, {"CAST(CAST('-inf' AS DOUBLE) AS VARCHAR)", "-Infinity"}, {"CAST(CAST(1.1 AS REAL) AS VARCHAR)", "1.1"},
		{"CAST(array(1e0, 2.5e0, NULL) AS VARCHAR)", "\"[1.0,2.5,null]\""}, {"CAST(TIMESTAMP '2024-01-01' AS VARCHAR)", "2024-01-01 00:00:00"}, {"CAST(NULL AS VARCHAR)", "NULL"},
		{"CAST(array(1, NULL) AS VARCHAR)", `"[1,null]"`}, {"CAST(struct(1, 'a') AS VARCHAR)", `"{\"col1\":1,\"col2\":\"a\"}"`}, {"CAST(map(1, 2) AS VARCHAR)", `"{\"1\":2}"`},
		{"CAST(array('1', '2') AS ARRAY<BIGINT>)", "[1,2]"}, {"CAST(array('1', 'x') AS ARRAY<BIGINT>)", `error: cannot cast "x"`}, {"TRY_CAST(array('1', 'x') AS ARRAY<BIGINT>)", "[1,null]"},
		{"CAST(struct(1, '2') AS STRUCT<a VARCHAR, b INTEGER>)", `{"a":"1","b":2}`}, {"CAST(map('1', '2') AS MAP<BIGINT, DOUBLE>)", `{"1":2}`}, {"CAST(array(1) AS BIGINT)", "error: no cast"}, {"CAST(DATE '2024-01-01' AS BIGINT)", "error: no cast"},
	}.run(t, "")
}

// TestCastRoundTrip checks that every value comes back from its text.
func TestCastRoundTrip(t *testing.T) {
	t.Parallel()
	mem := columnartest.Mem(t)
	env := &function.Env{Mem: mem}
	for _, name := range []string{"boolean", "tinyint", "smallint", "integer", "bigint", "real", "double", "date", "time", "timestamp", "interval", "decimal(9,2)", "decimal(38,10)", "varchar"} {
		dt, err := columnartest.Type(name)
		if err != nil {
			t.Fatal(err)
		}
		for _, rows := range []int{0, 1, 63, 64, 65, 500} {
			a := columnartest.RandomColumn(t, mem, dt, uint64(rows), columnartest.RandomOptions{Rows: rows})
			text, err := function.Cast(env, columnar.ColumnDatum(a), columnar.String, false, rows, nil)
			if err != nil {
				t.Fatal(name, err)
			}
			back, err := function.Cast(env, text, dt, false, rows, nil)
			text.Release()
			if err != nil {
				t.Fatal(name, err)
			}
			columnartest.EqualArrays(t, a, back.Array())
			back.Release()
		}
	}
}

// TestCastEvery casts random columns between all types that allow it, strictly and
// not: no value may be lost without an error, and nothing may panic or leak.
func TestCastEvery(t *testing.T) {
	t.Parallel()
	mem := columnartest.Mem(t)
	env := &function.Env{Mem: mem}
	names := []string{"null", "boolean", "tinyint", "smallint", "integer", "bigint", "real", "double", "varchar", "binary", "date", "time", "timestamp", "interval", "decimal(9,2)", "decimal(38,10)", "array<varchar>", "array<bigint>", "struct<x bigint, y varchar>", "struct<p double, q double>", "map<varchar, bigint>"}
	for i, from := range names {
		for j, to := range names {
			ft, _ := columnartest.Type(from)
			tt, _ := columnartest.Type(to)
			if !function.CanCast(ft, tt) {
				continue
			}
			a := columnartest.RandomColumn(t, mem, ft, uint64(i*100+j), columnartest.RandomOptions{Rows: 70})
			strict, err := function.Cast(env, columnar.ColumnDatum(a), tt, false, 70, nil)
			try, tryErr := function.Cast(env, columnar.ColumnDatum(a), tt, true, 70, nil)
			if tryErr != nil {
				t.Errorf("try %s to %s: %v", from, to, tryErr)
				continue
			}
			if err == nil {
				columnartest.EqualArrays(t, strict.Array(), try.Array())
				strict.Release()
			} else if !function.CastMayFail(ft, tt) && !columnar.IsNested(ft) {
				t.Errorf("%s to %s cannot fail, but: %v", from, to, err)
			}
			if !arrow.TypeEqual(try.Type(), tt) {
				t.Errorf("%s to %s gives %s", from, to, try.Type())
			}
			checkCastRows(t, env, a, try.Array(), tt)
			try.Release()
		}
	}
}

// checkCastRows casts row by row and compares with the whole.
func checkCastRows(t *testing.T, env *function.Env, a, got arrow.Array, to arrow.DataType) {
	t.Helper()
	active := columnar.NewBitmap(a.Len())
	for i := range a.Len() {
		active.Reset(a.Len())
		active.Set(i)
		one, err := function.Cast(env, columnar.ColumnDatum(a), to, false, a.Len(), active)
		want := "NULL"
		if err == nil {
			want = string(columnar.AppendCanonical(nil, one.Array(), i, nil))
			one.Release()
		} else if columnar.IsNested(to) {
			continue // in try mode the element alone is null
		}
		if g := string(columnar.AppendCanonical(nil, got, i, nil)); g != want {
			t.Errorf("%s %s to %s: %s alone, %s in the column", a.DataType(), columnar.AppendCanonical(nil, a, i, nil), to, want, g)
			return
		}
	}
}

func TestResolve(t *testing.T) {
	t.Parallel()
	reg := function.Builtins()
	for _, c := range []struct{ name, args, want string }{
		{"+", "integer,bigint", "BIGINT"}, {"+", "integer,integer", "INTEGER"}, {"+", "bigint,double", "DOUBLE"}, {"+", "decimal(10,2),integer", "DECIMAL(13,2)"}, {"+", "decimal(38,2),decimal(38,10)", "DECIMAL(38,6)"},
		{"*", "decimal(20,5),decimal(20,5)", "DECIMAL(38,7)"}, {"/", "bigint,bigint", "DOUBLE"}, {"/", "decimal(10,2),decimal(10,2)", "DECIMAL(23,13)"}, {"%", "decimal(10,2),decimal(5,3)", "DECIMAL(5,3)"},
		{"+", "date,integer", "DATE"}, {"+", "date,interval", "TIMESTAMP"}, {"-", "timestamp,date", "INTERVAL"}, {"-", "date,date", "INTERVAL"}, {"+", "real,real", "REAL"}, {"+", "real,integer", "DOUBLE"}, {"-", "tinyint", "TINYINT"},
		{"coalesce", "integer,decimal(5,2)", "DECIMAL(12,2)"}, {"=", "integer,double", "BOOLEAN"}, {"round", "decimal(10,2)", "DECIMAL(9,0)"}, {"concat", "varchar,integer", "VARCHAR"}, {"ABS", "null", "INTEGER"},
	} {
		var args []arrow.DataType
		for depth, from, i := 0, 0, 0; i <= len(c.args); i++ {
			if i < len(c.args) && (c.args[i] != ',' || depth > 0) {
				switch c.args[i] {
				case '(':
					depth++
				case ')':
					depth--
				}
				continue
			}
			dt, err := columnartest.Type(c.args[from:i])
			if err != nil {
				t.Fatal(err)
			}
			args, from = append(args, dt), i+1
		}
		f, ok := reg.Scalar(c.name)
		if !ok {
			t.Fatal(c.name)
		}
		sig, err := f.Resolve(args)
		if err != nil {
			t.Errorf("%s(%s): %v", c.name, c.args, err)
			continue
		}
		if got := columnar.TypeName(sig.Result); got != c.want {
			t.Errorf("%s(%s) is %s, want %s", c.name, c.args, got, c.want)
		}
	}
}
