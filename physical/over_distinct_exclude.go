package physical

import (
	"context"

	"github.com/apache/arrow-go/v18/arrow"

	"github.com/tidemill/tidemill/logical/expr"
)

// overDistinctParts is an aggregate over the different values of frames of which rows are left
// out. What is before these rows and what is behind them are frames of their own, that of the
// whole as far as it goes: a row counts if none of its value is before it in the frame. That
// leaves the values of the rows left out. Their next rows behind, whose last ones are among the
// rows left out, count if there are none before these:
//
//	row      0  1  2  3  4      a frame of all rows, without 2: rows 0 and 1 before it, 4
//	value    a  b  c  c  b      behind it has 1, and 3 has 2, which is left out and has no
//	before  -1 -1 -1  2  1      row of its value before it; so 0, 1 and 3 count
func (a *overAggregate) overDistinctParts(ctx context.Context, e expr.Exclusion, low, high []int32, args int) (arrow.Array, error) {
	before, err := a.sameBefore(args)
	if err != nil {
		return nil, err
	}
	out := leftOut{before: before, next: make([]int32, a.n), first: make([]int32, a.n), counts: make([]bool, a.n)}
	for _, r := range a.counted() {
		out.counts[r] = true
		if before[r] >= 0 {
			out.next[before[r]] = r
		}
	}
	f, alone := frames{of: make([]int32, a.n)}, frames{}
	begins := make([]int32, a.n)
	partition := int32(-1)
	for i := range a.n {
		start := a.part[i]
		if int(start) == i {
			partition++
		}
		f.of[i] = int32(i)
		f.count, alone.count = f.count+1, alone.count+1
		begins[i] = low[i] - start
		from, to := a.excluded(e, i)
		f.add(start, low[i], min(high[i], from), partition)
		f.add(start, max(low[i], to), high[i], partition)
		stays := int32(-1)
		if e == expr.ExcludeTies {
			stays = int32(i)
		}
		out.alone(low[i], high[i], max(low[i], from), min(high[i], to), stays, func(row int32) {
			alone.add(start, row, row+1, partition)
		})
	}
	return a.mergeDifferent(ctx, f, begins, alone, before)
}

// leftOut knows of each row that counts the last row with its value and the next one, 0 if there
// is none.
type leftOut struct {
	before, next []int32
	first        []int32 // of the rows being left out that have its value
	counts       []bool
}

// alone gives the rows that count in the frame from low to high since those from from to to are
// left out, but for the row that stays, -1 for none.
func (l *leftOut) alone(low, high, from, to, stays int32, add func(row int32)) {
	for r := from; r < to; r++ {
		if !l.counts[r] {
			continue
		}
		if l.first[r] = r; l.before[r] >= from {
			l.first[r] = l.first[l.before[r]]
		}
	}
	for r := from; r < to; r++ {
		next := l.next[r]
		if !l.counts[r] || next > 0 && next < to || l.before[l.first[r]] >= low {
			continue // there are more of its value, or one before them
		}
		switch {
		case stays >= from && stays < to && l.counts[stays] && l.first[stays] == l.first[r]:
			add(stays)
		case next > 0 && next < high:
			add(next)
		}
	}
}
