package sql

import (
	"errors"
	"slices"

	"github.com/tidemill/tidemill/columnar"
	"github.com/tidemill/tidemill/logical"
	"github.com/tidemill/tidemill/logical/expr"
)

// A subquery whose conditions cannot be pulled out of it (what it aggregates or limits
// depends on an inequality, or it is a union) is computed for a domain: the distinct
// values of the columns that it uses of the query around it. The columns of the domain
// are keys of everything above the place where they are used:
//
//	(SELECT count(*) FROM u WHERE u.k < t.k)
//	    → SELECT d.k, count(*) FROM (SELECT DISTINCT k FROM t) d … JOIN u … WHERE u.k < d.k GROUP BY d.k
//
// and its rows are joined to those of the query around it by equal values. It works for
// any subquery, but reads the query around it twice: pulling is tried first.

// domain is of one subquery.
type domain struct {
	d     *decorrelator
	outer logical.Node
	ids   []expr.ID // the columns of outer that are used
}

// standIns are the columns that stand for those of the query around a subquery.
type standIns map[expr.ID]expr.Expr

// perElement makes r free of the columns of outer; conds of d join it to outer. It is
// reason, an error, where that is not possible.
func (d *decorrelator) perElement(r *relation, outer logical.Node, reason error) (*relation, error) {
	if logical.IsStreaming(outer) {
		return nil, d.overStream(reason)
	}
	if isCorrelated(outer) {
		return nil, reason
	}
	m, back := d.domainOf(r.node, outer)
	if len(m.ids) == 0 {
		return nil, reason
	}
	node, v, err := m.push(r.node)
	if err != nil {
		return nil, reason
	}
	d.conds, d.empty = nil, nil
	out := &relation{node: node, files: r.files}
	var list []expr.Named
	for _, c := range r.columns {
		n := expr.As(v.of(c.Column), c.name)
		list = append(list, n)
		c.Column, c.window = n.Column(), nil
		out.columns = append(out.columns, c)
	}
	for i, id := range m.ids {
		n := expr.As(v[id], v[id].String())
		list = append(list, n)
		on, err := expr.NewCall(d.b.p.Functions, "is_not_distinct_from", n.Column(), back[i])
		if err != nil {
			return nil, reason
		}
		d.conds = append(d.conds, on)
	}
	out.node = logical.NewProject(node, list)
	return out, nil
}

// domainOf is the domain of n, and what of outer each of its columns is equal to. Values that
// are equal and yet written differently are elements of their own: 1 month and 30 days.
func (d *decorrelator) domainOf(n, outer logical.Node) (m *domain, back []expr.Expr) {
	m = &domain{d: d, outer: outer}
	columns := passAll(outer)
	for _, c := range outer.Schema().Columns {
		if !uses(n, []expr.ID{c.ID}) {
			continue
		}
		m.ids, back = append(m.ids, c.ID), append(back, c)
		if columnar.LosesForm(c.DataType) {
			form := expr.As(expr.CastTo(c, columnar.String), c.Name)
			columns = append(columns, form)
			m.ids, back = append(m.ids, form.ID), append(back, form.Expr)
		}
	}
	if len(columns) > len(outer.Schema().Columns) {
		m.outer = logical.NewProject(outer, columns)
	}
	return m, back
}

// overStream is reason where the query around the subquery reads a stream, which cannot be
// read a second time for its distinct values.
func (d *decorrelator) overStream(reason error) error {
	var u *logical.UnsupportedError
	if !errors.As(reason, &u) {
		return reason
	}
	return d.b.unsupported(d.at, "this correlated subquery over a stream", u.Reason, "relate it to the stream by equalities, or compute it in a query over the output")
}

// uses says whether n uses one of the columns.
func uses(n logical.Node, ids []expr.ID) bool {
	found := false
	logical.Walk(n, func(x logical.Node) bool {
		for _, e := range x.Exprs() {
			found = found || slices.ContainsFunc(expr.Columns(e), func(id expr.ID) bool { return slices.Contains(ids, id) })
		}
		return !found
	})
	return found
}

// elements is the domain, each time with columns of its own.
func (m *domain) elements() (logical.Node, standIns) {
	fresh := logical.Refresh(m.outer)
	v := standIns{}
	var list []expr.Named
	for _, id := range m.ids {
		c := fresh.Schema().Columns[m.outer.Schema().Index(id)]
		list = append(list, expr.Pass(c))
		v[id] = c
	}
	return logical.NewDistinct(logical.NewProject(fresh, list), nil, false), v
}

// of is what a column of the subquery is.
func (v standIns) of(c *expr.Column) expr.Expr {
	if x := v[c.ID]; x != nil {
		return x
	}
	return c
}

