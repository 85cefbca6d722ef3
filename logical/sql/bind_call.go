package sql

import (
	"github.com/apache/arrow-go/v18/arrow"

	"github.com/tidemill/tidemill/columnar"
	"github.com/tidemill/tidemill/logical"
	"github.com/tidemill/tidemill/logical/expr"
	"github.com/tidemill/tidemill/logical/sql/ast"
)

// callExpr binds a function call.
func (e *env) callExpr(n *ast.Call) (expr.Expr, error) {
	name := lower(n.Name.Text)
	if _, ok := generators[name]; ok {
		columns, err := e.generatorItems(n, name)
		if err != nil {
			return nil, err
		}
		if len(columns) > 1 {
			return nil, e.b.hinted(n, "let it stand alone in the select list, or in FROM", "%s has %d columns here and is no single value", name, len(columns))
		}
		return columns[0], nil
	}
	if several, err := e.severalBest(n, name); several != nil || err != nil {
		return several, err
	}
	if x, err := e.approximate(n, name); x != nil || err != nil {
		return x, err
	}
	if to := castFunctions[name]; to != "" && len(n.Args) == 1 && n.Over == nil {
		if _, known := e.b.p.Functions.Scalar(name); !known {
			return e.bind(&ast.Cast{Span: n.Span, X: n.Args[0].Value, Type: &ast.Type{Span: n.Name.Span, Name: to}})
		}
	}
	if n.Over != nil {
		return e.over(n, name)
	}
	if x, ok, err := e.special(n, name); ok {
		return x, err
	}
	if _, ok := e.b.p.Functions.Aggregate(name); ok {
		return e.aggregate(n, name)
	}
	if _, ok := e.b.p.Functions.Scalar(name); !ok {
		return nil, e.unknownFunction(n, name)
	}
	if err := e.plainCall(n, name); err != nil {
		return nil, err
	}
	args, err := e.arguments(n, name)
	if err != nil {
		return nil, err
	}
	return e.callTexts(n, name, args)
}

// special binds calls that are not plain functions of the registry; ok is false for
// all others.
func (e *env) special(n *ast.Call, name string) (x expr.Expr, ok bool, err error) {
	switch name {
	case "isnull":
		if len(n.Args) != 2 {
			return nil, false, nil
		}
		err = e.b.unsupported(n, "isnull of two values", "", "coalesce(x, 0)")
	case "window", "session_window":
		x, err = e.windowCall(n)
	case "window_time":
		x, err = e.windowTime(n)
	case "if", "iff":
		x, err = e.ifCall(n)
	case "nvl2":
		x, err = e.nvl2(n)
	case "nullif":
		x, err = e.nullIf(n)
	case "struct", "struct_pack", "row":
		x, err = e.structCall(n)
	case "named_struct":
		x, err = e.namedStruct(n)
	case "struct_extract":
		x, err = e.structExtract(n)
	case "grouping", "grouping_id":
		x, err = e.grouping(n, name)
	case "overlay":
		x, err = e.overlay(n)
	case "from_json":
		x, err = e.fromJSON(n)
	case "columns":
		x, err = e.columnsCall(n)
	case "to_number", "try_to_number":
		x, err = e.toNumber(n, name)
	case "list_aggregate", "list_aggr", "array_aggregate", "array_aggr":
		x, err = e.listAggregate(n, name)
	default:
		return nil, false, nil
	}
	return x, true, err
}

