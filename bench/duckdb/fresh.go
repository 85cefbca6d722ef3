package main

import (
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"time"

	"github.com/tidemill/tidemill/bench/gen"
	"github.com/tidemill/tidemill/bench/harness"
	"github.com/tidemill/tidemill/internal/vfs"
)

// freshness is the flags of fresh: files land one after another, and after each the
// count and maximum of every window and key must be right.
type freshness struct {
	tidemill, dir, format string
	files                 int
	rows                  int64 // of a file
	threads               int
}

func fresh(ctx context.Context, args []string) error {
	var c freshness
	f := flag.NewFlagSet("fresh", flag.ContinueOnError)
	f.StringVar(&c.tidemill, "tidemill", "tidemill", "the tidemill binary")
	f.StringVar(&c.dir, "dir", filepath.Join(os.TempDir(), "tidemill-bench"), "where the data is, or is made")
	f.StringVar(&c.format, "format", "csv", "format of the files: csv, jsonl, parquet")
	f.IntVar(&c.files, "files", 100, "number of files")
	f.Int64Var(&c.rows, "rows", 50_000, "rows of a file")
	f.IntVar(&c.threads, "threads", 2, "threads of both engines")
	if err := f.Parse(args); err != nil {
		return err
	}
	return c.run(ctx, os.Stdout)
}

// keptFresh is the result of one engine.
type keptFresh struct {
	name    string
	batches []time.Duration
	peakKB  int64
	note    string
}

func (c *freshness) run(ctx context.Context, out io.Writer) error {
	fsys := vfs.OS()
	landing := filepath.ToSlash(filepath.Join(c.dir, fmt.Sprintf("landing-%d-%d-%s", c.files, c.rows, c.format)))
	if _, err := fsys.Stat(landing + "/done"); err != nil {
		if _, err := gen.Landing(fsys, landing, c.format, gen.Events(1, int64(c.files)*c.rows, 1000), c.rows); err != nil {
			return err
		}
		if err := vfs.WriteAtomic(fsys, landing+"/done", nil); err != nil {
			return err
		}
	}
	ours, err := c.runTidemill(ctx, landing)
	if err != nil {
		return err
	}
	theirs, err := c.runUpserts(ctx, landing)
	if err != nil {
		return err
	}
	c.report(out, ours, theirs)
	return nil
}

const freshJob = `
CREATE STREAM events (ts TIMESTAMP, key BIGINT, value DOUBLE)
  WITH (path = '%[1]s/*.%[2]s', format = '%[3]s', max_files_per_trigger = 1%[4]s);
CREATE SINK result WITH (connector = 'noop', output_mode = 'update', checkpoint = '%[5]s', trigger = 'available-now');
INSERT INTO result
SELECT window.start AS start, key, count(*) AS n, max(value) AS top
FROM events GROUP BY window(ts, INTERVAL '10 seconds'), key;
`

// runTidemill runs the files through one streaming query, a micro-batch a file.
func (c *freshness) runTidemill(ctx context.Context, landing string) (keptFresh, error) {
	work, err := os.MkdirTemp(c.dir, "fresh-")
	if err != nil {
		return keptFresh{}, err
	}
	defer os.RemoveAll(work)
	header, format := "", c.format
	switch c.format {
	case "csv":
		header = ", header = true"
	case "jsonl":
		format = "json"
	}
	job := filepath.Join(work, "job.sql")
	text := fmt.Sprintf(freshJob, landing, c.format, format, header, filepath.ToSlash(filepath.Join(work, "checkpoint")))
	if err := os.WriteFile(job, []byte(text), 0o600); err != nil {
		return keptFresh{}, err
	}
	m, err := harness.Run(ctx, c.tidemill, "run", "--progress", "jsonl", "--set", fmt.Sprintf("threads=%d", c.threads), job)
	if err != nil {
		return keptFresh{}, err
	}
	k := keptFresh{name: "tidemill", peakKB: m.PeakBytes / 1024}
	lines := strings.Split(string(m.Stderr), "\n")
	for _, line := range lines {
		var p struct {
			NumInputRows int64            `json:"numInputRows"`
			DurationMs   map[string]int64 `json:"durationMs"`
			State        []struct {
				Rows int64 `json:"numRowsTotal"`
			} `json:"stateOperators"`
		}
		if json.Unmarshal([]byte(line), &p) != nil || p.NumInputRows == 0 {
			continue
		}
		k.batches = append(k.batches, time.Duration(p.DurationMs["triggerExecution"])*time.Millisecond)
		if len(p.State) > 0 {
			k.note = fmt.Sprintf("%d groups", p.State[0].Rows)
		}
	}
	if len(k.batches) != c.files {
		return k, fmt.Errorf("%d batches with rows, want %d:\n%s", len(k.batches), c.files, strings.Join(lines, "\n"))
	}
	return k, nil
}

