package parquet

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"maps"
	"math"
	"slices"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/parquet-go/parquet-go/encoding/thrift"
	"github.com/parquet-go/parquet-go/format"

	"github.com/tidemill/tidemill/columnar"
	"github.com/tidemill/tidemill/formats/codec"
)

// WriterConfig says how a file is written; the zero value works.
type WriterConfig struct {
	Compression  Compression
	Level        int  // of zstd and gzip; 0 is the usual one
	RowGroupRows int  // at most so many rows a row group; 0 is DefaultRowGroupRows
	NoDictionary bool // never dictionary-encode
	// Hasty is for what is written often and read whole, if at all: numbers are not
	// compressed, and pages have no statistics.
	Hasty    bool
	Metadata map[string]string // key/value metadata of the footer
	// ExactIntervals writes intervals of any sign and of nanoseconds, in a form that only
	// this package reads as intervals; others see 16 bytes.
	ExactIntervals bool
}

// FileWriter writes one Parquet file: optional columns, three-level lists, version 1
// pages, page index and statistics, timestamps in microseconds of UTC, so that every
// engine reads it. It implements codec.Writer and is used by one goroutine.
type FileWriter struct {
	out      io.Writer
	schema   *arrow.Schema
	config   WriterConfig
	elements []format.SchemaElement
	nodes    []*writeNode
	leaves   []*leafWriter
	metadata map[string]string
	at       int64 // bytes written
	rows     int64 // of the row group being filled
	groups   []format.RowGroup
	indexes  [][]chunkIndex // by row group and leaf
	err      error
	closed   bool
}

type chunkIndex struct {
	column format.ColumnIndex
	offset format.OffsetIndex
}

var (
	_ codec.Writer   = (*FileWriter)(nil)
	_ codec.Bufferer = (*FileWriter)(nil)
)

// NewFileWriter starts a file with the columns of schema on w. Close finishes it; w
// is not closed.
func NewFileWriter(w io.Writer, schema *arrow.Schema, o WriterConfig) (*FileWriter, error) {
	f := &FileWriter{out: w, schema: schema, config: o, metadata: maps.Clone(o.Metadata)}
	if f.metadata == nil {
		f.metadata = map[string]string{}
	}
	if f.config.RowGroupRows <= 0 {
		f.config.RowGroupRows = DefaultRowGroupRows
	}
	if schema.NumFields() == 0 {
		return nil, errors.New("a Parquet file needs at least one column")
	}
	s := schemaWriter{exact: o.ExactIntervals}
	var err error
	if f.nodes, err = s.root(schema); err != nil {
		return nil, err
	}
	f.elements, f.leaves = s.elements, s.leaves
	if s.some {
		f.metadata[exactIntervalsKey] = exactIntervalsForm
	}
	for _, l := range f.leaves {
		l.wanted, l.level, l.noDict = o.Compression, o.Level, o.NoDictionary
		if o.Hasty {
			l.kind = statNone
			if l.physical != format.ByteArray {
				l.wanted = Uncompressed
			}
		}
	}
	return f, f.write(magic)
}

// write appends to the file.
func (f *FileWriter) write(b []byte) error {
	n, err := f.out.Write(b)
	f.at += int64(n)
	return err
}

// writeRows is how many rows are encoded at a time: pages end between them.
const writeRows = 16 << 10

// maxGroupBytes ends a row group of wide rows early: a writer holds it, and most readers do.
const maxGroupBytes = 64 << 20

// Write appends a batch with the columns of the schema, in their order; columns may
// be dictionary-encoded. b is borrowed. After an error the file is useless.
func (f *FileWriter) Write(b arrow.RecordBatch) error {
	if f.err != nil {
		return f.err
	}
	if f.err = f.check(b); f.err != nil {
		return f.err
	}
	for from := int64(0); from < b.NumRows(); {
		k := min(b.NumRows()-from, writeRows, int64(f.config.RowGroupRows)-f.rows)
		if f.err = f.writeSlice(b, from, from+k); f.err != nil {
			return f.err
		}
		from += k
		if f.rows >= int64(f.config.RowGroupRows) || f.size() >= maxGroupBytes {
			if f.err = f.Flush(); f.err != nil {
				return f.err
			}
		}
	}
	return nil
}

