package sql

import (
	"fmt"
	"strings"

	"github.com/apache/arrow-go/v18/arrow"

	"github.com/tidemill/tidemill/columnar"
	"github.com/tidemill/tidemill/columnar/function"
	"github.com/tidemill/tidemill/logical"
	"github.com/tidemill/tidemill/logical/expr"
	"github.com/tidemill/tidemill/logical/sql/ast"
)

// selection is one SELECT being bound. Its expressions are typed over the columns
// of FROM; if it groups, they are then rewritten over the keys and aggregates.
type selection struct {
	b     *binder
	s     *ast.Select
	outer *env
	from  *relation
	node  logical.Node // FROM, then WHERE, then what window(…) and subqueries add
	items []*item
	size  int // of those that are bound
	// window is the window(…) or session_window(…) of the query, nil if none.
	window *windowUse
	// volatile are select items like random() that another item uses by alias; they
	// are computed once, below.
	volatile []expr.Named
	unnest   *logical.Unnest // of the select list; its input is not what it stands on
	subs     []*scalar
	keys     []expr.Named
	keySet   expr.Set // of keys, and of aggs: with the same numbers
	aggs     []expr.Named
	aggSet   expr.Set
	grouped  bool
	grouping *logical.Grouping // several grouping sets; nil otherwise
	// queryKeys are the keys with subqueries in them, by their text.
	queryKeys map[string]expr.Expr
}

// item is one column of the select list, stars written out.
type item struct {
	syntax ast.Expr
	name   string // of the output column
	alias  bool   // the name was given with AS
	x      expr.Expr
	err    error
	state  itemState
	window *bounds // of a struct that is a window
	column *column // what COLUMNS(…) in it stands for; nil if it is not there
}

type itemState uint8

const (
	unbound itemState = iota
	binding
	bound
)

// selectQuery binds SELECT with the ORDER BY, LIMIT and OFFSET of q.
func (b *binder) selectQuery(s *ast.Select, q *ast.Query, outer *env) (*relation, error) {
	if err := b.refuseClauses(s); err != nil {
		return nil, err
	}
	from, err := b.from(s.From, outer)
	if err != nil {
		return nil, err
	}
	sel := &selection{b: b, s: s, outer: outer, from: from, node: from.node}
	if err := sel.where(); err != nil {
		return nil, err
	}
	if err := sel.expandItems(); err != nil {
		return nil, err
	}
	if err := sel.groupBy(); err != nil {
		return nil, err
	}
	for i := range sel.items {
		if _, err := sel.item(i); err != nil {
			return nil, err
		}
	}
	if s.GroupBy != nil && s.GroupBy.All {
		sel.groupByAll()
	}
	r, err := sel.finish(q)
	if err != nil {
		return nil, err
	}
	return b.limit(r, q)
}

// refuseClauses says which clauses make no sense.
func (b *binder) refuseClauses(s *ast.Select) error {
	if s.WithinWatermark && s.Distinct != ast.DistinctOn {
		return b.hinted(s, "SELECT DISTINCT ON (key) … FROM … WITHIN WATERMARK", "WITHIN WATERMARK belongs to SELECT DISTINCT ON")
	}
	for i, w := range s.Windows {
		for _, other := range s.Windows[:i] {
			if strings.EqualFold(w.Name.Text, other.Name.Text) {
				return b.errorf(w.Name, "the window %s is defined twice", w.Name.Text)
			}
		}
	}
	return nil
}

// where binds WHERE and puts it on the plan: subqueries in IN and EXISTS become
// joins, everything else a filter.
func (sel *selection) where() error {
	if sel.s.Where == nil {
		return nil
	}
	return sel.filter(conjuncts(sel.s.Where, nil), "WHERE")
}

// filter puts conditions of a clause on the plan.
func (sel *selection) filter(conds []ast.Expr, clause string) error {
	e := &env{b: sel.b, rel: sel.from, clause: clause, outer: sel.outer, subs: &sel.subs, hidden: sel.s.Items}
	var plain []expr.Expr
	var joins []ast.Expr
	for _, c := range conds {
		if isSubqueryCondition(c) {
			joins = append(joins, c)
			continue
		}
		x, err := e.condition(c, clause)
		if err != nil {
			return err
		}
		plain = append(plain, x)
	}
	sel.attachScalars(func(expr.ID) bool { return true })
	if len(plain) > 0 {
		sel.node = logical.NewFilter(sel.node, expr.All(plain))
	}
	for _, c := range joins {
		if err := sel.subqueryJoin(e, c); err != nil {
			return err
		}
	}
	return nil
}

