package incremental

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/tidemill/tidemill/logical"
)

// TriggerKind is when micro-batches may start.
type TriggerKind uint8

const (
	// Default starts a batch as soon as there is something new.
	Default TriggerKind = iota
	// ProcessingTime starts batches at multiples of an interval.
	ProcessingTime
	// Once runs exactly one batch over all that is there, and stops.
	Once
	// AvailableNow runs as many batches as the limits ask for over what is there at
	// the start, then the closing batch, and stops.
	AvailableNow
)

// Trigger decides when a micro-batch may start. The zero value is Default.
type Trigger struct {
	Kind     TriggerKind
	Interval time.Duration // of ProcessingTime
}

// ParseTrigger reads once, available-now, or an interval such as '10 seconds'; the
// empty text is the default trigger. interval parses an interval text.
func ParseTrigger(text string, interval func(string) (time.Duration, error)) (Trigger, error) {
	switch strings.ToLower(strings.TrimSpace(text)) {
	case "", "default":
		return Trigger{}, nil
	case "once":
		return Trigger{Kind: Once}, nil
	case "available-now", "available_now", "availablenow":
		return Trigger{Kind: AvailableNow}, nil
	}
	d, err := interval(text)
	if err != nil {
		return Trigger{}, fmt.Errorf("trigger %q is neither available-now nor once nor an interval such as '10 seconds'", text)
	}
	if d < 0 {
		return Trigger{}, fmt.Errorf("trigger %q is negative", text)
	}
	return Trigger{Kind: ProcessingTime, Interval: d}, nil
}

func (t Trigger) String() string {
	switch t.Kind {
	case ProcessingTime:
		return t.Interval.String()
	case Once:
		return "once"
	case AvailableNow:
		return "available-now"
	}
	return "default"
}

// Check refuses a kind that there is not, and an interval that is negative.
func (t Trigger) Check() error {
	switch {
	case t.Kind > AvailableNow:
		return logical.Usagef("TriggerKind(%d) is no kind of trigger", t.Kind)
	case t.Interval < 0:
		return logical.Usagef("the trigger's interval %s is negative", t.Interval)
	}
	return nil
}

// Repeats says whether the trigger goes on until the query is stopped.
func (t Trigger) Repeats() bool { return t.Kind == Default || t.Kind == ProcessingTime }

// next is when the batch after one that started at start may start.
func (t Trigger) next(start time.Time) time.Time {
	if t.Kind != ProcessingTime || t.Interval == 0 {
		return start
	}
	return start.Truncate(t.Interval).Add(t.Interval)
}

// Clock tells the time and waits; tests bring their own.
type Clock interface {
	Now() time.Time
	// Sleep returns after d, or with the context's error when it ends before.
	Sleep(ctx context.Context, d time.Duration) error
}

// SystemClock is the wall clock.
type SystemClock struct{}

// Now is the current time.
func (SystemClock) Now() time.Time { return time.Now() }

// Sleep waits.
func (SystemClock) Sleep(ctx context.Context, d time.Duration) error {
	if d <= 0 {
		return ctx.Err()
	}
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-t.C:
		return nil
	}
}
