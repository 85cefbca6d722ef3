package expr

import (
	"slices"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/memory"

	"github.com/tidemill/tidemill/columnar"
	"github.com/tidemill/tidemill/columnar/function"
)

// Fold is an immutable call or a cast of literals as a literal, computed with the kernels
// that would compute it row by row; every other expression as it is. What would be an
// error stays, too: it is one only if a row gets there.
func Fold(env *function.Env, e Expr) Expr {
	switch x := e.(type) {
	case *Call:
		return foldCall(env, x)
	case *Cast:
		if l, ok := x.Input.(*Literal); ok {
			d, err := x.Compute(env, columnar.ConstantDatum(retained(l.Value)), 1, nil)
			return literalOr(d, err, x)
		}
	}
	return e
}

func isNull(e Expr) bool {
	l, ok := e.(*Literal)
	return ok && l.IsNull()
}

func foldCall(env *function.Env, c *Call) Expr {
	o := c.Signature.Overload
	if o.Volatility != function.Immutable {
		return c
	}
	if !o.NullSafe && slices.ContainsFunc(c.Args, isNull) {
		return NullOf(c.Type())
	}
	args := make([]columnar.Datum, len(c.Args))
	constants := make([]arrow.Array, len(c.Args))
	for i, a := range c.Args {
		l, ok := a.(*Literal)
		if !ok {
			return c
		}
		args[i], constants[i] = columnar.ConstantDatum(retained(l.Value)), l.Value
	}
	kernel, err := o.Bind(c.Signature.Args, constants)
	if err != nil {
		return c
	}
	d, err := kernel(env, args, 1, nil)
	return literalOr(d, err, c)
}

// literalOr is the value of d as a literal, or e if there was an error.
func literalOr(d columnar.Datum, err error, e Expr) Expr {
	if err != nil || d.Array().Len() != 1 || !arrow.TypeEqual(d.Type(), e.Type()) {
		return e
	}
	return &Literal{Value: d.Array()}
}

func retained(a arrow.Array) arrow.Array {
	a.Retain()
	return a
}

// NullOf is NULL of a type.
func NullOf(dt arrow.DataType) *Literal {
	return &Literal{Value: columnar.Nulls(memory.DefaultAllocator, dt, 1)}
}

// constant is the value of an expression that reads no row; nil if it is none.
func constant(e Expr) arrow.Array {
	env := &function.Env{Mem: memory.DefaultAllocator}
	folded, err := Transform(e, func(x Expr) (Expr, error) { return Fold(env, x), nil })
	if l, ok := folded.(*Literal); ok && err == nil {
		return l.Value
	}
	return nil
}
