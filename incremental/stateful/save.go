package stateful

import (
	"context"
	"fmt"
	"io"
	"iter"
	"slices"
	"sync"
	"time"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"

	"github.com/tidemill/tidemill/columnar"
	"github.com/tidemill/tidemill/columnar/kernel"
	"github.com/tidemill/tidemill/incremental/state"
	"github.com/tidemill/tidemill/logical/connector"
	"github.com/tidemill/tidemill/physical"
	"github.com/tidemill/tidemill/physical/eval"
)

// StateStoreSave is a stateful aggregate in one batch. Its input is states of groups
// (or rows, where an aggregate is over distinct values), scattered so that each Reader
// gets the keys of the state shard it owns. Each Reader merges its input into its
// shard, touched groups only, and then gives what the output mode asks for:
//
//	append    the groups the watermark finishes, which are removed
//	update    the groups that were touched; finished ones are removed silently
//	complete  all groups
type StateStoreSave struct {
	input physical.Plan
	spec  *physical.AggregateSpec
	inst  *Instance
}

// Schema is the keys, then the value of each aggregate.
func (p *StateStoreSave) Schema() *arrow.Schema { return p.spec.ResultSchema() }

// Children shows the restore and the final aggregation between save and input.
func (p *StateStoreSave) Children() []physical.Plan {
	restore := &shown{text: "StateStoreRestore " + p.inst.op.name, schema: p.input.Schema(), child: p.input}
	return []physical.Plan{&shown{text: "HashAggregate mode=final", schema: p.Schema(), child: restore}}
}

// WithChildren returns p: its input is part of it.
func (p *StateStoreSave) WithChildren([]physical.Plan) physical.Plan { return p }

func (p *StateStoreSave) String() string {
	return fmt.Sprintf("StateStoreSave %s mode=%s", p.inst.op.name, p.inst.op.mode)
}

// shown is a line of EXPLAIN: what StateStoreSave does itself.
type shown struct {
	text   string
	schema *arrow.Schema
	child  physical.Plan
}

func (s *shown) String() string                             { return s.text }
func (s *shown) Schema() *arrow.Schema                      { return s.schema }
func (s *shown) Children() []physical.Plan                  { return []physical.Plan{s.child} }
func (s *shown) WithChildren([]physical.Plan) physical.Plan { return s }
func (s *shown) Open(context.Context, *physical.ExecContext, int) ([]columnar.Reader, error) {
	return nil, fmt.Errorf("bug: %s is part of the save above it", s.text)
}

// Open makes one Reader a shard, or one without keys.
func (p *StateStoreSave) Open(ctx context.Context, ec *physical.ExecContext, _ int) ([]columnar.Reader, error) {
	shards := p.inst.store.Table(groupsTable).Shards()
	inputs, err := p.openInputs(ctx, ec, len(shards))
	if err != nil {
		return nil, err
	}
	if len(p.spec.Keys) == 0 {
		shards = shards[:1]
	}
	if len(inputs) != len(shards) {
		_ = columnar.CloseAll(inputs)
		return nil, fmt.Errorf("bug: %d inputs for %d state shards", len(inputs), len(shards))
	}
	shared := &saveShared{plan: p, ec: ec}
	readers := make([]columnar.Reader, len(shards))
	for i, in := range p.inst.behindGate(inputs) {
		readers[i] = &saveReader{shared: shared, input: in, shard: shards[i], env: ec.Env()}
	}
	return readers, nil
}

// openInputs opens the input as one Reader a shard, or without keys as one.
func (p *StateStoreSave) openInputs(ctx context.Context, ec *physical.ExecContext, shards int) ([]columnar.Reader, error) {
	if len(p.spec.Keys) > 0 {
		return physical.Open(ctx, ec, p.input, shards)
	}
	in, err := physical.OpenOne(ctx, ec, p.input)
	return []columnar.Reader{in}, err
}

// saveShared is what the Readers of one Open share: tables of distinct values, whose
// shards are found by other keys than those of the groups.
type saveShared struct {
	plan  *StateStoreSave
	ec    *physical.ExecContext
	mu    sync.Mutex
	locks map[*state.Shard]*sync.Mutex
}

