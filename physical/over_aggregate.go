package physical

import (
	"context"

	"github.com/apache/arrow-go/v18/arrow"

	"github.com/tidemill/tidemill/columnar"
	"github.com/tidemill/tidemill/columnar/function"
	"github.com/tidemill/tidemill/columnar/group"
	"github.com/tidemill/tidemill/columnar/kernel"
	"github.com/tidemill/tidemill/logical/expr"
)

// aggregate is the value of an aggregate over each row's frame.
func (w *overRows) aggregate(ctx context.Context, o *expr.Over, l overLayout) (arrow.Array, error) {
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
		a.args = append(a.args, columnar.ColumnDatum(w.ordinals(o.Agg.Order, l.order)))
	}
	defer func() {
		for _, d := range a.args {
			d.Release()
		}
	}()
	switch {
	case o.Agg.Distinct && o.Frame.Exclude != expr.ExcludeNoOthers:
		return a.overDistinctParts(ctx, o.Frame.Exclude, low, high, len(l.args))
	case o.Agg.Distinct && o.Frame.Low.Kind != expr.UnboundedPreceding:
		return a.overDistinct(ctx, low, high, len(l.args))
	case o.Agg.Distinct:
		if err := a.keepFirst(len(l.args)); err != nil {
			return nil, err
		}
	}
	switch {
	case o.Frame.Exclude != expr.ExcludeNoOthers:
		return a.overFrames(ctx, w.parts(o.Frame.Exclude, low, high))
	case o.Frame.IsWhole():
		return a.overPartitions()
	}
	return a.overFrames(ctx, w.different(low, high))
}

// ordinals is the place of each row in the order of an aggregate; without one, in that of
// the window.
func (w *overRows) ordinals(order []expr.Order, columns []int) arrow.Array {
	if len(order) == 0 {
		return ordinals(w.mem, 0, w.n, nil)
	}
	keys := make([]kernel.SortKey, len(order))
	for i, k := range order {
		at := columns[i]
		keys[i] = kernel.SortKey{Columns: w.columns[at : at+1], Descending: k.Descending, NullsLast: !k.NullsFirst}
	}
	buf, out := kernel.Make[int64](w.mem, w.n)
	for i, ref := range kernel.Sort(keys) {
		out[ref.Row()] = int64(i)
	}
	return kernel.Wrap(columnar.Int64, w.n, 0, nil, buf)
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
	ids, err := a.valueIDs(args)
	if err != nil {
		return err
	}
	rows := a.counted()
	fresh := make([]int32, 0, len(rows))
	for i, id := range ids {
		if int(id) == len(fresh) {
			fresh = append(fresh, rows[i])
		}
	}
	a.keep, a.filtered = fresh, true
	return nil
}

