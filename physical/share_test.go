package physical_test

import (
	"context"
	"errors"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/apache/arrow-go/v18/arrow"

	"github.com/tidemill/tidemill/columnar"
	"github.com/tidemill/tidemill/columnar/columnartest"
	"github.com/tidemill/tidemill/logical"
	"github.com/tidemill/tidemill/logical/expr"
	"github.com/tidemill/tidemill/physical"
)

// TestShare: an aggregation that stands in a plan twice is run once, and gives both places
// what it gave each; what only looks alike is left alone.
func TestShare(t *testing.T) {
	t.Parallel()
	count, sum := fn("count").As("n"), fn("sum", col("price")).As("total")
	byWho := func(d *logical.DataFrame) *logical.DataFrame { return d.GroupBy(col("who")).Agg(count, sum) }
	over := func(d *logical.DataFrame, n int64) *logical.DataFrame { return d.Where(col("price").Gt(lit(n))) }
	cases := []struct {
		name   string
		query  func(b, again *logical.DataFrame) *logical.DataFrame
		shared int // places
		reads  int64
	}{
		{"union", func(b, again *logical.DataFrame) *logical.DataFrame { return byWho(b).Union(byWho(again)) }, 2, 4},
		{"three times", func(b, again *logical.DataFrame) *logical.DataFrame {
			return byWho(b).Union(byWho(again)).Union(byWho(b).Where(col("n").Gt(lit(int64(1)))))
		}, 3, 4},
		{"join with its own maximum", func(b, again *logical.DataFrame) *logical.DataFrame {
			return byWho(b).As("x").Join(byWho(again).Agg(fn("max", col("total")).As("most")).As("y"), logical.InnerJoin, expr.Col("x.total").Eq(expr.Col("y.most")))
		}, 2, 4},
		{"the same filter", func(b, again *logical.DataFrame) *logical.DataFrame {
			return byWho(over(b, 9)).Union(byWho(over(again, 9)))
		}, 2, 4},
		{"two levels, the upper is shared", func(b, again *logical.DataFrame) *logical.DataFrame {
			return byWho(b).Agg(count).Union(byWho(again).Agg(count))
		}, 2, 4},
		{"one whose order counts", func(b, again *logical.DataFrame) *logical.DataFrame {
			return byWho(b).Limit(1).Select(col("n")).Union(byWho(again).Agg(count))
		}, 0, 8},
		{"another filter", func(b, again *logical.DataFrame) *logical.DataFrame {
			return byWho(over(b, 9)).Union(byWho(over(again, 10)))
		}, 0, 8},
		{"other keys", func(b, again *logical.DataFrame) *logical.DataFrame {
			return byWho(b).Union(again.GroupBy(col("channel").As("who")).Agg(count, sum))
		}, 0, 8},
		{"volatile", func(b, again *logical.DataFrame) *logical.DataFrame {
			random := fn("random").Lt(lit(2.0))
			return byWho(b.Where(random)).Union(byWho(again.Where(random)))
		}, 0, 8},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			source := table(t, bids)
			var reads atomic.Int64
			source.Wrap = func(_ int, r columnar.Reader) columnar.Reader {
				reads.Add(1)
				return r
			}
			read := func() *logical.DataFrame { return logical.ReadTable("bids", source, registry) }
			n, err := c.query(read(), read()).Plan()
			if err != nil {
				t.Fatal(err)
			}
			p, err := physical.NewPlanner().Plan(n)
			if err != nil {
				t.Fatal(err)
			}
			shared := physical.Share(p)
			if got := strings.Count(physical.Explain(shared), "Shared"); got != c.shared {
				t.Errorf("%d places are shared, not %d:\n%s", got, c.shared, physical.Explain(shared))
			}
			for _, parallel := range []int{1, 3} {
				want := collect(t, p, parallel)
				reads.Store(0)
				got := collect(t, shared, parallel)
				if d := columnartest.Diff(want, got, columnartest.DiffOptions{}); d != "" {
					t.Errorf("with %d goroutines:\n%s", parallel, d)
				}
				if n := reads.Load(); n > c.reads {
					t.Errorf("%d units are read, not %d", n, c.reads)
				}
			}
		})
	}
}

func collect(t *testing.T, p physical.Plan, parallel int) []arrow.RecordBatch {
	t.Helper()
	budget := columnar.NewBudget(1 << 30)
	got, err := physical.Collect(t.Context(), p, &physical.ExecContext{Mem: columnartest.Mem(t), Parallel: parallel, Metrics: &physical.Metrics{}, Budget: budget})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		for _, b := range got {
			b.Release()
		}
	})
	if n := budget.Used(); n != 0 {
		t.Errorf("%d bytes are not given back", n)
	}
	return got
}

// TestShareError: an error while a shared part is run ends the query, and leaves nothing.
func TestShareError(t *testing.T) {
	t.Parallel()
	broken := errors.New("unplugged")
	source := table(t, bids)
	source.Wrap = func(unit int, r columnar.Reader) columnar.Reader {
		if unit == 2 {
			return failing{r, broken}
		}
		return r
	}
	read := func() *logical.DataFrame {
		return logical.ReadTable("bids", source, registry).GroupBy(col("who")).Agg(fn("count").As("n"))
	}
	n, err := read().Union(read()).Plan()
	if err != nil {
		t.Fatal(err)
	}
	p, err := physical.NewPlanner().Plan(n)
	if err != nil {
		t.Fatal(err)
	}
	budget := columnar.NewBudget(1 << 30)
	_, err = physical.Collect(t.Context(), physical.Share(p), &physical.ExecContext{Mem: columnartest.Mem(t), Parallel: 2, Budget: budget})
	if !errors.Is(err, broken) {
		t.Errorf("error %v", err)
	}
	if n := budget.Used(); n != 0 {
		t.Errorf("%d bytes are not given back", n)
	}
}

// failing is a Reader that fails.
type failing struct {
	columnar.Reader
	err error
}

func (f failing) Next(context.Context) (arrow.RecordBatch, error) { return nil, f.err }
