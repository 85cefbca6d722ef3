package file

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"path"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/memory"

	"github.com/tidemill/tidemill/columnar"
	"github.com/tidemill/tidemill/columnar/columnartest"
	"github.com/tidemill/tidemill/internal/vfs"
	"github.com/tidemill/tidemill/internal/vfs/faultfs"
	"github.com/tidemill/tidemill/logical/connector"
)

// rowsOf is batches of canonical text as a SinkBatch.
func (w *world) batch(id int64, mode connector.OutputMode, text string, sides ...string) connector.SinkBatch {
	mem := columnartest.Mem(w.t)
	b := connector.SinkBatch{ID: id, Mode: mode, Data: reader1(columnartest.Batch(w.t, mem, text))}
	w.t.Cleanup(func() { _ = b.Data.Close() })
	b.Side = func() ([]connector.SideOutput, error) {
		var out []connector.SideOutput
		for i := 0; i < len(sides); i += 2 {
			out = append(out, connector.SideOutput{Name: sides[i], Data: reader1(columnartest.Batch(w.t, mem, sides[i+1]))})
		}
		return out, nil
	}
	return b
}

// plainBatch is batch without the checks of memory: for loops of thousands.
func (w *world) plainBatch(id int64, mode connector.OutputMode, text, bad string) connector.SinkBatch {
	read := func(text string) columnar.Reader {
		schema, rows := plainText(text)
		return columnar.FromBatches(schema, rows)
	}
	return connector.SinkBatch{ID: id, Mode: mode, Data: read(text), Side: func() ([]connector.SideOutput, error) {
		return []connector.SideOutput{{Name: "bad", Data: read(bad)}}, nil
	}}
}

// plainText reads rows of VARCHAR and BIGINT columns.
func plainText(text string) (*arrow.Schema, arrow.RecordBatch) {
	lines := strings.Split(strings.TrimSpace(text), "\n")
	schema := schemaOf(strings.Fields(lines[0])...)
	columns := make([]arrow.Array, schema.NumFields())
	for i, f := range schema.Fields() {
		var values []any
		for _, line := range lines[1:] {
			cell := strings.Fields(line)[i]
			if n, err := strconv.ParseInt(cell, 10, 64); err == nil && f.Type.ID() == arrow.INT64 {
				values = append(values, n)
			} else {
				values = append(values, cell)
			}
		}
		var err error
		if columns[i], err = columnar.Column(memory.DefaultAllocator, f.Type, values...); err != nil {
			panic(err)
		}
	}
	return schema, array.NewRecordBatch(schema, columns, int64(len(lines)-1))
}

func reader1(b arrow.RecordBatch) columnar.Reader { return columnar.FromBatches(b.Schema(), b) }

func (w *world) sink(env connector.Env) *Sink {
	w.t.Helper()
	s, err := OpenSink(w.t.Context(), testFormats, env)
	if err != nil {
		w.t.Fatalf("OpenSink: %v", err)
	}
	w.t.Cleanup(func() { _ = s.Close() })
	return s
}

func (w *world) publish(s *Sink, b connector.SinkBatch) {
	w.t.Helper()
	st, err := s.Stage(w.t.Context(), b)
	if err != nil {
		w.t.Fatalf("Stage: %v", err)
	}
	if err := st.Publish(w.t.Context()); err != nil {
		w.t.Fatalf("Publish: %v", err)
	}
}

