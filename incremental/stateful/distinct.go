package stateful

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"

	"github.com/tidemill/tidemill/columnar"
	"github.com/tidemill/tidemill/columnar/kernel"
	"github.com/tidemill/tidemill/incremental/state"
	"github.com/tidemill/tidemill/logical"
	"github.com/tidemill/tidemill/logical/connector"
	"github.com/tidemill/tidemill/logical/expr"
	"github.com/tidemill/tidemill/physical"
	"github.com/tidemill/tidemill/physical/eval"
)

// keysTable holds the keys a de-duplication has seen.
const keysTable = "keys"

// describeDistinct keeps the keys. They are forgotten when the event time among them
// has passed, or, within the watermark, at the first row's time plus the delay.
func describeDistinct(d *logical.Distinct, mode connector.OutputMode) (*Operator, error) {
	o := &Operator{node: d, name: d.State, kind: "dedupe", mode: mode}
	t := state.TableSchema{Name: keysTable, Order: state.Order{By: state.ByKey}}
	marks := logical.EventTimes(d.Input)
	var names, text []string
	for i, e := range d.On {
		names = append(names, Unqualified(e))
		text = append(text, Unqualified(e)+" "+columnar.TypeName(e.Type()))
		if c, ok := e.(*expr.Column); ok && !d.WithinWatermark {
			if m, ok := marks[c.ID]; ok && !m.IsOpen {
				t.Order = state.Order{By: state.ByKeyColumn, Column: i}
				o.evicted, o.evictOffset = true, m.Offset
			}
		}
	}
	for i, n := range uniqueNames(names) {
		t.Key = append(t.Key, columnar.Field(n, d.On[i].Type()))
	}
	o.text = "keys=[" + strings.Join(text, ", ") + "]"
	if d.WithinWatermark {
		o.kind = "dedupeWithinWatermark"
		t.Values = []arrow.Field{columnar.Field(uniqueNames(append(names, "expires"))[len(names)], columnar.Timestamp)}
		t.Order = state.Order{By: state.ByValueColumn}
		o.evicted = true
	}
	o.spec = state.Spec{Operator: o.name, Tables: []state.TableSchema{t}}
	return o, nil
}

// eventTimeOf is the column of n by which its rows are judged late, and its mark: the
// time itself rather than a window's bound, an end rather than a start.
func eventTimeOf(n logical.Node) (position int, mark logical.EventTime, ok bool) {
	marks := logical.EventTimes(n)
	for i, c := range n.Schema().Columns {
		m, found := marks[c.ID]
		if found && !m.IsOpen && (!ok || m.Kind < mark.Kind || m.Kind == mark.Kind && m.Offset < mark.Offset) {
			position, mark, ok = i, m, true
		}
	}
	return position, mark, ok
}

// planDistinct plans a de-duplication: [LateFilter] > Exchange by the keys > Dedupe.
func planDistinct(pl *physical.Planner, d *logical.Distinct, inst *Instance) (physical.Plan, error) {
	input := d.Input
	position, mark, judged := eventTimeOf(input)
	if judged {
		input = inst.traced(input)
	}
	in, err := pl.PlanOrdinal(input)
	if err != nil {
		return nil, err
	}
	p := &Dedupe{inst: inst, time: -1}
	if judged {
		c := d.Input.Schema().Columns[position]
		ref := &expr.Ref{Index: position, Name: c.Name, DataType: c.DataType, Null: true}
		if in, err = lateFilter(in, ref, mark.Offset, inst, expands(d.Input)); err != nil {
			return nil, err
		}
		if d.WithinWatermark {
			p.time, p.delay = position, mark.Delay.Microseconds()+mark.Offset
		}
	}
	p.schema = in.Schema()
	if d.WithinWatermark && p.time < 0 {
		return nil, fmt.Errorf("bug: %s has no event time", d)
	}
	keys, err := physical.BindAll(d.On, d.Input.Schema())
	if err != nil {
		return nil, err
	}
	if p.program, err = eval.Compile(in.Schema(), keys...); err != nil {
		return nil, err
	}
	if mixesRows(in) {
		if in, err = inArrivalOrder(in); err != nil {
			return nil, err
		}
	}
	x, err := physical.NewExchange(in, keys...)
	if err != nil {
		return nil, err
	}
	x.Ordered = true
	p.input = x
	if !pl.WantsOrder() || pl.WantsOrdinal() {
		return p, nil
	}
	return inArrivalOrder(p)
}

