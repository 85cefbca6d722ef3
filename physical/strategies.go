package physical

import (
	"context"
	"slices"

	"github.com/tidemill/tidemill/columnar"
	"github.com/tidemill/tidemill/logical"
	"github.com/tidemill/tidemill/logical/connector"
	"github.com/tidemill/tidemill/logical/expr"
)

// Batch is the strategies for bounded queries. A stream is read as far as it goes now.
var Batch = []Strategy{planLeaf, planUnary, planAggregation, planOrder, planBinary, planWindow, planExpand, planOver, planUnnest}

func planLeaf(pl *Planner, n logical.Node) (Plan, error) {
	switch x := n.(type) {
	case *logical.Scan:
		filters, err := BindAll(x.Filters, x.Full)
		if err != nil {
			return nil, err
		}
		return NewScan(ScanSpec{
			Name: x.Name, Schema: x.Full.Arrow(), Units: x.Table.Units, Table: x.Table,
			Columns: append([]int{}, x.Positions...), Filters: filters, Limit: x.Limit, Ordinal: pl.WantsOrdinal(),
		})
	case *logical.StreamScan:
		filters, err := BindAll(x.Filters, x.Full)
		if err != nil {
			return nil, err
		}
		return NewScan(ScanSpec{
			Name: x.Stream.Name, Schema: x.Full.Arrow(), Units: boundedUnits(x.Stream),
			Columns: append([]int{}, x.Positions...), Filters: filters, Ordinal: pl.WantsOrdinal(),
		})
	case *logical.Values:
		return NewValues(x.Output.Arrow(), x.Rows)
	}
	return nil, nil
}

// boundedUnits reads a stream as the table it is now.
func boundedUnits(s *logical.Stream) UnitSource {
	return func(ctx context.Context, req connector.ScanRequest) ([]connector.Unit, error) {
		t, err := s.Bounded(ctx)
		if err != nil {
			return nil, err
		}
		return t.Units(ctx, req)
	}
}

func planUnary(pl *Planner, n logical.Node) (Plan, error) {
	switch x := n.(type) {
	case *logical.Alias:
		return pl.PlanSame(x.Input)
	case *logical.Watermark: // over bounded data it means nothing
		return pl.PlanSame(x.Input)
	case *logical.Filter:
		in, err := pl.PlanSame(x.Input)
		if err != nil {
			return nil, err
		}
		cond, err := Bind(x.Cond, x.Input.Schema())
		if err != nil {
			return nil, err
		}
		return NewFilter(in, cond)
	case *logical.Project:
		in, err := pl.PlanSame(x.Input)
		if err != nil {
			return nil, err
		}
		columns, err := BindNamed(x.Columns, x.Input.Schema())
		if err != nil {
			return nil, err
		}
		if HasOrdinal(in.Schema()) {
			r := ordinalRef(in)
			columns = append(columns, expr.Named{Expr: r, Name: r.Name})
		}
		return NewProject(in, columns)
	case *logical.Limit:
		in, err := pl.PlanOrdered(x.Input)
		if err != nil {
			return nil, err
		}
		return NewLimit(in, x.Count, x.Offset, readsLittle(x)), nil
	}
	return nil, nil
}

// readsLittle says whether a limit is met soon, so that reading ahead in parallel
// would be in vain.
func readsLittle(l *logical.Limit) bool {
	if l.Count == logical.NoLimit || l.Count+l.Offset > 4*16384 {
		return false
	}
	for n := l.Input; ; {
		switch x := n.(type) {
		case *logical.Project, *logical.Alias, *logical.Watermark:
			n = x.Children()[0]
		case *logical.Scan:
			return len(x.Filters) == 0
		case *logical.StreamScan:
			return len(x.Filters) == 0
		default:
			return false
		}
	}
}

func planExpand(pl *Planner, n logical.Node) (Plan, error) {
	x, ok := n.(*logical.Expand)
	if !ok {
		return nil, nil
	}
	in, err := pl.PlanSame(x.Input)
	if err != nil {
		return nil, err
	}
	keys, err := BindNamed(x.Keys, x.Input.Schema())
	if err != nil {
		return nil, err
	}
	return NewExpand(in, keys, x.Sets, x.Set.Name)
}

