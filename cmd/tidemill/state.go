package main

import (
	"context"
	"fmt"
	"math"
	"os"
	"strings"
	"time"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/memory"
	"github.com/spf13/cobra"
	"golang.org/x/term"

	"github.com/tidemill/tidemill"
	"github.com/tidemill/tidemill/checkpoint"
	"github.com/tidemill/tidemill/columnar"
	"github.com/tidemill/tidemill/incremental/state"
)

// stateFlags say which state is looked at.
type stateFlags struct {
	operator, table, format string
	batch                   int64
}

func newState() *cobra.Command {
	var f stateFlags
	ls := &cobra.Command{
		Use: "ls DIR", Short: "list the operators and tables", Args: takes(1, 1, "one DIR, a checkpoint"),
		RunE: func(c *cobra.Command, args []string) error { return stateList(args[0], f) },
	}
	cat := &cobra.Command{
		Use: "cat DIR", Short: "print a table", Args: takes(1, 1, "one DIR, a checkpoint"),
		RunE: func(c *cobra.Command, args []string) error { return stateCat(c.Context(), args[0], nil, f) },
	}
	get := &cobra.Command{
		Use: "get DIR KEY=VALUE…", Short: "print the rows of a key", Args: takes(2, -1, "a DIR and one KEY=VALUE or more"),
		RunE: func(c *cobra.Command, args []string) error {
			want, err := parseKeys(args[1:])
			if err != nil {
				return err
			}
			return stateCat(c.Context(), args[0], want, f)
		},
	}
	for _, sub := range []*cobra.Command{ls, cat, get} {
		sub.Flags().Int64Var(&f.batch, "at-batch", newest, "the state after this batch (default: the newest)")
		sub.Flags().Lookup("at-batch").DefValue = "0" // not shown
		if sub != ls {
			sub.Flags().StringVar(&f.operator, "op", "", "the operator, as state ls names it (default: the only one)")
			sub.Flags().StringVar(&f.table, "table", "", "the table (default: the first)")
			sub.Flags().StringVar(&f.format, "format", "", "table, csv, jsonl, parquet, arrow or avro")
		}
	}
	return group(&cobra.Command{Use: "state", Short: "look at what a query remembers, as tables"}, ls, cat, get, newStateDiff())
}

// newest stands for the newest batch; it is no number a user would write.
const newest = math.MinInt64

// stateAt finds the state after a batch that keeps its own files.
func stateAt(v *checkpoint.View, batch int64) ([]checkpoint.OperatorState, int64, error) {
	b, err := v.Batches()
	if err != nil {
		return nil, 0, err
	}
	switch {
	case batch == newest:
		batch = b.LastCommitted()
	case batch < 0:
		return nil, batch, usagef("--at-batch %d: batches are numbered from 0", batch)
	}
	if batch == checkpoint.NoBatch {
		return nil, batch, usagef("no batch is committed yet")
	}
	for _, id := range b.Commits {
		if id == batch {
			c, err := v.Commit(batch)
			return c.State, batch, err
		}
	}
	return nil, batch, usagef("the state after batch %d is not kept; batches %d to %d are", batch, first(b.Commits), b.LastCommitted())
}

func first(ids []int64) int64 {
	if len(ids) == 0 {
		return checkpoint.NoBatch
	}
	return ids[0]
}

func stateList(dir string, f stateFlags) error {
	var operators []checkpoint.OperatorState
	var batch int64
	err := inspect(dir, func(v *checkpoint.View) (err error) {
		operators, batch, err = stateAt(v, f.batch)
		return err
	})
	if err != nil {
		return err
	}
	if len(operators) == 0 {
		fmt.Printf("after batch %d: the query keeps no state\n", batch)
		return nil
	}
	fmt.Printf("after batch %d\n", batch)
	for _, op := range operators {
		fmt.Printf("%s  %s, %s\n", op.Operator, count(op.Rows, "row"), byteSize(op.Bytes()))
		for _, t := range tablesOf(op) {
			fmt.Printf("  table %s in %s\n", t, count(int64(len(op.TableFiles(t))), "file"))
		}
	}
	return nil
}

func tablesOf(op checkpoint.OperatorState) []string {
	var names []string
	seen := map[string]bool{}
	for _, f := range op.Files {
		if !seen[f.Table] {
			seen[f.Table] = true
			names = append(names, f.Table)
		}
	}
	return names
}

// choose picks the operator and table the flags name.
func (f stateFlags) choose(operators []checkpoint.OperatorState) (checkpoint.OperatorState, string, error) {
	var names []string
	for _, op := range operators {
		names = append(names, op.Operator)
		if op.Operator == f.operator || f.operator == "" && len(operators) == 1 {
			tables := tablesOf(op)
			if len(tables) == 0 {
				return op, "", usagef("the state of %s is empty", op.Operator)
			}
			if f.table == "" {
				return op, tables[0], nil
			}
			for _, t := range tables {
				if t == f.table {
					return op, t, nil
				}
			}
			return op, "", usagef("%s has no table %q%s", op.Operator, f.table, columnar.DidYouMean(f.table, tables))
		}
	}
	switch {
	case len(names) == 0:
		return checkpoint.OperatorState{}, "", usagef("the query keeps no state")
	case f.operator == "":
		return checkpoint.OperatorState{}, "", usagef("name an operator with --op: %s", strings.Join(names, ", "))
	}
	return checkpoint.OperatorState{}, "", usagef("there is no operator %q%s", f.operator, columnar.DidYouMean(f.operator, names))
}

// stateCat prints a table, or the rows of a key.
func stateCat(ctx context.Context, dir string, want []keyValue, f stateFlags) error {
	if f.format == "" {
		f.format = "csv"
		if term.IsTerminal(int(os.Stdout.Fd())) {
			f.format = "table"
		}
	}
	if err := checkFormat(f.format); err != nil {
		return err
	}
	var rows *tidemill.Rows
	err := inspect(dir, func(v *checkpoint.View) (err error) {
		operators, _, err := stateAt(v, f.batch)
		if err != nil {
			return err
		}
		op, table, err := f.choose(operators)
		if err != nil {
			return err
		}
		rows, err = readState(ctx, v, op, table, want)
		return err
	})
	if err != nil {
		return err
	}
	defer rows.Release()
	if want != nil && rows.NumRows() == 0 {
		return &exitError{1, "no row has that key"}
	}
	r := result{rows: rows, format: f.format, zone: time.UTC}
	return r.print()
}

func readState(ctx context.Context, v *checkpoint.View, op checkpoint.OperatorState, table string, want []keyValue) (*tidemill.Rows, error) {
	r, err := state.Scan(ctx, memory.DefaultAllocator, v, op, table)
	if err != nil {
		return nil, err
	}
	defer r.Close()
	columns := make([]keyColumn, len(want))
	for i, w := range want {
		if columns[i], err = columnOf(ctx, r.Schema(), w); err != nil {
			return nil, err
		}
	}
	var batches []arrow.RecordBatch
	for b, err := range columnar.All(ctx, r) {
		if err != nil {
			return nil, err
		}
		kept, err := matching(b, columns)
		if err != nil {
			return nil, err
		}
		if kept != nil {
			batches = append(batches, kept)
		}
	}
	for _, c := range columns {
		if c.why != nil && len(batches) == 0 {
			return nil, c.why
		}
	}
	return tidemill.NewRows(r.Schema(), batches), nil
}

func fieldNames(s *arrow.Schema) []string {
	names := make([]string, s.NumFields())
	for i, f := range s.Fields() {
		names[i] = f.Name
	}
	return names
}
