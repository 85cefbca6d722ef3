package physical

import (
	"slices"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/memory"

	"github.com/tidemill/tidemill/columnar"
	"github.com/tidemill/tidemill/columnar/function"
	"github.com/tidemill/tidemill/columnar/kernel"
	"github.com/tidemill/tidemill/logical/expr"
	"github.com/tidemill/tidemill/physical/eval"
)

// OverSets gives aggregates over distinct values a state with these values, which can be
// merged: all of them, or those alone that choose among the forms of equal values.
func OverSets(aggs []expr.Named, all bool) []expr.Named {
	out := slices.Clone(aggs)
	for i, n := range aggs {
		agg := *n.Expr.(*expr.Agg)
		plain := agg.Signature.Overload
		if !agg.Distinct || !all && (plain.Ordered || !function.ChoosesForm(plain, agg.Signature.Args)) {
			continue
		}
		signature := *agg.Signature
		signature.Overload = function.OverSet(plain, agg.Signature.Args)
		agg.Signature, agg.Distinct = &signature, false
		out[i].Expr = &agg
	}
	return out
}

// IsOrdered says whether aggregate i depends on the order of rows.
func (s *AggregateSpec) IsOrdered(i int) bool { return s.calls[i].agg.Signature.Overload.Ordered }

// IsDistinct says whether aggregate i is over distinct values only.
func (s *AggregateSpec) IsDistinct(i int) bool { return s.calls[i].agg.Distinct }

// HasOrderedDistinct says whether an aggregate over distinct values depends on the order of
// rows: which of equal values is the first to arrive must be known when a row comes.
func (s *AggregateSpec) HasOrderedDistinct() bool {
	return slices.ContainsFunc(s.calls, func(c aggregateCall) bool { return c.agg.Distinct && c.agg.Signature.Overload.Ordered })
}

// UpdateDistinct adds to acc, aggregate i's, the rows of in whose values their group has
// not seen. unseen is asked which those are: it gets the arguments of some rows, whose
// numbers in the batch are rows (nil: every row, in order), remembers them and returns the
// positions that were new.
func (s *AggregateSpec) UpdateDistinct(mem memory.Allocator, i int, acc function.Accumulator, groups []uint32, in *AggregateInput,
	unseen func(args []arrow.Array, rows []int32) (fresh []int32, err error)) error {
	c := &s.calls[i]
	rows, all := s.filtered(c, in)
	if !all && len(rows) == 0 {
		return nil
	}
	args, release, err := s.arguments(mem, c, in, rows, all)
	if err != nil {
		return err
	}
	defer release()
	if all {
		rows = nil
	} else {
		groups = pick(groups, rows)
	}
	columns := make([]arrow.Array, len(c.args))
	for k := range columns {
		columns[k] = columnar.Broadcast(mem, args[k], len(groups))
	}
	fresh, err := unseen(columns, rows)
	releaseAll(columns)
	if err != nil || len(fresh) == 0 {
		return err
	}
	for k, a := range args {
		if !a.IsConstant() {
			args[k] = columnar.ColumnDatum(kernel.Filter(mem, a.Array(), fresh))
			a.Release()
		}
	}
	if err := acc.Update(pick(groups, fresh), args); err != nil {
		return eval.Failed(c.agg, err)
	}
	return nil
}
