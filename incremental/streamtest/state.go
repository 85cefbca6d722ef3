package streamtest

import (
	"context"
	"errors"
	"strings"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"

	"github.com/tidemill/tidemill/checkpoint"
	"github.com/tidemill/tidemill/columnar"
	"github.com/tidemill/tidemill/incremental/state"
)

// stateText is a table of state as text; "" is the operator's first one.
func (w *World) stateText(ctx context.Context, v *checkpoint.View, op checkpoint.OperatorState, table string) (string, error) {
	if table == "" && len(op.Files) > 0 {
		table = op.Files[0].Table
	}
	r, err := state.Scan(ctx, w.Mem, v, op, table)
	if err != nil {
		return "", err
	}
	batches, err := columnar.Drain(ctx, r)
	defer releaseAll(batches)
	if err := errors.Join(err, r.Close()); err != nil {
		return "", err
	}
	schema, batches := withoutNumbers(r.Schema(), batches)
	defer releaseAll(batches)
	return columnar.Text(schema, batches, columnar.TextOptions{}), nil
}

// withoutNumbers leaves out the numbers that stand for rows of multi-row tables: they
// depend on the number of shards, and nothing else does. The batches are the caller's.
func withoutNumbers(s *arrow.Schema, batches []arrow.RecordBatch) (*arrow.Schema, []arrow.RecordBatch) {
	var fields []arrow.Field
	var keep []int
	for i, f := range s.Fields() {
		if !strings.HasPrefix(f.Name, "__") {
			fields, keep = append(fields, f), append(keep, i)
		}
	}
	schema := arrow.NewSchema(fields, nil)
	out := make([]arrow.RecordBatch, len(batches))
	for i, b := range batches {
		columns := make([]arrow.Array, len(keep))
		for k, c := range keep {
			columns[k] = b.Column(c)
		}
		out[i] = array.NewRecordBatch(schema, columns, b.NumRows())
	}
	return schema, out
}

// AllState is every table of every operator at the newest version, as text.
func (w *World) AllState(ctx context.Context) (string, error) {
	var text string
	err := checkpoint.Inspect(w.FS, checkpointDir, func(v *checkpoint.View) error {
		b, err := v.Batches()
		if err != nil {
			return err
		}
		text = ""
		if b.LastCommitted() == checkpoint.NoBatch {
			return nil
		}
		c, err := v.Commit(b.LastCommitted())
		if err != nil {
			return err
		}
		for _, op := range c.State {
			tables := map[string]bool{}
			for _, f := range op.Files {
				if tables[f.Table] {
					continue
				}
				tables[f.Table] = true
				body, err := w.stateText(ctx, v, op, f.Table)
				if err != nil {
					return err
				}
				text += op.Operator + " " + f.Table + "\n" + body
			}
		}
		return nil
	})
	return text, err
}
