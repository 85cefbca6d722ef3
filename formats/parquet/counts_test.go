package parquet

import (
	"bytes"
	"encoding/binary"
	"strings"
	"testing"

	"github.com/parquet-go/parquet-go/encoding/thrift"
	"github.com/parquet-go/parquet-go/format"

	"github.com/tidemill/tidemill/columnar"
	"github.com/tidemill/tidemill/columnar/columnartest"
	"github.com/tidemill/tidemill/internal/vfs"
)

// tinyFile is a file of one BIGINT column of one page, whose counts a test may falsify.
type tinyFile struct {
	levels     []byte // of definition; if the column is repeated, the first half of repetition
	body       []byte
	values     int32 // by the page
	nulls      int32 // by the page; a page of version 2 has them
	encoding   format.Encoding
	version    int
	repeated   bool
	chunk      int64 // values by the chunk
	group, all int64 // rows by the row group and the footer
	listed     []format.Encoding
	called     string // the column, by its chunk
}

func (f tinyFile) encode(t *testing.T) []byte {
	t.Helper()
	levels := f.levels
	header := format.PageHeader{}
	if f.version == 2 {
		header.Type = format.DataPageV2
		h := format.DataPageHeaderV2{NumValues: f.values, NumNulls: f.nulls, NumRows: f.values, Encoding: f.encoding, DefinitionLevelsByteLength: int32(len(levels))}
		if f.repeated {
			h.RepetitionLevelsByteLength, h.DefinitionLevelsByteLength = int32(len(levels))/2, int32(len(levels))/2
		}
		header.DataPageHeaderV2 = thrift.New(h)
	} else {
		header.DataPageHeader = thrift.New(format.DataPageHeader{NumValues: f.values, Encoding: f.encoding, DefinitionLevelEncoding: format.RLE, RepetitionLevelEncoding: format.RLE})
		levels = append(binary.LittleEndian.AppendUint32(nil, uint32(len(levels))), levels...)
	}
	body := append(levels, f.body...)
	header.UncompressedPageSize, header.CompressedPageSize = int32(len(body)), int32(len(body))
	page, err := encodeThrift(header)
	if err != nil {
		t.Fatal(err)
	}
	page = append(page, body...)
	repetition := format.Optional
	if f.repeated {
		repetition = format.Repeated
	}
	footer, err := encodeThrift(format.FileMetaData{
		Version: 1, NumRows: f.all,
		Schema: []format.SchemaElement{{Name: "schema", NumChildren: thrift.New(int32(1))}, {Name: "a", Type: thrift.New(format.Int64), RepetitionType: thrift.New(repetition)}},
		RowGroups: []format.RowGroup{{NumRows: f.group, Columns: []format.ColumnChunk{{MetaData: format.ColumnMetaData{
			Type: format.Int64, Encoding: f.listed, PathInSchema: []string{f.called}, NumValues: f.chunk,
			TotalCompressedSize: int64(len(page)), TotalUncompressedSize: int64(len(page)), DataPageOffset: int64(len(magic)),
		}}}}},
	})
	if err != nil {
		t.Fatal(err)
	}
	out := append(bytes.Clone(magic), page...)
	out = append(out, footer...)
	return append(binary.LittleEndian.AppendUint32(out, uint32(len(footer))), magic...)
}

// TestCounts reads files whose counts contradict each other. Other readers take the values
// of other rows, or of other columns, then. What some writers leave behind the last value, or
// do not count, is no contradiction.
func TestCounts(t *testing.T) {
	t.Parallel()
	good := tinyFile{
		levels: []byte{3 << 1, 1}, body: make([]byte, 24), values: 3, chunk: 3, group: 3, all: 3, listed: []format.Encoding{format.Plain, format.RLE}, called: "a",
	}
	for i := range 3 {
		good.body[8*i] = byte(5 + i)
	}
	// Repetition levels 0, 1, 0, then definition levels 1, 1, 1, in as many bytes.
	twoLists := []byte{1 << 1, 0, 1 << 1, 1, 1 << 1, 0, 1 << 1, 1, 1 << 1, 1, 1 << 1, 1}
	for _, c := range []struct {
		name   string
		change func(*tinyFile)
		want   string // rows, or a part of the error
	}{
		{"good", func(*tinyFile) {}, "[5 6 7]"},
		{"version 2", func(f *tinyFile) { f.version = 2 }, "[5 6 7]"},
		{"filler", func(f *tinyFile) { f.body = append(bytes.Clone(f.body), make([]byte, 8)...) }, "[5 6 7]"},
		{"part of a value", func(f *tinyFile) { f.body = append(bytes.Clone(f.body), 1, 2, 3) }, "[5 6 7]"},
		{"rows are not counted", func(f *tinyFile) { f.all = 0 }, "[5 6 7]"},
		{"nulls are not counted", func(f *tinyFile) { f.version, f.levels, f.body = 2, []byte{1 << 1, 0, 2 << 1, 1}, f.body[:16] }, "[(null) 5 6]"},
		{"a value too many", func(f *tinyFile) { f.levels = []byte{1 << 1, 0, 2 << 1, 1} }, "a page has more values than its header says"},
		{"a value is missing", func(f *tinyFile) { f.body = f.body[:16] }, "the page ends in the middle of its values"},
		{"the page has fewer", func(f *tinyFile) { f.values = 2 }, "a page has more values than its header says"},
		{"the chunk has more", func(f *tinyFile) { f.chunk, f.group, f.all = 4, 4, 4 }, "its pages end before its values do"},
		{"other nulls", func(f *tinyFile) {
			f.version, f.levels, f.body, f.nulls = 2, []byte{1 << 1, 0, 2 << 1, 1}, f.body[:16], 2
		}, "a page has 1 nulls, by its header 2"},
		{"other rows", func(f *tinyFile) { f.all = 4 }, "its row groups have 3 rows, by the footer 4"},
		{"another name", func(f *tinyFile) { f.called = "b" }, `column a: it is called "b" there, "a" in the schema`},
		{"repeated", func(f *tinyFile) { f.version, f.repeated, f.levels, f.group, f.all = 2, true, twoLists, 2, 2 }, "[[5,6] [7]]"},
		{"a row too many", func(f *tinyFile) {
			f.version, f.repeated, f.levels, f.group, f.all = 2, true, twoLists, 1, 1
		}, "its pages have more rows than the row group"},
		{"an encoding that is not listed", func(f *tinyFile) { f.encoding = format.ByteStreamSplit }, "a page is encoded as BYTE_STREAM_SPLIT, which the footer does not list"},
	} {
		f := good
		c.change(&f)
		m := vfs.NewMem()
		if err := vfs.WriteAtomic(m, "f", f.encode(t)); err != nil {
			t.Fatal(err)
		}
		got := valuesOf(t, m, "f")
		if !strings.Contains(got, c.want) {
			t.Errorf("%s: %s, want %s", c.name, got, c.want)
		}
	}
}

// valuesOf are the values of the first column of a file, or the error.
func valuesOf(t *testing.T, m vfs.FS, path string) string {
	t.Helper()
	f, err := OpenFile(m, path)
	if err != nil {
		return err.Error()
	}
	defer f.Close()
	r, err := f.Reader(columnartest.Mem(t), nil)
	if err != nil {
		return err.Error()
	}
	defer r.Close()
	var values []string
	for b, err := range columnar.All(t.Context(), r) {
		if err != nil {
			return err.Error()
		}
		for i := range int(b.NumRows()) {
			values = append(values, b.Column(0).ValueStr(i))
		}
	}
	return "[" + strings.Join(values, " ") + "]"
}