func TestSinkLayout(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	s := w.sink(w.env("path", "out/x/", "format", "csv", "partition_by", "day, k"))
	w.publish(s, w.batch(0, connector.Append, `
day:date    k:varchar  v:bigint
2024-01-01  a/b        1
2024-01-01  NULL       2
2024-01-02  ""         3
2024-01-01  a/b        4
`, "late", "v:bigint\n9\n", "bad", "raw:varchar\nx\n"))
	w.publish(s, w.batch(1, connector.Append, "day:date  k:varchar  v:bigint\n"))
	equal(t, "files", tree(t, w.mem, "out"), []string{
		"out/x/.tidemill/id",
		"out/x/.tidemill/lock",
		"out/x/.tidemill/manifest/0",
		"out/x/.tidemill/manifest/1",
		"out/x/day=2024-01-01/k=__HIVE_DEFAULT_PARTITION__/part-00000000000000000000-001.csv",
		"out/x/day=2024-01-01/k=a%2Fb/part-00000000000000000000-000.csv",
		"out/x/day=2024-01-02/k=/part-00000000000000000000-002.csv",
		"out/x.bad/part-00000000000000000000-000.csv",
		"out/x.late/part-00000000000000000000-000.csv",
	})
	if got := w.read("out/x/day=2024-01-01/k=a%2Fb/part-00000000000000000000-000.csv"); got != "v\n1\n4\n" {
		t.Errorf("file holds %q", got)
	}
	table := w.table(w.env("path", "out/x"))
	if got := columnar.SchemaString(table.Schema()); got != "v BIGINT, day DATE, k VARCHAR" {
		t.Errorf("read back with columns %s", got)
	}
	got := w.rows(table)
	slices.Sort(got)
	equal(t, "rows", got, []string{`1|2024-01-01|a/b`, `2|2024-01-01|NULL`, `3|2024-01-02|""`, `4|2024-01-01|a/b`})
}

func TestSinkTargetFileSize(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	s := w.sink(w.env("path", "out", "format", "csv", "target_file_size", "4"))
	b := w.batch(0, connector.Append, "v:bigint\n1\n2\n3\n")
	rows, err := columnar.Drain(t.Context(), b.Data)
	if err != nil {
		t.Fatal(err)
	}
	defer rows[0].Release()
	b.Data = columnartest.Split(b.Data.Schema(), rows, 1)
	w.publish(s, b)
	equal(t, "files", published(t, w.mem, "out"), []string{
		"out/part-00000000000000000000-000.csv", "out/part-00000000000000000000-001.csv", "out/part-00000000000000000000-002.csv",
	})
}

// published lists the data files below the given directories.
func published(t testing.TB, fsys vfs.FS, dirs ...string) []string {
	var out []string
	for _, d := range dirs {
		for _, f := range tree(t, fsys, d) {
			if testFormats.isData(f) {
				out = append(out, f)
			}
		}
	}
	return out
}

// Many folders: beyond the files that are open, rows wait in memory, so that each folder
// gets one file; where memory is short, some get more.
func TestSinkManyFolders(t *testing.T) {
	t.Parallel()
	const rounds = 5
	for _, parks := range []int64{maxParked, 20_000, 0} {
		w := newWorld(t)
		s := w.sink(w.env("path", "out", "format", "csv", "partition_by", "k"))
		s.parks = parks
		mem := columnartest.Mem(t)
		var batches []arrow.RecordBatch
		for round := range rounds {
			text := strings.Builder{}
			text.WriteString("k:bigint  v:bigint\n")
			for i := range 2 * maxOpen {
				fmt.Fprintf(&text, "%d  %d\n", i, round*1000+i)
			}
			batches = append(batches, columnartest.Batch(t, mem, text.String()))
		}
		data := columnar.FromBatches(batches[0].Schema(), batches...)
		w.publish(s, connector.SinkBatch{ID: 0, Mode: connector.Append, Data: data})
		if n := len(w.rows(w.table(w.env("path", "out")))); n != rounds*2*maxOpen {
			t.Errorf("%d: %d rows came back, not %d", parks, n, rounds*2*maxOpen)
		}
		if n := len(published(t, w.mem, "out")); parks == maxParked && n != 2*maxOpen || n > rounds*2*maxOpen {
			t.Errorf("%d: %d files", parks, n)
		}
		if w.mem.OpenFiles() != 0 {
			t.Errorf("%d files are left open", w.mem.OpenFiles())
		}
	}
}

