package function_test

import (
	"fmt"
	"strings"
	"testing"
	"time"
	_ "time/tzdata"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/memory"

	"github.com/tidemill/tidemill/columnar"
	"github.com/tidemill/tidemill/columnar/columnartest"
	"github.com/tidemill/tidemill/columnar/function"
)

// evaluator computes expressions written as in SQL: literals, operators, calls, CAST.
// It knows no columns, and stands in for the binder, which this package cannot use.
type evaluator struct {
	t    *testing.T
	reg  *function.Registry
	env  *function.Env
	toks []string
	rows int // every literal becomes a column of so many rows; 0 keeps constants
}

// value is a typed result, released when the test ends.
type value struct {
	d  columnar.Datum
	dt arrow.DataType
}

func newEvaluator(t *testing.T, mem memory.Allocator) *evaluator {
	return &evaluator{t: t, reg: function.Builtins(), env: &function.Env{Mem: mem, Now: 1_700_000_000_000_000, Seed: 1}}
}

// eval returns the canonical text of an expression, or its error as "error: …".
func (e *evaluator) eval(text string) string {
	e.t.Helper()
	e.toks = tokens(text)
	v, err := e.expr(0)
	if err != nil {
		return "error: " + err.Error()
	}
	if len(e.toks) > 0 {
		return "error: left over: " + strings.Join(e.toks, " ")
	}
	loc := e.env.Zone()
	a := v.d.Array()
	first := string(columnar.AppendCanonical(nil, a, 0, loc))
	for i := range a.Len() {
		if again := string(columnar.AppendCanonical(nil, a, i, loc)); again != first && !strings.Contains(text, "random") {
			return "error: row " + fmt.Sprint(i) + " differs: " + again
		}
	}
	if !arrow.TypeEqual(v.dt, a.DataType()) {
		return fmt.Sprintf("error: type %s promised, %s given", v.dt, a.DataType())
	}
	return first
}

func tokens(s string) []string {
	var out []string
	for i := 0; i < len(s); {
		c := s[i]
		j := i + 1
		word := func(c byte) bool { return c == '_' || c >= '0' && c <= '9' || c|0x20 >= 'a' && c|0x20 <= 'z' }
		switch {
		case c == ' ':
			i++
			continue
		case c == '\'':
			for j < len(s) && (s[j] != '\'' || j+1 < len(s) && s[j+1] == '\'') {
				if s[j] == '\'' {
					j++
				}
				j++
			}
			j++
		case c >= '0' && c <= '9':
			for j < len(s) && (s[j] == '.' || word(s[j]) || s[j-1] == 'e' && s[j] == '-') {
				j++
			}
		case word(c):
			for j < len(s) && word(s[j]) {
				j++
			}
		case strings.IndexByte("<>|/!=", c) >= 0:
			for j < len(s) && strings.IndexByte("<>|/=", s[j]) >= 0 {
				j++
			}
		}
		out = append(out, s[i:j])
		i = j
	}
	return out
}

var precedence = map[string]int{
	"=": 1, "<>": 1, "<": 1, "<=": 1, ">": 1, ">=": 1, "LIKE": 1, "ILIKE": 1, "SIMILAR": 1, "<=>": 1,
	"||": 2, "|": 2, "&": 2, "<<": 2, ">>": 2, "+": 3, "-": 3, "*": 4, "/": 4, "//": 4, "%": 4, "div": 4,
}

func (e *evaluator) peek() string {
	if len(e.toks) == 0 {
		return ""
	}
	return e.toks[0]
}

func (e *evaluator) next() string {
	t := e.peek()
	if t != "" {
		e.toks = e.toks[1:]
	}
	return t
}

func (e *evaluator) expr(least int) (value, error) {
	left, err := e.primary()
	for err == nil {
		op := e.peek()
		p := precedence[op]
		if p == 0 || p <= least {
			break
		}
		e.next()
		name := strings.ToLower(op)
		if op == "SIMILAR" {
			e.next()
			name = "similar to"
		}
		var right value
		if right, err = e.expr(p); err == nil {
			left, err = e.call(name, left, right)
		}
	}
	return left, err
}

