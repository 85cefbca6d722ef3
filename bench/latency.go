package main

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/tidemill/tidemill"
	"github.com/tidemill/tidemill/bench/gen"
	"github.com/tidemill/tidemill/bench/harness"
	"github.com/tidemill/tidemill/cmd/usage"
)

var latencyColumns = append([]string{"p50 ms", "p99 ms", "batches"}, harness.UsageColumns...)

// latencyRows is how many rows a small batch has.
const latencyRows = 1000

// warmUp is how many batches come before those that count.
const warmUp = 10

// memoryDisk is where files need no disk: what a batch costs beyond its fsyncs.
const memoryDisk = "/dev/shm"

// latency measures batches of a thousand rows: one after another as fast as they go, and
// from the rename of a file into the directory to the output being visible.
func (s *suites) latency(ctx context.Context) error {
	places := map[string]string{"": s.dir}
	if info, err := os.Stat(memoryDisk); err == nil && info.IsDir() {
		places[", without fsync"] = memoryDisk
	}
	for _, place := range []string{"", ", without fsync"} {
		if places[place] == "" {
			continue
		}
		for _, q := range latencyQueries {
			for _, m := range []struct {
				name string
				run  func(context.Context, string, string) ([]time.Duration, error)
			}{{"trigger to commit", s.backToBack}, {"rename to output", s.renameToOutput}} {
				name := q.name + ", " + m.name + place
				if !s.wants(name) {
					continue
				}
				s.report.Add(latencyResult(name, func() ([]time.Duration, error) { return s.inPlace(ctx, places[place], q.sql, m.run) }))
			}
		}
	}
	return nil
}

var latencyQueries = []struct{ name, sql string }{
	{"filter", "SELECT ts, key, value FROM events WHERE value > 50"},
	{"window", "SELECT window.start AS start, key, count(*) AS n, max(value) AS top FROM events GROUP BY window(ts, INTERVAL '10 seconds'), key"},
}

func latencyResult(name string, run func() ([]time.Duration, error)) harness.Result {
	res := harness.Result{Suite: "latency", Name: name, Runs: 1}
	meter := usage.Start()
	list, err := run()
	if err != nil {
		res.Failed = err.Error()
		return res
	}
	res.SetUsage(meter.Stop())
	millis := func(share float64) float64 { return float64(harness.Quantile(list, share).Microseconds()) / 1000 }
	res.Set("p50 ms", millis(0.5), "p50-ms")
	res.Set("p99 ms", millis(0.99), "p99-ms")
	res.Set("batches", float64(len(list)), "batches")
	return res
}

// inPlace runs a measurement in a directory of its own below a place.
func (s *suites) inPlace(ctx context.Context, place, query string, run func(context.Context, string, string) ([]time.Duration, error)) ([]time.Duration, error) {
	work, err := os.MkdirTemp(place, "tidemill-latency-")
	if err != nil {
		return nil, err
	}
	defer os.RemoveAll(work)
	work = filepath.ToSlash(work)
	landing := work + "/landing"
	if _, err := gen.Landing(s.fs, landing, "csv", gen.Events(1, int64(s.files)*latencyRows, 1000), latencyRows); err != nil {
		return nil, err
	}
	return run(ctx, work, query)
}

// smallBatches is the script of a query over a directory, a file a batch.
func smallBatches(work, from, query string) string {
	return fmt.Sprintf(`CREATE STREAM events (ts TIMESTAMP, key BIGINT, value DOUBLE, WATERMARK FOR ts AS ts - INTERVAL '1 second')
  WITH (path = '%[1]s/%[2]s', format = 'csv', header = true, max_files_per_trigger = 1);
CREATE SINK result WITH (path = '%[1]s/out', format = 'parquet', output_mode = 'append', checkpoint = '%[1]s/checkpoint');
INSERT INTO result %[3]s;`, work, from, query)
}

// backToBack is the time of each batch when files wait: from the end of the one before,
// which includes discovery, all logs, state and output.
func (s *suites) backToBack(ctx context.Context, work, query string) ([]time.Duration, error) {
	var list []time.Duration
	last := time.Now()
	now := tidemill.AvailableNow()
	run, err := s.script(ctx, smallBatches(work, "landing", query), &now, func(p tidemill.Progress) {
		if end := time.Now(); p.NumInputRows > 0 {
			list = append(list, end.Sub(last))
			last = end
		}
	})
	if err != nil {
		return nil, err
	}
	if err := run.Wait(); err != nil {
		return nil, err
	}
	return list[min(warmUp, len(list)):], nil
}

// renameToOutput is the time from the rename of a file into the directory of a running
// query to the commit of its batch.
func (s *suites) renameToOutput(ctx context.Context, work, query string) ([]time.Duration, error) {
	if err := os.Mkdir(work+"/in", 0o777); err != nil {
		return nil, err
	}
	done := make(chan time.Time, s.files+1)
	ctx, stop := context.WithCancel(ctx)
	defer stop()
	run, err := s.script(ctx, smallBatches(work, "in", query), nil, func(p tidemill.Progress) {
		if p.NumInputRows > 0 {
			done <- time.Now()
		}
	})
	if err != nil {
		return nil, err
	}
	files, err := os.ReadDir(work + "/landing")
	if err != nil {
		return nil, err
	}
	var list []time.Duration
	for _, f := range files {
		start := time.Now()
		if err := os.Rename(work+"/landing/"+f.Name(), work+"/in/"+f.Name()); err != nil {
			return nil, err
		}
		select {
		case end := <-done:
			list = append(list, end.Sub(start))
		case <-time.After(time.Minute):
			return nil, fmt.Errorf("no batch a minute after %s came", f.Name())
		}
	}
	run.RequestStop()
	if err := run.Wait(); err != nil && !strings.Contains(err.Error(), context.Canceled.Error()) {
		return nil, err
	}
	return list[min(warmUp, len(list)):], nil
}

func (s *suites) session() (*tidemill.Session, error) {
	return tidemill.NewSession(tidemill.Options{Settings: map[string]string{"threads": fmt.Sprint(s.threads)}})
}

// script starts a script in this process.
func (s *suites) script(ctx context.Context, text string, trigger *tidemill.Trigger, progress func(tidemill.Progress)) (*tidemill.Running, error) {
	session, err := s.session()
	if err != nil {
		return nil, err
	}
	sc, err := session.OpenScript(ctx, "bench.sql", text, tidemill.RunOptions{
		Trigger: trigger, Listener: func(string) tidemill.Listener { return tidemill.Listener{Progress: progress} },
	})
	if err != nil {
		return nil, err
	}
	return sc.Start(ctx), nil
}
