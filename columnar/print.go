package columnar

import (
	"bytes"
	"encoding/base64"
	"math"
	"math/bits"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/decimal128"
)

// AppendValue appends the text of value i of a, as CSV files and the CLI write it:
// timestamps YYYY-MM-DD HH:MM:SS[.ffffff] on the clock of loc (nil is UTC), floats in the
// shortest form that reads back, decimals exactly, nested values as JSON. A null appends
// nothing.
func AppendValue(dst []byte, a arrow.Array, i int, loc *time.Location) []byte {
	if IsNull(a, i) {
		return dst
	}
	switch a := a.(type) {
	case *array.Timestamp:
		return AppendTimestamp(dst, int64(a.Value(i)), loc)
	case *array.String:
		return append(dst, a.Value(i)...)
	case *array.Binary:
		return appendBinary(dst, a.Value(i))
	case *array.Dictionary:
		return AppendValue(dst, a.Dictionary(), a.GetValueIndex(i), loc)
	case *array.Float64:
		return AppendFloat(dst, a.Value(i), 64)
	case *array.Float32:
		return AppendFloat(dst, float64(a.Value(i)), 32)
	case *array.Date32:
		return AppendDate(dst, int64(a.Value(i)))
	case *array.Time64:
		return AppendTime(dst, int64(a.Value(i)))
	case *array.MonthDayNanoInterval:
		return AppendInterval(dst, a.Value(i))
	}
	return AppendJSON(dst, a, i)
}

// AppendText appends the text of value i of a that CAST AS VARCHAR gives: that of
// AppendValue, but for floats, which Spark writes so that they are told from integers
// (42.0, 1.0E10), in nested values too, and for the fractions of seconds, which have no
// more digits than they need (10:00:00.5).
func AppendText(dst []byte, a arrow.Array, i int, loc *time.Location) []byte {
	switch t := a.(type) {
	case *array.Dictionary:
		if IsNull(a, i) {
			return dst
		}
		return AppendText(dst, t.Dictionary(), t.GetValueIndex(i), loc)
	case *array.Float64:
		if t.IsNull(i) {
			return dst
		}
		return appendTextFloat(dst, t.Value(i), 64)
	case *array.Float32:
		if t.IsNull(i) {
			return dst
		}
		return appendTextFloat(dst, float64(t.Value(i)), 32)
	case *array.Timestamp, *array.Time64:
		return trimFraction(AppendValue(dst, a, i, loc), len(dst))
	case *array.List, *array.Struct, *array.Map:
		if IsNull(a, i) {
			return dst
		}
		return AppendTextJSON(dst, a, i)
	}
	return AppendValue(dst, a, i, loc)
}

// trimFraction cuts the zeros at the end of dst[from:], the text of a time with or without
// a fraction.
func trimFraction(dst []byte, from int) []byte {
	if bytes.IndexByte(dst[from:], '.') < 0 {
		return dst
	}
	return bytes.TrimRight(dst, "0")
}

// AppendTextJSON is AppendJSON with floats as AppendText writes them.
func AppendTextJSON(dst []byte, a arrow.Array, i int) []byte {
	return appendJSON(dst, a, i, appendTextFloat)
}

// AppendJSON appends value i of a as JSON: timestamps as ISO 8601 text with Z,
// decimals as numbers, binary as base64, floats that are not finite as text,
// structs as objects, maps as objects with their keys as text; null is null.
func AppendJSON(dst []byte, a arrow.Array, i int) []byte {
	return appendJSON(dst, a, i, AppendFloat)
}

// floatText appends a float of 32 or 64 bits.
type floatText func(dst []byte, v float64, bits int) []byte