// mixesRows says whether the rows of p come from the shards of a de-duplication, which lie
// between each other's.
func mixesRows(p physical.Plan) bool {
	switch p.(type) {
	case *Dedupe:
		return true
	case *physical.Number, *physical.Sort:
		return false
	}
	return slices.ContainsFunc(p.Children(), mixesRows)
}

// inArrivalOrder sorts rows by their ordinal, the last column.
func inArrivalOrder(p physical.Plan) (physical.Plan, error) {
	last := p.Schema().NumFields() - 1
	arrived := &expr.Ref{Index: last, Name: p.Schema().Field(last).Name, DataType: columnar.Int64}
	return physical.NewSort(p, []logical.SortKey{{Expr: arrived}})
}

// Dedupe gives the first row, in order of arrival, of every key not seen before. Each
// Reader owns a shard of the keys.
type Dedupe struct {
	input   physical.Plan
	schema  *arrow.Schema // with the ordinal
	program *eval.Program // the keys
	time    int           // event-time column, within the watermark; else -1
	delay   int64
	inst    *Instance
}

// Schema is the input's.
func (p *Dedupe) Schema() *arrow.Schema { return p.schema }

// Children is the input.
func (p *Dedupe) Children() []physical.Plan { return []physical.Plan{p.input} }

// WithChildren returns p: its input is part of it.
func (p *Dedupe) WithChildren([]physical.Plan) physical.Plan { return p }

func (p *Dedupe) String() string { return "Dedupe " + p.inst.op.name }

// Open makes one Reader a shard.
func (p *Dedupe) Open(ctx context.Context, ec *physical.ExecContext, _ int) ([]columnar.Reader, error) {
	shards := p.inst.store.Table(keysTable).Shards()
	inputs, err := physical.Open(ctx, ec, p.input, len(shards))
	if err != nil {
		return nil, err
	}
	readers := make([]columnar.Reader, len(shards))
	for i, in := range inputs {
		readers[i] = &dedupeReader{plan: p, input: in, shard: shards[i], env: ec.Env()}
	}
	return readers, nil
}

// dedupeReader is one shard's part of a de-duplication. Its rows come in the order of arrival,
// so that the first it meets of a key is the one to give, and nothing need be kept of them.
type dedupeReader struct {
	plan     *Dedupe
	input    columnar.Reader
	shard    *state.Shard
	env      *eval.Env
	rows     []uint32
	done     bool
	last     int64 // the ordinal of the last row met
	position int64
}

func (r *dedupeReader) Schema() *arrow.Schema { return r.plan.schema }

// Position is that of the first row of the batch given last.
func (r *dedupeReader) Position() int64 { return r.position }

func (r *dedupeReader) Next(ctx context.Context) (arrow.RecordBatch, error) {
	for !r.done {
		b, err := r.input.Next(ctx)
		if err == io.EOF {
			r.done = true
			return nil, cmp.Or(r.evict(), io.EOF)
		}
		if err != nil {
			return nil, err
		}
		start := time.Now()
		fresh, err := r.add(b)
		b.Release()
		r.plan.inst.updateNanos.Add(int64(time.Since(start)))
		if fresh != nil || err != nil {
			return fresh, err
		}
	}
	return nil, io.EOF
}

func (r *dedupeReader) Close() error {
	r.done = true
	return r.input.Close()
}

