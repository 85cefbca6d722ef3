package harness

import (
	"encoding/xml"
	"io"
	"reflect"
	"strings"
	"testing"
	"time"
)

func sample() *Report {
	suites := map[string]Suite{
		"q": {Machine: "a & b", Note: "of two runs", Columns: []string{"s", "ratio", "same"}, Chart: "ratio"},
		"r": {Machine: "a & b", Columns: []string{"ratio", "rows"}, Chart: "rows"},
	}
	return &Report{Suites: suites, Results: []Result{
		{Suite: "q", Name: "one <1>", Runs: 3, Values: map[string]Value{"s": {0.25, "s"}, "ratio": {0.5, "x"}}, Notes: map[string]string{"same": "yes"}},
		{Suite: "q", Name: "two", Failed: "it\nbroke"},
		{Suite: "r", Name: "three", Runs: 1, Values: map[string]Value{"ratio": {12.345, "x"}, "rows": {2_500_000, "rows"}}},
	}}
}

func TestReport(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		write func(io.Writer) error
		has   []string
	}{
		"tables": {sample().WriteTables, []string{"**q** (a & b)\n\nof two runs\n\n| | s | ratio | same |\n|---|---:|---:|---:|\n| one <1> | 0.25 | 0.50 | yes |\n| two | it broke | | |", "| three | 12.3 | 2.50 M |"}},
		"bench":  {sample().WriteBench, []string{"# a & b\n", "BenchmarkQ/one_<1> \t3\t0.5 x\t0.25 s\n", "BenchmarkR/three \t1\t12.345 x\t2.5e+06 rows\n"}},
		"json":   {sample().WriteJSON, []string{`"machine": "a \u0026 b"`, `"failed": "it\nbroke"`}},
	} {
		var b strings.Builder
		if err := c.write(&b); err != nil {
			t.Fatal(err)
		}
		for _, want := range c.has {
			if !strings.Contains(b.String(), want) {
				t.Errorf("%s: %q is not in\n%s", name, want, b.String())
			}
		}
	}
}

func TestChart(t *testing.T) {
	t.Parallel()
	var b strings.Builder
	if err := sample().WriteChart(&b); err != nil {
		t.Fatal(err)
	}
	d := xml.NewDecoder(strings.NewReader(b.String()))
	bars := 0
	for {
		token, err := d.Token()
		if err == io.EOF {
			break
		}
		if err != nil {
			t.Fatalf("%v in\n%s", err, b.String())
		}
		if e, ok := token.(xml.StartElement); ok && e.Name.Local == "rect" {
			bars++
		}
	}
	if bars != 3 { // the background and a result of each suite
		t.Errorf("%d rectangles in\n%s", bars, b.String())
	}
}

func TestMerge(t *testing.T) {
	t.Parallel()
	r := sample()
	r.Merge(&Report{Suites: map[string]Suite{"q": {Machine: "other"}}, Results: []Result{
		{Suite: "q", Name: "two", Values: map[string]Value{"ratio": {2, "x"}}}, {Suite: "q", Name: "four"},
	}})
	if len(r.Results) != 4 || r.Suites["q"].Machine != "other" || r.Suites["r"].Machine != "a & b" {
		t.Errorf("%+v", r)
	}
	if got := r.Mean("q", "ratio"); got != 1 {
		t.Errorf("the mean of a half and two is %v", got)
	}
	if r.Find("q", "two") == nil || r.Find("r", "two") != nil || sample().Find("q", "two") != nil {
		t.Error("find")
	}
	file := t.TempDir() + "/report.json"
	if err := ToFile(file, r.WriteJSON); err != nil {
		t.Fatal(err)
	}
	if got, err := ReadReport(file); err != nil || !reflect.DeepEqual(got, r) {
		t.Errorf("%+v, %v; want %+v", got, err, r)
	}
}

func TestQuantile(t *testing.T) {
	t.Parallel()
	list := []time.Duration{5, 1, 4, 2, 3}
	for share, want := range map[float64]time.Duration{0: 1, 0.5: 3, 0.99: 5, 1: 5} {
		if got := Quantile(list, share); got != want {
			t.Errorf("%v: %v, want %v", share, got, want)
		}
	}
	if Quantile(nil, 0.5) != 0 {
		t.Error("of nothing")
	}
}

func TestRun(t *testing.T) {
	t.Parallel()
	m, err := Run(t.Context(), "go", "version")
	if err != nil || m.Wall <= 0 || m.CPU <= 0 || m.PeakBytes <= 0 || !strings.HasPrefix(string(m.Stdout), "go version") {
		t.Errorf("%+v, %v", m, err)
	}
	if _, err := Run(t.Context(), "go", "nothing"); err == nil || !strings.Contains(err.Error(), "unknown command") {
		t.Errorf("%v", err)
	}
}
