package stateful

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"math"
	"slices"
	"time"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"

	"github.com/tidemill/tidemill/checkpoint"
	"github.com/tidemill/tidemill/columnar"
	"github.com/tidemill/tidemill/columnar/group"
	"github.com/tidemill/tidemill/columnar/kernel"
	"github.com/tidemill/tidemill/columnar/keyenc"
	"github.com/tidemill/tidemill/incremental/state"
	"github.com/tidemill/tidemill/logical"
	"github.com/tidemill/tidemill/physical"
	"github.com/tidemill/tidemill/physical/eval"
)

// A function is given some keys at a time, with all their rows.
const (
	chunkKeys = 1024
	chunkRows = columnar.DefaultBatchRows
)

// groupsReader runs a MapGroups.
type groupsReader struct {
	plan    *MapGroups
	ec      *physical.ExecContext
	env     *eval.Env
	input   columnar.Reader
	initial columnar.Reader
	bounded *state.Provider // of a run without a checkpoint
	store   *state.Store
	stores  map[string]*groupStore
	run     logical.GroupRun
	held    int64 // of the budget

	steps   []func(ctx context.Context) (more bool, err error)
	groups  *grouped
	due     *dueTimers
	output  arrow.RecordBatch // emitted, not given yet
	given   int64             // rows of output that were given
	before  int64             // rows given before output
	closed  bool
	counted bool
}

func (r *groupsReader) open(ctx context.Context) (err error) {
	r.env = r.ec.Env()
	if err := r.openStore(ctx); err != nil {
		return err
	}
	if r.input, err = physical.OpenOne(ctx, r.ec, r.plan.input.plan); err != nil {
		return err
	}
	if r.plan.initial != nil {
		if r.initial, err = physical.OpenOne(ctx, r.ec, r.plan.initial.plan); err != nil {
			return err
		}
	}
	if r.run, err = r.plan.function.Open(r.groupEnv()); err != nil {
		return err
	}
	r.steps = []func(context.Context) (bool, error){r.begin, r.readInput, r.callRows, r.findTimers, r.callTimers}
	return nil
}

// openStore finds the tables of the state, or makes them for bounded data.
func (r *groupsReader) openStore(ctx context.Context) error {
	if r.plan.inst != nil {
		r.store = r.plan.inst.store
	} else {
		tables, err := groupTables(r.plan.spec, r.plan.key)
		if err != nil {
			return err
		}
		r.bounded = state.NewProvider(nil, state.Options{Mem: r.ec.Mem, Budget: r.ec.Budget})
		if r.store, err = r.bounded.Open(ctx, state.Spec{Operator: r.plan.spec.Verb, Tables: tables}, checkpoint.OperatorState{}); err != nil {
			return err
		}
	}
	r.stores = map[string]*groupStore{}
	for _, v := range r.plan.spec.Variables {
		r.stores[v.Name] = newGroupStore(r.store.Table(v.Name), r.ec.Mem, v.TTL, r.ec.Now)
	}
	if r.plan.spec.Time != logical.NoTimers {
		r.stores[timersTable] = newGroupStore(r.store.Table(timersTable), r.ec.Mem, 0, r.ec.Now)
	}
	return nil
}

func (r *groupsReader) groupEnv() *logical.GroupEnv {
	env := &logical.GroupEnv{
		Mem: r.ec.Mem, Now: r.ec.Now, HasWatermark: r.plan.hasTime, Bounded: r.plan.inst == nil,
		Variable: func(name string) logical.GroupStore { return r.stores[name] },
	}
	if r.plan.inst != nil {
		env.Watermark = r.plan.inst.watermarks.Evict
	}
	if s, ok := r.stores[timersTable]; ok {
		env.Timers = s
	}
	return env
}

func (r *groupsReader) Schema() *arrow.Schema { return r.plan.schema }

// Position is the number of rows before the batch.
func (r *groupsReader) Position() int64 { return r.before + r.given }

