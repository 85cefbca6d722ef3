package physical

import (
	"cmp"
	"context"
	"io"
	"slices"
	"sync"
	"sync/atomic"

	"github.com/apache/arrow-go/v18/arrow"

	"github.com/tidemill/tidemill/columnar"
	"github.com/tidemill/tidemill/columnar/kernel"
	"github.com/tidemill/tidemill/physical/eval"
)

// HashAggregate gives the result of each group. Its input is states, as
// PartialAggregate makes them, or with Single the rows themselves.
//
// Without keys there is one row, also for no input. Groups come in the order in which
// they were first seen, if there are at most orderedGroups of them or Ordered is set.
type HashAggregate struct {
	unaryPlan
	Spec *AggregateSpec
	// Single aggregates rows, each Reader by itself: no key may be in the input of two
	// Readers (an Exchange by the keys, or one Reader).
	Single  bool
	Ordered bool
}

// NewHashAggregate merges states from input, whose schema is spec.StateSchema.
func NewHashAggregate(input Plan, spec *AggregateSpec, ordered bool) *HashAggregate {
	return &HashAggregate{unaryPlan: unaryPlan{input}, Spec: spec, Ordered: ordered}
}

// NewSingleAggregate aggregates rows of input, whose schema is spec.In.
func NewSingleAggregate(input Plan, spec *AggregateSpec, ordered bool) *HashAggregate {
	return &HashAggregate{unaryPlan: unaryPlan{input}, Spec: spec, Single: true, Ordered: ordered}
}

func (p *HashAggregate) Schema() *arrow.Schema { return p.Spec.ResultSchema() }

// WithChildren aggregates another input.
func (p *HashAggregate) WithChildren(c []Plan) Plan {
	n := *p
	n.Input = c[0]
	return &n
}

func (p *HashAggregate) String() string {
	keys, aggs := p.Spec.describe()
	mode := "final"
	if p.Single {
		mode = "single"
	}
	return args("HashAggregate", "mode", mode, "keys", keys, "aggs", aggs)
}

// Open makes n Readers that share the groups, or with Single one for each of the input.
func (p *HashAggregate) Open(ctx context.Context, ec *ExecContext, n int) ([]columnar.Reader, error) {
	if p.Single {
		return p.openSingle(ctx, ec, n)
	}
	inputs, err := Open(ctx, ec, p.Input, ec.parallel())
	if err != nil {
		return nil, err
	}
	s := &finalAggregate{plan: p, ec: ec, inputs: inputs}
	if len(inputs) == 1 || p.Ordered || len(p.Spec.Keys) == 0 {
		n = 1
	}
	s.open.Store(int64(n))
	readers := make([]columnar.Reader, n)
	for i := range readers {
		readers[i] = &finalReader{shared: s}
	}
	return readers, nil
}

const (
	mergeGroups   = 256 << 10 // up to which one table merges all
	orderedGroups = 128 << 10
)

// finalAggregate is what the Readers of one Open share. First the inputs are read to
// their end, in parallel; then the groups are merged, in one table, or if they are
// many a part at a time by whichever Reader is free.
type finalAggregate struct {
	plan   *HashAggregate
	ec     *ExecContext
	inputs []columnar.Reader
	open   atomic.Int64 // Readers not closed

	mu      sync.Mutex
	started bool
	err     error
	workers []*mergeWorker
	whole   *grouping // the groups, if they are few
	taken   bool      // a Reader gives whole
	parts   bool      // there are parts instead
	sorted  bool      // of few groups, so they are given in order
	next    atomic.Int64
}

// mergeWorker is what one input left behind: groups, or what is scattered by part.
type mergeWorker struct {
	g       *grouping
	parts   scatterer
	arrived *arrivals // of the input
}

