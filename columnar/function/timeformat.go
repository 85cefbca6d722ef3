package function

import (
	"cmp"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/apache/arrow-go/v18/arrow"

	"github.com/tidemill/tidemill/columnar"
	"github.com/tidemill/tidemill/columnar/kernel"
)

// timePattern is a compiled form of dates and times.
type timePattern struct {
	source string
	items  []patternItem
	closed int // how many items stand before the end of the last section in brackets
}

// patternItem is a field, or a literal text if kind is 0. The kinds are the letters
// of strftime: Y year, y its last two digits, m month, b and B its name, d day, j day
// of the year, a and A day of the week, u its number (Monday is 1), w likewise (Sunday is
// 0), U, W and V the week and G the year of the last, which no text is read by, H hour,
// I hour of twelve, p AM or PM, M minute, S second, f fraction, z offset, Z short name of
// the zone. Of the letters of Java there are besides q quarter, k hour from 1 to 24, K hour
// from 0 to 11, v name of the zone, and [ in front of a section that a text need not have.
type patternItem struct {
	kind  byte
	width int    // least number of digits; of f, the number of digits; of [, that of the items in the section
	text  string // of a literal; of z, the letters that say how it is written; of y, cYear
}

// cYear marks two digits of a year that are read as C does, of 1969 to 2068; those of Java are of
// 2000 to 2099.
const cYear = "C"

// compileTime reads a pattern: with a % in it as strftime's, else as letters in the
// manner of Java (yyyy-MM-dd HH:mm:ss.SSS).
func compileTime(source, _ string) (*timePattern, error) {
	compile, minute, month := compileLetters, "mm", "MM"
	if strings.Contains(source, "%") {
		compile, minute, month = compileStrftime, "%M", "%m"
	}
	p, err := compile(source)
	if err == nil {
		err = p.mistaken(minute, month)
	}
	return p, err
}

// mistaken says where a pattern has the minute, which is written minute, in the place of
// the month, which is written month, or the other way round: what it gave would be a time,
// but a wrong one.
func (p *timePattern) mistaken(minute, month string) error {
	has := map[byte]int{}
	for _, it := range p.items {
		has[it.kind]++
	}
	months, hours := has['m']+has['b']+has['B'], has['H']+has['I']+has['k']+has['K']
	switch {
	case has['M'] > 0 && months == 0 && has['d'] > 0 && has['Y']+has['y'] > 0:
		return fmt.Errorf("time format %q has a day and a year and no month; %s is the minute, %s the month", p.source, minute, month)
	case has['M'] == 0 && hours > 0 && has['m'] > 0 && (has['S'] > 0 || has['m'] > 1):
		return fmt.Errorf("time format %q has an hour and no minute; %s is the month, %s the minute", p.source, month, minute)
	case has['M'] > 0 && hours == 0 && has['d']+has['j'] > 0:
		return fmt.Errorf("time format %q has a day and minutes and no hour; %s is the minute, %s the month", p.source, minute, month)
	}
	return nil
}

func (p *timePattern) literal(s string) {
	if n := len(p.items); n > p.closed && p.items[n-1].kind == 0 {
		p.items[n-1].text += s
		return
	}
	p.items = append(p.items, patternItem{text: s})
}

func (p *timePattern) field(kind byte, width int) {
	p.items = append(p.items, patternItem{kind: kind, width: width})
}

func appendPadded(dst []byte, v int64, width int) []byte {
	if v < 0 {
		dst = append(dst, '-')
		v = -v
	}
	if width == 2 && v < 100 {
		return append(dst, byte('0'+v/10), byte('0'+v%10))
	}
	digits := strconv.AppendInt(make([]byte, 0, 20), v, 10)
	for range width - len(digits) {
		dst = append(dst, '0')
	}
	return append(dst, digits...)
}

