package stateful

import (
	"fmt"
	"slices"
	"strings"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/memory"

	"github.com/tidemill/tidemill/columnar"
	"github.com/tidemill/tidemill/columnar/function"
	"github.com/tidemill/tidemill/incremental/state"
	"github.com/tidemill/tidemill/logical"
	"github.com/tidemill/tidemill/logical/connector"
	"github.com/tidemill/tidemill/logical/expr"
	"github.com/tidemill/tidemill/physical"
)

// groupsTable is the table of an aggregate's groups; distinct values have one each
// beside it.
const groupsTable = "groups"

func describeAggregate(a *logical.Aggregate, mode connector.OutputMode) (*Operator, error) {
	if s, ok := sessionOf(a); ok {
		return describeSession(a, s, mode)
	}
	o := &Operator{node: a, name: a.State, kind: "stateStoreSave", text: aggregateText(a), former: formerText(a), mode: mode, partials: &physical.Partials{}}
	keys := keyFields(a)
	order := state.Order{By: state.ByKey}
	if closing, mark, ok := closingKey(a); ok {
		order = state.Order{By: state.ByKeyColumn, Column: closing}
		o.evicted, o.evictOffset = mode != connector.Complete, mark.Offset
	}
	groups := state.TableSchema{Name: groupsTable, Key: keys, Derived: windowBounds(a), Order: order}
	var names []string
	for _, n := range a.Aggs {
		names = append(names, Unqualified(n.Expr))
	}
	names = uniqueNames(names)
	o.spec.Operator = o.name
	var distinct []state.TableSchema
	for i, n := range physical.OverSets(a.Aggs, false) {
		agg := n.Expr.(*expr.Agg)
		groups.Aggregates = append(groups.Aggregates, state.AggregateColumn{
			Name: names[i],
			New: func(mem memory.Allocator) (function.Accumulator, error) {
				return agg.Signature.Overload.New(mem, agg.Signature.Args)
			},
		})
		if agg.Distinct {
			distinct = append(distinct, distinctTable(i, &groups, agg))
		}
	}
	o.spec.Tables = append([]state.TableSchema{groups}, distinct...)
	return o, nil
}

// closingKey is the position of the key by which the watermark finishes groups.
func closingKey(a *logical.Aggregate) (position int, mark logical.EventTime, ok bool) {
	key, mark, ok := logical.ClosingKey(a)
	if !ok {
		return 0, mark, false
	}
	return slices.IndexFunc(a.Keys, func(k expr.Named) bool { return k.ID == key.ID }), mark, true
}

// windowBounds are the keys that are the one bound of a window whose other bound is an
// earlier key: state does without them.
func windowBounds(a *logical.Aggregate) []state.DerivedColumn {
	var out []state.DerivedColumn
	first := map[*logical.Window]int{}
	for i, k := range a.Keys {
		w, isEnd := logical.BoundOf(a.Input, k.Expr)
		if w == nil {
			continue
		}
		earlier, found := first[w]
		if !found {
			first[w] = i
			continue
		}
		plus := int64(0)
		if _, wasEnd := logical.BoundOf(a.Input, a.Keys[earlier].Expr); isEnd && !wasEnd {
			plus = w.Spec.Size
		} else if wasEnd && !isEnd {
			plus = -w.Spec.Size
		}
		out = append(out, state.DerivedColumn{Column: i, From: earlier, Plus: plus})
	}
	return out
}

// distinctTable holds the values an aggregate over distinct values has seen, a row for
// each group and value: a batch writes only new ones.
func distinctTable(i int, groups *state.TableSchema, agg *expr.Agg) state.TableSchema {
	t := state.TableSchema{Name: distinctName(i), Key: slices.Clone(groups.Key), Derived: groups.Derived, Order: groups.Order}
	for k, a := range agg.Args {
		t.Key = append(t.Key, columnar.Field(fmt.Sprintf("value%d", k+1), a.Type()))
	}
	return t
}

func distinctName(i int) string { return fmt.Sprintf("distinct%d", i+1) }

// isSide says whether a table stands beside the one whose rows are counted.
func isSide(table string) bool { return strings.HasPrefix(table, "distinct") }

func keyFields(a *logical.Aggregate) []arrow.Field {
	names := make([]string, len(a.Keys))
	for i, k := range a.Keys {
		names[i] = k.Name
	}
	names = uniqueNames(names)
	out := make([]arrow.Field, len(names))
	for i, n := range names {
		out[i] = columnar.Field(n, a.Keys[i].Expr.Type())
	}
	return out
}

// aggregateText tells what the state of an aggregate means, with types.
func aggregateText(a *logical.Aggregate) string {
	var keys, aggs []string
	for _, k := range a.Keys {
		keys = append(keys, Unqualified(k.Expr)+" "+columnar.TypeName(k.Expr.Type()))
	}
	for _, g := range a.Aggs {
		text := Unqualified(g.Expr)
		for _, arg := range g.Expr.(*expr.Agg).Args {
			text += " of " + columnar.TypeName(arg.Type())
		}
		aggs = append(aggs, text)
	}
	return "keys=[" + strings.Join(keys, ", ") + "] aggs=[" + strings.Join(aggs, ", ") + "]"
}

