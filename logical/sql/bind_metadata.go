package sql

import (
	"fmt"
	"strings"

	"github.com/tidemill/tidemill/logical"
	"github.com/tidemill/tidemill/logical/connector"
	"github.com/tidemill/tidemill/logical/expr"
	"github.com/tidemill/tidemill/logical/sql/ast"
)

// fileColumns are the hidden columns of one table of files in FROM: the fields of the
// struct _metadata. They are in the plan of its relation, and not among its columns, so
// that * leaves them out.
type fileColumns struct {
	table  string // as in column
	fields []*expr.Column
}

// speaksOf says whether _metadata stands anywhere in a piece of syntax. Only then do
// scans give the hidden columns.
func speaksOf(n ast.Node) bool {
	found := false
	ast.Walk(n, func(n ast.Node) bool {
		var parts []*ast.Ident
		switch n := n.(type) {
		case *ast.Name:
			parts = n.Parts
		case *ast.Star:
			parts = n.Table
		}
		for _, p := range parts {
			found = found || strings.EqualFold(p.Text, connector.MetadataName)
		}
		return !found
	})
	return found
}

// noteMetadata looks whether a query asks for hidden columns, before its tables are
// bound.
func (b *binder) noteMetadata(q *ast.Query) {
	b.metadata = b.metadata || speaksOf(q)
}

// scanned makes the columns of a scan, or of what passes its rows on, visible, and its
// hidden ones known.
func (b *binder) scanned(n logical.Node, table string) *relation {
	all := relationOf(n, table)
	r := &relation{node: n}
	var files fileColumns
	for _, c := range all.columns {
		if b.hidden[c.ID] {
			files.fields = append(files.fields, c.Column)
			continue
		}
		r.columns = append(r.columns, c)
	}
	if len(files.fields) > 0 {
		files.table = table
		r.files = append(r.files, files)
	}
	return r
}

// tableScan scans a table, with its hidden columns if the statement asks for any.
func (b *binder) tableScan(s *logical.Scan) logical.Node {
	if len(s.Metadata()) == 0 || !b.metadata {
		return s
	}
	b.hide(s.Metadata())
	return s.WithPositions(everyPosition(s.Full))
}

// streamScan is tableScan for a stream.
func (b *binder) streamScan(s *logical.StreamScan) logical.Node {
	if len(s.Metadata()) == 0 || !b.metadata {
		return s
	}
	b.hide(s.Metadata())
	return s.WithPositions(everyPosition(s.Full))
}

func (b *binder) hide(columns []*expr.Column) {
	for _, c := range columns {
		b.hidden[c.ID] = true
	}
}

func everyPosition(s *logical.Schema) []int {
	out := make([]int, len(s.Columns))
	for i := range out {
		out[i] = i
	}
	return out
}

// fileStruct is the struct _metadata of a table, or of the one table of files in FROM;
// nil if name means something else, or there is none.
func (e *env) fileStruct(table, name string) (expr.Expr, error) {
	if e.rel == nil || !strings.EqualFold(name, connector.MetadataName) {
		return nil, nil
	}
	var found []fileColumns
	for _, f := range e.rel.files {
		if table == "" || strings.EqualFold(f.table, table) {
			found = append(found, f)
		}
	}
	switch len(found) {
	case 0:
		return nil, nil
	case 1:
	default:
		var names []string
		for _, f := range found {
			names = append(names, f.table+"."+connector.MetadataName)
		}
		return nil, fmt.Errorf("column %s is ambiguous; it could be %s", connector.MetadataName, orList(names))
	}
	var names []string
	var fields []expr.Expr
	for i, f := range connector.MetadataFields() {
		names = append(names, f.Name)
		fields = append(fields, found[0].fields[i])
	}
	return structOf(names, fields), nil
}