// elsewhere are functions that exist in other engines, and what to write here.
var elsewhere = map[string]string{
	"tumble": "GROUP BY window(ts, size), or FROM TUMBLE(t, ts, size)", "hop": "GROUP BY window(ts, size, slide), or FROM HOP(t, ts, slide, size)",
	"session": "GROUP BY session_window(ts, gap), or FROM SESSION(t, ts, gap)", "tumble_start": "window.start with GROUP BY window(ts, size)",
	"tumble_end": "window.end with GROUP BY window(ts, size)", "hop_start": "window.start with GROUP BY window(ts, size, slide)",
	"hop_end": "window.end with GROUP BY window(ts, size, slide)",
	"range":   "FROM range(n) for rows, sequence(0, n - 1) for an array", "getdate": "current_timestamp", "sysdate": "current_timestamp",
	"isnumeric": "try_cast(x AS DOUBLE) IS NOT NULL", "convert": "CAST(x AS type)", "safe_cast": "TRY_CAST(x AS type)",
	"charindex": "position(part IN text)", "top": "LIMIT n at the end of the query, behind ORDER BY",
	"version": "tidemill --version tells it", "datename": "strftime(ts, '%B')", "eomonth": "last_day(d)", "safe_divide": "try_divide(a, b)",
	"str_to_date": "strptime(x, format)", "logical_and": "bool_and(x)",
	"logical_or": "bool_or(x)", "generate_array": "sequence(start, stop)", "regexp_contains": "regexp_matches(text, pattern)",
	"proctime": "current_timestamp", "rowtime": "the column itself", "stuff": "overlay(text PLACING new FROM n FOR m)",
	"collect": "collect_list(x)", "monotonically_increasing_id": "row_number() OVER (ORDER BY …)",
}

func (e *env) unknownFunction(n *ast.Call, name string) error {
	if expr.IsRowFunction(name) && n.Over == nil {
		return e.b.hinted(n.Name, name+"(…) OVER (PARTITION BY … ORDER BY …)", "%s is a window function and needs OVER", name)
	}
	if name == "exists" {
		return e.b.hinted(n, "EXISTS (SELECT … FROM …); array_contains(a, x) asks whether an array holds a value", "EXISTS takes a query in parentheses")
	}
	if hint, ok := elsewhere[name]; ok {
		return e.b.unsupported(n.Name, "the function "+name, "", hint)
	}
	if n.Over != nil {
		return e.b.wrap(n.Name, expr.UnknownOver(e.b.p.Functions, n.Name.Text))
	}
	return e.b.wrap(n.Name, e.b.p.Functions.Unknown(n.Name.Text))
}

// plainCall refuses what only aggregates have.
func (e *env) plainCall(n *ast.Call, name string) error {
	what := ""
	switch {
	case n.Distinct:
		what = "DISTINCT"
	case len(n.OrderBy) > 0, len(n.WithinGroup) > 0:
		what = "ORDER BY"
	case n.Filter != nil:
		what = "FILTER"
	case n.Nulls != ast.NullsUnsaid:
		what = "IGNORE NULLS"
	default:
		return nil
	}
	return e.b.errorf(n, "%s is not an aggregate function and takes no %s", name, what)
}

// unitFirst are functions whose first argument may be the bare name of a unit, and how
// many arguments they have then: timestampdiff(DAY, a, b), but datediff(day, b).
var unitFirst = map[string]int{
	"timestampdiff": 3, "timestampadd": 3, "datediff": 3, "date_diff": 3, "dateadd": 3, "date_add": 3, "date_sub": 3,
	"date_part": 2, "date_trunc": 2, "datepart": 2,
}

// arguments binds the arguments of a plain call.
func (e *env) arguments(n *ast.Call, name string) ([]expr.Expr, error) {
	args := make([]expr.Expr, len(n.Args))
	f, _ := e.b.p.Functions.Scalar(name)
	lazy := f != nil && (f.Name == "coalesce" || f.Name == "ifnull")
	for i, a := range n.Args {
		if lazy && i == 1 {
			e.branches++
			defer func() { e.branches-- }()
		}
		if a.Name != nil {
			return nil, e.b.errorf(a, "%s takes its arguments by position, not by name", name)
		}
		if id, ok := a.Value.(*ast.Name); ok && i == 0 && unitFirst[name] == len(n.Args) && len(id.Parts) == 1 {
			if unit := intervalUnits[upper(id.Parts[0].Text)]; unit != "" {
				args[i] = stringLiteral(lower(unit))
				continue
			}
		}
		var err error
		if args[i], err = e.bind(a.Value); err != nil {
			return nil, err
		}
	}
	return args, nil
}

