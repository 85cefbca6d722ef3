package physical

import (
	"sort"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/memory"

	"github.com/tidemill/tidemill/columnar/kernel"
	"github.com/tidemill/tidemill/logical/expr"
)

// overRows is the rows of whole partitions, in the order of the window.
type overRows struct {
	mem     memory.Allocator
	n       int
	columns []arrow.Array // the program's outputs
	// Row i is in the partition [part[i], partEnd[i]) and the peers, rows equal in
	// order, [peer[i], peerEnd[i]).
	part, partEnd []int32
	peer, peerEnd []int32
	descending    bool
}

func (w *overRows) release() { releaseAll(w.columns) }

// mark finds partitions and peers: the first columns are the keys of partitions, those
// up to order that of the order.
func (w *overRows) mark(partition, order int) {
	same := make([]bool, w.n) // as the row before
	before, rows := make([]int32, 0, w.n), make([]int32, 0, w.n)
	for i := 1; i < w.n; i++ {
		before, rows = append(before, int32(i-1)), append(rows, int32(i))
	}
	spans := func() (start, end []int32) {
		clear(same)
		for _, i := range rows {
			same[i] = true
		}
		return spansOf(same)
	}
	for i := range partition {
		before, rows = kernel.EqualPairs(w.columns[i], w.columns[i], before, rows, true)
	}
	w.part, w.partEnd = spans()
	for i := partition; i < order; i++ {
		before, rows = kernel.EqualPairs(w.columns[i], w.columns[i], before, rows, true)
	}
	w.peer, w.peerEnd = spans()
}

// spansOf is the start and end of the run that each row is in; same says whether a row
// continues the run of the row before.
func spansOf(same []bool) (start, end []int32) {
	n := len(same)
	start, end = make([]int32, n), make([]int32, n)
	for i := 1; i < n; i++ {
		if same[i] {
			start[i] = start[i-1]
		} else {
			start[i] = int32(i)
		}
	}
	last := int32(n)
	for i := n - 1; i >= 0; i-- {
		end[i] = last
		if !same[i] {
			last = int32(i)
		}
	}
	return start, end
}

// frame is the bounds [low[i], high[i]) of each row's frame; empty ones have low = high.
// The slices may be those of w.
func (w *overRows) frame(o *expr.Over, l overLayout) (low, high []int32) {
	f := o.Frame
	if len(o.Order) > 0 {
		w.descending = o.Order[0].Descending
	}
	switch f.Low.Kind {
	case expr.UnboundedPreceding:
		low = w.part
	case expr.CurrentRow:
		low = w.current(f.Unit, false)
	default:
		low = w.offset(f.Unit, f.Low, false, l.key, l.low)
	}
	switch f.High.Kind {
	case expr.UnboundedFollowing:
		high = w.partEnd
	case expr.CurrentRow:
		high = w.current(f.Unit, true)
	default:
		high = w.offset(f.Unit, f.High, true, l.key, l.high)
	}
	for i := range low {
		if low[i] > high[i] { // never where a slice is one of w's
			low[i] = high[i]
		}
	}
	return low, high
}

// current is the bound CURRENT ROW: the row, or with RANGE and GROUPS its peers.
func (w *overRows) current(unit expr.FrameUnit, end bool) []int32 {
	switch {
	case unit != expr.Rows && end:
		return append([]int32(nil), w.peerEnd...)
	case unit != expr.Rows:
		return append([]int32(nil), w.peer...)
	}
	out := make([]int32, w.n)
	add := int32(0)
	if end {
		add = 1
	}
	for i := range out {
		out[i] = int32(i) + add
	}
	return out
}

// offset is the bound n PRECEDING or n FOLLOWING.
func (w *overRows) offset(unit expr.FrameUnit, b expr.Bound, end bool, key, value int) []int32 {
	switch unit {
	case expr.Rows:
		return w.rowOffset(b, end)
	case expr.Groups:
		return w.groupOffset(b, end)
	}
	return w.rangeOffset(w.columns[key], w.columns[value], end)
}

// shift is how far behind a row, or its group, a bound is: negative before it, an end
// one behind what it includes. Beyond all rows is as far as may be added to a row.
func (w *overRows) shift(b expr.Bound, end bool) int64 {
	by := min(b.Offset, int64(w.n)+1)
	if b.Kind == expr.Preceding {
		by = -by
	}
	if end {
		by++
	}
	return by
}

func (w *overRows) rowOffset(b expr.Bound, end bool) []int32 {
	out := make([]int32, w.n)
	by := w.shift(b, end)
	for i := range out {
		out[i] = int32(min(max(int64(i)+by, int64(w.part[i])), int64(w.partEnd[i])))
	}
	return out
}

func (w *overRows) groupOffset(b expr.Bound, end bool) []int32 {
	var starts []int32 // of the groups, and the end of the last
	number := make([]int64, w.n)
	for i := range w.n {
		if int(w.peer[i]) == i {
			starts = append(starts, int32(i))
		}
		number[i] = int64(len(starts) - 1)
	}
	starts = append(starts, int32(w.n))
	out := make([]int32, w.n)
	by := w.shift(b, end)
	for i := range out {
		at := min(max(number[i]+by, 0), int64(len(starts)-1))
		out[i] = min(max(starts[at], w.part[i]), w.partEnd[i])
	}
	return out
}

// rangeOffset is where the keys of the partition pass the bound of each row. Rows with
// a null key have their peers as the frame.
func (w *overRows) rangeOffset(key, bound arrow.Array, end bool) []int32 {
	out := make([]int32, w.n)
	from, to := int32(0), int32(0) // the keys of the partition that are not null
	for i := range out {
		if int(w.part[i]) == i {
			from, to = w.part[i], w.partEnd[i]
			for from < to && key.IsNull(int(from)) {
				from++
			}
			for to > from && key.IsNull(int(to-1)) {
				to--
			}
		}
		switch {
		case key.IsNull(i) || bound.IsNull(i):
			out[i] = w.peer[i]
			if end {
				out[i] = w.peerEnd[i]
			}
		default:
			out[i] = from + int32(sort.Search(int(to-from), func(k int) bool {
				c := kernel.CompareValues(key, int(from)+k, bound, i)
				if w.descending {
					c = -c
				}
				return c > 0 || c == 0 && !end
			}))
		}
	}
	return out
}
