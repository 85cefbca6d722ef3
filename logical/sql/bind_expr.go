package sql

import (
	"errors"
	"fmt"
	"strings"

	"github.com/apache/arrow-go/v18/arrow"

	"github.com/tidemill/tidemill/columnar"
	"github.com/tidemill/tidemill/logical"
	"github.com/tidemill/tidemill/logical/expr"
	"github.com/tidemill/tidemill/logical/sql/ast"
)

// aliasRule says whether names may mean aliases of the select list.
type aliasRule uint8

const (
	noAliases   aliasRule = iota
	columnFirst           // where no column has the name
	aliasFirst            // before columns: ORDER BY
	keyFirst              // before columns that are no grouping keys: HAVING
)

// env is where an expression stands: what its names can mean.
type env struct {
	b      *binder
	rel    *relation // nil: no columns
	clause string    // for messages
	outer  *env      // of the query around a subquery
	sel    *selection
	// aliases of the select items before upto may be used.
	aliases aliasRule
	upto    int
	// aggregates may be called; inside of one, within is its name.
	aggregates bool
	within     string
	// windows says that window functions may be called.
	windows bool
	subs    *[]*scalar
	sides   []logical.Node // in ON: the inputs of the join
	column  *column        // what COLUMNS(…) stands for; nil if it cannot stand here
	// branches is how many branches around an expression are such that a row may not take them.
	branches int
	// hidden are select items whose aliases cannot be seen, for advice.
	hidden []*ast.SelectItem
}

func (e *env) scalars() []*scalar {
	if e.subs == nil {
		return nil
	}
	return *e.subs
}

// inside is the scope of the arguments of an aggregate.
func (e *env) inside(aggregate string) *env {
	n := *e
	n.aggregates, n.windows, n.within = false, false, aggregate
	if n.aliases != noAliases {
		n.aliases = columnFirst
	}
	return &n
}

// bindBranches is bindAll for what only some rows may come to.
func (e *env) bindBranches(list []ast.Expr) ([]expr.Expr, error) {
	e.branches++
	defer func() { e.branches-- }()
	return e.bindAll(list)
}

// bindAll binds a list.
func (e *env) bindAll(list []ast.Expr) ([]expr.Expr, error) {
	out := make([]expr.Expr, len(list))
	for i, x := range list {
		var err error
		if out[i], err = e.bind(x); err != nil {
			return nil, err
		}
	}
	return out, nil
}

// condition binds an expression that must be a BOOLEAN.
func (e *env) condition(x ast.Expr, where string) (expr.Expr, error) {
	c, err := e.bind(x)
	if err != nil {
		return nil, err
	}
	switch c.Type().ID() {
	case arrow.BOOL:
		return c, nil
	case arrow.NULL:
		return expr.CastTo(c, columnar.Boolean), nil
	}
	return nil, e.b.errorf(x, "%s needs a condition, but this is %s", where, columnar.TypeName(c.Type()))
}

// about puts before an error what it is about, as it is written, unless the error has it.
func about(n ast.Node, err error) error {
	text := ast.Print(n)
	if strings.Contains(err.Error(), text) {
		return err
	}
	return fmt.Errorf("%s: %w", text, err)
}

// call makes a call of a function or operator, with the place of n on an error.
func (e *env) call(n ast.Node, name string, args ...expr.Expr) (expr.Expr, error) {
	x, err := expr.NewCall(e.b.p.Functions, name, args...)
	if err != nil {
		return nil, e.b.wrap(n, err)
	}
	if err := e.checkConstants(x); err != nil {
		return nil, e.b.wrap(n, about(n, err))
	}
	if err := e.constantError(x); err != nil {
		return nil, e.b.wrap(n, about(n, err))
	}
	if doubt := doubtfulPattern(x); doubt != "" {
		e.b.warn(n, "%s", doubt)
	}
	return x, nil
}