func appendJSON(dst []byte, a arrow.Array, i int, float floatText) []byte {
	if IsNull(a, i) {
		return append(dst, "null"...)
	}
	switch a := a.(type) {
	case *array.Boolean:
		return strconv.AppendBool(dst, a.Value(i))
	case *array.Int8:
		return strconv.AppendInt(dst, int64(a.Value(i)), 10)
	case *array.Int16:
		return strconv.AppendInt(dst, int64(a.Value(i)), 10)
	case *array.Int32:
		return strconv.AppendInt(dst, int64(a.Value(i)), 10)
	case *array.Int64:
		return strconv.AppendInt(dst, a.Value(i), 10)
	case *array.Float32:
		return appendJSONFloat(dst, float64(a.Value(i)), 32, float)
	case *array.Float64:
		return appendJSONFloat(dst, a.Value(i), 64, float)
	case *array.Decimal128:
		return AppendDecimal(dst, a.Value(i), a.DataType().(*arrow.Decimal128Type).Scale)
	case *array.String:
		return AppendJSONString(dst, a.Value(i))
	case *array.Binary:
		dst = append(dst, '"')
		dst = base64.StdEncoding.AppendEncode(dst, a.Value(i))
		return append(dst, '"')
	case *array.Timestamp:
		dst = append(dst, '"')
		dst = appendInstant(dst, int64(a.Value(i)))
		return append(dst, '"')
	case *array.Dictionary:
		return appendJSON(dst, a.Dictionary(), a.GetValueIndex(i), float)
	}
	return appendJSONNested(dst, a, i, float)
}

func appendJSONNested(dst []byte, a arrow.Array, i int, float floatText) []byte {
	switch a := a.(type) {
	case *array.Date32, *array.Time64, *array.MonthDayNanoInterval:
		dst = append(dst, '"')
		dst = AppendValue(dst, a, i, nil)
		return append(dst, '"')
	case *array.Map:
		from, to := a.ValueOffsets(i)
		dst = append(dst, '{')
		for j := from; j < to; j++ {
			if j > from {
				dst = append(dst, ',')
			}
			dst = appendJSONKey(dst, a.Keys(), int(j), float)
			dst = append(dst, ':')
			dst = appendJSON(dst, a.Items(), int(j), float)
		}
		return append(dst, '}')
	case *array.List:
		from, to := a.ValueOffsets(i)
		dst = append(dst, '[')
		for j := from; j < to; j++ {
			if j > from {
				dst = append(dst, ',')
			}
			dst = appendJSON(dst, a.ListValues(), int(j), float)
		}
		return append(dst, ']')
	case *array.Struct:
		dst = append(dst, '{')
		for k, f := range a.DataType().(*arrow.StructType).Fields() {
			if k > 0 {
				dst = append(dst, ',')
			}
			dst = AppendJSONString(dst, f.Name)
			dst = append(dst, ':')
			dst = appendJSON(dst, a.Field(k), i, float)
		}
		return append(dst, '}')
	}
	return AppendJSONString(dst, a.ValueStr(i))
}

// appendJSONKey writes a map key, which JSON wants as text.
func appendJSONKey(dst []byte, keys arrow.Array, i int, float floatText) []byte {
	switch keys.DataType().ID() {
	case arrow.STRING, arrow.TIMESTAMP, arrow.DATE32, arrow.TIME64, arrow.BINARY, arrow.INTERVAL_MONTH_DAY_NANO:
		return AppendJSON(dst, keys, i)
	}
	key := appendJSON(nil, keys, i, float)
	if key[0] == '"' { // a number that is none in JSON
		return append(dst, key...)
	}
	return AppendJSONString(dst, string(key))
}

func appendJSONFloat(dst []byte, v float64, bits int, float floatText) []byte {
	if math.IsNaN(v) || math.IsInf(v, 0) {
		dst = append(dst, '"')
		dst = float(dst, v, bits)
		return append(dst, '"')
	}
	return float(dst, v, bits)
}

const (
	hexDigits = "0123456789abcdef"
	upperHex  = "0123456789ABCDEF"
)

// AppendJSONString appends s in quotes, escaping what JSON demands and nothing
// else; bytes that are not UTF-8 become U+FFFD.
func AppendJSONString[T StringOrBytes](dst []byte, s T) []byte {
	t := text(s)
	dst = append(dst, '"')
	from := 0
	for i := 0; i < len(t); {
		c := t[i]
		if c >= utf8.RuneSelf {
			r, size := utf8.DecodeRuneInString(t[i:])
			if r == utf8.RuneError && size == 1 {
				dst = append(dst, t[from:i]...)
				dst = append(dst, "\uFFFD"...)
				from = i + 1
			}
			i += size
			continue
		}
		if c >= ' ' && c != '"' && c != '\\' {
			i++
			continue
		}
		dst = append(dst, t[from:i]...)
		switch c {
		case '"', '\\':
			dst = append(dst, '\\', c)
		case '\n':
			dst = append(dst, '\\', 'n')
		case '\r':
			dst = append(dst, '\\', 'r')
		case '\t':
			dst = append(dst, '\\', 't')
		default:
			dst = append(dst, '\\', 'u', '0', '0', hexDigits[c>>4], hexDigits[c&15])
		}
		i++
		from = i
	}
	dst = append(dst, t[from:]...)
	return append(dst, '"')
}

