package optimizer

import (
	"maps"
	"slices"

	"github.com/tidemill/tidemill/logical"
	"github.com/tidemill/tidemill/logical/expr"
)

// PruneColumns computes and reads only columns that something above uses. It looks
// at the whole plan once, from the root, whose columns are all used.
var PruneColumns Rule = pruneColumns{}

type pruneColumns struct{}

func (pruneColumns) Name() string                               { return "prune_columns" }
func (pruneColumns) Apply(n logical.Node) (logical.Node, error) { return n, nil }

func (pruneColumns) applyToRoot(n logical.Node) (logical.Node, int, error) {
	used := columnSet{}
	for _, c := range n.Schema().Columns {
		used[c.ID] = true
	}
	p := pruner{}
	m := p.prune(n, used)
	return m, p.changed, nil
}

// columnSet is a set of columns.
type columnSet map[expr.ID]bool

// with is s and the columns that exprs read.
func (s columnSet) with(exprs ...expr.Expr) columnSet {
	out := make(columnSet, len(s))
	for id := range s {
		out[id] = true
	}
	for _, e := range exprs {
		for _, id := range expr.Columns(e) {
			out[id] = true
		}
	}
	return out
}

// and is the columns of s and o.
func (s columnSet) and(o columnSet) columnSet {
	out := s.with()
	for id := range o {
		out[id] = true
	}
	return out
}

func (s columnSet) hasAny(ids ...expr.ID) bool {
	return slices.ContainsFunc(ids, func(id expr.ID) bool { return s[id] })
}

// pruner counts the nodes it changes.
type pruner struct{ changed int }

// prune rewrites n so that it delivers at least the used columns.
func (p *pruner) prune(n logical.Node, used columnSet) logical.Node {
	switch x := n.(type) {
	case *logical.Scan:
		if positions, fewer := usedPositions(x.Positions, x.Output, used); fewer {
			p.changed++
			return x.WithPositions(positions)
		}
		return n
	case *logical.StreamScan:
		if positions, fewer := usedPositions(x.Positions, x.Output, used); fewer {
			p.changed++
			return x.WithPositions(positions)
		}
		return n
	case *logical.Project:
		columns := p.usedNamed(x.Columns, used)
		return logical.NewProject(p.prune(x.Input, columnSet{}.with(exprsOf(columns)...)), columns)
	case *logical.Aggregate:
		return p.pruneAggregate(x, used)
	case *logical.Over:
		functions := p.usedNamed(x.Functions, used)
		if len(functions) == 0 {
			return p.prune(x.Input, used)
		}
		used = used.with(exprsOf(functions)...)
		return logical.NewOver(p.prune(x.Input, used), functions)
	case *logical.Expand:
		return p.pruneChildren(x, used.with(x.Exprs()...))
	case *logical.Distinct:
		return p.pruneDistinct(x, used)
	case *logical.Union:
		return p.pruneUnion(x, used)
	case *logical.SetOp:
		return p.pruneSetOp(x)
	case *logical.Join:
		if x.State != "" { // it keeps the columns it stores
			return p.pruneChildren(x, all(x.Left.Schema()).and(all(x.Right.Schema())))
		}
		return p.pruneSides(x, used)
	case *logical.AsofJoin:
		return p.pruneSides(x, used)
	case *logical.Unnest:
		u, changed := x.WithoutUnused(func(id expr.ID) bool { return used[id] })
		if changed {
			p.changed++
		}
		return p.pruneChildren(u, used.with(x.Exprs()...))
	case *logical.Values:
		return n
	}
	return p.pruneChildren(n, used.with(n.Exprs()...))
}

// pruneChildren asks every input for the columns of used that it has.
func (p *pruner) pruneChildren(n logical.Node, used columnSet) logical.Node {
	children := n.Children()
	out := make([]logical.Node, len(children))
	same := true
	for i, c := range children {
		out[i] = p.prune(c, used)
		same = same && out[i] == c
	}
	if same {
		return n
	}
	return n.WithChildren(out)
}

func usedPositions(positions []int, output *logical.Schema, used columnSet) (kept []int, fewer bool) {
	kept = []int{}
	for i, c := range output.Columns {
		if used[c.ID] {
			kept = append(kept, positions[i])
		}
	}
	return kept, len(kept) < len(positions)
}

