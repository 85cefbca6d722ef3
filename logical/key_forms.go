package logical

import (
	"github.com/tidemill/tidemill/columnar"
	"github.com/tidemill/tidemill/columnar/function"
	"github.com/tidemill/tidemill/logical/expr"
)

// Group aggregates input by keys; every Aggs expression is an *expr.Agg. A key column has
// the value of its group's first row. Where equal values can be written differently, which
// the Aggregate's own keys forget, first(key) stands beside the key, and a projection
// hands that on in its place:
//
//	Project k, n
//	  Aggregate keys=[k] aggs=[count(*) AS n, first(k) AS k]
func Group(reg *function.Registry, input Node, keys, aggs []expr.Named) (Node, error) {
	var firsts, shown []expr.Named
	grouped := make([]expr.Named, len(keys))
	for i, k := range keys {
		grouped[i] = k
		if !columnar.LosesForm(k.Expr.Type()) {
			shown = append(shown, expr.Pass(k.Column()))
			continue
		}
		first, err := expr.NewAgg(reg, "first", false, nil, k.Expr)
		if err != nil {
			return nil, err
		}
		value := expr.As(first, k.Name)
		firsts = append(firsts, value)
		grouped[i].ID = expr.NewID()
		k.Expr = value.Column()
		shown = append(shown, k)
	}
	if len(firsts) == 0 {
		return NewAggregate(input, keys, aggs), nil
	}
	for _, a := range aggs {
		shown = append(shown, expr.Pass(a.Column()))
	}
	return NewProject(NewAggregate(input, grouped, append(aggs[:len(aggs):len(aggs)], firsts...)), shown), nil
}

// Grouped is d, a DISTINCT of whole rows, as an aggregation without aggregates of its own.
func (d *Distinct) Grouped(reg *function.Registry) (Node, error) {
	return Group(reg, d.Input, passAll(d.Input.Schema()), nil)
}
