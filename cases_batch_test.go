package tidemill_test

import (
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// input is one table or stream of a case.
type input struct {
	name    string
	path    string // below the case's folder
	columns string
	options string // besides path
}

// oneReadCase is a case that is the same question over a batch and over a stream.
type oneReadCase struct {
	id     string
	inputs []input
	sql    string
	mode   string // output mode of the query as a stream; "" = it is not one
	env    []string
	// expect replaces expected.csv.
	expect string
}

// one is the only input of most cases, called t.
func one(path, columns, options string) []input { return []input{{"t", path, columns, options}} }

var oneReadCases = []oneReadCase{
	{id: "AGG-05", inputs: one("in", "k VARCHAR, v BIGINT", "format = 'json'"), mode: "complete",
		sql: "SELECT k, count(*) AS n, count(v) AS nv, sum(v) AS s, min(v) AS mi, avg(v) AS a FROM t GROUP BY k ORDER BY k NULLS LAST"},
	{id: "CSV-01", inputs: one("in", "id BIGINT, note VARCHAR, amount BIGINT", "format = 'csv', header = true"), mode: "complete",
		sql: "SELECT count(*) AS n, sum(amount) AS s, sum(char_length(note)) AS chars FROM t"},
	{id: "CSV-03", inputs: one("in", "id BIGINT, name VARCHAR", "format = 'csv', header = true"), mode: "append",
		sql: "SELECT id, name FROM t ORDER BY id"},
	{id: "CSV-03", inputs: one("in", "", ""), mode: "append", sql: "SELECT id, name FROM t ORDER BY id"},
	{id: "CSV-05", inputs: one("in", "id BIGINT, s VARCHAR, n BIGINT", "format = 'csv', header = true"), mode: "complete",
		sql: `SELECT count(*) AS n_rows, sum(CASE WHEN s IS NULL THEN 1 ELSE 0 END) AS s_null, sum(CASE WHEN s = '' THEN 1 ELSE 0 END) AS s_empty,
			sum(CASE WHEN s <> '' THEN 1 ELSE 0 END) AS s_text, sum(CASE WHEN n IS NULL THEN 1 ELSE 0 END) AS n_null FROM t`},
	{id: "CSV-10", inputs: one("in", "id BIGINT, part VARCHAR, qty BIGINT", "format = 'csv', header = true"), mode: "append",
		sql: "SELECT id, part, qty FROM t ORDER BY id"},
	{id: "CSV-12", inputs: one("in", "id BIGINT, v BIGINT", "format = 'csv', header = true"), mode: "complete",
		sql: "SELECT count(*) AS n, sum(v) AS s FROM t"},
	{id: "CSV-12", inputs: one("in", "", ""), mode: "complete", sql: "SELECT count(*) AS n, sum(v) AS s FROM t"},
	{id: "CSV-15", inputs: one("in", "id BIGINT, v BIGINT", "format = 'csv', header = true"), mode: "complete",
		sql: "SELECT count(*) AS n, sum(v) AS s FROM t"},
	{id: "CSV-15", inputs: one("in/log.csv.gz", "", ""), mode: "complete", sql: "SELECT count(*) AS n, sum(v) AS s FROM t"},
	{id: "FD-01", inputs: one("in", "id BIGINT", "format = 'csv', header = true"), mode: "complete",
		sql: "SELECT count(*) AS n, sum(id) AS s FROM t"},
	{id: "FD-04", inputs: one("in", "v BIGINT, k VARCHAR", "format = 'csv', header = true"), mode: "append",
		sql: "SELECT k, v FROM t ORDER BY v"},
	{id: "FD-04", inputs: one("in", "", ""), mode: "append", sql: "SELECT k, v FROM t ORDER BY v"},
	{id: "FD-05", inputs: one("in", "v BIGINT, day DATE, hour INTEGER", "format = 'csv', header = true"), mode: "complete",
		sql: "SELECT hour, sum(v) AS s FROM t GROUP BY hour ORDER BY hour"},
	{id: "FD-05", inputs: one("in", "v BIGINT, day DATE, hour VARCHAR", "format = 'csv', header = true"), mode: "complete",
		sql: "SELECT hour, sum(v) AS s FROM t GROUP BY hour ORDER BY hour", expect: "hour,s\n00,1\n01,2\n1,8\n10,4\n"},
	{id: "FD-05", inputs: one("in", "v BIGINT, day DATE, hour INTEGER", "format = 'csv', header = true"), mode: "complete",
		sql: "SELECT sum(v) AS s FROM t WHERE hour = 1", expect: "s\n10\n"},
	{id: "FD-07", inputs: one("in", "ts TIMESTAMP, host VARCHAR, msg VARCHAR", "format = 'csv', header = true"), mode: "complete",
		sql: "SELECT msg, count(*) AS n FROM t GROUP BY msg ORDER BY msg"},
	{id: "JOIN-01", inputs: []input{
		{"l", "in/l.csv", "k BIGINT, a VARCHAR", "format = 'csv', header = true"},
		{"r", "in/r.csv", "k BIGINT, b VARCHAR", "format = 'csv', header = true"}},
		sql: "SELECT a, b FROM l FULL OUTER JOIN r ON l.k = r.k ORDER BY a NULLS LAST, b NULLS LAST"},
	{id: "JOIN-01", inputs: []input{
		{"l", "in/l.csv", "k BIGINT, a VARCHAR", "format = 'csv', header = true"},
		{"r", "in/r.csv", "k BIGINT, b VARCHAR", "format = 'csv', header = true"}}, mode: "append",
		sql: "SELECT a, b FROM l JOIN r ON l.k = r.k ORDER BY a", expect: "a,b\nl1,r1\n"},
	{id: "JOIN-03", inputs: []input{
		{"l", "in/l.csv", "code VARCHAR, x VARCHAR", "format = 'csv', header = true"},
		{"r", "in/r.csv", "code VARCHAR, y VARCHAR", "format = 'csv', header = true"}}, mode: "append",
		sql: "SELECT l.code, x, y FROM l JOIN r ON l.code = r.code ORDER BY x"},
	{id: "JOIN-09", inputs: []input{
		{"l", "in/l.csv", "k BIGINT, a BIGINT", "format = 'csv', header = true"},
		{"r", "in/r.csv", "k BIGINT, b BIGINT", "format = 'csv', header = true"}},
		sql: `SELECT l.k, count(*) AS n, sum(a) AS sa, sum(b) AS sb, count(DISTINCT a * 10000 + b) AS d
			FROM l JOIN r ON l.k = r.k GROUP BY l.k ORDER BY l.k`},
	{id: "JSON-01", inputs: one("in", "id BIGINT, k VARCHAR", "format = 'json'"), mode: "complete",
		sql: "SELECT id, count(*) AS n FROM t GROUP BY id ORDER BY id"},
	{id: "JSON-04", inputs: one("in", "id BIGINT, s VARCHAR", "format = 'json'"), mode: "append",
		sql: "SELECT id, char_length(s) AS chars, octet_length(s) AS bytes FROM t WHERE id <> 2 ORDER BY id"},
	{id: "JSON-06", inputs: one("in", "id BIGINT, v BIGINT, t VARCHAR", "format = 'json'"), mode: "append",
		sql: "SELECT id, v FROM t WHERE id IS NOT NULL ORDER BY id"},
	{id: "JSON-07", inputs: one("in", "id BIGINT", "format = 'json'"), mode: "complete", sql: "SELECT count(*) AS n, sum(id) AS s FROM t"},
	{id: "PQ-01", inputs: one("in", "id BIGINT, s VARCHAR", "format = 'parquet'"), mode: "complete",
		sql: "SELECT count(*) AS n, sum(id) AS s, count(s) AS ns FROM t"},
	{id: "PQ-01", inputs: one("in", "", ""), mode: "complete", sql: "SELECT count(*) AS n, sum(id) AS s, count(s) AS ns FROM t"},
	{id: "PQ-04", inputs: one("in", "id BIGINT, d DECIMAL(9,2)", "format = 'parquet'"), mode: "complete",
		sql: "SELECT d, count(*) AS n FROM t WHERE d >= -5.00 AND d <= 5.00 GROUP BY d ORDER BY d"},
	{id: "PQ-04", inputs: one("in", "", ""), mode: "complete",
		sql: "SELECT d, count(*) AS n FROM t WHERE d >= -5.00 AND d <= 5.00 GROUP BY d ORDER BY d"},
	{id: "PQ-06", inputs: one("in", "id BIGINT, v BIGINT, s VARCHAR", "format = 'parquet'"), mode: "append",
		sql: "SELECT id, v, s FROM t WHERE v IS NOT NULL OR s IS NOT NULL ORDER BY id"},
	{id: "PQ-11", inputs: one("in", "id BIGINT, city VARCHAR, v BIGINT", "format = 'parquet'"), mode: "append",
		sql: "SELECT id, city, v FROM t ORDER BY id"},
	{id: "PQ-14", inputs: one("in", "id BIGINT, ts TIMESTAMP", "format = 'parquet'"), mode: "complete",
		sql: "SELECT ts, count(*) AS n, sum(id) AS s FROM t GROUP BY ts ORDER BY ts"},
	{id: "TS-01", inputs: one("in", "ts TIMESTAMP, v BIGINT", "format = 'csv', header = true"), mode: "complete",
		sql: `SELECT window.start AS window_start, sum(v) AS s FROM t
			GROUP BY window(ts, INTERVAL '10 seconds', INTERVAL '10 seconds', INTERVAL '5 seconds') ORDER BY window_start`},
	{id: "TS-03", inputs: one("in", "id BIGINT, ts TIMESTAMP", "format = 'csv', header = true"), mode: "append",
		env: []string{"TZ=America/New_York"}, sql: "SELECT id, extract(epoch FROM ts) AS sec FROM t ORDER BY id"},
	{id: "TS-03", inputs: one("in", "", ""), mode: "append",
		env: []string{"TZ=Asia/Kathmandu"}, sql: "SELECT id, extract(epoch FROM ts) AS sec FROM t ORDER BY id"},
	{id: "TS-04", inputs: one("in", "id BIGINT, ts TIMESTAMP", "format = 'csv', header = true"), mode: "append",
		sql: "SELECT id, unix_micros(ts) % 1000000 AS us FROM t ORDER BY id"},
}

// oneRead runs every case that is one read: as a bounded query with several
// thread counts and batch sizes; as a stream all at once, one file a batch, and file by
// file with a restart after each.
func oneRead(t *testing.T) {
	t.Parallel()
	seen := map[string]int{}
	for _, c := range oneReadCases {
		name := c.id
		if seen[c.id]++; seen[c.id] > 1 {
			name = fmt.Sprintf("%s-%d", c.id, seen[c.id])
		}
		want := expected(t, c.id)
		if c.expect != "" {
			want = parseTable(t, c.expect)
		}
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			t.Run("batch", func(t *testing.T) { t.Parallel(); c.batch(t, want) })
			if c.mode == "" {
				return
			}
			t.Run("stream", func(t *testing.T) { t.Parallel(); c.stream(t, want, 0) })
			t.Run("one-file-a-batch", func(t *testing.T) { t.Parallel(); c.stream(t, want, 1) })
			t.Run("restarts", func(t *testing.T) { t.Parallel(); c.restarts(t, want) })
		})
	}
}

