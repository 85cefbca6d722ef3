package optimizer

import (
	"github.com/tidemill/tidemill/logical"
	"github.com/tidemill/tidemill/logical/expr"
)

// MergeFilters makes one filter of two, the lower one's conditions first.
var MergeFilters Rule = rule{"merge_filters", func(n logical.Node) (logical.Node, error) {
	f, ok := n.(*logical.Filter)
	if !ok {
		return n, nil
	}
	inner, ok := f.Input.(*logical.Filter)
	if !ok {
		return n, nil
	}
	return logical.NewFilter(inner.Input, expr.All(append(expr.Conjuncts(inner.Cond), expr.Conjuncts(f.Cond)...))), nil
}}
