package sql

import (
	"slices"

	"github.com/apache/arrow-go/v18/arrow/memory"

	"github.com/tidemill/tidemill/columnar"
	"github.com/tidemill/tidemill/logical"
	"github.com/tidemill/tidemill/logical/expr"
	"github.com/tidemill/tidemill/logical/sql/ast"
)

// A correlated subquery is bound to a plan whose expressions use columns that no input
// of theirs has: those of the query around it. decorrelator makes a plan without such
// columns and the conditions that join it to the query around it.

// decorrelator pulls the conditions out of a subquery.
type decorrelator struct {
	b  *binder
	at ast.Node
	// conds are over the columns of the plan and those of the query around it.
	conds []expr.Expr
	// empty is what the columns of the plan are for rows of the query around it for which
	// the subquery aggregates nothing; nil unless it aggregates all its rows.
	empty map[expr.ID]expr.Expr
}

// freeColumns says whether the expressions of n itself use columns of no input.
func freeColumns(n logical.Node) bool {
	return slices.ContainsFunc(n.Exprs(), func(e expr.Expr) bool { return isFree(e, n.Children()) })
}

func isFree(e expr.Expr, inputs []logical.Node) bool {
	return slices.ContainsFunc(expr.Columns(e), func(id expr.ID) bool {
		return !slices.ContainsFunc(inputs, func(in logical.Node) bool { return in.Schema().Has(id) })
	})
}

// isCorrelated says whether n uses columns of a query around it.
func isCorrelated(n logical.Node) bool {
	found := false
	logical.Walk(n, func(x logical.Node) bool {
		if _, scan := x.(*logical.Watermark); !scan && len(x.Children()) > 0 && freeColumns(x) {
			found = true
		}
		return !found
	})
	return found
}

func (d *decorrelator) unsupported(reason string) error {
	return d.b.unsupported(d.at, "this correlated subquery", reason, "join the tables instead")
}

// usedIn says that a column is used in a place from which it cannot be taken.
func (d *decorrelator) usedIn(n logical.Node) error {
	what := "something that is computed once for all rows"
	switch n.(type) {
	case *logical.AsofJoin:
		what = "an as-of join"
	case *logical.SetOp, *logical.Union:
		what = "UNION, INTERSECT or EXCEPT"
	case *logical.Expand:
		what = "GROUPING SETS, ROLLUP or CUBE"
	case *logical.Unnest:
		what = "unnest"
	case *logical.Window:
		what = "a window of time"
	}
	return d.unsupported("a column of the query around it is used in " + what)
}

// pull makes n free of columns of the query around it.
func (d *decorrelator) pull(n logical.Node) (logical.Node, error) {
	if !isCorrelated(n) {
		return n, nil
	}
	switch x := n.(type) {
	case *logical.Filter:
		return d.pullFilter(x)
	case *logical.Project:
		return d.pullProject(x)
	case *logical.Alias:
		return d.pullInput(x)
	case *logical.Sort:
		if freeColumns(x) {
			return nil, d.unsupported("it is sorted by a column of the query around it")
		}
		return d.pullInput(x) // an aggregate above may take its rows in this order
	case *logical.Join:
		return d.pullJoin(x)
	case *logical.AsofJoin:
		return d.pullAsofJoin(x)
	case *logical.Aggregate:
		return d.pullAggregate(x)
	case *logical.Distinct:
		return d.pullDistinct(x)
	case *logical.Limit:
		return d.pullLimit(x)
	case *logical.Over:
		return d.pullOver(x)
	case *logical.Window, *logical.Unnest, *logical.Expand:
		if !freeColumns(x) {
			return d.pullInput(x)
		}
	}
	return nil, d.usedIn(n)
}

func (d *decorrelator) pullInput(n logical.Node) (logical.Node, error) {
	in, err := d.pull(n.Children()[0])
	if err != nil {
		return nil, err
	}
	return n.WithChildren([]logical.Node{in}), nil
}

