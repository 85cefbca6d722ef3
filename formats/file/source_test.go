package file

import (
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"math/rand/v2"
	"path"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/apache/arrow-go/v18/arrow"

	"github.com/tidemill/tidemill/columnar"
	"github.com/tidemill/tidemill/columnar/columnartest"
	"github.com/tidemill/tidemill/internal/vfs"
	"github.com/tidemill/tidemill/logical/connector"
	"github.com/tidemill/tidemill/logical/connector/connectortest"
)

// stream drives a Source as a query does: one batch after another.
type stream struct {
	*world
	log     *connectortest.Log
	options []string
	columns *arrow.Schema
	pinned  map[string]string
	source  *Source
	at      connector.Offset
}

func (w *world) stream(options ...string) *stream {
	w.t.Helper()
	s := &stream{world: w, log: connectortest.NewLog(), options: append([]string{"path", "in"}, options...), columns: schemaOf("v:bigint")}
	s.open()
	return s
}

// open opens the source, as a new process does.
func (s *stream) open() {
	s.t.Helper()
	env := s.env(append([]string{"format", "csv"}, s.options...)...)
	env.Log, env.Columns, env.Pinned = s.log, s.columns, s.pinned
	source, err := OpenSource(s.t.Context(), testFormats, env)
	if err != nil {
		s.t.Fatalf("OpenSource: %v", err)
	}
	s.source = source
}

// next runs a batch and returns its rows; nil if there is none.
func (s *stream) next(limit connector.Limit) []string {
	s.t.Helper()
	rows, err := s.try(limit)
	if err != nil {
		s.t.Fatalf("batch: %v", err)
	}
	return rows
}

func (s *stream) try(limit connector.Limit) ([]string, error) {
	end, err := s.source.LatestOffset(s.t.Context(), s.at, limit)
	if err != nil || end == s.at {
		return nil, err
	}
	rows, err := s.between(s.at, end)
	if err != nil {
		return nil, err
	}
	p, err := parseOffset(end)
	if err != nil {
		return nil, err
	}
	s.log.Name(p.Batch)
	before := s.at
	s.at = end
	return rows, s.source.Commit(s.t.Context(), before)
}

func (s *stream) between(start, end connector.Offset) ([]string, error) {
	mem := columnartest.Mem(s.t)
	us, err := s.source.Units(s.t.Context(), start, end, connector.ScanRequest{Mem: mem})
	if err != nil {
		return nil, err
	}
	return connectortest.Rows(s.t, mem, us), nil
}

// expect runs a batch and compares.
// hashes are those of what came after an offset.
func (s *stream) hashes(start connector.Offset) []connector.FileHash {
	s.t.Helper()
	var out []connector.FileHash
	err := s.source.EachHashed(s.t.Context(), start, s.at, func(f connector.FileHash) error {
		out = append(out, f)
		return nil
	})
	if err != nil {
		s.t.Fatal(err)
	}
	return out
}

func (s *stream) expect(want ...string) {
	s.t.Helper()
	equal(s.t, "batch", s.next(connector.Limit{}), want)
}

func TestFileNames(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	names := []string{
		"a b.csv", "a%20b.csv", "a+b.csv", "100%.csv", "x[1].csv", "x1.csv", "star*.csv", "q?.csv", "c:d.csv", "k=v.csv",
		"#h.csv", "\u00fc.csv", "u\u0308.csv", "中文.csv", "o'b.csv", "semi;x.csv", "{b}.csv", "UP.CSV",
		"line\nbreak.csv", "tab\t.csv", "quote\".csv", "back\\slash.csv", "bad\xff\xfe.csv", " .csv",
	}
	sum, want := 0, 0
	for i, n := range names {
		w.write("in/"+n, fmt.Sprintf("v\n%d\n", 1<<i))
		want += 1 << i
	}
	s := w.stream("max_files_per_trigger", "5")
	for batch := 0; ; batch++ {
		if batch == 2 {
			s.open()
		}
		rows := s.next(s.source.Limit())
		if rows == nil {
			break
		}
		for _, r := range rows {
			n := 0
			if _, err := fmt.Sscan(r, &n); err != nil {
				t.Fatal(err)
			}
			sum += n
		}
	}
	if sum != want {
		t.Errorf("the sum is %b, not %b", sum, want)
	}
	s.open()
	s.expect()
	// A path that exists by its very name is no pattern.
	equal(t, "x[1].csv", w.rows(w.table(w.env("path", "in/x[1].csv"))), []string{"16"})
}