// bind gives an expression its type, and what it is made of its place.
func (e *env) bind(x ast.Expr) (expr.Expr, error) {
	if v := e.queryKey(x); v != nil {
		return v, nil
	}
	v, err := e.bindUnplaced(x)
	if err != nil {
		return nil, err
	}
	p := expr.Place{Source: e.b.source(), Offset: x.Pos()}
	expr.SetPlace(v, p)
	return v, nil
}

func (e *env) bindUnplaced(x ast.Expr) (expr.Expr, error) {
	switch n := x.(type) {
	case *ast.Paren:
		return e.bind(n.X)
	case *ast.Name:
		return e.name(n)
	case *ast.Null:
		return nullLiteral(), nil
	case *ast.Bool:
		return boolLiteral(n.Value), nil
	case *ast.String:
		return stringLiteral(n.Value), nil
	case *ast.Number, *ast.Blob, *ast.TypedString, *ast.Interval:
		return e.b.literal(x)
	case *ast.Unary:
		return e.unary(n)
	case *ast.Binary:
		return e.binary(n)
	case *ast.Is:
		return e.is(n)
	case *ast.IsDistinct:
		name := "is_distinct_from"
		if n.Not {
			name = "is_not_distinct_from"
		}
		return e.compare(n, name, n.L, n.R)
	case *ast.Between:
		return e.between(n)
	case *ast.In:
		return e.in(n)
	case *ast.Like:
		return e.like(n)
	case *ast.Case:
		return e.caseExpr(n)
	case *ast.Cast:
		return e.cast(n)
	case *ast.Call:
		return e.callExpr(n)
	default:
		return e.bindRare(x)
	}
}

func (e *env) bindRare(x ast.Expr) (expr.Expr, error) {
	switch n := x.(type) {
	case *ast.Field:
		v, err := e.bind(n.X)
		if err != nil {
			return nil, err
		}
		return e.field(n, v, n.Name)
	case *ast.Index:
		return e.index(n)
	case *ast.Slice:
		return e.slice(n)
	case *ast.ArrayQuery:
		return e.arrayQuery(n)
	case *ast.Array:
		return e.array(n)
	case *ast.Struct:
		return e.structLiteral(n)
	case *ast.Map:
		return e.mapLiteral(n)
	case *ast.Extract:
		v, err := e.bind(n.X)
		if err != nil {
			return nil, err
		}
		return e.call(n, "date_part", stringLiteral(lower(n.Part.Text)), v)
	case *ast.AtTimeZone:
		args, err := e.bindAll([]ast.Expr{n.X, n.Zone})
		if err != nil {
			return nil, err
		}
		if _, ok := e.b.p.Functions.Scalar("from_utc_timestamp"); !ok {
			return nil, e.b.unsupported(n, "AT TIME ZONE", "a TIMESTAMP is an instant", "SET time_zone for the whole query")
		}
		return e.call(n, "from_utc_timestamp", args...)
	case *ast.Subquery:
		return e.scalarSubquery(n)
	case *ast.Exists:
		return e.exists(n)
	case *ast.Quantified:
		return e.quantified(n)
	case *ast.Row:
		return nil, e.b.unsupported(n, "a row of several values as one value", "", "use struct(…), or compare the values one by one")
	case *ast.Star:
		return nil, e.b.hinted(n, "it stands alone in SELECT *, or as count(*)", "* is a list of columns, not a value")
	case *ast.TableArg:
		return nil, e.b.errorf(n, "a table can be an argument of a table function in FROM only")
	}
	return nil, fmt.Errorf("bug: unknown expression %T", x)
}