// locked calls f alone on a shard of a table of distinct values.
func (s *saveShared) locked(shard *state.Shard, f func() error) error {
	s.mu.Lock()
	if s.locks == nil {
		s.locks = map[*state.Shard]*sync.Mutex{}
	}
	l := s.locks[shard]
	if l == nil {
		l = &sync.Mutex{}
		s.locks[shard] = l
	}
	s.mu.Unlock()
	l.Lock()
	defer l.Unlock()
	return f()
}

// saveReader is one shard's part of the aggregate.
type saveReader struct {
	shared *saveShared
	input  columnar.Reader
	shard  *state.Shard
	env    *eval.Env
	rows   []uint32
	// next gives the groups of the output, some at a time, once the input was merged.
	next func() ([]uint32, bool)
	stop func()
	done bool
}

func (r *saveReader) Schema() *arrow.Schema { return r.shared.plan.Schema() }

func (r *saveReader) Next(ctx context.Context) (arrow.RecordBatch, error) {
	if r.done {
		return nil, io.EOF
	}
	if r.next == nil {
		if err := r.merge(ctx); err != nil {
			return nil, err
		}
		r.next, r.stop = iter.Pull(r.output())
	}
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	rows, ok := r.next()
	if !ok {
		r.done = true
		return nil, io.EOF
	}
	return r.result(rows)
}

func (r *saveReader) Close() error {
	if r.stop != nil {
		r.stop()
		r.stop = nil
	}
	r.done = true
	return r.input.Close()
}

// merge adds the input to the shard's groups.
func (r *saveReader) merge(ctx context.Context) error {
	spec := r.shared.plan.spec
	for {
		b, err := r.input.Next(ctx)
		if err == io.EOF {
			break
		}
		if err != nil {
			return err
		}
		start := time.Now()
		if spec.HasDistinct() {
			err = r.mergeRows(b)
		} else {
			err = r.mergeStates(b)
		}
		b.Release()
		r.shared.plan.inst.updateNanos.Add(int64(time.Since(start)))
		if err != nil {
			return err
		}
	}
	if len(spec.Keys) == 0 { // there is one group, also of no rows
		if _, err := r.intern(nil, 1); err != nil {
			return err
		}
	}
	r.shared.plan.inst.updated.Add(int64(r.shard.CountTouched()))
	return nil
}

// intern finds or makes the groups of n keys and touches them.
func (r *saveReader) intern(keys []arrow.Array, n int) ([]uint32, error) {
	if cap(r.rows) < n {
		r.rows = make([]uint32, n)
	}
	rows := r.rows[:n]
	if _, err := r.shard.Intern(keys, rows); err != nil {
		return nil, err
	}
	r.shard.Touch(rows)
	return rows, nil
}

// mergeStates merges partial aggregates.
func (r *saveReader) mergeStates(b arrow.RecordBatch) error {
	spec := r.shared.plan.spec
	plain := columnar.Plain(r.env.Mem, b)
	defer plain.Release()
	k := len(spec.Keys)
	rows, err := r.intern(plain.Columns()[:k], int(plain.NumRows()))
	if err != nil {
		return err
	}
	states := plain.Columns()[k:]
	for i, acc := range r.shard.Accumulators() {
		n := spec.StateColumns(i)
		if err := acc.Merge(rows, states[:n]); err != nil {
			return eval.Failed(spec.Aggs[i].Expr, err)
		}
		states = states[n:]
	}
	return r.shard.Reserve()
}

// mergeRows aggregates rows, where some aggregate is over distinct values.
func (r *saveReader) mergeRows(b arrow.RecordBatch) error {
	spec := r.shared.plan.spec
	r.env.Begin(b)
	in, err := spec.Evaluate(r.env, b)
	if err != nil {
		return err
	}
	defer in.Release()
	keys := make([]arrow.Array, len(in.Keys))
	for i, key := range in.Keys {
		keys[i] = columnar.PlainColumn(r.env.Mem, key)
		defer keys[i].Release()
	}
	rows, err := r.intern(keys, in.Rows)
	if err != nil {
		return err
	}
	if err := spec.Update(r.env.Mem, r.shard.Accumulators(), rows, in); err != nil {
		return err
	}
	for i := range spec.Aggs {
		if !spec.IsDistinct(i) {
			continue
		}
		fresh := func(args []arrow.Array, of []int32) ([]int32, error) { return r.unseen(i, keys, args, of) }
		if err := spec.UpdateDistinct(r.env.Mem, i, r.shard.Accumulators()[i], rows, in, fresh); err != nil {
			return err
		}
	}
	return r.shard.Reserve()
}

