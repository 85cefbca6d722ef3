package optimizer

import (
	"math"

	"github.com/tidemill/tidemill/logical"
)

// PushLimit moves limits towards the scans: below projections, into the inputs of a
// union, into a scan without filters; two limits become one.
var PushLimit Rule = downward{rule{"push_limit", func(n logical.Node) (logical.Node, error) {
	l, ok := n.(*logical.Limit)
	if !ok || l.State != "" {
		return n, nil
	}
	wanted := int64(0) // rows that can be seen at all; 0: no bound
	if l.Count != logical.NoLimit && l.Count <= math.MaxInt64-l.Offset {
		wanted = l.Count + l.Offset
	}
	switch in := l.Input.(type) {
	case *logical.Project:
		return in.WithChildren([]logical.Node{l.WithChildren([]logical.Node{in.Input})}), nil
	case *logical.Limit:
		if in.State == "" {
			return mergeLimits(l, in), nil
		}
	case *logical.Union:
		if wanted > 0 && !logical.IsStreaming(in) {
			return limitInputs(l, in, wanted), nil
		}
	case *logical.Scan:
		if wanted > 0 && len(in.Filters) == 0 && (in.Limit == 0 || in.Limit > wanted) {
			return l.WithChildren([]logical.Node{in.WithLimit(wanted)}), nil
		}
	}
	return n, nil
}}}

func mergeLimits(outer, inner *logical.Limit) logical.Node {
	count := outer.Count
	if inner.Count != logical.NoLimit {
		left := max(inner.Count-outer.Offset, 0)
		if count == logical.NoLimit || left < count {
			count = left
		}
	}
	return logical.NewLimit(inner.Input, count, saturatingAdd(inner.Offset, outer.Offset))
}

func saturatingAdd(a, b int64) int64 {
	if a > math.MaxInt64-b {
		return math.MaxInt64
	}
	return a + b
}

func limitInputs(l *logical.Limit, u *logical.Union, wanted int64) logical.Node {
	inputs := make([]logical.Node, len(u.Inputs))
	changed := false
	for i, in := range u.Inputs {
		inputs[i] = in
		if !bounded(in, wanted) {
			inputs[i] = logical.NewLimit(in, wanted, 0)
			changed = true
		}
	}
	if !changed {
		return l
	}
	return l.WithChildren([]logical.Node{u.WithChildren(inputs)})
}

// bounded says whether n gives at most limit rows by its own word.
func bounded(n logical.Node, limit int64) bool {
	switch x := n.(type) {
	case *logical.Limit:
		return x.Count != logical.NoLimit && x.Count <= limit || bounded(x.Input, limit)
	case *logical.Sort:
		return x.Limit > 0 && x.Limit <= limit
	case *logical.Project:
		return bounded(x.Input, limit)
	case *logical.Values:
		return int64(len(x.Rows)) <= limit
	case *logical.Aggregate:
		return len(x.Keys) == 0
	}
	return false
}
