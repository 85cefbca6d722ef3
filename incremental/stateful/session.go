package stateful

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"iter"
	"slices"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/memory"

	"github.com/tidemill/tidemill/columnar"
	"github.com/tidemill/tidemill/columnar/function"
	"github.com/tidemill/tidemill/columnar/group"
	"github.com/tidemill/tidemill/columnar/kernel"
	"github.com/tidemill/tidemill/incremental/state"
	"github.com/tidemill/tidemill/logical"
	"github.com/tidemill/tidemill/logical/connector"
	"github.com/tidemill/tidemill/logical/expr"
	"github.com/tidemill/tidemill/physical"
	"github.com/tidemill/tidemill/physical/eval"
)

// sessionKeys says which keys of an aggregate are the bounds of its session window: -1
// where a bound is not grouped by.
type sessionKeys struct {
	window     *logical.Window
	start, end *expr.Column // as the aggregate's input has them
}

// sessionOf finds the session window that an aggregate groups by.
func sessionOf(a *logical.Aggregate) (sessionKeys, bool) {
	w, start, end := logical.SessionOf(a.Input)
	if w == nil || start < 0 || end < 0 {
		return sessionKeys{}, false
	}
	columns := a.Input.Schema().Columns
	s := sessionKeys{w, columns[start], columns[end]}
	for _, k := range a.Keys {
		if s.isBound(k.Expr) {
			return s, true
		}
	}
	return sessionKeys{}, false
}

// isBound says whether e is the start or the end.
func (s sessionKeys) isBound(e expr.Expr) bool {
	c, ok := e.(*expr.Column)
	return ok && (c.ID == s.start.ID || c.ID == s.end.ID)
}

// closes says whether a watermark finishes sessions by their end.
func (s sessionKeys) closes(a *logical.Aggregate) bool {
	m, ok := logical.EventTimes(a.Input)[s.end.ID]
	return ok && !m.IsOpen
}

// others are the keys that are no bounds.
func (s sessionKeys) others(a *logical.Aggregate) []expr.Named {
	return slices.DeleteFunc(slices.Clone(a.Keys), func(k expr.Named) bool { return s.isBound(k.Expr) })
}

// Names of the state columns of sessions.
const (
	sessionStart = "session_start"
	sessionEnd   = "session_end"
)

// describeSession keeps all live sessions of a key: several rows a key, ordered by
// their end.
const sessionText = "session "

func describeSession(a *logical.Aggregate, s sessionKeys, mode connector.OutputMode) (*Operator, error) {
	o := &Operator{node: a, name: a.State, kind: "sessionWindowStateStoreSaveExec", text: sessionText + aggregateText(a), mode: mode}
	if former := formerText(a); former != "" {
		o.former = sessionText + former
	}
	for _, k := range a.Keys {
		if !s.isBound(k.Expr) && readsBound(k.Expr, s) {
			return nil, &logical.UnsupportedError{What: "grouping by " + k.Expr.String() + " on a stream",
				Reason: "it is computed from the bounds of a session, which change", Remedy: "group by window_start and window_end and compute above"}
		}
	}
	names := make([]string, 0, len(a.Keys)+len(a.Aggs))
	others := s.others(a)
	for _, k := range others {
		names = append(names, k.Name)
	}
	for _, n := range a.Aggs {
		names = append(names, Unqualified(n.Expr))
	}
	names = uniqueNames(append(names, sessionStart, sessionEnd))
	t := state.TableSchema{
		Name: "sessions", MultiRow: true, Order: state.Order{By: state.ByValueColumn, Column: 1},
		Values: []arrow.Field{columnar.Field(names[len(names)-2], columnar.Timestamp), columnar.Field(names[len(names)-1], columnar.Timestamp)},
	}
	for i, k := range others {
		t.Key = append(t.Key, columnar.Field(names[i], k.Expr.Type()))
	}
	for i, n := range physical.OverSets(a.Aggs, true) {
		agg := n.Expr.(*expr.Agg)
		t.Aggregates = append(t.Aggregates, state.AggregateColumn{
			Name: names[len(others)+i],
			New: func(mem memory.Allocator) (function.Accumulator, error) {
				return agg.Signature.Overload.New(mem, agg.Signature.Args)
			},
		})
	}
	o.spec = state.Spec{Operator: o.name, Tables: []state.TableSchema{t}}
	o.evicted = mode != connector.Complete && s.closes(a)
	return o, nil
}

