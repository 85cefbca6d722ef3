package tidemill_test

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"
)

// stepCases are those that need the running engine: files in parts, stops, kills.
var stepCases = map[string]func(t *testing.T, want table){
	"AGG-01":  overflow,
	"CK-02":   damagedLog,
	"CK-05":   changedQuery,
	"PQ-08":   damagedFile,
	"SINK-01": killedWhileWriting,
	"SINK-06": nullEmptyNull,
	"WM-02":   atTheWatermark,
}

func steps(t *testing.T) {
	t.Parallel()
	for id, run := range stepCases {
		t.Run(id, func(t *testing.T) { t.Parallel(); run(t, expected(t, id)) })
	}
}

func caseDir(id, name string) string { return filepath.Join(casesDir, id, "in", name) }

// refuses wants an exit code and words in the message, one paragraph long.
func (o outcome) refuses(t *testing.T, code int, words ...string) {
	t.Helper()
	if o.code != code {
		t.Errorf("exit %d, want %d\n%s", o.code, code, o.stderr)
	}
	for _, word := range words {
		if !strings.Contains(strings.ToLower(o.stderr), strings.ToLower(word)) {
			t.Errorf("the message has no %q:\n%s", word, o.stderr)
		}
	}
}

func overflow(t *testing.T, want table) {
	w := newWorld(t)
	w.copyIn(caseDir("AGG-01", ""), "in")
	decl := "CREATE %s t (k VARCHAR, v BIGINT) WITH (path = 'in', format = 'csv', header = true);\n"
	const sum, cast = "SELECT k, sum(v) AS s FROM t GROUP BY k", "SELECT k, sum(CAST(v AS DECIMAL(38,0))) AS s FROM t GROUP BY k"
	table := fmt.Sprintf(decl, "TABLE")
	o := w.tidemill("query", table+sum)
	o.refuses(t, 1, "overflow", "decimal")
	if o.stdout != "" {
		t.Errorf("rows after an error: %q", o.stdout)
	}
	if d := w.query(table+cast+" ORDER BY k").diff(want, true); d != "" {
		t.Error(d)
	}
	stream := fmt.Sprintf(decl, "STREAM") + "CREATE SINK r WITH (path = 'out%d', format = 'csv', output_mode = 'complete');\nINSERT INTO r "
	w.run(fmt.Sprintf(stream, 1)+sum).refuses(t, 1, "overflow", "decimal")
	w.mustRun(fmt.Sprintf(stream, 2) + cast)
	if d := w.query("SELECT k, s FROM 'out2' ORDER BY k").diff(want, true); d != "" {
		t.Error(d)
	}
	overflowInState(t)
}

// overflowInState adds to a stored sum until it does not fit.
func overflowInState(t *testing.T) {
	w := newWorld(t)
	const job = `CREATE STREAM t (k VARCHAR, v BIGINT) WITH (path = 'in', format = 'csv', header = true);
		CREATE SINK r WITH (path = 'out', format = 'csv', output_mode = 'complete');
		INSERT INTO r SELECT k, sum(v) AS s FROM t GROUP BY k`
	w.put("in/1.csv", []byte("k,v\na,9000000000000000000\n"))
	w.mustRun(job)
	w.put("in/2.csv", []byte("k,v\na,9000000000000000000\n"))
	w.run(job).refuses(t, 1, "overflow", "decimal")
	if d := w.query("SELECT k, s FROM 'out'").diff(parseTable(t, "k,s\na,9000000000000000000\n"), true); d != "" {
		t.Errorf("after the failure: %s", d)
	}
}

const copyJob = `CREATE STREAM t (id BIGINT, v BIGINT) WITH (path = 'landing', format = 'csv', header = true);
CREATE SINK sink WITH (path = 'out', format = 'csv', checkpoint = 'ckpt');
INSERT INTO sink SELECT id, v FROM t;
`

