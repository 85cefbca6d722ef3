package sql

import (
	"slices"

	"github.com/tidemill/tidemill/columnar"
	"github.com/tidemill/tidemill/logical"
	"github.com/tidemill/tidemill/logical/expr"
	"github.com/tidemill/tidemill/logical/sql/ast"
)

// inValue binds x IN (query) as a value: true where there is an equal row, null where a
// null may be one, else false.
func (e *env) inValue(n *ast.In) (expr.Expr, error) {
	if e.subs == nil {
		return nil, e.b.unsupported(n, "IN (query) in "+e.clause, "", "make it a condition of WHERE")
	}
	r, d, err := e.subquery(n, n.Query, byRowPairs)
	if err != nil {
		return nil, err
	}
	row, err := e.inColumns(n, r.columns)
	if err != nil {
		return nil, err
	}
	pairs, _ := d.pairs(r.node)
	equal := slices.Clone(pairs)
	var comparisons []*expr.Call
	for i, x := range row {
		eq, err := e.inEquals(n, x, r.columns[i].Column)
		if err != nil {
			return nil, err
		}
		comparisons = append(comparisons, eq)
		equal = append(equal, pair{"=", eq.Args[1], eq.Args[0]})
	}
	maybe, err := e.maybeIn(n, r.node, pairs, comparisons)
	if err != nil {
		return nil, err
	}
	there := expr.As(boolLiteral(true), "there")
	s := &scalar{node: r.node, pairs: equal, syntax: n}
	s.group(nil)
	s.node = logical.NewProject(s.node, append(passAll(s.node), there))
	s.column = there.Column()
	e.addScalar(s)
	marker := *s.column
	marker.Null = true
	found, err := e.call(n, "is_not_null", &marker)
	if err != nil {
		return nil, err
	}
	result, err := maybe(found)
	if err != nil || !n.Not {
		return result, err
	}
	return e.call(n, "not", result)
}

// whereFound makes a truth value of whether an equal row was found.
type whereFound func(found expr.Expr) (expr.Expr, error)

// maybeIn is what IN is where no row is equal: null if one may be, else false.
func (e *env) maybeIn(n *ast.In, node logical.Node, pairs []pair, comparisons []*expr.Call) (whereFound, error) {
	if len(comparisons) > 1 {
		return e.maybeRowIn(n, node, pairs, comparisons)
	}
	fresh := logical.Refresh(node)
	values, rows, err := e.counted(n, fresh, refreshed(pairs, node, fresh))
	if err != nil {
		return nil, err
	}
	x := comparisons[0].Args[0]
	if c, ok := x.(*expr.Cast); ok && !c.Try {
		x = c.Input // null where that is
	}
	return func(found expr.Expr) (expr.Expr, error) { return e.threeValued(n, found, x, values, rows) }, nil
}

// maybeRowIn looks for rows of which no value differs for certain.
func (e *env) maybeRowIn(n *ast.In, node logical.Node, pairs []pair, comparisons []*expr.Call) (whereFound, error) {
	no := boolLiteral(false)
	open := false
	var conds []expr.Expr
	for _, p := range pairs {
		c, err := expr.NewCall(e.b.p.Functions, p.op, p.outer, p.inner)
		if err != nil {
			return nil, e.b.wrap(n, err)
		}
		conds = append(conds, c)
	}
	for _, c := range comparisons {
		x, err := e.orNull(n, c)
		if err != nil {
			return nil, err
		}
		open = open || x != expr.Expr(c)
		conds = append(conds, x)
	}
	if !open {
		return func(found expr.Expr) (expr.Expr, error) { return found, nil }, nil
	}
	r, d, err := e.decorrelated(n, relationOf(filteredCopy(node, conds), ""), byPairs)
	if err != nil {
		return nil, err
	}
	found, _ := d.pairs(r.node)
	_, rows, err := e.counted(n, r.node, found)
	if err != nil {
		return nil, err
	}
	some, err := e.call(n, ">", rows, mustLiteral(int64(0)))
	if err != nil {
		return nil, err
	}
	return func(found expr.Expr) (expr.Expr, error) {
		return expr.NewCase([]expr.Expr{found, some}, []expr.Expr{boolLiteral(true), expr.CastTo(nullLiteral(), columnar.Boolean)}, no)
	}, nil
}

// filteredCopy is a copy of node of which conds, over its columns and those of the query
// around it, hold.
func filteredCopy(node logical.Node, conds []expr.Expr) logical.Node {
	fresh := logical.Refresh(node)
	by := map[expr.ID]expr.Expr{}
	for i, c := range node.Schema().Columns {
		by[c.ID] = fresh.Schema().Columns[i]
	}
	cond, err := replaceColumns(expr.All(conds), by)
	if err != nil {
		panic("bug: " + err.Error()) // replacing a column cannot fail
	}
	return logical.NewFilter(fresh, cond)
}

// threeValued is what a comparison of x with values is: found says that one is true; where
// none is, a null among them, or x, leaves it open.
func (e *env) threeValued(n ast.Expr, found, x, values, rows expr.Expr) (expr.Expr, error) {
	var err error
	step := func(name string, args ...expr.Expr) expr.Expr {
		var out expr.Expr
		if err == nil {
			out, err = e.call(n, name, args...)
		}
		return out
	}
	none := step("=", rows, mustLiteral(int64(0)))
	open := []expr.Expr{step("is_null", x), step("<", values, rows)}
	if err != nil {
		return nil, err
	}
	no := boolLiteral(false)
	return expr.NewCase(
		[]expr.Expr{found, none, &expr.Logic{Op: expr.Or, Args: open}},
		[]expr.Expr{boolLiteral(true), no, expr.CastTo(nullLiteral(), columnar.Boolean)}, no)
}