func (f *FileWriter) check(b arrow.RecordBatch) error {
	if int(b.NumCols()) != len(f.nodes) {
		return fmt.Errorf("bug: a batch of %d columns for a file of %d", b.NumCols(), len(f.nodes))
	}
	for i, c := range b.Columns() {
		dt := c.DataType()
		if d, ok := dt.(*arrow.DictionaryType); ok {
			dt = d.ValueType
		}
		if !arrow.TypeEqual(dt, f.nodes[i].typ) {
			return fmt.Errorf("bug: column %s is %s in a batch and %s in the file", f.schema.Field(i).Name,
				columnar.TypeName(dt), columnar.TypeName(f.nodes[i].typ))
		}
	}
	return nil
}

func (f *FileWriter) writeSlice(b arrow.RecordBatch, from, to int64) error {
	if f.rows == 0 {
		for _, l := range f.leaves {
			l.begin()
		}
	}
	for i, c := range b.Columns() {
		part := array.NewSlice(c, from, to)
		err := f.nodes[i].shred(part)
		part.Release()
		if err != nil {
			return fmt.Errorf("column %s: %w", f.schema.Field(i).Name, err)
		}
	}
	for _, l := range f.leaves {
		if err := l.endRows(); err != nil {
			return err
		}
	}
	f.rows += to - from
	return nil
}

// Buffered is about how much memory the row group being filled takes so far.
func (f *FileWriter) Buffered() int64 {
	n := int64(0)
	for _, l := range f.leaves {
		n += l.bytes()
	}
	return n
}

// size is about how many bytes the row group being filled has so far.
func (f *FileWriter) size() int64 {
	n := int64(0)
	for _, l := range f.leaves {
		n += l.size()
	}
	return n
}

// Size is the number of bytes written so far and still buffered, about.
func (f *FileWriter) Size() int64 { return f.at + f.size() }

// SetMetadata adds or replaces an entry of the footer's metadata, until Close.
func (f *FileWriter) SetMetadata(key, value string) { f.metadata[key] = value }

// Flush ends the current row group, if it has rows.
func (f *FileWriter) Flush() error {
	if f.err != nil || f.rows == 0 {
		return f.err
	}
	if len(f.groups) == math.MaxInt16 {
		f.err = fmt.Errorf("a Parquet file has at most %d row groups; raise row_group_rows", math.MaxInt16)
		return f.err
	}
	g := format.RowGroup{NumRows: f.rows, FileOffset: f.at, Ordinal: int16(len(f.groups))}
	var indexes []chunkIndex
	for _, l := range f.leaves {
		chunk, index, err := f.writeChunk(l)
		if err != nil {
			f.err = err
			return err
		}
		g.Columns = append(g.Columns, chunk)
		g.TotalByteSize += chunk.MetaData.TotalUncompressedSize
		g.TotalCompressedSize += chunk.MetaData.TotalCompressedSize
		indexes = append(indexes, index)
	}
	f.groups = append(f.groups, g)
	f.indexes = append(f.indexes, indexes)
	f.rows = 0
	return nil
}

// writeChunk writes the pages of a leaf, and ends its chunk.
func (f *FileWriter) writeChunk(l *leafWriter) (format.ColumnChunk, chunkIndex, error) {
	if err := l.flushPage(); err != nil {
		return format.ColumnChunk{}, chunkIndex{}, err
	}
	dictionary, err := l.dictionaryPage()
	if err != nil {
		return format.ColumnChunk{}, chunkIndex{}, err
	}
	meta := l.metaData()
	if dictionary != nil {
		meta.DictionaryPageOffset = f.at
		if err := f.write(dictionary); err != nil {
			return format.ColumnChunk{}, chunkIndex{}, err
		}
	}
	meta.DataPageOffset = f.at
	meta.TotalCompressedSize = int64(len(dictionary)) + l.pages.size
	index := l.indexes(f.at)
	if err := l.pages.writeTo(f.write); err != nil {
		return format.ColumnChunk{}, chunkIndex{}, err
	}
	l.end()
	return format.ColumnChunk{MetaData: meta}, index, nil
}