func TestSinkComplete(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	env := w.env("path", "out", "format", "csv")
	env.Mode = connector.Complete
	s := w.sink(env)
	w.publish(s, w.batch(0, connector.Complete, "v:bigint\n1\n2\n"))
	equal(t, "files", published(t, w.mem, "out"), []string{"out/part-000.csv"})
	w.publish(s, w.batch(1, connector.Complete, "v:bigint\n"))
	if got := w.read("out/part-000.csv"); got != "v\n" {
		t.Errorf("the empty table is %q", got)
	}
	equal(t, "rows", w.rows(w.table(func() connector.Env {
		e := w.env("path", "out")
		e.Columns = schemaOf("v:bigint")
		return e
	}())), nil)
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	// Deleted under a living checkpoint: written again.
	if err := vfs.RemoveAll(w.mem, "out"); err != nil {
		t.Fatal(err)
	}
	env.Committed = 2
	s = w.sink(env)
	if !s.NeedsRewrite() {
		t.Error("the sink does not see that its table is gone")
	}
	if last, ok, _ := s.LastBatch(t.Context()); last != 1 || !ok {
		t.Errorf("LastBatch is %d, %v", last, ok)
	}
	w.publish(s, w.batch(2, connector.Complete, "v:bigint\n5\n"))
	if s.NeedsRewrite() || w.read("out/part-000.csv") != "v\n5\n" {
		t.Error("the table was not written again")
	}
}

func TestSinkRefusals(t *testing.T) {
	t.Parallel()
	prepare := func(t *testing.T) (*world, connector.Env) {
		w := newWorld(t)
		env := w.env("path", "out/x", "format", "csv")
		s := w.sink(env)
		w.publish(s, w.batch(0, connector.Append, "v:bigint\n1\n"))
		w.publish(s, w.batch(1, connector.Append, "v:bigint\n2\n"))
		if err := s.Close(); err != nil {
			t.Fatal(err)
		}
		env.Committed = 2
		return w, env
	}
	for name, c := range map[string]struct {
		change func(t *testing.T, w *world, env *connector.Env)
		says   []string
	}{
		"another query":      {func(_ *testing.T, _ *world, e *connector.Env) { e.QueryID, e.Committed = "q2", 0 }, []string{"out/x", "another query", "q1", "ckpt"}},
		"another mode":       {func(_ *testing.T, _ *world, e *connector.Env) { e.Mode = connector.Complete }, []string{"append", "complete"}},
		"manifest gone":      {func(t *testing.T, w *world, _ *connector.Env) { w.removeAll("out/x/.tidemill/manifest") }, []string{"manifest", "gone", "delete out/x"}},
		"entries gone":       {func(t *testing.T, w *world, _ *connector.Env) { w.removeAll("out/x/.tidemill/manifest/1") }, []string{"up to 0", "1 is committed"}},
		"old entry gone":     {func(t *testing.T, w *world, _ *connector.Env) { w.renumber("out/x/.tidemill/manifest/1", "3") }, []string{"batch 1 is missing"}},
		"output deleted":     {func(t *testing.T, w *world, _ *connector.Env) { w.removeAll("out/x") }, []string{"out/x", "2 committed batches is gone"}},
		"control dir gone":   {func(t *testing.T, w *world, _ *connector.Env) { w.removeAll("out/x/.tidemill") }, []string{"gone"}},
		"control, new query": {func(t *testing.T, w *world, e *connector.Env) { w.removeAll("out/x/.tidemill"); e.Committed = 0 }, []string{"part-", "delete out/x"}},
		"id gone":            {func(t *testing.T, w *world, _ *connector.Env) { w.removeAll("out/x/.tidemill/id") }, []string{"id is gone"}},
		"id damaged":         {func(t *testing.T, w *world, _ *connector.Env) { w.write("out/x/.tidemill/id", "{") }, []string{"damaged"}},
		"id newer": {func(t *testing.T, w *world, _ *connector.Env) {
			w.write("out/x/.tidemill/id", `{"tidemill":9,"query":"q1"}`)
		}, []string{"newer"}},
		"old checkpoint": {func(_ *testing.T, _ *world, e *connector.Env) {
			e.Committed = 0
			e.Committed = -1 + 1
			e.QueryID = "q0"
		}, []string{"another query"}},
		"checkpoint older": {func(t *testing.T, w *world, e *connector.Env) {
			s := w.sink(*e)
			w.publish(s, w.batch(2, connector.Append, "v:bigint\n3\n"))
			if err := s.Close(); err != nil {
				t.Fatal(err)
			}
			e.Committed = 1
		}, []string{"checkpoint is older"}},
		"a file":          {func(t *testing.T, w *world, e *connector.Env) { w.write("f", ""); e.Options["path"] = "f" }, []string{"a file, not a directory"}},
		"locked":          {func(t *testing.T, w *world, e *connector.Env) { w.sink(*e) }, []string{"another query is writing it"}},
		"pending damaged": {func(t *testing.T, w *world, e *connector.Env) { w.write("out/x/.tidemill/pending/2", "x") }, []string{"cannot be finished"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w, env := prepare(t)
			c.change(t, w, &env)
			s, err := OpenSink(t.Context(), testFormats, env)
			if err == nil {
				_, err = s.Recover(t.Context())
				_ = s.Close()
			}
			wantError(t, err, c.says...)
			var refused *connector.RefusedError
			if !errors.As(err, &refused) {
				t.Errorf("%v is no RefusedError", err)
			}
		})
	}
}

