package tidemill_test

import (
	"bytes"
	"flag"
	"fmt"
	"go/ast"
	"go/doc"
	"go/parser"
	"go/printer"
	"go/token"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// rewriteFlag is -rewrite, which the harness of golden streams may have defined already.
var rewriteFlag = func() *flag.Flag {
	if flag.Lookup("rewrite") == nil {
		flag.Bool("rewrite", false, "write what the golden files should hold")
	}
	return flag.Lookup("rewrite")
}()

func rewriting() bool { return rewriteFlag.Value.String() == "true" }

// api is the packages whose names are promised. only lists the ones of a package that
// are, nil for all.
var api = []struct {
	dir  string
	only []string
}{
	{".", nil},
	{"logical", []string{"DataFrame", "GroupedData", "JoinKind"}},
	{"logical/expr", []string{"Term", "RowWindow", "FrameEnd"}},
	{"logical/connector", nil},
	{"columnar", []string{"Reader"}},
	{"formats/avro", []string{"Options", "Compression"}},
	{"formats/codec", []string{"Mode", "Encoding", "Compression"}},
	{"formats/csv", []string{"Options", "Header"}},
	{"formats/ipc", []string{"Options", "Compression"}},
	{"formats/json", []string{"Options"}},
	{"formats/parquet", []string{"Options", "Compression"}},
	{"formats/text", []string{"Options"}},
}

// TestAPI pins the exported names of the public API, so that its growth is seen in
// review. go test . -run TestAPI -rewrite accepts a change.
func TestAPI(t *testing.T) {
	t.Parallel()
	var lines []string
	for _, p := range api {
		lines = append(lines, exported(t, p.dir, p.only)...)
	}
	golden(t, "testdata/api.txt", strings.Join(lines, "\n")+"\n")
}

// golden compares text with a file, or writes it.
func golden(t *testing.T, file, text string) {
	t.Helper()
	if rewriting() {
		if err := os.WriteFile(file, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	want, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if got, want := strings.Split(text, "\n"), strings.Split(string(want), "\n"); !slices.Equal(got, want) {
		for _, line := range got {
			if !slices.Contains(want, line) {
				t.Errorf("%s has not: %s", file, line)
			}
		}
		for _, line := range want {
			if !slices.Contains(got, line) {
				t.Errorf("%s has, and should not: %s", file, line)
			}
		}
		t.Fatalf("%s is not up to date; go test . -run %s -rewrite, and look at the difference", file, t.Name())
	}
}

// exported lists the exported names of a package, one a line, with their types.
func exported(t *testing.T, dir string, only []string) []string {
	t.Helper()
	fset := token.NewFileSet()
	names, err := filepath.Glob(filepath.Join(dir, "*.go"))
	if err != nil {
		t.Fatal(err)
	}
	var files []*ast.File
	for _, name := range names {
		if strings.HasSuffix(name, "_test.go") {
			continue
		}
		f, err := parser.ParseFile(fset, name, nil, parser.SkipObjectResolution)
		if err != nil {
			t.Fatal(err)
		}
		files = append(files, f)
	}
	importPath := module
	if dir != "." {
		importPath += "/" + dir
	}
	p, err := doc.NewFromFiles(fset, files, importPath)
	if err != nil {
		t.Fatal(err)
	}
	l := &lister{fset: fset, prefix: p.Name + ": "}
	if only == nil {
		l.values("const", p.Consts)
		l.values("var", p.Vars)
		l.funcs(p.Funcs)
	}
	for _, x := range p.Types {
		if only == nil || slices.Contains(only, x.Name) {
			l.typ(x)
		}
	}
	slices.Sort(l.lines)
	return l.lines
}

type lister struct {
	fset   *token.FileSet
	prefix string
	lines  []string
}

func (l *lister) add(format string, args ...any) {
	l.lines = append(l.lines, l.prefix+fmt.Sprintf(format, args...))
}

func (l *lister) text(node any) string {
	var b bytes.Buffer
	if err := printer.Fprint(&b, l.fset, node); err != nil {
		return err.Error()
	}
	return strings.Join(strings.Fields(b.String()), " ")
}

func (l *lister) values(kind string, values []*doc.Value) {
	for _, v := range values {
		for _, name := range v.Names {
			if ast.IsExported(name) {
				l.add("%s %s", kind, name)
			}
		}
	}
}

func (l *lister) funcs(funcs []*doc.Func) {
	for _, f := range funcs {
		d := *f.Decl
		d.Doc, d.Body = nil, nil
		l.add("%s", l.text(&d))
	}
}

func (l *lister) typ(x *doc.Type) {
	l.values("const", x.Consts)
	l.values("var", x.Vars)
	l.funcs(x.Funcs)
	l.funcs(x.Methods)
	for _, s := range x.Decl.Specs {
		spec := s.(*ast.TypeSpec)
		if spec.Name.Name != x.Name {
			continue
		}
		alias := ""
		if spec.Assign.IsValid() {
			alias = "= "
		}
		switch body := spec.Type.(type) {
		case *ast.StructType:
			l.add("type %s %sstruct", x.Name, alias)
			l.fields(x.Name+" struct", body.Fields)
		case *ast.InterfaceType:
			l.add("type %s %sinterface", x.Name, alias)
			l.fields(x.Name+" interface", body.Methods)
		default:
			l.add("type %s %s%s", x.Name, alias, l.text(spec.Type))
		}
	}
}

func (l *lister) fields(of string, list *ast.FieldList) {
	for _, f := range list.List {
		if len(f.Names) == 0 {
			l.add("type %s, %s", of, l.text(f.Type))
		}
		for _, name := range f.Names {
			if name.IsExported() {
				l.add("type %s, %s %s", of, name.Name, strings.TrimPrefix(l.text(f.Type), "func"))
			}
		}
	}
}
