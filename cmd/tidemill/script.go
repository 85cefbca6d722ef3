package main

import (
	"context"
	"os"

	"github.com/spf13/cobra"

	"github.com/tidemill/tidemill"
)

// scriptFlags are those of commands that take FILE.sql as run does, and what run was told
// beside it.
type scriptFlags struct {
	checkpoint string
	set        []string
}

func (f *scriptFlags) add(c *cobra.Command) {
	c.Flags().StringVar(&f.checkpoint, "checkpoint", "", "the checkpoint directory, for a file with one INSERT, as run was given it")
	c.Flags().StringArrayVar(&f.set, "set", nil, "name=value, as run was given it; may be repeated")
}

// open reads and checks the file.
func (f *scriptFlags) open(ctx context.Context, file string) (*tidemill.Script, *tidemill.Session, error) {
	o := tidemill.RunOptions{Checkpoint: f.checkpoint}
	var err error
	if o.Settings, err = parseSettings(f.set); err != nil {
		return nil, nil, err
	}
	text, err := os.ReadFile(file)
	if err != nil {
		return nil, nil, &usageError{err}
	}
	s, err := newSession(f.set)
	if err != nil {
		return nil, nil, err
	}
	script, err := s.OpenScript(ctx, file, string(text), o)
	return script, s, err
}
