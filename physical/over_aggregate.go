package physical

import (
	"fmt"

	"github.com/apache/arrow-go/v18/arrow"

	"github.com/tidemill/tidemill/columnar"
	"github.com/tidemill/tidemill/columnar/function"
	"github.com/tidemill/tidemill/columnar/group"
	"github.com/tidemill/tidemill/columnar/kernel"
	"github.com/tidemill/tidemill/logical/expr"
)

// aggregate is the value of an aggregate over each row's frame.
func (w *overRows) aggregate(o *expr.Over, l overLayout) (arrow.Array, error) {
	low, high := w.frame(o, l)
	a := &overAggregate{overRows: w, agg: o.Agg}
	if l.filter >= 0 {
		a.keep = kernel.SelectTrue([]int32{}, w.columns[l.filter])
		a.filtered = true
	}
	for i, at := range l.args {
		if c, ok := o.Agg.Args[i].(*expr.Literal); ok { // some aggregates ask for a constant
			c.Value.Retain()
			a.args = append(a.args, columnar.ConstantDatum(c.Value))
			continue
		}
		w.columns[at].Retain()
		a.args = append(a.args, columnar.ColumnDatum(w.columns[at]))
	}
	if o.Agg.Signature.Overload.Ordered {
		a.args = append(a.args, columnar.ColumnDatum(ordinals(w.mem, 0, w.n, nil)))
	}
	defer func() {
		for _, d := range a.args {
			d.Release()
		}
	}()
	if o.Agg.Distinct {
		if err := a.keepFirst(len(l.args)); err != nil {
			return nil, err
		}
	}
	if o.Frame.Low.Kind == expr.UnboundedPreceding && o.Frame.High.Kind == expr.UnboundedFollowing {
		return a.overPartitions()
	}
	return a.overFrames(low, high)
}

// overAggregate is one aggregate over the rows of a window.
type overAggregate struct {
	*overRows
	agg      *expr.Agg
	args     []columnar.Datum // the ordinals last where they are wanted
	filtered bool
	keep     []int32 // rows that count, if filtered
}

// keepFirst leaves the first row of each value in a partition: all that DISTINCT sees in
// frames that begin with the partition.
func (a *overAggregate) keepFirst(args int) error {
	types := append([]arrow.DataType{columnar.Int32}, a.agg.Signature.Args...)
	table, err := group.New(a.mem, types, group.Options{Who: "window functions"})
	if err != nil {
		return err
	}
	defer table.Release()
	buf, parts := kernel.Make[int32](a.mem, a.n)
	copy(parts, a.part)
	keys := []arrow.Array{kernel.Wrap(columnar.Int32, a.n, 0, nil, buf)}
	defer func() { releaseAll(keys) }()
	for _, d := range a.args[:args] {
		keys = append(keys, columnar.Broadcast(a.mem, d, a.n))
	}
	if a.filtered {
		for i, k := range keys {
			keys[i] = kernel.Filter(a.mem, k, a.keep)
			k.Release()
		}
	}
	rows := a.counted()
	ids := make([]uint32, len(rows))
	if err := table.Intern(keys, ids); err != nil {
		return err
	}
	fresh := make([]int32, 0, table.Len())
	for i, id := range ids { // ids are given in row order
		if int(id) == len(fresh) {
			fresh = append(fresh, rows[i])
		}
	}
	a.keep, a.filtered = fresh, true
	return nil
}

// counted is the rows that count.
func (a *overAggregate) counted() []int32 {
	if a.filtered {
		return a.keep
	}
	rows := make([]int32, a.n)
	for i := range rows {
		rows[i] = int32(i)
	}
	return rows
}

// accumulator is one with the given number of groups.
func (a *overAggregate) accumulator(groups int) (function.Accumulator, error) {
	acc, err := a.agg.Signature.Overload.New(a.mem, a.agg.Signature.Args)
	if err != nil {
		return nil, err
	}
	acc.Resize(groups)
	return acc, nil
}

// update adds the rows that count; groups has the group of each row.
func (a *overAggregate) update(acc function.Accumulator, groups []uint32) error {
	if !a.filtered {
		return acc.Update(groups, a.args)
	}
	if len(a.keep) == 0 {
		return nil
	}
	args := make([]columnar.Datum, len(a.args))
	for i, d := range a.args {
		if d.IsConstant() {
			args[i] = d.Retain()
		} else {
			args[i] = columnar.ColumnDatum(kernel.Filter(a.mem, d.Array(), a.keep))
		}
	}
	defer func() {
		for _, d := range args {
			d.Release()
		}
	}()
	return acc.Update(pick(groups, a.keep), args)
}

