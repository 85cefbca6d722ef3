package harness

import (
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"math"
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
	// Differs says that engines gave different results; a note tells them.
	Differs bool `json:"-"`
}

// Value is a number with its unit, as Go's benchmark format has it.
type Value struct {
	Number float64 `json:"number"`
	Unit   string  `json:"unit"`
}

// Suite is what the results of a name have in common.
type Suite struct {
	Machine string   `json:"machine"`
	Note    string   `json:"note,omitempty"`
	Columns []string `json:"columns"`         // of its table, in order
	Chart   string   `json:"chart,omitempty"` // the column that a chart draws
}

// Report is what was measured, in one run or in several that were merged.
type Report struct {
	Suites  map[string]Suite `json:"suites"`
	Results []Result         `json:"results"`
}

// NewReport begins a report with one suite on this machine.
func NewReport() *Report { return &Report{Suites: map[string]Suite{}} }

// Begin says what table the results of a suite make.
func (r *Report) Begin(suite string, s Suite) {
	if s.Machine == "" {
		s.Machine = Machine()
	}
	r.Suites[suite] = s
}

// Add notes a result.
func (r *Report) Add(res Result) { r.Results = append(r.Results, res) }

// Merge takes what another report has, in place of what was known of the same names.
func (r *Report) Merge(other *Report) {
	maps.Copy(r.Suites, other.Suites)
	for _, res := range other.Results {
		if old := r.find(res.Suite, res.Name); old != nil {
			*old = res
			continue
		}
		r.Results = append(r.Results, res)
	}
}

// Find is the result of a name in a suite that has values, or nil.
func (r *Report) Find(suite, name string) *Result {
	if res := r.find(suite, name); res != nil && res.Failed == "" {
		return res
	}
	return nil
}

func (r *Report) find(suite, name string) *Result {
	for i := range r.Results {
		if r.Results[i].Suite == suite && r.Results[i].Name == name {
			return &r.Results[i]
		}
	}
	return nil
}

// Mean is the geometric mean of a column over a suite, 0 if there is none.
func (r *Report) Mean(suite, column string) float64 {
	sum, n := 0.0, 0
	for _, res := range r.Results {
		if v, ok := res.Values[column]; ok && res.Suite == suite {
			sum, n = sum+math.Log(v.Number), n+1
		}
	}
	if n == 0 {
		return 0
	}
	return math.Exp(sum / float64(n))
}

// ReadReport reads what WriteJSON wrote.
func ReadReport(name string) (*Report, error) {
	data, err := os.ReadFile(name)
	if err != nil {
		return nil, err
	}
	r := NewReport()
	if err := json.Unmarshal(data, r); err != nil {
		return nil, fmt.Errorf("%s: %w", name, err)
	}
	return r, nil
}

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
	var b strings.Builder
	fmt.Fprintf(&b, "goos: %s\ngoarch: %s\n", runtime.GOOS, runtime.GOARCH)
	for _, suite := range r.order() {
		fmt.Fprintf(&b, "# %s\n", r.Suites[suite].Machine)
		for _, res := range r.Results {
			if res.Suite != suite || res.Failed != "" {
				continue
			}
			fmt.Fprintf(&b, "Benchmark%s/%s \t%d", strings.ToUpper(suite[:1])+suite[1:], strings.ReplaceAll(res.Name, " ", "_"), max(res.Runs, 1))
			for _, k := range slices.Sorted(maps.Keys(res.Values)) {
				fmt.Fprintf(&b, "\t%g %s", res.Values[k].Number, res.Values[k].Unit)
			}
			b.WriteString("\n")
		}
	}
	_, err := io.WriteString(w, b.String())
	return err
}

// order is the suites as their first results come.
func (r *Report) order() []string {
	var suites []string
	for _, res := range r.Results {
		if !slices.Contains(suites, res.Suite) {
			suites = append(suites, res.Suite)
		}
	}
	return suites
}

// WriteJSON writes the report as one object.
func (r *Report) WriteJSON(w io.Writer) error {
	e := json.NewEncoder(w)
	e.SetIndent("", "  ")
	return e.Encode(r)
}

// WriteTables writes a Markdown table for each suite.
func (r *Report) WriteTables(w io.Writer) error {
	var b strings.Builder
	for _, name := range r.order() {
		suite := r.Suites[name]
		fmt.Fprintf(&b, "\n**%s** (%s)\n\n", name, suite.Machine)
		if suite.Note != "" {
			fmt.Fprintf(&b, "%s\n\n", suite.Note)
		}
		fmt.Fprintf(&b, "| | %s |\n|---|%s\n", strings.Join(suite.Columns, " | "), strings.Repeat("---:|", len(suite.Columns)))
		for _, res := range r.Results {
			if res.Suite == name {
				fmt.Fprintln(&b, res.row(suite.Columns))
			}
		}
	}
	_, err := io.WriteString(w, b.String())
	return err
}

func (res *Result) row(head []string) string {
	if res.Failed != "" {
		return fmt.Sprintf("| %s | %s%s", res.Name, strings.ReplaceAll(res.Failed, "\n", " "), strings.Repeat(" |", len(head)))
	}
	cells := []string{res.Name}
	for _, h := range head {
		cell := res.Notes[h]
		if v, ok := res.Values[h]; ok {
			cell = Short(v.Number)
		}
		cells = append(cells, cell)
	}
	return "| " + strings.Join(cells, " | ") + " |"
}

// Short writes a number with three digits that count.
func Short(v float64) string {
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

// Quantile is the value below which a share of the list lies.
func Quantile(list []time.Duration, share float64) time.Duration {
	if len(list) == 0 {
		return 0
	}
	list = slices.Sorted(slices.Values(list))
	return list[min(int(share*float64(len(list))), len(list)-1)]
}
