package sql

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/cockroachdb/datadriven"

	"github.com/tidemill/tidemill/columnar"
	"github.com/tidemill/tidemill/logical"
	"github.com/tidemill/tidemill/logical/connector"
)

// TestPlan runs the golden files of testdata/plan. Each file has a catalog of its
// own, which "exec" adds to; "plan" prints the plan of the last statement and the
// columns of its rows, "error" what is wrong with the last.
func TestPlan(t *testing.T) {
	t.Parallel()
	datadriven.Walk(t, "testdata/plan", func(t *testing.T, path string) {
		var warnings []string
		p := testPlanner(t)
		p.Warn = func(text string) { warnings = append(warnings, text) }
		datadriven.RunTest(t, path, func(t *testing.T, d *datadriven.TestData) string {
			warnings = nil
			p.Bounded = d.HasArg("bounded")
			var out strings.Builder
			err := p.Script(t.Context(), d.Input, func(planned *Planned) error {
				out.Reset()
				printPlanned(&out, planned)
				return nil
			})
			for _, w := range warnings {
				fmt.Fprintf(&out, "warning: %s\n", w)
			}
			switch {
			case d.Cmd == "error" && err == nil:
				d.Fatalf(t, "%s: no error, but\n%s", d.Pos, out.String())
			case d.Cmd != "error" && err != nil:
				d.Fatalf(t, "%s: %v", d.Pos, err)
			case err != nil:
				checkError(t, err)
				if errors.Is(err, logical.ErrUnsupported) {
					out.WriteString("unsupported: ")
				}
				out.WriteString(err.Error() + "\n")
			}
			return out.String()
		})
	})
}

func printPlanned(out *strings.Builder, p *Planned) {
	if p.Explain {
		fmt.Fprintf(out, "explain analyze=%v\n", p.Analyze)
	}
	if p.Sink != nil {
		fmt.Fprintf(out, "into %s\n", p.Sink.Name)
	}
	if p.Setting != nil {
		fmt.Fprintf(out, "set %s = %q\n", p.Setting.Name, p.Setting.Value)
	}
	if p.Plan != nil {
		out.WriteString(logical.Format(p.Plan))
		fmt.Fprintf(out, "-> %s\n", p.Plan.Schema())
	}
}

// checkError fails unless the error has a place and is short enough.
func checkError(t *testing.T, err error) {
	t.Helper()
	var e *Error
	if !errors.As(err, &e) || e.Line == 0 {
		t.Errorf("error without a place: %v", err)
	}
	if n := len(err.Error()); n > 3000 {
		t.Errorf("error of %d bytes", n)
	}
}

// TestNodesAreSound checks of every golden plan that nodes use only columns of their
// inputs and that no two columns of a schema share an ID.
func TestNodesAreSound(t *testing.T) {
	t.Parallel()
	datadriven.Walk(t, "testdata/plan", func(t *testing.T, path string) {
		p := testPlanner(t)
		datadriven.RunTest(t, path, func(t *testing.T, d *datadriven.TestData) string {
			p.Bounded = d.HasArg("bounded")
			_ = p.Script(t.Context(), d.Input, func(planned *Planned) error {
				if planned.Plan != nil {
					checkPlan(t, d.Pos, planned.Plan)
				}
				return nil
			})
			return d.Expected
		})
	})
}

func checkPlan(t *testing.T, pos string, root logical.Node) {
	t.Helper()
	logical.Walk(root, func(n logical.Node) bool {
		seen := map[idKey]bool{}
		for _, c := range n.Schema().Columns {
			if seen[c.ID] {
				t.Errorf("%s: column %s is twice in %s", pos, c.Name, n)
			}
			seen[c.ID] = true
		}
		below := map[idKey]bool{}
		for _, c := range n.Children() {
			for _, col := range c.Schema().Columns {
				if below[col.ID] {
					t.Errorf("%s: both inputs of %s have column %s", pos, n, col.Name)
				}
				below[col.ID] = true
			}
		}
		for _, x := range n.Exprs() {
			for _, id := range columnsOf(x) {
				if !below[id] {
					t.Errorf("%s: %s uses a column that its input lacks, in %s", pos, n, x)
				}
			}
		}
		return true
	})
}