// name resolves a dotted name: table.column, column, or either with fields of
// structs behind it; an alias of the select list; a function without parentheses.
func (e *env) name(n *ast.Name) (expr.Expr, error) {
	parts := n.Parts
	if len(parts) >= 2 {
		c, err := e.findColumn(parts[0].Text, parts[1].Text)
		if err != nil {
			return nil, e.b.wrap(n, err)
		}
		if c != nil {
			return e.fields(n, c, c.called(), parts[2:])
		}
		x, err := e.fileStruct(parts[0].Text, parts[1].Text)
		if err != nil {
			return nil, e.b.wrap(n, err)
		}
		if x != nil {
			return e.fields(n, nil, x, parts[2:])
		}
	}
	first := parts[0].Text
	x, c, err := e.oneName(n, first)
	if err != nil {
		return nil, err
	}
	if x != nil {
		return e.fieldsOrTable(n, c, x)
	}
	if f := niladic[strings.ToLower(first)]; f != "" && len(parts) == 1 && !parts[0].Quoted {
		return e.call(n, f)
	}
	if x := e.outerName(n); x != nil {
		return x, nil
	}
	return nil, e.unknown(n)
}

// fieldsOrTable takes the fields of x, which n begins with. Where it has none of the name, n
// may begin with a table: of a query around this one, or one that lacks the column.
func (e *env) fieldsOrTable(n *ast.Name, c *column, x expr.Expr) (expr.Expr, error) {
	v, err := e.fields(n, c, x, n.Parts[1:])
	if err == nil || len(n.Parts) == 1 {
		return v, err
	}
	if outer := e.outerName(n); outer != nil {
		return outer, nil
	}
	if e.rel != nil && len(tableColumns(e.rel, n.Parts[0].Text)) > 0 {
		return nil, e.unknown(n)
	}
	return nil, err
}

// niladic are the functions called without parentheses.
var niladic = map[string]string{
	"current_timestamp": "current_timestamp", "current_date": "current_date", "current_time": "current_time",
	"localtimestamp": "current_timestamp", "now": "now",
}

// oneName finds what a name without dots means: a column (then c is set), an alias,
// or the window the query groups by. x is nil if there is nothing.
func (e *env) oneName(at ast.Node, name string) (x expr.Expr, c *column, err error) {
	if e.aliases == aliasFirst {
		if found, x, err := e.sel.aliasOf(name, e.upto, at); found {
			return x, nil, err
		}
	}
	if c, err = e.findColumn("", name); err != nil {
		return nil, nil, e.b.wrap(at, err)
	}
	if c != nil && e.aliases == keyFirst && !e.sel.isKey(c.Column) {
		if found, x, err := e.sel.aliasOf(name, e.upto, at); found {
			return x, nil, err
		}
	}
	if c != nil {
		return c.called(), c, nil
	}
	if x, err = e.fileStruct("", name); x != nil || err != nil {
		return x, nil, e.b.wrap(at, err)
	}
	if e.sel != nil && e.sel.window != nil && strings.EqualFold(name, e.sel.window.name) {
		return e.sel.window.value, nil, nil
	}
	if e.aliases == columnFirst || e.aliases == keyFirst {
		if found, x, err := e.sel.aliasOf(name, e.upto, at); found {
			return x, nil, err
		}
	}
	if e.aliases == aliasFirst {
		return e.sel.outputNamed(name), nil, nil
	}
	return nil, nil, nil
}

// findColumn looks a column up; nil if there is none. An exact match wins over one
// that differs in case. Several that match equally well are an error.
func (e *env) findColumn(table, name string) (*column, error) {
	if e.rel == nil {
		return nil, nil
	}
	var exact, fold []*column
	for c := range e.rel.named(name) {
		if table == "" && c.shadowed || table != "" && !strings.EqualFold(c.table, table) {
			continue
		}
		if c.name == name {
			exact = append(exact, c)
		} else {
			fold = append(fold, c)
		}
	}
	found := exact
	if len(found) == 0 {
		found = fold
	}
	if len(found) < 2 {
		if len(found) == 0 {
			return nil, nil
		}
		return found[0], nil
	}
	var names []string
	for _, c := range found {
		names = append(names, c.full())
	}
	if table != "" {
		name = table + "." + name
	}
	return nil, fmt.Errorf("column %s is ambiguous; it could be %s", name, orList(names))
}

