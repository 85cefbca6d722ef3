package expr

import (
	"fmt"
	"maps"
	"slices"

	"github.com/apache/arrow-go/v18/arrow"

	"github.com/tidemill/tidemill/columnar"
	"github.com/tidemill/tidemill/columnar/function"
	"github.com/tidemill/tidemill/columnar/kernel"
)

// rowFunction is a function that exists with OVER only, or means something of its own
// there.
type rowFunction struct {
	name     string // as Over has it
	min, max int    // arguments
	nulls    bool   // takes IGNORE NULLS
}

var rowFunctions = map[string]rowFunction{
	"row_number":   {name: "row_number"},
	"rank":         {name: "rank"},
	"dense_rank":   {name: "dense_rank"},
	"percent_rank": {name: "percent_rank"},
	"cume_dist":    {name: "cume_dist"},
	"ntile":        {name: "ntile", min: 1, max: 1},
	"lag":          {name: "lag", min: 1, max: 3, nulls: true},
	"lead":         {name: "lead", min: 1, max: 3, nulls: true},
	"first_value":  {name: "first_value", min: 1, max: 1, nulls: true},
	"first":        {name: "first_value", min: 1, max: 1, nulls: true},
	"last_value":   {name: "last_value", min: 1, max: 1, nulls: true},
	"last":         {name: "last_value", min: 1, max: 1, nulls: true},
	"nth_value":    {name: "nth_value", min: 2, max: 2, nulls: true},
}

// IsRowFunction says whether name is a function that means something of its own with
// OVER.
func IsRowFunction(name string) bool {
	_, ok := rowFunctions[name]
	return ok
}

// UnknownOver is the error for a function with OVER that does not exist.
func UnknownOver(reg *function.Registry, name string) error {
	return reg.Unknown(name, slices.Sorted(maps.Keys(rowFunctions))...)
}

// OverError is what is wrong with a window function or its window.
type OverError struct {
	Argument   int // that is meant, from 0; -1 for none in particular
	Text, Hint string
}

func (e *OverError) Error() string {
	if e.Hint != "" {
		return e.Text + "; " + e.Hint
	}
	return e.Text
}

func overErrorf(argument int, hint, format string, args ...any) error {
	return &OverError{Argument: argument, Hint: hint, Text: fmt.Sprintf(format, args...)}
}

// Check says whether the row function name may be called with so many arguments in the
// window of o.
func (o *Over) Check(name string, args int, ignoreNulls bool) error {
	f := rowFunctions[name]
	switch {
	case ignoreNulls && !f.nulls:
		return overErrorf(-1, "", "%s takes no IGNORE NULLS", name)
	case args < f.min || args > f.max:
		return overErrorf(-1, "", "%s takes %s", name, f.takes())
	}
	return nil
}

func (f rowFunction) takes() string {
	plural := func(n int) string {
		if n == 1 {
			return "1 argument"
		}
		return fmt.Sprintf("%d arguments", n)
	}
	switch {
	case f.max == 0:
		return "no arguments"
	case f.min == f.max:
		return plural(f.min)
	}
	return fmt.Sprintf("%d to %s", f.min, plural(f.max))
}

// SetFunction makes o the row function name of args, which Check found right.
func (o *Over) SetFunction(name string, args []Expr, ignoreNulls bool) error {
	o.Func, o.IgnoreNulls = rowFunctions[name].name, ignoreNulls
	var err error
	switch o.Func {
	case "ntile":
		o.DataType = columnar.Int64
		args[0], err = positiveArgument(name, 0, args[0], "the number of parts")
	case "lag", "lead":
		o.DataType = args[0].Type()
		args, err = o.shiftArguments(name, args)
	case "nth_value":
		o.DataType = args[0].Type()
		args[1], err = positiveArgument(name, 1, args[1], "the place of nth_value")
	case "first_value", "last_value":
		o.DataType = args[0].Type()
	case "percent_rank", "cume_dist":
		o.DataType = columnar.Float64
	default:
		o.DataType = columnar.Int64
	}
	o.Args = args
	return err
}

// wholeArgument makes argument i a BIGINT.
func wholeArgument(name string, i int, x Expr) (Expr, error) {
	if !columnar.IsInteger(x.Type()) {
		return nil, overErrorf(i, "", "%s takes a whole number here, not %s", name, columnar.TypeName(x.Type()))
	}
	return CastTo(x, columnar.Int64), nil
}

// positiveArgument makes argument i a BIGINT; a constant below 1 is refused.
func positiveArgument(name string, i int, x Expr, what string) (Expr, error) {
	n, err := wholeArgument(name, i, x)
	if err != nil {
		return nil, err
	}
	if v := constant(n); v != nil && (columnar.IsNull(v, 0) || columnar.Value(v, 0).(int64) < 1) {
		return nil, overErrorf(i, "", "%s must be positive, not %s", what, x)
	}
	return n, nil
}

