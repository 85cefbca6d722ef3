package tidemill_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"
)

// streamCase is a file of testdata/cases/streaming; its README says what each field
// means.
type streamCase struct {
	ID           string
	Pipeline     []string
	Run          streamRun
	Tables       map[string][]json.RawMessage
	Output       [][2]string
	Mode         string
	Alternatives map[string]alternative
	Steps        []streamStep
}

type streamRun struct {
	Trigger string
	Set     map[string]string
}

// alternative is another version of the run.
type alternative struct {
	Pipeline   []string
	Set        map[string]string
	Checkpoint string
	SinkPath   string `json:"sink_path"`
	Output     [][2]string
}

type streamStep struct {
	Files  []streamFile
	Do     []action
	Run    *bool
	Use    string
	Expect expectation
}

type streamFile struct {
	Source, Name string
	Rows         []json.RawMessage
	Raw          *string
	Mtime        *float64
}

type action struct {
	Delete, Keep string
	Rename       json.RawMessage
	To           string
}

type expectation struct {
	Rows, Table, Directory *[]map[string]any
	Ordered                bool
	State, Updated, Late   []*int64
	Watermark              *string
	DataWatermark          json.RawMessage `json:"watermark_of_data_batch"`
	DataBatches            *int64          `json:"data_batches"`
	BatchRows              []int64         `json:"batch_rows"`
	NewestBatch            *int            `json:"newest_batch"`
	Exists, Gone           []string
	Exit                   json.RawMessage
	Says                   []json.RawMessage
}

func streaming(t *testing.T) {
	t.Parallel()
	files, err := filepath.Glob(filepath.Join(casesDir, "streaming", "*.json"))
	if err != nil || len(files) == 0 {
		t.Fatalf("no cases: %v", err)
	}
	for _, file := range files {
		t.Run(strings.TrimSuffix(filepath.Base(file), ".json"), func(t *testing.T) {
			t.Parallel()
			data, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			var c streamCase
			d := json.NewDecoder(bytes.NewReader(data))
			d.UseNumber()
			if err := d.Decode(&c); err != nil {
				t.Fatal(err)
			}
			replay(t, &c)
		})
	}
}

// player replays one case.
type player struct {
	*world
	c          *streamCase
	use        alternative // what holds at the present step
	made       map[string]int
	seen       map[string][]map[string]any // rows seen so far by output directory
	step       int
	checkpoint string
	out        string
}

func replay(t *testing.T, c *streamCase) {
	p := &player{world: newWorld(t), c: c, made: map[string]int{}, seen: map[string][]map[string]any{}}
	p.choose("")
	for name, rows := range c.Tables {
		p.put("tables/"+name+".json", joinLines(rows))
	}
	for i, s := range c.Steps {
		p.step = i + 1
		p.play(&s)
	}
}

// choose switches to an alternative; "" is the case itself.
func (p *player) choose(name string) {
	base := alternative{Pipeline: p.c.Pipeline, Set: p.c.Run.Set, Checkpoint: "ckpt", SinkPath: "out", Output: p.c.Output}
	a, ok := p.c.Alternatives[name]
	if name != "" && !ok {
		p.t.Fatalf("there is no alternative %q", name)
	}
	if a.Pipeline != nil {
		base.Pipeline = a.Pipeline
	}
	if a.Set != nil {
		base.Set = a.Set
	}
	if a.Checkpoint != "" {
		base.Checkpoint = a.Checkpoint
	}
	if a.SinkPath != "" {
		base.SinkPath = a.SinkPath
	}
	if a.Output != nil {
		base.Output = a.Output
	}
	p.use, p.checkpoint, p.out = base, base.Checkpoint, base.SinkPath
}

func (p *player) play(s *streamStep) {
	if s.Use != "" {
		p.choose(s.Use)
	}
	for _, a := range s.Do {
		p.act(a)
	}
	for _, f := range s.Files {
		p.drop(f)
	}
	if s.Run != nil && !*s.Run {
		return
	}
	flags := []string{"--trigger", p.c.Run.Trigger}
	for k, v := range p.use.Set {
		flags = append(flags, "--set", k+"="+v)
	}
	o := p.run(strings.Join(p.use.Pipeline, "\n")+"\n", flags...)
	p.check(o, &s.Expect)
	if o.code == 0 && p.c.Mode != "update" {
		p.verify(flags[2:])
	}
}

// verify has the output derived again from the logged inputs, after every step. Where the
// case took an input away, not everything can be.
func (p *player) verify(flags []string) {
	o := p.tidemill(append(append([]string{"verify"}, flags...), "job.sql")...)
	moved := slices.ContainsFunc(p.c.Steps, func(s streamStep) bool { return len(s.Do) > 0 })
	if o.code != 0 && !(moved && strings.Contains(o.stderr, "could not be verified as a whole")) {
		p.errorf("verify: exit %d\n%s%s", o.code, o.stdout, o.stderr)
	}
}