// prepare runs the first phase once; every Reader calls it before anything else.
func (s *finalAggregate) prepare(ctx context.Context) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.started {
		return s.err
	}
	s.started = true
	s.workers = make([]*mergeWorker, len(s.inputs))
	s.err = inParallel(ctx, len(s.inputs), func(ctx context.Context, i int) error {
		s.workers[i] = &mergeWorker{arrived: newArrivals(i), parts: scatterer{
			ec: s.ec, keys: len(s.plan.Spec.Keys), withFirsts: s.plan.Ordered, account: s.ec.account(s.plan, "aggregation"),
		}}
		return s.read(ctx, s.inputs[i], s.workers[i])
	})
	if s.err == nil {
		s.err = s.combine(ctx)
	}
	return s.err
}

// read reads an input to its end.
func (s *finalAggregate) read(ctx context.Context, in columnar.Reader, w *mergeWorker) error {
	if inner, metrics := unwrapped(in); inner != nil {
		if p, ok := inner.(*partialReader); ok && p.plan.Kept == nil {
			return s.readPartial(ctx, p, metrics, w)
		}
	}
	g, err := newGrouping(s.plan.Spec, s.ec, s.ec.account(s.plan, "aggregation"), 0)
	if err != nil {
		return err
	}
	w.g = g
	var firsts []int64
	for {
		b, err := in.Next(ctx)
		if isEnd(err) {
			return in.Close()
		}
		if err != nil {
			return err
		}
		n := int(b.NumRows())
		firsts = resize(firsts, n)
		number := w.arrived.add(PositionOf(in), n)
		for i := range firsts {
			firsts[i] = number + int64(i)
		}
		err = g.merge(b.Columns(), n, firsts, nil)
		b.Release()
		if err == nil && g.table != nil && g.groups() >= partialGroups {
			err = s.scatterGroups(w)
		}
		if err != nil {
			return err
		}
	}
}

// readPartial takes the groups of a partial aggregation without turning them into
// states, unless they are too many, and rows without turning each into a group.
func (s *finalAggregate) readPartial(ctx context.Context, p *partialReader, metrics *OperatorMetrics, w *mergeWorker) error {
	p.arrived = w.arrived
	for {
		if !p.aside && !p.flush {
			if err := p.advance(ctx); err != nil {
				return err
			}
			if p.ended {
				break
			}
		}
		var n int
		var err error
		if p.aside && !p.flush {
			n, err = s.scatterRows(ctx, p, w)
		} else {
			n, err = s.scatterStates(ctx, p, w)
		}
		if isEnd(err) {
			break
		}
		if err != nil {
			return err
		}
		if metrics != nil {
			metrics.Rows.Add(int64(n))
			metrics.Batches.Add(1)
		}
	}
	if !p.aside {
		w.g, p.g, p.flush = p.g, nil, false
	}
	if metrics != nil && w.g != nil {
		metrics.Rows.Add(int64(w.g.groups()))
	}
	if err := w.parts.flush(); err != nil {
		return err
	}
	return p.Close()
}

// scatterStates scatters groups that p gives away.
func (s *finalAggregate) scatterStates(ctx context.Context, p *partialReader, w *mergeWorker) (rows int, err error) {
	b, err := p.Next(ctx)
	if err != nil {
		return 0, err
	}
	defer b.Release()
	firsts := p.firsts
	return len(firsts), w.parts.add(scatterForm{}, b.Columns(), len(firsts), func(i int) int64 { return firsts[i] })
}

// scatterRows scatters rows, since p has stepped aside.
func (s *finalAggregate) scatterRows(ctx context.Context, p *partialReader, w *mergeWorker) (rows int, err error) {
	in, number, err := p.nextRows(ctx)
	if err != nil {
		return 0, err
	}
	defer in.Release()
	columns := s.plan.Spec.kept(s.ec.Mem, in)
	defer releaseAll(columns)
	return in.Rows, w.parts.add(scatterForm{rows: true}, columns, in.Rows, func(i int) int64 { return number + int64(i) })
}

// scatterGroups moves the groups of w to its scattered states.
func (s *finalAggregate) scatterGroups(w *mergeWorker) error {
	if w.g == nil {
		return nil
	}
	all := w.g.all()
	for at := 0; at < len(all); at += s.ec.batchRows() {
		part := all[at:min(at+s.ec.batchRows(), len(all))]
		columns, err := w.g.states(part)
		if err != nil {
			return err
		}
		firsts := w.g.first[at:]
		err = w.parts.add(scatterForm{}, columns, len(part), func(i int) int64 { return firsts[i] })
		releaseAll(columns)
		if err != nil {
			return err
		}
	}
	w.g.reset()
	return w.parts.flush()
}

