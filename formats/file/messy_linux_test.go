package file

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/tidemill/tidemill/internal/vfs"
	"github.com/tidemill/tidemill/logical/connector"
)

// messyFiles are names as people and programs make them: each a file of its own.
var messyFiles = []string{
	"plain.csv", "a b.csv", " lead.csv", "trail .csv", "100%.csv", "a%20b.csv", "a%2Fb.csv", "a+b.csv", "c:d.csv", "12:30:00.csv",
	"x[1].csv", "x1.csv", "{a,b}.csv", "star*.csv", "q?.csv", "\u00e9.csv", "e\u0301.csv", "\u4e2d\u6587.csv", "\U0001f600.csv",
	"line\nbreak.csv", "tab\t.csv", "quote\".csv", "o'b.csv", "back\\slash.csv", "bad\xff.csv", "-rf.csv", "~.csv", "#.csv", "$HOME.csv",
	"d [x]/f.csv", "d%/f.csv", "d\u00e9/f.csv", "de\u0301/f.csv", "deep/a/b/c/d/e/f/g/h.csv",
	"k=a%2Fb/f.csv", "k=a b/f.csv", "k=__HIVE_DEFAULT_PARTITION__/f.csv", "k=/f.csv", "k=%C3%A9/f.csv", "k=100%/f.csv",
}

// messyTree makes them, in the order of their times, with number i in file i, and adds links
// that lead to folders, back, and nowhere.
func messyTree(t *testing.T, dir string) (want []string) {
	t.Helper()
	must := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	at := time.Now().Add(-time.Hour)
	write := func(name string, i int) {
		must(os.MkdirAll(filepath.Dir(filepath.Join(dir, name)), 0o777))
		must(os.WriteFile(filepath.Join(dir, name), fmt.Appendf(nil, "v\n%d\n", i), 0o666))
		must(os.Chtimes(filepath.Join(dir, name), at, at.Add(time.Duration(i)*time.Second)))
	}
	values := map[string]string{
		"k=a%2Fb": "a/b", "k=a b": "a b", "k=%C3%A9": "\u00e9", "k=100%": "100%", "k=": `""`, "k=__HIVE_DEFAULT_PARTITION__": "NULL",
	}
	for i, name := range messyFiles {
		write("in/"+name, i)
		folder, ok := values[filepath.Dir(name)]
		if !ok {
			folder = "NULL"
		}
		want = append(want, fmt.Sprintf("%d|%s", i, folder))
	}
	write("outside/f.csv", len(messyFiles))
	want = append(want, fmt.Sprintf("%d|linked", len(messyFiles)))
	for _, link := range [][2]string{{"../outside", "in/k=linked"}, {"..", "in/deep/up"}, {".", "in/self"}, {"nowhere", "in/gone.csv"}} {
		must(os.Symlink(link[0], filepath.Join(dir, link[1])))
	}
	return want
}

// What is committed in an output wakes a stream that waits for it: the entry of the
// manifest comes after the files.
func TestFollowWakes(t *testing.T) {
	t.Parallel()
	out := t.TempDir() + "/out"
	w := newWorld(t)
	w.fs, w.now = vfs.OS(), time.Now()
	sink := w.sink(w.env("path", out, "format", "csv"))
	w.publish(sink, w.batch(0, connector.Append, "v:bigint\n0\n"))
	s := w.stream("path", out, "rescan_every", "1 day")
	woken := make(chan struct{}, 1)
	s.source.Notify(func() {
		select {
		case woken <- struct{}{}:
		default:
		}
	})
	defer s.source.Close()
	s.expect("0")
	for i := range 3 {
		w.publish(sink, w.batch(int64(i+1), connector.Append, fmt.Sprintf("v:bigint\n%d\n", i+1)))
		rows := s.next(connector.Limit{})
		for rows == nil { // woken by a temporary name
			<-woken
			rows = s.next(connector.Limit{})
		}
		equal(t, "rows", rows, []string{fmt.Sprint(i + 1)})
	}
}