func planOver(pl *Planner, n logical.Node) (Plan, error) {
	x, ok := n.(*logical.Over)
	if !ok {
		return nil, nil
	}
	plan := pl.PlanOrdered // rows equal in order follow their arrival
	if pl.WantsOrdinal() {
		plan = pl.PlanOrdinal
	}
	in, err := plan(x.Input)
	if err != nil {
		return nil, err
	}
	functions, err := BindNamed(x.Functions, x.Input.Schema())
	if err != nil {
		return nil, err
	}
	partition, err := BindAll(x.Partition(), x.Input.Schema())
	if err != nil {
		return nil, err
	}
	if in, err = reduceToTop(in, x.Top, partition, functions[0].Expr.(*expr.Over).Order); err != nil {
		return nil, err
	}
	if len(partition) == 0 || pl.WantsOrder() {
		return NewOver(in, functions)
	}
	parts, err := NewExchange(in, partition...)
	if err != nil {
		return nil, err
	}
	o, err := NewOver(parts, functions)
	if err != nil {
		return nil, err
	}
	return NewCoalesce(o), nil
}

// reduceToTop leaves out of in what top, if there is one, says is not wanted.
func reduceToTop(in Plan, top *logical.Top, partition []expr.Expr, order []expr.Order) (Plan, error) {
	if top == nil {
		return in, nil
	}
	p, err := NewPartitionTop(in, partition, order, top.Func, top.N)
	if err != nil || p == nil {
		return in, err
	}
	return NewCoalesce(p), nil
}

func planUnnest(pl *Planner, n logical.Node) (Plan, error) {
	x, ok := n.(*logical.Unnest)
	if !ok {
		return nil, nil
	}
	in, err := pl.PlanSame(x.Input)
	if err != nil {
		return nil, err
	}
	lists, err := BindAll(x.Lists, x.Input.Schema())
	if err != nil {
		return nil, err
	}
	return NewUnnest(in, lists, x.Kept(), x.Outer, x.Place != nil, x.First, x.Schema().Arrow())
}

func planOrder(pl *Planner, n logical.Node) (Plan, error) {
	x, ok := n.(*logical.Sort)
	if !ok {
		return nil, nil
	}
	in, err := pl.PlanUnordered(x.Input)
	if err != nil {
		return nil, err
	}
	keys := append([]logical.SortKey(nil), x.Keys...)
	for i := range keys {
		if keys[i].Expr, err = Bind(keys[i].Expr, x.Input.Schema()); err != nil {
			return nil, err
		}
	}
	var ties []logical.SortKey
	if !arrives(x.Input) {
		ties = byColumns(in)
	}
	switch {
	case x.Limit > 0 && x.Limit <= maxTop:
		return NewTopK(in, keys, x.Limit, ties...)
	case len(keys) == 0:
		return in, nil
	}
	s, err := NewSort(in, keys, ties...)
	if err != nil || x.Limit <= 0 {
		return s, err
	}
	return NewLimit(s, x.Limit, 0, false), nil
}

// arrives says whether the rows of n have an order of arrival without being asked for one:
// groups have none, nor what is partitioned by keys. Rows of those that are equal in an
// order are put in that of their values, so that no number of workers changes which come first.
func arrives(n logical.Node) bool {
	switch x := n.(type) {
	case *logical.Aggregate:
		return len(x.Keys) == 0
	case *logical.Distinct:
		if x.On == nil {
			return false
		}
	case *logical.Over:
		if len(x.Partition()) > 0 {
			return false
		}
	case *logical.Window:
		if x.IsSession() {
			return false
		}
	case *logical.MapGroups:
		return false
	case *logical.Join:
		if x.State != "" {
			return false
		}
	case *logical.Sort, *logical.Limit:
		return true
	}
	return !slices.ContainsFunc(n.Children(), func(c logical.Node) bool { return !arrives(c) })
}

// byColumns is the order by all columns of p, from left to right.
func byColumns(p Plan) []logical.SortKey {
	var keys []logical.SortKey
	for i, f := range p.Schema().Fields() {
		keys = append(keys, logical.SortKey{Expr: &expr.Ref{Index: i, Name: f.Name, DataType: f.Type, Null: true}, NullsFirst: true})
	}
	return keys
}

// maxTop is from how many rows on sorting everything beats a heap.
const maxTop = 1 << 20

func planAggregation(pl *Planner, n logical.Node) (Plan, error) {
	switch x := n.(type) {
	case *logical.Aggregate:
		return pl.planAggregate(x)
	case *logical.Distinct:
		return pl.planDistinct(x)
	}
	return nil, nil
}