func TestBatchLimits(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	for i := range 5 {
		w.writeAt(i, fmt.Sprintf("in/%d.csv", 9-i), fmt.Sprintf("v\n%d\n", i)) // 4 bytes each
	}
	for _, c := range []struct {
		options []string
		want    string
	}{
		{nil, "[0 1 2 3 4]"},
		{[]string{"max_files_per_trigger", "2"}, "[0 1] [2 3] [4]"},
		{[]string{"max_files_per_trigger", "2", "latest_first", "true"}, "[4 3] [2 1] [0]"},
		{[]string{"max_bytes_per_trigger", "1"}, "[0] [1] [2] [3] [4]"},
		{[]string{"max_bytes_per_trigger", "8"}, "[0 1] [2 3] [4]"},
		{[]string{"max_bytes_per_trigger", "11"}, "[0 1] [2 3] [4]"},
		{[]string{"max_bytes_per_trigger", "1KB"}, "[0 1 2 3 4]"},
	} {
		s := w.stream(c.options...)
		var got []string
		for rows := s.next(s.source.Limit()); rows != nil; rows = s.next(s.source.Limit()) {
			got = append(got, fmt.Sprint(rows))
		}
		if g := strings.Join(got, " "); g != c.want {
			t.Errorf("%v: %s, not %s", c.options, g, c.want)
		}
	}
}

func TestChangedFiles(t *testing.T) {
	t.Parallel()
	for _, how := range []string{"at the next start", "by a sweep"} {
		for _, policy := range []string{"error", "ignore", "reread"} {
			t.Run(policy+" "+how, func(t *testing.T) {
				t.Parallel()
				w := newWorld(t)
				w.writeAt(1, "in/a.csv", "v\n1\n")
				s := w.stream("changed_files", policy)
				s.expect("1")
				w.writeAt(2, "in/a.csv", "v\n1\n2\n")
				s.expect() // not seen at once: its name is known
				if how == "by a sweep" {
					w.now = w.now.Add(6 * time.Minute)
				} else {
					s.open()
				}
				rows, err := s.try(connector.Limit{})
				switch policy {
				case "error":
					wantError(t, err, "in/a.csv", "rewritten", "changed_files")
					var changed *connector.FileChangedError
					if !errors.As(err, &changed) || !changed.Read {
						t.Errorf("got %v", err)
					}
				case "ignore":
					equal(t, "rows", rows, nil)
				case "reread":
					equal(t, "rows", rows, []string{"1", "2"})
					s.open()
					s.expect()
				}
				if policy != "error" && err != nil {
					t.Error(err)
				}
			})
		}
	}
}

// A file that was read may go, and may come back as it was.
func TestArchivedByUser(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.writeAt(1, "in/a.csv", "v\n1\n")
	s := w.stream()
	s.expect("1")
	w.removeAll("in/a.csv")
	s.open()
	s.expect()
	w.writeAt(1, "in/a.csv", "v\n1\n")
	s.open()
	s.expect()
	w.writeAt(1, "in/renamed.csv", "v\n1\n")
	s.expect("1") // another path is another file
}

func TestSameContent(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.writeAt(1, "in/a.csv", "v\n1\n")
	w.writeAt(2, "in/b.csv", "v\n1\n")
	w.writeAt(3, "in/c.csv", "v\n2\n")
	s := w.stream("same_content", "skip")
	s.expect("1", "2")
	w.writeAt(4, "in/d.csv", "v\n2\n")
	w.removeAll("in/a.csv")
	w.writeAt(5, "in/e.csv", "v\n1\n")
	if rows := s.next(connector.Limit{}); len(rows) != 0 {
		t.Errorf("rows %q", rows)
	}
	s.open()
	w.writeAt(6, "in/f.csv", "v\n2\n")
	w.writeAt(7, "in/g.csv", "v\n3\n")
	s.expect("3")
}

func TestCleanSource(t *testing.T) {
	t.Parallel()
	for _, policy := range []string{"delete", "archive"} {
		w := newWorld(t)
		options := []string{"clean_source", policy}
		if policy == "archive" {
			options = append(options, "archive_dir", "in/_old") // inside of the source, under a hidden name
		}
		s := w.stream(options...)
		w.writeAt(1, "in/d/a.csv", "v\n1\n")
		s.expect("1")
		if !w.exists("in/d/a.csv") {
			t.Errorf("%s: the newest batch was cleaned", policy)
		}
		w.writeAt(2, "in/b.csv", "v\n2\n")
		s.expect("2")
		if w.exists("in/d/a.csv") || !w.exists("in/b.csv") {
			t.Errorf("%s: batch 0 is not cleaned, or batch 1 is", policy)
		}
		// A cleaned path is free for a new file, in this process and in the next.
		w.writeAt(3, "in/d/a.csv", "v\n33\n")
		s.expect("33")
		s.open()
		s.expect()
		w.writeAt(4, "in/b.csv", "v\n44\n") // batch 1 was cleaned meanwhile
		s.open()
		s.expect("44")
		w.writeAt(5, "in/z.csv", "v\n5\n")
		s.expect("5")
		if policy == "archive" {
			if got := w.read("in/_old/d/a.csv") + w.read("in/_old/d/a.1.csv"); got != "v\n1\nv\n33\n" {
				t.Errorf("archived %q", got)
			}
		}
	}
	w := newWorld(t)
	w.write("in/.tidemill/id", `{"tidemill":1,"query":"q","mode":"append"}`)
	env := w.env("path", "in", "format", "csv", "clean_source", "delete")
	env.Log, env.Columns = connectortest.NewLog(), schemaOf("v:bigint")
	_, err := OpenSource(t.Context(), testFormats, env)
	wantError(t, err, "clean_source", "output of a query")
}

