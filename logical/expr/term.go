package expr

import (
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/decimal128"
	"github.com/apache/arrow-go/v18/arrow/memory"

	"github.com/tidemill/tidemill/columnar"
)

// Term is an expression of the DataFrame API: not typed yet, perhaps named, perhaps
// with a sort direction. Terms are values; methods return new ones. What is wrong
// with a term is reported where it is used.
type Term struct {
	Expr       Expr
	Name       string // given by As; "" otherwise
	Descending bool
	nulls      nullsPlace
	err        error
}

// nullsPlace is where nulls are sorted; unsaid, first ascending and last descending.
type nullsPlace uint8

const (
	nullsUnsaid nullsPlace = iota
	nullsFirst
	nullsLast
)

// Err is the first thing wrong in the term, found while it was built.
func (t Term) Err() error {
	switch {
	case t.err != nil:
		return usage(t.err)
	case t.Expr == nil:
		return errNoTerm
	}
	return nil
}

// errNoTerm is of the zero Term.
var errNoTerm = usage(errors.New("a Term is empty; make one with Col, Lit or Func"))

// UsageError is a mistake in what was asked for, found before anything ran.
type UsageError struct{ Err error }

func (e *UsageError) Error() string { return e.Err.Error() }
func (e *UsageError) Unwrap() error { return e.Err }

func usage(err error) error {
	if e, ok := err.(*UsageError); ok {
		return e
	}
	return &UsageError{err}
}

// Col is a column, by name or as table.name, or a field of a struct as column.field.
func Col(name string) Term {
	if q, n, ok := strings.Cut(name, "."); ok {
		return Term{Expr: &Name{Qualifier: q, Name: n}}
	}
	return Term{Expr: &Name{Name: name}}
}

// Lit is a constant: a Go bool, integer, float, string, []byte, time.Time,
// time.Duration (an INTERVAL) or nil.
func Lit(v any) Term {
	l, err := NewLiteral(v)
	if err != nil {
		return Term{Expr: &Literal{Value: array.NewNull(1)}, err: err}
	}
	return Term{Expr: l}
}

// NewLiteral makes the literal of a Go value; a decimal128.Num is DECIMAL(38,0).
func NewLiteral(v any) (*Literal, error) {
	dt, err := typeOf(v)
	if err != nil {
		return nil, err
	}
	b := array.NewBuilder(memory.DefaultAllocator, dt)
	defer b.Release()
	switch x := v.(type) {
	case nil:
		b.AppendNull()
	case bool:
		b.(*array.BooleanBuilder).Append(x)
	case int:
		b.(*array.Int64Builder).Append(int64(x))
	case int64:
		b.(*array.Int64Builder).Append(x)
	case int32:
		b.(*array.Int32Builder).Append(x)
	case int16:
		b.(*array.Int16Builder).Append(x)
	case int8:
		b.(*array.Int8Builder).Append(x)
	case float64:
		b.(*array.Float64Builder).Append(x)
	case float32:
		b.(*array.Float32Builder).Append(x)
	case string:
		b.(*array.StringBuilder).Append(x)
	case []byte:
		b.(*array.BinaryBuilder).Append(x)
	case time.Time:
		b.(*array.TimestampBuilder).Append(arrow.Timestamp(x.UnixMicro()))
	case time.Duration:
		b.(*array.MonthDayNanoIntervalBuilder).Append(arrow.MonthDayNanoInterval{Nanoseconds: x.Nanoseconds()})
	case arrow.MonthDayNanoInterval:
		b.(*array.MonthDayNanoIntervalBuilder).Append(x)
	case decimal128.Num:
		b.(*array.Decimal128Builder).Append(x)
	}
	return &Literal{Value: b.NewArray()}, nil
}

