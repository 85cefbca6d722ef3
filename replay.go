package tidemill

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"

	"github.com/tidemill/tidemill/columnar"
	"github.com/tidemill/tidemill/formats/callback"
	"github.com/tidemill/tidemill/incremental"
	"github.com/tidemill/tidemill/logical"
	"github.com/tidemill/tidemill/logical/connector"
	"github.com/tidemill/tidemill/physical"
)

// ReplayOptions say what is replayed.
type ReplayOptions struct {
	// Query is the name of the query; "" is the only one of the script.
	Query string
	Batch int64
	// Operators keeps the rows of every operator, not only those the sink was given.
	Operators bool
}

// Replayed is one batch that ran again. Release it once.
type Replayed struct {
	Query string
	// Rows are those the sink was given.
	Rows *Rows
	// Operators are those of the plan from the top down, if they were asked for.
	Operators []OperatorRows
}

// OperatorRows are the rows one operator gave to the one above.
type OperatorRows struct {
	Operator string // as EXPLAIN shows it
	Depth    int    // how far below the top
	// Rows is nil for an operator that is run as part of the one above.
	Rows *Rows
}

// Release gives the memory back.
func (r *Replayed) Release() {
	if r == nil {
		return
	}
	r.Rows.Release()
	for _, o := range r.Operators {
		if o.Rows != nil {
			o.Rows.Release()
		}
	}
}

// Replay runs one logged batch of a query alone, against the state that the batch before
// it left, as long as that is kept. It writes nothing, and may be called while the query
// runs.
func (sc *Script) Replay(ctx context.Context, o ReplayOptions) (_ *Replayed, err error) {
	if err := sc.made(ctx); err != nil {
		return nil, err
	}
	in, err := sc.choose(o.Query)
	if err != nil {
		return nil, err
	}
	l, err := sc.logged(ctx, in)
	if err != nil {
		return nil, err
	}
	if o.Batch < 0 || o.Batch >= int64(len(l.batches)) {
		return nil, logical.Usagef("query %s has no batch %d; %s", in.name, o.Batch, l.replayable())
	}
	last, ok, err := l.commitBefore(o.Batch)
	if err != nil {
		return nil, err
	}
	if !ok {
		return nil, logical.Usagef("the state before batch %d of query %s is not kept; %s", o.Batch, in.name, l.replayable())
	}
	fsys, err := l.overlay(o.Batch)
	if err != nil {
		return nil, err
	}
	_, cfg, err := l.config(ctx, sc.on(fsys))
	if err != nil {
		return nil, err
	}
	w := &rowKeeper{}
	cfg.Sink, cfg.KeepLate, cfg.KeepBad = w.open, false, false
	r, err := incremental.OpenReplay(ctx, cfg, last)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, r.Close()) }()
	entry := &l.batches[o.Batch].entry
	lost, err := r.Lost(ctx, entry, &l.batches[len(l.batches)-1].entry)
	if err != nil {
		return nil, err
	}
	if len(lost) > 0 {
		return nil, &BatchError{Query: in.name, Batch: o.Batch, Err: fmt.Errorf("%s; it cannot run again without it", lostText(lost))}
	}
	if o.Operators {
		r.Observe(w.planned, w.observe)
	}
	if _, err := r.Run(ctx, entry); err != nil {
		w.release()
		return nil, err
	}
	return w.replayed(in.name), nil
}

// choose finds the query of that name.
func (sc *Script) choose(name string) (*insert, error) {
	var names []string
	for _, in := range sc.inserts {
		if strings.EqualFold(in.name, name) || name == "" && len(sc.inserts) == 1 {
			return in, nil
		}
		names = append(names, in.name)
	}
	if name == "" {
		return nil, logical.Usagef("%s has %d queries; name one with --query: %s", sc.file, len(names), strings.Join(names, ", "))
	}
	return nil, logical.Usagef("%s has no query %q%s", sc.file, name, columnar.DidYouMean(name, names))
}