func (e *evaluator) primary() (value, error) {
	t := e.next()
	switch {
	case t == "-" || t == "~":
		v, err := e.expr(9)
		if err != nil {
			return v, err
		}
		return e.call(t, v)
	case t == "(":
		v, err := e.expr(0)
		e.next()
		return v, err
	case t[0] == '\'':
		return e.literal(columnar.String, strings.ReplaceAll(t[1:len(t)-1], "''", "'"))
	case t[0] >= '0' && t[0] <= '9':
		return e.number(t)
	case t == "NULL":
		return e.literal(columnar.Null, nil)
	case t == "true" || t == "false":
		return e.literal(columnar.Boolean, t == "true")
	case (t == "TIMESTAMP" || t == "DATE" || t == "INTERVAL" || t == "TIME") && strings.HasPrefix(e.peek(), "'"):
		dt, _ := columnartest.Type(t)
		s := e.next()
		return e.literal(dt, s[1:len(s)-1])
	case t == "CAST" || t == "TRY_CAST":
		return e.cast(t == "TRY_CAST")
	}
	if e.next() != "(" {
		return value{}, fmt.Errorf("unknown word %s", t)
	}
	var args []value
	for e.peek() != ")" {
		v, err := e.expr(0)
		if err != nil {
			return v, err
		}
		args = append(args, v)
		if e.peek() == "," {
			e.next()
		}
	}
	e.next()
	if t == "from_json" {
		args[1] = e.nullOfSchema(args[1])
	}
	if strings.HasSuffix(t, "to_number") {
		dt, err := function.NumberType(columnar.Value(args[1].d.Array(), 0).(string))
		if err != nil {
			return value{}, err
		}
		null := columnar.NullConstant(e.env.Mem, dt)
		e.t.Cleanup(null.Release)
		args = append(args, value{null, dt})
	}
	return e.call(t, args...)
}

// nullOfSchema is the null that a binder makes of a schema of fields of plain types.
func (e *evaluator) nullOfSchema(schema value) value {
	var fields []arrow.Field
	for _, f := range strings.Split(columnar.Value(schema.d.Array(), 0).(string), ", ") {
		name, dt, _ := strings.Cut(f, " ")
		parsed, err := columnartest.Type(dt)
		if err != nil {
			e.t.Fatal(err)
		}
		fields = append(fields, columnar.Field(name, parsed))
	}
	dt := arrow.StructOf(fields...)
	null := columnar.NullConstant(e.env.Mem, dt)
	e.t.Cleanup(null.Release)
	return value{null, dt}
}

func (e *evaluator) cast(try bool) (value, error) {
	e.next()
	v, err := e.expr(0)
	if err != nil {
		return v, err
	}
	e.next() // AS
	var name string
	for depth := 0; depth > 0 || e.peek() != ")"; {
		t := e.next()
		name += t + " "
		depth += strings.Count(t, "(") - strings.Count(t, ")")
	}
	e.next()
	dt, err := columnartest.Type(name)
	if err != nil {
		return v, err
	}
	return e.convert(v, dt, try)
}

func (e *evaluator) convert(v value, dt arrow.DataType, try bool) (value, error) {
	if !function.CanCast(v.dt, dt) {
		return v, fmt.Errorf("no cast of %s to %s", v.dt, dt)
	}
	d, err := function.Cast(e.env, v.d, dt, try, max(e.rows, 1), nil)
	if err != nil {
		return v, err
	}
	e.t.Cleanup(d.Release)
	return value{d, dt}, nil
}

func (e *evaluator) number(t string) (value, error) {
	switch {
	case strings.ContainsAny(t, "e"):
		f, _ := columnar.ParseFloat(t, 64)
		return e.literal(columnar.Float64, f)
	case strings.Contains(t, "."):
		whole, fraction, _ := strings.Cut(t, ".")
		return e.literal(columnar.Decimal(int32(max(len(strings.TrimLeft(whole, "0"))+len(fraction), 1)), int32(len(fraction))), t)
	}
	n, ok := columnar.ParseInt(t)
	switch {
	case !ok:
		return e.literal(columnar.Decimal(int32(len(t)), 0), t)
	case n == int64(int32(n)):
		return e.literal(columnar.Int32, n)
	}
	return e.literal(columnar.Int64, n)
}

// literal is a constant, or with rows set a column of it.
func (e *evaluator) literal(dt arrow.DataType, v any) (value, error) {
	var d columnar.Datum
	if dt.ID() == arrow.NULL {
		d = columnar.NullConstant(e.env.Mem, dt)
	} else {
		var err error
		if d, err = columnar.Constant(e.env.Mem, dt, v); err != nil {
			return value{}, err
		}
	}
	e.t.Cleanup(d.Release)
	if e.rows > 0 {
		column := columnar.ColumnDatum(columnar.Broadcast(e.env.Mem, d, e.rows))
		e.t.Cleanup(column.Release)
		return value{column, dt}, nil
	}
	return value{d, dt}, nil
}

func (e *evaluator) call(name string, args ...value) (value, error) {
	f, ok := e.reg.Scalar(name)
	if !ok {
		return value{}, e.reg.Unknown(name)
	}
	types := make([]arrow.DataType, len(args))
	for i, a := range args {
		types[i] = a.dt
	}
	sig, err := f.Resolve(types)
	if err != nil {
		return value{}, err
	}
	data := make([]columnar.Datum, len(args))
	constants := make([]arrow.Array, len(args))
	for i, a := range args {
		c, err := e.convert(a, sig.Args[i], false)
		if err != nil {
			return value{}, err
		}
		data[i] = c.d
		if c.d.IsConstant() {
			constants[i] = c.d.Array()
		}
	}
	kernel, err := sig.Overload.Bind(sig.Args, constants)
	if err != nil {
		return value{}, err
	}
	out, err := kernel(e.env, data, max(e.rows, 1), nil)
	if err != nil {
		return value{}, err
	}
	e.t.Cleanup(out.Release)
	return value{out, sig.Result}, nil
}

