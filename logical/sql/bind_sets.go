package sql

import (
	"slices"

	"github.com/tidemill/tidemill/columnar"
	"github.com/tidemill/tidemill/logical"
	"github.com/tidemill/tidemill/logical/expr"
	"github.com/tidemill/tidemill/logical/sql/ast"
)

// maxSets bounds the grouping sets of a query: each repeats every row.
const maxSets = 4096

// groupingSet is the places of its keys in selection.keys.
type groupingSet []int

// groupSets binds items of GROUP BY; the sets of several items are combined, each with
// each.
func (sel *selection) groupSets(items []ast.Expr) ([]groupingSet, error) {
	sets := []groupingSet{nil}
	for _, item := range items {
		next, err := sel.setsOf(item)
		if err != nil {
			return nil, err
		}
		if len(sets)*len(next) > maxSets {
			return nil, sel.b.errorf(item, "more than %d grouping sets", maxSets)
		}
		product := make([]groupingSet, 0, len(sets)*len(next))
		for _, a := range sets {
			for _, b := range next {
				product = append(product, union(a, b))
			}
		}
		sets = product
	}
	return sets, nil
}

// union is the keys of a, then those of b.
func union(a, b groupingSet) groupingSet {
	out := slices.Clone(a)
	for _, k := range b {
		if !slices.Contains(out, k) {
			out = append(out, k)
		}
	}
	return out
}

// setsOf is the sets of one item: of a plain one a single set.
func (sel *selection) setsOf(item ast.Expr) ([]groupingSet, error) {
	switch x := item.(type) {
	case *ast.GroupingSets:
		return sel.groupingSets(x)
	case *ast.Row:
		set, err := sel.compositeKey(x.Items)
		return []groupingSet{set}, err
	}
	set, err := sel.groupItem(item)
	return []groupingSet{set}, err
}

// compositeKey is (a, b): all of them or none.
func (sel *selection) compositeKey(items []ast.Expr) (groupingSet, error) {
	var set groupingSet
	for _, one := range items {
		keys, err := sel.groupItem(one)
		if err != nil {
			return nil, err
		}
		set = union(set, keys)
	}
	return set, nil
}

func (sel *selection) groupingSets(g *ast.GroupingSets) ([]groupingSet, error) {
	var parts [][]groupingSet
	for _, item := range g.Items {
		sets, err := sel.setsOf(item)
		if err != nil {
			return nil, err
		}
		if g.Kind != ast.Sets && len(sets) != 1 {
			return nil, sel.b.errorf(item, "ROLLUP and CUBE take keys, not grouping sets")
		}
		parts = append(parts, sets)
	}
	var out []groupingSet
	switch g.Kind {
	case ast.Sets:
		for _, sets := range parts {
			out = append(out, sets...)
		}
	case ast.Rollup:
		for n := len(parts); n >= 0; n-- {
			var set groupingSet
			for _, p := range parts[:n] {
				set = union(set, p[0])
			}
			out = append(out, set)
		}
	case ast.Cube:
		if len(parts) > 12 {
			return nil, sel.b.errorf(g, "CUBE of %d keys has more than %d grouping sets", len(parts), maxSets)
		}
		for mask := 1<<len(parts) - 1; mask >= 0; mask-- {
			var set groupingSet
			for i, p := range parts {
				if mask>>(len(parts)-1-i)&1 == 1 {
					set = union(set, p[0])
				}
			}
			out = append(out, set)
		}
	}
	return out, nil
}

// useSets keeps the sets of the query, unless it has a single one, which is all keys.
func (sel *selection) useSets(sets []groupingSet) error {
	for i := range sets {
		sets[i] = sel.withBounds(sets[i])
	}
	if len(sets) == 1 {
		return nil
	}
	for k, key := range sel.keys {
		if c, ok := key.Expr.(*expr.Column); ok && sel.nulled(sets, k) {
			if w := sel.b.windows[c.ID]; w != nil && w.Grouped {
				return sel.b.unsupported(sel.s.GroupBy, "a grouping set without the session window", "sessions are merged by all other keys",
					"put the session window beside the grouping sets: GROUP BY session_window(…), ROLLUP (…)")
			}
		}
	}
	sel.sets = sets
	sel.setColumn = &expr.Column{ID: expr.NewID(), Name: "grouping_set", DataType: columnar.Int32}
	for k, key := range sel.keys {
		if sel.nulled(sets, k) {
			key.ID, key.Qualifier = expr.NewID(), ""
			sel.expanded = append(sel.expanded, key)
			column := key.Column()
			column.Null = true
			key = expr.As(column, key.Name)
		}
		sel.outputs = append(sel.outputs, key)
	}
	sel.outputs = append(sel.outputs, expr.Pass(sel.setColumn))
	return nil
}

// groupKeys are the keys as the aggregate has them.
func (sel *selection) groupKeys() []expr.Named {
	if sel.sets != nil {
		return sel.outputs
	}
	return sel.keys
}

// withBounds lets one bound of a window stand for both.
func (sel *selection) withBounds(set groupingSet) groupingSet {
	for _, k := range slices.Clone(set) {
		c, ok := sel.keys[k].Expr.(*expr.Column)
		if !ok || sel.b.windows[c.ID] == nil {
			continue
		}
		w := sel.b.windows[c.ID]
		for _, bound := range []*expr.Column{w.Start, w.End} {
			if at := sel.node.Schema().Index(bound.ID); at >= 0 {
				set = union(set, groupingSet{sel.addKey(expr.Pass(sel.node.Schema().Columns[at]))})
			}
		}
	}
	return set
}

// nulled says whether key k is missing in a set.
func (sel *selection) nulled(sets []groupingSet, k int) bool {
	return slices.ContainsFunc(sets, func(s groupingSet) bool { return !slices.Contains(s, k) })
}

// expand puts the Expand on the plan and lets the aggregate group by its columns.
func (sel *selection) expand() {
	if sel.sets == nil {
		return
	}
	has := make([][]bool, len(sel.sets))
	for i := range has {
		has[i] = make([]bool, 0, len(sel.expanded))
	}
	for k := range sel.keys {
		if !sel.nulled(sel.sets, k) {
			continue
		}
		for i, set := range sel.sets {
			has[i] = append(has[i], slices.Contains(set, k))
		}
	}
	x := logical.NewExpand(sel.node, sel.expanded, has)
	x.Set = sel.setColumn
	sel.node = x
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
	if sel.sets == nil {
		return mustLiteral(int64(0)), nil
	}
	c := &expr.Case{Else: mustLiteral(int64(0))}
	for i, set := range sel.sets {
		bits := int64(0)
		for _, k := range keys {
			bits <<= 1
			if !slices.Contains(set, k) {
				bits |= 1
			}
		}
		if bits == 0 {
			continue
		}
		is, err := e.call(n, "=", sel.setColumn, mustLiteral(int32(i)))
		if err != nil {
			return nil, err
		}
		c.Whens, c.Thens = append(c.Whens, is), append(c.Thens, expr.Expr(mustLiteral(bits)))
	}
	if len(c.Whens) == 0 {
		return c.Else, nil
	}
	return c, nil
}

// groupingKeys are the places of the keys that grouping is asked about; of grouping_id
// without arguments all.
func (e *env) groupingKeys(n *ast.Call, name string) (groupingSet, error) {
	var keys groupingSet
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
		at := slices.IndexFunc(e.sel.keys, func(k expr.Named) bool { return expr.Equal(k.Expr, x) })
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
