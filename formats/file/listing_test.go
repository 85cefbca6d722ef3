package file

import (
	"errors"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/tidemill/tidemill/columnar"
	"github.com/tidemill/tidemill/columnar/columnartest"
	"github.com/tidemill/tidemill/internal/vfs"
	"github.com/tidemill/tidemill/logical/connector"
	"github.com/tidemill/tidemill/logical/connector/connectortest"
	"github.com/tidemill/tidemill/logical/expr"
)

func TestGlobMatch(t *testing.T) {
	t.Parallel()
	names := []string{
		"a.csv", "b.csv", "b.txt", "d/a.csv", "d/e/a.csv", "d/e/x.csv", "day=1/a.csv", "day=2/b.csv",
		".h.csv", "_h.csv", "_hid/a.csv", ".git/a.csv", "d/_h.csv", "ü.csv", "[1].csv", "a]b.csv",
	}
	for _, c := range []struct {
		glob string
		want string
	}{
		{"*.csv", "a.csv b.csv ü.csv [1].csv a]b.csv"},
		{"?.csv", "a.csv b.csv ü.csv"},
		{"[ab].csv", "a.csv b.csv"},
		{"[!a].csv", "b.csv ü.csv"},
		{"[^a-c].csv", "ü.csv"},
		{"[]x].csv", ""},
		{"a[]]b.csv", "a]b.csv"},
		{"[[]1].csv", "[1].csv"},
		{"{a,b}.{csv,txt}", "a.csv b.csv b.txt"},
		{"{a.csv,d/{a,e/x}.csv}", "a.csv d/a.csv d/e/x.csv"},
		{"**/a.csv", "a.csv d/a.csv d/e/a.csv day=1/a.csv"},
		{"**/*.csv", "a.csv b.csv d/a.csv d/e/a.csv d/e/x.csv day=1/a.csv day=2/b.csv ü.csv [1].csv a]b.csv"},
		{"d/**", "d/a.csv d/e/a.csv d/e/x.csv"},
		{"**/e/*", "d/e/a.csv d/e/x.csv"},
		{"d/**/**/x.csv", "d/e/x.csv"},
		{"*/a.csv", "d/a.csv day=1/a.csv"},
		{"day=*", "day=1/a.csv day=2/b.csv"}, // a folder that matches is read
		{"d", "d/a.csv d/e/a.csv d/e/x.csv"},
		{"_*.csv", ""}, // wildcards match nothing hidden, whatever is around them
		{".*.csv", ""},
		{"[_]h.csv", ""},
		{"_?id/*", ""},
		{"_hid/*", "_hid/a.csv"}, // what is written whole is meant
		{"*/_h.csv", "d/_h.csv"},
		{"{_hid,.git}/*", "_hid/a.csv .git/a.csv"},
		{"*", "a.csv b.csv b.txt d/a.csv d/e/a.csv d/e/x.csv day=1/a.csv day=2/b.csv ü.csv [1].csv a]b.csv"},
		{"nothing*", ""},
	} {
		w := newWorld(t)
		for _, n := range names {
			w.write("in/"+n, "")
		}
		env := w.env()
		l := &lister{fs: w.fs, path: "in/" + c.glob, recursive: true, env: &env, accept: func(string) bool { return true }}
		found, err := l.all(t.Context())
		if err != nil {
			t.Errorf("%s: %v", c.glob, err)
			continue
		}
		var got []string
		for _, f := range found {
			got = append(got, strings.TrimPrefix(f.Path, "in/"))
		}
		want := strings.Fields(c.want)
		slices.Sort(got)
		slices.Sort(want)
		equal(t, c.glob, got, want)
	}
}

func TestGlobErrors(t *testing.T) {
	t.Parallel()
	for glob, says := range map[string]string{
		"in/[a": "bracket", "in/x[a-": "bracket", "in/{a,b": "brace", "in/*[": "bracket",
		"in/" + strings.Repeat("{a,b}", 20): "more than",
	} {
		w := newWorld(t)
		_, err := OpenTable(t.Context(), testFormats, w.env("path", glob))
		wantError(t, err, "path", says)
	}
}

