package incremental_test

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/tidemill/tidemill/incremental/streamtest"
)

const goldenDir = "testdata/stream"

func TestStream(t *testing.T) { streamtest.Golden(t, goldenDir) }

// TestGoldenIndex holds the table of rules in testdata/stream/README.md to what is there:
// each file and test it names exists, and each golden file is named.
func TestGoldenIndex(t *testing.T) {
	t.Parallel()
	index, err := os.ReadFile(filepath.Join(goldenDir, "README.md"))
	if err != nil {
		t.Fatal(err)
	}
	unnamed := map[string]bool{}
	files, err := filepath.Glob(filepath.Join(goldenDir, "*", "*"))
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range files {
		unnamed[f] = true
	}
	for _, m := range regexp.MustCompile("`([^`\n]+)`").FindAllStringSubmatch(string(index), -1) {
		found := []string{m[1]}
		switch {
		case strings.HasPrefix(m[1], "Test"):
			found = goldenTests(t, m[1])
		case regexp.MustCompile(`^[a-z]+/[a-z0-9_*]+$`).MatchString(m[1]) && !strings.HasPrefix(m[1], "testdata/"):
			if found, err = filepath.Glob(filepath.Join(goldenDir, m[1])); err != nil {
				t.Fatal(err)
			}
		}
		if len(found) == 0 {
			t.Errorf("README.md names %s, which is not there", m[1])
		}
		for _, f := range found {
			delete(unnamed, f)
		}
	}
	for f := range unnamed {
		t.Errorf("%s is not in README.md: which rule does it pin?", f)
	}
}

// goldenTests are the tests of this package whose names match.
func goldenTests(t *testing.T, pattern string) []string {
	t.Helper()
	name := regexp.MustCompile(`func (` + strings.ReplaceAll(pattern, "*", `\w*`) + `)\(`)
	sources, err := filepath.Glob("*_test.go")
	if err != nil {
		t.Fatal(err)
	}
	var found []string
	for _, s := range sources {
		text, err := os.ReadFile(s)
		if err != nil {
			t.Fatal(err)
		}
		for _, m := range name.FindAllStringSubmatch(string(text), -1) {
			found = append(found, m[1])
		}
	}
	return found
}
