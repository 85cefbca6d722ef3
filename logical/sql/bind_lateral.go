package sql

import (
	"slices"

	"github.com/tidemill/tidemill/logical"
	"github.com/tidemill/tidemill/logical/expr"
	"github.com/tidemill/tidemill/logical/sql/ast"
)

// lateralAt finds LATERAL (query) where a table of FROM begins: t, or the leftmost table
// of a join, may use what stands before it.
func lateralAt(t ast.TableExpr) *ast.TableQuery {
	for {
		switch n := t.(type) {
		case *ast.TableQuery:
			if n.Lateral {
				return n
			}
			return nil
		case *ast.Join:
			t = n.L
		default:
			return nil
		}
	}
}

// after binds a table of FROM behind those of left, which a lateral one may use. That
// one's joins are joins of both: t, (LATERAL s JOIN u) is (t, LATERAL s) JOIN u.
func (b *binder) after(left *relation, t ast.TableExpr, outer *env) (*relation, error) {
	switch n := t.(type) {
	case *ast.TableQuery:
		return b.lateralQuery(left, n, logical.InnerJoin, nil, outer)
	case *ast.Join:
		if n.Kind == ast.RightJoin || n.Kind == ast.FullJoin || n.Natural || len(n.Using) > 0 {
			return nil, b.unsupported(n, "LATERAL on the left side of this join", "it uses the tables before it", "put the join behind it, with ON, into a subquery")
		}
		l, err := b.after(left, n.L, outer)
		if err != nil {
			return nil, err
		}
		return b.joinBehind(n, l, outer)
	}
	return b.table(t, outer)
}

// joinLateral binds left JOIN LATERAL (query) ON condition.
func (b *binder) joinLateral(n *ast.Join, left *relation, q *ast.TableQuery, outer *env) (*relation, error) {
	kind := logical.InnerJoin
	switch n.Kind {
	case ast.InnerJoin, ast.CrossJoin:
	case ast.LeftJoin:
		kind = logical.LeftJoin
	default:
		return nil, b.unsupported(n, "this kind of join with LATERAL", "its rows are made of the rows before it", "use CROSS JOIN LATERAL, JOIN LATERAL … ON or LEFT JOIN LATERAL … ON; EXISTS asks whether there is one")
	}
	if n.Natural || n.Asof || len(n.Using) > 0 {
		return nil, b.unsupported(n, "NATURAL, ASOF or USING with LATERAL", "", "write the condition into the query's WHERE, and ON TRUE")
	}
	return b.lateralQuery(left, q, kind, n.On, outer)
}

// lateralQuery binds a query in FROM that may use the columns of left, the tables before
// it: its rows for each row of left.
func (b *binder) lateralQuery(left *relation, n *ast.TableQuery, kind logical.JoinKind, on ast.Expr, outer *env) (*relation, error) {
	e := &env{b: b, rel: left, clause: "LATERAL", outer: outer}
	r, err := b.query(n.Query, e)
	if err != nil {
		return nil, err
	}
	if r, err = b.requalified(strip(r), n.Alias); err != nil {
		return nil, err
	}
	r.node = unsorted(r.node)
	if v, ok := ast.Unparen(orTrue(on)).(*ast.Bool); ok && v.Value {
		on = nil
	}
	l := &lateral{e: e, at: n, left: left, right: r, kind: kind, on: on}
	return l.join()
}

// lateral is a query in FROM and the tables before it.
type lateral struct {
	e           *env
	at          ast.Node
	left, right *relation
	kind        logical.JoinKind // InnerJoin or LeftJoin
	on          ast.Expr         // nil: TRUE
}

// uses says whether the query uses a column of the tables before it.
func (l *lateral) uses() bool {
	var ids []expr.ID
	for _, c := range l.left.node.Schema().Columns {
		ids = append(ids, c.ID)
	}
	return uses(l.right.node, ids)
}

// join makes the rows by the cheapest way there is: by a plain join; by computing on the
// rows of left themselves; by joining what the query makes without its conditions.
func (l *lateral) join() (*relation, error) {
	if !l.uses() {
		return l.joined(l.right, nil)
	}
	if node, exact := l.onLeft(l.right.node); node != nil && (l.kind == logical.InnerJoin || exact && l.on == nil) {
		return l.filtered(joined(node, l.left, l.right))
	}
	return l.decorrelated()
}

// condition binds ON over the columns of both sides.
func (l *lateral) condition(right *relation) (expr.Expr, error) {
	if l.on == nil {
		return nil, nil
	}
	return l.e.b.bothSides(l.left, right, l.e.outer).condition(l.on, "ON")
}

// joined joins right to left by conds and ON.
func (l *lateral) joined(right *relation, conds []expr.Expr) (*relation, error) {
	on, err := l.condition(right)
	if err != nil {
		return nil, err
	}
	conds = slices.Clone(conds)
	if on != nil {
		conds = append(conds, on)
	}
	kind := l.kind
	switch {
	case len(conds) > 0:
	case kind == logical.InnerJoin:
		kind = logical.CrossJoin
	default:
		conds = []expr.Expr{boolLiteral(true)}
	}
	return joined(logical.NewJoin(kind, l.left.node, right.node, expr.All(conds)), l.left, right), nil
}

