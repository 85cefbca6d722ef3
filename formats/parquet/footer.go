package parquet

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"math"
	"slices"
	"strings"

	"github.com/parquet-go/parquet-go/encoding/thrift"
	"github.com/parquet-go/parquet-go/format"
	"github.com/zeebo/xxh3"

	"github.com/tidemill/tidemill/internal/vfs"
	"github.com/tidemill/tidemill/logical/connector"
)

var magic = []byte("PAR1")

// fileMeta is what the footer of a file says. It is immutable.
type fileMeta struct {
	path   string
	size   int64
	footer format.FileMetaData
	root   *node // a struct of the file's columns
	leaves []*node
	hash   xxh3.Uint128 // of footer and size
}

// damaged makes the error of a file that cannot be decoded.
func damaged(path string, err error) error {
	var re *connector.RecordError
	if errors.As(err, &re) {
		return err
	}
	return &connector.RecordError{File: path, Reason: err.Error(), Err: err}
}

// readFooter reads and checks the footer of an open file.
func readFooter(f vfs.File, path string) (*fileMeta, error) {
	info, err := f.Stat()
	if err != nil {
		return nil, err
	}
	m := &fileMeta{path: path, size: info.Size()}
	raw, err := footerBytes(f, m.size)
	if err != nil {
		var notParquet *formatError
		if errors.As(err, &notParquet) {
			return nil, damaged(path, err)
		}
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	if err := m.parse(raw); err != nil {
		return nil, damaged(path, err)
	}
	var h xxh3.Hasher
	_, _ = h.Write(raw)
	_, _ = h.Write(binary.LittleEndian.AppendUint64(nil, uint64(m.size)))
	m.hash = h.Sum128()
	return m, nil
}

// formatError says that the bytes of a file are not what they should be.
type formatError struct{ reason string }

func (e *formatError) Error() string { return e.reason }

const encrypted = "the Parquet file is encrypted, which is not supported; have it written without encryption, or left out by mode = 'drop'"

func invalid(format string, args ...any) error { return &formatError{fmt.Sprintf(format, args...)} }

// footerBytes returns the encoded metadata.
func footerBytes(f io.ReaderAt, size int64) ([]byte, error) {
	const tail = 8
	if size == 0 {
		return nil, invalid("not a Parquet file: it is empty")
	}
	if size < int64(len(magic))+tail {
		return nil, invalid("not a Parquet file: only %d bytes long", size)
	}
	// One read usually brings the whole footer.
	buf := make([]byte, min(size, 64<<10))
	if err := readFull(f, buf, size-int64(len(buf))); err != nil {
		return nil, err
	}
	end := buf[len(buf)-tail:]
	switch string(end[4:]) {
	case "PARE":
		return nil, &formatError{encrypted}
	case string(magic):
	default:
		return nil, invalid("not a whole Parquet file: it does not end in PAR1")
	}
	length := int64(binary.LittleEndian.Uint32(end))
	if length > size-tail-int64(len(magic)) {
		return nil, invalid("damaged Parquet file: its footer claims %d bytes of %d", length, size)
	}
	if length+tail <= int64(len(buf)) {
		return buf[int64(len(buf))-tail-length : len(buf)-tail], nil
	}
	buf = make([]byte, length)
	return buf, readFull(f, buf, size-tail-length)
}

func readFull(f io.ReaderAt, buf []byte, at int64) error {
	n, err := f.ReadAt(buf, at)
	if n == len(buf) {
		return nil
	}
	if err == nil || errors.Is(err, io.EOF) {
		return invalid("damaged or changed file: it ends at byte %d, more was expected", at+int64(n))
	}
	return err
}

// parse decodes the metadata and checks what later code relies on.
func (m *fileMeta) parse(raw []byte) (err error) {
	defer recovered(&err)
	length, err := checkThrift(raw)
	if err != nil {
		return err
	}
	var protocol thrift.CompactProtocol
	// The decoder lets strings alias its input; a copy keeps the read buffer free.
	if err := thrift.NewDecoder(protocol.NewReaderFromBytes(bytes.Clone(raw[:length]))).Decode(&m.footer); err != nil {
		return fmt.Errorf("damaged Parquet file: footer: %w", err)
	}
	if m.footer.EncryptionAlgorithm.Value != nil { // and a signature follows
		return errors.New(encrypted)
	}
	if length < len(raw) {
		return errors.New("damaged Parquet file: bytes after the footer")
	}
	if m.root, m.leaves, err = buildSchema(m.footer.Schema, hasExactIntervals(m.footer.KeyValueMetadata)); err != nil {
		return err
	}
	return m.checkRowGroups()
}

func (m *fileMeta) checkRowGroups() error {
	total := int64(0)
	for g := range m.footer.RowGroups {
		rg := &m.footer.RowGroups[g]
		if rg.NumRows < 0 || rg.NumRows > math.MaxInt64-total {
			return fmt.Errorf("damaged Parquet file: row group %d has %d rows", g, rg.NumRows)
		}
		total += rg.NumRows
		if len(rg.Columns) != len(m.leaves) {
			return fmt.Errorf("damaged Parquet file: row group %d has %d columns, the schema %d", g, len(rg.Columns), len(m.leaves))
		}
		for c := range rg.Columns {
			if err := m.checkChunk(&rg.Columns[c], m.leaves[c], rg.NumRows); err != nil {
				return fmt.Errorf("damaged Parquet file: row group %d, column %s: %w", g, m.leaves[c].name, err)
			}
		}
	}
	if n := m.footer.NumRows; n > 0 && n != total { // some writers leave it out
		return fmt.Errorf("damaged Parquet file: its row groups have %d rows, by the footer %d", total, n)
	}
	return nil
}

func (m *fileMeta) checkChunk(c *format.ColumnChunk, leaf *node, rows int64) error {
	meta := &c.MetaData
	if c.FilePath != "" {
		return errors.New("its data is in another file, which is not supported")
	}
	if int32(meta.Type) != int32(leaf.physical) {
		return fmt.Errorf("its type is %s, in the schema %s", meta.Type, leaf.physical)
	}
	if len(meta.PathInSchema) > 0 && !slices.Equal(meta.PathInSchema, leaf.path) {
		return fmt.Errorf("it is called %q there, %q in the schema", strings.Join(meta.PathInSchema, "."), strings.Join(leaf.path, "."))
	}
	start := chunkStart(meta)
	if rows > 0 && (start < int64(len(magic)) || start >= m.size || meta.TotalCompressedSize < 0) {
		return fmt.Errorf("it begins at byte %d of %d", start, m.size)
	}
	if meta.NumValues < 0 || leaf.rep == 0 && meta.NumValues != rows {
		return fmt.Errorf("it has %d values for %d rows", meta.NumValues, rows)
	}
	return nil
}

// chunkStart is the offset of a column chunk's first page. Some writers leave the
// offset of the dictionary page out and let the first data page be the dictionary.
func chunkStart(meta *format.ColumnMetaData) int64 {
	if d := meta.DictionaryPageOffset; d > 0 && d < meta.DataPageOffset {
		return d
	}
	return meta.DataPageOffset
}

func (m *fileMeta) rows() int64 {
	n := int64(0)
	for g := range m.footer.RowGroups {
		n += m.footer.RowGroups[g].NumRows
	}
	return n
}

// recovered turns a panic of a decoder on damaged input into an error.
func recovered(err *error) {
	if p := recover(); p != nil {
		*err = fmt.Errorf("damaged data: %v", p)
	}
}
