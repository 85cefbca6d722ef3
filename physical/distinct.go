package physical

import (
	"context"

	"github.com/apache/arrow-go/v18/arrow"

	"github.com/tidemill/tidemill/columnar"
	"github.com/tidemill/tidemill/columnar/group"
	"github.com/tidemill/tidemill/columnar/kernel"
	"github.com/tidemill/tidemill/logical/expr"
	"github.com/tidemill/tidemill/physical/eval"
)

// Distinct keeps the first row of each key, in the order of arrival, as rows come. With
// Partial each Reader does so by itself: less for what is above to look at.
type Distinct struct {
	unaryPlan
	Keys    []expr.Expr
	Partial bool
	program *eval.Program
}

// NewDistinct keeps the first row of each key; keys are over positions of input.
func NewDistinct(input Plan, keys []expr.Expr, partial bool) (*Distinct, error) {
	program, err := eval.Compile(input.Schema(), keys...)
	if err != nil {
		return nil, err
	}
	return &Distinct{unaryPlan{input}, keys, partial, program}, nil
}

func (p *Distinct) Schema() *arrow.Schema { return p.Input.Schema() }

// WithChildren does the same to another input.
func (p *Distinct) WithChildren(c []Plan) Plan {
	return &Distinct{unaryPlan{c[0]}, p.Keys, p.Partial, p.program}
}

func (p *Distinct) String() string {
	partial := ""
	if p.Partial {
		partial = "partial"
	}
	return args("Distinct", "mode", partial, "keys", list(p.Keys))
}

// Open makes one Reader, or with Partial one for each of the input.
func (p *Distinct) Open(ctx context.Context, ec *ExecContext, n int) ([]columnar.Reader, error) {
	inputs, err := openAs(ctx, ec, p.Input, n, !p.Partial || p.program.IsVolatile())
	if err != nil {
		return nil, err
	}
	for i, in := range inputs {
		table, err := group.New(ec.Mem, p.program.Types(), group.Options{Budget: ec.Budget, Who: "distinct"})
		if err != nil {
			for _, r := range inputs {
				_ = r.Close() // the first error counts
			}
			return nil, err
		}
		inputs[i] = &distinctReader{operator: operator{schema: p.Schema(), input: in}, program: p.program, env: ec.Env(), table: table}
	}
	return inputs, nil
}

type distinctReader struct {
	operator
	program *eval.Program
	env     *eval.Env
	table   group.Table
	ids     []uint32
	rows    []int32
}

func (r *distinctReader) Next(ctx context.Context) (arrow.RecordBatch, error) {
	for {
		b, err := r.input.Next(ctx)
		if err != nil {
			return nil, err
		}
		out, err := r.firsts(b)
		b.Release()
		if out != nil || err != nil {
			return out, err
		}
	}
}

// firsts is the rows of b with a key not seen before; nil if there are none.
func (r *distinctReader) firsts(b arrow.RecordBatch) (arrow.RecordBatch, error) {
	r.env.Begin(b)
	keys, err := r.program.EvalColumns(r.env, b)
	if err != nil {
		return nil, err
	}
	defer releaseAll(keys)
	r.ids = resize(r.ids, int(b.NumRows()))
	next := uint32(r.table.Len())
	if err := r.table.Intern(keys, r.ids); err != nil {
		return nil, err
	}
	r.rows = r.rows[:0]
	for i, id := range r.ids {
		if id == next { // ids are given in row order
			r.rows = append(r.rows, int32(i))
			next++
		}
	}
	if len(r.rows) == 0 {
		return nil, nil
	}
	return kernel.FilterBatch(r.env.Mem, b, r.rows), nil
}

func (r *distinctReader) Close() error {
	r.table.Release()
	return r.input.Close()
}