func (r *groupsReader) Next(ctx context.Context) (arrow.RecordBatch, error) {
	for {
		if b := r.nextOutput(); b != nil {
			return b, nil
		}
		if r.closed || len(r.steps) == 0 {
			return nil, io.EOF
		}
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		start := time.Now()
		more, err := r.steps[0](ctx)
		if err == nil {
			err = r.take()
		}
		if err != nil {
			return nil, err
		}
		if !more {
			r.steps = r.steps[1:]
		}
		if inst := r.plan.inst; inst != nil {
			inst.updateNanos.Add(int64(time.Since(start)))
		}
		if len(r.steps) == 0 {
			if err := r.finish(); err != nil {
				return nil, err
			}
		}
	}
}

// take fetches what was emitted.
func (r *groupsReader) take() error {
	columns, n, err := r.run.Take()
	if err != nil || n == 0 {
		return err
	}
	r.output, r.given = array.NewRecordBatch(r.plan.schema, columns, int64(n)), 0
	releaseAll(columns)
	return nil
}

// nextOutput is the next part of what was emitted, nil if all was given.
func (r *groupsReader) nextOutput() arrow.RecordBatch {
	if r.output == nil {
		return nil
	}
	size := int64(columnar.DefaultBatchRows)
	if r.ec.BatchRows > 0 {
		size = int64(r.ec.BatchRows)
	}
	if r.given >= r.output.NumRows() {
		r.before += r.output.NumRows()
		r.output.Release()
		r.output, r.given = nil, 0
		return nil
	}
	part := r.output.NewSlice(r.given, min(r.given+size, r.output.NumRows()))
	r.given += part.NumRows()
	return part
}

// finish ends the run and counts what it did.
func (r *groupsReader) finish() error {
	if inst := r.plan.inst; inst != nil && !r.counted {
		r.counted = true
		for name, s := range r.stores {
			if name != timersTable {
				inst.updated.Add(s.updated.Load())
				inst.removed.Add(s.removed.Load())
			}
		}
	}
	run := r.run
	r.run = nil
	return run.Close()
}

func (r *groupsReader) Close() error {
	if r.closed {
		return nil
	}
	r.closed = true
	var errs []error
	if r.run != nil {
		errs = append(errs, r.run.Close())
	}
	if r.output != nil {
		r.output.Release()
		r.output = nil
	}
	for _, in := range []columnar.Reader{r.input, r.initial} {
		if in != nil {
			errs = append(errs, in.Close())
		}
	}
	r.groups.release()
	r.due.release()
	errs = append(errs, r.reserve(0))
	if r.bounded != nil {
		r.bounded.Abort()
		errs = append(errs, r.bounded.Close())
	}
	return errors.Join(errs...)
}

// reserve tells the budget what is held.
func (r *groupsReader) reserve(n int64) error {
	if n > r.held {
		if err := r.ec.Budget.Reserve("the rows of "+r.plan.spec.Verb, n-r.held); err != nil {
			return err
		}
	} else {
		r.ec.Budget.Return(r.held - n)
	}
	r.held = n
	return nil
}

// begin is steps 1 and 2 of MapGroups.
func (r *groupsReader) begin(ctx context.Context) (bool, error) {
	for _, v := range r.plan.spec.Variables {
		r.stores[v.Name].expire()
	}
	if r.initial == nil {
		return false, nil
	}
	g, err := r.group(ctx, r.initial, r.plan.initial)
	if err != nil {
		return false, err
	}
	defer g.release()
	for g.next < len(g.order) {
		c, err := g.chunk(r.ec)
		if err != nil {
			return false, err
		}
		err = c.oneRowEach()
		if err == nil {
			err = r.run.Initial(ctx, c.keys, c.n, c.rows)
		}
		c.release()
		if err != nil {
			return false, fmt.Errorf("initial state of %s: %w", r.plan.spec.Verb, err)
		}
	}
	return false, nil
}

// readInput reads and groups the rows of the batch.
func (r *groupsReader) readInput(ctx context.Context) (bool, error) {
	g, err := r.group(ctx, r.input, r.plan.input)
	r.groups = g
	return false, err
}

// callRows calls the function for the next keys.
func (r *groupsReader) callRows(ctx context.Context) (bool, error) {
	g := r.groups
	if g.next == len(g.order) {
		return false, nil
	}
	c, err := g.chunk(r.ec)
	if err != nil {
		return false, err
	}
	defer c.release()
	return true, r.run.Rows(ctx, c.keys, c.n, c.rows, c.from)
}

