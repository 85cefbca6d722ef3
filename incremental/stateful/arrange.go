package stateful

import (
	"slices"

	"github.com/tidemill/tidemill/checkpoint"
	"github.com/tidemill/tidemill/logical"
	"github.com/tidemill/tidemill/logical/expr"
)

// Arrange is n, an aggregate or a DISTINCT, with its keys and its aggregates in the order in
// which an operator of a checkpoint has the same ones, and under that one's name, which is
// kept[at]; at is -1 if there is none. What is the same is told by what it is computed from.
// Whether the state is the same, too, is for checkpoint.Plan to say.
func Arrange(n logical.Node, form int, kept []checkpoint.Operator) (m logical.Node, at int) {
	var keys, aggs int
	switch x := n.(type) {
	case *logical.Aggregate:
		keys, aggs = len(x.Keys), len(x.Aggs)
	case *logical.Distinct:
		keys = len(x.On)
	default:
		return nil, -1
	}
	is := readsOf(n, form)
	for at, o := range kept {
		if o.Reads == nil || o.Reads.Form != form || len(o.Reads.Columns) != len(is.Columns) {
			continue
		}
		byKey, ok := order(o.Reads.Columns[:keys], is.Columns[:keys])
		if !ok {
			continue
		}
		byAgg, ok := order(o.Reads.Columns[keys:keys+aggs], is.Columns[keys:keys+aggs])
		if !ok {
			continue
		}
		switch x := n.(type) {
		case *logical.Aggregate:
			named := taken(x.Keys, byKey)
			for i := range named {
				named[i].Name = o.Reads.Columns[i].Name // as in its files
			}
			return logical.NewAggregate(x.Input, named, taken(x.Aggs, byAgg)).WithState(o.Name), at
		case *logical.Distinct:
			return logical.NewDistinct(x.Input, taken(x.On, byKey), x.WithinWatermark).WithState(o.Name), at
		}
	}
	return nil, -1
}

// order says where in is the columns of was are; ok is false if they are not the same.
func order(was, is []checkpoint.ReadColumn) (at []int, ok bool) {
	left := slices.Clone(is)
	for _, w := range was {
		i := slices.IndexFunc(left, func(c checkpoint.ReadColumn) bool { return c.Text == w.Text })
		if i < 0 {
			return nil, false
		}
		at = append(at, i)
		left[i].Text = "" // no expression's
	}
	return at, true
}

func taken[T any](list []T, at []int) []T {
	out := make([]T, len(at))
	for k, i := range at {
		out[k] = list[i]
	}
	return out
}

// InOrderOf hands the columns of n on in the order in which was has them.
func InOrderOf(was, n logical.Node) logical.Node {
	columns := make([]expr.Named, len(was.Schema().Columns))
	for i, c := range was.Schema().Columns {
		columns[i] = expr.Pass(c)
	}
	return logical.NewProject(n, columns)
}