// overPartitions is the aggregate over each row's whole partition.
func (a *overAggregate) overPartitions() (arrow.Array, error) {
	groups := make([]uint32, a.n)
	rows := make([]int32, a.n)
	n := uint32(0)
	for i := range groups {
		if int(a.part[i]) == i {
			n++
		}
		groups[i], rows[i] = n-1, int32(n-1)
	}
	acc, err := a.accumulator(int(n))
	if err != nil {
		return nil, err
	}
	defer acc.Release()
	if err := a.update(acc, groups); err != nil {
		return nil, err
	}
	return a.results(acc, int(n), rows)
}

// results is the value of group rows[i] for each i.
func (a *overAggregate) results(acc function.Accumulator, groups int, rows []int32) (arrow.Array, error) {
	values, err := acc.Result(iota32(groups))
	if err != nil {
		return nil, err
	}
	defer values.Release()
	return kernel.Take(a.mem, values, rows)
}

// frames is the different frames of a window; of[i] is that of row i.
type frames struct {
	low, high []int32
	of        []int32
}

// different finds the frames that differ from that of the row before: peers share one.
func different(low, high []int32) frames {
	f := frames{of: make([]int32, len(low))}
	for i := range low {
		if i == 0 || low[i] != low[i-1] || high[i] != high[i-1] {
			f.low, f.high = append(f.low, low[i]), append(f.high, high[i])
		}
		f.of[i] = int32(len(f.low) - 1)
	}
	return f
}

// overFrames is the aggregate over frames of any shape: a tree of states, in which node
// i of level k is the state of the rows from i<<k to (i+1)<<k, is built level by level,
// and each frame is put together from the few nodes that cover it. Every step is one
// merge of many states; nothing needs an inverse.
func (a *overAggregate) overFrames(low, high []int32) (arrow.Array, error) {
	f := different(low, high)
	total, err := a.accumulator(len(f.low))
	if err != nil {
		return nil, err
	}
	defer total.Release()
	level, err := a.accumulator(a.n)
	if err != nil {
		return nil, err
	}
	defer func() { level.Release() }()
	if err := a.update(level, iota32(a.n)); err != nil {
		return nil, err
	}
	for k := 0; ; k++ {
		done, err := f.cover(total, level)
		if err != nil {
			return nil, err
		}
		if done {
			break
		}
		above, err := a.parents(level, k+1)
		if err != nil {
			return nil, err
		}
		level.Release()
		level = above
	}
	return a.results(total, len(f.low), f.of)
}

// cover merges the nodes of a level that belong to frames but to no node above wholly
// inside them, and moves the frames' bounds to the level above. done says that nothing
// is left of any frame.
func (f *frames) cover(total, level function.Accumulator) (done bool, err error) {
	var first, last []uint32 // frames
	var left, right []uint32 // nodes at their ends
	done = true
	for i := range f.low {
		l, h := f.low[i], f.high[i]
		if l >= h {
			continue
		}
		if l&1 == 1 {
			first, left = append(first, uint32(i)), append(left, uint32(l))
			l++
		}
		if h&1 == 1 && l < h {
			h--
			last, right = append(last, uint32(i)), append(right, uint32(h))
		}
		f.low[i], f.high[i] = l>>1, h>>1
		done = done && l >= h
	}
	if err := mergeStates(total, first, level, left); err != nil {
		return false, err
	}
	return done, mergeStates(total, last, level, right)
}

// mergeStates merges the states of nodes into groups.
func mergeStates(into function.Accumulator, groups []uint32, from function.Accumulator, nodes []uint32) error {
	if len(nodes) == 0 {
		return nil
	}
	states, err := from.State(nodes)
	if err != nil {
		return err
	}
	defer releaseAll(states)
	return into.Merge(groups, states)
}

// parents is level k of the tree, made of the level below. Nodes that reach over the
// end of a partition belong to no frame and stay empty, lest they overflow.
func (a *overAggregate) parents(below function.Accumulator, k int) (function.Accumulator, error) {
	n := a.n >> k
	if n == 0 {
		return nil, fmt.Errorf("bug: a frame of more than %d rows", a.n)
	}
	acc, err := a.accumulator(n)
	if err != nil {
		return nil, err
	}
	var nodes, left, right []uint32
	for i := range n {
		if end := (i + 1) << k; int(a.partEnd[i<<k]) >= end {
			nodes, left, right = append(nodes, uint32(i)), append(left, uint32(2*i)), append(right, uint32(2*i+1))
		}
	}
	if err := mergeStates(acc, nodes, below, left); err != nil {
		acc.Release()
		return nil, err
	}
	if err := mergeStates(acc, nodes, below, right); err != nil {
		acc.Release()
		return nil, err
	}
	return acc, nil
}
