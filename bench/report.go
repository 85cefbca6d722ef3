package main

import (
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"

	"github.com/tidemill/tidemill/bench/harness"
)

// makeReport is the command report. It merges reports, of run, of the DuckDB module and of
// peers, into the history, and writes the README's section and chart from its newest file.
func makeReport(args []string, out io.Writer) error {
	f := flag.NewFlagSet("bench report", flag.ContinueOnError)
	root := f.String("root", ".", "the directory of the module")
	name := f.String("as", "", "merge the JSON files that follow into history/NAME; else only the README is written")
	if err := f.Parse(args); err != nil {
		return err
	}
	if (*name == "") != (f.NArg() == 0) {
		return errors.New("bench report: give -as DATE-COMMIT and the JSON files to merge, or neither")
	}
	history := filepath.Join(*root, "bench", "history")
	if *name != "" {
		if err := keepReport(filepath.Join(history, *name), f.Args()); err != nil {
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
	page := filepath.Join(*root, "README.md")
	text, err := os.ReadFile(page)
	if err != nil {
		return err
	}
	text, err = withSection(text, readmeSection(r))
	if err != nil {
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

// keepReport merges reports into the files of a name.
func keepReport(name string, files []string) error {
	all := harness.NewReport()
	for _, file := range files {
		r, err := harness.ReadReport(file)
		if err != nil {
			return err
		}
		all.Merge(r)
	}
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