// TestExamples runs the example of every scalar function, over constants and over
// columns.
func TestExamples(t *testing.T) {
	t.Parallel()
	mem := columnartest.Mem(t)
	e := newEvaluator(t, mem)
	seen := map[string]bool{}
	for _, name := range e.reg.Names() {
		f, ok := e.reg.Scalar(name)
		if !ok || seen[f.Name] {
			continue
		}
		seen[f.Name] = true
		at := strings.LastIndex(f.Example, " = ")
		if f.Doc == "" || at < 0 {
			t.Errorf("%s has no documentation or example", f.Name)
			continue
		}
		text, want := f.Example[:at], f.Example[at+3:]
		for _, e.rows = range []int{0, 1, 65} {
			if got := strings.Trim(e.eval(text), `"`); strings.ReplaceAll(got, `\"`, `"`) != want {
				t.Errorf("%s: example %s, %d rows: got %s, want %s", f.Name, text, e.rows, got, want)
				break
			}
		}
	}
	if len(seen) < 150 {
		t.Errorf("%d functions only", len(seen))
	}
}

// cases is a table of expressions and their results.
type cases [][2]string

func (c cases) run(t *testing.T, zone string) {
	t.Helper()
	t.Parallel()
	mem := columnartest.Mem(t)
	e := newEvaluator(t, mem)
	if zone != "" {
		loc, err := time.LoadLocation(zone)
		if err != nil {
			t.Fatal(err)
		}
		e.env.Location = loc
	}
	for _, x := range c {
		for _, e.rows = range []int{0, 1, 67} {
			got := e.eval(x[0])
			if want, isError := strings.CutPrefix(x[1], "error: "); isError {
				if !strings.HasPrefix(got, "error: ") || !strings.Contains(got, want) {
					t.Errorf("%s, %d rows: got %s, want an error with %q", x[0], e.rows, got, want)
					break
				}
			} else if got != x[1] {
				t.Errorf("%s, %d rows: got %s, want %s", x[0], e.rows, got, x[1])
				break
			}
		}
	}
}

func TestArithmetic(t *testing.T) {
	cases{
		{"2147483647 + 1", "error: 2147483647 + 1 overflows INTEGER"},
		{"2147483647 + CAST(1 AS BIGINT)", "2147483648"},
		{"9223372036854775807 + 1", "error: overflows BIGINT; cast an operand"},
		{"-9223372036854775807 - 2", "error: overflows BIGINT"},
		{"3037000500 * 3037000500", "error: overflows BIGINT"},
		{"3037000499 * 3037000499", "9223372030926249001"},
		{"CAST(-128 AS TINYINT) // CAST(-1 AS TINYINT)", "error: overflows TINYINT"},
		{"-(CAST(-128 AS TINYINT))", "error: overflows TINYINT"},
		{"CAST(100 AS TINYINT) * CAST(2 AS TINYINT)", "error: overflows TINYINT"},
		{"try_multiply(9223372036854775807, 2)", "NULL"},
		{"1 / 0", "error: division by zero: 1 / 0; use try_divide"},
		{"1 // 0", "error: division by zero"},
		{"1 % 0", "error: division by zero"},
		{"1e0 / 0", "error: division by zero"},
		{"1.5 / 0", "error: division by zero: 1.5 / 0"},
		{"try_divide(1.5, 0)", "NULL"},
		{"7 / 2", "3.5"},
		{"-7 // 2", "-3"},
		{"-7 % 3", "-1"},
		{"7 % -3", "1"},
		{"1 + NULL", "NULL"},
		{"NULL + NULL", "NULL"},
		{"1.5 + 2.25", "3.75"},
		{"1.5 * 2.25", "3.375"},
		{"1.5 - 2", "-0.5"},
		{"1.00 / 3.0", "0.333333"},
		{"10 / 4.0", "2.500000"},
		{"-5.5 % 2", "-1.5"},
		{"7.5 // 2.0", "3"},
		{"99999999999999999999999999999999999999 + 1.0", "error: overflows DECIMAL"},
		{"99999999999999999999999999999999999999 * 10", "error: overflows DECIMAL"},
		{"12345678901234567890123456789012345678 + 1", "12345678901234567890123456789012345679"},
		{"CAST('0.00000000000000000001' AS DECIMAL(38,20)) * CAST('0.5' AS DECIMAL(38,20))", "0.000000"},
		{"1.5 + 1e0", "2.5"},
		{"0.1e0 + 0.2e0", "0.30000000000000004"},
		{"abs(-9223372036854775807)", "9223372036854775807"},
		{"abs(-1.50)", "1.50"},
		{"round(2.5)", "3"}, {"round(-2.5)", "-3"}, {"round(1.005, 2)", "1.010"}, {"round(1.005e0, 2)", "1.01"}, {"round(2.675e0, 2)", "2.68"},
		{"round(1234, -2)", "1200"}, {"round(1250, -2)", "1300"}, {"round(-1250, -2)", "-1300"}, {"round(99.95, 1)", "100.00"}, {"round(1.5, 5)", "1.5"},
		{"ceil(-1.5)", "-1"}, {"floor(-1.5)", "-2"}, {"ceil(1.01)", "2"}, {"truncate(-1.99)", "-1"}, {"floor(1.29e0, 1)", "1.2"},
		{"round(2147483647, -1)", "error: overflows INTEGER"},
		{"ln(0)", "NULL"}, {"log(10, 100)", "2"}, {"sqrt(-1)", "NaN"},
		{"-1 >> 70", "-1"},
		{"xor(true, false)", "true"}, {"xor(true, NULL)", "NULL"},
		{"pow(2, 0.5e0)", "1.4142135623730951"},
	}.run(t, "")
}

