package physical

import (
	"context"
	"fmt"
	"strings"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/memory"

	"github.com/tidemill/tidemill/columnar"
	"github.com/tidemill/tidemill/columnar/kernel"
	"github.com/tidemill/tidemill/logical/expr"
	"github.com/tidemill/tidemill/physical/eval"
)

// Expand repeats each batch once for every grouping set: its columns, then keys, null
// in the sets without them, then the number of the set.
type Expand struct {
	unaryPlan
	Keys    []expr.Named
	Sets    [][]bool // of each set, which keys it has
	schema  *arrow.Schema
	program *eval.Program
}

// NewExpand repeats input, keys being over positions of its columns; set names the
// column of the set's number.
func NewExpand(input Plan, keys []expr.Named, sets [][]bool, set string) (*Expand, error) {
	program, err := eval.Compile(input.Schema(), exprsOf(keys)...)
	if err != nil {
		return nil, err
	}
	in := withoutOrdinal(input.Schema()).Fields()
	fields := append(in[:len(in):len(in)], namedSchema(keys).Fields()...)
	schema := arrow.NewSchema(append(fields, columnar.Field(set, columnar.Int32)), nil)
	if HasOrdinal(input.Schema()) {
		schema = withOrdinal(schema)
	}
	return &Expand{unaryPlan{input}, keys, sets, schema, program}, nil
}

func (p *Expand) Schema() *arrow.Schema { return p.schema }

// WithChildren repeats another input.
func (p *Expand) WithChildren(c []Plan) Plan {
	n := *p
	n.Input = c[0]
	return &n
}

func (p *Expand) String() string {
	sets := make([]string, len(p.Sets))
	for i, set := range p.Sets {
		var names []string
		for k, has := range set {
			if has {
				names = append(names, p.Keys[k].Name)
			}
		}
		sets[i] = "(" + strings.Join(names, ", ") + ")"
	}
	return args("Expand", "keys", namedList(p.Keys), "sets", fmt.Sprint(sets))
}

// Open repeats the batches of each Reader of the input.
func (p *Expand) Open(ctx context.Context, ec *ExecContext, n int) ([]columnar.Reader, error) {
	inputs, err := openAs(ctx, ec, p.Input, n, p.program.IsVolatile())
	if err != nil {
		return nil, err
	}
	for i, in := range inputs {
		inputs[i] = &expandReader{operator: operator{schema: p.schema, input: in}, plan: p, env: ec.Env()}
	}
	return inputs, nil
}

// expandReader gives the batch it holds once for each set.
type expandReader struct {
	operator
	plan  *Expand
	env   *eval.Env
	batch arrow.RecordBatch
	keys  []arrow.Array
	set   int
}

func (r *expandReader) Next(ctx context.Context) (arrow.RecordBatch, error) {
	if r.batch == nil || r.set == len(r.plan.Sets) {
		r.drop()
		b, err := r.input.Next(ctx)
		if err != nil {
			return nil, err
		}
		r.batch, r.set = b, 0
		r.env.Begin(b)
		if r.keys, err = r.plan.program.EvalColumns(r.env, b); err != nil {
			return nil, err
		}
	}
	r.set++
	return r.give(r.set - 1), nil
}

// give is the batch as it is in a set.
func (r *expandReader) give(set int) arrow.RecordBatch {
	rows := int(r.batch.NumRows())
	columns := retained(r.batch.Columns())
	at := len(columns)
	if HasOrdinal(r.schema) {
		at--
	}
	out := columns[:at:at]
	for i, key := range r.keys {
		if r.plan.Sets[set][i] {
			key.Retain()
			out = append(out, key)
		} else {
			out = append(out, columnar.Nulls(r.env.Mem, r.plan.Keys[i].Expr.Type(), rows))
		}
	}
	out = append(out, repeated(r.env.Mem, int32(set), rows))
	return takeBatch(r.schema, append(out, columns[at:]...), int64(rows))
}

// repeated is a column of one value.
func repeated(mem memory.Allocator, v int32, rows int) arrow.Array {
	buf, out := kernel.Make[int32](mem, rows)
	for i := range out {
		out[i] = v
	}
	return kernel.Wrap(columnar.Int32, rows, 0, nil, buf)
}

func (r *expandReader) drop() {
	if r.batch != nil {
		r.batch.Release()
		releaseAll(r.keys)
		r.batch, r.keys = nil, nil
	}
}

func (r *expandReader) Close() error {
	r.drop()
	return r.input.Close()
}