// valueIDs numbers the different values of the partitions, for the rows that count, in the
// order of their first rows.
func (a *overAggregate) valueIDs(args int) ([]uint32, error) {
	types := append([]arrow.DataType{columnar.Int32}, a.agg.Signature.Args...)
	table, err := group.New(a.mem, types, group.Options{Who: "window functions"})
	if err != nil {
		return nil, err
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
	ids := make([]uint32, len(a.counted()))
	return ids, table.Intern(keys, ids)
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

// frames is the different frames of a window in parts, mostly one each, whose bounds are
// counted from the start of their partition; of[i] is the frame of row i.
type frames struct {
	low, high []int32
	partition []int32
	owner     []uint32 // the frame that a part is of
	count     int
	of        []int32
}

// add makes the rows from low to high, of a partition that starts at start, a part of the
// last frame.
func (f *frames) add(start, low, high, partition int32) {
	f.low, f.high = append(f.low, low-start), append(f.high, high-start)
	f.partition, f.owner = append(f.partition, partition), append(f.owner, uint32(f.count-1))
}

// different finds the frames that differ from that of the row before: peers share one.
func (w *overRows) different(low, high []int32) frames {
	f := frames{of: make([]int32, w.n)}
	partition := int32(-1)
	for i := range low {
		start := w.part[i]
		if int(start) == i {
			partition++
		}
		if int(start) == i || low[i] != low[i-1] || high[i] != high[i-1] {
			f.count++
			f.add(start, low[i], high[i], partition)
		}
		f.of[i] = int32(f.count - 1)
	}
	return f
}

// stateLevel is one level of a tree of states. Node i of a partition at level k is the
// state of its rows from i<<k to (i+1)<<k. Each partition has a tree of its own, so that
// its sums do not depend on what else there is.
type stateLevel struct {
	acc   function.Accumulator
	start []int32 // first node of each partition, and the number of all
	group []int32 // of each node in acc; nil if they have the same numbers
}

// groups puts the groups of nodes in their place.
func (l stateLevel) groups(nodes []uint32) []uint32 {
	if l.group != nil {
		for i, n := range nodes {
			nodes[i] = uint32(l.group[n])
		}
	}
	return nodes
}

// overFrames is the aggregate over frames of any shape: a tree of states is built level
// by level, and each frame is put together from the few nodes that cover it. Every step
// is one merge of many states; nothing needs an inverse.
func (a *overAggregate) overFrames(ctx context.Context, f frames) (arrow.Array, error) {
	total, err := a.accumulator(f.count)
	if err != nil {
		return nil, err
	}
	defer total.Release()
	level, err := a.rowLevel()
	if err != nil {
		return nil, err
	}
	defer level.acc.Release()
	if err := a.merge(ctx, total, f, level); err != nil {
		return nil, err
	}
	return a.results(total, f.count, f.of)
}

// merge merges the frames into total, from the states of rows upwards. It consumes f.
func (a *overAggregate) merge(ctx context.Context, total function.Accumulator, f frames, rows stateLevel) error {
	level := rows
	defer func() {
		if level.acc != rows.acc {
			level.acc.Release()
		}
	}()
	for {
		if err := ctx.Err(); err != nil {
			return err
		}
		done, err := f.cover(total, level)
		if done || err != nil {
			return err
		}
		above, err := a.parents(level)
		if err != nil {
			return err
		}
		if level.acc != rows.acc {
			level.acc.Release()
		}
		level = above
	}
}

// starts is where the partitions start, and the number of rows.
func (w *overRows) starts() []int32 {
	var starts []int32
	for i := 0; i < w.n; i = int(w.partEnd[i]) {
		starts = append(starts, int32(i))
	}
	return append(starts, int32(w.n))
}

// rowLevel is level 0: the state of each row.
func (a *overAggregate) rowLevel() (stateLevel, error) {
	acc, err := a.accumulator(a.n)
	if err != nil {
		return stateLevel{}, err
	}
	l := stateLevel{acc: acc, start: a.starts()}
	if err := a.update(acc, iota32(a.n)); err != nil {
		acc.Release()
		return stateLevel{}, err
	}
	return l, nil
}

// cover merges the nodes of a level that belong to frames but to no node above wholly
// inside them, and moves the frames' bounds to the level above. done says that nothing
// is left of any frame.
func (f *frames) cover(total function.Accumulator, level stateLevel) (done bool, err error) {
	var first, last []uint32 // frames
	var left, right []uint32 // nodes at their ends
	done = true
	for i := range f.low {
		l, h := f.low[i], f.high[i]
		if l >= h {
			continue
		}
		start := level.start[f.partition[i]]
		if l&1 == 1 {
			first, left = append(first, f.owner[i]), append(left, uint32(start+l))
			l++
		}
		if h&1 == 1 && l < h {
			h--
			last, right = append(last, f.owner[i]), append(right, uint32(start+h))
		}
		f.low[i], f.high[i] = l>>1, h>>1
		done = done && l >= h
	}
	if err := mergeStates(total, first, level.acc, level.groups(left)); err != nil {
		return false, err
	}
	return done, mergeStates(total, last, level.acc, level.groups(right))
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

// parents is the level above: each node is made of two below. A last one without
// another has no parent: no frame that needs one reaches over it.
func (a *overAggregate) parents(below stateLevel) (stateLevel, error) {
	var above stateLevel
	var left, right []uint32
	for p, start := range below.start[:len(below.start)-1] {
		above.start = append(above.start, int32(len(left)))
		for i := start; i+1 < below.start[p+1]; i += 2 {
			left, right = append(left, uint32(i)), append(right, uint32(i+1))
		}
	}
	above.start = append(above.start, int32(len(left)))
	var err error
	if above.acc, err = a.accumulator(len(left)); err != nil {
		return above, err
	}
	nodes := iota32(len(left))
	if err = mergeStates(above.acc, nodes, below.acc, below.groups(left)); err == nil {
		err = mergeStates(above.acc, nodes, below.acc, below.groups(right))
	}
	if err != nil {
		above.acc.Release()
	}
	return above, err
}
