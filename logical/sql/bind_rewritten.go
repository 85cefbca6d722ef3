package sql

import (
	"strings"

	"github.com/tidemill/tidemill/columnar"
	"github.com/tidemill/tidemill/columnar/function"
	"github.com/tidemill/tidemill/logical/expr"
	"github.com/tidemill/tidemill/logical/sql/ast"
)

// castFunctions are Spark's functions that cast, and the types they cast to. DATE and others
// are functions of the registry.
var castFunctions = map[string]string{
	"boolean": "boolean", "tinyint": "tinyint", "smallint": "smallint", "int": "int", "bigint": "bigint", "float": "real",
	"double": "double", "decimal": "decimal", "string": "varchar", "binary": "binary", "timestamp": "timestamp",
}

// severalBest is max_by(x, y, n) and the like, max(x, n) and approx_top_k(x, n) as what it
// means: the first n of an array in order. Nil for every other call.
func (e *env) severalBest(n *ast.Call, name string) (expr.Expr, error) {
	f, ok := e.b.p.Functions.Aggregate(name)
	if !ok {
		return nil, nil
	}
	inner := *n
	var count ast.Expr = &ast.Number{Span: n.Span, Text: "5"}
	switch args := n.Args; {
	case name == "approx_top_k" && (len(args) == 1 || len(args) == 2):
		if inner.Args = args[:1]; len(args) == 2 {
			count = args[1].Value
		}
		inner.Name = &ast.Ident{Span: n.Name.Span, Text: f.Name}
	case (f.Name == "max" || f.Name == "min") && len(args) == 2:
		count = args[1].Value
		inner.Args, inner.OrderBy = args[:1], bestFirst(args[0].Value, f.Name == "max")
		inner.Name = &ast.Ident{Span: n.Name.Span, Text: "array_agg"}
	case (f.Name == "max_by" || f.Name == "min_by") && len(args) == 3:
		count = args[2].Value
		by := args[1].Value
		inner.Args, inner.OrderBy = args[:1], bestFirst(by, f.Name == "max_by")
		inner.Name, inner.Nulls = &ast.Ident{Span: n.Name.Span, Text: "array_agg"}, ast.RespectNulls
		known := ast.Expr(&ast.Is{Span: ast.Span{From: by.Pos(), To: by.End()}, X: by, Not: true, Kind: ast.IsNull})
		if n.Filter != nil {
			known = &ast.Binary{Span: n.Span, Op: "AND", L: n.Filter, R: known}
		}
		inner.Filter = known
	default:
		return nil, nil
	}
	if err := e.checkCount(count, name); err != nil {
		return nil, err
	}
	one := &ast.Number{Span: n.Span, Text: "1"}
	return e.bind(&ast.Slice{Span: n.Span, X: &inner, Low: one, High: count})
}

// checkCount refuses how many are wanted, unless it is one number from 1 on for all rows.
func (e *env) checkCount(count ast.Expr, name string) error {
	x, err := e.bind(count)
	if err != nil {
		return err
	}
	v := foldedNumber(x)
	if v != nil && columnar.IsInteger(x.Type()) && !columnar.IsNull(v, 0) && columnar.Value(v, 0).(int64) > 0 {
		return nil
	}
	return e.b.errorf(count, "%s takes a constant whole number of 1 or more here, not %s", name, x)
}

func bestFirst(x ast.Expr, largest bool) []*ast.OrderItem {
	return []*ast.OrderItem{{Span: ast.Span{From: x.Pos(), To: x.End()}, X: x, Desc: largest}}
}

