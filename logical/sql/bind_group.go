package sql

import (
	"slices"
	"strings"

	"github.com/tidemill/tidemill/logical"
	"github.com/tidemill/tidemill/logical/expr"
	"github.com/tidemill/tidemill/logical/sql/ast"
)

// groupBy binds the grouping keys: an input column before an alias before a position.
func (sel *selection) groupBy() error {
	g := sel.s.GroupBy
	if g == nil {
		return nil
	}
	sel.grouped = true
	sets, err := sel.groupSets(g.Items)
	if err != nil {
		return err
	}
	return sel.useSets(sets)
}

// groupItem adds the key that s is, and returns its place; a window has two.
func (sel *selection) groupItem(s ast.Expr) (logical.GroupingSet, error) {
	i, ok, err := sel.position(s, "GROUP BY")
	if err != nil {
		return nil, err
	}
	e := sel.env("GROUP BY", columnFirst)
	var x expr.Expr
	name := nameOf(s)
	if ok {
		name = sel.items[i].name
		x, err = sel.item(i)
	} else {
		sel.warnHiddenAlias(s)
		x, err = e.bind(s)
	}
	if err != nil {
		return nil, err
	}
	if err := sel.refuseOver(x, s, "GROUP BY"); err != nil {
		return nil, err
	}
	if expr.HasAggregate(x) {
		return nil, sel.b.hinted(s, "aggregate in a subquery and group around it", "GROUP BY cannot hold an aggregate")
	}
	sel.keepQueryKey(s, x)
	if w := e.windowOf(s, x); w != nil {
		return logical.GroupingSet{sel.addKey(expr.Pass(w.start)), sel.addKey(expr.Pass(w.end))}, nil
	}
	return logical.GroupingSet{sel.addKey(keyNamed(x, name))}, nil
}

// keyNamed is a grouping key; a column keeps its name and ID.
func keyNamed(x expr.Expr, name string) expr.Named {
	if c, ok := x.(*expr.Column); ok {
		return expr.Pass(c)
	}
	return expr.As(x, name)
}

// addKey adds a key unless it is there, and returns its place.
func (sel *selection) addKey(n expr.Named) int {
	at, added := sel.keySet.Add(n.Expr)
	if added {
		sel.keys = append(sel.keys, n)
	}
	return at
}

// isKey tells whether a column is grouped by.
func (sel *selection) isKey(c *expr.Column) bool {
	return sel.keySet.Find(c) >= 0
}

// warnHiddenAlias tells of a GROUP BY name that is a column and, by alias, something
// else: the column is taken.
func (sel *selection) warnHiddenAlias(s ast.Expr) {
	n, ok := ast.Unparen(s).(*ast.Name)
	if !ok || len(n.Parts) != 1 {
		return
	}
	name := n.Parts[0].Text
	if c, _ := sel.env("GROUP BY", noAliases).findColumn("", name); c == nil {
		return
	}
	for _, it := range sel.items {
		if !it.alias || !strings.EqualFold(it.name, name) {
			continue
		}
		if x, ok := ast.Unparen(it.syntax).(*ast.Name); !ok || !strings.EqualFold(nameOf(x), name) {
			sel.b.warn(s, "GROUP BY %s takes the column %s, not the select item of that alias", name, name)
			return
		}
	}
}

// completeWindows lets one bound of a window stand for both.
func (sel *selection) completeWindows() {
	all := make(logical.GroupingSet, len(sel.keys))
	for i := range all {
		all[i] = i
	}
	sel.withBounds(all)
}

// groupByAll groups by every select item without an aggregate.
func (sel *selection) groupByAll() {
	for _, it := range sel.items {
		switch {
		case expr.HasAggregate(it.x) || expr.HasOver(it.x) || sel.usesAggregates(it.x):
		case it.window != nil:
			sel.addKey(expr.Pass(it.window.start))
			sel.addKey(expr.Pass(it.window.end))
		default:
			if _, constant := it.x.(*expr.Literal); !constant {
				sel.keepQueryKey(it.syntax, it.x)
				sel.addKey(keyNamed(it.x, it.name))
			}
		}
	}
	sel.completeWindows()
}

// isGrouped tells whether the query has groups, be it a single one.
func (sel *selection) isGrouped(having, qualify expr.Expr, orders []*order) bool {
	if sel.grouped || len(sel.aggs) > 0 || having != nil || sel.anyAggregate() || qualify != nil && expr.HasAggregate(qualify) {
		return true
	}
	for _, o := range orders {
		if expr.HasAggregate(o.x) {
			return true
		}
	}
	return false
}