func (w *world) removeAll(name string) {
	w.t.Helper()
	if err := vfs.RemoveAll(w.mem, name); err != nil {
		w.t.Fatal(err)
	}
}

// renumber gives a manifest entry another number.
func (w *world) renumber(name, to string) {
	if err := w.mem.Rename(name, path.Join(path.Dir(name), to)); err != nil {
		w.t.Fatal(err)
	}
}

func TestSinkOptions(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	for _, c := range []struct {
		mode    connector.OutputMode
		options []string
		says    []string
	}{
		{connector.Append, []string{"format", "csv"}, []string{"path", "missing"}},
		{connector.Append, []string{"path", "o", "format", "cvs"}, []string{"no such format", "did you mean csv"}},
		{connector.Append, []string{"path", "o", "format", "csv", "partition_bye", "v"}, []string{"did you mean partition_by"}},
		{connector.Append, []string{"path", "o", "format", "csv", "special", "v"}, []string{"special", "no such option"}},
		{connector.Append, []string{"path", "o", "format", "csv", "partition_by", "vv"}, []string{"no column vv", "did you mean v"}},
		{connector.Append, []string{"path", "o", "format", "csv", "partition_by", "v,w"}, []string{"no column is left"}},
		{connector.Append, []string{"path", "o", "format", "csv", "target_file_size", "many"}, []string{"64MB"}},
		{connector.Append, []string{"path", "o/*", "format", "csv"}, []string{"not a pattern"}},
		{connector.Update, []string{"path", "o", "format", "csv"}, []string{"cannot be updated row by row", "complete", "append"}},
		{connector.Complete, []string{"path", "o", "format", "csv", "partition_by", "v"}, []string{"partition_by"}},
	} {
		env := w.env(c.options...)
		env.Mode, env.Columns = c.mode, schemaOf("v:bigint", "w:bigint")
		_, err := OpenSink(t.Context(), testFormats, env)
		wantError(t, err, c.says...)
		var option *connector.OptionError
		if !errors.As(err, &option) {
			t.Errorf("%v is no OptionError", err)
		}
	}
	if names := tree(t, w.mem, "."); len(names) != 0 {
		t.Errorf("refused options left %q", names)
	}
}

// Nothing of a batch that cannot be written is left, and the next try is whole.
func TestSinkWriteErrors(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	s := w.sink(w.env("path", "out", "format", "csv", "partition_by", "k"))
	_, err := s.Stage(t.Context(), w.batch(0, connector.Append, "k:varchar  v:varchar\na  fine\nb  unwritable\n"))
	if !errors.Is(err, errPlainWriter) {
		t.Errorf("Stage returned %v", err)
	}
	_, err = s.Stage(t.Context(), w.batch(0, connector.Append, "k:varchar  v:varchar\n"+strings.Repeat("x", 300)+"  fine\n"))
	wantError(t, err, "column k", "too long")
	if names, _ := w.mem.ReadDir("out/.tidemill/staging"); len(names) != 0 || w.mem.OpenFiles() != 0 {
		t.Errorf("left over: %v, %d files open", names, w.mem.OpenFiles())
	}
	w.publish(s, w.batch(0, connector.Append, "k:varchar  v:varchar\na  fine\n"))
	if got := len(published(t, w.mem, "out")); got != 1 {
		t.Errorf("%d files", got)
	}
}

