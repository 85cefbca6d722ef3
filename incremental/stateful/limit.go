package stateful

import (
	"context"
	"fmt"
	"io"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/memory"

	"github.com/tidemill/tidemill/columnar"
	"github.com/tidemill/tidemill/incremental/state"
	"github.com/tidemill/tidemill/logical"
	"github.com/tidemill/tidemill/logical/connector"
	"github.com/tidemill/tidemill/physical"
)

// countTable has one row: how many rows a LIMIT has passed on in the query's life.
const countTable = "count"

func describeLimit(l *logical.Limit, mode connector.OutputMode) *Operator {
	return &Operator{
		node: l, name: l.State, kind: "globalLimit", mode: mode, text: fmt.Sprintf("limit %d", l.Count),
		spec: state.Spec{Operator: l.State, Tables: []state.TableSchema{{
			Name: countTable, Values: []arrow.Field{columnar.Field("passed", columnar.Int64)}, Order: state.Order{By: state.ByKey},
		}}},
	}
}

// planLimit passes the first rows of the query's life on, in order of arrival.
func planLimit(pl *physical.Planner, l *logical.Limit, inst *Instance) (physical.Plan, error) {
	in, err := pl.PlanOrdered(l.Input)
	if err != nil {
		return nil, err
	}
	return &GlobalLimit{input: in, count: l.Count, inst: inst}, nil
}

// GlobalLimit passes on rows, in order, until count have passed in the query's life. The
// rest of the input is read and ignored.
type GlobalLimit struct {
	input physical.Plan
	count int64
	inst  *Instance
}

// Schema is the input's.
func (p *GlobalLimit) Schema() *arrow.Schema { return p.input.Schema() }

// Children is the input.
func (p *GlobalLimit) Children() []physical.Plan { return []physical.Plan{p.input} }

// WithChildren limits another input.
func (p *GlobalLimit) WithChildren(c []physical.Plan) physical.Plan {
	n := *p
	n.input = c[0]
	return &n
}

func (p *GlobalLimit) String() string {
	return fmt.Sprintf("GlobalLimit %s count=%d", p.inst.op.name, p.count)
}

// Open makes one Reader.
func (p *GlobalLimit) Open(ctx context.Context, ec *physical.ExecContext, _ int) ([]columnar.Reader, error) {
	in, err := physical.OpenOne(ctx, ec, p.input)
	if err != nil {
		return nil, err
	}
	r := &limitReader{Reader: in, plan: p, mem: ec.Mem, shard: p.inst.store.Table(countTable).Shards()[0]}
	if err := r.restore(); err != nil {
		_ = in.Close()
		return nil, err
	}
	return []columnar.Reader{r}, nil
}

type limitReader struct {
	columnar.Reader
	plan   *GlobalLimit
	mem    memory.Allocator
	shard  *state.Shard
	row    [1]uint32
	passed int64
	before int64 // passed, when the batch began; -1 if nothing was stored
	saved  bool
}

// restore reads how many rows have passed.
func (r *limitReader) restore() error {
	if _, err := r.shard.Intern(nil, r.row[:]); err != nil {
		return err
	}
	columns, err := r.shard.Get(r.row[:], 0)
	if err != nil {
		return err
	}
	defer releaseAll(columns)
	r.before = -1
	if columns[0].IsValid(0) {
		r.passed = columns[0].(*array.Int64).Value(0)
		r.before = r.passed
	}
	return nil
}

func (r *limitReader) Next(ctx context.Context) (arrow.RecordBatch, error) {
	for {
		b, err := r.Reader.Next(ctx)
		if err == io.EOF && !r.saved {
			r.saved = true
			if err := r.save(); err != nil {
				return nil, err
			}
		}
		if err != nil {
			return nil, err
		}
		left := r.plan.count - r.passed
		if left >= b.NumRows() {
			r.passed += b.NumRows()
			return b, nil
		}
		if left > 0 {
			r.passed += left
			part := b.NewSlice(0, left)
			b.Release()
			return part, nil
		}
		b.Release()
	}
}

// save writes how many rows have passed, if that changed.
func (r *limitReader) save() error {
	if r.passed == r.before {
		return nil
	}
	b := array.NewInt64Builder(r.mem)
	defer b.Release()
	b.Append(r.passed)
	a := b.NewArray()
	defer a.Release()
	return r.shard.Set(r.row[:], 0, a)
}
