package main

import (
	"bytes"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/tidemill/tidemill/bench/harness"
)

// What is asked for wrongly is refused with one line, before anything is made.
func TestRefusals(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ args, want string }{
		{"", "usage: bench run"},
		{"gen -out DIR -data x", `-data: "x" is unknown; known are h2o, events, landing, nexmark, tpch`},
		{"gen -out DIR -format csv,x", `-format: "x" is unknown; known are parquet, csv, jsonl`},
		{"gen -out DIR -format csv,csv", `-format: "csv" stands there twice`},
		{"gen -out DIR -rows 0", "-rows must be positive, not 0"},
		{"gen -out DIR -data tpch -scale -1", "-scale must be positive, not -1"},
		{"gen -out DIR h2o -rows 5", `argument "h2o" is not taken: all is said by flags; bench gen -h lists them`},
		{"gen -out DIR -lines 5", "flag provided but not defined: -lines; bench gen -h lists the flags"},
		{"run -dir DIR -n 0", "-n must be positive, not 0"},
		{"run -dir DIR -threads -2", "-threads must be positive, not -2"},
		{"run -dir DIR -suite latency,x", `-suite: "x" is unknown; known are latency, nexmark, overhead, recovery, scaling`},
		{"run -dir DIR -suite latency -format xml", `-format: "xml" is unknown`},
		{"run -dir DIR latency", `argument "latency" is not taken`},
		{"run -dir DIR -suite latency -files 10", "-files must be 11 or more, not 10: the first 10 batches of latency warm up and are not counted"},
		{"run -dir DIR -suite recovery -rows 999999", "-rows must be 1000000 or more, not 999999: recovery begins with as many groups"},
		{"run -dir DIR -suite scaling -rows 1", "-rows must be 100000 or more, not 1"},
		{"run -dir DIR -suite nexmark -events 49", "-events must be 50 or more, not 49"},
		{"run -dir DIR -suite latency -json DIR/x/a", "-json: open "},
		{"run -dir DIR -suite latency -bench DIR/x/a", "-bench: open "},
		{"run -dir DIR -suite latency -chart DIR/x/a", "-chart: open "},
		{"profile -dir DIR -rows 0", "-rows must be positive, not 0"},
		{"profile -dir DIR -events 3", "-events must be 50 or more, not 3"},
		{"profile -dir DIR -out DIR/x/a", "-out: open "},
		{"profile x", `argument "x" is not taken`},
		{"report -root DIR x", "give -as DATE-COMMIT and the JSON files to merge, or neither"},
	} {
		dir := filepath.Join(t.TempDir(), "made")
		var out bytes.Buffer
		err := run(t.Context(), strings.Fields(strings.ReplaceAll(c.args, "DIR", dir)), &out)
		if err == nil || !strings.Contains(err.Error(), c.want) || strings.Contains(err.Error(), "\n") {
			t.Errorf("%s: %v, want %q", c.args, err, c.want)
		}
		var errs bytes.Buffer
		if code := harness.ExitCode(&errs, "bench", err); code != 2 || out.Len() > 0 {
			t.Errorf("%s: exit status %d, output %q", c.args, code, out.String())
		}
		if _, err := os.Stat(dir); !errors.Is(err, os.ErrNotExist) {
			t.Errorf("%s: something was made (%v)", c.args, err)
		}
	}
}

// A filter that leaves nothing is an error, of every suite, and writes no report.
func TestNothingMatches(t *testing.T) {
	t.Parallel()
	for name := range allSuites {
		dir := t.TempDir()
		file := filepath.Join(dir, "report.json")
		var out bytes.Buffer
		err := run(t.Context(), []string{"run", "-suite", name, "-only", "nothing", "-dir", filepath.Join(dir, "data"), "-json", file}, &out)
		if err == nil || !strings.Contains(err.Error(), `-only: no name contains "nothing"; the names are: `) || harness.ExitCode(&out, "bench", err) != 2 {
			t.Errorf("%s: %v", name, err)
		}
		if made, _ := filepath.Glob(filepath.Join(dir, "*", "*")); len(made) > 0 {
			t.Errorf("%s made %v", name, made)
		}
		if _, err := os.Stat(file); !errors.Is(err, os.ErrNotExist) {
			t.Errorf("%s wrote a report (%v)", name, err)
		}
	}
}

// What fails is in the table and in the report, and the exit status is 1; what cannot be
// expressed has not failed.
func TestFailures(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	nexmark := func(only string) (string, error) {
		var out bytes.Buffer
		err := run(t.Context(), []string{"run", "-suite", "nexmark", "-only", only, "-events", "50", "-files", "1", "-dir", dir,
			"-tidemill", filepath.Join(dir, "none"), "-json", filepath.Join(dir, "report.json")}, &out)
		return out.String(), err
	}
	out, err := nexmark("q00")
	if err == nil || err.Error() != "1 of 1 measurements failed; the table says why: nexmark q00" || harness.ExitCode(&bytes.Buffer{}, "bench", err) != 1 {
		t.Errorf("%v", err)
	}
	if !strings.Contains(out, "no such file or directory") {
		t.Errorf("the table does not say why:\n%s", out)
	}
	if r, err := harness.ReadReport(filepath.Join(dir, "report.json")); err != nil || len(r.Results) != 1 {
		t.Errorf("%+v, %v", r, err)
	}
	if out, err := nexmark("q06"); err != nil || !strings.Contains(out, "| q06 | "+harness.NotExpressible) {
		t.Errorf("%v\n%s", err, out)
	}
	if _, err := partitions(dir, "dt, hm"); err == nil || !strings.Contains(err.Error(), "give more -events") {
		t.Errorf("no folders: %v", err)
	}
}
