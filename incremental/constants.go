package incremental

import (
	"slices"

	"github.com/apache/arrow-go/v18/arrow/memory"

	"github.com/tidemill/tidemill/checkpoint"
	"github.com/tidemill/tidemill/columnar/function"
	"github.com/tidemill/tidemill/incremental/stateful"
	"github.com/tidemill/tidemill/logical"
	"github.com/tidemill/tidemill/logical/connector"
	"github.com/tidemill/tidemill/logical/expr"
	"github.com/tidemill/tidemill/physical"
	"github.com/tidemill/tidemill/physical/eval"
)

// CheckConstants finds what every batch of a query would fail by, before anything runs: a
// pattern or a time zone that is none, a constant that cannot be computed. Of cfg it needs
// Plan, Mode and Registry. The error is a mistake of usage, with its place.
func CheckConstants(cfg Config) error {
	x, err := newIncrementalExecution(cfg.withDefaults(), checkpoint.ReadsForm)
	if err != nil {
		return err
	}
	return x.checkConstants()
}

func (x *incrementalExecution) checkConstants() error {
	if _, err := x.tryPlan(); err != nil {
		return err
	}
	env := &function.Env{Mem: memory.DefaultAllocator, Location: x.cfg.Location} // nobody releases literals
	var err error
	logical.Walk(x.analyzed, func(n logical.Node) bool {
		for _, e := range n.Exprs() {
			failing, errs := eval.ConstantErrors(env, e)
			for i, f := range failing {
				if err == nil && x.computes(f) {
					err = &logical.UsageError{Err: errs[i]}
				}
			}
		}
		return err == nil
	})
	return err
}

// computes says whether e is in the plan that runs: what nothing reads is not computed.
func (x *incrementalExecution) computes(e expr.Expr) bool {
	found := false
	logical.Walk(x.optimized, func(n logical.Node) bool {
		own := n.Exprs()
		switch s := n.(type) {
		case *logical.Scan:
			own = s.Filters
		case *logical.StreamScan:
			own = s.Filters
		}
		found = found || slices.ContainsFunc(own, func(in expr.Expr) bool { return contains(in, e) })
		return !found
	})
	return found
}

func contains(in, e expr.Expr) bool {
	found := false
	expr.Walk(in, func(x expr.Expr) bool {
		found = found || expr.PlaceOf(x) == expr.PlaceOf(e) && expr.Equal(x, e)
		return !found
	})
	return found
}

// tryPlan is the physical plan of a batch, without its data and state.
func (x *incrementalExecution) tryPlan() (physical.Plan, error) {
	run := &batchRun{exec: x, scans: map[string]*connector.ScanStats{}, eventTimes: &EventTimeStats{}, states: []*stateful.Instance{}}
	for _, op := range x.operators {
		run.states = append(run.states, op.Unopened())
	}
	return physical.NewPlanner(run.strategies(nil, nil)...).Plan(x.optimized)
}