// callTexts calls a function; if it does not take texts, those written out are read
// as what they look like: year('2024-01-01').
func (e *env) callTexts(n *ast.Call, name string, args []expr.Expr) (expr.Expr, error) {
	f, _ := e.b.p.Functions.Scalar(name)
	if sig, err := f.ResolveExact(expr.Types(args)); sig != nil || err != nil {
		return e.call(n, name, args...)
	}
	for _, dt := range []arrow.DataType{columnar.Timestamp, columnar.Date, columnar.Interval} {
		read := append([]expr.Expr(nil), args...)
		any := false
		for i, a := range n.Args {
			s, ok := ast.Unparen(a.Value).(*ast.String)
			if !ok || i >= len(read) {
				continue
			}
			if v, err := e.b.textAs(s, dt); err == nil {
				read[i], any = v, true
			}
		}
		if !any {
			continue
		}
		if sig, err := f.ResolveExact(expr.Types(read)); sig != nil && err == nil {
			return e.call(n, name, read...)
		}
	}
	return e.call(n, name, args...)
}

// aggregate binds a call of an aggregate function.
func (e *env) aggregate(n *ast.Call, name string) (expr.Expr, error) {
	if x, err := e.aggregateAround(n, name); x != nil || err != nil {
		return x, err
	}
	switch {
	case e.within != "":
		return nil, e.b.hinted(n, "aggregate in a subquery and again around it", "%s cannot stand inside %s: aggregates do not nest", name, e.within)
	case !e.aggregates:
		hint := ""
		if e.clause == "WHERE" {
			hint = "conditions on aggregates go into HAVING"
		}
		return nil, e.b.hinted(n, hint, "%s cannot hold an aggregate", e.clause)
	}
	n, err := e.withinGroup(n, name)
	if err != nil {
		return nil, err
	}
	agg, err := e.aggregateCall(e.inside(name), n, name)
	if err != nil {
		return nil, err
	}
	if agg.Order, err = e.aggregateOrder(n, name, agg); err != nil {
		return nil, err
	}
	return agg, nil
}

// aggregateCall binds a call of an aggregate function, its arguments in the scope in.
func (e *env) aggregateCall(in *env, n *ast.Call, name string) (*expr.Agg, error) {
	var args []expr.Expr
	for _, a := range n.Args {
		if _, star := a.Value.(*ast.Star); star {
			if name == "count" && len(n.Args) == 1 && !n.Distinct && isPlainStar(a.Value) {
				continue
			}
			return nil, e.b.hinted(a, "name the columns; only count(*) takes a star", "%s cannot take *", name)
		}
		if a.Name != nil {
			return nil, e.b.errorf(a, "%s takes its arguments by position, not by name", name)
		}
		x, err := in.bind(a.Value)
		if err != nil {
			return nil, err
		}
		args = append(args, x)
	}
	if f, _ := e.b.p.Functions.Aggregate(name); n.Nulls == ast.RespectNulls && f.Name == "collect_list" {
		args = append(args, boolLiteral(true))
	}
	if n.Distinct && len(args) == 0 {
		return nil, e.b.errorf(n, "%s(DISTINCT) needs a value", name)
	}
	filter, err := e.aggregateFilter(in, n, args)
	if err != nil {
		return nil, err
	}
	agg, err := expr.NewAgg(e.b.p.Functions, name, n.Distinct, filter, args...)
	if err != nil {
		return nil, e.b.wrap(n, err)
	}
	for i, a := range args {
		if expr.HasOver(a) {
			return nil, e.b.hinted(n.Args[i], "compute it in a subquery in FROM", "%s cannot hold a window function", name)
		}
	}
	return agg, nil
}

