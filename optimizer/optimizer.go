package optimizer

import (
	"fmt"
	"slices"

	"github.com/tidemill/tidemill/columnar"
	"github.com/tidemill/tidemill/columnar/function"
	"github.com/tidemill/tidemill/logical"
)

// Optimizer applies batches of rules in order. It is immutable and safe for
// concurrent use.
type Optimizer struct{ batches []Batch }

// maxPasses is more than any plan needs: what a rule moves goes all the way in one or
// two passes, whatever the depth of the plan.
const maxPasses = 100

// New returns the optimizer with all rules. env is what constant folding evaluates
// with (allocator, session time zone). Rules named in disable are left out; an
// unknown name is an error.
func New(env *function.Env, disable ...string) (*Optimizer, error) {
	o := &Optimizer{batches: []Batch{
		{Name: "normalize", Max: maxPasses, Rules: []Rule{
			EliminateAlias, EliminateWatermark, FoldConstants(env), Simplify, UnwrapCasts, RewriteDistinct,
			MergeFilters, MergeProjects, ReduceOuterJoin(env), PushFilter, JoinConditions, EliminateEmpty, PushLimit, TopK, PushAggregate,
		}},
		// Once down a chain of joins and once up; what arrives on the way goes down to the scans.
		{Name: "transfer", Max: 1, Rules: []Rule{DerivePredicates, PushFilter, TransferPredicates, PushFilter, TransferPredicates, PushFilter, MergeFilters}},
		{Name: "joins", Max: 1, Rules: []Rule{ReorderJoins}},
		// Columns that only pushed filters need are not handed on: filters first.
		{Name: "scans", Max: maxPasses, Rules: []Rule{PushFilterIntoScan, PrunePartitions}},
		{Name: "columns", Max: 1, Rules: []Rule{PruneColumns}},
		{Name: "projections", Max: maxPasses, Rules: []Rule{MergeProjects}},
		// Advice to the planner, last: nodes stay where they are from here on.
		{Name: "advice", Max: 1, Rules: []Rule{PartitionTopK, KeyFilters}},
	}}
	known := map[string]bool{}
	for i := range o.batches {
		b := &o.batches[i]
		b.Rules = slices.DeleteFunc(slices.Clone(b.Rules), func(r Rule) bool {
			known[r.Name()] = true
			return slices.Contains(disable, r.Name())
		})
	}
	known[ShareAggregations] = true
	for _, name := range disable {
		if !known[name] {
			return nil, fmt.Errorf("there is no optimizer rule %s%s", name, columnar.DidYouMean(name, append(o.Names(), ShareAggregations)))
		}
	}
	return o, nil
}

// ShareAggregations is the name, among those to leave out, of what physical.Share does: it
// looks at physical plans, and is the business of whoever makes them.
const ShareAggregations = "share_aggregations"

// Names are the names of all rules, each once, in order of first use.
func (o *Optimizer) Names() []string {
	var names []string
	for _, b := range o.batches {
		for _, r := range b.Rules {
			if !slices.Contains(names, r.Name()) {
				names = append(names, r.Name())
			}
		}
	}
	return names
}

// Fired says how often one rule changed the plan.
type Fired struct {
	Rule  string
	Count int
}

// Step is the plan after one pass of one rule that changed it.
type Step struct {
	Rule string
	Plan logical.Node
}

// Trace records what happened to one plan, for EXPLAIN and tests.
type Trace struct {
	Fired []Fired
	Steps []Step
}

func (t *Trace) record(name string, n int, plan logical.Node) {
	t.Steps = append(t.Steps, Step{name, plan})
	for i := range t.Fired {
		if t.Fired[i].Rule == name {
			t.Fired[i].Count += n
			return
		}
	}
	t.Fired = append(t.Fired, Fired{name, n})
}

// Optimize rewrites a plan. The output columns are the same, with the same IDs.
func (o *Optimizer) Optimize(n logical.Node) (logical.Node, *Trace, error) {
	trace := &Trace{}
	for _, b := range o.batches {
		var err error
		if n, err = runBatch(b, n, trace); err != nil {
			return nil, nil, err
		}
	}
	return n, trace, nil
}

func runBatch(b Batch, n logical.Node, trace *Trace) (logical.Node, error) {
	for pass := 0; ; pass++ {
		if pass == b.Max {
			if b.Max == 1 {
				return n, nil
			}
			return nil, fmt.Errorf("bug: optimizer batch %s does not settle after %d passes", b.Name, b.Max)
		}
		before := n
		for _, r := range b.Rules {
			m, count, err := applyEverywhere(r, n)
			if err != nil {
				return nil, err
			}
			if count > 0 {
				trace.record(r.Name(), count, m)
				n = m
			}
		}
		if n == before {
			return n, nil
		}
	}
}

// wholePlan is a Rule that looks at the whole plan at once, from the root.
type wholePlan interface {
	Rule
	applyToRoot(n logical.Node) (logical.Node, int, error)
}

func applyEverywhere(r Rule, n logical.Node) (logical.Node, int, error) {
	if w, ok := r.(wholePlan); ok {
		return w.applyToRoot(n)
	}
	count := 0
	transform := logical.Transform
	if _, ok := r.(downward); ok {
		transform = logical.TransformDown
	}
	m, err := transform(n, func(x logical.Node) (logical.Node, error) {
		y, err := r.Apply(x)
		if err != nil {
			return nil, fmt.Errorf("rule %s: %w", r.Name(), err)
		}
		if y != x {
			count++
		}
		return y, nil
	})
	return m, count, err
}