func (p *player) errorf(format string, args ...any) {
	p.t.Helper()
	p.t.Errorf("step %d: %s", p.step, fmt.Sprintf(format, args...))
}

func joinLines(rows []json.RawMessage) []byte {
	var out []byte
	for _, r := range rows {
		out = append(append(out, r...), '\n')
	}
	return out
}

// drop puts a file into a source's folder.
func (p *player) drop(f streamFile) {
	p.made[f.Source]++
	name := f.Name
	if name == "" {
		name = fmt.Sprintf("%04d.json", p.made[f.Source])
	}
	data := joinLines(f.Rows)
	if f.Raw != nil {
		data = []byte(*f.Raw)
	}
	path := "in/" + f.Source + "/" + name
	if f.Mtime != nil {
		p.putAt(path, data, time.UnixMicro(int64(*f.Mtime*1e6)))
		return
	}
	p.put(path, data)
}

// act does what the case asks to be done before a run.
func (p *player) act(a action) {
	if a.Delete != "" {
		numbers := p.logNumbers(p.checkpoint + "/" + a.Delete)
		switch a.Keep {
		case "newest":
			numbers = numbers[:len(numbers)-1]
		case "all but newest":
			numbers = numbers[len(numbers)-1:]
		}
		for _, n := range numbers {
			if err := os.Remove(filepath.Join(p.path(p.checkpoint+"/"+a.Delete), strconv.Itoa(n))); err != nil {
				p.t.Fatal(err)
			}
		}
		return
	}
	var names []string
	if json.Unmarshal(a.Rename, &names) != nil {
		var from string
		if err := json.Unmarshal(a.Rename, &from); err != nil {
			p.t.Fatalf("rename %s: %v", a.Rename, err)
		}
		names = []string{from, a.To}
	}
	if err := os.MkdirAll(filepath.Dir(p.path(names[1])), 0o755); err != nil {
		p.t.Fatal(err)
	}
	if err := os.Rename(p.path(names[0]), p.path(names[1])); err != nil {
		p.t.Fatal(err)
	}
}

func (p *player) check(o outcome, e *expectation) {
	p.checkExit(o, e)
	p.checkRows(o, e)
	reports := progressOf(p.t, o.stderr)
	p.checkState(reports, e)
	p.checkProgress(reports, e)
	for _, name := range e.Exists {
		if _, err := os.Stat(p.path(name)); err != nil {
			p.errorf("%v", err)
		}
	}
	for _, name := range e.Gone {
		if _, err := os.Stat(p.path(name)); err == nil {
			p.errorf("%s is still there", name)
		}
	}
}

func (p *player) checkExit(o outcome, e *expectation) {
	codes := []int{0}
	if e.Exit != nil {
		if json.Unmarshal(e.Exit, &codes) != nil {
			codes = []int{-1}
			if err := json.Unmarshal(e.Exit, &codes[0]); err != nil {
				p.t.Fatal(err)
			}
		}
	}
	if !slices.Contains(codes, o.code) {
		p.errorf("exit %d, want %d\n%s", o.code, codes, o.stderr)
	}
	for _, say := range e.Says {
		var words []string
		if json.Unmarshal(say, &words) != nil {
			words = []string{""}
			if err := json.Unmarshal(say, &words[0]); err != nil {
				p.t.Fatal(err)
			}
		}
		message := strings.ToLower(o.stderr)
		if !slices.ContainsFunc(words, func(w string) bool { return strings.Contains(message, strings.ToLower(w)) }) {
			p.errorf("the message says none of %q:\n%s", words, o.stderr)
		}
	}
}

// checkRows compares what came out.
func (p *player) checkRows(o outcome, e *expectation) {
	if e.Rows != nil {
		var got []string
		if p.c.Mode == "update" {
			got = p.canonicalRows(decodeLines(p.t, []byte(o.stdout)))
		} else {
			got = p.newRows()
		}
		p.compare("rows", got, *e.Rows, e.Ordered)
	}
	for _, want := range []*[]map[string]any{e.Table, e.Directory} {
		if want != nil {
			all := p.directory()
			p.compare("directory", p.canonicalRows(all), *want, false)
			p.seen[p.out] = all
		}
	}
}

func (p *player) compare(what string, got []string, want []map[string]any, ordered bool) {
	p.t.Helper()
	wanted := p.canonicalRows(want)
	got = slices.Clone(got)
	if !ordered {
		slices.Sort(got)
		slices.Sort(wanted)
	}
	if !slices.Equal(got, wanted) {
		p.errorf("%s\ngot  %q\nwant %q", what, got, wanted)
	}
}

// newRows are those of the output directory that were not there at the step before.
func (p *player) newRows() []string {
	all := p.directory()
	fresh := p.canonicalRows(all)
	for _, row := range p.canonicalRows(p.seen[p.out]) {
		i := slices.Index(fresh, row)
		if i < 0 {
			p.errorf("row %q has gone", row)
			continue
		}
		fresh = slices.Delete(fresh, i, i+1)
	}
	p.seen[p.out] = all
	return fresh
}

