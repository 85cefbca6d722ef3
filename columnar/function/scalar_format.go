package function

import (
	"cmp"
	"errors"
	"fmt"
	"math"
	"math/big"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/decimal128"

	"github.com/tidemill/tidemill/columnar"
	"github.com/tidemill/tidemill/columnar/kernel"
)

// formatBracesScalar is format(text with {}, values …), in the little language of Python
// and the C++ library fmt.
func formatBracesScalar() *Scalar {
	bind := func(types []arrow.DataType, constants []arrow.Array) (Kernel, error) {
		if text, ok := constantText(constants, 0); ok {
			parts, err := parseBraces(text, "")
			for _, p := range parts {
				err = cmp.Or(err, p.check(types[1:]))
			}
			if err != nil {
				return nil, err
			}
		}
		return onRows(columnar.String, func(c *call) (arrow.Array, error) {
			formats, cache := kernel.TextsOf(c.args[0]), newCompiled(parseBraces)
			return c.text(formats.Size(c.rows)*2, func(dst []byte, i int) ([]byte, error) {
				parts, err := cache.get(formats.At(i), "")
				if err != nil {
					return dst, err
				}
				for _, p := range parts {
					if err := p.check(types[1:]); err != nil {
						return dst, err
					}
					dst = c.appendBraces(dst, p, i)
				}
				return dst, nil
			})
		}), nil
	}
	return &Scalar{Name: "format", Doc: "A text in which {} stand for the values that follow, one after another or by number as {0}, with a format as in Python after a colon: {:>8}, {:05d}, {:.2f}, {:,}, {:x}, {:e}. {{ and }} are braces.", Example: "format('{} of {:05.1f}', 'a', 2.5) = a of 002.5", Overloads: []Overload{
		{Args: []Matcher{varchar}, Result: always(columnar.String), Fallible: true, Bind: bind},
		{Args: []Matcher{varchar, anyType}, Variadic: true, Result: always(columnar.String), Fallible: true, Bind: bind},
	}}
}

// brace is a text, and an argument behind it with its format.
type brace struct {
	text      string
	arg       int // -1: none
	fill      rune
	align     byte // '<', '>' or '^'; 0: as the type is
	sign      byte // '+', ' ' or 0
	alternate bool
	grouped   bool
	width     int
	precision int // -1: none
	kind      byte
}

const maxBraceWidth = 1 << 16

func parseBraces(format, _ string) ([]brace, error) {
	bad := func(what string) error { return fmt.Errorf("format %q: %s; write {{ and }} for braces", format, what) }
	var parts []brace
	var text strings.Builder
	next := 0
	for rest := format; ; {
		at := strings.IndexAny(rest, "{}")
		if at < 0 {
			text.WriteString(rest)
			return append(parts, brace{text: text.String(), arg: -1}), nil
		}
		text.WriteString(rest[:at])
		c := rest[at]
		rest = rest[at+1:]
		if strings.HasPrefix(rest, string(c)) {
			text.WriteByte(c)
			rest = rest[1:]
			continue
		}
		end := strings.IndexByte(rest, '}')
		if c == '}' || end < 0 {
			return nil, bad("a brace stands alone")
		}
		number, spec, _ := strings.Cut(rest[:end], ":")
		p, ok := parseBraceSpec(spec)
		if !ok {
			return nil, bad(fmt.Sprintf("{%s} is unknown", rest[:end]))
		}
		if p.arg = next; number != "" {
			n, err := strconv.ParseUint(number, 10, 16)
			if err != nil {
				return nil, bad(fmt.Sprintf("{%s} is unknown", rest[:end]))
			}
			p.arg = int(n)
		}
		next++
		p.text = text.String()
		text.Reset()
		parts, rest = append(parts, p), rest[end+1:]
	}
}

// parseBraceSpec reads [[fill]align][sign][#][0][width][,][.precision][type].
func parseBraceSpec(s string) (p brace, ok bool) {
	p = brace{fill: ' ', precision: -1}
	if r, n := utf8.DecodeRuneInString(s); n > 0 && len(s) > n && strings.IndexByte("<>^", s[n]) >= 0 {
		p.fill, p.align, s = r, s[n], s[n+1:]
	} else if s != "" && strings.IndexByte("<>^", s[0]) >= 0 {
		p.align, s = s[0], s[1:]
	}
	take := func(set string) byte {
		if s == "" || strings.IndexByte(set, s[0]) < 0 {
			return 0
		}
		b := s[0]
		s = s[1:]
		return b
	}
	number := func() (int, bool) {
		n := 0
		for s != "" && s[0] >= '0' && s[0] <= '9' && n < maxBraceWidth {
			n = n*10 + int(s[0]-'0')
			s = s[1:]
		}
		return n, n < maxBraceWidth
	}
	p.sign = take("+- ")
	p.alternate = take("#") != 0
	if take("0") != 0 && p.align == 0 {
		p.fill, p.align = '0', '='
	}
	if p.width, ok = number(); !ok {
		return p, false
	}
	p.grouped = take(",") != 0
	if take(".") != 0 {
		if s == "" || s[0] < '0' || s[0] > '9' {
			return p, false
		}
		if p.precision, ok = number(); !ok || p.precision > 1000 {
			return p, false
		}
	}
	p.kind = take("sdboxXeEfFgG")
	return p, s == ""
}