// evict forgets the keys that the watermark has passed.
func (r *dedupeReader) evict() error {
	bound, ok := r.plan.inst.evictBound()
	if !ok {
		return nil
	}
	start := time.Now()
	for rows := range r.shard.Evict(bound) {
		r.plan.inst.removed.Add(int64(len(rows)))
	}
	r.plan.inst.removeNanos.Add(int64(time.Since(start)))
	return nil
}

// add gives the rows of one batch whose keys are new, nil if there are none, and notes when
// these expire.
func (r *dedupeReader) add(b arrow.RecordBatch) (arrow.RecordBatch, error) {
	b, err := r.inOrder(b)
	if err != nil {
		return nil, err
	}
	defer b.Release()
	keys, err := r.program(b)
	if err != nil {
		return nil, err
	}
	defer releaseAll(keys)
	n := int(b.NumRows())
	r.rows = slices.Grow(r.rows[:0], n)[:n]
	created, err := r.shard.Intern(keys, r.rows)
	if err != nil {
		return nil, err
	}
	r.plan.inst.duplicates.Add(int64(n - len(created)))
	r.plan.inst.updated.Add(int64(len(created)))
	if len(created) == 0 {
		return nil, nil
	}
	positions := make([]int32, len(created))
	for k, i := range created {
		positions[k] = int32(i)
	}
	// Not Filter: a part of b would hold all of it.
	fresh, err := kernel.TakeBatch(r.env.Mem, b, positions)
	if err != nil {
		return nil, err
	}
	if err := r.expire(fresh, positions); err != nil {
		fresh.Release()
		return nil, err
	}
	r.position = ordinalsOf(fresh)[0]
	return fresh, nil
}

// inOrder is b, retained, or its rows in the order of arrival: those that a window makes of a
// batch may lie between each other.
func (r *dedupeReader) inOrder(b arrow.RecordBatch) (arrow.RecordBatch, error) {
	ordinals := ordinalsOf(b)
	first := slices.Min(ordinals)
	if first < r.last {
		return nil, fmt.Errorf("bug: row %d of the de-duplication %s came after row %d", first, r.plan.inst.op.name, r.last)
	}
	r.last = slices.Max(ordinals)
	if slices.IsSorted(ordinals) {
		b.Retain()
		return b, nil
	}
	rows := make([]int32, len(ordinals))
	for i := range rows {
		rows[i] = int32(i)
	}
	slices.SortStableFunc(rows, func(x, y int32) int { return cmp.Compare(ordinals[x], ordinals[y]) })
	return kernel.TakeBatch(r.env.Mem, b, rows)
}

// program computes the keys, plain.
func (r *dedupeReader) program(b arrow.RecordBatch) ([]arrow.Array, error) {
	r.env.Begin(b)
	keys, err := r.plan.program.EvalColumns(r.env, b)
	if err != nil {
		return nil, err
	}
	for i, k := range keys {
		keys[i] = columnar.PlainColumn(r.env.Mem, k)
		k.Release()
	}
	return keys, nil
}

// expire notes when new keys are forgotten, which are at positions of the batch: the time of
// their row plus the delay. A row without time is never forgotten.
func (r *dedupeReader) expire(fresh arrow.RecordBatch, positions []int32) error {
	if r.plan.time < 0 {
		return nil
	}
	rows := make([]uint32, len(positions))
	b := array.NewTimestampBuilder(r.env.Mem, columnar.Timestamp.(*arrow.TimestampType))
	defer b.Release()
	t := fresh.Column(r.plan.time).(*array.Timestamp)
	for i, at := range positions {
		rows[i] = r.rows[at]
		if t.IsNull(i) {
			b.AppendNull()
		} else {
			b.Append(t.Value(i) + arrow.Timestamp(r.plan.delay))
		}
	}
	times := b.NewArray()
	defer times.Release()
	return r.shard.Set(rows, len(r.plan.inst.op.spec.Tables[0].Key), times)
}
