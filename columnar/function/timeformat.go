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
}

// patternItem is a field, or a literal text if kind is 0. The kinds are the letters
// of strftime: Y year, y its last two digits, m month, b and B its name, d day, j day
// of the year, a and A day of the week, u its number (Monday is 1), w likewise (Sunday is
// 0), U, W and V the week and G the year of the last, which no text is read by, q quarter,
// H hour, I hour of twelve, p AM or PM, M minute, S second, f fraction, z offset, Z zone.
type patternItem struct {
	kind  byte
	width int // least number of digits; of f, the number of digits
	text  string
}

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
	months, hours := has['m']+has['b']+has['B'], has['H']+has['I']
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
	if n := len(p.items); n > 0 && p.items[n-1].kind == 0 {
		p.items[n-1].text += s
		return
	}
	p.items = append(p.items, patternItem{text: s})
}

func (p *timePattern) field(kind byte, width int) {
	p.items = append(p.items, patternItem{kind: kind, width: width})
}

func compileStrftime(source string) (*timePattern, error) {
	p := &timePattern{source: source}
	for i := 0; i < len(source); i++ {
		if source[i] != '%' {
			p.literal(source[i : i+1])
			continue
		}
		i++
		width := 2
		if i < len(source) && source[i] == '-' {
			width = 1
			i++
		}
		if i == len(source) {
			return nil, fmt.Errorf("time format %q ends with %%; write %%%% for the character", source)
		}
		switch c := source[i]; c {
		case 'Y':
			p.field('Y', 4)
		case 'y', 'm', 'd', 'H', 'I', 'M', 'S':
			p.field(c, width)
		case 'j':
			p.field('j', max(3*(width-1), 1))
		case 'f':
			p.field('f', 6)
		case 'g':
			p.field('f', 3)
		case 'b', 'B', 'a', 'A', 'p', 'z', 'Z', 'u', 'w':
			p.field(c, 1)
		case 'U', 'W', 'V':
			p.field(c, width)
		case 'G':
			p.field('G', 4)
		case 'c':
			return p.splice(source[i+1:], "%Y-%m-%d %H:%M:%S")
		case 'F':
			return p.splice(source[i+1:], "%Y-%m-%d")
		case 'T':
			return p.splice(source[i+1:], "%H:%M:%S")
		case '%':
			p.literal("%")
		default:
			return nil, fmt.Errorf("time format %q: %%%c is unknown; known are %%Y %%m %%d %%H %%M %%S %%f %%y %%b %%B %%a %%A %%j %%I %%p %%z %%Z %%u %%w %%U %%W %%V %%G %%c %%F %%T", source, c)
		}
	}
	return p, nil
}

// splice puts an abbreviation and the rest of a pattern behind p.
func (p *timePattern) splice(rest, long string) (*timePattern, error) {
	q, err := compileStrftime(long + rest)
	if err != nil {
		return nil, err
	}
	p.items = append(p.items, q.items...)
	return p, nil
}

func compileLetters(source string) (*timePattern, error) {
	p := &timePattern{source: source}
	for i := 0; i < len(source); {
		c := source[i]
		if c == '\'' {
			end := strings.IndexByte(source[i+1:], '\'')
			switch {
			case end < 0:
				return nil, fmt.Errorf("time format %q: a quote is not closed", source)
			case end == 0:
				p.literal("'")
			default:
				p.literal(source[i+1 : i+1+end])
			}
			i += end + 2
			continue
		}
		n := 1
		for i+n < len(source) && source[i+n] == c {
			n++
		}
		if err := p.letters(c, n); err != nil {
			return nil, err
		}
		i += n
	}
	return p, nil
}

