// Package codectest reads and writes files of one format in memory, for the tests of
// the formats.
package codectest

import (
	"context"
	"errors"
	"io"
	"strings"
	"testing"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/memory"

	"github.com/tidemill/tidemill/columnar"
	"github.com/tidemill/tidemill/columnar/columnartest"
	"github.com/tidemill/tidemill/formats/codec"
	"github.com/tidemill/tidemill/internal/vfs"
	"github.com/tidemill/tidemill/logical/connector"
)

// Null is how Rows shows a null.
const Null = "∅"

// Scan is one way to read a file. The zero value reads all columns in one go.
type Scan struct {
	Columns    []int
	BatchRows  int
	SplitBytes int64
	Declared   bool
	Evolution  codec.Evolution
	Rescued    string
	Corrupt    int  // position of the corrupt column plus one; 0: none
	Backwards  bool // open the last unit first
	Hash       bool
	Stats      *connector.ScanStats
}

// File puts content into a file system of its own.
func File(t testing.TB, name string, content []byte) codec.File {
	t.Helper()
	fsys := vfs.NewMem()
	f, err := fsys.Create(name)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := f.Write(content); err != nil {
		t.Fatal(err)
	}
	if err := f.Close(); err != nil {
		t.Fatal(err)
	}
	return Open(t, fsys, name)
}

// Open is the file as it is now.
func Open(t testing.TB, fsys vfs.FS, name string) codec.File {
	t.Helper()
	info, err := fsys.Stat(name)
	if err != nil {
		t.Fatal(err)
	}
	return codec.File{FS: fsys, FileIdentity: connector.FileIdentity{Path: name, Size: info.Size(), ModTime: info.ModTime().UnixMicro()}}
}

// Read reads the file and shows each row as its values joined by |.
func Read(t testing.TB, f codec.Format, file codec.File, schema *arrow.Schema, s Scan) ([]string, error) {
	t.Helper()
	return ReadMem(t, columnartest.Mem(t), f, file, schema, s)
}

// ReadMem is Read with an allocator.
func ReadMem(t testing.TB, mem memory.Allocator, f codec.Format, file codec.File, schema *arrow.Schema, s Scan) ([]string, error) {
	t.Helper()
	ctx := context.Background()
	if s.Hash {
		file.Hash = codec.NewContentHash(file.Size)
	}
	columns := codec.Columns{Schema: schema, Declared: s.Declared, Evolution: s.Evolution, Rescued: s.Rescued, CorruptColumn: s.Corrupt - 1}
	req := connector.ScanRequest{Columns: s.Columns, BatchRows: s.BatchRows, SplitBytes: s.SplitBytes, Mem: mem, Stats: s.Stats}
	units, err := f.Units(ctx, file, columns, req)
	if err != nil {
		return nil, err
	}
	parts := make([][]string, len(units))
	for k := range units {
		i := k
		if s.Backwards {
			i = len(units) - 1 - k
		}
		if parts[i], err = readUnit(ctx, t, units[i], s); err != nil {
			return nil, err
		}
	}
	if s.Hash {
		if _, err := file.Hash.Sum(); err != nil {
			t.Errorf("hash: %v", err)
		}
	}
	rows := []string{}
	for _, p := range parts {
		rows = append(rows, p...)
	}
	return rows, nil
}

func readUnit(ctx context.Context, t testing.TB, u connector.Unit, s Scan) (rows []string, err error) {
	t.Helper()
	r, err := u.Open(ctx)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, r.Close()) }()
	for {
		b, err := r.Next(ctx)
		if errors.Is(err, io.EOF) {
			return rows, nil
		}
		if err != nil {
			return nil, err
		}
		if b.NumRows() == 0 {
			t.Error("an empty batch")
		}
		if s.BatchRows > 0 && b.NumRows() > int64(s.BatchRows) {
			t.Errorf("a batch of %d rows, %d were asked for", b.NumRows(), s.BatchRows)
		}
		if !columnar.EqualTypes(b.Schema(), r.Schema()) {
			t.Errorf("batch of %s, reader of %s", b.Schema(), r.Schema())
		}
		rows = append(rows, Rows(b)...)
		b.Release()
	}
}

// Rows shows the rows of a batch.
func Rows(b arrow.RecordBatch) []string {
	rows := make([]string, b.NumRows())
	for i := range rows {
		values := make([]string, b.NumCols())
		for c, column := range b.Columns() {
			values[c] = Null
			if column.IsValid(i) {
				values[c] = string(columnar.AppendValue(nil, column, i, nil))
			}
		}
		rows[i] = strings.Join(values, "|")
	}
	return rows
}

// Write writes batches as one file.
func Write(t testing.TB, f codec.Format, schema *arrow.Schema, batches ...arrow.RecordBatch) (string, error) {
	t.Helper()
	var out strings.Builder
	w, err := f.NewWriter(&out, schema, codec.WriterOptions{Mem: columnartest.Mem(t)})
	if err != nil {
		return "", err
	}
	for _, b := range batches {
		if err := w.Write(b); err != nil {
			return "", err
		}
	}
	if err := w.Close(); err != nil {
		return "", err
	}
	if w.Size() != int64(out.Len()) {
		t.Errorf("Size is %d, %d bytes were written", w.Size(), out.Len())
	}
	return out.String(), nil
}
