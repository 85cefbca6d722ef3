package main

import (
	"fmt"
	"os"

	"github.com/spf13/cobra"

	"github.com/tidemill/tidemill/checkpoint"
	"github.com/tidemill/tidemill/internal/vfs"
)

func newCheckpoint() *cobra.Command {
	return group(&cobra.Command{Use: "checkpoint", Short: "look at a checkpoint: what is in it, is it whole"},
		&cobra.Command{
			Use: "ls DIR", Short: "list the batches and state files", Args: takes(1, 1, "one DIR, a checkpoint"),
			RunE: func(_ *cobra.Command, args []string) error { return checkpointList(args[0]) },
		},
		&cobra.Command{
			Use: "verify DIR", Short: "check every file; say which batch is the last good one", Args: takes(1, 1, "one DIR, a checkpoint"),
			RunE: func(_ *cobra.Command, args []string) error { return checkpointVerify(args[0]) },
		},
	)
}

// listing is gathered first and printed once the look has succeeded.
type listing struct {
	meta    checkpoint.Metadata
	batches checkpoint.Batches
	commits []checkpoint.CommitEntry
}

func checkpointList(dir string) error {
	var l listing
	err := inspect(dir, func(v *checkpoint.View) (err error) {
		l = listing{}
		if l.meta, err = v.Metadata(); err != nil {
			return err
		}
		if l.batches, err = v.Batches(); err != nil {
			return err
		}
		for _, id := range l.batches.Commits {
			c, err := v.Commit(id)
			if err != nil {
				return err
			}
			l.commits = append(l.commits, c)
		}
		return nil
	})
	if err != nil {
		return err
	}
	l.print()
	return nil
}

func (l listing) print() {
	fmt.Printf("query %s, format version %d, made by %s\n", l.meta.ID, l.meta.FormatVersion, l.meta.Engine)
	if l.batches.History != checkpoint.NoBatch {
		fmt.Printf("batches 0 to %d are in the history\n", l.batches.History)
	}
	for _, c := range l.commits {
		fmt.Printf("batch %d  %s  in %d out %d  %s\n", c.Batch, utc(c.Offsets.Time), c.Counters.In, c.Counters.Out, count(c.InputFiles(), "input file"))
	}
	if n := len(l.commits); n > 0 {
		for _, op := range l.commits[n-1].State {
			for _, f := range op.Files {
				fmt.Printf("state %s  version %d  %s  %d bytes\n", op.Operator, f.To, f.Name, f.Size)
			}
		}
	}
	if p := l.batches.LastPlanned(); p > l.batches.LastCommitted() {
		fmt.Printf("batch %d is planned and not committed\n", p)
	}
}

func checkpointVerify(dir string) error {
	report, err := checkpoint.Verify(vfs.OS(), dir)
	if err != nil {
		return noCheckpoint(err)
	}
	for _, p := range report.Problems {
		fmt.Fprintln(os.Stdout, p)
	}
	if len(report.Problems) > 0 {
		return &exitError{3, fmt.Sprintf("%s has %s; the last good batch is %d", dir, count(int64(len(report.Problems)), "problem"), report.LastGood)}
	}
	fmt.Printf("whole; the last good batch is %d\n", report.LastGood)
	return nil
}