// letters adds the field of n letters c.
func (p *timePattern) letters(c byte, n int) error {
	simple := map[byte]byte{'d': 'd', 'H': 'H', 'h': 'I', 'm': 'M', 's': 'S', 'D': 'j', 'S': 'f', 'a': 'p', 'u': 'u', 'Q': 'q', 'q': 'q', 'k': 'H'}
	switch {
	case (c == 'y' || c == 'u') && n == 2:
		p.field('y', 2)
	case c == 'y' || c == 'u':
		p.field('Y', max(n, 1))
	case (c == 'M' || c == 'L') && n >= 4:
		p.field('B', 1)
	case (c == 'M' || c == 'L') && n == 3:
		p.field('b', 1)
	case c == 'M' || c == 'L':
		p.field('m', n)
	case c == 'E' && n >= 4:
		p.field('A', 1)
	case c == 'E':
		p.field('a', 1)
	case c == 'X' || c == 'x' || c == 'Z' || c == 'O':
		p.field('z', 1)
	case c == 'z' || c == 'V':
		p.field('Z', 1)
	case simple[c] != 0:
		p.field(simple[c], n)
	case c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z':
		return fmt.Errorf("time format %q: %s is unknown; known are yyyy MM dd HH mm ss SSS hh a EEE MMM DDD XXX, and text in single quotes", p.source, strings.Repeat(string(c), n))
	default:
		p.literal(strings.Repeat(string(c), n))
	}
	return nil
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
			dst = appendPadded(dst, columnar.FloorMod(year, 100), 2)
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
			dst = appendPadded(dst, int64(month-1)/3+1, it.width)
		case 'H':
			dst = appendPadded(dst, hour, it.width)
		case 'I':
			dst = appendPadded(dst, (hour+11)%12+1, it.width)
		case 'p':
			dst = append(dst, [2]string{"AM", "PM"}[hour/12]...)
		case 'M':
			dst = appendPadded(dst, rest/columnar.MicrosPerMinute%60, it.width)
		case 'S':
			dst = appendPadded(dst, rest/columnar.MicrosPerSecond%60, it.width)
		case 'f':
			dst = appendFraction(dst, rest%columnar.MicrosPerSecond, it.width)
		case 'z':
			dst = appendOffset(dst, (days*columnar.MicrosPerDay+rest-us)/columnar.MicrosPerMinute)
		case 'Z':
			name := "UTC"
			if !columnar.IsUTC(loc) {
				name, _ = time.UnixMicro(us).In(loc).Zone()
			}
			dst = append(dst, name...)
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

func appendOffset(dst []byte, minutes int64) []byte {
	sign := byte('+')
	if minutes < 0 {
		sign, minutes = '-', -minutes
	}
	dst = appendPadded(append(dst, sign), minutes/60, 2)
	return appendPadded(append(dst, ':'), minutes%60, 2)
}

// parsedTime is what the fields of a text said.
type parsedTime struct {
	year                           int64
	month, day, dayOfYear          int64
	hour, minute, second, fraction int64
	twelve, pm                     bool
	hasOffset                      bool
	offset                         int64
	zone                           *time.Location
}

// withoutMonth says that a pattern cannot be read by: it would be of January, or of a week
// without a year.
func (p *timePattern) withoutMonth() error {
	day, month := false, false
	for _, it := range p.items {
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
	for k, it := range p.items {
		var ok bool
		if it.kind == 'Y' {
			t.year, s, ok = takeYear(s, it.width, digitsAfter(p.items[k+1:]))
		} else {
			s, ok = t.field(it, s)
		}
		if !ok {
			return t, false
		}
	}
	return t, strings.TrimSpace(s) == ""
}

// digitsAfter is how many digits the fields hold that follow a year without anything between,
// as in yyyyMMdd; -1 if none does.
func digitsAfter(items []patternItem) int {
	digits := 0
	for _, it := range items {
		switch it.kind {
		case 'y', 'm', 'd', 'H', 'I', 'M', 'S':
			digits += 2
		case 'j':
			digits += 3
		case 'f', 'u', 'w', 'q':
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
	case 'M':
		t.minute, s, ok = takeNumber(s, 2)
	case 'S':
		t.second, s, ok = takeNumber(s, 2)
	case 'f':
		return t.takeFraction(s)
	case 'u', 'w', 'q':
		_, s, ok = takeNumber(s, 2)
	case 'p':
		if len(s) < 2 {
			return s, false
		}
		t.pm = strings.EqualFold(s[:2], "PM")
		return s[2:], t.pm || strings.EqualFold(s[:2], "AM")
	case 'b', 'B':
		return t.takeMonth(s)
	case 'a', 'A':
		return takeWeekday(s)
	case 'z', 'Z':
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

// takeZone reads Z, an offset, or the name of a zone, up to a blank.
func (t *parsedTime) takeZone(s string) (rest string, ok bool) {
	n := strings.IndexByte(s, ' ')
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