// testPlanner has the tables t, u and nested, and opens any path but those that begin
// with "missing".
func testPlanner(t testing.TB) *Planner {
	t.Helper()
	p := &Planner{Catalog: logical.NewCatalog(), Functions: testFunctions(t), Resolver: testResolver{}}
	for name, table := range testTables {
		if err := p.Catalog.Add(name, logical.Entry{Opened: table}); err != nil {
			t.Fatal(err)
		}
	}
	return p
}

var testTables = map[string]testTable{
	"t": {columnar.NewSchema(
		columnar.Field("a", columnar.Int32), columnar.Field("b", columnar.Int64), columnar.Field("c", columnar.String),
		columnar.Field("d", columnar.Float64), columnar.Field("ts", columnar.Timestamp), columnar.Field("ok", columnar.Boolean))},
	"u": {columnar.NewSchema(
		columnar.Field("a", columnar.Int64), columnar.Field("x", columnar.String), columnar.Field("y", columnar.Decimal(10, 2)))},
	"nested": {columnar.NewSchema(
		columnar.Field("s", arrow.StructOf(columnar.Field("f", columnar.Int64), columnar.Field("g",
			arrow.StructOf(columnar.Field("h", columnar.String))))),
		columnar.Field("l", columnar.ListOf(columnar.Int64)), columnar.Field("m", arrow.MapOf(columnar.String, columnar.Int64)))},
	"cased": {columnar.NewSchema(columnar.Field("id", columnar.Int64), columnar.Field("ID", columnar.Int64), columnar.Field("Name", columnar.String))},
}

type testTable struct{ schema *arrow.Schema }

func (t testTable) Schema() *arrow.Schema { return t.schema }

func (t testTable) Units(context.Context, connector.ScanRequest) ([]connector.Unit, error) {
	return nil, nil
}

// testResolver knows the columns that are declared, and (id BIGINT, ts TIMESTAMP,
// value VARCHAR) where they are to be inferred.
type testResolver struct{}

var inferred = columnar.NewSchema(columnar.Field("id", columnar.Int64), columnar.Field("ts", columnar.Timestamp), columnar.Field("value", columnar.String))

func (testResolver) schema(d *logical.SourceDecl) *arrow.Schema {
	if len(d.Columns) == 0 {
		return inferred
	}
	var fields []arrow.Field
	for _, c := range d.Columns {
		fields = append(fields, columnar.Field(c.Name, c.Type))
	}
	return columnar.NewSchema(fields...)
}

func (r testResolver) Stream(_ context.Context, d *logical.SourceDecl) (*logical.Stream, error) {
	table := testTable{r.schema(d)}
	return &logical.Stream{Name: d.Name, Decl: d, Schema: table.schema,
		Bounded: func(context.Context) (connector.Table, error) { return table, nil }}, nil
}

func (r testResolver) Table(_ context.Context, d *logical.SourceDecl) (connector.Table, error) {
	return testTable{r.schema(d)}, nil
}

func (testResolver) Path(_ context.Context, path, format string, options map[string]string) (connector.Table, error) {
	if strings.HasPrefix(path, "missing") {
		return nil, &connector.NoFilesError{Path: path}
	}
	for key, value := range options {
		if key != "header" && key != "delimiter" {
			return nil, &connector.OptionError{Key: key, Value: value, Reason: "there is no such option" + columnar.DidYouMean(key, []string{"header", "delimiter"})}
		}
	}
	if format == "text" {
		return testTable{columnar.NewSchema(columnar.Field("value", columnar.String))}, nil
	}
	return testTable{inferred}, nil
}

// FuzzPlan checks that no text makes the binder panic, and that what it plans is
// sound.
func FuzzPlan(f *testing.F) {
	for _, s := range corpus {
		f.Add(s)
	}
	for _, s := range planSeeds(f) {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, src string) {
		p := testPlanner(t)
		err := p.Script(t.Context(), src, func(planned *Planned) error {
			if planned.Plan != nil {
				checkPlan(t, "fuzz", planned.Plan)
				_ = logical.Format(planned.Plan)
			}
			return nil
		})
		if err != nil && len(err.Error()) > 3000 {
			t.Fatalf("error of %d bytes", len(err.Error()))
		}
	})
}

// planSeeds are the inputs of the golden files.
func planSeeds(f *testing.F) []string {
	f.Helper()
	var seeds []string
	files, err := filepath.Glob("testdata/plan/*")
	if err != nil {
		f.Fatal(err)
	}
	for _, name := range files {
		text, err := os.ReadFile(name)
		if err != nil {
			f.Fatal(err)
		}
		for _, block := range strings.Split(string(text), "\n\n") {
			_, input, _ := strings.Cut(block, "\n")
			input, _, _ = strings.Cut(input, "\n----")
			seeds = append(seeds, input)
		}
	}
	return seeds
}