// group reads an input to its end, keeps its rows and sorts them by key.
func (r *groupsReader) group(ctx context.Context, in columnar.Reader, spec *groupInput) (_ *grouped, err error) {
	g := &grouped{spec: spec}
	if g.table, err = group.New(r.ec.Mem, spec.types, group.Options{Budget: r.ec.Budget, Who: r.plan.spec.Verb}); err != nil {
		return nil, err
	}
	defer func() {
		if err != nil {
			g.release()
		}
	}()
	held := int64(0)
	for {
		b, err := in.Next(ctx)
		if err == io.EOF {
			break
		}
		if err != nil {
			return nil, err
		}
		n, err := g.add(r.env, b)
		b.Release()
		if err != nil {
			return nil, err
		}
		held += n
		if err := r.reserve(held); err != nil {
			return nil, err
		}
	}
	if r.plan.spec.VisitAll && spec == r.plan.input {
		if err := g.addKnown(r.store.Table(r.plan.spec.Variables[0].Name)); err != nil {
			return nil, err
		}
	}
	return g, g.sort()
}

// grouped is the rows of a batch by key.
type grouped struct {
	spec     *groupInput
	table    group.Table
	ids      []uint32 // the key of each row, in order of arrival
	refs     []kernel.Ref
	ordinals []int64
	batches  []arrow.RecordBatch // the columns of rows

	keys  []arrow.Array // by key id
	order []uint32      // key ids, in the order of keys
	from  []int         // rows of order[i] are refs[from[i]:from[i+1]], once sorted
	next  int           // keys given
}

// add keeps the rows of b and returns the memory that takes.
func (g *grouped) add(env *eval.Env, b arrow.RecordBatch) (int64, error) {
	columns, err := g.spec.program.EvalColumns(env, b)
	if err != nil {
		return 0, err
	}
	defer func() { releaseAll(columns) }()
	for i, c := range columns {
		columns[i] = columnar.PlainColumn(env.Mem, c)
		c.Release()
	}
	n := int(b.NumRows())
	at := len(g.ids)
	g.ids = append(g.ids, make([]uint32, n)...)
	if err := g.table.Intern(columns[:g.spec.keys], g.ids[at:]); err != nil {
		return 0, err
	}
	g.ordinals = append(g.ordinals, b.Column(int(b.NumCols())-1).(*array.Int64).Int64Values()...)
	for i := range n {
		g.refs = append(g.refs, kernel.MakeRef(len(g.batches), i))
	}
	g.batches = append(g.batches, array.NewRecordBatch(g.spec.rows, columns[g.spec.keys:], int64(n)))
	size := int64(n) * 20
	for _, c := range columns[g.spec.keys:] {
		size += int64(c.Data().SizeInBytes())
	}
	return size, nil
}

// addKnown adds the keys that a table has.
func (g *grouped) addKnown(t *state.Table) error {
	positions := keyPositions(g.spec.keys)
	for _, s := range t.Shards() {
		for rows := range s.All() {
			var keys []arrow.Array
			if len(positions) > 0 {
				var err error
				if keys, err = s.Get(rows, positions...); err != nil {
					return err
				}
			}
			err := g.table.Intern(keys, make([]uint32, len(rows)))
			releaseAll(keys)
			if err != nil {
				return err
			}
		}
	}
	return nil
}

