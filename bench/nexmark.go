package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/tidemill/tidemill/bench/gen"
	"github.com/tidemill/tidemill/bench/harness"
	"github.com/tidemill/tidemill/bench/queries"
	"github.com/tidemill/tidemill/internal/vfs"
)

// nexmark runs each query of the online auction as a streaming query over landed files,
// exactly once and with every fsync, in a process of its own.
func (s *suites) nexmark(ctx context.Context) error {
	all, err := queries.NEXMark()
	if err != nil {
		return err
	}
	all = slices.DeleteFunc(all, func(q queries.Stream) bool { return !s.wants(q.Name) })
	if len(all) == 0 {
		return nil
	}
	dir, err := s.auctionFiles()
	if err != nil {
		return err
	}
	for _, q := range all {
		if err := ctx.Err(); err != nil {
			return err
		}
		s.report.Add(s.auctionQuery(ctx, dir, q))
	}
	return nil
}

var nexmarkColumns = append([]string{"mode", "events/s", "events/s/core", "s", "batches", "folders"}, harness.UsageColumns...)

// leastEvents is how many events leave no stream empty: of 50 events one is a person, 3 are
// auctions and 46 are bids.
const leastEvents = 50

// auctionFiles makes the files of the three streams and the table, if they are not there.
func (s *suites) auctionFiles() (string, error) {
	dir := filepath.ToSlash(filepath.Join(s.dir, fmt.Sprintf("nexmark-%d-%s", s.events, s.format)))
	return dir, s.once(dir, func() error {
		for _, table := range gen.NEXMarkTables {
			d, err := gen.NEXMark(1, table, s.events)
			if err != nil {
				return err
			}
			if _, err := gen.Landing(s.fs, dir+"/"+table, s.format, d, max(d.Rows/int64(s.files), 1)); err != nil {
				return err
			}
		}
		var side strings.Builder
		side.WriteString("key,value\n")
		for i := range 10_000 {
			fmt.Fprintf(&side, "%d,value %d\n", i, i)
		}
		return vfs.WriteAtomic(s.fs, dir+"/side.csv", []byte(side.String()))
	})
}

const auctionStreams = `
CREATE STREAM person (id BIGINT, name VARCHAR, email_address VARCHAR, credit_card VARCHAR, city VARCHAR, state VARCHAR, date_time TIMESTAMP,
  extra VARCHAR, WATERMARK FOR date_time AS date_time - INTERVAL '4 seconds') WITH (path = '{dir}/person', format = '{format}', max_files_per_trigger = 1);
CREATE STREAM auction (id BIGINT, item_name VARCHAR, description VARCHAR, initial_bid BIGINT, reserve BIGINT, date_time TIMESTAMP,
  expires TIMESTAMP, seller BIGINT, category BIGINT, extra VARCHAR, WATERMARK FOR date_time AS date_time - INTERVAL '4 seconds')
  WITH (path = '{dir}/auction', format = '{format}', max_files_per_trigger = 1);
CREATE STREAM bid (auction BIGINT, bidder BIGINT, price BIGINT, channel VARCHAR, url VARCHAR, date_time TIMESTAMP, extra VARCHAR,
  WATERMARK FOR date_time AS date_time - INTERVAL '4 seconds') WITH (path = '{dir}/bid', format = '{format}', max_files_per_trigger = 1);
CREATE TABLE side (key BIGINT, value VARCHAR) WITH (path = '{dir}/side.csv');
`

// auctionQuery runs one query. In append mode it writes Parquet; changes of an update
// query go nowhere, as files cannot take them, but its state is durable.
func (s *suites) auctionQuery(ctx context.Context, dir string, q queries.Stream) harness.Result {
	res := harness.Result{Suite: "nexmark", Name: q.Name, Runs: 1, Notes: map[string]string{"mode": q.Mode}}
	if q.Refused != "" {
		res.Failed = harness.NotExpressible + q.Refused
		return res
	}
	work, err := os.MkdirTemp(s.dir, "run-")
	if err != nil {
		res.Failed = err.Error()
		return res
	}
	defer os.RemoveAll(work)
	format := s.format
	if format == "jsonl" {
		format = "json"
	}
	text := strings.NewReplacer("{dir}", dir, "{format}", format).Replace(auctionStreams)
	sink := "connector = 'noop'"
	if q.Mode == "append" {
		sink = fmt.Sprintf("path = '%s/out', format = 'parquet'", filepath.ToSlash(work))
		if q.PartitionBy != "" {
			sink += ", partition_by = '" + q.PartitionBy + "'"
		}
	}
	text += fmt.Sprintf("CREATE SINK result WITH (%s, output_mode = '%s', checkpoint = '%s/checkpoint', trigger = 'available-now');\nINSERT INTO result %s;\n",
		sink, q.Mode, filepath.ToSlash(work), q.SQL)
	m, err := s.runJob(ctx, work, text)
	if err != nil {
		res.Failed = err.Error()
		return res
	}
	rows, batches := int64(0), 0
	for line := range strings.Lines(string(m.Stderr)) {
		var p struct {
			NumInputRows int64 `json:"numInputRows"`
		}
		if json.Unmarshal([]byte(line), &p) == nil {
			rows += p.NumInputRows
			batches++
		}
	}
	res.Set("events/s", float64(rows)/m.Wall.Seconds(), "events/s")
	res.Set("events/s/core", float64(rows)/m.CPU.Seconds(), "events/s/core")
	res.Set("s", m.Wall.Seconds(), "s")
	res.Set("batches", float64(batches), "batches")
	res.SetUsage(m.Usage)
	if q.PartitionBy != "" {
		folders, err := partitions(work+"/out", q.PartitionBy)
		if err != nil {
			res.Failed = err.Error()
		}
		res.Set("folders", float64(folders), "folders")
	}
	return res
}

// partitions counts the folders of a partitioned output that hold files.
func partitions(dir, by string) (int, error) {
	pattern := dir
	for _, column := range strings.Split(by, ", ") {
		pattern += "/" + column + "=*"
	}
	files, err := filepath.Glob(pattern + "/*.parquet")
	if err != nil {
		return 0, err
	}
	folders := map[string]bool{}
	for _, f := range files {
		folders[filepath.Dir(f)] = true
	}
	if len(folders) == 0 {
		return 0, errors.New("no row came out, so that there are no folders to count; give more -events")
	}
	return len(folders), nil
}

// runJob runs a script in a process of its own.
func (s *suites) runJob(ctx context.Context, work, text string) (harness.Measurement, error) {
	job := filepath.Join(work, "job.sql")
	if err := os.WriteFile(job, []byte(text), 0o600); err != nil {
		return harness.Measurement{}, err
	}
	return s.measured(ctx, "run", "--progress", "jsonl", "--set", fmt.Sprintf("threads=%d", s.threads), job)
}
