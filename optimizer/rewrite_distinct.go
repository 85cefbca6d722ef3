package optimizer

import (
	"github.com/tidemill/tidemill/logical"
)

// RewriteDistinct makes DISTINCT of whole rows an aggregation without aggregates:
// one operator, one kind of state.
var RewriteDistinct Rule = rule{"rewrite_distinct", func(n logical.Node) (logical.Node, error) {
	d, ok := n.(*logical.Distinct)
	if !ok || d.On != nil || d.WithinWatermark || d.State != "" {
		return n, nil
	}
	if len(d.Schema().Columns) == 0 || len(logical.SessionBounds(d.Input)) > 0 {
		// Without keys an aggregate has a row of its own; and grouping by the bounds
		// of a session merges sessions, DISTINCT does not.
		return n, nil
	}
	return d.Grouped(builtins())
}}
