package incremental

import (
	"time"

	"github.com/tidemill/tidemill/checkpoint"
	"github.com/tidemill/tidemill/logical/connector"
)

// timings are how long the steps of one batch took.
type timings struct {
	latestOffset, walCommit, queryPlanning, addBatch, commitOffsets, total time.Duration
	// early is what came before offsets/N: of a batch that was begun early, it is no part of
	// the total of the batch before.
	early time.Duration
}

func (t timings) durationMs() map[string]int64 {
	return map[string]int64{
		"latestOffset": t.latestOffset.Milliseconds(), "walCommit": t.walCommit.Milliseconds(),
		"queryPlanning": t.queryPlanning.Milliseconds(), "getBatch": 0, "addBatch": t.addBatch.Milliseconds(),
		"commitOffsets": t.commitOffsets.Milliseconds(), "triggerExecution": t.total.Milliseconds(),
	}
}

// reportProgress makes the report of a committed batch and hands it on.
func (x *streamExecution) reportProgress(entry *checkpoint.OffsetEntry, c *checkpoint.CommitEntry, b *batchResult, triggered time.Time) {
	t := x.exec.timings
	p := Progress{
		ID: x.q.id, RunID: x.q.runID, Name: x.q.name,
		Timestamp: formatTime(triggered.UnixMicro()), BatchID: entry.Batch,
		BatchDuration: t.total.Milliseconds(), NumInputRows: c.Counters.In,
		ProcessedRowsPerSecond: rate(c.Counters.In, t.total),
		InputRowsPerSecond:     rate(c.Counters.In, x.sinceLast(triggered)),
		DurationMs:             t.durationMs(),
		EventTime:              b.run.eventTimes.eventTime(x.watermarks.declared(), entry.EvictionWatermark),
		StateOperators:         b.operators,
		NumFutureRows:          b.run.eventTimes.future,
		Sink:                   SinkProgress{Description: describe(x.sink, x.cfg.SinkName), NumOutputRows: b.rows},
	}
	for i := range x.sources {
		p.Sources = append(p.Sources, x.sourceProgress(i, entry.Sources[i], c.Sources[i], b, t.total, x.sinceLast(triggered)))
	}
	x.lastStart = triggered
	for _, op := range p.StateOperators {
		if w := x.growth.observe(op); w != "" {
			p.Warnings = append(p.Warnings, w)
		}
	}
	x.q.report(p)
	x.cfg.Listener.progress(p)
}

// sinceLast is the time since the previous trigger; zero, so that the rate cannot be
// told, for the first.
func (x *streamExecution) sinceLast(triggered time.Time) time.Duration {
	if x.lastStart.IsZero() {
		return 0
	}
	return triggered.Sub(x.lastStart)
}

// sourceMetrics are those that sources tell of themselves, nil for one that does not.
func (x *streamExecution) sourceMetrics() []map[string]string {
	all := make([]map[string]string, len(x.sources))
	for i, s := range x.sources {
		if m, ok := s.source.(connector.Measured); ok {
			all[i] = m.Metrics()
		}
	}
	return all
}

func (x *streamExecution) sourceProgress(i int, r checkpoint.SourceRange, end checkpoint.SourceEnd, b *batchResult, took, since time.Duration) SourceProgress {
	s := x.sources[i]
	p := SourceProgress{
		Metrics:     b.sources[i],
		Description: describe(s.source, s.name),
		StartOffset: offsetJSON(r.Start), EndOffset: offsetJSON(r.End), LatestOffset: offsetJSON(r.End),
		NumInputRows: end.Rows, NumMalformedRows: end.Malformed,
		InputRowsPerSecond: rate(end.Rows, since), ProcessedRowsPerSecond: rate(end.Rows, took),
	}
	if stats := b.run.scans[s.name]; stats != nil {
		p.NumMalformedFiles = stats.MalformedFiles.Load()
		for _, e := range stats.Samples() {
			p.MalformedSamples = append(p.MalformedSamples, e.Error())
		}
	}
	return p
}
