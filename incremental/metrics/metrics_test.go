package metrics_test

import (
	"errors"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/tidemill/tidemill/incremental"
	"github.com/tidemill/tidemill/incremental/metrics"
)

func get(t *testing.T, m *metrics.Metrics, path string) (int, string) {
	t.Helper()
	w := httptest.NewRecorder()
	m.Handler().ServeHTTP(w, httptest.NewRequest(http.MethodGet, path, nil))
	return w.Code, w.Body.String()
}

func wantText(t *testing.T, body string, parts ...string) {
	t.Helper()
	for _, p := range parts {
		if !strings.Contains(body, p) {
			t.Errorf("%q is not in\n%s", p, body)
		}
	}
}

func TestMetrics(t *testing.T) {
	t.Parallel()
	m := metrics.New()
	var told []string
	l := m.Listener("a <b>", incremental.Listener{
		Started:    func(_, _, name string) { told = append(told, "started "+name) },
		Progress:   func(incremental.Progress) { told = append(told, "progress") },
		Terminated: func(error) { told = append(told, "terminated") },
	})
	if _, body := get(t, m, "/"); !strings.Contains(body, "<td>a &lt;b&gt;</td><td>not started</td>") {
		t.Errorf("before the start the page is\n%s", body)
	}
	l.Started("id", "run", "q")
	for id := range int64(2) {
		l.Progress(incremental.Progress{
			BatchID: id, NumInputRows: 10, BatchDuration: 20, Timestamp: "2024-01-01T00:01:00Z",
			ProcessedRowsPerSecond: 500,
			EventTime:              map[string]string{"watermark": "2024-01-01T00:00:30Z"},
			Sink:                   incremental.SinkProgress{NumOutputRows: 4},
			Sources: []incremental.SourceProgress{{
				Description: "in", NumInputRows: 10, NumMalformedRows: 1, Metrics: map[string]string{"numFilesOutstanding": "7"},
			}},
			StateOperators: []incremental.StateOperatorProgress{{
				Name: "dedup(k)", NumRowsTotal: 3, MemoryUsedBytes: 100, NumLateRows: 2, CustomMetrics: map[string]int64{"numDroppedDuplicateRows": 5},
			}},
		})
	}
	code, body := get(t, m, "/metrics")
	if code != http.StatusOK {
		t.Errorf("/metrics answers %d", code)
	}
	wantText(t, body,
		`tidemill_last_batch_id{query="a <b>"} 1`,
		`tidemill_batches_total{query="a <b>"} 2`,
		`tidemill_input_rows_total{query="a <b>",source="in"} 20`,
		`tidemill_output_rows_total{query="a <b>"} 8`,
		`tidemill_malformed_rows_total{query="a <b>",source="in"} 2`,
		`tidemill_source_backlog_files{query="a <b>",source="in"} 7`,
		`tidemill_late_rows_total{operator="dedup(k)",query="a <b>"} 4`,
		`tidemill_dropped_duplicate_rows_total{operator="dedup(k)",query="a <b>"} 10`,
		`tidemill_state_rows{operator="dedup(k)",query="a <b>"} 3`,
		`tidemill_state_bytes{operator="dedup(k)",query="a <b>"} 100`,
		`tidemill_watermark_lag_seconds{query="a <b>"} 30`,
		`tidemill_processed_rows_per_second{query="a <b>"} 500`,
		`tidemill_batch_duration_seconds_sum{query="a <b>"} 0.04`,
	)
	if code, body := get(t, m, "/healthz"); code != http.StatusOK || body != "ok\n" {
		t.Errorf("/healthz answers %d %q", code, body)
	}
	l.Terminated(errors.New("x < y"))
	if code, body := get(t, m, "/healthz"); code != http.StatusServiceUnavailable || body != "a <b>: x < y\n" {
		t.Errorf("/healthz answers %d %q after a failure", code, body)
	}
	_, body = get(t, m, "/")
	wantText(t, body, "<td>failed: x &lt; y</td>", `<td class="n">20</td>`, "<td>2024-01-01T00:00:30Z</td>")
	if got := strings.Join(told, ", "); got != "started q, progress, progress, terminated" {
		t.Errorf("the next listener was told %s", got)
	}
}
