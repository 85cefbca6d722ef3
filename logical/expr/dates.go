package expr

import (
	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"

	"github.com/tidemill/tidemill/columnar"
	"github.com/tidemill/tidemill/columnar/function"
	"github.com/tidemill/tidemill/columnar/kernel"
)

// The type of a call follows from the types of its arguments, but for two on times, and
// the rounding of decimals, where it also depends on what an argument is.

// fractionalParts are the parts of a time that have a fraction, unlike all others, and the
// functions that they have for that.
var fractionalParts = map[kernel.Part]string{kernel.Epoch: "epoch", kernel.Second: "second_with_fraction"}

// byValue is the call of name that is meant for these arguments.
func byValue(reg *function.Registry, name string, args []Expr) (string, []Expr) {
	if f, ok := reg.Scalar(name); !ok || f.Name != "date_part" || len(args) != 2 {
		return name, args
	}
	l, ok := args[0].(*Literal)
	if !ok || l.IsNull() {
		return name, args
	}
	text, isText := l.Value.(*array.String)
	if !isText {
		return name, args
	}
	part, ok := kernel.ParsePart(text.Value(0))
	if f, there := reg.Scalar(fractionalParts[part]); ok && there {
		return f.Name, args[1:]
	}
	return name, args
}

// movedDate is a date moved by an interval as a DATE, if the interval is of whole days
// and months whatever the row; otherwise it is the call, a TIMESTAMP.
func movedDate(c *Call, args []Expr) Expr {
	if !movesTime[c.Func.Name] || len(args) != 2 || c.Signature.Result.ID() != arrow.TIMESTAMP {
		return c
	}
	date, interval := args[0], args[1]
	intervalFirst := date.Type().ID() != arrow.DATE32
	if intervalFirst {
		date, interval = interval, date
	}
	if date.Type().ID() != arrow.DATE32 || !isWholeDays(interval) {
		return c
	}
	return &Call{Func: c.Func, Signature: function.DateMove(c.Func.Name, intervalFirst), Args: args}
}

var movesTime = map[string]bool{"+": true, "-": true, "try_add": true, "try_subtract": true}

// triesTime are those of movesTime that are null for what they cannot compute.
var triesTime = map[string]bool{"try_add": true, "try_subtract": true}

// tryDates is the arguments of such a function with null for a DATE that is no TIMESTAMP.
func tryDates(args []Expr) []Expr {
	for i, a := range args {
		if cast, ok := a.(*Cast); ok && cast.Implicit && cast.To.ID() == arrow.TIMESTAMP && cast.Input.Type().ID() == arrow.DATE32 {
			tried := *cast
			tried.Try = true
			args[i] = &tried
		}
	}
	return args
}

// isWholeDays says whether e is an interval without a time of day, whatever the row.
func isWholeDays(e Expr) bool {
	if e.Type().ID() != arrow.INTERVAL_MONTH_DAY_NANO {
		return false
	}
	switch x := e.(type) {
	case *Literal:
		return x.IsNull() || x.Value.(*array.MonthDayNanoInterval).Value(0).Nanoseconds == 0
	case *Cast:
		return isWholeDays(x.Input)
	case *Call:
		switch x.Func.Name {
		case "to_days", "to_weeks", "to_months", "to_years":
			return true
		case "*":
			for i, a := range x.Args {
				if columnar.IsInteger(a.Type()) {
					return isWholeDays(x.Args[1-i])
				}
			}
		case "+", "-":
			for _, a := range x.Args {
				if !isWholeDays(a) {
					return false
				}
			}
			return true
		}
	}
	return false
}