func TestManifestCompaction(t *testing.T) {
	t.Parallel()
	for _, mode := range []connector.OutputMode{connector.Append, connector.Complete} {
		w := newWorld(t)
		env := w.env("path", "out", "format", "csv")
		env.Mode = mode
		s := w.sink(env)
		s.least = 4
		for i := range int64(40) {
			w.publish(s, w.batch(i, mode, fmt.Sprintf("v:bigint\n%d\n", i), "bad", fmt.Sprintf("v:bigint\n%d\n", i)))
		}
		names, err := listManifest(w.mem, "out/.tidemill/manifest")
		if err != nil || names.last() != 39 || len(names.stale) != 0 {
			t.Fatalf("%s: %+v, %v", mode, names, err)
		}
		if len(names.entries) > 21 {
			t.Errorf("%s: %d entries are not compacted", mode, len(names.entries))
		}
		entries, err := readEntries(w.mem, "out/.tidemill/manifest")
		if err != nil {
			t.Fatal(err)
		}
		data, bad := 0, 0
		for _, e := range fold(entries) {
			for _, f := range e.Files {
				if f.Side == "" {
					data++
				} else {
					bad++
				}
			}
		}
		want := 40
		if mode == connector.Complete {
			want = 1
		}
		if len(entries) != 40 || data != want || bad != 40 {
			t.Errorf("%s: %d entries, %d files, %d bad", mode, len(entries), data, bad)
		}
		if err := s.Close(); err != nil {
			t.Fatal(err)
		}
		env.Committed = 40
		s = w.sink(env)
		if last, _, _ := s.LastBatch(t.Context()); last != 39 {
			t.Errorf("%s: reopened at %d", mode, last)
		}
		if n := len(w.rows(w.table(w.env("path", "out")))); n != want {
			t.Errorf("%s: %d rows", mode, n)
		}
	}
}

func TestManifestReplace(t *testing.T) {
	t.Parallel()
	file := func(p string) outFile { return outFile{Path: p, Size: 1, Rows: 1, Hash: "h"} }
	entries := []manifestEntry{
		{Kind: kindAdd, Batch: 0, Files: []outFile{file("a"), file("b")}},
		{Kind: kindReplace, Batch: 1, Files: []outFile{file("ab")}, Removed: []string{"a", "b"}},
		{Kind: kindAdd, Batch: 2, Files: []outFile{file("a")}},
	}
	var left []string
	for _, e := range fold(entries) {
		for _, f := range e.Files {
			left = append(left, f.Path)
		}
	}
	equal(t, "files", left, []string{"ab", "a"})
}

func TestReaderWarnsOfMissingManifest(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	s := w.sink(w.env("path", "out", "format", "csv"))
	w.publish(s, w.batch(0, connector.Append, "v:bigint\n1\n"))
	w.removeAll("out/.tidemill/manifest")
	table := w.table(w.env("path", "out"))
	for range 3 {
		equal(t, "rows", w.rows(table), []string{"1"})
	}
	if len(w.warnings) != 1 || !strings.Contains(w.warnings[0], "manifest is gone") {
		t.Errorf("warnings: %q", w.warnings)
	}
}

