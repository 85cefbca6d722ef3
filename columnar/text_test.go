package columnar_test

import (
	"math"
	"math/big"
	"math/rand/v2"
	"strconv"
	"strings"
	"testing"
	"time"
	_ "time/tzdata"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/decimal128"

	"github.com/tidemill/tidemill/columnar"
	"github.com/tidemill/tidemill/columnar/columnartest"
)

func TestCalendar(t *testing.T) {
	t.Parallel()
	for days := int64(-800_000); days < 800_000; days += 13 {
		want := time.Unix(days*86400, 0).UTC()
		y, m, d := columnar.CivilFromDays(days)
		if y != int64(want.Year()) || m != int(want.Month()) || d != want.Day() {
			t.Fatalf("day %d is %d-%d-%d, want %v", days, y, m, d, want)
		}
		if back := columnar.DaysFromCivil(y, m, d); back != days {
			t.Fatalf("%d-%d-%d is day %d, want %d", y, m, d, back, days)
		}
	}
	if columnar.DaysFromCivil(2023, 14, 1) != columnar.DaysFromCivil(2024, 2, 1) || columnar.DaysFromCivil(2024, 0, 1) != columnar.DaysFromCivil(2023, 12, 1) {
		t.Error("months do not carry")
	}
	for _, c := range [][4]int64{{7, 3, 2, 1}, {-7, 3, -3, 2}, {-6, 3, -2, 0}, {math.MinInt64, 10, -922337203685477581, 2}} {
		if q, m := columnar.FloorDiv(c[0], c[1]), columnar.FloorMod(c[0], c[1]); q != c[2] || m != c[3] {
			t.Errorf("%d by %d is %d rest %d", c[0], c[1], q, m)
		}
	}
}

func TestLocal(t *testing.T) {
	t.Parallel()
	for _, name := range []string{"Europe/Berlin", "America/New_York", "Australia/Lord_Howe", "Asia/Kathmandu"} {
		loc, err := time.LoadLocation(name)
		if err != nil {
			t.Fatal(err)
		}
		r := rand.New(rand.NewPCG(1, 2))
		for range 3000 {
			at := r.Int64N(80*365*columnar.MicrosPerDay) - 40*365*columnar.MicrosPerDay
			at -= at % (10 * columnar.MicrosPerMinute)
			day, us := columnar.LocalDay(at, loc)
			back := columnar.FromLocal(day*columnar.MicrosPerDay+us, loc)
			// A clock put back shows the same twice; the earlier instant is taken.
			if backDay, backUs := columnar.LocalDay(back, loc); back > at || backDay != day || backUs != us {
				t.Fatalf("%s: %d shows day %d and %d, which is read as %d", name, at, day, us, back)
			}
		}
	}
}

// What is printed is read again, at all distances from 1970 and at both ends of the range.
func TestFarYearsAreReadBack(t *testing.T) {
	t.Parallel()
	r := rand.New(rand.NewPCG(3, 4))
	days := []int32{math.MinInt32, math.MinInt32 + 1, math.MaxInt32 - 1, math.MaxInt32}
	instants := []int64{math.MinInt64, math.MinInt64 + 1, math.MaxInt64 - 1, math.MaxInt64}
	for range 3000 {
		days = append(days, int32(r.Uint32())>>r.IntN(31))
		instants = append(instants, int64(r.Uint64())>>r.IntN(63))
		instants = append(instants, math.MinInt64+r.Int64N(3*columnar.MicrosPerDay), math.MaxInt64-r.Int64N(3*columnar.MicrosPerDay))
	}
	for _, day := range days {
		text := columnar.AppendDate(nil, int64(day))
		for _, text := range []string{string(text), string(text) + " 12:30"} {
			if back, ok := columnar.ParseDate(text); back != day || !ok {
				t.Fatalf("%d is written %s, which is read as %d, %v", day, text, back, ok)
			}
		}
		if back, ok := columnar.ParseDay(text); back != day || !ok {
			t.Fatalf("%d is written %s, which is read as %d, %v", day, text, back, ok)
		}
	}
	for _, name := range []string{"UTC", "Asia/Kathmandu", "America/New_York", "Pacific/Kiritimati"} {
		loc, err := time.LoadLocation(name)
		if err != nil {
			t.Fatal(err)
		}
		for _, us := range instants {
			text := columnar.AppendStoredTimestamp(nil, us, loc)
			if back, ok := columnar.ParseTimestamp(text, loc); back != us || !ok {
				t.Fatalf("%s: %d is written %s, which is read as %d, %v", name, us, text, back, ok)
			}
		}
	}
	for _, text := range []string{"+5881580-07-12", "-5877641-06-22", "9999999-01-01"} {
		if back, ok := columnar.ParseDate(text); ok {
			t.Errorf("%s is read as day %d", text, back)
		}
	}
	for _, text := range []string{"+294247-01-10 04:00:54.775808", "-290308-12-21 19:59:05.224191", "294247-01-10 04:00:54.775807-00:01", "+5881580-07-11"} {
		if back, ok := columnar.ParseTimestamp(text, nil); ok {
			t.Errorf("%s is read as %d", text, back)
		}
	}
}