func TestFileAges(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.now = epoch.Add(100 * time.Second)
	w.writeAt(10, "in/old.csv", "v\n1\n")
	w.writeAt(95, "in/young.csv", "v\n2\n")
	s := w.stream("min_file_age", "10 seconds")
	s.expect("1")
	s.expect()
	w.writeAt(99, "in/young.csv", "v\n22\n") // still being written
	w.now = epoch.Add(106 * time.Second)
	s.expect()
	w.now = epoch.Add(109 * time.Second)
	s.expect("22")
	s.open()
	s.expect()

	w = newWorld(t)
	w.writeAt(0, "in/a.csv", "v\n1\n")
	w.writeAt(50, "in/b.csv", "v\n2\n")
	w.writeAt(110, "in/c.csv", "v\n3\n")
	s = w.stream("max_file_age", "1 minute")
	s.expect("2", "3")
	s.expect()
	w.writeAt(111, "in/d.csv", "v\n4\n")
	s.expect("4")
	if s.source.Metrics()["numFilesTooOld"] != "1" || len(w.warnings) != 1 || !strings.Contains(w.warnings[0], "passed over: 1, in/a.csv first") {
		t.Errorf("too old: %v, %q", s.source.Metrics(), w.warnings)
	}
}

func TestDoneMarker(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.write("in/a/1.csv", "v\n1\n")
	s := w.stream("done_marker", "_SUCCESS")
	s.expect()
	w.write("in/a/_SUCCESS", "")
	s.expect("1")
	s = w.stream("done_marker", "*.done")
	w.write("in/a/2.csv", "v\n2\n")
	w.write("in/a/1.csv.done", "")
	s.expect("1")
	w.write("in/a/2.csv.done", "")
	s.expect("2")
}

func TestStartingFiles(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.writeAt(1, "in/a.csv", "v\n1\n")
	s := w.stream("starting_files", "new")
	s.expect()
	if target, err := s.source.Target(t.Context()); err != nil {
		t.Errorf("Target: %q, %v", target, err)
	}
	s.open()
	s.expect()
	w.writeAt(2, "in/b.csv", "v\n2\n")
	end, err := s.source.LatestOffset(t.Context(), "", connector.Limit{})
	if err != nil {
		t.Fatal(err)
	}
	if err := s.source.Withdraw(t.Context(), "", end); err != nil {
		t.Fatal(err)
	}
	s.expect("2")
	s.open()
	s.expect()
}

func TestMissingFolder(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	s := w.stream()
	s.expect()
	w.write("in/a.csv", "v\n1\n")
	s.expect("1")
	w.removeAll("in")
	s.expect()
	w.write("in/b.csv", "v\n2\n")
	s.expect("2")

	env := w.env("path", "none")
	_, err := Discover(t.Context(), testFormats, env)
	var none *connector.NoFilesError
	if !errors.As(err, &none) {
		t.Errorf("Discover of nothing: %v", err)
	}
	w.write("empty/a.csv", "")
	env = w.env("path", "empty")
	if _, err = Discover(t.Context(), testFormats, env); !errors.As(err, &none) {
		t.Errorf("Discover of an empty file: %v", err)
	}
}

// closedFS refuses to look at a name and at what is below it.
type closedFS struct {
	vfs.FS
	closed string
}

func (c *closedFS) check(op, name string) error {
	if c.closed != "" && strings.HasPrefix(name+"/", c.closed+"/") {
		return &fs.PathError{Op: op, Path: name, Err: syscall.EACCES}
	}
	return nil
}

func (c *closedFS) ReadDir(dir string) ([]fs.DirEntry, error) {
	if err := c.check("open", dir); err != nil {
		return nil, err
	}
	return c.FS.ReadDir(dir)
}

func (c *closedFS) Stat(name string) (fs.FileInfo, error) {
	// As of a folder that may be listed and not entered.
	if err := c.check("stat", path.Dir(name)); err != nil {
		return nil, err
	}
	return c.FS.Stat(name)
}

