package sql

import (
	"github.com/tidemill/tidemill/logical"
	"github.com/tidemill/tidemill/logical/expr"
	"github.com/tidemill/tidemill/logical/sql/ast"
)

// rowOf is the values of a row, or of a single value.
func rowOf(x ast.Expr) []ast.Expr {
	if r, ok := ast.Unparen(x).(*ast.Row); ok {
		return r.Items
	}
	return []ast.Expr{x}
}

// compareRows compares value by value: rows are equal if all values are, and in the order
// of the first in which they differ. A null that decides makes it null.
func (e *env) compareRows(n ast.Node, op string, l, r *ast.Row) (expr.Expr, error) {
	if len(l.Items) != len(r.Items) {
		return nil, e.b.errorf(n, "a row of %d values is compared with a row of %d", len(l.Items), len(r.Items))
	}
	logic := &expr.Logic{Op: expr.And}
	switch op {
	case "<", "<=", ">", ">=":
		return e.orderRows(n, op, l.Items, r.Items)
	case "<>", "is_distinct_from":
		logic.Op = expr.Or
	}
	for i := range l.Items {
		c, err := e.compare(n, op, l.Items[i], r.Items[i])
		if err != nil {
			return nil, err
		}
		logic.Args = append(logic.Args, c)
	}
	return logic, nil
}

// orderRows is (a, b) < (c, d): a < c OR a = c AND b < d.
func (e *env) orderRows(n ast.Node, op string, l, r []ast.Expr) (expr.Expr, error) {
	last := len(l) - 1
	result, err := e.compare(n, op, l[last], r[last])
	for i := last - 1; i >= 0 && err == nil; i-- {
		var less, equal expr.Expr
		if less, err = e.compare(n, op[:1], l[i], r[i]); err != nil {
			return nil, err
		}
		if equal, err = e.compare(n, "=", l[i], r[i]); err != nil {
			return nil, err
		}
		result = &expr.Logic{Op: expr.Or, Args: []expr.Expr{less, &expr.Logic{Op: expr.And, Args: []expr.Expr{equal, result}}}}
	}
	return result, err
}

// rowIn binds (a, b) IN ((1, 2), (3, 4)).
func (e *env) rowIn(n *ast.In, row *ast.Row) (expr.Expr, error) {
	or := &expr.Logic{Op: expr.Or}
	for _, x := range n.List {
		r, ok := ast.Unparen(x).(*ast.Row)
		if !ok {
			return nil, e.b.errorf(x, "a row of %d values is compared with a single value", len(row.Items))
		}
		c, err := e.compareRows(x, "=", row, r)
		if err != nil {
			return nil, err
		}
		or.Args = append(or.Args, c)
	}
	var x expr.Expr = or
	if len(or.Args) == 1 {
		x = or.Args[0]
	}
	if n.Not {
		return e.call(n, "not", x)
	}
	return x, nil
}

// inColumns are the values on the left of IN (query), and the columns of the query.
func (e *env) inColumns(n *ast.In, columns []column) ([]ast.Expr, error) {
	row := rowOf(n.X)
	switch {
	case len(row) == len(columns):
		return row, nil
	case len(row) == 1:
		return nil, e.b.errorf(n, "the query of IN has one column, this one has %d", len(columns))
	}
	return nil, e.b.errorf(n, "a row of %d values is compared with a query of %s", len(row), count(len(columns), "column"))
}

// inEquals binds the comparison of a value on the left of IN (query) with a column.
func (e *env) inEquals(n *ast.In, x ast.Expr, y *expr.Column) (*expr.Call, error) {
	v, err := e.bind(x)
	if err != nil {
		return nil, err
	}
	args, err := e.meet([]expr.Expr{v, y}, []ast.Expr{x, n})
	if err != nil {
		return nil, err
	}
	eq, err := e.call(n, "=", args...)
	if err != nil {
		return nil, err
	}
	return e.b.placed(eq, n).(*expr.Call), nil
}

// inQuery binds x IN (query) as a condition: the query and what joins it. For NOT IN a
// comparison that is null counts as a match, as SQL has it.
func (e *env) inQuery(n *ast.In, not bool) (expr.Expr, logical.Node, error) {
	r, d, err := e.subquery(n, n.Query, byConditions)
	if err == nil && d.empty != nil {
		r, d, err = e.subquery(n, n.Query, byRowPairs)
	}
	if err != nil {
		return nil, nil, err
	}
	row, err := e.inColumns(n, r.columns)
	if err != nil {
		return nil, nil, err
	}
	var conds []expr.Expr
	for i, x := range row {
		on, err := e.inEquals(n, x, r.columns[i].Column)
		if err != nil {
			return nil, nil, err
		}
		c := expr.Expr(on)
		if not {
			if c, err = e.orNull(n, on); err != nil {
				return nil, nil, err
			}
		}
		conds = append(conds, c)
	}
	return expr.All(append(conds, d.conds...)), r.node, nil
}

// orNull is true also where a side of a comparison is null.
func (e *env) orNull(n ast.Node, on *expr.Call) (expr.Expr, error) {
	terms := []expr.Expr{on}
	for _, side := range on.Args {
		if !side.Nullable() {
			continue
		}
		if c, ok := side.(*expr.Cast); ok && !c.Try {
			side = c.Input // null where that is
		}
		null, err := e.call(n, "is_null", side)
		if err != nil {
			return nil, err
		}
		terms = append(terms, null)
	}
	if len(terms) == 1 {
		return on, nil
	}
	return &expr.Logic{Op: expr.Or, Args: terms}, nil
}
