package tidemill_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// TestExamples runs every job below examples/ as its first lines say: the commands in its
// comment, in a directory with a copy of the examples. A second run must change nothing.
func TestExamples(t *testing.T) {
	t.Parallel()
	bin, err := binary()
	if err != nil {
		t.Fatal(err)
	}
	jobs, err := filepath.Glob("examples/*/*.sql")
	if err != nil || len(jobs) < 5 {
		t.Fatalf("%d jobs, %v", len(jobs), err)
	}
	for _, job := range jobs {
		t.Run(filepath.Base(filepath.Dir(job)), func(t *testing.T) {
			t.Parallel()
			text, err := os.ReadFile(job)
			if err != nil {
				t.Fatal(err)
			}
			commands := regexp.MustCompile(`(?m)^--   (tidemill .*)$`).FindAllStringSubmatch(string(text), -1)
			if len(commands) < 2 {
				t.Fatalf("%s has no commands in its comment", job)
			}
			p := &pageTest{t: t, page: job, dir: t.TempDir(), bin: filepath.Dir(bin)}
			if err := os.CopyFS(filepath.Join(p.dir, "examples"), os.DirFS("examples")); err != nil {
				t.Fatal(err)
			}
			var first string
			for range 2 {
				for _, c := range commands {
					if out := p.shell(c[1]); strings.Contains(out, "(exit ") || strings.Contains(c[1], " query ") && strings.Count(out, "\n") < 2 {
						t.Fatalf("%s prints\n%s", c[1], out)
					}
				}
				files := p.shell("find out -type f | sort | xargs cksum")
				if first != "" && files != first {
					t.Errorf("the second run changed files:\n%s\nwere\n%s", files, first)
				}
				first = files
			}
		})
	}
}

// TestEmbeddedExample runs the Go program.
func TestEmbeddedExample(t *testing.T) {
	t.Parallel()
	bin := filepath.Join(t.TempDir(), "embed")
	if out, err := exec.Command("go", "build", "-o", bin, "./examples/embed").CombinedOutput(); err != nil {
		t.Fatalf("go build: %v\n%s", err, out)
	}
	out := filepath.Join(t.TempDir(), "out")
	for run, want := range []string{"batch 0:", "the largest lines:"} {
		text, err := exec.Command(bin, "-out", out).CombinedOutput()
		if err != nil || !strings.HasPrefix(string(text), want) {
			t.Errorf("run %d: %v\n%s", run, err, text)
		}
		if last := "Kyoto    cask     400.23\n"; !strings.HasSuffix(string(text), last) {
			t.Errorf("run %d does not end with %q:\n%s", run, last, text)
		}
	}
}
