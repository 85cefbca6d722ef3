package stateful

import (
	"github.com/tidemill/tidemill/logical"
	"github.com/tidemill/tidemill/logical/expr"
)

// StateColumns narrows the sides of joins of streams in an analyzed plan to the columns
// that something above uses, or the join's own condition, or that rows are judged late
// by: the columns the state of the join has. It is a fixed pass that stands before
// optimization, so that no rule can change what a checkpoint holds; another way to choose
// would be another version of it.
func StateColumns(plan logical.Node) logical.Node {
	return stateColumns{}.narrow(plan, allColumns(plan))
}

// columnSet is a set of columns.
type columnSet map[expr.ID]bool

func allColumns(n logical.Node) columnSet {
	s := columnSet{}
	for _, c := range n.Schema().Columns {
		s[c.ID] = true
	}
	return s
}

// and adds the columns that exprs read to a copy of s.
func (s columnSet) and(exprs ...expr.Expr) columnSet {
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

type stateColumns struct{}

// narrow rewrites n, of whose columns used are used above.
func (p stateColumns) narrow(n logical.Node, used columnSet) logical.Node {
	if !joinsStreams(n) {
		return n
	}
	switch x := n.(type) {
	case *logical.Join:
		return p.narrowJoin(x, used)
	case *logical.Project:
		var columns []expr.Named
		below := columnSet{}
		for _, c := range x.Columns {
			if used[c.ID] {
				columns, below = append(columns, c), below.and(c.Expr)
			}
		}
		return logical.NewProject(p.narrow(x.Input, below), columns)
	case *logical.Aggregate:
		return p.children(n, columnSet{}.and(n.Exprs()...).and(boundsOf(x)...))
	case *logical.Alias, *logical.Filter, *logical.Sort, *logical.Limit, *logical.Window, *logical.Expand, *logical.Unnest, *logical.Watermark:
		return p.children(n, used.and(n.Exprs()...))
	case *logical.Distinct:
		if x.On != nil {
			used = used.and(n.Exprs()...)
			for id := range logical.EventTimes(x.Input) { // rows are judged late by it
				used[id] = true
			}
			return p.children(n, used)
		}
	}
	return p.children(n, nil)
}

// joinsStreams says whether there is a join of streams in n.
func joinsStreams(n logical.Node) bool {
	found := false
	logical.Walk(n, func(x logical.Node) bool {
		if j, ok := x.(*logical.Join); ok && logical.IsStreaming(j.Left) && logical.IsStreaming(j.Right) {
			found = true
		}
		return !found
	})
	return found
}

// boundsOf are the bounds of a session window that a merges: both are needed, whichever
// it groups by.
func boundsOf(a *logical.Aggregate) []expr.Expr {
	if s, ok := sessionOf(a); ok {
		return []expr.Expr{s.start, s.end}
	}
	return nil
}

// children narrows the inputs of n; used nil means that all their columns are used.
func (p stateColumns) children(n logical.Node, used columnSet) logical.Node {
	children := n.Children()
	out := make([]logical.Node, len(children))
	same := true
	for i, c := range children {
		if used == nil {
			out[i] = p.narrow(c, allColumns(c))
		} else {
			out[i] = p.narrow(c, used)
		}
		same = same && out[i] == c
	}
	if same {
		return n
	}
	return n.WithChildren(out)
}

func (p stateColumns) narrowJoin(j *logical.Join, used columnSet) logical.Node {
	used = used.and(j.Exprs()...)
	if !logical.IsStreaming(j.Left) || !logical.IsStreaming(j.Right) {
		return p.children(j, used)
	}
	left, right := logical.JoinBounds(j)
	sides := j.Children()
	for i, bound := range []*logical.JoinBound{left, right} {
		used := used
		if late, _ := lateColumn(sides[i], bound); late != nil {
			used = used.and(late)
		}
		in := p.narrow(sides[i], used)
		var columns []expr.Named
		for _, c := range in.Schema().Columns {
			if used[c.ID] {
				columns = append(columns, expr.Pass(c))
			}
		}
		if len(columns) < len(in.Schema().Columns) {
			in = logical.NewProject(in, columns)
		}
		sides[i] = in
	}
	return j.WithChildren(sides)
}
