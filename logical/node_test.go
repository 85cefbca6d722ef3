package logical_test

import (
	"errors"
	"strings"
	"testing"

	"github.com/tidemill/tidemill/columnar"
	"github.com/tidemill/tidemill/logical"
	"github.com/tidemill/tidemill/logical/connector"
	"github.com/tidemill/tidemill/logical/expr"
)

// TestStateSurvives: a node keeps the name of its state whatever is rebuilt.
func TestStateSurvives(t *testing.T) {
	t.Parallel()
	scan := logical.NewScan("t", "t", table{tableSchemas["t"]})
	other := logical.NewScan("u", "u", table{tableSchemas["u"]})
	a := scan.Schema().Columns[0]
	eq, err := expr.NewCall(registry, "=", a, other.Schema().Columns[0])
	if err != nil {
		t.Fatal(err)
	}
	for _, n := range []logical.Node{
		logical.NewAggregate(scan, []expr.Named{expr.Pass(a)}, nil).WithState("s"),
		logical.NewDistinct(scan, []expr.Expr{a}, true).WithState("s"),
		logical.NewJoin(logical.LeftJoin, scan, other, eq).WithState("s"),
		&logical.Limit{Count: 1, State: "s"},
	} {
		if l, ok := n.(*logical.Limit); ok {
			l.Input = scan
		}
		m := n.WithChildren(n.Children())
		m = logical.Refresh(m.WithExprs(m.Exprs()))
		state := ""
		switch x := m.(type) {
		case *logical.Aggregate:
			state = x.State
		case *logical.Distinct:
			state = x.State
		case *logical.Join:
			state = x.State
		case *logical.Limit:
			state = x.State
		}
		if state != "s" {
			t.Errorf("%s lost its state", n)
		}
	}
}

// TestJoinSchema: which columns a join has, and which of them can be null.
func TestJoinSchema(t *testing.T) {
	t.Parallel()
	side := func(name string) logical.Node {
		c := &expr.Column{ID: expr.NewID(), Name: name, DataType: columnar.Int64}
		return &logical.Values{Output: logical.NewSchema(c)}
	}
	for kind, want := range map[logical.JoinKind]string{
		logical.InnerJoin: "l r", logical.CrossJoin: "l r", logical.LeftJoin: "l r?", logical.RightJoin: "l? r",
		logical.FullJoin: "l? r?", logical.SemiJoin: "l", logical.AntiJoin: "l",
	} {
		var got []string
		for _, c := range logical.NewJoin(kind, side("l"), side("r"), nil).Schema().Columns {
			name := c.Name
			if c.Null {
				name += "?"
			}
			got = append(got, name)
		}
		if text := strings.Join(got, " "); text != want {
			t.Errorf("a %s join has %s, not %s", kind, text, want)
		}
	}
}

func TestUnionOf(t *testing.T) {
	t.Parallel()
	if _, err := logical.UnionOf(); err == nil {
		t.Error("a union of nothing")
	}
	scan := logical.NewScan("u", "u", table{tableSchemas["u"]})
	n, err := logical.UnionOf(scan, logical.Refresh(scan))
	if err != nil {
		t.Fatal(err)
	}
	for i, c := range n.Schema().Columns {
		if c.ID == scan.Schema().Columns[i].ID || c.Qualifier != "" {
			t.Errorf("column %s is not the union's own", c)
		}
	}
}

func TestBuildAggregate(t *testing.T) {
	t.Parallel()
	scan := logical.NewScan("t", "t", table{tableSchemas["t"]})
	a, b := scan.Schema().Columns[0], scan.Schema().Columns[1]
	call := func(name string, args ...expr.Expr) expr.Expr {
		e, err := expr.NewCall(registry, name, args...)
		if err != nil {
			t.Fatal(err)
		}
		return e
	}
	sum, err := expr.NewAgg(registry, "sum", false, nil, b)
	if err != nil {
		t.Fatal(err)
	}
	next := call("+", a, a)
	key := expr.As(next, "k")
	// The key's expression stands for the key, also within another; an aggregate used
	// twice is computed once.
	n, err := logical.BuildAggregate(registry, scan, []expr.Named{key}, []expr.Named{
		expr.As(call("*", next, sum), "x"), expr.As(call("+", sum, sum), "y"),
	})
	if err != nil {
		t.Fatal(err)
	}
	want := `Project k, CAST(k AS BIGINT) * sum(t.b) AS x, sum(t.b) + sum(t.b) AS y
  Aggregate keys=[t.a + t.a AS k] aggs=[sum(t.b)]
    Scan t columns=[a, b, c, ts, ok]
`
	if got := logical.Format(n); got != want {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
	_, err = logical.BuildAggregate(registry, scan, []expr.Named{key}, []expr.Named{expr.As(call("+", b, b), "z")})
	if err == nil || err.Error() != "t.b + t.b is neither grouped by nor aggregated" {
		t.Errorf("got the error %v", err)
	}
}

func TestUnsupportedError(t *testing.T) {
	t.Parallel()
	err := logical.Check(logical.NewScan("t", "t", table{tableSchemas["t"]}), connector.Append)
	var unsupported *logical.UnsupportedError
	if !errors.Is(err, logical.ErrUnsupported) || !errors.As(err, &unsupported) || unsupported.Remedy == "" {
		t.Errorf("got %#v", err)
	}
	if got := (&logical.UnsupportedError{What: "X"}).Error(); got != "X is not supported" {
		t.Error(got)
	}
}
