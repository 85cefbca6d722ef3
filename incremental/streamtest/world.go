package streamtest

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"path"
	"slices"
	"strings"
	"time"

	"github.com/apache/arrow-go/v18/arrow"
	arrowmemory "github.com/apache/arrow-go/v18/arrow/memory"

	"github.com/tidemill/tidemill/checkpoint"
	"github.com/tidemill/tidemill/columnar"
	"github.com/tidemill/tidemill/columnar/function"
	"github.com/tidemill/tidemill/formats"
	"github.com/tidemill/tidemill/formats/memory"
	"github.com/tidemill/tidemill/incremental"
	"github.com/tidemill/tidemill/incremental/state"
	"github.com/tidemill/tidemill/internal/vfs"
	"github.com/tidemill/tidemill/logical"
	"github.com/tidemill/tidemill/logical/connector"
	"github.com/tidemill/tidemill/logical/sql"
	"github.com/tidemill/tidemill/optimizer"
)

// Variant is one way to run a query that must not change its results.
type Variant struct {
	Name       string
	Restart    bool // reopened before every batch
	Replay     bool // every batch run twice: its commit is taken away in between
	BatchRows  int
	Shards     int
	Snapshots  checkpoint.SnapshotPolicy
	NoOptimize bool
	Format     string // inputs written as csv or parquet instead of what they are
}

// Clock stands still unless told to move.
type Clock struct{ now time.Time }

// Now is the time it shows.
func (c *Clock) Now() time.Time { return c.now }

// Sleep moves the clock.
func (c *Clock) Sleep(ctx context.Context, d time.Duration) error {
	c.now = c.now.Add(d)
	return ctx.Err()
}

// The places of a World.
const (
	inputDir      = "/in"
	checkpointDir = "/checkpoint"
	outputDir     = "/out"
)

// World is one streaming query over a filesystem: its streams, its output, what it has
// done.
type World struct {
	FS      vfs.FS
	Mem     arrowmemory.Allocator
	Clock   *Clock
	Variant Variant
	// ToFiles writes to /out in FileFormat instead of memory.
	ToFiles    bool
	FileFormat string

	ddl      []string
	query    string
	mode     connector.OutputMode
	settings map[string]string
	policy   incremental.WatermarkPolicy

	result   *memory.Result
	seen     int
	m        *incremental.Manual
	warnings []string
}

// NewWorld makes an empty world.
func NewWorld(fsys vfs.FS, v Variant) *World {
	return &World{
		FS: fsys, Mem: columnar.NewPool(), Variant: v,
		Clock:  &Clock{now: time.Date(2024, 1, 1, 0, 0, 0, 0, time.UTC)},
		result: memory.NewResult(), settings: map[string]string{},
	}
}

// Declare adds a CREATE statement.
func (w *World) Declare(ddl string) { w.ddl = append(w.ddl, ddl) }

// Query sets what runs; Open starts it.
func (w *World) Query(query string, mode connector.OutputMode, settings map[string]string) error {
	w.query, w.mode, w.settings = query, mode, map[string]string{}
	for k, v := range settings {
		if k == "watermark_policy" {
			var err error
			if w.policy, err = incremental.ParseWatermarkPolicy(v); err != nil {
				return err
			}
		}
		w.settings[k] = v
	}
	return nil
}

// planner binds SQL over the world's declarations, with what the checkpoint pins.
func (w *World) planner(ctx context.Context) (*sql.Planner, error) {
	r := &formats.Resolver{
		Connectors: formats.NewRegistry(memory.NewStore()), FS: w.FS, Mem: w.Mem,
		Warn: func(text string) { w.warnings = append(w.warnings, text) }, Pins: w.pins(),
	}
	p := &sql.Planner{Catalog: logical.NewCatalog(), Functions: function.Builtins(), Resolver: r}
	for _, d := range w.ddl {
		if err := p.Script(ctx, d, func(*sql.Planned) error { return nil }); err != nil {
			return nil, err
		}
	}
	return p, nil
}

