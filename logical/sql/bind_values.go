package sql

import (
	"fmt"
	"slices"

	"github.com/tidemill/tidemill/logical/sql/ast"
)

// valuesOfRow is VALUES that uses columns of the query around it, LATERAL (VALUES (…, t.a),
// (…, t.b)), as what it means: an array of its rows, taken apart. Nil if it uses none.
func (b *binder) valuesOfRow(v *ast.Values, outer *env) ast.QueryBody {
	if outer == nil {
		return nil
	}
	e := &env{b: b, outer: outer}
	uses := false
	ast.Walk(v, func(n ast.Node) bool {
		if name, ok := n.(*ast.Name); ok {
			uses = uses || e.outerName(name) != nil
		}
		return !uses
	})
	even := !slices.ContainsFunc(v.Rows, func(r *ast.Row) bool { return len(r.Items) != len(v.Rows[0].Items) })
	if !uses || !even {
		return nil
	}
	ident := func(text string) *ast.Ident { return &ast.Ident{Span: v.Span, Text: text, Quoted: true} }
	rows := &ast.Array{Span: v.Span}
	for _, row := range v.Rows {
		s := &ast.Struct{Span: row.Span}
		for k, x := range row.Items {
			s.Fields = append(s.Fields, &ast.Arg{Span: ast.Span{From: x.Pos(), To: x.End()}, Name: ident(fmt.Sprintf("col%d", k+1)), Value: x})
		}
		rows.Items = append(rows.Items, s)
	}
	table, element := ident("VALUES"), ident("row")
	s := &ast.Select{Span: v.Span, From: []ast.TableExpr{&ast.TableFunc{
		Span: v.Span, Name: ident("unnest"), Args: []*ast.Arg{arg(rows)},
		Alias: &ast.Alias{Span: v.Span, Name: table, Columns: []*ast.Ident{element}},
	}}}
	for k := range v.Rows[0].Items {
		name := ident(fmt.Sprintf("col%d", k+1))
		field := &ast.Name{Span: v.Span, Parts: []*ast.Ident{table, element, name}}
		s.Items = append(s.Items, &ast.SelectItem{Span: v.Span, X: field, Alias: name})
	}
	return s
}
