package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/tidemill/tidemill/bench/gen"
	"github.com/tidemill/tidemill/bench/harness"
	"github.com/tidemill/tidemill/internal/vfs"
)

// suites is the flags of run, and the report they fill.
type suites struct {
	tidemill, dir, format, only string
	events, rows                int64
	files, threads, n           int

	fs       vfs.FS
	report   *harness.Report
	log      io.Writer
	profiles string // the directory that gets a profile of each run, if any
}

// suite is a named set of measurements, the columns of its table, and the one that is
// drawn.
type suite struct {
	run     func(*suites, context.Context) error
	columns []string
	chart   string
}

var allSuites = map[string]suite{
	"nexmark":  {(*suites).nexmark, nexmarkColumns, "events/s/core"},
	"latency":  {(*suites).latency, latencyColumns, "p50 ms"},
	"recovery": {(*suites).recovery, recoveryColumns, "restart s"},
	"scaling":  {(*suites).scaling, scalingColumns, "faster by"},
	"overhead": {(*suites).overhead, overheadColumns, "overhead %"},
}

func suiteNames() []string {
	names := make([]string, 0, len(allSuites))
	for name := range allSuites {
		names = append(names, name)
	}
	slices.Sort(names)
	return names
}

// runSuites is the command run: it measures, and writes tables to out.
func runSuites(ctx context.Context, args []string, out io.Writer) error {
	s := &suites{fs: vfs.OS(), report: harness.NewReport(), log: out}
	f := flag.NewFlagSet("bench run", flag.ContinueOnError)
	list := f.String("suite", strings.Join(suiteNames(), ","), "suites, separated by commas")
	f.StringVar(&s.tidemill, "tidemill", "tidemill", "the tidemill binary")
	f.StringVar(&s.dir, "dir", filepath.Join(os.TempDir(), "tidemill-bench"), "where the data is, or is made")
	f.StringVar(&s.format, "format", "csv", "format of landed files: csv, jsonl, parquet")
	f.StringVar(&s.only, "only", "", "only measurements whose name contains this")
	f.Int64Var(&s.events, "events", 5_000_000, "nexmark: events of all three streams")
	f.Int64Var(&s.rows, "rows", 10_000_000, "scaling, overhead: rows; recovery: groups")
	f.IntVar(&s.files, "files", 20, "nexmark: files of each stream; latency: batches")
	f.IntVar(&s.threads, "threads", 2, "threads of the engine")
	f.IntVar(&s.n, "n", 3, "scaling, overhead: runs; the median counts")
	var to harness.Outputs
	to.Flags(f)
	if err := f.Parse(args); err != nil {
		return err
	}
	if s.events <= 0 || s.rows <= 0 || s.files <= 0 || s.threads <= 0 || s.n <= 0 {
		return errors.New("-events, -rows, -files, -threads and -n must be positive")
	}
	if err := s.fs.MkdirAll(filepath.ToSlash(s.dir)); err != nil {
		return err
	}
	for _, name := range strings.Split(*list, ",") {
		one, ok := allSuites[name]
		if !ok {
			return fmt.Errorf("suite %q is unknown; known are %s", name, strings.Join(suiteNames(), ", "))
		}
		s.report.Begin(name, harness.Suite{Columns: one.columns, Chart: one.chart})
		if err := one.run(s, ctx); err != nil {
			return fmt.Errorf("%s: %w", name, err)
		}
	}
	return to.Write(out, s.report)
}

func (s *suites) wants(name string) bool { return strings.Contains(name, s.only) }

// once makes a directory of data unless it is there whole.
func (s *suites) once(dir string, fill func() error) error {
	if _, err := s.fs.Stat(dir + "/_done"); err == nil {
		return nil
	}
	if err := s.fs.MkdirAll(dir); err != nil {
		return err
	}
	if err := fill(); err != nil {
		return err
	}
	return vfs.WriteAtomic(s.fs, dir+"/_done", nil)
}

// measured runs the binary.
func (s *suites) measured(ctx context.Context, args ...string) (harness.Measurement, error) {
	if s.profiles != "" {
		f, err := os.CreateTemp(s.profiles, "run-")
		if err != nil {
			return harness.Measurement{}, err
		}
		if err := f.Close(); err != nil {
			return harness.Measurement{}, err
		}
		args = append([]string{"--cpu-profile", f.Name()}, args...)
	}
	return harness.Tidemill(ctx, s.tidemill, args...)
}

// table makes a file of rows unless it is there.
func (s *suites) table(file, format string, d *gen.Data) error {
	if _, err := s.fs.Stat(file); err == nil {
		return nil
	}
	if err := gen.Write(s.fs, file+".tmp", format, d); err != nil {
		return err
	}
	return s.fs.Rename(file+".tmp", file)
}
