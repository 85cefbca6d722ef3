package physical

import (
	"context"

	"github.com/apache/arrow-go/v18/arrow"

	"github.com/tidemill/tidemill/columnar"
	"github.com/tidemill/tidemill/columnar/kernel"
	"github.com/tidemill/tidemill/logical/expr"
	"github.com/tidemill/tidemill/physical/eval"
)

// Filter keeps the rows for which all conditions are true.
type Filter struct {
	unaryPlan
	Conds  []expr.Expr
	filter *eval.Filter
}

// NewFilter filters input; the conditions are over positions of its columns.
func NewFilter(input Plan, conds ...expr.Expr) (*Filter, error) {
	f, err := eval.CompileFilter(input.Schema(), conds...)
	if err != nil {
		return nil, err
	}
	return &Filter{unaryPlan{input}, conds, f}, nil
}

func (p *Filter) Schema() *arrow.Schema { return p.Input.Schema() }

// WithChildren filters another input.
func (p *Filter) WithChildren(c []Plan) Plan { return &Filter{unaryPlan{c[0]}, p.Conds, p.filter} }

func (p *Filter) String() string { return "Filter " + expr.All(p.Conds).String() }

// Open filters each Reader of the input.
func (p *Filter) Open(ctx context.Context, ec *ExecContext, n int) ([]columnar.Reader, error) {
	inputs, err := openAs(ctx, ec, p.Input, n, p.filter.IsVolatile())
	if err != nil {
		return nil, err
	}
	for i, in := range inputs {
		inputs[i] = &filterReader{operator: operator{schema: p.Schema(), input: in}, filter: p.filter, env: ec.Env()}
	}
	return inputs, nil
}

type filterReader struct {
	operator
	filter *eval.Filter
	env    *eval.Env
	rows   []int32
}

func (r *filterReader) Next(ctx context.Context) (arrow.RecordBatch, error) {
	for {
		b, err := r.input.Next(ctx)
		if err != nil {
			return nil, err
		}
		r.env.Begin(b)
		rows, all, err := r.filter.Select(r.env, b, r.rows[:0])
		if err != nil {
			b.Release()
			return nil, err
		}
		if all {
			return b, nil
		}
		if rows != nil {
			r.rows = rows
		}
		if len(rows) == 0 {
			b.Release()
			continue
		}
		out := kernel.FilterBatch(r.env.Mem, b, rows)
		b.Release()
		return out, nil
	}
}
