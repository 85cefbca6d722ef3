package function

import (
	"fmt"
	"strings"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/decimal128"

	"github.com/tidemill/tidemill/columnar"
	"github.com/tidemill/tidemill/columnar/kernel"
)

// toCharScalar writes numbers and times as a format says.
func toCharScalar() *Scalar {
	f := defineFallible("to_char", "A number as a format of 9 and 0 (digits, padded with blanks or zeros), . or D, , or G, $, S or MI (a sign) and PR (<…> if negative) says, # for its digits if it does not fit; a time as date_format writes it.", "to_char(12454.8, '99G999D9') = 12,454.8",
		[]Matcher{decimalType, varchar}, columnar.String, func(c *call) (arrow.Array, error) {
			scale := c.args[0].Type().(*arrow.Decimal128Type).Scale
			values, formats := numbersOf[decimal128.Num](c.args[0]), kernel.TextsOf(c.args[1])
			cache := newCompiled(func(format, _ string) (*numberFormat, error) { return parseNumberFormat(format) })
			return c.text(formats.Size(c.rows), func(dst []byte, i int) ([]byte, error) {
				nf, err := cache.get(formats.At(i), "")
				if err != nil {
					return dst, err
				}
				return nf.append(dst, string(columnar.AppendDecimal(nil, values.at(i), scale))), nil
			})
		}, "to_varchar")
	f.Overloads = append(f.Overloads, formatScalar().Overloads...)
	return f
}

// numberFormat is the parts of a format of to_char: what stands around the digits, and
// the digits, with their commas, before and after the point.
type numberFormat struct {
	dollar          bool
	signFirst       byte // 'S', 'M' (only a minus) or 0
	signLast        byte
	brackets        bool
	whole, fraction string
	point           bool
}

func parseNumberFormat(format string) (*numberFormat, error) {
	bad := fmt.Errorf("number format %q is unknown; there are 9 0 . D , G $ S MI PR, as in '$99,999.00' or 'S000'", format)
	s := strings.ToUpper(format)
	nf := &numberFormat{}
	sign := func(cut func(s, affix string) (string, bool)) byte {
		for affix, b := range map[string]byte{"S": 'S', "MI": 'M'} {
			if rest, ok := cut(s, affix); ok {
				s = rest
				return b
			}
		}
		return 0
	}
	nf.signFirst = sign(strings.CutPrefix)
	s, nf.dollar = strings.CutPrefix(s, "$")
	if s, nf.brackets = strings.CutSuffix(s, "PR"); !nf.brackets && nf.signFirst == 0 {
		nf.signLast = sign(strings.CutSuffix)
	}
	s = strings.NewReplacer("D", ".", "G", ",").Replace(s)
	nf.whole, nf.fraction, nf.point = strings.Cut(s, ".")
	digits := strings.Trim(nf.whole, "09,") == "" && strings.Trim(nf.fraction, "09") == ""
	if !digits || !strings.ContainsAny(s, "09") || strings.HasPrefix(nf.whole, ",") || strings.HasSuffix(nf.whole, ",") || nf.brackets && nf.signFirst != 0 {
		return nil, bad
	}
	return nf, nil
}

// append writes a number given as decimal text.
func (nf *numberFormat) append(dst []byte, number string) []byte {
	number, negative := strings.CutPrefix(number, "-")
	whole, fraction, _ := strings.Cut(number, ".")
	whole = strings.TrimLeft(whole, "0")
	places := len(nf.fraction)
	fits := len(strings.TrimRight(fraction, "0")) <= places && len(whole) <= strings.Count(nf.whole, "0")+strings.Count(nf.whole, "9")
	fraction += strings.Repeat("0", max(places-len(fraction), 0))
	body := nf.wholeDigits(whole, fits)
	if nf.point {
		tail := fraction[:places]
		if !fits {
			tail = strings.Repeat("#", places)
		}
		body += "." + tail
	}
	digits := strings.TrimLeft(body, " ")
	blanks := body[:len(body)-len(digits)]
	if nf.dollar {
		digits = "$" + digits
	}
	minus := func(kind byte) string {
		switch {
		case kind == 0:
			return ""
		case negative:
			return "-"
		case kind == 'S':
			return "+"
		}
		return " "
	}
	first, last := minus(nf.signFirst), minus(nf.signLast)
	switch {
	case nf.brackets && negative:
		first, last = "<", ">"
	case nf.brackets:
		last = " "
	case negative && nf.signFirst|nf.signLast == 0:
		first = "-"
	}
	return append(dst, blanks+first+digits+last...)
}

// wholeDigits writes the digits before the point from the last to the first; those that
// are not there as blanks, or as zeros from a 0 of the format on.
func (nf *numberFormat) wholeDigits(whole string, fits bool) string {
	zero := strings.IndexByte(nf.whole, '0')
	out := make([]byte, len(nf.whole))
	at := len(whole)
	for i := len(nf.whole) - 1; i >= 0; i-- {
		isComma := nf.whole[i] == ','
		switch {
		case !fits && !isComma:
			out[i] = '#'
		case isComma:
			if out[i] = ','; at <= 0 && (zero < 0 || zero > i) && fits {
				out[i] = ' '
			}
		case at > 0:
			at--
			out[i] = whole[at]
		case zero >= 0 && zero <= i:
			out[i] = '0'
		default:
			out[i] = ' '
		}
	}
	if at == len(whole) && fits && whole == "" && zero < 0 && !nf.point && len(out) > 0 {
		out[len(out)-1] = '0' // the number zero has a digit
	}
	return string(out)
}