// The durable steps of one batch of one file.
func TestSinkTrace(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	trace := vfs.NewTrace(w.mem, ".")
	w.fs = trace
	s := w.sink(w.env("path", "out/x", "format", "csv"))
	equal(t, "opening", trace.Take(), []string{
		"mkdir out/x/.tidemill", "syncdir .", "syncdir out", "syncdir out/x", "lock out/x/.tidemill/lock",
		"mkdir out/x/.tidemill/staging", "mkdir out/x/.tidemill/pending", "mkdir out/x/.tidemill/manifest", "syncdir out/x/.tidemill",
		"create out/x/.tidemill/.id.tmp", "write out/x/.tidemill/.id.tmp 99", "sync out/x/.tidemill/.id.tmp",
		"rename out/x/.tidemill/.id.tmp out/x/.tidemill/id", "syncdir out/x/.tidemill",
	})
	w.publish(s, w.batch(0, connector.Append, "v:bigint\n1\n"))
	got := trace.Take()
	for i, line := range got {
		if strings.HasPrefix(line, "write ") {
			got[i] = line[:strings.LastIndexByte(line, ' ')]
		}
	}
	// The staged file, its name and the decision's draft are synced at the same time.
	slices.Sort(got[4:7])
	equal(t, "a batch", got, []string{
		"create out/x/.tidemill/staging/0-000.staged",
		"write out/x/.tidemill/staging/0-000.staged",
		"create out/x/.tidemill/pending/.0.tmp",
		"write out/x/.tidemill/pending/.0.tmp",
		"sync out/x/.tidemill/pending/.0.tmp",
		"sync out/x/.tidemill/staging/0-000.staged",
		"syncdir out/x/.tidemill/staging",
		"rename out/x/.tidemill/pending/.0.tmp out/x/.tidemill/pending/0", // the decision
		"syncdir out/x/.tidemill/pending",
		"rename out/x/.tidemill/staging/0-000.staged out/x/part-00000000000000000000-000.csv",
		"syncdir out/x",
		"rename out/x/.tidemill/pending/0 out/x/.tidemill/manifest/0",
		"syncdir out/x/.tidemill/manifest",
	})
	w.publish(s, w.batch(1, connector.Append, "v:bigint\n"))
	if got := trace.Take(); len(got) != 5 {
		t.Errorf("a batch without rows takes %q", got)
	}
}

// crashScenario writes four batches and reopens in between.
type crashScenario struct {
	mode    connector.OutputMode
	options []string
	batches []string
}

var crashScenarios = map[string]crashScenario{
	"append": {connector.Append, nil, []string{"k:varchar  v:bigint\na  1\n", "k:varchar  v:bigint\n", "k:varchar  v:bigint\na  2\nb  3\n", "k:varchar  v:bigint\nb  4\n"}},
	"partitioned": {connector.Append, []string{"partition_by", "k"}, []string{
		"k:varchar  v:bigint\na  1\nb  2\n", "k:varchar  v:bigint\nb  3\nc  4\n", "k:varchar  v:bigint\nd  5\n"}},
	"complete": {connector.Complete, nil, []string{"k:varchar  v:bigint\na  1\n", "k:varchar  v:bigint\n", "k:varchar  v:bigint\na  7\n"}},
}

// run writes what is missing, as the loop of a query does. *committed is what the
// checkpoint knows.
func (c *crashScenario) run(t *testing.T, w *world, committed *int64) error {
	env := w.env(append([]string{"path", "out/x", "format", "csv"}, c.options...)...)
	env.Mode, env.Committed, env.Mem = c.mode, *committed, memory.DefaultAllocator
	s, err := OpenSink(t.Context(), testFormats, env)
	if err != nil {
		return err
	}
	defer s.Close()
	s.least = 1
	st, err := s.Recover(t.Context())
	if err != nil {
		return err
	}
	if st != nil {
		if err := st.Publish(t.Context()); err != nil {
			return err
		}
	}
	last, _, err := s.LastBatch(t.Context())
	if err != nil {
		return err
	}
	if last+1 < *committed {
		t.Errorf("batch %d was committed and is gone", *committed-1)
	}
	for id := last + 1; id < int64(len(c.batches)); id++ {
		*committed = id
		b := w.plainBatch(id, c.mode, c.batches[id], fmt.Sprintf("v:bigint\n%d\n", id))
		st, err := s.Stage(t.Context(), b)
		if err != nil {
			return err
		}
		if err := st.Publish(t.Context()); err != nil {
			return err
		}
		*committed = id + 1
	}
	return nil
}

// contents are the data files and what is in them.
func contents(t testing.TB, m *vfs.Mem) map[string]string {
	out := map[string]string{}
	for _, dir := range []string{"out"} {
		if _, err := m.Stat(dir); err != nil {
			continue
		}
		for _, name := range published(t, m, dir) {
			data, err := vfs.ReadFile(m, name)
			if err != nil {
				t.Fatal(err)
			}
			out[name] = string(data)
		}
	}
	return out
}