// What may not be looked at is waited for, with a warning, while the rest is read; who
// wants all that is there gets an error instead.
func TestUnreadable(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	closed := &closedFS{FS: w.mem}
	w.fs = closed
	for _, i := range []int{0, 1, 3} {
		w.writeAt(i, fmt.Sprintf("in/%d/a.csv", i), fmt.Sprintf("v\n%d\n", i))
	}
	s := w.stream("rescan_every", "1 minute")
	w.writeAt(2, "in/2/a.csv", "v\n2\n") // else it was found when the stream was opened
	closed.closed = "in/2"
	s.expect("0", "1", "3")
	s.expect()
	if len(w.warnings) != 1 || !strings.Contains(w.warnings[0], "in/2 cannot be looked at and is waited for") {
		t.Errorf("warnings: %q", w.warnings)
	}
	closed.closed = ""
	s.expect("2")
	// While a file of it waits for its batch, and while a sweep looks for rewritten ones.
	w.writeAt(5, "in/2/b.csv", "v\n5\n")
	w.writeAt(6, "in/3/b.csv", "v\n6\n")
	s.expectLimited(1, "5")
	closed.closed = "in/3"
	s.expectLimited(1)
	w.now = w.now.Add(time.Hour)
	s.expectLimited(1)
	w.writeAt(7, "in/1/b.csv", "v\n7\n")
	s.expectLimited(1, "7")
	closed.closed = "in"
	s.expect()
	closed.closed = ""
	s.expect("6")

	s.open()
	closed.closed = "in/3"
	if _, err := s.source.Target(t.Context()); !errors.Is(err, fs.ErrPermission) {
		t.Errorf("Target gives %v", err)
	}
	_, err := s.try(connector.Limit{})
	wantError(t, err, "in/3")
	if _, err := OpenTable(t.Context(), testFormats, w.env("path", "in")); !errors.Is(err, fs.ErrPermission) {
		t.Errorf("a table gives %v", err)
	}
}

// expectLimited is expect with a limit of files.
func (s *stream) expectLimited(files int64, want ...string) {
	s.t.Helper()
	equal(s.t, "batch", s.next(connector.Limit{Files: files}), want)
}

// An unnamed entry whose file changed meanwhile is planned anew.
func TestAdoptChanged(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.writeAt(1, "in/a.csv", "v\n1\n")
	s := w.stream()
	if _, err := s.source.LatestOffset(t.Context(), "", connector.Limit{}); err != nil {
		t.Fatal(err)
	}
	w.writeAt(2, "in/a.csv", "v\n11\n")
	w.writeAt(3, "in/b.csv", "v\n2\n")
	s.open()
	s.expect("11", "2")
	// One that did not change is the first part of a batch over everything.
	w.writeAt(4, "in/c.csv", "v\n3\n")
	if _, err := s.source.LatestOffset(t.Context(), s.at, connector.Limit{}); err != nil {
		t.Fatal(err)
	}
	w.writeAt(5, "in/d.csv", "v\n4\n")
	s.open()
	s.expect("3", "4")
	w.writeAt(6, "in/e.csv", "v\n5\n")
	if _, err := s.source.LatestOffset(t.Context(), s.at, connector.Limit{}); err != nil {
		t.Fatal(err)
	}
	w.writeAt(7, "in/f.csv", "v\n6\n")
	equal(t, "under a limit", s.next(connector.Limit{Files: 1}), []string{"5"})
	s.expect("6")
}

// A batch whose file changed or vanished before it was visible.
func TestWithdraw(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.writeAt(1, "in/a.csv", "v\n1\n")
	w.writeAt(2, "in/b.csv", "v\n2\n")
	s := w.stream()
	end, err := s.source.LatestOffset(t.Context(), "", connector.Limit{})
	if err != nil {
		t.Fatal(err)
	}
	logged, err := s.source.Files(t.Context(), "", end)
	if err != nil || len(logged) != 2 {
		t.Fatalf("%v, %v", logged, err)
	}
	w.removeAll("in/a.csv")
	w.writeAt(3, "in/b.csv", "v\n22\n")
	changed, err := s.source.Changed(t.Context(), logged)
	if err != nil || len(changed) != 2 {
		t.Fatalf("%v, %v", changed, err)
	}
	if _, err := s.between("", end); err == nil {
		t.Error("a batch of other files than logged was read")
	}
	if err := s.source.Withdraw(t.Context(), "", end); err != nil {
		t.Fatal(err)
	}
	s.expect("22")
	w.writeAt(4, "in/a.csv", "v\n1\n") // what vanished before it was read is new
	s.expect("1")
}