func (p *pruner) usedNamed(columns []expr.Named, used columnSet) []expr.Named {
	kept := slices.DeleteFunc(slices.Clone(columns), func(c expr.Named) bool { return !used[c.ID] })
	if len(kept) < len(columns) {
		p.changed++
	}
	return kept
}

func exprsOf(columns []expr.Named) []expr.Expr {
	out := make([]expr.Expr, len(columns))
	for i, c := range columns {
		out[i] = c.Expr
	}
	return out
}

// pruneAggregate drops unused aggregates, except of a node that keeps state. What merges
// sessions needs both bounds, whichever it groups by.
func (p *pruner) pruneAggregate(a *logical.Aggregate, used columnSet) logical.Node {
	aggs := a.Aggs
	if a.State == "" {
		aggs = p.usedNamed(a.Aggs, used)
	}
	below := columnSet{}.with(exprsOf(a.Keys)...)
	if sessions := columnSet(logical.SessionBounds(a.Input)); below.hasAny(slices.Collect(maps.Keys(sessions))...) {
		below = below.and(sessions)
	}
	below = below.with(exprsOf(aggs)...)
	return logical.NewAggregate(p.prune(a.Input, below), a.Keys, aggs).WithState(a.State)
}

// pruneSides narrows both inputs of a join to what the condition and the nodes above use:
// what a join holds on to costs memory.
func (p *pruner) pruneSides(j logical.Node, used columnSet) logical.Node {
	used = used.with(j.Exprs()...)
	children := make([]logical.Node, 2)
	sides := j.Children()
	for i, in := range sides {
		var columns []expr.Named
		for _, c := range in.Schema().Columns {
			if used[c.ID] {
				columns = append(columns, expr.Pass(c))
			}
		}
		children[i] = p.exactly(in, columns)
	}
	if children[0] == sides[0] && children[1] == sides[1] {
		return j
	}
	return j.WithChildren(children)
}

// pruneDistinct keeps every column where all of them decide what is equal.
func (p *pruner) pruneDistinct(d *logical.Distinct, used columnSet) logical.Node {
	if d.On != nil {
		used = used.with(d.On...)
		if d.State != "" { // rows are judged late, and keys expire, by the event time
			for id := range logical.EventTimes(d.Input) {
				used[id] = true
			}
		}
		return p.pruneChildren(d, used)
	}
	return p.pruneChildren(d, all(d.Input.Schema()))
}

func all(s *logical.Schema) columnSet {
	out := columnSet{}
	for _, c := range s.Columns {
		out[c.ID] = true
	}
	return out
}

// pruneUnion narrows the union and each input to the used places: inputs are matched
// by place, so each gets a projection to exactly those.
func (p *pruner) pruneUnion(u *logical.Union, used columnSet) logical.Node {
	var places []int
	output := &logical.Schema{}
	for i, c := range u.Output.Columns {
		if used[c.ID] {
			places = append(places, i)
			output.Columns = append(output.Columns, c)
		}
	}
	inputs := make([]logical.Node, len(u.Inputs))
	for i, in := range u.Inputs {
		columns := make([]expr.Named, len(places))
		for k, place := range places {
			columns[k] = expr.Pass(in.Schema().Columns[place])
		}
		inputs[i] = p.exactly(in, columns)
	}
	if len(places) < len(u.Output.Columns) {
		p.changed++
	}
	return &logical.Union{Inputs: inputs, Output: output}
}

// pruneSetOp keeps all columns of both sides, in their places.
func (p *pruner) pruneSetOp(s *logical.SetOp) logical.Node {
	children := make([]logical.Node, 2)
	for i, in := range s.Children() {
		columns := make([]expr.Named, len(in.Schema().Columns))
		for k, c := range in.Schema().Columns {
			columns[k] = expr.Pass(c)
		}
		children[i] = p.exactly(in, columns)
	}
	return s.WithChildren(children)
}

// exactly prunes n to the given pass-through columns, and adds a projection if n then
// still delivers others or in another order.
func (p *pruner) exactly(n logical.Node, columns []expr.Named) logical.Node {
	pruned := p.prune(n, columnSet{}.with(exprsOf(columns)...))
	have := pruned.Schema().Columns
	if len(have) == len(columns) {
		same := true
		for i, c := range columns {
			same = same && have[i].ID == c.ID
		}
		if same {
			return pruned
		}
	}
	p.changed++
	return logical.NewProject(pruned, columns)
}
