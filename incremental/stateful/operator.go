package stateful

import (
	"context"
	"fmt"
	"strings"
	"sync/atomic"
	"time"

	"github.com/apache/arrow-go/v18/arrow"

	"github.com/tidemill/tidemill/checkpoint"
	"github.com/tidemill/tidemill/columnar"
	"github.com/tidemill/tidemill/incremental/state"
	"github.com/tidemill/tidemill/logical"
	"github.com/tidemill/tidemill/logical/connector"
	"github.com/tidemill/tidemill/logical/expr"
	"github.com/tidemill/tidemill/physical"
)

// Watermarks are those of one batch, microseconds since the epoch; nil is none.
type Watermarks struct {
	Late  *int64 // rows at or before it are late: the watermark of the batch before
	Evict *int64 // state at or before it is removed: the watermark of this batch
}

// Operator is a stateful node of a query. It is immutable, but for the memory it keeps.
type Operator struct {
	node   logical.Node
	name   string
	kind   string // Spark's operatorName
	text   string // what the state means, for people; the fingerprint is taken of it
	former string // the text that earlier engines gave it; "" is this one
	// reads is what the state is made of.
	reads *checkpoint.Reads
	mode  connector.OutputMode
	spec  state.Spec
	join  *joinState // of a join of streams
	// partials are tables of an aggregate, kept from batch to batch; nil for others.
	partials *physical.Partials
	// evicted says that the watermark removes rows of the state: those whose order
	// column plus evictOffset is at or before it.
	evicted     bool
	evictOffset int64 // microseconds
}

// Describe says what a node with a State name keeps, in a form of checkpoint.Reads. Nodes
// that are not supported on streams are an *logical.UnsupportedError.
func Describe(n logical.Node, mode connector.OutputMode, form int) (*Operator, error) {
	o, err := describe(n, mode, form)
	if err == nil {
		o.text += windowsBelow(n)
		if o.former != "" {
			o.former += windowsBelow(n)
		}
		o.reads = readsOf(n, form)
	}
	return o, err
}

// windowsBelow tells the shapes of the event-time windows between a node and the
// stateful ones below it: they are part of what its keys mean.
func windowsBelow(n logical.Node) string {
	text := ""
	logical.Walk(n, func(x logical.Node) bool {
		switch w := x.(type) {
		case *logical.Window:
			text += " over " + unqualifiedWindow(w)
		case *logical.Aggregate, *logical.Distinct, *logical.Join, *logical.Limit, *logical.MapGroups:
			return x == n
		}
		return true
	})
	return text
}

// unqualifiedWindow prints a window without table names.
func unqualifiedWindow(w *logical.Window) string {
	plain := *w
	plain.Time = &expr.Name{Name: Unqualified(w.Time)}
	if w.IsSession() {
		plain.Spec.Gap = &expr.Name{Name: Unqualified(w.Spec.Gap)}
	}
	return plain.String()
}

func describe(n logical.Node, mode connector.OutputMode, form int) (*Operator, error) {
	switch x := n.(type) {
	case *logical.Aggregate:
		return describeAggregate(x, mode)
	case *logical.Distinct:
		return describeDistinct(x, mode)
	case *logical.Limit:
		return describeLimit(x, mode), nil
	case *logical.Join:
		return describeJoin(x, mode, form)
	case *logical.MapGroups:
		return describeGroups(x, mode)
	}
	return nil, &logical.UnsupportedError{What: n.String() + " on a stream"}
}

// PlanNode plans a node with state for one batch. n is the operator's node as the
// optimizer left it.
func PlanNode(pl *physical.Planner, n logical.Node, inst *Instance) (physical.Plan, error) {
	switch x := n.(type) {
	case *logical.Aggregate:
		p, err := planAggregate(pl, x, inst)
		if err != nil || !pl.WantsOrder() {
			return p, err
		}
		return physical.InKeyOrder(x, p)
	case *logical.Distinct:
		return planDistinct(pl, x, inst)
	case *logical.Limit:
		return planLimit(pl, x, inst)
	case *logical.Join:
		return planJoin(pl, inst.tracedJoin(x), inst)
	case *logical.MapGroups:
		return planGroups(pl, x, inst)
	}
	return nil, fmt.Errorf("bug: %s keeps no state", n)
}

// Release gives up the memory kept for the next batch.
func (o *Operator) Release() {
	if o.partials != nil {
		o.partials.Release()
	}
}

// Name is the stable name.
func (o *Operator) Name() string { return o.name }

// Node is the logical node.
func (o *Operator) Node() logical.Node { return o.node }

// Evicts says whether a watermark that moves has an effect: rows to emit or to forget.
func (o *Operator) Evicts() bool { return o.evicted || groupTime(o.node) == logical.EventTimers }