// sort brings keys into their order, and the rows of each into that of arrival.
func (g *grouped) sort() (err error) {
	n := g.table.Len()
	if g.keys, err = g.table.Keys(iota32(n)); err != nil {
		return err
	}
	if g.order, err = keyOrder(g.spec.types, g.keys, n); err != nil {
		return err
	}
	g.from = make([]int, n+1)
	rank := make([]uint32, n)
	for i, id := range g.order {
		rank[id] = uint32(i)
	}
	for _, id := range g.ids {
		g.from[rank[id]+1]++
	}
	for i := range n {
		g.from[i+1] += g.from[i]
	}
	rows := make([]int, len(g.ids)) // rows of a key together, in the order they came
	at := slices.Clone(g.from)
	for i, id := range g.ids {
		k := rank[id]
		rows[at[k]] = i
		at[k]++
	}
	byArrival := func(a, b int) int { return cmp.Compare(g.ordinals[a], g.ordinals[b]) }
	for i := range n {
		if list := rows[g.from[i]:g.from[i+1]]; !slices.IsSortedFunc(list, byArrival) {
			slices.SortStableFunc(list, byArrival)
		}
	}
	refs := make([]kernel.Ref, len(rows))
	for i, row := range rows {
		refs[i] = g.refs[row]
	}
	g.refs, g.ids, g.ordinals = refs, nil, nil
	return nil
}

// keyOrder is the numbers of n keys in the order of keys.
func keyOrder(types []arrow.DataType, keys []arrow.Array, n int) ([]uint32, error) {
	order := iota32(n)
	if len(keys) == 0 || n < 2 {
		return order, nil
	}
	codec, err := keyenc.New(types, nil)
	if err != nil {
		return nil, err
	}
	var enc keyenc.Keys
	if err := codec.Encode(keys, &enc); err != nil {
		return nil, err
	}
	slices.SortFunc(order, func(a, b uint32) int { return bytes.Compare(enc.Key(int(a)), enc.Key(int(b))) })
	return order, nil
}

// chunk is some keys with their rows.
type chunk struct {
	keys []arrow.Array
	n    int
	rows []arrow.Array
	from []int
}

func (c *chunk) release() {
	releaseAll(c.keys)
	releaseAll(c.rows)
}

// oneRowEach sees that no key has several rows.
func (c *chunk) oneRowEach() error {
	for i := range c.n {
		if c.from[i+1]-c.from[i] == 1 {
			continue
		}
		var key []byte
		for k, a := range c.keys {
			if k > 0 {
				key = append(key, ", "...)
			}
			key = columnar.AppendValue(key, a, i, nil)
		}
		return fmt.Errorf("key %q has %d rows; give one", key, c.from[i+1]-c.from[i])
	}
	return nil
}

// chunk takes the next keys.
func (g *grouped) chunk(ec *physical.ExecContext) (_ *chunk, err error) {
	lo, hi := g.next, g.next
	for hi < len(g.order) && hi-lo < chunkKeys && (hi == lo || g.from[hi+1]-g.from[lo] <= chunkRows) {
		hi++
	}
	g.next = hi
	c := &chunk{n: hi - lo, from: make([]int, hi-lo+1)}
	for i := range c.from {
		c.from[i] = g.from[lo+i] - g.from[lo]
	}
	defer func() {
		if err != nil {
			c.release()
		}
	}()
	ids := make([]int32, c.n)
	for i, id := range g.order[lo:hi] {
		ids[i] = int32(id)
	}
	for _, k := range g.keys {
		a, err := kernel.Take(ec.Mem, k, ids)
		if err != nil {
			return nil, err
		}
		c.keys = append(c.keys, a)
	}
	refs := g.refs[g.from[lo]:g.from[hi]]
	sources := make([]arrow.Array, len(g.batches))
	for i, f := range g.spec.rows.Fields() {
		for k, b := range g.batches {
			sources[k] = b.Column(i)
		}
		if len(sources) == 0 { // keys without rows alone
			c.rows = append(c.rows, columnar.Nulls(ec.Mem, f.Type, 0))
			continue
		}
		a, err := kernel.Gather(ec.Mem, sources, refs)
		if err != nil {
			return nil, err
		}
		c.rows = append(c.rows, a)
	}
	return c, nil
}

func (g *grouped) release() {
	if g == nil {
		return
	}
	releaseAll(g.keys)
	for _, b := range g.batches {
		b.Release()
	}
	g.keys, g.batches = nil, nil
	if g.table != nil {
		g.table.Release()
		g.table = nil
	}
}

// dueTimers are the timers to fire, in the order of when, then of keys.
type dueTimers struct {
	keys  []arrow.Array
	due   []int64
	order []uint32
	ranks []uint32 // of the keys: equal keys have equal ranks
	next  int
}