func readsBound(e expr.Expr, s sessionKeys) bool {
	return slices.ContainsFunc(expr.Columns(e), func(id expr.ID) bool { return id == s.start.ID || id == s.end.ID })
}

// planSession plans a session aggregate for one batch. Rows are aggregated by key and
// their own bounds first; each Reader then merges what touches, with the stored sessions
// of its keys.
func planSession(pl *physical.Planner, a *logical.Aggregate, s sessionKeys, inst *Instance) (physical.Plan, error) {
	pl.RawSessions(s.window)
	judged := inst.op.mode != connector.Complete && s.closes(a)
	in, err := planInput(pl, a, inst, judged)
	if err != nil {
		return nil, err
	}
	countGapless(in, inst)
	schema := a.Input.Schema()
	others := s.others(a)
	grouped := append(slices.Clone(others), expr.Pass(s.start), expr.Pass(s.end))
	keys, err := physical.BindNamed(grouped, schema)
	if err != nil {
		return nil, err
	}
	aggs, err := physical.BindNamed(physical.OverSets(a.Aggs, true), schema)
	if err != nil {
		return nil, err
	}
	if judged {
		if in, err = lateFilter(in, keys[len(keys)-1].Expr, 0, inst, false); err != nil {
			return nil, err
		}
	}
	ordinal := -1
	if physical.HasOrdinal(in.Schema()) {
		ordinal = in.Schema().NumFields() - 1
	}
	spec, err := physical.NewAggregateSpec(in.Schema(), keys, aggs, ordinal)
	if err != nil {
		return nil, err
	}
	var below physical.Plan = physical.NewPartialAggregate(in, spec)
	if len(others) > 0 {
		routing := make([]expr.Expr, len(others))
		for i, k := range positions(spec.StateSchema(), len(others)) {
			routing[i] = k.Expr
		}
		if below, err = physical.NewExchange(below, routing...); err != nil {
			return nil, err
		}
	}
	return &SessionSave{input: below, spec: spec, inst: inst, keys: len(others), output: sessionOutput(a, s), schema: a.Schema().Arrow()}, nil
}

// countGapless counts the rows whose gap makes no session.
func countGapless(p physical.Plan, inst *Instance) {
	if w, ok := p.(*physical.Window); ok && w.Spec.Gap != nil {
		w.Dropped = func(rows int64) { inst.gapless.Add(rows) }
		return
	}
	for _, c := range p.Children() {
		countGapless(c, inst)
	}
}

// sessionOutput says for each key of the aggregate which column of the state it is: the
// keys count from 0, then start and end.
func sessionOutput(a *logical.Aggregate, s sessionKeys) []int {
	out := make([]int, len(a.Keys))
	next, others := 0, len(s.others(a))
	for i, k := range a.Keys {
		switch c, _ := k.Expr.(*expr.Column); {
		case c != nil && c.ID == s.start.ID:
			out[i] = others
		case c != nil && c.ID == s.end.ID:
			out[i] = others + 1
		default:
			out[i] = next
			next++
		}
	}
	return out
}

// SessionSave merges sessions that touch, in the state, and gives those the watermark
// finishes (append) or all (complete).
type SessionSave struct {
	input  physical.Plan
	spec   *physical.AggregateSpec
	inst   *Instance
	keys   int   // keys that are no bounds
	output []int // state column of each key of the result
	schema *arrow.Schema
}

