package optimizer_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/cockroachdb/datadriven"

	"github.com/tidemill/tidemill/columnar/function"
	"github.com/tidemill/tidemill/logical"
	"github.com/tidemill/tidemill/logical/expr"
	"github.com/tidemill/tidemill/optimizer"
)

// TestGolden runs testdata/<rule>. Directives, over the tables of tables_test.go:
//
//	exec       CREATE STREAM, CREATE VIEW: statements that only declare
//	optimize   the optimized plan of a query; and the query is run, optimized, not
//	           optimized and without each of the rules that fired, on several data,
//	           all of which must give the same rows
//	steps      the same, printing what each pass of a rule changed
//
// Arguments: expect=rule, expect-not=rule (several in parentheses) fail if the rule
// did not fire, or did; disable=rule leaves it out; trace prints how often each fired;
// state names the states of a streaming query first, as running it would; rows=any
// compares the number of rows only, rows=none does not run.
func TestGolden(t *testing.T) {
	t.Parallel()
	datadriven.Walk(t, "testdata", func(t *testing.T, path string) {
		t.Parallel()
		data := datasets(t)
		p := newPlanner(data[1])
		datadriven.RunTest(t, path, func(t *testing.T, d *datadriven.TestData) string {
			if d.Cmd == "exec" {
				if err := p.exec(t.Context(), d.Input); err != nil {
					return "error: " + err.Error() + "\n"
				}
				return ""
			}
			p.Bounded = !d.HasArg("stream") && !d.HasArg("state")
			plan, err := p.Query(t.Context(), d.Input)
			if err != nil {
				d.Fatalf(t, "%v", err)
			}
			if d.HasArg("state") {
				plan = nameStates(t, plan)
			}
			optimized, trace := optimize(t, plan, arguments(d, "disable")...)
			checkFired(t, d, trace)
			sameRows(t, d, data, plan, optimized, trace)
			return show(d, plan, optimized, trace)
		})
	})
}

// arguments are the values of an argument, which may be absent.
func arguments(d *datadriven.TestData, key string) []string {
	for _, a := range d.CmdArgs {
		if a.Key == key {
			return a.Vals
		}
	}
	return nil
}

func optimize(t *testing.T, plan logical.Node, disabled ...string) (logical.Node, *optimizer.Trace) {
	t.Helper()
	o, err := optimizer.New(&function.Env{}, disabled...)
	if err != nil {
		t.Fatal(err)
	}
	optimized, trace, err := o.Optimize(plan)
	if err != nil {
		t.Fatalf("%v\n%s", err, logical.Format(plan))
	}
	if before, after := plan.Schema(), optimized.Schema(); before.String() != after.String() {
		t.Errorf("the columns were %s and are %s", before, after)
	}
	for i, c := range plan.Schema().Columns {
		if optimized.Schema().Columns[i].ID != c.ID {
			t.Errorf("column %s has another ID", c.Name)
		}
	}
	sound(t, optimized)
	return optimized, trace
}

// sound checks that every node of a plan uses only columns of its inputs.
func sound(t *testing.T, plan logical.Node) {
	t.Helper()
	logical.Walk(plan, func(n logical.Node) bool {
		s := logical.NewSchema()
		for _, c := range n.Children() {
			s.Columns = append(s.Columns, c.Schema().Columns...)
		}
		for _, e := range n.Exprs() {
			for _, id := range expr.Columns(e) {
				if s.Index(id) < 0 {
					t.Errorf("%s uses a column that its input lacks, in %s\n%s", n, e, logical.Format(plan))
				}
			}
		}
		return true
	})
}

func checkFired(t *testing.T, d *datadriven.TestData, trace *optimizer.Trace) {
	t.Helper()
	fired := firedRules(trace)
	for _, rule := range arguments(d, "expect") {
		if !slices.Contains(fired, rule) {
			t.Errorf("%s: %s did not fire, but %v", d.Pos, rule, fired)
		}
	}
	for _, rule := range arguments(d, "expect-not") {
		if slices.Contains(fired, rule) {
			t.Errorf("%s: %s fired", d.Pos, rule)
		}
	}
}

func firedRules(trace *optimizer.Trace) []string {
	var names []string
	for _, f := range trace.Fired {
		names = append(names, f.Rule)
	}
	return names
}

func show(d *datadriven.TestData, plan, optimized logical.Node, trace *optimizer.Trace) string {
	var out strings.Builder
	if d.Cmd == "steps" {
		before := logical.Format(plan)
		out.WriteString(before)
		for _, s := range trace.Steps {
			after := logical.Format(s.Plan)
			fmt.Fprintf(&out, "%s:\n%s", s.Rule, lineDiff(before, after))
			before = after
		}
		return out.String()
	}
	out.WriteString(logical.Format(optimized))
	if d.HasArg("trace") {
		for _, f := range trace.Fired {
			fmt.Fprintf(&out, "%s %d\n", f.Rule, f.Count)
		}
	}
	return out.String()
}

// lineDiff is the lines that a text lost and gained, by their longest common
// subsequence.
func lineDiff(a, b string) string {
	x, y := strings.SplitAfter(a, "\n"), strings.SplitAfter(b, "\n")
	common := make([][]int, len(x)+1)
	for i := range common {
		common[i] = make([]int, len(y)+1)
	}
	for i := len(x) - 1; i >= 0; i-- {
		for j := len(y) - 1; j >= 0; j-- {
			common[i][j] = max(common[i+1][j], common[i][j+1])
			if x[i] == y[j] {
				common[i][j] = common[i+1][j+1] + 1
			}
		}
	}
	var out strings.Builder
	for i, j := 0, 0; i < len(x) || j < len(y); {
		switch {
		case i < len(x) && j < len(y) && x[i] == y[j]:
			i++
			j++
		case j == len(y) || i < len(x) && common[i+1][j] >= common[i][j+1]:
			out.WriteString("- " + x[i])
			i++
		default:
			out.WriteString("+ " + y[j])
			j++
		}
	}
	return out.String()
}
