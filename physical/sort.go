package physical

import (
	"cmp"
	"context"
	"io"
	"slices"

	"github.com/apache/arrow-go/v18/arrow"

	"github.com/tidemill/tidemill/columnar"
	"github.com/tidemill/tidemill/columnar/kernel"
	"github.com/tidemill/tidemill/logical"
	"github.com/tidemill/tidemill/physical/eval"
)

// Sort orders rows; equal ones keep their order of arrival. It gives one Reader.
type Sort struct {
	unaryPlan
	Keys    []logical.SortKey
	ties    []logical.SortKey
	program *eval.Program // of keys, then ties
}

// NewSort orders input by keys over positions of its columns, and what is equal by ties.
func NewSort(input Plan, keys []logical.SortKey, ties ...logical.SortKey) (*Sort, error) {
	program, err := compileKeys(input, keys, ties)
	if err != nil {
		return nil, err
	}
	return &Sort{unaryPlan{input}, keys, ties, program}, nil
}

func compileKeys(input Plan, keys, ties []logical.SortKey) (*eval.Program, error) {
	s := &logical.Sort{Keys: slices.Concat(keys, ties)}
	return eval.Compile(input.Schema(), s.Exprs()...)
}

func (p *Sort) Schema() *arrow.Schema { return p.Input.Schema() }

// WithChildren orders another input.
func (p *Sort) WithChildren(c []Plan) Plan { return &Sort{unaryPlan{c[0]}, p.Keys, p.ties, p.program} }

func (p *Sort) String() string { return args("Sort", "keys", list(p.Keys)) }

// Open reads the input with ec.Parallel Readers.
func (p *Sort) Open(ctx context.Context, ec *ExecContext, _ int) ([]columnar.Reader, error) {
	inputs, err := openAs(ctx, ec, p.Input, ec.parallel(), p.program.IsVolatile())
	if err != nil {
		return nil, err
	}
	return []columnar.Reader{&sortReader{plan: p, ec: ec, inputs: inputs}}, nil
}

// sortReader reads everything, sorts row numbers, and gathers rows as they are wanted.
type sortReader struct {
	plan   *Sort
	ec     *ExecContext
	inputs []columnar.Reader
	runs   []*sortRun
	rows   []arrow.RecordBatch // borrowed from runs, in order of arrival
	widths []RowWidths         // of rows
	widest int64               // the most of widths
	refs   []kernel.Ref
	read   bool
	closed bool
	given  int64
}

// sortRun is what one input gave.
type sortRun struct {
	batches []sortBatch
	account *account
}

type sortBatch struct {
	rows     arrow.RecordBatch
	keys     []arrow.Array
	position int64
}

func (r *sortReader) Schema() *arrow.Schema { return r.plan.Schema() }

// Position is the number of rows before the batch.
func (r *sortReader) Position() int64 { return r.given }

func (r *sortReader) Next(ctx context.Context) (arrow.RecordBatch, error) {
	if r.closed {
		return nil, io.EOF
	}
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	if !r.read {
		r.read = true
		if err := r.sort(ctx); err != nil {
			return nil, err
		}
	}
	if len(r.refs) == 0 {
		return nil, io.EOF
	}
	n := r.nextRows()
	b, err := kernel.GatherBatch(r.ec.Mem, r.plan.Schema(), r.rows, r.refs[:n])
	if err != nil {
		return nil, err
	}
	r.refs = r.refs[n:]
	r.given += int64(n)
	return b, nil
}

// nextRows is how many rows to give at once.
func (r *sortReader) nextRows() int {
	n := min(r.ec.batchRows(), len(r.refs))
	if most := r.ec.PartBytes(); r.widest*int64(n) > most {
		return RowsWithin(n, most, func(i int) int64 { return r.widths[r.refs[i].Batch()].At(int32(r.refs[i].Row())) })
	}
	return n
}

// sort reads the inputs, in parallel, and orders their rows.
func (r *sortReader) sort(ctx context.Context) error {
	r.runs = make([]*sortRun, len(r.inputs))
	for i := range r.runs {
		r.runs[i] = &sortRun{account: r.ec.account(r.plan, "sort")}
	}
	err := inParallel(ctx, len(r.inputs), func(ctx context.Context, i int) error {
		return r.collect(ctx, r.inputs[i], r.runs[i])
	})
	if err != nil {
		return err
	}
	var all []sortBatch
	for _, run := range r.runs {
		all = append(all, run.batches...)
	}
	if len(all) == 0 {
		return nil
	}
	slices.SortStableFunc(all, func(a, b sortBatch) int { return cmp.Compare(a.position, b.position) })
	keys := sortKeys(r.plan.Keys, r.plan.ties)
	for _, b := range all {
		r.rows = append(r.rows, b.rows)
		w := WidthsOf(b.rows.Columns())
		r.widths, r.widest = append(r.widths, w), max(r.widest, w.most)
		for k := range keys {
			keys[k].Columns = append(keys[k].Columns, b.keys[k])
		}
	}
	// One radix sort of everything: sorting runs in parallel and merging them was no
	// quicker with two cores (2e6 rows, two keys: the merge alone took as long).
	r.refs = kernel.Sort(keys)
	return nil
}

func sortKeys(keys, ties []logical.SortKey) []kernel.SortKey {
	var out []kernel.SortKey
	for _, k := range slices.Concat(keys, ties) {
		out = append(out, kernel.SortKey{Descending: k.Descending, NullsLast: !k.NullsFirst})
	}
	return out
}

// collect keeps the rows of an input, plain, in batches that are not too thin.
func (r *sortReader) collect(ctx context.Context, in columnar.Reader, run *sortRun) error {
	filled := &coalesceReader{operator: operator{schema: in.Schema(), input: in}, ec: r.ec}
	defer filled.drop()
	env := r.ec.Env()
	for {
		b, err := filled.Next(ctx)
		if isEnd(err) {
			return in.Close()
		}
		if err != nil {
			return err
		}
		plain := columnar.Plain(r.ec.Mem, b)
		b.Release()
		env.Begin(plain)
		keys, err := r.plan.program.EvalColumns(env, plain)
		if err != nil {
			plain.Release()
			return err
		}
		run.batches = append(run.batches, sortBatch{plain, keys, filled.Position()})
		if err := run.account.add(batchBytes(plain) + 24*plain.NumRows()); err != nil {
			return err
		}
	}
}

func (r *sortReader) Close() error {
	if r.closed {
		return nil
	}
	r.closed = true
	for _, run := range r.runs {
		for _, b := range run.batches {
			b.rows.Release()
			releaseAll(b.keys)
		}
		run.account.release()
	}
	r.runs, r.rows, r.refs = nil, nil, nil
	return columnar.CloseAll(r.inputs)
}
