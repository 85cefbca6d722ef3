package tidemill_test

import (
	"encoding/json"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path"
	"slices"
	"strings"
	"testing"
)

const module = "github.com/tidemill/tidemill"

// layers is the one rule for imports: a package imports only from its own folder and
// from folders to its left.
var layers = []string{
	"internal/vfs", "columnar", "logical", "optimizer", "physical", "formats",
	"checkpoint", "incremental", "", "cmd", "bench", "examples",
}

// onlyIn says where an external package may be imported.
var onlyIn = map[string][]string{
	"github.com/google/btree":             {"incremental/state"},
	"github.com/parquet-go/parquet-go":    {"formats/parquet"},
	"github.com/klauspost/compress":       {"formats"},
	"github.com/twmb/avro":                {"formats/avro"},
	"github.com/spf13/cobra":              {"cmd"},
	"github.com/prometheus/client_golang": {"incremental/metrics"},
	"github.com/axiomhq/hyperloglog":      {"columnar/function"},
	"github.com/DataDog/sketches-go":      {"columnar/function"},
}

// never lists packages that cost too much binary or hide what we must see.
var never = []string{
	"github.com/apache/arrow-go/v18/arrow/compute",
	"github.com/apache/arrow-go/v18/parquet",
}

type goPackage struct {
	ImportPath   string
	Imports      []string
	TestImports  []string
	XTestImports []string
}

func TestImportOrder(t *testing.T) {
	t.Parallel()
	for _, p := range listPackages(t) {
		from := relative(p.ImportPath)
		for _, imp := range p.Imports {
			if problem := checkEdge(from, imp); problem != "" {
				t.Errorf("%s imports %s: %s", p.ImportPath, imp, problem)
			}
		}
	}
}

// TestHarnessesAreForTests keeps packages named …test out of the engine.
func TestHarnessesAreForTests(t *testing.T) {
	t.Parallel()
	for _, p := range listPackages(t) {
		if isHarness(p.ImportPath) {
			continue
		}
		for _, imp := range p.Imports {
			if strings.HasPrefix(imp, module) && isHarness(imp) {
				t.Errorf("%s imports the test harness %s outside a test", p.ImportPath, imp)
			}
		}
	}
}

func isHarness(importPath string) bool {
	base := path.Base(importPath)
	return strings.HasSuffix(base, "test") && base != "test"
}

func listPackages(t *testing.T) []goPackage {
	t.Helper()
	out, err := exec.Command("go", "list", "-pgo=off", "-json=ImportPath,Imports,TestImports,XTestImports", "./...").Output()
	if err != nil {
		t.Fatalf("go list: %v", err)
	}
	var packages []goPackage
	for dec := json.NewDecoder(strings.NewReader(string(out))); dec.More(); {
		var p goPackage
		if err := dec.Decode(&p); err != nil {
			t.Fatal(err)
		}
		packages = append(packages, p)
	}
	if len(packages) < 10 {
		t.Fatalf("go list found only %d packages", len(packages))
	}
	return packages
}

func relative(importPath string) string {
	return strings.TrimPrefix(strings.TrimPrefix(importPath, module), "/")
}

// layerOf is the place of a package of ours in layers.
func layerOf(rel string) int {
	if rel == "" {
		return slices.Index(layers, "")
	}
	for i, l := range layers {
		if l != "" && (rel == l || strings.HasPrefix(rel, l+"/")) {
			return i
		}
	}
	return -1
}

func checkEdge(from, imp string) string {
	if imp == module || strings.HasPrefix(imp, module+"/") {
		a, b := layerOf(from), layerOf(relative(imp))
		switch {
		case a < 0 || b < 0:
			return "one of them is in no layer"
		case b > a:
			return fmt.Sprintf("%q is to the right of %q", layers[b], layers[a])
		}
		return ""
	}
	return checkExternal(from, imp)
}

func checkExternal(from, imp string) string {
	harness := isHarness(from)
	for _, n := range never {
		if !harness && (imp == n || strings.HasPrefix(imp, n+"/")) {
			return "this package is not used outside tests"
		}
	}
	for p, folders := range onlyIn {
		if imp != p && !strings.HasPrefix(imp, p+"/") {
			continue
		}
		if !slices.ContainsFunc(folders, func(f string) bool { return from == f || strings.HasPrefix(from, f+"/") }) {
			return fmt.Sprintf("only %s may", strings.Join(folders, ", "))
		}
	}
	return ""
}

// TestNullsAreOurs keeps Arrow's own column of nulls out of the engine: it leaves buffers
// out that a pooled allocator hands to others, and lists without offsets.
func TestNullsAreOurs(t *testing.T) {
	t.Parallel()
	err := fs.WalkDir(os.DirFS("."), ".", func(name string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() || path.Ext(name) != ".go" || strings.HasSuffix(name, "_test.go") {
			return err
		}
		text, err := os.ReadFile(name)
		if err == nil && strings.Contains(string(text), "array.MakeArray"+"OfNull(") {
			t.Errorf("%s makes nulls by array.MakeArray"+"OfNull; columnar.Nulls is safe", name)
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
}
