package function

import (
	"fmt"
	"math/big"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/apache/arrow-go/v18/arrow"

	"github.com/tidemill/tidemill/columnar"
	"github.com/tidemill/tidemill/columnar/kernel"
)

// printfScalar formats as java.util.Formatter does, which is what Spark documents.
func printfScalar() *Scalar {
	bind := func(args []arrow.DataType, constants []arrow.Array) (Kernel, error) {
		if s, ok := constantText(constants, 0); ok {
			if _, err := compileVerbs(s, args); err != nil {
				return nil, err
			}
		}
		return onAllRows(columnar.String, func(c *call) (arrow.Array, error) { return c.formatted(args) }), nil
	}
	form := func(variadic bool, args ...Matcher) Overload {
		return Overload{Args: args, Variadic: variadic, Result: always(columnar.String), NullSafe: true, Fallible: true, Bind: bind}
	}
	return &Scalar{Name: "printf", Aliases: []string{"format_string"}, Doc: "A text in which %s (a text), %d (an integer), %x and %o (its bits in base 16 and 8), %f, %e and %g (a number with so many digits after the point; with an exponent; as is shorter), %b (true or false) and %c (a character by its number) stand for the arguments in order, with Java's flags (- + 0 , blank and parenthesis), width and precision; %2$s is the second argument, %n a line end, %% is %. A null argument is written null.",
		Example: "printf('%s is %05.2f', 'pi', 3.14159e0) = pi is 03.14", Overloads: []Overload{form(true, varchar, anyType), form(false, varchar)}}
}

// formatted writes the arguments after the first, of the types args, as its patterns say.
func (c *call) formatted(args []arrow.DataType) (arrow.Array, error) {
	cache := newCompiled(func(s, _ string) ([]verb, error) { return compileVerbs(s, args) })
	patterns, only := kernel.TextsOf(c.args[0]), *c
	only.args = c.args[:1] // whose null makes the result null
	return only.text(c.rows*32, func(dst []byte, i int) ([]byte, error) {
		verbs, err := cache.get(patterns.At(i), "")
		for _, v := range verbs {
			if err == nil {
				dst, err = c.appendVerb(dst, v, i)
			}
		}
		return dst, err
	})
}

// verb is a piece of a pattern: a literal text (kind 0), or how to write an argument.
type verb struct {
	kind      byte // s d x o f e g b c
	text      string
	flags     string
	width     int
	precision int // -1 if not given
	upper     bool
	arg       int
}

func (v *verb) has(flag byte) bool { return strings.IndexByte(v.flags, flag) >= 0 }

// compileVerbs takes a pattern apart; args are the types of the call.
func compileVerbs(pattern string, args []arrow.DataType) ([]verb, error) {
	var verbs []verb
	last := 0 // argument written
	for next := 1; pattern != ""; {
		text, rest, found := strings.Cut(pattern, "%")
		if text != "" {
			verbs = append(verbs, verb{text: text})
		}
		if !found {
			break
		}
		v, explicit, after, err := parseVerb(rest)
		if err != nil {
			return nil, err
		}
		written := "%" + rest[:len(rest)-len(after)]
		pattern = after
		if v.kind == 0 {
			verbs = append(verbs, v)
			continue
		}
		switch explicit {
		case 0:
			v.arg = next
			next++
		case sameArgument:
			v.arg = last
		default:
			v.arg = explicit
		}
		if v.arg < 1 || v.arg >= len(args) {
			return nil, fmt.Errorf("printf: %q has no argument", written)
		}
		if what := v.takes(args[v.arg]); what != "" {
			return nil, fmt.Errorf("printf: %q takes %s, not %s; cast the argument", written, what, columnar.TypeName(args[v.arg]))
		}
		last = v.arg
		verbs = append(verbs, v)
	}
	return verbs, nil
}

// sameArgument is the number of an argument that is the one before once more: %<s.
const sameArgument = -1

// parseVerb reads what follows a %: an argument's number, flags, width, precision, verb.
func parseVerb(s string) (v verb, explicit int, rest string, err error) {
	bad := func(why string) (verb, int, string, error) {
		return verb{}, 0, "", fmt.Errorf("printf: %s in %q; known are %%s %%d %%x %%o %%f %%e %%g %%b %%c %%n %%%%", why, "%"+s)
	}
	number := func(at int) (n, end int) {
		for end = at; end < len(s) && end < at+4 && s[end] >= '0' && s[end] <= '9'; end++ {
			n = n*10 + int(s[end]-'0')
		}
		return n, end
	}
	at := 0
	if strings.HasPrefix(s, "<") {
		explicit, at = sameArgument, 1
	} else if n, end := number(0); n > 0 && end < len(s) && s[end] == '$' {
		explicit, at = n, end+1
	}
	from := at
	for at < len(s) && strings.IndexByte("-+ 0,(#", s[at]) >= 0 {
		at++
	}
	v.flags, v.precision = s[from:at], -1
	v.width, at = number(at)
	if at < len(s) && s[at] == '.' {
		digits := at + 1
		if v.precision, at = number(digits); at == digits {
			return bad("a point without digits")
		}
	}
	for at < len(s) && s[at] == 'l' { // a size, in C
		at++
	}
	if at == len(s) {
		return bad("no verb")
	}
	v.kind, v.upper = s[at]|0x20, s[at] < 'a'
	switch {
	case s[at] == '%':
		v = verb{text: "%"}
	case s[at] == 'n':
		v = verb{text: "\n"}
	case s[at] == 'i' || s[at] == 'u':
		v.kind = 'd'
	case strings.IndexByte("sdxofegbcSXEGBC", s[at]) < 0:
		r, _ := utf8.DecodeRuneInString(s[at:])
		return bad(fmt.Sprintf("the verb %c is unknown", r))
	}
	return v, explicit, s[at+1:], nil
}

