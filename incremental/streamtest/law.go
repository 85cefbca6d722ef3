package streamtest

import (
	"context"
	"errors"
	"fmt"
	"path"
	"strings"
	"time"

	arrowmemory "github.com/apache/arrow-go/v18/arrow/memory"

	"github.com/tidemill/tidemill/checkpoint"
	"github.com/tidemill/tidemill/columnar"
	"github.com/tidemill/tidemill/columnar/columnartest"
	"github.com/tidemill/tidemill/columnar/kernel"
	"github.com/tidemill/tidemill/internal/vfs"
	"github.com/tidemill/tidemill/internal/vfs/faultfs"
	"github.com/tidemill/tidemill/logical/connector"
)

// Check runs the case as a stream and as a batch and returns how they differ, "" if they
// do not. A case that says nothing, for one because it fails in both, is vacuous: why is
// said.
//
//	append    the rows of all micro-batches are those of the batch
//	update    the last row of each key is that of the batch
//	complete  the last table is that of the batch
//
// And each micro-batch gives its rows again when it is run from its log.
//
// Rows that the stream dropped as late, by the watermark of the batch they came in, are
// left out of the batch.
func (c *Case) Check(ctx context.Context, mem arrowmemory.Allocator) (difference, vacuous string) {
	got, late, streamErr := c.stream(ctx, mem)
	if got != nil {
		defer got.release()
	}
	switch {
	case streamErr == nil && len(late) == 0:
		return "", "there are no files"
	case streamErr == nil && c.reopensSessions(late):
		return "", "a session may begin again"
	}
	want, batchErr := c.batch(ctx, mem, late)
	if want != nil {
		defer want.release()
	}
	switch {
	case streamErr != nil && (late == nil || batchErr == nil):
		return fmt.Sprintf("only the stream fails: %v\n", streamErr), ""
	case streamErr != nil:
		return "", "both fail: " + streamErr.Error()
	case batchErr != nil:
		return fmt.Sprintf("only the batch fails: %v\n", batchErr), ""
	}
	return columnartest.Diff(want.batches, got.batches, columnartest.DiffOptions{Ordered: c.Query.Top > 0, ULP: 4}), ""
}

// stream runs the case as a stream. late is the watermark by which the rows of each file
// were judged.
func (c *Case) stream(ctx context.Context, mem arrowmemory.Allocator) (_ *rowSet, late map[string]*int64, err error) {
	disk := vfs.NewMem()
	variant := c.Variant
	variant.NamedInputs = 0 // judged reads from the commits which files a batch had
	w := NewWorld(disk, mem, variant)
	defer func() { err = errors.Join(err, w.Release()) }()
	w.streams = c.streams()
	for _, d := range w.streams {
		if f := c.Variant.Format; f != d.format {
			d.asFormat = f
		}
	}
	if c.Query.Join != "" {
		if err := c.addDim(ctx, w); err != nil {
			return nil, nil, err
		}
	}
	var settings map[string]string
	if p := c.Query.Policy; p != "" {
		settings = map[string]string{"watermark_policy": p}
	}
	if err := w.Query(c.Query.sql(false), c.Query.Mode, settings); err != nil {
		return nil, nil, err
	}
	if c.Crash >= 0 {
		w.FS = newFaulty(disk, faultfs.Rule{Action: faultfs.Crash, When: faultfs.Nth(c.Crash, faultfs.Mutating())})
	}
	for _, b := range c.all() {
		for _, f := range b.Files {
			if err := c.write(ctx, w, f); err != nil {
				return nil, nil, err
			}
		}
		if err := c.trigger(ctx, w, b.Drain); err != nil {
			return nil, nil, err
		}
	}
	if err := c.trigger(ctx, w, true); err != nil {
		return nil, nil, err
	}
	late, err = judged(w)
	if err != nil {
		return nil, nil, err
	}
	if err := w.replays(ctx); err != nil {
		return nil, late, err
	}
	rows, err := c.rows(w)
	return rows, late, err
}

// reopensSessions says whether a row came behind the watermark but not late by its own
// end: it may have belonged to a session that was closed already, and then begins
// another, which no batch would.
func (c *Case) reopensSessions(late map[string]*int64) bool {
	if !c.Query.isSession() || c.Query.Mode == connector.Complete {
		return false
	}
	for _, b := range c.Batches {
		for _, f := range b.Files {
			lw := late[strings.TrimSuffix(f.Name, path.Ext(f.Name))]
			for _, r := range f.Rows {
				text, _, _ := strings.Cut(strings.TrimPrefix(r, `{"ts":"`), `"`)
				if t, err := time.Parse(time.RFC3339, text); err == nil && lw != nil && t.UnixMicro() <= *lw {
					return true
				}
			}
		}
	}
	return false
}

func (c *Case) addDim(ctx context.Context, w *World) error {
	w.streams = append(w.streams, &streamDecl{name: "dim", kind: "TABLE", format: "json", columns: dimSchema})
	return c.write(ctx, w, genFile{Name: "dim/1.json", Rows: c.Dim})
}

