package optimizer

import (
	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/memory"

	"github.com/tidemill/tidemill/columnar"
	"github.com/tidemill/tidemill/columnar/function"
	"github.com/tidemill/tidemill/logical"
	"github.com/tidemill/tidemill/logical/expr"
)

// FoldConstants computes immutable expressions over literals, with the kernels that
// would compute them row by row. What would be an error stays as it is: it is an
// error only if a row gets there.
func FoldConstants(env *function.Env) Rule {
	folding := &function.Env{Mem: memory.DefaultAllocator, Location: env.Location}
	return rule{"fold_constants", func(n logical.Node) (logical.Node, error) {
		return logical.TransformExprs(n, func(e expr.Expr) (expr.Expr, error) { return fold(folding, e), nil })
	}}
}

func fold(env *function.Env, e expr.Expr) expr.Expr {
	switch x := e.(type) {
	case *expr.Call:
		return foldCall(env, x)
	case *expr.Cast:
		if l, ok := x.Input.(*expr.Literal); ok {
			d, err := function.Cast(env, columnar.ConstantDatum(retained(l.Value)), x.To, x.Try, 1, nil)
			return literalOr(d, err, x)
		}
	}
	return e
}

func foldCall(env *function.Env, c *expr.Call) expr.Expr {
	o := c.Signature.Overload
	if o.Volatility != function.Immutable {
		return c
	}
	args := make([]columnar.Datum, len(c.Args))
	constants := make([]arrow.Array, len(c.Args))
	for i, a := range c.Args {
		l, ok := a.(*expr.Literal)
		if !ok {
			return c
		}
		if l.IsNull() && !o.NullSafe {
			return nullLiteral(c.Type())
		}
		args[i], constants[i] = columnar.ConstantDatum(l.Value), l.Value
	}
	kernel, err := o.Bind(c.Signature.Args, constants)
	if err != nil {
		return c
	}
	d, err := kernel(env, args, 1, nil)
	return literalOr(d, err, c)
}

// literalOr is the value of d as a literal, or e if there was an error.
func literalOr(d columnar.Datum, err error, e expr.Expr) expr.Expr {
	if err != nil || d.Array().Len() != 1 || !arrow.TypeEqual(d.Type(), e.Type()) {
		return e
	}
	return &expr.Literal{Value: d.Array()}
}

func retained(a arrow.Array) arrow.Array {
	a.Retain()
	return a
}

// nullLiteral is NULL of a type.
func nullLiteral(dt arrow.DataType) *expr.Literal {
	return &expr.Literal{Value: array.MakeArrayOfNull(memory.DefaultAllocator, dt, 1)}
}

// booleanLiteral is TRUE or FALSE.
func booleanLiteral(v bool) *expr.Literal {
	b := array.NewBooleanBuilder(memory.DefaultAllocator)
	b.Append(v)
	return &expr.Literal{Value: b.NewArray()}
}
