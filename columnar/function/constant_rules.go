package function

import (
	"errors"
	"fmt"
	"strings"

	"github.com/apache/arrow-go/v18/arrow"

	"github.com/tidemill/tidemill/columnar"
)

// constantRule is a constant that a function cannot work with, whatever its other arguments
// are: check, of all types and constants of a call, is why.
type constantRule struct {
	function string
	check    constantCheck
}

type constantCheck = func(types []arrow.DataType, constants []arrow.Array) error

// constantRules are the rules for numbers, values to the kernel that are an error of every row. What a kernel compiles once is checked where it does that. The forms with try_ have
// none: they are null. They are for what somebody wrote: a constant that an optimizer finds is
// as good as a column, which is an error, or null, for the rows that have it.
var constantRules = []constantRule{
	{"make_date", whole(1, within("date with month %d", 1, 12))},
	{"make_date", whole(2, within("date with day %d", 1, 31))},
	{"make_timestamp", whole(1, within("date with month %d", 1, 12))},
	{"make_timestamp", whole(2, within("date with day %d", 1, 31))},
	{"make_timestamp", whole(3, within("time of day with hour %d", 0, 23))},
	{"make_timestamp", whole(4, within("time of day with minute %d", 0, 59))},
	{"make_timestamp", number(5, secondsOrMinute)},
	{"make_time", whole(0, within("time of day with hour %d", 0, 23))},
	{"make_time", whole(1, within("time of day with minute %d", 0, 59))},
	{"make_time", number(2, seconds)},
	{"sequence", moves}, {"generate_series", moves},
	{"<<", whole(1, bitsMoved)},
	{">>", whole(1, bitsMoved)},
	{"shiftrightunsigned", whole(1, bitsMoved)},
	{"bit_get", whole(1, isBit)},
	{"factorial", whole(0, hasFactorial)},
	{"element_at", ofArray(whole(1, notZero))},
	{"subscript", ofArray(whole(1, notBeforeFirst))},
	{"array_insert", whole(1, notZero)},
	{"slice", whole(1, notZero)},
	{"slice", whole(2, isLength)},
	{"list_resize", whole(1, isLength)},
	{"split_part", whole(2, notZeroPart)},
	{"width_bucket", whole(3, positive("number of buckets"))},
}

// writtenRules are those for words and patterns, which are as wrong where no row comes to them,
// and for what would silently be null.
var writtenRules = []constantRule{
	{"sha2", whole(1, digestLength)},
	{"conv", whole(1, within("base %d", 2, 36))},
	{"conv", whole(2, within("base %d", 2, 36))},
	{"next_day", word(1, isWeekday)},
	{"parse_url", word(1, isPartOfURL)},
	{"truncate", word(1, isDateUnit)},
	{"str_to_map", word(1, isRegexp)},
	{"str_to_map", word(2, isRegexp)},
	{"regexp_replace", groupsOfReplacement},
}

// CheckConstants refuses constants, nil for all other arguments and for null, that f cannot work
// with, of argument types after casting. Bind refuses more of them. In a branch that a row may
// not take, a value is left to the rows that do.
func (f *Scalar) CheckConstants(types []arrow.DataType, constants []arrow.Array, inBranch bool) error {
	for _, check := range f.written {
		if err := check(types, constants); err != nil {
			return err
		}
	}
	for _, check := range f.constants {
		if err := check(types, constants); err != nil && !inBranch {
			return err
		}
	}
	return nil
}

// applyConstantRules gives functions their rules.
func applyConstantRules(scalars []*Scalar) {
	named := make(map[string]*Scalar, len(scalars))
	for _, f := range scalars {
		named[f.Name] = f
	}
	for _, rule := range constantRules {
		f := named[rule.function]
		f.constants = append(f.constants, rule.check)
	}
	for _, rule := range writtenRules {
		f := named[rule.function]
		f.written = append(f.written, rule.check)
	}
}

// constantValue is the value of a literal argument, if it is one of that type and not null.
func constantValue[T any](constants []arrow.Array, k int) (T, bool) {
	var none T
	if k >= len(constants) || constants[k] == nil || columnar.IsNull(constants[k], 0) {
		return none, false
	}
	v, ok := columnar.Value(constants[k], 0).(T)
	return v, ok
}

func valueChecked[T any](k int, check func(v T) error) constantCheck {
	return func(_ []arrow.DataType, constants []arrow.Array) error {
		if v, ok := constantValue[T](constants, k); ok {
			return check(v)
		}
		return nil
	}
}

func whole(k int, check func(int64) error) constantCheck    { return valueChecked(k, check) }
func number(k int, check func(float64) error) constantCheck { return valueChecked(k, check) }
func word(k int, check func(string) error) constantCheck    { return valueChecked(k, check) }

