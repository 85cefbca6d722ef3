package connectortest

import (
	"fmt"
	"iter"
	"slices"
	"sync"

	"github.com/tidemill/tidemill/logical/connector"
)

// Log is a connector.BatchLog in memory. It outlives the Source that writes it, as
// the files of a checkpoint do.
type Log struct {
	mu      sync.Mutex
	entries []connector.LogEntry
	named   int64
	fail    error
}

var _ connector.BatchLog = (*Log)(nil)

// NewLog is an empty log; no entry is named by an offset.
func NewLog() *Log { return &Log{named: -1} }

// Name says that an offset names the entries up to id: they can no longer be replaced.
func (l *Log) Name(id int64) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.named = max(l.named, id)
}

// Fail makes every later call that writes return err; nil ends that.
func (l *Log) Fail(err error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.fail = err
}

// Put implements connector.BatchLog.
func (l *Log) Put(id int64, entry []byte) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.fail != nil {
		return l.fail
	}
	last := int64(-1)
	if n := len(l.entries); n > 0 {
		last = l.entries[n-1].ID
	}
	switch {
	case id <= l.named:
		return fmt.Errorf("entry %d is named by an offset and cannot be replaced", id)
	case id <= last:
		i := slices.IndexFunc(l.entries, func(e connector.LogEntry) bool { return e.ID == id })
		if i < 0 {
			return fmt.Errorf("entry %d is out of order, the newest is %d", id, last)
		}
		l.entries[i].Data = slices.Clone(entry)
		return nil
	}
	l.entries = append(l.entries, connector.LogEntry{ID: id, Data: slices.Clone(entry)})
	return nil
}

// Range implements connector.BatchLog.
func (l *Log) Range(after, upto int64) iter.Seq2[connector.LogEntry, error] {
	l.mu.Lock()
	entries := slices.Clone(l.entries)
	l.mu.Unlock()
	return func(yield func(connector.LogEntry, error) bool) {
		for _, e := range entries {
			if e.ID > after && e.ID <= upto && !yield(e, nil) {
				return
			}
		}
	}
}

// Latest implements connector.BatchLog.
func (l *Log) Latest() (int64, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if len(l.entries) == 0 {
		return -1, nil
	}
	return l.entries[len(l.entries)-1].ID, nil
}

// Withdraw implements connector.BatchLog.
func (l *Log) Withdraw(after int64) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.fail != nil {
		return l.fail
	}
	l.entries = slices.DeleteFunc(l.entries, func(e connector.LogEntry) bool { return e.ID > after })
	l.named = min(l.named, after)
	return nil
}