// watchFS looks at the output after every call.
type watchFS struct {
	vfs.FS
	look func()
}

func (f watchFS) after(err error) error { f.look(); return err }

func (f watchFS) Create(name string) (vfs.File, error) {
	file, err := f.FS.Create(name)
	f.look()
	if err != nil {
		return nil, err
	}
	return watchFile{file, f.look}, nil
}
func (f watchFS) Rename(a, b string) error   { return f.after(f.FS.Rename(a, b)) }
func (f watchFS) Remove(name string) error   { return f.after(f.FS.Remove(name)) }
func (f watchFS) MkdirAll(name string) error { return f.after(f.FS.MkdirAll(name)) }
func (f watchFS) Lock(name string) (io.Closer, error) {
	c, err := f.FS.Lock(name)
	f.look()
	return c, err
}

type watchFile struct {
	vfs.File
	look func()
}

func (f watchFile) Write(p []byte) (int, error) {
	n, err := f.File.Write(p)
	f.look()
	return n, err
}

// At every call, whatever has a data extension is a whole file of a decided batch.
func TestGlobsAtEveryCall(t *testing.T) {
	t.Parallel()
	for name, c := range crashScenarios {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			_, allowed := c.allowed(t)
			w := newWorld(t)
			looked := 0
			w.fs = watchFS{w.mem, func() {
				looked++
				for file, content := range contents(t, w.mem) {
					if !slices.Contains(allowed[file], content) {
						t.Fatalf("a glob sees %s with %q", file, content)
					}
				}
			}}
			committed := int64(0)
			if err := c.run(t, w, &committed); err != nil {
				t.Fatal(err)
			}
			if looked < 30 {
				t.Errorf("looked %d times only", looked)
			}
		})
	}
}

// allowed runs the scenario without faults: the final files, and every content a file
// ever had.
func (c *crashScenario) allowed(t *testing.T) (final map[string]string, allowed map[string][]string) {
	allowed = map[string][]string{}
	for n := range c.batches {
		part := *c
		part.batches = c.batches[:n+1]
		w := newWorld(t)
		committed := int64(0)
		if err := part.run(t, w, &committed); err != nil {
			t.Fatal(err)
		}
		final = contents(t, w.mem)
		for name, content := range final {
			allowed[name] = append(allowed[name], content)
		}
	}
	return final, allowed
}

// A crash, an error or a short write at every call that may change the disk.
func TestSinkCrashEverywhere(t *testing.T) {
	t.Parallel()
	for name, c := range crashScenarios {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			final, allowed := c.allowed(t)
			w := newWorld(t)
			counting := faultfs.New(w.mem)
			w.fs = counting
			committed := int64(0)
			if err := c.run(t, w, &committed); err != nil {
				t.Fatal(err)
			}
			calls, _ := counting.Calls()
			for k := range calls {
				for _, action := range []faultfs.Action{faultfs.Error, faultfs.Short, faultfs.Crash} {
					c.faultAt(t, k, action, final, allowed)
				}
			}
		})
	}
}

