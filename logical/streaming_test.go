package logical_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/cockroachdb/datadriven"

	"github.com/tidemill/tidemill/columnar"
	"github.com/tidemill/tidemill/columnar/function"
	"github.com/tidemill/tidemill/logical"
	"github.com/tidemill/tidemill/logical/connector"
	"github.com/tidemill/tidemill/logical/expr"
	"github.com/tidemill/tidemill/logical/sql"
)

var registry = function.Builtins()

// TestStreaming runs the golden files of testdata/streaming. Tables and streams are
// declared by exec; the tables t and u are there. Directives over a query:
//
//	check    what Check says in each output mode
//	times    the output columns that carry a watermark, and how
//	closing  the key of the topmost aggregate by which its groups are finished
//	bounds   JoinBounds of the topmost join
//	plan     the plan, and that of its Refresh if it differs
func TestStreaming(t *testing.T) {
	t.Parallel()
	datadriven.Walk(t, "testdata/streaming", func(t *testing.T, path string) {
		p := newPlanner(t)
		datadriven.RunTest(t, path, func(t *testing.T, d *datadriven.TestData) string {
			if d.Cmd == "exec" {
				if err := p.Script(t.Context(), d.Input, func(*sql.Planned) error { return nil }); err != nil {
					return "error: " + err.Error() + "\n"
				}
				return ""
			}
			plan, err := p.Query(t.Context(), d.Input)
			if err != nil {
				return "error: " + err.Error() + "\n"
			}
			switch d.Cmd {
			case "check":
				return checkModes(plan)
			case "times":
				return eventTimes(plan)
			case "closing":
				return closing(plan)
			case "bounds":
				return joinBounds(plan)
			case "plan":
				return refreshed(t, plan)
			}
			d.Fatalf(t, "unknown directive %s", d.Cmd)
			return ""
		})
	})
}

func checkModes(plan logical.Node) string {
	var out strings.Builder
	for _, mode := range []connector.OutputMode{connector.Append, connector.Update, connector.Complete} {
		verdict := "yes"
		if err := logical.Check(plan, mode); err != nil {
			verdict = err.Error()
		}
		fmt.Fprintf(&out, "%s: %s\n", mode, verdict)
	}
	return out.String()
}

func eventTimes(plan logical.Node) string {
	var out strings.Builder
	marks := logical.EventTimes(plan)
	for _, c := range plan.Schema().Columns {
		if m, ok := marks[c.ID]; ok {
			kind := [...]string{"time", "window", "session"}[m.Kind]
			fmt.Fprintf(&out, "%s: %s of %s, delay %s, closes %s later\n", c.Name, kind, m.Label, m.Delay, time.Duration(m.Offset)*time.Microsecond)
		}
	}
	return out.String()
}

func closing(plan logical.Node) string {
	out := "no aggregate\n"
	logical.Walk(plan, func(n logical.Node) bool {
		a, ok := n.(*logical.Aggregate)
		if ok {
			out = "none\n"
			if key, mark, ok := logical.ClosingKey(a); ok {
				out = fmt.Sprintf("%s, %s later\n", key.Name, time.Duration(mark.Offset)*time.Microsecond)
			}
		}
		return !ok
	})
	return out
}

func joinBounds(plan logical.Node) string {
	plan, err := logical.StreamJoins(plan)
	if err != nil {
		return "error: " + err.Error() + "\n"
	}
	var join *logical.Join
	logical.Walk(plan, func(n logical.Node) bool {
		if j, ok := n.(*logical.Join); ok && join == nil {
			join = j
		}
		return join == nil
	})
	var out strings.Builder
	left, right := logical.JoinBounds(join)
	for i, b := range []*logical.JoinBound{left, right} {
		side := [...]string{"left", "right"}[i]
		if b == nil {
			fmt.Fprintf(&out, "%s: for ever\n", side)
			continue
		}
		fmt.Fprintf(&out, "%s: until %s is passed %s after %s\n", side, b.Mark.Label, time.Duration(b.Offset)*time.Microsecond, b.Time)
	}
	return out.String()
}