// conjuncts splits a condition at its ANDs.
func conjuncts(x ast.Expr, to []ast.Expr) []ast.Expr {
	if a, ok := ast.Unparen(x).(*ast.Binary); ok && a.Op == "AND" {
		return conjuncts(a.R, conjuncts(a.L, to))
	}
	return append(to, x)
}

// expandItems lists the output columns, stars written out.
func (sel *selection) expandItems() error {
	for _, s := range sel.s.Items {
		star, ok := ast.Unparen(s.X).(*ast.Star)
		if c, isCall := ast.Unparen(s.X).(*ast.Call); isCall && s.Alias == nil {
			if done, err := sel.expandGenerator(c); done || err != nil {
				if err != nil {
					return err
				}
				continue
			}
		}
		if done, err := sel.expandColumns(s); done || err != nil {
			if err != nil {
				return err
			}
			continue
		}
		if !ok {
			it := &item{syntax: s.X, name: nameOf(s.X)}
			if s.Alias != nil {
				it.name, it.alias = s.Alias.Text, true
			}
			sel.items = append(sel.items, it)
			continue
		}
		if err := sel.expandStar(star); err != nil {
			return err
		}
	}
	return nil
}

// expandGenerator makes items of the columns of explode and its kin, under their own
// names; done is false for everything else.
func (sel *selection) expandGenerator(c *ast.Call) (done bool, err error) {
	name := lower(c.Name.Text)
	if _, ok := generators[name]; !ok || name == "unnest" {
		return false, nil
	}
	columns, err := sel.env("SELECT", noAliases).generatorItems(c, name)
	for _, x := range columns {
		sel.items = append(sel.items, &item{syntax: c, name: x.Name, x: x, state: bound})
	}
	return true, err
}

func identNamed(list []*ast.Ident, name string) *ast.Ident {
	for _, id := range list {
		if strings.EqualFold(id.Text, name) {
			return id
		}
	}
	return nil
}

func namesOf(columns []column) []string {
	names := make([]string, len(columns))
	for i, c := range columns {
		names[i] = c.name
	}
	return names
}

func tablesOf(r *relation) []string {
	var names []string
	for _, c := range r.columns {
		if c.table != "" && (len(names) == 0 || names[len(names)-1] != c.table) {
			names = append(names, c.table)
		}
	}
	return names
}

// env is the scope of an expression of this SELECT.
func (sel *selection) env(clause string, aliases aliasRule) *env {
	return &env{
		b: sel.b, rel: sel.from, clause: clause, outer: sel.outer, sel: sel, subs: &sel.subs,
		aliases: aliases, upto: len(sel.items), aggregates: true,
		windows: clause == "SELECT" || clause == "QUALIFY" || clause == "ORDER BY" || clause == "DISTINCT ON",
	}
}

// item binds one item of the select list, on first use.
func (sel *selection) item(i int) (expr.Expr, error) {
	it := sel.items[i]
	if it.state == unbound {
		it.state = binding
		e := sel.env("SELECT", columnFirst)
		e.upto, e.column = i, it.column
		it.x, it.err = e.bind(it.syntax)
		it.state = bound
		if it.err == nil {
			it.err = sel.checkSize(it)
			it.window = e.windowOf(it.syntax, it.x)
		}
	}
	return it.x, it.err
}

// checkSize refuses an item that is too large, or makes the list so: a AS b, b + 1 AS c, … grows
// with the square of its length.
func (sel *selection) checkSize(it *item) error {
	if err := sel.b.checkSize(it.syntax, it.x); err != nil {
		return err
	}
	if sel.size += sel.b.size(it.x); sel.size > maxListSize {
		return sel.b.hinted(it.syntax, "compute a part of it in a subquery in FROM", "the select list has more than %d parts once aliases are written out", maxListSize)
	}
	return nil
}

// aliasOf finds the item before upto that has the name as its alias. An exact match
// wins over one that differs in case; several that mean the same are one.
func (sel *selection) aliasOf(name string, upto int, at ast.Node) (found bool, x expr.Expr, err error) {
	exact, fold := -1, -1
	for i, it := range sel.items[:upto] {
		if it.state == binding || !it.alias || !strings.EqualFold(it.name, name) {
			continue
		}
		x, err := sel.item(i)
		if err != nil {
			return true, nil, err
		}
		first := &fold
		if it.name == name {
			first = &exact
		}
		if *first >= 0 && !expr.Equal(sel.items[*first].x, x) {
			return true, nil, sel.b.errorf(at, "the alias %s is ambiguous: two select items have it", name)
		}
		if *first < 0 {
			*first = i
		}
	}
	if exact < 0 {
		exact = fold
	}
	if exact < 0 {
		return false, nil, nil
	}
	return true, sel.once(sel.items[exact]), nil
}

