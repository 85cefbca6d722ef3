package main

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/tidemill/tidemill/bench/harness"
	"github.com/tidemill/tidemill/cmd/usage"
)

// freshWay is a way to keep the result by hand in DuckDB, in a database on disk. {file}
// stands for what is read.
type freshWay struct {
	name, setup, statement string
	// last is a statement over all files, timed when the last has come.
	last bool
	// count gives how many groups there are at the end.
	count string
}

const freshAggregate = "SELECT time_bucket(INTERVAL '10 seconds', ts) AS w, key, count(*) AS n, max(value) AS top FROM {file} GROUP BY ALL"

var freshWays = []freshWay{
	{
		name:  "DuckDB, INSERT ON CONFLICT",
		setup: "CREATE TABLE result (w TIMESTAMP, key BIGINT, n BIGINT, top DOUBLE, PRIMARY KEY (w, key))",
		statement: "INSERT INTO result " + freshAggregate +
			" ON CONFLICT (w, key) DO UPDATE SET n = n + excluded.n, top = greatest(top, excluded.top)",
		count: "SELECT count(*) FROM result",
	},
	{
		name:      "DuckDB, re-scan of all files",
		statement: "SELECT count(*), sum(n), max(top) FROM (" + freshAggregate + ")",
		last:      true,
	},
	{
		name:      "DuckDB, re-scan of all files into a table",
		statement: "CREATE OR REPLACE TABLE result AS " + freshAggregate,
		last:      true,
		count:     "SELECT count(*) FROM result",
	},
}

// filterWay adds what a filter leaves of each file to a table.
var filterWay = freshWay{
	name:      "DuckDB, INSERT of each file",
	setup:     "CREATE TABLE result (ts TIMESTAMP, key BIGINT, value DOUBLE)",
	statement: "INSERT INTO result SELECT ts, key, value FROM {file} WHERE value > 50",
	count:     "SELECT count(*) FROM result",
}

// rescans is how often a statement over all files is timed.
const rescans = 5

// freshCommand runs a way in a process of its own; its arguments are threads, the name of
// the way, the landing directory and the format.
const freshCommand = "fresh-way"

// freshResult is what such a process prints.
type freshResult struct {
	Nanos  []int64     `json:"nanos"`
	CPU    int64       `json:"cpu"` // of all of them, in nanoseconds
	Groups int64       `json:"groups"`
	Usage  usage.Usage `json:"usage"`
}

func runFreshWay(ctx context.Context, threads int, way freshWay, landing, format string) (keptFresh, error) {
	k := keptFresh{name: way.name}
	self, err := os.Executable()
	if err != nil {
		return k, err
	}
	if k.Measurement, err = harness.Run(ctx, self, freshCommand, fmt.Sprint(threads), way.name, landing, format); err != nil {
		return k, err
	}
	var r freshResult
	if err := json.Unmarshal(k.Stdout, &r); err != nil {
		return k, err
	}
	for _, n := range r.Nanos {
		k.times = append(k.times, time.Duration(n))
	}
	k.CPU, k.groups = time.Duration(r.CPU), r.Groups
	k.PeakBytes, k.ReadBytes = max(k.PeakBytes, r.Usage.PeakBytes), r.Usage.ReadBytes
	return k, nil
}

func freshProcess(ctx context.Context, args []string) error {
	if len(args) != 4 {
		return fmt.Errorf("%s needs threads, a way, a directory and a format", freshCommand)
	}
	ways := append(slices.Clone(freshWays), filterWay)
	at := slices.IndexFunc(ways, func(w freshWay) bool { return w.name == args[1] })
	if at < 0 {
		return fmt.Errorf("%s: %q is not known", freshCommand, args[1])
	}
	r, err := ways[at].run(ctx, args[0], args[2], args[3])
	if err != nil {
		return err
	}
	return json.NewEncoder(os.Stdout).Encode(r)
}

func (w freshWay) run(ctx context.Context, threads, landing, format string) (*freshResult, error) {
	work, err := os.MkdirTemp(filepath.Dir(landing), "fresh-")
	if err != nil {
		return nil, err
	}
	defer os.RemoveAll(work)
	db, err := openDuckDB(ctx, filepath.Join(work, "fresh.db"), threads)
	if err != nil {
		return nil, err
	}
	defer db.Close()
	if w.setup != "" {
		if _, err := db.ExecContext(ctx, w.setup); err != nil {
			return nil, err
		}
	}
	reads, err := w.reads(landing, format)
	if err != nil {
		return nil, err
	}
	r, meter := &freshResult{}, usage.Start()
	for _, file := range reads {
		start, busy := time.Now(), cpuTime()
		if _, _, err := firstRow(ctx, db, strings.ReplaceAll(w.statement, "{file}", file)); err != nil {
			return nil, err
		}
		r.Nanos, r.CPU = append(r.Nanos, time.Since(start).Nanoseconds()), r.CPU+cpuTime()-busy
	}
	r.Usage = meter.Stop()
	if w.count == "" {
		return r, nil
	}
	return r, db.QueryRowContext(ctx, w.count).Scan(&r.Groups)
}

// reads is what each statement reads, in order.
func (w freshWay) reads(landing, format string) ([]string, error) {
	if w.last {
		return slices.Repeat([]string{landed(landing+"/*."+format, format)}, rescans), nil
	}
	files, err := filepath.Glob(landing + "/*." + format)
	if err != nil {
		return nil, err
	}
	slices.Sort(files)
	for i, file := range files {
		files[i] = landed(file, format)
	}
	return files, nil
}

// landed reads landed files. Their columns are said, as they are for Tidemill: to find
// them anew in each file costs DuckDB more than to read it.
func landed(files, format string) string {
	const columns = "columns = {'ts': 'TIMESTAMP', 'key': 'BIGINT', 'value': 'DOUBLE'}"
	switch format {
	case "csv":
		return "read_csv('" + files + "', auto_detect = false, header = true, " + columns + ")"
	case "jsonl":
		return "read_json('" + files + "', format = 'newline_delimited', " + columns + ")"
	}
	return "'" + files + "'"
}
