package main

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"github.com/tidemill/tidemill"
	"github.com/tidemill/tidemill/bench/gen"
	"github.com/tidemill/tidemill/bench/harness"
	"github.com/tidemill/tidemill/cmd/usage"
)

var recoveryColumns = append([]string{"groups", "restart s", "state MB"}, harness.UsageColumns...)

// leastGroups is how many groups the smallest state has.
const leastGroups = 1_000_000

// recovery measures how long a query takes from its start to its first batch when there
// are a million and ten million groups of state: the batch has one row.
func (s *suites) recovery(ctx context.Context) error {
	for groups := int64(leastGroups); groups <= s.rows; groups *= 10 {
		name := fmt.Sprintf("%d groups", groups)
		if !s.wants(name) {
			continue
		}
		res := harness.Result{Suite: "recovery", Name: name, Runs: 1}
		if err := s.restart(ctx, groups, &res); err != nil {
			res.Failed = err.Error()
		}
		s.report.Add(res)
	}
	return nil
}

func (s *suites) restart(ctx context.Context, groups int64, res *harness.Result) error {
	work, err := os.MkdirTemp(s.dir, "run-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(work)
	work = filepath.ToSlash(work)
	// Keys are almost all different: a little more rows than groups are wanted.
	if _, err := gen.Landing(s.fs, work+"/in", "parquet", gen.Events(1, groups, 1<<40), 1_000_000); err != nil {
		return err
	}
	job := fmt.Sprintf(`CREATE STREAM events (ts TIMESTAMP, key BIGINT, value DOUBLE) WITH (path = '%[1]s/in', format = 'parquet', max_files_per_trigger = 1);
CREATE SINK result WITH (connector = 'noop', output_mode = 'update', checkpoint = '%[1]s/checkpoint');
INSERT INTO result SELECT key, count(*) AS n, max(value) AS top FROM events GROUP BY key;`, work)
	now := tidemill.AvailableNow()
	run, err := s.script(ctx, job, &now, func(tidemill.Progress) {})
	if err != nil {
		return err
	}
	if err := run.Wait(); err != nil {
		return err
	}
	if err := gen.Write(s.fs, work+"/in/zzz.parquet", "parquet", gen.Events(2, 1, 1<<40)); err != nil {
		return err
	}
	var first time.Time
	var last tidemill.Progress
	meter := usage.Start()
	start := time.Now()
	if run, err = s.script(ctx, job, &now, func(p tidemill.Progress) {
		if first.IsZero() {
			first = time.Now()
		}
		last = p
	}); err != nil {
		return err
	}
	if err := run.Wait(); err != nil {
		return err
	}
	if len(last.StateOperators) == 0 {
		return fmt.Errorf("no batch after the restart")
	}
	op := last.StateOperators[0]
	res.SetUsage(meter.Stop())
	res.Set("groups", float64(op.NumRowsTotal), "groups")
	res.Set("restart s", first.Sub(start).Seconds(), "restart-s")
	res.Set("state MB", float64(op.MemoryUsedBytes)/1e6, "MB-state")
	return nil
}
