package streamtest

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/cockroachdb/datadriven"
	"github.com/rogpeppe/go-internal/txtar"
	"github.com/zeebo/xxh3"

	"github.com/tidemill/tidemill/checkpoint"
	"github.com/tidemill/tidemill/columnar/columnartest"
	"github.com/tidemill/tidemill/incremental"
	"github.com/tidemill/tidemill/internal/vfs"
	"github.com/tidemill/tidemill/internal/vfs/faultfs"
	"github.com/tidemill/tidemill/logical/connector"
)

// Golden runs the golden files below dir (testdata/stream): each as it is and in the
// other variants of Matrix, unless the file opts out with a line
// "# matrix: -NAME because …". With -short three variants are run: as it is, restarted,
// and one more that depends on the file's name. With -rewrite only the plain run happens,
// and fills in expectations.
func Golden(t *testing.T, dir string) {
	for _, file := range goldenFiles(t, dir) {
		name := strings.TrimPrefix(strings.TrimPrefix(file, dir), "/")
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			skipped := optedOut(t, file)
			for i, v := range Matrix() {
				if testing.Short() && i > 1 && i != 2+int(xxh3.HashString(name)%uint64(len(Matrix())-2)) {
					continue
				}
				if rewriting() && v.Name != "plain" || skipped[v.Name] {
					continue
				}
				t.Run(v.Name, func(t *testing.T) { runGolden(t, file, v) })
			}
		})
	}
}