func TestComparison(t *testing.T) {
	cases{
		{"1 = 1.0", "true"}, {"1 < 1e0", "false"}, {"'a' = 'a '", "false"},
		{"CAST('NaN' AS DOUBLE) = CAST('NaN' AS DOUBLE)", "true"},
		{"CAST('NaN' AS DOUBLE) > CAST('Infinity' AS DOUBLE)", "true"},
		{"-0e0 = 0e0", "true"}, {"NULL = NULL", "NULL"}, {"NULL <=> NULL", "true"}, {"1 <=> NULL", "false"},
		{"DATE '2024-01-01' = TIMESTAMP '2024-01-01'", "true"},
		{"array(1, NULL) = array(1, NULL)", "true"}, {"array(1) < array(1, 2)", "true"}, {"struct(1, 'a') = struct(1, 'b')", "false"},
		{"INTERVAL '1 month' = INTERVAL '30 days'", "true"},
		{"1 = 'a'", "error: cannot cast \"a\" to BIGINT"}, {"1 = '1'", "true"}, {"1 = DATE '2024-01-01'", "error: cannot be compared"},
		{"coalesce(NULL, NULL)", "NULL"}, {"coalesce(NULL, 1, 2.5)", "1.0"}, {"nullif(1, 2)", "1"},
		{"greatest(1, NULL, 3)", "3"}, {"least(NULL, NULL)", "NULL"}, {"greatest('a', 'b')", "b"},
		{"if(NULL, 1, 2)", "2"}, {"nvl2(1, 'a', 'b')", "a"},
	}.run(t, "")
}

func TestText(t *testing.T) {
	cases{
		{"upper('straße é')", "STRASSE É"}, {"lower('ÀÉ')", "àé"},
		{"substring('tidemill', 0, 4)", "tide"}, {"substring('tidemill', -4)", "mill"}, {"substring('tidemill', -10, 4)", "ti"}, {"substring('日本語', 2, 1)", "本"},
		{"substring('abc', 2, -1)", `""`}, {"substring('abc', 9)", `""`}, {"substring('abc', 1, 9223372036854775807)", "abc"},
		{"left('日本語', 2)", "日本"}, {"right('日本語', -1)", "本語"}, {"trim('xax', 'x')", "a"}, {"ltrim('  a')", "a"},
		{"lpad('abc', 2)", "ab"}, {"rpad('日', 3, '本語')", "日本語"}, {"lpad('x', 5, 'ab')", "ababx"},
		{"replace('aaa', 'a', 'bb')", "bbbbbb"}, {"replace('abc', '', 'x')", "abc"},
		{"repeat('x', 1000000000000)", "error: repeat would make a text of 1000000000000 bytes"},
		{"split_part('a,b,c', ',', -1)", "c"}, {"split_part('a,b', ',', 5)", `""`}, {"substring_index('a.b.c', '.', -2)", "b.c"},
		{"'a' || NULL", "NULL"}, {"'a' || 1 || 2.5", "a12.5"}, {"concat('a', DATE '2024-01-01')", "a2024-01-01"},
		{"concat_ws(',', NULL, 'x', 1)", "x,1"}, {"concat_ws(NULL, 'x')", "NULL"}, {"array(1) || array(2, NULL)", "[1,2,null]"},
		{"position('é' , 'caféé')", "4"}, {"instr('abc', 'z')", "0"}, {"instr('abc', '')", "1"},
		{"'tidemill' LIKE '%dem%'", "true"}, {"'tidemill' LIKE 't_de%l'", "true"}, {"'a%b' LIKE 'a%%b'", "true"}, {"like('10%', '10!%', '!')", "true"}, {"like('10x', '10!%', '!')", "false"},
		{"'aXb' ILIKE 'A_B'", "true"}, {"'' LIKE '%'", "true"}, {"'ab' LIKE 'ab_'", "false"}, {`'a\b' LIKE 'a\b'`, "true"}, {"'aba' LIKE 'ab%ba'", "false"},
		{"like('a', 'a!', '!')", "error: ends with its escape"}, {"'x' LIKE NULL", "NULL"}, {"'日本' LIKE '日_'", "true"}, {"'ab' SIMILAR TO 'a(b|c)'", "true"},
		{"regexp_replace('abc', '(b)', '[$1]')", "\"a[b]c\""[1:6]}, {"regexp_replace('Abc', 'a', 'x', 'i')", "xbc"}, {"regexp_extract('foo-12', '([a-z]+)-([0-9]+)', 2)", "12"},
		{"regexp_matches('abc', '(')", "error: regular expression"}, {"regexp_extract('a', 'a', 3)", "error: group 3"},
		{"translate('hello', 'el', 'ip')", "hippo"}, {"initcap('hELLO wORLD')", "Hello World"}, {"chr(955)", "λ"}, {"chr(-1)", "error: no such character"},
		{"hex(255)", "FF"}, {"hex(unhex('0aFF'))", "0AFF"}, {"unhex('zz')", "error: \"zz\" is not hexadecimal"}, {"octet_length('é')", "2"}, {"char_length('e')", "1"},
		{"length(NULL)", "NULL"}, {"starts_with('abc', 'ab')", "true"}, {"contains('abc', 'd')", "false"}, {"ends_with('abc', '')", "true"},
		{"reverse('aé日')", "日éa"}, {"ascii('')", "0"},
	}.run(t, "")
}

