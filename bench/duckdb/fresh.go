package main

import (
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"io"
	"os"
	"path/filepath"
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
	out                   *output
}

func fresh(ctx context.Context, args []string) error {
	c := freshness{out: newOutput("fresh")}
	f := flag.NewFlagSet("fresh", flag.ContinueOnError)
	c.out.flags(f)
	f.StringVar(&c.tidemill, "tidemill", "tidemill", "the tidemill binary")
	f.StringVar(&c.dir, "dir", filepath.Join(os.TempDir(), "tidemill-bench"), "where the data is, or is made")
	f.StringVar(&c.format, "format", "csv", "format of the files: csv, jsonl, parquet")
	f.IntVar(&c.files, "files", 100, "number of files")
	f.Int64Var(&c.rows, "rows", 50_000, "rows of a file")
	f.IntVar(&c.threads, "threads", 2, "threads of both engines")
	if err := c.out.parse(f, args, "files", "rows", "threads"); err != nil {
		return err
	}
	if err := harness.Known("format", c.format, gen.Formats); err != nil {
		return err
	}
	return c.run(ctx, os.Stdout)
}

// keptFresh is how one way to keep the result did.
type keptFresh struct {
	name  string
	times []time.Duration // of each file
	harness.Measurement
	groups int64
}

// freshColumns are those of fresh. The ratio stands in the rows of DuckDB: the time of
// Tidemill's update mode as a share of theirs.
var freshColumns = append([]string{"mean s", "p50 s", "p99 s", "last 10 s", "CPU s a file", harness.RatioColumn, "CPU ratio", "groups"}, harness.UsageColumns...)

func (c *freshness) run(ctx context.Context, out io.Writer) error {
	landing, err := c.landing()
	if err != nil {
		return err
	}
	update, err := c.runTidemill(ctx, landing, updateMode)
	if err != nil {
		return err
	}
	c.add(update, nil)
	closed, err := c.runTidemill(ctx, landing, appendMode)
	if err != nil {
		return err
	}
	c.add(closed, nil)
	for _, way := range freshWays {
		k, err := runFreshWay(ctx, c.threads, way, landing, c.format)
		if err != nil {
			return err
		}
		increment := update
		if way.last {
			increment.times = update.lastTen()
		}
		c.add(k, &increment)
	}
	note := fmt.Sprintf("%d %s files of %d rows, %d threads, time a file. Of a re-scan it is that of the query over all files when the last is there, set beside Tidemill's last ten.",
		c.files, c.format, c.rows, c.threads)
	return c.out.write(out, note, freshColumns)
}

// landing is the directory of the files, which are made if they are not there.
func (c *freshness) landing() (string, error) {
	fsys := vfs.OS()
	landing := filepath.ToSlash(filepath.Join(c.dir, fmt.Sprintf("landing-%d-%d-%s", c.files, c.rows, c.format)))
	if _, err := fsys.Stat(landing + "/done"); err == nil {
		return landing, nil
	}
	if _, err := gen.Landing(fsys, landing, c.format, gen.Events(1, int64(c.files)*c.rows, 1000), c.rows); err != nil {
		return "", err
	}
	return landing, vfs.WriteAtomic(fsys, landing+"/done", nil)
}

// add notes a way, and an increment of ours as a share of its time, if there is one.
func (c *freshness) add(k keptFresh, increment *keptFresh) {
	res := harness.Result{Suite: c.out.suiteName, Name: k.name, Runs: len(k.times)}
	res.SetUsage(k.Usage)
	if k.AllocBytes == 0 { // DuckDB's are not known
		delete(res.Values, "alloc MB")
		delete(res.Values, "allocs")
	}
	res.Set("mean s", mean(k.times).Seconds(), "s")
	res.Set("p50 s", harness.Quantile(k.times, 0.5).Seconds(), "p50-s")
	res.Set("p99 s", harness.Quantile(k.times, 0.99).Seconds(), "p99-s")
	res.Set("last 10 s", mean(k.lastTen()).Seconds(), "last10-s")
	cpu := k.CPU.Seconds() / float64(len(k.times))
	res.Set("CPU s a file", cpu, "cpu-s")
	if k.groups > 0 {
		res.Set("groups", float64(k.groups), "groups")
	}
	if increment != nil {
		res.Set(harness.RatioColumn, mean(increment.times).Seconds()/mean(k.times).Seconds(), "ratio")
		res.Set("CPU ratio", increment.CPU.Seconds()/float64(c.files)/cpu, "cpu-ratio")
	}
	c.out.report.Add(res)
}

func (k *keptFresh) lastTen() []time.Duration { return k.times[max(0, len(k.times)-10):] }

// streamMode is how a streaming query gives its result.
type streamMode struct{ name, watermark, sink string }

var (
	updateMode = streamMode{"tidemill, update mode", "", "connector = 'noop', output_mode = 'update'"}
	appendMode = streamMode{"tidemill, append mode, closed windows to Parquet",
		", WATERMARK FOR ts AS ts - INTERVAL '1 second'", "path = '{work}/out', format = 'parquet', output_mode = 'append'"}
)

const freshJob = `
CREATE STREAM events (ts TIMESTAMP, key BIGINT, value DOUBLE{watermark})
  WITH (path = '{landing}/*.{extension}', format = '{format}', max_files_per_trigger = 1);
CREATE SINK result WITH ({sink}, checkpoint = '{work}/checkpoint', trigger = 'available-now');
INSERT INTO result
SELECT window.start AS start, key, count(*) AS n, max(value) AS top
FROM events GROUP BY window(ts, INTERVAL '10 seconds'), key;
`

// runTidemill runs the files through one streaming query, a micro-batch a file.
func (c *freshness) runTidemill(ctx context.Context, landing string, mode streamMode) (keptFresh, error) {
	work, err := os.MkdirTemp(c.dir, "fresh-")
	if err != nil {
		return keptFresh{}, err
	}
	defer os.RemoveAll(work)
	format := c.format
	if format == "jsonl" {
		format = "json"
	}
	text := strings.NewReplacer("{watermark}", mode.watermark, "{sink}", mode.sink).Replace(freshJob)
	text = strings.NewReplacer("{landing}", landing, "{extension}", c.format, "{format}", format, "{work}", filepath.ToSlash(work)).Replace(text)
	job := filepath.Join(work, "job.sql")
	if err := os.WriteFile(job, []byte(text), 0o600); err != nil {
		return keptFresh{}, err
	}
	k := keptFresh{name: mode.name}
	if k.Measurement, err = harness.Tidemill(ctx, c.tidemill, "run", "--progress", "jsonl", "--set", fmt.Sprintf("threads=%d", c.threads), job); err != nil {
		return keptFresh{}, err
	}
	for line := range strings.Lines(string(k.Stderr)) {
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
		k.times = append(k.times, time.Duration(p.DurationMs["triggerExecution"])*time.Millisecond)
		if len(p.State) > 0 {
			k.groups = p.State[0].Rows
		}
	}
	if len(k.times) != c.files {
		return k, fmt.Errorf("%d batches with rows, want %d:\n%s", len(k.times), c.files, k.Stderr)
	}
	return k, nil
}

func mean(list []time.Duration) time.Duration {
	sum := time.Duration(0)
	for _, d := range list {
		sum += d
	}
	return sum / time.Duration(max(1, len(list)))
}