// runUpserts does by hand in DuckDB what the streaming query does: one INSERT … ON
// CONFLICT a file into a table on disk with a primary key.
func (c *freshness) runUpserts(ctx context.Context, landing string) (keptFresh, error) {
	work, err := os.MkdirTemp(c.dir, "fresh-")
	if err != nil {
		return keptFresh{}, err
	}
	defer os.RemoveAll(work)
	db, err := openDuckDB(ctx, filepath.Join(work, "fresh.db"), fmt.Sprint(c.threads))
	if err != nil {
		return keptFresh{}, err
	}
	defer db.Close()
	if _, err := db.ExecContext(ctx, "CREATE TABLE result (w TIMESTAMP, key BIGINT, n BIGINT, top DOUBLE, PRIMARY KEY (w, key))"); err != nil {
		return keptFresh{}, err
	}
	files, err := filepath.Glob(landing + "/*." + c.format)
	if err != nil {
		return keptFresh{}, err
	}
	slices.Sort(files)
	k := keptFresh{name: "DuckDB INSERT ON CONFLICT"}
	for _, file := range files {
		start := time.Now()
		_, err := db.ExecContext(ctx, fmt.Sprintf(`INSERT INTO result
SELECT time_bucket(INTERVAL '10 seconds', ts::TIMESTAMP) AS w, key, count(*) AS n, max(value) AS top FROM '%s' GROUP BY ALL
ON CONFLICT (w, key) DO UPDATE SET n = n + excluded.n, top = greatest(top, excluded.top)`, file))
		if err != nil {
			return k, err
		}
		k.batches = append(k.batches, time.Since(start))
	}
	k.note, err = countGroups(ctx, db)
	return k, err
}

func countGroups(ctx context.Context, db *sql.DB) (string, error) {
	row, _, err := firstRow(ctx, db, "SELECT count(*) FROM result")
	if err != nil || len(row) != 1 {
		return "", errors.Join(err, errors.New("no count"))
	}
	return row[0] + " groups", nil
}

func (c *freshness) report(out io.Writer, all ...keptFresh) {
	fmt.Fprintf(out, "goos: %s\ngoarch: %s\n", runtime.GOOS, runtime.GOARCH)
	for _, k := range all {
		name := strings.ReplaceAll(k.name, " ", "_")
		fmt.Fprintf(out, "BenchmarkFresh/%s/%s \t%d\t%d ns/op\t%d p50-ns\t%d p99-ns\n", c.format, name, len(k.batches),
			mean(k.batches).Nanoseconds(), quantile(k.batches, 0.5).Nanoseconds(), quantile(k.batches, 0.99).Nanoseconds())
	}
	fmt.Fprintf(out, "\n%d %s files of %d rows, %d threads, time a file:\n\n| engine | mean s | p50 | p99 | last 10 | peak MB | |\n|---|---:|---:|---:|---:|---:|---|\n",
		c.files, c.format, c.rows, c.threads)
	for _, k := range all {
		last := k.batches[max(0, len(k.batches)-10):]
		fmt.Fprintf(out, "| %s | %.3f | %.3f | %.3f | %.3f | %d | %s |\n", k.name, mean(k.batches).Seconds(),
			quantile(k.batches, 0.5).Seconds(), quantile(k.batches, 0.99).Seconds(), mean(last).Seconds(), k.peakKB/1024, k.note)
	}
}

func mean(list []time.Duration) time.Duration {
	sum := time.Duration(0)
	for _, d := range list {
		sum += d
	}
	return sum / time.Duration(max(1, len(list)))
}

func quantile(list []time.Duration, q float64) time.Duration {
	sorted := slices.Sorted(slices.Values(list))
	return sorted[min(len(sorted)-1, int(q*float64(len(sorted))))]
}