// replayable says which batches can be replayed, as far as the checkpoint is concerned.
func (l *logged) replayable() string {
	var ranges []string
	for id := int64(0); id < int64(len(l.batches)); id++ {
		from := id
		for ; id < int64(len(l.batches)); id++ {
			if _, ok, err := l.commitBefore(id); err != nil || !ok {
				break
			}
		}
		switch {
		case id-1 == from:
			ranges = append(ranges, fmt.Sprint(from))
		case id > from:
			ranges = append(ranges, fmt.Sprintf("%d to %d", from, id-1))
		}
	}
	if len(ranges) == 0 {
		return "there is none yet"
	}
	return "batches that can be replayed: " + strings.Join(ranges, ", ")
}

// rowKeeper keeps the rows of a batch, as the sink and as the operators are given them.
type rowKeeper struct {
	schema  *arrow.Schema
	batches []arrow.RecordBatch

	mu        sync.Mutex
	plan      physical.Plan
	operators map[physical.Plan][]arrow.RecordBatch
}

// open is the sink of a replay.
func (w *rowKeeper) open(context.Context, incremental.Output) (connector.Sink, error) {
	return callback.New(func(ctx context.Context, _ int64, rows columnar.Reader) error {
		w.schema = rows.Schema()
		var err error
		w.batches, err = columnar.Drain(ctx, rows)
		return err
	}), nil
}

// planned begins anew: a batch that failed on I/O runs again.
func (w *rowKeeper) planned(p physical.Plan) {
	w.releaseOperators()
	w.plan, w.operators = p, map[physical.Plan][]arrow.RecordBatch{}
}

func (w *rowKeeper) observe(p physical.Plan, b arrow.RecordBatch) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if b == nil {
		w.operators[p] = []arrow.RecordBatch{}
		return
	}
	b.Retain()
	w.operators[p] = append(w.operators[p], b)
}

func (w *rowKeeper) releaseOperators() {
	for _, batches := range w.operators {
		for _, b := range batches {
			b.Release()
		}
	}
}

func (w *rowKeeper) release() {
	w.releaseOperators()
	for _, b := range w.batches {
		b.Release()
	}
}

// replayed hands the rows over.
func (w *rowKeeper) replayed(query string) *Replayed {
	r := &Replayed{Query: query, Rows: NewRows(w.schema, w.batches)}
	var walk func(p physical.Plan, depth int)
	walk = func(p physical.Plan, depth int) {
		name, _, _ := strings.Cut(physical.Explain(p), "\n")
		o := OperatorRows{Operator: name, Depth: depth}
		if batches, opened := w.operators[p]; opened {
			o.Rows = shown(p.Schema(), batches)
		}
		r.Operators = append(r.Operators, o)
		for _, c := range p.Children() {
			walk(c, depth+1)
		}
	}
	if w.plan != nil {
		walk(w.plan, 0)
	}
	w.operators = nil
	return r
}

// shown is batches without their hidden columns, taken over.
func shown(schema *arrow.Schema, batches []arrow.RecordBatch) *Rows {
	var keep []int
	var fields []arrow.Field
	for i, f := range schema.Fields() {
		if f.Name != columnar.OrdinalName && !strings.HasPrefix(f.Name, "\x00") {
			keep, fields = append(keep, i), append(fields, f)
		}
	}
	plain := arrow.NewSchema(fields, nil)
	for i, b := range batches {
		columns := make([]arrow.Array, len(keep))
		for k, c := range keep {
			columns[k] = b.Column(c)
		}
		batches[i] = array.NewRecordBatch(schemaOf(fields, columns), columns, b.NumRows())
		b.Release()
	}
	return NewRows(plain, batches)
}

// schemaOf is the fields with the types the columns have: one may be encoded.
func schemaOf(fields []arrow.Field, columns []arrow.Array) *arrow.Schema {
	own := slices.Clone(fields)
	for i := range own {
		own[i].Type = columns[i].DataType()
	}
	return arrow.NewSchema(own, nil)
}
