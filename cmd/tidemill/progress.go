package main

import (
	"encoding/json"
	"fmt"
	"io"
	"os"
	"strings"
	"sync"

	"golang.org/x/term"

	"github.com/tidemill/tidemill/columnar"
	"github.com/tidemill/tidemill/incremental"
)

// reporter shows progress on stderr: a live line on a terminal, a line a batch
// (plain), an object a batch (jsonl), or nothing. Several queries share it.
type reporter struct {
	mu    sync.Mutex
	w     io.Writer
	style string
	live  bool // the live line stands without a line end
	rows  map[string]int64
	last  map[string]string
	order []string
	told  map[string]bool // warnings shown
}

var progressStyles = []string{"auto", "plain", "jsonl", "none"}

func newReporter(style string, w *os.File) (*reporter, error) {
	r := &reporter{w: w, style: style, rows: map[string]int64{}, last: map[string]string{}, told: map[string]bool{}}
	switch style {
	case "auto":
		r.style = "plain"
		if term.IsTerminal(int(w.Fd())) {
			r.style = "live"
		}
	case "plain", "jsonl", "none":
	default:
		return nil, usagef("there is no --progress %q%s", style, columnar.DidYouMean(style, progressStyles))
	}
	return r, nil
}

// listener is what one query tells the reporter.
func (r *reporter) listener(query string) incremental.Listener {
	return incremental.Listener{
		Progress: func(p incremental.Progress) { r.progress(query, p) },
		Warn:     r.warn,
	}
}

func (r *reporter) progress(query string, p incremental.Progress) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.rows[query] += p.NumInputRows
	for _, w := range p.Warnings {
		if !r.told[query+w[:min(len(w), 40)]] {
			r.told[query+w[:min(len(w), 40)]] = true
			r.line("warning: " + query + ": " + w)
		}
	}
	switch r.style {
	case "jsonl":
		data, err := json.Marshal(p)
		if err == nil {
			fmt.Fprintf(r.w, "%s\n", data)
		}
	case "plain":
		fmt.Fprintln(r.w, summary(query, p, r.rows[query]))
	case "live":
		if _, known := r.last[query]; !known {
			r.order = append(r.order, query)
		}
		r.last[query] = summary(query, p, r.rows[query])
		r.redraw()
	}
}

// summary is a batch in one line: rates, lag, state, watermark.
func summary(query string, p incremental.Progress, total int64) string {
	var sb strings.Builder
	fmt.Fprintf(&sb, "%s batch %d: in %d", query, p.BatchID, p.NumInputRows)
	if !p.ProcessedRowsPerSecond.IsZero() && p.NumInputRows > 0 {
		fmt.Fprintf(&sb, " (%s rows/s)", short(float64(p.ProcessedRowsPerSecond)))
	}
	fmt.Fprintf(&sb, " out %d, total in %d, %d ms", p.Sink.NumOutputRows, total, p.DurationMs["triggerExecution"])
	var state, bytes, late, malformed int64
	for _, o := range p.StateOperators {
		state += o.NumRowsTotal
		bytes += o.MemoryUsedBytes
		late += o.NumLateRows
	}
	for _, s := range p.Sources {
		malformed += s.NumMalformedRows
	}
	if len(p.StateOperators) > 0 {
		fmt.Fprintf(&sb, ", state %d rows %s", state, byteSize(bytes))
	}
	if w := p.EventTime["watermark"]; w != "" {
		sb.WriteString(", watermark " + w)
	}
	if late > 0 {
		fmt.Fprintf(&sb, ", late %d", late)
	}
	if malformed > 0 {
		fmt.Fprintf(&sb, ", malformed %d", malformed)
	}
	return sb.String()
}

func short(v float64) string {
	switch {
	case v >= 1e6:
		return fmt.Sprintf("%.1fM", v/1e6)
	case v >= 1e3:
		return fmt.Sprintf("%.0fk", v/1e3)
	}
	return fmt.Sprintf("%.0f", v)
}

func byteSize(n int64) string {
	switch {
	case n >= 1<<30:
		return fmt.Sprintf("%.1f GB", float64(n)/(1<<30))
	case n >= 1<<20:
		return fmt.Sprintf("%.1f MB", float64(n)/(1<<20))
	case n >= 1<<10:
		return fmt.Sprintf("%.0f kB", float64(n)/(1<<10))
	}
	return fmt.Sprintf("%d B", n)
}

// redraw shows the newest line of each query in place of the last picture.
func (r *reporter) redraw() {
	parts := make([]string, len(r.order))
	for i, q := range r.order {
		parts[i] = r.last[q]
	}
	fmt.Fprintf(r.w, "\r\x1b[K%s", strings.Join(parts, " | "))
	r.live = true
}

// line writes a line of its own above the live one.
func (r *reporter) line(text string) {
	if r.live {
		fmt.Fprint(r.w, "\r\x1b[K")
	}
	fmt.Fprintln(r.w, text)
	if r.live {
		r.redraw()
	}
}

// warn shows a warning, a line of text in every style.
func (r *reporter) warn(text string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.line("warning: " + text)
}

// finish ends the live line.
func (r *reporter) finish() {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.live {
		fmt.Fprintln(r.w)
		r.live = false
	}
}
