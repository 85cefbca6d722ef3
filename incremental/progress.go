package incremental

import (
	"encoding/json"
	"math"
	"time"

	"github.com/tidemill/tidemill/logical/connector"
)

// Progress reports one micro-batch, in the shape and with the names of Spark's
// StreamingQueryProgress.
type Progress struct {
	ID                     string                  `json:"id"`
	RunID                  string                  `json:"runId"`
	Name                   string                  `json:"name,omitempty"`
	Timestamp              string                  `json:"timestamp"`
	BatchID                int64                   `json:"batchId"`
	BatchDuration          int64                   `json:"batchDuration"` // ms
	NumInputRows           int64                   `json:"numInputRows"`
	InputRowsPerSecond     Rate                    `json:"inputRowsPerSecond,omitzero"`
	ProcessedRowsPerSecond Rate                    `json:"processedRowsPerSecond,omitzero"`
	DurationMs             map[string]int64        `json:"durationMs"`
	EventTime              map[string]string       `json:"eventTime,omitempty"`
	StateOperators         []StateOperatorProgress `json:"stateOperators"`
	Sources                []SourceProgress        `json:"sources"`
	// NumFutureRows are rows further ahead of the clock than max_future allows.
	NumFutureRows   int64                     `json:"numFutureRows,omitempty"`
	Sink            SinkProgress              `json:"sink"`
	Warnings        []string                  `json:"warnings,omitempty"`
	ObservedMetrics map[string]map[string]any `json:"observedMetrics,omitempty"`
}

// Rate is rows per second; one that is not finite is left out of the JSON.
type Rate float64

// IsZero makes omitzero leave out rates that cannot be told.
func (r Rate) IsZero() bool { return math.IsNaN(float64(r)) || math.IsInf(float64(r), 0) }

// StateOperatorProgress reports one stateful operator.
type StateOperatorProgress struct {
	OperatorName              string           `json:"operatorName"`
	Name                      string           `json:"name"` // the stable name in the checkpoint
	NumRowsTotal              int64            `json:"numRowsTotal"`
	NumRowsUpdated            int64            `json:"numRowsUpdated"`
	AllUpdatesTimeMs          int64            `json:"allUpdatesTimeMs"`
	NumRowsRemoved            int64            `json:"numRowsRemoved"`
	AllRemovalsTimeMs         int64            `json:"allRemovalsTimeMs"`
	CommitTimeMs              int64            `json:"commitTimeMs"`
	MemoryUsedBytes           int64            `json:"memoryUsedBytes"`
	NumRowsDroppedByWatermark int64            `json:"numRowsDroppedByWatermark"`
	NumLateRows               int64            `json:"numLateRows"`
	NumShufflePartitions      int64            `json:"numShufflePartitions"`
	NumStateStoreInstances    int64            `json:"numStateStoreInstances"`
	CustomMetrics             map[string]int64 `json:"customMetrics,omitempty"`
}

// SourceProgress reports one source. Offsets are the source's own JSON.
type SourceProgress struct {
	Description            string          `json:"description"`
	StartOffset            json.RawMessage `json:"startOffset"`
	EndOffset              json.RawMessage `json:"endOffset"`
	LatestOffset           json.RawMessage `json:"latestOffset"`
	NumInputRows           int64           `json:"numInputRows"`
	InputRowsPerSecond     Rate            `json:"inputRowsPerSecond,omitzero"`
	ProcessedRowsPerSecond Rate            `json:"processedRowsPerSecond,omitzero"`
	NumMalformedRows       int64           `json:"numMalformedRows"`
	NumMalformedFiles      int64           `json:"numMalformedFiles"`
	MalformedSamples       []string        `json:"malformedSamples,omitempty"`
	// Metrics are the source's own: of files, numFilesOutstanding, those that wait.
	Metrics map[string]string `json:"metrics,omitempty"`
}

// SinkProgress reports the sink; -1 rows are unknown.
type SinkProgress struct {
	Description   string `json:"description"`
	NumOutputRows int64  `json:"numOutputRows"`
}

// offsetJSON is an offset as it stands in progress: null before the first row.
func offsetJSON(o connector.Offset) json.RawMessage {
	if o == "" || !json.Valid([]byte(o)) {
		return json.RawMessage("null")
	}
	return json.RawMessage(o)
}

// formatTime is ISO text in UTC with as many decimals of a second as it needs.
func formatTime(micros int64) string {
	return time.UnixMicro(micros).UTC().Format("2006-01-02T15:04:05.999999Z07:00")
}

// eventTime is the eventTime object: the watermark this batch evicted by, and what
// its rows were.
func (s *EventTimeStats) eventTime(declared bool, watermark *int64) map[string]string {
	if !declared {
		return nil
	}
	out := map[string]string{}
	if watermark != nil {
		out["watermark"] = formatTime(*watermark)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.n > 0 {
		out["min"], out["max"] = formatTime(s.min), formatTime(s.max)
		out["avg"] = formatTime(int64(s.sum / float64(s.n)))
	}
	return out
}

// rate is rows per second.
func rate(rows int64, d time.Duration) Rate { return Rate(float64(rows) / d.Seconds()) }
