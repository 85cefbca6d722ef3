package function

import (
	"github.com/apache/arrow-go/v18/arrow"

	"github.com/tidemill/tidemill/columnar"
)

// acceptance says which arguments a Matcher is taken to accept.
type acceptance struct {
	match func(m Matcher, arg arrow.DataType) (want arrow.DataType, cost int, ok bool)
	meet  func(a, b arrow.DataType) (arrow.DataType, bool)
}

// accept is what a matcher itself accepts; assignText also what a text may stand for, and
// assign, as Spark's ANSI mode, what may be stored in a column of the type wanted: beside
// texts for anything, anything for a text, a number for a narrower one, a TIMESTAMP for
// its DATE. What does not fit is an error of the cast; what may have a fraction is no
// integer, for its cast cuts it off in silence.
var (
	accept     = acceptance{match: Matcher.Match, meet: columnar.Common}
	assignText = acceptance{match: matchText, meet: columnar.Meet}
	assign     = acceptance{match: matchAssigned, meet: columnar.Meet}
)

// A cast that may fail costs more than any that may not; of several the one that comes
// first in a list.
const assignCost = 1000

// readings are what a text may stand for.
var readings = []arrow.DataType{
	columnar.Float64, columnar.Int64, columnar.Boolean, columnar.Timestamp, columnar.Date, columnar.Time, columnar.Interval,
}

// textMeets are the types of two operands, that of a text made what it meets the other in.
func textMeets(args []arrow.DataType) []arrow.DataType {
	t, ok := columnar.Meet(args[0], args[1])
	switch {
	case ok && args[0].ID() == arrow.STRING:
		return []arrow.DataType{t, args[1]}
	case ok && args[1].ID() == arrow.STRING:
		return []arrow.DataType{args[0], t}
	}
	return args
}

// A matcher that names a type for NULL goes before one that does not.
const nullCost = 50

// matchNull is what a NULL without a type is for a matcher that names no type for it: one of
// those that the matcher takes.
func matchNull(m Matcher) (arrow.DataType, int, bool) {
	for _, t := range nullTypes {
		if want, _, ok := m.Match(t); ok {
			return want, nullCost, true
		}
	}
	return nil, 0, false
}

var nullTypes = []arrow.DataType{
	columnar.Int64, columnar.String, columnar.Timestamp, columnar.ListOf(columnar.Null), columnar.ListOf(columnar.Float64),
	columnar.ListOf(columnar.ListOf(columnar.Null)), arrow.MapOf(columnar.Null, columnar.Null),
	columnar.ListOf(arrow.StructOf(columnar.Field("key", columnar.Null), columnar.Field("value", columnar.Null))),
}

func matchText(m Matcher, arg arrow.DataType) (arrow.DataType, int, bool) {
	if want, cost, ok := m.Match(arg); ok || arg.ID() != arrow.STRING {
		return want, cost, ok
	}
	return closest(m, readings, func(arrow.DataType) bool { return true })
}

// closest is the first of types that m takes as it is, and that may is true of.
func closest(m Matcher, types []arrow.DataType, may func(want arrow.DataType) bool) (arrow.DataType, int, bool) {
	for i, t := range types {
		if want, cost, ok := m.Match(t); ok && cost == 0 && arrow.TypeEqual(want, t) && may(want) {
			return want, assignCost + i, true
		}
	}
	return nil, 0, false
}

var narrower = []arrow.DataType{columnar.String, columnar.Float64, columnar.Int64, columnar.Int32, columnar.Float32, columnar.Date}

func matchAssigned(m Matcher, arg arrow.DataType) (arrow.DataType, int, bool) {
	if want, cost, ok := matchText(m, arg); ok {
		return want, cost, ok
	}
	return closest(m, narrower, func(want arrow.DataType) bool {
		switch {
		case want.ID() == arrow.STRING:
			return columnar.IsNumeric(arg) || columnar.IsTemporal(arg) || arg.ID() == arrow.BOOL
		case columnar.IsInteger(want):
			return columnar.IsInteger(arg)
		case columnar.IsNumeric(want):
			return columnar.IsNumeric(arg)
		}
		return arg.ID() == arrow.TIMESTAMP && want.ID() == arrow.DATE32
	})
}
