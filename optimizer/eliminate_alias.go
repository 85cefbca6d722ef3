package optimizer

import "github.com/tidemill/tidemill/logical"

// EliminateAlias removes table aliases: after binding, columns are known by ID.
var EliminateAlias Rule = rule{"eliminate_alias", func(n logical.Node) (logical.Node, error) {
	if a, ok := n.(*logical.Alias); ok {
		return a.Input, nil
	}
	return n, nil
}}