// directory reads the output directory as any JSON reader would, file by file.
func (p *player) directory() []map[string]any {
	var files []string
	err := filepath.WalkDir(p.path(p.out), func(path string, d os.DirEntry, err error) error {
		switch {
		case os.IsNotExist(err):
			return nil
		case err != nil:
			return err
		case d.IsDir() && strings.HasPrefix(d.Name(), "."):
			return filepath.SkipDir
		case !d.IsDir() && strings.HasPrefix(d.Name(), "part-"):
			files = append(files, path)
		}
		return nil
	})
	if err != nil {
		p.t.Fatal(err)
	}
	slices.Sort(files)
	var rows []map[string]any
	for _, file := range files {
		data, err := os.ReadFile(file)
		if err != nil {
			p.t.Fatal(err)
		}
		rows = append(rows, decodeLines(p.t, data)...)
	}
	return rows
}

func decodeLines(t *testing.T, data []byte) []map[string]any {
	t.Helper()
	var rows []map[string]any
	d := json.NewDecoder(bytes.NewReader(data))
	d.UseNumber()
	for d.More() {
		row := map[string]any{}
		if err := d.Decode(&row); err != nil {
			t.Fatalf("%v in %s", err, data)
		}
		rows = append(rows, row)
	}
	return rows
}

// canonicalRows writes rows in the columns of the case, typed values as one text.
func (p *player) canonicalRows(rows []map[string]any) []string {
	out := make([]string, len(rows))
	for i, row := range rows {
		parts := make([]string, len(p.use.Output))
		for k, column := range p.use.Output {
			switch v := row[column[0]].(type) {
			case nil:
				parts[k] = null
			case string:
				parts[k] = canonical(v)
			case json.Number:
				parts[k] = canonical(v.String())
			default:
				data, err := json.Marshal(v)
				if err != nil {
					p.t.Fatal(err)
				}
				parts[k] = string(data)
			}
		}
		out[i] = strings.Join(parts, "|")
	}
	return out
}

// checkState compares what the stateful operators reported, innermost first.
func (p *player) checkState(reports []progress, e *expectation) {
	operators := 0
	if len(reports) > 0 {
		operators = len(reports[len(reports)-1].StateOperators)
	}
	if n := max(len(e.State), len(e.Updated), len(e.Late)); n > operators && len(reports) > 0 {
		p.errorf("%d stateful operators, want %d", operators, n)
		return
	}
	total, updated, late := make([]int64, operators), make([]int64, operators), make([]int64, operators)
	for _, r := range reports {
		for i, s := range r.StateOperators {
			total[i] = s.NumRowsTotal
			updated[i] += s.NumRowsUpdated
			late[i] += s.NumRowsDroppedByWatermark
		}
	}
	compare := func(what string, got []int64, want []*int64) {
		for i, w := range want {
			if len(reports) > 0 && w != nil && got[i] != *w {
				p.errorf("%s of operator %d: %d, want %d", what, i, got[i], *w)
			}
		}
	}
	compare("state", total, e.State)
	compare("updated", updated, e.Updated)
	compare("late", late, e.Late)
}

func (p *player) checkProgress(reports []progress, e *expectation) {
	var data []progress
	var rows []int64
	for _, r := range reports {
		if r.NumInputRows > 0 {
			data = append(data, r)
			rows = append(rows, r.NumInputRows)
		}
	}
	watermark := func(of []progress) string {
		if len(of) == 0 {
			return ""
		}
		return canonical(of[len(of)-1].EventTime["watermark"])
	}
	if e.Watermark != nil && watermark(reports) != canonical(*e.Watermark) {
		p.errorf("watermark %q, want %q", watermark(reports), *e.Watermark)
	}
	if e.DataWatermark != nil {
		want := strings.Trim(strings.TrimSpace(string(e.DataWatermark)), `"`)
		if want == "null" {
			want = ""
		}
		if got := watermark(data); got != canonical(want) {
			p.errorf("watermark of the last batch with data %q, want %q", got, want)
		}
	}
	if e.DataBatches != nil && int64(len(data)) != *e.DataBatches {
		p.errorf("%d batches with data, want %d", len(data), *e.DataBatches)
	}
	if e.BatchRows != nil && !slices.Equal(rows, e.BatchRows) {
		p.errorf("rows of the batches %d, want %d", rows, e.BatchRows)
	}
	if e.NewestBatch != nil {
		got := -1
		if n := p.logNumbers(p.checkpoint + "/offsets"); len(n) > 0 {
			got = n[len(n)-1]
		}
		if got != *e.NewestBatch {
			p.errorf("newest batch %d, want %d", got, *e.NewestBatch)
		}
	}
}