// Schema is the aggregate's.
func (p *SessionSave) Schema() *arrow.Schema { return p.schema }

// Children is the input.
func (p *SessionSave) Children() []physical.Plan { return []physical.Plan{p.input} }

// WithChildren returns p: its input is part of it.
func (p *SessionSave) WithChildren([]physical.Plan) physical.Plan { return p }

func (p *SessionSave) String() string {
	return fmt.Sprintf("SessionSave %s mode=%s", p.inst.op.name, p.inst.op.mode)
}

// Open makes one Reader a shard, or one without other keys.
func (p *SessionSave) Open(ctx context.Context, ec *physical.ExecContext, _ int) ([]columnar.Reader, error) {
	shards := p.inst.store.Table("sessions").Shards()
	if p.keys == 0 {
		in, err := physical.OpenOne(ctx, ec, p.input)
		return []columnar.Reader{newSessionReader(p, in, shards[0], ec)}, err
	}
	inputs, err := physical.Open(ctx, ec, p.input, len(shards))
	if err != nil {
		return nil, err
	}
	for i, in := range inputs {
		inputs[i] = newSessionReader(p, in, shards[i], ec)
	}
	return inputs, nil
}

// sessionReader is one shard's part.
type sessionReader struct {
	plan  *SessionSave
	input columnar.Reader
	shard *state.Shard
	env   *eval.Env
	held  sessionInput
	next  func() ([]uint32, bool)
	stop  func()
	done  bool
}

func (r *sessionReader) Schema() *arrow.Schema { return r.plan.schema }

func (r *sessionReader) Next(ctx context.Context) (arrow.RecordBatch, error) {
	if r.done {
		return nil, io.EOF
	}
	if r.next == nil {
		if err := r.merge(ctx); err != nil {
			return nil, err
		}
		r.next, r.stop = iter.Pull(r.sessions())
	}
	rows, ok := r.next()
	if !ok {
		r.done = true
		return nil, io.EOF
	}
	return r.result(rows)
}

func (r *sessionReader) Close() error {
	if r.stop != nil {
		r.stop()
		r.stop = nil
	}
	r.done = true
	r.held.drop()
	return r.input.Close()
}

// sessions ranges over those to give.
func (r *sessionReader) sessions() iter.Seq[[]uint32] {
	inst := r.plan.inst
	if inst.op.mode == connector.Complete {
		return r.shard.All()
	}
	bound, ok := inst.evictBound()
	return func(yield func([]uint32) bool) {
		if !ok {
			return
		}
		for rows := range r.shard.Evict(bound) {
			inst.removed.Add(int64(len(rows)))
			if !yield(rows) {
				return
			}
		}
	}
}

func (r *sessionReader) result(rows []uint32) (_ arrow.RecordBatch, err error) {
	var columns []arrow.Array
	defer func() { releaseAll(columns) }()
	if columns, err = r.shard.Get(rows, r.plan.output...); err != nil {
		return nil, err
	}
	for i, acc := range r.shard.Accumulators() {
		a, err := physical.ResultOf(r.env.Budget, acc, rows)
		if err != nil {
			return nil, eval.Failed(r.plan.spec.Aggs[i].Expr, err)
		}
		columns = append(columns, a)
	}
	return array.NewRecordBatch(r.plan.schema, columns, int64(len(rows))), nil
}

// piece is a stored session or the bounds of new rows, of one key.
type piece struct {
	key        uint32
	start, end int64
	row        uint32 // of the state; noRow: new
	fresh      int    // of the input, if new
}

const noRow = ^uint32(0)

