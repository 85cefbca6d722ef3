package tidemill_test

import (
	"bytes"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/tidemill/tidemill/columnar/function"
	"github.com/tidemill/tidemill/logical/sql"
)

// The documentation is tested. In README.md and below docs/,
//
//	```console        is run: lines after "$ " by a shell, in a directory with a copy of
//	                  examples/ that all blocks of a page share. What follows is what is
//	                  printed, on stdout and then on stderr. A line "..." stands for any
//	                  lines, and "…" within a line for any text.
//	```sql NAME.sql   is written to that file, for the console blocks after it
//	```sql query      is run by tidemill query, and a ```text block right after it is what
//	                  is printed
//	```sql            is parsed
//	```go             stands word for word in a Go file that is compiled
//
// go test . -run TestDocs -rewrite fills in what the console and text blocks print.

// pages are the tested pages.
func pages(t *testing.T) []string {
	t.Helper()
	found := []string{"README.md", "CONTRIBUTING.md", "ARCHITECTURE.md"}
	err := filepath.WalkDir("docs", func(path string, _ fs.DirEntry, err error) error {
		if strings.HasSuffix(path, ".md") {
			found = append(found, filepath.ToSlash(path))
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return found
}

func TestDocs(t *testing.T) {
	t.Parallel()
	bin, err := binary()
	if err != nil {
		t.Fatal(err)
	}
	for _, page := range pages(t) {
		t.Run(page, func(t *testing.T) {
			t.Parallel()
			data, err := os.ReadFile(page)
			if err != nil {
				t.Fatal(err)
			}
			p := &pageTest{t: t, page: page, dir: t.TempDir(), bin: filepath.Dir(bin)}
			if err := os.CopyFS(filepath.Join(p.dir, "examples"), os.DirFS("examples")); err != nil {
				t.Fatal(err)
			}
			got := p.run(string(data))
			if rewriting() && got != string(data) {
				if err := os.WriteFile(page, []byte(got), 0o644); err != nil {
					t.Fatal(err)
				}
			}
		})
	}
}

// pageTest runs the blocks of one page.
type pageTest struct {
	t         *testing.T
	page      string
	dir, bin  string
	line      int
	lastQuery string // what the sql query block right before printed
}

// run goes through the blocks and returns the page with what they print.
func (p *pageTest) run(text string) string {
	lines := strings.SplitAfter(text, "\n")
	var out strings.Builder
	for i := 0; i < len(lines); {
		info, ok := strings.CutPrefix(lines[i], "```")
		out.WriteString(lines[i])
		i++
		if !ok {
			if strings.TrimSpace(lines[i-1]) != "" {
				p.lastQuery = ""
			}
			continue
		}
		from := i
		for i < len(lines) && !strings.HasPrefix(lines[i], "```") {
			i++
		}
		if i == len(lines) {
			p.t.Fatalf("%s:%d: the block does not end", p.page, from)
		}
		p.line = from + 1
		out.WriteString(p.block(strings.TrimSpace(info), strings.Join(lines[from:i], "")))
		out.WriteString(lines[i])
		i++
	}
	return out.String()
}

// block runs one block and returns what should stand there.
func (p *pageTest) block(info, body string) string {
	lang, rest, _ := strings.Cut(info, " ")
	query := p.lastQuery
	p.lastQuery = ""
	switch {
	case lang == "console":
		return p.console(body)
	case lang == "sql" && rest == "query":
		p.lastQuery = p.shell(`tidemill query --format table -f /dev/stdin <<'END'` + "\n" + body + "END")
	case lang == "sql":
		p.parse(body)
		if rest != "" {
			name := filepath.Join(p.dir, filepath.FromSlash(rest))
			if err := os.WriteFile(name, []byte(body), 0o644); err != nil {
				p.t.Fatal(err)
			}
		}
	case lang == "text" && query != "":
		return p.compare(body, query)
	case lang == "go":
		p.compiled(body)
	}
	return body
}

func (p *pageTest) parse(text string) {
	p.t.Helper()
	if _, err := sql.Parse(text); err != nil {
		p.t.Errorf("%s:%d: %v", p.page, p.line, err)
	}
}

// console runs the commands of a block.
func (p *pageTest) console(body string) string {
	var out strings.Builder
	for part := range strings.SplitSeq("\n"+strings.TrimSuffix(body, "\n"), "\n$ ") {
		part = strings.TrimPrefix(part, "\n")
		if part == "" {
			continue
		}
		command, want, _ := strings.Cut(part, "\n")
		for strings.HasSuffix(command, `\`) {
			var next string
			next, want, _ = strings.Cut(want, "\n")
			command += "\n" + next
		}
		if want != "" {
			want += "\n"
		}
		fmt.Fprintf(&out, "$ %s\n%s", command, p.compare(want, p.shell(command)))
		p.line += 1 + strings.Count(part, "\n")
	}
	return out.String()
}

// compare says whether got is what the page says, and returns what it should say.
func (p *pageTest) compare(want, got string) string {
	p.t.Helper()
	if matches(want, got) {
		return want
	}
	if !rewriting() {
		p.t.Errorf("%s:%d: printed is\n%s\nthe page says\n%s", p.page, p.line, got, want)
	}
	return got
}

// matches compares what is printed with a pattern.
func matches(want, got string) bool {
	pattern := regexp.QuoteMeta(want)
	pattern = strings.ReplaceAll(pattern, `\.\.\.`+"\n", `(?:.*\n)*`)
	pattern = strings.ReplaceAll(pattern, "…", `[^\n]*`)
	return regexp.MustCompile(`^` + pattern + `$`).MatchString(got)
}

// shell runs a command in the page's directory. What it prints on stderr comes after
// stdout; an exit code other than 0 is the last line.
func (p *pageTest) shell(command string) string {
	cmd := exec.Command("sh", "-c", strings.ReplaceAll(command, "go run ./cmd/tidemill", "tidemill"))
	cmd.Dir = p.dir
	cmd.Env = append(os.Environ(), "PATH="+p.bin+string(os.PathListSeparator)+os.Getenv("PATH"), "LC_ALL=C")
	var stdout, stderr bytes.Buffer
	cmd.Stdout, cmd.Stderr = &stdout, &stderr
	cmd.WaitDelay = time.Minute
	err := cmd.Run()
	text := stdout.String() + stderr.String()
	if code := cmd.ProcessState.ExitCode(); code > 0 {
		text += fmt.Sprintf("(exit %d)\n", code)
	} else if err != nil {
		p.t.Fatal(err)
	}
	return text
}

// compiled looks a Go block up in the files that are compiled.
func (p *pageTest) compiled(body string) {
	p.t.Helper()
	files, err := filepath.Glob("*_test.go")
	if err != nil {
		p.t.Fatal(err)
	}
	files = append(files, "examples/embed/main.go")
	want := plain(body)
	for _, name := range files {
		data, err := os.ReadFile(name)
		if err != nil {
			p.t.Fatal(err)
		}
		if strings.Contains(plain(string(data)), want) {
			return
		}
	}
	p.t.Errorf("%s:%d: this Go block stands in no file that is compiled (%s)", p.page, p.line, strings.Join(files, ", "))
}

// plain is Go text without the package tidemill's name, comments and blanks at the
// ends of lines, and indentation.
func plain(text string) string {
	var out []string
	for line := range strings.Lines(text) {
		line, _, _ = strings.Cut(line, "// ")
		if line = strings.TrimSpace(strings.ReplaceAll(line, "tidemill.", "")); line != "" {
			out = append(out, line)
		}
	}
	return strings.Join(out, "\n")
}

// TestFunctionReference checks that docs/sql/functions.md says what the engine has. With
// -rewrite it is written.
func TestFunctionReference(t *testing.T) {
	t.Parallel()
	golden(t, "docs/sql/functions.md", functionReference())
}

func functionReference() string {
	r := function.Builtins()
	var operators, scalars, aggregates strings.Builder
	for _, name := range r.Names() {
		if strings.HasPrefix(name, "_") {
			continue // the engine's own
		}
		if f, ok := r.Scalar(name); ok && strings.EqualFold(f.Name, name) {
			out := &scalars
			if !isWord(name) {
				out = &operators
			}
			var forms []string
			for _, o := range f.Overloads {
				forms = append(forms, form(f.Name, o.Args, o.Variadic))
			}
			describeFunction(out, forms, f.Aliases, f.Doc, f.Example)
		}
		if f, ok := r.Aggregate(name); ok && strings.EqualFold(f.Name, name) {
			var forms []string
			for _, o := range f.Overloads {
				forms = append(forms, form(f.Name, o.Args, o.Variadic))
			}
			describeFunction(&aggregates, forms, f.Aliases, f.Doc, f.Example)
		}
	}
	return `# Functions and operators

This page is written by ` + "`go test . -run TestFunctionReference -rewrite`" + ` from the functions of the engine
(` + "`columnar/function`" + `), whose examples are tests. Arguments are cast to the types shown where that cannot fail. A null
argument makes the result null, unless the text says otherwise. Where a function means something else than in other
engines stands in [differences.md](differences.md).

` + "`AND`, `OR`, `CASE`, `CAST(x AS TYPE)`, `TRY_CAST`, `x::TYPE`, `x IN (…)`, `EXTRACT(field FROM t)`, `INTERVAL '…'`" + ` and the
windows ` + "`window(ts, size [, slide [, start]])` and `session_window(ts, gap)`" + ` are syntax; see [reference.md](reference.md).

## Operators

| form | is |
| --- | --- |
` + operators.String() + `
## Functions

| form | is |
| --- | --- |
` + scalars.String() + `
## Aggregates

Every aggregate takes ` + "`DISTINCT`" + ` and ` + "`FILTER (WHERE …)`" + `. Nulls are skipped, and without a value the result is null
(0 of a count).

| form | is |
| --- | --- |
` + aggregates.String()
}

func isWord(name string) bool {
	return name[0] >= 'a' && name[0] <= 'z' && !slices.Contains([]string{"not", "like", "ilike"}, name)
}

func form(name string, args []function.Matcher, variadic bool) string {
	var types []string
	for _, a := range args {
		types = append(types, a.String())
	}
	if variadic {
		types = append(types, "…")
	}
	if !isWord(name) && len(types) == 2 {
		return types[0] + " " + name + " " + types[1]
	}
	if !isWord(name) && len(types) == 1 {
		return name + " " + types[0]
	}
	return name + "(" + strings.Join(types, ", ") + ")"
}

func describeFunction(out *strings.Builder, forms, aliases []string, doc, example string) {
	var shown []string
	for _, f := range forms {
		if f = cell(f); !slices.Contains(shown, f) {
			shown = append(shown, f)
		}
	}
	fmt.Fprintf(out, "| %s | %s", strings.Join(shown, "<br>"), strings.ReplaceAll(doc, "|", `\|`))
	if len(aliases) > 0 {
		sorted := slices.Sorted(slices.Values(aliases))
		for i, a := range sorted {
			sorted[i] = cell(a)
		}
		fmt.Fprintf(out, " Also %s.", strings.Join(sorted, ", "))
	}
	if example != "" {
		fmt.Fprintf(out, "<br>%s", cell(example))
	}
	out.WriteString(" |\n")
}

// cell is code within a table.
func cell(text string) string {
	mark := "`"
	if strings.Contains(text, "`") {
		mark = "``"
	}
	return mark + strings.ReplaceAll(text, "|", `\|`) + mark
}

// TestCommandReference checks that docs/cli.md has every command and every flag, and none
// that is not there.
func TestCommandReference(t *testing.T) {
	t.Parallel()
	bin, err := binary()
	if err != nil {
		t.Fatal(err)
	}
	page, err := os.ReadFile("docs/cli.md")
	if err != nil {
		t.Fatal(err)
	}
	// What the README says is not there yet must not be.
	readme, err := os.ReadFile("README.md")
	if err != nil {
		t.Fatal(err)
	}
	_, missing, _ := strings.Cut(string(readme), "## What does not, yet")
	for _, m := range regexp.MustCompile("`tidemill ([a-z ]+)`").FindAllStringSubmatch(missing, -1) {
		if help, err := exec.Command(bin, append(strings.Fields(m[1]), "--help")...).CombinedOutput(); err == nil && strings.Contains(string(help), "tidemill "+m[1]) {
			t.Errorf("README.md says that tidemill %s is not there yet, and it is", m[1])
		}
	}
	var commands []string
	collectCommands(t, bin, nil, &commands, string(page))
	for _, m := range regexp.MustCompile("(?m)^## `tidemill ([a-z ]+?)[A-Z \\[`…-].*$").FindAllStringSubmatch(string(page), -1) {
		if name := strings.TrimSpace(m[1]); name != "completion" && !slices.Contains(commands, name) {
			t.Errorf("docs/cli.md describes a command %q, which is not there", name)
		}
	}
}

func collectCommands(t *testing.T, bin string, path []string, commands *[]string, page string) {
	t.Helper()
	help, err := exec.Command(bin, append(slices.Clone(path), "--help")...).CombinedOutput()
	if err != nil {
		t.Fatalf("%v: %v\n%s", path, err, help)
	}
	*commands = append(*commands, strings.Join(path, " "))
	for _, flag := range regexp.MustCompile(`(?m)^ +(?:-\w, )?(--[a-z-]+)`).FindAllStringSubmatch(string(help), -1) {
		if !strings.Contains(page, flag[1]) {
			t.Errorf("docs/cli.md says nothing of %s of tidemill %s", flag[1], strings.Join(path, " "))
		}
	}
	_, list, _ := strings.Cut(string(help), "Available Commands:\n")
	list, _, _ = strings.Cut(list, "\n\n")
	for line := range strings.Lines(list) {
		name, _, _ := strings.Cut(strings.TrimSpace(line), " ")
		if name == "" || name == "help" || name == "completion" {
			continue
		}
		full := append(slices.Clone(path), name)
		if !strings.Contains(page, "tidemill "+strings.Join(full, " ")) {
			t.Errorf("docs/cli.md says nothing of tidemill %s", strings.Join(full, " "))
		}
		collectCommands(t, bin, full, commands, page)
	}
}
