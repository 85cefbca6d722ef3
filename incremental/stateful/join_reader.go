package stateful

import (
	"context"
	"errors"
	"io"
	"iter"
	"slices"
	"time"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"

	"github.com/tidemill/tidemill/columnar"
	"github.com/tidemill/tidemill/columnar/kernel"
	"github.com/tidemill/tidemill/incremental/state"
	"github.com/tidemill/tidemill/logical"
	"github.com/tidemill/tidemill/physical"
	"github.com/tidemill/tidemill/physical/eval"
)

// joinRun is a side in one shard.
type joinRun struct {
	*joinInput
	input columnar.Reader
	shard *state.Shard
}

// joinReader is one shard's part of a join of streams. Its phases are leftSide and
// rightSide, in which it reads that side; then it evicts left, right, and is done.
type joinReader struct {
	plan  *SymmetricHashJoin
	env   *eval.Env
	sides [2]joinRun
	size  int   // pairs looked at at a time
	most  int64 // bytes of a batch made of them

	phase int
	ready []arrow.RecordBatch // to be given next
	// The rows being joined: nil when others are to be read.
	batch arrow.RecordBatch
	kept  []arrow.Array // what the state keeps of them: the columns of the table but matched
	hit   *columnar.Bitmap
	probe state.Probe
	own   []int32            // pairs: a row of batch
	rows  []uint32           // and one of the other side's state
	from  int                // those before were looked at
	to    int                // the end of them
	width physical.RowWidths // of batch
	keep  []int32

	next func() (arrow.RecordBatch, error, bool)
	stop func()
}

// The phases after the sides.
const (
	evictLeft = 2 + iota
	evictRight
	joinDone
)

func (r *joinReader) Schema() *arrow.Schema { return r.plan.schema }

func (r *joinReader) Next(ctx context.Context) (arrow.RecordBatch, error) {
	for {
		if len(r.ready) > 0 {
			b := r.ready[0]
			r.ready = r.ready[1:]
			return b, nil
		}
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		switch {
		case r.phase == joinDone:
			return nil, io.EOF
		case r.phase >= evictLeft:
			if err := r.evictSome(); err != nil {
				return nil, err
			}
		case r.batch == nil:
			if err := r.arrive(ctx); err != nil {
				return nil, err
			}
		default:
			start := time.Now()
			err := r.join()
			r.plan.inst.updateNanos.Add(int64(time.Since(start)))
			if err != nil {
				return nil, err
			}
		}
	}
}

func (r *joinReader) Close() error {
	if r.stop != nil {
		r.stop()
		r.stop = nil
	}
	for _, b := range r.ready {
		b.Release()
	}
	r.ready, r.phase = nil, joinDone
	r.drop()
	return errors.Join(r.sides[leftSide].input.Close(), r.sides[rightSide].input.Close())
}

// drop lets go of the rows that were being joined.
func (r *joinReader) drop() {
	if r.batch != nil {
		r.batch.Release()
		releaseAll(r.kept)
		r.batch, r.kept = nil, nil
	}
}

// side is that whose rows are being read, other the one they are matched with.
func (r *joinReader) side() *joinRun  { return &r.sides[r.phase] }
func (r *joinReader) other() *joinRun { return &r.sides[1-r.phase] }

func (r *joinReader) semi() bool { return r.plan.inst.op.join.kind == logical.SemiJoin }

// arrive reads rows of the current side; at their end the next phase begins.
func (r *joinReader) arrive(ctx context.Context) error {
	b, err := r.side().input.Next(ctx)
	if err == io.EOF {
		r.phase++
		return nil
	}
	if err != nil {
		return err
	}
	start := time.Now()
	plain := columnar.Plain(r.env.Mem, b)
	b.Release()
	defer plain.Release()
	err = r.begin(plain)
	r.plan.inst.updateNanos.Add(int64(time.Since(start)))
	return err
}