func damagedLog(t *testing.T, want table) {
	damages := map[string]func(w *world){
		"offsets empty": func(w *world) { w.cut("ckpt/offsets", 0) },
		"offsets half":  func(w *world) { w.cut("ckpt/offsets", 0.5) },
		"commits empty": func(w *world) { w.cut("ckpt/commits", 0) },
		"commits half":  func(w *world) { w.cut("ckpt/commits", 0.5) },
		"stray offsets": func(w *world) { w.stray("ckpt/offsets") },
		"stray commits": func(w *world) { w.stray("ckpt/commits") },
	}
	for name, damage := range damages {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			for i, step := range []string{"step1", "step2", "step3"} {
				if i == 2 {
					damage(w)
				}
				w.copyIn(caseDir("CK-02", step), "landing")
				o := w.run(copyJob)
				if i == 2 && o.code == 3 && !strings.HasPrefix(name, "stray") {
					o.refuses(t, 3, "ckpt/"+name[:7])
					return
				}
				o.refuses(t, 0)
			}
			if d := w.query("SELECT id, v FROM 'out' ORDER BY id").diff(want, true); d != "" {
				t.Error(d)
			}
		})
	}
}

// logNumbers are the batches a log holds.
func (w *world) logNumbers(dir string) []int {
	entries, err := os.ReadDir(w.path(dir))
	if err != nil && !os.IsNotExist(err) {
		w.t.Fatal(err)
	}
	var numbers []int
	for _, e := range entries {
		digits := e.Name()[:len(e.Name())-len(strings.TrimLeft(e.Name(), "0123456789"))]
		if n, err := strconv.Atoi(digits); err == nil {
			numbers = append(numbers, n)
		}
	}
	slices.Sort(numbers)
	return numbers
}

// newestOf is the file of a log's newest batch.
func (w *world) newestOf(dir string) string {
	n := w.logNumbers(dir)
	if len(n) == 0 {
		w.t.Fatalf("%s is empty", dir)
	}
	return filepath.Join(w.path(dir), strconv.Itoa(n[len(n)-1]))
}

// cut leaves a part of the newest file of a log.
func (w *world) cut(dir string, part float64) {
	file := w.newestOf(dir)
	info, err := os.Stat(file)
	if err == nil {
		err = os.Truncate(file, int64(float64(info.Size())*part))
	}
	if err != nil {
		w.t.Fatal(err)
	}
}

func (w *world) stray(dir string) {
	next := len(w.logNumbers(dir))
	if err := os.WriteFile(filepath.Join(w.path(dir), strconv.Itoa(next)+".tmp"), []byte("\x00garbage"), 0o644); err != nil {
		w.t.Fatal(err)
	}
}

func changedQuery(t *testing.T, want table) {
	const job = `CREATE STREAM t (k VARCHAR, v BIGINT) WITH (path = 'landing', format = 'csv', header = true);
CREATE SINK sink WITH (path = 'out', format = 'csv', output_mode = 'complete', checkpoint = 'ckpt');
INSERT INTO sink SELECT k, sum(v) AS s FROM t GROUP BY k;
`
	w := newWorld(t)
	w.copyIn(caseDir("CK-05", "step1"), "landing")
	w.mustRun(job)
	w.copyIn(caseDir("CK-05", "step2"), "landing")
	before := w.tree("out", "ckpt")
	changes := [][2]string{
		{"sum(v)", "max(v)"}, {"GROUP BY k", "GROUP BY v"}, {"v BIGINT", "v DOUBLE"}, {"path = 'landing'", "path = 'landing2'"},
	}
	for _, c := range changes {
		job := strings.Replace(job, c[0], c[1], 1)
		if c[1] == "GROUP BY v" {
			job = strings.Replace(job, "SELECT k,", "SELECT v AS k,", 1)
		}
		w.run(job).refuses(t, 3, "ckpt")
		if after := w.tree("out", "ckpt"); after != before {
			t.Errorf("%s: something was written\nbefore\n%s\nafter\n%s", c[1], before, after)
		}
	}
	w.mustRun(job)
	if d := w.query("SELECT k, s FROM 'out' ORDER BY k").diff(want, true); d != "" {
		t.Error(d)
	}
}

