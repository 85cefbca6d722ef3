package streamtest

import (
	"context"
	"slices"

	arrowmemory "github.com/apache/arrow-go/v18/arrow/memory"
)

// Minimise makes a failing case smaller for as long as it still fails, in at most tries
// runs: it drops batches, files, rows and pieces of the query, and does without the
// variant.
func (c *Case) Minimise(ctx context.Context, mem arrowmemory.Allocator, tries int) *Case {
	best := c
	for again := true; again; {
		again = false
		for _, smaller := range best.smaller() {
			if tries--; tries < 0 || ctx.Err() != nil {
				return best
			}
			if difference, _ := smaller.Check(ctx, mem); difference != "" {
				best, again = smaller, true
				break
			}
		}
	}
	return best
}

// smaller are cases with one thing less, the largest things first.
func (c *Case) smaller() []*Case {
	var out []*Case
	add := func(change func(*Case)) {
		n := *c
		change(&n)
		out = append(out, &n)
	}
	if c.Crash >= 0 {
		add(func(n *Case) { n.Crash = -1 })
	}
	if v := c.Variant; v.Name != "plain" {
		add(func(n *Case) { n.Variant = Variant{Name: "plain"} })
	} else if v != (Variant{Name: "plain"}) {
		add(func(n *Case) { n.Variant.Shards = 0 })
		add(func(n *Case) { n.Variant.BatchRows = 0 })
		add(func(n *Case) { n.Variant.NoOptimize = false })
	}
	for i := range c.Batches {
		add(func(n *Case) { n.Batches = without(c.Batches, i) })
	}
	for i, b := range c.Batches {
		for k := range b.Files {
			add(func(n *Case) { n.Batches = replaced(c.Batches, i, genBatch{without(b.Files, k), b.Drain}) })
		}
	}
	c.smallerQuery(add)
	for i, b := range c.Batches {
		for k, f := range b.Files {
			for r := range f.Rows {
				add(func(n *Case) {
					files := replaced(b.Files, k, genFile{f.Name, without(f.Rows, r)})
					n.Batches = replaced(c.Batches, i, genBatch{files, b.Drain})
				})
			}
		}
	}
	if c.Limit > 0 {
		add(func(n *Case) { n.Limit = 0 })
	}
	for i := range c.Dim {
		add(func(n *Case) { n.Dim = without(c.Dim, i) })
	}
	return slices.DeleteFunc(out, func(n *Case) bool { return !n.Query.legal() })
}

func (c *Case) smallerQuery(add func(func(*Case))) {
	q := c.Query
	lists := []struct{ get func(*genQuery) *[]string }{
		{func(q *genQuery) *[]string { return &q.Where }}, {func(q *genQuery) *[]string { return &q.Aggs }},
		{func(q *genQuery) *[]string { return &q.Items }}, {func(q *genQuery) *[]string { return &q.Keys }},
	}
	for _, l := range lists {
		for i := range *l.get(&q) {
			add(func(n *Case) { *l.get(&n.Query) = without(*l.get(&n.Query), i) })
		}
	}
	if q.Having != "" {
		add(func(n *Case) { n.Query.Having = "" })
	}
	if q.Join != "" {
		add(func(n *Case) { n.Query.Join = "" })
	}
	if q.Top > 0 {
		add(func(n *Case) { n.Query.Top = 0 })
	}
	if q.Rollup {
		add(func(n *Case) { n.Query.Rollup = false })
	}
	if q.Chain {
		add(func(n *Case) { n.Query.Chain, n.Query.Outer = false, 0 })
	}
	if q.Outer > 0 {
		add(func(n *Case) { n.Query.Outer = 0 })
	}
	if q.Stream != "" {
		add(func(n *Case) { n.Query.Stream = "" })
	}
	if q.Union {
		add(func(n *Case) { n.Query.Union = false })
	}
	if q.Policy != "" {
		add(func(n *Case) { n.Query.Policy = "" })
	}
	if q.Dedup != "" {
		add(func(n *Case) { n.Query.Dedup = "" })
	}
	if q.Below > 0 {
		add(func(n *Case) { n.Query.Below = 0 })
	}
	if q.Grouped {
		add(func(n *Case) { n.Query.Grouped, n.Query.Offset = false, 0 })
	}
	if q.Offset != 0 {
		add(func(n *Case) { n.Query.Offset = 0 })
	}
	if q.Count > 0 {
		add(func(n *Case) { n.Query.Count = 0 })
	}
}

// legal says whether dropping pieces has left a query.
func (q *genQuery) legal() bool {
	switch q.Kind {
	case distinctOn:
		return len(q.Keys) > 0 && len(q.Items) > 0
	case aggregated:
		rawTime := q.Window == "" && q.Watermark != ""
		return len(q.Aggs) > 0 && (!q.Rollup || len(q.Keys) > 0) && (!rawTime || slices.Contains(q.Keys, "ts")) && (!q.isSession() || q.Outer > 0 || !q.Chain)
	case distinct:
		return len(q.Items) > 0 && (q.Watermark == "" || slices.Contains(q.Items, "ts"))
	}
	return len(q.Items) > 0 && (q.Stream != "" || q.Watermark == "")
}

func without[T any](list []T, i int) []T { return slices.Delete(slices.Clone(list), i, i+1) }

func replaced[T any](list []T, i int, v T) []T {
	list = slices.Clone(list)
	list[i] = v
	return list
}
