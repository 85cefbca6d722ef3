package main

import (
	"bytes"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/tidemill/tidemill/bench/harness"
)

// The README says what the newest file of the history says.
func TestReadme(t *testing.T) {
	t.Parallel()
	newest, err := newestReport("history")
	if err != nil {
		t.Fatal(err)
	}
	r, err := harness.ReadReport(newest)
	if err != nil {
		t.Fatal(err)
	}
	page, err := os.ReadFile("../README.md")
	if err != nil {
		t.Fatal(err)
	}
	want, err := withSection(page, readmeSection(r))
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(page, want) {
		t.Errorf("README.md is not what %s gives; run: go run ./bench report", newest)
	}
	if strings.Contains(string(readmeSection(r)), "{") {
		t.Errorf("a value has no place:\n%s", readmeSection(r))
	}
	var chart bytes.Buffer
	if err := ratioChart(r)(&chart); err != nil {
		t.Fatal(err)
	}
	if drawn, err := os.ReadFile("../docs/img/bench.svg"); err != nil || !bytes.Equal(drawn, chart.Bytes()) {
		t.Errorf("docs/img/bench.svg is not what %s gives (%v); run: go run ./bench report", newest, err)
	}
}

func TestReport(t *testing.T) {
	t.Parallel()
	root := t.TempDir()
	for _, dir := range []string{"bench/history", "docs/img"} {
		if err := os.MkdirAll(filepath.Join(root, dir), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	page := filepath.Join(root, "README.md")
	if err := os.WriteFile(page, []byte("before\n"+sectionStart+"old\n"+sectionEnd+"after\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	var files []string
	for name, res := range map[string]harness.Result{
		"one": {Suite: "query", Name: "h2o_q01, csv", Values: map[string]harness.Value{"tidemill s": {Number: 0.5}, harness.RatioColumn: {Number: 0.25}}},
		"two": {Suite: "peers", Name: "h2o_q01, csv, spark", Values: map[string]harness.Value{"s": {Number: 3}}},
	} {
		r := harness.NewReport()
		r.Begin(res.Suite, harness.Suite{Machine: "a machine", Chart: harness.RatioColumn})
		r.Add(res)
		files = append(files, filepath.Join(root, name+".json"))
		if err := harness.ToFile(files[len(files)-1], r.WriteJSON); err != nil {
			t.Fatal(err)
		}
	}
	var out bytes.Buffer
	if err := run(t.Context(), append([]string{"report", "-root", root, "-as", "2026-01-02-abc"}, files...), &out); err != nil {
		t.Fatal(err)
	}
	got, err := os.ReadFile(page)
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"before\n", "after\n", "Measured on: a machine.", "| … CSV | 0.50 |  | 0.25 |  /  |  |  | 3.00 |"} {
		if !strings.Contains(string(got), want) {
			t.Errorf("%q is not in\n%s", want, got)
		}
	}
	if _, err := withSection([]byte("a page"), nil); err == nil {
		t.Error("a page without the lines was taken")
	}
	for _, args := range [][]string{{"-root", root, "-as", "x"}, {"-root", root, files[0]}, {"-root", root, "-as", "2026-01-03-abc", "nothing.json"}} {
		if err := run(t.Context(), append([]string{"report"}, args...), &out); err == nil {
			t.Errorf("%v: no error", args)
		}
	}
	peers := files[slices.IndexFunc(files, func(name string) bool { return strings.HasSuffix(name, "two.json") })]
	empty := t.TempDir()
	if err := os.WriteFile(filepath.Join(empty, "README.md"), []byte(sectionStart+sectionEnd), 0o644); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		root, name, file, want string
	}{
		{root, "../../x", peers, `-as: "../../x" is not DATE-COMMIT, as in 2026-01-31-abc1234`},
		{root, "2026-13-01-abc", peers, `-as: "2026-13-01-abc" is not DATE-COMMIT`},
		{root, "2026-01-03-abc", peers, "no report of compare; merge the file that bench/duckdb compare -json writes, too"},
		{root, "2026-01-03-abc", "a.json -root b", `flag "-root" stands after "a.json": flags come first`},
		{empty, "2026-01-03-abc", files[0], "make the directory of the history first"},
		{filepath.Join(empty, "none"), "2026-01-03-abc", files[0], "-root is the directory of the module"},
	} {
		err := run(t.Context(), append([]string{"report", "-root", c.root, "-as", c.name}, strings.Fields(c.file)...), &out)
		if err == nil || !strings.Contains(err.Error(), c.want) || strings.Contains(err.Error(), "\n") {
			t.Errorf("%s %s: %v, want %q", c.name, c.file, err, c.want)
		}
	}
	if kept, err := filepath.Glob(filepath.Join(root, "bench", "history", "*")); err != nil || len(kept) != 3 {
		t.Errorf("the history holds %v, %v", kept, err)
	}
}
