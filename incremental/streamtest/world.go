package streamtest

import (
	"cmp"
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
	"github.com/tidemill/tidemill/internal/vfs"
	"github.com/tidemill/tidemill/logical"
	"github.com/tidemill/tidemill/logical/connector"
	"github.com/tidemill/tidemill/logical/sql"
	"github.com/tidemill/tidemill/optimizer"
	"github.com/tidemill/tidemill/physical"
)

// Clock stands still unless told to move. With a grain it shows multiples of that only.
type Clock struct {
	now   time.Time
	grain time.Duration
}

// Now is the time it shows.
func (c *Clock) Now() time.Time { return c.now.Truncate(c.grain) }

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
	// Ahead has Step begin the next batch early, as a query does whose trigger does not
	// wait.
	Ahead bool
	// Sink is where rows go: "" is memory, noop, or the format of files in /out.
	Sink string
	// SinkOptions are further options of a file sink.
	SinkOptions map[string]string
	// Keep are the rows kept beside the output: late, bad.
	Keep []string
	// Retain and FoldEvery are the query's.
	Retain, FoldEvery int
	// NamedInputs is the query's.
	NamedInputs int
	// Wrap, if it is not nil, puts something above the plan of the query that SQL cannot
	// say.
	Wrap func(plan logical.Node) (logical.Node, error)

	streams  []*streamDecl
	query    string
	mode     connector.OutputMode
	settings map[string]string
	policy   incremental.WatermarkPolicy

	result   *memory.Result
	kills    killed
	reported int64 // batches that were told of
	m        *incremental.Manual
	warnings []string
}

// streamDecl is a declared stream or table.
type streamDecl struct {
	name, kind  string // STREAM, TABLE, or "" for any other statement
	columns     string // the list in parentheses without watermark, "" to infer
	watermark   string
	format      string
	options     []string // k = 'v', without path and format
	otherwise   string   // the statement of kind ""
	asFormat    string   // what its files are written as instead
	perTriggers int
}

// sql is its CREATE statement. Bounded ones are tables, with another watermark clause.
func (d *streamDecl) sql(bounded bool) string {
	if d.kind == "" {
		return d.otherwise
	}
	kind, columns, options := d.kind, d.columns, d.options
	format := d.format
	if d.asFormat != "" {
		format = d.asFormat
	}
	options = append([]string{fmt.Sprintf("path = '%s/%s'", inputDir, d.name), fmt.Sprintf("format = '%s'", format)}, options...)
	if bounded {
		kind = "TABLE"
	} else {
		if d.watermark != "" {
			columns = strings.TrimPrefix(columns+", "+d.watermark, ", ")
		}
		if d.perTriggers > 0 {
			options = append(options, fmt.Sprintf("max_files_per_trigger = %d", d.perTriggers))
		}
	}
	if columns != "" {
		columns = " (" + columns + ")"
	}
	return fmt.Sprintf("CREATE %s %s%s WITH (%s);", kind, d.name, columns, strings.Join(options, ", "))
}

// NewWorld makes an empty world.
func NewWorld(fsys vfs.FS, mem arrowmemory.Allocator, v Variant) *World {
	return &World{
		FS: fsys, Mem: mem, Variant: v,
		Clock:  &Clock{now: time.Date(2024, 1, 1, 0, 0, 0, 0, time.UTC)},
		result: memory.NewResult(), settings: map[string]string{}, kills: killed{},
	}
}

// Declare adds a statement of SQL.
func (w *World) Declare(statement string) {
	w.streams = append(w.streams, &streamDecl{otherwise: statement})
}

