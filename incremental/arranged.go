package incremental

import (
	"slices"

	"github.com/tidemill/tidemill/checkpoint"
)

// arranged is the execution for a checkpoint with the plan was: where operators would be
// refused for the order of their keys or aggregates alone, one that has them in the order of
// their state. What its rows are is the same.
func (x *incrementalExecution) arranged(was checkpoint.Plan) (*incrementalExecution, error) {
	changed := changedOperators(was, x.plan)
	if len(changed) == 0 {
		return x, nil
	}
	kept := slices.DeleteFunc(slices.Clone(was.Operators), func(o checkpoint.Operator) bool { return !slices.Contains(changed, o.Name) })
	y, err := newIncrementalExecution(x.cfg, checkpoint.ReadsForm, kept...)
	if err != nil || len(changedOperators(was, y.plan)) >= len(changed) {
		return x, err
	}
	return y, nil
}

// changedOperators are the names of the operators for which the plan now is refused.
func changedOperators(was, now checkpoint.Plan) []string {
	var names []string
	for _, f := range was.Compare(now) {
		if f.Part == "operator" && f.Verdict == checkpoint.Refused {
			names = append(names, f.Name)
		}
	}
	return names
}
