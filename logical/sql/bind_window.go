package sql

import (
	"fmt"

	"github.com/apache/arrow-go/v18/arrow"

	"github.com/tidemill/tidemill/columnar"
	"github.com/tidemill/tidemill/logical"
	"github.com/tidemill/tidemill/logical/expr"
	"github.com/tidemill/tidemill/logical/sql/ast"
)

// windowUse is the window(…) or session_window(…) of a SELECT.
type windowUse struct {
	name  string // window or session_window: how the struct is called
	node  *logical.Window
	value expr.Expr // the struct
}

// windowCall binds window(ts, size [, slide [, start]]) and session_window(ts, gap).
// The rows get their windows above FROM and WHERE; the value is the struct of bounds.
func (e *env) windowCall(n *ast.Call) (expr.Expr, error) {
	name := lower(n.Name.Text)
	if e.sel == nil || e.within != "" {
		return nil, e.b.hinted(n, "use it in GROUP BY or in the select list", "%s cannot stand in %s", name, e.clause)
	}
	for _, a := range n.Args {
		if a.Name != nil {
			return nil, e.b.errorf(a, "%s takes its arguments by position, not by name", name)
		}
	}
	if err := e.plainCall(n, name); err != nil {
		return nil, err
	}
	if name == "window" && (len(n.Args) < 2 || len(n.Args) > 4) {
		return nil, e.b.hinted(n, "window(ts, INTERVAL '1 minute')", "window takes a time, a size, and if wanted a slide and a start")
	}
	if name == "session_window" && len(n.Args) != 2 {
		return nil, e.b.hinted(n, "session_window(ts, INTERVAL '5 minutes')", "session_window takes a time and a gap")
	}
	time, err := e.windowInput(n.Args[0].Value)
	if err != nil {
		return nil, err
	}
	var spec expr.WindowSpec
	if name == "session_window" {
		spec.Gap, err = e.gap(n.Args[1].Value)
	} else {
		spec, err = e.b.windowSpec(values(n.Args[1:]), false)
	}
	if err != nil {
		return nil, err
	}
	return e.sel.useWindow(n, name, time, spec)
}

func values(args []*ast.Arg) []ast.Expr {
	out := make([]ast.Expr, len(args))
	for i, a := range args {
		out[i] = a.Value
	}
	return out
}

// useWindow puts the window on the plan, or finds that it is there.
func (sel *selection) useWindow(n ast.Node, name string, time expr.Expr, spec expr.WindowSpec) (expr.Expr, error) {
	if w := sel.window; w != nil {
		same := w.name == name && expr.Equal(w.node.Time, expr.CastTo(time, columnar.Timestamp)) &&
			w.node.Spec.Size == spec.Size && w.node.Spec.Slide == spec.Slide && w.node.Spec.Start == spec.Start &&
			(spec.Gap == nil || expr.Equal(w.node.Spec.Gap, spec.Gap))
		if !same {
			return nil, sel.b.unsupported(n, "a second, different window in one SELECT", "", "compute one of them in a subquery in FROM")
		}
		return w.value, nil
	}
	used := map[expr.ID]bool{}
	for _, id := range expr.Columns(time) {
		used[id] = true
	}
	if spec.Gap != nil {
		for _, id := range expr.Columns(spec.Gap) {
			used[id] = true
		}
	}
	sel.attachScalars(func(id expr.ID) bool { return used[id] })
	spec.Place = expr.Place{Source: sel.b.source(), Offset: n.Pos()}
	w, err := logical.AssignWindow(sel.node, time, spec, nil)
	if err != nil {
		return nil, sel.b.wrap(n, err)
	}
	w.Grouped = w.IsSession() && sel.s.GroupBy != nil
	sel.node = w
	sel.b.remember(w)
	value := structOf([]string{"start", "end"}, []expr.Expr{w.Start, w.End})
	sel.window = &windowUse{name: name, node: w, value: value}
	return value, nil
}

// remember lets the bounds of a window be recognised in GROUP BY.
func (b *binder) remember(w *logical.Window) {
	b.windows[w.Start.ID], b.windows[w.End.ID] = w, w
}

// windowInput binds the time of a window; of the struct of a window around it is the
// window's last instant.
func (e *env) windowInput(x ast.Expr) (expr.Expr, error) {
	v, err := e.bind(x)
	if err != nil {
		return nil, err
	}
	if w := e.windowOf(x, v); w != nil {
		return e.call(x, logical.WindowTimeFunction, w.end)
	}
	return v, nil
}

// windowTime binds window_time(w): the last instant of a window, given as its struct
// or its end.
func (e *env) windowTime(n *ast.Call) (expr.Expr, error) {
	if len(n.Args) != 1 || n.Args[0].Name != nil {
		return nil, e.b.errorf(n, "window_time takes a window")
	}
	v, err := e.bind(n.Args[0].Value)
	if err != nil {
		return nil, err
	}
	if w := e.windowOf(n.Args[0].Value, v); w != nil {
		v = w.end
	} else if t, ok := v.Type().(*arrow.StructType); ok {
		if at, matches := columnar.Lookup(arrow.NewSchema(t.Fields(), nil), "end"); matches == 1 {
			v = fieldOf(v, at)
		}
	}
	return e.call(n, logical.WindowTimeFunction, v)
}