// filtered asks ON of rows that are joined already.
func (l *lateral) filtered(r *relation) (*relation, error) {
	if l.on == nil {
		return r, nil
	}
	on, err := (&env{b: l.e.b, rel: r, clause: "ON", outer: l.e.outer}).condition(l.on, "ON")
	if err != nil {
		return nil, err
	}
	r.node = logical.NewFilter(r.node, on)
	return r, nil
}

// onLeft is n over left instead of over one row without columns (SELECT t.a + 1, or FROM
// UNNEST(t.list)); nil if it is over anything else. exact says that each row of left gives
// exactly one.
func (l *lateral) onLeft(n logical.Node) (node logical.Node, exact bool) {
	switch x := n.(type) {
	case *logical.Values:
		if isOneRow(x) {
			return l.left.node, true
		}
	case *logical.Alias:
		return l.onLeft(x.Input)
	case *logical.Filter, *logical.Unnest:
		if in, _ := l.onLeft(x.Children()[0]); in != nil {
			return x.WithChildren([]logical.Node{in}), false
		}
	case *logical.Project:
		in, exact := l.onLeft(x.Input)
		if in == nil {
			return nil, false
		}
		list := passAll(in)
		for _, c := range x.Columns {
			if !in.Schema().Has(c.ID) {
				list = append(list, c)
			}
		}
		return logical.NewProject(in, list), exact
	}
	return nil, false
}

// decorrelated joins what the query makes to left. Its select list may use both sides: it
// is computed above the join.
func (l *lateral) decorrelated() (*relation, error) {
	d := &decorrelator{b: l.e.b, at: l.at}
	base, items := selectListOf(l.right.node)
	node, err := d.pull(base)
	above := items != nil || d.empty != nil // the join
	if err != nil || above && l.kind == logical.LeftJoin && l.on != nil {
		r, err := l.inDomain(err)
		if err != nil {
			return nil, err
		}
		return l.joined(r.relation, r.conds)
	}
	if !above {
		return l.joined(&relation{node: node, columns: l.right.columns, files: l.right.files}, d.conds)
	}
	return l.computed(d, node, items)
}

// domainRelation is a relation that conds join to another.
type domainRelation struct {
	*relation
	conds []expr.Expr
}

// inDomain computes the query for each element of a domain, because of reason.
func (l *lateral) inDomain(reason error) (*domainRelation, error) {
	d := &decorrelator{b: l.e.b, at: l.at}
	if reason == nil {
		reason = d.unsupported("the condition of its LEFT JOIN concerns what it computes")
	}
	r, err := d.perElement(l.right, l.left.node, reason)
	if err != nil {
		return nil, err
	}
	return &domainRelation{r, d.conds}, nil
}

// selectListOf takes a select list that uses columns of no input off a plan.
func selectListOf(n logical.Node) (base logical.Node, items []expr.Named) {
	switch x := n.(type) {
	case *logical.Alias:
		if base, items := selectListOf(x.Input); items != nil {
			return base, items
		}
	case *logical.Project:
		if freeColumns(x) {
			return x.Input, x.Columns
		}
	}
	return n, nil
}

// computed joins node and computes the select list above: of a row that is not there it
// is null, or what the aggregates are of no rows.
func (l *lateral) computed(d *decorrelator, node logical.Node, items []expr.Named) (*relation, error) {
	if items == nil {
		for _, c := range l.right.columns {
			items = append(items, expr.Pass(c.Column))
		}
	}
	there := expr.As(boolLiteral(true), "there")
	kind := l.kind
	if d.empty != nil {
		kind = logical.LeftJoin // there is a row in any case
	}
	conds := d.conds
	if len(conds) == 0 {
		conds = []expr.Expr{boolLiteral(true)}
	}
	join := logical.NewJoin(kind, l.left.node, logical.NewProject(node, append(passAll(node), there)), expr.All(conds))
	if d.empty != nil {
		join = join.WithSubquery("a LATERAL query that aggregates")
	}
	now := byID(join.Schema())
	list := make([]expr.Named, 0, len(items)+len(now))
	for _, c := range l.left.node.Schema().Columns {
		list = append(list, expr.Pass(c))
	}
	made := map[expr.ID]*expr.Column{}
	for _, it := range items {
		x, err := l.item(d, it.Expr, now, now[there.ID])
		if err != nil {
			return nil, err
		}
		n := expr.As(x, it.Name)
		list = append(list, n)
		made[it.ID] = n.Column()
	}
	right := &relation{files: l.right.files}
	for _, c := range l.right.columns {
		c.Column, c.window = made[c.ID], nil
		right.columns = append(right.columns, c)
	}
	return l.filtered(joined(logical.NewProject(join, list), l.left, right))
}

// item is one column of the select list above the join.
func (l *lateral) item(d *decorrelator, x expr.Expr, now map[expr.ID]*expr.Column, there *expr.Column) (expr.Expr, error) {
	isThere, err := l.e.call(l.at, "is_not_null", there)
	if err != nil {
		return nil, err
	}
	by := map[expr.ID]expr.Expr{}
	for _, id := range expr.Columns(x) {
		switch empty := d.empty[id]; {
		case now[id] == nil:
		case empty == nil:
			by[id] = now[id]
		default:
			if by[id], err = expr.NewCase([]expr.Expr{isThere}, []expr.Expr{now[id]}, empty); err != nil {
				return nil, err
			}
		}
	}
	if x, err = replaceColumns(x, by); err != nil || d.empty != nil || l.kind == logical.InnerJoin {
		return x, err
	}
	return expr.NewCase([]expr.Expr{isThere}, []expr.Expr{x}, nil)
}
