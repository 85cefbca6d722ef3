package optimizer_test

import (
	"fmt"
	"os"
	"strings"
	"sync"
	"testing"

	"github.com/tidemill/tidemill/columnar/function"
	"github.com/tidemill/tidemill/logical"
	"github.com/tidemill/tidemill/optimizer"
)

// TestEveryRuleHasGoldens: no rule without a file of cases named for it.
func TestEveryRuleHasGoldens(t *testing.T) {
	t.Parallel()
	o, err := optimizer.New(&function.Env{})
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range o.Names() {
		text, err := os.ReadFile("testdata/" + name)
		if err != nil {
			t.Error(err)
			continue
		}
		for _, directive := range []string{"expect=" + name, "expect-not="} {
			if !strings.Contains(string(text), directive) {
				t.Errorf("testdata/%s has no case with %s", name, directive)
			}
		}
	}
}

func TestUnknownRule(t *testing.T) {
	t.Parallel()
	_, err := optimizer.New(&function.Env{}, "topk", "push_filtr")
	if err == nil || err.Error() != "there is no optimizer rule push_filtr; did you mean push_filter?" {
		t.Errorf("got the error %v", err)
	}
}

// TestDeepPlan: what is moved goes all the way, whatever the depth, and what is settled
// stays as it is.
func TestDeepPlan(t *testing.T) {
	t.Parallel()
	text := "SELECT a, b FROM t"
	for i := range 120 {
		switch i % 4 {
		case 0:
			text = fmt.Sprintf("SELECT a, b FROM (%s) WHERE a > %d", text, i)
		case 1:
			text = fmt.Sprintf("SELECT * FROM (%s) UNION ALL SELECT a, b FROM t", text)
		case 2:
			text = fmt.Sprintf("SELECT a, max(b) AS b FROM (%s) GROUP BY a", text)
		case 3:
			text = fmt.Sprintf("SELECT l.a, l.b FROM (%s) l JOIN u ON l.a = u.a", text)
		}
	}
	p := newPlanner(datasets(t)[1])
	plan, err := p.Query(t.Context(), text)
	if err != nil {
		t.Fatal(err)
	}
	optimized, _ := optimize(t, plan)
	filters := 0
	logical.Walk(optimized, func(n logical.Node) bool {
		if _, ok := n.(*logical.Filter); ok {
			filters++
		}
		return true
	})
	if filters > 0 {
		t.Errorf("%d filters did not reach the scans", filters)
	}
	again, _ := optimize(t, optimized)
	if got, want := logical.Format(again), logical.Format(optimized); got != want {
		t.Error("optimized again it is another plan")
	}
}

// TestConcurrentUse: one Optimizer serves many queries.
func TestConcurrentUse(t *testing.T) {
	t.Parallel()
	p := newPlanner(datasets(t)[1])
	plan, err := p.Query(t.Context(), manyRules)
	if err != nil {
		t.Fatal(err)
	}
	o, err := optimizer.New(&function.Env{})
	if err != nil {
		t.Fatal(err)
	}
	want, _, err := o.Optimize(plan)
	if err != nil {
		t.Fatal(err)
	}
	var group sync.WaitGroup
	for range 4 {
		group.Go(func() {
			got, _, err := o.Optimize(plan)
			if err != nil || logical.Format(got) != logical.Format(want) {
				t.Errorf("another plan, or %v", err)
			}
		})
	}
	group.Wait()
}

const manyRules = `
SELECT x.c, count(*) AS n, sum(x.b) AS s FROM (SELECT * FROM t WHERE NOT (a < 1 OR b IS NULL)) x
LEFT JOIN u ON x.a = u.a JOIN (SELECT DISTINCT a, c FROM t) y ON y.a = u.a
WHERE u.x = 'a' AND x.ok AND y.c < u.x GROUP BY x.c HAVING x.c <> 'b' ORDER BY n DESC, x.c LIMIT 10`

func BenchmarkOptimize(b *testing.B) {
	p := newPlanner(datasets(b)[1])
	plan, err := p.Query(b.Context(), manyRules)
	if err != nil {
		b.Fatal(err)
	}
	o, err := optimizer.New(&function.Env{})
	if err != nil {
		b.Fatal(err)
	}
	b.ReportAllocs()
	for b.Loop() {
		if _, _, err := o.Optimize(plan); err != nil {
			b.Fatal(err)
		}
	}
}