func TestParse(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		in   string
		want int64
		ok   bool
	}{
		{"0", 0, true}, {"-0", 0, true}, {" 42\t", 42, true}, {"", 0, false}, {"-", 0, false}, {"+7", 7, true}, {"1 2", 0, false}, {"000000000000000000000000000012", 12, true},
		{"9223372036854775807", math.MaxInt64, true}, {"9223372036854775808", 0, false}, {"-9223372036854775808", math.MinInt64, true}, {"-9223372036854775809", 0, false}, {"99999999999999999999", 0, false}, {"1e3", 0, false}, {"١", 0, false},
	} {
		if got, ok := columnar.ParseInt(c.in); ok != c.ok || ok && got != c.want {
			t.Errorf("ParseInt(%q) = %d, %v", c.in, got, ok)
		}
		if got, ok := columnar.ParseInt([]byte(c.in)); ok != c.ok || ok && got != c.want {
			t.Errorf("ParseInt of bytes %q = %d, %v", c.in, got, ok)
		}
	}
	for in, want := range map[string]string{
		"2024-01-01": "2024-01-01 00:00:00", "2024-1-2 3:4": "2024-01-02 03:04:00", "2024-01-01T10:00:00Z": "2024-01-01 10:00:00", "1969-12-31 23:59:59.999999": "1969-12-31 23:59:59.999999",
		"2024-01-01 10:00:00.5": "2024-01-01 10:00:00.500000", "2024-01-01 00:00:00+0530": "2023-12-31 18:30:00", "2024-01-01 00:00:00 UTC": "2024-01-01 00:00:00", "2024-01-01 00:00:00 UTC+1": "2023-12-31 23:00:00",
		"-0001-01-01": "-0001-01-01 00:00:00", "+12345-01-01": "+12345-01-01 00:00:00", "0000-02-29": "0000-02-29 00:00:00", "2024-07-01 12:00:00 Europe/Berlin": "2024-07-01 10:00:00",
	} {
		us, ok := columnar.ParseTimestamp(in, nil)
		if got := string(columnar.AppendTimestamp(nil, us, nil)); !ok || got != want {
			t.Errorf("ParseTimestamp(%q) = %s, %v, want %s", in, got, ok, want)
		}
	}
	for _, in := range []string{"", "2024", "2024-02-30", "2024-01-01T", "2024-01-01 24:00", "2024-01-01 10", "2024-01-01 10:00:00.", "2024-01-01 10:00:00 Nowhere", "2024-01-01 10:00:00+19:00", "2024-01-01 10:00:00 Local", "999999-01-01", "2024-13-01", "24-01-01", "2024-01-01Z"} {
		if us, ok := columnar.ParseTimestamp(in, nil); ok {
			t.Errorf("ParseTimestamp(%q) = %s", in, columnar.AppendTimestamp(nil, us, nil))
		}
	}
}