// begin takes those rows of b that can match something to be joined; the others come
// out at once, where unmatched rows do.
func (r *joinReader) begin(b arrow.RecordBatch) error {
	side := r.side()
	b.Retain()
	r.batch = b
	if side.filter != nil {
		rows, all, err := side.filter.Select(r.env, b, r.keep[:0])
		if err != nil {
			return err
		}
		if !all {
			r.keep = rows
			if side.padded {
				if err := r.giveUnmatched(b, others(rows, int(b.NumRows()))); err != nil {
					return err
				}
			}
			r.batch = kernel.FilterBatch(r.env.Mem, b, rows)
			b.Release()
		}
	}
	var err error
	if r.kept, err = r.evaluate(); err != nil {
		return err
	}
	null := r.nullKeys()
	if null != nil && !side.padded {
		r.dropRows(null)
		null = nil
	}
	n := int(r.batch.NumRows())
	if n == 0 {
		r.drop()
		return nil
	}
	if err := r.probe.Start(r.other().shard, r.kept[:len(side.keys)], n); err != nil {
		return err
	}
	if null != nil {
		for _, i := range null.Indices(nil) {
			r.probe.Skip(int(i))
		}
	}
	if r.hit == nil {
		r.hit = columnar.NewBitmap(n)
	}
	r.hit.Reset(n)
	r.width = physical.WidthsOf(r.batch.Columns())
	return nil
}

// others are the numbers below n that are not in rows, which ascend.
func others(rows []int32, n int) []int32 {
	out := make([]int32, 0, n-len(rows))
	for i := range int32(n) {
		if len(rows) > 0 && rows[0] == i {
			rows = rows[1:]
		} else {
			out = append(out, i)
		}
	}
	return out
}

// evaluate computes what the state keeps of the batch, plain.
func (r *joinReader) evaluate() ([]arrow.Array, error) {
	columns, err := r.side().state.EvalColumns(r.env, r.batch)
	if err != nil {
		return nil, err
	}
	for i, c := range columns {
		columns[i] = columnar.PlainColumn(r.env.Mem, c)
		c.Release()
	}
	return columns, nil
}

// nullKeys are the rows of which a key is null that equals nothing then; nil: none.
func (r *joinReader) nullKeys() *columnar.Bitmap {
	var null *columnar.Bitmap
	for k, key := range r.plan.inst.op.join.parts.Keys {
		a := r.kept[k]
		if key.NullSafe || a.NullN() == 0 {
			continue
		}
		if null == nil {
			null = columnar.NewBitmap(a.Len())
		}
		for i := range a.Len() {
			if columnar.IsNull(a, i) {
				null.Set(i)
			}
		}
	}
	return null
}

// dropRows takes rows out of those being joined.
func (r *joinReader) dropRows(gone *columnar.Bitmap) {
	rest := columnar.NewBitmap(int(r.batch.NumRows()))
	rest.SetAll()
	rest.AndNot(gone)
	rows := rest.Indices(nil)
	b, kept := r.batch, r.kept
	r.batch, r.kept = kernel.FilterBatch(r.env.Mem, b, rows), make([]arrow.Array, len(kept))
	b.Release()
	for i, c := range kept {
		r.kept[i] = kernel.Filter(r.env.Mem, c, rows)
		c.Release()
	}
}

// join looks at some pairs; after the last one the rows are stored.
func (r *joinReader) join() error {
	if r.from == r.to {
		r.from, r.to = 0, r.probe.Next(r.own, r.rows)
	}
	if r.to == 0 {
		err := r.store()
		r.drop()
		return err
	}
	to := r.from + r.fitting()
	own, rows, err := r.candidates(r.own[r.from:to], r.rows[r.from:to])
	r.from = to
	if err != nil {
		return err
	}
	if own, rows, err = r.holding(own, rows); err != nil || len(own) == 0 {
		return err
	}
	for _, i := range own {
		r.hit.Set(int(i))
	}
	fresh, err := r.mark(rows)
	switch {
	case err != nil:
		return err
	case !r.semi():
		return r.givePairs(own, rows)
	case r.phase == rightSide:
		return r.giveStored(r.other(), fresh, rightSide, nil)
	}
	return nil
}

// fitting is how many of the next pairs make a batch that is not too wide: one at least.
func (r *joinReader) fitting() int {
	n := r.to - r.from
	stored, widest := r.other().shard.Widths()
	if (r.width.Most()+widest)*int64(n) <= r.most {
		return n
	}
	return physical.RowsWithin(n, r.most, func(i int) int64 {
		return r.width.At(r.own[r.from+i]) + stored(r.rows[r.from+i])
	})
}

