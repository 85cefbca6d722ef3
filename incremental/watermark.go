package incremental

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/tidemill/tidemill/logical"
)

// WatermarkPolicy joins the watermarks of several inputs into one.
type WatermarkPolicy uint8

const (
	// MinPolicy waits for the slowest input; one that never had a row holds the
	// watermark back.
	MinPolicy WatermarkPolicy = iota
	// MaxPolicy follows the fastest input.
	MaxPolicy
)

// ParseWatermarkPolicy reads min or max.
func ParseWatermarkPolicy(text string) (WatermarkPolicy, error) {
	switch strings.ToLower(text) {
	case "", "min":
		return MinPolicy, nil
	case "max":
		return MaxPolicy, nil
	}
	return 0, fmt.Errorf("watermark_policy is 'min' or 'max', not %q", text)
}

func (p WatermarkPolicy) String() string { return [...]string{"min", "max"}[p] }

// watermarkNode is one Watermark of the plan.
type watermarkNode struct {
	label string
	delay time.Duration
}

// watermarks tracks the largest event time of every Watermark node and derives the
// global watermark. Times are microseconds since the epoch. There is no watermark
// until there is one: nil, and nothing is late (Spark: starts at 0).
type watermarks struct {
	policy WatermarkPolicy
	nodes  []watermarkNode
	maxima map[string]int64 // by label; a node that saw no row is not in it
	// late judges rows of the next batch, evict removes its state: the watermarks of
	// the batch before it and of the batch itself.
	late, evict *int64
}

// newWatermarks finds the Watermark nodes of an analyzed plan.
func newWatermarks(plan logical.Node, policy WatermarkPolicy) *watermarks {
	w := &watermarks{policy: policy, maxima: map[string]int64{}}
	logical.Walk(plan, func(n logical.Node) bool {
		if m, ok := n.(*logical.Watermark); ok && logical.IsStreaming(m) {
			w.nodes = append(w.nodes, watermarkNode{m.Label, m.Delay})
		}
		return true
	})
	return w
}

// declared says whether the plan has a watermark at all.
func (w *watermarks) declared() bool { return len(w.nodes) > 0 }

// restore takes up what a checkpoint holds.
func (w *watermarks) restore(maxima map[string]int64, late, evict *int64) {
	w.maxima = maps.Clone(maxima)
	if w.maxima == nil {
		w.maxima = map[string]int64{}
	}
	w.late, w.evict = late, evict
}

// after is the maxima and the watermark when a batch has seen the given maxima. The
// watermark never goes back.
func (w *watermarks) after(seen map[string]int64) (maxima map[string]int64, next *int64) {
	maxima = maps.Clone(w.maxima)
	for label, t := range seen {
		if old, ok := maxima[label]; !ok || t > old {
			maxima[label] = t
		}
	}
	next = w.evict
	if candidate := w.global(maxima); candidate != nil && (next == nil || *candidate > *next) {
		next = candidate
	}
	return maxima, next
}

// global joins the nodes' watermarks by the policy.
func (w *watermarks) global(maxima map[string]int64) *int64 {
	var all []int64
	for _, n := range w.nodes {
		if m, ok := maxima[n.label]; ok {
			all = append(all, m-n.delay.Microseconds())
		} else if w.policy == MinPolicy {
			return nil
		}
	}
	if len(all) == 0 {
		return nil
	}
	g := slices.Min(all)
	if w.policy == MaxPolicy {
		g = slices.Max(all)
	}
	return &g
}

// advance moves on after a batch: its eviction watermark judges the next batch's
// rows.
func (w *watermarks) advance(maxima map[string]int64, next *int64) {
	w.late, w.evict, w.maxima = w.evict, next, maxima
}

// EventTimeStats is what one batch saw at its Watermark nodes. It is safe for
// concurrent use.
type EventTimeStats struct {
	mu     sync.Mutex
	maxima map[string]int64
	min    int64
	max    int64
	sum    float64
	n      int64
}

// Observe adds rows of one batch: their smallest and largest time, sum and number.
func (s *EventTimeStats) Observe(label string, least, most int64, sum float64, n int64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.maxima == nil {
		s.maxima = map[string]int64{}
	}
	if old, ok := s.maxima[label]; !ok || most > old {
		s.maxima[label] = most
	}
	if s.n == 0 || least < s.min {
		s.min = least
	}
	if s.n == 0 || most > s.max {
		s.max = most
	}
	s.sum += sum
	s.n += n
}

func (s *EventTimeStats) seen() map[string]int64 {
	s.mu.Lock()
	defer s.mu.Unlock()
	return maps.Clone(s.maxima)
}
