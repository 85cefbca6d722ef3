package physical

import (
	"context"
	"strings"

	"github.com/apache/arrow-go/v18/arrow"

	"github.com/tidemill/tidemill/columnar"
	"github.com/tidemill/tidemill/logical/expr"
	"github.com/tidemill/tidemill/physical/eval"
)

// Project computes columns.
type Project struct {
	unaryPlan
	Columns []expr.Named
	schema  *arrow.Schema
	program *eval.Program
}

// NewProject computes columns over positions of input.
func NewProject(input Plan, columns []expr.Named) (*Project, error) {
	program, err := eval.Compile(input.Schema(), exprsOf(columns)...)
	if err != nil {
		return nil, err
	}
	return &Project{unaryPlan{input}, columns, namedSchema(columns), program}, nil
}

func exprsOf(columns []expr.Named) []expr.Expr {
	out := make([]expr.Expr, len(columns))
	for i, c := range columns {
		out[i] = c.Expr
	}
	return out
}

func namedSchema(columns []expr.Named) *arrow.Schema {
	fields := make([]arrow.Field, len(columns))
	for i, c := range columns {
		fields[i] = columnar.Field(c.Name, c.Expr.Type())
	}
	return arrow.NewSchema(fields, nil)
}

func (p *Project) Schema() *arrow.Schema { return p.schema }

// WithChildren computes the columns over another input.
func (p *Project) WithChildren(c []Plan) Plan {
	return &Project{unaryPlan{c[0]}, p.Columns, p.schema, p.program}
}

func (p *Project) String() string {
	return strings.TrimSuffix(strings.Replace("Project "+namedList(p.Columns), "[", "", 1), "]")
}

// Open projects each Reader of the input.
func (p *Project) Open(ctx context.Context, ec *ExecContext, n int) ([]columnar.Reader, error) {
	inputs, err := openAs(ctx, ec, p.Input, n, p.program.IsVolatile())
	if err != nil {
		return nil, err
	}
	for i, in := range inputs {
		inputs[i] = &projectReader{operator: operator{schema: p.schema, input: in}, program: p.program, env: ec.Env()}
	}
	return inputs, nil
}

// projectReader holds a batch of which some rows are still to be computed.
type projectReader struct {
	operator
	program *eval.Program
	env     *eval.Env
	batch   arrow.RecordBatch
	row     int
}

func (r *projectReader) Next(ctx context.Context) (arrow.RecordBatch, error) {
	if r.batch == nil {
		b, err := r.input.Next(ctx)
		if err != nil {
			return nil, err
		}
		r.env.Begin(b)
		r.batch, r.row = b, 0
	} else if err := ctx.Err(); err != nil {
		return nil, err
	}
	columns, n, err := r.program.EvalColumnsPart(r.env, r.batch, r.row)
	if r.row += n; err != nil || r.row == int(r.batch.NumRows()) {
		r.drop()
	}
	if err != nil {
		return nil, err
	}
	return takeBatch(r.schema, columns, int64(n)), nil
}

func (r *projectReader) drop() {
	if r.batch != nil {
		r.batch.Release()
		r.batch = nil
	}
}

func (r *projectReader) Close() error {
	r.drop()
	return r.input.Close()
}