func TestTime(t *testing.T) {
	cases{
		{"TIMESTAMP '2024-01-31 00:00:00' + INTERVAL '1 month'", "2024-02-29 00:00:00"},
		{"TIMESTAMP '2024-02-29 12:00:00' - INTERVAL '1 year'", "2023-02-28 12:00:00"},
		{"INTERVAL '36 hours' + TIMESTAMP '1969-12-31 00:00:00'", "1970-01-01 12:00:00"},
		{"DATE '2024-02-28' + 2", "2024-03-01"}, {"DATE '2024-03-01' - 1", "2024-02-29"}, {"DATE '2024-03-01' + INTERVAL '1 hour'", "2024-03-01 01:00:00"},
		{"TIMESTAMP '2024-01-02 00:00:00' - TIMESTAMP '2024-01-01 12:00:00'", "12:00:00"},
		{"TIMESTAMP '2024-01-01 12:00:00' - TIMESTAMP '2024-01-03 00:00:00'", "-1 day -12:00:00"},
		{"DATE '2024-03-01' - DATE '2024-02-01'", "29 days"},
		{"INTERVAL '90 seconds' * 2", "00:03:00"}, {"INTERVAL '1 month' * 0.5e0", "15 days"}, {"INTERVAL '1 day' / 2", "12:00:00"}, {"-(INTERVAL '1 day')", "-1 day"},
		{"INTERVAL '1 day' / 0", "error: division by zero"}, {"INTERVAL '3 days' / 3", "1 day"}, {"INTERVAL '1 year' / 3", "4 months"}, {"INTERVAL '-7 months' / 2", "-3 months -15 days"}, {"INTERVAL '1 day' * 1e-10", "00:00:00.000009"}, {"INTERVAL '1 microsecond' * 1e10", "02:46:40"}, {"INTERVAL '1 day' * 1e300", "error: overflows INTERVAL"},
		{"sequence(DATE '2024-01-31', DATE '2024-03-31', INTERVAL '1 month')", "[\"2024-01-31\",\"2024-02-29\",\"2024-03-31\"]"}, {"sequence(DATE '2024-01-02', DATE '2024-01-01', INTERVAL '1 day')", "error: never arrives"},
		{"'2024-01-02' - INTERVAL '1 day'", "2024-01-01 00:00:00"}, {"'1' + 1", "2"}, {"'1.5' + 1", "error: cannot cast"}, {"'1.5' * 2e0", "3"}, {"'1' + '1'", "error: does not exist"}, {"DATE '2024-01-02' - '2024-01-01'", "1 day"}, {"upper(12)", "12"}, {"repeat('a', '2')", "aa"}, {"repeat('a', 2.0)", "error: does not exist"}, {"pmod(2.7e0, 2)", "0.7000000000000002"}, {"subscript(array(1, 2), 1.7)", "error: does not exist"}, {"sqrt('4')", "2"}, {"last_day(TIMESTAMP '2024-02-03 10:00:00')", "2024-02-29"}, {"INTERVAL '2000000000 days' * 2", "error: overflows INTERVAL"},
		{"TIMESTAMP '2024-01-01 00:00:00' + INTERVAL '1 day' * 200000000", "error: overflows TIMESTAMP"},
		{"date_trunc('week', TIMESTAMP '2024-01-03 10:00:00')", "2024-01-01 00:00:00"}, {"date_trunc('week', TIMESTAMP '1969-12-31 10:00:00')", "1969-12-29 00:00:00"},
		{"date_trunc('hour', TIMESTAMP '1969-12-31 23:59:59.5')", "1969-12-31 23:00:00"}, {"date_trunc('quarter', TIMESTAMP '2024-08-15 00:00:00')", "2024-07-01 00:00:00"},
		{"date_trunc('century', TIMESTAMP '2000-08-15 00:00:00')", "1901-01-01 00:00:00"}, {"date_trunc('fortnight', now())", "error: is no part of a time"},
		{"date_part('epoch', TIMESTAMP '1969-12-31 23:59:59.5')", "-1"}, {"date_part('week', DATE '2021-01-03')", "53"}, {"isoyear(DATE '2021-01-03')", "2020"},
		{"dayofweek(DATE '2024-05-04')", "7"}, {"date_part('microseconds', TIMESTAMP '2024-01-01 00:00:01.000002')", "1000002"}, {"year(DATE '1969-12-31')", "1969"},
		{"hour(TIME '10:11:12')", "10"}, {"date_part('day', INTERVAL '3 days 4 hours')", "3"}, {"quarter(DATE '1969-12-31')", "4"},
		{"to_timestamp(-0.5)", "1969-12-31 23:59:59.500000"}, {"to_timestamp(1700000000)", "2023-11-14 22:13:20"}, {"to_timestamp('2024-01-01T00:00:00+02:00')", "2023-12-31 22:00:00"},
		{"unix_timestamp(TIMESTAMP '1969-12-31 23:59:59.5')", "-1"}, {"epoch_ms(-1)", "1969-12-31 23:59:59.999000"}, {"epoch_ms(9223372036854775807)", "error: overflows TIMESTAMP"},
		{"datediff(DATE '2024-01-01', DATE '2024-03-01')", "-60"}, {"datediff('month', TIMESTAMP '2024-01-31', TIMESTAMP '2024-02-29')", "0"}, {"datediff('hour', TIMESTAMP '2024-01-01 00:30:00', TIMESTAMP '2024-01-01 02:00:00')", "1"},
		{"datediff('year', TIMESTAMP '2024-05-01', TIMESTAMP '2020-06-01')", "-3"}, {"date_add('month', 1, TIMESTAMP '2024-01-31')", "2024-02-29 00:00:00"},
		{"make_date(2023, 2, 29)", "error: there is no date"}, {"make_timestamp(2024, 1, 1, 24, 0, 0)", "error: no time of day"},
		{"strftime(TIMESTAMP '2024-05-06 17:08:09.123456', '%y %b %e')", "error: %e is unknown"}, {"date_format(TIMESTAMP '2024-05-06 17:08:09.123456', 'yyyy-MM-dd''T''hh:mm a SSS')", "2024-05-06T05:08 PM 123"},
		{"strptime('20240506', '%Y%m%d')", "2024-05-06 00:00:00"}, {"to_timestamp('06/May/2024:10:11:12 +0200', 'dd/MMM/yyyy:HH:mm:ss Z')", "2024-05-06 08:11:12"}, {"strptime('2024-13-01', '%Y-%m-%d')", "error: is no TIMESTAMP of the form"},
		{"to_date('2024-02-30')", "error: cannot cast"}, {"to_date(TIMESTAMP '1969-12-31 23:00:00')", "1969-12-31"}, {"last_day(DATE '2023-02-01')", "2023-02-28"},
		{"months_between(TIMESTAMP '2024-03-15', TIMESTAMP '2024-01-01')", "2.4516129"}, {"add_months(DATE '2024-03-31', -1)", "2024-02-29"},
		{"time_bucket(INTERVAL '1 month', TIMESTAMP '1969-12-31 00:00:00')", "1969-12-01 00:00:00"}, {"time_bucket(INTERVAL '7 days', TIMESTAMP '2024-01-03', TIMESTAMP '2024-01-01')", "2024-01-01 00:00:00"},
		{"__window_start(TIMESTAMP '1960-05-22 00:00:30', 10000000, 5000000, 0)", "1960-05-22 00:00:25"}, {"__window_start(TIMESTAMP '1970-01-01 00:00:12', 5000000, 0, 1)", "1970-01-01 00:00:05"},
		{"__window_start(TIMESTAMP '1970-01-01 00:00:12', 5000000, -1000000, 0)", "1970-01-01 00:00:09"}, {"__window_start(now(), 0, 0, 0)", "error: more than nothing"},
		{"current_date()", "2023-11-14"}, {"current_timestamp()", "2023-11-14 22:13:20"}, {"from_utc_timestamp(TIMESTAMP '2024-01-01', 'Mars')", "error: time zone"},
	}.run(t, "")
}

