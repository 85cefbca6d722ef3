package incremental

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/tidemill/tidemill/logical"
	"github.com/tidemill/tidemill/logical/connector"
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
	// idleAfter is how long a node without rows holds the others back; 0: for ever.
	idleAfter time.Duration
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
	// seen is the batch time at which each node last had rows; one that had none yet is
	// idle since the query began.
	seen map[string]int64
	// began is the time of the first batch, in microseconds; 0 before it.
	began int64
}

// newWatermarks finds the Watermark nodes of an analyzed plan.
func newWatermarks(plan logical.Node, policy WatermarkPolicy) (*watermarks, error) {
	w := &watermarks{policy: policy, maxima: map[string]int64{}, seen: map[string]int64{}}
	var err error
	logical.Walk(plan, func(n logical.Node) bool {
		m, ok := n.(*logical.Watermark)
		if !ok || !logical.IsStreaming(m) {
			return true
		}
		node := watermarkNode{label: m.Label, delay: m.Delay}
		var optionErr error
		node.idleAfter, optionErr = streamOption(m, "idle_after")
		err = errors.Join(err, optionErr)
		_, optionErr = streamOption(m, "max_future") // used a batch at a time, refused now
		err = errors.Join(err, optionErr)
		w.nodes = append(w.nodes, node)
		return true
	})
	return w, err
}

// streamOption is a duration among the options of the stream below a Watermark; 0 if it
// is not set.
func streamOption(n logical.Node, key string) (d time.Duration, err error) {
	logical.Walk(n, func(x logical.Node) bool {
		scan, ok := x.(*logical.StreamScan)
		if !ok || scan.Stream.Decl == nil || scan.Stream.Decl.Options[key] == "" {
			return true
		}
		text := scan.Stream.Decl.Options[key]
		if d, err = connector.ParseDuration(text); err != nil || d <= 0 {
			err = &connector.OptionError{Key: key, Value: text, HasValue: true, Reason: "it takes a duration such as '5 minutes'"}
		}
		return err == nil
	})
	return d, err
}

// declared says whether the plan has a watermark at all.
func (w *watermarks) declared() bool { return len(w.nodes) > 0 }

// restore takes up what a checkpoint holds.
func (w *watermarks) restore(maxima, seen map[string]int64, late, evict *int64) {
	w.maxima = maps.Clone(maxima)
	if w.maxima == nil {
		w.maxima = map[string]int64{}
	}
	maps.Copy(w.seen, seen)
	w.late, w.evict = late, evict
}

// after is the maxima and the watermark when a batch at batchTime has seen the given
// maxima. The watermark never goes back.
func (w *watermarks) after(seen map[string]int64, batchTime int64) (maxima map[string]int64, next *int64) {
	w.begin(batchTime)
	maxima = maps.Clone(w.maxima)
	for label, t := range seen {
		w.seen[label] = batchTime
		if old, ok := maxima[label]; !ok || t > old {
			maxima[label] = t
		}
	}
	return maxima, w.forward(w.global(maxima, batchTime))
}

// lastSeen is what the checkpoint keeps so that a stream stays idle over a restart: of
// the nodes with idle_after, when they last had rows.
func (w *watermarks) lastSeen() map[string]int64 {
	var out map[string]int64
	for _, n := range w.nodes {
		if n.idleAfter == 0 {
			continue
		}
		if out == nil {
			out = map[string]int64{}
		}
		out[n.label] = w.lastRows(n)
	}
	return out
}

// lastRows is when a node last had rows, or when the query began.
func (w *watermarks) lastRows(n watermarkNode) int64 {
	if last, ok := w.seen[n.label]; ok {
		return last
	}
	return w.began
}

// forward is the larger of the watermark in force and a candidate.
func (w *watermarks) forward(candidate *int64) *int64 {
	if candidate == nil || w.evict != nil && *candidate <= *w.evict {
		return w.evict
	}
	return candidate
}

// passIdle moves the watermark on where a node that held it back has been idle for as
// long as it may.
func (w *watermarks) passIdle(now int64) {
	w.begin(now)
	w.evict = w.forward(w.global(w.maxima, now))
}

// begin notes the time of the first batch, or of the first look for one.
func (w *watermarks) begin(now int64) {
	if w.began == 0 {
		w.began = now
	}
}

// isIdle says whether a node no longer holds the others back.
func (w *watermarks) isIdle(n watermarkNode, now int64) bool {
	return n.idleAfter > 0 && now-w.lastRows(n) >= n.idleAfter.Microseconds()
}

// global joins the nodes' watermarks by the policy. While others have rows, idle ones
// are left out.
func (w *watermarks) global(maxima map[string]int64, now int64) *int64 {
	var all, idle []int64
	for _, n := range w.nodes {
		m, known := maxima[n.label]
		switch t := m - n.delay.Microseconds(); {
		case known && w.isIdle(n, now):
			idle = append(idle, t)
		case known:
			all = append(all, t)
		case w.policy == MinPolicy && !w.isIdle(n, now):
			return nil
		}
	}
	if len(all) == 0 {
		all = idle
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
	future int64
}

// Future counts rows too far ahead of the clock to move the watermark.
func (s *EventTimeStats) Future(n int64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.future += n
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
