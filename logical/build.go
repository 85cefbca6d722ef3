package logical

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"

	"github.com/tidemill/tidemill/columnar"
	"github.com/tidemill/tidemill/columnar/function"
	"github.com/tidemill/tidemill/logical/expr"
)

// UnionOf concatenates inputs (UNION ALL), casting columns to their common types.
func UnionOf(inputs ...Node) (Node, error) {
	if len(inputs) == 0 {
		return nil, errors.New("a union needs at least one input")
	}
	first := inputs[0].Schema().Columns
	types := make([]arrow.DataType, len(first))
	for i, c := range first {
		types[i] = c.DataType
	}
	for _, in := range inputs[1:] {
		columns := in.Schema().Columns
		if len(columns) != len(first) {
			return nil, fmt.Errorf("one side has %d columns, the other %d", len(first), len(columns))
		}
		for i, c := range columns {
			t, ok := columnar.Meet(types[i], c.DataType)
			if !ok {
				return nil, fmt.Errorf("column %d (%s) is %s on one side and %s on the other; %s",
					i+1, first[i].Name, columnar.TypeName(types[i]), columnar.TypeName(c.DataType), columnar.CastAdvice(types[i], c.DataType))
			}
			types[i] = t
		}
	}
	cast := make([]Node, len(inputs))
	for k, in := range inputs {
		cast[k] = CastColumns(in, types)
	}
	return NewUnion(cast...), nil
}

// CastColumns makes the columns of n have the given types, by a projection if need be.
func CastColumns(n Node, types []arrow.DataType) Node {
	columns := make([]expr.Named, len(types))
	same := true
	for i, c := range n.Schema().Columns {
		if arrow.TypeEqual(c.DataType, types[i]) {
			columns[i] = expr.Pass(c)
			continue
		}
		same = false
		columns[i] = expr.As(expr.CastTo(c, types[i]), c.Name)
	}
	if same {
		return n
	}
	return NewProject(n, columns)
}

// TypedNulls makes the output columns of n that have no type but NULL VARCHAR: what
// leaves the engine needs one.
func TypedNulls(n Node) Node {
	columns := n.Schema().Columns
	types := make([]arrow.DataType, len(columns))
	for i, c := range columns {
		if types[i] = c.DataType; c.DataType.ID() == arrow.NULL {
			types[i] = columnar.String
		}
	}
	return CastColumns(n, types)
}

// Using joins on equality of columns of the same names. The output has each of them
// once, first (of an outer join: whichever side has it), then the other columns of
// left and right.
func Using(reg *function.Registry, kind JoinKind, left, right Node, names []string) (Node, error) {
	var conds []expr.Expr
	var merged []expr.Named
	used := map[expr.ID]bool{}
	for _, n := range names {
		l, r, err := bothSides(left, right, n)
		if err != nil {
			return nil, err
		}
		eq, err := expr.NewCall(reg, "=", l, r)
		if err != nil {
			return nil, err
		}
		conds = append(conds, eq)
		if used[l.ID] || used[r.ID] {
			return nil, fmt.Errorf("column %s is named twice", n)
		}
		used[l.ID], used[r.ID] = true, true
		m, err := mergedColumn(reg, kind, l, r)
		if err != nil {
			return nil, err
		}
		merged = append(merged, m)
	}
	join := NewJoin(kind, left, right, expr.All(conds))
	for _, c := range join.Schema().Columns {
		if !used[c.ID] {
			merged = append(merged, expr.Pass(c))
		}
	}
	return NewProject(join, merged), nil
}

// bothSides are the columns of a name on both sides of a join.
func bothSides(left, right Node, name string) (l, r *expr.Column, err error) {
	if l, err = left.Schema().Lookup("", name); err != nil {
		return nil, nil, fmt.Errorf("left side: %w", err)
	}
	if r, err = right.Schema().Lookup("", name); err != nil {
		return nil, nil, fmt.Errorf("right side: %w", err)
	}
	return l, r, nil
}