// world holds the files of the case.
func (c *oneReadCase) world(t *testing.T) *world {
	w := newWorld(t)
	w.env = c.env
	for name, data := range c.files(t) {
		w.put(name, data)
	}
	return w
}

// files are the input files by their path.
func (c *oneReadCase) files(t *testing.T) map[string][]byte {
	t.Helper()
	if c.id == "FD-01" {
		return oddNames()
	}
	root := filepath.Join(casesDir, c.id)
	files := map[string][]byte{}
	err := filepath.WalkDir(filepath.Join(root, "in"), func(p string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		data, err := os.ReadFile(p)
		if err != nil {
			return err
		}
		rel, err := filepath.Rel(root, p)
		files[filepath.ToSlash(rel)] = data
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return files
}

// oddNames are the files of FD-01, whose names a source archive could not hold: each
// has one power of two.
func oddNames() map[string][]byte {
	names := []string{
		"a b.csv", "a%20b.csv", "a+b.csv", "100%.csv", "x[1].csv", "x1.csv", "star*.csv", "q?.csv", "c:d.csv", "k=v.csv",
		"#h.csv", "u\u0308.csv", "\u00fc.csv", "中文.csv", "o'b.csv", "semi;x.csv", "{b}.csv", "UP.CSV",
	}
	files := map[string][]byte{}
	for i, name := range names {
		files["in/"+name] = fmt.Appendf(nil, "id\n%d\n", 1<<i)
	}
	return files
}

// declare writes the CREATE statements of the inputs.
func (c *oneReadCase) declare(kind, more string) string {
	var sb strings.Builder
	for _, in := range c.inputs {
		fmt.Fprintf(&sb, "CREATE %s %s ", kind, in.name)
		if in.columns != "" {
			fmt.Fprintf(&sb, "(%s) ", in.columns)
		}
		options := []string{"path = '" + in.path + "'"}
		for _, o := range []string{in.options, more} {
			if o != "" {
				options = append(options, o)
			}
		}
		fmt.Fprintf(&sb, "WITH (%s);\n", strings.Join(options, ", "))
	}
	return sb.String()
}

func (c *oneReadCase) batch(t *testing.T, want table) {
	w := c.world(t)
	sql := c.declare("TABLE", "") + c.sql + ";\n"
	for _, flags := range [][]string{nil, {"--set", "threads=1"}, {"--set", "threads=8", "--set", "batch_rows=3"}, {"--set", "threads=2", "--set", "batch_rows=1"}} {
		if d := w.query(sql, flags...).diff(want, true); d != "" {
			t.Errorf("%v: %s", flags, d)
		}
	}
}

// streamed is the pipeline of the case as a stream.
func (c *oneReadCase) streamed(maxFiles int) string {
	more := ""
	if maxFiles > 0 {
		more = fmt.Sprintf("max_files_per_trigger = %d", maxFiles)
	}
	query, _, _ := strings.Cut(c.sql, " ORDER BY ")
	return c.declare("STREAM", more) +
		fmt.Sprintf("CREATE SINK result WITH (path = 'out', format = 'json', output_mode = '%s', checkpoint = 'ckpt');\nINSERT INTO result %s;\n", c.mode, query)
}

// answer reads what a stream wrote, in the column order of want.
func (w *world) answer(want table) table {
	w.t.Helper()
	return w.query(`SELECT "` + strings.Join(want.names, `", "`) + `" FROM 'out'`)
}

func (c *oneReadCase) stream(t *testing.T, want table, maxFiles int) {
	for _, threads := range []string{"1", "4"} {
		w := c.world(t)
		w.mustRun(c.streamed(maxFiles), "--set", "threads="+threads)
		if d := w.answer(want).diff(want, false); d != "" {
			t.Errorf("threads=%s: %s", threads, d)
		}
	}
}

// restarts gives the stream one file, runs it to its end, gives it the next.
func (c *oneReadCase) restarts(t *testing.T, want table) {
	w := newWorld(t)
	w.env = c.env
	files := c.files(t)
	names := make([]string, 0, len(files))
	for name := range files {
		names = append(names, name)
	}
	slices.Sort(names)
	if len(names) > 6 {
		names = names[:6]
		for name, data := range files {
			if !slices.Contains(names, name) {
				w.put(name, data) // the rest is there from the first
			}
		}
	}
	for _, name := range names {
		w.put(name, files[name])
		w.mustRun(c.streamed(0))
	}
	if d := w.answer(want).diff(want, false); d != "" {
		t.Error(d)
	}
}