// called is the column, which knows the name that it is called by here.
func (c *column) called() *expr.Column {
	if c.name == c.Column.Name {
		return c.Column
	}
	renamed := *c.Column
	renamed.Called = c.name
	return &renamed
}

// full is the column's name with its table.
func (c *column) full() string {
	if c.table == "" {
		return fmt.Sprintf("%q", c.name)
	}
	return c.table + "." + c.name
}

// fields takes fields out of x, one after another. c is the column x is, if it is one.
func (e *env) fields(n ast.Node, c *column, x expr.Expr, names []*ast.Ident) (expr.Expr, error) {
	if c != nil && c.window != nil && len(names) > 0 {
		switch strings.ToLower(names[0].Text) {
		case "start":
			return e.fields(n, nil, c.window.start, names[1:])
		case "end":
			return e.fields(n, nil, c.window.end, names[1:])
		}
	}
	for _, id := range names {
		var err error
		if x, err = e.field(n, x, id); err != nil {
			return nil, err
		}
	}
	return x, nil
}

// unknown is the error for a name that means nothing, with the nearest that would,
// or the reason why it means nothing here.
func (e *env) unknown(n *ast.Name) error {
	b := e.b
	name := n.Parts[len(n.Parts)-1].Text
	full := ast.Print(n)
	for _, item := range e.hidden {
		if item.Alias != nil && strings.EqualFold(item.Alias.Text, full) {
			return b.hinted(n, "repeat the expression, or put the query into a subquery and filter around it",
				"%s is an alias of the select list, which %s does not see", full, e.clause)
		}
	}
	if e.rel == nil || len(e.rel.columns) == 0 {
		return b.errorf(n, "there is no column %s: %s has no columns to take it from", full, e.clause)
	}
	if len(n.Parts) > 1 {
		table := n.Parts[0].Text
		for _, c := range e.rel.columns {
			if strings.EqualFold(c.table, table) {
				return b.errorf(n, "table %s has no column %s%s", table, n.Parts[1].Text, columnar.DidYouMean(n.Parts[1].Text, tableColumns(e.rel, table)))
			}
		}
		return b.errorf(n, "there is no table or column %s in FROM%s", table, columnar.DidYouMean(table, append(tablesOf(e.rel), namesOf(e.rel.columns)...)))
	}
	names := namesOf(e.rel.columns)
	if e.aliases != noAliases {
		for _, it := range e.sel.items[:e.upto] {
			if it.alias {
				names = append(names, it.name)
			}
		}
	}
	err := b.errorf(n, "there is no column %s%s", full, columnar.DidYouMean(name, names))
	if n.Parts[0].Quoted {
		err.Hint = "double quotes make a name; a text is written " + ast.QuoteString(name)
	}
	return err
}

func tableColumns(r *relation, table string) []string {
	var names []string
	for _, c := range r.columns {
		if strings.EqualFold(c.table, table) {
			names = append(names, c.name)
		}
	}
	return names
}

// unary binds a prefix operator.
func (e *env) unary(n *ast.Unary) (expr.Expr, error) {
	if n.Op == "NOT" {
		c, err := e.condition(n.X, "NOT")
		if err != nil {
			return nil, err
		}
		return e.call(n, "not", c)
	}
	if num, ok := ast.Unparen(n.X).(*ast.Number); ok && n.Op != "~" {
		return e.b.number(num, n.Op == "-")
	}
	x, err := e.bind(n.X)
	if err != nil {
		return nil, err
	}
	if n.Op == "+" {
		if !columnar.IsNumeric(x.Type()) && x.Type().ID() != arrow.INTERVAL_MONTH_DAY_NANO && x.Type().ID() != arrow.NULL {
			return nil, e.b.errorf(n, "+ needs a number, but this is %s", columnar.TypeName(x.Type()))
		}
		return x, nil
	}
	return e.call(n, n.Op, x)
}