// refreshed prints a plan and checks that its Refresh is the same plan over columns
// none of which it shares.
func refreshed(t *testing.T, plan logical.Node) string {
	t.Helper()
	fresh := logical.Refresh(plan)
	text := logical.Format(plan)
	if again := logical.Format(fresh); again != text {
		t.Errorf("refreshed it is another plan:\n%s\n%s", text, again)
	}
	unchanged(t, plan)
	mine := map[any]bool{}
	logical.Walk(plan, func(n logical.Node) bool {
		for _, c := range n.Schema().Columns {
			mine[c.ID] = true
		}
		return true
	})
	logical.Walk(fresh, func(n logical.Node) bool {
		for _, c := range n.Schema().Columns {
			if mine[c.ID] {
				t.Errorf("column %s of %s is shared with the original", c, n)
			}
		}
		sound(t, n)
		return true
	})
	return text
}

// unchanged checks that rewriting which changes nothing gives the same pointer, and
// that every node rebuilt from its own parts is the same node.
func unchanged(t *testing.T, plan logical.Node) {
	t.Helper()
	keep := func(n logical.Node) (logical.Node, error) { return n, nil }
	if n, err := logical.Transform(plan, keep); err != nil || n != plan {
		t.Errorf("Transform made another plan, or %v", err)
	}
	if n, err := logical.TransformDown(plan, keep); err != nil || n != plan {
		t.Errorf("TransformDown made another plan, or %v", err)
	}
	stop := errors.New("stop")
	fail := func(logical.Node) (logical.Node, error) { return nil, stop }
	if _, err := logical.Transform(plan, fail); !errors.Is(err, stop) {
		t.Errorf("the error became %v", err)
	}
	logical.Walk(plan, func(n logical.Node) bool {
		if m, err := logical.TransformExprs(n, func(e expr.Expr) (expr.Expr, error) { return e, nil }); err != nil || m != n {
			t.Errorf("TransformExprs made another %s, or %v", n, err)
		}
		m := n.WithChildren(n.Children())
		if exprs := n.Exprs(); len(exprs) > 0 {
			m = m.WithExprs(exprs)
		}
		if m.String() != n.String() || m.Schema().String() != n.Schema().String() {
			t.Errorf("rebuilt %s is %s", n, m)
		}
		return true
	})
}

// sound checks that n uses only columns of its inputs.
func sound(t *testing.T, n logical.Node) {
	t.Helper()
	s := logical.NewSchema()
	for _, c := range n.Children() {
		s.Columns = append(s.Columns, c.Schema().Columns...)
	}
	for _, e := range n.Exprs() {
		for _, id := range exprColumns(e) {
			if s.Index(id) < 0 {
				t.Errorf("%s uses a column that its input lacks, in %s", n, e)
			}
		}
	}
}

var tableSchemas = map[string]*arrow.Schema{
	"t": columnar.NewSchema(columnar.Field("a", columnar.Int32), columnar.Field("b", columnar.Int64),
		columnar.Field("c", columnar.String), columnar.Field("ts", columnar.Timestamp), columnar.Field("ok", columnar.Boolean)),
	"u":     columnar.NewSchema(columnar.Field("a", columnar.Int64), columnar.Field("x", columnar.String), columnar.Field("day", columnar.Date)),
	"cased": columnar.NewSchema(columnar.Field("id", columnar.Int64), columnar.Field("ID", columnar.Int64), columnar.Field("Name", columnar.String)),
}

type table struct{ schema *arrow.Schema }

func (t table) Schema() *arrow.Schema { return t.schema }

func (t table) Units(context.Context, connector.ScanRequest) ([]connector.Unit, error) {
	return nil, nil
}

// resolver gives every stream the columns of its declaration.
type resolver struct{}

func (resolver) Stream(_ context.Context, d *logical.SourceDecl) (*logical.Stream, error) {
	var fields []arrow.Field
	for _, c := range d.Columns {
		fields = append(fields, columnar.Field(c.Name, c.Type))
	}
	return &logical.Stream{Name: d.Name, Decl: d, Schema: columnar.NewSchema(fields...)}, nil
}

func (resolver) Table(_ context.Context, d *logical.SourceDecl) (connector.Table, error) {
	return nil, fmt.Errorf("no table %s", d.Name)
}

func (resolver) Path(_ context.Context, path, _ string, _ map[string]string) (connector.Table, error) {
	return nil, fmt.Errorf("no file %s", path)
}

func newPlanner(t testing.TB) *sql.Planner {
	t.Helper()
	p := &sql.Planner{Catalog: logical.NewCatalog(), Functions: registry, Resolver: resolver{}}
	for name, s := range tableSchemas {
		if err := p.Catalog.Add(name, logical.Entry{Opened: table{s}}); err != nil {
			t.Fatal(err)
		}
	}
	return p
}