// ofArray is a check of those forms alone that take an array.
func ofArray(check constantCheck) constantCheck {
	return func(types []arrow.DataType, constants []arrow.Array) error {
		if types[0].ID() != arrow.LIST {
			return nil
		}
		return check(types, constants)
	}
}

// within is a range of numbers; what names one in a format with %d.
func within(what string, low, high int64) func(int64) error {
	return func(v int64) error {
		if v < low || v > high {
			return fmt.Errorf("there is no "+what+"; the number must be from %d to %d", v, low, high)
		}
		return nil
	}
}

var (
	isBit        = within("bit %d of a BIGINT", 0, 63)
	hasFactorial = within("factorial of %d", 0, 20)
)

func bitsMoved(bits int64) error {
	if bits < 0 {
		return fmt.Errorf("a number of bits cannot be negative, as %d is; shift the other way", bits)
	}
	return nil
}

func isLength(elements int64) error {
	if elements < 0 {
		return fmt.Errorf("an array has no %d elements", elements)
	}
	return nil
}

func positive(what string) func(int64) error {
	return func(v int64) error {
		if v < 1 {
			return fmt.Errorf("the %s must be 1 or more, not %d", what, v)
		}
		return nil
	}
}

func digestLength(bits int64) error {
	switch bits {
	case 0, 224, 256, 384, 512:
		return nil
	}
	return fmt.Errorf("there is no SHA-2 of %d bits; there are 224, 256 (also 0), 384 and 512", bits)
}

func seconds(s float64) error {
	if s >= 0 && s < 60 {
		return nil
	}
	return fmt.Errorf("there is no time of day with second %v; it must be from 0 to below 60", s)
}

func secondsOrMinute(s float64) error {
	if s == 60 {
		return nil
	}
	return seconds(s)
}

func notZero(place int64) error {
	if place != 0 {
		return nil
	}
	return fmt.Errorf("there is no element 0; the first is 1")
}

func notBeforeFirst(place int64) error {
	if place >= 0 {
		return nil
	}
	return fmt.Errorf("there is no element %d; the first is 0, and element_at(a, -1) the last", place)
}

func notZeroPart(place int64) error {
	if place != 0 {
		return nil
	}
	return fmt.Errorf("there is no part 0; the first is 1, the last -1")
}

var errNoStep = errors.New("the step cannot be 0")

// moves refuses a step that stays where it is.
func moves(_ []arrow.DataType, constants []arrow.Array) error {
	n, isNumber := constantValue[int64](constants, 2)
	step, isInterval := constantValue[arrow.MonthDayNanoInterval](constants, 2)
	if isNumber && n == 0 || isInterval && step == (arrow.MonthDayNanoInterval{}) {
		return errNoStep
	}
	return nil
}

func isWeekday(name string) error {
	if _, ok := weekdayNamed(name); !ok {
		return fmt.Errorf("%q is no day of the week; write it in English: Monday, Mon or Mo", name)
	}
	return nil
}

func isDateUnit(name string) error {
	if dateUnits[strings.ToUpper(name)] == 0 {
		return fmt.Errorf("%q is no unit of a date; there are year, quarter, month and week; date_trunc(unit, time) has more", name)
	}
	return nil
}

func isRegexp(pattern string) error {
	_, err := compileRegexp(pattern, "")
	return err
}

// urlParts are what parse_url takes out of a URL.
var urlParts = []string{"HOST", "PATH", "QUERY", "REF", "PROTOCOL", "FILE", "AUTHORITY", "USERINFO"}

func isPartOfURL(name string) error {
	for _, part := range urlParts {
		if strings.EqualFold(name, part) {
			return nil
		}
	}
	return fmt.Errorf("%q is no part of a URL; there are %s", name, strings.Join(urlParts, ", "))
}

// groupsOfReplacement refuses $2 in a replacement where the pattern has one group.
func groupsOfReplacement(_ []arrow.DataType, constants []arrow.Array) error {
	pattern, known := constantText(constants, 1)
	template, written := constantText(constants, 2)
	if !known || !written {
		return nil
	}
	re, err := compileRegexp(pattern, "")
	if err != nil {
		return err
	}
	for _, group := range groupsNamed([]byte(template)) {
		if err := checkGroup(group, re.NumSubexp()); err != nil {
			return err
		}
	}
	return nil
}

// groupsNamed are the numbers behind $ and \ in the replacement of regexp_replace.
func groupsNamed(template []byte) (groups []int64) {
	for i := 0; i+1 < len(template); i++ {
		digit := template[i+1] >= '0' && template[i+1] <= '9'
		switch {
		case (template[i] == '$' || template[i] == '\\') && digit:
			groups = append(groups, int64(template[i+1]-'0'))
			i++
		case template[i] == '\\':
			i++
		}
	}
	return groups
}
