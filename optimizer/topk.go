package optimizer

import (
	"math"

	"github.com/tidemill/tidemill/logical"
)

// TopK tells a sort below a limit how many rows are wanted.
var TopK Rule = rule{"topk", func(n logical.Node) (logical.Node, error) {
	l, ok := n.(*logical.Limit)
	if !ok || l.State != "" || l.Count == logical.NoLimit || l.Count > math.MaxInt64-l.Offset {
		return n, nil
	}
	s, ok := l.Input.(*logical.Sort)
	wanted := l.Count + l.Offset
	if !ok || wanted == 0 || s.Limit > 0 && s.Limit <= wanted {
		return n, nil
	}
	return l.WithChildren([]logical.Node{logical.NewSort(s.Input, s.Keys, wanted)}), nil
}}
