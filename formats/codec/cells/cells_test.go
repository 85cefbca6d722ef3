package cells

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"

	"github.com/tidemill/tidemill/columnar"
	"github.com/tidemill/tidemill/columnar/columnartest"
)

// pack puts texts into a buffer, with the pads a Column asks for.
func pack(texts ...string) (buf []byte, list []Cell) {
	buf = make([]byte, Pad)
	for _, s := range texts {
		list = append(list, Plain(len(buf), len(buf)+len(s)))
		buf = append(buf, s...)
	}
	return append(buf, make([]byte, Pad)...), list
}

// read makes a column of texts; bad ones show as !, nulls as ∅.
func read(t testing.TB, typ string, rules *Rules, texts ...string) []string {
	t.Helper()
	buf, list := pack(texts...)
	return readCells(t, typ, rules, buf, list)
}

func readCells(t testing.TB, typ string, rules *Rules, buf []byte, list []Cell) []string {
	t.Helper()
	dt, err := columnartest.Type(typ)
	if err != nil {
		t.Fatal(err)
	}
	c, err := NewColumn(columnartest.Mem(t), dt, rules)
	if err != nil {
		t.Fatal(err)
	}
	bad := slices.Clone(c.Append(buf, list))
	a := c.Finish()
	defer a.Release()
	out := make([]string, a.Len())
	for i := range out {
		switch {
		case slices.Contains(bad, int32(i)):
			out[i] = "!"
			if a.IsValid(i) {
				t.Errorf("cell %d is bad but not null", i)
			}
		case a.IsNull(i):
			out[i] = "∅"
		default:
			out[i] = string(columnar.AppendValue(nil, a, i, nil))
		}
	}
	return out
}

func TestIntegers(t *testing.T) {
	t.Parallel()
	r := rand.New(rand.NewPCG(1, 1))
	texts := []string{"", "-", "+", "1-", "1 2", " 7 ", "007", "9223372036854775807", "9223372036854775808", "-9223372036854775808", "-9223372036854775809", "99999999999999999999", "1.0", "１", "1\x00", "/", ":", "12345678:", "a2345678"}
	for range 2000 {
		s := strconv.FormatInt(int64(r.Uint64())>>r.IntN(64), 10)
		if r.IntN(8) == 0 {
			b := []byte(s)
			b[r.IntN(len(b))] = byte(r.IntN(256))
			s = string(b)
		}
		texts = append(texts, s)
	}
	for typ, bits := range map[string]int{"tinyint": 8, "smallint": 16, "integer": 32, "bigint": 64} {
		got := read(t, typ, &Rules{}, texts...)
		for i, s := range texts {
			want := "!"
			if v, err := strconv.ParseInt(columnar.TrimBlanks(s), 10, bits); err == nil {
				want = strconv.FormatInt(v, 10)
			} else if columnar.TrimBlanks(s) == "" {
				want = "∅"
			}
			if got[i] != want {
				t.Errorf("%s %q: %s, want %s", typ, s, got[i], want)
			}
		}
	}
}

func TestFloats(t *testing.T) {
	t.Parallel()
	r := rand.New(rand.NewPCG(2, 2))
	texts := []string{".", "e5", "1e", "1e+", ".5", "5.", "-.5e-3", "1e400", "0x1p3", "1_0", "1e-400", "4.9e-324", "1.7976931348623157e308", "9007199254740993", "0.30000000000000004", "123456789012345678901234567890", "1e22", "1e23", "8.5e22"}
	for range 3000 {
		v := math.Float64frombits(r.Uint64())
		if r.IntN(2) == 0 {
			v = float64(r.IntN(1e9)) / float64(int64(1)<<r.IntN(30))
		}
		if !math.IsNaN(v) && !math.IsInf(v, 0) {
			texts = append(texts, strconv.FormatFloat(v, "efg"[r.IntN(3)], []int{-1, r.IntN(20)}[r.IntN(2)], 64))
		}
	}
	got, got32 := read(t, "double", &Rules{}, texts...), read(t, "real", &Rules{}, texts...)
	for i, s := range texts {
		for bits, got := range map[int]string{64: got[i], 32: got32[i]} {
			want := "!"
			if v, err := strconv.ParseFloat(s, bits); err == nil && s != "0x1p3" && s != "1_0" {
				want = string(columnar.AppendFloat(nil, v, bits))
			}
			if got != want {
				t.Errorf("%d bits %q: %s, want %s", bits, s, got, want)
			}
		}
	}
}