func (d *decorrelator) pullFilter(f *logical.Filter) (logical.Node, error) {
	in, err := d.pull(f.Input)
	if err != nil {
		return nil, err
	}
	if d.empty != nil {
		return nil, d.unsupported("it filters what it aggregates")
	}
	var stay []expr.Expr
	for _, c := range expr.Conjuncts(f.Cond) {
		if isFree(c, []logical.Node{in}) {
			d.conds = append(d.conds, c)
		} else {
			stay = append(stay, c)
		}
	}
	if len(stay) == 0 {
		return in, nil
	}
	return logical.NewFilter(in, expr.All(stay)), nil
}

// pullProject hands on the columns that the conditions use.
func (d *decorrelator) pullProject(p *logical.Project) (logical.Node, error) {
	if freeColumns(p) {
		return nil, d.unsupported("its select list uses columns of the query around it")
	}
	in, err := d.pull(p.Input)
	if err != nil {
		return nil, err
	}
	columns := slices.Clone(p.Columns)
	made := map[expr.ID]bool{}
	for _, c := range columns {
		made[c.ID] = true
	}
	for _, cond := range d.conds {
		for _, id := range expr.Columns(cond) {
			if i := in.Schema().Index(id); i >= 0 && !made[id] {
				made[id] = true
				columns = append(columns, expr.Pass(in.Schema().Columns[i]))
			}
		}
	}
	if d.empty != nil {
		empty := map[expr.ID]expr.Expr{}
		for _, c := range p.Columns {
			if empty[c.ID], err = replaceColumns(c.Expr, d.empty); err != nil {
				return nil, err
			}
		}
		d.empty = empty
	}
	return logical.NewProject(in, columns), nil
}

func replaceColumns(e expr.Expr, by map[expr.ID]expr.Expr) (expr.Expr, error) {
	return expr.Transform(e, func(x expr.Expr) (expr.Expr, error) {
		if c, ok := x.(*expr.Column); ok && by[c.ID] != nil {
			return by[c.ID], nil
		}
		return x, nil
	})
}

func (d *decorrelator) pullJoin(j *logical.Join) (logical.Node, error) {
	inner := j.Kind == logical.InnerJoin || j.Kind == logical.CrossJoin
	left, right := j.Left, j.Right
	var err error
	if inner || j.Kind == logical.LeftJoin || j.Kind == logical.SemiJoin || j.Kind == logical.AntiJoin {
		if left, err = d.pull(left); err != nil {
			return nil, err
		}
	}
	if inner {
		if right, err = d.pull(right); err != nil {
			return nil, err
		}
	}
	if d.empty != nil || isCorrelated(left) || isCorrelated(right) || !inner && freeColumns(j) {
		return nil, d.unsupported("a column of the query around it is used in a side of a join that is not always there")
	}
	var stay []expr.Expr
	for _, c := range expr.Conjuncts(j.On) {
		if isFree(c, []logical.Node{left, right}) {
			d.conds = append(d.conds, c)
		} else {
			stay = append(stay, c)
		}
	}
	kind := j.Kind
	if inner && len(stay) == 0 {
		kind = logical.CrossJoin
	}
	return logical.NewJoin(kind, left, right, expr.All(stay)), nil
}

// pullAsofJoin pulls from the left side, of which each row finds its nearest by itself:
// which rows the right side has decides which one that is.
func (d *decorrelator) pullAsofJoin(j *logical.AsofJoin) (logical.Node, error) {
	left, err := d.pull(j.Left)
	if err != nil {
		return nil, err
	}
	if d.empty != nil || isCorrelated(j.Right) || freeColumns(j) {
		return nil, d.unsupported("a column of the query around it is used in the right side or the condition of an as-of join")
	}
	return j.WithChildren([]logical.Node{left, j.Right}), nil
}

// pair is one equality between a subquery and the query around it.
type pair struct {
	op           string // = or is_not_distinct_from
	inner, outer expr.Expr
}

// pairs takes the conditions apart as equalities with an expression over the subquery's
// rows on one side and one over the query around it on the other; ok is false if they
// are anything else.
func (d *decorrelator) pairs(n logical.Node) (list []pair, ok bool) {
	for _, c := range d.conds {
		call, isCall := c.(*expr.Call)
		if !isCall || call.Func.Name != "=" && call.Func.Name != "is_not_distinct_from" {
			return nil, false
		}
		a, b := call.Args[0], call.Args[1]
		if !overInput(a, n) {
			a, b = b, a
		}
		if !overInput(a, n) || slices.ContainsFunc(expr.Columns(b), func(id expr.ID) bool { return n.Schema().Has(id) }) {
			return nil, false
		}
		list = append(list, pair{call.Func.Name, a, b})
	}
	return list, true
}