// unseen notes values of aggregate i by group and returns the positions of new pairs.
// rows are the numbers of args' values in the batch of keys; nil is all of them.
func (r *saveReader) unseen(i int, keys, args []arrow.Array, rows []int32) ([]int32, error) {
	pairs := make([]arrow.Array, 0, len(keys)+len(args))
	for _, k := range keys {
		if rows == nil {
			k.Retain()
		} else {
			k = kernel.Filter(r.env.Mem, k, rows)
		}
		pairs = append(pairs, k)
	}
	defer func() { releaseAll(pairs[:len(keys)]) }()
	pairs = append(pairs, args...)
	n := pairs[0].Len()
	table := r.shared.plan.inst.store.Table(distinctName(i))
	shards := make([]int32, n)
	table.Partition(pairs, shards)
	parts := make([][]int32, len(table.Shards()))
	for row, k := range shards {
		parts[k] = append(parts[k], int32(row))
	}
	var fresh []int32
	for k, part := range parts {
		if len(part) == 0 {
			continue
		}
		created, err := r.internPairs(table.Shards()[k], pairs, part)
		if err != nil {
			return nil, err
		}
		fresh = append(fresh, created...)
	}
	slices.Sort(fresh)
	return fresh, nil
}

// internPairs notes some pairs in the shard they fall to and returns the new ones.
func (r *saveReader) internPairs(shard *state.Shard, pairs []arrow.Array, part []int32) (fresh []int32, err error) {
	columns := make([]arrow.Array, len(pairs))
	for i, p := range pairs {
		columns[i] = kernel.Filter(r.env.Mem, p, part)
	}
	defer releaseAll(columns)
	err = r.shared.locked(shard, func() error {
		created, err := shard.Intern(columns, make([]uint32, len(part)))
		for _, c := range created {
			fresh = append(fresh, part[c])
		}
		return err
	})
	return fresh, err
}

// output ranges over the groups to give, and removes on the way what the watermark
// finishes.
func (r *saveReader) output() iter.Seq[[]uint32] {
	inst := r.shared.plan.inst
	switch inst.op.mode {
	case connector.Complete:
		return r.shard.All()
	case connector.Append:
		return r.evicted()
	}
	return func(yield func([]uint32) bool) {
		for rows := range r.shard.Touching() {
			if !yield(rows) {
				return
			}
		}
		for range r.evicted() { // silently
		}
	}
}

// evicted ranges over the groups the watermark finishes and removes them.
func (r *saveReader) evicted() iter.Seq[[]uint32] {
	inst := r.shared.plan.inst
	bound, ok := inst.evictBound()
	if !ok {
		return func(func([]uint32) bool) {}
	}
	return func(yield func([]uint32) bool) {
		for rows := range r.shard.Evict(bound) {
			inst.removed.Add(int64(len(rows)))
			if !yield(rows) {
				return
			}
		}
	}
}

// result is the keys and values of groups.
func (r *saveReader) result(rows []uint32) (_ arrow.RecordBatch, err error) {
	var columns []arrow.Array
	defer func() { releaseAll(columns) }()
	if n := len(r.shared.plan.spec.Keys); n > 0 {
		if columns, err = r.shard.Get(rows, keyPositions(n)...); err != nil {
			return nil, err
		}
	}
	for i, acc := range r.shard.Accumulators() {
		a, err := physical.ResultOf(r.env.Budget, acc, rows)
		if err != nil {
			return nil, eval.Failed(r.shared.plan.spec.Aggs[i].Expr, err)
		}
		columns = append(columns, a)
	}
	return array.NewRecordBatch(r.Schema(), columns, int64(len(rows))), nil
}

func keyPositions(n int) []int {
	out := make([]int, n)
	for i := range out {
		out[i] = i
	}
	return out
}

func releaseAll(columns []arrow.Array) {
	for _, c := range columns {
		c.Release()
	}
}
