package tidemill_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"math/big"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"
)

// The cases under testdata/cases are small inputs that break engines, with their right
// answers; see the README there. They are run from outside, through the command line.

const casesDir = "testdata/cases"

// bin is the command line that TestCases built.
var bin string

// TestCases builds the command line once and runs every case with it.
func TestCases(t *testing.T) {
	t.Parallel()
	bin = filepath.Join(t.TempDir(), "tidemill")
	if out, err := exec.Command("go", "build", "-o", bin, "./cmd/tidemill").CombinedOutput(); err != nil {
		t.Fatalf("go build: %v\n%s", err, out)
	}
	t.Run("all", allCovered)
	t.Run("one-read", oneRead)
	t.Run("steps", steps)
	t.Run("streaming", streaming)
	t.Run("killed", killedOften)
}

// world is a directory in which the command line is run.
type world struct {
	t   *testing.T
	dir string
	env []string
	// newest is the modification time of the file put in last: each is newer than the one
	// before.
	newest time.Time
}

func newWorld(t *testing.T) *world {
	t.Helper()
	return &world{t: t, dir: t.TempDir(), newest: time.Unix(1_700_000_000, 0)}
}

func (w *world) path(name string) string { return filepath.Join(w.dir, filepath.FromSlash(name)) }

// put writes a file, newer by modification time than the one before.
func (w *world) put(name string, data []byte) {
	w.t.Helper()
	w.newest = w.newest.Add(time.Second)
	w.putAt(name, data, w.newest)
}

func (w *world) putAt(name string, data []byte, at time.Time) {
	w.t.Helper()
	p := w.path(name)
	if err := os.MkdirAll(filepath.Dir(p), 0o755); err != nil {
		w.t.Fatal(err)
	}
	if err := os.WriteFile(p, data, 0o644); err != nil {
		w.t.Fatal(err)
	}
	if err := os.Chtimes(p, at, at); err != nil {
		w.t.Fatal(err)
	}
}

// copyIn copies a folder of testdata below dir, in byte order of the names.
func (w *world) copyIn(from, dir string) {
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
		if err == nil {
			w.put(filepath.ToSlash(filepath.Join(dir, rel)), data)
		}
		return err
	})
	if err != nil {
		w.t.Fatal(err)
	}
}

// outcome is what a command did.
type outcome struct {
	code           int
	stdout, stderr string
}

// caseTimeout is the longest a command of a case may take on a busy machine.
const caseTimeout = 2 * time.Minute

func (w *world) command(args ...string) *exec.Cmd {
	c := exec.Command(bin, args...)
	c.Dir = w.dir
	c.Env = append(os.Environ(), w.env...)
	return c
}

// tidemill runs the command line to its end.
func (w *world) tidemill(args ...string) outcome {
	w.t.Helper()
	c := w.command(args...)
	var stdout, stderr bytes.Buffer
	c.Stdout, c.Stderr = &stdout, &stderr
	if err := c.Start(); err != nil {
		w.t.Fatal(err)
	}
	stop := time.AfterFunc(caseTimeout, func() { _ = c.Process.Kill() })
	err := c.Wait()
	if !stop.Stop() {
		w.t.Fatalf("tidemill %s: not done after %v\n%s", strings.Join(args, " "), caseTimeout, stderr.String())
	}
	var exit *exec.ExitError
	if err != nil && !errors.As(err, &exit) {
		w.t.Fatal(err)
	}
	return outcome{c.ProcessState.ExitCode(), stdout.String(), stderr.String()}
}

// run runs a file of SQL until it has drained.
func (w *world) run(sql string, flags ...string) outcome {
	w.t.Helper()
	if err := os.WriteFile(w.path("job.sql"), []byte(sql), 0o644); err != nil {
		w.t.Fatal(err)
	}
	args := append([]string{"run", "--trigger", "available-now", "--progress", "jsonl"}, flags...)
	return w.tidemill(append(args, "job.sql")...)
}

// mustRun is run for what must work.
func (w *world) mustRun(sql string, flags ...string) []progress {
	w.t.Helper()
	o := w.run(sql, flags...)
	if o.code != 0 {
		w.t.Fatalf("run: exit %d\n%s\n%s", o.code, sql, o.stderr)
	}
	return progressOf(w.t, o.stderr)
}

// query runs a bounded query and returns its rows with their names.
func (w *world) query(sql string, flags ...string) table {
	w.t.Helper()
	o := w.tidemill(append(append([]string{"query", "--format", "csv"}, flags...), sql)...)
	if o.code != 0 {
		w.t.Fatalf("query: exit %d\n%s\n%s", o.code, sql, o.stderr)
	}
	return parseTable(w.t, o.stdout)
}

// progress is the part of a progress object that the cases look at.
type progress struct {
	NumInputRows   int64
	EventTime      map[string]string
	StateOperators []struct {
		NumRowsTotal, NumRowsUpdated, NumRowsDroppedByWatermark int64
	}
	Sources []struct{ NumMalformedRows, NumMalformedFiles int64 }
}