// What was there at the start of an available-now run stays part of it when its batch is
// withdrawn: the file that changed, and those that waited behind a limit.
func TestWithdrawKeepsTheTarget(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.writeAt(1, "in/a.csv", "v\n1\n")
	w.writeAt(2, "in/b.csv", "v\n2\n")
	s := w.stream()
	target, err := s.source.Target(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	limit := connector.Limit{Files: 1, Until: target}
	end, err := s.source.LatestOffset(t.Context(), "", limit)
	if err != nil {
		t.Fatal(err)
	}
	w.writeAt(3, "in/a.csv", "v\n11\n")
	w.writeAt(4, "in/new.csv", "v\n9\n")
	if err := s.source.Withdraw(t.Context(), "", end); err != nil {
		t.Fatal(err)
	}
	equal(t, "first", s.next(limit), []string{"2"})
	equal(t, "second", s.next(limit), []string{"11"})
	equal(t, "third", s.next(limit), nil)
	s.expect("9")
}

// Text that does not end in a line end is looked at again when it has settled.
func TestHalfALine(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.writeAt(3600, "in/a.csv", "v\n1\n2") // modified now
	w.writeAt(1, "in/old.csv", "v\n0")     // will not change
	w.writeAt(3600, "in/whole.csv", "v\n7\n")
	s := w.stream()
	end, err := s.source.LatestOffset(t.Context(), "", connector.Limit{})
	if err != nil {
		t.Fatal(err)
	}
	logged, err := s.source.Files(t.Context(), "", end)
	if err != nil {
		t.Fatal(err)
	}
	w.onSleep = func() { w.writeAt(3601, "in/a.csv", "v\n1\n23\n") }
	changed, err := s.source.Changed(t.Context(), logged)
	if err != nil || len(changed) != 1 || changed[0].Path != "in/a.csv" {
		t.Errorf("%v, %v", changed, err)
	}
	if w.slept != settleTime {
		t.Errorf("slept %s", w.slept)
	}
	if err := s.source.Withdraw(t.Context(), "", end); err != nil {
		t.Fatal(err)
	}
	s.expect("0", "7", "1", "23")
}

func TestInferenceIsPinned(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.writeAt(1, "in/day=2024-01-01/a.csv", "v,s\n1,x\n")
	env := w.env("path", "in")
	found, err := Discover(t.Context(), testFormats, env)
	if err != nil {
		t.Fatal(err)
	}
	want := "v BIGINT, s VARCHAR, day DATE"
	if got := columnar.SchemaString(found.Schema); got != want {
		t.Errorf("found %s", got)
	}
	w.removeAll("in")
	w.writeAt(2, "in/day=x/a.csv", "v,t\nq,x\n")
	env.Pinned = found.Pinned
	again, err := Discover(t.Context(), testFormats, env)
	if err != nil || columnar.SchemaString(again.Schema) != want || fmt.Sprint(again.Pinned) != fmt.Sprint(found.Pinned) {
		t.Errorf("pinned: %+v, %v", again, err)
	}
	w.removeAll("in")
	if again, err = Discover(t.Context(), testFormats, env); err != nil || columnar.SchemaString(again.Schema) != want {
		t.Errorf("pinned, without files: %+v, %v", again, err)
	}
}

// A choice of the format over declared columns is made by the first file that tells,
// and kept in the log.
func TestPinDeclared(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	s := w.stream()
	w.writeAt(1, "in/empty.csv", "")
	s.next(connector.Limit{})
	if s.source.o.hasFormatPins() {
		t.Error("chosen by an empty file")
	}
	w.writeAt(2, "in/a.csv", "v\n1\n")
	s.expect("1")
	w.writeAt(3, "in/b.csv", "v\n2\n")
	s.open()
	s.expect("2")
	if got := s.source.Pinned()["format.first"]; got != "in/a.csv" {
		t.Errorf("chosen by %q", got)
	}
}

func TestSchemaGrows(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.writeAt(1, "in/a.csv", "v\n1\n")
	s := &stream{world: w, log: connectortest.NewLog(), options: []string{"path", "in", "schema_evolution", "add"}}
	s.open()
	s.expect("1")
	w.writeAt(2, "in/b.csv", "v,w\n2,3\n")
	_, err := s.try(connector.Limit{})
	var grown *connector.SchemaGrownError
	if !errors.As(err, &grown) || grown.File != "in/b.csv" || columnar.SchemaString(grown.Schema) != "v BIGINT, w BIGINT" {
		t.Fatalf("got %v", err)
	}
	s.pinned = grown.Pinned
	s.open()
	rows, err := s.between("", s.at)
	if err != nil {
		t.Fatal(err)
	}
	equal(t, "what was read before", rows, []string{"1|NULL"})
	s.expect("2|3")
}

func TestStreamRefusals(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	env := w.env("path", "out", "format", "csv")
	env.Mode = connector.Complete
	sink := w.sink(env)
	w.publish(sink, w.batch(0, connector.Complete, "v:bigint\n1\n"))
	_, err := Discover(t.Context(), testFormats, w.env("path", "out"))
	wantError(t, err, "out", "complete")
	for _, p := range []string{
		"out/*.csv", "out/part-000.csv", "out/**", "out/**/part-*", "out/{part,x}-*",
		"ou[t]", "o*/*.csv", "{out,other}/*", "*", "**/part-*", ".",
	} {
		env := w.env("path", p, "format", "csv")
		env.Columns = schemaOf("v:bigint")
		_, err := Discover(t.Context(), testFormats, env)
		wantError(t, err, "path", "out, of which it would read the files,", "output_mode = 'complete'", "read it as a table")
	}
	for _, p := range []string{"out/*.txt", "out/sub/*", "out/part-001.csv"} {
		w.follow(p).expectFiles()
	}
	for _, c := range []struct{ key, value, says string }{
		{"max_files_per_trigger", "0", "at least 1"}, {"max_files_per_trigger", "10.1", "integer"}, {"max_files_per_trigger", "-1", "integer"},
		{"changed_files", "maybe", "error, ignore or reread"}, {"clean_source", "archive", "archive_dir"},
		{"archive_dir", "x", "clean_source"}, {"done_marker", "a/b", "done_marker"}, {"min_file_age", "10", "no unit"},
		{"header", "x", ""}, {"recursive", "perhaps", "true or false"},
	} {
		env := w.env("path", "in", "format", "csv", c.key, c.value)
		env.Columns, env.Log = schemaOf("v:bigint"), connectortest.NewLog()
		_, err := OpenSource(t.Context(), testFormats, env)
		if c.says != "" {
			wantError(t, err, c.says)
		}
	}
	env = w.env("path", "in", "format", "csv", "max_files_per_trigger", "1", "max_bytes_per_trigger", "1")
	env.Columns = schemaOf("v:bigint")
	_, err = OpenSource(t.Context(), testFormats, env)
	wantError(t, err, "together")
}

// The log must have every entry an offset speaks of.
func TestDamagedLog(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.writeAt(1, "in/a.csv", "v\n1\n")
	s := w.stream()
	s.expect("1")
	var refused *connector.RefusedError
	if _, err := s.source.LatestOffset(t.Context(), `{"batch":7}`, connector.Limit{}); !errors.As(err, &refused) {
		t.Errorf("an offset beyond the log: %v", err)
	}
	for _, o := range []connector.Offset{"x", `{"batch":-2}`, `{"batch":0,"more":1}`} {
		if _, err := s.source.LatestOffset(t.Context(), o, connector.Limit{}); err == nil {
			t.Errorf("offset %q was accepted", o)
		}
	}
	bad := connectortest.NewLog()
	if err := bad.Put(0, []byte("files 1\nr 1 2\n")); err != nil {
		t.Fatal(err)
	}
	env := w.env("path", "in", "format", "csv")
	env.Log, env.Columns = bad, schemaOf("v:bigint")
	if _, err := OpenSource(t.Context(), testFormats, env); !errors.As(err, &refused) {
		t.Errorf("a damaged entry: %v", err)
	}
}

func TestLogWriteFails(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.writeAt(1, "in/a.csv", "v\n1\n")
	s := w.stream()
	errDisk := errors.New("no space left on device")
	s.log.Fail(errDisk)
	if _, err := s.try(connector.Limit{}); !errors.Is(err, errDisk) {
		t.Errorf("got %v", err)
	}
	s.log.Fail(nil)
	s.expect("1")
}

func TestHashes(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.writeAt(1, "in/a.csv", "v\n1\n")
	w.writeAt(2, "in/b.csv", "")
	s := w.stream()
	s.expect("1")
	hashes := s.hashes("")
	if len(hashes) != 2 || hashes[0].Path != "in/a.csv" || len(hashes[0].Hash) != 32 || hashes[0].Hash == hashes[1].Hash {
		t.Errorf("hashes %v", hashes)
	}
	env := w.env()
	direct, err := hashFile(t.Context(), &env, connector.FileIdentity{Path: "in/a.csv"})
	if err != nil || direct != hashes[0].Hash {
		t.Errorf("hashed apart: %s, %v", direct, err)
	}
	for _, f := range s.hashes("") {
		if f.Hash != "" {
			t.Errorf("not forgotten: %v", f)
		}
	}
}

// Directories that cannot have new names are not read again.
func TestListingIsIncremental(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	for i := range 20 {
		w.writeAt(i, fmt.Sprintf("in/d%d/a.csv", i), "v\n1\n")
	}
	trace := newReadCount(w.mem)
	w.fs = trace
	s := w.stream("rescan_every", "1 day")
	if n := len(s.next(connector.Limit{})); n != 20 {
		t.Fatalf("%d rows", n)
	}
	trace.reads = 0
	s.expect()
	if trace.reads != 0 {
		t.Errorf("%d directories were read though nothing changed", trace.reads)
	}
	w.writeAt(50, "in/d7/b.csv", "v\n2\n")
	s.expect("2")
	if trace.reads != 1 {
		t.Errorf("%d directories were read for one new file", trace.reads)
	}
	w.writeAt(60, "in/new/c.csv", "v\n3\n")
	s.expect("3")
	// Within two seconds of its last change a directory is read again.
	w.now = epoch.Add(2 * time.Hour)
	if err := w.mem.Chtimes("in/d3", w.now.Add(-time.Second)); err != nil {
		t.Fatal(err)
	}
	trace.reads = 0
	s.expect()
	s.expect()
	if trace.reads != 2 {
		t.Errorf("a directory changed just now was read %d times, not twice", trace.reads)
	}
}

// logText is an entry of a source's log.
type logText struct {
	pinned map[string]string
	files  []loggedFile
}

func (e *logText) encode(t *testing.T) []byte {
	t.Helper()
	data, err := appendLogHead(nil, e.pinned)
	if err != nil {
		t.Fatal(err)
	}
	for i := range e.files {
		data = e.files[i].append(data)
	}
	return data
}

func decodeLogText(data []byte) (e logText, err error) {
	pinned, lines, err := cutLogHead(data)
	if err != nil {
		return e, err
	}
	e.pinned = pinned
	err = eachLogLine(lines, func(f loggedFile, _, _ int) error {
		e.files = append(e.files, f)
		return nil
	})
	return e, err
}

func TestSourceLogText(t *testing.T) {
	t.Parallel()
	e := logText{pinned: map[string]string{"format.header": "true"}, files: []loggedFile{
		{foundFile: foundFile{"a b\n\xff.csv", connector.FileIdentity{Size: 3, ModTime: -5}}},
		{foundFile: foundFile{"b", connector.FileIdentity{}}, skipped: true, hash: "abc"},
		{foundFile: foundFile{"c", connector.FileIdentity{Size: 1, ModTime: 2}}},
	}}
	data := e.encode(t)
	want := "files 1 {\"format.header\":\"true\"}\nr 3 -5 - \"a b\\n\\xff.csv\"\ns 0 0 abc \"b\"\nr 1 2 - \"c\"\n"
	if string(data) != want {
		t.Errorf("encoded %q", data)
	}
	back, err := decodeLogText(data)
	if err != nil || fmt.Sprint(back) != fmt.Sprint(e) {
		t.Errorf("decoded %+v, %v", back, err)
	}
}

func FuzzSourceLog(f *testing.F) {
	f.Add([]byte("files 1\nr 3 -5 - \"a\"\n"))
	f.Add([]byte("files 1 {\"a\":\"b\"}\ns 0 0 abc \"b\"\n"))
	f.Fuzz(func(t *testing.T, data []byte) {
		e, err := decodeLogText(data)
		if err != nil {
			return
		}
		again := e.encode(t)
		back, err := decodeLogText(again)
		if err != nil || fmt.Sprint(back) != fmt.Sprint(e) {
			t.Errorf("%q became %q", data, again)
		}
		read := 0
		for _, f := range e.files {
			if !f.skipped {
				read++
			}
		}
		if _, lines, err := cutLogHead(data); err != nil || countLogged(lines) != read {
			t.Errorf("%q is of %d files, not %d: %v", data, read, countLogged(lines), err)
		}
	})
}

// knownFile is what a seenSet is to know of a path.
type knownFile struct{ logged, queued *foundFile }

func TestSeenSet(t *testing.T) {
	t.Parallel()
	for name, hash := range map[string]func(uint32, string) uint32{
		"hashed":                         hashName,
		"every hash the same, or nearly": func(dir uint32, _ string) uint32 { return dir % 2 },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := newSeenSet()
			s.hash = hash
			testSeenSet(t, s)
		})
	}
}

