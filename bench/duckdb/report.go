package main

import (
	"flag"
	"io"
	"strings"

	"github.com/tidemill/tidemill/bench/harness"
	"github.com/tidemill/tidemill/bench/queries"
)

// output is where the results of a command go beside its table.
type output struct {
	report    *harness.Report
	to        harness.Outputs
	suiteName string
}

func newOutput(suite string) *output {
	return &output{report: harness.NewReport(), suiteName: suite}
}

func (o *output) flags(f *flag.FlagSet) { o.to.Flags(f) }

// parse reads the flags of a command. positive are those whose numbers must be above zero.
func (o *output) parse(f *flag.FlagSet, args []string, positive ...string) error {
	if err := harness.Parse(f, args); err != nil {
		return err
	}
	if err := harness.Positive(f, positive...); err != nil {
		return err
	}
	return o.to.Check()
}

// matching are the queries whose name contains what -queries says.
func matching(all []queries.Query, only string) ([]queries.Query, error) {
	return containing(all, func(q queries.Query) string { return q.Name }, "queries", only)
}

// containing are those whose name contains what a flag says; that none does is an error.
func containing[T any](all []T, name func(T) string, flagName, only string) (kept []T, err error) {
	var names []string
	for _, one := range all {
		names = append(names, name(one))
		if strings.Contains(name(one), only) {
			kept = append(kept, one)
		}
	}
	if len(kept) == 0 {
		return nil, harness.NothingMatches(flagName, only, names)
	}
	return kept, nil
}

// sideColumns are the columns of what was run on both engines.
var sideColumns = []string{"tidemill s", "DuckDB s", harness.RatioColumn, "CPU ratio", "tidemill MB", "DuckDB MB", "alloc MB", "allocs", "read MB", "DuckDB read MB", "same"}

// add notes a query that both engines ran: medians, what is said of the results, or why
// there is none.
func (o *output) add(name string, ours, theirs []harness.Measurement, same string, err error) {
	res := harness.Result{Suite: o.suiteName, Name: name, Runs: len(ours)}
	if err != nil {
		res.Failed = err.Error()
		o.report.Add(res)
		return
	}
	a, b := harness.Median(ours), harness.Median(theirs)
	res.Notes, res.Differs = map[string]string{"same": same}, strings.HasPrefix(same, differs)
	res.Set("tidemill s", a.Wall.Seconds(), "tidemill-s")
	res.Set("DuckDB s", b.Wall.Seconds(), "duckdb-s")
	res.Set(harness.RatioColumn, a.Wall.Seconds()/b.Wall.Seconds(), "ratio")
	res.Set("tidemill MB", float64(a.PeakBytes)/1e6, "tidemill-MB-peak")
	res.Set("DuckDB MB", float64(b.PeakBytes)/1e6, "duckdb-MB-peak")
	res.Set("alloc MB", float64(a.AllocBytes)/1e6, "tidemill-MB-alloc")
	res.Set("allocs", float64(a.Allocs), "tidemill-allocs")
	res.Set("read MB", float64(a.ReadBytes)/1e6, "tidemill-MB-read")
	res.Set("DuckDB read MB", float64(b.ReadBytes)/1e6, "duckdb-MB-read")
	if b.CPU > 0 {
		res.Set("CPU ratio", a.CPU.Seconds()/b.CPU.Seconds(), "cpu-ratio")
	}
	o.report.Add(res)
}

// mean is the geometric mean of a column.
func (o *output) mean(column string) float64 { return o.report.Mean(o.suiteName, column) }

// write prints the table and fills the files that are asked for.
func (o *output) write(out io.Writer, note string, columns []string) error {
	o.report.Begin(o.suiteName, harness.Suite{Note: note, Columns: columns, Chart: harness.RatioColumn})
	return o.to.Write(out, o.report)
}
