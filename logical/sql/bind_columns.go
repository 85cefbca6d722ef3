package sql

import (
	"regexp"

	"github.com/tidemill/tidemill/logical/expr"
	"github.com/tidemill/tidemill/logical/sql/ast"
)

// expandColumns makes an item for each column that COLUMNS(…) in s stands for; done is false
// where it holds none.
func (sel *selection) expandColumns(s *ast.SelectItem) (done bool, err error) {
	calls := columnsCalls(s.X)
	if len(calls) == 0 {
		return false, nil
	}
	for _, c := range calls[1:] {
		if ast.Print(c) != ast.Print(calls[0]) {
			return true, sel.b.errorf(c, "one expression holds one kind of COLUMNS, this is another than %s", ast.Print(calls[0]))
		}
	}
	columns, err := sel.columnsOf(calls[0])
	if err != nil {
		return true, err
	}
	for _, c := range columns {
		it := &item{syntax: s.X, name: c.name, column: &c}
		if s.Alias != nil {
			it.name, it.alias = s.Alias.Text, true
		}
		sel.items = append(sel.items, it)
	}
	return true, nil
}

// columnsCalls are the calls COLUMNS(*) and COLUMNS('pattern') in an expression, but for
// those in its subqueries.
func columnsCalls(x ast.Expr) []*ast.Call {
	var calls []*ast.Call
	ast.Walk(x, func(n ast.Node) bool {
		switch c := n.(type) {
		case *ast.Query:
			return false
		case *ast.Call:
			if lower(c.Name.Text) == "columns" {
				calls = append(calls, c)
				return false
			}
		}
		return true
	})
	return calls
}

// columnsOf are the columns of FROM that the argument of COLUMNS stands for.
func (sel *selection) columnsOf(c *ast.Call) ([]column, error) {
	if len(c.Args) != 1 || c.Args[0].Name != nil {
		return nil, sel.b.hinted(c, "COLUMNS(*), COLUMNS(* EXCLUDE (a)), COLUMNS('^price_')", "COLUMNS takes a star, or a pattern of names")
	}
	var columns []column
	switch x := ast.Unparen(c.Args[0].Value).(type) {
	case *ast.Star:
		all, err := sel.starColumns(x)
		if err != nil {
			return nil, err
		}
		if len(x.Replace)+len(x.Rename) > 0 {
			return nil, sel.b.errorf(x, "the star of COLUMNS takes EXCLUDE alone")
		}
		for _, col := range all {
			if identNamed(x.Except, col.name) == nil {
				columns = append(columns, col)
			}
		}
	case *ast.String:
		pattern, err := regexp.Compile(x.Value)
		if err != nil {
			return nil, sel.b.errorf(x, "not a regular expression: %s", err)
		}
		for _, col := range sel.from.columns {
			if !col.shadowed && pattern.MatchString(col.name) {
				columns = append(columns, col)
			}
		}
		if len(columns) == 0 {
			return nil, sel.b.errorf(x, "no column has a name that matches %q", x.Value)
		}
	default:
		return nil, sel.b.hinted(x, "COLUMNS(* EXCLUDE (a)), COLUMNS('^price_')", "COLUMNS takes a star, or a pattern of names written out")
	}
	return columns, nil
}

// columnsCall is COLUMNS(…) in an item that was made for one of its columns.
func (e *env) columnsCall(n *ast.Call) (expr.Expr, error) {
	if e.column == nil {
		return nil, e.b.unsupported(n, "COLUMNS outside of the select list", "", "write the columns out")
	}
	return e.column.Column, nil
}

// isPlainStar says whether x is *, of no table and without options.
func isPlainStar(x ast.Expr) bool {
	s, ok := x.(*ast.Star)
	return ok && len(s.Table)+len(s.Except)+len(s.Replace)+len(s.Rename) == 0
}