// candidates leaves out pairs whose left row a semi join has given already.
func (r *joinReader) candidates(own []int32, rows []uint32) ([]int32, []uint32, error) {
	if !r.semi() {
		return own, rows, nil
	}
	k := 0
	if r.phase == leftSide {
		for i := range own {
			if !r.hit.Get(int(own[i])) {
				own[k], rows[k] = own[i], rows[i]
				k++
			}
		}
		return own[:k], rows[:k], nil
	}
	matched, err := r.matched(r.other(), rows)
	if err != nil {
		return nil, nil, err
	}
	defer matched.Release()
	for i := range own {
		if !matched.Value(i) {
			own[k], rows[k] = own[i], rows[i]
			k++
		}
	}
	return own[:k], rows[:k], nil
}

// matched is the marks of stored rows.
func (r *joinReader) matched(side *joinRun, rows []uint32) (*array.Boolean, error) {
	columns, err := side.shard.Get(rows, side.matched)
	if err != nil {
		return nil, err
	}
	return columns[0].(*array.Boolean), nil
}

// holding reduces pairs to those for which the rest of the condition is true.
func (r *joinReader) holding(own []int32, rows []uint32) ([]int32, []uint32, error) {
	p := r.plan
	if p.residual == nil || len(own) == 0 {
		return own, rows, nil
	}
	var columns []arrow.Array
	defer func() { releaseAll(columns) }()
	for i := range r.sides {
		some, err := r.pairColumns(i, p.residualOf[i], own, rows)
		if err != nil {
			return nil, nil, err
		}
		columns = append(columns, some...)
	}
	fields := make([]arrow.Field, len(columns))
	for i, c := range columns {
		fields[i] = columnar.Field("", c.DataType())
	}
	b := array.NewRecordBatch(arrow.NewSchema(fields, nil), columns, int64(len(own)))
	defer b.Release()
	keep, all, err := p.residual.Select(r.env, b, r.keep[:0])
	if err != nil || all {
		return own, rows, err
	}
	r.keep = keep
	for k, i := range keep { // ascending: nothing is overwritten before it is read
		own[k], rows[k] = own[i], rows[i]
	}
	return own[:len(keep)], rows[:len(keep)], nil
}

// pairColumns are columns of one side for pairs: of the rows being joined, or stored.
// positions are places in the side.
func (r *joinReader) pairColumns(i int, positions []int, own []int32, rows []uint32) ([]arrow.Array, error) {
	if len(positions) == 0 {
		return nil, nil
	}
	side := &r.sides[i]
	if i != r.phase {
		stored := make([]int, len(positions))
		for k, p := range positions {
			stored[k] = side.stored[p]
		}
		return side.shard.Get(rows, stored...)
	}
	out := make([]arrow.Array, 0, len(positions))
	for _, p := range positions {
		c, err := kernel.Take(r.env.Mem, r.batch.Column(side.columns[p]), own)
		if err != nil {
			releaseAll(out)
			return nil, err
		}
		out = append(out, c)
	}
	return out, nil
}

// mark notes that stored rows have a match, where that matters, and returns those that
// had none before, each once.
func (r *joinReader) mark(rows []uint32) ([]uint32, error) {
	other := r.other()
	if other.matched < 0 {
		return nil, nil
	}
	before, err := r.matched(other, rows)
	if err != nil {
		return nil, err
	}
	defer before.Release()
	var fresh []uint32
	for i, row := range rows {
		if !before.Value(i) {
			fresh = append(fresh, row)
		}
	}
	slices.Sort(fresh)
	fresh = slices.Compact(fresh)
	if len(fresh) == 0 {
		return nil, nil
	}
	marks := columnar.NewBitmap(len(fresh))
	marks.SetAll()
	yes := r.marks(marks)
	defer yes.Release()
	return fresh, other.shard.Set(fresh, other.matched, yes)
}

// marks is a bitmap as a column.
func (r *joinReader) marks(b *columnar.Bitmap) arrow.Array {
	out := array.NewBooleanBuilder(r.env.Mem)
	defer out.Release()
	out.Reserve(b.Len())
	for i := range b.Len() {
		out.UnsafeAppend(b.Get(i))
	}
	return out.NewArray()
}