// windowOf gives the bounds of an expression that is the struct of a window, as made
// here or passed on by a subquery; nil for anything else.
func (e *env) windowOf(_ ast.Expr, x expr.Expr) *bounds {
	switch n := x.(type) {
	case *expr.Call:
		if n.Func.Name != structName || len(n.Args) != 2 {
			return nil
		}
		start, ok1 := n.Args[0].(*expr.Column)
		end, ok2 := n.Args[1].(*expr.Column)
		if !ok1 || !ok2 {
			return nil
		}
		if w := e.b.windows[start.ID]; w != nil && w.Start.ID == start.ID && w.End.ID == end.ID {
			return &bounds{start, end}
		}
	case *expr.Column:
		if e.rel == nil || len(e.b.windows) == 0 {
			return nil
		}
		for _, c := range e.rel.columns {
			if c.ID == n.ID {
				return c.window
			}
		}
	}
	return nil
}

// windowSpec reads size, slide and start (or, for HOP, slide and size).
func (b *binder) windowSpec(args []ast.Expr, slideFirst bool) (expr.WindowSpec, error) {
	names := []string{"size", "slide", "start"}
	if slideFirst {
		names[0], names[1] = names[1], names[0]
	}
	var v [3]int64
	for i, x := range args {
		var err error
		if v[i], err = b.length(x, names[i]); err != nil {
			return expr.WindowSpec{}, err
		}
		if v[i] <= 0 && names[i] != "start" {
			return expr.WindowSpec{}, b.errorf(x, "the %s of a window must be positive", names[i])
		}
	}
	if slideFirst {
		v[0], v[1] = v[1], v[0]
	}
	if len(args) == 1 {
		v[1] = v[0]
	}
	spec := expr.WindowSpec{Size: v[0], Slide: v[1], Start: v[2]}
	if spec.Slide > spec.Size {
		return spec, b.errorf(args[1], "the slide of a window may not be longer than its size: rows between windows would be lost")
	}
	if spec.Size/spec.Slide > logical.MostWindows {
		return spec, b.errorf(args[1], "a row would be in %d windows, more than %d; take a longer slide", spec.Size/spec.Slide, logical.MostWindows)
	}
	// The start shifts the grid, so only its place within one slide matters.
	spec.Start %= spec.Slide
	return spec, nil
}

// length reads an interval written out, in microseconds.
func (b *binder) length(x ast.Expr, what string) (int64, error) {
	v, err := b.constantInterval(x, "the "+what+" of a window")
	if err != nil {
		return 0, err
	}
	us, err := microseconds(v)
	if err != nil {
		return 0, b.errorf(x, "the %s of a window: %s", what, err)
	}
	return us, nil
}

// constantInterval reads INTERVAL '…', a text, or either with a minus sign.
func (b *binder) constantInterval(x ast.Expr, what string) (arrow.MonthDayNanoInterval, error) {
	switch n := ast.Unparen(x).(type) {
	case *ast.Interval:
		return b.interval(n)
	case *ast.String:
		v, err := columnar.ParseInterval(n.Value)
		return v, b.wrap(n, err)
	case *ast.Unary:
		if n.Op == "-" {
			v, err := b.constantInterval(n.X, what)
			return arrow.MonthDayNanoInterval{Months: -v.Months, Days: -v.Days, Nanoseconds: -v.Nanoseconds}, err
		}
	}
	return arrow.MonthDayNanoInterval{}, b.hinted(x, "INTERVAL '10 seconds'", "%s must be an interval written out", what)
}

// maxGapDays leaves room for the end of a session, its last time and the gap.
const maxGapDays = 100_000 * 366

// gap binds the gap of a session: an interval or a text, fixed or of each row.
func (e *env) gap(x ast.Expr) (expr.Expr, error) {
	fixed := ast.Unparen(x)
	if u, ok := fixed.(*ast.Unary); ok && u.Op == "-" {
		fixed = ast.Unparen(u.X)
	}
	switch fixed.(type) {
	case *ast.Interval, *ast.String:
		v, err := e.b.constantInterval(x, "the gap of a session")
		if err != nil {
			return nil, err
		}
		if !positive(v) {
			return nil, e.b.errorf(x, "the gap of a session must be positive")
		}
		if int64(v.Months)*31+int64(v.Days) > maxGapDays || v.Nanoseconds/1000/columnar.MicrosPerDay > maxGapDays {
			return nil, e.b.errorf(x, "the gap of a session is too long: no row could be in one")
		}
		return mustLiteral(v), nil
	}
	return e.bind(x)
}

func positive(v arrow.MonthDayNanoInterval) bool {
	return v.Months >= 0 && v.Days >= 0 && v.Nanoseconds >= 0 && v != arrow.MonthDayNanoInterval{}
}

