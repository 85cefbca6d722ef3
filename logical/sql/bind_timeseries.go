package sql

import "github.com/tidemill/tidemill/logical/sql/ast"

// timesByInterval says whether generate_series goes from a time to another by an interval.
func timesByInterval(n *ast.TableFunc) bool {
	if len(n.Args) != 3 {
		return false
	}
	_, ok := ast.Unparen(n.Args[2].Value).(*ast.Interval)
	return ok
}

// timeSeries is generate_series(first, last, INTERVAL …): the elements of the function's
// array, both ends included.
func (b *binder) timeSeries(n *ast.TableFunc, outer *env) (*relation, error) {
	call := &ast.Call{Span: n.Span, Name: &ast.Ident{Span: n.Name.Span, Text: "generate_series"}, Args: n.Args}
	unnest := *n
	unnest.Name = &ast.Ident{Span: n.Name.Span, Text: "unnest"}
	unnest.Args = []*ast.Arg{{Span: n.Span, Value: call}}
	alias := ast.Alias{Span: n.Span, Name: n.Name}
	if n.Alias != nil {
		alias = *n.Alias
	}
	if len(alias.Columns) == 0 {
		alias.Columns = []*ast.Ident{{Span: n.Name.Span, Text: "generate_series"}}
	}
	unnest.Alias = &alias
	return b.lateral(oneRowRelation(), &unnest, false, outer)
}
