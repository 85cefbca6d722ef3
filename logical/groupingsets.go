package logical

import (
	"errors"
	"fmt"
	"slices"

	"github.com/tidemill/tidemill/columnar"
	"github.com/tidemill/tidemill/columnar/function"
	"github.com/tidemill/tidemill/logical/expr"
)

// GroupingSet is the places of its keys in a list.
type GroupingSet []int

// With is the keys of s, then those of t.
func (s GroupingSet) With(t GroupingSet) GroupingSet {
	out := slices.Clone(s)
	for _, k := range t {
		if !slices.Contains(out, k) {
			out = append(out, k)
		}
	}
	return out
}

// RollupSets are all parts, all but the last, and so on to none.
func RollupSets(parts []GroupingSet) []GroupingSet {
	var out []GroupingSet
	for n := len(parts); n >= 0; n-- {
		var set GroupingSet
		for _, p := range parts[:n] {
			set = set.With(p)
		}
		out = append(out, set)
	}
	return out
}

// CubeSets are all choices of parts.
func CubeSets(parts []GroupingSet) []GroupingSet {
	var out []GroupingSet
	for mask := 1<<len(parts) - 1; mask >= 0; mask-- {
		var set GroupingSet
		for i, p := range parts {
			if mask>>(len(parts)-1-i)&1 == 1 {
				set = set.With(p)
			}
		}
		out = append(out, set)
	}
	return out
}

// Grouping is what several grouping sets group by.
type Grouping struct {
	Sets []GroupingSet
	// Keys are the keys as the aggregate has them: those that a set is without are columns
	// of the Expand. The last is the number of the set.
	Keys []expr.Named
	// Set is the number of the set, a column of the Expand.
	Set      *expr.Column
	expanded []expr.Named
}

// NewGrouping groups by sets of keys.
func NewGrouping(keys []expr.Named, sets []GroupingSet) *Grouping {
	g := &Grouping{Sets: sets, Set: &expr.Column{ID: expr.NewID(), Name: "grouping_set", DataType: columnar.Int32}}
	for k, key := range keys {
		if InEverySet(sets, k) {
			g.Keys = append(g.Keys, key)
			continue
		}
		key.ID, key.Qualifier = expr.NewID(), ""
		g.expanded = append(g.expanded, key)
		column := key.Column()
		column.Null = true
		g.Keys = append(g.Keys, expr.As(column, key.Name))
	}
	g.Keys = append(g.Keys, expr.Pass(g.Set))
	return g
}

// InEverySet says whether no set is without key k.
func InEverySet(sets []GroupingSet, k int) bool {
	return !slices.ContainsFunc(sets, func(s GroupingSet) bool { return !slices.Contains(s, k) })
}

// Expand repeats the rows of input for the sets.
func (g *Grouping) Expand(input Node) *Expand {
	has := make([][]bool, len(g.Sets))
	for i, set := range g.Sets {
		for k := range len(g.Keys) - 1 {
			if !InEverySet(g.Sets, k) {
				has[i] = append(has[i], slices.Contains(set, k))
			}
		}
	}
	x := NewExpand(input, g.expanded, has)
	x.Set = g.Set
	return x
}

// Bits is grouping(keys…): a bit for each key, the last being the lowest, that is 1 where
// the row's set is without it.
func (g *Grouping) Bits(reg *function.Registry, keys GroupingSet) (expr.Expr, error) {
	zero, err := expr.NewLiteral(int64(0))
	if err != nil {
		return nil, err
	}
	c := &expr.Case{Else: zero}
	for i, set := range g.Sets {
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
		is, err := expr.NewCall(reg, "=", g.Set, expr.Lit(int32(i)).Expr)
		if err != nil {
			return nil, err
		}
		c.Whens, c.Thens = append(c.Whens, is), append(c.Thens, expr.Lit(bits).Expr)
	}
	if len(c.Whens) == 0 {
		return zero, nil
	}
	return c, nil
}