// outputNamed finds the one select item whose column has the name without an alias:
// SELECT window.start … ORDER BY start.
func (sel *selection) outputNamed(name string) expr.Expr {
	var found expr.Expr
	for _, it := range sel.items {
		if it.alias || it.x == nil || !strings.EqualFold(it.name, name) {
			continue
		}
		if found != nil {
			return nil
		}
		found = it.x
	}
	return found
}

// once makes sure that an item used twice is computed once, if that matters.
func (sel *selection) once(it *item) expr.Expr {
	if !isVolatile(it.x) || expr.HasAggregate(it.x) {
		return it.x
	}
	n := expr.As(it.x, it.name)
	sel.volatile = append(sel.volatile, n)
	it.x = n.Column()
	return it.x
}

func isVolatile(x expr.Expr) bool {
	found := false
	expr.Walk(x, func(x expr.Expr) bool {
		if c, ok := x.(*expr.Call); ok && c.Signature.Overload.Volatility == function.Volatile {
			found = true
		}
		return !found
	})
	return found
}

// finish binds HAVING, DISTINCT and ORDER BY and puts the plan together.
func (sel *selection) finish(q *ast.Query) (*relation, error) {
	having, err := sel.having()
	if err != nil {
		return nil, err
	}
	order, err := sel.orderBy(q.OrderBy)
	if err != nil {
		return nil, err
	}
	on, err := sel.distinctOn()
	if err != nil {
		return nil, err
	}
	qualify, err := sel.qualify()
	if err != nil {
		return nil, err
	}
	if sel.isGrouped(having, qualify, order) {
		if err := sel.aggregate(having, &qualify, order, on); err != nil {
			return nil, err
		}
	} else {
		sel.beforeProject()
	}
	if err := sel.overRows(&qualify, order, on); err != nil {
		return nil, err
	}
	if sel.s.Distinct == ast.DistinctOn {
		// What ORDER BY puts first is what is kept.
		if len(order) > 0 {
			sel.node = logical.NewSort(sel.node, sortKeys(order), 0)
		}
		sel.node = logical.NewDistinct(sel.node, on, sel.s.WithinWatermark)
	}
	return sel.project(order)
}

// overRows puts the window functions and QUALIFY on the plan.
func (sel *selection) overRows(qualify *expr.Expr, orders []*order, on []expr.Expr) error {
	var list []*expr.Expr
	for _, it := range sel.items {
		list = append(list, &it.x)
	}
	for _, o := range orders {
		list = append(list, &o.x)
	}
	for i := range on {
		list = append(list, &on[i])
	}
	below := sel.node
	var err error
	if sel.node, err = logical.PlaceOvers(below, append(list, qualify)); err != nil {
		return err
	}
	if sel.node != below && sel.unnest != nil {
		return sel.b.unsupported(sel.s, "unnest beside a window function", "", "unnest in a subquery in FROM")
	}
	if *qualify != nil {
		sel.node = logical.NewFilter(sel.node, *qualify)
	}
	return nil
}

// beforeProject puts the computed columns and scalar subqueries of a query without
// groups on the plan.
func (sel *selection) beforeProject() {
	sel.attachScalars(func(expr.ID) bool { return true })
	sel.attachUnnest()
	sel.addVolatile()
}

func (sel *selection) addVolatile() {
	if len(sel.volatile) == 0 {
		return
	}
	list := make([]expr.Named, 0, len(sel.volatile)+8)
	for _, c := range sel.node.Schema().Columns {
		list = append(list, expr.Pass(c))
	}
	sel.node = logical.NewProject(sel.node, append(list, sel.volatile...))
	sel.volatile = nil
}

// order is one ORDER BY item: an output column by position, or an expression.
type order struct {
	syntax *ast.OrderItem
	x      expr.Expr
	output int // -1 unless it is an output column
}

func sortKeys(list []*order) []logical.SortKey {
	keys := make([]logical.SortKey, len(list))
	for i, o := range list {
		keys[i] = sortKey(o.x, o.syntax)
	}
	return keys
}

