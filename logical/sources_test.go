package logical_test

import (
	"slices"
	"testing"

	"github.com/tidemill/tidemill/columnar/function"
	"github.com/tidemill/tidemill/logical"
	"github.com/tidemill/tidemill/logical/expr"
)

// TestNumberSources has the random calls of a plan numbered by the plan alone, whatever
// else a program has made, and as often as it is asked.
func TestNumberSources(t *testing.T) {
	t.Parallel()
	sites := func() []uint64 {
		_ = expr.Func("random")
		one := &logical.Values{Rows: [][]expr.Expr{{}}, Output: &logical.Schema{}}
		df := logical.NewDataFrame(one, function.Builtins())
		twice := expr.Func("random")
		df = df.Select(expr.Func("uuid").As("u"), twice.As("a"), twice.As("b"))
		df = df.Union(df.Select(expr.Func("uuid").As("u"), expr.Func("random").As("a"), expr.Func("random", expr.Lit(7)).As("b")))
		plan, err := df.Plan()
		for range 2 {
			if err == nil {
				plan, err = logical.NumberSources(plan)
			}
		}
		if err != nil {
			t.Fatal(err)
		}
		var out []uint64
		logical.Walk(plan, func(n logical.Node) bool {
			for _, e := range n.Exprs() {
				expr.Walk(e, func(x expr.Expr) bool {
					if c, ok := x.(*expr.Call); ok {
						out = append(out, c.Place.Site()>>32)
					}
					return true
				})
			}
			return true
		})
		return out
	}
	first := sites()
	if want := []uint64{0, 1, 1, 2, 3, 4, 0, 1, 1}; !slices.Equal(first, want) {
		t.Errorf("sites %v, want %v", first, want)
	}
	if again := sites(); !slices.Equal(first, again) {
		t.Errorf("sites %v, before %v", again, first)
	}
}
