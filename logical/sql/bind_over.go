package sql

import (
	"strings"

	"github.com/apache/arrow-go/v18/arrow"

	"github.com/tidemill/tidemill/columnar"
	"github.com/tidemill/tidemill/logical"
	"github.com/tidemill/tidemill/logical/expr"
	"github.com/tidemill/tidemill/logical/sql/ast"
)

// windowFunction is a function that exists with OVER only, or means something of its
// own there.
type windowFunction struct {
	name     string // as expr.Over has it
	min, max int    // arguments
	ordered  bool   // needs ORDER BY
	nulls    bool   // takes IGNORE NULLS
}

var windowFunctions = map[string]windowFunction{
	"row_number":   {name: "row_number"},
	"rank":         {name: "rank", ordered: true},
	"dense_rank":   {name: "dense_rank", ordered: true},
	"percent_rank": {name: "percent_rank", ordered: true},
	"cume_dist":    {name: "cume_dist", ordered: true},
	"ntile":        {name: "ntile", min: 1, max: 1, ordered: true},
	"lag":          {name: "lag", min: 1, max: 3, ordered: true, nulls: true},
	"lead":         {name: "lead", min: 1, max: 3, ordered: true, nulls: true},
	"first_value":  {name: "first_value", min: 1, max: 1, nulls: true},
	"first":        {name: "first_value", min: 1, max: 1, nulls: true},
	"last_value":   {name: "last_value", min: 1, max: 1, nulls: true},
	"last":         {name: "last_value", min: 1, max: 1, nulls: true},
	"nth_value":    {name: "nth_value", min: 2, max: 2, nulls: true},
}

// over binds a call with OVER.
func (e *env) over(n *ast.Call, name string) (expr.Expr, error) {
	switch {
	case e.within != "":
		return nil, e.b.hinted(n, "compute it in a subquery in FROM", "%s … OVER cannot stand inside %s", name, e.within)
	case !e.windows:
		return nil, e.b.hinted(n, "filter by it with QUALIFY, or compute it in a subquery in FROM", "%s cannot hold a window function", e.clause)
	case len(n.OrderBy) > 0 || len(n.WithinGroup) > 0:
		return nil, e.b.unsupported(n, "ORDER BY inside "+name+" … OVER", "", "put it into the window: OVER (ORDER BY …)")
	}
	in := *e
	in.windows = false
	in.clause = "a window function"
	o := &expr.Over{}
	spec, err := e.windowOver(n.Over)
	if err != nil {
		return nil, err
	}
	if err := in.window(o, spec); err != nil {
		return nil, err
	}
	if f, ok := windowFunctions[name]; ok {
		return o, in.overFunction(o, n, name, f)
	}
	if _, ok := e.b.p.Functions.Aggregate(name); !ok {
		if _, scalar := e.b.p.Functions.Scalar(name); scalar {
			return nil, e.b.errorf(n, "%s is no window function and no aggregate: it takes no OVER", name)
		}
		return nil, e.unknownFunction(n, name)
	}
	if o.Agg, err = in.aggregateCall(&in, n, name); err != nil {
		return nil, err
	}
	o.DataType = o.Agg.Type()
	if o.Agg.Distinct && o.Frame.Low.Kind != expr.UnboundedPreceding {
		return nil, e.b.unsupported(n, "DISTINCT over a frame that moves", "", "begin the frame with UNBOUNDED PRECEDING")
	}
	return o, nil
}

