package stateful

import (
	"time"

	"github.com/tidemill/tidemill/logical"
)

// At is the watermarks by which the operator works when those of the query are w: that
// of an operator above a join trails by what the join may still hold back.
func (o *Operator) At(w Watermarks, zone *time.Location) Watermarks {
	return Watermarks{Late: inputWatermark(o.node, w.Late, isUTC(zone)), Evict: inputWatermark(o.node, w.Evict, isUTC(zone))}
}

func isUTC(zone *time.Location) bool {
	return zone == nil || zone == time.UTC || zone.String() == "UTC"
}

// inputWatermark is the least of the watermarks that the inputs of n give, when that of
// the query is global; nil is none.
func inputWatermark(n logical.Node, global *int64, utc bool) *int64 {
	var least *int64
	for _, c := range n.Children() {
		if w := outputWatermark(c, global, utc); w != nil && (least == nil || *w < *least) {
			least = w
		}
	}
	return least
}

// outputWatermark is the watermark that the rows of n have: no row to come is at or
// before it. A declared one gives the query's, a join of streams what both its sides
// have been evicted by, everything else that of its input.
func outputWatermark(n logical.Node, global *int64, utc bool) *int64 {
	if m, ok := n.(*logical.Watermark); ok {
		if logical.IsStreaming(m) {
			return global
		}
		return nil
	}
	if _, ok := n.(*logical.MapGroups); ok {
		return nil // what a function emits is of any time
	}
	w := inputWatermark(n, global, utc)
	j, ok := n.(*logical.Join)
	if !ok || w == nil || !logical.IsStreaming(j.Left) || !logical.IsStreaming(j.Right) {
		return w
	}
	left, right := logical.JoinBounds(j)
	out := *w
	for _, b := range []*logical.JoinBound{left, right} {
		if b != nil && b.Range {
			out = min(out, *w-b.OffsetIn(utc))
		}
	}
	return &out
}