// AppendFloat appends the shortest text that reads back as v, with an exponent for
// very large and very small values; NaN, Infinity, -Infinity. bits is 32 or 64.
func AppendFloat(dst []byte, v float64, bits int) []byte {
	switch {
	case math.IsNaN(v):
		return append(dst, "NaN"...)
	case math.IsInf(v, 1):
		return append(dst, "Infinity"...)
	case math.IsInf(v, -1):
		return append(dst, "-Infinity"...)
	}
	if abs := math.Abs(v); abs != 0 && (abs < 1e-6 || abs >= 1e21) {
		return strconv.AppendFloat(dst, v, 'e', -1, bits)
	}
	return strconv.AppendFloat(dst, v, 'f', -1, bits)
}

// appendTextFloat appends the shortest digits that read back as v, at least one of them
// behind the point, with an exponent below 0.001 and from 10,000,000; NaN, Infinity,
// -Infinity. bits is 32 or 64.
func appendTextFloat(dst []byte, v float64, bits int) []byte {
	abs := math.Abs(v)
	if math.IsNaN(v) || math.IsInf(v, 0) {
		return AppendFloat(dst, v, bits)
	}
	from := len(dst)
	if abs != 0 && (abs < 1e-3 || abs >= 1e7) {
		return appendExponent(strconv.AppendFloat(dst, v, 'e', -1, bits), from)
	}
	dst = strconv.AppendFloat(dst, v, 'f', -1, bits)
	if bytes.IndexByte(dst[from:], '.') < 0 {
		dst = append(dst, ".0"...)
	}
	return dst
}

// appendExponent makes 1.0E10 of dst[from:], which is 1e+10, and 1.5E-7 of 1.5e-07.
func appendExponent(dst []byte, from int) []byte {
	mantissa, exponent, _ := strings.Cut(string(dst[from:]), "e")
	dst = append(dst[:from], mantissa...)
	if strings.IndexByte(mantissa, '.') < 0 {
		dst = append(dst, ".0"...)
	}
	dst = append(dst, 'E')
	if exponent[0] == '-' {
		dst = append(dst, '-')
	}
	return append(dst, strings.TrimLeft(exponent[1:], "0")...)
}

// AppendDecimal appends a decimal exactly, with scale digits after the point.
func AppendDecimal(dst []byte, v decimal128.Num, scale int32) []byte {
	if v.Sign() < 0 {
		dst = append(dst, '-')
		v = v.Negate()
	}
	var digits [40]byte
	at := len(digits)
	for v.HighBits() != 0 {
		q, rem := divideBillions(v)
		v = q
		for range 18 {
			at--
			digits[at] = byte('0' + rem%10)
			rem /= 10
		}
	}
	for low := v.LowBits(); low > 0; low /= 10 {
		at--
		digits[at] = byte('0' + low%10)
	}
	for len(digits)-at <= int(scale) { // at least one digit before the point
		at--
		digits[at] = '0'
	}
	point := len(digits) - int(scale)
	dst = append(dst, digits[at:point]...)
	if scale > 0 {
		dst = append(dst, '.')
		dst = append(dst, digits[point:]...)
	}
	return dst
}

// divideBillions is v, not negative, divided by 1e18, and the remainder.
func divideBillions(v decimal128.Num) (q decimal128.Num, rem uint64) {
	const d = 1_000_000_000_000_000_000
	hi := uint64(v.HighBits())
	qhi, r := hi/d, hi%d
	qlo, rem := bits.Div64(r, v.LowBits(), d)
	return decimal128.New(int64(qhi), qlo), rem
}

// AppendDate appends YYYY-MM-DD, with the year as AppendYear writes it.
func AppendDate(dst []byte, days int64) []byte {
	year, month, day := CivilFromDays(days)
	if 0 <= year && year <= 9999 {
		dst = appendTwo(dst, int(year/100))
		dst = appendTwo(dst, int(year%100))
	} else {
		dst = AppendYear(dst, year, 4)
	}
	dst = append(dst, '-')
	dst = appendTwo(dst, month)
	dst = append(dst, '-')
	return appendTwo(dst, day)
}