func TestValues(t *testing.T) {
	t.Parallel()
	berlin, err := time.LoadLocation("Europe/Berlin")
	if err != nil {
		t.Fatal(err)
	}
	json := &Rules{JSON: true}
	nul := strings.Repeat("\x00", 16)
	for _, c := range []struct {
		typ         string
		rules       *Rules
		texts, want []string
	}{
		{"boolean", &Rules{}, []string{"true", "FALSE", "t", "0", "", "2", "yes"}, []string{"true", "false", "true", "false", "∅", "!", "true"}},
		{"boolean", json, []string{"true", "false", "TRUE", "1"}, []string{"true", "false", "!", "!"}},
		{"decimal(5,2)", &Rules{}, []string{"1", "-0.5", "999.99", "1000", "999.995", "1.005", "1e2", "", "x", ".5", "-", "1..2", "12345678901234567890123"}, []string{"1.00", "-0.50", "999.99", "!", "!", "1.01", "100.00", "∅", "!", "0.50", "!", "!", "!"}},
		{"decimal(38,0)", &Rules{}, []string{"99999999999999999999999999999999999999", "999999999999999999", "100000000000000000000000000000000000000"}, []string{"99999999999999999999999999999999999999", "999999999999999999", "!"}},
		{"date", &Rules{}, []string{"2024-02-29", "2023-02-29", "1969-12-31", "0001-01-01", "2024-2-3", "x", "2024-13-01", "2024-02-29"}, []string{"2024-02-29", "!", "1969-12-31", "0001-01-01", "2024-02-03", "!", "!", "2024-02-29"}},
		{"date", &Rules{Location: berlin}, []string{"2024-01-02 00:00:00", "2024-01-02T00:00", " 2024-01-02 00:00:00.000 ", "2024-01-02T00:00:00Z", "2024-01-02 05:00:00", "2024-01-02 00:00:00.000001", "2024-01-02T00:00:00+01:00", "2024-01-02Z"},
			[]string{"2024-01-02", "2024-01-02", "2024-01-02", "2024-01-02", "!", "!", "!", "!"}},
		{"interval", &Rules{}, []string{"1 year 2 months -3 days -04:05:06.5", "00:00:00", "1 day", "", "soon", "5"}, []string{"1 year 2 months -3 days -04:05:06.5", "00:00:00", "1 day", "∅", "!", "!"}},
		{"interval", json, []string{"1", "true"}, []string{"!", "!"}},
		{"binary", &Rules{}, []string{`\xFF\x00`, `\xfg\`, `a\x5Cx`, ""}, []string{`\xFF\x00`, `\x5Cxfg\x5C`, `a\x5Cx`, ""}},
		{"timestamp", &Rules{}, []string{"2024-01-01T10:00:00Z", "2024-01-01 10:00:00.123456789", "2024-01-01T10:00:00+01:00", "2024-01-01", "2024-01-01 24:00:00", "2024-01-01T10:00", "2024-01-01 10:00:00.", ""},
			[]string{"2024-01-01 10:00:00", "2024-01-01 10:00:00.123456", "2024-01-01 09:00:00", "2024-01-01 00:00:00", "!", "2024-01-01 10:00:00", "!", "∅"}},
		{"date", &Rules{}, []string{nul[:10], "2024-02-29"}, []string{"∅", "2024-02-29"}},
		{"timestamp", &Rules{}, []string{nul[:10] + " " + nul[:8], "2024-01-01 " + nul[:8]}, []string{"∅", "2024-01-01 00:00:00"}},
		{"timestamp", &Rules{}, []string{"2024-01-01 10:00:00.5Z", "2024-01-01 10:00:00.25", "2024-01-01 10:00:01.000001Z", "2024-01-01 10:00:01.1234567Z", "2024-01-01 10:00:01.Z", "2024-01-01 10:00:01.1x", "2024-01-01 10:00:60"},
			[]string{"2024-01-01 10:00:00.500000", "2024-01-01 10:00:00.250000", "2024-01-01 10:00:01.000001", "2024-01-01 10:00:01.123456", "!", "!", "!"}},
		{"timestamp", &Rules{Location: berlin}, []string{"2024-07-01 10:00:00", "2024-07-01 10:00:00Z"}, []string{"2024-07-01 08:00:00", "2024-07-01 10:00:00"}},
		{"time", &Rules{}, []string{"01:02:03.5", "25:00", ""}, []string{"01:02:03.500000", "!", "∅"}},
		{"varchar", &Rules{}, []string{"", "abc", "a\xffb", "é", "long text that does not fit into sixteen bytes"}, []string{"", "abc", "!", "é", "long text that does not fit into sixteen bytes"}},
		{"varchar", &Rules{EmptyIsNull: true}, []string{"", " "}, []string{"∅", " "}},
	} {
		if got := read(t, c.typ, c.rules, c.texts...); !slices.Equal(got, c.want) {
			t.Errorf("%s:\n got %q\nwant %q", c.typ, got, c.want)
		}
	}
}

// TestTruncate drops rows, nulls among them, and goes on.
func TestTruncate(t *testing.T) {
	t.Parallel()
	for _, typ := range []string{"bigint", "varchar", "boolean"} {
		dt, _ := columnartest.Type(typ)
		c, err := NewColumn(columnartest.Mem(t), dt, &Rules{EmptyIsNull: true})
		if err != nil {
			t.Fatal(err)
		}
		buf, list := pack("1", "", "0", "", "")
		c.Append(buf, list)
		c.Truncate(2)
		c.Append(buf, list[:1])
		a := c.Finish()
		if a.Len() != 3 || a.NullN() != 1 || a.IsValid(1) || a.IsNull(2) {
			t.Errorf("%s: %v", typ, a)
		}
		a.Release()
	}
}

// TestGrowth appends in chunks until buffers have grown several times.
func TestGrowth(t *testing.T) {
	t.Parallel()
	c, err := NewColumn(columnartest.Mem(t), arrow.BinaryTypes.String, &Rules{EmptyIsNull: true})
	if err != nil {
		t.Fatal(err)
	}
	for round := range 3 {
		n := 0
		for n < 10_000 {
			var texts []string
			for range 777 {
				text := ""
				if n%10 != 3 {
					text = fmt.Sprintf("%0*d", n%40+1, n)
				}
				texts = append(texts, text)
				n++
			}
			buf, list := pack(texts...)
			c.Append(buf, list)
		}
		a := c.Finish().(*array.String)
		for i := range n {
			if want := fmt.Sprintf("%0*d", i%40+1, i); a.IsNull(i) != (i%10 == 3) || a.IsValid(i) && a.Value(i) != want {
				t.Fatalf("round %d: row %d is %q", round, i, a.Value(i))
			}
		}
		a.Release()
	}
}

func TestPatterns(t *testing.T) {
	t.Parallel()
	at := time.Date(2024, 3, 5, 17, 4, 9, 120_000_000, time.UTC)
	for _, c := range []struct{ pattern, text string }{
		{"yyyy-MM-dd HH:mm:ss.SSS", "2024-03-05 17:04:09.120"},
		{"yyyy-MM-dd'T'HH:mm:ss[.SSS][XXX]", "2024-03-05T17:04:09.120Z"},
		{"d/M/yy h:mm:ss.SSS a", "5/3/24 5:04:09.120 PM"},
		{"EEE, dd MMM yyyy HH:mm:ss.SSSSSS Z", "Tue, 05 Mar 2024 17:04:09.120000 +0000"},
		{"MMMM d, yyyy 'at' HH 'o''clock' mm:ss.SS", "March 5, 2024 at 17 o'clock 04:09.12"},
		{"%Y-%m-%dT%H:%M:%S.%f%z", "2024-03-05T17:04:09.120000+0000"},
		{"%d.%m.%y %I:%M:%S.%f %p", "05.03.24 05:04:09.120000 PM"},
		{"%A %B %e %Y %T.%f", "Tuesday March 5 2024 17:04:09.120000"},
		{"%s.%f", "1709658249.120000"},
	} {
		p, err := ParsePattern(c.pattern)
		if err != nil {
			t.Errorf("%s: %v", c.pattern, err)
			continue
		}
		if got, _ := p.Append(nil, at.UnixMicro(), nil); string(got) != c.text {
			t.Errorf("%s writes %q, want %q", c.pattern, got, c.text)
		}
		if us, ok := p.Parse([]byte(c.text), nil); !ok || us != at.UnixMicro() {
			t.Errorf("%s reads %q as %v", c.pattern, c.text, time.UnixMicro(us).UTC())
		}
	}
	for _, bad := range []string{"", "%Q", "%", "yyyy-MM-dd'T", "[yyyy", "yyyy]", "qq", "'only text'"} {
		if _, err := ParsePattern(bad); err == nil {
			t.Errorf("%q was taken", bad)
		}
	}
	p, _ := ParsePattern("yyyy-MM-dd'T'HH:mm:ss[.SSS][XXX]")
	for text, want := range map[string]string{"2024-03-05T17:04:09": "17:04:09", "2024-03-05T17:04:09+02:00": "15:04:09", "2024-03-05T17:04:09.5": "17:04:09.5"} {
		if us, ok := p.Parse([]byte(text), nil); !ok || time.UnixMicro(us).UTC().Format("15:04:05.999") != want {
			t.Errorf("%q: %v", text, time.UnixMicro(us).UTC())
		}
	}
	for _, text := range []string{"2024-02-30T00:00:00", "2024-03-05T24:00:00", "2024-03-05T17:04:09x", "", "2024-03-05"} {
		if _, ok := p.Parse([]byte(text), nil); ok {
			t.Errorf("%q was read", text)
		}
	}
}

// Years of any length and sign are read, as by strptime; a DATE goes further than an instant.
func TestPatternYearsRead(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		pattern, text, day, instant string
	}{
		{"%Y-%m-%d", "+33658-09-27", "+33658-09-27", "+33658-09-27 00:00:00"},
		{"yyyy-MM-dd", "33658-09-27", "+33658-09-27", "+33658-09-27 00:00:00"},
		{"yyyy-MM-dd", "-0043-03-15", "-0043-03-15", "-0043-03-15 00:00:00"},
		{"yyyy-MM-dd", "0000-03-15", "0000-03-15", "0000-03-15 00:00:00"},
		{"dd.MM.yyyy", "11.07.5881580", "+5881580-07-11", ""},
		{"dd.MM.yyyy", "12.07.5881580", "", ""},
		{"yyyyMMdd", "20240927", "2024-09-27", "2024-09-27 00:00:00"},
		{"yyyyMMdd", "+336580927", "+33658-09-27", "+33658-09-27 00:00:00"},
		{"yyyyMMdd", "336580927", "", ""},
		{"yyyyDDD", "+33658270", "+33658-09-27", "+33658-09-27 00:00:00"},
		{"yyyy-MM-dd HH:mm:ss.SSSSSS", "+294247-01-10 04:00:54.775807", "+294247-01-10", "+294247-01-10 04:00:54.775807"},
		{"yyyy-MM-dd HH:mm:ss.SSSSSS", "+294247-01-10 04:00:54.775808", "+294247-01-10", ""},
		{"yyyy-MM-dd HH:mmXXX", "294247-01-10 05:00+02:00", "+294247-01-10", "+294247-01-10 03:00:00"},
		{"yyyy[MMdd]", "20240927", "2024-09-27", "2024-09-27 00:00:00"},
		{"yyyy", "12345678", "", ""}, {"yyyy", "+", "", ""}, {"yyyy", "123", "", ""},
	} {
		p, err := ParsePattern(c.pattern)
		if err != nil {
			t.Fatal(err)
		}
		var day, instant string
		if v, ok := p.ParseDay([]byte(c.text)); ok {
			day = string(columnar.AppendDate(nil, int64(v)))
		}
		if v, ok := p.Parse([]byte(c.text), nil); ok {
			instant = string(columnar.AppendTimestamp(nil, v, nil))
		}
		if day != c.day || instant != c.instant {
			t.Errorf("%s reads %s as %q and %q, not %q and %q", c.pattern, c.text, day, instant, c.day, c.instant)
		}
	}
}

// A year that four digits do not hold is not written.
func TestPatternYears(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		pattern string
		year    int
		ok      bool
	}{
		{"yyyy", 1, true}, {"yyyy", 9999, true}, {"yyyy", 0, false}, {"yyyy", 10000, false}, {"%Y", -1, false},
		{"dd.MM.yy", -1, false}, {"HH:mm[ yyyy]", 10000, false}, {"%s", 10000, true}, {"HH:mm", -5, true},
	} {
		p, err := ParsePattern(c.pattern)
		if err != nil {
			t.Fatal(err)
		}
		at := time.Date(c.year, 6, 1, 0, 0, 0, 0, time.UTC)
		if text, err := p.Append(nil, at.UnixMicro(), nil); err == nil != c.ok {
			t.Errorf("%s writes the year %d as %q, %v", c.pattern, c.year, text, err)
		}
	}
}

func TestClassify(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]Kind{
		"1": Integer, "-9223372036854775808": Integer, "0": Integer, "9223372036854775808": Text, "01": Text, "-01": Text, "00.5": Text, "0.5": Number, "1e5": Number, ".5": Number,
		"true": Boolean, "False": Boolean, "t": Text, "2024-01-01": Date, "2024-1-1": Text, "2024-02-30": Text, "2024-01-01T00:00:00": Timestamp, "2024-01-01 00:00": Timestamp,
		"2024-01-01 10:00:00+02:00": Timestamp, "NaN": Special, "-Infinity": Special, "x": Text, "": Text, "12:30:00": Text, "1_000": Text, "0x10": Text, "-": Text, "+": Text,
	} {
		if got := (&Rules{}).Classify([]byte(text)); got != want {
			t.Errorf("%q: %d, want %d", text, got, want)
		}
	}
}

// FuzzColumn reads any cell as any type: without a panic, and as columnar parses it.
func FuzzColumn(f *testing.F) {
	for i, s := range []string{"1", "-12345678901234567", "1.5e3", "true", "2024-01-01T00:00:00.5Z", "2024-01-01", "a\"\"b", `\u00e9\n`, "\xff", "01:02:03", `{"a": [1, "b c"]}`} {
		f.Add(s, uint8(i), uint8(i))
	}
	types := []string{"tinyint", "bigint", "double", "real", "decimal(10,3)", "boolean", "date", "time", "timestamp", "varchar", "binary"}
	makers := []func(s, e int) Cell{Plain, Quoted, Escaped, Container}
	f.Fuzz(func(t *testing.T, text string, which, how uint8) {
		buf, list := pack("xx", text, "yy")
		s, e := list[1].Span()
		cell := makers[how%4](s, e)
		rules := &Rules{JSON: how/4%2 == 1, Quote: '"', Escape: '"', EmptyIsNull: how/8%2 == 1}
		typ := types[int(which)%len(types)]
		got := readCells(t, typ, rules, buf, []Cell{cell, cell})
		if got[0] != got[1] {
			t.Fatalf("%q as %s: %q and then %q", text, typ, got[0], got[1])
		}
		if typ == "bigint" && how%4 == 0 && !rules.JSON {
			v, ok := columnar.ParseInt(text)
			if ok != (got[0] != "!" && got[0] != "∅") || ok && got[0] != strconv.FormatInt(v, 10) {
				t.Fatalf("%q: %s, columnar says %d %v", text, got[0], v, ok)
			}
		}
		if typ == "timestamp" && how%4 == 0 && !rules.JSON {
			v, ok := columnar.ParseTimestamp(text, nil)
			if ok != (got[0] != "!" && got[0] != "∅") || ok && got[0] != string(columnar.AppendTimestamp(nil, v, nil)) {
				t.Fatalf("%q: %s, columnar says %d %v", text, got[0], v, ok)
			}
		}
	})
}

// A format whose letters stand where another part of a time is meant is refused, with the
// letters of that; one that only looks odd is not.
func TestMistakenPattern(t *testing.T) {
	t.Parallel()
	for pattern, want := range map[string]string{
		"dd.mm.yyyy":          "mm is the minute, which does not belong there; MM is the month",
		"yyyy-mm-dd HH:mm:ss": "mm is the minute",
		"yyyy-MM-dd HH:MM:ss": "MM is the month, which does not belong there; mm is the minute",
		"HH:MM":               "MM is the month",
		"HH:mm:ss mm/dd/yyyy": "mm is the minute",
		"[dd.]mm.yyyy":        "mm is the minute",
		"yyyy-MM-DD":          "DD is the day of the year, which does not belong there; dd is the day of the month",
		"%d.%M.%Y":            "%M is the minute, which does not belong there; %m is the month",
		"%Y-%m-%d %H:%m:%S":   "%m is the month",
		"YYYY-MM-dd":          "YYYY is not known (yyyy is the year)",
		"dd.MM.yyyy|d.m.yy":   "mm is the minute",
	} {
		if _, err := ParsePattern(pattern); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v", pattern, err)
		}
	}
	for _, pattern := range []string{"mm:ss", "HH:mm dd/MM/yyyy", "ddMMyyyyHHmm", "yyyyMMdd HHmmss", "yyyy-DDD", "%Y-%m-%d (%j)", "MM/dd HH", "dd HH MM yyyy", "hh:mm a, d MMM", "ss mm HH dd"} {
		if _, err := ParsePattern(pattern); err != nil {
			t.Errorf("%s: %v", pattern, err)
		}
	}
}