// keepGroups scatters the groups of w, but what can be absorbed stays where it is until
// the parts are merged.
func (s *finalAggregate) keepGroups(w *mergeWorker) error {
	n := w.groups()
	if n == 0 {
		return nil
	}
	columns, err := w.g.keptStates(w.g.all())
	if err != nil {
		return err
	}
	defer releaseAll(columns)
	if err := w.parts.add(scatterForm{g: w.g}, columns, n, func(i int) int64 { return w.g.first[i] }); err != nil {
		return err
	}
	return w.parts.flush()
}

// combine decides how to merge what the workers have, and if it is little does so.
func (s *finalAggregate) combine(ctx context.Context) error {
	total, tables, large := 0, 0, false
	for _, w := range s.workers {
		s.parts = s.parts || w.parts.rows > 0
		if w.g != nil && w.g.groups() > 0 {
			total += w.g.groups()
			tables++
			large = len(s.plan.Spec.Keys) > 0 && w.g.isLarge()
		}
	}
	order := s.arrivalOrder()
	if !s.parts && (tables <= 1 || total <= mergeGroups && !large) {
		return s.mergeAll(order)
	}
	s.sorted = !s.parts && total <= mergeGroups
	s.parts = true
	return inParallel(ctx, len(s.workers), func(_ context.Context, i int) error {
		w := s.workers[i]
		w.parts.withFirsts, w.parts.order = s.plan.Ordered || s.sorted, order
		if large {
			return s.keepGroups(w)
		}
		if err := s.scatterGroups(w); err != nil {
			return err
		}
		if w.g != nil {
			w.g.release()
			w.g = nil
		}
		return nil
	})
}

// arrivalOrder is that of the rows of all inputs.
func (s *finalAggregate) arrivalOrder() *arrivalOrder {
	readers := make([]*arrivals, len(s.workers))
	for i, w := range s.workers {
		readers[i] = w.arrived
	}
	return newArrivalOrder(readers)
}

// mergeAll merges the groups of all workers into the largest table.
func (s *finalAggregate) mergeAll(order *arrivalOrder) error {
	for _, w := range s.workers {
		if w.g != nil {
			order.rank(w.g.first)
		}
	}
	slices.SortStableFunc(s.workers, func(a, b *mergeWorker) int { return cmp.Compare(b.groups(), a.groups()) })
	s.whole, s.workers[0].g = s.workers[0].g, nil
	if s.whole == nil {
		g, err := newGrouping(s.plan.Spec, s.ec, s.ec.account(s.plan, "aggregation"), 0)
		if err != nil {
			return err
		}
		s.whole = g
	}
	for _, w := range s.workers[1:] {
		if w.groups() == 0 {
			continue
		}
		all := w.g.all()
		columns, err := w.g.keptStates(all)
		if err != nil {
			return err
		}
		err = s.whole.merge(columns, len(all), w.g.first, &source{w.g, all})
		releaseAll(columns)
		w.g.release()
		w.g = nil
		if err != nil {
			return err
		}
	}
	s.whole.ensureGlobal()
	return nil
}

func (w *mergeWorker) groups() int {
	if w.g == nil {
		return 0
	}
	return w.g.groups()
}

// mergePart merges the states of one part into g, which is empty before.
func (s *finalAggregate) mergePart(ctx context.Context, g *grouping, part int) error {
	for _, w := range s.workers {
		if err := w.parts.merge(ctx, g, part); err != nil {
			return err
		}
	}
	return nil
}

// newGrouping is a grouping for parts, large enough for an average one.
func (s *finalAggregate) newGrouping() (*grouping, error) {
	rows := 0
	for _, w := range s.workers {
		rows += w.parts.rows
	}
	return newGrouping(s.plan.Spec, s.ec, s.ec.account(s.plan, "aggregation"), rows/partitions)
}