func overInput(e expr.Expr, n logical.Node) bool {
	return len(expr.Columns(e)) > 0 && n.Schema().Has(expr.Columns(e)...)
}

// keyed makes columns of the inner sides of the equalities, of an input that is about to
// be grouped by them.
func (d *decorrelator) keyed(in logical.Node, what string) ([]expr.Named, error) {
	list, ok := d.pairs(in)
	if !ok {
		return nil, d.unsupported("what it " + what + " depends on more than equalities with the query around it")
	}
	keys := make([]expr.Named, len(list))
	d.conds = nil
	for i, p := range list {
		if c, isColumn := p.inner.(*expr.Column); isColumn {
			keys[i] = expr.Pass(c)
		} else {
			keys[i] = expr.As(p.inner, p.inner.String())
		}
		cond, err := expr.NewCall(d.b.p.Functions, p.op, keys[i].Column(), p.outer)
		if err != nil {
			return nil, err
		}
		d.conds = append(d.conds, cond)
	}
	return keys, nil
}

// pullAggregate groups by the inner sides of the equalities as well.
func (d *decorrelator) pullAggregate(a *logical.Aggregate) (logical.Node, error) {
	if freeColumns(a) {
		return nil, d.unsupported("it groups or aggregates columns of the query around it")
	}
	in, err := d.pull(a.Input)
	if err != nil {
		return nil, err
	}
	if d.empty != nil {
		return nil, d.unsupported("it aggregates twice")
	}
	more, err := d.keyed(in, "aggregates")
	if err != nil {
		return nil, err
	}
	keys := slices.Clone(a.Keys)
	for _, k := range more {
		if !slices.ContainsFunc(keys, func(n expr.Named) bool { return n.ID == k.ID }) {
			keys = append(keys, k)
		}
	}
	if len(a.Keys) == 0 {
		d.empty = map[expr.ID]expr.Expr{}
		for _, n := range a.Aggs {
			d.empty[n.ID] = ofNoRows(n.Expr)
		}
	}
	return logical.NewAggregate(in, keys, a.Aggs), nil
}

// ofNoRows is what an aggregate is of no rows: null mostly, 0 a count, [] a list.
func ofNoRows(e expr.Expr) expr.Expr {
	null := expr.CastTo(nullLiteral(), e.Type())
	agg, ok := e.(*expr.Agg)
	switch {
	case !ok:
		return null
	case !agg.Nullable(): // a count
		return mustLiteral(int64(0))
	case agg.Signature.Overload.New == nil:
		return null
	}
	acc, err := agg.Signature.Overload.New(memory.DefaultAllocator, agg.Signature.Args)
	if err != nil {
		return null
	}
	defer acc.Release()
	acc.Resize(1)
	value, err := acc.Result([]uint32{0})
	if err != nil || value.IsNull(0) {
		return null
	}
	return &expr.Literal{Value: value}
}

// onceOrMore leaves out that rows are taken once, where it is asked only whether there is one.
func onceOrMore(n logical.Node) logical.Node {
	if x, ok := n.(*logical.Distinct); ok && x.On == nil {
		return onceOrMore(x.Input)
	}
	return n
}

// unsorted drops the order of the rows of a subquery, which nothing sees.
func unsorted(n logical.Node) logical.Node {
	switch x := n.(type) {
	case *logical.Sort:
		return unsorted(x.Input)
	case *logical.Project, *logical.Alias, *logical.Filter:
		return x.WithChildren([]logical.Node{unsorted(x.Children()[0])})
	}
	return n
}