// tree lists files with size and modification time.
func (w *world) tree(dirs ...string) string {
	var sb strings.Builder
	for _, dir := range dirs {
		err := filepath.Walk(w.path(dir), func(p string, info os.FileInfo, err error) error {
			if err == nil && !info.IsDir() && filepath.Base(p) != "lock" {
				fmt.Fprintln(&sb, p, info.Size(), info.ModTime().UnixNano())
			}
			return err
		})
		if err != nil {
			w.t.Fatal(err)
		}
	}
	return sb.String()
}

func damagedFile(t *testing.T, want table) {
	w := newWorld(t)
	w.copyIn(caseDir("PQ-08", ""), "in")
	const job = `CREATE STREAM t (id BIGINT) WITH (path = 'in', format = 'parquet'%s);
CREATE SINK r WITH (path = '%s', format = 'csv', checkpoint = '%[2]s.c');
INSERT INTO r SELECT id FROM t;
`
	damaged := int64(0)
	for _, p := range w.mustRun(fmt.Sprintf(job, ", mode = 'drop'", "dropped")) {
		for _, s := range p.Sources {
			damaged += s.NumMalformedFiles
		}
	}
	got := w.query("SELECT count(*) AS n, sum(id) AS s, " + strconv.FormatInt(damaged, 10) + " AS damaged FROM 'dropped'")
	if d := got.diff(want, true); d != "" {
		t.Errorf("mode drop: %s", d)
	}
	// By default a damaged file ends the query and is named; once all are away it goes on.
	bad := []string{"cut_footer", "cut_half", "empty", "text"}
	for range len(bad) + 1 {
		o := w.run(fmt.Sprintf(job, "", "strict"))
		if o.code == 0 {
			break
		}
		o.refuses(t, 1, ".parquet")
		i := slices.IndexFunc(bad, func(name string) bool { return strings.Contains(o.stderr, name+".parquet") })
		if i < 0 {
			t.Fatalf("no damaged file is named: %s", o.stderr)
		}
		if err := os.Remove(w.path("in/" + bad[i] + ".parquet")); err != nil {
			t.Fatal(err)
		}
		bad = slices.Delete(bad, i, i+1)
	}
	w.mustRun(fmt.Sprintf(job, "", "strict"))
	got = w.query("SELECT count(*) AS n, sum(id) AS s, 4 AS damaged FROM 'strict'")
	if d := got.diff(want, true); d != "" {
		t.Errorf("mode fail, repaired: %s", d)
	}
}

// killedWhileWriting kills the process at moments spread over its run. What a plain
// glob sees is whole files at every moment, and at the end each row once.
func killedWhileWriting(t *testing.T, want table) {
	kills := 25
	if testing.Short() {
		kills = 8
	}
	for _, format := range []string{"csv", "parquet"} {
		t.Run(format, func(t *testing.T) {
			t.Parallel()
			job := fmt.Sprintf(`CREATE STREAM t (id BIGINT) WITH (path = 'landing', format = 'csv', header = true, max_files_per_trigger = 1);
CREATE SINK sink WITH (path = 'out', format = '%s', checkpoint = 'ckpt');
INSERT INTO sink SELECT id FROM t;
`, format)
			start := time.Now()
			killed(t, job, format, time.Hour, want)
			usual := time.Since(start)
			for i := range kills {
				after := usual * time.Duration(i+1) / time.Duration(kills+1)
				killed(t, job, format, after, want)
			}
		})
	}
}

