package main

import (
	"bytes"
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
	if err := c.out.parse(f, args, "rows", "n", "threads"); err != nil {
		return err
	}
	var err error
	if c.formats, err = harness.KnownList("format", *formats, gen.Formats); err != nil {
		return err
	}
	return c.run(ctx, os.Stdout)
}

func (c *comparison) run(ctx context.Context, out io.Writer) error {
	all, err := queries.All()
	if err != nil {
		return err
	}
	if all, err = matching(all, c.only); err != nil {
		return err
	}
	for _, format := range c.formats {
		for _, q := range all {
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
	for range c.n {
		m, err := harness.Tidemill(ctx, c.tidemill, "query", "--format", "csv", "--set", fmt.Sprintf("threads=%d", c.threads), q.Text(false, file))
		if err != nil {
			return nil, nil, "", err
		}
		ours = append(ours, m)
		got, err := csvRow(m.Stdout)
		if err != nil {
			return nil, nil, "", err
		}
		m, result, err := runDuckDB(ctx, c.threads, "", q.Text(true, file))
		if err != nil {
			return nil, nil, "", err
		}
		theirs = append(theirs, m)
		if same = agreement(got, result.Row, q.NaN); strings.HasPrefix(same, differs) {
			break // a later turn does not hide it
		}
	}
	return ours, theirs, same, nil
}

// agreement is what is said of the rows of both engines; it begins with differs where they
// are not the same. nan is the documented difference that lets DuckDB give NaN, or nothing.
func agreement(got, want []string, nan string) string {
	switch {
	case sameRow(got, want, false):
		return "yes"
	case nan != "" && sameRow(got, want, true):
		return "yes, but for " + nan
	}
	return fmt.Sprintf("%s: %q, %q", differs, got, want)
}

const differs = "NO"

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
	rows, err := csvRows(b)
	if err != nil {
		return nil, err
	}
	if len(rows) == 0 {
		return nil, fmt.Errorf("no row in %q", b)
	}
	return rows[0], nil
}

// csvRows are the rows of a CSV output after its header. A null in the only column is an
// empty line, which a reader of CSV leaves out.
func csvRows(b []byte) (rows [][]string, err error) {
	r := csv.NewReader(bytes.NewReader(b))
	head, err := r.Read()
	if err != nil {
		return nil, fmt.Errorf("no header in %q: %w", b, err)
	}
	for {
		for at := r.InputOffset(); len(head) == 1 && at < int64(len(b)) && b[at] == '\n'; at++ {
			rows = append(rows, []string{nullText})
		}
		row, err := r.Read()
		if errors.Is(err, io.EOF) {
			return rows, nil
		}
		if err != nil {
			return nil, err
		}
		rows = append(rows, row)
	}
}

// sameRow compares our row with DuckDB's, as text; numbers may differ in the last digits,
// and where a NaN of DuckDB is allowed it is the same as all.
func sameRow(ours, theirs []string, nan bool) bool {
	return slices.EqualFunc(ours, theirs, func(x, y string) bool {
		f, err1 := strconv.ParseFloat(x, 64)
		g, err2 := strconv.ParseFloat(y, 64)
		switch {
		case nan && err2 == nil && math.IsNaN(g):
			return true
		case err1 != nil || err2 != nil:
			return x == y
		case math.IsNaN(f) || math.IsNaN(g):
			return math.IsNaN(f) && math.IsNaN(g)
		case math.IsInf(f, 0) || math.IsInf(g, 0):
			return f == g
		}
		return math.Abs(f-g) <= 1e-9*math.Max(math.Abs(f), math.Abs(g))
	})
}
