package main

import (
	"bytes"
	"os"
	"path/filepath"
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
	for _, args := range [][]string{{"-root", root, "-as", "x"}, {"-root", root, files[0]}, {"-root", root, "-as", "x", "nothing.json"}} {
		if err := run(t.Context(), append([]string{"report"}, args...), &out); err == nil {
			t.Errorf("%v: no error", args)
		}
	}
}