// close releases everything once the last Reader is closed.
func (s *finalAggregate) close() error {
	if s.open.Add(-1) > 0 {
		return nil
	}
	for _, w := range s.workers {
		if w == nil {
			continue
		}
		if w.g != nil {
			w.g.release()
		}
		w.parts.release()
	}
	s.workers = nil
	if s.whole != nil {
		s.whole.release()
		s.whole = nil
	}
	return columnar.CloseAll(s.inputs)
}

// finalReader gives whole, or parts while there are any.
type finalReader struct {
	shared   *finalAggregate
	prepared bool
	closed   bool
	out      *groupWriter
	g        *grouping // of the parts, one after the other
	part     int64
	sorted   *sortedParts
}

func (r *finalReader) Schema() *arrow.Schema { return r.shared.plan.Schema() }

func (r *finalReader) Position() int64 { return r.part }

func (r *finalReader) Next(ctx context.Context) (arrow.RecordBatch, error) {
	if r.closed {
		return nil, io.EOF
	}
	if !r.prepared {
		if err := r.shared.prepare(ctx); err != nil {
			return nil, err
		}
		r.prepared = true
	}
	for {
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		if r.sorted != nil {
			return r.sorted.next(r.shared.ec)
		}
		if r.out != nil {
			b, err := r.out.next(r.shared.ec)
			if b != nil || err != nil {
				return b, err
			}
			r.out = nil
		}
		if err := r.nextGroups(ctx); err != nil {
			return nil, err
		}
	}
}

// nextGroups takes on the next groups to give; io.EOF if there are no more.
func (r *finalReader) nextGroups(ctx context.Context) error {
	s := r.shared
	if !s.parts || s.sorted {
		s.mu.Lock()
		defer s.mu.Unlock()
		if s.taken {
			return io.EOF
		}
		s.taken = true
	}
	if !s.parts {
		r.out = newGroupWriter(s.whole, s.plan.Ordered || s.whole.groups() <= orderedGroups)
		return nil
	}
	if s.plan.Ordered || s.sorted {
		sorted, err := s.sortParts(ctx)
		r.sorted = sorted
		return err
	}
	part := s.next.Add(1) - 1
	if part >= partitions {
		return io.EOF
	}
	if r.g == nil {
		g, err := s.newGrouping()
		if err != nil {
			return err
		}
		r.g = g
	} else {
		r.g.reset()
	}
	r.part = part
	if err := s.mergePart(ctx, r.g, int(part)); err != nil {
		return err
	}
	r.out = newGroupWriter(r.g, false)
	return nil
}

func (r *finalReader) drop() {
	r.out = nil
	if r.g != nil {
		r.g.release()
		r.g = nil
	}
	if r.sorted != nil {
		r.sorted.release()
		r.sorted = nil
	}
}

func (r *finalReader) Close() error {
	if r.closed {
		return nil
	}
	r.closed = true
	r.drop()
	return r.shared.close()
}

// groupWriter gives the results of a grouping in batches. It borrows the grouping.
type groupWriter struct {
	g      *grouping
	groups []uint32
}

// newGroupWriter writes g, ordered by where groups were first seen.
func newGroupWriter(g *grouping, ordered bool) *groupWriter {
	w := &groupWriter{g: g, groups: g.all()}
	if ordered && !slices.IsSorted(g.first) {
		slices.SortFunc(w.groups, func(a, b uint32) int { return cmp.Compare(g.first[a], g.first[b]) })
	}
	return w
}

// next is the next batch, nil at the end.
func (w *groupWriter) next(ec *ExecContext) (arrow.RecordBatch, error) {
	if len(w.groups) == 0 {
		return nil, nil
	}
	n := min(ec.PartRows(w.g.bytes(), w.g.groups()), len(w.groups))
	columns, err := w.g.results(w.groups[:n])
	if err != nil {
		return nil, err
	}
	w.groups = w.groups[n:]
	return takeBatch(w.g.spec.ResultSchema(), columns, int64(n)), nil
}

// sortedParts is the results of all parts in the order of first sight.
type sortedParts struct {
	schema  *arrow.Schema
	batches []arrow.RecordBatch
	refs    []kernel.Ref
}

