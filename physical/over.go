package physical

import (
	"cmp"
	"context"
	"io"
	"slices"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"

	"github.com/tidemill/tidemill/columnar"
	"github.com/tidemill/tidemill/columnar/kernel"
	"github.com/tidemill/tidemill/logical/expr"
	"github.com/tidemill/tidemill/physical/eval"
)

// Over computes window functions: its input's columns, then a value of each function.
// It keeps its input; rows come out in order of arrival. Each Reader of the input holds
// whole partitions: it is an Exchange by their keys, or gives one Reader.
type Over struct {
	unaryPlan
	Functions []expr.Named // each an *expr.Over, all of one partition and order
	schema    *arrow.Schema
	program   *eval.Program
	layout    []overLayout
}

// overLayout is where the parts of a function are in the program's outputs: -1 for what
// it has not.
type overLayout struct {
	args           []int
	order          []int // of an aggregate
	filter         int
	key, low, high int // of a RANGE frame with offsets
}

// NewOver computes functions over positions of input's columns.
func NewOver(input Plan, functions []expr.Named) (*Over, error) {
	p := &Over{unaryPlan: unaryPlan{input}, Functions: functions}
	window := functions[0].Expr.(*expr.Over)
	exprs := slices.Clone(window.Partition)
	for _, k := range window.Order {
		exprs = append(exprs, k.Expr)
	}
	place := func(e expr.Expr) int {
		if e == nil {
			return -1
		}
		exprs = append(exprs, e)
		return len(exprs) - 1
	}
	for _, f := range functions {
		o := f.Expr.(*expr.Over)
		args, filter := o.Args, expr.Expr(nil)
		if o.Agg != nil {
			args, filter = o.Agg.Args, o.Agg.Filter
		}
		l := overLayout{filter: place(filter), key: place(o.Frame.Key), low: place(o.Frame.Low.Value), high: place(o.Frame.High.Value)}
		for _, a := range args {
			l.args = append(l.args, place(whereCounted(a, filter)))
		}
		for _, k := range o.AggregateOrder() {
			l.order = append(l.order, place(whereCounted(k.Expr, filter)))
		}
		p.layout = append(p.layout, l)
	}
	var err error
	if p.program, err = eval.Compile(input.Schema(), exprs...); err != nil {
		return nil, err
	}
	in := withoutOrdinal(input.Schema()).Fields()
	p.schema = arrow.NewSchema(append(in[:len(in):len(in)], namedSchema(functions).Fields()...), nil)
	if HasOrdinal(input.Schema()) {
		p.schema = withOrdinal(p.schema)
	}
	return p, nil
}

func (p *Over) Schema() *arrow.Schema { return p.schema }

// WithChildren computes the functions over another input.
func (p *Over) WithChildren(c []Plan) Plan {
	n := *p
	n.Input = c[0]
	return &n
}

func (p *Over) String() string { return args("Over", "functions", namedList(p.Functions)) }

// window is what the functions have in common.
func (p *Over) window() *expr.Over { return p.Functions[0].Expr.(*expr.Over) }

// Open computes the functions for each Reader of an Exchange.
func (p *Over) Open(ctx context.Context, ec *ExecContext, n int) ([]columnar.Reader, error) {
	_, parted := p.Input.(*Exchange)
	inputs, err := openAs(ctx, ec, p.Input, n, !parted || p.program.IsVolatile())
	if err != nil {
		return nil, err
	}
	for i, in := range inputs {
		inputs[i] = &overReader{plan: p, ec: ec, input: in, account: ec.account(p, "window functions")}
	}
	return inputs, nil
}

// overReader reads everything, computes, and gives the batches with their values.
type overReader struct {
	plan    *Over
	ec      *ExecContext
	input   columnar.Reader
	account *account
	batches []overBatch
	values  []arrow.Array // by function, of all rows in order of arrival
	read    bool
	closed  bool
	next    int
	row     int64
	at      int64
}

// overBatch is a batch and what the program computes of it.
type overBatch struct {
	rows     arrow.RecordBatch
	columns  []arrow.Array
	position int64
}

func (r *overReader) Schema() *arrow.Schema { return r.plan.schema }

// Position is that of the input's batch.
func (r *overReader) Position() int64 { return r.at }

func (r *overReader) Next(ctx context.Context) (arrow.RecordBatch, error) {
	if r.closed {
		return nil, io.EOF
	}
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	if !r.read {
		r.read = true
		if err := r.compute(ctx); err != nil {
			return nil, err
		}
	}
	if r.next == len(r.batches) {
		return nil, io.EOF
	}
	b := r.batches[r.next]
	r.next++
	r.at = b.position
	columns := retained(b.rows.Columns())
	end := len(columns)
	if HasOrdinal(r.plan.schema) {
		end--
	}
	out := columns[:end:end]
	rows := b.rows.NumRows()
	for _, v := range r.values {
		out = append(out, array.NewSlice(v, r.row, r.row+rows))
	}
	r.row += rows
	return takeBatch(r.plan.schema, append(out, columns[end:]...), rows), nil
}

