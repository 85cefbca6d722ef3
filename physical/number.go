package physical

import (
	"context"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/memory"

	"github.com/tidemill/tidemill/columnar"
	"github.com/tidemill/tidemill/columnar/kernel"
)

// ordinals is the column base, base+1, … of n values, or with rows base+rows[i].
func ordinals(mem memory.Allocator, base int64, n int, rows []int32) arrow.Array {
	buf, out := kernel.Make[int64](mem, n)
	if rows == nil {
		for i := range out {
			out[i] = base + int64(i)
		}
	} else {
		for i, r := range rows[:n] {
			out[i] = base + int64(r)
		}
	}
	return kernel.Wrap(columnar.Int64, n, 0, nil, buf)
}

// Number appends the hidden ordinal column to rows that have none: their number in
// the order of arrival. It gives one Reader.
type Number struct {
	unaryPlan
	schema *arrow.Schema
}

// NewNumber numbers the rows of input.
func NewNumber(input Plan) *Number { return &Number{unaryPlan{input}, withOrdinal(input.Schema())} }

func (p *Number) Schema() *arrow.Schema { return p.schema }

// WithChildren numbers another input.
func (p *Number) WithChildren(c []Plan) Plan { return NewNumber(c[0]) }

func (p *Number) String() string { return "Number" }

// Open gathers the input.
func (p *Number) Open(ctx context.Context, ec *ExecContext, _ int) ([]columnar.Reader, error) {
	in, err := OpenOne(ctx, ec, p.Input)
	if err != nil {
		return nil, err
	}
	return []columnar.Reader{&numberReader{operator: operator{schema: p.schema, input: in}, mem: ec.Mem}}, nil
}

type numberReader struct {
	operator
	mem      memory.Allocator
	row      int64
	position int64
}

func (r *numberReader) Position() int64 { return r.position }

func (r *numberReader) Next(ctx context.Context) (arrow.RecordBatch, error) {
	b, err := r.input.Next(ctx)
	if err != nil {
		return nil, err
	}
	defer b.Release()
	r.position = r.row
	columns := retained(b.Columns())
	columns = append(columns, ordinals(r.mem, r.row, int(b.NumRows()), nil))
	r.row += b.NumRows()
	return takeBatch(r.schema, columns, b.NumRows()), nil
}
