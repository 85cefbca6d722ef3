package sql

import (
	"strings"

	"github.com/apache/arrow-go/v18/arrow"

	"github.com/tidemill/tidemill/logical/sql/ast"
)

// expandStruct makes items of the fields of the struct that s.* names; done is false if
// there is no such struct.
func (sel *selection) expandStruct(star *ast.Star) (done bool, err error) {
	fields := sel.fieldsOf(star.Table)
	if fields == nil {
		return false, nil
	}
	columns := make([]column, len(fields))
	for i, name := range fields {
		columns[i] = column{name: name}
	}
	if err := sel.b.checkStar(star, columns); err != nil {
		return true, err
	}
	for _, c := range columns {
		it := starItem(star, c)
		if it == nil {
			continue
		}
		if it.state == bound { // not replaced: bound as if it were written s.field
			id := &ast.Ident{Span: star.Span, Text: c.name, Quoted: true}
			it = &item{syntax: &ast.Name{Span: star.Span, Parts: append(star.Table[:len(star.Table):len(star.Table)], id)}, name: it.name, alias: it.alias}
		}
		sel.items = append(sel.items, it)
	}
	return true, nil
}

// fieldsOf are the names of the fields of the struct a name stands for; nil if it stands
// for none. The struct of the window that rows are grouped by is no column.
func (sel *selection) fieldsOf(name []*ast.Ident) []string {
	x, err := sel.env("SELECT", noAliases).bind(&ast.Name{Span: ast.Span{From: name[0].From, To: name[len(name)-1].To}, Parts: name})
	if err != nil {
		if len(name) == 1 && sel.groupsByWindow(name[0].Text) {
			return []string{"start", "end"}
		}
		return nil
	}
	s, ok := x.Type().(*arrow.StructType)
	if !ok {
		return nil
	}
	var fields []string
	for _, f := range s.Fields() {
		fields = append(fields, f.Name)
	}
	return fields
}

// groupsByWindow says whether GROUP BY calls window or session_window under that name.
func (sel *selection) groupsByWindow(name string) bool {
	if sel.s.GroupBy == nil || !strings.EqualFold(name, "window") && !strings.EqualFold(name, "session_window") {
		return false
	}
	found := false
	ast.Walk(sel.s.GroupBy, func(n ast.Node) bool {
		if c, ok := n.(*ast.Call); ok {
			found = found || strings.EqualFold(c.Name.Text, name)
		}
		return !found
	})
	return found
}
