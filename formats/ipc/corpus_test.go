package ipc

import (
	"compress/gzip"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/tidemill/tidemill/formats/codec/codectest"
)

// corpusColumn is a column as the collection's JSON has it.
type corpusColumn struct {
	Name     string
	Count    int
	Validity []int `json:"VALIDITY"`
	Data     []any `json:"DATA"`
}

// TestCorpus reads the files and streams of arrow-testing, which older versions of other
// libraries wrote, from the folder TIDEMILL_CORPUS names, and compares them with what the
// JSON beside them says: rows, nulls, and the values of columns of text and numbers.
func TestCorpus(t *testing.T) {
	t.Parallel()
	dir := os.Getenv("TIDEMILL_CORPUS")
	if dir == "" {
		t.Skip("TIDEMILL_CORPUS is not set: it names a folder with arrow-testing in it")
	}
	files, err := filepath.Glob(filepath.Join(dir, "arrow-testing", "arrow-ipc-stream", "integration", "*", "*.json.gz"))
	if err != nil || len(files) == 0 {
		t.Fatalf("there are no files: %v", err)
	}
	for _, name := range files {
		name = strings.TrimSuffix(name, ".json.gz")
		for _, ext := range []string{".arrow_file", ".stream"} {
			t.Run(filepath.Base(name)+ext, func(t *testing.T) {
				t.Parallel()
				data, err := os.ReadFile(name + ext)
				if err != nil {
					t.Fatal(err)
				}
				schema, rows, err := read(t, Options{}, "x.arrow", data, codectest.Scan{BatchRows: 5})
				if strings.Contains(name, "generated_interval") {
					// Its durations are any number of seconds.
					if err == nil || !strings.Contains(err.Error(), "out of range of INTERVAL") {
						t.Errorf("got %v", err)
					}
					return
				}
				if err != nil {
					t.Fatal(err)
				}
				batches := corpusJSON(t, name+".json.gz")
				if schema == nil {
					t.Fatal("it has no columns")
				}
				compareCorpus(t, rows, batches)
			})
		}
	}
}

func corpusJSON(t *testing.T, name string) [][]corpusColumn {
	t.Helper()
	f, err := os.Open(name)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	z, err := gzip.NewReader(f)
	if err != nil {
		t.Fatal(err)
	}
	var file struct {
		Batches []struct{ Columns []corpusColumn }
	}
	if err := json.NewDecoder(z).Decode(&file); err != nil {
		t.Fatal(err)
	}
	var out [][]corpusColumn
	for _, b := range file.Batches {
		out = append(out, b.Columns)
	}
	return out
}

// compareCorpus compares rows, values joined by |, with columns.
func compareCorpus(t *testing.T, rows []string, batches [][]corpusColumn) {
	t.Helper()
	at, compared := 0, 0
	for _, columns := range batches {
		for i := range columns[0].Count {
			if at+i >= len(rows) {
				t.Fatalf("there are %d rows only", len(rows))
			}
			cells := strings.Split(rows[at+i], "|")
			if len(cells) != len(columns) {
				continue // a value holds the |
			}
			for c, column := range columns {
				isNull := len(column.Validity) > 0 && column.Validity[i] == 0
				if isNull != (cells[c] == codectest.Null) && !strings.HasPrefix(column.Name, "dict") {
					t.Fatalf("row %d, column %s is %s", at+i, column.Name, cells[c])
				}
				if isNull || !comparable(column.Name) || i >= len(column.Data) {
					continue
				}
				compared++
				if want := fmt.Sprint(column.Data[i]); want != cells[c] && fmt.Sprintf("%.0f", column.Data[i]) != cells[c] {
					t.Fatalf("row %d, column %s is %s, want %s", at+i, column.Name, cells[c], want)
				}
			}
		}
		at += columns[0].Count
	}
	if at != len(rows) {
		t.Errorf("there are %d rows, want %d", len(rows), at)
	}
	t.Logf("%d rows, %d values compared", at, compared)
}

// comparable are columns whose JSON is their text.
func comparable(name string) bool {
	for _, kind := range []string{"bool", "int8", "int16", "int32", "utf8", "uint8", "uint16", "uint32"} {
		if strings.HasPrefix(name, kind) {
			return true
		}
	}
	return false
}