// pieces are the new pieces and the stored sessions of their keys, sorted by key and
// start. keys has one row a distinct key.
func (r *sessionReader) pieces(all arrow.RecordBatch) (pieces []piece, keys []arrow.Array, err error) {
	n := int(all.NumRows())
	ids := make([]uint32, n)
	distinct := 1
	if r.plan.keys > 0 {
		types := make([]arrow.DataType, r.plan.keys)
		for i := range types {
			types[i] = all.Column(i).DataType()
		}
		t, err := group.New(r.env.Mem, types, group.Options{})
		if err != nil {
			return nil, nil, err
		}
		defer t.Release()
		if err := t.Intern(all.Columns()[:r.plan.keys], ids); err != nil {
			return nil, nil, err
		}
		distinct = t.Len()
		if keys, err = t.Keys(iota32(distinct)); err != nil {
			return nil, nil, err
		}
	}
	starts, _ := instants(all.Column(r.plan.keys))
	ends, _ := instants(all.Column(r.plan.keys + 1))
	from, rows, err := r.shard.Find(keys, distinct)
	if err != nil {
		releaseAll(keys)
		return nil, nil, err
	}
	pieces = make([]piece, 0, n+len(rows))
	for i, id := range ids {
		pieces = append(pieces, piece{id, starts[i], ends[i], noRow, i})
	}
	bounds, err := r.shard.Get(rows, r.plan.keys, r.plan.keys+1)
	if err != nil {
		releaseAll(keys)
		return nil, nil, err
	}
	defer releaseAll(bounds)
	starts, _ = instants(bounds[0])
	ends, _ = instants(bounds[1])
	for id := range distinct {
		for k := from[id]; k < from[id+1]; k++ {
			pieces = append(pieces, piece{uint32(id), starts[k], ends[k], rows[k], -1})
		}
	}
	slices.SortFunc(pieces, func(a, b piece) int {
		return cmp.Or(cmp.Compare(a.key, b.key), cmp.Compare(a.start, b.start), cmp.Compare(a.end, b.end))
	})
	return pieces, keys, nil
}

func iota32(n int) []uint32 {
	out := make([]uint32, n)
	for i := range out {
		out[i] = uint32(i)
	}
	return out
}

// join merges runs of pieces that touch: the next starts at or before the end so far.
func (r *sessionReader) join(all arrow.RecordBatch, keys []arrow.Array, pieces []piece) error {
	j := sessionJoin{r: r, all: all, keys: keys}
	for len(pieces) > 0 {
		n, end := 1, pieces[0].end
		for n < len(pieces) && pieces[n].key == pieces[0].key && pieces[n].start <= end {
			end = max(end, pieces[n].end)
			n++
		}
		j.add(pieces[:n], end)
		pieces = pieces[n:]
	}
	return j.finish()
}

// sessionJoin collects what a batch does to the stored sessions, to be done column by
// column.
type sessionJoin struct {
	r    *sessionReader
	all  arrow.RecordBatch
	keys []arrow.Array

	made       []int32 // the key of each session to make
	madeStarts []int64
	madeEnds   []int64
	changed    []uint32 // rows that get other bounds
	starts     []int64
	ends       []int64
	gone       []uint32 // rows merged into others
	into       []uint32 // the row each goes into
	fresh      []int    // input rows
	freshInto  []target // where each goes
}

// target is a stored row, or the made-th session to make.
type target struct {
	row  uint32
	made int
}

// add notes one merged session.
func (j *sessionJoin) add(run []piece, end int64) {
	to := target{row: noRow, made: -1}
	for _, p := range run {
		if p.row != noRow {
			to.row = p.row
			break
		}
	}
	news := 0
	for _, p := range run {
		if p.row == noRow {
			news++
		}
	}
	if news == 0 {
		return
	}
	if to.row == noRow {
		to.made = len(j.made)
		j.made = append(j.made, int32(run[0].key))
		j.madeStarts, j.madeEnds = append(j.madeStarts, run[0].start), append(j.madeEnds, end)
	} else {
		j.changed = append(j.changed, to.row)
		j.starts, j.ends = append(j.starts, run[0].start), append(j.ends, end)
	}
	for _, p := range run {
		switch {
		case p.row == noRow:
			j.fresh, j.freshInto = append(j.fresh, p.fresh), append(j.freshInto, to)
		case p.row != to.row:
			j.gone, j.into = append(j.gone, p.row), append(j.into, to.row)
		}
	}
}

