package sql

import (
	"path"
	"slices"
	"strings"

	"github.com/tidemill/tidemill/columnar"
	"github.com/tidemill/tidemill/logical"
	"github.com/tidemill/tidemill/logical/sql/ast"
)

// describe gives the columns of a table or query as rows.
func (b *binder) describe(d *ast.Describe) (logical.Node, error) {
	var r *relation
	var err error
	if d.Query != nil {
		r, err = b.query(d.Query, nil)
	} else {
		r, err = b.table(d.Table, nil)
	}
	if err != nil {
		return nil, err
	}
	var rows [][]string
	for _, c := range r.columns {
		if !c.shadowed {
			rows = append(rows, []string{c.name, columnar.TypeName(c.DataType)})
		}
	}
	return textRows([]string{"column_name", "column_type"}, rows), nil
}

// show gives what SHOW asks for as rows.
func (b *binder) show(s *ast.Show) (logical.Node, error) {
	switch s.What {
	case "":
		return b.showSetting(s.Name)
	case "COLUMNS":
		return b.describe(&ast.Describe{Span: s.Span, Table: s.Table})
	case "FUNCTIONS":
		return b.showFunctions(s)
	case "SETTINGS":
		return textRows([]string{"name", "value"}, b.settings()), nil
	}
	return b.showCatalog(s), nil
}

// settings are the names of the settings and their values as texts.
func (b *binder) settings() [][]string {
	var rows [][]string
	if b.p.Settings != nil {
		for _, s := range b.p.Settings() {
			rows = append(rows, []string{s.Name, s.Value})
		}
	}
	return rows
}

func (b *binder) showSetting(name *ast.Ident) (logical.Node, error) {
	var known []string
	for _, row := range b.settings() {
		if strings.EqualFold(row[0], name.Text) {
			return textRows([]string{row[0]}, [][]string{{row[1]}}), nil
		}
		known = append(known, row[0])
	}
	hint := "SHOW SETTINGS lists them; SHOW also lists TABLES, STREAMS, VIEWS, SINKS and FUNCTIONS"
	if _, ok := b.p.Catalog.Lookup(name.Text); ok {
		hint = "DESCRIBE " + name.Text + " gives its columns"
	}
	return nil, b.hinted(name, hint, "there is no setting %s%s", name.Text, columnar.DidYouMean(name.Text, known))
}

// showFunctions lists the functions whose name is like a pattern, in which * and % stand
// for any text.
func (b *binder) showFunctions(s *ast.Show) (logical.Node, error) {
	pattern := "*"
	if s.Like != nil {
		pattern = strings.ReplaceAll(lower(s.Like.Value), "%", "*")
	}
	var rows [][]string
	for _, name := range b.p.Functions.Names() {
		ok, err := path.Match(pattern, name)
		if err != nil {
			return nil, b.hinted(s.Like, "* stands for any text", "%q is no pattern of names", s.Like.Value)
		}
		if !ok || name != lower(name) || !isWordStart([]rune(name)[0]) {
			continue
		}
		kind, doc := "scalar", ""
		if f, ok := b.p.Functions.Aggregate(name); ok {
			kind, doc = "aggregate", f.Doc
		} else if f, ok := b.p.Functions.Scalar(name); ok {
			doc = f.Doc
		}
		rows = append(rows, []string{name, kind, doc})
	}
	return textRows([]string{"name", "kind", "description"}, rows), nil
}

// showCatalog lists the names of the catalog.
func (b *binder) showCatalog(s *ast.Show) logical.Node {
	names := b.p.Catalog.Names()
	slices.SortFunc(names, func(x, y string) int { return strings.Compare(lower(x), lower(y)) })
	var rows [][]string
	for _, name := range names {
		entry, _ := b.p.Catalog.Lookup(name)
		kind := "TABLE"
		if entry.View != nil {
			kind = "VIEW"
		} else if d, ok := entry.Stream.(*Declaration); ok && !d.IsTable {
			kind = "STREAM"
		}
		if s.What == "TABLES" || s.What == kind+"S" {
			rows = append(rows, []string{name, kind})
		}
	}
	if s.What == "SINKS" {
		for _, name := range b.p.Catalog.Sinks() {
			rows = append(rows, []string{name, "SINK"})
		}
	}
	return textRows([]string{"name", "kind"}, rows)
}
