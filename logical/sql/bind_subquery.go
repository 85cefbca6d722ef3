package sql

import (
	"slices"

	"github.com/tidemill/tidemill/columnar"
	"github.com/tidemill/tidemill/logical"
	"github.com/tidemill/tidemill/logical/expr"
	"github.com/tidemill/tidemill/logical/sql/ast"
)

// scalar is a subquery that stands for a value: rows that are joined to those that use
// them, at most one to each.
type scalar struct {
	node   logical.Node
	column *expr.Column // by which its use is seen
	always bool         // it has a row in any case; then there are no pairs
	pairs  []pair       // what joins it; none if it is not correlated
	syntax ast.Expr
}

// add has s joined to the plan where its column is used.
func (e *env) addScalar(s *scalar) { *e.subs = append(*e.subs, s) }

// outerName finds what a name means in the queries around a subquery; nil if nothing.
func (e *env) outerName(n *ast.Name) expr.Expr {
	for o := e.outer; o != nil; o = o.outer {
		in := *o
		in.aliases, in.outer = noAliases, nil
		if x, err := in.name(n); err == nil {
			return x
		}
	}
	return nil
}

// subquery binds a query and makes it free of columns of the query around it.
// what of the decorrelator the caller can use decides how.
func (e *env) subquery(n ast.Node, q *ast.Query, can joinable) (*relation, *decorrelator, error) {
	r, err := e.b.query(q, e)
	if err != nil {
		return nil, nil, err
	}
	r = strip(r)
	if _, ok := n.(*ast.Exists); ok {
		files := r.files
		r = relationOf(withoutFree(r.node), "")
		r.files = files
	}
	r.node = unsorted(r.node)
	if can == byConditions {
		r.node = onceOrMore(r.node)
	}
	return e.decorrelated(n, r, can)
}

// joinable is how a subquery may be joined to the query around it.
type joinable uint8

const (
	byConditions joinable = iota // any, of rows
	byPairs                      // equalities, of a value
	byRowPairs                   // equalities, of rows: none that are made where there are none
)

// decorrelated makes a relation free of columns of the query around it: by pulling its
// conditions out where that is possible, else for each element of a domain.
func (e *env) decorrelated(n ast.Node, r *relation, can joinable) (*relation, *decorrelator, error) {
	d := &decorrelator{b: e.b, at: n}
	var err error
	if r.node, err = e.overGroupsOf(r.node, n); err != nil {
		return nil, nil, err
	}
	node, err := d.pull(r.node)
	if err == nil {
		_, ok := d.pairs(node)
		switch {
		case can != byConditions && !ok:
			err = d.unsupported("it must be found by equalities with the query around it")
		case can == byRowPairs && d.empty != nil:
			err = d.unsupported("it aggregates all its rows")
		}
	}
	if err == nil {
		r.node = node
		return r, d, nil
	}
	reason := err
	for o := e; o != nil; o = o.outer { // it may use columns of a query further out alone
		around := o.around(r.node)
		if around == nil {
			continue
		}
		out, failed := d.perElement(r, around, reason)
		if failed == nil {
			return out, d, nil
		}
		if o == e {
			err = failed
		}
	}
	return nil, nil, err
}

// withoutFree leaves out of a select list what uses the query around it: EXISTS looks at
// rows, not at values.
func withoutFree(n logical.Node) logical.Node {
	p, ok := n.(*logical.Project)
	if !ok {
		return n
	}
	var columns []expr.Named
	for _, c := range p.Columns {
		if !isFree(c.Expr, p.Children()) {
			columns = append(columns, c)
		}
	}
	if len(columns) < len(p.Columns) {
		columns = append(columns, expr.As(boolLiteral(true), "there"))
	}
	return logical.NewProject(p.Input, columns)
}

// scalarSubquery binds a query that stands for a value. One that may have several rows
// fails where it has them.
func (e *env) scalarSubquery(n *ast.Subquery) (expr.Expr, error) {
	if e.subs == nil {
		return nil, e.b.unsupported(n, "a subquery in "+e.clause, "", "join it in FROM")
	}
	r, d, err := e.subquery(n, n.Query, byPairs)
	if err != nil {
		return nil, err
	}
	if len(r.columns) != 1 {
		return nil, e.b.errorf(n, "a subquery that stands for a value has one column, this one has %d", len(r.columns))
	}
	return e.scalarOf(n, r, d)
}

