package connector

import (
	"cmp"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
)

// ScanStats collects what one scan met. It is safe for concurrent use; methods of a
// nil *ScanStats do nothing.
type ScanStats struct {
	Rows           atomic.Int64
	Bytes          atomic.Int64
	MalformedRows  atomic.Int64
	MalformedFiles atomic.Int64
	FilesPruned    atomic.Int64
	GroupsPruned   atomic.Int64
	PagesPruned    atomic.Int64
	// Kept collects every bad record and damaged file that is left out; nil keeps
	// none. It is set before the scan begins.
	Kept *BadRecords

	mu    sync.Mutex
	first []RecordError
}

// maxSamples is how many bad records are kept for messages.
const maxSamples = 5

// Malformed counts one bad record and keeps the first few for messages.
func (s *ScanStats) Malformed(e RecordError) {
	if s == nil {
		return
	}
	s.count(e)
	s.Kept.add(e, nil, Span{})
}

// MalformedText is Malformed for a record that is a part of a file's text. e.Line need
// not be known.
func (s *ScanStats) MalformedText(e RecordError, text RecordText, at Span) {
	if s == nil {
		return
	}
	s.count(e)
	s.Kept.add(e, text, at)
}

// MalformedFile counts a damaged file that is left out.
func (s *ScanStats) MalformedFile(e RecordError) {
	if s == nil {
		return
	}
	s.MalformedFiles.Add(1)
	s.Kept.add(e, nil, Span{})
}

func (s *ScanStats) count(e RecordError) {
	s.MalformedRows.Add(1)
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.first) < maxSamples {
		s.first = append(s.first, e)
	}
}

// Samples returns the first few bad records met.
func (s *ScanStats) Samples() []RecordError {
	if s == nil {
		return nil
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	return append([]RecordError(nil), s.first...)
}

// RecordError says that a record, or a whole file, cannot be decoded. Column may be
// "", Line 0 if unknown.
type RecordError struct {
	File   string
	Line   int64 // 1-based line of a text format, or row of another; 0: the file as a whole
	Column string
	Reason string
	Err    error
}

func (e *RecordError) Error() string {
	where := e.File
	if e.Line > 0 {
		where = fmt.Sprintf("%s:%d", e.File, e.Line)
	}
	if e.Column != "" {
		where += ": column " + e.Column
	}
	return where + ": " + e.Reason
}

// Compare orders bad records by file and line.
func (e RecordError) Compare(o RecordError) int {
	return cmp.Or(strings.Compare(e.File, o.File), cmp.Compare(e.Line, o.Line))
}

func (e *RecordError) Unwrap() error { return e.Err }

// FileChangedError says that an input file is no longer what was logged.
type FileChangedError struct {
	Path string
	Was  FileIdentity
	Gone bool
	// Read says that the file was rewritten after its rows became part of a result.
	Read bool
	// Skipped says that it was rewritten after it was passed over: none of its rows is part
	// of a result.
	Skipped bool
}

func (e *FileChangedError) Error() string {
	if e.Read {
		return fmt.Sprintf("input file %s was rewritten after it was read (was %d bytes); restore it, "+
			"or set changed_files = 'ignore' or 'reread' (its rows are added again)", e.Path, e.Was.Size)
	}
	if e.Skipped {
		return fmt.Sprintf("input file %s was rewritten after it was passed over (starting_files or same_content; was %d bytes); restore it, "+
			"or set changed_files = 'ignore' or 'reread' (all its rows are read)", e.Path, e.Was.Size)
	}
	if e.Gone {
		return fmt.Sprintf("input file %s vanished after it was logged (%d bytes)", e.Path, e.Was.Size)
	}
	return fmt.Sprintf("input file %s changed after it was logged (was %d bytes)", e.Path, e.Was.Size)
}