func typeOf(v any) (arrow.DataType, error) {
	switch v.(type) {
	case nil:
		return columnar.Null, nil
	case bool:
		return columnar.Boolean, nil
	case int, int64:
		return columnar.Int64, nil
	case int32:
		return columnar.Int32, nil
	case int16:
		return columnar.Int16, nil
	case int8:
		return columnar.Int8, nil
	case float64:
		return columnar.Float64, nil
	case float32:
		return columnar.Float32, nil
	case string:
		return columnar.String, nil
	case []byte:
		return columnar.Binary, nil
	case time.Time:
		return columnar.Timestamp, nil
	case time.Duration, arrow.MonthDayNanoInterval:
		return columnar.Interval, nil
	case decimal128.Num:
		return columnar.Decimal(columnar.MaxPrecision, 0), nil
	}
	return nil, fmt.Errorf("a %T cannot be a constant; use a bool, number, string, []byte, time.Time or time.Duration", v)
}

// Func calls any scalar or aggregate function of the registry by name.
func Func(name string, args ...Term) Term {
	return Term{Expr: &Unresolved{Func: name, Args: exprs(args), made: &Source{}}, err: firstError(args)}
}

// Window is the window of fixed size, in event time, that a row falls into: a grouping
// term, giving a struct of start and end named window. With one more duration, the slide,
// windows begin that often and overlap; with another, the start, they are shifted by it.
func Window(at Term, size time.Duration, slideAndStart ...time.Duration) Term {
	t := Term{err: at.Err()}
	spec := &WindowSpec{Size: size.Microseconds(), Slide: size.Microseconds()}
	switch n := len(slideAndStart); {
	case n > 2:
		t.err = fmt.Errorf("a window has a size, a slide and a start, not %d durations", n+1)
	case n == 2:
		spec.Start = slideAndStart[1].Microseconds()
		fallthrough
	case n == 1:
		spec.Slide = slideAndStart[0].Microseconds()
	}
	for _, d := range append([]time.Duration{size}, slideAndStart...) {
		if d%time.Microsecond != 0 && t.err == nil {
			t.err = fmt.Errorf("the durations of a window are whole microseconds, not %s", d)
		}
	}
	t.Expr = &Unresolved{Func: "window", Args: []Expr{at.Expr}, Window: spec}
	return t
}

// SessionWindow is the session a row belongs to: rows less than gap apart, an INTERVAL
// or a text like '5 minutes', fixed or of each row. A grouping term, as Window; its
// struct is named session_window.
func SessionWindow(time, gap Term) Term {
	return Term{
		Expr: &Unresolved{Func: "session_window", Args: []Expr{time.Expr}, Window: &WindowSpec{Gap: gap.Expr}},
		err:  firstError([]Term{time, gap}),
	}
}

func firstError(terms []Term) error {
	for _, t := range terms {
		if err := t.Err(); err != nil {
			return err
		}
	}
	return nil
}

func exprs(terms []Term) []Expr {
	out := make([]Expr, len(terms))
	for i, t := range terms {
		out[i] = t.Expr
	}
	return out
}

// As names the term.
func (t Term) As(name string) Term { t.Name = name; return t }

// Asc sorts ascending, as a term without direction does.
func (t Term) Asc() Term { t.Descending = false; return t }

// Desc sorts descending.
func (t Term) Desc() Term { t.Descending = true; return t }

// NullsFirst and NullsLast sort nulls before or after everything else. Unsaid, they are
// first ascending and last descending.
func (t Term) NullsFirst() Term { t.nulls = nullsFirst; return t }
func (t Term) NullsLast() Term  { t.nulls = nullsLast; return t }

// SortsNullsFirst says whether the term sorts nulls first.
func (t Term) SortsNullsFirst() bool {
	if t.nulls == nullsUnsaid {
		return !t.Descending
	}
	return t.nulls == nullsFirst
}

// Eq, Ne, Lt, Le, Gt and Ge compare.
func (t Term) Eq(o Term) Term { return Func("=", t, o) }
func (t Term) Ne(o Term) Term { return Func("<>", t, o) }
func (t Term) Lt(o Term) Term { return Func("<", t, o) }
func (t Term) Le(o Term) Term { return Func("<=", t, o) }
func (t Term) Gt(o Term) Term { return Func(">", t, o) }
func (t Term) Ge(o Term) Term { return Func(">=", t, o) }