// overFunction binds the arguments of a window function that is no aggregate.
func (e *env) overFunction(o *expr.Over, n *ast.Call, name string, f windowFunction) error {
	switch {
	case n.Distinct:
		return e.b.errorf(n, "%s takes no DISTINCT", name)
	case n.Filter != nil:
		return e.b.hinted(n, "use a CASE as its argument", "%s is not an aggregate function and takes no FILTER", name)
	case n.Nulls != ast.NullsUnsaid && !f.nulls:
		return e.b.errorf(n, "%s takes no IGNORE NULLS", name)
	case len(n.Args) < f.min || len(n.Args) > f.max:
		return e.b.errorf(n, "%s takes %s", name, argumentCount(f))
	case f.ordered && len(o.Order) == 0:
		return e.b.hinted(n, name+"(…) OVER (ORDER BY …)", "%s needs an ORDER BY in its window", name)
	}
	o.Func, o.IgnoreNulls = f.name, n.Nulls == ast.IgnoreNulls
	args, err := e.arguments(n, name)
	if err != nil {
		return err
	}
	switch f.name {
	case "ntile":
		o.DataType = columnar.Int64
		args[0], err = e.wholeArgument(n, 0, args[0])
	case "lag", "lead":
		o.DataType = args[0].Type()
		args, err = e.shiftArguments(o, n, args)
	case "nth_value":
		o.DataType = args[0].Type()
		args[1], err = e.wholeArgument(n, 1, args[1])
	case "first_value", "last_value":
		o.DataType = args[0].Type()
	case "percent_rank", "cume_dist":
		o.DataType = columnar.Float64
	default:
		o.DataType = columnar.Int64
	}
	o.Args = args
	return err
}

func argumentCount(f windowFunction) string {
	switch {
	case f.max == 0:
		return "no arguments"
	case f.min == f.max:
		return count(f.min, "argument")
	}
	return itoa(f.min) + " to " + count(f.max, "argument")
}

// wholeArgument makes argument i a BIGINT.
func (e *env) wholeArgument(n *ast.Call, i int, x expr.Expr) (expr.Expr, error) {
	if !columnar.IsInteger(x.Type()) {
		return nil, e.b.errorf(n.Args[i], "%s takes a whole number here, not %s", lower(n.Name.Text), columnar.TypeName(x.Type()))
	}
	return expr.CastTo(x, columnar.Int64), nil
}

// shiftArguments are the value, the offset and, if there is one, the default of lag and
// lead, of the value's type.
func (e *env) shiftArguments(o *expr.Over, n *ast.Call, args []expr.Expr) ([]expr.Expr, error) {
	if len(args) == 1 {
		return append(args, mustLiteral(int64(1))), nil
	}
	var err error
	if args[1], err = e.wholeArgument(n, 1, args[1]); err != nil || len(args) == 2 {
		return args, err
	}
	met, err := e.meet([]expr.Expr{args[0], args[2]}, []ast.Expr{n.Args[0].Value, n.Args[2].Value})
	if err != nil {
		return nil, err
	}
	common, ok := columnar.Common(met[0].Type(), met[1].Type())
	if !ok {
		return nil, e.b.hinted(n.Args[2], "cast it", "the default is %s, the value %s", columnar.TypeName(met[1].Type()), columnar.TypeName(met[0].Type()))
	}
	o.DataType = common
	args[0], args[2] = expr.CastTo(met[0], common), expr.CastTo(met[1], common)
	return args, nil
}

// windowOver is what OVER says: a window of the WINDOW clause, or one of its own.
func (e *env) windowOver(o *ast.Over) (*ast.WindowSpec, error) {
	if o.Name != nil {
		return e.namedWindow(o.Name, nil)
	}
	return e.inherit(o.Spec, nil)
}

// namedWindow is a window of the WINDOW clause; seen are those that build on it.
func (e *env) namedWindow(name *ast.Ident, seen []string) (*ast.WindowSpec, error) {
	var names []string
	for _, w := range e.sel.s.Windows {
		if !strings.EqualFold(w.Name.Text, name.Text) {
			names = append(names, w.Name.Text)
			continue
		}
		for _, s := range seen {
			if strings.EqualFold(s, name.Text) {
				return nil, e.b.errorf(name, "window %s builds on itself", name.Text)
			}
		}
		return e.inherit(w.Spec, append(seen, name.Text))
	}
	return nil, e.b.errorf(name, "there is no window %s in the WINDOW clause%s", name.Text, columnar.DidYouMean(name.Text, names))
}

