package stateful

import (
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
	if p.input, err = physical.NewExchange(in, keys...); err != nil {
		return nil, err
	}
	if !pl.WantsOrder() || pl.WantsOrdinal() {
		return p, nil
	}
	// The shards' rows lie between each other's.
	last := p.schema.NumFields() - 1
	arrived := &expr.Ref{Index: last, Name: p.schema.Field(last).Name, DataType: columnar.Int64}
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
		readers[i] = &dedupeReader{plan: p, input: in, shard: shards[i], env: ec.Env(), first: map[uint32]int{}}
	}
	return readers, nil
}

// dedupeReader is one shard's part of a de-duplication.
type dedupeReader struct {
	plan  *Dedupe
	input columnar.Reader
	shard *state.Shard
	env   *eval.Env

	// Keys new in this batch: their state row and the row that came first so far.
	first    map[uint32]int // state row → position in found
	found    []arrival
	batches  []arrow.RecordBatch // that found refers to
	done     bool
	given    int
	position int64
}

// arrival is a row and its place in the order of arrival.
type arrival struct {
	ordinal int64
	ref     kernel.Ref
	row     uint32 // of the state
}

func (r *dedupeReader) Schema() *arrow.Schema { return r.plan.schema }

// Position is that of the first row of the batch given last.
func (r *dedupeReader) Position() int64 { return r.position }

func (r *dedupeReader) Next(ctx context.Context) (arrow.RecordBatch, error) {
	if !r.done {
		if err := r.read(ctx); err != nil {
			return nil, err
		}
		r.done = true
	}
	if r.given == len(r.found) {
		return nil, io.EOF
	}
	to := min(r.given+columnar.DefaultBatchRows, len(r.found))
	refs := make([]kernel.Ref, 0, to-r.given)
	for _, a := range r.found[r.given:to] {
		refs = append(refs, a.ref)
	}
	r.position = r.found[r.given].ordinal
	r.given = to
	return kernel.GatherBatch(r.env.Mem, r.plan.schema, r.batches, refs)
}

func (r *dedupeReader) Close() error {
	for _, b := range r.batches {
		b.Release()
	}
	r.batches, r.found, r.done, r.given = nil, nil, true, 0
	return r.input.Close()
}

// read finds the first row of each new key, notes when keys expire, and evicts.
func (r *dedupeReader) read(ctx context.Context) error {
	for {
		b, err := r.input.Next(ctx)
		if err == io.EOF {
			break
		}
		if err != nil {
			return err
		}
		start := time.Now()
		err = r.add(b)
		b.Release()
		r.plan.inst.updateNanos.Add(int64(time.Since(start)))
		if err != nil {
			return err
		}
	}
	slices.SortFunc(r.found, func(a, b arrival) int {
		if a.ordinal < b.ordinal {
			return -1
		}
		return 1
	})
	r.plan.inst.updated.Add(int64(len(r.found)))
	if err := r.expire(); err != nil {
		return err
	}
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

// add looks at the rows of one batch.
func (r *dedupeReader) add(b arrow.RecordBatch) error {
	keys, err := r.program(b)
	if err != nil {
		return err
	}
	defer releaseAll(keys)
	n := int(b.NumRows())
	rows := make([]uint32, n)
	created, err := r.shard.Intern(keys, rows)
	if err != nil {
		return err
	}
	isNew := columnar.NewBitmap(n)
	for _, i := range created {
		isNew.Set(int(i))
	}
	ordinals := b.Column(int(b.NumCols()) - 1).(*array.Int64).Int64Values()
	used := false
	for i, row := range rows {
		a := arrival{ordinals[i], kernel.MakeRef(len(r.batches), i), row}
		at, known := r.first[row]
		switch {
		case isNew.Get(i):
			r.first[row] = len(r.found)
			r.found = append(r.found, a)
			used = true
			continue
		case known && a.ordinal < r.found[at].ordinal:
			r.found[at] = a
			used = true
		}
		r.plan.inst.duplicates.Add(1)
	}
	if used {
		b.Retain()
		r.batches = append(r.batches, b)
	}
	return nil
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

// expire notes when the new keys are forgotten: the time of their first row plus the
// delay. A row without time is never forgotten.
func (r *dedupeReader) expire() error {
	if r.plan.time < 0 || len(r.found) == 0 {
		return nil
	}
	rows := make([]uint32, len(r.found))
	b := array.NewTimestampBuilder(r.env.Mem, columnar.Timestamp.(*arrow.TimestampType))
	defer b.Release()
	for i, a := range r.found {
		rows[i] = a.row
		t := r.batches[a.ref.Batch()].Column(r.plan.time).(*array.Timestamp)
		if t.IsNull(a.ref.Row()) {
			b.AppendNull()
		} else {
			b.Append(t.Value(a.ref.Row()) + arrow.Timestamp(r.plan.delay))
		}
	}
	times := b.NewArray()
	defer times.Release()
	return r.shard.Set(rows, len(r.plan.inst.op.spec.Tables[0].Key), times)
}