func (d *decorrelator) pullDistinct(x *logical.Distinct) (logical.Node, error) {
	if freeColumns(x) {
		return nil, d.unsupported("DISTINCT ON has a column of the query around it")
	}
	in, err := d.pull(x.Input)
	if err != nil {
		return nil, err
	}
	if x.On == nil {
		keys, err := d.keyed(in, "takes once")
		if err != nil {
			return nil, err
		}
		list := keys
		for _, c := range x.Schema().Columns {
			if !slices.ContainsFunc(keys, func(k expr.Named) bool { return k.ID == c.ID }) {
				list = append(list, expr.Pass(c))
			}
		}
		return logical.NewDistinct(logical.NewProject(in, list), nil, false), nil
	}
	pairs, ok := d.pairs(in)
	if !ok {
		return nil, d.unsupported("what is distinct depends on more than equalities with the query around it")
	}
	on := slices.Clone(x.On)
	for _, p := range pairs {
		on = append(on, p.inner)
	}
	return logical.NewDistinct(in, on, false), nil
}

// pullLimit numbers the rows that belong to one row of the query around it.
func (d *decorrelator) pullLimit(l *logical.Limit) (logical.Node, error) {
	order, below := orderBelow(l)
	if slices.ContainsFunc(order, func(o expr.Order) bool { return isFree(o.Expr, []logical.Node{below}) }) {
		return nil, d.unsupported("it is sorted by a column of the query around it")
	}
	in, err := d.pull(below)
	if err != nil {
		return nil, err
	}
	list, ok := d.pairs(in)
	if d.empty != nil || !ok {
		return nil, d.unsupported("what its LIMIT leaves depends on more than equalities with the query around it")
	}
	var partition []expr.Expr
	for _, p := range list {
		partition = append(partition, p.inner)
	}
	return d.numbered(l, in, order, partition)
}

// orderBelow is the order in which a limit counts, and the plan without it.
func orderBelow(l *logical.Limit) (order []expr.Order, below logical.Node) {
	below = l.Input
	if p, ok := below.(*logical.Project); ok {
		if s, ok := p.Input.(*logical.Sort); ok && p.Schema().Has(expr.Columns(expr.All(s.Exprs()))...) {
			below = s.WithChildren([]logical.Node{p.WithChildren([]logical.Node{s.Input})})
		}
	}
	if s, ok := below.(*logical.Sort); ok {
		for _, k := range s.Keys {
			order = append(order, expr.Order{Expr: k.Expr, Descending: k.Descending, NullsFirst: k.NullsFirst})
		}
		below = s.Input
	}
	return order, below
}

// numbered is what a limit leaves of each partition.
func (d *decorrelator) numbered(l *logical.Limit, in logical.Node, order []expr.Order, partition []expr.Expr) (logical.Node, error) {
	o := &expr.Over{Func: "row_number", DataType: columnar.Int64, Frame: expr.WholePartition, Partition: partition, Order: order}
	number := expr.As(o, "row_number")
	var conds []expr.Expr
	var err error
	add := func(op string, n int64) {
		var c expr.Expr
		if err == nil {
			c, err = expr.NewCall(d.b.p.Functions, op, number.Column(), mustLiteral(n))
		}
		conds = append(conds, c)
	}
	if l.Offset > 0 {
		add(">", l.Offset)
	}
	if l.Count != logical.NoLimit {
		add("<=", l.Count+l.Offset)
	}
	if err != nil {
		return nil, err
	}
	return logical.NewFilter(logical.NewOver(in, []expr.Named{number}), expr.All(conds)), nil
}

// pullOver partitions by the inner sides of the equalities as well.
func (d *decorrelator) pullOver(x *logical.Over) (logical.Node, error) {
	if freeColumns(x) {
		return nil, d.unsupported("a window function has a column of the query around it")
	}
	in, err := d.pull(x.Input)
	if err != nil {
		return nil, err
	}
	list, ok := d.pairs(in)
	if d.empty != nil || !ok {
		return nil, d.unsupported("the partitions of a window function depend on more than equalities with the query around it")
	}
	functions := slices.Clone(x.Functions)
	for i, f := range functions {
		o := *f.Expr.(*expr.Over)
		o.Partition = slices.Clone(o.Partition)
		for _, p := range list {
			o.Partition = append(o.Partition, p.inner)
		}
		functions[i].Expr = &o
	}
	return logical.NewOver(in, functions), nil
}