// orderBy binds the items of ORDER BY: positions, aliases, then columns.
func (sel *selection) orderBy(items []*ast.OrderItem) ([]*order, error) {
	if sel.s.Distinct == ast.Distinct {
		for _, it := range sel.items {
			sel.keepQueryKey(it.syntax, it.x)
		}
	}
	var list []*order
	for _, s := range items {
		if s.All {
			for i, it := range sel.items {
				list = append(list, &order{syntax: s, x: it.x, output: i})
			}
			continue
		}
		if i, ok, err := sel.position(s.X, "ORDER BY"); err != nil {
			return nil, err
		} else if ok {
			list = append(list, &order{syntax: s, x: sel.items[i].x, output: i})
			continue
		}
		x, err := sel.env("ORDER BY", aliasFirst).bind(s.X)
		if err != nil {
			return nil, err
		}
		list = append(list, &order{syntax: s, x: x, output: -1})
	}
	return list, nil
}

// position reads a whole number as the place of a select item.
func (sel *selection) position(x ast.Expr, clause string) (int, bool, error) {
	n, ok := wholeNumber(x)
	if !ok {
		return 0, false, nil
	}
	if n < 1 || n > int64(len(sel.items)) {
		return 0, false, sel.b.errorf(x, "%s %d: there %s", clause, n, areColumns(len(sel.items)))
	}
	return int(n - 1), true, nil
}

func (sel *selection) distinctOn() ([]expr.Expr, error) {
	var on []expr.Expr
	for _, s := range sel.s.On {
		if i, ok, err := sel.position(s, "DISTINCT ON"); err != nil {
			return nil, err
		} else if ok {
			on = append(on, sel.items[i].x)
			continue
		}
		x, err := sel.env("DISTINCT ON", columnFirst).bind(s)
		if err != nil {
			return nil, err
		}
		on = append(on, x)
	}
	return on, nil
}

func (sel *selection) having() (expr.Expr, error) {
	if sel.s.Having == nil {
		return nil, nil
	}
	x, err := sel.env("HAVING", keyFirst).condition(sel.s.Having, "HAVING")
	if err != nil {
		return nil, err
	}
	if sel.s.GroupBy == nil && !sel.anyAggregate() && len(sel.aggs) == 0 && !hasAggregateCall(sel.b, sel.s.Having) {
		return nil, sel.b.hinted(sel.s.Having, "use WHERE", "HAVING without GROUP BY and aggregates filters nothing but rows")
	}
	return x, sel.refuseOver(x, sel.s.Having, "HAVING")
}

func (sel *selection) anyAggregate() bool {
	for _, it := range sel.items {
		if expr.HasAggregate(it.x) {
			return true
		}
	}
	return false
}

// hasAggregateCall looks for a call of an aggregate function in the syntax.
func hasAggregateCall(b *binder, x ast.Node) bool {
	found := false
	ast.Walk(x, func(n ast.Node) bool {
		switch c := n.(type) {
		case *ast.Subquery, *ast.Exists, *ast.ArrayQuery:
			return false
		case *ast.Quantified:
			return c.Query == nil
		case *ast.Call:
			if _, ok := b.p.Functions.Aggregate(c.Name.Text); ok && c.Over == nil {
				found = true
			}
		}
		return !found
	})
	return found
}

// project makes the output columns, sorts and removes duplicates.
func (sel *selection) project(orders []*order) (*relation, error) {
	distinct := sel.s.Distinct == ast.Distinct
	seen := map[expr.ID]bool{}
	list := make([]expr.Named, 0, len(sel.items)+len(orders))
	for _, it := range sel.items {
		list = append(list, named(it.x, it.name, seen))
	}
	list, err := sel.sortColumns(orders, list)
	if err != nil {
		return nil, err
	}
	if !distinct {
		list = sel.keepBounds(list, seen)
	}
	var node logical.Node = logical.NewProject(sel.node, list)
	if passesAll(list, sel.node.Schema()) {
		node = sel.node
	}
	if distinct {
		node = logical.NewDistinct(node, nil, false)
	}
	if len(orders) > 0 {
		node = logical.NewSort(node, sortKeys(orders), 0)
	}
	r := &relation{node: node}
	for i, c := range node.Schema().Columns[:len(sel.items)] {
		col := column{Column: c, name: sel.items[i].name}
		if w := sel.items[i].window; w != nil && node.Schema().Has(w.start.ID, w.end.ID) {
			col.window = w
		}
		r.columns = append(r.columns, col)
	}
	return r, nil
}

// passesAll tells whether a projection would change nothing.
func passesAll(list []expr.Named, in *logical.Schema) bool {
	if len(list) != len(in.Columns) {
		return false
	}
	for i, n := range list {
		c, ok := n.Expr.(*expr.Column)
		if !ok || c.ID != in.Columns[i].ID || n.ID != c.ID || n.Name != in.Columns[i].Name {
			return false
		}
	}
	return true
}