// aggregateFilter is FILTER (WHERE …), and IGNORE NULLS as the filter it is.
func (e *env) aggregateFilter(in *env, n *ast.Call, args []expr.Expr) (expr.Expr, error) {
	var conds []expr.Expr
	if n.Filter != nil {
		in.clause = "FILTER"
		c, err := in.condition(n.Filter, "FILTER")
		if err != nil {
			return nil, err
		}
		conds = append(conds, c)
	}
	if n.Nulls == ast.IgnoreNulls && len(args) > 0 {
		c, err := e.call(n, "is_not_null", args[0])
		if err != nil {
			return nil, err
		}
		conds = append(conds, c)
	}
	return expr.All(conds), nil
}

// ifCall is if(condition, then[, else]).
func (e *env) ifCall(n *ast.Call) (expr.Expr, error) {
	if len(n.Args) < 2 || len(n.Args) > 3 {
		return nil, e.b.errorf(n, "if takes a condition and one or two values")
	}
	c := &ast.Case{Span: n.Span, Whens: []*ast.When{{Span: n.Span, Cond: n.Args[0].Value, Then: n.Args[1].Value}}}
	if len(n.Args) == 3 {
		c.Else = n.Args[2].Value
	}
	return e.caseOf(c, "if")
}

// nvl2 is nvl2(a, b, c): b where a is not null, else c.
func (e *env) nvl2(n *ast.Call) (expr.Expr, error) {
	if len(n.Args) != 3 {
		return nil, e.b.errorf(n, "nvl2 takes three values")
	}
	known := &ast.Is{Span: n.Span, X: n.Args[0].Value, Not: true, Kind: ast.IsNull}
	return e.caseOf(&ast.Case{Span: n.Span, Whens: []*ast.When{{Span: n.Span, Cond: known, Then: n.Args[1].Value}}, Else: n.Args[2].Value}, "nvl2")
}

// nullIf is nullif(a, b): null where they are equal.
func (e *env) nullIf(n *ast.Call) (expr.Expr, error) {
	if len(n.Args) != 2 {
		return nil, e.b.errorf(n, "nullif takes two values")
	}
	syntax := values(n.Args)
	args, err := e.bindAll(syntax)
	if err != nil {
		return nil, err
	}
	eq, err := e.compareTyped(n, "=", args, syntax)
	if err != nil {
		return nil, err
	}
	a := args[0]
	x, err := expr.NewCase([]expr.Expr{eq}, []expr.Expr{expr.CastTo(nullLiteral(), a.Type())}, a)
	if err != nil {
		return nil, e.b.wrap(n, err)
	}
	return x, e.b.checkSize(n, x)
}

// overlay is OVERLAY(x PLACING y FROM start [FOR length]): what stands before start, y,
// and what stands behind the length, which is that of y unless it is given.
func (e *env) overlay(n *ast.Call) (expr.Expr, error) {
	if len(n.Args) < 3 || len(n.Args) > 4 {
		return nil, e.b.hinted(n, "overlay(x PLACING y FROM 2)", "overlay takes a text, another, a place, and if wanted a length")
	}
	args, err := e.bindAll(values(n.Args))
	if err != nil {
		return nil, err
	}
	one := mustLiteral(int32(1))
	step := func(name string, args ...expr.Expr) expr.Expr {
		var x expr.Expr
		if err == nil {
			x, err = e.call(n, name, args...)
		}
		return x
	}
	length := step("length", args[1])
	if len(args) == 4 {
		length = args[3]
	}
	head := step("substring", args[0], one, step("-", args[2], one))
	tail := step("substring", args[0], step("+", args[2], length))
	x := step("||", step("||", head, args[1]), tail)
	if err != nil {
		return nil, err
	}
	return x, e.b.checkSize(n, x)
}

