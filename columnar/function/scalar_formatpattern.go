package function

import (
	"fmt"
	"strings"

	"github.com/apache/arrow-go/v18/arrow"

	"github.com/tidemill/tidemill/columnar"
	"github.com/tidemill/tidemill/columnar/kernel"
)

// numberPattern is a pattern of format_number in the manner of Java: #,##0.00.
type numberPattern struct {
	whole, least, most int // least digits before the point, and least and most behind it
	group              int // digits between two commas; 0 for none
}

// compileNumberPattern reads digits, # for one that may be left out and 0 for one that may
// not, with a point and with commas, of which the last one says how many digits each group has.
func compileNumberPattern(source, _ string) (*numberPattern, error) {
	p := &numberPattern{}
	before, behind, _ := strings.Cut(source, ".")
	wrong := fmt.Errorf("number pattern %q is unknown; it is of # 0 , and one point, as in '#,###.00' or '0.##'", source)
	if source == "" || strings.Trim(before, "#0,") != "" || strings.Trim(behind, "#0") != "" || before+behind == "" {
		return nil, wrong
	}
	comma := strings.LastIndexByte(before, ',')
	if comma >= 0 {
		if p.group = len(before) - comma - 1; p.group == 0 {
			return nil, wrong
		}
	}
	digits := strings.ReplaceAll(before, ",", "")
	p.whole = strings.Count(digits, "0")
	p.least, p.most = strings.Count(behind, "0"), len(behind)
	if strings.Contains(digits, "0#") || strings.Contains(behind, "#0") {
		return nil, wrong
	}
	return p, nil
}

// append appends a number that plainNumber wrote with as many digits behind the point as the
// pattern has at most.
func (p *numberPattern) append(dst []byte, number string) []byte {
	if rest, negative := strings.CutPrefix(number, "-"); negative {
		dst, number = append(dst, '-'), rest
	}
	whole, fraction, _ := strings.Cut(number, ".")
	if whole[0] > '9' { // NaN and Infinity
		return append(dst, whole...)
	}
	for len(fraction) > p.least && fraction[len(fraction)-1] == '0' {
		fraction = fraction[:len(fraction)-1]
	}
	whole = strings.TrimLeft(whole, "0")
	for len(whole) < p.whole {
		whole = "0" + whole
	}
	if whole == "" && fraction == "" {
		whole = "0"
	}
	for i := range len(whole) {
		if left := len(whole) - i; i > 0 && p.group > 0 && left%p.group == 0 {
			dst = append(dst, ',')
		}
		dst = append(dst, whole[i])
	}
	if fraction != "" {
		dst = append(append(dst, '.'), fraction...)
	}
	return dst
}

// formatByPattern is the form of format_number with a pattern.
func formatByPattern(of Matcher) Overload {
	return Overload{Args: []Matcher{of, varchar}, Result: always(columnar.String), Fallible: true, Bind: func(_ []arrow.DataType, constants []arrow.Array) (Kernel, error) {
		if source, ok := constantText(constants, 1); ok {
			if _, err := compileNumberPattern(source, ""); err != nil {
				return nil, err
			}
		}
		return onRows(columnar.String, func(c *call) (arrow.Array, error) {
			number, patterns, cache := c.args[0].Array(), kernel.TextsOf(c.args[1]), newCompiled(compileNumberPattern)
			return c.text(c.rows*16, func(dst []byte, i int) ([]byte, error) {
				p, err := cache.get(patterns.At(i), "")
				if err != nil {
					return dst, err
				}
				return p.append(dst, plainNumber(number, c.place(0, i), p.most)), nil
			})
		}), nil
	}}
}