// sortColumns finds the output columns that the ORDER BY items mean, and adds hidden ones
// for the rest to the list.
func (sel *selection) sortColumns(orders []*order, list []expr.Named) ([]expr.Named, error) {
	var known expr.Set
	var places []int // in list, of what is known
	know := func(i int) {
		if _, added := known.Add(list[i].Expr); added {
			places = append(places, i)
		}
	}
	for i := range list {
		if len(orders) > 0 {
			know(i)
		}
	}
	for _, o := range orders {
		at := o.output
		if k := known.Find(o.x); at < 0 && k >= 0 {
			at = places[k]
		}
		if at < 0 {
			if sel.s.Distinct == ast.Distinct {
				return nil, sel.b.hinted(o.syntax, "add it to the select list", "SELECT DISTINCT can be sorted by its own columns only")
			}
			at = len(list)
			list = append(list, expr.As(o.x, ast.Print(o.syntax.X)))
			know(at)
		}
		if dt := list[at].Expr.Type(); dt.ID() == arrow.MAP {
			return nil, sel.b.errorf(o.syntax, "values of type %s have no order", columnar.TypeName(dt))
		}
		o.x = list[at].Column()
	}
	return list, nil
}

// keepBounds passes the bounds of a window on beside its struct, so that a query
// around this one can still group by them.
func (sel *selection) keepBounds(list []expr.Named, seen map[expr.ID]bool) []expr.Named {
	for _, it := range sel.items {
		if it.window == nil {
			continue
		}
		for _, c := range []*expr.Column{it.window.start, it.window.end} {
			if !seen[c.ID] && sel.node.Schema().Has(c.ID) {
				seen[c.ID] = true
				list = append(list, expr.Pass(c))
			}
		}
	}
	return list
}

// nameOf is the name of a select item without alias: that of the column, else its
// text.
func nameOf(x ast.Expr) string {
	switch n := ast.Unparen(x).(type) {
	case *ast.Name:
		return n.Parts[len(n.Parts)-1].Text
	case *ast.Field:
		return n.Name.Text
	case *ast.Cast:
		switch ast.Unparen(n.X).(type) {
		case *ast.Name, *ast.Field:
			return nameOf(n.X)
		}
		return ast.Print(n)
	case *ast.Call:
		name := lower(n.Name.Text)
		if name == "window" || name == "session_window" {
			return name
		}
		return name + strings.TrimPrefix(ast.Print(n), ast.Print(n.Name))
	default:
		return ast.Print(n)
	}
}

// subqueryJoin puts a condition IN (query) or EXISTS (query) on the plan.
func (sel *selection) subqueryJoin(e *env, c ast.Expr) error {
	not := false
	c = ast.Unparen(c)
	for {
		u, ok := c.(*ast.Unary)
		if !ok {
			break
		}
		not = !not
		c = ast.Unparen(u.X)
	}
	kind := func(not bool) logical.JoinKind {
		if not {
			return logical.AntiJoin
		}
		return logical.SemiJoin
	}
	switch x := c.(type) {
	case *ast.Exists:
		r, d, err := e.subquery(x, x.Query, byConditions)
		if err != nil {
			return err
		}
		switch {
		case d.empty != nil: // an aggregate of no rows is a row
			if not {
				sel.node = logical.NewFilter(sel.node, boolLiteral(false))
			}
		case len(d.conds) == 0:
			sel.node = logical.NewJoin(kind(not), sel.node, logical.NewLimit(r.node, 1, 0), nil).WithSubquery(subqueryName(x))
		default:
			sel.node = logical.NewJoin(kind(not), sel.node, r.node, expr.All(d.conds)).WithSubquery(subqueryName(x))
		}
	case *ast.In, *ast.Quantified:
		in, _ := asIn(x)
		on, right, err := e.inQuery(in, not != in.Not)
		if err != nil {
			return err
		}
		sel.attachScalars(func(expr.ID) bool { return true })
		sel.node = logical.NewJoin(kind(not != in.Not), sel.node, right, on).WithSubquery(subqueryName(x))
	default:
		return fmt.Errorf("bug: %T is no subquery condition", c)
	}
	return nil
}

// isSubqueryCondition tells whether x is [NOT] IN (query) or [NOT] EXISTS (query).
func isSubqueryCondition(x ast.Expr) bool {
	switch n := ast.Unparen(x).(type) {
	case *ast.Exists:
		return true
	case *ast.In, *ast.Quantified:
		_, ok := asIn(n)
		return ok
	case *ast.Unary:
		return n.Op == "NOT" && isSubqueryCondition(n.X)
	}
	return false
}
