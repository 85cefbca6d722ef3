package main

import (
	"context"
	"os"
	"slices"
	"time"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/memory"
	"github.com/spf13/cobra"
	"golang.org/x/term"

	"github.com/tidemill/tidemill"
	"github.com/tidemill/tidemill/checkpoint"
	"github.com/tidemill/tidemill/columnar"
	"github.com/tidemill/tidemill/incremental/state"
)

// diffFlags say which states are compared.
type diffFlags struct {
	stateFlags
	batches []int64
}

func newStateDiff() *cobra.Command {
	var f diffFlags
	c := &cobra.Command{
		Use:   "diff DIR",
		Short: "print the rows that differ between two batches",
		Long: `Prints the rows that were added, removed or changed between the state after one batch and
that after a later one: those of --at-batch N and of the batch before it, or of --at-batch M,N.`,
		Args: takes(1, 1, "one DIR, a checkpoint"),
		RunE: func(c *cobra.Command, args []string) error { return stateDiff(c.Context(), args[0], f) },
	}
	c.Flags().Int64SliceVar(&f.batches, "at-batch", nil, "a batch, compared with the one before it, or two: M,N (default: the newest)")
	c.Flags().StringVar(&f.operator, "op", "", "only this operator, as state ls names it")
	c.Flags().StringVar(&f.table, "table", "", "only this table")
	c.Flags().StringVar(&f.format, "format", "", "table, csv, jsonl, parquet, arrow or avro")
	return c
}

// noState is the batch before the first: its state is empty.
const noState = checkpoint.NoBatch

// between finds the two batches to compare.
func (f diffFlags) between(v *checkpoint.View) (from, to int64, err error) {
	switch len(f.batches) {
	case 0:
		_, to, err = stateAt(v, newest)
		return to - 1, to, err
	case 1:
		return f.batches[0] - 1, f.batches[0], nil
	case 2:
		if f.batches[0] < f.batches[1] {
			return f.batches[0], f.batches[1], nil
		}
	}
	return 0, 0, usagef("--at-batch takes a batch, or two, the earlier first")
}

func stateDiff(ctx context.Context, dir string, f diffFlags) error {
	if f.format == "" {
		f.format = "csv"
		if term.IsTerminal(int(os.Stdout.Fd())) {
			f.format = "table"
		}
	}
	if err := checkFormat(f.format); err != nil {
		return err
	}
	var d *stateDifference
	err := inspect(dir, func(v *checkpoint.View) error {
		d = newStateDifference()
		return f.compare(ctx, v, d)
	})
	if err != nil {
		return err
	}
	rows := d.rows()
	defer rows.Release()
	r := result{rows: rows, format: f.format, zone: time.UTC}
	return r.print()
}

// compare compares every table of every operator that the flags leave.
func (f diffFlags) compare(ctx context.Context, v *checkpoint.View, d *stateDifference) error {
	from, to, err := f.between(v)
	if err != nil {
		return err
	}
	var before []checkpoint.OperatorState
	if from > noState {
		if before, _, err = stateAt(v, from); err != nil {
			return err
		}
	}
	after, _, err := stateAt(v, to)
	if err != nil {
		return err
	}
	plan, err := v.Plan()
	if err != nil {
		return err
	}
	var names, tables []string
	for _, op := range plan.Operators {
		names = append(names, op.Name)
		if f.operator != "" && op.Name != f.operator {
			continue
		}
		for _, t := range op.Tables {
			tables = append(tables, t.Name)
			if f.table != "" && t.Name != f.table {
				continue
			}
			if err := d.table(ctx, v, op.Name, t, before, after); err != nil {
				return err
			}
		}
	}
	switch {
	case len(names) == 0:
		return usagef("the query keeps no state")
	case f.operator != "" && !slices.Contains(names, f.operator):
		return usagef("there is no operator %q%s", f.operator, columnar.DidYouMean(f.operator, names))
	case f.table != "" && !slices.Contains(tables, f.table):
		return usagef("there is no table %q%s", f.table, columnar.DidYouMean(f.table, tables))
	}
	return nil
}

// stateDifference gathers rows: operator, table, change, key, before, after.
type stateDifference struct{ columns [6]*array.StringBuilder }

func newStateDifference() *stateDifference {
	d := &stateDifference{}
	for i := range d.columns {
		d.columns[i] = array.NewStringBuilder(memory.DefaultAllocator)
	}
	return d
}

// diffColumns name the columns of a stateDifference.
var diffColumns = [6]string{"operator", "table", "change", "key", "before", "after"}

