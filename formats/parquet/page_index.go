package parquet

import (
	"io"
	"slices"
	"sort"

	"github.com/parquet-go/parquet-go/encoding/thrift"
	"github.com/parquet-go/parquet-go/format"
)

// pageLocation is where a data page of a column chunk is, and which rows it has.
type pageLocation struct {
	offset   int64
	row, end int64 // first row, and the one after the last
}

// maxIndex is the most bytes that the index of one column chunk is read of.
const maxIndex = 16 << 20

// readIndex decodes a part of the page index; false where there is none that can be
// decoded. What is wrong with an index is no error: pages are read without it.
func readIndex(f io.ReaderAt, size, at int64, length int32, into any) (ok bool) {
	if at <= 0 || length <= 0 || length > maxIndex || at > size-int64(length) {
		return false
	}
	defer func() { ok = recover() == nil && ok }()
	raw := make([]byte, length)
	if readFull(f, raw, at) != nil {
		return false
	}
	n, err := checkThrift(raw)
	if err != nil {
		return false
	}
	var protocol thrift.CompactProtocol
	return thrift.NewDecoder(protocol.NewReaderFromBytes(raw[:n])).Decode(into) == nil
}

// pageLocations are the data pages of a leaf that is not repeated, by the offset index;
// nil where there is none, or one that contradicts itself or the footer.
func (m *fileMeta) pageLocations(f io.ReaderAt, group int, leaf *node) []pageLocation {
	chunk := &m.footer.RowGroups[group].Columns[leaf.leaf]
	var index format.OffsetIndex
	if leaf.rep > 0 || !readIndex(f, m.size, chunk.OffsetIndexOffset, chunk.OffsetIndexLength, &index) || len(index.PageLocations) == 0 {
		return nil
	}
	rows, least := m.footer.RowGroups[group].NumRows, chunkStart(&chunk.MetaData)
	pages := make([]pageLocation, len(index.PageLocations))
	for i, l := range index.PageLocations {
		pages[i] = pageLocation{l.Offset, l.FirstRowIndex, rows}
		if i > 0 {
			pages[i-1].end = l.FirstRowIndex
		}
		if l.Offset < least || l.CompressedPageSize <= 0 || l.Offset > m.size-int64(l.CompressedPageSize) {
			return nil
		}
		least = l.Offset + int64(l.CompressedPageSize)
	}
	if pages[0].row != 0 || slices.ContainsFunc(pages, func(p pageLocation) bool { return p.row >= p.end }) {
		return nil
	}
	return pages
}

// pageOf is the position of the page that has a row.
func pageOf(pages []pageLocation, row int64) int {
	return sort.Search(len(pages), func(i int) bool { return pages[i].end > row })
}

// columnIndex is what the column index says of the pages of a leaf, nil where that is
// nothing.
func (m *fileMeta) columnIndex(f io.ReaderAt, group int, leaf *node, pages int) *format.ColumnIndex {
	chunk := &m.footer.RowGroups[group].Columns[leaf.leaf]
	x := &format.ColumnIndex{}
	if !readIndex(f, m.size, chunk.ColumnIndexOffset, chunk.ColumnIndexLength, x) ||
		len(x.NullPages) != pages || len(x.MinValues) != pages || len(x.MaxValues) != pages ||
		len(x.NullCounts) != 0 && len(x.NullCounts) != pages {
		return nil
	}
	return x
}

// pageStatistics are those of one page of a leaf, as if they were a column chunk's. The
// index may keep only the beginnings of long values: of texts those are bounds, too.
func pageStatistics(leaf *node, x *format.ColumnIndex, page int, rows int64) format.Statistics {
	if x.NullPages[page] {
		return format.Statistics{NullCount: rows}
	}
	var s format.Statistics
	if len(x.NullCounts) > 0 {
		s.NullCount = x.NullCounts[page]
	}
	number := leaf.physical == format.ByteArray && width(leaf.typ) > 0
	if low, high := x.MinValues[page], x.MaxValues[page]; len(high) > 0 && !number {
		s.MinValue, s.MaxValue = append([]byte{}, low...), high
	}
	return s
}