// scalarOf is the value of a subquery that was made free of the query around it.
func (e *env) scalarOf(n ast.Expr, r *relation, d *decorrelator) (expr.Expr, error) {
	pairs, _ := d.pairs(r.node)
	s := &scalar{node: r.node, column: r.columns[0].Column, pairs: pairs, syntax: n}
	most, always := oneRow(r.node)
	switch {
	case d.empty != nil:
		return e.aggregated(s, d)
	case most && len(pairs) == 0:
		s.always = always
		e.addScalar(s)
		c := *s.column
		c.Null = c.Null || !always
		return &c, nil
	}
	return e.onlyRow(s)
}

// aggregated is the value of a correlated subquery that aggregates all its rows: also
// where there are none it has one.
func (e *env) aggregated(s *scalar, d *decorrelator) (expr.Expr, error) {
	value := *s.column
	value.Null = true
	empty := d.empty[value.ID]
	if cast, ok := empty.(*expr.Cast); ok && cast.Input.Type().ID() == columnar.Null.ID() || empty == nil {
		e.addScalar(s)
		return &value, nil
	}
	there := expr.As(boolLiteral(true), "there")
	s.node = logical.NewProject(s.node, append(passAll(s.node), there))
	s.column = there.Column()
	e.addScalar(s)
	marker := *s.column
	marker.Null = true
	missing, err := e.call(s.syntax, "is_null", &marker)
	if err != nil {
		return nil, err
	}
	return expr.NewCase([]expr.Expr{missing}, []expr.Expr{empty}, &value)
}

func passAll(n logical.Node) []expr.Named {
	var list []expr.Named
	for _, c := range n.Schema().Columns {
		list = append(list, expr.Pass(c))
	}
	return list
}

// onlyRow is the value of a subquery that may have several rows, which is an error.
func (e *env) onlyRow(s *scalar) (expr.Expr, error) {
	rows, err := expr.NewAgg(e.b.p.Functions, "count", false, nil)
	if err != nil {
		return nil, e.b.wrap(s.syntax, err)
	}
	value, err := expr.NewAgg(e.b.p.Functions, "any_value", false, nil, s.column)
	if err != nil {
		return nil, e.b.wrap(s.syntax, err)
	}
	count, only := expr.As(rows, "rows"), expr.As(value, s.column.Name)
	s.group([]expr.Named{count, only})
	s.column = count.Column()
	e.addScalar(s)
	n, v := *count.Column(), *only.Column()
	n.Null, v.Null = true, true
	return expr.NewOnlyRow(&n, &v), nil
}

// group aggregates the rows of a subquery by what joins it.
func (s *scalar) group(aggs []expr.Named) {
	keys := make([]expr.Named, len(s.pairs))
	pairs := slices.Clone(s.pairs)
	for i, p := range s.pairs {
		keys[i] = expr.As(p.inner, p.inner.String())
		pairs[i].inner = keys[i].Column()
	}
	s.node, s.pairs = logical.NewAggregate(s.node, keys, aggs), pairs
	s.always = len(keys) == 0
}

// exists binds EXISTS (query) as a value.
func (e *env) exists(n *ast.Exists) (expr.Expr, error) {
	if e.subs == nil {
		return nil, e.b.unsupported(n, "EXISTS in "+e.clause, "", "make it a condition of WHERE")
	}
	r, d, err := e.subquery(n, n.Query, byPairs)
	if err != nil {
		return nil, err
	}
	if d.empty != nil {
		return boolLiteral(true), nil // an aggregate of no rows is a row
	}
	pairs, _ := d.pairs(r.node)
	node := r.node
	if len(pairs) == 0 {
		node = logical.NewLimit(node, 1, 0)
	}
	_, rows, err := e.counted(n, node, pairs)
	if err != nil {
		return nil, err
	}
	return e.call(n, ">", rows, mustLiteral(int64(0)))
}

// counted joins the numbers of rows of a subquery, and of rows with a value in its first
// column, to the query around it: 0 where there are none. Beside them are more aggregates.
func (e *env) counted(n ast.Expr, node logical.Node, pairs []pair, more ...expr.Named) (values, rows expr.Expr, err error) {
	s := &scalar{node: node, pairs: pairs, syntax: n}
	var aggs []expr.Named
	for _, args := range [][]expr.Expr{{node.Schema().Columns[0]}, nil} {
		a, err := expr.NewAgg(e.b.p.Functions, "count", false, nil, args...)
		if err != nil {
			return nil, nil, e.b.wrap(n, err)
		}
		aggs = append(aggs, expr.As(a, a.String()))
	}
	s.group(append(aggs, more...))
	s.column = aggs[1].Column()
	e.addScalar(s)
	var out []expr.Expr
	for _, a := range aggs {
		c := *a.Column()
		c.Null = len(pairs) > 0
		x, err := e.call(n, "coalesce", &c, mustLiteral(int64(0)))
		if err != nil {
			return nil, nil, err
		}
		out = append(out, x)
	}
	return out[0], out[1], nil
}

