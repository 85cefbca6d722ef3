package main

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/tidemill/tidemill/bench/gen"
	"github.com/tidemill/tidemill/bench/harness"
	"github.com/tidemill/tidemill/bench/queries"
)

// Sizes of the smoke test's data: enough that the start of a process is not all of it,
// and little enough that all works take less than a minute.
const (
	smokeRows      = 1_000_000
	smokeScale     = 0.1 // of TPC-H
	smokeFiles     = 8   // kept fresh
	smokeFileRows  = 50_000
	smokeSmall     = 100 // batches
	smokeSmallRows = 1000
	smokeExactly   = 4 // files of a quarter of smokeRows
)

// smokeQueries are formats of the queries.
var smokeQueries = []struct{ query, format string }{
	{"h2o_q01", "parquet"}, {"h2o_q03", "parquet"}, {"h2o_q05", "parquet"}, {"h2o_q10", "parquet"}, {"h2o_q01", "csv"},
	{"scan_count", "parquet"}, {"join_small", "parquet"},
	{"window_10s", "parquet"}, {"window_10s", "csv"}, {"window_10s", "jsonl"},
}

var smokeTPCH = []string{"q01", "q03", "q06", "q18"}

// works are the works that were asked for.
func (s *smoke) works() ([]smokeWork, error) {
	all, err := s.queryWorks()
	if err != nil {
		return nil, err
	}
	decision, err := s.tpchWorks()
	if err != nil {
		return nil, err
	}
	all = append(all, decision...)
	all = append(all,
		smokeWork{name: "kept fresh, against INSERT ON CONFLICT", turn: s.freshTurn},
		smokeWork{name: "batches of 1,000 rows, against INSERT of each file", turn: s.smallTurn},
		smokeWork{name: "exactly once, against one query", turn: s.exactlyTurn})
	return containing(all, func(w smokeWork) string { return w.name }, "only", s.only)
}

func (s *smoke) queryWorks() ([]smokeWork, error) {
	all, err := queries.All()
	if err != nil {
		return nil, err
	}
	c := comparison{tidemill: s.tidemill, dir: s.dir, rows: smokeRows, n: 1, threads: s.threads}
	var works []smokeWork
	for _, want := range smokeQueries {
		at := slices.IndexFunc(all, func(q queries.Query) bool { return q.Name == want.query })
		if at < 0 {
			return nil, fmt.Errorf("there is no query %s", want.query)
		}
		works = append(works, smokeWork{name: want.query + ", " + want.format, turn: func(ctx context.Context) (time.Duration, time.Duration, error) {
			ours, theirs, same, err := c.query(ctx, all[at], want.format)
			return cpuOf(ours, theirs, same, err)
		}})
	}
	return works, nil
}

func (s *smoke) tpchWorks() ([]smokeWork, error) {
	all, err := queries.TPCH()
	if err != nil {
		return nil, err
	}
	dir := filepath.ToSlash(filepath.Join(s.dir, fmt.Sprintf("tpch-%g", smokeScale)))
	c := tpchRun{tidemill: s.tidemill, scale: smokeScale, n: 1, threads: s.threads}
	var works []smokeWork
	for _, q := range all {
		if !slices.Contains(smokeTPCH, q.Name) {
			continue
		}
		works = append(works, smokeWork{name: "tpch_" + q.Name, turn: func(ctx context.Context) (time.Duration, time.Duration, error) {
			if err := c.data(dir); err != nil {
				return 0, 0, err
			}
			ours, theirs, rows, err := c.query(ctx, dir, q)
			return cpuOf(ours, theirs, rows, err)
		}})
	}
	return works, nil
}

// cpuOf is the processor time of one run of both engines; what differs is an error.
func cpuOf(ours, theirs []harness.Measurement, same string, err error) (time.Duration, time.Duration, error) {
	if err != nil {
		return 0, 0, err
	}
	if strings.HasPrefix(same, differs) {
		return 0, 0, fmt.Errorf("the engines differ: %s", same)
	}
	return ours[0].CPU, theirs[0].CPU, nil
}