// aggregate puts the Aggregate on the plan and rewrites all that stands above it.
func (sel *selection) aggregate(having expr.Expr, qualify *expr.Expr, orders []*order, on []expr.Expr) error {
	var err error
	for _, it := range sel.items {
		if it.x, err = sel.overGroups(it.x, it.syntax); err != nil {
			return err
		}
	}
	if having != nil {
		if having, err = sel.overGroups(having, sel.s.Having); err != nil {
			return err
		}
	}
	if *qualify != nil {
		if *qualify, err = sel.overGroups(*qualify, sel.s.Qualify); err != nil {
			return err
		}
	}
	for _, o := range orders {
		if o.syntax.All {
			o.x = sel.items[o.output].x
			continue
		}
		if o.x, err = sel.overGroups(o.x, o.syntax.X); err != nil {
			return err
		}
	}
	for i, x := range on {
		if on[i], err = sel.overGroups(x, sel.s.On[i]); err != nil {
			return err
		}
	}
	if err := sel.aggregateBelow(); err != nil {
		return err
	}
	sel.attachScalars(func(expr.ID) bool { return true })
	if having != nil {
		sel.node = logical.NewFilter(sel.node, having)
	}
	return nil
}

// aggregateBelow puts the Aggregate on the plan, over the subqueries that it uses.
func (sel *selection) aggregateBelow() error {
	below := map[expr.ID]bool{}
	for _, n := range slices.Concat(sel.keys, sel.aggs, sel.volatile) {
		for _, id := range expr.Columns(n.Expr) {
			below[id] = true
		}
	}
	sel.attachScalars(func(id expr.ID) bool { return below[id] })
	if err := sel.scalarsOverGroups(); err != nil {
		return err
	}
	sel.attachUnnest()
	sel.addVolatile()
	return sel.aggregateOrders()
}

// overGroups rewrites an expression over the columns of FROM as one over the keys
// and aggregates, collecting the aggregates. Any other column is a mistake, shown
// in syntax.
func (sel *selection) overGroups(x expr.Expr, syntax ast.Expr) (expr.Expr, error) {
	if i := sel.keySet.Find(x); i >= 0 {
		return sel.groupKeys()[i].Column(), nil
	}
	switch n := x.(type) {
	case *expr.Agg:
		return sel.aggregateColumn(n), nil
	case *expr.Column:
		if sel.grouping != nil && n.ID == sel.grouping.Set.ID {
			return n, nil
		}
		for i, k := range sel.keys {
			if k.ID == n.ID {
				return sel.groupKeys()[i].Column(), nil
			}
		}
		for _, s := range sel.subs {
			if s.has(n.ID) {
				return n, nil
			}
		}
		if sel.isAggregate(n.ID) || sel.isOuter(n.ID) {
			return n, nil // one value for all groups
		}
		return nil, sel.ungrouped(n, syntax)
	}
	children := x.Children()
	var changed []expr.Expr
	for i, c := range children {
		m, err := sel.overGroups(c, syntax)
		if err != nil {
			return nil, err
		}
		if m != c && changed == nil {
			changed = append([]expr.Expr(nil), children...)
		}
		if changed != nil {
			changed[i] = m
		}
	}
	if changed == nil {
		return x, nil
	}
	return x.WithChildren(changed), nil
}

// isOuter says whether a column is of a query around this one.
func (sel *selection) isOuter(id expr.ID) bool {
	for o := sel.outer; o != nil; o = o.outer {
		if o.sel != nil && o.sel.isAggregate(id) || o.rel != nil && slices.ContainsFunc(o.rel.columns, func(c column) bool { return c.ID == id }) {
			return true
		}
	}
	return false
}

// aggregateColumn is the column of an aggregate, each computed once.
func (sel *selection) aggregateColumn(a *expr.Agg) *expr.Column {
	sel.aggSet.Calls = true
	at, added := sel.aggSet.Add(a)
	if added {
		sel.aggs = append(sel.aggs, expr.As(a, a.String()))
	}
	return sel.aggs[at].Column()
}

// ungrouped is the error for a column that is neither grouped nor aggregated. It
// looks for the name in the syntax, to underline that.
func (sel *selection) ungrouped(c *expr.Column, syntax ast.Node) error {
	var at ast.Node = syntax
	e := sel.env("SELECT", noAliases)
	ast.Walk(syntax, func(n ast.Node) bool {
		name, ok := n.(*ast.Name)
		if !ok {
			return true
		}
		if found, err := e.name(name); err == nil {
			for _, id := range expr.Columns(found) {
				if id == c.ID {
					at = name
				}
			}
		}
		return true
	})
	hint := "add it to GROUP BY, or use any_value(" + c.Name + ")"
	if !sel.grouped {
		hint = "add GROUP BY " + c.Name + ", or use any_value(" + c.Name + ")"
	}
	return sel.b.hinted(at, hint, "column %s is neither in GROUP BY nor inside an aggregate", c.Name)
}
