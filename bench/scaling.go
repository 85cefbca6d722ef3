package main

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"time"

	"github.com/tidemill/tidemill/bench/gen"
	"github.com/tidemill/tidemill/bench/harness"
	"github.com/tidemill/tidemill/bench/queries"
)

var scalingColumns = []string{"one core s", "two cores s", "faster by", "MB"}

// scaling runs queries on one core and on two, over tables of 100,000 rows and more.
func (s *suites) scaling(ctx context.Context) error {
	all, err := queries.All()
	if err != nil {
		return err
	}
	for rows := int64(100_000); rows <= s.rows; rows *= 10 {
		for _, format := range []string{"parquet", "csv"} {
			for _, q := range all {
				name := fmt.Sprintf("%s, %s, %d rows", q.Name, format, rows)
				if !s.wants(name) {
					continue
				}
				if err := ctx.Err(); err != nil {
					return err
				}
				s.report.Add(s.scale(ctx, q, name, format, rows))
			}
		}
	}
	return nil
}

func (s *suites) scale(ctx context.Context, q queries.Query, name, format string, rows int64) harness.Result {
	res := harness.Result{Suite: "scaling", Name: name, Runs: s.n, Values: map[string]harness.Value{}}
	file := filepath.ToSlash(filepath.Join(s.dir, fmt.Sprintf("%s-%d.%s", q.Data, rows, format)))
	if _, err := s.fs.Stat(file); err != nil {
		d := gen.H2O(1, rows, 100)
		if q.Data == "events" {
			d = gen.Events(1, rows, 1000)
		}
		if err := gen.Write(s.fs, file, format, d); err != nil {
			res.Failed = err.Error()
			return res
		}
	}
	took := map[int]time.Duration{}
	for _, threads := range []int{1, 2} {
		m, err := s.median(ctx, "query", "--format", "csv", "--set", fmt.Sprintf("threads=%d", threads), q.Text(false, file))
		if err != nil {
			res.Failed = err.Error()
			return res
		}
		took[threads] = m.Wall
		res.Values["MB"] = harness.Value{Number: float64(m.PeakBytes) / 1e6, Unit: "MB-peak"}
	}
	res.Values["one core s"] = harness.Value{Number: took[1].Seconds(), Unit: "one-core-s"}
	res.Values["two cores s"] = harness.Value{Number: took[2].Seconds(), Unit: "two-cores-s"}
	res.Values["faster by"] = harness.Value{Number: took[1].Seconds() / took[2].Seconds(), Unit: "x"}
	return res
}

// median runs the binary several times and gives the run of median time.
func (s *suites) median(ctx context.Context, args ...string) (harness.Measurement, error) {
	var all []harness.Measurement
	for range s.n {
		m, err := harness.Run(ctx, s.tidemill, args...)
		if err != nil {
			return m, err
		}
		all = append(all, m)
	}
	slices.SortFunc(all, func(a, b harness.Measurement) int { return int(a.Wall - b.Wall) })
	return all[len(all)/2], nil
}

var overheadColumns = []string{"batch query s", "stream s", "overhead %"}

// overhead compares a stream of batches of a million rows, exactly once and durable,
// with one query over the same files: at most 10,000 groups.
func (s *suites) overhead(ctx context.Context) error {
	const perFile = 1_000_000
	for _, format := range []string{"csv", "parquet"} {
		if !s.wants(format) {
			continue
		}
		res := harness.Result{Suite: "overhead", Name: format, Runs: s.n}
		dir := filepath.ToSlash(filepath.Join(s.dir, fmt.Sprintf("overhead-%d-%s", s.rows, format)))
		err := s.once(dir, func() error {
			_, err := gen.Landing(s.fs, dir, format, gen.Events(1, s.rows, 10_000), perFile)
			return err
		})
		if err == nil {
			err = s.overheadOf(ctx, dir, format, &res)
		}
		if err != nil {
			res.Failed = err.Error()
		}
		s.report.Add(res)
	}
	return nil
}

func (s *suites) overheadOf(ctx context.Context, dir, format string, res *harness.Result) error {
	const query = "SELECT key, count(*) AS n, max(value) AS top FROM %s GROUP BY key"
	once, err := s.median(ctx, "query", "--format", "csv", "--set", fmt.Sprintf("threads=%d", s.threads),
		"SELECT count(*), sum(n) FROM ("+fmt.Sprintf(query, "'"+dir+"'")+")")
	if err != nil {
		return err
	}
	var streams []time.Duration
	for range s.n {
		work, err := os.MkdirTemp(s.dir, "run-")
		if err != nil {
			return err
		}
		m, err := s.runJob(ctx, work, fmt.Sprintf(`CREATE STREAM events (ts TIMESTAMP, key BIGINT, value DOUBLE) WITH (path = '%[1]s', format = '%[2]s', max_files_per_trigger = 1);
CREATE SINK result WITH (path = '%[3]s/out', format = 'parquet', output_mode = 'complete', checkpoint = '%[3]s/checkpoint', trigger = 'available-now');
INSERT INTO result %[4]s;`, dir, format, filepath.ToSlash(work), fmt.Sprintf(query, "events")))
		if err := os.RemoveAll(work); err != nil {
			return err
		}
		if err != nil {
			return err
		}
		streams = append(streams, m.Wall)
	}
	stream := harness.Quantile(streams, 0.5)
	res.Values = map[string]harness.Value{
		"batch query s": {Number: once.Wall.Seconds(), Unit: "query-s"},
		"stream s":      {Number: stream.Seconds(), Unit: "stream-s"},
		"overhead %":    {Number: 100 * (stream.Seconds()/once.Wall.Seconds() - 1), Unit: "overhead-%"},
	}
	return nil
}
