package parquet

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/apache/arrow-go/v18/arrow"

	"github.com/tidemill/tidemill/columnar"
	"github.com/tidemill/tidemill/columnar/columnartest"
	"github.com/tidemill/tidemill/formats/codec"
	"github.com/tidemill/tidemill/internal/vfs"
	"github.com/tidemill/tidemill/logical/connector"
)

// scan reads files through the codec contract, as lines "a|b|c", and counts.
func scan(t *testing.T, f codec.Format, files []codec.File, schema *arrow.Schema, req connector.ScanRequest) ([]string, error) {
	t.Helper()
	ctx := context.Background()
	var lines []string
	for _, file := range files {
		units, err := f.Units(ctx, file, codec.Columns{Schema: schema, Declared: true, CorruptColumn: -1}, req)
		if err != nil {
			return lines, err
		}
		for _, u := range units {
			r, err := u.Open(ctx)
			if err != nil {
				return lines, err
			}
			for b, err := range columnar.All(ctx, r) {
				if err != nil {
					_ = r.Close()
					return lines, err
				}
				p := columnar.Plain(req.Mem, b)
				for i := range int(p.NumRows()) {
					var cells []string
					for _, c := range p.Columns() {
						cells = append(cells, strings.Clone(c.ValueStr(i)))
					}
					lines = append(lines, strings.Join(cells, "|"))
				}
				p.Release()
			}
			if err := r.Close(); err != nil {
				return lines, err
			}
		}
	}
	return lines, nil
}

func caseFiles(t *testing.T, name string) []codec.File {
	t.Helper()
	paths, err := filepath.Glob(filepath.Join("testdata/cases", name, "*.parquet"))
	if err != nil || len(paths) == 0 {
		t.Fatalf("no files of case %s: %v", name, err)
	}
	var files []codec.File
	for _, p := range paths {
		info, err := os.Stat(p)
		if err != nil {
			t.Fatal(err)
		}
		files = append(files, codec.File{FS: vfs.OS(), FileIdentity: connector.FileIdentity{Path: p, Size: info.Size()}})
	}
	return files
}

func TestCases(t *testing.T) {
	t.Parallel()
	id, v, s := columnar.Field("id", columnar.Int64), columnar.Field("v", columnar.Int64), columnar.Field("s", columnar.String)
	for _, c := range []struct {
		name   string
		schema *arrow.Schema
		keep   func(line string) bool
		want   []string
	}{
		{"PQ-01", columnar.NewSchema(id, s), nil, []string{"1|x", "2|y", "3|z", "4|(null)", "5|w"}},
		{"PQ-04", columnar.NewSchema(columnar.Field("d", columnar.Decimal(9, 2))), nil, slices.Sorted(slices.Values(slices.Repeat(
			[]string{"-1234567.89", "-5", "-0.01", "0", "5", "1234567.89"}, 4)))},
		{"PQ-06", columnar.NewSchema(id, v, s), func(l string) bool { return !strings.HasSuffix(l, "|(null)|(null)") },
			[]string{"3|30|(null)", "5|(null)|s2", "140|1400|(null)", "216|(null)|s0", "277|2770|(null)", "414|4140|(null)",
				"427|(null)|s1", "551|5510|(null)", "638|(null)|s2", "688|6880|(null)", "825|8250|(null)", "849|(null)|s0", "962|9620|(null)"}},
		{"PQ-11", columnar.NewSchema(id, columnar.Field("city", columnar.String), v), nil,
			[]string{"1|Graz|10", "2|Linz|20", "3|Wien|(null)", "4|(null)|40"}},
		{"PQ-14", columnar.NewSchema(id, columnar.Field("ts", columnar.Timestamp)), nil, []string{
			"1|1969-12-31T23:59:59.25Z", "10|1969-12-31T23:59:59.25Z", "100|1969-12-31T23:59:59.25Z",
			"2|1970-01-01T00:00:00Z", "20|1970-01-01T00:00:00Z", "200|1970-01-01T00:00:00Z",
			"4|2024-02-29T23:59:59.999Z", "40|2024-02-29T23:59:59.999Z", "400|2024-02-29T23:59:59.999Z"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			for _, batch := range []int{1, 3, 0} {
				f, err := New(Options{})
				if err != nil {
					t.Fatal(err)
				}
				got, err := scan(t, f, caseFiles(t, c.name), c.schema, connector.ScanRequest{Mem: columnartest.Mem(t), BatchRows: batch})
				if err != nil {
					t.Fatal(err)
				}
				if c.keep != nil {
					got = slices.DeleteFunc(got, func(l string) bool { return !c.keep(l) })
				}
				slices.Sort(got)
				slices.Sort(c.want)
				if fmt.Sprint(got) != fmt.Sprint(c.want) {
					t.Errorf("batches of %d: got\n%s\nwant\n%s", batch, strings.Join(got, "\n"), strings.Join(c.want, "\n"))
				}
			}
		})
	}
}

// TestDamagedCase has cut, empty and foreign files among good ones.
func TestDamagedCase(t *testing.T) {
	t.Parallel()
	schema := columnar.NewSchema(columnar.Field("id", columnar.Int64))
	files := caseFiles(t, "PQ-08")
	f, err := New(Options{Mode: codec.Drop})
	if err != nil {
		t.Fatal(err)
	}
	stats := &connector.ScanStats{}
	got, err := scan(t, f, files, schema, connector.ScanRequest{Mem: columnartest.Mem(t), Stats: stats})
	slices.Sort(got)
	if err != nil || fmt.Sprint(got) != "[1 2 3 4]" || stats.MalformedFiles.Load() != 4 {
		t.Errorf("rows %v, %d damaged files, %v", got, stats.MalformedFiles.Load(), err)
	}
	for _, mode := range []codec.Mode{codec.Permissive, codec.Fail} {
		f, err := New(Options{Mode: mode})
		if err != nil {
			t.Fatal(err)
		}
		for _, file := range files {
			_, err := scan(t, f, []codec.File{file}, schema, connector.ScanRequest{Mem: columnartest.Mem(t)})
			good := strings.HasPrefix(filepath.Base(file.Path), "good")
			var re *connector.RecordError
			if good && err != nil || !good && (!errors.As(err, &re) || re.File != file.Path) {
				t.Errorf("%s: %v", file.Path, err)
			}
		}
	}
}
