package main

import (
	"bytes"
	"errors"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/tidemill/tidemill/bench/harness"
)

// What is asked for wrongly is refused with one line, before anything is made.
func TestRefusals(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ args, want string }{
		{"", "usage: duckdb compare"},
		{"compare -n 0", "-n must be positive, not 0"},
		{"compare -rows -5", "-rows must be positive, not -5"},
		{"compare -threads 0", "-threads must be positive, not 0"},
		{"compare -format xml", `-format: "xml" is unknown; known are parquet, csv, jsonl`},
		{"compare -format csv,", `-format: "" is unknown`},
		{"compare -queries nothing", `-queries: no name contains "nothing"; the names are: h2o_q01; `},
		{"compare -json DIR/x/a", "-json: open "},
		{"compare h2o_q01 -n 1", `argument "h2o_q01" is not taken: all is said by flags; compare -h lists them`},
		{"compare -row 5", "flag provided but not defined: -row; compare -h lists the flags"},
		{"tpch -n 0", "-n must be positive, not 0"},
		{"tpch -threads 0", "-threads must be positive, not 0"},
		{"tpch -scale -1", "-scale must be positive, not -1"},
		{"tpch -scale NaN", "-scale must be positive, not NaN"},
		{"tpch -scale Inf", "-scale must be positive, not +Inf"},
		{"tpch -queries q99", `-queries: no name contains "q99"; the names are: q01; `},
		{"tpch -chart DIR/x/a", "-chart: open "},
		{"tpch q01", `argument "q01" is not taken`},
		{"fresh -files 0", "-files must be positive, not 0"},
		{"fresh -rows 0", "-rows must be positive, not 0"},
		{"fresh -threads 0", "-threads must be positive, not 0"},
		{"fresh -format xml", `-format: "xml" is unknown`},
		{"fresh -bench DIR/x/a", "-bench: open "},
		{"fresh x", `argument "x" is not taken`},
		{"smoke -turns 0", "-turns must be positive, not 0"},
		{"smoke -threads 0", "-threads must be positive, not 0"},
		{"smoke -only nothing", `-only: no name contains "nothing"; the names are: h2o_q01, parquet; `},
		{"smoke -record -file DIR/x/a", "-file: open "},
		{"smoke x", `argument "x" is not taken`},
	} {
		dir := filepath.Join(t.TempDir(), "made")
		args := strings.Fields(strings.ReplaceAll(c.args, "DIR", dir))
		if len(args) > 0 {
			args = slices.Insert(args, 1, "-dir", dir)
		}
		err := run(t.Context(), args)
		if err == nil || !strings.Contains(err.Error(), c.want) || strings.Contains(err.Error(), "\n") {
			t.Errorf("%s: %v, want %q", c.args, err, c.want)
		}
		if code := harness.ExitCode(&bytes.Buffer{}, "duckdb", err); code != 2 {
			t.Errorf("%s: exit status %d", c.args, code)
		}
		if _, err := os.Stat(dir); !errors.Is(err, os.ErrNotExist) {
			t.Errorf("%s: something was made (%v)", c.args, err)
		}
	}
}

