package physical

import (
	"context"
	"io"
	"unsafe"

	"github.com/apache/arrow-go/v18/arrow"

	"github.com/tidemill/tidemill/columnar"
	"github.com/tidemill/tidemill/columnar/group"
	"github.com/tidemill/tidemill/columnar/kernel"
	"github.com/tidemill/tidemill/physical/eval"
)

// pairing enumerates the candidate pairs of a probe batch with build rows.
type pairing interface {
	// start begins a batch.
	start(b arrow.RecordBatch) error
	// next fills probe and build with pairs, probe rows ascending; 0 is the end. With
	// joinReader.whole a probe row without any is there too, its build row -1.
	next(probe, build []int32) int
	release()
}

// joinReader joins a stream of probe batches with the build side.
type joinReader struct {
	operator
	ec    *ExecContext
	out   joinOutput
	fill  func(b arrow.RecordBatch) error
	pairs pairing // made when the build side is there
	begin func() (pairing, error)

	batch  arrow.RecordBatch // being probed
	width  RowWidths         // of its rows
	found  int               // pairs in probe and build, of which
	given  int               // so many were given
	hit    *columnar.Bitmap  // its rows with a match, where only one side is given
	outer  *interleaver      // of its rows with and without a match; nil: not wanted, or whole
	whole  bool              // pairs gives the rows without a match itself
	mine   *columnar.Bitmap  // build rows this Reader has matched, where that is wanted
	probe  []int32
	build  []int32
	tail   []int32 // build rows to give at the end
	ended  bool
	none   bool  // no row comes out, whatever the probe side has
	at     int64 // position of what was returned last
	closed bool
}

func (r *joinReader) Position() int64 { return r.at }

func (r *joinReader) Next(ctx context.Context) (arrow.RecordBatch, error) {
	if r.closed {
		return nil, io.EOF
	}
	if r.pairs == nil {
		if err := r.prepare(ctx); err != nil {
			return nil, err
		}
	}
	for {
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		b, err := r.step(ctx)
		if b != nil || err != nil {
			return b, err
		}
	}
}

// prepare has the build side built.
func (r *joinReader) prepare(ctx context.Context) error {
	if err := r.out.build.prepare(ctx, r.fill); err != nil {
		return err
	}
	pairs, err := r.begin()
	if err != nil {
		return err
	}
	r.pairs = pairs
	rows := r.ec.batchRows()
	r.probe, r.build = make([]int32, rows), make([]int32, rows)
	if r.out.build.track {
		r.mine = columnar.NewBitmap(r.out.build.store.rows())
	}
	return nil
}

// step does some work: a batch, an error, or nothing yet.
func (r *joinReader) step(ctx context.Context) (arrow.RecordBatch, error) {
	s := r.out.sides
	switch {
	case r.none:
		return nil, io.EOF
	case r.ended:
		return r.nextTail()
	case r.batch == nil:
		if r.out.build.store.rows() == 0 && !s.probeUnmatched {
			return nil, io.EOF // nothing can match
		}
		return nil, r.nextProbe(ctx)
	}
	if r.given == r.found {
		r.given, r.found = 0, r.pairs.next(r.probe, r.build)
		if r.found == 0 {
			return r.endBatch()
		}
	}
	from, to := r.given, r.given+r.nextPairs(r.probe[r.given:r.found], r.build[r.given:r.found])
	r.given = to
	last := r.probe[to-1]
	probe, build, out, err := r.out.holds(r.batch, r.probe[from:to], r.build[from:to], s.pairs)
	if err != nil {
		return nil, err
	}
	r.note(probe, build)
	if r.outer != nil {
		return r.interleaved(r.batch, probe, build, last, out)
	}
	return out, nil
}

// nextPairs is how many of the pairs to put together at once.
func (r *joinReader) nextPairs(probe, build []int32) int {
	n, most, store := len(probe), r.ec.PartBytes(), r.out.build.store
	if (r.width.most+store.widest())*int64(n) <= most || !r.out.sides.pairs && r.out.residual == nil {
		return n
	}
	return RowsWithin(n, most, func(i int) int64 { return r.width.At(probe[i]) + store.width(build[i]) })
}

// note remembers which rows have a match, where that is wanted.
func (r *joinReader) note(probe, build []int32) {
	if r.hit != nil {
		for _, i := range probe {
			r.hit.Set(int(i))
		}
	}
	if r.mine == nil {
		return
	}
	for _, i := range build {
		if i >= 0 {
			r.mine.Set(int(i))
		}
	}
}

// nextProbe begins the next batch, or the end.
func (r *joinReader) nextProbe(ctx context.Context) error {
	b, err := r.input.Next(ctx)
	s := r.out.sides
	if isEnd(err) {
		r.ended = true
		r.tail = r.out.build.probeEnded(r.mine, s.buildMatched)
		r.at = endPosition
		return nil
	}
	if err != nil {
		return err
	}
	r.batch, r.width = b, WidthsOf(b.Columns())
	r.at = PositionOf(r.input)
	switch {
	case !s.probeMatched && !s.probeUnmatched || r.whole:
	case s.pairs:
		if r.outer == nil {
			r.outer = &interleaver{}
		}
		r.outer.next = 0
	default:
		if r.hit == nil {
			r.hit = columnar.NewBitmap(0)
		}
		r.hit.Reset(int(b.NumRows()))
	}
	return r.pairs.start(b)
}