// AppendYear appends a year with at least width digits, as ISO 8601 has it: years before 0,
// and those that need more than width digits, have a sign, so that they cannot be taken for
// a shorter one and what follows. Fewer than four digits are no such form and take no plus.
func AppendYear(dst []byte, year int64, width int) []byte {
	abs := max(year, -year)
	digits := len(strconv.AppendInt(make([]byte, 0, 20), abs, 10))
	switch {
	case year < 0:
		dst = append(dst, '-')
	case digits > width && width >= 4:
		dst = append(dst, '+')
	}
	for ; digits < width; digits++ {
		dst = append(dst, '0')
	}
	return strconv.AppendInt(dst, abs, 10)
}

func appendTwo(dst []byte, v int) []byte {
	return append(dst, byte('0'+v/10%10), byte('0'+v%10))
}

// AppendTime appends HH:MM:SS, and .ffffff if there is a fraction.
func AppendTime(dst []byte, us int64) []byte {
	s := us / MicrosPerSecond
	dst = appendTwo(dst, int(s/3600))
	dst = append(dst, ':')
	dst = appendTwo(dst, int(s/60%60))
	dst = append(dst, ':')
	dst = appendTwo(dst, int(s%60))
	if f := us % MicrosPerSecond; f != 0 {
		dst = append(dst, '.')
		dst = appendTwo(dst, int(f/10000))
		dst = appendTwo(dst, int(f/100%100))
		dst = appendTwo(dst, int(f%100))
	}
	return dst
}

// AppendTimestamp appends YYYY-MM-DD HH:MM:SS[.ffffff] on the clock of loc; nil is UTC.
func AppendTimestamp(dst []byte, us int64, loc *time.Location) []byte {
	days, us := LocalDay(us, loc)
	dst = AppendDate(dst, days)
	dst = append(dst, ' ')
	return AppendTime(dst, us)
}

// AppendStoredTimestamp is AppendTimestamp for text that is read again: where the clock of
// loc shows the same twice, having been put back, and the text alone is the other instant,
// the offset from UTC stands behind it.
func AppendStoredTimestamp(dst []byte, us int64, loc *time.Location) []byte {
	dst = AppendTimestamp(dst, us, loc)
	if IsUTC(loc) {
		return dst
	}
	offset := zoneOffset(us, loc)
	if wall := us + offset; FromLocal(wall, loc) == us {
		return dst
	}
	layout := "-07:00"
	if offset%MicrosPerMinute != 0 {
		layout += ":00"
	}
	return time.Time{}.In(time.FixedZone("", int(offset/MicrosPerSecond))).AppendFormat(dst, layout)
}

// appendInstant appends YYYY-MM-DDTHH:MM:SS[.ffffff]Z.
func appendInstant(dst []byte, us int64) []byte {
	dst = AppendDate(dst, FloorDiv(us, MicrosPerDay))
	dst = append(dst, 'T')
	dst = AppendTime(dst, FloorMod(us, MicrosPerDay))
	return append(dst, 'Z')
}

// AppendInterval appends what ParseInterval reads: 1 year 2 months 3 days 04:05:06.5.
func AppendInterval(dst []byte, v arrow.MonthDayNanoInterval) []byte {
	start := len(dst)
	part := func(n int64, unit string) {
		if n == 0 {
			return
		}
		if len(dst) > start {
			dst = append(dst, ' ')
		}
		dst = strconv.AppendInt(dst, n, 10)
		dst = append(dst, ' ')
		dst = append(dst, unit...)
		if n != 1 && n != -1 {
			dst = append(dst, 's')
		}
	}
	part(int64(v.Months/12), "year")
	part(int64(v.Months%12), "month")
	part(int64(v.Days), "day")
	if v.Nanoseconds == 0 && len(dst) > start {
		return dst
	}
	if len(dst) > start {
		dst = append(dst, ' ')
	}
	ns := uint64(v.Nanoseconds)
	if v.Nanoseconds < 0 {
		dst = append(dst, '-')
		ns = -ns
	}
	s := ns / 1e9
	if s < 36000 {
		dst = append(dst, '0')
	}
	dst = strconv.AppendUint(dst, s/3600, 10)
	dst = append(dst, ':')
	dst = appendTwo(dst, int(s/60%60))
	dst = append(dst, ':')
	dst = appendTwo(dst, int(s%60))
	if f := ns % 1e9; f != 0 {
		digits := strconv.FormatUint(1e9+f, 10)[1:]
		dst = append(dst, '.')
		dst = append(dst, strings.TrimRight(digits, "0")...)
	}
	return dst
}