// in is e with what stands for the columns of the query around it.
func (v standIns) in(e expr.Expr) expr.Expr {
	x, err := replaceColumns(e, v)
	if err != nil {
		panic("bug: " + err.Error()) // replacing a column cannot fail
	}
	return x
}

func (v standIns) inAll(list []expr.Expr) []expr.Expr {
	out := make([]expr.Expr, len(list))
	for i, e := range list {
		out[i] = v.in(e)
	}
	return out
}

// named is a list of columns to be made, without those that hand on a column of the
// query around it, which have its ID.
func (v standIns) named(list []expr.Named) []expr.Named {
	var out []expr.Named
	for _, n := range list {
		if v[n.ID] == nil {
			n.Expr = v.in(n.Expr)
			out = append(out, n)
		}
	}
	return out
}

// columns are those of the domain, in order.
func (m *domain) columns(v standIns) []expr.Expr {
	out := make([]expr.Expr, len(m.ids))
	for i, id := range m.ids {
		out[i] = v[id]
	}
	return out
}

func (m *domain) passed(v standIns) []expr.Named {
	var out []expr.Named
	for _, c := range m.columns(v) {
		out = append(out, expr.Pass(c.(*expr.Column)))
	}
	return out
}

// push computes n for each element of the domain. The columns of the domain, v, are
// columns of the plan.
func (m *domain) push(n logical.Node) (logical.Node, standIns, error) {
	if !uses(n, m.ids) {
		node, v := m.elements()
		if isOneRow(n) {
			return node, v, nil
		}
		return logical.NewJoin(logical.CrossJoin, node, n, nil), v, nil
	}
	switch x := n.(type) {
	case *logical.Join:
		return m.pushJoin(x)
	case *logical.Union:
		return m.pushUnion(x)
	case *logical.SetOp:
		return m.pushSetOp(x)
	case *logical.Limit:
		return m.pushLimit(x)
	}
	if len(n.Children()) != 1 {
		return nil, nil, m.d.usedIn(n)
	}
	in, v, err := m.push(n.Children()[0])
	if err != nil {
		return nil, nil, err
	}
	switch x := n.(type) {
	case *logical.Project:
		return logical.NewProject(in, append(v.named(x.Columns), m.passed(v)...)), v, nil
	case *logical.Aggregate:
		return m.aggregate(x, in, v)
	case *logical.Distinct:
		on := x.On
		if on != nil {
			on = append(v.inAll(on), m.columns(v)...)
		}
		return logical.NewDistinct(in, on, false), v, nil
	case *logical.Over:
		functions := slices.Clone(x.Functions)
		for i, f := range functions {
			o := *v.in(f.Expr).(*expr.Over)
			o.Partition = append(slices.Clone(o.Partition), m.columns(v)...)
			functions[i].Expr = &o
		}
		return logical.NewOver(in, functions), v, nil
	case *logical.Filter, *logical.Alias, *logical.Sort, *logical.Unnest, *logical.Window, *logical.Expand:
		n = n.WithChildren([]logical.Node{in})
		if exprs := n.Exprs(); len(exprs) > 0 {
			n = n.WithExprs(v.inAll(exprs))
		}
		return n, v, nil
	}
	return nil, nil, m.d.usedIn(n)
}

// aggregate groups by the domain as well. Without keys of its own it has a row for every
// element, also for one without rows: then it aggregates none, as its filters say.
func (m *domain) aggregate(a *logical.Aggregate, in logical.Node, v standIns) (logical.Node, standIns, error) {
	aggs := v.named(a.Aggs)
	if len(a.Keys) > 0 {
		node, err := logical.Group(m.d.b.p.Functions, in, append(v.named(a.Keys), m.passed(v)...), aggs)
		return node, v, err
	}
	there := expr.As(boolLiteral(true), "there")
	in = withUnder(in, there)
	all, every := m.elements()
	rows := in
	if s, ok := in.(*logical.Sort); ok {
		rows = s.Input
	}
	joined, err := m.join(logical.LeftJoin, all, rows, every, v, nil)
	if err != nil {
		return nil, nil, err
	}
	for i, n := range aggs {
		agg := *n.Expr.(*expr.Agg)
		conds := []expr.Expr{there.Column()}
		if agg.Filter != nil {
			conds = append(conds, agg.Filter)
		}
		agg.Filter = expr.All(conds)
		aggs[i].Expr = &agg
	}
	node, err := logical.Group(m.d.b.p.Functions, sortedAs(joined, in), m.passed(every), aggs)
	return node, every, err
}

// withUnder adds a column to a plan, under its order if it has one.
func withUnder(n logical.Node, column expr.Named) logical.Node {
	if s, ok := n.(*logical.Sort); ok {
		return s.WithChildren([]logical.Node{withUnder(s.Input, column)})
	}
	return logical.NewProject(n, append(passAll(n), column))
}

