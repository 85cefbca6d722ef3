package physical

import (
	"context"
	"fmt"
	"io"

	"github.com/apache/arrow-go/v18/arrow"

	"github.com/tidemill/tidemill/columnar"
	"github.com/tidemill/tidemill/columnar/group"
	"github.com/tidemill/tidemill/columnar/kernel"
	"github.com/tidemill/tidemill/logical/expr"
	"github.com/tidemill/tidemill/physical/eval"
)

// PartitionTop leaves out rows that cannot be among the first of their partition: it is
// below a window function of rank of which only small values are wanted, and spares it
// most rows. It ranks nothing itself: all rows that precede a row of a wanted rank are left
// in, so that this stays its rank, and of those that precede another row at least N are, so
// that its rank stays above.
type PartitionTop struct {
	unaryPlan
	Partition []expr.Expr
	Order     []expr.Order // of which the first decides here
	Func      string       // row_number, rank or dense_rank
	N         int64        // its largest value that is wanted
	program   *eval.Program
}

// maxPartitionTop is from how many rows of a partition on keeping them apart costs more
// than ordering all.
const maxPartitionTop = 256

// NewPartitionTop reduces input, with expressions over positions of its columns. It is nil
// if it cannot: the first order has no words of the same order, or an expression is
// volatile.
func NewPartitionTop(input Plan, partition []expr.Expr, order []expr.Order, rank string, n int64) (*PartitionTop, error) {
	if len(order) == 0 || n < 1 || n > maxPartitionTop {
		return nil, nil
	}
	if !kernel.HasOrderWords(order[0].Expr.Type()) {
		return nil, nil
	}
	program, err := eval.Compile(input.Schema(), append(partition[:len(partition):len(partition)], order[0].Expr)...)
	if err != nil || program.IsVolatile() {
		return nil, err
	}
	return &PartitionTop{unaryPlan{input}, partition, order, rank, n, program}, nil
}

func (p *PartitionTop) Schema() *arrow.Schema { return p.Input.Schema() }

// WithChildren reduces another input.
func (p *PartitionTop) WithChildren(c []Plan) Plan {
	n := *p
	n.Input = c[0]
	return &n
}

func (p *PartitionTop) String() string {
	return args("PartitionTop", "by", list(p.Partition), "order", p.Order[0].String(), "keep", fmt.Sprintf("%s<=%d", p.Func, p.N))
}

// Open reduces each Reader of the input by itself.
func (p *PartitionTop) Open(ctx context.Context, ec *ExecContext, n int) ([]columnar.Reader, error) {
	inputs, err := Open(ctx, ec, p.Input, n)
	if err != nil {
		return nil, err
	}
	for i, in := range inputs {
		r := &partitionTopReader{operator: operator{schema: p.Schema(), input: in}, plan: p, ec: ec, env: ec.Env(),
			account: ec.account(p, "window functions"), least: heldAtLeast, sample: topSample, best: firstWords{n: int(p.N), rank: p.Func, last: len(p.Order) == 1}}
		if r.table, err = group.New(ec.Mem, p.program.Types()[:len(p.Partition)], group.Options{Budget: ec.Budget, Who: "window functions"}); err != nil {
			_ = columnar.CloseAll(inputs) // the first error counts
			return nil, err
		}
		inputs[i] = r
	}
	return inputs, nil
}

// partitionTopReader reads everything and keeps the rows that are among the first of what
// it has seen of their partition; at the end those that still are come out. Where that
// leaves out little it gives up: what it has kept comes out, then the rest as it is.
type partitionTopReader struct {
	operator
	plan    *PartitionTop
	ec      *ExecContext
	env     *eval.Env
	table   group.Table
	best    firstWords
	account *account
	held    []heldRows
	rows    int // of held
	limit   int // of rows, when those no longer among the first are dropped
	least   int // of limit
	sample  int // rows seen before it is judged
	ids     []uint32
	words   []uint64
	picked  []int32
	seen    int // since it was last judged
	passed  int
	judged  bool // once
	read    bool
	aside   bool
	next    int
	at      int64
}

// heldRows are rows of one batch, with their partitions and order.
type heldRows struct {
	batch    arrow.RecordBatch
	position int64
	ids      []uint32
	words    []uint64
}

// heldAtLeast is how many rows are kept before it is worth dropping some of them, and
// topSample how many are seen before what is left out is judged.
const (
	heldAtLeast = 256 << 10
	topSample   = 512 << 10
)

func (r *partitionTopReader) Position() int64 { return r.at }

func (r *partitionTopReader) Next(ctx context.Context) (arrow.RecordBatch, error) {
	if !r.read {
		r.read = true
		if err := r.collect(ctx); err != nil {
			return nil, err
		}
		r.forget()
	}
	if r.next < len(r.held) {
		h := &r.held[r.next]
		b := h.batch
		r.at, h.batch = h.position, nil
		r.next++
		return b, nil
	}
	r.held = nil
	r.account.release()
	if !r.aside {
		return nil, io.EOF
	}
	b, err := r.input.Next(ctx)
	r.at = PositionOf(r.input)
	return b, err
}

