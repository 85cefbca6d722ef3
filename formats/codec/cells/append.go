package cells

import (
	"bytes"
	"encoding/base64"
	"math"
	"unicode/utf8"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/decimal128"

	"github.com/tidemill/tidemill/columnar"
)

// text is the text of a cell that left the fast loop of a typed column: escapes and
// blanks around it removed. null is set where there is nothing to read; ok is false
// for a broken escape.
func (c *Column) text(buf []byte, cell Cell) (text []byte, null, ok bool) {
	if cell == Absent {
		return nil, true, true
	}
	if cell&escaped == 0 {
		s, e := cell.Span()
		text = columnar.TrimBlanks(buf[s:e])
	} else {
		c.scratch, ok = c.rules.AppendText(c.scratch[:0], buf, cell)
		if !ok {
			return nil, false, false
		}
		text = columnar.TrimBlanks(c.scratch)
	}
	// There is no empty number or date. In JSON "" is a text, and null is written null.
	return text, len(text) == 0 && !c.rules.JSON, true
}

// bare is text for the types that JSON writes without quotes; in quotes they are no
// value of the type.
func (c *Column) bare(buf []byte, cell Cell) (text []byte, null, ok bool) {
	if c.rules.JSON && cell != Absent && cell&Absent != 0 {
		return nil, false, false
	}
	return c.text(buf, cell)
}

// number is text for numbers, without what stands between groups of digits.
func (c *Column) number(buf []byte, cell Cell) (text []byte, null, ok bool) {
	text, null, ok = c.text(buf, cell)
	return c.rules.ungrouped(text), null, ok
}

// ungrouped is a number without what stands between its groups of three digits; text
// that is not grouped so comes back as it is.
func (r *Rules) ungrouped(text []byte) []byte {
	if r.Thousands == 0 || bytes.IndexByte(text, r.Thousands) < 0 {
		return text
	}
	out := make([]byte, 0, len(text))
	from := 0
	if text[0] == '-' || text[0] == '+' {
		from = 1
	}
	out = append(out, text[:from]...)
	for group := 0; ; group++ {
		digits := from
		for digits < len(text) && text[digits]-'0' <= 9 {
			digits++
		}
		n := digits - from
		if n == 0 || n > 3 || group > 0 && n != 3 {
			return text
		}
		out = append(out, text[from:digits]...)
		if digits == len(text) || text[digits] != r.Thousands {
			return append(out, text[digits:]...)
		}
		from = digits + 1
	}
}

func appendIntegers[T int8 | int16 | int32 | int64](c *Column, out []T, buf []byte, cells []Cell) {
	inferred := c.rules.Inferred
	for i, cell := range cells {
		s, e := cell.Span()
		if cell&c.strict == 0 {
			if v, ok := integer(buf, s, e); ok && int64(T(v)) == v && !(inferred && buf[s] <= '0' && hasLeadingZero(buf, s, e)) {
				out[i] = T(v)
				continue
			}
		}
		out[i] = 0
		text, null, ok := c.bare(buf, cell)
		switch {
		case null:
			c.setNull(c.n + i)
		case ok:
			text = c.rules.ungrouped(text)
			v, ok := columnar.ParseInt(text)
			if !ok && c.rules.JSON {
				v, ok = wholeNumber(text)
			}
			out[i] = T(v)
			if !ok || int64(T(v)) != v || inferred && hasLeadingZero(text, 0, len(text)) {
				c.setBad(i)
			}
		default:
			c.setBad(i)
		}
	}
}

// wholeNumber reads a JSON number that is an integer though it is not written as
// one: 1.0, 1e3.
func wholeNumber(text []byte) (int64, bool) {
	v, ok := columnar.ParseDecimal(text, columnar.MaxPrecision, 18)
	if !ok {
		return 0, false
	}
	whole, rest := v.Div(decimal128.GetScaleMultiplier(18))
	if rest != (decimal128.Num{}) || !whole.FitsInPrecision(19) || !whole.BigInt().IsInt64() {
		return 0, false
	}
	return whole.BigInt().Int64(), true
}

func (c *Column) appendFloats(out []float64, buf []byte, cells []Cell) {
	inferred := c.rules.Inferred
	for i, cell := range cells {
		s, e := cell.Span()
		if cell&c.strict == 0 {
			v, ok := pointed(buf, s, e)
			if !ok {
				v, ok = float(buf, s, e)
			}
			if ok && !(inferred && (buf[s] <= '0' || e-s > 18) && isTextAsNumber(buf, s, e)) {
				out[i] = v
				continue
			}
		}
		out[i] = c.slowFloat(buf, cell, i, 64)
	}
}

// slowFloat reads what is not simply a number: NaN and Infinity (in JSON in quotes),
// a number with blanks around it, nothing.
func (c *Column) slowFloat(buf []byte, cell Cell, i, bits int) float64 {
	text, null, ok := c.number(buf, cell)
	if null {
		c.setNull(c.n + i)
		return 0
	}
	if ok {
		if v, ok := special(text); ok {
			return v
		}
		if !c.rules.JSON || cell&quoted == 0 {
			if _, ok := float(text, 0, len(text)); ok && !(c.rules.Inferred && isTextAsNumber(text, 0, len(text))) {
				if v, ok := slowFloat(text, bits); ok {
					return v
				}
			}
		}
	}
	c.setBad(i)
	return 0
}

