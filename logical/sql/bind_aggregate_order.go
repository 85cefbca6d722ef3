package sql

import (
	"slices"

	"github.com/tidemill/tidemill/logical"
	"github.com/tidemill/tidemill/logical/expr"
	"github.com/tidemill/tidemill/logical/sql/ast"
)

// aggregateOrder is the order in which the aggregates of a select take their rows: the
// input of the aggregate is sorted by it, so all of them have the same.
type aggregateOrder struct {
	keys []logical.SortKey
	// arrival is a call that takes rows as they arrive, "" if there is none.
	arrival string
}

// withinGroup rewrites WITHIN GROUP (ORDER BY x): of a percentile and mode x is what
// they are of, of others it is their ORDER BY.
func (e *env) withinGroup(n *ast.Call, name string) (*ast.Call, error) {
	if len(n.WithinGroup) == 0 {
		return n, nil
	}
	m := *n
	m.WithinGroup = nil
	f, _ := e.b.p.Functions.Aggregate(name)
	switch f.Name {
	case "percentile", "percentile_disc", "approx_quantile", "mode":
		if len(n.WithinGroup) != 1 || n.WithinGroup[0].Desc {
			return nil, e.b.unsupported(n, name+" within a group of several or descending values", "", "name one value, ascending, and take the percentile from the other end")
		}
		x := n.WithinGroup[0].X
		m.Args = append([]*ast.Arg{{Span: ast.Span{From: x.Pos(), To: x.End()}, Value: x}}, n.Args...)
	default:
		m.OrderBy = n.WithinGroup
	}
	return &m, nil
}

// aggregateOrder notes what ORDER BY inside a call asks for.
func (e *env) aggregateOrder(n *ast.Call, name string, agg *expr.Agg) error {
	if !agg.Signature.Overload.Ordered || agg.Func.Name == "any_value" || agg.Func.Name == "min_by" || agg.Func.Name == "max_by" {
		return nil // the order of rows changes nothing
	}
	const remedy = "compute them in subqueries of their own and join these"
	if len(n.OrderBy) == 0 {
		if e.sel != nil {
			e.sel.order.arrival = name
			if len(e.sel.order.keys) > 0 {
				return e.b.unsupported(n, name+" without ORDER BY beside an aggregate with it", "one takes the rows as they arrive, the other in an order", remedy)
			}
		}
		return nil
	}
	if e.sel == nil {
		return e.b.unsupported(n, "ORDER BY inside "+name+" here", "", "sort a subquery in FROM")
	}
	keys, err := e.orderKeys(n, name)
	if err != nil {
		return err
	}
	o := &e.sel.order
	switch {
	case o.arrival != "":
		return e.b.unsupported(n, "ORDER BY inside "+name+" beside "+o.arrival+" without it", "one takes the rows in an order, the other as they arrive", remedy)
	case len(o.keys) > 0 && !slices.EqualFunc(o.keys, keys, sameKey):
		return e.b.unsupported(n, "another ORDER BY inside a second aggregate", "", remedy)
	}
	o.keys = keys
	return nil
}

func (e *env) orderKeys(n *ast.Call, name string) ([]logical.SortKey, error) {
	var keys []logical.SortKey
	for _, item := range n.OrderBy {
		if item.All {
			return nil, e.b.errorf(item, "ORDER BY ALL cannot stand inside %s; name what to order by", name)
		}
		x, err := e.inside(name).bind(item.X)
		if err != nil {
			return nil, err
		}
		if expr.HasAggregate(x) || expr.HasOver(x) {
			return nil, e.b.errorf(item, "the ORDER BY inside %s cannot hold an aggregate or a window function", name)
		}
		keys = append(keys, sortKey(x, item))
	}
	return keys, nil
}

func sameKey(a, b logical.SortKey) bool {
	return expr.Equal(a.Expr, b.Expr) && a.Descending == b.Descending && a.NullsFirst == b.NullsFirst
}