func TestAgreement(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		ours, theirs []string
		nan, want    string
	}{
		{[]string{"1", "a"}, []string{"1.0000000000001", "a"}, "", "yes"},
		{[]string{"1"}, []string{"1.1"}, "", `NO: ["1"], ["1.1"]`},
		{[]string{"1"}, []string{"1", "2"}, "", `NO: ["1"], ["1" "2"]`},
		{[]string{""}, []string{textOf(nil)}, "", "yes"},
		{[]string{""}, []string{"0"}, "", `NO: [""], ["0"]`},
		{[]string{"NaN"}, []string{textOf(math.NaN())}, "", "yes"},
		{[]string{"Infinity"}, []string{textOf(math.Inf(1))}, "", "yes"},
		{[]string{"Infinity"}, []string{textOf(math.Inf(-1))}, "", `NO: ["Infinity"], ["-Inf"]`},
		{[]string{"5"}, []string{textOf(math.Inf(1))}, "", `NO: ["5"], ["+Inf"]`},
		{[]string{"0.5"}, []string{"NaN"}, "", `NO: ["0.5"], ["NaN"]`},
		{[]string{"3", ""}, []string{"3", "NaN"}, "corr-one-row", "yes, but for corr-one-row"},
		{[]string{"3", ""}, []string{"4", "NaN"}, "corr-one-row", `NO: ["3" ""], ["4" "NaN"]`},
		{[]string{"3", "NaN"}, []string{"3", "0.5"}, "corr-one-row", `NO: ["3" "NaN"], ["3" "0.5"]`},
	} {
		if got := agreement(c.ours, c.theirs, c.nan); got != c.want {
			t.Errorf("%q, %q: %s, want %s", c.ours, c.theirs, got, c.want)
		}
	}
}

func TestCSVRows(t *testing.T) {
	t.Parallel()
	for text, want := range map[string][][]string{
		"a\n":              nil,
		"a\n\n":            {{""}},
		"a\n\n1\n\n\n2\n":  {{""}, {"1"}, {""}, {""}, {"2"}},
		"a\n\"x\n\n\"\n\n": {{"x\n\n"}, {""}},
		"a,b\n,\n1,2\n":    {{"", ""}, {"1", "2"}},
	} {
		got, err := csvRows([]byte(text))
		if err != nil || !slices.EqualFunc(got, want, slices.Equal) {
			t.Errorf("%q: %q, %v, want %q", text, got, err, want)
		}
	}
	for _, text := range []string{"", "a,b\n1\n"} {
		if got, err := csvRows([]byte(text)); err == nil {
			t.Errorf("%q: %q, no error", text, got)
		}
	}
	if row, err := csvRow([]byte("a\n")); err == nil {
		t.Errorf("no row: %q", row)
	}
}

// What fails and what differs is in the table, and makes the exit status 1.
func TestFailures(t *testing.T) {
	t.Parallel()
	runs := []harness.Measurement{{Wall: time.Second, CPU: time.Second}}
	o := newOutput("query")
	o.add("good", runs, runs, "yes", nil)
	o.add("allowed", runs, runs, agreement([]string{"", "1"}, []string{"NaN", "1"}, "corr-one-row"), nil)
	o.add("different", runs, runs, agreement([]string{"1"}, []string{"2"}, ""), nil)
	o.add("broken", nil, nil, "", errors.New("exit status 1"))
	var out bytes.Buffer
	err := o.write(&out, "a note", sideColumns)
	if err == nil || err.Error() != "2 of 4 measurements failed; the table says why: query different; query broken" {
		t.Errorf("%v", err)
	}
	if code := harness.ExitCode(&bytes.Buffer{}, "duckdb", err); code != 1 {
		t.Errorf("exit status %d", code)
	}
	for _, want := range []string{"| yes, but for corr-one-row |", `| NO: ["1"], ["2"] |`, "| broken | exit status 1 |"} {
		if !strings.Contains(out.String(), want) {
			t.Errorf("%q is not in\n%s", want, out.String())
		}
	}
	for _, command := range [][]string{{"compare", "-rows", "10", "-n", "1", "-format", "csv", "-queries", "scan_count"}, {"fresh", "-files", "1", "-rows", "5"}} {
		dir := t.TempDir()
		if err := run(t.Context(), append(command, "-dir", dir, "-tidemill", filepath.Join(dir, "none"))); harness.ExitCode(&bytes.Buffer{}, "duckdb", err) != 1 {
			t.Errorf("%v: %v", command, err)
		}
	}
}

// A work of which no processor time is known has no ratio to record.
func TestSmokeNothingMeasured(t *testing.T) {
	t.Parallel()
	w := smokeWork{name: "a"}
	if err := w.measure(t.Context(), 0); err == nil || err.Error() != "a: no processor time was measured" {
		t.Errorf("%v", err)
	}
}
