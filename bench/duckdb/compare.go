package main

import (
	"context"
	"encoding/csv"
	"errors"
	"flag"
	"fmt"
	"io"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/tidemill/tidemill/bench/gen"
	"github.com/tidemill/tidemill/bench/harness"
	"github.com/tidemill/tidemill/bench/queries"
	"github.com/tidemill/tidemill/internal/vfs"
)

// comparison is the flags of compare.
type comparison struct {
	tidemill, dir, only string
	formats             []string
	rows                int64
	n, threads          int
	out                 *output
}

func compare(ctx context.Context, args []string) error {
	c := comparison{out: newOutput("query")}
	f := flag.NewFlagSet("compare", flag.ContinueOnError)
	c.out.flags(f)
	f.StringVar(&c.tidemill, "tidemill", "tidemill", "the tidemill binary")
	f.StringVar(&c.dir, "dir", filepath.Join(os.TempDir(), "tidemill-bench"), "where the data is, or is made")
	f.StringVar(&c.only, "queries", "", "only queries whose name contains this")
	formats := f.String("format", "parquet,csv", "formats, separated by commas: parquet, csv, jsonl")
	f.Int64Var(&c.rows, "rows", 1_000_000, "rows of each table")
	f.IntVar(&c.n, "n", 5, "runs of each query; the median counts")
	f.IntVar(&c.threads, "threads", 2, "threads of both engines")
	if err := f.Parse(args); err != nil {
		return err
	}
	c.formats = strings.Split(*formats, ",")
	return c.run(ctx, os.Stdout)
}

func (c *comparison) run(ctx context.Context, out io.Writer) error {
	all, err := queries.All()
	if err != nil {
		return err
	}
	for _, format := range c.formats {
		for _, q := range all {
			if !strings.Contains(q.Name, c.only) {
				continue
			}
			ours, theirs, same, err := c.query(ctx, q, format)
			if ctx.Err() != nil {
				return ctx.Err()
			}
			c.out.add(q.Name+", "+format, ours, theirs, same, err)
		}
	}
	note := fmt.Sprintf("%d rows, %d threads, median of %d runs; geometric mean of the ratios %.2f. tidemill: a new process each run; DuckDB: the second run in a new process.",
		c.rows, c.threads, c.n, c.out.mean(harness.RatioColumn))
	return c.out.write(out, note, sideColumns)
}

// query runs one query on both engines in turns, and says whether they agree.
func (c *comparison) query(ctx context.Context, q queries.Query, format string) (ours, theirs []harness.Measurement, same string, err error) {
	file, err := c.data(ctx, q.Data, format)
	if err != nil {
		return nil, nil, "", err
	}
	var got, want []string
	for range c.n {
		m, err := harness.Tidemill(ctx, c.tidemill, "query", "--format", "csv", "--set", fmt.Sprintf("threads=%d", c.threads), q.Text(false, file))
		if err != nil {
			return nil, nil, "", err
		}
		ours = append(ours, m)
		if got, err = csvRow(m.Stdout); err != nil {
			return nil, nil, "", err
		}
		m, result, err := runDuckDB(ctx, c.threads, "", q.Text(true, file))
		if err != nil {
			return nil, nil, "", err
		}
		theirs, want = append(theirs, m), result.Row
	}
	same = "yes"
	if !sameRow(got, want) {
		same = fmt.Sprintf("NO: %v, %v", got, want)
	}
	return ours, theirs, same, nil
}

// data is the path of a table; it is made if it is not there.
func (c *comparison) data(ctx context.Context, name, format string) (string, error) {
	fsys := vfs.OS()
	if err := fsys.MkdirAll(c.dir); err != nil {
		return "", err
	}
	path := filepath.ToSlash(filepath.Join(c.dir, fmt.Sprintf("%s-%d.%s", name, c.rows, format)))
	if _, err := fsys.Stat(path); err == nil {
		return path, nil
	}
	self, err := os.Executable()
	if err != nil {
		return "", err
	}
	// In a process of its own: the peak memory of a process that is started counts
	// from that of the one that starts it.
	if _, err := harness.Run(ctx, self, makeCommand, name, format, fmt.Sprint(c.rows), path+".tmp"); err != nil {
		return "", err
	}
	return path, fsys.Rename(path+".tmp", path)
}

// makeCommand makes a table; its arguments are name, format, rows and path.
const makeCommand = "make"

func makeTable(args []string) error {
	if len(args) != 4 {
		return errors.New("make needs a name, a format, a number of rows and a path")
	}
	rows, err := strconv.ParseInt(args[2], 10, 64)
	if err != nil {
		return err
	}
	d := gen.H2O(1, rows, 100)
	if args[0] == "events" {
		d = gen.Events(1, rows, 1000)
	}
	return gen.Write(vfs.OS(), args[3], args[1], d)
}

// csvRow is the first row of a CSV output with a header.
func csvRow(b []byte) ([]string, error) {
	rows, err := csv.NewReader(strings.NewReader(string(b))).ReadAll()
	if err != nil {
		return nil, err
	}
	if len(rows) < 2 {
		return nil, fmt.Errorf("no row in %q", b)
	}
	return rows[1], nil
}

// sameRow compares two rows of text; numbers may differ in the last digits.
func sameRow(a, b []string) bool {
	return slices.EqualFunc(a, b, func(x, y string) bool {
		f, err1 := strconv.ParseFloat(x, 64)
		g, err2 := strconv.ParseFloat(y, 64)
		if err1 != nil || err2 != nil {
			return x == y
		}
		return math.Abs(f-g) <= 1e-9*math.Max(math.Abs(f), math.Abs(g))
	})
}