// compute reads the input and computes the functions.
func (r *overReader) compute(ctx context.Context) error {
	if err := r.collect(ctx); err != nil {
		return err
	}
	if len(r.batches) == 0 {
		return nil
	}
	// An Exchange mixes what its inputs give; those give positions in order.
	slices.SortStableFunc(r.batches, func(a, b overBatch) int { return cmp.Compare(a.position, b.position) })
	columns, err := r.concat()
	if err != nil {
		return err
	}
	defer func() { releaseAll(columns) }()
	rows, perm, err := r.arrange(columns)
	if err != nil {
		return err
	}
	defer rows.release()
	back := make([]int32, len(perm))
	for i, p := range perm {
		back[p] = int32(i)
	}
	for i, f := range r.plan.Functions {
		if err := ctx.Err(); err != nil {
			return err
		}
		o := f.Expr.(*expr.Over)
		v, err := rows.evaluate(ctx, o, r.plan.layout[i])
		if err != nil {
			return eval.Failed(o, err)
		}
		arrived, err := kernel.Take(r.ec.Mem, v, back)
		v.Release()
		if err != nil {
			return err
		}
		r.values = append(r.values, arrived)
	}
	return nil
}

// collect keeps the input and computes keys and arguments.
func (r *overReader) collect(ctx context.Context) error {
	env := r.ec.Env()
	for {
		b, err := r.input.Next(ctx)
		if isEnd(err) {
			return r.input.Close()
		}
		if err != nil {
			return err
		}
		env.Begin(b)
		columns, err := r.plan.program.EvalColumns(env, b)
		if err != nil {
			b.Release()
			return err
		}
		for i, c := range columns {
			columns[i] = columnar.PlainColumn(r.ec.Mem, c)
			c.Release()
		}
		r.batches = append(r.batches, overBatch{b, columns, PositionOf(r.input)})
		size := batchBytes(b) + 64*b.NumRows() // the order, the frames and a value
		for _, c := range columns {
			size += columnar.DataBytes(c.Data())
		}
		if err := r.account.add(size); err != nil {
			return err
		}
	}
}

// concat is the program's outputs over all rows, in place of those by batch.
func (r *overReader) concat() ([]arrow.Array, error) {
	var out []arrow.Array
	for i := range r.batches[0].columns {
		parts := make([]arrow.Array, len(r.batches))
		for k, b := range r.batches {
			parts[k] = b.columns[i]
		}
		c, err := kernel.Concat(r.ec.Mem, parts)
		if err != nil {
			releaseAll(out)
			return nil, err
		}
		out = append(out, c)
	}
	for k := range r.batches {
		releaseAll(r.batches[k].columns)
		r.batches[k].columns = nil
	}
	return out, nil
}

// arrange brings the program's outputs into the order of the windows; perm says which
// row of arrival stands where.
func (r *overReader) arrange(columns []arrow.Array) (*overRows, []int32, error) {
	w := r.plan.window()
	n := 0
	for _, b := range r.batches {
		n += int(b.rows.NumRows())
	}
	perm := make([]int32, n)
	keys := make([]kernel.SortKey, 0, len(w.Partition)+len(w.Order))
	for i := range w.Partition {
		keys = append(keys, kernel.SortKey{Columns: columns[i : i+1]})
	}
	for i, k := range w.Order {
		at := len(w.Partition) + i
		keys = append(keys, kernel.SortKey{Columns: columns[at : at+1], Descending: k.Descending, NullsLast: !k.NullsFirst})
	}
	if len(keys) == 0 {
		for i := range perm {
			perm[i] = int32(i)
		}
	} else {
		for i, ref := range kernel.Sort(keys) {
			perm[i] = int32(ref.Row())
		}
	}
	rows := &overRows{mem: r.ec.Mem, n: n}
	for _, c := range columns {
		sorted, err := kernel.Take(r.ec.Mem, c, perm)
		if err != nil {
			rows.release()
			return nil, nil, err
		}
		rows.columns = append(rows.columns, sorted)
	}
	rows.mark(len(w.Partition), len(w.Partition)+len(w.Order))
	return rows, perm, nil
}

func (r *overReader) Close() error {
	if r.closed {
		return nil
	}
	r.closed = true
	for _, b := range r.batches {
		b.rows.Release()
		releaseAll(b.columns)
	}
	releaseAll(r.values)
	r.batches, r.values = nil, nil
	r.account.release()
	return r.input.Close()
}