func (s *finalAggregate) sortParts(ctx context.Context) (*sortedParts, error) {
	out := &sortedParts{schema: s.plan.Schema(), batches: make([]arrow.RecordBatch, partitions)}
	firsts := make([][]int64, partitions)
	err := inParallel(ctx, s.ec.parallel(), func(ctx context.Context, _ int) error {
		g, err := s.newGrouping()
		if err != nil {
			return err
		}
		defer g.release()
		for p := s.next.Add(1) - 1; p < partitions; p = s.next.Add(1) - 1 {
			g.reset()
			if err := s.mergePart(ctx, g, int(p)); err != nil {
				return err
			}
			columns, err := g.results(g.all())
			if err != nil {
				return err
			}
			out.batches[p] = takeBatch(out.schema, columns, int64(g.groups()))
			firsts[p] = slices.Clone(g.first)
		}
		return nil
	})
	if err != nil {
		out.release()
		return nil, err
	}
	for p, list := range firsts {
		for i := range list {
			out.refs = append(out.refs, kernel.MakeRef(p, i))
		}
	}
	slices.SortFunc(out.refs, func(a, b kernel.Ref) int {
		return cmp.Compare(firsts[a.Batch()][a.Row()], firsts[b.Batch()][b.Row()])
	})
	return out, nil
}

func (s *sortedParts) next(ec *ExecContext) (arrow.RecordBatch, error) {
	if len(s.refs) == 0 {
		return nil, io.EOF
	}
	n := min(ec.batchRows(), len(s.refs))
	b, err := kernel.GatherBatch(ec.Mem, s.schema, s.batches, s.refs[:n])
	s.refs = s.refs[n:]
	return b, err
}

func (s *sortedParts) release() {
	for _, b := range s.batches {
		if b != nil {
			b.Release()
		}
	}
	s.batches = nil
}

// openSingle aggregates the rows of each Reader.
func (p *HashAggregate) openSingle(ctx context.Context, ec *ExecContext, n int) ([]columnar.Reader, error) {
	one := len(p.Spec.Keys) == 0 || p.Ordered || p.Spec.program.IsVolatile()
	inputs, err := openAs(ctx, ec, p.Input, n, one)
	if err != nil {
		return nil, err
	}
	for i, in := range inputs {
		inputs[i] = &singleReader{operator: operator{schema: p.Schema(), input: in}, plan: p, ec: ec, env: ec.Env()}
	}
	return inputs, nil
}

// singleReader aggregates all rows of its input.
type singleReader struct {
	operator
	plan *HashAggregate
	ec   *ExecContext
	env  *eval.Env
	g    *grouping
	out  *groupWriter
	done bool
}

func (r *singleReader) Position() int64 { return 0 }

func (r *singleReader) Next(ctx context.Context) (arrow.RecordBatch, error) {
	if r.g == nil && !r.done {
		if err := r.read(ctx); err != nil {
			return nil, err
		}
	}
	if r.out != nil {
		b, err := r.out.next(r.ec)
		if b != nil || err != nil {
			return b, err
		}
		r.drop()
	}
	return nil, io.EOF
}

func (r *singleReader) read(ctx context.Context) error {
	g, err := newGrouping(r.plan.Spec, r.ec, r.ec.account(r.plan, "aggregation"), 0)
	if err != nil {
		return err
	}
	r.g = g
	rows := int64(0)
	for {
		b, err := r.input.Next(ctx)
		if isEnd(err) {
			break
		}
		if err != nil {
			return err
		}
		r.env.Begin(b)
		err = g.update(r.env, b, rows)
		rows += b.NumRows()
		b.Release()
		if err != nil {
			return err
		}
	}
	g.ensureGlobal()
	r.out = newGroupWriter(g, r.plan.Ordered || g.groups() <= orderedGroups)
	return nil
}

func (r *singleReader) drop() {
	r.out = nil
	if r.g != nil {
		r.g.release()
		r.g = nil
	}
	r.done = true
}

func (r *singleReader) Close() error {
	r.drop()
	return r.input.Close()
}