// structCall is struct(a, b + 1 AS c): fields have the names of columns, or col1, col2.
func (e *env) structCall(n *ast.Call) (expr.Expr, error) {
	names := make([]string, len(n.Args))
	values := make([]ast.Expr, len(n.Args))
	for i, a := range n.Args {
		values[i] = a.Value
		switch x := ast.Unparen(a.Value).(type) {
		case *ast.Name, *ast.Field:
			names[i] = nameOf(x)
		default:
			names[i] = "col" + itoa(i+1)
		}
		if a.Name != nil {
			names[i] = a.Name.Text
		}
	}
	return e.makeStruct(n, names, values)
}

// namedStruct is named_struct('a', 1, 'b', 2).
func (e *env) namedStruct(n *ast.Call) (expr.Expr, error) {
	if len(n.Args)%2 != 0 {
		return nil, e.b.errorf(n, "named_struct takes names and values in turn")
	}
	var names []string
	var values []ast.Expr
	for i := 0; i < len(n.Args); i += 2 {
		s, ok := ast.Unparen(n.Args[i].Value).(*ast.String)
		if !ok {
			return nil, e.b.errorf(n.Args[i], "the name of a field is a text")
		}
		names = append(names, s.Value)
		values = append(values, n.Args[i+1].Value)
	}
	return e.makeStruct(n, names, values)
}

// structExtract is struct_extract(s, 'field'), which is s.field.
func (e *env) structExtract(n *ast.Call) (expr.Expr, error) {
	if len(n.Args) != 2 {
		return nil, e.b.hinted(n, "struct_extract(s, 'field')", "struct_extract takes a struct and the name of a field")
	}
	x, err := e.bind(n.Args[0].Value)
	if err != nil {
		return nil, err
	}
	name, ok := ast.Unparen(n.Args[1].Value).(*ast.String)
	t, isStruct := x.Type().(*arrow.StructType)
	if !ok || !isStruct {
		return nil, e.b.hinted(n, "struct_extract(s, 'field')", "struct_extract takes a STRUCT and a text written out, not %s", columnar.TypeName(x.Type()))
	}
	at, matches := columnar.Lookup(arrow.NewSchema(t.Fields(), nil), name.Value)
	if matches != 1 {
		return nil, e.b.errorf(n.Args[1], "there is no field %s in %s", quote(name.Value), columnar.TypeName(t))
	}
	return expr.NewField(x, at), nil
}

func (e *env) structLiteral(n *ast.Struct) (expr.Expr, error) {
	names := make([]string, len(n.Fields))
	values := make([]ast.Expr, len(n.Fields))
	for i, f := range n.Fields {
		names[i], values[i] = f.Name.Text, f.Value
	}
	return e.makeStruct(n, names, values)
}

func (e *env) makeStruct(n ast.Node, names []string, values []ast.Expr) (expr.Expr, error) {
	if len(names) == 0 {
		return nil, e.b.errorf(n, "a struct has at least one field")
	}
	for i, name := range names {
		for _, other := range names[:i] {
			if name == other {
				return nil, e.b.errorf(n, "the field %s is there twice", name)
			}
		}
	}
	args, err := e.bindAll(values)
	if err != nil {
		return nil, err
	}
	return structOf(names, args), nil
}

// field takes a field out of a struct; of a struct just made, it is the value.
func (e *env) field(n ast.Node, x expr.Expr, name *ast.Ident) (expr.Expr, error) {
	t, ok := x.Type().(*arrow.StructType)
	if !ok {
		return nil, e.b.errorf(n, "%s is %s and has no field %s", x, columnar.TypeName(x.Type()), name.Text)
	}
	at, matches := columnar.Lookup(arrow.NewSchema(t.Fields(), nil), name.Text)
	if matches > 1 {
		return nil, e.b.errorf(n, "several fields of %s answer to %s; quote the exact name", x, name.Text)
	}
	if at < 0 {
		names := make([]string, t.NumFields())
		for i, f := range t.Fields() {
			names[i] = f.Name
		}
		return nil, e.b.errorf(n, "%s has no field %s%s", x, name.Text, columnar.DidYouMean(name.Text, names))
	}
	return fieldOf(x, at), nil
}