// store keeps the rows that were joined, as far as they may match again or come out
// unmatched; a semi join first gives those of the left that had a match.
func (r *joinReader) store() error {
	side := r.side()
	if r.semi() && r.phase == leftSide {
		if hits := r.hit.Indices(nil); len(hits) > 0 {
			if err := r.giveOwn(hits); err != nil {
				return err
			}
		}
	}
	keep := r.staying()
	if len(keep) == 0 {
		return nil
	}
	r.plan.inst.updated.Add(int64(len(keep)))
	columns := make([]arrow.Array, len(r.kept))
	for i, c := range r.kept {
		columns[i] = kernel.Filter(r.env.Mem, c, keep)
	}
	if side.matched >= 0 {
		hits := columnar.NewBitmap(len(keep))
		for i, row := range keep {
			if r.hit.Get(int(row)) {
				hits.Set(i)
			}
		}
		columns = slices.Insert(columns, side.matched, r.marks(hits))
	}
	defer releaseAll(columns)
	k := len(side.keys)
	return side.shard.Append(columns[:k], columns[k:], make([]uint32, len(keep)))
}

// staying are the rows to store. Every left row is, for the right rows of the batch may
// match it, unless it is done with. A right row that is evicted right away is not, unless
// it comes out then.
func (r *joinReader) staying() []int32 {
	side := r.side()
	gone := columnar.NewBitmap(int(r.batch.NumRows()))
	if r.phase == leftSide {
		if r.semi() {
			gone.Or(r.hit)
		}
	} else if bound, ok := r.bound(side); ok {
		values, isNull := instants(r.kept[side.evictAmongKept()])
		for i, t := range values {
			if t <= bound && !isNull(i) && (!side.padded || r.hit.Get(i)) {
				gone.Set(i)
			}
		}
	}
	rest := columnar.NewBitmap(gone.Len())
	rest.SetAll()
	rest.AndNot(gone)
	return rest.Indices(nil)
}

// evictAmongKept is the place of the eviction time among the columns but matched.
func (s *joinSide) evictAmongKept() int {
	if s.matched >= 0 && s.evict > s.matched {
		return s.evict - 1
	}
	return s.evict
}

// bound is the largest eviction time that the batch's watermark removes from a side;
// ok is false if nothing is removed.
func (r *joinReader) bound(side *joinRun) (bound int64, ok bool) {
	if side.joinSide.bound == nil || r.plan.inst.watermarks.Evict == nil {
		return 0, false
	}
	return *r.plan.inst.watermarks.Evict - side.joinSide.bound.OffsetIn(isUTC(r.env.Location)), true
}

// evictSome removes some rows of a side from the state; after the last one the next
// phase begins.
func (r *joinReader) evictSome() error {
	start := time.Now()
	defer func() { r.plan.inst.removeNanos.Add(int64(time.Since(start))) }()
	if r.next == nil {
		r.next, r.stop = iter.Pull2(r.evicted(&r.sides[r.phase-evictLeft]))
	}
	b, err, ok := r.next()
	if !ok {
		r.stop()
		r.next, r.stop = nil, nil
		r.phase++
		return nil
	}
	if b != nil {
		r.ready = append(r.ready, b)
	}
	return err
}

// evicted removes what the watermark has passed and gives the rows of it that come out.
func (r *joinReader) evicted(side *joinRun) iter.Seq2[arrow.RecordBatch, error] {
	return func(yield func(arrow.RecordBatch, error) bool) {
		bound, ok := r.bound(side)
		if !ok {
			return
		}
		for rows := range side.shard.Evict(bound) {
			r.plan.inst.removed.Add(int64(len(rows)))
			if !side.padded {
				continue
			}
			b, err := r.unmatched(side, rows)
			if (b != nil || err != nil) && !yield(b, err) {
				return
			}
		}
	}
}

// unmatched is those of evicted rows that never had a match, with nulls; nil if there
// are none.
func (r *joinReader) unmatched(side *joinRun, rows []uint32) (arrow.RecordBatch, error) {
	matched, err := r.matched(side, rows)
	if err != nil {
		return nil, err
	}
	defer matched.Release()
	var alone []uint32
	for i, row := range rows {
		if !matched.Value(i) {
			alone = append(alone, row)
		}
	}
	if len(alone) == 0 {
		return nil, nil
	}
	times, err := side.shard.Get(alone, side.evict)
	if err != nil {
		return nil, err
	}
	defer releaseAll(times)
	return r.storedBatch(side, alone, r.phase, times[0])
}