func (w *World) pins() map[string]map[string]string {
	pins := map[string]map[string]string{}
	err := checkpoint.Inspect(w.FS, checkpointDir, func(v *checkpoint.View) error {
		plan, err := v.Plan()
		for _, s := range plan.Sources {
			if n := len(s.Schemas); n > 0 {
				pins[strings.ToLower(s.Name)] = s.Schemas[n-1].Options
			}
		}
		return err
	})
	if err != nil {
		return nil
	}
	return pins
}

// Plan binds the query.
func (w *World) Plan(ctx context.Context) (logical.Node, error) {
	p, err := w.planner(ctx)
	if err != nil {
		return nil, err
	}
	return p.Query(ctx, w.query)
}

// Config is the configuration of the query.
func (w *World) Config(plan logical.Node) incremental.Config {
	return incremental.Config{
		Name: "test", Plan: plan, Mode: w.mode, FS: w.FS, Checkpoint: checkpointDir, SinkName: "out",
		Settings: w.settings, Policy: w.policy, Registry: function.Builtins(), DisableRules: w.disabled(),
		Parallel: max(w.Variant.Shards, 1), BatchRows: w.Variant.BatchRows, Mem: w.Mem, Clock: w.Clock,
		Snapshots: w.Variant.Snapshots, InlineSnapshots: true, Engine: "test",
		Listener: incremental.Listener{Warn: func(text string) { w.warnings = append(w.warnings, text) }},
		Sink: func(ctx context.Context, o incremental.Output) (connector.Sink, error) {
			return w.openSink(ctx, o, plan.Schema().Arrow())
		},
	}
}

// disabled is every optimizer rule where the variant runs without.
func (w *World) disabled() []string {
	if !w.Variant.NoOptimize {
		return nil
	}
	o, err := optimizer.New(&function.Env{Mem: w.Mem})
	if err != nil {
		return nil
	}
	return o.Names()
}

func (w *World) openSink(ctx context.Context, o incremental.Output, columns *arrow.Schema) (connector.Sink, error) {
	if !w.ToFiles {
		return memory.NewSink(w.result, o.QueryID), nil
	}
	return formats.NewRegistry(memory.NewStore()).Sink(ctx, "filesystem", connector.Env{
		Name: "out", Options: map[string]string{"path": outputDir, "format": w.FileFormat}, Columns: columns,
		QueryID: o.QueryID, Checkpoint: checkpointDir, Committed: o.Committed, Mode: w.mode,
		FS: w.FS, Mem: w.Mem, Now: w.Clock.Now,
	})
}

// Open starts the query, or starts it again where it left off.
func (w *World) Open(ctx context.Context) error {
	plan, err := w.Plan(ctx)
	if err != nil {
		return err
	}
	w.m, err = incremental.OpenManual(ctx, w.Config(plan))
	return err
}

// Close stops the query.
func (w *World) Close() error {
	if w.m == nil {
		return nil
	}
	err := w.m.Close()
	w.m = nil
	return err
}

// Reopen stops and starts the query.
func (w *World) Reopen(ctx context.Context) error {
	if err := w.Close(); err != nil {
		return err
	}
	return w.Open(ctx)
}

// NextBatch is the id of the next batch.
func (w *World) NextBatch() int64 { return w.m.NextBatch() }

// Step runs one batch as the variant says; ran is false if there is nothing to do.
func (w *World) Step(ctx context.Context) (ran bool, err error) {
	if w.Variant.Restart {
		if err := w.Reopen(ctx); err != nil {
			return false, err
		}
	}
	w.Clock.now = w.Clock.now.Add(time.Second)
	if ran, err = w.m.Step(ctx); !ran || err != nil || !w.Variant.Replay {
		return ran, err
	}
	return true, w.replay(ctx)
}

