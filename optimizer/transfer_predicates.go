package optimizer

import (
	"slices"

	"github.com/apache/arrow-go/v18/arrow"

	"github.com/tidemill/tidemill/logical"
	"github.com/tidemill/tidemill/logical/expr"
)

// TransferPredicates gives a condition on a column that a join makes equal to another
// column to the side of the other, too, whose rows that fail it meet nothing. So a
// filter on the key of one table narrows the scans of both.
var TransferPredicates Rule = rule{"transfer_predicates", func(n logical.Node) (logical.Node, error) {
	j, ok := n.(*logical.Join)
	if !ok || j.On == nil || j.State != "" || logical.IsStreaming(j) {
		return n, nil
	}
	toLeft := j.Kind == logical.InnerJoin || j.Kind == logical.SemiJoin || j.Kind == logical.RightJoin
	toRight := j.Kind != logical.RightJoin && j.Kind != logical.FullJoin && j.Kind != logical.CrossJoin
	var left, right []expr.Expr
	for _, c := range expr.Conjuncts(j.On) {
		a, b, ok := plainEquality(c, j)
		if !ok {
			continue
		}
		if toRight {
			more, err := missing(j.Left, a, j.Right, b)
			if err != nil {
				return nil, err
			}
			right = append(right, more...)
		}
		if toLeft {
			more, err := missing(j.Right, b, j.Left, a)
			if err != nil {
				return nil, err
			}
			left = append(left, more...)
		}
	}
	if len(left)+len(right) == 0 {
		return n, nil
	}
	return j.WithChildren([]logical.Node{filtered(j.Left, left), filtered(j.Right, right)}), nil
}}

// plainEquality takes left column = right column apart, both of one type.
func plainEquality(e expr.Expr, j *logical.Join) (a, b *expr.Column, ok bool) {
	if !isEquality(e) {
		return nil, nil, false
	}
	args := e.Children()
	a, isA := args[0].(*expr.Column)
	b, isB := args[1].(*expr.Column)
	if !isA || !isB || !arrow.TypeEqual(a.DataType, b.DataType) {
		return nil, nil, false
	}
	if !j.Left.Schema().Has(a.ID) {
		a, b = b, a
	}
	return a, b, j.Left.Schema().Has(a.ID) && j.Right.Schema().Has(b.ID)
}

// missing are the conditions that hold of column a of from, over column b of to, as far
// as they are not known to hold there.
func missing(from logical.Node, a *expr.Column, to logical.Node, b *expr.Column) ([]expr.Expr, error) {
	known := setOf(holding(to, b.ID))
	var list []expr.Expr
	for _, c := range holding(from, a.ID) {
		if isVolatile(c) || expr.IsFallible(c) || !respectsEquality(c) {
			continue
		}
		moved, err := expr.Transform(c, func(x expr.Expr) (expr.Expr, error) {
			if col, ok := x.(*expr.Column); ok && col.ID == a.ID {
				return b, nil
			}
			return x, nil
		})
		if err != nil {
			return nil, err
		}
		if _, added := known.Add(moved); added {
			list = append(list, moved)
		}
	}
	return list, nil
}

// holding are conditions on column id alone that every row of n satisfies.
func holding(n logical.Node, id expr.ID) []expr.Expr {
	switch x := n.(type) {
	case *logical.Filter:
		list := holding(x.Input, id)
		for _, c := range expr.Conjuncts(x.Cond) {
			if ids := expr.Columns(c); len(ids) == 1 && ids[0] == id {
				list = append(list, c)
			}
		}
		return list
	case *logical.Project:
		if slices.ContainsFunc(x.Columns, func(c expr.Named) bool { return c.ID == id && isPass(c) }) {
			return holding(x.Input, id)
		}
	case *logical.Sort, *logical.Limit, *logical.Distinct, *logical.Over:
		return holding(n.Children()[0], id)
	case *logical.Join:
		if x.Left.Schema().Has(id) && x.Kind != logical.RightJoin && x.Kind != logical.FullJoin {
			return holding(x.Left, id)
		}
		if x.Right.Schema().Has(id) && x.Kind != logical.LeftJoin && x.Kind != logical.FullJoin {
			return holding(x.Right, id)
		}
	}
	return nil
}

// isPass says whether a column of a projection is a column of its input under the same
// ID.
func isPass(n expr.Named) bool {
	c, ok := n.Expr.(*expr.Column)
	return ok && c.ID == n.ID
}
