package physical

import (
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

// frames is the different frames of a window, their bounds counted from the start of
// their partition; of[i] is that of row i.
type frames struct {
	low, high []int32
	partition []int32
	of        []int32
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
			f.low, f.high = append(f.low, low[i]-start), append(f.high, high[i]-start)
			f.partition = append(f.partition, partition)
		}
		f.of[i] = int32(len(f.low) - 1)
	}
	return f
}

// stateLevel is one level of a tree of states. Node i of a partition at level k is the
// state of its rows from i<<k to (i+1)<<k. Each partition has a tree of its own, so that
// its sums do not depend on what else there is.
type stateLevel struct {
	acc   function.Accumulator
	start []int32 // group of the first node of each partition, and the number of all
}

// overFrames is the aggregate over frames of any shape: a tree of states is built level
// by level, and each frame is put together from the few nodes that cover it. Every step
// is one merge of many states; nothing needs an inverse.
func (a *overAggregate) overFrames(low, high []int32) (arrow.Array, error) {
	f := a.different(low, high)
	total, err := a.accumulator(len(f.low))
	if err != nil {
		return nil, err
	}
	defer total.Release()
	level, err := a.rowLevel()
	if err != nil {
		return nil, err
	}
	defer func() { level.acc.Release() }()
	for {
		done, err := f.cover(total, level)
		if err != nil {
			return nil, err
		}
		if done {
			break
		}
		above, err := a.parents(level)
		if err != nil {
			return nil, err
		}
		level.acc.Release()
		level = above
	}
	return a.results(total, len(f.low), f.of)
}

// rowLevel is level 0: the state of each row.
func (a *overAggregate) rowLevel() (stateLevel, error) {
	acc, err := a.accumulator(a.n)
	if err != nil {
		return stateLevel{}, err
	}
	l := stateLevel{acc: acc}
	for i := 0; i < a.n; i = int(a.partEnd[i]) {
		l.start = append(l.start, int32(i))
	}
	l.start = append(l.start, int32(a.n))
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
			first, left = append(first, uint32(i)), append(left, uint32(start+l))
			l++
		}
		if h&1 == 1 && l < h {
			h--
			last, right = append(last, uint32(i)), append(right, uint32(start+h))
		}
		f.low[i], f.high[i] = l>>1, h>>1
		done = done && l >= h
	}
	if err := mergeStates(total, first, level.acc, left); err != nil {
		return false, err
	}
	return done, mergeStates(total, last, level.acc, right)
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
	if err = mergeStates(above.acc, nodes, below.acc, left); err == nil {
		err = mergeStates(above.acc, nodes, below.acc, right)
	}
	if err != nil {
		above.acc.Release()
	}
	return above, err
}