// windowTable binds TUMBLE, HOP and SESSION in FROM, in our spelling and Flink's.
func (b *binder) windowTable(t *ast.TableFunc, outer *env) (*relation, error) {
	name := lower(t.Name.Text)
	args, err := b.windowArgs(t, name)
	if err != nil {
		return nil, err
	}
	in, keys, err := b.tableArgument(args[0], outer)
	if err != nil {
		return nil, err
	}
	e := &env{b: b, rel: in, clause: upper(name)}
	time, err := e.windowInput(descriptor(args[1]))
	if err != nil {
		return nil, err
	}
	var spec expr.WindowSpec
	var partition []expr.Expr
	if name == "session" {
		if spec.Gap, err = e.gap(args[2]); err != nil {
			return nil, err
		}
		if partition, err = e.bindAll(append(keys, args[3:]...)); err != nil {
			return nil, err
		}
	} else {
		if name == "tumble" && len(args) == 4 {
			// TUMBLE(t, ts, size, offset): the offset is the start.
			args = []ast.Expr{args[0], args[1], args[2], args[2], args[3]}
		}
		if spec, err = b.windowSpec(args[2:], name == "hop"); err != nil {
			return nil, err
		}
	}
	spec.Place = expr.Place{Source: b.source(), Offset: t.Pos()}
	w, err := logical.AssignWindow(in.node, time, spec, partition)
	if err != nil {
		return nil, b.wrap(t, err)
	}
	b.remember(w)
	return b.windowColumns(in, w), nil
}

// windowColumns are the columns of a table with those of its window; a column of the
// table that has such a name already is hidden by it.
func (b *binder) windowColumns(in *relation, w *logical.Window) *relation {
	r := &relation{node: w, files: in.files}
	table := ""
	for _, c := range in.columns {
		table = c.table
		if c.name != w.Start.Name && c.name != w.End.Name {
			r.columns = append(r.columns, c)
		}
	}
	for _, c := range []*expr.Column{w.Start, w.End} {
		r.columns = append(r.columns, column{Column: c, table: table, name: c.Name})
	}
	return r
}

// windowForms are how the table functions are called, and the names that Flink gives
// their arguments.
var windowForms = map[string]struct {
	form  string
	names []string
	least int
	most  int
}{
	"tumble":  {"TUMBLE(t, ts, size)", []string{"data", "timecol", "size", "offset"}, 3, 4},
	"hop":     {"HOP(t, ts, slide, size)", []string{"data", "timecol", "slide", "size", "offset"}, 4, 5},
	"session": {"SESSION(t, ts, gap, key, …)", []string{"data", "timecol", "gap"}, 3, 100},
}

// windowArgs puts arguments given by name in their places.
func (b *binder) windowArgs(t *ast.TableFunc, name string) ([]ast.Expr, error) {
	f := windowForms[name]
	var args []ast.Expr
	for i, a := range t.Args {
		at := i
		if a.Name != nil {
			at = indexOf(f.names, lower(a.Name.Text))
			if at < 0 {
				return nil, b.errorf(a.Name, "%s has no argument %s%s", upper(name), a.Name.Text, columnar.DidYouMean(a.Name.Text, f.names))
			}
		}
		for len(args) <= at {
			args = append(args, nil)
		}
		if args[at] != nil {
			return nil, b.errorf(a, "this argument is given twice")
		}
		args[at] = a.Value
	}
	for _, a := range args {
		if a == nil {
			return nil, b.hinted(t, f.form, "an argument of %s is missing", upper(name))
		}
	}
	if len(args) < f.least || len(args) > f.most {
		return nil, b.hinted(t, f.form, "%s does not take %s", upper(name), count(len(args), "argument"))
	}
	return args, nil
}

// descriptor takes the column out of DESCRIPTOR(ts).
func descriptor(x ast.Expr) ast.Expr {
	if c, ok := x.(*ast.Call); ok && lower(c.Name.Text) == "descriptor" && len(c.Args) == 1 {
		return c.Args[0].Value
	}
	return x
}

// tableArgument binds the table that a table function is given: a name, a path, a
// query, or TABLE t with partition keys.
func (b *binder) tableArgument(x ast.Expr, outer *env) (*relation, []ast.Expr, error) {
	switch n := ast.Unparen(x).(type) {
	case *ast.TableArg:
		r, err := b.table(n.Table, outer)
		return r, n.Partition, err
	case *ast.Name:
		r, err := b.table(&ast.TableName{Span: n.Span, Parts: n.Parts}, outer)
		return r, nil, err
	case *ast.String:
		r, err := b.table(&ast.TablePath{Span: n.Span, Path: n}, outer)
		return r, nil, err
	case *ast.Subquery:
		r, err := b.table(&ast.TableQuery{Span: n.Span, Query: n.Query}, outer)
		return r, nil, err
	case *ast.Call:
		r, err := b.table(&ast.TableFunc{Span: n.Span, Name: n.Name, Args: n.Args}, outer)
		return r, nil, err
	}
	return nil, nil, b.hinted(x, "a name, a path in quotes, or a query in parentheses", "expected a table, found %s", describe(x))
}

func describe(x ast.Expr) string { return fmt.Sprintf("%q", clip(ast.Print(x), 60)) }