// shiftArguments are the value, the offset and, if there is one, the default of lag and
// lead, of the value's type.
func (o *Over) shiftArguments(name string, args []Expr) ([]Expr, error) {
	if len(args) == 1 {
		one, err := NewLiteral(int64(1))
		return append(args, one), err
	}
	var err error
	if args[1], err = wholeArgument(name, 1, args[1]); err != nil || len(args) == 2 {
		return args, err
	}
	common, ok := columnar.Common(args[0].Type(), args[2].Type())
	if !ok {
		return nil, overErrorf(2, "cast it", "the default is %s, the value %s", columnar.TypeName(args[2].Type()), columnar.TypeName(args[0].Type()))
	}
	o.DataType = common
	args[0], args[2] = CastTo(args[0], common), CastTo(args[2], common)
	return args, nil
}

// SetAggregate makes o an aggregate over its frame.
func (o *Over) SetAggregate(a *Agg) { o.Agg, o.DataType = a, a.Type() }

// UsualFrame is the frame of a window that says none: up to the row and its equals in the
// order, or all rows where there is no order.
func (o *Over) UsualFrame() Frame {
	if len(o.Order) == 0 {
		return WholePartition
	}
	return Frame{Unit: Range, Low: Bound{Kind: UnboundedPreceding}, High: Bound{Kind: CurrentRow}}
}

// SetFrame gives o, whose order is known, a frame. Offsets of ROWS and GROUPS are in the
// bounds; those of RANGE are set by SetRange.
func (o *Over) SetFrame(f Frame) error {
	low, high := f.Low.Kind, f.High.Kind
	switch {
	case low == UnboundedFollowing || high == UnboundedPreceding || low > high:
		return overErrorf(-1, "ROWS BETWEEN 1 PRECEDING AND CURRENT ROW", "the frame ends before it begins")
	case f.Unit == Groups && len(o.Order) == 0:
		return overErrorf(-1, "", "a frame of GROUPS needs an ORDER BY in its window")
	case f.Unit == Range && (f.Low.hasOffset() || f.High.hasOffset()) && len(o.Order) != 1:
		return overErrorf(-1, "", "a RANGE with an offset needs exactly one ORDER BY key in its window, this has %d", len(o.Order))
	}
	o.Frame = f
	return nil
}

func (b Bound) hasOffset() bool { return b.Kind == Preceding || b.Kind == Following }

// RangeKey is the ORDER BY key as the offsets of a RANGE move it: integers wide enough
// that they cannot overflow.
func (o *Over) RangeKey() Expr {
	key := o.Order[0].Expr
	switch {
	case key.Type().ID() == columnar.Int64.ID():
		return CastTo(key, columnar.Decimal(20, 0))
	case columnar.IsInteger(key.Type()):
		return CastTo(key, columnar.Int64)
	}
	return key
}

// SetRange gives the bounds of a RANGE frame their offsets, nil for those that have none.
// In an error, argument 0 is the lower bound and 1 the upper one.
func (o *Over) SetRange(reg *function.Registry, low, high Expr) error {
	key := o.RangeKey()
	common := key.Type()
	bounds := []*Bound{&o.Frame.Low, &o.Frame.High}
	for i, offset := range []Expr{low, high} {
		if offset == nil {
			continue
		}
		if problem := offsetProblem(offset); problem != "" {
			return overErrorf(i, "", "the offset of a frame %s", problem)
		}
		b := bounds[i]
		op := "+"
		if (b.Kind == Preceding) != o.Order[0].Descending {
			op = "-"
		}
		value, err := NewCall(reg, op, key, offset)
		if err != nil {
			return overErrorf(i, "", "%s", err)
		}
		t, ok := columnar.Common(common, value.Type())
		if !ok {
			return overErrorf(i, "", "the ORDER BY key is %s, which this offset does not move", columnar.TypeName(common))
		}
		common, b.Value = t, value
	}
	if low == nil && high == nil {
		return nil
	}
	o.Frame.Key = CastTo(key, common)
	for i, offset := range []Expr{low, high} {
		if offset != nil {
			bounds[i].Value = CastTo(bounds[i].Value, common)
		}
	}
	return nil
}

// offsetProblem is why a constant is no offset of a frame; empty if it is one.
func offsetProblem(offset Expr) string {
	v := constant(offset)
	if v == nil {
		return ""
	}
	if columnar.IsNull(v, 0) {
		return "is not NULL"
	}
	if f, ok := columnar.Value(v, 0).(float64); ok && f != f {
		return "is not NaN"
	}
	zero, err := NewLiteral(int64(0))
	if v.DataType().ID() == columnar.Interval.ID() {
		zero, err = NewLiteral(arrow.MonthDayNanoInterval{})
	}
	if none := constant(CastTo(zero, v.DataType())); err == nil && none != nil && kernel.CompareValues(v, 0, none, 0) < 0 {
		return "is not negative"
	}
	return ""
}