func (d *stateDifference) rows() *tidemill.Rows {
	fields := make([]arrow.Field, len(diffColumns))
	arrays := make([]arrow.Array, len(diffColumns))
	for i, name := range diffColumns {
		fields[i] = columnar.Field(name, columnar.String)
		arrays[i] = d.columns[i].NewArray()
		defer arrays[i].Release()
	}
	schema := arrow.NewSchema(fields, nil)
	return tidemill.NewRows(schema, []arrow.RecordBatch{array.NewRecordBatch(schema, arrays, int64(arrays[0].Len()))})
}

// add notes one difference; a nil text is null.
func (d *stateDifference) add(operator, table, change string, texts ...[]byte) {
	for i, text := range []string{operator, table, change} {
		d.columns[i].Append(text)
	}
	for i, text := range texts {
		if text == nil {
			d.columns[3+i].AppendNull()
		} else {
			d.columns[3+i].Append(string(text))
		}
	}
}

// table compares one table in two versions.
func (d *stateDifference) table(ctx context.Context, v *checkpoint.View, operator string, t checkpoint.StateTable, before, after []checkpoint.OperatorState) error {
	old, err := readTable(ctx, v, operator, t, before)
	if err != nil {
		return err
	}
	now, err := readTable(ctx, v, operator, t, after)
	if err != nil {
		return err
	}
	keys := map[string]*keyDifference{}
	for _, r := range old {
		of(keys, r.key).was = append(of(keys, r.key).was, r.value)
	}
	for _, r := range now {
		of(keys, r.key).is = append(of(keys, r.key).is, r.value)
	}
	// In the order of the later version, then of what is gone.
	for _, r := range append(now, old...) {
		if k := keys[string(r.key)]; k != nil {
			k.tell(d, operator, t.Name, r.key)
			delete(keys, string(r.key))
		}
	}
	return nil
}

// keyDifference is the values of one key in two versions; a join keeps several rows of a
// key.
type keyDifference struct{ was, is [][]byte }

func of(keys map[string]*keyDifference, key []byte) *keyDifference {
	k := keys[string(key)]
	if k == nil {
		k = &keyDifference{}
		keys[string(key)] = k
	}
	return k
}

// tell notes what became of the rows of a key.
func (k *keyDifference) tell(d *stateDifference, operator, table string, key []byte) {
	single := len(k.was) == 1 && len(k.is) == 1
	was := without(k.was, k.is)
	is := without(k.is, k.was)
	if single && len(was) == 1 {
		d.add(operator, table, "changed", key, was[0], is[0])
		return
	}
	for _, v := range was {
		d.add(operator, table, "removed", key, v, nil)
	}
	for _, v := range is {
		d.add(operator, table, "added", key, nil, v)
	}
}

// without is list without the elements of others, each as often as it is there.
func without(list, others [][]byte) (left [][]byte) {
	n := map[string]int{}
	for _, o := range others {
		n[string(o)]++
	}
	for _, v := range list {
		if n[string(v)]--; n[string(v)] < 0 {
			left = append(left, v)
		}
	}
	return left
}

// stateRow is a row of a state as text.
type stateRow struct{ key, value []byte }

// readTable reads a table as it was after a batch; one that had no files yet is empty.
func readTable(ctx context.Context, v *checkpoint.View, operator string, t checkpoint.StateTable, states []checkpoint.OperatorState) (rows []stateRow, err error) {
	i := slices.IndexFunc(states, func(s checkpoint.OperatorState) bool { return s.Operator == operator })
	if i < 0 || len(states[i].TableFiles(t.Name)) == 0 {
		return nil, nil
	}
	r, err := state.Scan(ctx, memory.DefaultAllocator, v, states[i], t.Name)
	if err != nil {
		return nil, err
	}
	defer r.Close()
	for b, err := range columnar.All(ctx, r) {
		if err != nil {
			return nil, err
		}
		for i := range int(b.NumRows()) {
			rows = append(rows, stateRow{rowText(b, i, 0, len(t.Key)), rowText(b, i, len(t.Key), int(b.NumCols()))})
		}
	}
	return rows, nil
}

// rowText is the columns from … to-1 of a row, each as NAME=VALUE.
func rowText(b arrow.RecordBatch, row, from, to int) []byte {
	out := []byte{}
	for c := from; c < to; c++ {
		if c > from {
			out = append(out, ", "...)
		}
		out = append(append(out, b.ColumnName(c)...), '=')
		out = columnar.AppendCanonical(out, b.Column(c), row, nil)
	}
	return out
}