// comparisons are the operators that compare their operands.
var comparisons = map[string]bool{"=": true, "<>": true, "<": true, "<=": true, ">": true, ">=": true}

// binary binds an infix operator. Chains of one operator are bound in a loop: a
// generated condition may have thousands of terms.
func (e *env) binary(n *ast.Binary) (expr.Expr, error) {
	if n.Op == "AND" || n.Op == "OR" {
		return e.logic(n)
	}
	if comparisons[n.Op] {
		return e.compare(n, n.Op, n.L, n.R)
	}
	chain := []*ast.Binary{n}
	for {
		l, ok := chain[len(chain)-1].L.(*ast.Binary)
		if !ok || l.Op == "AND" || l.Op == "OR" || comparisons[l.Op] {
			break
		}
		chain = append(chain, l)
	}
	left, err := e.bind(chain[len(chain)-1].L)
	if err != nil {
		return nil, err
	}
	for i := len(chain) - 1; i >= 0; i-- {
		right, err := e.bind(chain[i].R)
		if err != nil {
			return nil, err
		}
		if op := chain[i].Op; op == "+" || op == "-" {
			left, right = e.timeText(left, right), e.timeText(right, left)
		}
		if left, err = e.call(chain[i], chain[i].Op, left, right); err != nil {
			return nil, err
		}
	}
	return left, nil
}

func (e *env) logic(n *ast.Binary) (expr.Expr, error) {
	var terms []ast.Expr
	var left ast.Expr = n
	for {
		l, ok := left.(*ast.Binary)
		if !ok || l.Op != n.Op {
			break
		}
		terms = append(terms, l.R)
		left = l.L
	}
	terms = append(terms, left)
	op := expr.And
	if n.Op == "OR" {
		op = expr.Or
	}
	l := &expr.Logic{Op: op}
	for i := len(terms) - 1; i >= 0; i-- {
		first := i == len(terms)-1
		if !first {
			e.branches++
		}
		c, err := e.condition(terms[i], n.Op)
		if !first {
			e.branches--
		}
		if err != nil {
			return nil, err
		}
		l.Args = append(l.Args, c)
	}
	return l, nil
}

// compare binds a comparison. A text written out takes the type of the other side;
// rows are compared value by value.
func (e *env) compare(n ast.Node, op string, l, r ast.Expr) (expr.Expr, error) {
	lr, lok := ast.Unparen(l).(*ast.Row)
	rr, rok := ast.Unparen(r).(*ast.Row)
	if lok && rok {
		return e.compareRows(n, op, lr, rr)
	}
	args, err := e.bindAll([]ast.Expr{l, r})
	if err != nil {
		return nil, err
	}
	return e.compareTyped(n, op, args, []ast.Expr{l, r})
}

// compareTyped is compare for operands bound already.
func (e *env) compareTyped(n ast.Node, op string, args []expr.Expr, syntax []ast.Expr) (expr.Expr, error) {
	args, err := e.meet(args, syntax)
	if err != nil {
		return nil, err
	}
	return e.call(n, op, args...)
}

// meet gives texts written out the type of what they are compared with: ts >
// '2024-01-01', price IN ('1', '2'). Whether a text fits is known at once.
func (e *env) meet(args []expr.Expr, syntax []ast.Expr) ([]expr.Expr, error) {
	var target arrow.DataType
	for i, a := range args {
		if _, text := ast.Unparen(syntax[i]).(*ast.String); text || a.Type().ID() == arrow.NULL {
			continue
		}
		if id := a.Type().ID(); id == arrow.STRING || id == arrow.BINARY {
			return args, nil
		}
		if target == nil {
			target = a.Type()
		} else if t, ok := columnar.Common(target, a.Type()); ok {
			target = t
		}
	}
	if target == nil || columnar.IsNested(target) {
		return args, nil
	}
	out := append([]expr.Expr(nil), args...)
	for i := range args {
		s, ok := ast.Unparen(syntax[i]).(*ast.String)
		if !ok {
			continue
		}
		x, err := e.b.textAs(s, target)
		if err != nil {
			return nil, err
		}
		out[i] = x
	}
	return out, nil
}