// formerText is the text that engines gave an aggregate which did not keep how the first
// row of a group writes its key (logical.Group), "" where it is the same.
func formerText(a *logical.Aggregate) string {
	aggs := a.Aggs
	for _, k := range slices.Backward(a.Keys) {
		if !columnar.LosesForm(k.Expr.Type()) {
			continue
		}
		last := len(aggs) - 1
		if last < 0 || Unqualified(aggs[last].Expr) != "first("+Unqualified(k.Expr)+")" {
			return ""
		}
		aggs = aggs[:last]
	}
	if len(aggs) == len(a.Aggs) {
		return ""
	}
	return aggregateText(a.WithAggs(aggs))
}

// Unqualified prints an expression without table names, so that an alias in the query
// may change.
func Unqualified(e expr.Expr) string {
	plain, err := expr.Transform(e, func(x expr.Expr) (expr.Expr, error) {
		if c, ok := x.(*expr.Column); ok && c.Qualifier != "" {
			n := *c
			n.Qualifier = ""
			return &n, nil
		}
		return x, nil
	})
	if err != nil {
		return e.String()
	}
	return plain.String()
}

// planAggregate plans a stateful aggregate for one batch:
//
//	StateStoreSave > HashAggregate(final) > StateStoreRestore > [Exchange] > HashAggregate(partial) > [LateFilter]
func planAggregate(pl *physical.Planner, a *logical.Aggregate, inst *Instance) (physical.Plan, error) {
	if s, ok := sessionOf(a); ok {
		return planSession(pl, a, s, inst)
	}
	a = a.WithAggs(physical.OverSets(a.Aggs, false))
	keys, err := physical.BindNamed(a.Keys, a.Input.Schema())
	if err != nil {
		return nil, err
	}
	aggs, err := physical.BindNamed(a.Aggs, a.Input.Schema())
	if err != nil {
		return nil, err
	}
	position, mark, judged := closingKey(a)
	judged = judged && inst.op.mode != connector.Complete
	in, err := planInput(pl, a, inst, judged)
	if err != nil {
		return nil, err
	}
	if judged {
		if in, err = lateFilter(in, keys[position].Expr, mark.Offset, inst, expands(a.Input)); err != nil {
			return nil, err
		}
	}
	ordinal := -1
	if physical.HasOrdinal(in.Schema()) {
		ordinal = in.Schema().NumFields() - 1
	}
	spec, err := physical.NewAggregateSpec(in.Schema(), keys, aggs, ordinal)
	if err != nil {
		return nil, err
	}
	below := in
	routing := keys
	if !spec.HasDistinct() {
		partial := physical.NewPartialAggregate(in, spec)
		partial.Kept = inst.op.partials
		below = partial
		routing = positions(spec.StateSchema(), len(keys))
	}
	if len(keys) > 0 {
		exprs := make([]expr.Expr, len(routing))
		for i, k := range routing {
			exprs[i] = k.Expr
		}
		x, err := physical.NewExchange(below, exprs...)
		if err != nil {
			return nil, err
		}
		x.Ordered = spec.HasOrderedDistinct()
		below = x
	}
	return &StateStoreSave{input: below, spec: spec, inst: inst}, nil
}

// planInput plans the input with what the operator needs beside the rows: their order,
// where an aggregate depends on it or rows of several windows must be told to be one.
// judged says that a LateFilter comes above it.
func planInput(pl *physical.Planner, a *logical.Aggregate, inst *Instance, judged bool) (physical.Plan, error) {
	ordered := expands(a.Input)
	for _, n := range a.Aggs {
		if agg, ok := n.Expr.(*expr.Agg); ok && agg.Signature.Overload.Ordered {
			ordered = true
		}
	}
	input := a.Input
	if judged {
		input = inst.traced(input)
	}
	if ordered {
		return pl.PlanOrdinal(input)
	}
	return pl.PlanUnordered(input)
}

// expands says whether one input row can become several: a hopping window, grouping sets, UNNEST.
func expands(n logical.Node) bool {
	found := false
	logical.Walk(n, func(x logical.Node) bool {
		switch w := x.(type) {
		case *logical.Window:
			found = found || !w.IsSession() && w.Spec.Slide < w.Spec.Size
		case *logical.Expand, *logical.Unnest:
			found = true
		}
		_, isAggregate := x.(*logical.Aggregate)
		return !found && !isAggregate
	})
	return found
}

// positions are the first n columns of s.
func positions(s *arrow.Schema, n int) []expr.Named {
	out := make([]expr.Named, n)
	for i := range out {
		f := s.Field(i)
		out[i] = expr.Named{Expr: &expr.Ref{Index: i, Name: f.Name, DataType: f.Type, Null: true}, Name: f.Name}
	}
	return out
}
