package physical

import (
	"context"
	"fmt"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"

	"github.com/tidemill/tidemill/columnar"
	"github.com/tidemill/tidemill/columnar/kernel"
	"github.com/tidemill/tidemill/logical/expr"
	"github.com/tidemill/tidemill/physical/eval"
)

// Values gives rows written in the query.
type Values struct {
	schema *arrow.Schema
	rows   []*eval.Program // one a row
}

// NewValues gives rows of expressions without columns.
func NewValues(schema *arrow.Schema, rows [][]expr.Expr) (*Values, error) {
	v := &Values{schema: schema}
	for _, r := range rows {
		p, err := eval.Compile(arrow.NewSchema(nil, nil), r...)
		if err != nil {
			return nil, err
		}
		v.rows = append(v.rows, p)
	}
	return v, nil
}

func (p *Values) Schema() *arrow.Schema { return p.schema }

// Children is nothing.
func (p *Values) Children() []Plan { return nil }

// WithChildren returns p.
func (p *Values) WithChildren([]Plan) Plan { return p }

func (p *Values) String() string { return fmt.Sprintf("Values rows=%d", len(p.rows)) }

// Open evaluates the rows.
func (p *Values) Open(ctx context.Context, ec *ExecContext, _ int) ([]columnar.Reader, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	var batches []arrow.RecordBatch
	defer func() { releaseBatches(batches) }()
	one := array.NewRecordBatch(arrow.NewSchema(nil, nil), nil, 1)
	defer one.Release()
	env := ec.Env()
	for _, row := range p.rows {
		env.Begin(one)
		columns, err := row.EvalColumns(env, one)
		if err != nil {
			return nil, err
		}
		for k, c := range columns { // an untyped NULL
			if want := p.schema.Field(k).Type; c.DataType().ID() == arrow.NULL && want.ID() != arrow.NULL {
				c.Release()
				columns[k] = columnar.Nulls(ec.Mem, want, 1)
			}
		}
		batches = append(batches, takeBatch(p.schema, columns, 1))
	}
	if len(batches) < 2 {
		return []columnar.Reader{columnar.FromBatches(p.schema, batches...)}, nil
	}
	all, err := kernel.ConcatBatches(ec.Mem, p.schema, batches)
	if err != nil {
		return nil, err
	}
	defer all.Release()
	var parts []arrow.RecordBatch
	defer func() { releaseBatches(parts) }()
	for at := int64(0); at < all.NumRows(); at += int64(ec.batchRows()) {
		parts = append(parts, all.NewSlice(at, min(at+int64(ec.batchRows()), all.NumRows())))
	}
	return []columnar.Reader{columnar.FromBatches(p.schema, parts...)}, nil
}
