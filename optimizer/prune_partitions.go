package optimizer

import (
	"github.com/tidemill/tidemill/logical"
	"github.com/tidemill/tidemill/logical/connector"
	"github.com/tidemill/tidemill/logical/expr"
)

// PrunePartitions leaves out files that a scan's filters rule out by the values in
// their folder names, before anything is opened.
var PrunePartitions Rule = rule{"prune_partitions", func(n logical.Node) (logical.Node, error) {
	s, ok := n.(*logical.Scan)
	if !ok || len(s.Filters) == 0 {
		return n, nil
	}
	p, ok := s.Table.(connector.Pruner)
	if !ok {
		return n, nil
	}
	refs := make([]expr.Expr, len(s.Filters))
	for i, f := range s.Filters {
		e, err := expr.BindRefs(f, s.Full.Index)
		if err != nil {
			return nil, err
		}
		refs[i] = e
	}
	table, left, total := p.Prune(refs)
	if left == total {
		return n, nil
	}
	m := *s
	m.Table = table
	return &m, nil
}}