// timeText reads a text written out beside a timestamp or date in + and - as an
// interval: ts - '10 seconds'.
func (e *env) timeText(x, other expr.Expr) expr.Expr {
	l, ok := x.(*expr.Literal)
	if !ok || l.Type().ID() != arrow.STRING || l.IsNull() {
		return x
	}
	if id := other.Type().ID(); id != arrow.TIMESTAMP && id != arrow.DATE32 && id != arrow.TIME64 && id != arrow.INTERVAL_MONTH_DAY_NANO {
		return x
	}
	if v, err := columnar.ParseInterval(l.Value.ValueStr(0)); err == nil {
		return mustLiteral(v)
	}
	return x
}

func (e *env) is(n *ast.Is) (expr.Expr, error) {
	if n.Kind == ast.IsNull {
		x, err := e.bind(n.X)
		if err != nil {
			return nil, err
		}
		if n.Not {
			return e.call(n, "is_not_null", x)
		}
		return e.call(n, "is_null", x)
	}
	c, err := e.condition(n.X, "IS "+[...]string{"", "TRUE", "FALSE", "UNKNOWN"}[n.Kind])
	if err != nil {
		return nil, err
	}
	switch {
	case n.Kind == ast.IsUnknown && n.Not:
		return e.call(n, "is_not_null", c)
	case n.Kind == ast.IsUnknown:
		return e.call(n, "is_null", c)
	case n.Not:
		return e.call(n, "is_distinct_from", c, boolLiteral(n.Kind == ast.IsTrue))
	}
	return e.call(n, "is_not_distinct_from", c, boolLiteral(n.Kind == ast.IsTrue))
}

// between is x >= low AND x <= high, x bound once.
func (e *env) between(n *ast.Between) (expr.Expr, error) {
	args, err := e.bindAll([]ast.Expr{n.X, n.Low, n.High})
	if err != nil {
		return nil, err
	}
	low, err := e.compareTyped(n, ">=", []expr.Expr{args[0], args[1]}, []ast.Expr{n.X, n.Low})
	if err != nil {
		return nil, err
	}
	high, err := e.compareTyped(n, "<=", []expr.Expr{args[0], args[2]}, []ast.Expr{n.X, n.High})
	if err != nil {
		return nil, err
	}
	both := &expr.Logic{Op: expr.And, Args: []expr.Expr{low, high}}
	if n.Not {
		return e.call(n, "not", both)
	}
	return both, e.b.checkSize(n, both)
}

func (e *env) in(n *ast.In) (expr.Expr, error) {
	if n.Query != nil {
		return e.inValue(n)
	}
	if row, ok := ast.Unparen(n.X).(*ast.Row); ok {
		return e.rowIn(n, row)
	}
	syntax := append([]ast.Expr{n.X}, n.List...)
	args, err := e.bindAll(syntax)
	if err != nil {
		return nil, err
	}
	if args, err = e.meet(args, syntax); err != nil {
		return nil, err
	}
	in, err := expr.NewIn(args[0], args[1:])
	if err != nil {
		return nil, e.b.wrap(n, err)
	}
	if n.Not {
		return e.call(n, "not", in)
	}
	return in, nil
}

func (e *env) like(n *ast.Like) (expr.Expr, error) {
	if n.Pattern == nil {
		return e.likeList(n)
	}
	syntax := []ast.Expr{n.X, n.Pattern}
	if n.Escape != nil {
		syntax = append(syntax, n.Escape)
	}
	args, err := e.bindAll(syntax)
	if err != nil {
		return nil, err
	}
	x, err := e.call(n, strings.ReplaceAll(lower(n.Op), " ", "_"), args...)
	if err != nil || !n.Not {
		return x, err
	}
	return e.call(n, "not", x)
}

