package main

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"golang.org/x/term"

	"github.com/tidemill/tidemill"
)

// replayFlags are the flags of replay.
type replayFlags struct {
	script      scriptFlags
	options     tidemill.ReplayOptions
	format, out string
}

func newReplay() *cobra.Command {
	var f replayFlags
	c := &cobra.Command{
		Use:   "replay [flags] FILE.sql --batch N",
		Short: "run one batch alone, and print its rows or those of each operator",
		Long: `Runs batch N of a query again, in memory, from what the checkpoint says it read and from
the state that the batch before it left, and prints the rows the sink was given. It writes
nothing but what --out asks for, takes no lock, and may look at a query that runs.`,
		Example: `  tidemill replay orders.sql --batch 3
  tidemill replay orders.sql --batch 3 --operators --format jsonl --out batch3`,
		Args: takes(1, 1, "one FILE.sql"),
		RunE: func(c *cobra.Command, args []string) error {
			if !c.Flags().Changed("batch") {
				return usagef("say which batch with --batch N")
			}
			if err := checkOutGiven(c, f.out); err != nil {
				return err
			}
			return f.replay(c.Context(), args[0])
		},
	}
	f.script.add(c)
	c.Flags().Int64Var(&f.options.Batch, "batch", 0, "the number of the batch")
	c.Flags().StringVar(&f.options.Query, "query", "", "the query, for a file with several INSERTs: the name of its sink, or its query_name")
	c.Flags().BoolVar(&f.options.Operators, "operators", false, "print the rows that each operator gives, from the top of the plan down")
	c.Flags().StringVar(&f.format, "format", "", "table, csv, jsonl, parquet, arrow or avro (default: table on a terminal, else csv)")
	c.Flags().StringVar(&f.out, "out", "", "write to files in this directory, which must be new or empty")
	return c
}

func (f *replayFlags) replay(ctx context.Context, file string) error {
	if f.format == "" {
		f.format = "csv"
		if f.out == "" && term.IsTerminal(int(os.Stdout.Fd())) {
			f.format = "table"
		}
	}
	if err := checkFormat(f.format); err != nil {
		return err
	}
	if binary := slices.Contains([]string{"parquet", "arrow", "avro"}, f.format); binary && f.options.Operators && f.out == "" {
		return usagef("--format %s of several operators needs --out DIR", f.format)
	}
	if err := f.checkOut(); err != nil {
		return err
	}
	script, s, err := f.script.open(ctx, file)
	if err != nil {
		return err
	}
	r, err := script.Replay(ctx, f.options)
	if err != nil {
		return err
	}
	defer r.Release()
	if !f.options.Operators {
		return f.show("rows", "", result{rows: r.Rows, format: f.format, zone: s.Location(), toFile: f.out != ""})
	}
	for i, o := range r.Operators {
		if o.Rows == nil {
			continue
		}
		kind, _, _ := strings.Cut(o.Operator, " ")
		title := fmt.Sprintf("== %s%s ==", strings.Repeat("  ", o.Depth), o.Operator)
		err := f.show(fmt.Sprintf("%02d-%s", i, kind), title, result{rows: o.Rows, format: f.format, zone: s.Location(), toFile: f.out != ""})
		if err != nil {
			return err
		}
	}
	return nil
}

// checkOut makes sure that nothing of the user's is overwritten.
func (f *replayFlags) checkOut() error {
	if f.out == "" {
		return nil
	}
	if list, err := os.ReadDir(f.out); err == nil && len(list) > 0 {
		return usagef("--out %s is not empty; name a new directory", f.out)
	}
	if err := os.MkdirAll(f.out, 0o777); err != nil {
		return usagef("--out %s: %w", f.out, err)
	}
	return nil
}

// show prints rows under their title, or writes them to the file of that name.
func (f *replayFlags) show(name, title string, r result) error {
	if f.out == "" {
		if title != "" {
			fmt.Println(title)
		}
		return r.print()
	}
	ext := f.format
	if ext == "table" {
		ext = "txt"
	}
	if err := checkNames(f.format, fieldNames(r.rows.Schema())); err != nil {
		return err
	}
	out := filepath.Join(f.out, name+"."+ext)
	if err := writeOut(out, r.encode); err != nil {
		return fmt.Errorf("--out %s: %w", out, err)
	}
	return nil
}
