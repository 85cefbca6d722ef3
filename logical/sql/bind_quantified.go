package sql

import (
	"github.com/apache/arrow-go/v18/arrow"

	"github.com/tidemill/tidemill/columnar"
	"github.com/tidemill/tidemill/logical"
	"github.com/tidemill/tidemill/logical/expr"
	"github.com/tidemill/tidemill/logical/sql/ast"
)

// opposite is what a comparison is when it is not true: x < ALL (…) is NOT x >= ANY (…),
// as there is one order of all values, NaN above the others.
var opposite = map[string]string{"=": "<>", "<>": "=", "<": ">=", "<=": ">", ">": "<=", ">=": "<"}

// asIn reads x IN (query), x = ANY (query) and x <> ALL (query), which are one.
func asIn(x ast.Expr) (*ast.In, bool) {
	switch n := x.(type) {
	case *ast.In:
		return n, n.Query != nil
	case *ast.Quantified:
		if n.Query == nil || n.Op != map[bool]string{false: "=", true: "<>"}[n.All] {
			return nil, false
		}
		return &ast.In{Span: n.Span, X: n.X, Query: n.Query, Not: n.All}, true
	}
	return nil, false
}

// quantified binds x op ANY (…) and x op ALL (…) as a value: of ANY true where a
// comparison is, null where one may be, else false; ALL is the opposite of ANY.
func (e *env) quantified(n *ast.Quantified) (expr.Expr, error) {
	if in, ok := asIn(n); ok {
		return e.inValue(in)
	}
	if row, ok := ast.Unparen(n.X).(*ast.Row); ok {
		return nil, e.b.unsupported(row, "a row of values before "+n.Op+" ANY or ALL", "", "= ANY and <> ALL of a query take rows; else compare the values one by one")
	}
	op := n.Op
	if n.All {
		op = opposite[op]
	}
	var x expr.Expr
	var err error
	if n.Query != nil {
		x, err = e.anyOfQuery(n, op)
	} else {
		x, err = e.anyOfArray(n, op)
	}
	if err != nil || !n.All {
		return x, err
	}
	return e.call(n, "not", x)
}

// anyOfQuery compares with the least or greatest value of a query: if any comparison is
// true, that one is.
func (e *env) anyOfQuery(n *ast.Quantified, op string) (expr.Expr, error) {
	if e.subs == nil {
		return nil, e.b.unsupported(n, "ANY or ALL of a query in "+e.clause, "", "make it a condition of WHERE")
	}
	x, err := e.bind(n.X)
	if err != nil {
		return nil, err
	}
	r, d, err := e.subquery(n, n.Query, byRowPairs)
	if err != nil {
		return nil, err
	}
	if len(r.columns) != 1 {
		return nil, e.b.errorf(n, "the query of ANY and ALL has one column, this one has %d", len(r.columns))
	}
	y := r.columns[0].Column
	pairs, _ := d.pairs(r.node)
	var extremes []expr.Named
	for _, name := range extremesOf(op) {
		a, err := expr.NewAgg(e.b.p.Functions, name, false, nil, y)
		if err != nil {
			return nil, e.b.wrap(n, err)
		}
		extremes = append(extremes, expr.As(a, a.String()))
	}
	values, rows, err := e.counted(n, valueFirst(r.node, y), pairs, extremes...)
	if err != nil {
		return nil, err
	}
	var of []expr.Expr
	for _, a := range extremes {
		c := *a.Column()
		c.Null = true
		of = append(of, &c)
	}
	found, err := e.anyOf(n, op, x, of)
	if err != nil {
		return nil, err
	}
	return e.threeValued(n, found, x, values, rows)
}

// valueFirst is n with y as its first column.
func valueFirst(n logical.Node, y *expr.Column) logical.Node {
	if n.Schema().Columns[0].ID == y.ID {
		return n
	}
	list := []expr.Named{expr.Pass(y)}
	for _, c := range n.Schema().Columns {
		if c.ID != y.ID {
			list = append(list, expr.Pass(c))
		}
	}
	return logical.NewProject(n, list)
}

// extremesOf names the aggregates that decide whether x op any value.
func extremesOf(op string) []string {
	switch op {
	case "<", "<=":
		return []string{"max"}
	case ">", ">=":
		return []string{"min"}
	}
	return []string{"min", "max"}
}

// anyOf compares x with the extremes: one that is not equal to both is not equal to one of
// the values, one that equals neither may still equal one.
func (e *env) anyOf(n *ast.Quantified, op string, x expr.Expr, extremes []expr.Expr) (expr.Expr, error) {
	or := &expr.Logic{Op: expr.Or}
	for _, v := range extremes {
		c, err := e.compareTyped(n, op, []expr.Expr{x, v}, []ast.Expr{n.X, n})
		if err != nil {
			return nil, err
		}
		or.Args = append(or.Args, c)
	}
	if len(or.Args) == 1 {
		return or.Args[0], nil
	}
	return or, nil
}

// anyOfArray compares with the elements of an array. ANY and SOME of a BOOLEAN are the
// aggregate.
func (e *env) anyOfArray(n *ast.Quantified, op string) (expr.Expr, error) {
	args, err := e.bindAll([]ast.Expr{n.X, n.Array})
	if err != nil {
		return nil, err
	}
	x, list := args[0], args[1]
	switch id := list.Type().ID(); {
	case id == arrow.LIST:
	case id == arrow.NULL:
		return expr.CastTo(nullLiteral(), columnar.Boolean), nil
	case id == arrow.BOOL && !n.All:
		call := &ast.Call{Span: n.Span, Name: &ast.Ident{Text: "any"}, Args: []*ast.Arg{arg(n.Array)}}
		return e.compare(n, n.Op, n.X, call)
	default:
		return nil, e.b.hinted(n.Array, "x IN (1, 2) compares with values, and [1, 2] is an array", "%s takes a query or an array, but this is %s",
			map[bool]string{false: "ANY", true: "ALL"}[n.All], columnar.TypeName(list.Type()))
	}
	step := func(name string, args ...expr.Expr) expr.Expr {
		var out expr.Expr
		if err == nil {
			out, err = e.call(n, name, args...)
		}
		return out
	}
	var found expr.Expr
	if op == "=" {
		found = step("array_contains", list, x)
	} else {
		var extremes []expr.Expr
		for _, name := range extremesOf(op) {
			extremes = append(extremes, step("array_"+name, list))
		}
		if err == nil {
			found, err = e.anyOf(n, op, x, extremes)
		}
	}
	rows := step("cardinality", list)
	values := step("cardinality", step("array_compact", list))
	isNull := step("is_null", list)
	if err != nil {
		return nil, err
	}
	result, err := e.threeValued(n, found, x, values, rows)
	if err != nil {
		return nil, err
	}
	return expr.NewCase([]expr.Expr{isNull}, []expr.Expr{expr.CastTo(nullLiteral(), columnar.Boolean)}, result)
}