// finish makes, merges, moves and deletes.
func (j *sessionJoin) finish() error {
	r := j.r
	made, err := j.makeSessions()
	if err != nil {
		return err
	}
	for _, acc := range r.shard.Accumulators() {
		if len(j.gone) == 0 {
			break
		}
		states, err := acc.State(j.gone)
		if err != nil {
			return err
		}
		err = acc.Merge(j.into, states)
		releaseAll(states)
		if err != nil {
			return err
		}
	}
	if err := j.mergeFresh(made); err != nil {
		return err
	}
	if len(j.changed) > 0 {
		if err := j.setBounds(); err != nil {
			return err
		}
	}
	if len(j.gone) > 0 {
		if err := r.shard.Delete(j.gone); err != nil {
			return err
		}
	}
	return r.shard.Reserve()
}

// makeSessions appends the new sessions, neutral.
func (j *sessionJoin) makeSessions() ([]uint32, error) {
	if len(j.made) == 0 {
		return nil, nil
	}
	mem := j.r.env.Mem
	keys := make([]arrow.Array, 0, len(j.keys))
	defer func() { releaseAll(keys) }()
	for _, k := range j.keys {
		// Not Filter: a key may have several new sessions.
		taken, err := kernel.Take(mem, k, j.made)
		if err != nil {
			return nil, err
		}
		keys = append(keys, taken)
	}
	values := []arrow.Array{timestamps(mem, j.madeStarts), timestamps(mem, j.madeEnds)}
	defer releaseAll(values)
	rows := make([]uint32, len(j.made))
	return rows, j.r.shard.Append(keys, values, rows)
}

// mergeFresh adds the states of the input to their sessions.
func (j *sessionJoin) mergeFresh(made []uint32) error {
	r := j.r
	into := make([]uint32, len(j.fresh))
	picked := make([]int32, len(j.fresh))
	for i, t := range j.freshInto {
		into[i], picked[i] = t.row, int32(j.fresh[i])
		if t.made >= 0 {
			into[i] = made[t.made]
		}
	}
	columns := j.all.Columns()[r.plan.keys+2:]
	for i, acc := range r.shard.Accumulators() {
		n := r.plan.spec.StateColumns(i)
		states := make([]arrow.Array, n)
		for k := range states {
			taken, err := kernel.Take(r.env.Mem, columns[k], picked)
			if err != nil {
				releaseAll(states[:k])
				return err
			}
			states[k] = taken
		}
		err := acc.Merge(into, states)
		releaseAll(states)
		if err != nil {
			return eval.Failed(r.plan.spec.Aggs[i].Expr, err)
		}
		columns = columns[n:]
	}
	r.shard.Touch(into)
	return nil
}

// setBounds gives changed sessions their new bounds, and with the end their place in
// the order.
func (j *sessionJoin) setBounds() error {
	mem, shard := j.r.env.Mem, j.r.shard
	starts, ends := timestamps(mem, j.starts), timestamps(mem, j.ends)
	defer starts.Release()
	defer ends.Release()
	if err := shard.Set(j.changed, j.r.plan.keys, starts); err != nil {
		return err
	}
	return shard.Set(j.changed, j.r.plan.keys+1, ends)
}

// timestamps is a TIMESTAMP column.
func timestamps(mem memory.Allocator, micros []int64) arrow.Array {
	b := array.NewTimestampBuilder(mem, columnar.Timestamp.(*arrow.TimestampType))
	defer b.Release()
	b.Reserve(len(micros))
	for _, t := range micros {
		b.UnsafeAppend(arrow.Timestamp(t))
	}
	return b.NewArray()
}
