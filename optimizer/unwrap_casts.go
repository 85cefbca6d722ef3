package optimizer

import (
	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/memory"

	"github.com/tidemill/tidemill/columnar"
	"github.com/tidemill/tidemill/logical"
	"github.com/tidemill/tidemill/logical/expr"
)

// UnwrapCasts compares a column of integers as it is with constants, where it would be
// widened for each row: CAST(small AS BIGINT) > 1 is small > 1. Files can then be
// skipped by their statistics.
var UnwrapCasts Rule = rule{"unwrap_casts", func(n logical.Node) (logical.Node, error) {
	return rewriteExprs(n, unwrap)
}}

func unwrap(e expr.Expr) expr.Expr {
	switch x := e.(type) {
	case *expr.Call:
		if !comparisons[x.Func.Name] || len(x.Args) != 2 {
			return e
		}
		for i, a := range x.Args {
			in, narrow := widened(a)
			if !narrow {
				continue
			}
			if l, ok := narrowed(x.Args[1-i], in.Type()); ok {
				args := []expr.Expr{in, l}
				return call(x.Func.Name, e, args[i], args[1-i])
			}
		}
	case *expr.In:
		in, narrow := widened(x.Value)
		if !narrow {
			return e
		}
		list := make([]expr.Expr, len(x.List))
		for i, item := range x.List {
			l, ok := narrowed(item, in.Type())
			if !ok {
				return e
			}
			list[i] = l
		}
		return &expr.In{Value: in, List: list}
	}
	return e
}

// widened is what a cast of an integer to a wider integer is made of.
func widened(e expr.Expr) (in expr.Expr, ok bool) {
	c, ok := e.(*expr.Cast)
	if !ok || !columnar.IsInteger(c.To) || !columnar.IsInteger(c.Input.Type()) {
		return nil, false
	}
	return c.Input, bits(c.Input.Type()) < bits(c.To)
}

// narrowed is an integer constant, or null, as one of the smaller type dt, if it fits.
func narrowed(e expr.Expr, dt arrow.DataType) (expr.Expr, bool) {
	l, ok := e.(*expr.Literal)
	if !ok || !columnar.IsInteger(l.Type()) {
		return nil, false
	}
	if l.IsNull() {
		return expr.NullOf(dt), true
	}
	a, err := columnar.Column(memory.DefaultAllocator, dt, columnar.Value(l.Value, 0))
	if err != nil {
		return nil, false // it does not fit
	}
	return &expr.Literal{Value: a}, true
}

func bits(dt arrow.DataType) int {
	if f, ok := dt.(arrow.FixedWidthDataType); ok {
		return f.BitWidth()
	}
	return 0
}