func FuzzGlob(f *testing.F) {
	for _, s := range []string{"*", "a*b?c[d-f]", "[!a]", "**", "{a,{b,c}}", "[", "]", "[]]", "*a*a*a*b"} {
		f.Add(s, "abc")
	}
	f.Fuzz(func(t *testing.T, elem, name string) {
		if strings.Contains(elem, "/") || strings.Contains(name, "/") {
			return
		}
		ok, err := matchText(elem, name)
		if err == nil && !hasMeta(elem) && ok != (elem == name) {
			t.Errorf("%q, %q: %v", elem, name, ok)
		}
		if ok, err := matchText(elem+"*", name); err == nil {
			if whole, _ := matchText(elem, name); whole && !ok {
				t.Errorf("%q* does not match %q, though %q does", elem, name, elem)
			}
		}
		if _, _, err := parseGlob(elem); err != nil {
			var option *connector.OptionError
			if !errors.As(err, &option) {
				t.Errorf("%v is no OptionError", err)
			}
		}
	})
}

func TestListingSkips(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.write("in/a.csv", "v\n1\n")
	for _, name := range []string{
		"in/.hidden.csv", "in/_SUCCESS", "in/.d/a.csv", "in/_d/a.csv", "in/ck/metadata", "in/ck/offsets/0", "in/ck/data.csv", "in/new/lock", "in/new/.metadata.tmp",
		"in/out.checkpoint/metadata", "in/out.checkpoint/x.csv",
	} {
		w.write(name, "v\n9\n")
	}
	if err := w.mem.MkdirAll("in/empty.csv"); err != nil {
		t.Fatal(err)
	}
	for _, link := range [][2]string{{"nowhere", "in/dangling.csv"}, {"../elsewhere", "in/linked"}, {"../one.csv", "in/onelink.csv"}, {"round.csv", "in/round.csv"}} {
		if err := w.mem.Symlink(link[0], link[1]); err != nil {
			t.Fatal(err)
		}
	}
	w.write("elsewhere/b.csv", "v\n2\n")
	w.write("one.csv", "v\n3\n")
	table := w.table(w.env("path", "in", "format", "csv"))
	for range 3 {
		got := w.rows(table)
		slices.Sort(got)
		equal(t, "rows", got, []string{"1", "2", "3"})
	}
	if len(w.warnings) != 2 || !strings.Contains(w.warnings[0], "dangling.csv is a link to nothing") || !strings.Contains(w.warnings[1], "round.csv is a link to nothing") {
		t.Errorf("warnings: %q", w.warnings)
	}
	got := w.rows(w.table(w.env("path", "in", "format", "csv", "recursive", "false")))
	slices.Sort(got)
	equal(t, "not recursive", got, []string{"1", "3"})
}

func TestSpecialFilesOnDisk(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	w := newWorld(t)
	w.fs = vfs.OS()
	if err := os.WriteFile(filepath.Join(dir, "a.csv"), []byte("v\n1\n"), 0o666); err != nil {
		t.Fatal(err)
	}
	if err := mkfifo(filepath.Join(dir, "pipe.csv")); err != nil {
		t.Skip("no FIFOs here: ", err)
	}
	if err := os.Symlink(dir, filepath.Join(dir, "loop")); err != nil {
		t.Fatal(err)
	}
	equal(t, "rows", w.rows(w.table(w.env("path", dir, "format", "csv"))), []string{"1"})
	if len(w.warnings) != 2 {
		t.Errorf("warnings: %q", w.warnings)
	}
}

