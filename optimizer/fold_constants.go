package optimizer

import (
	"slices"

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
		return rewriteExprs(n, func(e expr.Expr) expr.Expr { return fold(folding, e) })
	}}
}

func fold(env *function.Env, e expr.Expr) expr.Expr {
	switch x := e.(type) {
	case *expr.Call:
		return foldCall(env, x)
	case *expr.In:
		return foldIn(env, x)
	case *expr.Cast:
		if l, ok := x.Input.(*expr.Literal); ok {
			d, err := function.Cast(env, columnar.ConstantDatum(retained(l.Value)), x.To, x.Try, 1, nil)
			return literalOr(d, err, x)
		}
	}
	return e
}

func isNull(e expr.Expr) bool {
	l, ok := e.(*expr.Literal)
	return ok && l.IsNull()
}

// foldIn looks a constant up in the constants of a list: the first equal one decides,
// and without one a null in the list leaves it open.
func foldIn(env *function.Env, x *expr.In) expr.Expr {
	if isNull(x.Value) {
		return nullLiteral(columnar.Boolean)
	}
	result := booleanLiteral(false)
	for _, item := range x.List {
		eq, err := expr.NewCall(builtins(), "=", x.Value, item)
		if err != nil {
			return x
		}
		switch v, known := boolean(fold(env, eq)); {
		case !known:
			return x
		case v == yes:
			return booleanLiteral(true)
		case v == unknown:
			result = nullLiteral(columnar.Boolean)
		}
	}
	return result
}

func foldCall(env *function.Env, c *expr.Call) expr.Expr {
	o := c.Signature.Overload
	if o.Volatility != function.Immutable {
		return c
	}
	if !o.NullSafe && slices.ContainsFunc(c.Args, isNull) {
		return nullLiteral(c.Type())
	}
	args := make([]columnar.Datum, len(c.Args))
	constants := make([]arrow.Array, len(c.Args))
	for i, a := range c.Args {
		l, ok := a.(*expr.Literal)
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
	return &expr.Literal{Value: columnar.Nulls(memory.DefaultAllocator, dt, 1)}
}

// booleanLiteral is TRUE or FALSE.
func booleanLiteral(v bool) *expr.Literal {
	b := array.NewBooleanBuilder(memory.DefaultAllocator)
	b.Append(v)
	return &expr.Literal{Value: b.NewArray()}
}