func killed(t *testing.T, job, format string, after time.Duration, want table) {
	t.Helper()
	w := newWorld(t)
	for _, step := range []string{"step1", "step2"} {
		w.copyIn(caseDir("SINK-01", step), "landing")
	}
	w.runAndKill(job, after)
	if files, _ := filepath.Glob(w.path("out/*." + format)); len(files) > 0 {
		got := w.query("SELECT count(*) % 50 AS part, count(*) - count(DISTINCT id) AS twice FROM 'out/*." + format + "'")
		if d := got.diff(parseTable(t, "part,twice\n0,0\n"), true); d != "" {
			t.Errorf("killed after %v: %s", after, d)
		}
	}
	w.mustRun(job)
	got := w.query("SELECT count(*) AS n, count(DISTINCT id) AS d, sum(id) AS s FROM 'out/*." + format + "'")
	if d := got.diff(want, true); d != "" {
		t.Errorf("killed after %v: %s", after, d)
	}
}

// runAndKill runs a file of SQL and kills the process, if it lives that long. It says
// whether it had ended by itself.
func (w *world) runAndKill(sql string, after time.Duration) bool {
	w.t.Helper()
	if err := os.WriteFile(w.path("job.sql"), []byte(sql), 0o644); err != nil {
		w.t.Fatal(err)
	}
	c := w.command("run", "--trigger", "available-now", "--progress", "none", "job.sql")
	var stderr bytes.Buffer
	c.Stderr = &stderr
	if err := c.Start(); err != nil {
		w.t.Fatal(err)
	}
	kill := time.AfterFunc(after, func() { _ = c.Process.Kill() })
	err := c.Wait()
	if kill.Stop() && err != nil {
		w.t.Fatalf("run, to be killed after %v: %v\n%s", after, err, stderr.String())
	}
	return err == nil
}

func nullEmptyNull(t *testing.T, want table) {
	w := newWorld(t)
	w.copyIn(caseDir("SINK-06", ""), "in")
	const job = `CREATE STREAM t (id BIGINT, s VARCHAR) WITH (path = 'in', format = 'json');
CREATE SINK r WITH (path = '%s', format = 'csv'%s);
INSERT INTO r SELECT %s FROM t;
`
	const what = "CASE WHEN s IS NULL THEN 'null' WHEN s = '' THEN 'empty' ELSE 'text' END AS what"
	w.mustRun(fmt.Sprintf(job, "two", "", "id, s"))
	if d := w.query("SELECT id, "+what+" FROM 'two' ORDER BY id").diff(want, true); d != "" {
		t.Error(d)
	}
	w.run(fmt.Sprintf(job, "single", "", "s")).refuses(t, 1, "column s", "null_value")
	w.mustRun(fmt.Sprintf(job, "worded", `, null_value = '\N'`, "s"))
	got := w.query(`SELECT ` + what + `, count(*) AS n FROM read_csv('worded', header => true, null_value => '\N') GROUP BY what ORDER BY what`)
	if d := got.diff(parseTable(t, "what,n\nempty,1\nnull,2\ntext,4\n"), true); d != "" {
		t.Errorf("one column with a null word: %s", d)
	}
}

func atTheWatermark(t *testing.T, want table) {
	const job = `CREATE STREAM t (ts TIMESTAMP, v BIGINT, WATERMARK FOR ts AS ts - INTERVAL '0 seconds')
WITH (path = 'landing', format = 'csv', header = true);
CREATE SINK r WITH (path = 'out', format = 'csv');
INSERT INTO r SELECT window.start AS window_start, count(*) AS n, sum(v) AS s FROM t GROUP BY window(ts, INTERVAL '10 seconds');
`
	w := newWorld(t)
	for _, step := range []string{"step1", "step2"} {
		w.copyIn(caseDir("WM-02", step), "landing")
		w.mustRun(job)
	}
	if d := w.query("SELECT window_start, n, s FROM 'out' ORDER BY window_start").diff(want, true); d != "" {
		t.Error(d)
	}
}