func testSeenSet(t *testing.T, s *seenSet) {
	rnd := rand.New(rand.NewPCG(1, 2))
	names := []string{"a", "d/" + strings.Repeat("long", 1<<15)} // a name that has no room in a record
	for i := range 600 {
		names = append(names, fmt.Sprintf("d%d/e/f%d", i%5, i))
	}
	want := map[string]knownFile{}
	for range 20000 {
		rel := names[rnd.IntN(len(names))]
		k, rec := want[rel], s.get(splitPath(rel))
		f := &foundFile{rel, connector.FileIdentity{Size: rnd.Int64N(9), ModTime: rnd.Int64N(9)}}
		switch op := rnd.IntN(4); {
		case op == 0:
			s.put(loggedFile{foundFile: *f}, 7)
			k.logged = f
		case op == 1 && k.queued == nil:
			s.queue(*f, 8)
			k.queued = f
		case op == 2 && rec >= 0:
			s.unqueue(uint32(rec))
			k.queued = nil
		case op == 3 && k.queued != nil:
			s.logNow(uint32(rec), 7, false)
			k = knownFile{logged: k.queued}
		}
		want[rel] = k
		probe := names[rnd.IntN(len(names))]
		checkSeen(t, s, probe, want[probe])
	}
	logged, queued := 0, 0
	for rel, k := range want {
		checkSeen(t, s, rel, k)
		if k.logged != nil {
			logged++
		}
		if k.queued != nil {
			queued++
		}
	}
	if s.len() != logged || s.queued != queued {
		t.Errorf("%d logged, %d queued, not %d, %d", s.len(), s.queued, logged, queued)
	}
	paths := map[string]bool{}
	for i := range s.n {
		paths[s.path(i)] = true
	}
	if len(paths) != s.n {
		t.Error("one path has two records")
	}
	s.forgetLogged()
	for rel, k := range want {
		checkSeen(t, s, rel, knownFile{queued: k.queued})
	}
}