func (c *crashScenario) faultAt(t *testing.T, k int, action faultfs.Action, final map[string]string, allowed map[string][]string) {
	t.Helper()
	rule := faultfs.Rule{Action: action, When: faultfs.Nth(k, faultfs.Mutating())}
	if action == faultfs.Error {
		rule.Err = "EIO"
	}
	w := newWorld(t)
	w.fs = faultfs.New(w.mem, rule)
	committed := int64(0)
	err := c.run(t, w, &committed)
	if err != nil && !errors.Is(err, faultfs.ErrInjected) && !errors.Is(err, faultfs.ErrCrashed) {
		t.Errorf("%s: error %v does not say what was injected", rule, err)
	}
	if n := w.mem.OpenFiles(); action != faultfs.Crash && n != 0 {
		t.Errorf("%s: %d files are left open", rule, n)
	}
	type disk struct {
		what string
		mem  *vfs.Mem
	}
	disks := []disk{{"same disk", w.mem.Clone()}}
	if action == faultfs.Crash {
		disks = nil
		for _, keep := range []struct {
			seed uint64
			keep float64
		}{{1, 0}, {1, .5}, {2, .5}, {3, .5}, {1, 1}} {
			disks = append(disks, disk{fmt.Sprintf("keep %v, seed %d", keep.keep, keep.seed), w.mem.Crash(keep.seed, keep.keep)})
		}
	}
	for _, d := range disks {
		after := *w
		after.fs, after.mem = d.mem, d.mem
		// A reader right after the crash sees whole files only.
		for file, content := range contents(t, d.mem) {
			if !slices.Contains(allowed[file], content) {
				t.Errorf("%s, %s: right after, a glob sees %s with %q", rule, d.what, file, content)
			}
		}
		known := committed
		if err := c.run(t, &after, &known); err != nil {
			t.Errorf("%s, %s: recovery: %v", rule, d.what, err)
			continue
		}
		got := contents(t, d.mem)
		if fmt.Sprint(got) != fmt.Sprint(final) {
			t.Errorf("%s, %s: the output is %q, not %q", rule, d.what, got, final)
		}
		for _, f := range tree(t, d.mem, "out") {
			if strings.HasSuffix(f, ".staged") || vfs.IsTemp(f) || path.Base(path.Dir(f)) == pendingName {
				t.Errorf("%s, %s: %s is left over", rule, d.what, f)
			}
		}
	}
}

func TestManifestCorruption(t *testing.T) {
	t.Parallel()
	data, err := encodeEntry(manifestEntry{Kind: kindAdd, Batch: 3, Files: []outFile{{Path: "a", Size: 1, Rows: 2, Hash: "x"}}})
	if err != nil {
		t.Fatal(err)
	}
	if entries, _, err := decodeEntries(data); err != nil || len(entries) != 1 || entries[0].Files[0].Rows != 2 {
		t.Fatalf("%+v, %v", entries, err)
	}
	for i := range data {
		for _, flip := range []byte{1, 0x20, 0x80} {
			bad := slices.Clone(data)
			bad[i] ^= flip
			if _, _, err := decodeEntries(bad); !errors.Is(err, errCorrupt) {
				t.Errorf("byte %d flipped by %#x: %v", i, flip, err)
			}
		}
		if _, _, err := decodeEntries(data[:i]); !errors.Is(err, errCorrupt) {
			t.Errorf("cut at %d: %v", i, err)
		}
	}
}

func FuzzManifest(f *testing.F) {
	data, _ := encodeEntry(manifestEntry{Kind: kindAdd, Batch: 3, Files: []outFile{{Path: "a"}}})
	f.Add(data)
	f.Add([]byte("{}\n"))
	f.Fuzz(func(t *testing.T, data []byte) {
		entries, _, err := decodeEntries(data)
		if err == nil && len(entries) > len(data) {
			t.Error("more entries than bytes")
		}
	})
}

func TestDecisionIsNotUndone(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	f := faultfs.New(w.mem)
	w.fs = f
	s := w.sink(w.env("path", "out", "format", "csv"))
	st, err := s.Stage(t.Context(), w.batch(0, connector.Append, "v:bigint\n1\n"))
	if err != nil {
		t.Fatal(err)
	}
	f.Arm(faultfs.MustParse(`(error EIO (and rename (path "part-00000000000000000000-000.csv")))`))
	if err := st.Publish(t.Context()); err == nil {
		t.Fatal("no error")
	}
	if err := st.Discard(); err != nil {
		t.Fatal(err)
	}
	f.Arm()
	if err := st.Publish(t.Context()); err != nil {
		t.Fatalf("repeated: %v", err)
	}
	if !w.exists("out/part-00000000000000000000-000.csv") {
		t.Error("the batch was lost")
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := s.Stage(ctx, w.batch(1, connector.Append, "v:bigint\n1\n")); !errors.Is(err, context.Canceled) {
		t.Errorf("Stage with a cancelled context: %v", err)
	}
	if _, err := w.mem.Stat("out/.tidemill/pending/1"); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("a cancelled batch was decided")
	}
}
