package sql

import (
	"github.com/tidemill/tidemill/columnar"
	"github.com/tidemill/tidemill/logical/expr"
	"github.com/tidemill/tidemill/logical/sql/ast"
)

// sketchError is the standard error of approx_count_distinct.
const sketchError = 0.016

// approximate binds what Spark's approximations take beyond ours: how exact they are to be, and
// several shares at once. Nil for every other call.
func (e *env) approximate(n *ast.Call, name string) (expr.Expr, error) {
	f, ok := e.b.p.Functions.Aggregate(name)
	if !ok {
		return nil, nil
	}
	less := *n
	switch {
	case f.Name == "approx_count_distinct" && len(n.Args) == 2:
		if err := e.checkDeviation(n.Args[1].Value, name); err != nil {
			return nil, err
		}
		less.Args = n.Args[:1]
		return e.bind(&less)
	case f.Name == "approx_quantile" && len(n.Args) == 3:
		if err := e.checkCount(n.Args[2].Value, name); err != nil {
			return nil, err
		}
		return e.bind(exactly(n))
	case f.Name == "approx_quantile" && len(n.Args) == 2:
		if shares := arrayItems(n.Args[1].Value); len(shares) > 0 {
			return e.bind(sharesOf(n, shares))
		}
	}
	return nil, nil
}

// exactly is an approx_percentile that says how exact its rank is to be: percentile_disc has every
// accuracy. Of numbers it is a DOUBLE as without one.
func exactly(n *ast.Call) ast.Expr {
	exact := *n
	exact.Name = &ast.Ident{Span: n.Name.Span, Text: "percentile_disc"}
	value := *n.Args[0]
	value.Value = &ast.Cast{Span: value.Span, X: value.Value, Type: &ast.Type{Span: value.Span, Name: "double"}}
	exact.Args = []*ast.Arg{&value, n.Args[1]}
	return &exact
}

// checkDeviation refuses a standard error that the sketch does not keep.
func (e *env) checkDeviation(x ast.Expr, name string) error {
	v, err := e.bind(x)
	if err != nil {
		return err
	}
	c, err := constantOf(expr.CastTo(v, columnar.Float64))
	d, known := 0.0, false
	if err == nil && c != nil {
		d, known = columnar.Value(c, 0).(float64)
	}
	switch {
	case !known || d <= 0 || d >= 1:
		return e.b.errorf(x, "%s takes a constant standard error above 0 and below 1 here, not %s", name, ast.Print(x))
	case d < sketchError:
		return e.b.hinted(x, "count(DISTINCT …) is exact", "%s has a standard error of %v, and none of %v", name, sketchError, d)
	}
	return nil
}

// arrayItems are the elements of an array that is written out; nil for anything else.
func arrayItems(x ast.Expr) []ast.Expr {
	switch x := ast.Unparen(x).(type) {
	case *ast.Array:
		return x.Items
	case *ast.Call:
		if lower(x.Name.Text) == "array" {
			return values(x.Args)
		}
	}
	return nil
}

// sharesOf is an aggregate of several shares as the array of those of one each, null where these
// are.
func sharesOf(n *ast.Call, shares []ast.Expr) ast.Expr {
	all := &ast.Array{Span: n.Span}
	for _, share := range shares {
		one := *n
		one.Args = []*ast.Arg{n.Args[0], {Span: n.Args[1].Span, Value: share}}
		all.Items = append(all.Items, &one)
	}
	known := &ast.Is{Span: n.Span, X: all.Items[0], Not: true, Kind: ast.IsNull}
	return &ast.Case{Span: n.Span, Whens: []*ast.When{{Span: n.Span, Cond: known, Then: all}}}
}