// collect reads to the end, or until it steps aside.
func (r *partitionTopReader) collect(ctx context.Context) error {
	r.limit = r.least
	for !r.aside {
		b, err := r.input.Next(ctx)
		if isEnd(err) {
			return r.compact()
		}
		if err != nil {
			return err
		}
		if err := r.take(b); err != nil {
			return err
		}
		if r.rows > r.limit {
			if err := r.compact(); err != nil {
				return err
			}
			r.limit = max(r.least, 2*r.rows)
		}
	}
	return nil
}

// take keeps the rows of b, which it takes over, that are among the first so far.
func (r *partitionTopReader) take(b arrow.RecordBatch) error {
	defer b.Release()
	n := int(b.NumRows())
	if err := r.evaluate(b, n); err != nil {
		return err
	}
	r.picked = r.best.pick(r.ids, r.words, r.picked[:0])
	r.judge(n, len(r.picked))
	if len(r.picked) == 0 {
		return nil
	}
	h := heldRows{batch: kernel.FilterBatch(r.ec.Mem, b, r.picked), position: PositionOf(r.input)}
	for _, row := range r.picked {
		h.ids, h.words = append(h.ids, r.ids[row]), append(h.words, r.words[row])
	}
	r.held = append(r.held, h)
	r.rows += len(r.picked)
	return r.account.set(r.account.held + h.bytes())
}

func (h *heldRows) bytes() int64 { return batchBytes(h.batch) + 12*int64(len(h.ids)) }

// evaluate finds the partition and the order of each row of b.
func (r *partitionTopReader) evaluate(b arrow.RecordBatch, n int) error {
	columns, err := r.plan.program.EvalColumns(r.env, b)
	if err != nil {
		return err
	}
	defer releaseAll(columns)
	keys := len(r.plan.Partition)
	r.ids = grown(r.ids, n)
	clear(r.ids)
	if keys > 0 {
		if err := r.table.Intern(columns[:keys], r.ids); err != nil {
			return err
		}
	}
	groups := max(r.table.Len(), 1)
	if err := r.account.set(r.account.held + r.best.growth(groups)); err != nil {
		return err
	}
	r.best.grow(groups)
	r.words = orderWords(r.words[:0], columns[keys], r.plan.Order[0])
	return nil
}

func grown(ids []uint32, n int) []uint32 {
	if cap(ids) < n {
		return make([]uint32, n)
	}
	return ids[:n]
}

// orderWords are words of which the smaller comes first in order. A null shares its word
// with the value at that end.
func orderWords(dst []uint64, a arrow.Array, o expr.Order) []uint64 {
	dst, _ = kernel.OrderWords(dst, a)
	if o.Descending {
		for i, w := range dst {
			dst[i] = ^w
		}
	}
	if a.NullN() == 0 {
		return dst
	}
	for i := range dst {
		switch {
		case a.IsNull(i) && o.NullsFirst:
			dst[i] = 0
		case a.IsNull(i):
			dst[i] = ^uint64(0)
		}
	}
	return dst
}

// judge steps aside if nearly all rows are kept.
func (r *partitionTopReader) judge(seen, kept int) {
	r.seen, r.passed = r.seen+seen, r.passed+kept
	if r.seen < r.sample {
		return
	}
	r.aside = r.judged && r.passed > r.seen-r.seen/8 // at first every partition is new
	r.judged, r.seen, r.passed = true, 0, 0
}

// compact drops rows that are no longer among the first.
func (r *partitionTopReader) compact() error {
	held := r.held[:0]
	before := r.account.held
	r.rows = 0
	var freed int64
	for _, h := range r.held {
		freed += h.bytes()
		r.picked = r.best.still(h.ids, h.words, r.picked[:0])
		if len(r.picked) < len(h.ids) {
			h = h.pick(r.ec, r.picked)
		}
		if len(r.picked) == 0 {
			h.batch.Release()
			continue
		}
		freed -= h.bytes()
		r.rows += len(h.ids)
		held = append(held, h)
	}
	clear(r.held[len(held):])
	r.held = held
	return r.account.set(before - freed)
}

// pick reduces h to some of its rows.
func (h heldRows) pick(ec *ExecContext, rows []int32) heldRows {
	b := kernel.FilterBatch(ec.Mem, h.batch, rows)
	h.batch.Release()
	h.batch = b
	for i, row := range rows {
		h.ids[i], h.words[i] = h.ids[row], h.words[row]
	}
	h.ids, h.words = h.ids[:len(rows)], h.words[:len(rows)]
	return h
}

// forget gives back all but the rows held.
func (r *partitionTopReader) forget() {
	r.table.Release()
	r.best = firstWords{}
	r.ids, r.words, r.picked = nil, nil, nil
}

func (r *partitionTopReader) Close() error {
	for _, h := range r.held {
		if h.batch != nil {
			h.batch.Release()
		}
	}
	r.held, r.read, r.aside = nil, true, false
	r.table.Release()
	r.account.release()
	return r.input.Close()
}
