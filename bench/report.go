package main

import (
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"time"

	"github.com/tidemill/tidemill/bench/harness"
)

// makeReport is the command report. It merges reports, of run, of the DuckDB module and of
// peers, into the history, and writes the README's section and chart from its newest file.
func makeReport(args []string, out io.Writer) error {
	f := flag.NewFlagSet("bench report", flag.ContinueOnError)
	root := f.String("root", ".", "the directory of the module")
	name := f.String("as", "", "merge the JSON files that follow into history/NAME; else only the README is written")
	if err := harness.ParseBefore(f, args); err != nil {
		return err
	}
	if (*name == "") != (f.NArg() == 0) {
		return harness.Misused("report: give -as DATE-COMMIT and the JSON files to merge, or neither")
	}
	if *name != "" {
		if err := checkName(*name); err != nil {
			return err
		}
	}
	page := filepath.Join(*root, "README.md")
	text, err := os.ReadFile(page)
	if err != nil {
		return fmt.Errorf("%w; -root is the directory of the module", err)
	}
	if _, err := withSection(text, nil); err != nil {
		return fmt.Errorf("%s: %w", page, err)
	}
	history := filepath.Join(*root, "bench", "history")
	if _, err := os.Stat(history); err != nil {
		return fmt.Errorf("%w; make the directory of the history first", err)
	}
	if *name != "" {
		if err := keepReport(history, *name, f.Args()); err != nil {
			return err
		}
	}
	newest, err := newestReport(history)
	if err != nil {
		return err
	}
	r, err := harness.ReadReport(newest)
	if err != nil {
		return err
	}
	if err := compared(r); err != nil {
		return fmt.Errorf("%s: %w", newest, err)
	}
	if text, err = withSection(text, readmeSection(r)); err != nil {
		return fmt.Errorf("%s: %w", page, err)
	}
	fmt.Fprintln(out, newest)
	return errors.Join(os.WriteFile(page, text, 0o644), harness.ToFile(filepath.Join(*root, "docs", "img", "bench.svg"), ratioChart(r)))
}

// ratioChart draws what was run on both engines.
func ratioChart(r *harness.Report) func(io.Writer) error {
	sides := harness.NewReport()
	sides.Merge(r)
	for name, suite := range sides.Suites {
		if suite.Chart != harness.RatioColumn {
			suite.Chart = ""
			sides.Suites[name] = suite
		}
	}
	return sides.WriteChart
}

var reportName = regexp.MustCompile(`^(\d{4}-\d{2}-\d{2})-[0-9a-f]{1,40}$`)

// checkName checks DATE-COMMIT, by which the newest report is found.
func checkName(name string) error {
	if m := reportName.FindStringSubmatch(name); m != nil {
		if _, err := time.Parse(time.DateOnly, m[1]); err == nil {
			return nil
		}
	}
	return harness.Misused("-as: %q is not DATE-COMMIT, as in 2026-01-31-abc1234", name)
}

// compared checks that there is what the README's first table is made of.
func compared(r *harness.Report) error {
	if slices.ContainsFunc(r.Results, func(res harness.Result) bool { return res.Suite == "query" }) {
		return nil
	}
	return errors.New("no report of compare; merge the file that bench/duckdb compare -json writes, too")
}

// keepReport merges reports into the files of a name in the history.
func keepReport(history, name string, files []string) error {
	all := harness.NewReport()
	for _, file := range files {
		r, err := harness.ReadReport(file)
		if err != nil {
			return err
		}
		all.Merge(r)
	}
	if err := compared(all); err != nil {
		return err
	}
	name = filepath.Join(history, name)
	return errors.Join(harness.ToFile(name+".json", all.WriteJSON), harness.ToFile(name+".bench", all.WriteBench), harness.ToFile(name+".txt", all.WriteTables))
}

// newestReport is the last of the history: names begin with the date.
func newestReport(history string) (string, error) {
	files, err := filepath.Glob(filepath.Join(history, "*.json"))
	if err != nil {
		return "", err
	}
	if len(files) == 0 {
		return "", fmt.Errorf("%s holds no report", history)
	}
	return slices.Max(files), nil
}
