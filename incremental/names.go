package incremental

import (
	"fmt"
	"slices"
	"strings"

	"github.com/tidemill/tidemill/checkpoint"
	"github.com/tidemill/tidemill/columnar/function"
	"github.com/tidemill/tidemill/incremental/stateful"
	"github.com/tidemill/tidemill/logical"
	"github.com/tidemill/tidemill/logical/connector"
	"github.com/tidemill/tidemill/logical/expr"
)

// nameStates gives every stateful node of an analyzed plan its stable name, from its
// kind and keys, not from its position: agg(city), dedup(id). A name met again gets a
// number. Only nodes over a stream keep state. It returns the plan and its operators,
// from the sources outward. A node whose state one of kept is, but for the order of keys
// and aggregates, takes that order and its name.
func nameStates(plan logical.Node, mode connector.OutputMode, reg *function.Registry, kept []checkpoint.Operator) (logical.Node, []logical.Node, error) {
	plan, err := groupDistinct(plan, mode, reg)
	if err != nil {
		return nil, nil, err
	}
	n := namer{used: map[string]int{}, mode: mode, kept: slices.Clone(kept)}
	named, err := logical.Transform(plan, func(x logical.Node) (logical.Node, error) {
		if !logical.IsStreaming(x) {
			return x, nil
		}
		m := n.name(x)
		if m == x {
			return x, nil
		}
		arranged, at := stateful.Arrange(m, checkpoint.ReadsForm, n.kept)
		if at < 0 {
			n.operators = append(n.operators, m)
			return m, nil
		}
		n.kept = slices.Delete(n.kept, at, at+1)
		n.operators = append(n.operators, arranged)
		return stateful.InOrderOf(m, arranged), nil
	})
	return named, n.operators, err
}

type namer struct {
	used      map[string]int
	mode      connector.OutputMode
	kept      []checkpoint.Operator // that no node was given yet
	operators []logical.Node
}

func (n *namer) unique(name string) string {
	n.used[name]++
	if k := n.used[name]; k > 1 {
		return fmt.Sprintf("%s#%d", name, k)
	}
	return name
}

func (n *namer) name(x logical.Node) logical.Node {
	switch x := x.(type) {
	case *logical.Aggregate:
		return x.WithState(n.unique("agg(" + keyNames(x.Keys) + ")"))
	case *logical.Distinct:
		if isWhole(x) {
			return n.firstSeen(x)
		}
		return x.WithState(n.unique("dedup(" + exprNames(x.On) + ")"))
	case *logical.Join:
		if logical.IsStreaming(x.Left) && logical.IsStreaming(x.Right) {
			return x.WithState(n.unique("join(" + stateful.KeyNames(x) + ")"))
		}
	case *logical.MapGroups:
		return x.WithState(n.unique("groups(" + keyNames(x.Keys) + ")"))
	case *logical.Limit:
		if n.mode == connector.Complete && overAggregate(x) {
			return x // it applies to each whole result
		}
		m := *x
		m.State = n.unique("limit")
		return &m
	}
	return x
}

// groupDistinct makes aggregations of each DISTINCT of whole rows over a stream, unless in
// append mode.
func groupDistinct(plan logical.Node, mode connector.OutputMode, reg *function.Registry) (logical.Node, error) {
	if mode == connector.Append {
		return plan, nil
	}
	return logical.Transform(plan, func(x logical.Node) (logical.Node, error) {
		if d, ok := x.(*logical.Distinct); ok && isWhole(d) && logical.IsStreaming(d) {
			return d.Grouped(reg)
		}
		return x, nil
	})
}

func isWhole(d *logical.Distinct) bool { return d.On == nil && !d.WithinWatermark }

// firstSeen is a DISTINCT of whole rows that gives each at once, when it is first seen: a
// row without an event time, too, which an aggregation would keep for ever.
func (n *namer) firstSeen(x *logical.Distinct) logical.Node {
	on := make([]expr.Expr, len(x.Schema().Columns))
	for i, c := range x.Schema().Columns {
		on[i] = c
	}
	return logical.NewDistinct(x.Input, on, false).WithState(n.unique("dedup(" + exprNames(on) + ")"))
}

// overAggregate says whether a streaming aggregate stands below n.
func overAggregate(n logical.Node) bool {
	found := false
	logical.Walk(n, func(x logical.Node) bool {
		if _, ok := x.(*logical.Aggregate); ok && logical.IsStreaming(x) {
			found = true
		}
		return !found
	})
	return found
}

func keyNames(keys []expr.Named) string {
	parts := make([]string, len(keys))
	for i, k := range keys {
		parts[i] = k.Name
	}
	return strings.Join(parts, ", ")
}

func exprNames(list []expr.Expr) string {
	parts := make([]string, len(list))
	for i, e := range list {
		parts[i] = stateful.Unqualified(e)
	}
	return strings.Join(parts, ", ")
}
