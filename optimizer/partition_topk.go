package optimizer

import (
	"github.com/apache/arrow-go/v18/arrow/array"

	"github.com/tidemill/tidemill/logical"
	"github.com/tidemill/tidemill/logical/expr"
)

// PartitionTopK tells row_number, rank and dense_rank below a filter for small values how
// many of each partition are wanted. The filter stays.
var PartitionTopK Rule = rule{"partition_topk", func(n logical.Node) (logical.Node, error) {
	f, ok := n.(*logical.Filter)
	if !ok {
		return n, nil
	}
	o, ok := f.Input.(*logical.Over)
	if !ok || o.Top != nil || logical.IsStreaming(o) {
		return n, nil
	}
	for _, g := range o.Functions {
		if !isRank(g.Expr) || len(g.Expr.(*expr.Over).Order) == 0 || isVolatile(g.Expr) {
			return n, nil // what it gives depends on all rows of the partition
		}
	}
	for _, c := range expr.Conjuncts(f.Cond) {
		for _, g := range o.Functions {
			if most, ok := atMost(c, g.ID); ok && most > 0 {
				return f.WithChildren([]logical.Node{o.WithTop(&logical.Top{Func: g.Expr.(*expr.Over).Func, N: most})}), nil
			}
		}
	}
	return n, nil
}}

// isRank says whether e counts the rows, or values, before a row.
func isRank(e expr.Expr) bool {
	switch e.(*expr.Over).Func {
	case "row_number", "rank", "dense_rank":
		return true
	}
	return false
}

// atMost is the largest value of column id for which cond can be true.
func atMost(cond expr.Expr, id expr.ID) (most int64, ok bool) {
	c, isCall := cond.(*expr.Call)
	if !isCall || len(c.Args) != 2 {
		return 0, false
	}
	op, column, limit := c.Func.Name, c.Args[0], c.Args[1]
	if _, isColumn := limit.(*expr.Column); isColumn {
		op, column, limit = mirrored[op], limit, column
	}
	col, isColumn := column.(*expr.Column)
	l, isLiteral := limit.(*expr.Literal)
	if !isColumn || col.ID != id || !isLiteral || l.IsNull() {
		return 0, false
	}
	a, isInt := l.Value.(*array.Int64)
	if !isInt {
		return 0, false
	}
	v := a.Value(0)
	switch {
	case op == "<=" || op == "=":
		return v, true
	case op == "<":
		return v - 1, v > 0
	}
	return 0, false
}

// mirrored are comparisons with their sides exchanged.
var mirrored = map[string]string{"=": "=", "<=": ">=", ">=": "<=", "<": ">", ">": "<"}
