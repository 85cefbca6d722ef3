package formats

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/apache/arrow-go/v18/arrow"

	"github.com/tidemill/tidemill/columnar"
	"github.com/tidemill/tidemill/columnar/columnartest"
	"github.com/tidemill/tidemill/formats/memory"
	"github.com/tidemill/tidemill/internal/vfs"
	"github.com/tidemill/tidemill/logical/connector"
	"github.com/tidemill/tidemill/logical/connector/connectortest"
)

var ctx = context.Background()

func env(t testing.TB, fsys vfs.FS, options ...string) connector.Env {
	e := connector.Env{FS: fsys, Mem: columnartest.Mem(t), Options: map[string]string{}, QueryID: "q1"}
	for i := 0; i < len(options); i += 2 {
		e.Options[options[i]] = options[i+1]
	}
	return e
}

func schemaOf(t testing.TB, fields ...string) *arrow.Schema {
	var list []arrow.Field
	for _, f := range fields {
		name, typ, _ := strings.Cut(f, ":")
		dt, err := columnartest.Type(typ)
		if err != nil {
			t.Fatal(err)
		}
		list = append(list, columnar.Field(name, dt))
	}
	return columnar.NewSchema(list...)
}

func copyIn(t testing.TB, fsys vfs.FS, from, to string) {
	t.Helper()
	err := filepath.WalkDir(from, func(p string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		data, err := os.ReadFile(p)
		if err != nil {
			return err
		}
		rel, err := filepath.Rel(from, p)
		if err != nil {
			return err
		}
		name := path.Join(to, filepath.ToSlash(rel))
		if err := vfs.MkdirAll(fsys, path.Dir(name)); err != nil {
			return err
		}
		return vfs.WriteAtomic(fsys, name, data)
	})
	if err != nil {
		t.Fatal(err)
	}
}

func readTable(t testing.TB, r *connector.Registry, e connector.Env) []string {
	t.Helper()
	table, err := r.Table(ctx, "", e)
	if err != nil {
		t.Fatalf("Table: %v", err)
	}
	us, err := table.Units(ctx, connector.ScanRequest{Mem: e.Mem})
	if err != nil {
		t.Fatalf("Units: %v", err)
	}
	return connectortest.Rows(t, e.Mem, us)
}

// Files with the same beginning, and identical files, are different files.
func TestIdenticalFiles(t *testing.T) {
	t.Parallel()
	r := NewRegistry(memory.NewStore())
	fsys := vfs.NewMem()
	copyIn(t, fsys, "testdata/FD-07/in", "all")
	e := env(t, fsys, "path", "in", "format", "csv", "header", "true")
	e.Columns, e.Log = schemaOf(t, "ts:timestamp", "host:varchar", "msg:varchar"), connectortest.NewLog()
	if err := vfs.MkdirAll(fsys, "in"); err != nil {
		t.Fatal(err)
	}
	counts := map[string]int{}
	at := connector.Offset("")
	step := func() {
		s, err := r.Source(ctx, "filesystem", e)
		if err != nil {
			t.Fatal(err)
		}
		defer s.Close()
		end, err := s.LatestOffset(ctx, at, connector.Limit{})
		if err != nil {
			t.Fatal(err)
		}
		us, err := s.Units(ctx, at, end, connector.ScanRequest{Mem: e.Mem, Columns: []int{2}})
		if err != nil {
			t.Fatal(err)
		}
		for _, row := range connectortest.Rows(t, e.Mem, us) {
			counts[row]++
		}
		at = end
	}
	for _, names := range [][]string{{"a.csv"}, {"b.csv", "c.csv", "d.csv", "e.csv", "f.csv"}} {
		for _, n := range names {
			if err := fsys.Rename("all/"+n, "in/"+n); err != nil {
				t.Fatal(err)
			}
		}
		step()
	}
	if got := fmt.Sprint(counts); got != "map[one:1 starting up:20 three:1 two:1]" {
		t.Errorf("counts %s", got)
	}
}

