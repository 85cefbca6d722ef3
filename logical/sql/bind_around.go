package sql

import (
	"slices"
	"strings"

	"github.com/tidemill/tidemill/logical"
	"github.com/tidemill/tidemill/logical/expr"
	"github.com/tidemill/tidemill/logical/sql/ast"
)

// By the standard an aggregate whose columns are all of a query around the subquery that it
// stands in is one of that query: it aggregates the rows of that query, and is one value for
// the subquery, as a column of the query around it is.
//
//	SELECT t.k, (SELECT u.name FROM u WHERE u.at = max(t.at)) FROM t GROUP BY t.k

// aggregateAround is the column of an aggregate that belongs to a query around this one; nil
// for one of this query.
func (e *env) aggregateAround(n *ast.Call, name string) (expr.Expr, error) {
	o := e.aggregatesIn(n)
	switch {
	case o == nil:
		return nil, nil
	case o.sel == nil || !o.aggregates || o.within != "":
		return nil, e.b.hinted(n, "use a column of the subquery in it, or compute it in a subquery in FROM",
			"%s is over columns of a query around this one, which cannot aggregate in its %s", ast.Print(n), o.clause)
	}
	in := *o
	in.aliases = noAliases
	x, err := in.aggregate(n, name)
	if err != nil {
		return nil, err
	}
	agg, ok := x.(*expr.Agg)
	if !ok {
		return x, nil
	}
	return o.sel.aggregateColumn(agg), nil
}

// aggregatesIn is the query around this one whose rows a call aggregates: the innermost that
// it has columns of; nil if that is this one.
func (e *env) aggregatesIn(n *ast.Call) *env {
	if e.outer == nil || hasQuery(n) {
		return nil
	}
	var of *env
	depth := 0
	local := false
	in := e.inside(n.Name.Text)
	ast.Walk(n, func(x ast.Node) bool {
		name, ok := x.(*ast.Name)
		if !ok || local {
			return !local
		}
		v, err := in.name(name)
		if err != nil {
			local = true // to be told where it is bound
			return false
		}
		for _, id := range expr.Columns(v) {
			o, d := e.ownerOf(id)
			local = local || d == 0
			if o != nil && (of == nil || d < depth) {
				of, depth = o, d
			}
		}
		return true
	})
	if local {
		return nil
	}
	return of
}

// ownerOf is the query that has a column, and how far out it is, 0 being this one.
func (e *env) ownerOf(id expr.ID) (o *env, depth int) {
	for o = e; o != nil; o = o.outer {
		if o.rel != nil && o.rel.node.Schema().Has(id) || o.sel != nil && o.sel.isAggregate(id) {
			return o, depth
		}
		depth++
	}
	return nil, depth
}

// isAggregate says whether a column is an aggregate of this query.
func (sel *selection) isAggregate(id expr.ID) bool {
	return slices.ContainsFunc(sel.aggs, func(n expr.Named) bool { return n.ID == id })
}

// isGroupColumn says whether a column is a key or an aggregate of this query.
func (sel *selection) isGroupColumn(id expr.ID) bool {
	return sel.isAggregate(id) || slices.ContainsFunc(sel.keys, func(n expr.Named) bool { return n.ID == id })
}

// overGroupsOf prepares a subquery n over the groups of this query: in it a key that is an
// expression becomes a column of the groups. Any other column of FROM is a mistake, as it is
// outside of the subquery.
func (e *env) overGroupsOf(n logical.Node, syntax ast.Node) (logical.Node, error) {
	sel := e.sel
	if sel == nil || len(sel.keys) == 0 && len(sel.aggs) == 0 || e.within != "" || e.clause == "GROUP BY" || sel.s.GroupBy != nil && sel.s.GroupBy.All {
		return n, nil
	}
	n, err := logical.Transform(n, func(x logical.Node) (logical.Node, error) {
		return logical.TransformExprs(x, func(part expr.Expr) (expr.Expr, error) {
			k := sel.keySet.Find(part)
			if _, isColumn := part.(*expr.Column); k < 0 || isColumn || len(expr.Columns(part)) == 0 {
				return part, nil
			}
			return sel.keys[k].Column(), nil
		})
	})
	if err != nil {
		return nil, err
	}
	for _, c := range sel.from.node.Schema().Columns {
		if !sel.isGroupColumn(c.ID) && uses(n, []expr.ID{c.ID}) {
			return nil, sel.ungrouped(c, syntax)
		}
	}
	return n, nil
}

