package parquet

import (
	"context"
	"errors"
	"fmt"
	"io"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/memory"

	"github.com/tidemill/tidemill/columnar"
	"github.com/tidemill/tidemill/internal/vfs"
)

// File is an open Parquet file whose footer has been read. Its methods, but Close,
// may be called by several goroutines.
type File struct {
	file   vfs.File
	meta   *fileMeta
	schema *arrow.Schema
}

// OpenFile opens the file and reads its footer. Damage is a *connector.RecordError.
func OpenFile(fsys vfs.FS, path string) (*File, error) {
	h, err := fsys.Open(path)
	if err != nil {
		return nil, err
	}
	f := &File{file: h}
	if f.meta, err = readFooter(h, path); err == nil {
		if f.schema, err = f.meta.schema(); err != nil {
			err = damaged(path, err)
		}
	}
	if err != nil {
		_ = h.Close()
		return nil, err
	}
	return f, nil
}

// Schema is the file's columns in the engine's types, never dictionary types.
func (f *File) Schema() *arrow.Schema { return f.schema }

// Metadata is the footer's key/value metadata.
func (f *File) Metadata() map[string]string {
	m := map[string]string{}
	for _, kv := range f.meta.footer.KeyValueMetadata {
		m[kv.Key] = kv.Value
	}
	return m
}

// NumRows is the number of rows by the footer.
func (f *File) NumRows() int64 { return f.meta.rows() }

// Reader reads the columns at the given positions of Schema, in that order; nil is
// all, an empty list only counts rows. Batches have plain columns (no dictionaries).
// The Reader must be closed before the File.
func (f *File) Reader(mem memory.Allocator, columns []int) (columnar.Reader, error) {
	return f.reader(mem, columns, columnar.DefaultBatchRows)
}

func (f *File) reader(mem memory.Allocator, columns []int, batchRows int) (columnar.Reader, error) {
	for _, c := range columns {
		if c < 0 || c >= f.schema.NumFields() {
			return nil, fmt.Errorf("bug: column %d of a file of %d columns", c, f.schema.NumFields())
		}
	}
	p, err := newScanPlan(f.meta, f.schema, columns)
	if err != nil {
		return nil, err
	}
	p.mem, p.rows = mem, batchRows
	var groups []int
	for g := range f.meta.footer.RowGroups {
		groups = append(groups, g)
	}
	return newGroupReader(p, f.file, false, groups), nil
}

// FirstRow reads the first row of the columns at the given positions of Schema; nil if the
// file has no rows.
func (f *File) FirstRow(ctx context.Context, mem memory.Allocator, columns []int) (arrow.RecordBatch, error) {
	r, err := f.reader(mem, columns, 1)
	if err != nil {
		return nil, err
	}
	defer r.Close()
	b, err := r.Next(ctx)
	if errors.Is(err, io.EOF) {
		return nil, nil
	}
	return b, err
}

// Close closes the file.
func (f *File) Close() error { return f.file.Close() }