// progressOf reads the objects among the lines of stderr.
func progressOf(t *testing.T, stderr string) []progress {
	t.Helper()
	var all []progress
	for line := range strings.Lines(stderr) {
		if !strings.HasPrefix(line, "{") {
			continue
		}
		var p progress
		if err := json.Unmarshal([]byte(line), &p); err != nil {
			t.Fatalf("progress %q: %v", line, err)
		}
		// The operators come outermost first.
		slices.Reverse(p.StateOperators)
		all = append(all, p)
	}
	return all
}

// table is CSV of the kind the README describes: typed values compare, not bytes.
type table struct {
	names []string
	rows  [][]string // canonical
}

// parseTable reads CSV in which a field with nothing in it is null and "" the empty text.
func parseTable(t *testing.T, text string) table {
	t.Helper()
	var out table
	for len(text) > 0 {
		var row []string
		for more := true; more; {
			var field string
			field, text, more = cutField(t, text)
			row = append(row, field)
		}
		if out.names == nil {
			out.names = row
			continue
		}
		for i, v := range row {
			row[i] = canonical(v)
		}
		out.rows = append(out.rows, row)
	}
	return out
}

// null stands for a field with nothing in it.
const null = "\x00null"

// cutField takes one field from the front of a CSV text; more says whether the record
// goes on.
func cutField(t *testing.T, text string) (field, rest string, more bool) {
	if strings.HasPrefix(text, `"`) {
		var sb strings.Builder
		for text = text[1:]; ; {
			i := strings.IndexByte(text, '"')
			if i < 0 {
				t.Fatalf("open quote in %q", text)
			}
			sb.WriteString(text[:i])
			text = text[i+1:]
			if !strings.HasPrefix(text, `"`) {
				break
			}
			sb.WriteByte('"')
			text = text[1:]
		}
		field = sb.String()
	} else {
		i := strings.IndexAny(text, ",\n")
		if i < 0 {
			i = len(text)
		}
		if field = text[:i]; field == "" {
			field = null
		}
		text = text[i:]
	}
	if text == "" {
		return field, "", false
	}
	return field, text[1:], text[0] == ','
}

// timeLayouts are the ways a timestamp is written, after T became a blank and Z went.
var timeLayouts = []string{"2006-01-02 15:04:05.999999", "2006-01-02 15:04:05"}

// canonical is one text for every way of writing a value: 1.50 and 1.5, a time with or
// without its zeros.
func canonical(v string) string {
	if r, ok := new(big.Rat).SetString(v); ok && !strings.Contains(v, "/") && !hasLeadingZero(v) {
		if f, exact := r.Float64(); !exact && strings.ContainsAny(v, ".eE") {
			return fmt.Sprintf("%.14g", f)
		}
		return r.RatString()
	}
	if len(v) >= 19 && len(v) < 40 {
		text := strings.TrimSuffix(strings.Replace(v, "T", " ", 1), "Z")
		for _, layout := range timeLayouts {
			if ts, err := time.Parse(layout, text); err == nil {
				return ts.Format("2006-01-02T15:04:05.999999Z")
			}
		}
	}
	return v
}

// hasLeadingZero says whether digits are a code, not a number.
func hasLeadingZero(v string) bool {
	v = strings.TrimPrefix(v, "-")
	return len(v) > 1 && v[0] == '0' && v[1] != '.'
}

// diff compares tables; ordered says whether the order of the rows counts.
func (got table) diff(want table, ordered bool) string {
	if !slices.Equal(got.names, want.names) {
		return fmt.Sprintf("columns %q, want %q", got.names, want.names)
	}
	a, b := keys(got.rows), keys(want.rows)
	if !ordered {
		slices.Sort(a)
		slices.Sort(b)
	}
	if slices.Equal(a, b) {
		return ""
	}
	return fmt.Sprintf("got  %q\nwant %q", a, b)
}

func keys(rows [][]string) []string {
	out := make([]string, len(rows))
	for i, r := range rows {
		out[i] = strings.Join(r, "|")
	}
	return out
}

// expected is the answer of a case.
func expected(t *testing.T, id string) table {
	t.Helper()
	data, err := os.ReadFile(filepath.Join(casesDir, id, "expected.csv"))
	if err != nil {
		t.Fatal(err)
	}
	return parseTable(t, string(data))
}

// allCovered says which folder of testdata/cases no test runs.
func allCovered(t *testing.T) {
	t.Parallel()
	entries, err := os.ReadDir(casesDir)
	if err != nil {
		t.Fatal(err)
	}
	covered := map[string]bool{"streaming": true}
	for _, c := range oneReadCases {
		covered[c.id] = true
	}
	for _, id := range slices.Collect(maps.Keys(stepCases)) {
		covered[id] = true
	}
	for _, e := range entries {
		if e.IsDir() && !covered[e.Name()] {
			t.Errorf("no test runs case %s", e.Name())
		}
	}
}