// replay takes the newest commit away, so that its batch is run again for its state.
func (w *World) replay(ctx context.Context) error {
	id := w.m.NextBatch() - 1
	if err := w.Close(); err != nil {
		return err
	}
	if err := w.FS.Remove(path.Join(checkpointDir, "commits", fmt.Sprint(id))); err != nil {
		return err
	}
	if err := w.Open(ctx); err != nil {
		return err
	}
	if got := w.m.NextBatch() - 1; got != id {
		return fmt.Errorf("batch %d was not run again: the next is %d", id, got+1)
	}
	return nil
}

// Progress is the report of the last batch.
func (w *World) Progress() (incremental.Progress, bool) { return w.m.LastProgress() }

// NewBatches are the micro-batches that came out since the last call. The caller
// releases them.
func (w *World) NewBatches() []memory.Batch {
	all := w.result.Batches()
	if w.mode == connector.Complete {
		return all // the newest table alone
	}
	for _, b := range all[:w.seen] {
		b.Release()
	}
	out := all[w.seen:]
	w.seen = len(all)
	return out
}

// Output is everything in memory as text: rows of every batch, sorted.
func (w *World) Output() string {
	all := w.result.Batches()
	var rows []arrow.RecordBatch
	for _, b := range all {
		defer b.Release()
		rows = append(rows, b.Rows...)
	}
	schema := w.result.Schema()
	if schema == nil {
		return "nothing\n"
	}
	return columnar.Text(schema, rows, columnar.TextOptions{})
}

// State is a table of an operator's state at the newest version, as text.
func (w *World) State(ctx context.Context, operator, table string) (string, error) {
	var text string
	err := checkpoint.Inspect(w.FS, checkpointDir, func(v *checkpoint.View) error {
		b, err := v.Batches()
		if err != nil {
			return err
		}
		c, err := v.Commit(b.LastCommitted())
		if err != nil {
			return err
		}
		op, ok := c.StateOf(operator)
		if !ok {
			return fmt.Errorf("there is no operator %s", operator)
		}
		text = fmt.Sprintf("version=%d rows=%d\n", op.Version, op.Rows)
		if op.Rows == 0 {
			return nil
		}
		body, err := w.stateText(ctx, v, op, table)
		text += body
		return err
	})
	return text, err
}

func (w *World) stateText(ctx context.Context, v *checkpoint.View, op checkpoint.OperatorState, table string) (string, error) {
	if table == "" {
		table = op.Files[0].Table
	}
	r, err := state.Scan(ctx, w.Mem, v, op, table)
	if err != nil {
		return "", err
	}
	batches, err := columnar.Drain(ctx, r)
	if err := errors.Join(err, r.Close()); err != nil {
		return "", err
	}
	defer releaseAll(batches)
	return columnar.Text(r.Schema(), batches, columnar.TextOptions{}), nil
}

func releaseAll(batches []arrow.RecordBatch) {
	for _, b := range batches {
		b.Release()
	}
}

// WriteInput writes an input file under /in. Each is newer than the one before.
func (w *World) WriteInput(name string, data []byte) error {
	w.Clock.now = w.Clock.now.Add(time.Second)
	full := path.Join(inputDir, name)
	if err := vfs.MkdirAll(w.FS, path.Dir(full)); err != nil {
		return err
	}
	f, err := w.FS.Create(full)
	if err != nil {
		return err
	}
	_, err = f.Write(data)
	err = errors.Join(err, f.Sync(), f.Close(), vfs.SyncDir(w.FS, path.Dir(full)))
	if c, ok := w.FS.(interface {
		Chtimes(name string, mtime time.Time) error
	}); ok && err == nil {
		err = c.Chtimes(full, w.Clock.now)
	}
	return err
}

// List is the files below a directory, sorted.
func (w *World) List(dir string) ([]string, error) {
	var names []string
	err := vfs.Walk(w.FS, dir, func(name string, d fs.DirEntry) error {
		if !d.IsDir() {
			names = append(names, name)
		}
		return nil
	})
	slices.Sort(names)
	return names, err
}
