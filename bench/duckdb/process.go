package main

import (
	"context"
	"database/sql"
	"encoding/json"
	"fmt"
	"os"
	"syscall"
	"time"

	_ "github.com/duckdb/duckdb-go/v2"

	"github.com/tidemill/tidemill/bench/harness"
	"github.com/tidemill/tidemill/cmd/usage"
)

// childCommand runs DuckDB in a process of its own, so that its memory can be told.
const childCommand = "child"

// childResult is what a child prints.
type childResult struct {
	Nanos []int64  `json:"nanos"` // of each run
	CPU   []int64  `json:"cpu"`   // of each run, in nanoseconds of all threads
	Row   []string `json:"row"`   // the first row of the result
	Count int      `json:"count"` // how many rows the result has

	Usage usage.Usage `json:"usage"` // of all runs
}

// child runs a query several times in one process: args are the number of threads, of
// runs, the text of statements before it (or nothing), and its own.
func child(ctx context.Context, args []string) error {
	if len(args) != 4 {
		return fmt.Errorf("child needs threads, runs, a setup and a query")
	}
	var runs int
	if _, err := fmt.Sscan(args[1], &runs); err != nil {
		return err
	}
	db, err := openDuckDB(ctx, "", args[0])
	if err != nil {
		return err
	}
	defer db.Close()
	if args[2] != "" {
		if _, err := db.ExecContext(ctx, args[2]); err != nil {
			return err
		}
	}
	var r childResult
	meter := usage.Start()
	for range runs {
		start, busy := time.Now(), cpuTime()
		if r.Row, r.Count, err = firstRow(ctx, db, args[3]); err != nil {
			return err
		}
		r.Nanos = append(r.Nanos, time.Since(start).Nanoseconds())
		r.CPU = append(r.CPU, cpuTime()-busy)
	}
	r.Usage = meter.Stop()
	return json.NewEncoder(os.Stdout).Encode(r)
}

// cpuTime is the time this process was busy, in nanoseconds.
func cpuTime() int64 {
	var r syscall.Rusage
	if syscall.Getrusage(syscall.RUSAGE_SELF, &r) != nil {
		return 0
	}
	return r.Utime.Nano() + r.Stime.Nano()
}

func openDuckDB(ctx context.Context, file, threads string) (*sql.DB, error) {
	db, err := sql.Open("duckdb", file)
	if err != nil {
		return nil, err
	}
	db.SetMaxOpenConns(1)
	for _, s := range []string{"SET threads = " + threads, "SET TimeZone = 'UTC'"} {
		if _, err := db.ExecContext(ctx, s); err != nil {
			_ = db.Close()
			return nil, fmt.Errorf("%s: %w", s, err)
		}
	}
	return db, nil
}

// firstRow reads the result to its end, gives the first row as text and counts them.
func firstRow(ctx context.Context, db *sql.DB, query string) (first []string, count int, err error) {
	rows, err := db.QueryContext(ctx, query)
	if err != nil {
		return nil, 0, err
	}
	defer rows.Close()
	columns, err := rows.Columns()
	if err != nil {
		return nil, 0, err
	}
	values := make([]any, len(columns))
	for i := range values {
		values[i] = new(any)
	}
	for rows.Next() {
		if err := rows.Scan(values...); err != nil {
			return nil, 0, err
		}
		count++
		if first == nil {
			for _, v := range values {
				first = append(first, textOf(*v.(*any)))
			}
		}
	}
	return first, count, rows.Err()
}

// nullText is a null as text, which is how tidemill writes one in CSV.
const nullText = ""

func textOf(v any) string {
	if v == nil {
		return nullText
	}
	return fmt.Sprint(v)
}

// runDuckDB runs a query twice in a new process, after setup, and measures the second
// run.
func runDuckDB(ctx context.Context, threads int, setup, query string) (harness.Measurement, childResult, error) {
	var r childResult
	self, err := os.Executable()
	if err != nil {
		return harness.Measurement{}, r, err
	}
	m, err := harness.Run(ctx, self, childCommand, fmt.Sprint(threads), "2", setup, query)
	if err != nil {
		return m, r, err
	}
	if err := json.Unmarshal(m.Stdout, &r); err != nil {
		return m, r, err
	}
	if r.Usage.PeakBytes > 0 {
		m.PeakBytes = r.Usage.PeakBytes
	}
	m.ReadBytes = r.Usage.ReadBytes / int64(len(r.Nanos))
	m.Wall, m.CPU = time.Duration(r.Nanos[len(r.Nanos)-1]), time.Duration(r.CPU[len(r.CPU)-1])
	return m, r, nil
}
