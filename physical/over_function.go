package physical

import (
	"context"
	"fmt"

	"github.com/apache/arrow-go/v18/arrow"

	"github.com/tidemill/tidemill/columnar"
	"github.com/tidemill/tidemill/columnar/kernel"
	"github.com/tidemill/tidemill/logical/expr"
)

// evaluate is the value of a window function for each row of w.
func (w *overRows) evaluate(ctx context.Context, o *expr.Over, l overLayout) (arrow.Array, error) {
	switch o.Func {
	case "":
		return w.aggregate(ctx, o, l)
	case "row_number", "rank", "dense_rank":
		return w.ranks(o.Func), nil
	case "percent_rank", "cume_dist":
		return w.shares(o.Func), nil
	case "ntile":
		return w.tiles(w.columns[l.args[0]])
	case "lag", "lead":
		return w.shifted(o, l)
	case "first_value", "last_value", "nth_value":
		return w.valueInFrame(o, l)
	}
	return nil, fmt.Errorf("bug: unknown window function %s", o.Func)
}

func (w *overRows) ranks(name string) arrow.Array {
	buf, out := kernel.Make[int64](w.mem, w.n)
	dense := int64(0)
	for i := range out {
		start := int(w.part[i])
		switch name {
		case "row_number":
			out[i] = int64(i-start) + 1
		case "rank":
			out[i] = int64(w.peer[i]-w.part[i]) + 1
		default:
			if i == start {
				dense = 0
			}
			if int(w.peer[i]) == i {
				dense++
			}
			out[i] = dense
		}
	}
	return kernel.Wrap(columnar.Int64, w.n, 0, nil, buf)
}

func (w *overRows) shares(name string) arrow.Array {
	buf, out := kernel.Make[float64](w.mem, w.n)
	for i := range out {
		size := float64(w.partEnd[i] - w.part[i])
		switch {
		case name == "cume_dist":
			out[i] = float64(w.peerEnd[i]-w.part[i]) / size
		case size > 1:
			out[i] = float64(w.peer[i]-w.part[i]) / (size - 1)
		default:
			out[i] = 0
		}
	}
	return kernel.Wrap(columnar.Float64, w.n, 0, nil, buf)
}

// tiles divides each partition into as many parts as the argument says, the first ones
// larger by one row where it does not come out even.
func (w *overRows) tiles(count arrow.Array) (arrow.Array, error) {
	counts := kernel.Values[int64](count)
	buf, out := kernel.Make[int64](w.mem, w.n)
	for i := range out {
		k := counts[i]
		if count.IsNull(i) || k <= 0 {
			buf.Release()
			return nil, fmt.Errorf("the number of parts must be positive")
		}
		row, size := int64(int32(i)-w.part[i]), int64(w.partEnd[i]-w.part[i])
		small, large := size/k, size%k // large parts have one row more
		if edge := large * (small + 1); row < edge {
			out[i] = row/(small+1) + 1
		} else {
			out[i] = large + (row-edge)/small + 1
		}
	}
	return kernel.Wrap(columnar.Int64, w.n, 0, nil, buf), nil
}

// notNull is the rows at which a is not null, and how many there are before each row.
func (w *overRows) notNull(a arrow.Array) (rows, before []int32) {
	before = make([]int32, w.n+1)
	for i := range w.n {
		before[i] = int32(len(rows))
		if !columnar.IsNull(a, i) {
			rows = append(rows, int32(i))
		}
	}
	before[w.n] = int32(len(rows))
	return rows, before
}

// shifted is lag and lead: the value some rows before or after, in the partition, else
// the default.
func (w *overRows) shifted(o *expr.Over, l overLayout) (arrow.Array, error) {
	value, offset := w.columns[l.args[0]], w.columns[l.args[1]]
	offsets := kernel.Values[int64](offset)
	sign := int64(1)
	if o.Func == "lag" {
		sign = -1
	}
	var rows, before []int32
	if o.IgnoreNulls {
		rows, before = w.notNull(value)
	}
	refs := make([]kernel.Ref, w.n)
	for i := range refs {
		at := int64(-1)
		if !offset.IsNull(i) {
			by := max(min(offsets[i], int64(w.n)), -int64(w.n)) * sign
			if o.IgnoreNulls {
				at = shiftValid(rows, before, i, by)
			} else {
				at = int64(i) + by
			}
		}
		switch {
		case at >= int64(w.part[i]) && at < int64(w.partEnd[i]):
			refs[i] = kernel.MakeRef(0, int(at))
		case len(l.args) > 2:
			refs[i] = kernel.MakeRef(1, i)
		default:
			refs[i] = kernel.NoRow
		}
	}
	sources := []arrow.Array{value}
	if len(l.args) > 2 {
		sources = append(sources, w.columns[l.args[2]])
	}
	return kernel.Gather(w.mem, sources, refs)
}

// shiftValid is the row with a value that is by such rows after row i, -1 if none is;
// by 0 it is i itself.
func shiftValid(rows, before []int32, i int, by int64) int64 {
	if by == 0 {
		return int64(i)
	}
	k := int64(before[i]) + by
	if by > 0 {
		k = int64(before[i+1]) + by - 1
	}
	if k < 0 || k >= int64(len(rows)) {
		return -1
	}
	return int64(rows[k])
}

// valueInFrame is the first, last or nth value of the frame.
func (w *overRows) valueInFrame(o *expr.Over, l overLayout) (arrow.Array, error) {
	low, high := w.frame(o, l)
	value := w.columns[l.args[0]]
	places, err := w.places(o, l)
	if err != nil {
		return nil, err
	}
	var rows, before []int32
	if o.IgnoreNulls {
		rows, before = w.notNull(value)
	}
	take := make([]int32, w.n)
	for i := range take {
		spans := w.spans(o.Frame.Exclude, low[i], high[i], i)
		for k, s := range spans {
			s[1] = max(s[0], s[1])
			if o.IgnoreNulls { // places among the rows with a value
				s = [2]int32{before[s[0]], before[s[1]]}
			}
			spans[k] = s
		}
		take[i] = inSpans(spans, places[i])
		if o.IgnoreNulls && take[i] >= 0 {
			take[i] = rows[take[i]]
		}
	}
	return kernel.Take(w.mem, value, take)
}

// places is which value of its frame each row takes: 1 is the first, -1 the last, and 0 none.
func (w *overRows) places(o *expr.Over, l overLayout) ([]int64, error) {
	out := make([]int64, w.n)
	if o.Func != "nth_value" {
		place := int64(1)
		if o.Func == "last_value" {
			place = -1
		}
		for i := range out {
			out[i] = place
		}
		return out, nil
	}
	nth := w.columns[l.args[1]]
	for i, n := range kernel.Values[int64](nth)[:w.n] {
		switch {
		case nth.IsNull(i):
		case n <= 0:
			return nil, fmt.Errorf("the place of nth_value must be positive")
		default:
			out[i] = n
		}
	}
	return out, nil
}
