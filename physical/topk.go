package physical

import (
	"context"
	"fmt"
	"io"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/memory"

	"github.com/tidemill/tidemill/columnar"
	"github.com/tidemill/tidemill/columnar/kernel"
	"github.com/tidemill/tidemill/logical"
	"github.com/tidemill/tidemill/physical/eval"
)

// TopK gives the first K rows of an order, keeping little more than those. Rows that
// are equal by the keys come in the order of arrival. It gives one Reader.
type TopK struct {
	unaryPlan
	Keys    []logical.SortKey
	K       int64
	ties    []logical.SortKey
	program *eval.Program // of keys, then ties
}

// NewTopK gives the first k rows of input by keys over positions of its columns, and where
// those are equal by ties.
func NewTopK(input Plan, keys []logical.SortKey, k int64, ties ...logical.SortKey) (*TopK, error) {
	program, err := compileKeys(input, keys, ties)
	if err != nil {
		return nil, err
	}
	return &TopK{unaryPlan{input}, keys, k, ties, program}, nil
}

func (p *TopK) Schema() *arrow.Schema { return p.Input.Schema() }

// WithChildren orders another input.
func (p *TopK) WithChildren(c []Plan) Plan {
	return &TopK{unaryPlan{c[0]}, p.Keys, p.K, p.ties, p.program}
}

func (p *TopK) String() string { return args("TopK", "keys", list(p.Keys), "k", fmt.Sprint(p.K)) }

// Open reads the input with ec.Parallel Readers.
func (p *TopK) Open(ctx context.Context, ec *ExecContext, _ int) ([]columnar.Reader, error) {
	inputs, err := openAs(ctx, ec, p.Input, ec.parallel(), p.program.IsVolatile())
	if err != nil {
		return nil, err
	}
	return []columnar.Reader{&topReader{plan: p, ec: ec, inputs: inputs}}, nil
}

type topReader struct {
	plan   *TopK
	ec     *ExecContext
	inputs []columnar.Reader
	runs   []*topRun
	result *topRun
	from   int64
	read   bool
	closed bool
}

// topRun is the best rows so far: their columns, then keys, then where they came from.
type topRun struct {
	batches []arrow.RecordBatch
	rows    int64
	bytes   int64
	best    int64 // bytes of the rows after the worse ones were dropped the last time
	seen    int64 // rows of the input
	account *account
}

func (r *topReader) Schema() *arrow.Schema { return r.plan.Schema() }

func (r *topReader) Position() int64 { return r.from }

// keptSchema is the input's columns, the keys and the place in the order of arrival: the
// position, and of one position the row.
func (p *TopK) keptSchema() *arrow.Schema {
	fields := p.Schema().Fields()
	fields = fields[:len(fields):len(fields)]
	for i, dt := range p.program.Types() {
		fields = append(fields, columnar.Field(fmt.Sprint("key", i), dt))
	}
	return arrow.NewSchema(append(fields, columnar.Field("position", columnar.Int64), columnar.Field("row", columnar.Int64)), nil)
}

func (r *topReader) Next(ctx context.Context) (arrow.RecordBatch, error) {
	if r.closed {
		return nil, io.EOF
	}
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	if !r.read {
		r.read = true
		if err := r.find(ctx); err != nil {
			return nil, err
		}
	}
	if r.result == nil || len(r.result.batches) == 0 {
		return nil, io.EOF
	}
	all := r.result.batches[0]
	n := min(int64(r.ec.batchRows()), all.NumRows()-r.from)
	if n <= 0 {
		return nil, io.EOF
	}
	part := all.NewSlice(r.from, r.from+n)
	defer part.Release()
	r.from += n
	return takeBatch(r.Schema(), retained(part.Columns()[:r.Schema().NumFields()]), n), nil
}

// find keeps the best rows of each input, then of all.
func (r *topReader) find(ctx context.Context) error {
	r.runs = make([]*topRun, len(r.inputs))
	for i := range r.runs {
		r.runs[i] = &topRun{account: r.ec.account(r.plan, "top")}
	}
	err := inParallel(ctx, len(r.inputs), func(ctx context.Context, i int) error {
		return r.collect(ctx, r.inputs[i], r.runs[i])
	})
	if err != nil {
		return err
	}
	r.result = r.runs[0]
	for _, run := range r.runs[1:] {
		r.result.batches = append(r.result.batches, run.batches...)
		run.batches = nil
	}
	return r.compact(r.result)
}

// slack is how many rows are kept beyond K before the worse ones are dropped.
const slack = 64 << 10

func (r *topReader) collect(ctx context.Context, in columnar.Reader, run *topRun) error {
	env := r.ec.Env()
	for {
		b, err := in.Next(ctx)
		if isEnd(err) {
			if err := r.compact(run); err != nil {
				return err
			}
			return in.Close()
		}
		if err != nil {
			return err
		}
		env.Begin(b)
		kept, err := r.withKeys(env, b, PositionOf(in), run.seen)
		b.Release()
		if err != nil {
			return err
		}
		run.batches = append(run.batches, kept)
		run.seen += kept.NumRows()
		run.rows += kept.NumRows()
		run.bytes += batchBytes(kept)
		if run.rows > r.plan.K+slack || run.rows > r.plan.K && run.bytes > 2*run.best+2*r.ec.PartBytes() {
			if err := r.compact(run); err != nil {
				return err
			}
		} else if err := run.account.set(run.bytes); err != nil {
			return err
		}
	}
}

func (r *topReader) withKeys(env *eval.Env, b arrow.RecordBatch, position, row int64) (arrow.RecordBatch, error) {
	keys, err := r.plan.program.EvalColumns(env, b)
	if err != nil {
		return nil, err
	}
	columns := append(retained(b.Columns()), keys...)
	n := int(b.NumRows())
	columns = append(columns, positions(r.ec.Mem, position, n), ordinals(r.ec.Mem, row, n, nil))
	return takeBatch(r.plan.keptSchema(), columns, b.NumRows()), nil
}

// positions is a column of n times v.
func positions(mem memory.Allocator, v int64, n int) arrow.Array {
	buf, out := kernel.Make[int64](mem, n)
	for i := range out {
		out[i] = v
	}
	return kernel.Wrap(columnar.Int64, n, 0, nil, buf)
}

// compact drops all but the best K rows.
func (r *topReader) compact(run *topRun) error {
	if len(run.batches) == 0 {
		return nil
	}
	first := r.Schema().NumFields()
	keys := append(sortKeys(r.plan.Keys, r.plan.ties), kernel.SortKey{}, kernel.SortKey{})
	for i := range keys {
		for _, b := range run.batches {
			keys[i].Columns = append(keys[i].Columns, b.Column(first+i))
		}
	}
	refs := kernel.Top(keys, int(min(r.plan.K, 1<<31)))
	best, err := kernel.GatherBatch(r.ec.Mem, r.plan.keptSchema(), run.batches, refs)
	if err != nil {
		return err
	}
	releaseBatches(run.batches)
	run.batches, run.rows = []arrow.RecordBatch{best}, best.NumRows()
	run.bytes = batchBytes(best)
	run.best = run.bytes
	return run.account.set(run.bytes)
}

func (r *topReader) Close() error {
	if r.closed {
		return nil
	}
	r.closed = true
	for _, run := range r.runs {
		releaseBatches(run.batches)
		run.batches = nil
		run.account.release()
	}
	r.result = nil
	return columnar.CloseAll(r.inputs)
}
