package eval

import (
	"slices"
	"strings"

	"github.com/tidemill/tidemill/columnar/function"
	"github.com/tidemill/tidemill/logical/expr"
)

// ConstantErrors are the errors that e gives for every row, whatever it holds: those of
// constants in it that are always computed, not in a branch that a row may not take. Each
// is told with its expression, as Fold left it.
func ConstantErrors(env *function.Env, e expr.Expr) (failing []expr.Expr, errs []error) {
	folded, err := expr.Transform(e, func(x expr.Expr) (expr.Expr, error) { return expr.Fold(env, x), nil })
	if err != nil {
		return nil, nil // the function above returns none
	}
	var walk func(x expr.Expr)
	walk = func(x expr.Expr) {
		if err := expr.FoldError(env, x); err != nil {
			failing, errs = append(failing, x), append(errs, Failed(x, err))
			return
		}
		for _, c := range alwaysComputed(x) {
			walk(c)
		}
	}
	walk(folded)
	return failing, errs
}

// alwaysComputed are the children of e that are computed for each of its rows.
func alwaysComputed(e expr.Expr) []expr.Expr {
	children := e.Children()
	switch x := e.(type) {
	case *expr.Logic, *expr.Case:
		return children[:1]
	case *expr.Call:
		if lazinessOf(x) != eager && len(children) > 0 {
			return children[:1]
		}
	case *expr.Agg:
		if x.Filter != nil {
			return []expr.Expr{x.Filter}
		}
	case *expr.Over:
		if x.Agg != nil && x.Agg.Filter != nil {
			return slices.Concat([]expr.Expr{x.Agg.Filter}, x.Partition)
		}
	}
	return children
}

// lazinessOf says which arguments of a call are computed for which rows.
func lazinessOf(x *expr.Call) laziness {
	switch strings.ToLower(x.Func.Name) {
	case "coalesce", "ifnull", "nvl":
		return firstValid
	case "if", "iff":
		if len(x.Args) == 3 {
			return conditional
		}
	}
	return eager
}
