package stateful

import (
	"context"
	"io"
	"slices"
	"time"

	"github.com/apache/arrow-go/v18/arrow"

	"github.com/tidemill/tidemill/columnar"
	"github.com/tidemill/tidemill/columnar/kernel"
	"github.com/tidemill/tidemill/incremental/state"
	"github.com/tidemill/tidemill/physical"
)

// sessionInput is rows of a batch that are still to be joined with the stored sessions.
// Sessions are joined by key, so the rows may be taken some keys at a time, and as pieces
// that touch make one session in whatever order they come, in several turns as well: it is
// one turn unless the memory limit does not let all of a batch be held.
type sessionInput struct {
	budget  *columnar.Budget
	most    int64 // bytes of a turn; 0: any number
	batches []arrow.RecordBatch
	rows    int
	bytes   int64
}

// refBytes is what the order of a row takes beside the row.
const refBytes = 8

func newSessionReader(p *SessionSave, in columnar.Reader, shard *state.Shard, ec *physical.ExecContext) *sessionReader {
	readers := int64(len(p.inst.store.Table("sessions").Shards()))
	return &sessionReader{plan: p, input: in, shard: shard, env: ec.Env(), held: sessionInput{budget: ec.Budget, most: ec.Budget.Limit() / (8 * readers)}}
}

// takeAdd takes a batch over, unless there is no room for it beside those that are held.
func (h *sessionInput) takeAdd(b arrow.RecordBatch) error {
	n := physical.BatchBytes(b) + refBytes*b.NumRows()
	if err := h.budget.Reserve("a session window", n); err != nil {
		return err
	}
	h.batches, h.rows, h.bytes = append(h.batches, b), h.rows+int(b.NumRows()), h.bytes+n
	return nil
}

func (h *sessionInput) isFull() bool { return h.most > 0 && h.bytes >= h.most }

func (h *sessionInput) drop() {
	for _, b := range h.batches {
		b.Release()
	}
	h.budget.Return(h.bytes)
	h.batches, h.rows, h.bytes = nil, 0, 0
}

// merge reads the input and joins its pieces with the stored sessions of their keys.
func (r *sessionReader) merge(ctx context.Context) error {
	for {
		b, err := r.input.Next(ctx)
		if err == io.EOF {
			break
		}
		if err != nil {
			return err
		}
		plain := columnar.Plain(r.env.Mem, b)
		b.Release()
		if err := r.hold(plain); err != nil {
			return err
		}
	}
	if err := r.mergeHeld(); err != nil {
		return err
	}
	r.plan.inst.updated.Add(int64(r.shard.CountTouched()))
	return nil
}

// hold keeps b, which it takes over, until there is enough for a turn.
func (r *sessionReader) hold(b arrow.RecordBatch) error {
	err := r.held.takeAdd(b)
	if err != nil && r.held.rows > 0 {
		if err := r.mergeHeld(); err != nil {
			b.Release()
			return err
		}
		err = r.held.takeAdd(b)
	}
	if err != nil {
		b.Release()
		return err
	}
	if r.held.isFull() {
		return r.mergeHeld()
	}
	return nil
}

// mergeHeld joins what is held, some keys at a time.
func (r *sessionReader) mergeHeld() error {
	defer r.held.drop()
	if r.held.rows == 0 {
		return nil
	}
	start := time.Now()
	defer func() { r.plan.inst.updateNanos.Add(int64(time.Since(start))) }()
	for _, refs := range r.held.byKey(r.plan.keys) {
		if err := r.mergeRows(refs); err != nil {
			return err
		}
	}
	return nil
}

func (r *sessionReader) mergeRows(refs []kernel.Ref) error {
	if len(refs) == 0 {
		return nil
	}
	some, err := kernel.GatherBatch(r.env.Mem, r.held.batches[0].Schema(), r.held.batches, refs)
	if err != nil {
		return err
	}
	defer some.Release()
	pieces, keys, err := r.pieces(some)
	if err != nil {
		return err
	}
	defer releaseAll(keys)
	return r.join(some, keys, pieces)
}

// mergedRows is about how many rows are joined at a time: what is made of them on the way
// takes several times their memory.
const mergedRows = 32 << 10

// sessionSeed is of the hash by which rows are divided, which must not be that of the shards.
const sessionSeed uint64 = 0x2545f4914f6cdd1d

// byKey divides the rows so that those of a key are together, in the order of their arrival.
func (h *sessionInput) byKey(keys int) [][]kernel.Ref {
	parts := h.rows/mergedRows + 1
	if keys == 0 || parts == 1 {
		lengths := make([]int, len(h.batches))
		for i, b := range h.batches {
			lengths[i] = int(b.NumRows())
		}
		return [][]kernel.Ref{kernel.AllRefs(lengths...)}
	}
	out := make([][]kernel.Ref, parts)
	for k := range out {
		out[k] = make([]kernel.Ref, 0, mergedRows+mergedRows/8)
	}
	var hashes []uint64
	for at, b := range h.batches {
		n := int(b.NumRows())
		hashes = slices.Grow(hashes[:0], n)[:n]
		kernel.Hash(hashes, b.Columns()[:keys], sessionSeed)
		for i, hash := range hashes {
			k := state.ShardOf(hash, parts)
			out[k] = append(out[k], kernel.MakeRef(at, i))
		}
	}
	return out
}