func (c *Column) appendTimestamps(out []int64, buf []byte, cells []Cell) {
	fast := escaped
	if c.rules.Timestamp != nil {
		fast = ^Cell(0)
	}
	for i, cell := range cells {
		s, e := cell.Span()
		if cell&fast == 0 && e > s && (!c.rules.JSON || cell&quoted != 0) {
			if v, ok := c.timestamp(buf, s, e); ok && (!c.rules.Inferred || hasISODate(buf[s:e])) {
				out[i] = v
				continue
			}
		}
		out[i] = 0
		text, null, ok := c.text(buf, cell)
		if null {
			c.setNull(c.n + i)
			continue
		}
		if ok && (!c.rules.JSON || cell&quoted != 0) {
			if c.rules.Timestamp != nil {
				out[i], ok = c.rules.Timestamp.Parse(text, c.rules.Location)
			} else {
				out[i], ok = columnar.ParseTimestamp(text, c.rules.Location)
				ok = ok && (!c.rules.Inferred || hasISODate(text))
			}
		} else {
			ok = false
		}
		if !ok {
			c.setBad(i)
		}
	}
}

func (c *Column) appendDates(out []int32, buf []byte, cells []Cell) {
	for i, cell := range cells {
		s, e := cell.Span()
		if e-s == 10 && cell&escaped == 0 && c.rules.Date == nil && (!c.rules.JSON || cell&quoted != 0) {
			if days, ok := c.dates.parse(buf, s); ok {
				out[i] = int32(days)
				continue
			}
		}
		out[i] = 0
		text, null, ok := c.text(buf, cell)
		if null {
			c.setNull(c.n + i)
			continue
		}
		if ok && (!c.rules.JSON || cell&quoted != 0) {
			if c.rules.Date != nil {
				out[i], ok = c.rules.Date.ParseDay(text)
			} else {
				out[i], ok = columnar.ParseDay(text)
				ok = ok && (!c.rules.Inferred || hasISODate(text))
			}
		} else {
			ok = false
		}
		if !ok {
			c.setBad(i)
		}
	}
}

func (c *Column) appendBooleans(buf []byte, cells []Cell) {
	bits := c.values.Buf()
	for i, cell := range cells {
		row := c.n + i
		bits[row>>3] &^= 1 << (row & 7)
		if s, e := cell.Span(); cell&c.strict == 0 {
			switch string(buf[s:e]) {
			case "true":
				bits[row>>3] |= 1 << (row & 7)
				continue
			case "false":
				continue
			}
		}
		text, null, ok := c.bare(buf, cell)
		if null {
			c.setNull(row)
			continue
		}
		v := false
		if ok && c.rules.JSON {
			v = string(text) == "true"
			ok = v || string(text) == "false"
		} else if ok {
			v = equalFold(text, "true")
			if !v && !equalFold(text, "false") {
				v, ok = columnar.ParseBool(text)
				ok = ok && !c.rules.Inferred
			}
		}
		if !ok {
			c.setBad(i)
		} else if v {
			bits[row>>3] |= 1 << (row & 7)
		}
	}
}

func (c *Column) appendDecimals(buf []byte, cells []Cell) {
	dt := c.dt.(*arrow.Decimal128Type)
	out := arrow.Decimal128Traits.CastFromBytes(c.values.Buf())[c.n : c.n+len(cells)]
	for i, cell := range cells {
		s, e := cell.Span()
		if cell&escaped == 0 && e > s {
			if v, ok := shortDecimal(buf[s:e], dt); ok {
				out[i] = v
				continue
			}
		}
		out[i] = decimal128.Num{}
		text, null, ok := c.number(buf, cell)
		if null {
			c.setNull(c.n + i)
			continue
		}
		if ok {
			out[i], ok = columnar.ParseDecimal(text, dt.Precision, dt.Scale)
		}
		if !ok {
			c.setBad(i)
		}
	}
}

// shortDecimal reads up to 18 digits that need no rounding.
func shortDecimal(b []byte, dt *arrow.Decimal128Type) (decimal128.Num, bool) {
	i := 0
	negative := b[0] == '-'
	if negative {
		i++
	}
	if len(b)-i > 18 || i == len(b) {
		return decimal128.Num{}, false
	}
	v := int64(0)
	point := -1
	for ; i < len(b); i++ {
		d := b[i] - '0'
		if d > 9 {
			if b[i] != '.' || point >= 0 {
				return decimal128.Num{}, false
			}
			point = i
			continue
		}
		v = v*10 + int64(d)
	}
	missing := int(dt.Scale)
	if point >= 0 {
		missing -= len(b) - point - 1
	}
	if missing < 0 || missing > 18 || b[len(b)-1] == '.' || v >= math.MaxInt64/powers[missing] {
		return decimal128.Num{}, false
	}
	v *= powers[missing]
	if dt.Precision < 18 && v >= powers[dt.Precision] {
		return decimal128.Num{}, false
	}
	if negative {
		v = -v
	}
	return decimal128.FromI64(v), true
}

