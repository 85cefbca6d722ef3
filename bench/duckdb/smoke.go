package main

import (
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/tidemill/tidemill/bench/harness"
	"github.com/tidemill/tidemill/internal/vfs"
)

// smoke finds that something became much slower: it fails when the ratio of a work is
// worse than the recorded one by half. Ratios are of processor time, the least of several
// turns, which a busy machine changes little; one that seems worse gets more turns.
type smoke struct {
	tidemill, dir, file, only string
	turns, threads            int
	record                    bool

	fs  vfs.FS
	out io.Writer
}

// worseBy is how much worse than recorded a ratio may be.
const worseBy = 1.5

// extraTurns is how many times more turns a ratio gets that is worse than that.
const extraTurns = 3

// smokeWork is one thing that is measured: the processor time of tidemill, and of what it
// is set beside.
type smokeWork struct {
	name string
	turn func(context.Context) (ours, theirs time.Duration, err error)
	// The least of all turns so far.
	ours, theirs time.Duration
}

func (w *smokeWork) ratio() float64 { return w.ours.Seconds() / w.theirs.Seconds() }

// measure takes some turns.
func (w *smokeWork) measure(ctx context.Context, turns int) error {
	for range turns {
		ours, theirs, err := w.turn(ctx)
		if err != nil {
			return fmt.Errorf("%s: %w", w.name, err)
		}
		if w.ours == 0 || ours < w.ours {
			w.ours = ours
		}
		if w.theirs == 0 || theirs < w.theirs {
			w.theirs = theirs
		}
	}
	if w.ours <= 0 || w.theirs <= 0 {
		return fmt.Errorf("%s: no processor time was measured", w.name)
	}
	return nil
}

// smokeRecord is the committed file.
type smokeRecord struct {
	Machine string             `json:"machine"`
	Ratios  map[string]float64 `json:"ratios"`
}

func runSmoke(ctx context.Context, args []string) error {
	s := &smoke{fs: vfs.OS(), out: os.Stdout}
	f := flag.NewFlagSet("smoke", flag.ContinueOnError)
	f.StringVar(&s.tidemill, "tidemill", "tidemill", "the tidemill binary")
	f.StringVar(&s.dir, "dir", filepath.Join(os.TempDir(), "tidemill-smoke"), "where the data is, or is made")
	f.StringVar(&s.file, "file", filepath.FromSlash("testdata/smoke.json"), "the recorded ratios")
	f.StringVar(&s.only, "only", "", "only works whose name contains this")
	f.IntVar(&s.turns, "turns", 3, "turns of each work; the least time counts")
	f.IntVar(&s.threads, "threads", 2, "threads of both engines")
	f.BoolVar(&s.record, "record", false, "write the ratios into the file instead of comparing with it")
	if err := harness.Parse(f, args); err != nil {
		return err
	}
	if err := harness.Positive(f, "turns", "threads"); err != nil {
		return err
	}
	works, err := s.works()
	if err != nil {
		return err
	}
	if s.record {
		if err := harness.CheckWritable("file", s.file); err != nil {
			return err
		}
		return s.recordAll(ctx, works)
	}
	return s.compareAll(ctx, works)
}

// recordAll writes what it measures into the file, beside what is there of other works.
func (s *smoke) recordAll(ctx context.Context, works []smokeWork) error {
	known, err := readSmoke(s.file)
	if errors.Is(err, os.ErrNotExist) || s.only == "" {
		known = &smokeRecord{Ratios: map[string]float64{}}
	} else if err != nil {
		return err
	}
	known.Machine = harness.Machine()
	for _, w := range works {
		if err := w.measure(ctx, s.turns*(1+extraTurns)); err != nil {
			return err
		}
		known.Ratios[w.name] = float64(int(w.ratio()*1000+0.5)) / 1000
		fmt.Fprintf(s.out, "%s: %.3f (%v / %v)\n", w.name, w.ratio(), w.ours.Round(time.Millisecond), w.theirs.Round(time.Millisecond))
	}
	data, err := json.MarshalIndent(known, "", "  ")
	if err != nil {
		return err
	}
	return os.WriteFile(s.file, append(data, '\n'), 0o644)
}

// compareAll prints a table and fails if a ratio is worse than it may be.
func (s *smoke) compareAll(ctx context.Context, works []smokeWork) error {
	known, err := readSmoke(s.file)
	if err != nil {
		return err
	}
	w := tabwriter.NewWriter(s.out, 0, 0, 2, ' ', tabwriter.AlignRight)
	fmt.Fprintln(w, "work\ttidemill CPU ms\tother CPU ms\tratio\trecorded\t")
	var worse []string
	for _, work := range works {
		want, ok := known.Ratios[work.name]
		if !ok {
			worse = append(worse, fmt.Sprintf("%s has no recorded ratio", work.name))
			continue
		}
		if err := work.measure(ctx, s.turns); err != nil {
			return err
		}
		for range extraTurns {
			if work.ratio() <= want*worseBy {
				break
			}
			if err := work.measure(ctx, s.turns); err != nil {
				return err
			}
		}
		fmt.Fprintf(w, "%s\t%d\t%d\t%.3f\t%.3f\t\n", work.name, work.ours.Milliseconds(), work.theirs.Milliseconds(), work.ratio(), want)
		if work.ratio() > want*worseBy {
			worse = append(worse, fmt.Sprintf("%s: ratio %.3f, recorded %.3f", work.name, work.ratio(), want))
		}
	}
	if err := w.Flush(); err != nil || len(worse) == 0 {
		return err
	}
	return fmt.Errorf("slower than recorded by more than half; profile it, or if it must be so, run smoke -record:\n%s", strings.Join(worse, "\n"))
}

func readSmoke(name string) (*smokeRecord, error) {
	data, err := os.ReadFile(name)
	if err != nil {
		return nil, err
	}
	r := &smokeRecord{}
	if err := json.Unmarshal(data, r); err != nil {
		return nil, fmt.Errorf("%s: %w", name, err)
	}
	return r, nil
}