// write writes a file past the faults of the filesystem.
func (c *Case) write(ctx context.Context, w *World, f genFile) error {
	fsys := w.FS
	w.FS = memOf(fsys)
	defer func() { w.FS = fsys }()
	return w.WriteInput(ctx, f.Name, []byte(lines(f.Rows)))
}

// trigger runs one micro-batch, or all. A machine that dies is started again.
func (c *Case) trigger(ctx context.Context, w *World, drain bool) error {
	for {
		ran, err := w.Step(ctx)
		if f, ok := w.FS.(*faulty); ok && errors.Is(err, faultfs.ErrCrashed) {
			w.FS = f.mem.Crash(c.Seed, 0.5)
			continue
		}
		if err != nil {
			return err
		}
		before := w.reported
		w.reported = w.m.NextBatch()
		if !drain || !ran && before == w.reported {
			return nil
		}
	}
}

// judged is the late watermark of the batch that each file was read in.
func judged(w *World) (map[string]*int64, error) {
	late := map[string]*int64{}
	err := checkpoint.Inspect(w.FS, checkpointDir, func(v *checkpoint.View) error {
		b, err := v.Batches()
		if err != nil {
			return err
		}
		for id := range b.LastCommitted() + 1 {
			c, err := v.Commit(id)
			if err != nil {
				return err
			}
			for _, f := range c.Inputs {
				base := strings.TrimPrefix(f.Path, inputDir+"/")
				late[strings.TrimSuffix(base, path.Ext(base))] = c.Offsets.LateWatermark
			}
		}
		return nil
	})
	return late, err
}

// rows are what the law compares: all rows, or the last of each key.
func (c *Case) rows(w *World) (*rowSet, error) {
	out := &rowSet{schema: w.result.Schema()}
	for _, b := range w.result.Batches() {
		for _, r := range b.Rows {
			r.Retain()
			out.batches = append(out.batches, r)
		}
		b.Release()
	}
	if c.Query.Mode != connector.Update || c.Query.Kind == stateless {
		return out, nil
	}
	defer out.release()
	return lastOfEach(w.Mem, out, c.Query.keyColumns()), nil
}

// lastOfEach keeps the last row of each value of the first n columns.
func lastOfEach(mem arrowmemory.Allocator, rows *rowSet, n int) *rowSet {
	type place struct{ batch, row int }
	last := map[string]place{}
	for i, b := range rows.batches {
		for row := range int(b.NumRows()) {
			var key []byte
			for c := range n {
				key = append(columnar.AppendCanonical(key, b.Column(c), row, nil), 0)
			}
			last[string(key)] = place{i, row}
		}
	}
	keep := make([][]int32, len(rows.batches))
	for i, b := range rows.batches {
		for row := range int(b.NumRows()) {
			var key []byte
			for c := range n {
				key = append(columnar.AppendCanonical(key, b.Column(c), row, nil), 0)
			}
			if last[string(key)] == (place{i, row}) {
				keep[i] = append(keep[i], int32(row))
			}
		}
	}
	out := &rowSet{schema: rows.schema}
	for i, b := range rows.batches {
		if len(keep[i]) > 0 {
			out.batches = append(out.batches, kernel.FilterBatch(mem, b, keep[i]))
		}
	}
	return out
}

// batch runs the case as a batch over all rows but the late ones.
func (c *Case) batch(ctx context.Context, mem arrowmemory.Allocator, late map[string]*int64) (*rowSet, error) {
	w := NewWorld(vfs.NewMem(), mem, Variant{})
	for _, d := range c.streams() {
		d.kind, d.columns, d.watermark = "TABLE", genSchema+", lw timestamp", ""
		w.streams = append(w.streams, d)
	}
	if c.Query.Join != "" {
		if err := c.addDim(ctx, w); err != nil {
			return nil, err
		}
	}
	written := map[string]bool{}
	for _, b := range c.all() {
		for _, f := range b.Files {
			written[path.Dir(f.Name)] = true
			if err := c.write(ctx, w, withWatermark(f, late)); err != nil {
				return nil, err
			}
		}
	}
	for _, d := range w.streams {
		if !written[d.name] && d.name != "dim" {
			// A bounded table needs a file.
			if err := c.write(ctx, w, genFile{Name: d.name + "/none.json"}); err != nil {
				return nil, err
			}
		}
	}
	return w.Bounded(ctx, c.Query.sql(true))
}

// withWatermark adds the watermark by which its rows were judged to a file.
func withWatermark(f genFile, late map[string]*int64) genFile {
	lw := late[strings.TrimSuffix(f.Name, path.Ext(f.Name))]
	if lw == nil {
		return f
	}
	out := genFile{Name: f.Name}
	for _, r := range f.Rows {
		out.Rows = append(out.Rows, strings.TrimSuffix(r, "}")+fmt.Sprintf(`,"lw":%q}`, instant(lw)))
	}
	return out
}
