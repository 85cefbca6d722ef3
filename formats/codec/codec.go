package codec

import (
	"context"
	"io"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/memory"

	"github.com/tidemill/tidemill/internal/vfs"
	"github.com/tidemill/tidemill/logical/connector"
)

// File is one input file, found but not opened.
type File struct {
	FS vfs.FS
	connector.FileIdentity
	// Hash takes the content hash while the file is read; nil where none is wanted
	// (bounded queries never hash).
	Hash *ContentHash
}

// Mode is what happens to a record, or a file, that cannot be decoded.
type Mode uint8

const (
	Permissive Mode = iota // the bad field is null, the record counted
	Drop                   // the record, or a damaged file, is left out and counted
	Fail                   // an error that names file, line and column
)

// Format decodes and encodes one file format with its options. It is immutable and
// safe for concurrent use.
type Format interface {
	// Name is the word of the format option: csv, json, parquet, text.
	Name() string
	// Infer finds the schema of the given files, in order, from a sample (CONTRACT:
	// the first 20,480 records over at most 16 files). Pinned are further choices it
	// made (CSV: header) as option strings, to be handed to WithPinned later. Files
	// without records (empty, header only) spoil nothing; ok is false if no file said
	// anything about columns.
	Infer(ctx context.Context, files []File) (inferred Inferred, ok bool, err error)
	// WithPinned returns the format with choices an earlier Infer made.
	WithPinned(pinned map[string]string) (Format, error)
	// Units splits one file into units, in the order of its rows. schema is the
	// columns of the source that come from the file's content; columns absent in the
	// file are null. req.Columns are positions in schema.
	Units(ctx context.Context, f File, schema Columns, req connector.ScanRequest) ([]connector.Unit, error)
	// NewWriter starts a file. Close finishes it; w is not closed.
	NewWriter(w io.Writer, schema *arrow.Schema, opts WriterOptions) (Writer, error)
	// Extension is the ending of a written file, with its dot: ".csv", ".json.gz".
	Extension() string
}

// Dialect is implemented by formats whose files do not tell how they are to be read.
type Dialect interface {
	// Dialect are the reading options for files that this format writes. named says that
	// they name their columns; otherwise columns are found by their place.
	Dialect() (options map[string]string, named bool)
}

// FixedColumns is implemented by formats whose files all have the same columns.
// CheckColumns says what is wrong with those of a source that come from its files.
type FixedColumns interface{ CheckColumns(*arrow.Schema) error }

// Inferred is what Infer found.
type Inferred struct {
	Schema *arrow.Schema
	Pinned map[string]string
	// Seen is Schema, with the type NULL in each place, also within a column, that had no
	// value in the files; nil where that tells no more.
	Seen *arrow.Schema
	// Written are the names that files have of columns that are called otherwise (CSV:
	// where a name comes twice); nil where all are called as they are written.
	Written map[string]string
}

// Columns are the columns a source reads from the content of its files.
type Columns struct {
	Schema *arrow.Schema
	// Declared: written by the user in CREATE STREAM / TABLE; otherwise inferred and
	// pinned. It decides what happens to a file whose columns differ (CONTRACT 5.22).
	Declared bool
	// Evolution is what happens to a file with other columns where they are not
	// declared: fail, ignore, add or rescue.
	Evolution Evolution
	// Rescued is the name of the column of Schema that receives what no other takes, with
	// EvolveRescue; "" if there is none. No file has it.
	Rescued string
	// ByName says that files which name their columns need not have all of them, nor in
	// this order; another column is still what Evolution says.
	ByName bool
	// Elsewhere are the names of columns of the source that do not come from the content
	// of files (but from folder names). A file's column of that name counts for nothing.
	Elsewhere []string
	// CorruptColumn is the position of the column that receives the raw text of a
	// malformed record, -1 if there is none.
	CorruptColumn int
}

// JudgedAsInferred says whether a value that would have made a column another one when the
// columns were inferred is no value of it. Declared columns, and those of a recorded output,
// take what can be read as their type.
func (c *Columns) JudgedAsInferred() bool { return !c.Declared && !c.ByName }

// WriterOptions are what a sink tells a writer beside its format's own options.
type WriterOptions struct {
	Mem memory.Allocator
	// Metadata is written into the file where the format has a place for it.
	Metadata map[string]string
	// Printed says that rows are printed for a reader of the moment, not kept: what could
	// not be read back (a null in a CSV file of one column) need not be refused.
	Printed bool
}

// Writer encodes batches into one file. It is used by one goroutine.
type Writer interface {
	// Write appends a batch. Columns may be dictionary-encoded. b is borrowed.
	Write(b arrow.RecordBatch) error
	// Size is the number of bytes written so far and still buffered, about.
	Size() int64
	// Close writes what is buffered and the end of the file.
	Close() error
}

// Bufferer is implemented by Writers that buffer much.
type Bufferer interface {
	// Buffered is about how many bytes are buffered.
	Buffered() int64
	// Flush writes them.
	Flush() error
}