func TestZone(t *testing.T) {
	cases{
		{"CAST('2024-07-01 00:00:00' AS TIMESTAMP) = to_timestamp('2024-06-30T22:00:00Z')", "true"},
		{"CAST(to_timestamp('2024-06-30T22:30:00Z') AS DATE)", "2024-07-01"},
		{"date_trunc('day', to_timestamp('2024-06-30T22:30:00Z')) = to_timestamp('2024-06-30T22:00:00Z')", "true"},
		{"hour(to_timestamp('2024-06-30T22:30:00Z'))", "0"},
		{"CAST(DATE '2024-07-01' AS TIMESTAMP) = to_timestamp('2024-06-30T22:00:00Z')", "true"},
		{"CAST('2024-03-31 02:30:00' AS TIMESTAMP) = to_timestamp('2024-03-31T01:30:00Z')", "true"}, // does not exist
		{"CAST('2024-10-27 02:30:00' AS TIMESTAMP) = to_timestamp('2024-10-27T00:30:00Z')", "true"}, // exists twice
		{"to_timestamp('2024-03-30T12:00:00Z') + INTERVAL '1 day' = to_timestamp('2024-03-31T11:00:00Z')", "true"},
		{"to_timestamp('2024-03-30T12:00:00Z') + INTERVAL '24 hours' = to_timestamp('2024-03-31T12:00:00Z')", "true"},
		{"CAST(to_timestamp('2024-06-30T22:30:00.5Z') AS VARCHAR)", "2024-07-01 00:30:00.5"},
		{"strftime(to_timestamp('2024-06-30T22:30:00Z'), '%H:%M %z %Z')", "00:30 +02:00 CEST"},
	}.run(t, "Europe/Berlin")
}