// index is a[i] of an array, m[k] of a map, s['f'] of a struct.
func (e *env) index(n *ast.Index) (expr.Expr, error) {
	args, err := e.bindAll([]ast.Expr{n.X, n.I})
	if err != nil {
		return nil, err
	}
	if args[0].Type().ID() == arrow.STRUCT {
		s, ok := ast.Unparen(n.I).(*ast.String)
		if !ok {
			return nil, e.b.errorf(n.I, "a field of a struct is named by a text")
		}
		return e.field(n, args[0], &ast.Ident{Span: s.Span, Text: s.Value, Quoted: true})
	}
	return e.builtin(n, "a[i]", "subscript", args...)
}

// slice is a[i:j]: the elements, or characters, from one place to another.
func (e *env) slice(n *ast.Slice) (expr.Expr, error) {
	bounds := []ast.Expr{n.Low, n.High}
	for i, end := range []string{"1", "-1"} {
		if bounds[i] == nil {
			bounds[i] = &ast.Number{Span: n.Span, Text: end}
		}
	}
	args, err := e.bindAll(append([]ast.Expr{n.X}, bounds...))
	if err != nil {
		return nil, err
	}
	if t := args[0].Type(); t.ID() != arrow.LIST && t.ID() != arrow.STRING && t.ID() != arrow.NULL {
		return nil, e.b.errorf(n.X, "a[i:j] takes a part of an array or of a text, not of %s", columnar.TypeName(t))
	}
	return e.builtin(n, "a[i:j]", "array_slice", args...)
}

func (e *env) array(n *ast.Array) (expr.Expr, error) {
	args, err := e.bindAll(n.Items)
	if err != nil {
		return nil, err
	}
	return e.builtin(n, "ARRAY[…]", "array", args...)
}

func (e *env) mapLiteral(n *ast.Map) (expr.Expr, error) {
	var items []ast.Expr
	for i := range n.Keys {
		items = append(items, n.Keys[i], n.Values[i])
	}
	args, err := e.bindAll(items)
	if err != nil {
		return nil, err
	}
	return e.builtin(n, "MAP {…}", "map", args...)
}

// builtin calls the function behind a piece of syntax.
func (e *env) builtin(n ast.Node, what, name string, args ...expr.Expr) (expr.Expr, error) {
	if _, ok := e.b.p.Functions.Scalar(name); !ok {
		return nil, e.b.unsupported(n, what, "", "select the parts of the value in separate columns")
	}
	return e.call(n, name, args...)
}

// oneRow tells whether a plan has at most one row, and whether it has one always.
func oneRow(n logical.Node) (most, always bool) {
	switch x := n.(type) {
	case *logical.Project:
		return oneRow(x.Input)
	case *logical.Alias:
		return oneRow(x.Input)
	case *logical.Sort:
		return oneRow(x.Input)
	case *logical.Filter:
		most, _ = oneRow(x.Input)
		return most, false
	case *logical.Distinct:
		return oneRow(x.Input)
	case *logical.Aggregate:
		return len(x.Keys) == 0, len(x.Keys) == 0
	case *logical.Values:
		return len(x.Rows) <= 1, len(x.Rows) == 1
	case *logical.Limit:
		most, always = oneRow(x.Input)
		return most || x.Count == 0 || x.Count == 1, always && x.Offset == 0 && x.Count != 0
	case *logical.Join:
		if x.Kind == logical.CrossJoin {
			m1, a1 := oneRow(x.Left)
			m2, a2 := oneRow(x.Right)
			return m1 && m2, a1 && a2
		}
	}
	return false, false
}
