package memory

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"sync"

	"github.com/apache/arrow-go/v18/arrow"

	"github.com/tidemill/tidemill/logical/connector"
)

// Stream is a source that rows are added to while queries read it. Each Add is one
// step of its offset; a batch takes whole steps, and Limit.Files counts them. It keeps
// all rows, so any range can be read again; one Stream serves any number of queries.
type Stream struct {
	schema *arrow.Schema

	mu    sync.Mutex
	steps [][]arrow.RecordBatch
}

var _ connector.Source = (*Stream)(nil)

// NewStream makes an empty stream.
func NewStream(schema *arrow.Schema) *Stream { return &Stream{schema: schema} }

// Add appends one step of rows and returns the offset after it. It retains the
// batches until Release.
func (s *Stream) Add(batches ...arrow.RecordBatch) (connector.Offset, error) {
	for _, b := range batches {
		if err := checkColumns(s.schema, b); err != nil {
			return "", err
		}
	}
	var step []arrow.RecordBatch
	for _, b := range batches {
		if b.NumRows() > 0 {
			b.Retain()
			step = append(step, b)
		}
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.steps = append(s.steps, step)
	return stepOffset(len(s.steps)), nil
}

// Release gives back all rows.
func (s *Stream) Release() {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, step := range s.steps {
		for _, b := range step {
			b.Release()
		}
	}
	s.steps = nil
}

type steps struct {
	Steps int `json:"steps"`
}

func stepOffset(n int) connector.Offset {
	if n == 0 {
		return ""
	}
	text, err := json.Marshal(steps{n})
	if err != nil {
		panic("bug: " + err.Error())
	}
	return connector.Offset(text)
}

func parseSteps(o connector.Offset) (int, error) {
	if o == "" {
		return 0, nil
	}
	var s steps
	d := json.NewDecoder(strings.NewReader(string(o)))
	d.DisallowUnknownFields()
	if err := d.Decode(&s); err != nil || s.Steps < 0 {
		return 0, fmt.Errorf("%q is not an offset of a memory stream", string(o))
	}
	return s.Steps, nil
}

// Schema implements connector.Source.
func (s *Stream) Schema() *arrow.Schema { return s.schema }

// Description implements connector.Describer.
func (s *Stream) Description() string { return "MemoryStream" }

// Target implements connector.Source.
func (s *Stream) Target(context.Context) (connector.Offset, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return stepOffset(len(s.steps)), nil
}

// LatestOffset implements connector.Source.
func (s *Stream) LatestOffset(_ context.Context, start connector.Offset, limit connector.Limit) (connector.Offset, error) {
	from, err := parseSteps(start)
	if err != nil {
		return "", err
	}
	s.mu.Lock()
	to := len(s.steps)
	s.mu.Unlock()
	if limit.Until != "" {
		until, err := parseSteps(limit.Until)
		if err != nil {
			return "", err
		}
		to = min(to, until)
	}
	if limit.Files > 0 {
		to = min(to, from+int(min(limit.Files, 1<<30)))
	}
	if to <= from {
		return start, nil
	}
	return stepOffset(to), nil
}

// Units implements connector.Source.
func (s *Stream) Units(_ context.Context, start, end connector.Offset, req connector.ScanRequest) ([]connector.Unit, error) {
	from, err := parseSteps(start)
	if err != nil {
		return nil, err
	}
	to, err := parseSteps(end)
	if err != nil {
		return nil, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if to > len(s.steps) {
		return nil, fmt.Errorf("the stream in memory has %d steps, not %d: it began anew with the process", len(s.steps), to)
	}
	var batches []arrow.RecordBatch
	for i := from; i < to; i++ {
		batches = append(batches, s.steps[i]...)
	}
	return units("stream", s.schema, batches, req)
}

// Withdraw implements connector.Source: there is nothing to forget.
func (s *Stream) Withdraw(context.Context, connector.Offset, connector.Offset) error { return nil }

// Commit implements connector.Source: rows are kept.
func (s *Stream) Commit(context.Context, connector.Offset) error { return nil }

// Close implements connector.Source; the rows stay for other queries.
func (s *Stream) Close() error { return nil }
