package streamtest

import (
	"context"
	"errors"

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
	return columnar.Text(r.Schema(), batches, columnar.TextOptions{}), nil
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
