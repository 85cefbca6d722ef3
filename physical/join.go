package physical

import (
	"context"
	"fmt"
	"math"
	"sync"
	"sync/atomic"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/memory"

	"github.com/tidemill/tidemill/columnar"
	"github.com/tidemill/tidemill/columnar/group"
	"github.com/tidemill/tidemill/columnar/kernel"
	"github.com/tidemill/tidemill/logical"
	"github.com/tidemill/tidemill/physical/eval"
)

// sides says what a join gives beside its pairs, seen from the side whose rows stream
// (probe) and the one that is kept (build).
type sides struct {
	pairs          bool // pairs themselves
	probeUnmatched bool
	buildUnmatched bool
	probeMatched   bool // semi join, the left side streaming
	buildMatched   bool // semi join, the left side kept
	probeOnly      bool // only columns of the probe side
	buildOnly      bool
}

func sidesOf(kind logical.JoinKind, buildLeft bool) sides {
	switch kind {
	case logical.InnerJoin, logical.CrossJoin:
		return sides{pairs: true}
	case logical.LeftJoin:
		return sides{pairs: true, probeUnmatched: !buildLeft, buildUnmatched: buildLeft}
	case logical.RightJoin:
		return sides{pairs: true, probeUnmatched: buildLeft, buildUnmatched: !buildLeft}
	case logical.FullJoin:
		return sides{pairs: true, probeUnmatched: true, buildUnmatched: true}
	case logical.SemiJoin:
		return sides{probeMatched: !buildLeft, buildMatched: buildLeft, probeOnly: !buildLeft, buildOnly: buildLeft}
	case logical.AntiJoin:
		return sides{probeUnmatched: !buildLeft, buildUnmatched: buildLeft, probeOnly: !buildLeft, buildOnly: buildLeft}
	}
	panic(fmt.Sprintf("bug: join kind %d", kind))
}

// joinSchema is the output of a join.
func joinSchema(kind logical.JoinKind, left, right *arrow.Schema) *arrow.Schema {
	if kind == logical.SemiJoin || kind == logical.AntiJoin {
		return left
	}
	return joined(left, right)
}

// buildSide is the kept rows of a join, which all its Readers share.
type buildSide struct {
	mem    memory.Allocator
	store  *rowStore
	table  *group.RowTable // nil in a loop join
	finish func() error    // called once all rows are there; nil: the table is built
	also   func()          // called with the release; nil: nothing
	track  bool            // matches are wanted
	open   atomic.Int64    // Readers not closed
	active atomic.Int64    // Readers whose probe side has not ended

	mu      sync.Mutex
	built   bool
	err     error
	matched *columnar.Bitmap // of all Readers that have ended; under mu
	input   columnar.Reader
}

// prepare builds once; fill adds the keys of a batch.
func (s *buildSide) prepare(ctx context.Context, fill func(b arrow.RecordBatch) error) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.built {
		return s.err
	}
	s.built = true
	s.err = s.build(ctx, fill)
	return s.err
}

func (s *buildSide) build(ctx context.Context, fill func(b arrow.RecordBatch) error) error {
	for b, err := range columnar.All(ctx, s.input) {
		if err != nil {
			return err
		}
		if s.store.rows()+int(b.NumRows()) > math.MaxInt32 {
			return fmt.Errorf("a join can keep at most %d rows of one side; exchange the sides or filter them first", math.MaxInt32)
		}
		if err := s.store.add(b); err != nil {
			return err
		}
		if fill != nil {
			if err := fill(b); err != nil {
				return err
			}
		}
	}
	if err := s.store.seal(); err != nil {
		return err
	}
	switch {
	case s.finish != nil:
		if err := s.finish(); err != nil {
			return err
		}
	case s.table != nil:
		s.table.Build()
	}
	if s.track {
		s.matched = columnar.NewBitmap(s.store.rows())
	}
	return s.input.Close()
}