func goldenFiles(t *testing.T, dir string) []string {
	t.Helper()
	var files []string
	err := filepath.WalkDir(dir, func(path string, d os.DirEntry, err error) error {
		if err == nil && !d.IsDir() && !strings.HasPrefix(d.Name(), ".") && d.Name() != "README.md" {
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

// nested are types that CSV cannot give back.
var nested = regexp.MustCompile(`(?i)\b(array|struct|map|list|row)\b|\[\]`)

// optedOut is the variants a file is not run in: those of its lines "# matrix: -NAME
// because …", and other formats for streams that are not plain declared columns.
func optedOut(t *testing.T, file string) map[string]bool {
	t.Helper()
	data, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	out := map[string]bool{}
	for line := range strings.Lines(string(data)) {
		line = strings.TrimSpace(line)
		if rest, ok := strings.CutPrefix(line, "# matrix: -"); ok {
			name, why, ok := strings.Cut(rest, " because ")
			if !ok || strings.TrimSpace(why) == "" {
				t.Fatalf("%s: %q does not say why", file, line)
			}
			out[name] = true
		}
		if strings.HasPrefix(line, "source ") {
			plain := strings.Contains(line, "schema=") && !strings.Contains(line, "options=") && !strings.Contains(line, "format=text")
			out["csv"] = out["csv"] || !plain || nested.MatchString(line)
			out["parquet"] = out["parquet"] || !plain
		}
	}
	return out
}

// goldenRun interprets one file.
type goldenRun struct {
	t     *testing.T
	w     *World
	mem   *vfs.Mem
	ctx   context.Context
	crash *armedCrash
}

// armedCrash is a crash that the next batches may run into.
type armedCrash struct {
	rule faultfs.Rule
	keep float64
	seed uint64
}

func runGolden(t *testing.T, file string, v Variant) {
	g := newGoldenRun(t, v)
	datadriven.RunTest(t, file, func(t *testing.T, d *datadriven.TestData) string { return g.run(d) })
}

func newGoldenRun(t *testing.T, v Variant) *goldenRun {
	mem := vfs.NewMem()
	alloc := columnartest.Mem(t)
	g := &goldenRun{t: t, w: NewWorld(newTraced(mem), alloc, v), mem: mem, ctx: t.Context()}
	t.Cleanup(func() {
		if err := g.w.Release(); err != nil {
			t.Errorf("close: %v", err)
		}
		if n := g.mem.OpenFiles(); n != 0 && !t.Failed() {
			t.Errorf("%d files were left open", n)
		}
	})
	return g
}

// onlyPlain are directives whose answer depends on the variant.
var onlyPlain = []string{"explain", "ls", "progress", "trace", "offsets", "warnings"}

func (g *goldenRun) run(d *datadriven.TestData) string {
	if g.w.Variant.Name != "plain" && slices.Contains(onlyPlain, d.Cmd) {
		return d.Expected
	}
	out, err := g.directive(d)
	if err != nil {
		out += fmt.Sprintf("error: %v\n", err)
	}
	if g.w.Variant.Format == "parquet" && rowsRead.ReplaceAllString(out, "in=_") == rowsRead.ReplaceAllString(d.Expected, "in=_") {
		// Row groups that cannot match are not read, and do not count.
		return d.Expected
	}
	return out
}

var rowsRead = regexp.MustCompile(`\bin=[0-9]+`)

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
	case "files":
		return "", g.writeFiles(d.Input)
	case "trigger":
		return g.trigger(d)
	case "drain":
		return g.drain(d)
	case "state":
		return g.w.State(g.ctx, arg(d, "op"), arg(d, "table"))
	case "sink":
		return g.w.Output(g.ctx)
	case "side":
		return g.side(d)
	case "offsets":
		return g.offsets()
	case "ls":
		names, err := g.w.List(d.CmdArgs[0].Key)
		return strings.Join(names, "\n") + "\n", err
	case "rm", "touch":
		return "", g.change(d)
	case "progress":
		return g.progress(d)
	case "warnings":
		return strings.Join(append(g.w.Warnings(), ""), "\n"), nil
	case "trace":
		return g.trace()
	case "restart":
		return g.restart(d)
	case "crash":
		return "", g.armCrash(d)
	}
	return "", fmt.Errorf("there is no directive %s", d.Cmd)
}

// trace is the calls since the last trace that change the disk, without sizes. What goes
// on at the same time is sorted: syncs, and what the sink and the state write of a batch.
func (g *goldenRun) trace() (string, error) {
	fsys, ok := g.w.FS.(*traced)
	if !ok {
		return "", errors.New("there is no trace while a crash is armed")
	}
	lines := apart(fsys.Take())
	isSync := func(line string) bool { return strings.HasPrefix(line, "sync") }
	for i := 0; i < len(lines); i++ {
		n := i
		for n < len(lines) && isSync(lines[n]) {
			n++
		}
		slices.Sort(lines[i:n])
		if name, ok := strings.CutPrefix(lines[i], "write "); ok {
			lines[i] = "write " + name[:strings.LastIndexByte(name, ' ')]
		}
		i = max(i, n-1)
	}
	return strings.Join(append(lines, ""), "\n"), nil
}

// apart puts the calls of the sink, which stages a batch, before those of the state, which
// is saved at the same time.
func apart(lines []string) []string {
	const sink, state, neither = 0, 1, 2
	who := func(line string) int {
		switch {
		case strings.Contains(line, " out/.tidemill/staging"), strings.Contains(line, " out/.tidemill/pending/."), strings.Contains(line, " out/.tidemill/manifest/."):
			return sink
		case strings.Contains(line, " checkpoint/state") || line == "syncdir checkpoint":
			return state
		}
		return neither
	}
	for from := 0; from < len(lines); from++ {
		upto := from
		for upto < len(lines) && who(lines[upto]) != neither {
			upto++
		}
		slices.SortStableFunc(lines[from:upto], func(a, b string) int { return who(a) - who(b) })
		from = max(from, upto)
	}
	return lines
}

func arg(d *datadriven.TestData, name string) string {
	for _, a := range d.CmdArgs {
		if a.Key == name {
			return strings.Join(a.Vals, ", ")
		}
	}
	return ""
}

func has(d *datadriven.TestData, name string) bool {
	return slices.ContainsFunc(d.CmdArgs, func(a datadriven.CmdArg) bool { return a.Key == name })
}

// declare takes source NAME format= [schema=(…)] [watermark=(column, delay)] [limit=n]
// [options=(…)], and table alike.
func (g *goldenRun) declare(d *datadriven.TestData) error {
	s := &streamDecl{name: d.CmdArgs[0].Key, kind: "STREAM", columns: arg(d, "schema"), format: arg(d, "format")}
	if w := arg(d, "watermark"); w != "" {
		column, delay, _ := strings.Cut(w, ", ")
		s.watermark = fmt.Sprintf("WATERMARK FOR %s AS %s - INTERVAL '%s'", column, column, delay)
	}
	if n := arg(d, "limit"); n != "" {
		var err error
		if s.perTriggers, err = strconv.Atoi(n); err != nil {
			return err
		}
	}
	if o := arg(d, "options"); o != "" {
		s.options = []string{o}
	}
	g.w.streams = append(g.w.streams, s)
	if d.Cmd == "table" {
		s.kind = "TABLE"
		return g.writeFiles(d.Input)
	}
	if f := g.w.Variant.Format; f != s.format {
		s.asFormat = f
	}
	return nil
}

// query starts the query: query mode= [sink=] [sink_options=(k, v, …)] [keep=(late, bad)]
// [set=(k, v, …)] and SQL.
func (g *goldenRun) query(d *datadriven.TestData) error {
	mode, err := parseMode(arg(d, "mode"))
	if err != nil {
		return err
	}
	if s := arg(d, "sink"); s != "memory" {
		g.w.Sink = s
	}
	if g.w.SinkOptions, err = pairs(arg(d, "sink_options")); err != nil {
		return err
	}
	if k := arg(d, "keep"); k != "" {
		g.w.Keep = strings.Split(k, ", ")
	}
	if n := arg(d, "retain"); n != "" {
		if g.w.Retain, err = strconv.Atoi(n); err != nil {
			return err
		}
	}
	set, err := pairs(arg(d, "set"))
	if err != nil {
		return err
	}
	if err := g.w.Query(d.Input, mode, set); err != nil {
		return err
	}
	return g.w.Open(g.ctx)
}

// pairs reads "k, v, k, v".
func pairs(list string) (map[string]string, error) {
	out := map[string]string{}
	if list == "" {
		return out, nil
	}
	words := strings.Split(list, ", ")
	if len(words)%2 != 0 {
		return nil, fmt.Errorf("(%s) is not key, value, key, value", list)
	}
	for i := 0; i < len(words); i += 2 {
		out[words[i]] = words[i+1]
	}
	return out, nil
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

// writeFiles writes the txtar sections of an input. A section with a name that begins
// with / is anywhere, all others are below /in.
func (g *goldenRun) writeFiles(input string) error {
	for _, f := range txtar.Parse([]byte(input)).Files {
		if err := g.w.WriteInput(g.ctx, f.Name, unescaped(f.Data)); err != nil {
			return err
		}
	}
	return nil
}

// unescaped drops the line end before a line that is only \c, for files that do not
// end in one.
func unescaped(data []byte) []byte {
	return []byte(strings.TrimSuffix(string(data), "\n\\c\n"))
}

// change removes or touches an input file: rm FILE, touch FILE clock=+5s.
func (g *goldenRun) change(d *datadriven.TestData) error {
	name := filepath.Join(inputDir, d.CmdArgs[0].Key)
	if d.Cmd == "rm" {
		return vfs.RemoveAll(g.mem, name)
	}
	return g.mem.Chtimes(name, g.w.Clock.now.Add(time.Minute))
}

// trigger writes files and runs exactly one batch; clock=+5s moves the clock first.
// With repeat=n it does so n times, $n in the input being the number, and prints the
// last.
func (g *goldenRun) trigger(d *datadriven.TestData) (string, error) {
	if c := arg(d, "clock"); c != "" {
		by, err := time.ParseDuration(strings.TrimPrefix(c, "+"))
		if err != nil {
			return "", err
		}
		g.w.Clock.now = g.w.Clock.now.Add(by)
	}
	times := 1
	if n := arg(d, "repeat"); n != "" {
		var err error
		if times, err = strconv.Atoi(n); err != nil {
			return "", err
		}
	}
	out := ""
	for i := range times {
		if err := g.writeFiles(strings.ReplaceAll(d.Input, "$n", strconv.Itoa(i))); err != nil {
			return "", err
		}
		var err error
		if out, err = g.step(has(d, "ordered")); err != nil {
			return out, err
		}
	}
	return out, nil
}

// drain writes files and runs batches until there is nothing left to do.
func (g *goldenRun) drain(d *datadriven.TestData) (string, error) {
	if err := g.writeFiles(d.Input); err != nil {
		return "", err
	}
	var sb strings.Builder
	for {
		out, err := g.step(has(d, "ordered"))
		if err != nil || out == noBatch {
			return sb.String(), err
		}
		sb.WriteString(out)
		if out == crashed {
			return sb.String(), nil
		}
	}
}

const (
	noBatch = "no batch\n"
	crashed = "crashed\n"
)

// step runs one batch and prints what was committed by it.
func (g *goldenRun) step(ordered bool) (string, error) {
	ran, err := g.w.Step(g.ctx)
	if g.crash != nil && errors.Is(err, faultfs.ErrCrashed) {
		g.powerCut()
		return crashed, nil
	}
	if err != nil {
		return "", err
	}
	commits, err := g.w.NewCommits()
	if err != nil {
		return "", err
	}
	if !ran || len(commits) == 0 {
		return noBatch, nil
	}
	var sb strings.Builder
	for _, c := range commits {
		sb.WriteString(batchLine(c, g.w.declaresWatermark()))
		rows, err := g.w.Rows(g.ctx, c.Batch, ordered)
		if err != nil {
			return "", err
		}
		sb.WriteString(rows)
	}
	return sb.String(), nil
}

// powerCut starts the machine again from what the armed crash left.
func (g *goldenRun) powerCut() {
	g.mem = g.mem.Crash(g.crash.seed, g.crash.keep)
	g.w.FS = newTraced(g.mem)
	g.crash = nil
}

// armCrash makes the filesystem crash by the rule of the input, in a batch to come:
// crash [keep=0|50|100] [seed=n]. The trigger it happens in prints so; the next one
// recovers.
func (g *goldenRun) armCrash(d *datadriven.TestData) error {
	rule, err := faultfs.Parse(strings.TrimSpace(d.Input))
	if err != nil {
		return err
	}
	g.crash = &armedCrash{rule: rule}
	if k := arg(d, "keep"); k != "" {
		percent, err := strconv.ParseFloat(k, 64)
		if err != nil {
			return err
		}
		g.crash.keep = percent / 100
	}
	if s := arg(d, "seed"); s != "" {
		if g.crash.seed, err = strconv.ParseUint(s, 10, 64); err != nil {
			return err
		}
	}
	if err := g.w.Close(); err != nil {
		return err
	}
	g.w.FS = newFaulty(g.mem, g.crash.rule)
	return nil
}

// declaresWatermark says whether some stream has a watermark.
func (w *World) declaresWatermark() bool {
	return slices.ContainsFunc(w.streams, func(d *streamDecl) bool {
		return d.watermark != "" || strings.Contains(d.otherwise, "WATERMARK")
	})
}

// batchLine is what a batch did, in one line.
func batchLine(c checkpoint.CommitEntry, watermark bool) string {
	line := fmt.Sprintf("batch %d: in=%d out=%d late=%d", c.Batch, c.Counters.In, c.Counters.Out, c.Counters.Late)
	if c.Counters.Malformed > 0 {
		line += fmt.Sprintf(" malformed=%d", c.Counters.Malformed)
	}
	if watermark {
		line += fmt.Sprintf(" watermark=%s next=%s", instant(c.Offsets.EvictionWatermark), instant(c.NextWatermark))
	}
	return line + "\n"
}

func instant(us *int64) string {
	if us == nil {
		return "-"
	}
	return time.UnixMicro(*us).UTC().Format("2006-01-02T15:04:05.999999Z07:00")
}

// offsets is the offset log as text.
func (g *goldenRun) offsets() (string, error) {
	var sb strings.Builder
	err := checkpoint.Inspect(g.w.FS, checkpointDir, func(v *checkpoint.View) error {
		sb.Reset()
		b, err := v.Batches()
		if err != nil {
			return err
		}
		for _, id := range b.Offsets {
			e, err := v.Offsets(id)
			if err != nil {
				return err
			}
			fmt.Fprintf(&sb, "%d: time=%s late=%s evict=%s", id, instant(&e.Time), instant(e.LateWatermark), instant(e.EvictionWatermark))
			for _, s := range e.Sources {
				fmt.Fprintf(&sb, " %s=(%s, %s]", s.Name, s.Start, s.End)
			}
			for _, t := range e.Tables {
				fmt.Fprintf(&sb, " %s=%d files", t.Name, len(t.Files))
			}
			sb.WriteByte('\n')
		}
		return nil
	})
	return sb.String(), err
}

// restart stops and starts the query, perhaps with another text, mode, settings, limit or
// delay of its watermarks: restart [mode=] [set=(k, v, …)] [limit=n] [delay=(1 minute)].
func (g *goldenRun) restart(d *datadriven.TestData) (string, error) {
	if err := g.w.Close(); err != nil {
		return "", err
	}
	query, mode, settings := g.w.query, g.w.mode, maps.Clone(g.w.settings)
	next, nextMode := query, mode
	if d.Input != "" {
		next = d.Input
	}
	if m := arg(d, "mode"); m != "" {
		var err error
		if nextMode, err = parseMode(m); err != nil {
			return "", err
		}
	}
	delete(settings, "output_mode")
	set, err := pairs(arg(d, "set"))
	if err != nil {
		return "", err
	}
	changed := maps.Clone(settings)
	maps.Copy(changed, set)
	if l := arg(d, "limit"); l != "" {
		n, err := strconv.Atoi(l)
		if err != nil {
			return "", err
		}
		for _, s := range g.w.streams {
			s.perTriggers = n
		}
	}
	if delay := arg(d, "delay"); delay != "" {
		for _, s := range g.w.streams {
			before, _, ok := strings.Cut(s.watermark, " - INTERVAL")
			if ok {
				s.watermark = fmt.Sprintf("%s - INTERVAL '%s'", before, delay)
			}
		}
	}
	err = g.w.Query(next, nextMode, changed)
	if err == nil {
		err = g.w.Open(g.ctx)
	}
	if err != nil {
		// Refused: the query as it was goes on.
		return "", errors.Join(err, g.w.Query(query, mode, settings), g.w.Open(g.ctx))
	}
	return fmt.Sprintf("resume at batch %d\n", g.w.NextBatch()), nil
}

// volatile are the fields of a report that differ from run to run.
var volatile = []string{"id", "runId", "timestamp", "batchDuration", "inputRowsPerSecond", "processedRowsPerSecond",
	"durationMs", "allUpdatesTimeMs", "allRemovalsTimeMs", "commitTimeMs", "memoryUsedBytes", "numShufflePartitions", "numStateStoreInstances"}

// side is what is kept beside the output: side late|bad [columns=(…)].
func (g *goldenRun) side(d *datadriven.TestData) (string, error) {
	columns := arg(d, "columns")
	if columns == "" {
		columns = "*"
	}
	return g.w.Side(g.ctx, d.CmdArgs[0].Key, columns)
}

// progress is the last report as JSON; progress only=FIELD a part of it.
func (g *goldenRun) progress(d *datadriven.TestData) (string, error) {
	p, ok := g.w.Progress()
	if !ok {
		return "nothing\n", nil
	}
	data, err := json.Marshal(p)
	if err != nil {
		return "", err
	}
	var v map[string]any
	if err := json.Unmarshal(data, &v); err != nil {
		return "", err
	}
	shown := masked(v)
	if only := arg(d, "only"); only != "" {
		shown = v[only]
	}
	data, err = json.MarshalIndent(shown, "", "  ")
	return bytesUsed.ReplaceAllString(string(data), "_ bytes") + "\n", err
}

var bytesUsed = regexp.MustCompile(`\b[0-9]+ bytes`)

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