// A messy directory on disk is read whole by a table, and by a stream in small batches,
// each file once, whatever its name, restarted before every batch.
func TestMessyDirectory(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	want := messyTree(t, dir)
	w := newWorld(t)
	w.fs, w.now = vfs.OS(), time.Now()
	env := w.env("path", dir+"/in", "format", "csv")
	env.Columns = schemaOf("v:bigint", "k:varchar")
	equal(t, "table", w.rows(w.table(env)), want)
	s := w.stream("path", dir+"/in", "max_files_per_trigger", "3")
	s.columns = env.Columns
	var got []string
	for {
		s.open()
		rows := s.next(s.source.Limit())
		if rows == nil {
			break
		}
		got = append(got, rows...)
	}
	equal(t, "stream", got, want)
	back, nowhere := 0, 0
	for _, warning := range w.warnings {
		if strings.Contains(warning, "leads back to a folder above it") {
			back++
		}
		if strings.Contains(warning, "gone.csv is a link to nothing") {
			nowhere++
		}
	}
	if back == 0 || nowhere == 0 || back+nowhere != len(w.warnings) {
		t.Errorf("warnings: %q", w.warnings)
	}
	for glob, files := range map[string][]string{
		"in/*.csv":              messyFiles[:29],
		"in/x[[]1].csv":         {"x[1].csv"},
		"in/x[1].csv":           {"x[1].csv"}, // it exists by that very name
		"in/x[0-9].csv":         {"x1.csv"},
		"in/k=*/f.csv":          append(slices.Clone(messyFiles[34:]), "linked"),
		"in/d[!e]*/**/f.csv":    {"d [x]/f.csv", "d%/f.csv", "d\u00e9/f.csv"},
		"in/{\u00e9,plain}.*":   {"plain.csv", "\u00e9.csv"},
		"in/?.csv":              {"\u00e9.csv", "\U0001f600.csv", "~.csv", "#.csv"},
		"in/**/[gh]*.csv":       {"deep/a/b/c/d/e/f/g/h.csv"},
		"in/{a,b}.csv":          {"{a,b}.csv"},
		"in/bad?.csv":           {"bad\xff.csv"},
		"in/*\n*":               {"line\nbreak.csv"},
		"in/\\*.csv":            nil,
		"in/back\\slash.csv":    {"back\\slash.csv"},
		"in/[-~$#]*.csv":        {"-rf.csv", "~.csv", "#.csv", "$HOME.csv"},
		"in/e\u0301.csv":        {"e\u0301.csv"},
		"in/\u00e9.csv":         {"\u00e9.csv"},
		"in/d\u00e9/*":          {"d\u00e9/f.csv"},
		"in/[12][0-9]:*.csv":    {"12:30:00.csv"},
		"in/*%*.csv":            {"100%.csv", "a%20b.csv", "a%2Fb.csv"},
		"in/deep/**/f/**/*":     {"deep/a/b/c/d/e/f/g/h.csv"},
		"in/{d%,d [[]x]}/f.csv": {"d [x]/f.csv", "d%/f.csv"},
		"in/k={a b,100%}/*":     {"k=a b/f.csv", "k=100%/f.csv"},
		"in/[[]x]*.csv":         nil,
		"in/trail .[c]sv":       {"trail .csv"},
		"in/{ lead,-rf}.[!x]*":  {" lead.csv", "-rf.csv"},
	} {
		l := &lister{fs: w.fs, path: dir + "/" + glob, recursive: true, accept: func(string) bool { return true }, env: &connector.Env{}}
		found, err := l.all(t.Context())
		if err != nil {
			t.Errorf("%s: %v", glob, err)
		}
		var names []string
		for _, f := range found {
			names = append(names, strings.TrimPrefix(f.Path, dir+"/in/"))
		}
		if i := slices.Index(files, "linked"); i >= 0 {
			files[i] = "k=linked/f.csv"
		}
		equal(t, fmt.Sprintf("glob %q", glob), names, files)
	}
}

// A folder whose modification time is put back after a file came, as tar, rsync -t and touch
// -d do, is read again: when it was changed nobody can put back.
func TestFolderTimePutBack(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	w := newWorld(t)
	w.fs, w.now = vfs.OS(), time.Now().Add(10*time.Second)
	old := time.Date(2024, 1, 1, 0, 0, 0, 0, time.UTC)
	write := func(name string) {
		t.Helper()
		if err := os.WriteFile(filepath.Join(dir, name), []byte("v\n1\n"), 0o666); err != nil {
			t.Fatal(err)
		}
		if err := os.Chtimes(dir, old, old); err != nil {
			t.Fatal(err)
		}
	}
	write("a.csv")
	s := w.stream("path", dir, "rescan_every", "1 day")
	s.expect("1")
	s.expect()
	write("b.csv")
	w.now = w.now.Add(10 * time.Second)
	s.expect("1")
}
