package harness

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"runtime"
	"runtime/debug"
	"slices"
	"strings"
	"time"
)

// Result is one thing measured: a value for each column of its suite.
type Result struct {
	Suite  string            `json:"suite"`
	Name   string            `json:"name"`
	Runs   int               `json:"runs"`
	Values map[string]Value  `json:"values,omitempty"`
	Notes  map[string]string `json:"notes,omitempty"`
	// Failed is why there are no values.
	Failed string `json:"failed,omitempty"`
}

// Value is a number with its unit, as Go's benchmark format has it.
type Value struct {
	Number float64 `json:"number"`
	Unit   string  `json:"unit"`
}

// Report is what was measured in one run.
type Report struct {
	Machine string   `json:"machine"`
	Results []Result `json:"results"`
}

// NewReport begins a report on this machine.
func NewReport() *Report { return &Report{Machine: Machine()} }

// Add notes a result.
func (r *Report) Add(res Result) { r.Results = append(r.Results, res) }

// Machine is a line that says where and when: processor, cores, system, revision.
func Machine() string {
	line := fmt.Sprintf("%s, %s/%s, %d cores, %s, %s", time.Now().UTC().Format(time.DateOnly), runtime.GOOS, runtime.GOARCH, runtime.NumCPU(), processor(), runtime.Version())
	if info, ok := debug.ReadBuildInfo(); ok {
		for _, s := range info.Settings {
			if s.Key == "vcs.revision" {
				line += ", revision " + s.Value[:min(len(s.Value), 12)]
			}
		}
	}
	return line
}

// processor is the name the system gives the processor.
func processor() string {
	b, err := os.ReadFile("/proc/cpuinfo")
	if err != nil {
		return "processor unknown"
	}
	for line := range strings.Lines(string(b)) {
		if key, value, ok := strings.Cut(line, ":"); ok && strings.TrimSpace(key) == "model name" {
			return strings.TrimSpace(value)
		}
	}
	return "processor unknown"
}

// WriteBench writes Go's benchmark format, for benchstat.
func (r *Report) WriteBench(w io.Writer) error {
	if _, err := fmt.Fprintf(w, "# %s\ngoos: %s\ngoarch: %s\n", r.Machine, runtime.GOOS, runtime.GOARCH); err != nil {
		return err
	}
	for _, res := range r.Results {
		if res.Failed != "" {
			continue
		}
		line := fmt.Sprintf("Benchmark%s/%s \t%d", strings.ToUpper(res.Suite[:1])+res.Suite[1:], strings.ReplaceAll(res.Name, " ", "_"), res.Runs)
		for _, k := range slices.Sorted(maps.Keys(res.Values)) {
			line += fmt.Sprintf("\t%g %s", res.Values[k].Number, res.Values[k].Unit)
		}
		if _, err := fmt.Fprintln(w, line); err != nil {
			return err
		}
	}
	return nil
}

// WriteJSON writes the report as one object.
func (r *Report) WriteJSON(w io.Writer) error {
	e := json.NewEncoder(w)
	e.SetIndent("", "  ")
	return e.Encode(r)
}

// WriteTables writes a Markdown table for each suite, its columns in the order given.
func (r *Report) WriteTables(w io.Writer, columns map[string][]string) error {
	var suites []string
	for _, res := range r.Results {
		if !slices.Contains(suites, res.Suite) {
			suites = append(suites, res.Suite)
		}
	}
	for _, suite := range suites {
		head := columns[suite]
		if _, err := fmt.Fprintf(w, "\n**%s**\n\n| | %s |\n|---|%s\n", suite, strings.Join(head, " | "), strings.Repeat("---:|", len(head))); err != nil {
			return err
		}
		for _, res := range r.Results {
			if res.Suite != suite {
				continue
			}
			if _, err := fmt.Fprintln(w, res.row(head)); err != nil {
				return err
			}
		}
	}
	return nil
}

func (res *Result) row(head []string) string {
	if res.Failed != "" {
		return fmt.Sprintf("| %s | %s%s", res.Name, strings.ReplaceAll(res.Failed, "\n", " "), strings.Repeat(" |", len(head)))
	}
	cells := []string{res.Name}
	for _, h := range head {
		cell := res.Notes[h]
		if v, ok := res.Values[h]; ok {
			cell = short(v.Number)
		}
		cells = append(cells, cell)
	}
	return "| " + strings.Join(cells, " | ") + " |"
}

// short writes a number with three digits that count.
func short(v float64) string {
	switch {
	case v == 0:
		return "0"
	case v >= 1e6:
		return fmt.Sprintf("%.2f M", v/1e6)
	case v >= 1e4:
		return fmt.Sprintf("%.0f k", v/1e3)
	case v >= 100:
		return fmt.Sprintf("%.0f", v)
	case v >= 10:
		return fmt.Sprintf("%.1f", v)
	case v >= 0.1:
		return fmt.Sprintf("%.2f", v)
	}
	return fmt.Sprintf("%.3g", v)
}

// ToFile writes into a file; no name is nothing to do.
func ToFile(name string, write func(io.Writer) error) error {
	if name == "" {
		return nil
	}
	f, err := os.Create(name)
	if err != nil {
		return err
	}
	return errors.Join(write(f), f.Close())
}

// Quantile is the value below which a share of the list lies. It sorts the list.
func Quantile(list []time.Duration, share float64) time.Duration {
	if len(list) == 0 {
		return 0
	}
	slices.Sort(list)
	return list[min(int(share*float64(len(list))), len(list)-1)]
}