func (pl *Planner) planAggregate(x *logical.Aggregate) (Plan, error) {
	x = x.WithAggs(OverSets(x.Aggs, false))
	in, merged, err := pl.planSessions(x)
	if err != nil {
		return nil, err
	}
	if !merged {
		if in, err = pl.planAggregateInput(x); err != nil {
			return nil, err
		}
	}
	keys, err := BindNamed(x.Keys, x.Input.Schema())
	if err != nil {
		return nil, err
	}
	aggs, err := BindNamed(x.Aggs, x.Input.Schema())
	if err != nil {
		return nil, err
	}
	ordinal := -1
	if HasOrdinal(in.Schema()) {
		ordinal = in.Schema().NumFields() - 1
	}
	spec, err := NewAggregateSpec(in.Schema(), keys, aggs, ordinal)
	if err != nil {
		return nil, err
	}
	p, err := aggregatePlan(in, spec, pl.want.ordered)
	if err != nil || !pl.want.ordered || !logical.ReadsStream(x) {
		return p, err
	}
	return InKeyOrder(x, p)
}

// InKeyOrder gives groups of a stream in the order of their event times, then of their
// other keys: which batch a group came in with, and which worker keeps it, is no order to
// count rows by.
func InKeyOrder(a *logical.Aggregate, p Plan) (Plan, error) {
	marks := logical.EventTimes(a)
	var times, others []logical.SortKey
	for i, c := range a.Schema().Columns[:len(a.Keys)] {
		key := logical.SortKey{Expr: &expr.Ref{Index: i, Name: c.Name, DataType: c.DataType, Null: true}, NullsFirst: true}
		if _, ok := marks[c.ID]; ok {
			times = append(times, key)
		} else {
			others = append(others, key)
		}
	}
	if len(a.Keys) == 0 {
		return p, nil
	}
	return NewSort(p, append(times, others...))
}

// planAggregateInput plans the input, with ordinals where an aggregate needs them, and in
// order where the groups are wanted in that of their first rows.
func (pl *Planner) planAggregateInput(x *logical.Aggregate) (Plan, error) {
	for _, a := range x.Aggs {
		if agg, ok := a.Expr.(*expr.Agg); ok && agg.Signature.Overload.Ordered {
			return pl.PlanOrdinal(x.Input)
		}
	}
	return pl.Plan(x.Input)
}

// aggregatePlan aggregates in two phases, or where an aggregate over distinct values
// has no state to merge, rows by the hash of their key.
func aggregatePlan(in Plan, spec *AggregateSpec, ordered bool) (Plan, error) {
	if !spec.HasDistinct() {
		return NewHashAggregate(NewPartialAggregate(in, spec), spec, ordered), nil
	}
	if inner, outer, ok := spec.twoLevels(); ok {
		return twoLevelPlan(in, inner, outer, ordered)
	}
	if len(spec.Keys) == 0 {
		return NewSingleAggregate(in, spec, ordered), nil
	}
	x, err := NewExchange(in, exprsOf(spec.Keys)...)
	if err != nil {
		return nil, err
	}
	x.Ordered = spec.HasOrderedDistinct()
	return NewSingleAggregate(x, spec, ordered), nil
}

// twoLevelPlan removes duplicates of keys and arguments first, then aggregates what is
// left as if there were no DISTINCT: both in parallel.
func twoLevelPlan(in Plan, inner, outer []expr.Named, ordered bool) (Plan, error) {
	spec, err := NewAggregateSpec(in.Schema(), inner, nil, -1)
	if err != nil {
		return nil, err
	}
	rows := NewHashAggregate(NewPartialAggregate(in, spec), spec, ordered)
	keys := len(inner) - len(outer[0].Expr.(*expr.Agg).Args)
	if spec, err = NewAggregateSpec(rows.Schema(), refsToFields(rows, keys), outer, -1); err != nil {
		return nil, err
	}
	return NewHashAggregate(NewPartialAggregate(rows, spec), spec, ordered), nil
}

// refsToFields are the first n columns of p by position.
func refsToFields(p Plan, n int) []expr.Named {
	out := make([]expr.Named, n)
	for i := range out {
		f := p.Schema().Field(i)
		out[i] = expr.Named{Expr: &expr.Ref{Index: i, Name: f.Name, DataType: f.Type, Null: true}, Name: f.Name}
	}
	return out
}

func (pl *Planner) planDistinct(x *logical.Distinct) (Plan, error) {
	columns := refsTo(x.Schema())
	keeps := slices.ContainsFunc(columns, func(c expr.Named) bool { return columnar.LosesForm(c.Expr.Type()) })
	if x.On == nil && len(columns) > 0 && !keeps {
		in, err := pl.Plan(x.Input)
		if err != nil {
			return nil, err
		}
		spec, err := NewAggregateSpec(in.Schema(), columns, nil, -1)
		if err != nil {
			return nil, err
		}
		return aggregatePlan(in, spec, pl.want.ordered)
	}
	in, err := pl.PlanOrdered(x.Input)
	if err != nil {
		return nil, err
	}
	keys := exprsOf(columns)
	if x.On != nil {
		if keys, err = BindAll(x.On, x.Input.Schema()); err != nil {
			return nil, err
		}
	}
	partial, err := NewDistinct(in, keys, true)
	if err != nil {
		return nil, err
	}
	return NewDistinct(partial, keys, false)
}