// format appends an instant as the wall clock of loc shows it.
func (p *timePattern) format(dst []byte, us int64, loc *time.Location) []byte {
	days, rest := columnar.LocalDay(us, loc)
	year, month, day := columnar.CivilFromDays(days)
	hour := rest / columnar.MicrosPerHour
	weekday := time.Weekday(columnar.FloorMod(days+4, 7))
	for _, it := range p.items {
		switch it.kind {
		case 0:
			dst = append(dst, it.text...)
		case 'Y':
			dst = columnar.AppendYear(dst, year, it.width)
		case 'y':
			dst = appendPadded(dst, max(year, -year)%100, it.width)
		case 'm':
			dst = appendPadded(dst, int64(month), it.width)
		case 'b':
			dst = append(dst, time.Month(month).String()[:3]...)
		case 'B':
			dst = append(dst, time.Month(month).String()...)
		case 'd':
			dst = appendPadded(dst, int64(day), it.width)
		case 'j':
			dst = appendPadded(dst, days-columnar.DaysFromCivil(year, 1, 1)+1, it.width)
		case 'a':
			dst = append(dst, weekday.String()[:3]...)
		case 'A':
			dst = append(dst, weekday.String()...)
		case 'u':
			dst = appendPadded(dst, columnar.FloorMod(days+3, 7)+1, 1)
		case 'w':
			dst = appendPadded(dst, int64(weekday), 1)
		case 'G':
			dst = columnar.AppendYear(dst, weekField('G', days, year), it.width)
		case 'U', 'W', 'V':
			dst = appendPadded(dst, weekField(it.kind, days, year), it.width)
		case 'q':
			dst = appendQuarter(dst, (month-1)/3+1, it.width)
		case 'H':
			dst = appendPadded(dst, hour, it.width)
		case 'I':
			dst = appendPadded(dst, (hour+11)%12+1, it.width)
		case 'k':
			dst = appendPadded(dst, (hour+23)%24+1, it.width)
		case 'K':
			dst = appendPadded(dst, hour%12, it.width)
		case 'p':
			dst = append(dst, [2]string{"AM", "PM"}[hour/12]...)
		case 'M':
			dst = appendPadded(dst, rest/columnar.MicrosPerMinute%60, it.width)
		case 'S':
			dst = appendPadded(dst, rest/columnar.MicrosPerSecond%60, it.width)
		case 'f':
			dst = appendFraction(dst, rest%columnar.MicrosPerSecond, it.width)
		case 'z':
			dst = appendOffset(dst, (days*columnar.MicrosPerDay+rest-us)/columnar.MicrosPerSecond, it.text)
		case 'Z':
			name := "UTC"
			if !columnar.IsUTC(loc) {
				name, _ = time.UnixMicro(us).In(loc).Zone()
			}
			dst = append(dst, name...)
		case 'v':
			dst = append(dst, cmp.Or(loc, time.UTC).String()...)
		}
	}
	return dst
}

// weekField is the week of a year that begins with its first Sunday (U) or Monday (W), the
// days before it being week 0; or the week of ISO 8601 (V), and the year that this is of (G).
func weekField(kind byte, days, year int64) int64 {
	dayOfYear := days - columnar.DaysFromCivil(year, 1, 1)
	switch kind {
	case 'U':
		return (dayOfYear + 7 - columnar.FloorMod(days+4, 7)) / 7
	case 'W':
		return (dayOfYear + 7 - columnar.FloorMod(days+3, 7)) / 7
	}
	thursday := days - columnar.FloorMod(days+3, 7) + 3
	isoYear, _, _ := columnar.CivilFromDays(thursday)
	if kind == 'G' {
		return isoYear
	}
	return (thursday-columnar.DaysFromCivil(isoYear, 1, 1))/7 + 1
}

func appendFraction(dst []byte, us int64, digits int) []byte {
	all := appendPadded(nil, us, 6)
	for k := range digits {
		if k < 6 {
			dst = append(dst, all[k])
		} else {
			dst = append(dst, '0')
		}
	}
	return dst
}

// parsedTime is what the fields of a text said.
type parsedTime struct {
	year                           int64
	month, day, dayOfYear          int64
	hour, minute, second, fraction int64
	twelve, halved, pm             bool // an hour of twelve; AM or PM, and which
	hasOffset                      bool
	offset                         int64
	zone                           *time.Location
}

// withoutMonth says that a pattern cannot be read by: it would be of January, or of a week
// without a year.
func (p *timePattern) withoutMonth() error {
	day, month := false, false
	for _, it := range p.items {
		if it.kind == 'q' {
			return fmt.Errorf("time format %q: a time is not read by its quarter, Q; it is written only", p.source)
		}
		if it.kind != 0 && strings.IndexByte("UWVG", it.kind) >= 0 {
			return fmt.Errorf("time format %q: a time is not read by the number of a week, %%%c; it is written only", p.source, it.kind)
		}
		day = day || it.kind == 'd'
		month = month || it.kind == 'm' || it.kind == 'b' || it.kind == 'B'
	}
	if day && !month {
		return fmt.Errorf("time format %q has a day and no month", p.source)
	}
	return nil
}

// compileParsed is compileTime for patterns to read by.
func compileParsed(source, extra string) (*timePattern, error) {
	p, err := compileTime(source, extra)
	if err == nil {
		err = p.withoutMonth()
	}
	return p, err
}