func TestOrder(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.writeAt(3, "in/a.csv", "v\n4\n")
	w.writeAt(1, "in/z.csv", "v\n1\n")
	w.writeAt(2, "in/b/x.csv", "v\n3\n")
	w.writeAt(2, "in/b.csv", "v\n2\n")
	equal(t, "rows", w.rows(w.table(w.env("path", "in"))), []string{"1", "2", "3", "4"})
}

func TestFormatByName(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.write("a/x.csv", "v\n1\n")
	w.write("a/README", "not data")
	w.write("a/y.CSV.gz", "v\n2\n")
	equal(t, "rows", w.rows(w.table(w.env("path", "a"))), []string{"1", "2"})

	w.write("b/x.csv", "v\n1\n")
	w.write("b/y.other", "v\n2\n")
	_, err := OpenTable(t.Context(), testFormats, w.env("path", "b"))
	wantError(t, err, "format", "more than one", "x.csv", "y.other")
	equal(t, "stated", w.rows(w.table(w.env("path", "b", "format", "csv"))), []string{"1", "2"})
	equal(t, "by glob", w.rows(w.table(w.env("path", "b/*.other"))), []string{"2"})

	w.write("c/data", "v\n1\n")
	_, err = OpenTable(t.Context(), testFormats, w.env("path", "c"))
	wantError(t, err, "format", "c/data", ".csv")

	for _, p := range []string{"none", "none/*.csv", "none.csv"} {
		_, err = OpenTable(t.Context(), testFormats, w.env("path", p, "format", "csv"))
		var none *connector.NoFilesError
		if !errors.As(err, &none) {
			t.Errorf("%s: %v", p, err)
		}
		wantError(t, err, p)
	}
	_, err = OpenTable(t.Context(), testFormats, w.env("path", "a", "special", "1"))
	wantError(t, err, "special", "format csv has no such option", "other has")
	_, err = OpenTable(t.Context(), testFormats, w.env("path", "a", "max_file_per_trigger", "1"))
	wantError(t, err, "did you mean max_files_per_trigger")
}

// copyIn copies a folder of test data.
func (w *world) copyIn(from, to string) {
	w.t.Helper()
	err := filepath.WalkDir(from, func(p string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		data, err := os.ReadFile(p)
		if err != nil {
			return err
		}
		rel, err := filepath.Rel(from, p)
		w.write(path.Join(to, filepath.ToSlash(rel)), string(data))
		return err
	})
	if err != nil {
		w.t.Fatal(err)
	}
}

func TestFolderValues(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.copyIn("testdata/FD-04/in", "in")
	env := w.env("path", "in")
	env.Columns = schemaOf("v:bigint", "k:varchar")
	got := w.rows(w.table(env), 1, 0)
	slices.Sort(got)
	equal(t, "FD-04", got, []string{"100%|64", "50%|4", "São|16", "a b|32", "a+b|2", "a/b|1", "p=q|128", "x:y|8"})

	w = newWorld(t)
	w.copyIn("testdata/FD-05/in", "in")
	env = w.env("path", "in")
	env.Columns = schemaOf("v:bigint", "day:date", "hour:integer")
	got = w.rows(w.table(env), 2, 0, 1)
	slices.Sort(got)
	equal(t, "FD-05", got, []string{"0|1|2024-02-01", "10|4|2024-02-01", "1|2|2024-02-01", "1|8|2024-02-02"})

	table := w.table(w.env("path", "in"))
	if got := columnar.SchemaString(table.Schema()); got != "v BIGINT, day DATE, hour VARCHAR" {
		t.Errorf("inferred %s", got)
	}
	got = w.rows(w.table(w.env("path", "in", "hive_partitioning", "false")))
	slices.Sort(got)
	equal(t, "without folders", got, []string{"1", "2", "4", "8"})
	got = w.rows(w.table(w.env("path", "in/day=2024-02-01/*/*.csv")))
	slices.Sort(got)
	equal(t, "glob below a folder", got, []string{"1|00", "2|01", "4|10"})
}