func TestInterval(t *testing.T) {
	t.Parallel()
	for in, want := range map[string]string{
		"10 seconds": "00:00:10", "1 day 2 hours": "1 day 02:00:00", "-1.5 s": "-00:00:01.5", "10seconds": "00:00:10", "1 year 2 mons": "1 year 2 months", "INTERVAL 3 Weeks": "21 days", "04:05:06.25": "04:05:06.25",
		"1 d, 2 h": "1 day 02:00:00", "0 s": "00:00:00", "1.5 months": "1 month 15 days", "0.5 days": "12:00:00", "-1 month 1 day": "-1 month 1 day", "100 hours": "100:00:00", "1 quarter": "3 months", "5 ms": "00:00:00.005", "1 us": "00:00:00.000001", "2 centuries": "200 years",
	} {
		v, err := columnar.ParseInterval(in)
		if got := string(columnar.AppendInterval(nil, v)); err != nil || got != want {
			t.Errorf("ParseInterval(%q) = %s, %v, want %s", in, got, err, want)
		}
		again, err := columnar.ParseInterval(want)
		if err != nil || again != v {
			t.Errorf("ParseInterval(%q) = %v, %v, want %v", want, again, err, v)
		}
	}
	for in, want := range map[string]string{"": "it is empty", "10": "unit is missing", "seconds": "number is missing", "1 fortnight": "is no unit", "1:99": "is no time", "9999999999 years": "cannot be held", "1 day x": "number is missing", "99999999999 hours": "cannot be held"} {
		if _, err := columnar.ParseInterval(in); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("ParseInterval(%q): %v, want %q", in, err, want)
		}
	}
}

func TestDecimalText(t *testing.T) {
	t.Parallel()
	r := rand.New(rand.NewPCG(5, 6))
	for range 3000 {
		scale := int32(r.IntN(39))
		v := decimal128.New(int64(r.Uint64()>>(2+r.IntN(62))), r.Uint64())
		if r.IntN(2) == 0 {
			v = v.Negate()
		}
		if !v.FitsInPrecision(38) {
			continue
		}
		got := string(columnar.AppendDecimal(nil, v, scale))
		if want := v.ToString(scale); got != want {
			t.Fatalf("%s, want %s", got, want)
		}
		back, ok := columnar.ParseDecimal(got, 38, scale)
		if !ok || back != v {
			t.Fatalf("%s read back as %s, %v", got, back.ToString(scale), ok)
		}
	}
	// Rounding against rationals.
	for range 2000 {
		digits, point, exponent := r.Int64N(1e18), r.IntN(18), r.IntN(40)-20
		s := strconv.FormatInt(digits, 10)
		s = strings.Repeat("0", max(point+1-len(s), 0)) + s
		s = s[:len(s)-point] + "." + s[len(s)-point:] + "e" + strconv.Itoa(exponent)
		exact, _ := new(big.Rat).SetString(s)
		scale := int32(r.IntN(12))
		scaled := exact.Mul(exact, new(big.Rat).SetInt(new(big.Int).Exp(big.NewInt(10), big.NewInt(int64(scale)), nil)))
		want := new(big.Int).Quo(new(big.Int).Add(new(big.Int).Lsh(scaled.Num(), 1), scaled.Denom()), new(big.Int).Lsh(scaled.Denom(), 1))
		got, ok := columnar.ParseDecimal(s, 38, scale)
		fits := len(want.String()) <= 38
		if ok != fits || ok && got.BigInt().Cmp(want) != 0 {
			t.Fatalf("%s with scale %d is %s, %v, want %s", s, scale, got.BigInt(), ok, want)
		}
	}
}

func TestFloatText(t *testing.T) {
	t.Parallel()
	for v, want := range map[float64]string{0: "0", 1: "1", -2.5: "-2.5", 1e20: "100000000000000000000", 1e21: "1e+21", 0.1: "0.1", 1e-6: "0.000001", 1e-7: "1e-07", math.Inf(1): "Infinity", math.MaxFloat64: "1.7976931348623157e+308"} {
		if got := string(columnar.AppendFloat(nil, v, 64)); got != want {
			t.Errorf("%v is written %s, want %s", v, got, want)
		}
	}
	if got := string(columnar.AppendFloat(nil, math.Copysign(0, -1), 64)); got != "-0" {
		t.Errorf("-0.0 is written %s", got)
	}
}

