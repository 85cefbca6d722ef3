package function

import (
	"fmt"
	"strings"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/decimal128"

	"github.com/tidemill/tidemill/columnar"
	"github.com/tidemill/tidemill/columnar/kernel"
)

// toNumberScalars read numbers as a format of to_char writes them, as the type of their third
// argument, a null: what a binder makes of the format.
func toNumberScalars() []*Scalar {
	const doc = "A text as the number that a format of to_char, a constant, describes: a DECIMAL with the digits of the format. A 9 stands for a digit that may be missing, commas stand where the format has them, a minus may stand in front. "
	return []*Scalar{
		toNumberScalar("to_number", doc+"Another text is an error.", "to_number('$1,234.5', '$9,999.99') = 1234.50", false),
		toNumberScalar("try_to_number", doc+"Another text gives null.", "try_to_number('12x', '999') = NULL", true),
	}
}

// NumberType is the type of the numbers that a format of to_number describes.
func NumberType(format string) (arrow.DataType, error) {
	nf, err := parseNumberFormat(format)
	if err != nil {
		return nil, err
	}
	digits := len(strings.ReplaceAll(nf.whole, ",", "")) + len(nf.fraction)
	if digits > columnar.MaxPrecision {
		return nil, fmt.Errorf("number format %q has more than %d digits", format, columnar.MaxPrecision)
	}
	return columnar.Decimal(int32(digits), int32(len(nf.fraction))), nil
}

func toNumberScalar(name, doc, example string, try bool) *Scalar {
	number := class("type", columnar.Decimal(1, 0), columnar.IsDecimal)
	return &Scalar{Name: name, Doc: doc, Example: example, Overloads: []Overload{{
		Args: []Matcher{varchar, varchar, number}, Result: sameAs(2), NullSafe: true, Fallible: !try,
		Bind: func(args []arrow.DataType, _ []arrow.Array) (Kernel, error) {
			dt := args[2].(*arrow.Decimal128Type)
			return onAllRows(dt, func(c *call) (arrow.Array, error) { return c.textsAsNumbers(dt, try) }), nil
		},
	}}}
}

func (c *call) textsAsNumbers(dt *arrow.Decimal128Type, try bool) (arrow.Array, error) {
	texts, formats := kernel.TextsOf(c.args[0]), kernel.TextsOf(c.args[1])
	cache := newCompiled(func(format, _ string) (*numberFormat, error) { return parseNumberFormat(format) })
	some := *c
	some.args = c.args[:2] // the third is null
	var failed error
	column, err := nullableRows(&some, func(i int) (decimal128.Num, bool) {
		nf, err := cache.get(formats.At(i), "")
		if err == nil {
			digits, ok := nf.parse(string(texts.At(i)))
			if v, fits := columnar.ParseDecimal(digits, dt.Precision, dt.Scale); ok && fits {
				return v, true
			}
			err = fmt.Errorf("%q is no number of the form %q; try_to_number gives null", texts.At(i), formats.At(i))
		}
		if failed == nil && !try && c.active.Get(i) {
			failed = err
		}
		return decimal128.Num{}, false
	})
	if failed != nil {
		column.Release()
		return nil, failed
	}
	return column, err
}

// parse is the number of a text that the format describes, without its ornaments.
func (nf *numberFormat) parse(text string) (digits string, ok bool) {
	s, minus := strings.TrimSpace(text), ""
	cut := func(by func(s, affix string) (string, bool), affix string) bool {
		rest, there := by(s, affix)
		if there {
			s = strings.TrimSpace(rest)
		}
		return there
	}
	switch {
	case nf.brackets && cut(strings.CutPrefix, "<"):
		if minus = "-"; !cut(strings.CutSuffix, ">") {
			return "", false
		}
	case nf.signLast != 0 && cut(strings.CutSuffix, "-"), nf.signLast == 0 && cut(strings.CutPrefix, "-"):
		minus = "-"
	case nf.signFirst == 'S':
		cut(strings.CutPrefix, "+")
	case nf.signLast == 'S':
		cut(strings.CutSuffix, "+")
	}
	if nf.dollar && !cut(strings.CutPrefix, "$") {
		return "", false
	}
	whole, fraction, _ := strings.Cut(s, ".")
	if len(fraction) > len(nf.fraction) || strings.Trim(fraction, "0123456789") != "" || whole == "" && fraction == "" {
		return "", false
	}
	whole, ok = nf.parseWhole(whole)
	return minus + whole + "." + fraction, ok
}

// parseWhole is the digits before the point, compared with the format from the last to the
// first: those of a format that begins with 0 must all be there.
func (nf *numberFormat) parseWhole(s string) (digits string, ok bool) {
	at := len(s)
	for i := len(nf.whole) - 1; i >= 0 && at > 0; i-- {
		if isComma := nf.whole[i] == ','; isComma != (s[at-1] == ',') || !isComma && (s[at-1] < '0' || s[at-1] > '9') {
			return "", false
		}
		at--
	}
	if at > 0 || strings.HasPrefix(s, ",") || strings.HasPrefix(nf.whole, "0") && len(s) != len(nf.whole) {
		return "", false
	}
	return strings.ReplaceAll(s, ",", ""), true
}