// appendBinary writes printable ASCII as it is and every other byte as \xHH.
func appendBinary(dst, v []byte) []byte {
	for _, c := range v {
		if c >= ' ' && c < 0x7f && c != '\\' {
			dst = append(dst, c)
		} else {
			dst = append(dst, '\\', 'x', upperHex[c>>4], upperHex[c&15])
		}
	}
	return dst
}

// TextOptions say how Text writes batches.
type TextOptions struct {
	Ordered  bool           // keep the order of rows; otherwise the lines are sorted
	Untyped  bool           // column names alone in the header
	Location *time.Location // the clock of timestamps, YYYY-MM-DD HH:MM:SS; nil is RFC 3339 in UTC
}

// Text writes batches as the canonical text of golden files and of the CLI's table
// output: a header name:type, columns padded and two spaces apart, null as NULL,
// the empty text as "", other text quoted only where it would be ambiguous.
func Text(schema *arrow.Schema, batches []arrow.RecordBatch, o TextOptions) string {
	header := make([]string, schema.NumFields())
	for i, f := range schema.Fields() {
		header[i] = string(appendCanonicalText(nil, f.Name))
		if !o.Untyped {
			header[i] += ":" + strings.ToLower(TypeName(f.Type))
		}
	}
	var rows [][]string
	for _, b := range batches {
		for i := range int(b.NumRows()) {
			row := make([]string, b.NumCols())
			for c := range row {
				row[c] = string(AppendCanonical(nil, b.Column(c), i, o.Location))
			}
			rows = append(rows, row)
		}
	}
	if !o.Ordered {
		slices.SortStableFunc(rows, slices.Compare[[]string])
	}
	return align(append([][]string{header}, rows...))
}

// align pads every column but the last to its widest cell.
func align(rows [][]string) string {
	widths := make([]int, len(rows[0]))
	for _, row := range rows {
		for c, cell := range row {
			widths[c] = max(widths[c], utf8.RuneCountInString(cell))
		}
	}
	var out strings.Builder
	for _, row := range rows {
		for c, cell := range row {
			out.WriteString(cell)
			if c < len(row)-1 {
				out.WriteString(strings.Repeat(" ", widths[c]-utf8.RuneCountInString(cell)+2))
			}
		}
		out.WriteByte('\n')
	}
	return out.String()
}

// AppendCanonical appends value i of a as Text writes it. loc is the clock of
// timestamps; nil writes them as RFC 3339 in UTC.
func AppendCanonical(dst []byte, a arrow.Array, i int, loc *time.Location) []byte {
	if IsNull(a, i) {
		return append(dst, "NULL"...)
	}
	switch a := a.(type) {
	case *array.String:
		return appendCanonicalText(dst, a.Value(i))
	case *array.Binary:
		return appendCanonicalText(dst, string(appendBinary(nil, a.Value(i))))
	case *array.Dictionary:
		return AppendCanonical(dst, a.Dictionary(), a.GetValueIndex(i), loc)
	case *array.Timestamp:
		if loc == nil {
			return appendInstant(dst, int64(a.Value(i)))
		}
	}
	return AppendValue(dst, a, i, loc)
}

// appendCanonicalText quotes a text that could be taken for something else.
func appendCanonicalText(dst []byte, s string) []byte {
	ambiguous := s == "" || s == "NULL" || strings.IndexByte("\"[{ ", s[0]) >= 0 || s[len(s)-1] == ' ' ||
		strings.Contains(s, "  ") || !utf8.ValidString(s)
	for i := 0; i < len(s) && !ambiguous; i++ {
		ambiguous = s[i] < ' ' || s[i] == 0x7f
	}
	if ambiguous {
		return strconv.AppendQuote(dst, s)
	}
	return append(dst, s...)
}