// toNumber binds to_number(text, format): the registry's function takes a null of the type
// that the format describes.
func (e *env) toNumber(n *ast.Call, name string) (expr.Expr, error) {
	if err := e.plainCall(n, name); err != nil {
		return nil, err
	}
	if len(n.Args) != 2 {
		return nil, e.b.hinted(n, name+"(text, '999,999.00'); CAST(text AS DECIMAL(18, 2)) needs no format", "%s takes a text and a format", name)
	}
	args, err := e.arguments(n, name)
	if err != nil {
		return nil, err
	}
	format, ok := ast.Unparen(n.Args[1].Value).(*ast.String)
	if !ok {
		return nil, e.b.errorf(n.Args[1], "the format of %s is a text written out: it decides the type", name)
	}
	dt, err := function.NumberType(format.Value)
	if err != nil {
		return nil, e.b.wrap(format, err)
	}
	return e.call(n, name, append(args, expr.CastTo(nullLiteral(), dt))...)
}

// aggregateOfElements is the aggregate of a list that has no function of its own, as what it
// means: (SELECT aggregate(element, …) FROM unnest(list) AS elements(element)), null for a null.
func aggregateOfElements(n *ast.Call, aggregate string) ast.Expr {
	list, word := n.Args[0].Value, func(text string) *ast.Ident { return &ast.Ident{Span: n.Name.Span, Text: text} }
	call := *n
	call.Name = word(aggregate)
	call.Args = append([]*ast.Arg{{Span: n.Span, Value: &ast.Name{Span: n.Span, Parts: []*ast.Ident{word("element")}}}}, n.Args[2:]...)
	elements := &ast.TableFunc{Span: n.Span, Name: word("unnest"), Args: n.Args[:1], Alias: &ast.Alias{Span: n.Span, Name: word("elements"), Columns: []*ast.Ident{word("element")}}}
	query := &ast.Query{Span: n.Span, Body: &ast.Select{Span: n.Span, Items: []*ast.SelectItem{{Span: n.Span, X: &call}}, From: []ast.TableExpr{elements}}}
	return &ast.Case{Span: n.Span, Whens: []*ast.When{{
		Span: n.Span, Cond: &ast.Is{Span: n.Span, X: list, Not: true, Kind: ast.IsNull}, Then: &ast.Subquery{Span: n.Span, Query: query},
	}}}
}

// listAggregate is list_aggregate(list, 'sum'): list_sum(list), or array_sum(list).
func (e *env) listAggregate(n *ast.Call, name string) (expr.Expr, error) {
	if len(n.Args) < 2 {
		return nil, e.b.hinted(n, name+"(list, 'sum'), or list_sum(list)", "%s takes an array and the name of an aggregate", name)
	}
	of, ok := ast.Unparen(n.Args[1].Value).(*ast.String)
	if !ok {
		return nil, e.b.errorf(n.Args[1], "the name of the aggregate is a text written out")
	}
	aggregate := lower(of.Value)
	for short, long := range map[string]string{"mean": "avg", "stddev": "stddev_samp", "variance": "var_samp", "string_agg": "to_string", "listagg": "to_string"} {
		if aggregate == short {
			aggregate = long
		}
	}
	for _, prefix := range []string{"list_", "array_"} {
		f, known := e.b.p.Functions.Scalar(prefix + aggregate)
		if !known {
			continue
		}
		call := *n
		call.Name = &ast.Ident{Span: n.Name.Span, Text: f.Name}
		call.Args = append([]*ast.Arg{n.Args[0]}, n.Args[2:]...)
		return e.bind(&call)
	}
	if f, known := e.b.p.Functions.Aggregate(aggregate); known {
		return e.bind(aggregateOfElements(n, f.Name))
	}
	var names []string
	for _, known := range e.b.p.Functions.Names() {
		if short, ok := strings.CutPrefix(known, "list_"); ok {
			if _, agg := e.b.p.Functions.Aggregate(short); agg {
				names = append(names, short)
			}
		}
	}
	return nil, e.b.hinted(of, "(SELECT "+aggregate+"(x) FROM unnest(list) AS t(x)) aggregates whatever way", "there is no aggregate %s%s", aggregate, columnar.DidYouMean(aggregate, names))
}