// refreshed is pairs over the refreshed copy of a plan.
func refreshed(pairs []pair, old, fresh logical.Node) []pair {
	by := map[expr.ID]expr.Expr{}
	for i, c := range old.Schema().Columns {
		by[c.ID] = fresh.Schema().Columns[i]
	}
	out := slices.Clone(pairs)
	for i := range out {
		if x, err := replaceColumns(out[i].inner, by); err == nil {
			out[i].inner = x
		}
	}
	return out
}

// attachScalars joins the subqueries whose column satisfies want, and those that these
// are joined by, to the plan.
func (sel *selection) attachScalars(want func(expr.ID) bool) {
	wanted := map[expr.ID]bool{}
	for i := len(sel.subs) - 1; i >= 0; i-- {
		s := sel.subs[i]
		if !slices.ContainsFunc(s.node.Schema().Columns, func(c *expr.Column) bool { return want(c.ID) || wanted[c.ID] }) {
			continue
		}
		wanted[s.column.ID] = true
		for _, p := range s.pairs {
			for _, id := range expr.Columns(p.outer) {
				wanted[id] = true
			}
		}
	}
	var rest []*scalar
	for _, s := range sel.subs {
		if wanted[s.column.ID] {
			sel.node = s.join(sel.b, sel.node)
		} else {
			rest = append(rest, s)
		}
	}
	sel.subs = rest
}

// has says whether id is a column of s.
func (s *scalar) has(id expr.ID) bool { return s.node.Schema().Has(id) }

// join joins s to the rows of n.
func (s *scalar) join(b *binder, n logical.Node) logical.Node {
	what := subqueryName(s.syntax)
	if s.always {
		return logical.NewJoin(logical.CrossJoin, n, s.node, nil).WithSubquery(what)
	}
	var on []expr.Expr
	for _, p := range s.pairs {
		c, err := expr.NewCall(b.p.Functions, p.op, p.outer, p.inner)
		if err != nil {
			panic("bug: " + err.Error()) // both sides had these types before
		}
		on = append(on, c)
	}
	if len(on) == 0 {
		on = []expr.Expr{boolLiteral(true)}
	}
	return logical.NewJoin(logical.LeftJoin, n, s.node, expr.All(on)).WithSubquery(what)
}

// subqueryName is what messages call a subquery.
func subqueryName(x ast.Expr) string {
	switch x.(type) {
	case *ast.Exists:
		return "EXISTS (query)"
	case *ast.In:
		return "IN (query)"
	case *ast.Quantified:
		return "ANY or ALL of a query"
	}
	return "a scalar subquery"
}

// scalarsOverGroups rewrites what joins the subqueries above an aggregate.
func (sel *selection) scalarsOverGroups() error {
	for _, s := range sel.subs {
		for i, p := range s.pairs {
			x, err := sel.overGroups(p.outer, s.syntax)
			if err != nil {
				return err
			}
			s.pairs[i].outer = x
		}
	}
	return nil
}

// arrayQuery is ARRAY(query): its rows, one column, as an array in their order, nulls with
// them; an empty one if there are none.
func (e *env) arrayQuery(n *ast.ArrayQuery) (expr.Expr, error) {
	if e.subs == nil {
		return nil, e.b.unsupported(n, "a subquery in "+e.clause, "", "join it in FROM")
	}
	r, err := e.b.query(n.Query, e)
	if err != nil {
		return nil, err
	}
	if len(r.columns) != 1 {
		return nil, e.b.hinted(n, "make a struct of them: ARRAY(SELECT struct(a, b) FROM …)", "the query of an array has one column, this one has %d", len(r.columns))
	}
	all, err := expr.NewAgg(e.b.p.Functions, "collect_list", false, nil, r.columns[0].Column, boolLiteral(true))
	if err != nil {
		return nil, e.b.wrap(n, err)
	}
	list := expr.As(all, "array")
	r = &relation{node: logical.NewAggregate(r.node, nil, []expr.Named{list}), columns: []column{{Column: list.Column(), name: list.Name}}}
	r, d, err := e.decorrelated(n, r, byPairs)
	if err != nil {
		return nil, err
	}
	return e.scalarOf(n, r, d)
}
