package streamtest

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/apache/arrow-go/v18/arrow"

	"github.com/tidemill/tidemill/checkpoint"
	"github.com/tidemill/tidemill/columnar/diff"
	"github.com/tidemill/tidemill/formats/memory"
	"github.com/tidemill/tidemill/incremental"
	"github.com/tidemill/tidemill/internal/vfs"
	"github.com/tidemill/tidemill/logical/connector"
)

// replays holds the query to the law that its log gives its rows again: all batches, from
// batch 0 with no state, and the newest alone, with the state that is kept. It ends the
// query.
func (w *World) replays(ctx context.Context) error {
	if err := w.Close(); err != nil {
		return err
	}
	commits, err := w.commits()
	if err != nil || len(commits) == 0 {
		return err
	}
	if err := w.rerun(ctx, commits, nil); err != nil {
		return err
	}
	if n := len(commits) - 1; n > 0 {
		return w.rerun(ctx, commits[n:], &commits[n-1])
	}
	return nil
}

// commits are those of all batches.
func (w *World) commits() (commits []checkpoint.CommitEntry, err error) {
	err = checkpoint.Inspect(w.FS, checkpointDir, func(v *checkpoint.View) error {
		commits = nil
		b, err := v.Batches()
		if err != nil {
			return err
		}
		for id := range b.LastCommitted() + 1 {
			c, err := v.Commit(id)
			if err != nil {
				return err
			}
			commits = append(commits, c)
		}
		return nil
	})
	return commits, err
}

// rerun runs batches again, from what last left, and compares their rows.
func (w *World) rerun(ctx context.Context, commits []checkpoint.CommitEntry, last *checkpoint.CommitEntry) (err error) {
	again := *w
	o := vfs.NewOverlay(memOf(w.FS))
	checkpoint.Rewind(o, checkpointDir, last != nil)
	again.FS, again.result, again.Variant.Kill = o, memory.NewResult(), notKilled
	defer again.result.Clear()
	plan, err := again.Plan(ctx)
	if err != nil {
		return err
	}
	r, err := incremental.OpenReplay(ctx, again.Config(plan), last)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, r.Close()) }()
	for i := range commits {
		c := &commits[i]
		if lost, err := r.Lost(ctx, &c.Offsets, &commits[len(commits)-1].Offsets); err != nil || len(lost) > 0 {
			return errors.Join(err, fmt.Errorf("batch %d has lost %v", c.Batch, lost))
		}
		now, err := r.Run(ctx, &c.Offsets)
		if err != nil {
			return err
		}
		if now.Counters != c.Counters {
			return fmt.Errorf("batch %d counts %v when it runs again, and counted %v", c.Batch, now.Counters, c.Counters)
		}
		if w.mode == connector.Complete && i < len(commits)-1 {
			continue // its table was replaced
		}
		if d := difference(w.result, again.result, c.Batch); d != "" {
			return fmt.Errorf("batch %d gives other rows when it runs again:\n%s", c.Batch, d)
		}
	}
	return nil
}

// difference is the rows of a batch that only one of two results has.
func difference(was, is *memory.Result, id int64) string {
	rows := func(r *memory.Result) []diff.Row {
		all := r.Batches()
		defer func() {
			for _, b := range all {
				b.Release()
			}
		}()
		i := slices.IndexFunc(all, func(b memory.Batch) bool { return b.ID == id })
		if i < 0 {
			return diff.Rows([]arrow.RecordBatch{}, "")
		}
		return diff.Rows(all[i].Rows, "")
	}
	var sb strings.Builder
	diff.Compare(rows(was), rows(is), diff.Options{ULP: 2}, func(r diff.Row, extra bool) bool {
		sign := "-"
		if extra {
			sign = "+"
		}
		fmt.Fprintf(&sb, "%s %s\n", sign, r.Text)
		return sb.Len() < 4000
	})
	return sb.String()
}
