package main

import (
	"encoding/json"
	"fmt"
	"io"
	"os"
	"strings"
	"sync"
	"time"

	"golang.org/x/term"

	"github.com/tidemill/tidemill/columnar"
	"github.com/tidemill/tidemill/incremental"
)

// reporter shows progress on stderr: a live line on a terminal, a line a batch
// (plain), an object a batch (jsonl), or nothing. Several queries share it.
type reporter struct {
	mu       sync.Mutex
	w        io.Writer
	style    string
	width    func() int // of the terminal
	live     bool       // the live line stands without a line end
	queries  map[string]*tally
	order    []string
	warnings warnings
}

// tally is what one query has done so far in this run.
type tally struct {
	rows    int64
	busy    time.Duration // in batches
	summary string        // of the newest batch, for the live line
}

var progressStyles = []string{"auto", "plain", "jsonl", "none"}

func newReporter(style string, w *os.File) (*reporter, error) {
	r := &reporter{w: w, style: style, queries: map[string]*tally{}}
	switch style {
	case "auto":
		r.style = "plain"
		if term.IsTerminal(int(w.Fd())) {
			r.style = "live"
			r.width = func() int { width, _, _ := term.GetSize(int(w.Fd())); return width }
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
	for _, w := range p.Warnings {
		r.warnOnce(query + ": " + w)
	}
	t := r.queries[query]
	if t == nil {
		t = &tally{}
		r.queries[query] = t
		r.order = append(r.order, query)
	}
	t.rows += p.NumInputRows
	t.busy += time.Duration(p.DurationMs["triggerExecution"]) * time.Millisecond
	switch r.style {
	case "jsonl":
		data, err := json.Marshal(p)
		if err == nil {
			fmt.Fprintf(r.w, "%s\n", data)
		}
	case "plain":
		fmt.Fprintln(r.w, plainLine(query, p, t))
	case "live":
		t.summary = liveText(query, p, t)
		r.redraw()
	}
}

// plainLine is a batch in one line: rows and rate, total, time, then what the query keeps.
func plainLine(query string, p incremental.Progress, t *tally) string {
	var sb strings.Builder
	fmt.Fprintf(&sb, "%s batch %d: in %d", query, p.BatchID, p.NumInputRows)
	if !p.ProcessedRowsPerSecond.IsZero() && p.NumInputRows > 0 {
		fmt.Fprintf(&sb, " (%s rows/s)", short(float64(p.ProcessedRowsPerSecond)))
	}
	if p.Sink.NumOutputRows >= 0 {
		fmt.Fprintf(&sb, " out %d", p.Sink.NumOutputRows)
	}
	fmt.Fprintf(&sb, ", total in %d, %d ms", t.rows, p.DurationMs["triggerExecution"])
	for _, part := range keeps(p) {
		sb.WriteString(", " + part)
	}
	return sb.String()
}

// liveText is the newest batch of a query for the live line: short, the rate an average
// over the run, so that it can be read while it changes.
func liveText(query string, p incremental.Progress, t *tally) string {
	text := fmt.Sprintf("%s: batch %d, %s rows", query, p.BatchID, short(float64(t.rows)))
	if t.rows > 0 && t.busy > 0 {
		text += fmt.Sprintf(" at %s/s", short(float64(t.rows)/t.busy.Seconds()))
	}
	for _, part := range keeps(p) {
		text += ", " + part
	}
	return text
}

// keeps lists the state, the watermark with how far it trails the clock, and what was
// dropped.
func keeps(p incremental.Progress) []string {
	var parts []string
	var state, bytes, late, malformed, files int64
	for _, o := range p.StateOperators {
		state += o.NumRowsTotal
		bytes += o.MemoryUsedBytes
		late += o.NumLateRows
	}
	for _, s := range p.Sources {
		malformed += s.NumMalformedRows
		files += s.NumMalformedFiles
	}
	if len(p.StateOperators) > 0 {
		parts = append(parts, fmt.Sprintf("state %s rows %s", short(float64(state)), byteSize(bytes)))
	}
	if w := p.EventTime["watermark"]; w != "" {
		parts = append(parts, "watermark "+w+lag(w, p.Timestamp))
	}
	for _, dropped := range []struct {
		n    int64
		what string
	}{{late, "late"}, {malformed, "malformed"}, {files, "damaged files"}} {
		if dropped.n > 0 {
			parts = append(parts, fmt.Sprintf("%s %d", dropped.what, dropped.n))
		}
	}
	return parts
}

// lag is how far the watermark trails the time of the batch. Where it is more than some
// days the data is history, and the number says nothing.
func lag(watermark, batch string) string {
	w, errW := time.Parse(time.RFC3339Nano, watermark)
	b, errB := time.Parse(time.RFC3339Nano, batch)
	d := b.Sub(w)
	switch {
	case errW != nil || errB != nil || d < 0 || d > 72*time.Hour:
		return ""
	case d < 10*time.Second:
		return fmt.Sprintf(" (%.1f s behind)", d.Seconds())
	}
	return fmt.Sprintf(" (%s behind)", d.Round(time.Second))
}

func short(v float64) string {
	switch {
	case v >= 1e9:
		return fmt.Sprintf("%.1fG", v/1e9)
	case v >= 1e6:
		return fmt.Sprintf("%.1fM", v/1e6)
	case v >= 1e4:
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

// eraseLine goes to the beginning of the line and clears it.
const eraseLine = "\r\x1b[K"

// redraw shows the newest text of each query in place of the last picture, each cut to
// its share of the terminal's width: a line that wraps could not be erased.
func (r *reporter) redraw() {
	width := r.width()
	if width <= 0 {
		width = 80
	}
	const between = " | "
	share := (width - 1 - len(between)*(len(r.order)-1)) / len(r.order)
	parts := make([]string, len(r.order))
	for i, q := range r.order {
		parts[i] = cutTo(r.queries[q].summary, share)
	}
	fmt.Fprint(r.w, eraseLine, cutTo(strings.Join(parts, between), width-1))
	r.live = true
}

// cutTo cuts a text to so many characters.
func cutTo(text string, most int) string {
	runes := []rune(text)
	if len(runes) <= most {
		return text
	}
	return string(runes[:max(most-1, 0)]) + "…"
}

// warn shows a warning, a line of text in every style.
func (r *reporter) warn(text string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.warnOnce(text)
}

// note shows a line of text in every style.
func (r *reporter) note(text string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	fmt.Fprintln(r.w, text)
}

// warnOnce writes a warning above the live line, unless it was shown already.
func (r *reporter) warnOnce(text string) {
	if !r.warnings.isNew(text) {
		return
	}
	if r.live {
		fmt.Fprint(r.w, eraseLine)
	}
	fmt.Fprintln(r.w, "warning: "+text)
	if r.live {
		r.redraw()
	}
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

// warnings remembers those that were shown: what is found again every time a folder is
// listed is said once.
type warnings struct{ shown map[string]bool }

// maxWarnings bounds what is remembered.
const maxWarnings = 1000

func (w *warnings) isNew(text string) bool {
	if w.shown[text] {
		return false
	}
	if w.shown == nil || len(w.shown) >= maxWarnings {
		w.shown = map[string]bool{}
	}
	w.shown[text] = true
	return true
}