// inherit adds what a window takes over from the one it builds on.
func (e *env) inherit(s *ast.WindowSpec, seen []string) (*ast.WindowSpec, error) {
	if s.Base == nil {
		return s, nil
	}
	base, err := e.namedWindow(s.Base, seen)
	if err != nil {
		return nil, err
	}
	switch {
	case len(s.Partition) > 0:
		return nil, e.b.errorf(s.Partition[0], "the window builds on %s and cannot be partitioned again", s.Base.Text)
	case len(s.OrderBy) > 0 && len(base.OrderBy) > 0:
		return nil, e.b.errorf(s.OrderBy[0], "the window builds on %s, which has an ORDER BY already", s.Base.Text)
	case base.Frame != nil && (s.Frame != nil || len(s.OrderBy) > 0):
		return nil, e.b.errorf(s, "the window builds on %s, which has a frame already", s.Base.Text)
	}
	n := *s
	n.Base, n.Partition = nil, base.Partition
	if len(n.OrderBy) == 0 {
		n.OrderBy = base.OrderBy
	}
	if n.Frame == nil {
		n.Frame = base.Frame
	}
	return &n, nil
}

// window binds partition, order and frame.
func (e *env) window(o *expr.Over, s *ast.WindowSpec) error {
	for _, p := range s.Partition {
		x, err := e.windowKey(p, "partitioned by")
		if err != nil {
			return err
		}
		o.Partition = append(o.Partition, x)
	}
	for _, item := range s.OrderBy {
		if item.All {
			return e.b.errorf(item, "a window is ordered by expressions, not by ALL")
		}
		x, err := e.windowKey(item.X, "ordered by")
		if err != nil {
			return err
		}
		k := sortKey(x, item)
		o.Order = append(o.Order, expr.Order{Expr: x, Descending: k.Descending, NullsFirst: k.NullsFirst})
	}
	if s.Frame == nil {
		o.Frame = expr.WholePartition
		if len(o.Order) > 0 {
			o.Frame = expr.Frame{Unit: expr.Range, Low: expr.Bound{Kind: expr.UnboundedPreceding}, High: expr.Bound{Kind: expr.CurrentRow}}
		}
		return nil
	}
	return e.frame(o, s.Frame)
}

func (e *env) windowKey(x ast.Expr, how string) (expr.Expr, error) {
	k, err := e.bind(x)
	if err != nil {
		return nil, err
	}
	if k.Type().ID() == arrow.MAP {
		return nil, e.b.errorf(x, "a window cannot be %s values of type %s", how, columnar.TypeName(k.Type()))
	}
	return k, nil
}

// frame binds ROWS, RANGE or GROUPS.
func (e *env) frame(o *expr.Over, f *ast.Frame) error {
	unit := map[string]expr.FrameUnit{"ROWS": expr.Rows, "RANGE": expr.Range, "GROUPS": expr.Groups}[f.Unit]
	o.Frame = expr.Frame{Unit: unit, Low: expr.Bound{Kind: expr.BoundKind(f.Low.Kind)}, High: expr.Bound{Kind: expr.CurrentRow}}
	if f.HasEnd {
		o.Frame.High.Kind = expr.BoundKind(f.High.Kind)
	}
	low, high := o.Frame.Low.Kind, o.Frame.High.Kind
	switch {
	case f.Exclude != "" && f.Exclude != "NO OTHERS":
		return e.b.unsupported(f, "EXCLUDE "+f.Exclude, "", "use two frames, or take the row's own value away again")
	case low == expr.UnboundedFollowing || high == expr.UnboundedPreceding || low > high:
		return e.b.hinted(f, "ROWS BETWEEN 1 PRECEDING AND CURRENT ROW", "the frame ends before it begins")
	case unit == expr.Groups && len(o.Order) == 0:
		return e.b.errorf(f, "a frame of GROUPS needs an ORDER BY in its window")
	}
	if unit == expr.Range {
		return e.rangeBounds(o, f)
	}
	for b, s := range map[*expr.Bound]ast.FrameBound{&o.Frame.Low: f.Low, &o.Frame.High: f.High} {
		if b.Kind != expr.Preceding && b.Kind != expr.Following {
			continue
		}
		n, ok := wholeNumber(s.Offset)
		if !ok || n < 0 {
			return e.b.hinted(s.Offset, "write the number out: ROWS 2 PRECEDING", "%s takes a whole number that is not negative", unit)
		}
		b.Offset = n
	}
	return nil
}

