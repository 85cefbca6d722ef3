package connector

import (
	"context"
	"fmt"
	"iter"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/memory"

	"github.com/tidemill/tidemill/columnar"
	"github.com/tidemill/tidemill/logical/expr"
)

// Table is bounded: a file, a directory, rows in memory. It may be read by many
// goroutines and many times.
type Table interface {
	Schema() *arrow.Schema
	// Units lists the work of reading the table as it is now, unopened, in the
	// order of its rows.
	Units(ctx context.Context, req ScanRequest) ([]Unit, error)
}

// ScanRequest says which part of a Table or of an offset range is wanted.
type ScanRequest struct {
	// Columns are positions in Schema, in the order wanted; nil means all, an
	// empty list only the number of rows (batches without columns). Positions behind
	// Schema are the hidden columns of files (MetadataFields), in Filters too.
	Columns []int
	// Filters are conditions over expr.Ref positions of Schema. They are advice:
	// what certainly fails one may be left out (files, row groups), what is
	// returned is filtered again. A row for which evaluating a filter would be an
	// error must not be left out.
	Filters []expr.Expr
	// Limit is how many rows are wanted in all, 0 if that is not known: advice.
	Limit int64
	// BatchRows is the number of rows a batch should have; 0 is
	// columnar.DefaultBatchRows.
	BatchRows int
	// BatchBytes is about how many bytes a batch should have at most, which makes it shorter
	// where rows are wide; 0 is the format's own. It is advice.
	BatchBytes int64
	// SplitBytes is the size of input one unit should cover; 0 is the format's own.
	SplitBytes int64
	// Hidden asks for hidden columns by name, appended after Columns: file name
	// and the like (HiddenFile).
	Hidden []string
	Mem    memory.Allocator
	// Stats collects what the scan meets; may be nil.
	Stats *ScanStats
	// Again says that rows of a batch are read once more, to be looked at: the units
	// are the same as before, and a Source notes nothing of it (hashes of content).
	Again bool
}

// HiddenFile is the hidden VARCHAR column with the path of the row's file.
const HiddenFile = "\x00file"

// Unit is one piece of scanning (a file, a row group, a byte range). Its index
// in Units is the first part of its rows' ordinals. It is opened once or more, by
// any goroutine.
type Unit interface {
	Name() string
	Bytes() int64
	// Open starts reading. The Reader's schema is the requested columns.
	Open(ctx context.Context) (columnar.Reader, error)
}

// Limit bounds one batch of a Source; zero values bound nothing. Until is the end
// that available-now has fixed.
type Limit struct {
	Files, Bytes int64
	Until        Offset
}

// Source is replayable: its past can be read again by offset. It is used by one
// goroutine at a time, except for the Units it returned; the Sink may be staging the batch
// before meanwhile.
type Source interface {
	Schema() *arrow.Schema
	// Target is the end of what is there now, without promising to read it. From then on
	// what cannot be looked at is an error, also where the source would else wait for it.
	Target(ctx context.Context) (Offset, error)
	// LatestOffset returns the end of the next batch that starts at start,
	// within limit; start itself if there is nothing new. What the batch will
	// read is durable in the source's BatchLog when it returns.
	LatestOffset(ctx context.Context, start Offset, limit Limit) (Offset, error)
	// Units lists the work of (start, end], unopened, in logged order. The same
	// arguments give the same units, in this process or any later one.
	Units(ctx context.Context, start, end Offset, req ScanRequest) ([]Unit, error)
	// Withdraw forgets (start, end], which was logged but never became visible.
	Withdraw(ctx context.Context, start, end Offset) error
	// Commit says that (.., end] may be discarded. It may be repeated, and may
	// never be called.
	Commit(ctx context.Context, end Offset) error
	Close() error
}

// Notifier is a Source that may notice new data sooner than the next look at it.
type Notifier interface {
	// Notify calls wake from any goroutine, until Close, when there may be something
	// new. It is a hint: the source is asked at its times all the same.
	Notify(wake func())
}

// OutputMode is what of a result a Sink is given each batch.
type OutputMode uint8

const (
	Append   OutputMode = iota // rows that are new and final
	Update                     // rows whose value changed, by key
	Complete                   // the whole result
)

