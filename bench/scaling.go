package main

import (
	"context"
	"fmt"
	"path/filepath"
	"time"

	"github.com/tidemill/tidemill/bench/gen"
	"github.com/tidemill/tidemill/bench/harness"
	"github.com/tidemill/tidemill/bench/queries"
)

var scalingColumns = append([]string{"one core s", "two cores s", "faster by"}, harness.UsageColumns...)

// leastTable is how many rows the smallest table has.
const leastTable = 100_000

// scaling runs queries on one core and on two: all of them over tables of 100,000 rows
// and more, and one aggregate of 1,000 groups and more.
func (s *suites) scaling(ctx context.Context) error {
	all, err := queries.All()
	if err != nil {
		return err
	}
	for rows := int64(leastTable); rows <= s.rows; rows *= 10 {
		for _, format := range []string{"parquet", "csv"} {
			for _, q := range all {
				name := fmt.Sprintf("%s, %s, %d rows", q.Name, format, rows)
				d := gen.H2O(1, rows, 100)
				if q.Data == "events" {
					d = gen.Events(1, rows, 1000)
				}
				file := filepath.ToSlash(filepath.Join(s.dir, fmt.Sprintf("%s-%d.%s", q.Data, rows, format)))
				if err := s.scale(ctx, name, q.Text(false, file), file, format, d); err != nil {
					return err
				}
			}
		}
	}
	for groups := int64(1000); groups <= s.rows; groups *= 10 {
		file := filepath.ToSlash(filepath.Join(s.dir, fmt.Sprintf("groups-%d-%d.parquet", s.rows, groups)))
		query := "SELECT count(*), sum(n), max(top) FROM (SELECT key, count(*) AS n, max(value) AS top FROM '" + file + "' GROUP BY key)"
		if err := s.scale(ctx, fmt.Sprintf("%d groups, parquet, %d rows", groups, s.rows), query, file, "parquet", gen.Events(1, s.rows, groups)); err != nil {
			return err
		}
	}
	return nil
}

// scale runs one query with one thread and with two, over a file that is made if it is
// not there.
func (s *suites) scale(ctx context.Context, name, query, file, format string, d *gen.Data) error {
	if err := ctx.Err(); err != nil || !s.wants(name) {
		return err
	}
	res := harness.Result{Suite: "scaling", Name: name, Runs: s.n}
	if err := s.oneAndTwo(ctx, &res, query, file, format, d); err != nil {
		res.Failed = err.Error()
	}
	s.report.Add(res)
	return nil
}

func (s *suites) oneAndTwo(ctx context.Context, res *harness.Result, query, file, format string, d *gen.Data) error {
	if err := s.table(file, format, d); err != nil {
		return err
	}
	took := map[int]time.Duration{}
	for _, threads := range []int{1, 2} {
		m, err := s.median(ctx, "query", "--format", "csv", "--set", fmt.Sprintf("threads=%d", threads), query)
		if err != nil {
			return err
		}
		took[threads] = m.Wall
		res.SetUsage(m.Usage)
	}
	res.Set("one core s", took[1].Seconds(), "one-core-s")
	res.Set("two cores s", took[2].Seconds(), "two-cores-s")
	res.Set("faster by", took[1].Seconds()/took[2].Seconds(), "x")
	return nil
}

// median runs the binary several times and gives the run of median time.
func (s *suites) median(ctx context.Context, args ...string) (harness.Measurement, error) {
	var all []harness.Measurement
	for range s.n {
		m, err := s.measured(ctx, args...)
		if err != nil {
			return m, err
		}
		all = append(all, m)
	}
	return harness.Median(all), nil
}

var overheadColumns = append([]string{"batch query s", "same work s", "by hand s", "stream s", "overhead %", "over same work %", "CPU over same work %", "over by hand %", "CPU over by hand %"}, harness.UsageColumns...)

// overhead compares a stream of batches of a million rows, exactly once and durable, at
// most 10,000 groups. What exactly-once costs is the difference to the same batches by
// hand. What batches and durability cost together is that to one query over all files that
// does the same work: the same columns read, the same aggregates of the same groups. The
// last one asks for counts only, and so reads the keys alone.
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

const overheadQuery = "SELECT key, count(*) AS n, max(value) AS top FROM %s GROUP BY key"

// overheadJob is the script of the stream: a file of a million rows a batch.
func overheadJob(dir, format, work string) string {
	return fmt.Sprintf(`CREATE STREAM events (ts TIMESTAMP, key BIGINT, value DOUBLE) WITH (path = '%[1]s', format = '%[2]s', max_files_per_trigger = 1);
CREATE SINK result WITH (path = '%[3]s/out', format = 'parquet', output_mode = 'complete', checkpoint = '%[3]s/checkpoint', trigger = 'available-now');
INSERT INTO result %[4]s;`, dir, format, work, fmt.Sprintf(overheadQuery, "events"))
}

func (s *suites) overheadOf(ctx context.Context, dir, format string, res *harness.Result) error {
	batch := func(columns string) (harness.Measurement, error) {
		return s.median(ctx, "query", "--format", "csv", "--set", fmt.Sprintf("threads=%d", s.threads),
			"SELECT "+columns+" FROM ("+fmt.Sprintf(overheadQuery, "'"+dir+"'")+")")
	}
	once, err := batch("count(*), sum(n)")
	if err != nil {
		return err
	}
	same, err := batch("count(*), sum(n), max(top)")
	if err != nil {
		return err
	}
	var streams []harness.Measurement
	for range s.n {
		var m harness.Measurement
		_, err := s.timed(func(work string) (err error) {
			m, err = s.runJob(ctx, work, overheadJob(dir, format, work))
			return err
		})
		if err != nil {
			return err
		}
		streams = append(streams, m)
	}
	hand, inProcess, err := s.besideByHand(ctx, dir, format)
	if err != nil {
		return err
	}
	stream := harness.Median(streams)
	res.SetUsage(stream.Usage)
	res.Set("batch query s", once.Wall.Seconds(), "query-s")
	res.Set("stream s", stream.Wall.Seconds(), "stream-s")
	res.Set("overhead %", 100*(stream.Wall.Seconds()/once.Wall.Seconds()-1), "overhead-%")
	res.Set("same work s", same.Wall.Seconds(), "same-work-s")
	res.Set("over same work %", 100*(stream.Wall.Seconds()/same.Wall.Seconds()-1), "over-same-work-%")
	res.Set("CPU over same work %", 100*(stream.CPU.Seconds()/same.CPU.Seconds()-1), "cpu-over-same-work-%")
	res.Set("by hand s", hand.Wall.Seconds(), "by-hand-s")
	res.Set("over by hand %", 100*(inProcess.Wall.Seconds()/hand.Wall.Seconds()-1), "over-by-hand-%")
	res.Set("CPU over by hand %", 100*(inProcess.CPU.Seconds()/hand.CPU.Seconds()-1), "cpu-over-by-hand-%")
	return nil
}