func planWindow(pl *Planner, n logical.Node) (Plan, error) {
	x, ok := n.(*logical.Window)
	if !ok {
		return nil, nil
	}
	in, err := pl.PlanSame(x.Input)
	if err != nil {
		return nil, err
	}
	time, err := Bind(x.Time, x.Input.Schema())
	if err != nil {
		return nil, err
	}
	spec := x.Spec
	if x.IsSession() {
		if spec.Gap, err = Bind(spec.Gap, x.Input.Schema()); err != nil {
			return nil, err
		}
	}
	w, err := NewWindow(in, time, spec, x.Start.Name, x.End.Name)
	if err != nil || !x.IsSession() || pl.sessions[x.Start.ID] {
		return w, err
	}
	keys, err := BindAll(x.PartitionKeys, x.Schema())
	if err != nil {
		return nil, err
	}
	at := len(x.Input.Schema().Columns)
	return NewSessionMerge(w, keys, at, at+1)
}

// planSessions plans the input of an aggregate that groups by session_window: the
// sessions are merged by the other keys. merged is false if it is not one.
func (pl *Planner) planSessions(x *logical.Aggregate) (in Plan, merged bool, err error) {
	w, start, end := logical.SessionOf(x.Input)
	if w == nil || !w.Grouped || start < 0 || end < 0 {
		return nil, false, nil
	}
	columns := x.Input.Schema().Columns
	bounds := []expr.ID{columns[start].ID, columns[end].ID}
	var keys []expr.Expr
	grouped := false
	for _, k := range x.Keys {
		if readsAny(k.Expr, bounds) {
			grouped = true
			continue
		}
		b, err := Bind(k.Expr, x.Input.Schema())
		if err != nil {
			return nil, false, err
		}
		keys = append(keys, b)
	}
	if !grouped {
		return nil, false, nil
	}
	pl.RawSessions(w)
	if in, err = pl.planAggregateInput(x); err != nil {
		return nil, false, err
	}
	in, err = NewSessionMerge(in, keys, start, end)
	return in, true, err
}

func readsAny(e expr.Expr, ids []expr.ID) bool {
	for _, id := range expr.Columns(e) {
		for _, want := range ids {
			if id == want {
				return true
			}
		}
	}
	return false
}

func planBinary(pl *Planner, n logical.Node) (Plan, error) {
	switch x := n.(type) {
	case *logical.Union:
		inputs := make([]Plan, len(x.Inputs))
		for i, c := range x.Inputs {
			p, err := pl.Plan(c)
			if err != nil {
				return nil, err
			}
			inputs[i] = p
		}
		return NewUnion(x.Output.Arrow(), inputs...), nil
	case *logical.SetOp:
		left, err := pl.PlanOrdered(x.Left)
		if err != nil {
			return nil, err
		}
		right, err := pl.PlanUnordered(x.Right)
		if err != nil {
			return nil, err
		}
		return NewSetOp(x.Kind, x.All, left, right), nil
	case *logical.Join:
		return pl.planJoin(x)
	case *logical.AsofJoin:
		return pl.planAsofJoin(x)
	}
	return nil, nil
}

func (pl *Planner) planJoin(x *logical.Join) (Plan, error) {
	left, err := pl.Plan(x.Left)
	if err != nil {
		return nil, err
	}
	right, err := pl.Plan(x.Right)
	if err != nil {
		return nil, err
	}
	spec, rest, err := JoinKeys(x)
	if err != nil {
		return nil, err
	}
	if len(spec.LeftKeys) == 0 {
		j, err := NewLoopJoin(x.Kind, left, right, rest)
		if err != nil {
			return nil, err
		}
		j.BuildLeft = streamsRight(x)
		return j, nil
	}
	spec.Residual = rest
	spec.BuildLeft = !spec.NullAware && pl.keepsLeft(x)
	j, err := NewHashJoin(left, right, spec)
	if err != nil {
		return nil, err
	}
	if j, err = pl.handKeysDown(x, j); err != nil {
		return nil, err
	}
	return NewCoalesce(j), nil
}

