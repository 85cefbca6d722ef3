package logical

import (
	"fmt"

	"github.com/tidemill/tidemill/logical/expr"
)

// Over computes window functions: its input's columns, then a value for each row that
// depends on the rows of the same partition. The functions, each an *expr.Over, have
// the same partition and order; rows equal in order follow their arrival. For windows
// in event time see Window.
type Over struct {
	unary
	Functions []expr.Named
	// Top advises that rows for which it is not true are not wanted: some of them may be
	// left out. Nil wants all.
	Top    *Top
	schema *Schema
}

// Top is that a rank within the partition is at most N. Func, one of those of the node,
// is row_number, rank or dense_rank.
type Top struct {
	Func string
	N    int64
}

// NewOver computes functions over input.
func NewOver(input Node, functions []expr.Named) *Over {
	in := input.Schema().Columns
	columns := in[:len(in):len(in)]
	for _, f := range functions {
		columns = append(columns, f.Column())
	}
	return &Over{unary: unary{input}, Functions: functions, schema: NewSchema(columns...)}
}

// WithTop sets Top.
func (o *Over) WithTop(t *Top) *Over {
	n := *o
	n.Top = t
	return &n
}

// Partition is what the functions are partitioned by.
func (o *Over) Partition() []expr.Expr { return o.Functions[0].Expr.(*expr.Over).Partition }

func (o *Over) Schema() *Schema            { return o.schema }
func (o *Over) WithChildren(c []Node) Node { return NewOver(c[0], o.Functions).WithTop(o.Top) }
func (o *Over) Exprs() []expr.Expr         { return namedExprs(o.Functions) }
func (o *Over) WithExprs(exprs []expr.Expr) Node {
	return NewOver(o.Input, withNamedExprs(o.Functions, exprs)).WithTop(o.Top)
}
func (o *Over) String() string {
	s := "Over " + namedList(o.Functions)
	if o.Top != nil {
		s += fmt.Sprintf(" top=%s<=%d", o.Top.Func, o.Top.N)
	}
	return s
}

// PlaceOvers computes the window functions in a list of expressions, of which some may be
// nil, above node, and puts their columns into the expressions.
func PlaceOvers(node Node, list []*expr.Expr) (Node, error) {
	var found []expr.Named
	known := expr.Set{Calls: true} // the expressions of found
	for _, x := range list {
		if *x == nil || !expr.HasOver(*x) {
			continue
		}
		n, err := expr.Transform(*x, func(x expr.Expr) (expr.Expr, error) {
			o, ok := x.(*expr.Over)
			if !ok {
				return x, nil
			}
			at, added := known.Add(o)
			if added {
				found = append(found, expr.As(o, o.String()))
			}
			return found[at].Column(), nil
		})
		if err != nil {
			return nil, err
		}
		*x = n
	}
	for len(found) > 0 {
		var same, rest []expr.Named
		first := found[0].Expr.(*expr.Over)
		for _, f := range found {
			if first.SameWindow(f.Expr.(*expr.Over)) {
				same = append(same, f)
			} else {
				rest = append(rest, f)
			}
		}
		node, found = NewOver(node, same), rest
	}
	return node, nil
}
