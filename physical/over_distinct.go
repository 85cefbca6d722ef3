package physical

import (
	"context"
	"slices"
	"sort"

	"github.com/apache/arrow-go/v18/arrow"
)

// overDistinct is an aggregate over the different values of frames whose begin moves. A row is
// the first of its value in a frame if the last row before it with that value is before the
// frame. So the rows of each node of a tree are put in the order of those last rows; of a
// node that is wholly inside a frame, the first few count, which are a frame of that order:
//
//	row       0  1  2  3      of the node of rows 0 to 3, a frame from 0 counts
//	value     a  b  a  a      what is before 0: rows 0 and 1; one from 1
//	before   -1 -1  0  2      would begin within the node
func (a *overAggregate) overDistinct(ctx context.Context, low, high []int32, args int) (arrow.Array, error) {
	before, err := a.sameBefore(args)
	if err != nil {
		return nil, err
	}
	f := a.different(low, high)
	return a.mergeDifferent(ctx, f, slices.Clone(f.low), frames{}, before)
}

// mergeDifferent merges the rows of frames that have no row of their value between the begin of
// their frame, by owner, and themselves; before has the last row of their value. alone are rows
// that count beside these.
func (a *overAggregate) mergeDifferent(ctx context.Context, f frames, begins []int32, alone frames, before []int32) (arrow.Array, error) {
	total, err := a.accumulator(f.count)
	if err != nil {
		return nil, err
	}
	defer total.Release()
	rows, err := a.rowLevel()
	if err != nil {
		return nil, err
	}
	defer rows.acc.Release()
	rows.group = make([]int32, a.n)
	for i := range rows.group {
		rows.group[i] = int32(i)
	}
	if err := a.merge(ctx, total, alone, rows); err != nil {
		return nil, err
	}
	for size := int32(1); ; size *= 2 {
		whole, done := f.wholeNodes(size)
		for i, o := range whole.owner {
			start := rows.start[whole.partition[i]]
			node := rows.group[start+whole.low[i]:][:size]
			whole.high[i] = whole.low[i] + int32(sort.Search(len(node), func(k int) bool { return before[node[k]] >= start+begins[o] }))
		}
		if err := a.merge(ctx, total, whole, rows); err != nil {
			return nil, err
		}
		if done {
			return a.results(total, f.count, f.of)
		}
		a.joinNodes(rows.group, size, before)
	}
}

// sameBefore is the last row before each one that has the same value in its partition, -1 if
// none has.
func (a *overAggregate) sameBefore(args int) ([]int32, error) {
	ids, err := a.valueIDs(args)
	if err != nil {
		return nil, err
	}
	before := make([]int32, a.n)
	last := make([]int32, 0, len(ids)) // by value
	rows := a.counted()
	for i, id := range ids {
		if int(id) == len(last) {
			last = append(last, -1)
		}
		before[rows[i]] = last[id]
		last[id] = rows[i]
	}
	return before, nil
}

// wholeNodes takes the nodes of so many rows that are wholly inside of frames, but in none of
// twice the size that is, off their ends. done says that nothing is left of any frame.
func (f *frames) wholeNodes(size int32) (nodes frames, done bool) {
	nodes.count = f.count
	take := func(i int, low int32) {
		nodes.low, nodes.high = append(nodes.low, low), append(nodes.high, low+size)
		nodes.partition, nodes.owner = append(nodes.partition, f.partition[i]), append(nodes.owner, f.owner[i])
	}
	done = true
	for i := range f.low {
		if size == 1 && f.low[i] >= f.high[i] {
			f.high[i] = f.low[i]
		}
		if f.low[i]&size != 0 && f.low[i] < f.high[i] {
			take(i, f.low[i])
			f.low[i] += size
		}
		if f.high[i]&size != 0 && f.low[i] < f.high[i] {
			f.high[i] -= size
			take(i, f.high[i])
		}
		done = done && f.low[i] >= f.high[i]
	}
	return nodes, done
}

// joinNodes makes one node of each two of a size, its rows in the order of the rows before.
func (a *overAggregate) joinNodes(rows []int32, size int32, before []int32) {
	joined := make([]int32, 0, 2*size)
	for i := 0; i < a.n; i = int(a.partEnd[i]) {
		part := rows[i:a.partEnd[i]]
		for ; len(part) >= int(2*size); part = part[2*size:] {
			joined = joined[:0]
			left, right := part[:size], part[size:2*size]
			for len(left) > 0 && len(right) > 0 {
				if before[left[0]] <= before[right[0]] {
					joined, left = append(joined, left[0]), left[1:]
				} else {
					joined, right = append(joined, right[0]), right[1:]
				}
			}
			joined = append(append(joined, left...), right...)
			copy(part, joined)
		}
	}
}
