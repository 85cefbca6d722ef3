package streamtest

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/cockroachdb/datadriven"
	"github.com/rogpeppe/go-internal/txtar"

	"github.com/tidemill/tidemill/columnar"
	"github.com/tidemill/tidemill/incremental"
	"github.com/tidemill/tidemill/internal/vfs"
	"github.com/tidemill/tidemill/logical/connector"
)

// Golden runs the golden files below dir (testdata/stream): each as it is, restarted
// before every trigger, and in the other variants of Matrix unless the file opts out
// with a line "# matrix: -NAME because …". With -rewrite only the plain run happens, and
// fills in expectations.
func Golden(t *testing.T, dir string) {
	files := goldenFiles(t, dir)
	for _, file := range files {
		name := strings.TrimPrefix(strings.TrimPrefix(file, dir), "/")
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			skipped := optedOut(t, file)
			for _, v := range Matrix() {
				if rewriting() && v.Name != "plain" || skipped[v.Name] {
					continue
				}
				t.Run(v.Name, func(t *testing.T) { runGolden(t, file, v) })
			}
		})
	}
}

// Matrix is the variants every golden file is run in.
func Matrix() []Variant {
	return []Variant{
		{Name: "plain"},
		{Name: "restart", Restart: true},
		{Name: "replay", Replay: true},
		{Name: "batch1", BatchRows: 1},
		{Name: "batch3", BatchRows: 3, Shards: 2},
		{Name: "shards4", Shards: 4},
		{Name: "snapshots", Restart: true, Snapshots: alwaysSnapshot},
		{Name: "no-snapshots", Restart: true, Snapshots: neverSnapshot},
		{Name: "unoptimized", NoOptimize: true},
	}
}

