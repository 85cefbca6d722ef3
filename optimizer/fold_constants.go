package optimizer

import (
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
	if in, ok := e.(*expr.In); ok {
		return foldIn(env, in)
	}
	return expr.Fold(env, e)
}

func isNull(e expr.Expr) bool {
	l, ok := e.(*expr.Literal)
	return ok && l.IsNull()
}

// foldIn looks a constant up in the constants of a list: the first equal one decides,
// and without one a null in the list leaves it open.
func foldIn(env *function.Env, x *expr.In) expr.Expr {
	if isNull(x.Value) {
		return expr.NullOf(columnar.Boolean)
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
			result = expr.NullOf(columnar.Boolean)
		}
	}
	return result
}

// booleanLiteral is TRUE or FALSE.
func booleanLiteral(v bool) *expr.Literal {
	b := array.NewBooleanBuilder(memory.DefaultAllocator)
	b.Append(v)
	return &expr.Literal{Value: b.NewArray()}
}