// Every format, written by the sink and read back, keeps null, the empty text and the
// word null apart.
func TestWriteAndReadBack(t *testing.T) {
	t.Parallel()
	const text = `
id:bigint  s:varchar  d:date      ts:timestamp                 x:double  n:decimal(10,2)
1          NULL       2024-01-02  2024-01-01T00:00:00.000001Z  0.1       1.50
2          ""         NULL        NULL                         NULL      NULL
3          "null"     1969-12-31  1969-12-31T23:59:59Z         -1e300    -0.01
4          "NULL"     2024-01-02  2024-01-01T00:00:00Z         3         99999999.99
5          "a, \"b\""  2024-01-02  2024-01-01T00:00:00Z         3         0.00
`
	for _, c := range []struct{ format, compression, ext string }{
		{"csv", "", ".csv"}, {"csv", "gzip", ".csv.gz"}, {"json", "", ".json"}, {"json", "zstd", ".json.zst"}, {"parquet", "", ".parquet"}, {"parquet", "zstd", ".parquet"},
		{"arrow", "", ".arrow"}, {"avro", "", ".avro"}, {"avro", "zstd", ".avro"},
	} {
		t.Run(c.format+c.compression, func(t *testing.T) {
			t.Parallel()
			r := NewRegistry(memory.NewStore())
			fsys := vfs.NewMem()
			e := env(t, fsys, "path", "out", "format", c.format)
			if c.compression != "" {
				e.Options["compression"] = c.compression
			}
			b := columnartest.Batch(t, e.Mem, text)
			put(t, r, e, b)
			if _, err := fsys.Stat("out/part-00000000000000000000-000" + c.ext); err != nil {
				t.Error(err)
			}
			back := env(t, fsys, "path", "out")
			back.Columns = b.Schema()
			got := readTable(t, r, back)
			want := connectortest.BatchRows(e.Mem, []arrow.RecordBatch{b})
			if !slices.Equal(got, want) {
				t.Errorf("read back\n%s\nnot\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
			}
		})
	}
}

func put(t testing.TB, r *connector.Registry, e connector.Env, b arrow.RecordBatch) {
	t.Helper()
	if err := tryPut(r, e, b); err != nil {
		t.Fatal(err)
	}
}

func tryPut(r *connector.Registry, e connector.Env, b arrow.RecordBatch) error {
	e.Columns = b.Schema()
	s, err := r.Sink(ctx, "", e)
	if err != nil {
		return err
	}
	defer s.Close()
	data := columnar.FromBatches(b.Schema(), b)
	defer data.Close()
	st, err := s.Stage(ctx, connector.SinkBatch{ID: 0, Data: data})
	if err != nil {
		return err
	}
	return st.Publish(ctx)
}

// SINK-06: by default options, also with one column only.
func TestNullsThroughCSV(t *testing.T) {
	t.Parallel()
	r := NewRegistry(memory.NewStore())
	fsys := vfs.NewMem()
	copyIn(t, fsys, "testdata/SINK-06/in", "in")
	in := env(t, fsys, "path", "in")
	in.Columns = schemaOf(t, "id:bigint", "s:varchar")
	table, err := r.Table(ctx, "", in)
	if err != nil {
		t.Fatal(err)
	}
	us, err := table.Units(ctx, connector.ScanRequest{Mem: in.Mem})
	if err != nil {
		t.Fatal(err)
	}
	rd, err := us[0].Open(ctx)
	if err != nil {
		t.Fatal(err)
	}
	defer rd.Close()
	b, err := rd.Next(ctx)
	if err != nil {
		t.Fatal(err)
	}
	defer b.Release()
	put(t, r, env(t, fsys, "path", "out", "format", "csv"), b)
	back := env(t, fsys, "path", "out")
	var kinds []string
	for _, row := range readTable(t, r, back) {
		id, s, _ := strings.Cut(row, "|")
		kind := "text"
		switch s {
		case "NULL":
			kind = "null"
		case `""`:
			kind = "empty"
		}
		kinds = append(kinds, id+","+kind)
	}
	want, err := os.ReadFile("testdata/SINK-06/expected.csv")
	if err != nil {
		t.Fatal(err)
	}
	if got := "id,what\n" + strings.Join(kinds, "\n") + "\n"; got != string(want) {
		t.Errorf("read back\n%s\nnot\n%s", got, want)
	}
	one := columnartest.Batch(t, in.Mem, "s:varchar\nNULL\n")
	err = tryPut(r, env(t, fsys, "path", "one", "format", "csv"), one)
	if err == nil || !strings.Contains(err.Error(), "column s") || !strings.Contains(err.Error(), "null_value") {
		t.Errorf("a null in the only column: %v", err)
	}
}

func TestUnknownOptions(t *testing.T) {
	t.Parallel()
	r := NewRegistry(memory.NewStore())
	fsys := vfs.NewMem()
	for _, c := range []struct {
		options []string
		says    string
	}{
		{[]string{"path", "in", "format", "csv", "delimeter", ";"}, "did you mean delimiter?"},
		{[]string{"path", "in", "format", "parquet", "delimiter", ";"}, "format parquet has no such option (csv has)"},
		{[]string{"path", "in", "format", "xml"}, "there is no such format"},
		{[]string{"path", "in", "format", "csv", "mode", "strict"}, "permissive, drop or fail"},
		{[]string{"path", "in", "format", "parquet", "mode", "strict"}, "permissive, drop or fail"},
	} {
		e := env(t, fsys, c.options...)
		e.Columns = schemaOf(t, "v:bigint")
		_, err := r.Discover(ctx, "", e)
		var option *connector.OptionError
		if !errors.As(err, &option) || !strings.Contains(err.Error(), c.says) {
			t.Errorf("%v: %v", c.options, err)
		}
	}
}

// TestLevels states a compression_level beside each compression.
func TestLevels(t *testing.T) {
	t.Parallel()
	r := NewRegistry(memory.NewStore())
	fsys := vfs.NewMem()
	for format, levels := range map[string]map[string]bool{
		"csv":     {"auto": false, "none": false, "snappy": false, "gzip": true, "zstd": true, "lz4": true},
		"json":    {"none": false, "snappy": false, "gzip": true, "zstd": true, "lz4": true},
		"text":    {"none": false, "snappy": false, "gzip": true, "zstd": true, "lz4": true},
		"parquet": {"auto": false, "snappy": false, "none": false, "gzip": true, "zstd": true},
		"avro":    {"auto": false, "snappy": false, "none": false, "deflate": true, "zstd": true},
	} {
		for compression, has := range levels {
			err := r.CheckSink("", env(t, fsys, "path", "out", "format", format, "compression", compression, "compression_level", "3"))
			var option *connector.OptionError
			if has && err != nil || !has && (!errors.As(err, &option) || option.Key != "compression_level" || !strings.Contains(err.Error(), " has no levels; ")) {
				t.Errorf("%s %s: %v", format, compression, err)
			}
		}
	}
}

// What the first file says about its header stays, though later files say otherwise.
func TestHeaderIsPinned(t *testing.T) {
	t.Parallel()
	r := NewRegistry(memory.NewStore())
	fsys := vfs.NewMem()
	if err := vfs.MkdirAll(fsys, "in"); err != nil {
		t.Fatal(err)
	}
	e := env(t, fsys, "path", "in", "format", "csv")
	e.Columns, e.Log = schemaOf(t, "a:varchar", "b:varchar"), connectortest.NewLog()
	at := connector.Offset("")
	for i, c := range []struct{ content, want string }{{"x,y\n", "x|y"}, {"a,b\n", "a|b"}} {
		if err := vfs.WriteAtomic(fsys, fmt.Sprintf("in/%d.csv", i), []byte(c.content)); err != nil {
			t.Fatal(err)
		}
		s, err := r.Source(ctx, "", e)
		if err != nil {
			t.Fatal(err)
		}
		end, err := s.LatestOffset(ctx, at, connector.Limit{})
		if err != nil {
			t.Fatal(err)
		}
		us, err := s.Units(ctx, at, end, connector.ScanRequest{Mem: e.Mem})
		if err != nil {
			t.Fatal(err)
		}
		if got := connectortest.Rows(t, e.Mem, us); !slices.Equal(got, []string{c.want}) {
			t.Errorf("file %d: %q", i, got)
		}
		at = end
	}
}
