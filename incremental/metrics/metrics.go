package metrics

import (
	"strconv"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/tidemill/tidemill/incremental"
)

// Metrics gathers what queries report. Its methods are safe for concurrent use.
type Metrics struct {
	registry *prometheus.Registry

	running, lastBatch, lastBatchTime, watermark, watermarkLag *prometheus.GaugeVec // query
	inputRate, processedRate                                   *prometheus.GaugeVec // query
	stateRows, stateBytes                                      *prometheus.GaugeVec // query, operator
	backlogFiles                                               *prometheus.GaugeVec // query, source

	batches, outputRows, futureRows          *prometheus.CounterVec   // query
	inputRows, malformedRows, malformedFiles *prometheus.CounterVec   // query, source
	lateRows, droppedDuplicates              *prometheus.CounterVec   // query, operator
	duration                                 *prometheus.HistogramVec // query

	mu      sync.Mutex
	queries map[string]*query
	order   []string
}

// query is what the page and the health check show of one query.
type query struct {
	name             string
	started, running bool
	err              error
	progress         *incremental.Progress // the newest; nil before the first batch
	// Sums of this run.
	rows, out, late, malformed int64
}

// New returns Metrics of no queries.
func New() *Metrics {
	m := &Metrics{registry: prometheus.NewRegistry(), queries: map[string]*query{}}
	gauge := func(name, help string, labels ...string) *prometheus.GaugeVec {
		v := prometheus.NewGaugeVec(prometheus.GaugeOpts{Namespace: "tidemill", Name: name, Help: help}, append([]string{"query"}, labels...))
		m.registry.MustRegister(v)
		return v
	}
	counter := func(name, help string, labels ...string) *prometheus.CounterVec {
		v := prometheus.NewCounterVec(prometheus.CounterOpts{Namespace: "tidemill", Name: name, Help: help}, append([]string{"query"}, labels...))
		m.registry.MustRegister(v)
		return v
	}
	m.running = gauge("query_running", "Whether the query runs (1) or has ended (0).")
	m.lastBatch = gauge("last_batch_id", "Number of the last committed batch.")
	m.lastBatchTime = gauge("last_batch_timestamp_seconds", "When the last committed batch began.")
	m.watermark = gauge("watermark_timestamp_seconds", "Watermark of the last batch; absent while there is none.")
	m.watermarkLag = gauge("watermark_lag_seconds", "How far the watermark trailed the clock when the last batch began.")
	m.inputRate = gauge("input_rows_per_second", "Rows that came in, per second since the batch before.")
	m.processedRate = gauge("processed_rows_per_second", "Rows of the last batch per second of its duration.")
	m.stateRows = gauge("state_rows", "Rows an operator remembers.", "operator")
	m.stateBytes = gauge("state_bytes", "Memory that the state of an operator takes.", "operator")
	m.backlogFiles = gauge("source_backlog_files", "Files found and not read yet.", "source")
	m.batches = counter("batches_total", "Batches committed by this run.")
	m.inputRows = counter("input_rows_total", "Rows read.", "source")
	m.outputRows = counter("output_rows_total", "Rows given to the sink.")
	m.lateRows = counter("late_rows_total", "Rows dropped for being behind the watermark.", "operator")
	m.droppedDuplicates = counter("dropped_duplicate_rows_total", "Rows dropped as duplicates.", "operator")
	m.malformedRows = counter("malformed_rows_total", "Records that could not be read as declared.", "source")
	m.malformedFiles = counter("malformed_files_total", "Files that could not be read.", "source")
	m.futureRows = counter("future_rows_total", "Rows further ahead of the clock than max_future allows.")
	m.duration = prometheus.NewHistogramVec(prometheus.HistogramOpts{
		Namespace: "tidemill", Name: "batch_duration_seconds", Help: "How long batches took, from the look for new data to the commit.",
		Buckets: prometheus.ExponentialBuckets(0.005, 2, 16),
	}, []string{"query"})
	m.registry.MustRegister(m.duration)
	return m
}