// killedOften kills a real process at random moments over a folder of files and
// starts it again, until it has ended by itself: the output then is the batch answer.
func killedOften(t *testing.T) {
	t.Parallel()
	files, kills := 40, 8
	if testing.Short() {
		files, kills = 10, 3
	}
	const stream = `CREATE STREAM t (ts TIMESTAMP, station VARCHAR, temp DOUBLE, rain BIGINT, WATERMARK FOR ts AS ts - INTERVAL '1 hour')
WITH (path = 'landing', format = 'csv', header = true, max_files_per_trigger = 1);
`
	jobs := map[string]struct{ sink, query, read, batch string }{
		"append": {"path = 'out', format = 'parquet'",
			"SELECT ts, station, temp * 2 AS double, rain FROM t WHERE rain % 3 <> 0",
			"SELECT ts, station, double, rain FROM 'out/*.parquet' ORDER BY ts, station",
			"SELECT ts, station, temp * 2 AS double, rain FROM t WHERE rain % 3 <> 0 ORDER BY ts, station"},
		"complete": {"path = 'out', format = 'csv', output_mode = 'complete'",
			"SELECT station, count(*) AS n, sum(rain) AS rain, avg(temp) AS temp, count(DISTINCT rain) AS d FROM t GROUP BY station",
			"SELECT station, n, rain, temp, d FROM 'out' ORDER BY station",
			"SELECT station, count(*) AS n, sum(rain) AS rain, avg(temp) AS temp, count(DISTINCT rain) AS d FROM t GROUP BY station ORDER BY station"},
		"windows": {"path = 'out', format = 'json'",
			"SELECT window.start AS start, station, count(*) AS n, max(temp) AS top FROM t GROUP BY window(ts, INTERVAL '6 hours'), station",
			"SELECT start, station, n, top FROM 'out/*.json' ORDER BY start, station",
			`SELECT window.start AS start, station, count(*) AS n, max(temp) AS top FROM t GROUP BY window(ts, INTERVAL '6 hours'), station
				HAVING window.end <= (SELECT max(ts) - INTERVAL '1 hour' FROM t) ORDER BY start, station`},
	}
	for name, j := range jobs {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			weather(w, files)
			job := stream + "CREATE SINK r WITH (" + j.sink + ", checkpoint = 'ckpt');\nINSERT INTO r " + j.query + ";\n"
			random := rand.New(rand.NewPCG(1, uint64(len(name))))
			ended := false
			for i := 0; i < kills && !ended; i++ {
				ended = w.runAndKill(job, 20*time.Millisecond+time.Duration(random.Int64N(int64(400*time.Millisecond))))
			}
			w.mustRun(job)
			table := strings.NewReplacer("STREAM", "TABLE", ", max_files_per_trigger = 1", "", ", WATERMARK FOR ts AS ts - INTERVAL '1 hour'", "").Replace(stream)
			want := w.query(table + j.batch)
			if d := w.query(j.read).diff(want, true); d != "" || len(want.rows) == 0 {
				t.Error(d)
			}
			if o := w.tidemill("checkpoint", "verify", "ckpt"); o.code != 0 {
				t.Errorf("checkpoint verify: exit %d %s%s", o.code, o.stdout, o.stderr)
			}
		})
	}
}

// weather writes hourly readings of a few stations, some a little out of order.
func weather(w *world, files int) {
	random := rand.New(rand.NewPCG(7, 7))
	at := time.Date(2024, 1, 1, 0, 0, 0, 0, time.UTC)
	for i := range files {
		var sb strings.Builder
		sb.WriteString("ts,station,temp,rain\n")
		for range 50 {
			at = at.Add(time.Duration(1+random.IntN(20)) * time.Minute)
			ts := at.Add(-time.Duration(random.IntN(50)) * time.Minute)
			fmt.Fprintf(&sb, "%s,s%d,%.1f,%d\n", ts.Format("2006-01-02 15:04:05"), random.IntN(5), random.Float64()*30, random.IntN(9))
		}
		w.put(fmt.Sprintf("landing/%03d.csv", i), []byte(sb.String()))
	}
}
