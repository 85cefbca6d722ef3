package connector

import (
	"cmp"
	"context"
	"maps"
	"slices"
	"sync"

	"github.com/tidemill/tidemill/columnar"
)

// Span is a part of a file's text: decompressed, in UTF-8.
type Span struct{ Offset, Length int64 }

// RecordText reads parts of one file's text again.
type RecordText interface {
	// Read visits spans, which rise and do not overlap, with the number of the line,
	// from 1, that each begins in, and its text, cut off after most bytes. text is
	// valid during the call.
	Read(ctx context.Context, spans []Span, most int, visit func(i int, line int64, text []byte) error) error
}

// BadRecord is a malformed record, or a whole file that was left out.
type BadRecord struct {
	Column string // "" if no single one is to blame
	Reason string
	// At is where it stands; of no length where it is no text: a whole file, a value
	// in a folder's name.
	At Span
}

// BadFile is the bad records of one file, in their order.
type BadFile struct {
	Path    string
	Text    RecordText // nil if none of the records is text
	Records []BadRecord
}

// BadRecords collects malformed records. It is safe for concurrent use; a nil
// *BadRecords keeps nothing.
type BadRecords struct {
	budget *columnar.Budget
	mu     sync.Mutex
	files  map[string]*BadFile
	held   int64
	err    error
}

// NewBadRecords makes an empty collection whose memory comes out of budget.
func NewBadRecords(budget *columnar.Budget) *BadRecords {
	return &BadRecords{budget: budget, files: map[string]*BadFile{}}
}

// badRecordBytes is about what a record takes beside its texts.
const badRecordBytes = 64

func (b *BadRecords) add(e RecordError, text RecordText, at Span) {
	if b == nil {
		return
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.err != nil {
		return
	}
	n := int64(badRecordBytes + len(e.Column) + len(e.Reason))
	if b.err = b.budget.Reserve("bad records", n); b.err != nil {
		return
	}
	b.held += n
	f := b.files[e.File]
	if f == nil {
		f = &BadFile{Path: e.File}
		b.files[e.File] = f
	}
	if text != nil {
		f.Text = text
	}
	f.Records = append(f.Records, BadRecord{Column: e.Column, Reason: e.Reason, At: at})
}

// Files are the files with bad records, by path, each record once. It is called when
// the scan is done; an error says that memory was refused.
func (b *BadRecords) Files() ([]BadFile, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.err != nil {
		return nil, b.err
	}
	var out []BadFile
	for _, path := range slices.Sorted(maps.Keys(b.files)) {
		f := *b.files[path]
		slices.SortFunc(f.Records, func(x, y BadRecord) int {
			return cmp.Or(cmp.Compare(x.At.Offset, y.At.Offset), cmp.Compare(x.At.Length, y.At.Length),
				cmp.Compare(x.Column, y.Column), cmp.Compare(x.Reason, y.Reason))
		})
		// A stream that a query reads twice meets them twice.
		f.Records = slices.CompactFunc(f.Records, func(x, y BadRecord) bool {
			return x.At == y.At && (x.At.Length > 0 || x == y)
		})
		out = append(out, f)
	}
	return out, nil
}

// Release gives the memory back.
func (b *BadRecords) Release() {
	if b == nil {
		return
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	b.budget.Return(b.held)
	b.files, b.held = map[string]*BadFile{}, 0
}
