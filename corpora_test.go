package tidemill_test

import (
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/tidemill/tidemill"
)

const corporaPage = "docs/corpora.md"

// corpusFile is what became of one file of the corpora.
type corpusFile struct {
	name    string
	rows    int64
	refused string // why; "" if it was read
}

// TestCorpora reads every file of the collections below TIDEMILL_CORPUS, which are not
// part of the repository, and compares what is refused with docs/corpora.md.
func TestCorpora(t *testing.T) {
	t.Parallel()
	root := os.Getenv("TIDEMILL_CORPUS")
	if root == "" {
		t.Skip("TIDEMILL_CORPUS is not set: it names a folder of collections such as parquet-testing")
	}
	var suite, others []corpusFile
	err := filepath.WalkDir(root, func(name string, e fs.DirEntry, err error) error {
		if err != nil || e.IsDir() {
			return err
		}
		rel, err := filepath.Rel(root, name)
		if err != nil {
			return err
		}
		source := corpusSource(rel, name)
		if source == "" {
			return nil
		}
		f := readCorpusFile(t, root, rel, source)
		if strings.HasPrefix(rel, "JSONTestSuite/") {
			suite = append(suite, f)
		} else {
			others = append(others, f)
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	checkSuite(t, suite)
	page := corporaText(suite, others)
	if rewriting() {
		if err := os.WriteFile(corporaPage, []byte(page), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	have, err := os.ReadFile(corporaPage)
	if err != nil {
		t.Fatal(err)
	}
	if string(have) != page {
		t.Errorf("%s is not what the files say; go test . -run TestCorpora -rewrite, and look at the difference; now it is\n%s", corporaPage, page)
	}
}

// corpusSource is the table function that reads a file; "" if it holds no data.
func corpusSource(rel, name string) string {
	quoted := "'" + strings.ReplaceAll(name, "'", "''") + "'"
	base := filepath.Base(rel)
	ext := filepath.Ext(strings.TrimSuffix(base, ".gz"))
	switch {
	case base == "rowcounts.csv":
		return ""
	case ext == ".parquet":
		return "read_parquet(" + quoted + ", hive_partitioning => false)"
	case ext == ".csv":
		return "read_csv(" + quoted + ", hive_partitioning => false, mode => 'fail')"
	case ext == ".json":
		return "t" // declared, so that what is no object is a record, too
	case ext == ".arrow_file", ext == ".stream":
		return "read_arrow(" + quoted + ")"
	}
	return ""
}

func readCorpusFile(t *testing.T, root, rel, source string) corpusFile {
	t.Helper()
	f := corpusFile{name: filepath.ToSlash(rel)}
	s, err := tidemill.NewSession(tidemill.Options{})
	if err != nil {
		t.Fatal(err)
	}
	table := "CREATE TABLE t (v VARCHAR) WITH (path = '" + filepath.Join(root, rel) + "', format = 'json', multiline = true, mode = 'fail'); "
	df, err := s.SQL(t.Context(), table+"SELECT * FROM "+source)
	if err == nil {
		var rows *tidemill.Rows
		if rows, err = s.Collect(t.Context(), df); err == nil {
			f.rows = rows.NumRows()
			rows.Release()
		}
	}
	if err != nil {
		why, _, _ := strings.Cut(err.Error(), "\n")
		why = strings.ReplaceAll(why, filepath.Join(root, rel), filepath.Base(rel))
		why = strings.TrimPrefix(regexp.MustCompile(`^line \d+, column \d+: `).ReplaceAllString(why, ""), filepath.Base(rel)+": ")
		f.refused = regexp.MustCompile(`^[^ :]*:(\d+): `).ReplaceAllString(why, "line $1: ")
		if strings.Contains(f.refused, "goroutine") || f.refused == "" {
			t.Errorf("%s: %v", rel, err)
		}
	}
	return f
}

// notRecords are refusals of what is JSON, but no table.
var notRecords = regexp.MustCompile(`the record is not an object`)

// checkSuite holds JSONTestSuite to its names: what must be read is, or is said to be no
// object; nothing that must be refused gives a row.
func checkSuite(t *testing.T, suite []corpusFile) {
	t.Helper()
	for _, f := range suite {
		base := filepath.Base(f.name)
		switch {
		case strings.HasPrefix(base, "y_") && f.refused != "" && !notRecords.MatchString(f.refused):
			t.Errorf("%s: %s", f.name, f.refused)
		case strings.HasPrefix(base, "n_") && f.refused == "" && f.rows > 0:
			t.Errorf("%s: %d rows were read", f.name, f.rows)
		}
	}
}

func corporaText(suite, others []corpusFile) string {
	var out strings.Builder
	fmt.Fprintf(&out, `# Collections of odd files

With `+"`TIDEMILL_CORPUS`"+` set to a folder of them, the tests read files that others collected because readers stumble over them:
parquet-testing and arrow-testing of Apache, JSONTestSuite, csv-spectrum, the data of DuckDB and vega-datasets. Values are compared by
the tests of each format, rows with DuckDB's; this page, which `+"`TestCorpora`"+` writes, says what is refused. CSV and JSON are read
with `+"`mode = 'fail'`"+`.

`)
	read := 0
	for _, f := range others {
		if f.refused == "" {
			read++
		}
	}
	fmt.Fprintf(&out, "%d files are read. These %d are not:\n\n| file | because |\n| --- | --- |\n", read, len(others)-read)
	for _, f := range others {
		if f.refused != "" {
			fmt.Fprintf(&out, "| %s | %s |\n", f.name, cell(f.refused))
		}
	}
	out.WriteString("\n## JSONTestSuite\n\nEach text is read as a file of its own. A text that is JSON but no object is refused as that.\n\n")
	out.WriteString("| names | files | read | JSON, but no object | refused |\n| --- | --- | --- | --- | --- |\n")
	for _, kind := range []string{"y_", "n_", "i_"} {
		var files, read, others int
		for _, f := range suite {
			if strings.HasPrefix(filepath.Base(f.name), kind) {
				files++
				switch {
				case f.refused == "":
					read++
				case notRecords.MatchString(f.refused):
					others++
				}
			}
		}
		fmt.Fprintf(&out, "| %s | %d | %d | %d | %d |\n", kind, files, read, others, files-read-others)
	}
	return out.String()
}