func TestFolderTypes(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		values string
		want   string
	}{
		{"1 2 -3", "BIGINT"}, {"1 02", "VARCHAR"}, {"0", "BIGINT"}, {"99999999999999999999", "VARCHAR"},
		{"2024-01-01 __HIVE_DEFAULT_PARTITION__", "DATE"}, {"2024-01-01 2024-13-01", "VARCHAR"},
		{"__HIVE_DEFAULT_PARTITION__", "VARCHAR"}, {"+1", "VARCHAR"}, {"1.5", "VARCHAR"},
	} {
		var files []foundFile
		for _, v := range strings.Fields(c.values) {
			files = append(files, foundFile{rel: "k=" + v + "/f.csv"})
		}
		fields := inferFolders(files)
		if got := columnar.TypeName(fields[0].Type); got != c.want {
			t.Errorf("%s: %s, not %s", c.values, got, c.want)
		}
	}
	w := newWorld(t)
	w.write("in/k=x/f.csv", "v\n1\n")
	env := w.env("path", "in")
	env.Columns = schemaOf("v:bigint", "K:bigint")
	mem := columnartest.Mem(t)
	stats := &connector.ScanStats{}
	us, err := w.table(env).Units(t.Context(), connector.ScanRequest{Mem: mem, Stats: stats})
	if err != nil {
		t.Fatal(err)
	}
	equal(t, "a value its type cannot hold", connectortest.Rows(t, mem, us), []string{"1|NULL"})
	if s := stats.Samples(); len(s) != 1 || s[0].Column != "K" {
		t.Errorf("samples %+v", s)
	}
}

func TestEscape(t *testing.T) {
	t.Parallel()
	for _, s := range []string{"", "plain", "a/b", "50%", "x:y", "São", "a b+c", "\x00\x1f", "\xff\xfe", "中文", "a=b", `q"'#*?\{[]^`} {
		escaped := string(appendEscaped(nil, []byte(s)))
		if strings.ContainsAny(escaped, "/:*?\"\\\x00") || unescape(escaped) != s {
			t.Errorf("%q is escaped as %q, back as %q", s, escaped, unescape(escaped))
		}
	}
	for in, want := range map[string]string{"100%": "100%", "%4": "%4", "%zz": "%zz", "%+1": "%+1", "%2F%2f": "//", "%%41": "%A"} {
		if got := unescape(in); got != want {
			t.Errorf("%q is %q, not %q", in, got, want)
		}
	}
}

func FuzzEscape(f *testing.F) {
	f.Add("a/b%2F")
	f.Fuzz(func(t *testing.T, s string) {
		if got := unescape(string(appendEscaped(nil, []byte(s)))); got != s {
			t.Errorf("%q came back as %q", s, got)
		}
	})
}

