package main

import (
	"bytes"
	"context"
	"errors"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/tidemill/tidemill/bench/harness"
)

// TestMain lets the test binary be the processes that the commands start.
func TestMain(m *testing.M) {
	if len(os.Args) > 1 && slices.Contains([]string{childCommand, makeCommand, freshCommand}, os.Args[1]) {
		main()
		os.Exit(0)
	}
	os.Exit(m.Run())
}

// buildTidemill builds the binary into dir.
func buildTidemill(t *testing.T, dir string) string {
	t.Helper()
	binary := filepath.Join(dir, "tidemill")
	build := exec.CommandContext(t.Context(), "go", "build", "-o", binary, "./cmd/tidemill")
	build.Dir = filepath.Join("..", "..")
	if out, err := build.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	return binary
}

// TestCommands runs the commands, small: both engines agree, and every column is filled.
func TestCommands(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	binary := buildTidemill(t, dir)
	for name, args := range map[string][]string{
		"compare": {"-rows", "1000", "-queries", "h2o_q01", "-n", "1"},
		"fresh":   {"-files", "3", "-rows", "500"},
	} {
		file := filepath.Join(dir, name+".json")
		if err := run(t.Context(), append([]string{name, "-tidemill", binary, "-dir", dir, "-json", file}, args...)); err != nil {
			t.Fatal(err)
		}
		r, err := harness.ReadReport(file)
		if err != nil {
			t.Fatal(err)
		}
		if len(r.Results) < 2 {
			t.Errorf("%s: %+v", name, r.Results)
		}
		for _, res := range r.Results {
			if same := res.Notes["same"]; res.Failed != "" || same != "" && same != "yes" || len(res.Values) < 8 {
				t.Errorf("%s: %+v", name, res)
			}
		}
	}
}

func TestSmokeCompare(t *testing.T) {
	t.Parallel()
	file := filepath.Join(t.TempDir(), "smoke.json")
	steady := func(ours, theirs time.Duration) func(context.Context) (time.Duration, time.Duration, error) {
		return func(context.Context) (time.Duration, time.Duration, error) { return ours, theirs, nil }
	}
	var out bytes.Buffer
	s := &smoke{file: file, turns: 2, out: &out}
	if err := s.recordAll(t.Context(), []smokeWork{{name: "a", turn: steady(20, 10)}, {name: "b", turn: steady(5, 10)}}); err != nil {
		t.Fatal(err)
	}
	turns := 0
	noisy := func(context.Context) (time.Duration, time.Duration, error) {
		if turns++; turns < 4 {
			return 90, 10, nil
		}
		return 21, 10, nil
	}
	if err := s.compareAll(t.Context(), []smokeWork{{name: "a", turn: noisy}, {name: "b", turn: steady(7, 10)}}); err != nil {
		t.Errorf("%v\n%s", err, out.String())
	}
	err := s.compareAll(t.Context(), []smokeWork{{name: "a", turn: steady(31, 10)}, {name: "b", turn: steady(5, 10)}, {name: "c", turn: steady(1, 1)}})
	if err == nil || !strings.Contains(err.Error(), "a: ratio 3.100, recorded 2.000") || !strings.Contains(err.Error(), "c has no recorded ratio") || strings.Contains(err.Error(), "b:") {
		t.Errorf("%v", err)
	}
	broken := errors.New("broken")
	if err := s.compareAll(t.Context(), []smokeWork{{name: "a", turn: func(context.Context) (time.Duration, time.Duration, error) { return 0, 0, broken }}}); !errors.Is(err, broken) {
		t.Errorf("%v", err)
	}
}

// The recorded ratios are those of the works there are.
func TestSmokeRecorded(t *testing.T) {
	t.Parallel()
	works, err := (&smoke{}).works()
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, w := range works {
		names = append(names, w.name)
	}
	slices.Sort(names)
	known, err := readSmoke("testdata/smoke.json")
	if err != nil {
		t.Fatal(err)
	}
	if got := slices.Sorted(maps.Keys(known.Ratios)); !slices.Equal(got, names) {
		t.Errorf("recorded: %q\nworks: %q", got, names)
	}
}
