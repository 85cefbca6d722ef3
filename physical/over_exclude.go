package physical

import "github.com/tidemill/tidemill/logical/expr"

// parts is the frames of the rows, each in the parts that its exclusion leaves of it.
func (w *overRows) parts(e expr.Exclusion, low, high []int32) frames {
	f := frames{of: make([]int32, w.n)}
	partition := int32(-1)
	for i := range w.n {
		if int(w.part[i]) == i {
			partition++
		}
		f.count++
		f.of[i] = int32(i)
		for _, s := range w.spans(e, low[i], high[i], i) {
			if s[0] < s[1] {
				f.add(w.part[i], s[0], s[1], partition)
			}
		}
	}
	return f
}

// spans is what an exclusion leaves of the frame of row i, in order: what is before the rows
// left out, the row itself if only its peers are, and what is behind them. Any of it may be
// empty, its end before its begin.
func (w *overRows) spans(e expr.Exclusion, low, high int32, i int) [3][2]int32 {
	if e == expr.ExcludeNoOthers {
		return [3][2]int32{{low, high}}
	}
	row := int32(i)
	from, to := w.excluded(e, i)
	out := [3][2]int32{{low, min(high, from)}, {}, {max(low, to), high}}
	if e == expr.ExcludeTies {
		out[1] = [2]int32{max(low, row), min(high, row+1)}
	}
	return out
}

// excluded is the rows around row i that an exclusion leaves out, where TIES puts i back.
func (w *overRows) excluded(e expr.Exclusion, i int) (from, to int32) {
	if e == expr.ExcludeCurrentRow {
		return int32(i), int32(i) + 1
	}
	return w.peer[i], w.peerEnd[i]
}

// inSpans is element number nth of spans put together, counted from 1, or from the last if it
// is -1; -1 if there is none.
func inSpans(spans [3][2]int32, nth int64) int32 {
	if nth < 0 {
		for k := len(spans) - 1; k >= 0; k-- {
			if s := spans[k]; s[0] < s[1] {
				return s[1] - 1
			}
		}
		return -1
	}
	for _, s := range spans {
		if n := int64(s[1] - s[0]); nth > n {
			nth -= n
		} else if nth > 0 {
			return s[0] + int32(nth) - 1
		}
	}
	return -1
}
