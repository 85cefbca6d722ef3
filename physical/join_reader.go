package physical

import (
	"context"
	"io"
	"unsafe"

	"github.com/apache/arrow-go/v18/arrow"

	"github.com/tidemill/tidemill/columnar"
	"github.com/tidemill/tidemill/columnar/group"
	"github.com/tidemill/tidemill/physical/eval"
)

// pairing enumerates the candidate pairs of a probe batch with build rows.
type pairing interface {
	// start begins a batch.
	start(b arrow.RecordBatch) error
	// next fills probe and build with pairs, probe rows ascending; 0 is the end.
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
	hit    *columnar.Bitmap  // its rows with a match, where that is wanted
	mine   *columnar.Bitmap  // build rows this Reader has matched, where that is wanted
	probe  []int32
	build  []int32
	tail   []int32 // build rows to give at the end
	ended  bool
	none   bool // no row comes out, whatever the probe side has
	seed   uint64
	n      uint64
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
	n := r.pairs.next(r.probe, r.build)
	if n == 0 {
		return r.endBatch()
	}
	probe, build, out, err := r.out.holds(r.batch, r.probe[:n], r.build[:n], s.pairs)
	if err != nil {
		return nil, err
	}
	if r.hit != nil {
		for _, i := range probe {
			r.hit.Set(int(i))
		}
	}
	if r.mine != nil {
		for _, i := range build {
			r.mine.Set(int(i))
		}
	}
	return out, nil
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
	r.batch = b
	r.at = PositionOf(r.input)
	r.out.env.Seed = eval.Mix(r.seed, r.n)
	r.n++
	if s.probeMatched || s.probeUnmatched {
		if r.hit == nil {
			r.hit = columnar.NewBitmap(0)
		}
		r.hit.Reset(int(b.NumRows()))
	}
	return r.pairs.start(b)
}

// endBatch gives the rows of the probe batch that matched, or did not.
func (r *joinReader) endBatch() (arrow.RecordBatch, error) {
	b := r.batch
	r.batch = nil
	defer b.Release()
	s := r.out.sides
	if !s.probeMatched && !s.probeUnmatched {
		return nil, nil
	}
	want := r.hit
	if s.probeUnmatched {
		want = columnar.NewBitmap(int(b.NumRows()))
		want.SetAll()
		want.AndNot(r.hit)
	}
	rows := want.Indices(nil)
	if len(rows) == 0 {
		return nil, nil
	}
	return r.out.unbuilt(b, rows)
}

func (r *joinReader) nextTail() (arrow.RecordBatch, error) {
	if len(r.tail) == 0 {
		return nil, io.EOF
	}
	n := min(len(r.tail), r.ec.batchRows())
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
	// nullKey is told the rows with a null key, if there is something to probe; may be nil.
	nullKey func(row int)
}

func (p *hashPairs) start(b arrow.RecordBatch) error {
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
	return &joinReader{operator: operator{schema: schema, input: probe}, ec: ec, out: out, seed: ec.Seed}
}