// mergedColumn is the one column that stands for l and r after USING.
func mergedColumn(reg *function.Registry, kind JoinKind, l, r *expr.Column) (expr.Named, error) {
	switch kind {
	case RightJoin:
		return expr.Pass(r), nil
	case FullJoin:
		left, right := *l, *r
		left.Null, right.Null = true, true
		e, err := expr.NewCall(reg, "coalesce", &left, &right)
		if err != nil {
			return expr.Named{}, err
		}
		return expr.As(e, l.Name), nil
	}
	return expr.Pass(l), nil
}

// DeclareWatermark declares column as the event time of input. It must be a
// TIMESTAMP, the delay not negative, and no other watermark may be in force.
// label is the stable name in checkpoints; "" takes the stream's name and the column's.
func DeclareWatermark(input Node, column *expr.Column, delay time.Duration, label string) (Node, error) {
	if column.DataType.ID() != arrow.TIMESTAMP {
		return nil, fmt.Errorf("the watermark column %s is %s; event time must be a TIMESTAMP", column.Name, columnar.TypeName(column.DataType))
	}
	if delay < 0 {
		return nil, fmt.Errorf("the watermark delay %s is negative", delay)
	}
	for _, mark := range EventTimes(input) {
		return nil, fmt.Errorf("the stream already has a watermark (%s); a second one on %s would redefine it", mark.Label, column.Name)
	}
	if label == "" {
		label = column.Name
		if s := streamsOf(input); len(s) > 0 {
			label = strings.Join(s, "+") + "." + column.Name
		}
	}
	return NewWatermark(input, column.ID, delay, label), nil
}

// streamsOf are the names of the streams a plan reads.
func streamsOf(n Node) []string {
	var names []string
	Walk(n, func(x Node) bool {
		if s, ok := x.(*StreamScan); ok && !slices.Contains(names, s.Stream.Name) {
			names = append(names, s.Stream.Name)
		}
		return true
	})
	return names
}

// GroupedData is a DataFrame with its grouping, waiting for the aggregates.
type GroupedData struct {
	input *DataFrame
	keys  []expr.Term
	// sets makes grouping sets of what each key is; nil groups by all keys.
	sets func(parts []GroupingSet) []GroupingSet
}

// Agg computes aggregates for every group. The output is the keys, then the
// aggregates; a window is one key, a struct of start and end. Terms may compute with
// aggregates, as in Sum(a).Div(Count()); beside Rollup, Cube and GroupingSets,
// grouping(keys…) says which keys a row is without.
func (g *GroupedData) Agg(aggs ...expr.Term) *DataFrame {
	if g == nil {
		return FailedDataFrame(nil)
	}
	return g.input.then("agg", func(d *DataFrame) (Node, error) {
		keyed, keys, shown, err := d.groupKeys(g.keys)
		if err != nil {
			return nil, err
		}
		if g.sets != nil {
			return keyed.aggregateSets(keys, shown, g.sets, aggs)
		}
		seen := idSet{}
		for i, k := range keys {
			keys[i] = seen.add(k)
		}
		outputs, err := keyed.outputs(aggs, seen, nil)
		if err != nil {
			return nil, err
		}
		node, err := BuildAggregate(d.reg, keyed.node, keys, outputs)
		if err != nil || len(shown) == len(keys) {
			return node, err
		}
		return withBounds(node, keys, shown), nil
	})
}

// outputs types what an aggregate computes.
func (d *DataFrame) outputs(aggs []expr.Term, seen idSet, grouping func([]expr.Expr) (expr.Expr, error)) ([]expr.Named, error) {
	var outputs []expr.Named
	for _, t := range aggs {
		if t.Err() != nil {
			return nil, t.Err()
		}
		r := d.resolver()
		r.Aggregates, r.Grouping = true, grouping
		e, err := r.Resolve(t.Expr)
		if err != nil {
			return nil, err
		}
		outputs = append(outputs, seen.add(name(e, t.Name)))
	}
	return outputs, nil
}