func TestLongChainsPlan(t *testing.T) {
	t.Parallel()
	p := testPlanner(t)
	for name, src := range map[string]string{
		"or":     "SELECT a FROM t WHERE a = 0" + strings.Repeat(" OR a = 1", 3000),
		"and":    "SELECT a FROM t WHERE a = 0" + strings.Repeat(" AND a = 1", 3000),
		"sum":    "SELECT 1" + strings.Repeat(" + 1", 3000),
		"in":     "SELECT a FROM t WHERE a IN (0" + strings.Repeat(", 1", 10000) + ")",
		"values": "VALUES (0)" + strings.Repeat(", (1)", 10000),
		"union":  "SELECT 0" + strings.Repeat(" UNION ALL SELECT 1", 500),
		"joins":  "SELECT 1 FROM t" + strings.Repeat(" CROSS JOIN u", 100),
	} {
		if _, err := p.Query(t.Context(), src); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// TestExpressionsDoNotExplode checks that common table expressions that use each
// other twice are refused before they fill the memory.
func TestExpressionsDoNotExplode(t *testing.T) {
	t.Parallel()
	var b strings.Builder
	b.WriteString("WITH c0 AS (SELECT a FROM t)")
	for i := 1; i < 40; i++ {
		fmt.Fprintf(&b, ", c%d AS (SELECT x.a FROM c%d x, c%d y)", i, i-1, i-1)
	}
	b.WriteString(" SELECT * FROM c39")
	_, err := testPlanner(t).Query(t.Context(), b.String())
	if err == nil || !strings.Contains(err.Error(), "tables") {
		t.Fatalf("error %v", err)
	}
	checkError(t, err)
	b.Reset()
	b.WriteString("SELECT a + a AS x0")
	for i := range 60 {
		fmt.Fprintf(&b, ", x%d + x%d AS x%d", i, i, i+1)
	}
	between := "SELECT ok" + strings.Repeat(" BETWEEN FALSE AND TRUE", 60)
	nested := "SELECT " + strings.Repeat("CASE ", 60) + "a" + strings.Repeat(" WHEN 1 THEN 1 WHEN 2 THEN 2 END", 60)
	chained := "SELECT a AS x0"
	for i := range 1000 {
		chained += fmt.Sprintf(", x%d + 1 AS x%d", i, i+1)
	}
	for _, src := range []string{b.String(), between, nested, chained} {
		_, err := testPlanner(t).Query(t.Context(), src+" FROM t")
		if err == nil || !strings.Contains(err.Error(), "parts") {
			t.Fatalf("error %v", err)
		}
		checkError(t, err)
	}
}

func TestCancelled(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	_, err := testPlanner(t).Query(ctx, "SELECT a FROM t")
	if !errors.Is(err, context.Canceled) {
		t.Fatalf("error %v", err)
	}
}

func TestErrorNamesTheFile(t *testing.T) {
	t.Parallel()
	p := testPlanner(t)
	p.File = "jobs/a.sql"
	for _, src := range []string{"SELECT q FROM t", "SELEC 1", "SELECT 1; SELECT (", "SELECT 'x"} {
		err := p.Script(t.Context(), src, func(*Planned) error { return nil })
		if err == nil || !strings.HasPrefix(err.Error(), "jobs/a.sql: line 1, column ") {
			t.Errorf("%s: error %v", src, err)
		}
	}
}

func TestTimestampTextUsesTheSessionZone(t *testing.T) {
	t.Parallel()
	p := testPlanner(t)
	var err error
	if p.Location, err = time.LoadLocation("Europe/Berlin"); err != nil {
		t.Fatal(err)
	}
	plan, err := p.Query(t.Context(), "SELECT TIMESTAMP '2024-07-01 12:00:00' AS a, TIMESTAMP '2024-07-01 12:00:00Z' AS b")
	if err != nil {
		t.Fatal(err)
	}
	want := "Project TIMESTAMP '2024-07-01 10:00:00' AS a, TIMESTAMP '2024-07-01 12:00:00' AS b"
	if got := plan.String(); got != want {
		t.Errorf("plan %s, want %s", got, want)
	}
}
