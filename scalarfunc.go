package tidemill

import (
	"fmt"

	"github.com/apache/arrow-go/v18/arrow"

	"github.com/tidemill/tidemill/columnar"
	"github.com/tidemill/tidemill/columnar/function"
)

// ScalarFunc makes a scalar function of a Go function that is called once a row, for
// RegisterFunction. Values come as Rows.Value gives them, never null: a null argument
// makes the result null. f returns what columnar.Builder.Append takes for the type of
// the result, or nil for null; an error ends the query, and so does a panic (a
// *PanicError). args and the values are the function's to keep. f must give the same
// result for the same arguments, and is called by several goroutines at the same time.
// What is wrong with the arguments, RegisterFunction says.
//
// A function that must be fast is a function.Scalar with a kernel, which is given whole
// columns.
func ScalarFunc(name string, args []arrow.DataType, result arrow.DataType, f func(args []any) (any, error)) *function.Scalar {
	matchers := make([]function.Matcher, len(args))
	for i, a := range args {
		if a != nil { // else RegisterFunction refuses it
			matchers[i] = function.Exactly(a)
		}
	}
	o := function.Overload{Args: matchers, Fallible: true}
	if result != nil {
		o.Result = function.Always(result)
	}
	if f != nil {
		o.Bind = func([]arrow.DataType, []arrow.Array) (function.Kernel, error) { return rowKernel(result, f), nil }
	}
	return &function.Scalar{Name: name, Overloads: []function.Overload{o}}
}

// rowKernel calls f for each row.
func rowKernel(result arrow.DataType, f func(args []any) (any, error)) function.Kernel {
	return func(env *function.Env, args []columnar.Datum, rows int, active *columnar.Bitmap) (columnar.Datum, error) {
		b := columnar.NewBuilder(env.Mem, result)
		defer b.Release()
		for i := range rows {
			v, err := callRow(f, args, i, active)
			if err == nil {
				err = b.Append(v)
			}
			if err != nil {
				return columnar.Datum{}, fmt.Errorf("%s: %w", env.Expr, err)
			}
		}
		return columnar.ColumnDatum(b.NewArray()), nil
	}
}

// callRow calls f with row i; rows that do not count, and those with a null, are null.
func callRow(f func([]any) (any, error), args []columnar.Datum, i int, active *columnar.Bitmap) (any, error) {
	if !active.Get(i) {
		return nil, nil
	}
	values := make([]any, len(args)) // f may keep it
	for k, a := range args {
		at := i
		if a.IsConstant() {
			at = 0
		}
		if values[k] = goValue(a.Array(), at); values[k] == nil {
			return nil, nil
		}
	}
	return f(values)
}
