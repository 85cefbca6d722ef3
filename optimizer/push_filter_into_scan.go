package optimizer

import (
	"slices"

	"github.com/tidemill/tidemill/logical"
	"github.com/tidemill/tidemill/logical/expr"
)

// PushFilterIntoScan hands conditions to the scan, which evaluates them on each batch
// it decodes and uses them to skip files, row groups and pages. A stream's scan gets
// them only where no watermark stands between.
var PushFilterIntoScan Rule = rule{"push_filter_into_scan", func(n logical.Node) (logical.Node, error) {
	f, ok := n.(*logical.Filter)
	if !ok {
		return n, nil
	}
	push, keep := split(expr.Conjuncts(f.Cond), func(expr.Expr) bool { return true })
	if len(push) == 0 {
		return n, nil
	}
	switch s := f.Input.(type) {
	case *logical.Scan:
		if s.Limit == 0 {
			return filtered(s.WithFilters(append(slices.Clone(s.Filters), push...)), keep), nil
		}
	case *logical.StreamScan:
		return filtered(s.WithFilters(append(slices.Clone(s.Filters), push...)), keep), nil
	}
	return n, nil
}}
