package sql

import (
	"strings"

	"github.com/tidemill/tidemill/columnar"
	"github.com/tidemill/tidemill/logical/sql/ast"
)

// expandStar makes items of the columns that * or t.* stands for, or of the fields that s.* does.
func (sel *selection) expandStar(star *ast.Star) error {
	if len(star.Table) > 0 && len(sel.s.From) > 0 && len(tableColumns(sel.from, lastOf(star.Table))) == 0 {
		if done, err := sel.expandStruct(star); done {
			return err
		}
	}
	columns, err := sel.starColumns(star)
	if err != nil {
		return err
	}
	for _, c := range columns {
		if it := starItem(star, c); it != nil {
			sel.items = append(sel.items, it)
		}
	}
	return nil
}

func lastOf(name []*ast.Ident) string { return name[len(name)-1].Text }

// starColumns are the columns that * or t.* stands for, those that are left out among them.
func (sel *selection) starColumns(star *ast.Star) ([]column, error) {
	b := sel.b
	if len(sel.s.From) == 0 {
		return nil, b.errorf(star, "there is no FROM to take * from")
	}
	table := ""
	if len(star.Table) > 0 {
		table = lastOf(star.Table)
	}
	var columns []column
	for _, c := range sel.from.columns {
		if table == "" && !c.shadowed || table != "" && strings.EqualFold(c.table, table) {
			columns = append(columns, c)
		}
	}
	if len(columns) == 0 {
		return nil, b.errorf(star, "there is no table %s in FROM%s", table, columnar.DidYouMean(table, tablesOf(sel.from)))
	}
	return columns, b.checkStar(star, columns)
}

// starItem is the item of one column; nil if it is left out.
func starItem(star *ast.Star, c column) *item {
	if identNamed(star.Except, c.name) != nil {
		return nil
	}
	it := &item{syntax: star, name: c.name, x: c.Column, state: bound, window: c.window}
	for _, r := range star.Replace {
		if strings.EqualFold(r.Alias.Text, c.name) {
			it = &item{syntax: r.X, name: c.name, alias: true}
		}
	}
	for _, r := range star.Rename {
		if strings.EqualFold(r.Column.Text, c.name) {
			it.name, it.alias = r.To.Text, true
		}
	}
	return it
}

// checkStar refuses names of no column, and to leave out all of them.
func (b *binder) checkStar(star *ast.Star, columns []column) error {
	check := func(id *ast.Ident, to string) error {
		if findName(columns, id.Text) >= 0 {
			return nil
		}
		return b.errorf(id, "there is no column %s to %s%s", id.Text, to, columnar.DidYouMean(id.Text, namesOf(columns)))
	}
	for _, id := range star.Except {
		if err := check(id, "leave out"); err != nil {
			return err
		}
	}
	for _, r := range star.Replace {
		if err := check(r.Alias, "replace"); err != nil {
			return err
		}
	}
	for _, r := range star.Rename {
		if err := check(r.Column, "rename"); err != nil {
			return err
		}
		if id := identNamed(star.Except, r.Column.Text); id != nil {
			return b.errorf(r.Column, "the column %s is left out and renamed", r.Column.Text)
		}
	}
	if len(columns) == len(star.Except) {
		return b.errorf(star, "no column is left")
	}
	return nil
}