func checkSeen(t *testing.T, s *seenSet, rel string, want knownFile) {
	t.Helper()
	rec := s.get(splitPath(rel))
	state, number, f := stateGone, int64(0), want.queued
	switch {
	case want.queued != nil:
		state, number = stateQueued, 8
	case want.logged != nil:
		state, number, f = stateLogged, 7, want.logged
	}
	if rec < 0 || f == nil {
		if rec >= 0 || f != nil {
			t.Fatalf("%.20q: record %d of %+v", rel, rec, want)
		}
		return
	}
	if r := s.rec(rec); r.state != state || r.number != number || !r.same(*f) || s.wasLogged(uint32(rec)) != (want.logged != nil) {
		t.Fatalf("%.20q: %+v is known of %+v", rel, r, want)
	}
}

// Paths are compared whole, whatever folders they were taken apart into.
func TestComparePaths(t *testing.T) {
	t.Parallel()
	names := []string{"", "/", "a", "a/b", "a/", "a.b", "a/b/c", "a/b.c", "ab", "b", "a/bc", "b/a", "\xff", "a\x00"}
	for _, a := range names {
		for _, b := range names {
			for i := range len(a) + 1 {
				for j := range len(b) + 1 {
					if got := compareJoined(a[:i], []byte(a[i:]), b[:j], []byte(b[j:])); got != strings.Compare(a, b) {
						t.Fatalf("%q+%q against %q+%q: %d", a[:i], a[i:], b[:j], b[j:], got)
					}
				}
			}
		}
	}
}