// freshTurn keeps a result fresh over a few files.
func (s *smoke) freshTurn(ctx context.Context) (ours, theirs time.Duration, err error) {
	c := freshness{tidemill: s.tidemill, dir: s.dir, format: "csv", files: smokeFiles, rows: smokeFileRows, threads: s.threads}
	landing, err := c.landing()
	if err != nil {
		return 0, 0, err
	}
	update, err := c.runTidemill(ctx, landing, updateMode)
	if err != nil {
		return 0, 0, err
	}
	upsert, err := runFreshWay(ctx, s.threads, freshWays[0], landing, c.format)
	if err == nil && upsert.groups != update.groups {
		err = fmt.Errorf("%d groups, DuckDB: %d", update.groups, upsert.groups)
	}
	return update.CPU, upsert.CPU, err
}

// smallTurn filters small files into Parquet, a batch each, and DuckDB into a table, with
// an INSERT each.
func (s *smoke) smallTurn(ctx context.Context) (ours, theirs time.Duration, err error) {
	c := freshness{dir: s.dir, format: "csv", files: smokeSmall, rows: smokeSmallRows}
	landing, err := c.landing()
	if err != nil {
		return 0, 0, err
	}
	m, err := s.stream(ctx, landing, "output_mode = 'append'", "SELECT ts, key, value FROM events WHERE value > 50")
	if err != nil {
		return 0, 0, err
	}
	inserts, err := runFreshWay(ctx, s.threads, filterWay, landing, c.format)
	return m.CPU, inserts.CPU, err
}

// exactlyTurn runs a stream of large batches, exactly once and durable, and one query over
// the same files.
func (s *smoke) exactlyTurn(ctx context.Context) (ours, theirs time.Duration, err error) {
	dir := filepath.ToSlash(filepath.Join(s.dir, "exactly"))
	if _, err := s.fs.Stat(dir); err != nil {
		if _, err := gen.Landing(s.fs, dir, "parquet", gen.Events(1, smokeRows, 10_000), smokeRows/smokeExactly); err != nil {
			return 0, 0, err
		}
	}
	const query = "SELECT key, count(*) AS n, max(value) AS top FROM %s GROUP BY key"
	stream, err := s.stream(ctx, dir, "output_mode = 'complete'", fmt.Sprintf(query, "events"))
	if err != nil {
		return 0, 0, err
	}
	once, err := harness.Run(ctx, s.tidemill, "query", "--format", "csv", "--set", fmt.Sprintf("threads=%d", s.threads),
		"SELECT count(*), sum(n) FROM ("+fmt.Sprintf(query, "'"+dir+"'")+")")
	return stream.CPU, once.CPU, err
}

// stream runs a query over the files of a directory, each a batch, into Parquet.
func (s *smoke) stream(ctx context.Context, dir, mode, query string) (harness.Measurement, error) {
	work, err := os.MkdirTemp(s.dir, "run-")
	if err != nil {
		return harness.Measurement{}, err
	}
	defer os.RemoveAll(work)
	work = filepath.ToSlash(work)
	files, err := filepath.Glob(dir + "/part-*")
	if err != nil || len(files) == 0 {
		return harness.Measurement{}, fmt.Errorf("no files in %s: %w", dir, err)
	}
	extension := strings.TrimPrefix(filepath.Ext(files[0]), ".")
	job := work + "/job.sql"
	text := fmt.Sprintf(`CREATE STREAM events (ts TIMESTAMP, key BIGINT, value DOUBLE) WITH (path = '%[1]s/part-*.%[2]s', format = '%[2]s', max_files_per_trigger = 1);
CREATE SINK result WITH (path = '%[3]s/out', format = 'parquet', %[4]s, checkpoint = '%[3]s/checkpoint', trigger = 'available-now');
INSERT INTO result %[5]s;`, dir, extension, work, mode, query)
	if err := os.WriteFile(job, []byte(text), 0o600); err != nil {
		return harness.Measurement{}, err
	}
	return harness.Run(ctx, s.tidemill, "run", "--progress", "none", "--set", fmt.Sprintf("threads=%d", s.threads), job)
}