var powers = func() (p [19]int64) {
	p[0] = 1
	for i := 1; i < len(p); i++ {
		p[i] = p[i-1] * 10
	}
	return p
}()

// appendOthers fills the types that are rare in text.
func (c *Column) appendOthers(buf []byte, cells []Cell) {
	switch c.dt.ID() {
	case arrow.FLOAT32:
		out := fresh[float32](c, len(cells))
		for i, cell := range cells {
			s, e := cell.Span()
			if cell&c.strict == 0 {
				if v, ok := float32Value(buf, s, e); ok {
					out[i] = v
					continue
				}
			}
			out[i] = float32(c.slowFloat(buf, cell, i, 32))
		}
	case arrow.TIME64:
		appendParsed(c, fresh[int64](c, len(cells)), buf, cells, columnar.ParseTime[[]byte])
	case arrow.INTERVAL_MONTH_DAY_NANO:
		appendParsed(c, fresh[arrow.MonthDayNanoInterval](c, len(cells)), buf, cells, func(text []byte) (arrow.MonthDayNanoInterval, bool) {
			v, err := columnar.ParseInterval(string(text))
			return v, err == nil
		})
	default:
		panic("bug: column of " + c.dt.String())
	}
}

// appendParsed fills a type that JSON writes in quotes.
func appendParsed[T any](c *Column, out []T, buf []byte, cells []Cell, parse func([]byte) (T, bool)) {
	var zero T
	for i, cell := range cells {
		out[i] = zero
		text, null, ok := c.text(buf, cell)
		if null {
			c.setNull(c.n + i)
			continue
		}
		ok = ok && (!c.rules.JSON || cell&quoted != 0)
		if ok {
			out[i], ok = parse(text)
		}
		if !ok {
			out[i] = zero
			c.setBad(i)
		}
	}
}

// shortText is what is copied of a text at once, at most Pad.
const shortText = 16

func (c *Column) appendText(buf []byte, cells []Cell) {
	total := 0
	for _, cell := range cells {
		s, e := cell.Span()
		total += e - s
	}
	c.reserveText(total)
	ends := arrow.Int32Traits.CastFromBytes(c.offsets.Buf())[c.n+1 : c.n+1+len(cells)]
	data := c.data.Buf()[:c.data.Cap()]
	used, from := c.used, c.used
	for i, cell := range cells {
		s, e := cell.Span()
		n := e - s
		switch {
		case cell&escaped != 0 || n == 0 && cell&quoted == 0:
			used = c.slowText(data, used, buf, cell, i)
		case n <= shortText:
			// One copy of a fixed size, into room that is there and will be
			// overwritten, costs less than a call.
			*(*[shortText]byte)(data[used:]) = *(*[shortText]byte)(buf[s:])
			used += n
		default:
			used += copy(data[used:], buf[s:e])
		}
		ends[i] = int32(used)
	}
	c.used = used
	if c.dt.ID() == arrow.STRING && hasHighBit(data[from:used]) {
		c.checkText(data, from, ends)
	} else if c.dt.ID() == arrow.BINARY {
		c.decodeBinary(data, from, ends, cells)
	}
}

// slowText writes a cell that is null, has an escape, or nothing in it.
func (c *Column) slowText(data []byte, used int, buf []byte, cell Cell, i int) int {
	if s, e := cell.Span(); cell == Absent || s == e {
		if cell == Absent || c.rules.EmptyIsNull {
			c.setNull(c.n + i)
		}
		return used
	}
	// An escape never makes a text longer, so this stays inside the room reserved.
	text, ok := c.rules.AppendText(data[used:used:len(data)], buf, cell)
	if !ok {
		c.setBad(i)
		return used
	}
	return used + len(text)
}

// checkText finds rows that are not UTF-8. What they hold is overwritten, for Arrow
// promises UTF-8 even where nobody looks.
func (c *Column) checkText(data []byte, from int, ends []int32) {
	start := from
	for i, end := range ends {
		if text := data[start:end]; !utf8.Valid(text) {
			for k := range text {
				text[k] = '?'
			}
			c.setBad(i)
		}
		start = int(end)
	}
}

// decodeBinary replaces the text of BINARY values by what it stands for: base64 in
// JSON; in CSV the bytes themselves, \xHH being one. Both only ever get shorter.
func (c *Column) decodeBinary(data []byte, from int, ends []int32, cells []Cell) {
	start, to := from, from
	for i, end := range ends {
		text := data[start:end]
		start = int(end)
		if c.rules.JSON {
			n, err := base64.StdEncoding.Decode(text, text)
			if err != nil || cells[i]&quoted == 0 {
				n = 0
				c.setBad(i)
			}
			to += copy(data[to:], text[:n])
		} else {
			to += copy(data[to:], columnar.UnescapeBinary(text))
		}
		ends[i] = int32(to)
	}
	c.used = to
}
