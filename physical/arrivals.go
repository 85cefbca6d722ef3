package physical

import (
	"cmp"
	"slices"
)

// arrivals numbers the rows that one of several Readers gives, in the order it gives them,
// and keeps where in the order of arrival its batches belong. A position alone does not
// order rows: a join makes several batches, and any number of rows, of one that was read.
type arrivals struct {
	base  int64 // no two Readers have numbers in common
	rows  int64
	spans []arrivalSpan
}

// arrivalSpan is the rows from a number on, up to those of the next span.
type arrivalSpan struct{ from, position int64 }

// newArrivals is for the Reader with the given place among the others.
func newArrivals(reader int) *arrivals { return &arrivals{base: int64(reader) << 48} }

// add numbers the rows of a batch and returns the number of the first.
func (a *arrivals) add(position int64, rows int) int64 {
	first := a.base + a.rows
	a.rows += int64(rows)
	if n := len(a.spans); n == 0 || a.spans[n-1].position != position {
		a.spans = append(a.spans, arrivalSpan{first, position})
	}
	return first
}

// arrivalOrder says how many rows arrived before one that a Reader has numbered. A nil one
// is for the numbers of a single Reader, which need no change.
type arrivalOrder struct{ spans []rankedSpan }

type rankedSpan struct{ from, position, rows, rank int64 }

func newArrivalOrder(readers []*arrivals) *arrivalOrder {
	if len(readers) == 1 {
		return nil
	}
	o := &arrivalOrder{}
	for _, a := range readers {
		for i, s := range a.spans {
			end := a.base + a.rows
			if i+1 < len(a.spans) {
				end = a.spans[i+1].from
			}
			o.spans = append(o.spans, rankedSpan{from: s.from, position: s.position, rows: end - s.from})
		}
	}
	slices.SortFunc(o.spans, func(a, b rankedSpan) int {
		return cmp.Or(cmp.Compare(a.position, b.position), cmp.Compare(a.from, b.from))
	})
	rank := int64(0)
	for i := range o.spans {
		o.spans[i].rank = rank
		rank += o.spans[i].rows
	}
	slices.SortFunc(o.spans, func(a, b rankedSpan) int { return cmp.Compare(a.from, b.from) })
	return o
}

// rank replaces numbers by how many rows arrived before.
func (o *arrivalOrder) rank(numbers []int64) {
	if o == nil {
		return
	}
	var at rankedSpan // numbers mostly follow each other
	for i, n := range numbers {
		if n < at.from || n >= at.from+at.rows {
			k, found := slices.BinarySearchFunc(o.spans, n, func(s rankedSpan, n int64) int { return cmp.Compare(s.from, n) })
			if !found {
				k--
			}
			at = o.spans[k]
		}
		numbers[i] = at.rank + n - at.from
	}
}
