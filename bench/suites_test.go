package main

import (
	"bytes"
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/tidemill/tidemill/bench/harness"
)

// Every suite runs, small, and every query of the auction that is said to be expressible
// gives rows.
func TestSuites(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	binary := filepath.Join(dir, "tidemill")
	if out, err := exec.CommandContext(t.Context(), "go", "build", "-o", binary, "../cmd/tidemill").CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	report := func(args ...string) *harness.Report {
		t.Helper()
		file := filepath.Join(dir, "report.json")
		var out bytes.Buffer
		args = append([]string{"run", "-tidemill", binary, "-dir", dir, "-json", file, "-bench", file + ".txt", "-n", "1"}, args...)
		if err := run(t.Context(), args, &out); err != nil {
			t.Fatal(err)
		}
		data, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		var r harness.Report
		if err := json.Unmarshal(data, &r); err != nil {
			t.Fatal(err)
		}
		for _, res := range r.Results {
			if res.Failed != "" && !strings.HasPrefix(res.Failed, "not expressible: ") {
				t.Errorf("%s %s: %s", res.Suite, res.Name, res.Failed)
			}
			if !strings.Contains(out.String(), "| "+res.Name+" |") {
				t.Errorf("%s is in no table:\n%s", res.Name, out.String())
			}
		}
		return &r
	}
	if r := report("-suite", "nexmark", "-events", "5000", "-files", "2"); len(r.Results) != 23 {
		t.Errorf("%d queries", len(r.Results))
	}
	if r := report("-suite", "overhead,scaling", "-rows", "100000", "-only", "csv"); len(r.Results) < 8 {
		t.Errorf("%d results", len(r.Results))
	}
	if r := report("-suite", "latency", "-files", "20", "-only", "filter, trigger"); len(r.Results) == 0 || r.Results[0].Values["batches"].Number != 10 {
		t.Errorf("%+v", r.Results)
	}
	profile := filepath.Join(dir, "merged.pgo")
	var out bytes.Buffer
	if err := run(t.Context(), []string{"profile", "-tidemill", binary, "-dir", dir, "-rows", "1000", "-events", "1000", "-out", profile}, &out); err != nil {
		t.Fatal(err)
	}
	if info, err := os.Stat(profile); err != nil || info.Size() == 0 {
		t.Errorf("%v, %v", info, err)
	}
}