func (m OutputMode) String() string {
	if m > Complete {
		return fmt.Sprintf("OutputMode(%d)", m)
	}
	return [...]string{"append", "update", "complete"}[m]
}

// Sink makes a batch durable first, visible second.
type Sink interface {
	// LastBatch is the newest batch made visible, -1 if none; ok is false if
	// this sink cannot know (callback, console): it then gets a batch again
	// after a crash, at least once, and EXPLAIN says so.
	LastBatch(ctx context.Context) (id int64, ok bool, err error)
	// Stage reads the batch to its end and makes it durable but invisible, after
	// discarding what an earlier Stage of this id left.
	Stage(ctx context.Context, b SinkBatch) (Staged, error)
	// Recover returns the Staged of a batch whose decision was made by an earlier
	// process but whose publishing is not finished, to be rolled forward; nil if
	// there is none.
	Recover(ctx context.Context) (Staged, error)
	Close() error
}

// SinkBatch is what one batch brings. Side gives late and bad rows; it may be nil,
// and is complete only after Data has ended.
type SinkBatch struct {
	ID   int64
	Mode OutputMode
	Data columnar.Reader
	Side func() ([]SideOutput, error)
}

// SideOutput is rows kept beside the output: Name is "late" or "bad". The Sink closes
// Data.
type SideOutput struct {
	Name string
	Data columnar.Reader
}

// SideKeeper is implemented by Sinks that write SideOutputs, in the same decision as
// the batch; others leave them unread, and a query that is to keep rows is refused.
type SideKeeper interface{ KeepsSides() bool }

// Staged is a durable but invisible batch.
type Staged interface {
	// Publish makes the batch visible by one atomic decision; it may be repeated,
	// also by a later process (Sink.Recover).
	Publish(ctx context.Context) error
	// Discard removes it; after Publish it does nothing.
	Discard() error
	// Rows is the number of rows staged.
	Rows() int64
}

// BatchLog is the durable memory a source is given: entries by the source's own
// numbers, in rising order.
type BatchLog interface {
	// Put writes entry id durably. It replaces an entry no offset names and
	// refuses one that is named.
	Put(id int64, entry []byte) error
	// Range gives the entries of (after, upto], in order. Err is yielded as the
	// last element's error by an iteration that cannot go on.
	Range(after, upto int64) iter.Seq2[LogEntry, error]
	// Latest is the newest entry's id, -1 if there is none.
	Latest() (int64, error)
	// Withdraw removes the entries after id durably.
	Withdraw(after int64) error
}

// LogEntry is one entry of a BatchLog.
type LogEntry struct {
	ID   int64
	Data []byte
}

// FileIdentity is what is known of an input file before it is read.
type FileIdentity struct {
	Path    string `json:"path"`
	Size    int64  `json:"size"`
	ModTime int64  `json:"mtime"` // microseconds since the epoch
}

// FileSet is implemented by Tables and Sources whose data is files: the engine logs
// identities with the batch, and checks them before it becomes visible.
type FileSet interface {
	// Files of a table as it is now, or of a source's (start, end].
	Files(ctx context.Context, start, end Offset) ([]FileIdentity, error)
	// Changed returns those that are no longer what was logged.
	Changed(ctx context.Context, logged []FileIdentity) ([]FileIdentity, error)
}

// RowCounter is implemented by Tables that know their number of rows without
// reading them.
type RowCounter interface{ RowCount() (int64, bool) }

// TableComparer is implemented by Tables that can tell whether another reads the same:
// two places of a query that name one table may be read as one.
type TableComparer interface{ SameTable(other Table) bool }

// Describer gives the text by which progress and EXPLAIN name a source or sink:
// FileSource[landing/bids].
type Describer interface{ Description() string }

// Pruner is implemented by Tables that can tell from filters alone, without reading
// data, which parts need not be read: folders of partitions, files by name.
type Pruner interface {
	// Prune returns the table without the parts for whose rows some filter is
	// certainly not true, and how many parts (files) of how many are left. Filters
	// are over expr.Ref positions of Schema; those it cannot use it ignores.
	Prune(filters []expr.Expr) (pruned Table, left, total int)
}