// rangeBounds binds the offsets of a RANGE frame: the key less or more each of them.
func (e *env) rangeBounds(o *expr.Over, f *ast.Frame) error {
	type end struct {
		b *expr.Bound
		s ast.FrameBound
	}
	var ends []end
	for _, x := range []end{{&o.Frame.Low, f.Low}, {&o.Frame.High, f.High}} {
		if x.b.Kind == expr.Preceding || x.b.Kind == expr.Following {
			ends = append(ends, x)
		}
	}
	if len(ends) == 0 {
		return nil
	}
	if len(o.Order) != 1 {
		return e.b.errorf(f, "a RANGE with an offset needs exactly one ORDER BY key in its window, this has %d", len(o.Order))
	}
	key := o.Order[0].Expr
	common := key.Type()
	switch {
	case common.ID() == arrow.INT64: // so that the offset cannot overflow
		key = expr.CastTo(key, columnar.Decimal(20, 0))
	case columnar.IsInteger(common):
		key = expr.CastTo(key, columnar.Int64)
	}
	common = key.Type()
	for _, x := range ends {
		offset, err := e.bind(x.s.Offset)
		if err != nil {
			return err
		}
		if len(expr.Columns(offset)) > 0 {
			return e.b.errorf(x.s.Offset, "the offset of a frame is a constant")
		}
		if u, ok := ast.Unparen(x.s.Offset).(*ast.Unary); ok && u.Op == "-" {
			return e.b.errorf(x.s.Offset, "the offset of a frame is not negative")
		}
		op := "+"
		if (x.b.Kind == expr.Preceding) != o.Order[0].Descending {
			op = "-"
		}
		value, err := e.call(x.s.Offset, op, key, e.timeText(offset, key))
		if err != nil {
			return err
		}
		t, ok := columnar.Common(common, value.Type())
		if !ok {
			return e.b.errorf(x.s.Offset, "the ORDER BY key is %s, which this offset does not move", columnar.TypeName(common))
		}
		common, x.b.Value = t, value
	}
	o.Frame.Key = expr.CastTo(key, common)
	for _, x := range ends {
		x.b.Value = expr.CastTo(x.b.Value, common)
	}
	return nil
}

// overs puts the window functions of the expressions on the plan, and their columns
// into the expressions.
func (sel *selection) overs(list []*expr.Expr) error {
	var found []expr.Named
	for _, x := range list {
		if *x == nil || !expr.HasOver(*x) {
			continue
		}
		n, err := expr.Transform(*x, func(x expr.Expr) (expr.Expr, error) {
			o, ok := x.(*expr.Over)
			if !ok {
				return x, nil
			}
			for _, f := range found {
				if expr.Equal(f.Expr, o) {
					return f.Column(), nil
				}
			}
			f := expr.As(o, o.String())
			found = append(found, f)
			return f.Column(), nil
		})
		if err != nil {
			return err
		}
		*x = n
	}
	for len(found) > 0 {
		var same, rest []expr.Named
		first := found[0].Expr.(*expr.Over)
		for _, f := range found {
			if first.SameWindow(f.Expr.(*expr.Over)) {
				same = append(same, f)
			} else {
				rest = append(rest, f)
			}
		}
		sel.node = logical.NewOver(sel.node, same)
		found = rest
	}
	return nil
}

// qualify binds QUALIFY.
func (sel *selection) qualify() (expr.Expr, error) {
	if sel.s.Qualify == nil {
		return nil, nil
	}
	return sel.env("QUALIFY", keyFirst).condition(sel.s.Qualify, "QUALIFY")
}

// refuseOver refuses a window function where there cannot be one, brought in by an alias
// or a position.
func (sel *selection) refuseOver(x expr.Expr, at ast.Node, clause string) error {
	if x == nil || !expr.HasOver(x) {
		return nil
	}
	return sel.b.hinted(at, "filter by it with QUALIFY, or compute it in a subquery in FROM", "%s cannot hold a window function", clause)
}