// takes says what the verb takes if it is not a dt.
func (v *verb) takes(dt arrow.DataType) string {
	d, isDecimal := dt.(*arrow.Decimal128Type)
	switch {
	case dt.ID() == arrow.NULL:
	case strings.IndexByte("dxo", v.kind) >= 0 && !columnar.IsInteger(dt) && !(isDecimal && d.Scale == 0):
		return "an integer"
	case v.kind == 'c' && !columnar.IsInteger(dt):
		return "the number of a character"
	case strings.IndexByte("feg", v.kind) >= 0 && !columnar.IsNumeric(dt):
		return "a number"
	}
	return ""
}

func (c *call) appendVerb(dst []byte, v verb, i int) ([]byte, error) {
	if v.kind == 0 {
		return append(dst, v.text...), nil
	}
	a, at := c.args[v.arg].Array(), c.place(v.arg, i)
	dt := a.DataType()
	var body string
	switch {
	case v.kind == 'b':
		body = strconv.FormatBool(!columnar.IsNull(a, at) && (dt.ID() != arrow.BOOL || columnar.Value(a, at) == true))
	case columnar.IsNull(a, at):
		body = "null"
	case v.kind == 's':
		body = string(columnar.AppendText(nil, a, at, c.env.Location))
	case v.kind == 'c':
		var code int64
		code, _ = columnar.ParseInt(columnar.AppendValue(nil, a, at, nil))
		if code < 0 || code > utf8.MaxRune || !utf8.ValidRune(rune(code)) {
			return dst, fmt.Errorf("printf: there is no character %d", code)
		}
		v.precision = -1
		body = string(rune(code))
	case v.kind == 'd', v.kind == 'x', v.kind == 'o':
		return v.appendInteger(dst, string(columnar.AppendValue(nil, a, at, nil)), dt), nil
	default:
		return v.appendNumber(dst, shortestDigits(a, at)), nil
	}
	if v.precision >= 0 && utf8.RuneCountInString(body) > v.precision {
		body = string([]rune(body)[:v.precision])
	}
	return v.padded(dst, "", body, "", false), nil
}

// appendInteger writes a whole number, for x and o in the bits of its type.
func (v *verb) appendInteger(dst []byte, digits string, dt arrow.DataType) []byte {
	if v.kind == 'd' {
		digits, negative := strings.CutPrefix(digits, "-")
		return v.signed(dst, negative, digits, true)
	}
	n, _ := new(big.Int).SetString(digits, 10)
	if fixed, ok := dt.(arrow.FixedWidthDataType); ok && n.Sign() < 0 && columnar.IsInteger(dt) {
		n.Add(n, new(big.Int).Lsh(big.NewInt(1), uint(fixed.BitWidth())))
	}
	base, prefix := 16, "0x"
	if v.kind == 'o' {
		base, prefix = 8, "0"
	}
	if !v.has('#') {
		prefix = ""
	}
	body, negative := strings.CutPrefix(n.Text(base), "-")
	if negative {
		prefix = "-" + prefix
	}
	return v.padded(dst, prefix, body, "", true)
}

// signed writes a sign and the digits of a number, with commas if they are asked for.
func (v *verb) signed(dst []byte, negative bool, digits string, finite bool) []byte {
	if v.has(',') && finite {
		digits = string(appendThousands(nil, digits))
	}
	before, after := "", ""
	switch {
	case negative && v.has('('):
		before, after = "(", ")"
	case negative:
		before = "-"
	case v.has('+'):
		before = "+"
	case v.has(' '):
		before = " "
	}
	return v.padded(dst, before, digits, after, finite)
}

// padded brings a text to the width: with blanks, or with zeros before the digits.
func (v *verb) padded(dst []byte, before, body, after string, digits bool) []byte {
	fill := max(0, v.width-utf8.RuneCountInString(before)-utf8.RuneCountInString(body)-len(after))
	text := before + body + after
	switch {
	case v.has('-'):
		text += strings.Repeat(" ", fill)
	case digits && v.has('0'):
		text = before + strings.Repeat("0", fill) + body + after
	default:
		text = strings.Repeat(" ", fill) + text
	}
	if v.upper {
		return kernel.AppendUpper(dst, []byte(text))
	}
	return append(dst, text...)
}

func (v *verb) appendNumber(dst []byte, d decimalDigits) []byte {
	if d.word != "" {
		return v.signed(dst, d.negative, d.word, false)
	}
	precision := v.precision
	if precision < 0 {
		precision = 6
	}
	var body string
	switch v.kind {
	case 'f':
		body = d.fixed(precision)
	case 'e':
		body = d.scientific(precision)
	default:
		body = d.general(max(1, precision))
	}
	return v.signed(dst, d.negative, body, true)
}
