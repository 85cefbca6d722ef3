package stateful

import (
	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"

	"github.com/tidemill/tidemill/columnar"
	"github.com/tidemill/tidemill/columnar/kernel"
)

// givePairs gives pairs of rows being joined and stored rows.
func (r *joinReader) givePairs(own []int32, rows []uint32) error {
	var columns []arrow.Array
	for i := range r.sides {
		some, err := r.pairColumns(i, places(len(r.sides[i].columns)), own, rows)
		if err != nil {
			releaseAll(columns)
			return err
		}
		columns = append(columns, some...)
	}
	return r.give(columns, own)
}

// giveOwn gives rows being joined alone: a semi join does.
func (r *joinReader) giveOwn(own []int32) error {
	columns, err := r.pairColumns(r.phase, places(len(r.side().columns)), own, nil)
	if err != nil {
		return err
	}
	return r.give(columns, own)
}

// giveUnmatched gives rows of b, a batch of the current side, with nulls for the other.
func (r *joinReader) giveUnmatched(b arrow.RecordBatch, rows []int32) error {
	if len(rows) == 0 {
		return nil
	}
	columns, err := r.pairColumns(r.phase, places(len(r.side().columns)), rows, nil)
	if err != nil {
		return err
	}
	return r.give(r.padded(r.phase, columns, len(rows)), rows)
}

// give makes a batch of columns, which it takes over; rows of the batch being joined
// say where they belong in the order.
func (r *joinReader) give(columns []arrow.Array, own []int32) error {
	if r.plan.ordered {
		at, err := kernel.Take(r.env.Mem, r.batch.Column(int(r.batch.NumCols())-1), own)
		if err != nil {
			releaseAll(columns)
			return err
		}
		columns = r.withOrder(columns, r.phase, at, len(own))
	}
	r.ready = append(r.ready, r.takeBatch(columns, len(own)))
	return nil
}

// giveStored gives stored rows of a side alone: a semi join does.
func (r *joinReader) giveStored(side *joinRun, rows []uint32, phase int, at arrow.Array) error {
	if len(rows) == 0 {
		return nil
	}
	b, err := r.storedBatch(side, rows, phase, at)
	if err == nil {
		r.ready = append(r.ready, b)
	}
	return err
}

// storedBatch is stored rows of a side, with nulls for the other; at, which stays the
// caller's, is a time or number by which they are ordered, nil for none.
func (r *joinReader) storedBatch(side *joinRun, rows []uint32, phase int, at arrow.Array) (arrow.RecordBatch, error) {
	columns, err := side.shard.Get(rows, side.stored...)
	if err != nil {
		return nil, err
	}
	if !r.semi() {
		columns = r.padded(r.number(side), columns, len(rows))
	}
	if r.plan.ordered {
		columns = r.withOrder(columns, phase, r.instantNumbers(at, len(rows)), len(rows))
	}
	return r.takeBatch(columns, len(rows)), nil
}

// number is leftSide or rightSide.
func (r *joinReader) number(side *joinRun) int {
	if side == &r.sides[leftSide] {
		return leftSide
	}
	return rightSide
}

// padded puts nulls for the other side beside the columns of one.
func (r *joinReader) padded(side int, columns []arrow.Array, n int) []arrow.Array {
	var nulls []arrow.Array
	for _, c := range r.sides[1-side].schema.Columns {
		nulls = append(nulls, columnar.Nulls(r.env.Mem, c.DataType, n))
	}
	if side == leftSide {
		return append(columns, nulls...)
	}
	return append(nulls, columns...)
}

// instantNumbers is a column of times as numbers, in memory of its own.
func (r *joinReader) instantNumbers(at arrow.Array, n int) arrow.Array {
	b := array.NewInt64Builder(r.env.Mem)
	defer b.Release()
	b.Reserve(n)
	if at == nil {
		for range n {
			b.UnsafeAppend(0)
		}
		return b.NewArray()
	}
	values, _ := instants(at)
	b.AppendValues(values, nil)
	return b.NewArray()
}

// withOrder appends the phase and a number to columns; it takes at over.
func (r *joinReader) withOrder(columns []arrow.Array, phase int, at arrow.Array, n int) []arrow.Array {
	b := array.NewInt64Builder(r.env.Mem)
	defer b.Release()
	b.Reserve(n)
	for range n {
		b.UnsafeAppend(int64(phase))
	}
	return append(columns, b.NewArray(), at)
}

// takeBatch makes a batch of columns, which it takes over.
func (r *joinReader) takeBatch(columns []arrow.Array, n int) arrow.RecordBatch {
	b := array.NewRecordBatch(r.plan.schema, columns, int64(n))
	releaseAll(columns)
	return b
}

// places are 0 … n-1.
func places(n int) []int {
	out := make([]int, n)
	for i := range out {
		out[i] = i
	}
	return out
}