// parse reads the whole of s.
func (p *timePattern) parse(s string) (parsedTime, bool) {
	t := parsedTime{year: 1970, month: 1, day: 1}
	s, ok := t.take(p.items, len(p.items), s)
	return t, ok && strings.TrimSpace(s) == ""
}

// take takes the first n items off the front of s; the others are those behind. A section that
// s does not have is left out.
func (t *parsedTime) take(items []patternItem, n int, s string) (rest string, ok bool) {
	for k := 0; k < n; k++ {
		it := items[k]
		switch it.kind {
		case '[':
			with := *t
			if after, ok := with.take(items[k+1:], it.width, s); ok {
				*t, s = with, after
			}
			k += it.width
			continue
		case 'Y':
			t.year, s, ok = takeYear(s, it.width, digitsAfter(items[k+1:]))
		default:
			s, ok = t.field(it, s)
		}
		if !ok {
			return s, false
		}
	}
	return s, true
}

// digitsAfter is how many digits the fields hold that follow a year without anything between,
// as in yyyyMMdd; -1 if none does.
func digitsAfter(items []patternItem) int {
	digits := 0
	for _, it := range items {
		switch it.kind {
		case '[': // what is in it, and behind it, may follow
		case 'y', 'm', 'd', 'H', 'I', 'k', 'K', 'M', 'S':
			digits += 2
		case 'j':
			digits += 3
		case 'f', 'u', 'w':
			digits += it.width
		case 0:
			return cmp.Or(digits, -1)
		default:
			return digits
		}
	}
	return cmp.Or(digits, -1)
}

// takeYear takes a year off the front of s, as columnar.AppendYear writes it, or without the
// plus. In front of other digits (after is not negative) it has just its width, unless a
// sign says that it has all digits but those.
func takeYear(s string, width, after int) (year int64, rest string, ok bool) {
	signed := s != "" && (s[0] == '+' || s[0] == '-')
	digits := s
	if signed {
		digits = s[1:]
	}
	most := 7
	if after >= 0 {
		most = max(width, 4)
		if signed {
			most = min(7, len(digits)-len(strings.TrimLeft(digits, "0123456789"))-after)
		}
	}
	year, rest, ok = takeNumber(digits, most)
	if signed && s[0] == '-' {
		year = -year
	}
	return year, rest, ok
}

// field takes a field other than the year off the front of s.
func (t *parsedTime) field(it patternItem, s string) (rest string, ok bool) {
	switch it.kind {
	case 0:
		return strings.CutPrefix(s, it.text)
	case 'y':
		t.year, s, ok = takeNumber(s, 2)
		t.year += 2000
		if it.text == cYear && t.year > 2068 {
			t.year -= 100
		}
	case 'm':
		t.month, s, ok = takeNumber(s, 2)
	case 'd':
		t.day, s, ok = takeNumber(s, 2)
	case 'j':
		t.dayOfYear, s, ok = takeNumber(s, 3)
	case 'H':
		t.hour, s, ok = takeNumber(s, 2)
	case 'I':
		t.hour, s, ok = takeNumber(s, 2)
		t.twelve = true
		ok = ok && t.hour >= 1 && t.hour <= 12
	case 'k':
		t.hour, s, ok = takeNumber(s, 2)
		ok = ok && t.hour <= 24
		t.hour %= 24
	case 'K':
		t.hour, s, ok = takeNumber(s, 2)
		t.twelve = true
		ok = ok && t.hour <= 11
	case 'M':
		t.minute, s, ok = takeNumber(s, 2)
	case 'S':
		t.second, s, ok = takeNumber(s, 2)
	case 'f':
		return t.takeFraction(s)
	case 'u', 'w':
		_, s, ok = takeNumber(s, 2)
	case 'p':
		if len(s) < 2 {
			return s, false
		}
		t.halved, t.pm = true, strings.EqualFold(s[:2], "PM")
		return s[2:], t.pm || strings.EqualFold(s[:2], "AM")
	case 'b', 'B':
		return t.takeMonth(s)
	case 'a', 'A':
		return takeWeekday(s)
	case 'z', 'Z', 'v':
		return t.takeZone(s)
	}
	return s, ok
}

func takeNumber(s string, most int) (v int64, rest string, ok bool) {
	n := 0
	for n < len(s) && n < most && s[n] >= '0' && s[n] <= '9' {
		v = v*10 + int64(s[n]-'0')
		n++
	}
	return v, s[n:], n > 0
}

