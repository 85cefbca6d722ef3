package optimizer

import (
	"github.com/apache/arrow-go/v18/arrow/memory"

	"github.com/tidemill/tidemill/columnar/function"
	"github.com/tidemill/tidemill/logical"
	"github.com/tidemill/tidemill/logical/expr"
)

// ReduceOuterJoin makes a lesser join of an outer one below a filter that drops the
// rows padded with nulls: a left or right join becomes inner, a full one left, right or
// inner. Then conditions can go to both sides. A left as-of join becomes inner as well.
func ReduceOuterJoin(env *function.Env) Rule {
	folding := &function.Env{Mem: memory.DefaultAllocator, Location: env.Location}
	return rule{"reduce_outer_join", func(n logical.Node) (logical.Node, error) {
		f, ok := n.(*logical.Filter)
		if !ok {
			return n, nil
		}
		switch j := f.Input.(type) {
		case *logical.Join:
			if j.State != "" {
				return n, nil
			}
			kind := reducedBy(folding, f.Cond, j.Kind, j.Left, j.Right)
			if kind != j.Kind {
				return logical.NewFilter(logical.NewJoin(kind, j.Left, j.Right, j.On), f.Cond), nil
			}
		case *logical.AsofJoin:
			kind := reducedBy(folding, f.Cond, j.Kind, j.Left, j.Right)
			if kind != j.Kind {
				return logical.NewFilter(logical.NewAsofJoin(kind, j.Left, j.Right, j.Keys, j.Nearest), f.Cond), nil
			}
		}
		return n, nil
	}}
}

// reducedBy is the kind of join that is left of kind below a filter by cond.
func reducedBy(folding *function.Env, cond expr.Expr, kind logical.JoinKind, left, right logical.Node) logical.JoinKind {
	var noLeft, noRight bool // rows without the side's columns are dropped
	for _, c := range expr.Conjuncts(cond) {
		if isVolatile(c) {
			break
		}
		noLeft = noLeft || rejectsNulls(folding, c, left.Schema())
		noRight = noRight || rejectsNulls(folding, c, right.Schema())
	}
	return reduced(kind, noLeft, noRight)
}

// reduced is the kind of join that is left of kind without the rows that have nulls for
// the left or for the right side.
func reduced(kind logical.JoinKind, noLeft, noRight bool) logical.JoinKind {
	switch {
	case kind == logical.LeftJoin && noRight, kind == logical.RightJoin && noLeft, kind == logical.FullJoin && noLeft && noRight:
		return logical.InnerJoin
	case kind == logical.FullJoin && noLeft:
		return logical.LeftJoin
	case kind == logical.FullJoin && noRight:
		return logical.RightJoin
	}
	return kind
}

// rejectsNulls says whether cond is never true when all columns of side are null. It
// is computed: with NULL for the columns, as far as the rest is constant.
func rejectsNulls(env *function.Env, cond expr.Expr, side *logical.Schema) bool {
	e, err := expr.Transform(cond, func(x expr.Expr) (expr.Expr, error) {
		if c, ok := x.(*expr.Column); ok && side.Index(c.ID) >= 0 {
			return expr.NullOf(c.DataType), nil
		}
		return simplify(fold(env, x)), nil
	})
	return err == nil && isNeverTrue(e)
}
