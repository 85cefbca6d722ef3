package metrics

import (
	"fmt"
	"html"
	"io"
	"net/http"
	"strings"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promhttp"

	"github.com/tidemill/tidemill/incremental"
)

// Handler serves /metrics in the text format of Prometheus, /healthz, which is 200 unless
// a query ended with an error, and / for people.
func (m *Metrics) Handler() http.Handler {
	mux := http.NewServeMux()
	mux.Handle("GET /metrics", promhttp.HandlerFor(prometheus.GathererFunc(locked(&m.mu, m.registry.Gather)), promhttp.HandlerOpts{}))
	mux.HandleFunc("GET /healthz", m.health)
	mux.HandleFunc("GET /{$}", m.page)
	return mux
}

// locked is f under a lock: what is read together was changed together, by one batch.
func locked[T any](mu *sync.Mutex, f func() (T, error)) func() (T, error) {
	return func() (T, error) {
		mu.Lock()
		defer mu.Unlock()
		return f()
	}
}

func (m *Metrics) health(w http.ResponseWriter, _ *http.Request) {
	m.mu.Lock()
	defer m.mu.Unlock()
	w.Header().Set("Content-Type", "text/plain; charset=utf-8")
	var failed []string
	for _, name := range m.order {
		if err := m.queries[name].err; err != nil {
			failed = append(failed, name+": "+err.Error())
		}
	}
	if len(failed) > 0 {
		w.WriteHeader(http.StatusServiceUnavailable)
		_, _ = io.WriteString(w, strings.Join(failed, "\n")+"\n") // a client that went away
		return
	}
	_, _ = io.WriteString(w, "ok\n")
}

// refreshEvery is how often the page asks for itself again.
const refreshEvery = 2 * time.Second

const pageHead = `<!doctype html>
<html lang="en"><head><meta charset="utf-8"><meta http-equiv="refresh" content="%d"><title>tidemill</title>
<style>body{font:14px sans-serif;margin:2em}table{border-collapse:collapse}th,td{padding:.3em .8em;text-align:left;border-bottom:1px solid #ddd}td.n{text-align:right}</style>
</head><body><h1>tidemill</h1><table>
<tr>%s</tr>
`

// columns of the page: the head, and the cell of a query.
var columns = []struct {
	head   string
	number bool
	cell   func(q *query) string
}{
	{"query", false, func(q *query) string { return q.name }},
	{"status", false, (*query).status},
	{"batch", true, batchCell(func(p *incremental.Progress) string { return fmt.Sprint(p.BatchID) })},
	{"at", false, batchCell(func(p *incremental.Progress) string { return p.Timestamp })},
	{"took", true, batchCell(func(p *incremental.Progress) string { return fmt.Sprintf("%d ms", p.BatchDuration) })},
	{"rows/s", true, batchCell(rateText)},
	{"rows in", true, func(q *query) string { return fmt.Sprint(q.rows) }},
	{"rows out", true, func(q *query) string { return fmt.Sprint(q.out) }},
	{"late", true, func(q *query) string { return fmt.Sprint(q.late) }},
	{"malformed", true, func(q *query) string { return fmt.Sprint(q.malformed) }},
	{"files waiting", true, batchCell(backlogText)},
	{"state rows", true, batchCell(func(p *incremental.Progress) string { return fmt.Sprint(stateSum(p, false)) })},
	{"state bytes", true, batchCell(func(p *incremental.Progress) string { return fmt.Sprint(stateSum(p, true)) })},
	{"watermark", false, batchCell(func(p *incremental.Progress) string { return p.EventTime["watermark"] })},
}

// batchCell is a cell that is empty before the first batch.
func batchCell(text func(p *incremental.Progress) string) func(q *query) string {
	return func(q *query) string {
		if q.progress == nil {
			return ""
		}
		return text(q.progress)
	}
}

func rateText(p *incremental.Progress) string {
	if p.ProcessedRowsPerSecond.IsZero() {
		return ""
	}
	return fmt.Sprintf("%.0f", float64(p.ProcessedRowsPerSecond))
}

// backlogText is the files that wait, by source.
func backlogText(p *incremental.Progress) string {
	var waiting []string
	for _, s := range p.Sources {
		if n := s.Metrics["numFilesOutstanding"]; n != "" {
			waiting = append(waiting, n)
		}
	}
	return strings.Join(waiting, ", ")
}

func stateSum(p *incremental.Progress, bytes bool) (n int64) {
	for _, o := range p.StateOperators {
		if bytes {
			n += o.MemoryUsedBytes
		} else {
			n += o.NumRowsTotal
		}
	}
	return n
}

func (q *query) status() string {
	switch {
	case q.err != nil:
		return "failed: " + q.err.Error()
	case q.running:
		return "running"
	case !q.started:
		return "not started"
	}
	return "ended"
}

func (m *Metrics) page(w http.ResponseWriter, _ *http.Request) {
	m.mu.Lock()
	defer m.mu.Unlock()
	var sb strings.Builder
	var heads strings.Builder
	for _, c := range columns {
		heads.WriteString("<th>" + c.head + "</th>")
	}
	fmt.Fprintf(&sb, pageHead, int(refreshEvery.Seconds()), heads.String())
	for _, name := range m.order {
		sb.WriteString("<tr>")
		for _, c := range columns {
			class := ""
			if c.number {
				class = ` class="n"`
			}
			fmt.Fprintf(&sb, "<td%s>%s</td>", class, html.EscapeString(c.cell(m.queries[name])))
		}
		sb.WriteString("</tr>\n")
	}
	sb.WriteString("</table></body></html>\n")
	w.Header().Set("Content-Type", "text/html; charset=utf-8")
	_, _ = io.WriteString(w, sb.String()) // a client that went away
}
