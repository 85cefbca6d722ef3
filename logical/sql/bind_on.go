package sql

import (
	"slices"

	"github.com/tidemill/tidemill/logical"
	"github.com/tidemill/tidemill/logical/expr"
	"github.com/tidemill/tidemill/logical/sql/ast"
)

// hasQuery tells whether a subquery stands in x.
func hasQuery(x ast.Expr) bool {
	found := false
	ast.Walk(x, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.Subquery, *ast.Exists, *ast.ArrayQuery:
			found = true
		case *ast.In:
			found = found || n.Query != nil
		case *ast.Quantified:
			found = found || n.Query != nil
		}
		return !found
	})
	return found
}

// joinOnQueries binds a join whose condition holds subqueries.
func (b *binder) joinOnQueries(n *ast.Join, kind logical.JoinKind, left, right *relation, outer *env) (*relation, error) {
	if kind == logical.InnerJoin {
		return b.innerOnQueries(n, left, right, outer)
	}
	var subs []*scalar
	e := b.bothSides(left, right, outer)
	e.subs, e.sides = &subs, []logical.Node{left.node, right.node}
	on, err := e.condition(n.On, "ON")
	if err != nil {
		return nil, err
	}
	l, r := left.node, right.node
	for _, s := range subs {
		switch used := s.uses(); {
		case kind != logical.RightJoin && r.Schema().Has(used...):
			r = s.join(b, r)
		case l.Schema().Has(used...):
			l = s.join(b, l)
		case r.Schema().Has(used...):
			r = s.join(b, r)
		default:
			return nil, b.unsupported(s.syntax, "a subquery over both sides of a "+kind.String()+" join in its ON", "it would be asked for each pair of rows",
				"let it use one side, or join in a subquery in FROM and make it a condition of WHERE")
		}
	}
	return joinSides(logical.NewJoin(kind, l, r, on), left, right), nil
}

// innerOnQueries filters the pairs of an inner join by the conditions with subqueries.
func (b *binder) innerOnQueries(n *ast.Join, left, right *relation, outer *env) (*relation, error) {
	var on []expr.Expr
	var queries []ast.Expr
	both := b.bothSides(left, right, outer)
	for _, c := range conjuncts(n.On, nil) {
		if hasQuery(c) {
			queries = append(queries, c)
			continue
		}
		x, err := both.condition(c, "ON")
		if err != nil {
			return nil, err
		}
		on = append(on, x)
	}
	kind := logical.InnerJoin
	if len(on) == 0 {
		kind = logical.CrossJoin
	}
	r := joined(logical.NewJoin(kind, left.node, right.node, expr.All(on)), left, right)
	sel := &selection{b: b, s: &ast.Select{Span: n.Span}, outer: outer, from: r, node: r.node}
	if err := sel.filter(queries, "ON"); err != nil {
		return nil, err
	}
	return &relation{node: sel.node, columns: r.columns, files: r.files}, nil
}

// uses are the columns of the query around a subquery by which it is joined.
func (s *scalar) uses() []expr.ID {
	var ids []expr.ID
	for _, p := range s.pairs {
		ids = append(ids, expr.Columns(p.outer)...)
	}
	return ids
}

// around is the plan of the query around a subquery, of which n uses columns: in ON the
// side of the join that has them all. It is nil where there is none.
func (e *env) around(n logical.Node) logical.Node {
	if groups := e.groups(n); groups != nil {
		return groups
	}
	if e.rel != nil && e.rel.node != nil {
		return e.rel.node
	}
	if len(e.sides) == 0 {
		return nil
	}
	all := slices.Concat(e.sides[0].Schema().Columns, e.sides[1].Schema().Columns)
	for _, side := range e.sides {
		if !slices.ContainsFunc(all, func(c *expr.Column) bool { return !side.Schema().Has(c.ID) && uses(n, []expr.ID{c.ID}) }) {
			return side
		}
	}
	return nil
}