// Listener is the Listener of one query, which hands on to next what it is told.
func (m *Metrics) Listener(name string, next incremental.Listener) incremental.Listener {
	m.mu.Lock()
	m.of(name)
	m.mu.Unlock()
	l := next
	l.Started = func(id, runID, queryName string) {
		m.started(name)
		if next.Started != nil {
			next.Started(id, runID, queryName)
		}
	}
	l.Progress = func(p incremental.Progress) {
		m.progress(name, p)
		if next.Progress != nil {
			next.Progress(p)
		}
	}
	l.Terminated = func(err error) {
		m.terminated(name, err)
		if next.Terminated != nil {
			next.Terminated(err)
		}
	}
	return l
}

// of finds or makes what is known of a query. The lock is held.
func (m *Metrics) of(name string) *query {
	q := m.queries[name]
	if q == nil {
		q = &query{name: name}
		m.queries[name] = q
		m.order = append(m.order, name)
	}
	return q
}

func (m *Metrics) started(name string) {
	m.mu.Lock()
	defer m.mu.Unlock()
	q := m.of(name)
	q.started, q.running, q.err = true, true, nil
	m.running.WithLabelValues(name).Set(1)
}

func (m *Metrics) terminated(name string, err error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	q := m.of(name)
	q.running, q.err = false, err
	m.running.WithLabelValues(name).Set(0)
}

func (m *Metrics) progress(name string, p incremental.Progress) {
	m.mu.Lock()
	defer m.mu.Unlock()
	q := m.of(name)
	q.progress = &p
	q.rows += p.NumInputRows
	q.out += max(p.Sink.NumOutputRows, 0)
	m.lastBatch.WithLabelValues(name).Set(float64(p.BatchID))
	m.batches.WithLabelValues(name).Inc()
	m.outputRows.WithLabelValues(name).Add(float64(max(p.Sink.NumOutputRows, 0)))
	m.futureRows.WithLabelValues(name).Add(float64(p.NumFutureRows))
	m.duration.WithLabelValues(name).Observe(float64(p.BatchDuration) / 1000)
	setRate(m.inputRate.WithLabelValues(name), p.InputRowsPerSecond)
	setRate(m.processedRate.WithLabelValues(name), p.ProcessedRowsPerSecond)
	m.times(name, p)
	for _, s := range p.Sources {
		q.malformed += s.NumMalformedRows
		m.source(name, s)
	}
	for _, o := range p.StateOperators {
		q.late += o.NumLateRows
		m.stateRows.WithLabelValues(name, o.Name).Set(float64(o.NumRowsTotal))
		m.stateBytes.WithLabelValues(name, o.Name).Set(float64(o.MemoryUsedBytes))
		m.lateRows.WithLabelValues(name, o.Name).Add(float64(o.NumLateRows))
		m.droppedDuplicates.WithLabelValues(name, o.Name).Add(float64(o.CustomMetrics["numDroppedDuplicateRows"]))
	}
}

// times sets what is told as a time.
func (m *Metrics) times(name string, p incremental.Progress) {
	batch, err := time.Parse(time.RFC3339Nano, p.Timestamp)
	if err != nil {
		return
	}
	m.lastBatchTime.WithLabelValues(name).Set(seconds(batch))
	if w, err := time.Parse(time.RFC3339Nano, p.EventTime["watermark"]); err == nil {
		m.watermark.WithLabelValues(name).Set(seconds(w))
		m.watermarkLag.WithLabelValues(name).Set(batch.Sub(w).Seconds())
	}
}

func (m *Metrics) source(name string, s incremental.SourceProgress) {
	m.inputRows.WithLabelValues(name, s.Description).Add(float64(s.NumInputRows))
	m.malformedRows.WithLabelValues(name, s.Description).Add(float64(s.NumMalformedRows))
	m.malformedFiles.WithLabelValues(name, s.Description).Add(float64(s.NumMalformedFiles))
	if n, err := strconv.ParseInt(s.Metrics["numFilesOutstanding"], 10, 64); err == nil {
		m.backlogFiles.WithLabelValues(name, s.Description).Set(float64(n))
	}
}

func seconds(t time.Time) float64 { return float64(t.UnixMicro()) / 1e6 }

// setRate leaves the gauge as it was where the rate cannot be told.
func setRate(g prometheus.Gauge, r incremental.Rate) {
	if !r.IsZero() {
		g.Set(float64(r))
	}
}