// groups is the aggregate of this query for the domain of a subquery n (see domain), where the
// rows of FROM are none for it: n uses an aggregate, a key that is an expression, or one that
// is null in some grouping sets. It is nil where that is not so, or not possible: the keys are
// not known yet, or use other subqueries.
func (e *env) groups(n logical.Node) logical.Node {
	sel := e.sel
	if sel == nil || e.within != "" || e.clause == "GROUP BY" || sel.s.GroupBy != nil && sel.s.GroupBy.All {
		return nil
	}
	made := func(list []expr.Named) (used []expr.Named) {
		for _, x := range list {
			if !sel.from.node.Schema().Has(x.ID) && uses(n, []expr.ID{x.ID}) {
				used = append(used, x)
			}
		}
		return used
	}
	aggs := made(sel.aggs)
	if len(aggs) == 0 && sel.grouping == nil && len(made(sel.keys)) == 0 {
		return nil
	}
	for _, x := range slices.Concat(sel.keys, aggs) {
		agg, ok := x.Expr.(*expr.Agg)
		if !sel.node.Schema().Has(expr.Columns(x.Expr)...) || ok && len(agg.Order) > 0 {
			return nil
		}
	}
	node, err := logical.Group(sel.b.p.Functions, sel.ordered(sel.node, nil), sel.groupKeys(), aggs)
	if err != nil {
		return nil
	}
	var list []expr.Named
	for i, k := range sel.keys {
		out := sel.groupKeys()[i].Column()
		list = append(list, expr.Named{Expr: out, Name: out.Name, ID: k.ID})
	}
	for _, a := range aggs {
		list = append(list, expr.Pass(a.Column()))
	}
	return logical.NewProject(node, list)
}

// usesAggregates says whether x, of the select list, depends on an aggregate of this query by
// way of a subquery.
func (sel *selection) usesAggregates(x expr.Expr) bool {
	return slices.ContainsFunc(expr.Columns(x), func(id expr.ID) bool {
		return slices.ContainsFunc(sel.subs, func(s *scalar) bool {
			return s.has(id) && slices.ContainsFunc(s.pairs, func(p pair) bool {
				return slices.ContainsFunc(expr.Columns(p.outer), sel.isAggregate) || sel.usesAggregates(p.outer)
			})
		})
	})
}

// keepQueryKey keeps what a grouping key with a subquery in it is bound to: the same text
// elsewhere in the query is that key, where binding it again would make another subquery.
func (sel *selection) keepQueryKey(s ast.Expr, x expr.Expr) {
	texts := []ast.Expr{s}
	for _, it := range sel.items {
		if it.state == bound && it.x == x {
			texts = append(texts, it.syntax)
		}
	}
	for _, s := range texts {
		if s = ast.Unparen(s); hasQuery(s) {
			if sel.queryKeys == nil {
				sel.queryKeys = map[string]expr.Expr{}
			}
			sel.queryKeys[queryText(s)] = x
		}
	}
}

// queryKey is the grouping key with a subquery in it that x is; nil if it is none.
func (e *env) queryKey(x ast.Expr) expr.Expr {
	if e.sel == nil || len(e.sel.queryKeys) == 0 || !hasQuery(x) {
		return nil
	}
	return e.sel.queryKeys[queryText(x)]
}

// queryText is how an expression is written, with all letters alike but those in quotes.
func queryText(x ast.Expr) string {
	var out strings.Builder
	for rest := ast.Print(x); rest != ""; {
		at := strings.IndexAny(rest, "'\"")
		if at < 0 {
			at = len(rest)
		}
		out.WriteString(folded(rest[:at]))
		if rest = rest[at:]; rest == "" {
			break
		}
		end := 2 + max(strings.IndexByte(rest[1:], rest[0]), 0)
		out.WriteString(rest[:end])
		rest = rest[end:]
	}
	return out.String()
}