func TestNested(t *testing.T) {
	cases{
		{"subscript(array(1, 2), 2)", "error: there is no element 2"}, {"subscript(array(1, 2), -1)", "error: no element -1"}, {"subscript(array(1, NULL), 1)", "NULL"}, {"subscript(NULL, 1)", "NULL"},
		{"element_at(array(1, 2), 0)", "error: no element 0"}, {"element_at(array(1, 2), 3)", "error: try_element_at"}, {"element_at(map('a', 1), 'b')", "NULL"}, {"subscript(map('a', 1, 'b', 2), 'b')", "2"},
		{"map('a', 1, 'a', 2)", "error: there twice"}, {"map(NULL, 1)", "error: a key of a map is null"}, {"map(1)", "error: map does not take 1 argument"}, {"map('a', 1, 'b', 2.5)", `{"a":1.0,"b":2.5}`},
		{"array_contains(array(1, NULL), 2)", "NULL"}, {"array_contains(array(1, NULL), 1)", "true"}, {"array_contains(array(1, 2), 2.0)", "true"}, {"array_contains(array(1), 'a')", "error: cast one of them"},
		{"array(1, 'a')", "error: cannot cast \"a\" to BIGINT"}, {"array(1, '2')", "[1,2]"}, {"array(1, DATE '2024-01-01')", "error: array: INTEGER and DATE have no common type; cast one of them"}, {"array(array(1), array(2.5))", "[[1.0],[2.5]]"}, {"cardinality(map('a', 1))", "1"}, {"array()", "[]"}, {"cardinality(NULL)", "NULL"},
		{"sort_array(array(2, NULL, 1))", "[null,1,2]"}, {"sort_array(array(2, NULL, 1), false)", "[2,1,null]"}, {"array_distinct(array('a', NULL, 'a', NULL))", `["a",null]`},
		{"slice(array(1, 2, 3), -2, 5)", "[2,3]"}, {"array_join(array(1, NULL, 3), ',')", "1,3"}, {"split('a1b22c', '[0-9]+')", `["a","b","c"]`},
		{"map_values(map('a', 1, 'b', NULL))", "[1,null]"}, {"array_max(array(1.5, 2.5))", "2.5"}, {"to_json(struct(1, 'a\"b'))", `"{\"col1\":1,\"col2\":\"a\\\"b\"}"`},
		{"get_json_object('{\"a\":{\"b\":[1,{\"c\":\"x\"}]}}', '$.a.b[1].c')", "x"}, {"get_json_object('{\"a\":null}', '$.a')", "NULL"}, {"get_json_object('nonsense', '$.a')", "NULL"}, {"get_json_object('{}', 'a')", "error: is no path"},
		{"get_json_object('[1, 2]', '$[0]')", "1"}, {"get_json_object('{\"a\": [1, 2]}', '$.a')", "\"[1,2]\""}, {"json_valid('{')", "false"},
		{"array_sort(array(2, NULL, 1))", "[1,2,null]"}, {"list_sort(array(2, NULL, 1))", "[null,1,2]"}, {"json_valid('{\"a\":1,\"a\":2}')", "true"}, {"get_json_object('{\"a\":{\"b\":1},\"a\":2}', '$.a')", "2"},
		{"get_json_object('{\"a.b\":1}', '$.\"a.b\"')", "1"}, {"get_json_object('{\"a\":{\"b\":1},\"a\":2}', '$.a.b')", "NULL"}, {"get_json_object('{\"a\":1,', '$.a')", "NULL"}, {"get_json_object('{}', '$.*')", "NULL"}, {"get_json_object('{}', '$[x]')", "error: is no path"}, {"get_json_object('[1,2]', '$[*]')", "\"[1,2]\""}, {"get_json_object('[[1],[2,3]]', '$[*][-1]')", "\"[1,3]\""}, {"json_extract('{\"a\":1,\"a\":2}', '$.*')", "\"[1,2]\""},
		{"array_sum(array(9007199254740993, 1))", "9007199254740994"}, {"array_sum(array(9223372036854775807, 1))", "error: array_sum overflows BIGINT"}, {"array_sum(array(1.5, NULL))", "1.5"}, {"array_slice(array(1,2,3), -2, -1)", "[2,3]"}, {"array_slice(array(1,2), 3, 1)", "[]"},
		{"json_object('a', NULL, 'b', 'x')", `"{\"a\":null,\"b\":\"x\"}"`}, {"json_object(CAST(NULL AS VARCHAR), 1)", "error: a name of a JSON object is null"}, {"map_from_entries(array(struct('a', 1), struct('a', 2)))", "error: is there twice"}, {"array_has_all(array(1), array(1, NULL))", "true"}, {"array_has_all(array(-0e0), array(0e0))", "true"},
		{"json_extract('{\"a\":1,\"a\": {\"x\":1, \"x\":3}}', '$.a')", "\"{\\\"x\\\":1,\\\"x\\\":3}\""}, {"json_object_keys('{\"a\":1,\"a\":2}')", `["a"]`},
	}.run(t, "")
}