// check says what is wrong with p for values of the given types.
func (p brace) check(types []arrow.DataType) error {
	switch {
	case p.arg < 0:
		return nil
	case p.arg >= len(types):
		return fmt.Errorf("format has no value for {%d}; there are %d", p.arg, len(types))
	}
	dt := types[p.arg]
	switch {
	case !columnar.IsNumeric(dt):
		if p.kind != 0 && p.kind != 's' && dt.ID() != arrow.NULL {
			return fmt.Errorf("format {:%c} takes a number, not %s", p.kind, columnar.TypeName(dt))
		}
	case p.kind == 's':
		return errors.New("format {:s} takes a text, not a number")
	case strings.IndexByte("dboxX", p.kind) >= 0 && !columnar.IsInteger(dt):
		return fmt.Errorf("format {:%c} takes an integer, not %s", p.kind, columnar.TypeName(dt))
	}
	return nil
}

// appendBraces appends a part of a format, which was checked, with its argument in row i.
func (c *call) appendBraces(dst []byte, p brace, i int) []byte {
	dst = append(dst, p.text...)
	if p.arg < 0 {
		return dst
	}
	a, row := c.args[p.arg+1].Array(), c.place(p.arg+1, i)
	if columnar.IsNumeric(a.DataType()) {
		return p.pad(dst, p.number(columnar.Value(a, row), a, row), '>')
	}
	body := columnar.AppendText(nil, a, row, c.env.Location)
	if p.precision >= 0 {
		if r := []rune(string(body)); len(r) > p.precision {
			body = []byte(string(r[:p.precision]))
		}
	}
	return p.pad(dst, string(body), '<')
}

// number writes a number, with its sign in front.
func (p brace) number(v any, a arrow.Array, row int) string {
	var body string
	switch p.kind {
	case 'd', 'b', 'o', 'x', 'X':
		n, _ := new(big.Int).SetString(fmt.Sprint(v), 10)
		base := map[byte]int{'d': 10, 'b': 2, 'o': 8, 'x': 16, 'X': 16}[p.kind]
		body = n.Text(base)
		if p.kind == 'X' {
			body = strings.ToUpper(body)
		}
		if p.alternate && base != 10 {
			sign := strings.TrimSuffix(body, strings.TrimPrefix(body, "-"))
			body = sign + "0" + string(p.kind) + strings.TrimPrefix(body, "-")
		}
	case 'f', 'F', 'e', 'E', 'g', 'G':
		body = p.fixed(v, a, row)
	default:
		if p.precision >= 0 {
			p.kind = 'g'
			body = p.fixed(v, a, row)
			break
		}
		body = string(columnar.AppendText(nil, a, row, nil))
	}
	if p.grouped {
		body = groupThousands(body)
	}
	if (p.sign == '+' || p.sign == ' ') && !strings.HasPrefix(body, "-") {
		body = string(p.sign) + body
	}
	return body
}

// fixed writes a number as e, f or g say; a decimal with f exactly.
func (p brace) fixed(v any, a arrow.Array, row int) string {
	precision := p.precision
	if precision < 0 {
		precision = 6
	}
	if d, ok := v.(decimal128.Num); ok && p.kind|0x20 == 'f' {
		scale := a.DataType().(*arrow.Decimal128Type).Scale
		r := new(big.Rat).SetFrac(d.BigInt(), new(big.Int).Exp(big.NewInt(10), big.NewInt(int64(scale)), nil))
		return r.FloatString(precision)
	}
	f, ok := v.(float64)
	switch x := v.(type) {
	case float32:
		f = float64(x)
	case decimal128.Num:
		f, _ = strconv.ParseFloat(string(columnar.AppendDecimal(nil, x, a.DataType().(*arrow.Decimal128Type).Scale)), 64)
	default:
		if !ok {
			f, _ = strconv.ParseFloat(fmt.Sprint(v), 64)
		}
	}
	switch {
	case math.IsNaN(f):
		return "nan"
	case math.IsInf(f, 0):
		return strings.TrimPrefix(strings.ToLower(strconv.FormatFloat(f, 'g', -1, 64)), "+")
	}
	if kind := p.kind; kind|0x20 != 'f' {
		return fmt.Sprintf("%."+strconv.Itoa(precision)+string(kind), f)
	}
	return strconv.FormatFloat(f, 'f', precision, 64)
}

// groupThousands puts commas between the digits before the point.
func groupThousands(s string) string {
	from := 0
	for from < len(s) && (s[from] < '0' || s[from] > '9') {
		from++
	}
	to := from
	for to < len(s) && s[to] >= '0' && s[to] <= '9' {
		to++
	}
	var b strings.Builder
	b.WriteString(s[:from])
	for i := from; i < to; i++ {
		if i > from && (to-i)%3 == 0 {
			b.WriteByte(',')
		}
		b.WriteByte(s[i])
	}
	return b.String() + s[to:]
}

// pad brings a text to the width, where else it says nothing, aligned as its type is.
func (p brace) pad(dst []byte, body string, align byte) []byte {
	missing := p.width - utf8.RuneCountInString(body)
	if missing <= 0 {
		return append(dst, body...)
	}
	if p.align != 0 {
		align = p.align
	}
	fill := func(n int) {
		for range n {
			dst = utf8.AppendRune(dst, p.fill)
		}
	}
	switch align {
	case '=': // zeros between the sign and the digits
		sign := 0
		if strings.IndexByte("+- ", body[0]) >= 0 {
			sign = 1
		}
		dst = append(dst, body[:sign]...)
		fill(missing)
		return append(dst, body[sign:]...)
	case '<':
		dst = append(dst, body...)
		fill(missing)
	case '^':
		fill(missing / 2)
		dst = append(dst, body...)
		fill(missing - missing/2)
	default:
		fill(missing)
		dst = append(dst, body...)
	}
	return dst
}
