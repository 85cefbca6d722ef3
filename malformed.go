package tidemill

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"

	"github.com/apache/arrow-go/v18/arrow"

	"github.com/tidemill/tidemill/columnar"
	"github.com/tidemill/tidemill/logical/connector"
	"github.com/tidemill/tidemill/physical"
)

// malformed counts what the scans of a bounded query could not read, and warns of it once
// the query has ended. (A streaming query says it in its progress.)
type malformed struct {
	mu    sync.Mutex
	names []string // in the order of first sight
	scans map[string]*connector.ScanStats
}

// of gives the counters of a scan; scans of one table share them.
func (m *malformed) of(p *physical.Scan) *connector.ScanStats {
	m.mu.Lock()
	defer m.mu.Unlock()
	name := p.Spec().Name
	if m.scans == nil {
		m.scans = map[string]*connector.ScanStats{}
	}
	if m.scans[name] == nil {
		m.names = append(m.names, name)
		m.scans[name] = &connector.ScanStats{}
	}
	return m.scans[name]
}

func (m *malformed) warn(warn func(string)) {
	for _, name := range m.names {
		stats := m.scans[name]
		if n := stats.MalformedRows.Load(); n > 0 {
			samples := stats.Samples()
			slices.SortFunc(samples, connector.RecordError.Compare)
			warn(fmt.Sprintf("%s: %s malformed, for instance %s", name, are(n, "record"), samples[0].Error()))
		}
		if n := stats.MalformedFiles.Load(); n > 0 {
			warn(fmt.Sprintf("%s: %s damaged and left out", name, are(n, "file")))
		}
	}
}

func are(n int64, what string) string {
	if n == 1 {
		return "1 " + what + " is"
	}
	return fmt.Sprintf("%d %ss are", n, what)
}

// resultReader is the rows of a bounded query as its caller reads them: a panic is an
// error. It warns when it is closed.
type resultReader struct {
	r         columnar.Reader
	budget    *columnar.Budget // of the query
	malformed *malformed
	warn      func(string)
	once      sync.Once
	err       error // of the panic that ended it
}

func (r *resultReader) Schema() *arrow.Schema { return r.r.Schema() }

func (r *resultReader) Next(ctx context.Context) (arrow.RecordBatch, error) {
	if r.err != nil {
		return nil, r.err
	}
	b, err := guarded(ctx, func() (arrow.RecordBatch, error) { return r.r.Next(ctx) })
	var panicked *PanicError
	if errors.As(err, &panicked) {
		r.err = err // whatever it left half done is not asked again
	}
	return b, err
}

func (r *resultReader) Close() error {
	return columnar.Guard("", func() error {
		err := r.r.Close()
		r.once.Do(func() { r.malformed.warn(r.warn) })
		return err
	})
}