// likeList is x LIKE ANY (a, b), which is x LIKE a OR x LIKE b; of ALL, AND. NOT is of each.
func (e *env) likeList(n *ast.Like) (expr.Expr, error) {
	x, err := e.bind(n.X)
	if err != nil {
		return nil, err
	}
	logic := &expr.Logic{Op: expr.Or}
	if n.All {
		logic.Op = expr.And
	}
	for _, pattern := range n.Patterns {
		one, err := e.bind(pattern)
		if err == nil {
			one, err = e.call(pattern, strings.ReplaceAll(lower(n.Op), " ", "_"), x, one)
		}
		if err == nil && n.Not {
			one, err = e.call(n, "not", one)
		}
		if err != nil {
			return nil, err
		}
		logic.Args = append(logic.Args, one)
	}
	if len(logic.Args) == 1 {
		return logic.Args[0], nil
	}
	return logic, e.b.checkSize(n, logic)
}

func (e *env) caseExpr(n *ast.Case) (expr.Expr, error) {
	return e.caseOf(n, "WHEN")
}

// caseOf is caseExpr; word is what takes the conditions, for errors.
func (e *env) caseOf(n *ast.Case, word string) (expr.Expr, error) {
	var whens, results []expr.Expr
	var syntax []ast.Expr
	var operand expr.Expr
	var err error
	if n.Operand != nil {
		if operand, err = e.bind(n.Operand); err != nil {
			return nil, err
		}
	}
	for i, w := range n.Whens {
		var c expr.Expr
		e.branches += min(i, 1)
		if operand != nil {
			c, err = e.caseEquals(operand, n.Operand, w)
		} else {
			c, err = e.condition(w.Cond, word)
		}
		e.branches -= min(i, 1)
		if err != nil {
			return nil, err
		}
		whens = append(whens, c)
		syntax = append(syntax, w.Then)
	}
	if n.Else != nil {
		syntax = append(syntax, n.Else)
	}
	if results, err = e.bindBranches(syntax); err != nil {
		return nil, err
	}
	if results, err = e.meet(results, syntax); err != nil {
		var misfit *Error
		if errors.As(err, &misfit) {
			misfit.Hint = "the results of a CASE have one type; cast those that are no texts to VARCHAR"
		}
		return nil, err
	}
	var otherwise expr.Expr
	if n.Else != nil {
		otherwise = results[len(whens)]
	}
	x, err := expr.NewCase(whens, results[:len(whens)], otherwise)
	if err != nil {
		return nil, e.b.wrap(n, err)
	}
	for i, then := range x.(*expr.Case).Thens {
		e.b.placed(then, syntax[i])
	}
	if n.Else != nil {
		e.b.placed(x.(*expr.Case).Else, n.Else)
	}
	return x, e.b.checkSize(n, x)
}

// caseEquals is the condition of one branch of CASE x WHEN value.
func (e *env) caseEquals(x expr.Expr, syntax ast.Expr, w *ast.When) (expr.Expr, error) {
	value, err := e.bind(w.Cond)
	if err != nil {
		return nil, err
	}
	return e.compareTyped(w, "=", []expr.Expr{x, value}, []ast.Expr{syntax, w.Cond})
}

func (e *env) cast(n *ast.Cast) (expr.Expr, error) {
	dt, err := e.b.dataType(n.Type)
	if err != nil {
		return nil, err
	}
	x, err := e.bind(n.X)
	if err != nil {
		return nil, err
	}
	c, err := expr.NewCast(x, dt, n.Try)
	if err != nil {
		return nil, e.b.wrap(n, err)
	}
	return c, nil
}