// JoinKeys finds the equalities of a join's condition that have one side from each
// input, as keys over positions of the inputs, and the rest of the condition over the
// columns of left, then right; nil if there is none.
func JoinKeys(x *logical.Join) (spec JoinSpec, rest expr.Expr, err error) {
	spec.Kind = x.Kind
	l, r := x.Left.Schema(), x.Right.Schema()
	both := logical.NewSchema(append(l.Columns[:len(l.Columns):len(l.Columns)], r.Columns...)...)
	var others []expr.Expr
	conds := expr.Conjuncts(x.On)
	if x.Kind == logical.AntiJoin && len(conds) == 1 {
		if eq, ok := notIn(conds[0], l, r); ok {
			conds[0], spec.NullAware = eq, true
		}
	}
	for _, c := range conds {
		a, b, nullSafe, ok := equality(c, l, r)
		if !ok {
			bound, err := Bind(c, both)
			if err != nil {
				return spec, nil, err
			}
			others = append(others, bound)
			continue
		}
		if a, err = Bind(a, l); err != nil {
			return spec, nil, err
		}
		if b, err = Bind(b, r); err != nil {
			return spec, nil, err
		}
		spec.LeftKeys = append(spec.LeftKeys, a)
		spec.RightKeys = append(spec.RightKeys, b)
		spec.NullSafe = append(spec.NullSafe, nullSafe)
	}
	return spec, expr.All(others), nil
}

// notIn takes the condition of an anti join that stands for NOT IN apart: a = b OR a IS
// NULL OR b IS NULL, where a test may be missing of what is never null.
func notIn(e expr.Expr, l, r *logical.Schema) (eq expr.Expr, ok bool) {
	or, isLogic := e.(*expr.Logic)
	if !isLogic || or.Op != expr.Or {
		return nil, false
	}
	a, b, nullSafe, ok := equality(or.Args[0], l, r)
	if !ok || nullSafe {
		return nil, false
	}
	tested := func(side expr.Expr) bool {
		return !side.Nullable() || slices.ContainsFunc(or.Args[1:], func(t expr.Expr) bool { return isNullTest(t, side) })
	}
	for _, t := range or.Args[1:] {
		if !isNullTest(t, a) && !isNullTest(t, b) {
			return nil, false
		}
	}
	return or.Args[0], tested(a) && tested(b)
}

// isNullTest says whether t is e IS NULL, be it of what e casts.
func isNullTest(t, e expr.Expr) bool {
	c, ok := t.(*expr.Call)
	if !ok || c.Func.Name != "is_null" {
		return false
	}
	return sameUncast(c.Args[0], e)
}

func sameUncast(a, b expr.Expr) bool {
	for {
		c, ok := a.(*expr.Cast)
		if !ok || c.Try {
			break
		}
		a = c.Input
	}
	for {
		c, ok := b.(*expr.Cast)
		if !ok || c.Try {
			break
		}
		b = c.Input
	}
	x, isColumn := a.(*expr.Column)
	y, alsoColumn := b.(*expr.Column)
	if isColumn || alsoColumn {
		return isColumn && alsoColumn && x.ID == y.ID
	}
	return a == b
}

// equality takes left expression = right expression apart.
func equality(e expr.Expr, l, r *logical.Schema) (a, b expr.Expr, nullSafe, ok bool) {
	c, ok := e.(*expr.Call)
	if !ok || len(c.Args) != 2 || c.Func.Name != "=" && c.Func.Name != "is_not_distinct_from" {
		return nil, nil, false, false
	}
	a, b = c.Args[0], c.Args[1]
	from := func(e expr.Expr, s *logical.Schema) bool {
		ids := expr.Columns(e)
		return len(ids) > 0 && s.Has(ids...)
	}
	nullSafe = c.Func.Name != "="
	switch {
	case from(a, l) && from(b, r):
		return a, b, nullSafe, true
	case from(a, r) && from(b, l):
		return b, a, nullSafe, true
	}
	return nil, nil, false, false
}

// streamsRight says whether of a join's sides only the right one is a stream. The table is
// kept then, so that rows come out in the order in which the stream's arrive, in however
// many batches they do.
func streamsRight(x *logical.Join) bool {
	return logical.ReadsStream(x.Right) && !logical.ReadsStream(x.Left)
}

// keepsLeft says whether a join keeps its left side and streams the right one: where the
// left one is a table and the right one a stream, or it is known to be the smaller one.
func (pl *Planner) keepsLeft(x *logical.Join) bool {
	switch {
	case streamsRight(x):
		return true
	case logical.ReadsStream(x.Left) && !logical.ReadsStream(x.Right):
		return false
	}
	left, leftKnown := pl.rows.Rows(x.Left)
	right, rightKnown := pl.rows.Rows(x.Right)
	switch {
	case leftKnown && rightKnown:
		return left*2 < right
	case leftKnown:
		return left < 10_000
	}
	return false
}
