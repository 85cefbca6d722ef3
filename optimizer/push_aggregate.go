package optimizer

import (
	"slices"

	"github.com/apache/arrow-go/v18/arrow"

	"github.com/tidemill/tidemill/logical"
	"github.com/tidemill/tidemill/logical/expr"
)

// PushAggregate aggregates each input of a UNION ALL by itself, and then what they give.
// It does so where an input gives one row at most, since every key is a constant in it: a
// column that says which input a row is from is then no key to hash, a condition on it is
// decided, and columns only others need are not read. With other keys each input would
// build the groups once, and the union again. Aggregates whose parts cannot be put together
// without rounding or overflow in between stay whole.
var PushAggregate Rule = rule{"push_aggregate", func(n logical.Node) (logical.Node, error) {
	a, ok := n.(*logical.Aggregate)
	if !ok || a.State != "" || logical.IsStreaming(a) {
		return n, nil
	}
	u, ok := a.Input.(*logical.Union)
	if !ok || !slices.ContainsFunc(u.Inputs, func(in logical.Node) bool { return !isOneRow(in) }) {
		return n, nil
	}
	for _, k := range a.Keys {
		if !isConstantIn(k.Expr, u) {
			return n, nil
		}
	}
	above := make([]*expr.Agg, len(a.Aggs))
	for i, agg := range a.Aggs {
		var err error
		if above[i], err = mergeOf(agg.Expr.(*expr.Agg)); above[i] == nil || err != nil {
			return n, err
		}
	}
	parts := make([]logical.Node, len(u.Inputs))
	for i, in := range u.Inputs {
		p, err := aggregateOf(a, u, in)
		if err != nil {
			return nil, err
		}
		parts[i] = p
	}
	return mergeAggregate(a, above, logical.NewUnion(parts...)), nil
}}

// isOneRow says whether n is an aggregate as this rule makes them.
func isOneRow(n logical.Node) bool {
	a, ok := n.(*logical.Aggregate)
	if !ok {
		return false
	}
	for _, k := range a.Keys {
		if len(expr.Columns(k.Expr)) > 0 {
			return false
		}
	}
	return true
}

// isConstantIn says whether e is a column of u, and a literal in each of its inputs.
func isConstantIn(e expr.Expr, u *logical.Union) bool {
	c, ok := e.(*expr.Column)
	if !ok {
		return false
	}
	at := u.Output.Index(c.ID)
	return at >= 0 && !slices.ContainsFunc(u.Inputs, func(in logical.Node) bool { return literalAt(in, at) == nil })
}

// literalAt is the literal that column at of n is, nil if it is none.
func literalAt(n logical.Node, at int) *expr.Literal {
	p, ok := n.(*logical.Project)
	if !ok {
		return nil
	}
	l, _ := p.Columns[at].Expr.(*expr.Literal)
	return l
}

// mergeOf is the aggregate, over nothing yet, that puts the results of a together; nil if
// there is none.
func mergeOf(a *expr.Agg) (*expr.Agg, error) {
	name := a.Func.Name
	switch name {
	case "min", "max", "bool_and", "bool_or":
	case "count", "count_if":
		name = "sum"
	default:
		return nil, nil
	}
	if a.Distinct && !a.Signature.Overload.IgnoresDistinct || isVolatile(a) {
		return nil, nil
	}
	f, ok := builtins().Aggregate(name)
	if !ok {
		return nil, nil
	}
	s, err := f.Resolve([]arrow.DataType{a.Type()})
	if err != nil || !arrow.TypeEqual(s.Result, a.Type()) || !arrow.TypeEqual(s.Args[0], a.Type()) {
		return nil, err
	}
	return &expr.Agg{Func: f, Signature: s}, nil
}

// aggregateOf is a over one input of its union.
func aggregateOf(a *logical.Aggregate, u *logical.Union, in logical.Node) (logical.Node, error) {
	mapped := func(list []expr.Named) ([]expr.Named, error) {
		out := make([]expr.Named, len(list))
		for i, n := range list {
			e, err := expr.Transform(n.Expr, func(x expr.Expr) (expr.Expr, error) {
				c, ok := x.(*expr.Column)
				if !ok {
					return x, nil
				}
				at := u.Output.Index(c.ID)
				if l := literalAt(in, at); l != nil {
					return l, nil
				}
				return in.Schema().Columns[at], nil
			})
			if err != nil {
				return nil, err
			}
			out[i] = expr.Named{Expr: e, Name: n.Name, ID: expr.NewID()}
		}
		return out, nil
	}
	keys, err := mapped(a.Keys)
	if err != nil {
		return nil, err
	}
	aggs, err := mapped(a.Aggs)
	if err != nil {
		return nil, err
	}
	return logical.NewAggregate(in, keys, aggs), nil
}

// mergeAggregate gives the columns of a from the parts.
func mergeAggregate(a *logical.Aggregate, above []*expr.Agg, parts *logical.Union) logical.Node {
	keys, aggs := slices.Clone(a.Keys), slices.Clone(a.Aggs)
	for i := range keys {
		keys[i].Expr = parts.Output.Columns[i]
	}
	for i := range aggs {
		above[i].Args = []expr.Expr{parts.Output.Columns[len(keys)+i]}
		aggs[i].Expr = above[i]
	}
	return logical.NewAggregate(parts, keys, aggs)
}