func goldenFiles(t *testing.T, dir string) []string {
	t.Helper()
	var files []string
	err := filepath.WalkDir(dir, func(path string, d os.DirEntry, err error) error {
		if err == nil && !d.IsDir() {
			files = append(files, path)
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	if len(files) == 0 {
		t.Fatalf("there are no golden files in %s", dir)
	}
	return files
}

// rewriting says whether -rewrite was given.
func rewriting() bool {
	return slices.ContainsFunc(os.Args, func(a string) bool { return strings.TrimLeft(a, "-") == "rewrite" })
}

// optedOut reads the lines "# matrix: -NAME because …" of a file.
func optedOut(t *testing.T, file string) map[string]bool {
	t.Helper()
	data, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	out := map[string]bool{}
	for line := range strings.Lines(string(data)) {
		rest, ok := strings.CutPrefix(line, "# matrix: -")
		if !ok {
			continue
		}
		name, why, ok := strings.Cut(rest, " because ")
		if !ok || strings.TrimSpace(why) == "" {
			t.Fatalf("%s: %q does not say why", file, strings.TrimSpace(line))
		}
		out[name] = true
	}
	return out
}

// goldenRun interprets one file.
type goldenRun struct {
	w      *World
	mem    *vfs.Mem
	ctx    context.Context
	opened bool
}

func runGolden(t *testing.T, file string, v Variant) {
	mem := vfs.NewMem()
	g := &goldenRun{w: NewWorld(mem, v), mem: mem, ctx: context.Background()}
	mem.SetClock(g.w.Clock.Now)
	defer func() {
		if err := g.w.Close(); err != nil {
			t.Errorf("close: %v", err)
		}
		if n := mem.OpenFiles(); n != 0 {
			t.Errorf("%d files were left open", n)
		}
	}()
	datadriven.RunTest(t, file, func(t *testing.T, d *datadriven.TestData) string {
		out, err := g.directive(d)
		if err != nil {
			return fmt.Sprintf("error: %v\n", err)
		}
		return out
	})
}

// directive does what one directive says and returns what it prints.
func (g *goldenRun) directive(d *datadriven.TestData) (string, error) {
	switch d.Cmd {
	case "source", "table":
		return "", g.declare(d)
	case "sql":
		g.w.Declare(d.Input)
		return "", nil
	case "query":
		return "", g.query(d)
	case "explain":
		return g.explain()
	case "trigger":
		return g.trigger(d)
	case "drain":
		return g.drain(d)
	case "state":
		return g.w.State(g.ctx, arg(d, "op"), arg(d, "table"))
	case "sink":
		return g.w.Output(), nil
	case "ls":
		names, err := g.w.List(d.CmdArgs[0].Key)
		return strings.Join(names, "\n") + "\n", err
	case "progress":
		return g.progress()
	case "restart":
		return g.restart(d)
	}
	return "", fmt.Errorf("there is no directive %s", d.Cmd)
}

func arg(d *datadriven.TestData, name string) string {
	for _, a := range d.CmdArgs {
		if a.Key == name {
			return strings.Join(a.Vals, ", ")
		}
	}
	return ""
}

// declare writes CREATE STREAM or CREATE TABLE for
// source NAME format= schema=(…) [watermark=(column, delay)] [limit=n] [options=(…)].
func (g *goldenRun) declare(d *datadriven.TestData) error {
	name := d.CmdArgs[0].Key
	var columns []string
	if s := arg(d, "schema"); s != "" {
		columns = append(columns, s)
	}
	if w := arg(d, "watermark"); w != "" {
		column, delay, _ := strings.Cut(w, ", ")
		columns = append(columns, fmt.Sprintf("WATERMARK FOR %s AS %s - INTERVAL '%s'", column, column, delay))
	}
	options := []string{fmt.Sprintf("path = '%s/%s'", inputDir, name), fmt.Sprintf("format = '%s'", arg(d, "format"))}
	if n := arg(d, "limit"); n != "" {
		options = append(options, "max_files_per_trigger = "+n)
	}
	if o := arg(d, "options"); o != "" {
		options = append(options, o)
	}
	kind := "STREAM"
	if d.Cmd == "table" {
		kind = "TABLE"
		if err := g.writeFiles(d.Input); err != nil {
			return err
		}
	}
	list := ""
	if columns != nil {
		list = " (" + strings.Join(columns, ", ") + ")"
	}
	g.w.Declare(fmt.Sprintf("CREATE %s %s%s WITH (%s);", kind, name, list, strings.Join(options, ", ")))
	return nil
}

// query starts the query: query mode= [set=(k=v, …)] and SQL.
func (g *goldenRun) query(d *datadriven.TestData) error {
	mode, err := parseMode(arg(d, "mode"))
	if err != nil {
		return err
	}
	settings := map[string]string{}
	if s := arg(d, "set"); s != "" {
		for _, one := range strings.Split(s, ", ") {
			k, v, _ := strings.Cut(one, ":")
			settings[k] = v
		}
	}
	if err := g.w.Query(d.Input, mode, settings); err != nil {
		return err
	}
	return g.w.Open(g.ctx)
}

func parseMode(word string) (connector.OutputMode, error) {
	for _, m := range []connector.OutputMode{connector.Append, connector.Update, connector.Complete} {
		if m.String() == word {
			return m, nil
		}
	}
	return 0, fmt.Errorf("there is no mode %q", word)
}

func (g *goldenRun) explain() (string, error) {
	plan, err := g.w.Plan(g.ctx)
	if err != nil {
		return "", err
	}
	return incremental.Explain(g.w.Config(plan))
}

// writeFiles writes the txtar sections of an input.
func (g *goldenRun) writeFiles(input string) error {
	for _, f := range txtar.Parse([]byte(input)).Files {
		if err := g.w.WriteInput(f.Name, f.Data); err != nil {
			return err
		}
	}
	return nil
}

// trigger writes files and runs exactly one batch; clock=+5s moves the clock first.
func (g *goldenRun) trigger(d *datadriven.TestData) (string, error) {
	if c := arg(d, "clock"); c != "" {
		by, err := time.ParseDuration(strings.TrimPrefix(c, "+"))
		if err != nil {
			return "", err
		}
		g.w.Clock.now = g.w.Clock.now.Add(by)
	}
	if err := g.writeFiles(d.Input); err != nil {
		return "", err
	}
	return g.step()
}

// drain writes files and runs batches until there is nothing left to do.
func (g *goldenRun) drain(d *datadriven.TestData) (string, error) {
	if err := g.writeFiles(d.Input); err != nil {
		return "", err
	}
	var sb strings.Builder
	for {
		out, err := g.step()
		if err != nil || out == noBatch {
			return sb.String(), err
		}
		sb.WriteString(out)
	}
}

const noBatch = "no batch\n"

func (g *goldenRun) step() (string, error) {
	progress := incremental.Progress{}
	before := g.w.NextBatch()
	ran, err := g.w.Step(g.ctx)
	if err != nil {
		return "", err
	}
	if !ran {
		return noBatch, nil
	}
	progress, ok := g.w.Progress()
	if !ok || progress.BatchID != before {
		return "", fmt.Errorf("there is no progress of batch %d", before)
	}
	return batchLine(progress, g.w) + g.rows(), nil
}

// batchLine is what a batch did, in one line.
func batchLine(p incremental.Progress, w *World) string {
	late := int64(0)
	for _, op := range p.StateOperators {
		late += op.NumLateRows
	}
	line := fmt.Sprintf("batch %d: in=%d out=%d late=%d", p.BatchID, p.NumInputRows, p.Sink.NumOutputRows, late)
	var malformed int64
	for _, s := range p.Sources {
		malformed += s.NumMalformedRows
	}
	if malformed > 0 {
		line += fmt.Sprintf(" malformed=%d", malformed)
	}
	if mark, next, declared := w.m.Watermarks(); declared {
		line += fmt.Sprintf(" watermark=%s next=%s", mark, next)
	}
	return line + "\n"
}

// rows are the output rows of the newest batch.
func (g *goldenRun) rows() string {
	var sb strings.Builder
	for _, b := range g.w.NewBatches() {
		n := int64(0)
		for _, r := range b.Rows {
			n += r.NumRows()
		}
		if n > 0 {
			sb.WriteString(columnar.Text(g.w.result.Schema(), b.Rows, columnar.TextOptions{}))
		}
		b.Release()
	}
	return sb.String()
}

// restart stops and starts the query, perhaps with another text.
func (g *goldenRun) restart(d *datadriven.TestData) (string, error) {
	if err := g.w.Close(); err != nil {
		return "", err
	}
	before := g.w.query
	if d.Input != "" {
		g.w.query = d.Input
	}
	if err := g.w.Open(g.ctx); err != nil {
		g.w.query = before
		return "", errors.Join(err, g.w.Open(g.ctx))
	}
	return fmt.Sprintf("resume at batch %d\n", g.w.NextBatch()), nil
}

// volatile are the fields of a report that differ from run to run.
var volatile = []string{"id", "runId", "timestamp", "batchDuration", "inputRowsPerSecond", "processedRowsPerSecond",
	"durationMs", "allUpdatesTimeMs", "allRemovalsTimeMs", "commitTimeMs", "memoryUsedBytes", "numShufflePartitions", "numStateStoreInstances"}

// progress is the last report as JSON.
func (g *goldenRun) progress() (string, error) {
	p, ok := g.w.Progress()
	if !ok {
		return "nothing\n", nil
	}
	data, err := json.Marshal(p)
	if err != nil {
		return "", err
	}
	var v any
	if err := json.Unmarshal(data, &v); err != nil {
		return "", err
	}
	data, err = json.MarshalIndent(masked(v), "", "  ")
	return string(data) + "\n", err
}

// masked puts _ in place of volatile values.
func masked(v any) any {
	switch x := v.(type) {
	case map[string]any:
		for _, k := range slices.Sorted(maps.Keys(x)) {
			if slices.Contains(volatile, k) {
				x[k] = "_"
			} else {
				x[k] = masked(x[k])
			}
		}
	case []any:
		for i := range x {
			x[i] = masked(x[i])
		}
	}
	return v
}