// TestInactive checks that a failing row that does not count is no error.
func TestInactive(t *testing.T) {
	t.Parallel()
	mem := columnartest.Mem(t)
	reg := function.Builtins()
	b := columnartest.Batch(t, mem, `
x:bigint              y:bigint  s:varchar   l:array<bigint>  h:varchar  at:timestamp
1                     0         x           []               zz         NULL
9223372036854775807   1         2024-01-01  [1,2]            ff         2024-01-01
`)
	active := columnar.NewBitmap(2)
	run := func(name string, cols ...int) (columnar.Datum, error) {
		var types []arrow.DataType
		var args []columnar.Datum
		for _, c := range cols {
			types = append(types, b.Column(c).DataType())
			args = append(args, columnar.ColumnDatum(b.Column(c)))
		}
		f, _ := reg.Scalar(name)
		sig, err := f.Resolve(types)
		if err != nil {
			t.Fatal(err)
		}
		k, err := sig.Overload.Bind(sig.Args, make([]arrow.Array, len(args)))
		if err != nil {
			t.Fatal(err)
		}
		return k(&function.Env{Mem: mem}, args, 2, active)
	}
	for _, c := range []struct {
		name string
		cols []int
		bad  int
	}{
		{"/", []int{0, 1}, 0}, {"//", []int{0, 1}, 0}, {"%", []int{0, 1}, 0}, {"+", []int{0, 1}, 1}, {"to_date", []int{2}, 0}, {"subscript", []int{3, 1}, 0}, {"unhex", []int{4}, 0},
		{"epoch_ms", []int{0}, 1}, {"make_date", []int{1, 1, 1}, 0}, {"-", []int{0}, -1}, {"date_part", []int{2, 5}, 1},
	} {
		for row := range 2 {
			active.Reset(2)
			active.Set(row)
			d, err := run(c.name, c.cols...)
			if (err != nil) != (row == c.bad) {
				t.Errorf("%s, row %d counts: %v", c.name, row, err)
			}
			if err == nil {
				d.Release()
			}
		}
		active.Reset(2)
		d, err := run(c.name, c.cols...)
		if err != nil {
			t.Errorf("%s, no row counts: %v", c.name, err)
			continue
		}
		d.Release()
	}
}

// TestRandomAgain checks that random numbers repeat for a batch and differ by row.
func TestRandomAgain(t *testing.T) {
	t.Parallel()
	mem := columnartest.Mem(t)
	f, _ := function.Builtins().Scalar("random")
	sig, _ := f.Resolve(nil)
	k, _ := sig.Overload.Bind(nil, nil)
	draw := func(seed uint64) []any {
		d, err := k(&function.Env{Mem: mem, Seed: seed}, nil, 3, nil)
		if err != nil {
			t.Fatal(err)
		}
		defer d.Release()
		return []any{columnar.Value(d.Array(), 0), columnar.Value(d.Array(), 1), columnar.Value(d.Array(), 2)}
	}
	a, b, c := draw(1), draw(1), draw(2)
	if fmt.Sprint(a) != fmt.Sprint(b) || fmt.Sprint(a) == fmt.Sprint(c) || a[0] == a[1] {
		t.Errorf("%v %v %v", a, b, c)
	}
}
