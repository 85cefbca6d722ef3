package function

import (
	"fmt"
	"strings"

	"github.com/apache/arrow-go/v18/arrow"

	"github.com/tidemill/tidemill/columnar"
	"github.com/tidemill/tidemill/columnar/kernel"
)

// toCharScalar writes numbers and times as a format says.
func toCharScalar() *Scalar {
	f := defineFallible("to_char", "A number as a format of 9 and 0 (digits, padded with blanks or zeros), . or D, , or G, $, S or MI (a sign) and PR (<…> if negative) says, rounded to its digits after the point, # for all digits if those before it do not fit; a time as date_format writes it.", "to_char(12454.8, '99G999D9') = 12,454.8",
		[]Matcher{decimalType, varchar}, columnar.String, numbersAsChars, "to_varchar").
		alsoFor([]Matcher{floatType, varchar}, columnar.String, numbersAsChars)
	f = textChecked(f, 1, parseNumberFormat)
	f.Overloads = append(f.Overloads, formatScalar().Overloads...)
	return f
}

func numbersAsChars(c *call) (arrow.Array, error) {
	formats := kernel.TextsOf(c.args[1])
	numbers, mask := c.args[0].Array(), kernel.RowMask(c.args[0])
	cache := newCompiled(func(format, _ string) (*numberFormat, error) { return parseNumberFormat(format) })
	return c.text(formats.Size(c.rows), func(dst []byte, i int) ([]byte, error) {
		nf, err := cache.get(formats.At(i), "")
		if err != nil {
			return dst, err
		}
		return nf.append(dst, shortestDigits(numbers, i&mask)), nil
	})
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

// append writes a number, rounded to the digits of the format.
func (nf *numberFormat) append(dst []byte, d decimalDigits) []byte {
	places := len(nf.fraction)
	whole, fraction, _ := strings.Cut(d.fixed(places), ".")
	whole = strings.TrimLeft(whole, "0")
	negative := d.negative && strings.Trim(whole+fraction, "0") != ""
	fits := d.word == "" && len(whole) <= strings.Count(nf.whole, "0")+strings.Count(nf.whole, "9")
	body := nf.wholeDigits(whole, fits)
	if nf.point {
		if !fits {
			fraction = strings.Repeat("#", places)
		}
		if before, ok := strings.CutSuffix(body, " "); ok {
			body = before + "0"
		}
		body += "." + fraction
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
