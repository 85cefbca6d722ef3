package main

import (
	"context"
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
	passed   []string // names that were not wanted
	log      io.Writer
	profiles string // the directory that gets a profile of each run, if any
}

// suite is a named set of measurements, the columns of its table, the one that is drawn,
// and the least a flag must give it, if any, with the reason.
type suite struct {
	run     func(*suites, context.Context) error
	columns []string
	chart   string
	least   least
}

type least struct {
	flag  string
	value int64
	why   string
}

var allSuites = map[string]suite{
	"nexmark":  {(*suites).nexmark, nexmarkColumns, "events/s/core", least{"events", leastEvents, "fewer leave a stream of nexmark empty"}},
	"latency":  {(*suites).latency, latencyColumns, "p50 ms", least{"files", warmUp + 1, fmt.Sprintf("the first %d batches of latency warm up and are not counted", warmUp)}},
	"recovery": {(*suites).recovery, recoveryColumns, "restart s", least{"rows", leastGroups, "recovery begins with as many groups"}},
	"scaling":  {(*suites).scaling, scalingColumns, "faster by", least{"rows", leastTable, "the smallest table of scaling has as many rows"}},
	"overhead": {(*suites).overhead, overheadColumns, "overhead %", least{}},
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
	f.StringVar(&s.tidemill, "tidemill", "tidemill", "the tidemill binary; latency and recovery, and overhead in part, run in the process of bench instead")
	f.StringVar(&s.dir, "dir", filepath.Join(os.TempDir(), "tidemill-bench"), "where the data is, or is made")
	f.StringVar(&s.format, "format", "csv", "format of landed files: csv, jsonl, parquet")
	f.StringVar(&s.only, "only", "", "only measurements whose name contains this")
	f.Int64Var(&s.events, "events", 5_000_000, fmt.Sprintf("nexmark: events of all three streams, %d or more", leastEvents))
	f.Int64Var(&s.rows, "rows", 10_000_000, fmt.Sprintf("scaling: rows, %d or more; overhead: rows; recovery: groups, %d or more", leastTable, leastGroups))
	f.IntVar(&s.files, "files", 20, fmt.Sprintf("nexmark: files of each stream; latency: batches, of which the first %d are not counted", warmUp))
	f.IntVar(&s.threads, "threads", 2, "threads of the engine")
	f.IntVar(&s.n, "n", 3, "scaling, overhead: runs; the median counts")
	var to harness.Outputs
	to.Flags(f)
	if err := harness.Parse(f, args); err != nil {
		return err
	}
	wanted, err := checkSuites(f, *list, s.format)
	if err != nil {
		return err
	}
	if err := to.Check(); err != nil {
		return err
	}
	if err := s.fs.MkdirAll(filepath.ToSlash(s.dir)); err != nil {
		return err
	}
	for _, name := range wanted {
		one := allSuites[name]
		s.report.Begin(name, harness.Suite{Columns: one.columns, Chart: one.chart})
		if err := one.run(s, ctx); err != nil {
			return fmt.Errorf("%s: %w", name, err)
		}
	}
	if len(s.report.Results) == 0 {
		return harness.NothingMatches("only", s.only, s.passed)
	}
	return to.Write(out, s.report)
}

// checkSuites gives the suites of a list, once the flags are such that each can run.
func checkSuites(f *flag.FlagSet, list, format string) ([]string, error) {
	if err := harness.Positive(f, "events", "rows", "files", "threads", "n"); err != nil {
		return nil, err
	}
	if err := harness.Known("format", format, gen.Formats); err != nil {
		return nil, err
	}
	wanted, err := harness.KnownList("suite", list, suiteNames())
	if err != nil {
		return nil, err
	}
	for _, name := range wanted {
		if l := allSuites[name].least; l.flag != "" {
			if err := harness.AtLeast(f, l.flag, l.value, l.why); err != nil {
				return nil, err
			}
		}
	}
	return wanted, nil
}

// wants says whether a measurement was asked for, and notes the names of those that were not.
func (s *suites) wants(name string) bool {
	if strings.Contains(name, s.only) {
		return true
	}
	s.passed = append(s.passed, name)
	return false
}

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