// Add, Sub, Mul, Div, IntDiv and Mod compute; Div of integers is DOUBLE, IntDiv truncates.
func (t Term) Add(o Term) Term    { return Func("+", t, o) }
func (t Term) Sub(o Term) Term    { return Func("-", t, o) }
func (t Term) Mul(o Term) Term    { return Func("*", t, o) }
func (t Term) Div(o Term) Term    { return Func("/", t, o) }
func (t Term) IntDiv(o Term) Term { return Func("//", t, o) }
func (t Term) Mod(o Term) Term    { return Func("%", t, o) }

// And, Or and Not combine conditions with SQL's three values.
func (t Term) And(o Term) Term { return Func(andName, t, o) }
func (t Term) Or(o Term) Term  { return Func(orName, t, o) }
func (t Term) Not() Term       { return Func("not", t) }

// IsNull and IsNotNull test for null.
func (t Term) IsNull() Term    { return Func("is_null", t) }
func (t Term) IsNotNull() Term { return Func("is_not_null", t) }

// In tests membership.
func (t Term) In(list ...Term) Term { return Func(inName, append([]Term{t}, list...)...) }

// Between is t >= low AND t <= high.
func (t Term) Between(low, high Term) Term { return t.Ge(low).And(t.Le(high)) }

// Like matches a pattern with % and _.
func (t Term) Like(pattern string) Term { return Func("like", t, Lit(pattern)) }

// Cast converts; a value that cannot be converted fails the query.
func (t Term) Cast(dt arrow.DataType) Term {
	return Term{Expr: &Unresolved{Func: castName, Args: []Expr{t.Expr}, To: dt}, err: t.castable(dt)}
}

// TryCast converts; a value that cannot be converted becomes null.
func (t Term) TryCast(dt arrow.DataType) Term {
	return Term{Expr: &Unresolved{Func: tryCastName, Args: []Expr{t.Expr}, To: dt}, err: t.castable(dt)}
}

// castable is what is wrong with a cast of the term.
func (t Term) castable(dt arrow.DataType) error {
	switch {
	case t.Err() != nil:
		return t.Err()
	case dt == nil:
		return errors.New("the type to cast to is nil; use one of package columnar, such as columnar.Int64")
	case !columnar.Supported(dt):
		return fmt.Errorf("the engine does not compute with %s; use a type of package columnar, such as columnar.Timestamp", dt)
	}
	return nil
}

// EqNull is equality for which null equals null, and nothing else does.
func (t Term) EqNull(o Term) Term { return Func("is_not_distinct_from", t, o) }

// Distinct makes an aggregate count each value once.
func (t Term) Distinct() Term {
	return t.changed("Distinct applies to an aggregate", func(u *Unresolved) { u.Distinct = true })
}

// Filter makes an aggregate see only the rows for which cond is true.
func (t Term) Filter(cond Term) Term {
	t.err = firstError([]Term{t, cond})
	return t.changed("Filter applies to an aggregate", func(u *Unresolved) { u.Filter = cond.Expr })
}

// changed is t with its call changed; of anything but a call it is an error.
func (t Term) changed(rule string, change func(*Unresolved)) Term {
	u, ok := t.Expr.(*Unresolved)
	if !ok {
		if t.err = t.Err(); t.err == nil {
			t.err = fmt.Errorf("%s, not to %s", rule, t.Expr)
		}
		return t
	}
	n := *u
	change(&n)
	t.Expr = &n
	return t
}

// When begins CASE WHEN cond THEN value.
func When(cond, value Term) Term { return Func(caseName, cond, value) }

// When adds a branch to a term begun by the function When.
func (t Term) When(cond, value Term) Term { return t.extendCase(cond, value) }

// Otherwise ends a term begun by the function When.
func (t Term) Otherwise(value Term) Term { return t.extendCase(value) }

func (t Term) extendCase(terms ...Term) Term {
	u, ok := t.Expr.(*Unresolved)
	if t.err = t.Err(); t.err != nil {
		return t
	}
	if !ok || u.Func != caseName || len(u.Args)%2 == 1 {
		t.err = fmt.Errorf("When and Otherwise continue a When, not %s", t.Expr)
		return t
	}
	return Term{Expr: &Unresolved{Func: caseName, Args: append(append([]Expr(nil), u.Args...), exprs(terms)...)}, err: firstError(append([]Term{t}, terms...))}
}