// withBounds puts the structs of windows in the place of their bounds.
func withBounds(node Node, keys []expr.Named, shown []shownKey) Node {
	columns := node.Schema().Columns
	var list []expr.Named
	for _, s := range shown {
		if s.window == "" {
			list = append(list, expr.Pass(columns[s.at]))
			continue
		}
		list = append(list, expr.As(windowStruct(columns[s.at], columns[s.at+1]), s.window))
	}
	for _, c := range columns[len(keys):] {
		list = append(list, expr.Pass(c))
	}
	return NewProject(node, list)
}

func windowStruct(start, end expr.Expr) expr.Expr {
	return expr.NewStruct([]string{"start", "end"}, []expr.Expr{start, end})
}

// Count counts the rows of every group, as column count.
func (g *GroupedData) Count() *DataFrame { return g.Agg(expr.Func("count").As("count")) }

// shownKey is a grouping key as the result shows it: the one at a position among the
// keys, or the two from there that are the bounds of a window, under its name.
type shownKey struct {
	at     int
	window string
}

// groupKeys types grouping terms. A window becomes a Window node below and two keys,
// its bounds; so does the struct of a window that an earlier grouping made.
func (d *DataFrame) groupKeys(terms []expr.Term) (*DataFrame, []expr.Named, []shownKey, error) {
	var keys []expr.Named
	var shown []shownKey
	bounds := func(name string, start, end expr.Named) {
		shown = append(shown, shownKey{len(keys), name})
		keys = append(keys, start, end)
	}
	for _, t := range terms {
		if t.Err() != nil {
			return nil, nil, nil, t.Err()
		}
		if u, ok := t.Expr.(*expr.Unresolved); ok && u.Window != nil {
			w, err := d.window(u)
			if err != nil {
				return nil, nil, nil, err
			}
			w.Grouped = w.IsSession()
			d = &DataFrame{node: w, reg: d.reg}
			bounds(cmp.Or(t.Name, u.Func), expr.Pass(w.Start), expr.Pass(w.End))
			continue
		}
		n, err := d.named(t, false)
		if err != nil {
			return nil, nil, nil, err
		}
		if isWindowStruct(n.Expr.Type()) {
			bounds(n.Name, expr.As(expr.NewField(n.Expr, 0), "window_start"), expr.As(expr.NewField(n.Expr, 1), "window_end"))
			continue
		}
		shown = append(shown, shownKey{at: len(keys)})
		keys = append(keys, n)
	}
	return d, keys, shown, nil
}

// window types the call of a window. The time of one that is over the struct of
// another is that window's last instant.
func (d *DataFrame) window(u *expr.Unresolved) (*Window, error) {
	time, err := d.resolve(expr.Term{Expr: u.Args[0]}, false)
	if err != nil {
		return nil, err
	}
	if isWindowStruct(time.Type()) {
		if time, err = expr.NewCall(d.reg, WindowTimeFunction, expr.NewField(time, 1)); err != nil {
			return nil, err
		}
	}
	spec := *u.Window
	if spec.Gap != nil {
		if spec.Gap, err = d.resolve(expr.Term{Expr: spec.Gap}, false); err != nil {
			return nil, err
		}
	}
	return AssignWindow(d.node, time, spec, nil)
}

// isWindowStruct says whether a type is that of a window: a struct of two instants,
// start and end.
func isWindowStruct(dt arrow.DataType) bool {
	t, ok := dt.(*arrow.StructType)
	return ok && t.NumFields() == 2 && t.Field(0).Name == "start" && t.Field(1).Name == "end" &&
		t.Field(0).Type.ID() == arrow.TIMESTAMP && t.Field(1).Type.ID() == arrow.TIMESTAMP
}

// isPositiveGap says whether a constant, if it is an interval, is longer than nothing. Texts
// are read for each row.
func isPositiveGap(l *expr.Literal) bool {
	a, ok := l.Value.(*array.MonthDayNanoInterval)
	if !ok || l.IsNull() {
		return true
	}
	v := a.Value(0)
	return v.Months >= 0 && v.Days >= 0 && v.Nanoseconds >= 0 && (v.Months > 0 || v.Days > 0 || v.Nanoseconds > 0)
}