func (d *dueTimers) release() {
	if d != nil {
		releaseAll(d.keys)
		d.keys = nil
	}
}

// findTimers walks the timers that are due: those with the least order.
func (r *groupsReader) findTimers(context.Context) (bool, error) {
	r.groups.release()
	if err := r.reserve(0); err != nil {
		return false, err
	}
	r.due = &dueTimers{}
	bound, ok := r.timerBound()
	if !ok {
		return false, nil
	}
	table := r.store.Table(timersTable)
	columns := keyPositions(r.plan.input.keys + 1)
	parts := make([][]arrow.Array, len(columns)) // by column, then shard
	defer func() {
		for _, p := range parts {
			releaseAll(p)
		}
	}()
	var lengths []int
	for _, s := range table.Shards() {
		rows, err := s.Range(math.MinInt64, bound)
		if err != nil {
			return false, err
		}
		got, err := s.Get(rows, columns...)
		if err != nil {
			return false, err
		}
		for i, a := range got {
			parts[i] = append(parts[i], a)
		}
		lengths = append(lengths, len(rows))
	}
	return false, r.due.sort(r.ec, r.plan.input.types, parts, kernel.AllRefs(lengths...))
}

// timerBound is the latest due time that fires; ok is false if none does.
func (r *groupsReader) timerBound() (bound int64, ok bool) {
	if r.plan.inst == nil {
		return 0, false
	}
	switch r.plan.spec.Time {
	case logical.ProcessingTimers:
		return dueBound(r.plan.spec, r.ec.Now), true
	case logical.EventTimers:
		if w := r.plan.inst.watermarks.Evict; w != nil {
			return dueBound(r.plan.spec, *w), true
		}
	}
	return 0, false
}

// sort joins the parts of shards and orders them.
func (d *dueTimers) sort(ec *physical.ExecContext, types []arrow.DataType, parts [][]arrow.Array, refs []kernel.Ref) error {
	for _, p := range parts {
		a, err := kernel.Gather(ec.Mem, p, refs)
		if err != nil {
			return err
		}
		d.keys = append(d.keys, a)
	}
	last := len(d.keys) - 1
	times, _ := instants(d.keys[last])
	d.due = slices.Clone(times)
	d.keys[last].Release()
	d.keys = d.keys[:last]
	n := len(refs)
	sorted, err := keyOrder(types, d.keys, n)
	if err != nil {
		return err
	}
	d.ranks = make([]uint32, n)
	for i, k := range sorted {
		d.ranks[k] = uint32(i)
	}
	d.order = iota32(n)
	slices.SortFunc(d.order, func(a, b uint32) int {
		return cmp.Or(cmp.Compare(d.due[a], d.due[b]), cmp.Compare(d.ranks[a], d.ranks[b]))
	})
	return d.group(ec, types)
}

// group replaces ranks by numbers of keys: the timers of one key have one.
func (d *dueTimers) group(ec *physical.ExecContext, types []arrow.DataType) error {
	t, err := group.New(ec.Mem, types, group.Options{})
	if err != nil {
		return err
	}
	defer t.Release()
	return t.Intern(d.keys, d.ranks)
}

// callTimers calls the function for the next timers.
func (r *groupsReader) callTimers(ctx context.Context) (bool, error) {
	d := r.due
	if d.next == len(d.order) {
		return false, nil
	}
	some := d.order[d.next:min(d.next+chunkKeys, len(d.order))]
	d.next += len(some)
	of, due := make([]int, len(some)), make([]int64, len(some))
	var first []int32 // a timer of each key
	number := map[uint32]int{}
	for i, k := range some {
		at, ok := number[d.ranks[k]]
		if !ok {
			at = len(first)
			number[d.ranks[k]] = at
			first = append(first, int32(k))
		}
		of[i], due[i] = at, d.due[k]
	}
	var keys []arrow.Array
	defer func() { releaseAll(keys) }()
	for _, k := range d.keys {
		a, err := kernel.Take(r.ec.Mem, k, first)
		if err != nil {
			return false, err
		}
		keys = append(keys, a)
	}
	return true, r.run.Timers(ctx, keys, len(first), of, due)
}
