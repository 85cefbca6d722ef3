package sql

import (
	"slices"
	"strconv"

	"github.com/tidemill/tidemill/columnar"
	"github.com/tidemill/tidemill/logical"
	"github.com/tidemill/tidemill/logical/expr"
	"github.com/tidemill/tidemill/logical/sql/ast"
)

// withinGroup rewrites WITHIN GROUP (ORDER BY x): of a percentile and mode x is what
// they are of, of others it is their ORDER BY.
func (e *env) withinGroup(n *ast.Call, name string) (*ast.Call, error) {
	if len(n.WithinGroup) == 0 {
		return n, nil
	}
	m := *n
	m.WithinGroup = nil
	f, _ := e.b.p.Functions.Aggregate(name)
	switch f.Name {
	case "percentile", "percentile_disc", "approx_quantile", "mode":
		of := n.WithinGroup[0]
		switch {
		case len(n.WithinGroup) != 1 || of.All:
			return nil, e.b.unsupported(n, name+" within a group of several values", "", "name one value")
		case of.Desc && f.Name == "mode":
			return nil, e.b.unsupported(n, name+" within a group in descending order", "of several values that are there as often it takes the smallest", "leave DESC out")
		case of.Desc && len(n.Args) == 1:
			shares, err := e.sharesFromTop(n.Args[0].Value, f.Name == "percentile_disc")
			if err != nil {
				return nil, err
			}
			m.Args = []*ast.Arg{arg(shares)}
		}
		m.Args = append([]*ast.Arg{arg(of.X)}, m.Args...)
	default:
		m.OrderBy = n.WithinGroup
	}
	return &m, nil
}

// sharesFromTop is the share of values in ascending order that is another of those in
// descending order, or an array of them. What is no share stays, to be refused.
func (e *env) sharesFromTop(x ast.Expr, discrete bool) (ast.Expr, error) {
	if a, ok := ast.Unparen(x).(*ast.Array); ok {
		turned := &ast.Array{Span: a.Span}
		for _, item := range a.Items {
			share, err := e.sharesFromTop(item, discrete)
			if err != nil {
				return nil, err
			}
			turned.Items = append(turned.Items, share)
		}
		return turned, nil
	}
	n, ok := ast.Unparen(x).(*ast.Number)
	if !ok {
		return nil, e.b.errorf(x, "the share of values in descending order is written out: 0.9, or [0.5, 0.9]")
	}
	share, err := strconv.ParseFloat(n.Text, 64)
	if err != nil || share > 1 {
		return x, nil
	}
	share = 1 - share
	if discrete {
		// Where a share ends at a value the next is meant: the first behind it from the top.
		share = min(1, share+4e-15)
	}
	return &ast.Number{Span: n.Span, Text: strconv.FormatFloat(share, 'e', -1, 64)}, nil
}

// aggregateOrder is the order that ORDER BY inside a call asks for; nil where the order of
// the rows changes nothing.
func (e *env) aggregateOrder(n *ast.Call, name string, agg *expr.Agg) ([]expr.Order, error) {
	if len(n.OrderBy) == 0 || !isOrdered(agg) {
		return nil, nil
	}
	if e.sel == nil {
		return nil, e.b.unsupported(n, "ORDER BY inside "+name+" here", "", "sort a subquery in FROM")
	}
	keys, err := e.orderKeys(n, name)
	if err != nil {
		return nil, err
	}
	order := make([]expr.Order, len(keys))
	for i, k := range keys {
		if agg.Filter != nil && expr.IsFallible(k.Expr) && !isVolatile(agg.Filter) { // it must not fail for a row that does not count
			c, err := expr.NewCase([]expr.Expr{agg.Filter}, []expr.Expr{k.Expr}, nil)
			if err != nil {
				return nil, e.b.wrap(n, err)
			}
			k.Expr = c
		}
		order[i] = expr.Order{Expr: k.Expr, Descending: k.Descending, NullsFirst: k.NullsFirst}
	}
	return order, nil
}

// isOrdered says whether the order of its rows changes what an aggregate is, be it only
// which of several is taken, as of any_value.
func isOrdered(agg *expr.Agg) bool { return agg.Signature.Overload.Ordered }

// aggregatesInOrder are aggregates that take their rows in one order, nil as they arrive.
type aggregatesInOrder struct {
	order []expr.Order
	aggs  []expr.Named
}

// byOrder divides the aggregates by their orders. Those for which any order will do go
// along with the first.
func byOrder(aggs []expr.Named) []*aggregatesInOrder {
	var list []*aggregatesInOrder
	var others []expr.Named
	for _, n := range aggs {
		agg := n.Expr.(*expr.Agg)
		if !isOrdered(agg) {
			others = append(others, n)
			continue
		}
		i := slices.IndexFunc(list, func(o *aggregatesInOrder) bool { return slices.EqualFunc(o.order, agg.Order, sameKey) })
		if i < 0 {
			i = len(list)
			list = append(list, &aggregatesInOrder{order: agg.Order})
		}
		plain := *agg
		plain.Order = nil
		n.Expr = &plain
		list[i].aggs = append(list[i].aggs, n)
	}
	if len(list) == 0 {
		return []*aggregatesInOrder{{aggs: others}}
	}
	// Groups come in the order of their first rows: of those as they arrive, if there are such.
	slices.SortStableFunc(list, func(a, b *aggregatesInOrder) int { return min(len(a.order), 1) - min(len(b.order), 1) })
	if len(list) == 1 {
		list[0].aggs = inSequence(aggs, append(list[0].aggs, others...))
	} else {
		list[0].aggs = append(list[0].aggs, others...)
	}
	return list
}

