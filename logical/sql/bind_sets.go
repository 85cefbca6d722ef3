package sql

import (
	"slices"

	"github.com/tidemill/tidemill/logical"
	"github.com/tidemill/tidemill/logical/expr"
	"github.com/tidemill/tidemill/logical/sql/ast"
)

// maxSets bounds the grouping sets of a query: each repeats every row.
const maxSets = 4096

// groupSets binds items of GROUP BY; the sets of several items are combined, each with
// each.
func (sel *selection) groupSets(items []ast.Expr) ([]logical.GroupingSet, error) {
	sets := []logical.GroupingSet{nil}
	for _, item := range items {
		next, err := sel.setsOf(item)
		if err != nil {
			return nil, err
		}
		if len(sets)*len(next) > maxSets {
			return nil, sel.b.errorf(item, "more than %d grouping sets", maxSets)
		}
		product := make([]logical.GroupingSet, 0, len(sets)*len(next))
		for _, a := range sets {
			for _, b := range next {
				product = append(product, a.With(b))
			}
		}
		sets = product
	}
	return sets, nil
}

// setsOf is the sets of one item: of a plain one a single set.
func (sel *selection) setsOf(item ast.Expr) ([]logical.GroupingSet, error) {
	switch x := item.(type) {
	case *ast.GroupingSets:
		return sel.groupingSets(x)
	case *ast.Row:
		set, err := sel.compositeKey(x.Items)
		return []logical.GroupingSet{set}, err
	}
	set, err := sel.groupItem(item)
	return []logical.GroupingSet{set}, err
}

// compositeKey is (a, b): all of them or none.
func (sel *selection) compositeKey(items []ast.Expr) (logical.GroupingSet, error) {
	var set logical.GroupingSet
	for _, one := range items {
		keys, err := sel.groupItem(one)
		if err != nil {
			return nil, err
		}
		set = set.With(keys)
	}
	return set, nil
}

func (sel *selection) groupingSets(g *ast.GroupingSets) ([]logical.GroupingSet, error) {
	var keys []logical.GroupingSet
	for _, item := range g.Items {
		sets, err := sel.setsOf(item)
		if err != nil {
			return nil, err
		}
		if g.Kind != ast.Sets && len(sets) != 1 {
			return nil, sel.b.errorf(item, "ROLLUP and CUBE take keys, not grouping sets")
		}
		keys = append(keys, sets...)
	}
	switch {
	case g.Kind == ast.Rollup:
		return logical.RollupSets(keys), nil
	case g.Kind == ast.Cube && len(keys) > logical.MostCubeKeys:
		return nil, sel.b.errorf(g, "CUBE of %d keys has more than %d grouping sets", len(keys), maxSets)
	case g.Kind == ast.Cube:
		return logical.CubeSets(keys), nil
	}
	return keys, nil
}

// useSets keeps the sets of the query, unless it has a single one, which is all keys.
func (sel *selection) useSets(sets []logical.GroupingSet) error {
	for i := range sets {
		sets[i] = sel.withBounds(sets[i])
	}
	if len(sets) == 1 {
		return nil
	}
	for k, key := range sel.keys {
		if c, ok := key.Expr.(*expr.Column); ok && !logical.InEverySet(sets, k) {
			if w := sel.b.windows[c.ID]; w != nil && w.Grouped {
				return sel.b.unsupported(sel.s.GroupBy, "a grouping set without the session window", "sessions are merged by all other keys",
					"put the session window beside the grouping sets: GROUP BY session_window(…), ROLLUP (…)")
			}
		}
	}
	sel.grouping = logical.NewGrouping(sel.keys, sets)
	return nil
}

// groupKeys are the keys as the aggregate has them.
func (sel *selection) groupKeys() []expr.Named {
	if sel.grouping != nil {
		return sel.grouping.Keys
	}
	return sel.keys
}

// withBounds lets one bound of a window stand for both.
func (sel *selection) withBounds(set logical.GroupingSet) logical.GroupingSet {
	for _, k := range slices.Clone(set) {
		c, ok := sel.keys[k].Expr.(*expr.Column)
		if !ok || sel.b.windows[c.ID] == nil {
			continue
		}
		w := sel.b.windows[c.ID]
		for _, bound := range []*expr.Column{w.Start, w.End} {
			if at := sel.node.Schema().Index(bound.ID); at >= 0 {
				set = set.With(logical.GroupingSet{sel.addKey(expr.Pass(sel.node.Schema().Columns[at]))})
			}
		}
	}
	return set
}

// grouping is grouping(a, b) or grouping_id(a, b): a bit for each argument, the last
// being the lowest, that is 1 where the row's set is without it.
func (e *env) grouping(n *ast.Call, name string) (expr.Expr, error) {
	sel := e.sel
	if sel == nil || !sel.grouped || !e.aggregates {
		return nil, e.b.hinted(n, "it tells the rows of GROUP BY ROLLUP (…) apart", "%s stands beside GROUP BY only, in SELECT, HAVING and ORDER BY", name)
	}
	keys, err := e.groupingKeys(n, name)
	if err != nil {
		return nil, err
	}
	if sel.grouping == nil {
		return mustLiteral(int64(0)), nil
	}
	x, err := sel.grouping.Bits(e.b.p.Functions, keys)
	if err != nil {
		return nil, e.b.wrap(n, err)
	}
	return x, nil
}

// groupingKeys are the places of the keys that grouping is asked about; of grouping_id
// without arguments all.
func (e *env) groupingKeys(n *ast.Call, name string) (logical.GroupingSet, error) {
	var keys logical.GroupingSet
	if len(n.Args) == 0 && name == "grouping_id" {
		for i := range e.sel.keys {
			keys = append(keys, i)
		}
	} else if len(n.Args) == 0 {
		return nil, e.b.hinted(n, "grouping(key)", "grouping takes keys of GROUP BY")
	}
	for _, a := range n.Args {
		x, err := e.inside(name).bind(a.Value)
		if err != nil {
			return nil, err
		}
		at := e.sel.keySet.Find(x)
		if at < 0 {
			return nil, e.b.errorf(a, "%s takes keys of GROUP BY, which %s is not", name, ast.Print(a.Value))
		}
		keys = append(keys, at)
	}
	if len(keys) > 63 {
		return nil, e.b.errorf(n, "%s of more than 63 keys does not fit a BIGINT", name)
	}
	return keys, nil
}