// Query sets what runs; Open starts it.
func (w *World) Query(query string, mode connector.OutputMode, settings map[string]string) error {
	w.query, w.mode, w.settings, w.policy = query, mode, map[string]string{"output_mode": mode.String()}, incremental.MinPolicy
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
func (w *World) planner(ctx context.Context, bounded bool) (*sql.Planner, error) {
	r := &formats.Resolver{
		Connectors: formats.NewRegistry(memory.NewStore()), FS: w.FS, Mem: w.Mem, Warn: w.warn, Pins: w.pins(),
	}
	p := &sql.Planner{Catalog: logical.NewCatalog(), Functions: function.Builtins(), Resolver: r, Bounded: bounded}
	for _, d := range w.streams {
		if err := p.Script(ctx, d.sql(bounded), func(*sql.Planned) error { return nil }); err != nil {
			return nil, err
		}
	}
	return p, nil
}

func (w *World) warn(text string) { w.warnings = append(w.warnings, text) }

// Warnings are those since the last call.
func (w *World) Warnings() []string {
	out := w.warnings
	w.warnings = nil
	return out
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
	p, err := w.planner(ctx, false)
	if err != nil {
		return nil, err
	}
	plan, err := p.Query(ctx, w.query)
	if err != nil || w.Wrap == nil {
		return plan, err
	}
	return w.Wrap(plan)
}

// Config is the configuration of the query.
func (w *World) Config(plan logical.Node) incremental.Config {
	return incremental.Config{
		Name: "test", Plan: plan, Mode: w.mode, FS: w.FS, Checkpoint: checkpointDir, SinkName: outputDir,
		ID:       "00000000-0000-4000-8000-000000000001",
		Settings: w.settings, Policy: w.policy, Registry: function.Builtins(), DisableRules: w.disabled(),
		Parallel: max(w.Variant.Shards, 1), BatchRows: w.Variant.BatchRows, Mem: w.Mem, Clock: w.Clock,
		Snapshots: w.Variant.Snapshots, InlineSnapshots: true, Engine: "test", Retain: w.Retain, FoldEvery: w.FoldEvery,
		NamedInputs: cmp.Or(w.NamedInputs, w.Variant.NamedInputs),
		KeepLate:    slices.Contains(w.Keep, "late"), KeepBad: slices.Contains(w.Keep, "bad"),
		Listener: incremental.Listener{Warn: w.warn},
		Sink: func(ctx context.Context, o incremental.Output) (connector.Sink, error) {
			sink, err := w.openSink(ctx, o, plan.Schema().Arrow())
			if err != nil || w.Variant.Kill == notKilled {
				return sink, err
			}
			return &killSink{Sink: sink, when: w.Variant.Kill, killed: w.kills}, nil
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
	if w.Sink == "" {
		return memory.NewSink(w.result, o.QueryID), nil
	}
	env := connector.Env{
		Name: "out", Options: map[string]string{}, Columns: columns,
		QueryID: o.QueryID, Checkpoint: checkpointDir, Committed: o.Committed, Mode: w.mode,
		FS: w.FS, Mem: w.Mem, Now: w.Clock.Now, Warn: w.warn,
	}
	name := "noop"
	if w.Sink != "noop" {
		name = "filesystem"
		env.Options["path"], env.Options["format"] = outputDir, w.Sink
		for k, v := range w.SinkOptions {
			env.Options[k] = v
		}
	}
	return formats.NewRegistry(memory.NewStore()).Sink(ctx, name, env)
}

// Open starts the query, or starts it again where it left off: what an earlier run left
// open is finished.
func (w *World) Open(ctx context.Context) error {
	plan, err := w.Plan(ctx)
	if err != nil {
		return err
	}
	if w.m, err = incremental.OpenManual(ctx, w.Config(plan)); err == nil && w.Ahead {
		w.m.RunAhead()
	}
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

// Release closes the query and gives its rows in memory back.
func (w *World) Release() error {
	err := w.Close()
	w.result.Clear()
	return err
}

// Reopen stops and starts the query. The clock is another while it recovers: a batch
// that is run again must not see it.
func (w *World) Reopen(ctx context.Context) error {
	if err := w.Close(); err != nil {
		return err
	}
	before := w.Clock.now
	w.Clock.now = before.Add(time.Hour)
	defer func() { w.Clock.now = before }()
	err := w.Open(ctx)
	for errors.Is(err, errKilled) {
		err = w.Open(ctx) // it died again in a batch that it ran again
	}
	return err
}

// NextBatch is the id of the next batch.
func (w *World) NextBatch() int64 { return w.m.NextBatch() }

// Step runs one batch as the variant says; ran is false if there was nothing to do. If
// the query had ended it is started first, and what that finishes counts as the batch.
// An error ends the query.
func (w *World) Step(ctx context.Context) (ran bool, err error) {
	defer func() {
		if err != nil {
			err = errors.Join(err, w.Close())
		}
	}()
	w.Clock.now = w.Clock.now.Add(time.Second)
	if w.m == nil || w.Variant.Restart {
		if err := w.Reopen(ctx); err != nil {
			return false, err
		}
		if w.m.NextBatch() > w.reported {
			return true, nil
		}
	}
	ran, err = w.m.Step(ctx)
	if errors.Is(err, errKilled) {
		return true, w.Reopen(ctx)
	}
	if !ran || err != nil || !w.Variant.Replay {
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
	if err := w.Reopen(ctx); err != nil {
		return err
	}
	if got := w.m.NextBatch() - 1; got != id {
		return fmt.Errorf("batch %d was not run again: the next is %d", id, got+1)
	}
	return nil
}

// Progress is the report of the last batch.
func (w *World) Progress() (incremental.Progress, bool) {
	if w.m == nil {
		return incremental.Progress{}, false
	}
	return w.m.LastProgress()
}

// NewCommits are the commits that were not told of yet.
func (w *World) NewCommits() ([]checkpoint.CommitEntry, error) {
	var out []checkpoint.CommitEntry
	err := checkpoint.Inspect(w.FS, checkpointDir, func(v *checkpoint.View) error {
		b, err := v.Batches()
		if err != nil {
			return err
		}
		out = nil
		for id := w.reported; id <= b.LastCommitted(); id++ {
			c, err := v.Commit(id)
			if err != nil {
				return err
			}
			out = append(out, c)
		}
		return nil
	})
	if err == nil {
		w.reported += int64(len(out))
	}
	return out, err
}

// Rows are the rows a batch wrote, as text; "" if it wrote none.
func (w *World) Rows(ctx context.Context, batch int64, ordered bool) (string, error) {
	o := columnar.TextOptions{Ordered: ordered}
	if w.Sink == "noop" {
		return "", nil
	}
	if w.Sink != "" {
		file := fmt.Sprintf("part-%020d-*", batch)
		if w.mode == connector.Complete {
			file = "part-000.*"
		}
		rows, err := w.Files(ctx, path.Join(outputDir, "**", file))
		if err != nil || rows == nil {
			return "", err
		}
		defer rows.release()
		return columnar.Text(rows.schema, rows.batches, o), nil
	}
	text := ""
	for _, b := range w.result.Batches() {
		if b.ID == batch && count(b.Rows) > 0 {
			text = columnar.Text(w.result.Schema(), b.Rows, o)
		}
		b.Release()
	}
	return text, nil
}

// rowSet is the rows of a query.
type rowSet struct {
	schema  *arrow.Schema
	batches []arrow.RecordBatch
}

func (r *rowSet) release() { releaseAll(r.batches) }

func count(batches []arrow.RecordBatch) (n int64) {
	for _, b := range batches {
		n += b.NumRows()
	}
	return n
}

// Files reads the files of a glob; nil if there are none.
func (w *World) Files(ctx context.Context, glob string) (*rowSet, error) {
	p, err := w.planner(ctx, true)
	if err != nil {
		return nil, err
	}
	plan, err := p.Query(ctx, fmt.Sprintf("SELECT * FROM '%s'", glob))
	var none *connector.NoFilesError
	if errors.As(err, &none) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	return w.collect(ctx, plan)
}

// Bounded runs a query over everything that is there now, as a batch.
func (w *World) Bounded(ctx context.Context, query string) (*rowSet, error) {
	p, err := w.planner(ctx, true)
	if err != nil {
		return nil, err
	}
	plan, err := p.Query(ctx, query)
	if err != nil {
		return nil, err
	}
	return w.collect(ctx, plan)
}

func (w *World) collect(ctx context.Context, plan logical.Node) (*rowSet, error) {
	o, err := optimizer.New(&function.Env{Mem: w.Mem}, w.disabled()...)
	if err != nil {
		return nil, err
	}
	if plan, _, err = o.Optimize(plan); err != nil {
		return nil, err
	}
	run, err := physical.NewPlanner().Plan(plan)
	if err != nil {
		return nil, err
	}
	r, err := physical.Run(ctx, run, &physical.ExecContext{
		Mem: w.Mem, BatchRows: w.Variant.BatchRows, Parallel: max(w.Variant.Shards, 1), Now: w.Clock.now.UnixMicro(),
	})
	if err != nil {
		return nil, err
	}
	batches, err := columnar.Drain(ctx, r)
	if err = errors.Join(err, r.Close()); err != nil {
		releaseAll(batches)
		return nil, err
	}
	return &rowSet{r.Schema(), batches}, nil
}

// Output is everything that came out, as text, sorted.
func (w *World) Output(ctx context.Context) (string, error) {
	if w.Sink == "noop" {
		return "nothing\n", nil
	}
	if w.Sink != "" {
		rows, err := w.Files(ctx, path.Join(outputDir, "**", "part-*"))
		if err != nil || rows == nil {
			return "nothing\n", err
		}
		defer rows.release()
		return columnar.Text(rows.schema, rows.batches, columnar.TextOptions{}), nil
	}
	var rows []arrow.RecordBatch
	for _, b := range w.result.Batches() {
		defer b.Release()
		rows = append(rows, b.Rows...)
	}
	schema := w.result.Schema()
	if schema == nil {
		return "nothing\n", nil
	}
	return columnar.Text(schema, rows, columnar.TextOptions{}), nil
}

// Side is some columns of what is kept beside the output under a name, late or bad, as
// text, sorted.
func (w *World) Side(ctx context.Context, name, columns string) (string, error) {
	rows, err := w.Bounded(ctx, fmt.Sprintf("SELECT %s FROM '%s.%s/part-*'", columns, outputDir, name))
	var none *connector.NoFilesError
	if errors.As(err, &none) {
		return "nothing\n", nil
	}
	if err != nil {
		return "", err
	}
	defer rows.release()
	return columnar.Text(rows.schema, rows.batches, columnar.TextOptions{}), nil
}

// LastCommit is the newest commit.
func (w *World) LastCommit() (c checkpoint.CommitEntry, err error) {
	err = checkpoint.Inspect(w.FS, checkpointDir, func(v *checkpoint.View) error {
		b, err := v.Batches()
		if err != nil {
			return err
		}
		c, err = v.Commit(b.LastCommitted())
		return err
	})
	return c, err
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

func releaseAll(batches []arrow.RecordBatch) {
	for _, b := range batches {
		b.Release()
	}
}

// WriteInput writes an input file under /in. Each is newer than the one before.
func (w *World) WriteInput(ctx context.Context, name string, data []byte) error {
	for _, d := range w.streams {
		if d.asFormat != "" && strings.HasPrefix(name, d.name+"/") {
			var err error
			if name, data, err = w.converted(ctx, d, name, data); err != nil {
				return err
			}
		}
	}
	w.Clock.now = w.Clock.now.Add(time.Second)
	return writeFile(w.FS, path.Join(inputDir, name), data, w.Clock.now)
}

// writeFile makes a durable file with a modification time, where fsys can set one.
func writeFile(fsys vfs.FS, name string, data []byte, at time.Time) error {
	if err := vfs.MkdirAll(fsys, path.Dir(name)); err != nil {
		return err
	}
	f, err := fsys.Create(name)
	if err != nil {
		return err
	}
	_, err = f.Write(data)
	err = errors.Join(err, f.Sync(), f.Close(), vfs.SyncDir(fsys, path.Dir(name)))
	if mem := memOf(fsys); mem != nil && err == nil {
		err = mem.Chtimes(name, at)
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