// AssignWindow checks the shape of a window and assigns it to the rows of input.
func AssignWindow(input Node, time expr.Expr, spec expr.WindowSpec, keys []expr.Expr) (*Window, error) {
	if time.Type().ID() == arrow.DATE32 {
		time = expr.CastTo(time, columnar.Timestamp)
	}
	if time.Type().ID() != arrow.TIMESTAMP {
		return nil, fmt.Errorf("the time of a window is a TIMESTAMP, but %s is %s", time, columnar.TypeName(time.Type()))
	}
	if spec.Gap != nil {
		if id := spec.Gap.Type().ID(); id != arrow.INTERVAL_MONTH_DAY_NANO && id != arrow.STRING && id != arrow.NULL {
			return nil, fmt.Errorf("the gap of a session is an INTERVAL or a text, but %s is %s", spec.Gap, columnar.TypeName(spec.Gap.Type()))
		}
		if l, ok := spec.Gap.(*expr.Literal); ok && !isPositiveGap(l) {
			return nil, errors.New("the gap of a session must be positive")
		}
		return NewWindow(input, time, spec, keys), nil
	}
	switch {
	case spec.Size <= 0:
		return nil, fmt.Errorf("the size of a window must be positive")
	case spec.Slide <= 0:
		return nil, fmt.Errorf("the slide of a window must be positive")
	case spec.Slide > spec.Size:
		return nil, fmt.Errorf("the slide of a window may not be longer than its size: rows between windows would be lost")
	case spec.Size/spec.Slide > MostWindows:
		return nil, fmt.Errorf("a row would be in %d windows, more than %d; take a longer slide", spec.Size/spec.Slide, MostWindows)
	case spec.Start <= -spec.Slide || spec.Start >= spec.Slide:
		return nil, fmt.Errorf("the start of a window must be shorter than its slide")
	}
	return NewWindow(input, time, spec, keys), nil
}

// BuildAggregate aggregates input by keys and computes outputs, expressions over keys
// and aggregate calls. The result has the keys, then the outputs.
func BuildAggregate(reg *function.Registry, input Node, keys, outputs []expr.Named) (Node, error) {
	var aggs []expr.Named
	plain := true
	finish := make([]expr.Named, 0, len(keys)+len(outputs))
	for _, k := range keys {
		finish = append(finish, expr.Pass(k.Column()))
	}
	for _, o := range outputs {
		if _, ok := o.Expr.(*expr.Agg); ok {
			aggs = append(aggs, o)
			finish = append(finish, expr.Pass(o.Column()))
			continue
		}
		plain = false
		e, err := ExtractAggregates(o.Expr, keys, &aggs)
		if err != nil {
			return nil, err
		}
		o.Expr = e
		finish = append(finish, o)
	}
	agg, err := Group(reg, input, keys, aggs)
	if plain || err != nil {
		return agg, err
	}
	for _, f := range finish {
		for _, id := range expr.Columns(f.Expr) {
			if agg.Schema().Index(id) < 0 {
				return nil, fmt.Errorf("%s is neither grouped by nor aggregated", f.Expr)
			}
		}
	}
	return NewProject(agg, finish), nil
}

// ExtractAggregates replaces the aggregate calls in e by columns, adding those not
// yet there to aggs, and the key expressions by the keys' columns.
func ExtractAggregates(e expr.Expr, keys []expr.Named, aggs *[]expr.Named) (expr.Expr, error) {
	for _, k := range keys {
		if expr.Equal(e, k.Expr) {
			return k.Column(), nil
		}
	}
	if a, ok := e.(*expr.Agg); ok {
		for _, known := range *aggs {
			if expr.Same(known.Expr, a) {
				return known.Column(), nil
			}
		}
		n := expr.As(a, a.String())
		*aggs = append(*aggs, n)
		return n.Column(), nil
	}
	children := e.Children()
	if len(children) == 0 {
		return e, nil
	}
	replaced := make([]expr.Expr, len(children))
	for i, c := range children {
		var err error
		if replaced[i], err = ExtractAggregates(c, keys, aggs); err != nil {
			return nil, err
		}
	}
	return e.WithChildren(replaced), nil
}