func (t *parsedTime) takeFraction(s string) (rest string, ok bool) {
	unit := columnar.MicrosPerSecond / 10
	n := 0
	for n < len(s) && s[n] >= '0' && s[n] <= '9' {
		t.fraction += int64(s[n]-'0') * unit
		unit /= 10
		n++
	}
	return s[n:], n > 0
}

func (t *parsedTime) takeMonth(s string) (rest string, ok bool) {
	for m := time.January; m <= time.December; m++ {
		for _, name := range [2]string{m.String(), m.String()[:3]} {
			if len(s) >= len(name) && strings.EqualFold(s[:len(name)], name) {
				t.month = int64(m)
				return s[len(name):], true
			}
		}
	}
	return s, false
}

func takeWeekday(s string) (rest string, ok bool) {
	for d := time.Sunday; d <= time.Saturday; d++ {
		for _, name := range [2]string{d.String(), d.String()[:3]} {
			if len(s) >= len(name) && strings.EqualFold(s[:len(name)], name) {
				return s[len(name):], true
			}
		}
	}
	return s, false
}

// takeZone reads Z, an offset, or the name of a zone, up to what no part of one is.
func (t *parsedTime) takeZone(s string) (rest string, ok bool) {
	n := strings.IndexFunc(s, func(r rune) bool {
		return (r < '0' || r > ':') && (r < 'A' || r > 'Z') && (r < 'a' || r > 'z') && !strings.ContainsRune("+-/_", r)
	})
	if n < 0 {
		n = len(s)
	}
	word := s[:n]
	if word != "" && (word[0] == '+' || word[0] == '-' || strings.EqualFold(word, "Z") || word == "UTC" || word == "GMT") {
		us, ok := columnar.ParseTimestamp("1970-01-01 00:00 "+word, nil)
		t.hasOffset, t.offset = true, -us
		return s[n:], ok
	}
	loc, err := columnar.LoadZone(word)
	t.zone = loc
	return s[n:], err == nil
}

// clock is the day, counted from 1970, and the microseconds since its midnight that a text shows.
func (t parsedTime) clock() (day, us int64, ok bool) {
	if t.twelve {
		t.hour %= 12
		if t.pm {
			t.hour += 12
		}
	}
	if t.halved && t.pm != (t.hour >= 12) { // 03:00 PM, read as an hour of 24
		return 0, 0, false
	}
	day, err := civil(t.year, t.month, t.day)
	if err != nil || t.hour > 23 || t.minute > 59 || t.second > 59 {
		return 0, 0, false
	}
	if t.dayOfYear > 0 {
		day = columnar.DaysFromCivil(t.year, 1, 1) + t.dayOfYear - 1
		if t.dayOfYear > 366 || t.dayOfYear == 366 && !columnar.IsLeap(t.year) {
			return 0, 0, false
		}
	}
	return day, t.hour*columnar.MicrosPerHour + t.minute*columnar.MicrosPerMinute + t.second*columnar.MicrosPerSecond + t.fraction, true
}

// instant is the time that a text shows on the wall clock of loc, or of the zone it names.
func (t parsedTime) instant(loc *time.Location) (int64, bool) {
	day, us, ok := t.clock()
	switch {
	case !ok:
		return 0, false
	case t.hasOffset:
		return columnar.Instant(day, us-t.offset, nil)
	case t.zone != nil:
		loc = t.zone
	}
	return columnar.Instant(day, us, loc)
}

// date is the day of instant on the wall clock of loc. Without a zone in the text it may be
// further away than a TIMESTAMP.
func (t parsedTime) date(loc *time.Location) (int32, bool) {
	if t.hasOffset || t.zone != nil {
		at, ok := t.instant(loc)
		day, _ := columnar.LocalDay(at, loc)
		return int32(day), ok
	}
	day, _, ok := t.clock()
	return int32(day), ok && day == int64(int32(day))
}

// unix is instant in whole seconds.
func (t parsedTime) unix(loc *time.Location) (int64, bool) {
	at, ok := t.instant(loc)
	return columnar.FloorDiv(at, columnar.MicrosPerSecond), ok
}

// patternOf gives the pattern of each row, compiling a literal one once.
func patternOf(constants []arrow.Array, arg int, compile func(source, extra string) (*timePattern, error)) (func(c *call) func(i int) (*timePattern, error), error) {
	if s, ok := constantText(constants, arg); ok {
		p, err := compile(s, "")
		if err != nil {
			return nil, err
		}
		return func(*call) func(int) (*timePattern, error) {
			return func(int) (*timePattern, error) { return p, nil }
		}, nil
	}
	return func(c *call) func(int) (*timePattern, error) {
		cache, texts := newCompiled(compile), kernel.TextsOf(c.args[arg])
		return func(i int) (*timePattern, error) { return cache.get(texts.At(i), "") }
	}, nil
}

