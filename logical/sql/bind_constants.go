package sql

import (
	"fmt"
	"slices"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/memory"

	"github.com/tidemill/tidemill/columnar"
	"github.com/tidemill/tidemill/columnar/function"
	"github.com/tidemill/tidemill/logical/expr"
)

// checkConstants refuses constants that a function cannot work with, whatever the row: the
// name of a unit, a pattern, a format, a text for a number that is none. They would be an
// error when the plan is made, or for every row. What is wrong for its value alone is left to the
// rows in a branch that a row may not take.
func (e *env) checkConstants(x expr.Expr) error {
	c, ok := x.(*expr.Call)
	if !ok {
		return nil
	}
	constants := make([]arrow.Array, len(c.Args))
	some := false
	for i, a := range c.Args {
		v, err := constantOf(a)
		if err != nil && !c.Signature.Overload.NullSafe { // coalesce may never come to it
			return err
		}
		constants[i], some = v, some || v != nil
	}
	if !some || c.Signature.Overload.Bind == nil { // declared without a kernel
		return nil
	}
	if err := c.Func.CheckConstants(c.Signature.Args, constants, e.branches > 0); err != nil {
		return err
	}
	_, err := c.Signature.Overload.Bind(c.Signature.Args, constants)
	return err
}

// meantToFail are the functions that are called to be an error.
var meantToFail = map[string]bool{"raise_error": true, "assert_true": true}

// constantError is why a call of constants by its name cannot be computed: it is an error before
// there are rows, unless a row may not come to it. An operator, as 1 / 0, is one of the rows.
func (e *env) constantError(x expr.Expr) error {
	c, ok := x.(*expr.Call)
	if !ok || e.branches > 0 || !c.Signature.Overload.Fallible || c.Signature.Overload.Bind == nil || meantToFail[c.Func.Name] || !isWord(c.Func.Name) {
		return nil
	}
	env := &function.Env{Mem: memory.DefaultAllocator, Location: e.b.p.Location}
	args := make([]expr.Expr, len(c.Args))
	for i, a := range c.Args {
		if !isConstant(a) {
			return nil
		}
		var err error
		if args[i], err = expr.Transform(a, func(x expr.Expr) (expr.Expr, error) { return expr.Fold(env, x), nil }); err != nil {
			return err
		}
	}
	return expr.FoldError(env, c.WithChildren(args))
}

func isWord(name string) bool { return name[0] >= 'a' && name[0] <= 'z' }

// isConstant says whether an expression is made of literals alone.
func isConstant(x expr.Expr) bool {
	switch x := x.(type) {
	case *expr.Literal:
		return true
	case *expr.Cast:
		return isConstant(x.Input)
	case *expr.Call:
		return !slices.ContainsFunc(x.Args, func(a expr.Expr) bool { return !isConstant(a) })
	}
	return false
}

// constantOf is the value of a literal, also of one that is cast to what its place wants;
// nil if it is null or anything else.
func constantOf(x expr.Expr) (arrow.Array, error) {
	c, isCast := x.(*expr.Cast)
	if isCast && c.Implicit {
		x = c.Input
	}
	l, ok := x.(*expr.Literal)
	if !ok || l.IsNull() {
		return nil, nil
	}
	if !isCast {
		return l.Value, nil
	}
	d, err := c.Compute(&function.Env{Mem: memory.DefaultAllocator}, columnar.ConstantDatum(l.Value), 1, nil)
	if err != nil {
		return nil, fmt.Errorf("%w; %s", err, c.Advice())
	}
	return d.Array(), nil
}

// foldedNumber is the value of an integer that reads no row, as a BIGINT; nil if it is none.
func foldedNumber(x expr.Expr) arrow.Array {
	env := &function.Env{Mem: memory.DefaultAllocator}
	folded, err := expr.Transform(expr.CastTo(x, columnar.Int64), func(x expr.Expr) (expr.Expr, error) { return expr.Fold(env, x), nil })
	if l, ok := folded.(*expr.Literal); ok && err == nil {
		return l.Value
	}
	return nil
}

// byPattern are the functions whose second argument is the pattern of a time.
var byPattern = map[string]bool{
	"strftime": true, "strptime": true, "to_timestamp": true, "to_date": true, "try_to_timestamp": true, "try_to_date": true,
	"unix_timestamp": true, "from_unixtime": true, "to_char": true,
}

// doubtfulPattern is what a constant pattern of a time says and probably does not mean.
func doubtfulPattern(x expr.Expr) string {
	c, ok := x.(*expr.Call)
	if !ok || !byPattern[c.Func.Name] || len(c.Args) != 2 {
		return ""
	}
	pattern, ok := c.Args[1].(*expr.Literal)
	if !ok || pattern.IsNull() || pattern.Type().ID() != arrow.STRING {
		return ""
	}
	return function.DoubtfulPattern(pattern.Value.ValueStr(0))
}
