package function

import (
	"bytes"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/apache/arrow-go/v18/arrow"

	"github.com/tidemill/tidemill/columnar"
)

// decimalDigits is a number: its digits, the first of them not zero, and where the point
// stands before, in or behind them. Word is set instead for NaN and infinity. A half is
// rounded away from zero, or to the even digit.
type decimalDigits struct {
	negative bool
	digits   []byte
	point    int
	word     string
	toEven   bool
}

// shortestDigits are those of a decimal or integer, and the fewest that tell a float from
// others: a number is rounded as it is written.
func shortestDigits(a arrow.Array, i int) decimalDigits {
	var text string
	switch v := columnar.Value(a, i).(type) {
	case float64:
		text = strconv.FormatFloat(v, 'f', -1, 64)
	case float32:
		text = strconv.FormatFloat(float64(v), 'f', -1, 32)
	default:
		text = string(columnar.AppendValue(nil, a, i, nil))
	}
	text, negative := strings.CutPrefix(text, "-")
	switch strings.TrimPrefix(text, "+") {
	case "Inf":
		return decimalDigits{negative: negative, word: "Infinity"}
	case "NaN":
		return decimalDigits{word: "NaN"}
	}
	whole, fraction, _ := strings.Cut(text, ".")
	digits := strings.TrimLeft(whole+fraction, "0")
	return decimalDigits{negative: negative, digits: []byte(digits), point: len(whole) - (len(whole+fraction) - len(digits))}
}

// rounded has n digits at most.
func (d decimalDigits) rounded(n int) decimalDigits {
	if n >= len(d.digits) {
		return d
	}
	if n < 0 {
		d.digits = nil
		return d
	}
	up := d.digits[n] >= '5'
	if d.toEven && d.digits[n] == '5' && len(bytes.TrimRight(d.digits[n+1:], "0")) == 0 {
		up = n > 0 && d.digits[n-1]%2 == 1
	}
	d.digits = slices.Clone(d.digits[:n])
	for k := n - 1; up && k >= 0; k-- {
		if up = d.digits[k] == '9'; up {
			d.digits[k] = '0'
		} else {
			d.digits[k]++
		}
	}
	if up {
		d.digits = append([]byte{'1'}, d.digits...)
		d.point++
	}
	return d
}

// fixed has digits after the point, and no exponent.
func (d decimalDigits) fixed(digits int) string {
	d = d.rounded(d.point + digits)
	at := func(k int) byte { // the digit k places behind the first before the point
		if k < 0 || k >= len(d.digits) {
			return '0'
		}
		return d.digits[k]
	}
	var out []byte
	for k := min(0, d.point-1); k < d.point; k++ {
		out = append(out, at(k))
	}
	if digits > 0 {
		out = append(out, '.')
	}
	for k := range digits {
		out = append(out, at(d.point+k))
	}
	return string(out)
}

// scientific has one digit before the point, and an exponent of two digits or more.
func (d decimalDigits) scientific(digits int) string {
	if len(d.digits) == 0 {
		return decimalDigits{}.fixed(digits) + "e+00"
	}
	d = d.rounded(digits + 1)
	exponent := d.point - 1
	d.point = 1
	return fmt.Sprintf("%se%+03d", d.fixed(digits), exponent)
}

// general has so many digits in all: as fixed from 0.0001 on, as long as those before the
// point are not too many, else as scientific.
func (d decimalDigits) general(digits int) string {
	if len(d.digits) == 0 {
		return d.fixed(digits - 1)
	}
	r := d.rounded(digits)
	if r.point < -3 || r.point > digits {
		return r.scientific(digits - 1)
	}
	return r.fixed(digits - r.point)
}
