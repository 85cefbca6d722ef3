package parquet

import (
	"errors"
	"io"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/memory"

	"github.com/tidemill/tidemill/columnar"
	"github.com/tidemill/tidemill/internal/vfs"
)

// SIGNATURES PUBLISHED EARLY; bodies are being written.

// Compression is the codec of a written file's pages.
type Compression uint8

// The codecs a file is written with; Snappy is the default.
const (
	Snappy Compression = iota
	Uncompressed
	Zstd
	Gzip
)

// WriterConfig says how a file is written; the zero value works.
type WriterConfig struct {
	Compression  Compression
	RowGroupRows int               // rows of a row group; 0 is the default (1,048,576)
	NoDictionary bool              // never dictionary-encode: for high-cardinality state tables
	Metadata     map[string]string // key/value metadata of the footer
	Mem          memory.Allocator
}

// FileWriter writes one Parquet file. It implements codec.Writer.
type FileWriter struct{}

// NewFileWriter starts a file of schema on w. Close finishes it; w is not closed.
func NewFileWriter(w io.Writer, schema *arrow.Schema, o WriterConfig) (*FileWriter, error) {
	return nil, errors.New("not yet")
}

// Write appends a batch (columns in schema order; may be dictionary-encoded). b is borrowed.
func (w *FileWriter) Write(b arrow.RecordBatch) error { return nil }

// Flush ends the current row group, if it has rows.
func (w *FileWriter) Flush() error { return nil }

// SetMetadata adds or replaces an entry of the footer's metadata, until Close.
func (w *FileWriter) SetMetadata(key, value string) {}

// Size is the number of bytes written so far and still buffered, about.
func (w *FileWriter) Size() int64 { return 0 }

// Close writes what is buffered and the footer.
func (w *FileWriter) Close() error { return nil }

// File is an open Parquet file whose footer has been read. Reader may be called by
// several goroutines.
type File struct{}

// OpenFile opens the file and reads its footer. Damage is a *connector.RecordError.
func OpenFile(fsys vfs.FS, path string) (*File, error) { return nil, errors.New("not yet") }

// Schema is the file's columns in the engine's types, never dictionary types.
func (f *File) Schema() *arrow.Schema { return nil }

// Metadata is the footer's key/value metadata.
func (f *File) Metadata() map[string]string { return nil }

// NumRows is the number of rows by the footer.
func (f *File) NumRows() int64 { return 0 }

// Reader reads the columns at the given positions of Schema, in that order; nil is
// all. Batches have plain columns (no dictionaries).
func (f *File) Reader(mem memory.Allocator, columns []int) (columnar.Reader, error) {
	return nil, errors.New("not yet")
}

// Close closes the file; Readers must have been closed before.
func (f *File) Close() error { return nil }