// Conditions over folder columns leave out files; those over the content go to the
// format; nothing is left out that may be wanted.
func TestPruneByFolders(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	for _, k := range []string{"1", "2", "__HIVE_DEFAULT_PARTITION__"} {
		w.write("in/k="+k+"/f.csv", "v\n"+strings.TrimPrefix(k, "__")[:1]+"\n")
	}
	table := w.table(w.env("path", "in"))
	mem := columnartest.Mem(t)
	value := func(v any) expr.Expr {
		d, err := columnar.Constant(heap, columnar.Int64, v)
		if err != nil {
			t.Fatal(err)
		}
		return &expr.Literal{Value: d.Array()}
	}
	ref := func(i int) expr.Expr {
		return &expr.Ref{Index: i, Name: table.Schema().Field(i).Name, DataType: table.Schema().Field(i).Type, Null: true}
	}
	in := func(e expr.Expr, list ...expr.Expr) expr.Expr { return &expr.In{Value: e, List: list} }
	for _, c := range []struct {
		filter expr.Expr
		files  int
	}{
		{in(ref(1), value(int64(1))), 1},
		{in(ref(1), value(int64(1)), value(int64(2))), 2},
		{in(ref(1), value(int64(7))), 0},
		{in(ref(0), value(int64(1))), 3},
		{&expr.Logic{Op: expr.And, Args: []expr.Expr{in(ref(1), value(int64(1))), in(ref(1), value(int64(2)))}}, 0},
		{&expr.Logic{Op: expr.Or, Args: []expr.Expr{in(ref(1), value(int64(1))), in(ref(0), value(int64(2)))}}, 3},
	} {
		stats := &connector.ScanStats{}
		us, err := table.Units(t.Context(), connector.ScanRequest{Mem: mem, Filters: []expr.Expr{c.filter}, Stats: stats})
		if err != nil {
			t.Fatal(err)
		}
		if len(us) != c.files || stats.FilesPruned.Load() != int64(3-c.files) {
			t.Errorf("%s: %d files, %d pruned", c.filter, len(us), stats.FilesPruned.Load())
		}
		pruned, left, total := table.Prune([]expr.Expr{c.filter})
		if left != c.files || total != 3 {
			t.Errorf("%s: a plan leaves %d files of %d", c.filter, left, total)
		}
		us, err = pruned.Units(t.Context(), connector.ScanRequest{Mem: mem, Filters: []expr.Expr{c.filter}})
		if err != nil || len(us) != c.files {
			t.Errorf("%s: %d files of the pruned table, %v", c.filter, len(us), err)
		}
	}
}

func TestTableChangesUnderReader(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.write("in/a.csv", "v\n1\n")
	table := w.table(w.env("path", "in"))
	files, err := table.Files(t.Context(), "", "")
	if err != nil {
		t.Fatal(err)
	}
	w.write("in/b.csv", "v\n2\n")
	equal(t, "as it was", w.rows(table.At(files)), []string{"1"})
	equal(t, "as it is", w.rows(table), []string{"1", "2"})
	changed, err := table.Changed(t.Context(), files)
	if err != nil || len(changed) != 0 {
		t.Errorf("changed: %v, %v", changed, err)
	}
	w.write("in/a.csv", "v\n11\n")
	changed, err = table.Changed(t.Context(), files)
	if err != nil || len(changed) != 1 || changed[0].Path != "in/a.csv" {
		t.Errorf("changed: %v, %v", changed, err)
	}
	mem := columnartest.Mem(t)
	_, err = table.At(files).Units(t.Context(), connector.ScanRequest{Mem: mem})
	var was *connector.FileChangedError
	if !errors.As(err, &was) || was.Path != "in/a.csv" {
		t.Errorf("reading a changed file: %v", err)
	}
	us, err := table.Units(t.Context(), connector.ScanRequest{Mem: mem, BatchRows: 1})
	if err != nil {
		t.Fatal(err)
	}
	r, err := us[0].Open(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	w.removeAll("in/" + path.Base(us[0].Name()))
	_, err = columnar.Drain(t.Context(), r)
	if !errors.As(err, &was) || !was.Gone {
		t.Errorf("a file that vanished while it was read: %v", err)
	}
}

// A file that cannot be decoded and was modified just now may still be written.
func TestYoungDamagedFile(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.write("in/a.csv", "v\n1\n")
	env := w.env("path", "in")
	env.Columns = schemaOf("v:bigint")
	table := w.table(env)
	w.writeAt(3600, "in/b.csv", "v\nBAD\n")
	w.onSleep = func() { w.write("in/b.csv", "v\n2\n") }
	mem := columnartest.Mem(t)
	us, err := table.Units(t.Context(), connector.ScanRequest{Mem: mem})
	if err != nil {
		t.Fatal(err)
	}
	_, err = us[1].Open(t.Context())
	var was *connector.FileChangedError
	if !errors.As(err, &was) {
		t.Errorf("got %v", err)
	}
	if w.slept != settleTime {
		t.Errorf("slept %s", w.slept)
	}
}
