package sql

import (
	"errors"
	"strings"

	"github.com/apache/arrow-go/v18/arrow"

	"github.com/tidemill/tidemill/columnar"
	"github.com/tidemill/tidemill/logical/expr"
	"github.com/tidemill/tidemill/logical/sql/ast"
)

// over binds a call with OVER.
func (e *env) over(n *ast.Call, name string) (expr.Expr, error) {
	switch {
	case e.within != "":
		return nil, e.b.hinted(n, "compute it in a subquery in FROM", "%s … OVER cannot stand inside %s", name, e.within)
	case !e.windows:
		return nil, e.b.hinted(n, "filter by it with QUALIFY, or compute it in a subquery in FROM", "%s cannot hold a window function", e.clause)
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
	if expr.IsRowFunction(name) {
		return o, in.overFunction(o, n, name)
	}
	if _, ok := e.b.p.Functions.Aggregate(name); !ok {
		if _, scalar := e.b.p.Functions.Scalar(name); scalar {
			return nil, e.b.errorf(n, "%s is no window function and no aggregate: it takes no OVER", name)
		}
		return nil, e.unknownFunction(n, name)
	}
	n, err = in.withinGroup(n, name)
	if err != nil {
		return nil, err
	}
	agg, err := in.aggregateCall(&in, n, name)
	if err != nil {
		return nil, err
	}
	if agg.Order, err = in.aggregateOrder(n, name, agg); err != nil {
		return nil, err
	}
	o.SetAggregate(agg)
	return o, nil
}

// overFunction binds the arguments of a window function that is no aggregate.
func (e *env) overFunction(o *expr.Over, n *ast.Call, name string) error {
	ignoreNulls := n.Nulls == ast.IgnoreNulls
	switch {
	case len(n.OrderBy) > 0 || len(n.WithinGroup) > 0:
		return e.b.hinted(n, "put it into the window: OVER (ORDER BY …)", "%s takes no ORDER BY inside", name)
	case n.Distinct:
		return e.b.errorf(n, "%s takes no DISTINCT", name)
	case n.Filter != nil:
		return e.b.hinted(n, "use a CASE as its argument", "%s is not an aggregate function and takes no FILTER", name)
	}
	if err := o.Check(name, len(n.Args), n.Nulls != ast.NullsUnsaid); err != nil {
		return e.overError(err, n)
	}
	args, err := e.arguments(n, name)
	if err != nil {
		return err
	}
	if len(args) == 3 { // lag and lead: the default is read as the value is
		met, err := e.meet([]expr.Expr{args[0], args[2]}, []ast.Expr{n.Args[0].Value, n.Args[2].Value})
		if err != nil {
			return err
		}
		args[0], args[2] = met[0], met[1]
	}
	at := make([]ast.Node, len(n.Args))
	for i, a := range n.Args {
		at[i] = a
	}
	return e.overError(o.SetFunction(name, args, ignoreNulls), n, at...)
}

// overError places what is wrong with a window function: at n, or at the argument meant.
func (e *env) overError(err error, n ast.Node, arguments ...ast.Node) error {
	var wrong *expr.OverError
	if !errors.As(err, &wrong) {
		return err
	}
	if wrong.Argument >= 0 {
		n = arguments[wrong.Argument]
	}
	return e.b.hinted(n, wrong.Hint, "%s", wrong.Text)
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
		x, err := e.bind(p)
		if err != nil {
			return err
		}
		o.Partition = append(o.Partition, x)
	}
	for _, item := range s.OrderBy {
		if item.All {
			return e.b.errorf(item, "a window is ordered by expressions, not by ALL")
		}
		x, err := e.windowOrder(item.X)
		if err != nil {
			return err
		}
		k := sortKey(x, item)
		o.Order = append(o.Order, expr.Order{Expr: x, Descending: k.Descending, NullsFirst: k.NullsFirst})
	}
	if s.Frame == nil {
		o.Frame = o.UsualFrame()
		return nil
	}
	return e.frame(o, s.Frame)
}

func (e *env) windowOrder(x ast.Expr) (expr.Expr, error) {
	k, err := e.bind(x)
	if err != nil {
		return nil, err
	}
	if k.Type().ID() == arrow.MAP {
		return nil, e.b.errorf(x, "a window cannot be ordered by values of type %s", columnar.TypeName(k.Type()))
	}
	return k, nil
}

// frame binds ROWS, RANGE or GROUPS.
func (e *env) frame(o *expr.Over, f *ast.Frame) error {
	unit := map[string]expr.FrameUnit{"ROWS": expr.Rows, "RANGE": expr.Range, "GROUPS": expr.Groups}[f.Unit]
	frame := expr.Frame{Unit: unit, Low: expr.Bound{Kind: expr.BoundKind(f.Low.Kind)}, High: expr.Bound{Kind: expr.CurrentRow}}
	frame.Exclude = map[string]expr.Exclusion{"CURRENT ROW": expr.ExcludeCurrentRow, "GROUP": expr.ExcludeGroup, "TIES": expr.ExcludeTies}[f.Exclude]
	if f.HasEnd {
		frame.High.Kind = expr.BoundKind(f.High.Kind)
	}
	if err := o.SetFrame(frame); err != nil {
		return e.overError(err, f)
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
	var offsets [2]expr.Expr
	for i, s := range []ast.FrameBound{f.Low, f.High} {
		if kind := expr.BoundKind(s.Kind); i == 1 && !f.HasEnd || kind != expr.Preceding && kind != expr.Following {
			continue
		}
		offset, err := e.bind(s.Offset)
		if err != nil {
			return err
		}
		if len(expr.Columns(offset)) > 0 {
			return e.b.errorf(s.Offset, "the offset of a frame is a constant")
		}
		offsets[i] = e.timeText(offset, o.RangeKey())
	}
	return e.overError(o.SetRange(e.b.p.Functions, offsets[0], offsets[1]), f, f.Low.Offset, f.High.Offset)
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
