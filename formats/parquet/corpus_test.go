package parquet

import (
	"context"
	"encoding/csv"
	"errors"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/apache/arrow-go/v18/arrow/array"

	"github.com/tidemill/tidemill/columnar"
	"github.com/tidemill/tidemill/columnar/columnartest"
	"github.com/tidemill/tidemill/internal/vfs"
	"github.com/tidemill/tidemill/logical/connector"
)

// corpus is the folder of foreign data files that TIDEMILL_CORPUS names. The files
// are not part of the repository.
func corpus(t *testing.T) string {
	t.Helper()
	dir := os.Getenv("TIDEMILL_CORPUS")
	if dir == "" {
		t.Skip("TIDEMILL_CORPUS is not set")
	}
	return dir
}

// refused are files of the corpus that hold what is wrong or not supported, and what
// the error says.
var refused = map[string]string{
	"datapage_v1-corrupt-checksum.parquet":           "checksum",
	"rle-dict-uncompressed-corrupt-checksum.parquet": "checksum",
}

// TestCorpus reads every file of the parquet-testing collection and compares the
// number of rows with what another engine counted.
func TestCorpus(t *testing.T) {
	t.Parallel()
	dir := corpus(t)
	f, err := os.Open(filepath.Join(dir, "rowcounts.csv"))
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	rows, err := csv.NewReader(f).ReadAll()
	if err != nil {
		t.Fatal(err)
	}
	read := 0
	for _, row := range rows[1:] {
		if !strings.HasSuffix(row[0], ".parquet") {
			continue
		}
		read++
		t.Run(row[0], func(t *testing.T) {
			t.Parallel()
			n, err := countRows(t, filepath.Join(dir, row[0]))
			want, isNumber := strconv.ParseInt(row[1], 10, 64)
			reason, bad := refused[filepath.Base(row[0])]
			switch {
			case bad:
				if err == nil || !strings.Contains(err.Error(), reason) {
					t.Errorf("%v, want an error about %s", err, reason)
				}
			case strings.Contains(row[0], "bad_data") && errors.As(err, new(*connector.RecordError)):
				// An error is as good as the right answer.
			case isNumber == nil && (err != nil || n != want):
				t.Errorf("%d rows, %v; want %d", n, err, want)
			case isNumber != nil && err != nil && !errors.As(err, new(*connector.RecordError)):
				t.Errorf("%v, want a RecordError", err)
			}
		})
	}
	if read < 40 {
		t.Errorf("only %d files", read)
	}
}

// countRows decodes every column of the file.
func countRows(t *testing.T, path string) (int64, error) {
	f, err := OpenFile(vfs.OS(), path)
	if err != nil {
		return 0, err
	}
	defer f.Close()
	r, err := f.Reader(columnartest.Mem(t), nil)
	if err != nil {
		return 0, err
	}
	defer r.Close()
	n := int64(0)
	for b, err := range columnar.All(context.Background(), r) {
		if err != nil {
			return 0, err
		}
		for _, c := range b.Columns() {
			for i := range min(c.Len(), 100) {
				_ = c.ValueStr(i)
			}
		}
		n += b.NumRows()
	}
	return n, nil
}

// TestDamagedCorpus reads files that once made readers crash.
func TestDamagedCorpus(t *testing.T) {
	t.Parallel()
	files, err := filepath.Glob(filepath.Join(corpus(t), "parquet-testing/bad_data/*.parquet"))
	if err != nil || len(files) == 0 {
		t.Fatalf("no files: %v", err)
	}
	for _, file := range files {
		t.Run(filepath.Base(file), func(t *testing.T) {
			t.Parallel()
			n, err := countRows(t, file)
			if err != nil && !errors.As(err, new(*connector.RecordError)) {
				t.Errorf("%v, want a RecordError", err)
			}
			t.Logf("%d rows, %v", n, err)
		})
	}
}

// TestCorpusValues compares the delta-encoded files with their values as text.
func TestCorpusValues(t *testing.T) {
	t.Parallel()
	dir := filepath.Join(corpus(t), "parquet-testing/data")
	for _, name := range []string{"delta_byte_array", "delta_encoding_optional_column", "delta_encoding_required_column"} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			h, err := os.Open(filepath.Join(dir, name+"_expect.csv"))
			if err != nil {
				t.Fatal(err)
			}
			defer h.Close()
			want, err := csv.NewReader(h).ReadAll()
			if err != nil {
				t.Fatal(err)
			}
			got := readAll(t, columnartest.Mem(t), vfs.OS(), filepath.Join(dir, name+".parquet"), nil)
			defer got.Release()
			for i := range int(got.NumCols()) {
				column := text(got.Column(i).Data())
				name := strings.TrimSuffix(got.Schema().Field(i).Name, ":")
				at := -1
				for j, h := range want[0] {
					if strings.Trim(h, ": ") == name {
						at = j
					}
				}
				if at < 0 || len(column) != len(want)-1 {
					t.Fatalf("column %s: %d values, want %d", name, len(column), len(want)-1)
				}
				for j, v := range column {
					if v == array.NullValueStr {
						v = ""
					}
					if v != want[j+1][at] {
						t.Errorf("column %s, row %d: %q, want %q", name, j, v, want[j+1][at])
					}
				}
			}
		})
	}
}