// metaData describes the chunk but for its place.
func (w *leafWriter) metaData() format.ColumnMetaData {
	m := format.ColumnMetaData{
		Type: w.physical, PathInSchema: w.path, Codec: w.compression.codec(),
		NumValues: w.chunkValues, TotalUncompressedSize: w.plainSize,
		Encoding: thrift.Slice[format.Encoding]{format.RLE},
	}
	if w.plainPages > 0 || w.codePages > 0 {
		m.Encoding = append(m.Encoding, format.Plain)
	}
	if w.codePages > 0 {
		m.Encoding = append(m.Encoding, format.RLEDictionary)
		m.EncodingStats = append(m.EncodingStats,
			format.PageEncodingStats{PageType: format.DictionaryPage, Encoding: format.Plain, Count: 1},
			format.PageEncodingStats{PageType: format.DataPage, Encoding: format.RLEDictionary, Count: w.codePages})
	}
	if w.plainPages > 0 {
		m.EncodingStats = append(m.EncodingStats, format.PageEncodingStats{PageType: format.DataPage, Encoding: format.Plain, Count: w.plainPages})
	}
	m.Statistics.NullCount = w.chunkNulls
	m.Statistics.MinValue, m.Statistics.MaxValue = w.chunkStats.encode(w.kind, w.length)
	return m
}

// indexes are the page index of the chunk, whose first data page stands at offset at.
// Without extremes for a page that has values there is no column index.
func (w *leafWriter) indexes(at int64) chunkIndex {
	var x chunkIndex
	whole := w.kind != statNone
	for _, p := range w.index {
		x.offset.PageLocations = append(x.offset.PageLocations, format.PageLocation{
			Offset: at + p.offset, CompressedPageSize: p.size, FirstRowIndex: p.firstRow,
		})
		whole = whole && (p.allNull || p.low != nil)
		low, high := p.low, p.high
		if p.allNull {
			low, high = []byte{}, []byte{}
		}
		x.column.NullPages = append(x.column.NullPages, p.allNull)
		x.column.MinValues = append(x.column.MinValues, low)
		x.column.MaxValues = append(x.column.MaxValues, high)
		x.column.NullCounts = append(x.column.NullCounts, p.nulls)
	}
	if !whole {
		x.column = format.ColumnIndex{}
	}
	return x
}

// Close writes what is buffered, the page index and the footer. Closing again does
// nothing.
func (f *FileWriter) Close() error {
	if f.closed {
		return f.err
	}
	f.closed = true
	if f.err == nil {
		f.err = f.finish()
	}
	err := f.err
	if f.err == nil {
		f.err = errors.New("bug: the Parquet file is closed")
	}
	return err
}

func (f *FileWriter) finish() error {
	if err := f.Flush(); err != nil {
		return err
	}
	if err := f.writeIndexes(); err != nil {
		return err
	}
	meta := format.FileMetaData{Version: 1, Schema: f.elements, RowGroups: f.groups, CreatedBy: "tidemill version 1.0.0 (build 0)"}
	if meta.RowGroups == nil {
		meta.RowGroups = []format.RowGroup{}
	}
	for i := range f.groups {
		meta.NumRows += f.groups[i].NumRows
	}
	for range f.leaves {
		meta.ColumnOrders = append(meta.ColumnOrders, format.ColumnOrder{Value: &format.TypeDefinedOrder{}})
	}
	for _, key := range slices.Sorted(maps.Keys(f.metadata)) {
		meta.KeyValueMetadata = append(meta.KeyValueMetadata, format.KeyValue{Key: key, Value: f.metadata[key]})
	}
	b, err := encodeThrift(&meta)
	if err != nil {
		return err
	}
	b = binary.LittleEndian.AppendUint32(b, uint32(len(b)))
	return f.write(append(b, magic...))
}

// writeIndexes writes all column indexes, then all offset indexes.
func (f *FileWriter) writeIndexes() error {
	for g := range f.groups {
		for c := range f.groups[g].Columns {
			chunk := &f.groups[g].Columns[c]
			if f.indexes[g][c].column.NullPages == nil {
				continue
			}
			at := f.at
			if err := f.writeThrift(&f.indexes[g][c].column); err != nil {
				return err
			}
			chunk.ColumnIndexOffset, chunk.ColumnIndexLength = at, int32(f.at-at)
		}
	}
	for g := range f.groups {
		for c := range f.groups[g].Columns {
			chunk := &f.groups[g].Columns[c]
			at := f.at
			if err := f.writeThrift(&f.indexes[g][c].offset); err != nil {
				return err
			}
			chunk.OffsetIndexOffset, chunk.OffsetIndexLength = at, int32(f.at-at)
		}
	}
	return nil
}

func (f *FileWriter) writeThrift(v any) error {
	b, err := encodeThrift(v)
	if err != nil {
		return err
	}
	return f.write(b)
}
