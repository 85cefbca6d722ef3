package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"

	"github.com/tidemill/tidemill/bench/gen"
	"github.com/tidemill/tidemill/bench/harness"
	"github.com/tidemill/tidemill/bench/queries"
	"github.com/tidemill/tidemill/internal/vfs"
)

// makeProfile is the command profile: it runs what the benchmarks run, small, and merges
// the profiles into one, from which the compiler learns what is hot.
func makeProfile(ctx context.Context, args []string, out io.Writer) error {
	s := &suites{fs: vfs.OS(), report: harness.NewReport(), log: out, format: "csv", files: 4}
	f := flag.NewFlagSet("bench profile", flag.ContinueOnError)
	f.StringVar(&s.tidemill, "tidemill", "tidemill", "the tidemill binary; build it with -pgo=off")
	f.StringVar(&s.dir, "dir", filepath.Join(os.TempDir(), "tidemill-bench"), "where the data is, or is made")
	f.Int64Var(&s.rows, "rows", 2_000_000, "rows of each table")
	f.Int64Var(&s.events, "events", 1_000_000, "events of the online auction")
	f.IntVar(&s.threads, "threads", 2, "threads of the engine")
	name := f.String("out", filepath.FromSlash("cmd/tidemill/default.pgo"), "the merged profile")
	if err := harness.Parse(f, args); err != nil {
		return err
	}
	if err := harness.Positive(f, "rows", "threads"); err != nil {
		return err
	}
	if err := harness.AtLeast(f, "events", leastEvents, "fewer leave a stream empty"); err != nil {
		return err
	}
	if err := harness.CheckWritable("out", *name); err != nil {
		return err
	}
	work, err := os.MkdirTemp("", "tidemill-profile-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(work)
	if err := s.fs.MkdirAll(filepath.ToSlash(s.dir)); err != nil {
		return err
	}
	s.profiles = work
	if err := s.profileQueries(ctx); err != nil {
		return err
	}
	if err := errors.Join(s.nexmark(ctx), s.report.Failures()); err != nil {
		return err
	}
	files, err := filepath.Glob(filepath.Join(work, "*"))
	if err != nil {
		return err
	}
	slices.Sort(files)
	// Symbols are in the profiles; found anew in the binary, they would lose the lines that
	// the compiler needs.
	merge := exec.CommandContext(ctx, "go", append([]string{"tool", "pprof", "-symbolize=none", "-proto", "-output", *name}, files...)...)
	if text, err := merge.CombinedOutput(); err != nil {
		return fmt.Errorf("%w\n%s", err, text)
	}
	fmt.Fprintf(out, "%s, of %d runs\n", *name, len(files))
	return nil
}

// profileQueries runs the batch queries in every format.
func (s *suites) profileQueries(ctx context.Context) error {
	all, err := queries.All()
	if err != nil {
		return err
	}
	for _, format := range gen.Formats {
		for _, q := range all {
			d := gen.H2O(1, s.rows, 100)
			if q.Data == "events" {
				d = gen.Events(1, s.rows, 1000)
			}
			file := filepath.ToSlash(filepath.Join(s.dir, fmt.Sprintf("%s-%d.%s", q.Data, s.rows, format)))
			if err := s.table(file, format, d); err != nil {
				return err
			}
			if _, err := s.measured(ctx, "query", "--format", "csv", "--set", fmt.Sprintf("threads=%d", s.threads), q.Text(false, file)); err != nil {
				return err
			}
		}
	}
	return nil
}