// aggregateSets groups by sets of keys.
func (d *DataFrame) aggregateSets(keys []expr.Named, shown []shownKey, sets func([]GroupingSet) []GroupingSet, aggs []expr.Term) (Node, error) {
	if w := openSession(d.node); w != nil && w.Grouped {
		return nil, errors.New("a session window cannot be one of several grouping sets: sessions are merged by all other keys")
	}
	keys, parts, shown := onceEach(keys, shown)
	g := NewGrouping(keys, sets(parts))
	seen := idSet{}
	for i, k := range g.Keys {
		g.Keys[i] = seen.add(k)
	}
	place := func(e expr.Expr) int {
		return slices.IndexFunc(keys, func(k expr.Named) bool { return expr.Equal(k.Expr, e) })
	}
	outputs, err := d.outputs(aggs, seen, func(args []expr.Expr) (expr.Expr, error) {
		var set GroupingSet
		for _, a := range args {
			k := place(a)
			if k < 0 {
				return nil, fmt.Errorf("grouping takes keys that are grouped by, which %s is not", a)
			}
			set = append(set, k)
		}
		return g.Bits(d.reg, set)
	})
	if err != nil {
		return nil, err
	}
	for i := range outputs {
		outputs[i].Expr = overExpanded(outputs[i].Expr, func(e expr.Expr) expr.Expr {
			if k := place(e); k >= 0 {
				return g.Keys[k].Expr
			}
			return nil
		})
	}
	node, err := BuildAggregate(d.reg, g.Expand(d.node), g.Keys, outputs)
	if err != nil {
		return nil, err
	}
	columns := passAll(node.Schema())
	node = NewProject(node, slices.Delete(columns, len(keys), len(keys)+1)) // the number of the set
	if len(shown) == len(keys) {
		return node, nil
	}
	return withBounds(node, keys, shown), nil
}

// onceEach leaves out keys that are there already, and gives the places of each term.
func onceEach(keys []expr.Named, shown []shownKey) (once []expr.Named, parts []GroupingSet, left []shownKey) {
	for i, s := range shown {
		end := len(keys)
		if i+1 < len(shown) {
			end = shown[i+1].at
		}
		var part GroupingSet
		first := len(once)
		for _, k := range keys[s.at:end] {
			at := slices.IndexFunc(once, func(o expr.Named) bool { return expr.Equal(o.Expr, k.Expr) })
			if at < 0 {
				at = len(once)
				once = append(once, k)
			}
			part = append(part, at)
		}
		parts = append(parts, part)
		if len(once) > first {
			s.at = first
			left = append(left, s)
		}
	}
	return once, parts, left
}

// overExpanded replaces what is outside of aggregates by what it is after the Expand;
// column gives nil for what is no key.
func overExpanded(e expr.Expr, column func(expr.Expr) expr.Expr) expr.Expr {
	if c := column(e); c != nil {
		return c
	}
	if _, ok := e.(*expr.Agg); ok || len(e.Children()) == 0 {
		return e
	}
	children := slices.Clone(e.Children())
	for i, c := range children {
		children[i] = overExpanded(c, column)
	}
	return e.WithChildren(children)
}

// Rollup groups by all terms, by all but the last, and so on to none. A key that a row is
// without is null in it.
func (d *DataFrame) Rollup(terms ...expr.Term) *GroupedData {
	return &GroupedData{input: d, keys: terms, sets: RollupSets}
}

// Cube groups by every choice of terms.
func (d *DataFrame) Cube(terms ...expr.Term) *GroupedData {
	if len(terms) > MostCubeKeys {
		d = FailedDataFrame(fmt.Errorf("cube: more than %d keys make too many grouping sets", MostCubeKeys))
	}
	return &GroupedData{input: d, keys: terms, sets: CubeSets}
}

// MostCubeKeys bounds the keys of a cube, of which each doubles the rows.
const MostCubeKeys = 12

// GroupingSets groups by each of sets; none of them is a single group of all rows.
func (d *DataFrame) GroupingSets(sets ...[]expr.Term) *GroupedData {
	g := &GroupedData{input: d}
	var places []GroupingSet
	for _, set := range sets {
		var s GroupingSet
		for _, t := range set {
			s = append(s, len(g.keys))
			g.keys = append(g.keys, t)
		}
		places = append(places, s)
	}
	g.sets = func(parts []GroupingSet) []GroupingSet {
		out := make([]GroupingSet, len(places))
		for i, s := range places {
			for _, k := range s {
				out[i] = out[i].With(parts[k])
			}
		}
		return out
	}
	return g
}