// inSequence sorts columns as like has them.
func inSequence(like, columns []expr.Named) []expr.Named {
	at := map[expr.ID]int{}
	for i, n := range like {
		at[n.ID] = i
	}
	slices.SortFunc(columns, func(a, b expr.Named) int { return at[a.ID] - at[b.ID] })
	return columns
}

// aggregateOrders puts the Aggregate on the plan. The input of an Aggregate has one order:
// aggregates of another have an Aggregate of their own, over a copy of the input, and the
// groups of both, which are the same, are joined.
func (sel *selection) aggregateOrders() error {
	groups := byOrder(sel.aggs)
	input := sel.node
	if len(groups) > 1 && isVolatilePlan(input) {
		return sel.b.unsupported(sel.s, "another ORDER BY inside a second aggregate over random values", "the rows are computed once for each order", "compute the aggregates in subqueries of their own and join these")
	}
	keys := sel.groupKeys()
	if len(groups[0].order) > 0 && keysLoseForm(keys) && !isVolatilePlan(input) {
		groups = append([]*aggregatesInOrder{{}}, groups...) // the first row of a group is that in order of arrival
	}
	node, err := logical.Group(sel.b.p.Functions, sel.ordered(input, groups[0].order), keys, groups[0].aggs)
	if err != nil {
		return sel.b.wrap(sel.s, err)
	}
	for _, g := range groups[1:] {
		other := logical.Refresh(logical.NewAggregate(sel.ordered(input, g.order), keys, g.aggs))
		made := other.Schema().Columns
		var on []expr.Expr
		for i, k := range keys {
			c, err := expr.NewCall(sel.b.p.Functions, "is_not_distinct_from", k.Column(), made[i])
			if err != nil {
				return sel.b.wrap(sel.s, err)
			}
			on = append(on, c)
		}
		node = logical.NewProject(joinGroups(node, other, on), append(passAll(node), sameIDs(g.aggs, made[len(keys):])...))
	}
	sel.node = node
	return nil
}

func keysLoseForm(keys []expr.Named) bool {
	return slices.ContainsFunc(keys, func(k expr.Named) bool { return columnar.LosesForm(k.Expr.Type()) })
}

func joinGroups(left, right logical.Node, on []expr.Expr) logical.Node {
	if len(on) == 0 {
		return logical.NewJoin(logical.CrossJoin, left, right, nil)
	}
	return logical.NewJoin(logical.InnerJoin, left, right, expr.All(on))
}

// sameIDs gives columns the IDs of others.
func sameIDs(like []expr.Named, columns []*expr.Column) []expr.Named {
	out := slices.Clone(like)
	for i := range out {
		out[i].Expr = columns[i]
	}
	return out
}

// ordered is the input of an aggregate in an order, its grouping sets written out.
func (sel *selection) ordered(input logical.Node, order []expr.Order) logical.Node {
	if len(order) > 0 {
		keys := make([]logical.SortKey, len(order))
		for i, o := range order {
			keys[i] = logical.SortKey{Expr: o.Expr, Descending: o.Descending, NullsFirst: o.NullsFirst}
		}
		input = logical.NewSort(input, keys, 0)
	}
	if sel.grouping != nil {
		return sel.grouping.Expand(input)
	}
	return input
}

// isVolatilePlan says whether computing a plan twice may give other rows.
func isVolatilePlan(n logical.Node) bool {
	found := false
	logical.Walk(n, func(x logical.Node) bool {
		found = found || slices.ContainsFunc(x.Exprs(), isVolatile)
		return !found
	})
	return found
}

func (e *env) orderKeys(n *ast.Call, name string) ([]logical.SortKey, error) {
	var keys []logical.SortKey
	for _, item := range n.OrderBy {
		if item.All {
			return nil, e.b.errorf(item, "ORDER BY ALL cannot stand inside %s; name what to order by", name)
		}
		x, err := e.inside(name).bind(item.X)
		if err != nil {
			return nil, err
		}
		if expr.HasAggregate(x) || expr.HasOver(x) {
			return nil, e.b.errorf(item, "the ORDER BY inside %s cannot hold an aggregate or a window function", name)
		}
		keys = append(keys, sortKey(x, item))
	}
	return keys, nil
}

func sameKey(a, b expr.Order) bool {
	return expr.Equal(a.Expr, b.Expr) && a.Descending == b.Descending && a.NullsFirst == b.NullsFirst
}