func TestAppendJSON(t *testing.T) {
	t.Parallel()
	mem := columnartest.Mem(t)
	b := columnartest.Batch(t, mem, `
s:varchar         ts:timestamp            b:binary  d:decimal(5,2)  f:double  i:interval  m:map<bigint, varchar>  l:array<date>             t:time
"a\"\\\n\x01é"    2024-01-01T00:00:00.5Z  \xFF      1.50            NaN       1 day       {"1":"x","2":null}      ["2024-01-01",null]       10:00:00
NULL              NULL                    NULL      NULL            NULL      NULL        NULL                    NULL                      NULL
`)
	want := []string{`"a\"\\\n\u0001é"`, `"2024-01-01T00:00:00.500000Z"`, `"/w=="`, `1.50`, `"NaN"`, `"1 day"`, `{"1":"x","2":null}`, `["2024-01-01",null]`, `"10:00:00"`}
	for c, w := range want {
		if got := string(columnar.AppendJSON(nil, b.Column(c), 0)); got != w {
			t.Errorf("%s: %s, want %s", b.ColumnName(c), got, w)
		}
		if got := string(columnar.AppendJSON(nil, b.Column(c), 1)); got != "null" {
			t.Errorf("%s: %s", b.ColumnName(c), got)
		}
		if got := string(columnar.AppendValue(nil, b.Column(c), 1, nil)); got != "" {
			t.Errorf("%s: null is written %q", b.ColumnName(c), got)
		}
	}
	if got := string(columnar.AppendJSONString(nil, "a\xffb")); got != "\"a\uFFFDb\"" {
		t.Errorf("broken text is written %s", got)
	}
	berlin, err := time.LoadLocation("Europe/Berlin")
	if err != nil {
		t.Fatal(err)
	}
	if got := string(columnar.AppendValue(nil, b.Column(1), 0, berlin)); got != "2024-01-01 01:00:00.500000" {
		t.Errorf("in Berlin it is %s", got)
	}
}

func TestText(t *testing.T) {
	t.Parallel()
	mem := columnartest.Mem(t)
	b := columnartest.Batch(t, mem, "k:varchar  n:bigint\nb  2\na  10\n\"\"  NULL\n\"NULL\"  1\n\"x  y\"  3")
	want := `k:varchar  n:bigint
""         NULL
"NULL"     1
"x  y"     3
a          10
b          2
`
	if got := columnar.Text(b.Schema(), []arrow.RecordBatch{b}, columnar.TextOptions{}); got != want {
		t.Errorf("got\n%s", got)
	}
	ordered := columnar.Text(b.Schema(), []arrow.RecordBatch{b}, columnar.TextOptions{Ordered: true, Untyped: true})
	if !strings.HasPrefix(ordered, "k       n\nb       2\n") {
		t.Errorf("got\n%s", ordered)
	}
}

func FuzzParse(f *testing.F) {
	for _, s := range []string{"", "0", "-9223372036854775808", "1e5", ".5", "2024-01-01", "2024-01-01T00:00:00.123+02:00", "1 day 02:00:00", "NaN", "true", "9e99999999999999999999", "+1.5E-3", "10:00", "1.5 months", "2024-01-01 00:00 Europe/Berlin"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		if v, ok := columnar.ParseInt(s); ok {
			if back, ok := columnar.ParseInt(strconv.FormatInt(v, 10)); !ok || back != v {
				t.Errorf("integer %q", s)
			}
		}
		if v, ok := columnar.ParseFloat(s, 64); ok {
			back, ok := columnar.ParseFloat(columnar.AppendFloat(nil, v, 64), 64)
			if !ok || back != v && !math.IsNaN(v) {
				t.Errorf("float %q", s)
			}
		}
		if v, ok := columnar.ParseDecimal(s, 38, 10); ok {
			if back, ok := columnar.ParseDecimal(columnar.AppendDecimal(nil, v, 10), 38, 10); !ok || back != v {
				t.Errorf("decimal %q", s)
			}
		}
		if v, ok := columnar.ParseDate(s); ok {
			if back, ok := columnar.ParseDate(columnar.AppendDate(nil, int64(v))); !ok || back != v {
				t.Errorf("date %q", s)
			}
		}
		if v, ok := columnar.ParseTimestamp(s, nil); ok {
			if back, ok := columnar.ParseTimestamp(columnar.AppendTimestamp(nil, v, nil), nil); !ok || back != v {
				t.Errorf("timestamp %q", s)
			}
		}
		if v, err := columnar.ParseInterval(s); err == nil {
			if back, err := columnar.ParseInterval(string(columnar.AppendInterval(nil, v))); err != nil || back != v {
				t.Errorf("interval %q: %v, %v", s, back, err)
			}
		}
		columnar.ParseBool(s)
		columnar.ParseTime(s)
	})
}
