package physical

import (
	"context"

	"github.com/apache/arrow-go/v18/arrow"

	"github.com/tidemill/tidemill/columnar"
)

// unaryPlan is embedded by plans with one child.
type unaryPlan struct{ Input Plan }

// Children is the input.
func (u unaryPlan) Children() []Plan { return []Plan{u.Input} }

// operator is embedded by Readers over one input, which they own.
type operator struct {
	schema *arrow.Schema
	input  columnar.Reader
}

func (o *operator) Schema() *arrow.Schema { return o.schema }

// Position is the input's: what an operator makes of a batch stands in its place.
func (o *operator) Position() int64 { return PositionOf(o.input) }

func (o *operator) Close() error { return o.input.Close() }

// each opens p's input with n Readers and makes one of each.
func each(ctx context.Context, ec *ExecContext, input Plan, n int, f func(in columnar.Reader) columnar.Reader) ([]columnar.Reader, error) {
	inputs, err := Open(ctx, ec, input, n)
	if err != nil {
		return nil, err
	}
	for i, in := range inputs {
		inputs[i] = f(in)
	}
	return inputs, nil
}

// openAs opens input for n Readers, or where order or repeatability want it, as one.
func openAs(ctx context.Context, ec *ExecContext, input Plan, n int, one bool) ([]columnar.Reader, error) {
	if !one {
		return Open(ctx, ec, input, n)
	}
	r, err := OpenOne(ctx, ec, input)
	if err != nil {
		return nil, err
	}
	return []columnar.Reader{r}, nil
}

// retained is a copy of columns with one more reference to each.
func retained(columns []arrow.Array) []arrow.Array {
	out := make([]arrow.Array, len(columns), len(columns)+1)
	for i, c := range columns {
		c.Retain()
		out[i] = c
	}
	return out
}