// A queue that is put into order piece by piece has the order of one sorted at once.
func TestQueue(t *testing.T) {
	t.Parallel()
	rnd := rand.New(rand.NewPCG(3, 4))
	byTime := func(a, b queuedFile) int { return cmp.Or(cmp.Compare(a.mtime, b.mtime), cmp.Compare(a.rec, b.rec)) }
	var q queue
	var want []queuedFile
	for rec := range uint32(3000) {
		f := queuedFile{rnd.Int64N(1000), rec}
		q.add(f)
		want = append(want, f)
		switch rnd.IntN(40) {
		case 0:
			q.sort(byTime)
			slices.SortFunc(want, byTime)
			if !slices.Equal(q.files, want) {
				t.Fatalf("at %d: another order", rec)
			}
		case 1:
			drop := func(f queuedFile) bool { return f.rec%7 == 3 }
			q.remove(drop)
			want = slices.DeleteFunc(want, drop)
		case 2:
			q.sort(byTime)
			slices.SortFunc(want, byTime)
			end := rnd.IntN(len(want) + 1)
			left := slices.Clone(want[:min(end, 2)])
			q.take(end, left)
			want = append(left, want[end:]...)
		}
	}
}

func BenchmarkSeenSet(b *testing.B) {
	s := newSeenSet()
	var dirs, names []string
	for i := range 1 << 20 {
		dirs, names = append(dirs, fmt.Sprintf("year=2024/day=%d/", i%365)), append(names, fmt.Sprintf("part-%08d.csv", i))
		s.put(loggedFile{foundFile: foundFile{rel: dirs[i] + names[i]}}, int64(i))
	}
	i := 0
	for b.Loop() {
		if s.get(dirs[i&(1<<20-1)], names[i&(1<<20-1)]) < 0 {
			b.Fatal("lost")
		}
		i++
	}
	bytes := len(s.slots)*8 + len(s.recs)*recordsPiece*40 + len(s.names)*namesPiece
	b.ReportMetric(float64(bytes)/float64(len(names)), "B/file")
}

func TestSweepGoesOn(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	for i := range 50 {
		w.writeAt(i, fmt.Sprintf("in/%02d.csv", i), "v\n1\n")
	}
	s := w.stream("rescan_every", "1 minute")
	s.next(connector.Limit{})
	for range 3 {
		w.now = w.now.Add(2 * time.Minute)
		s.expect()
	}
	w.writeAt(99, "in/30.csv", "v\n2\n")
	s.expect()
	w.now = w.now.Add(2 * time.Minute)
	_, err := s.try(connector.Limit{})
	wantError(t, err, "in/30.csv")
	if !slices.Contains([]bool{true}, s.source.RescanDue().After(w.now)) {
		t.Error("the next sweep is not planned")
	}
}