// endBatch gives the rows of the probe batch that are not given among its pairs.
func (r *joinReader) endBatch() (arrow.RecordBatch, error) {
	b := r.batch
	r.batch = nil
	defer b.Release()
	switch {
	case r.outer != nil:
		return r.interleaved(b, nil, nil, int32(b.NumRows()), nil)
	case r.hit == nil:
		return nil, nil
	}
	want := r.hit
	if r.out.sides.probeUnmatched {
		want = columnar.NewBitmap(int(b.NumRows()))
		want.SetAll()
		want.AndNot(r.hit)
	}
	rows := want.Indices(nil)
	if len(rows) == 0 {
		return nil, nil
	}
	return kernel.FilterBatch(r.out.env.Mem, b, rows), nil
}

// interleaved gives pairs with the rows of b before row to that have none, in the order of
// b. made is the batch of the pairs alone, if it is there; it takes that over.
func (r *joinReader) interleaved(b arrow.RecordBatch, probe, build []int32, to int32, made arrow.RecordBatch) (arrow.RecordBatch, error) {
	alone := r.outer.add(probe, build, to)
	if made != nil {
		if !alone {
			return made, nil
		}
		made.Release()
	}
	if len(r.outer.probe) == 0 {
		return nil, nil
	}
	return r.out.pair(b, r.outer.probe, r.outer.build)
}

// interleaver puts the rows of a probe batch that have no pair between the pairs, of which
// it is given some at a time.
type interleaver struct {
	next         int32 // rows before it were given
	probe, build []int32
}

// add makes probe and build of pairs, and with -1 for the build row of the rows before to
// that have none; alone says whether there are such.
func (x *interleaver) add(probe, build []int32, to int32) (alone bool) {
	x.probe, x.build = x.probe[:0], x.build[:0]
	for i, p := range probe {
		x.skip(p)
		x.probe, x.build = append(x.probe, p), append(x.build, build[i])
		x.next = p + 1
	}
	x.skip(to)
	return len(x.probe) > len(probe)
}

// skip adds the rows up to row to: they have no pair.
func (x *interleaver) skip(to int32) {
	for ; x.next < to; x.next++ {
		x.probe, x.build = append(x.probe, x.next), append(x.build, -1)
	}
}

func (r *joinReader) nextTail() (arrow.RecordBatch, error) {
	if len(r.tail) == 0 {
		return nil, io.EOF
	}
	n, store := min(len(r.tail), r.ec.batchRows()), r.out.build.store
	if most := r.ec.PartBytes(); store.widest()*int64(n) > most {
		n = RowsWithin(n, most, func(i int) int64 { return store.width(r.tail[i]) })
	}
	rows := r.tail[:n]
	r.tail = r.tail[n:]
	return r.out.unprobed(rows, r.input.Schema())
}

func (r *joinReader) Close() error {
	if r.closed {
		return nil
	}
	r.closed = true
	if r.batch != nil {
		r.batch.Release()
		r.batch = nil
	}
	if r.pairs != nil {
		r.pairs.release()
	}
	return columnar.CloseAll([]columnar.Reader{r.input, closeFunc{r.out.build.close}})
}

// closeFunc is a Reader of which only Close is used.
type closeFunc struct{ f func() error }

func (closeFunc) Schema() *arrow.Schema                           { return nil }
func (closeFunc) Next(context.Context) (arrow.RecordBatch, error) { return nil, io.EOF }
func (c closeFunc) Close() error                                  { return c.f() }

// hashPairs are the pairs with equal keys.
type hashPairs struct {
	keys   *eval.Program
	env    *eval.Env
	table  *group.RowTable
	prober group.Prober
	outer  bool // rows without a pair are given, too
	// nullKey is told the rows with a null key, if there is something to probe; may be nil.
	nullKey func(row int)
}

func (p *hashPairs) start(b arrow.RecordBatch) error {
	p.env.Begin(b)
	keys, err := p.keys.EvalColumns(p.env, b)
	if err != nil {
		return err
	}
	defer releaseAll(keys)
	if p.nullKey != nil && p.table.Len() > 0 {
		eachNullKey(keys, p.nullKey)
	}
	return p.prober.Start(p.table, keys, int(b.NumRows()))
}

func (p *hashPairs) next(probe, build []int32) int {
	if p.outer {
		return p.prober.NextOuter(asUint32(probe), asUint32(build))
	}
	return p.prober.Next(asUint32(probe), asUint32(build))
}

func (p *hashPairs) release() { p.table.Release() }

// asUint32 views row numbers as the hash tables write them: they fit both.
func asUint32(s []int32) []uint32 {
	return unsafe.Slice((*uint32)(unsafe.Pointer(unsafe.SliceData(s))), len(s))
}

// loopPairs are all pairs.
type loopPairs struct {
	probeRows, buildRows int
	probe, build         int // the next pair
}

func (p *loopPairs) start(b arrow.RecordBatch) error {
	p.probeRows, p.probe, p.build = int(b.NumRows()), 0, 0
	return nil
}

func (p *loopPairs) next(probe, build []int32) int {
	n := 0
	for p.probe < p.probeRows && p.buildRows > 0 && n < len(probe) {
		k := min(p.buildRows-p.build, len(probe)-n)
		for i := range k {
			probe[n+i], build[n+i] = int32(p.probe), int32(p.build+i)
		}
		n += k
		if p.build += k; p.build == p.buildRows {
			p.probe, p.build = p.probe+1, 0
		}
	}
	return n
}

func (p *loopPairs) release() {}

// newJoinReader is a Reader over probe, which it owns, with what all joins share.
func newJoinReader(ec *ExecContext, schema *arrow.Schema, probe columnar.Reader, out joinOutput) *joinReader {
	out.schema, out.env = schema, ec.Env()
	return &joinReader{operator: operator{schema: schema, input: probe}, ec: ec, out: out}
}