// Checkpoint describes the operator for plan.json.
func (o *Operator) Checkpoint() (checkpoint.Operator, error) {
	c := checkpoint.Operator{
		Name: o.name, Kind: o.kind, Text: o.text, Former: o.former, Fingerprint: checkpoint.HashBytes([]byte(o.kind + " " + o.text)),
		Reads: o.reads, Variables: groupVariables(o.node),
	}
	for _, t := range o.spec.Tables {
		values, err := t.StateFields()
		if err != nil {
			return c, err
		}
		c.Tables = append(c.Tables, checkpoint.StateTable{
			Name: t.Name, Key: fields(t.Key), Value: append(fields(t.Values), fields(values)...),
		})
	}
	return c, nil
}

func fields(list []arrow.Field) []checkpoint.Field {
	out := make([]checkpoint.Field, len(list))
	for i, f := range list {
		out[i] = checkpoint.Field{Name: f.Name, Type: columnar.TypeName(f.Type), Nullable: true}
	}
	return out
}

// Open opens the operator's state for the batch that follows last.
func (o *Operator) Open(ctx context.Context, p *state.Provider, last *checkpoint.CommitEntry, w Watermarks) (*Instance, error) {
	files, _ := last.StateOf(o.name)
	store, err := p.Open(ctx, o.spec, files)
	if err != nil {
		return nil, err
	}
	return &Instance{op: o, store: store, watermarks: w}, nil
}

// Unopened is an instance without state, for EXPLAIN.
func (o *Operator) Unopened() *Instance { return &Instance{op: o} }

// Instance is an operator in one batch.
type Instance struct {
	op         *Operator
	store      *state.Store
	watermarks Watermarks

	late, updated, removed, duplicates atomic.Int64
	gapless                            atomic.Int64 // rows that a session window had no gap for
	updateNanos, removeNanos           atomic.Int64
	commitTime                         time.Duration

	gate       chan struct{} // closed once the state may be used; nil: from the start
	lateKeeper *lateKeeper   // nil: late rows are not kept
	kept       []*LateRows   // of each LateFilter
}

// Metrics are the counters of one batch.
type Metrics struct {
	Name, Kind                          string
	Total, Updated, Removed, Late       int64
	Bytes                               int64
	UpdateTime, RemovalTime, CommitTime time.Duration
	Custom                              map[string]int64
}

// Operator is what the instance is of.
func (i *Instance) Operator() *Operator { return i.op }

// LateRows is the number of input rows judged late so far.
func (i *Instance) LateRows() int64 { return i.late.Load() }

// Metrics are the counters of the batch.
func (i *Instance) Metrics() Metrics {
	m := Metrics{
		Name: i.op.name, Kind: i.op.kind,
		Updated: i.updated.Load(), Removed: i.removed.Load(), Late: i.late.Load(),
		UpdateTime: time.Duration(i.updateNanos.Load()), RemovalTime: time.Duration(i.removeNanos.Load()),
		CommitTime: i.commitTime,
	}
	for _, t := range i.op.spec.Tables {
		table := i.store.Table(t.Name)
		if !i.op.isBeside(t.Name) {
			m.Total += int64(table.Len())
		}
		m.Bytes += table.Bytes()
	}
	if _, ok := i.op.node.(*logical.Distinct); ok {
		m.Custom = map[string]int64{"numDroppedDuplicateRows": i.duplicates.Load()}
	}
	if n := i.gapless.Load(); n > 0 {
		m.Custom = map[string]int64{"numRowsDroppedByGap": n}
	}
	return m
}

// Commit writes the change files of the batch and returns the files of the new version.
func (i *Instance) Commit(ctx context.Context) (checkpoint.OperatorState, error) {
	start := time.Now()
	i.evictDistinct()
	files, err := i.store.Commit(ctx)
	i.commitTime = time.Since(start)
	if err != nil {
		return files, fmt.Errorf("state of %s: %w", i.op.name, err)
	}
	return files, nil
}

// evictDistinct forgets the values of groups that were evicted.
func (i *Instance) evictDistinct() {
	bound, ok := i.evictBound()
	if !ok {
		return
	}
	for _, t := range i.op.spec.Tables {
		if !isSide(t.Name) {
			continue
		}
		for _, shard := range i.store.Table(t.Name).Shards() {
			for range shard.Evict(bound) {
				continue
			}
		}
	}
}

// evictBound is the largest value of the order column that the batch's watermark
// removes; ok is false if nothing is removed.
func (i *Instance) evictBound() (bound int64, ok bool) {
	if !i.op.evicted || i.watermarks.Evict == nil {
		return 0, false
	}
	return *i.watermarks.Evict - i.op.evictOffset, true
}

// Release forgets the instance and the late rows kept; the state stays with the
// provider.
func (i *Instance) Release() {
	for _, l := range i.kept {
		l.release()
	}
}

// uniqueNames makes the names of state columns distinct and legal.
func uniqueNames(names []string) []string {
	out := make([]string, len(names))
	used := map[string]int{}
	for i, n := range names {
		n = strings.TrimLeft(n, "_\x00")
		if n == "" {
			n = "column"
		}
		used[n]++
		if k := used[n]; k > 1 {
			n = fmt.Sprintf("%s#%d", n, k)
		}
		out[i] = n
	}
	return out
}
