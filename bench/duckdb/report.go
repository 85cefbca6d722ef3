package main

import (
	"errors"
	"flag"
	"fmt"
	"io"
	"math"
	"slices"

	"github.com/tidemill/tidemill/bench/harness"
)

// output is where the results of a command go beside its table.
type output struct {
	report                 *harness.Report
	bench, json, chart     string
	title, note, suiteName string
}

func newOutput(suite, title string) *output {
	return &output{report: harness.NewReport(), suiteName: suite, title: title}
}

func (o *output) flags(f *flag.FlagSet) {
	f.StringVar(&o.bench, "bench", "", "write Go's benchmark format to this file, too")
	f.StringVar(&o.json, "json", "", "write JSON to this file, too")
	f.StringVar(&o.chart, "chart", "", "draw the ratios into this SVG file, too")
}

// sideColumns are the columns of what was run on both engines.
var sideColumns = []string{"tidemill s", "DuckDB s", "ratio", "CPU ratio", "tidemill MB", "DuckDB MB", "same"}

// add notes a query that both engines ran: medians, what is said of the results, or why
// there is none.
func (o *output) add(name string, ours, theirs []harness.Measurement, same string, err error) {
	res := harness.Result{Suite: o.suiteName, Name: name, Runs: len(ours)}
	if err != nil {
		res.Failed = err.Error()
		o.report.Add(res)
		return
	}
	a, b := median(ours), median(theirs)
	res.Notes = map[string]string{"same": same}
	res.Values = map[string]harness.Value{
		"tidemill s":  {Number: a.Wall.Seconds(), Unit: "tidemill-s"},
		"DuckDB s":    {Number: b.Wall.Seconds(), Unit: "duckdb-s"},
		"ratio":       {Number: a.Wall.Seconds() / b.Wall.Seconds(), Unit: "ratio"},
		"tidemill MB": {Number: float64(a.PeakBytes) / 1e6, Unit: "tidemill-MB-peak"},
		"DuckDB MB":   {Number: float64(b.PeakBytes) / 1e6, Unit: "duckdb-MB-peak"},
	}
	if b.CPU > 0 {
		res.Values["CPU ratio"] = harness.Value{Number: a.CPU.Seconds() / b.CPU.Seconds(), Unit: "cpu-ratio"}
	}
	o.report.Add(res)
}

// mean is the geometric mean of a column.
func (o *output) mean(column string) float64 {
	sum, n := 0.0, 0
	for _, r := range o.report.Results {
		if v, ok := r.Values[column]; ok {
			sum, n = sum+math.Log(v.Number), n+1
		}
	}
	return math.Exp(sum / float64(max(n, 1)))
}

// write prints the table and fills the files that are asked for.
func (o *output) write(out io.Writer, columns []string) error {
	fmt.Fprintf(out, "%s\n%s\n", o.report.Machine, o.note)
	return errors.Join(
		o.report.WriteTables(out, map[string][]string{o.suiteName: columns}),
		harness.ToFile(o.bench, o.report.WriteBench), harness.ToFile(o.json, o.report.WriteJSON),
		harness.ToFile(o.chart, func(w io.Writer) error { return o.report.WriteChart(w, o.title, "ratio") }),
	)
}

// median is the run of median time.
func median(list []harness.Measurement) harness.Measurement {
	sorted := slices.SortedFunc(slices.Values(list), func(a, b harness.Measurement) int { return int(a.Wall - b.Wall) })
	return sorted[len(sorted)/2]
}
