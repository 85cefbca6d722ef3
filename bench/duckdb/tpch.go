package main

import (
	"context"
	"flag"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"

	"github.com/tidemill/tidemill/bench/gen"
	"github.com/tidemill/tidemill/bench/harness"
	"github.com/tidemill/tidemill/bench/queries"
	"github.com/tidemill/tidemill/internal/vfs"
)

// tpchRun is the flags of tpch.
type tpchRun struct {
	tidemill, dir, only string
	scale               float64
	n, threads          int
	out                 *output
}

// tpch runs the 22 queries of the decision support benchmark on both engines in turns
// and prints a table.
func tpch(ctx context.Context, args []string) error {
	c := tpchRun{out: newOutput("tpch")}
	f := flag.NewFlagSet("tpch", flag.ContinueOnError)
	c.out.flags(f)
	f.StringVar(&c.tidemill, "tidemill", "tidemill", "the tidemill binary")
	f.StringVar(&c.dir, "dir", filepath.Join(os.TempDir(), "tidemill-bench"), "where the data is, or is made")
	f.StringVar(&c.only, "queries", "", "only queries whose name contains this")
	f.Float64Var(&c.scale, "scale", 1, "scale of the data; 1 has 6,000,000 lines of orders")
	f.IntVar(&c.n, "n", 3, "runs of each query; the median counts")
	f.IntVar(&c.threads, "threads", 2, "threads of both engines")
	onlyMake := f.Bool("make", false, "make the data that is not there, and no more")
	if err := c.out.parse(f, args, "scale", "n", "threads"); err != nil {
		return err
	}
	all, err := queries.TPCH()
	if err != nil {
		return err
	}
	if all, err = matching(all, c.only); err != nil {
		return err
	}
	dir := filepath.ToSlash(filepath.Join(c.dir, fmt.Sprintf("tpch-%g", c.scale)))
	if *onlyMake {
		return c.data(dir)
	}
	// In a process of its own: the peak memory of a process that is started counts from
	// that of the one that starts it.
	self, err := os.Executable()
	if err != nil {
		return err
	}
	if _, err := harness.Run(ctx, self, append([]string{"tpch", "-make"}, args...)...); err != nil {
		return err
	}
	return c.run(ctx, dir, all, os.Stdout)
}

func (c *tpchRun) run(ctx context.Context, dir string, all []queries.Query, out io.Writer) error {
	for _, q := range all {
		ours, theirs, rows, err := c.query(ctx, dir, q)
		if ctx.Err() != nil {
			return ctx.Err()
		}
		c.out.add(q.Name, ours, theirs, rows, err)
	}
	note := fmt.Sprintf("scale %g, %d threads, median of %d runs; geometric mean of the ratios %.2f. tidemill: a new process each run; DuckDB: the second run in a new process.",
		c.scale, c.threads, c.n, c.out.mean(harness.RatioColumn))
	return c.out.write(out, note, sideColumns)
}

// query runs one query in turns; rows is how many it gives, or how the engines differ,
// which begins with differs.
func (c *tpchRun) query(ctx context.Context, dir string, q queries.Query) (ours, theirs []harness.Measurement, rows string, err error) {
	for range c.n {
		m, err := harness.Tidemill(ctx, c.tidemill, "query", "--format", "csv", "--set", fmt.Sprintf("threads=%d", c.threads), tpchTables(dir, "CREATE TABLE %s WITH (path = '%s');\n")+q.SQL)
		if err != nil {
			return nil, nil, "", err
		}
		ours = append(ours, m)
		got, err := csvRows(m.Stdout)
		if err != nil {
			return nil, nil, "", err
		}
		m, want, err := runDuckDB(ctx, c.threads, tpchTables(dir, "CREATE VIEW %s AS SELECT * FROM '%s';\n"), q.SQL)
		if err != nil {
			return nil, nil, "", err
		}
		theirs = append(theirs, m)
		if len(got) != want.Count { // a later turn does not hide it
			return ours, theirs, fmt.Sprintf("%s: %d rows, DuckDB: %d", differs, len(got), want.Count), nil
		}
		rows = fmt.Sprintf("%d rows", len(got))
	}
	return ours, theirs, rows, nil
}

// data makes the tables that are not there.
func (c *tpchRun) data(dir string) error {
	fsys := vfs.OS()
	if err := fsys.MkdirAll(dir); err != nil {
		return err
	}
	for _, table := range gen.TPCHTables {
		path := dir + "/" + table + ".parquet"
		if _, err := fsys.Stat(path); err == nil {
			continue
		}
		d, err := gen.TPCH(1, table, c.scale)
		if err != nil {
			return err
		}
		if err := gen.Write(fsys, path+".tmp", "parquet", d); err != nil {
			return err
		}
		if err := fsys.Rename(path+".tmp", path); err != nil {
			return err
		}
	}
	return nil
}

// tpchTables declares the tables of a directory: form has a name and a path.
func tpchTables(dir, form string) string {
	var all strings.Builder
	for _, table := range gen.TPCHTables {
		fmt.Fprintf(&all, form, table, dir+"/"+table+".parquet")
	}
	return all.String()
}