// sortedAs gives n the order that like has.
func sortedAs(n, like logical.Node) logical.Node {
	if s, ok := like.(*logical.Sort); ok {
		return s.WithChildren([]logical.Node{n})
	}
	return n
}

// join joins two plans for the same elements.
func (m *domain) join(kind logical.JoinKind, left, right logical.Node, l, r standIns, on []expr.Expr) (logical.Node, error) {
	for _, id := range m.ids {
		c, err := expr.NewCall(m.d.b.p.Functions, "is_not_distinct_from", l[id], r[id])
		if err != nil {
			return nil, err
		}
		on = append(on, c)
	}
	if kind == logical.CrossJoin {
		kind = logical.InnerJoin
	}
	return logical.NewJoin(kind, left, right, expr.All(on)), nil
}

func (m *domain) pushJoin(j *logical.Join) (logical.Node, standIns, error) {
	var on []expr.Expr
	if j.On != nil {
		on = []expr.Expr{j.On}
	}
	inner := j.Kind == logical.InnerJoin || j.Kind == logical.CrossJoin
	leftOnly := inner || j.Kind == logical.LeftJoin || j.Kind == logical.SemiJoin || j.Kind == logical.AntiJoin
	switch {
	case leftOnly && !uses(j.Right, m.ids):
		left, v, err := m.push(j.Left)
		if err != nil {
			return nil, nil, err
		}
		return logical.NewJoin(j.Kind, left, j.Right, expr.All(v.inAll(on))), v, nil
	case (inner || j.Kind == logical.RightJoin) && !uses(j.Left, m.ids):
		right, v, err := m.push(j.Right)
		if err != nil {
			return nil, nil, err
		}
		return logical.NewJoin(j.Kind, j.Left, right, expr.All(v.inAll(on))), v, nil
	case j.Kind == logical.FullJoin:
		return nil, nil, m.d.unsupported("a column of the query around it is used in a full join")
	}
	left, l, err := m.push(j.Left)
	if err != nil {
		return nil, nil, err
	}
	right, r, err := m.push(j.Right)
	if err != nil {
		return nil, nil, err
	}
	v := l
	if j.Kind == logical.RightJoin {
		v = r
	}
	node, err := m.join(j.Kind, left, right, l, r, v.inAll(on))
	return node, v, err
}

// aligned is n for each element, its columns in their order and then those of the domain.
func (m *domain) aligned(n logical.Node) (logical.Node, standIns, error) {
	in, v, err := m.push(n)
	if err != nil {
		return nil, nil, err
	}
	var list []expr.Named
	seen := map[expr.ID]bool{}
	for _, c := range n.Schema().Columns {
		list = append(list, named(v.of(c), c.Name, seen))
	}
	out := standIns{}
	for _, id := range m.ids {
		x := named(v[id], v[id].String(), seen)
		list = append(list, x)
		out[id] = x.Column()
	}
	return logical.NewProject(in, list), out, nil
}

func (m *domain) pushUnion(u *logical.Union) (logical.Node, standIns, error) {
	inputs := make([]logical.Node, len(u.Inputs))
	var v standIns
	for i, in := range u.Inputs {
		var err error
		if inputs[i], v, err = m.aligned(in); err != nil {
			return nil, nil, err
		}
	}
	out := &logical.Schema{Columns: slices.Clone(u.Output.Columns)}
	now := standIns{}
	for _, id := range m.ids {
		c := *v[id].(*expr.Column)
		c.ID = expr.NewID()
		out.Columns = append(out.Columns, &c)
		now[id] = &c
	}
	return &logical.Union{Inputs: inputs, Output: out}, now, nil
}

func (m *domain) pushSetOp(s *logical.SetOp) (logical.Node, standIns, error) {
	left, v, err := m.aligned(s.Left)
	if err != nil {
		return nil, nil, err
	}
	right, _, err := m.aligned(s.Right)
	if err != nil {
		return nil, nil, err
	}
	return &logical.SetOp{Kind: s.Kind, All: s.All, Left: left, Right: right}, v, nil
}

func (m *domain) pushLimit(l *logical.Limit) (logical.Node, standIns, error) {
	order, below := orderBelow(l)
	in, v, err := m.push(below)
	if err != nil {
		return nil, nil, err
	}
	for i := range order {
		order[i].Expr = v.in(order[i].Expr)
	}
	node, err := m.d.numbered(l, in, order, m.columns(v))
	return node, v, err
}

// isOneRow says whether n is one row without columns.
func isOneRow(n logical.Node) bool {
	v, ok := n.(*logical.Values)
	return ok && len(v.Rows) == 1 && len(v.Output.Columns) == 0
}
