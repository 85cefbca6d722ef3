package expr

import (
	"errors"
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
	if v, err := fold(env, e); v != nil && err == nil {
		return v
	}
	return e
}

// FoldError is why Fold left an immutable call or a cast of literals as it is: the error
// for a row that gets there; nil for any other expression.
func FoldError(env *function.Env, e Expr) error {
	_, err := fold(env, e)
	return err
}

// fold is the value of an immutable call or a cast of literals; nil for other expressions.
func fold(env *function.Env, e Expr) (Expr, error) {
	switch x := e.(type) {
	case *Call:
		return foldCall(env, x)
	case *Cast:
		if l, ok := x.Input.(*Literal); ok {
			d, err := x.Compute(env, columnar.ConstantDatum(retained(l.Value)), 1, nil)
			return literalOf(d, err, x)
		}
	}
	return nil, nil
}

// errLarge keeps a value that is out of proportion to what is written from being computed
// before a row asks for it, within the memory that the query may have.
var errLarge = errors.New("too large for a constant")

func isNull(e Expr) bool {
	l, ok := e.(*Literal)
	return ok && l.IsNull()
}

func foldCall(env *function.Env, c *Call) (Expr, error) {
	o := c.Signature.Overload
	if o.Volatility != function.Immutable {
		return nil, nil
	}
	if !o.NullSafe && slices.ContainsFunc(c.Args, isNull) {
		return NullOf(c.Type()), nil
	}
	args := make([]columnar.Datum, len(c.Args))
	constants := make([]arrow.Array, len(c.Args))
	for i, a := range c.Args {
		l, ok := a.(*Literal)
		if !ok {
			return nil, nil
		}
		args[i], constants[i] = columnar.ConstantDatum(retained(l.Value)), l.Value
	}
	kernel, err := o.Bind(c.Signature.Args, constants)
	if err != nil {
		return nil, &function.BindError{Err: err}
	}
	folding := *env
	folding.Charge = func(int64) error { return errLarge }
	d, err := kernel(&folding, args, 1, nil)
	if errors.Is(err, errLarge) {
		return nil, nil
	}
	return literalOf(d, err, c)
}

// literalOf is the value d of e as a literal; nil if a kernel gave something else.
func literalOf(d columnar.Datum, err error, e Expr) (Expr, error) {
	if err != nil || d.Array().Len() != 1 || !arrow.TypeEqual(d.Type(), e.Type()) {
		return nil, err
	}
	return &Literal{Value: d.Array()}, nil
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