// formatScalar is strftime, and date_format with the letters of Java.
func formatScalar() *Scalar {
	return &Scalar{Name: "strftime", Aliases: []string{"date_format"}, Doc: "A time as text, in the form of a pattern: %Y-%m-%d %H:%M:%S, or in letters, yyyy-MM-dd HH:mm:ss.", Example: "strftime(make_timestamp(2024, 5, 6, 7, 8, 9), '%d.%m.%Y %H:%M') = 06.05.2024 07:08", Overloads: []Overload{{
		Args: []Matcher{timestamp, varchar}, Result: always(columnar.String), Fallible: true,
		Bind: func(_ []arrow.DataType, constants []arrow.Array) (Kernel, error) {
			source, err := patternOf(constants, 1, compileTime)
			if err != nil {
				return nil, err
			}
			return onRows(columnar.String, func(c *call) (arrow.Array, error) {
				at, of := numbersOf[int64](c.args[0]), source(c)
				var run formatRun
				return c.text(c.rows*20, func(dst []byte, i int) ([]byte, error) {
					p, err := of(i)
					if err != nil {
						return dst, err
					}
					return run.append(dst, p, at.at(i), c.env.Location), nil
				})
			}), nil
		},
	}}}
}

// parseOverload reads a text by a pattern as TIMESTAMP.
func parseOverload() Overload {
	return Overload{
		Args: []Matcher{varchar, varchar}, Result: always(columnar.Timestamp), Fallible: true,
		Bind: func(_ []arrow.DataType, constants []arrow.Array) (Kernel, error) {
			source, err := patternOf(constants, 1, compileParsed)
			if err != nil {
				return nil, err
			}
			return onRows(columnar.Timestamp, func(c *call) (arrow.Array, error) {
				return parseRows(c, source(c), parsedTime.instant, columnar.Timestamp)
			}), nil
		},
	}
}

// parseRows reads each text by its pattern, and takes from it what value says.
func parseRows[T any](c *call, of func(i int) (*timePattern, error), value func(t parsedTime, loc *time.Location) (T, bool), to arrow.DataType) (arrow.Array, error) {
	in := kernel.TextsOf(c.args[0])
	return fallibleRows(c, func(i int) (T, error) {
		var zero T
		p, err := of(i)
		if err != nil {
			return zero, err
		}
		t, ok := p.parse(string(in.At(i)))
		var v T
		if ok {
			v, ok = value(t, c.env.Location)
		}
		if !ok {
			return zero, &kernel.ValueError{Kind: kernel.ErrCast, Text: fmt.Sprintf("%q is no %s of the form %q", in.At(i), columnar.TypeName(to), p.source)}
		}
		return v, nil
	})
}

func parseScalar() *Scalar {
	return &Scalar{Name: "strptime", Doc: "A text read as a time by a pattern, %Y-%m-%d %H:%M:%S or yyyy-MM-dd HH:mm:ss.", Example: "strptime('06.05.2024', '%d.%m.%Y') = 2024-05-06 00:00:00", Overloads: []Overload{parseOverload()}}
}

func toDateScalar() *Scalar {
	return &Scalar{Name: "to_date", Aliases: []string{"date"}, Doc: "A text or time as DATE; a text may be read by a pattern.", Example: "to_date('06.05.2024', 'dd.MM.yyyy') = 2024-05-06", Overloads: []Overload{
		{Args: []Matcher{varchar}, Result: always(columnar.Date), Fallible: true, Bind: castTo(columnar.Date)},
		{Args: []Matcher{date}, Result: always(columnar.Date), Bind: castTo(columnar.Date)},
		{Args: []Matcher{timestamp}, Result: always(columnar.Date), Bind: castTo(columnar.Date)},
		{Args: []Matcher{varchar, varchar}, Result: always(columnar.Date), Fallible: true, Bind: func(_ []arrow.DataType, constants []arrow.Array) (Kernel, error) {
			source, err := patternOf(constants, 1, compileParsed)
			if err != nil {
				return nil, err
			}
			return onRows(columnar.Date, func(c *call) (arrow.Array, error) {
				return parseRows(c, source(c), parsedTime.date, columnar.Date)
			}), nil
		}},
	}}
}