// probeEnded adds the matches of a Reader that is done. The last one gets the rows
// that matched or did not, to give them.
func (s *buildSide) probeEnded(mine *columnar.Bitmap, matched bool) []int32 {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.matched != nil && mine != nil {
		s.matched.Or(mine)
	}
	if s.active.Add(-1) > 0 || s.matched == nil {
		return nil
	}
	if matched {
		return s.matched.Indices(nil)
	}
	rest := columnar.NewBitmap(s.store.rows())
	rest.SetAll()
	rest.AndNot(s.matched)
	return rest.Indices(nil)
}

func (s *buildSide) close() error {
	if s.open.Add(-1) > 0 {
		return nil
	}
	s.store.release()
	if s.table != nil {
		s.table.Release()
	}
	if s.also != nil {
		s.also()
	}
	return s.input.Close()
}

// joinOutput puts pairs of probe and build rows together.
type joinOutput struct {
	schema    *arrow.Schema
	pairs     *arrow.Schema // all columns of both sides, left first
	build     *buildSide
	buildLeft bool
	sides     sides
	residual  *eval.Filter // over pairs; nil: none
	env       *eval.Env
	rows      []int32
}

// pair is the columns of both sides for pairs of rows, left first; -1 is no row.
func (o *joinOutput) pair(b arrow.RecordBatch, probe, build []int32) (arrow.RecordBatch, error) {
	left, err := takeColumns(o.env.Mem, b, probe)
	if err != nil {
		return nil, err
	}
	right, err := o.build.store.columns(build)
	if err != nil {
		releaseAll(left)
		return nil, err
	}
	if o.buildLeft {
		left, right = right, left
	}
	return takeBatch(o.pairs, append(left, right...), int64(len(probe))), nil
}

// holds reduces pairs to those for which the residual condition is true. With want it
// also returns their batch, the caller's; where rows without a pair come between them, only
// if it is all of the pairs.
func (o *joinOutput) holds(b arrow.RecordBatch, probe, build []int32, want bool) ([]int32, []int32, arrow.RecordBatch, error) {
	if o.residual == nil && !want || len(probe) == 0 {
		return probe, build, nil, nil
	}
	pairs, err := o.pair(b, probe, build)
	if err != nil || o.residual == nil {
		return probe, build, pairs, err
	}
	defer pairs.Release()
	o.env.Begin(pairs)
	rows, all, err := o.residual.Select(o.env, pairs, o.rows[:0])
	if err != nil {
		return nil, nil, nil, err
	}
	if all {
		if want {
			pairs.Retain()
			return probe, build, pairs, nil
		}
		return probe, build, nil, nil
	}
	if rows != nil {
		o.rows = rows
	}
	probe, build = pickRows(probe, rows), pickRows(build, rows)
	if !want || len(rows) == 0 || o.sides.probeUnmatched {
		return probe, build, nil, nil
	}
	return probe, build, kernel.FilterBatch(o.env.Mem, pairs, rows), nil
}

// pickRows is list at rows, in place.
func pickRows(list, rows []int32) []int32 {
	for i, r := range rows {
		list[i] = list[r] // rows ascend: nothing is overwritten before it is read
	}
	return list[:len(rows)]
}

// unprobed is the columns of build rows alone, in a join that gives only those, or
// with nulls for the probe side.
func (o *joinOutput) unprobed(rows []int32, probeSchema *arrow.Schema) (arrow.RecordBatch, error) {
	columns, err := o.build.store.columns(rows)
	if err != nil {
		return nil, err
	}
	if o.sides.buildOnly {
		return takeBatch(o.schema, columns, int64(len(rows))), nil
	}
	var nulls []arrow.Array
	for _, f := range probeSchema.Fields() {
		nulls = append(nulls, columnar.Nulls(o.env.Mem, f.Type, len(rows)))
	}
	if o.buildLeft {
		return takeBatch(o.schema, append(columns, nulls...), int64(len(rows))), nil
	}
	return takeBatch(o.schema, append(nulls, columns...), int64(len(rows))), nil
}
