package logical

import (
	"slices"

	"github.com/tidemill/tidemill/columnar"
	"github.com/tidemill/tidemill/columnar/function"
	"github.com/tidemill/tidemill/logical/expr"
)

// SessionOf finds the session window whose bounds are columns start and end of n, -1 for
// one that n does not hand on. Between them are only nodes that work row by row.
func SessionOf(n Node) (w *Window, start, end int) {
	switch x := n.(type) {
	case *Window:
		if !x.IsSession() {
			return nil, 0, 0
		}
		at := len(x.Input.Schema().Columns)
		return x, at, at + 1
	case *Alias, *Filter, *Expand: // the input's columns come first
		return SessionOf(x.Children()[0])
	case *Project:
		w, start, end := SessionOf(x.Input)
		if w == nil {
			return nil, 0, 0
		}
		in := x.Input.Schema().Columns
		return w, projected(x, in, start), projected(x, in, end)
	}
	return nil, 0, 0
}

// projected is where a projection puts column i of its input; -1 if nowhere.
func projected(p *Project, in []*expr.Column, i int) int {
	if i < 0 {
		return -1
	}
	return slices.IndexFunc(p.Columns, func(c expr.Named) bool {
		col, ok := c.Expr.(*expr.Column)
		return ok && col.ID == in[i].ID
	})
}

// SessionBounds are the columns of n that are, or are computed from, bounds of session
// windows not yet grouped by.
func SessionBounds(n Node) map[expr.ID]bool {
	bounds := map[expr.ID]bool{}
	switch x := n.(type) {
	case *Aggregate:
		return bounds
	case *Project:
		below := SessionBounds(x.Input)
		for _, c := range x.Columns {
			if readsAny(c.Expr, below) {
				bounds[c.ID] = true
			}
		}
		return bounds
	case *Union:
		for _, in := range x.Inputs {
			below := SessionBounds(in)
			for i, c := range in.Schema().Columns {
				if below[c.ID] {
					bounds[x.Output.Columns[i].ID] = true
				}
			}
		}
		return bounds
	case *Window:
		if x.IsSession() {
			bounds[x.Start.ID], bounds[x.End.ID] = true, true
		}
	}
	for _, c := range n.Children() {
		for id := range SessionBounds(c) {
			bounds[id] = true
		}
	}
	return bounds
}

func readsAny(e expr.Expr, ids map[expr.ID]bool) bool {
	return slices.ContainsFunc(expr.Columns(e), func(id expr.ID) bool { return ids[id] })
}

// openSession is the session window below n that the aggregate above must merge.
func openSession(n Node) *Window {
	switch x := n.(type) {
	case *Window:
		if x.IsSession() {
			return x
		}
	case *Aggregate:
		return nil
	}
	for _, c := range n.Children() {
		if w := openSession(c); w != nil {
			return w
		}
	}
	return nil
}

// checkSession says whether the aggregate a over a stream gives what it means when it
// merges the sessions of w itself: their bounds are not known before.
func checkSession(a *Aggregate, w *Window) error {
	if !groupsBy(a, w) {
		return ungroupedSession()
	}
	between := "the bounds of its sessions are not known before they are grouped"
	found, start, end := SessionOf(a.Input)
	if found != w && sortsAbove(a.Input, w) {
		return orderedAggregate()
	}
	if found != w || start < 0 || end < 0 {
		return &UnsupportedError{What: "a session window with more than columns between it and its GROUP BY on a stream", Reason: between,
			Remedy: "group by both bounds right above it, and join or filter the sessions above that"}
	}
	bounds := SessionBounds(a.Input)
	if slices.ContainsFunc(a.Aggs, func(n expr.Named) bool { return readsAny(n.Expr, bounds) }) {
		return &UnsupportedError{What: "an aggregate of the bounds of its session on a stream", Reason: between,
			Remedy: "group by the window alone, and compute with its bounds in a query above it"}
	}
	if w.Grouped {
		return nil
	}
	if !keyedAlike(a, w) {
		keys := "and nothing else, or give SESSION the keys, SESSION(t, ts, gap, key)"
		if len(w.PartitionKeys) > 0 {
			keys = "and the keys of SESSION, " + expr.List(w.PartitionKeys) + ", no more and no fewer"
		}
		return &UnsupportedError{What: "SESSION by other keys than those of its GROUP BY on a stream", Reason: "sessions are kept, and merge, by the grouping keys",
			Remedy: "GROUP BY window_start, window_end " + keys + "; aggregate again above it"}
	}
	if filtersSessions(a.Input, w) {
		return &UnsupportedError{What: "a filter between SESSION and its GROUP BY on a stream", Reason: "sessions are over all rows, also those it drops, and " + between,
			Remedy: "filter what SESSION reads, SESSION((SELECT * FROM t WHERE …), ts, gap), and sessions in HAVING"}
	}
	return nil
}

// sortsAbove says whether a Sort stands between n and w.
func sortsAbove(n Node, w *Window) bool {
	if n == Node(w) {
		return false
	}
	if _, ok := n.(*Sort); ok {
		return true
	}
	return slices.ContainsFunc(n.Children(), func(c Node) bool { return openSession(c) == w && sortsAbove(c, w) })
}

// ungroupedSession refuses a session that nothing merges.
func ungroupedSession() error {
	return &UnsupportedError{What: "SESSION without grouping by its window on a stream", Reason: "a session's bounds are known only once its rows are grouped",
		Remedy: "GROUP BY window_start, window_end"}
}

// filtersSessions says whether a filter between n and w may drop some rows of a session
// and keep others: one that reads the keys of w alone does not.
func filtersSessions(n Node, w *Window) bool {
	if n == Node(w) {
		return false
	}
	if f, ok := n.(*Filter); ok && !keepsSessions(f, w) {
		return true
	}
	return filtersSessions(n.Children()[0], w)
}

func keepsSessions(f *Filter, w *Window) bool {
	keys := map[expr.ID]bool{}
	for _, k := range w.PartitionKeys {
		if c, ok := k.(*expr.Column); ok && !columnar.HasEqualForms(c.DataType) {
			keys[origin(w.Input, c.ID)] = true
		}
	}
	for _, id := range expr.Columns(f.Cond) {
		if !keys[origin(f.Input, id)] {
			return false
		}
	}
	volatile := false
	expr.Walk(f.Cond, func(x expr.Expr) bool {
		c, ok := x.(*expr.Call)
		volatile = volatile || ok && c.Signature.Overload.Volatility == function.Volatile
		return !volatile
	})
	return !volatile
}
