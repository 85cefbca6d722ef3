package optimizer

import (
	"github.com/tidemill/tidemill/columnar"
	"github.com/tidemill/tidemill/logical"
	"github.com/tidemill/tidemill/logical/expr"
)

// KeyFilters advises joins to tell the side that streams by what keys the side that is
// kept has, so that scans, and what is above them, are spared the rows that meet nothing.
// It pays where a side has only some of the keys there are, and where that is not known,
// where an aggregation or another join is spared work. Which side is kept the planner
// decides; of what it may not leave out (the rows of an outer join) it leaves out nothing.
var KeyFilters Rule = keyFilters{}

type keyFilters struct{}

func (keyFilters) Name() string                               { return "key_filters" }
func (keyFilters) Apply(n logical.Node) (logical.Node, error) { return n, nil }

func (keyFilters) applyToRoot(n logical.Node) (logical.Node, int, error) {
	rows, count := logical.NewEstimator(), 0
	m, err := logical.Transform(n, func(x logical.Node) (logical.Node, error) {
		j, ok := x.(*logical.Join)
		if !ok || j.State != "" || j.KeyFilters || j.Kind == logical.FullJoin || logical.IsStreaming(j) {
			return x, nil
		}
		for _, c := range expr.Conjuncts(j.On) {
			a, b, ok := equalColumns(c)
			if !ok || c.(*expr.Call).Func.Name != "=" || !columnar.IsWord(c.Children()[0].Type()) {
				continue
			}
			if !j.Left.Schema().Has(a) {
				a, b = b, a
			}
			if j.Left.Schema().Has(a) && j.Right.Schema().Has(b) && (paysFor(rows, j.Left, a, j.Right) || paysFor(rows, j.Right, b, j.Left)) {
				count++
				return j.WithKeyFilters(), nil
			}
		}
		return x, nil
	})
	return m, count, err
}

// paysFor says whether the keys that kept has in column id are worth telling the other
// side.
func paysFor(rows *logical.Estimator, kept logical.Node, id expr.ID, other logical.Node) bool {
	narrow, known := rows.IsNarrow(kept, id)
	return narrow || !known && worksBelow(other)
}

// worksBelow says whether n aggregates or joins.
func worksBelow(n logical.Node) bool {
	works := false
	logical.Walk(n, func(x logical.Node) bool {
		switch x.(type) {
		case *logical.Aggregate, *logical.Distinct, *logical.Join:
			works = true
		}
		return !works
	})
	return works
}
