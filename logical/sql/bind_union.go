package sql

import (
	"github.com/apache/arrow-go/v18/arrow"

	"github.com/tidemill/tidemill/columnar"
	"github.com/tidemill/tidemill/logical/sql/ast"
)

// meetTexts refuses a column of a set operation that is a text in one term and something else in
// another: a row that is no such thing would be an error when the rows are there. A text that is
// written out and reads as the other is one.
func (b *binder) meetTexts(s *ast.SetOp, terms []ast.QueryBody, inputs []*relation) error {
	for k := range inputs[0].columns {
		other := besideTexts(inputs, k)
		for i, r := range inputs {
			if other == nil || k >= len(r.columns) || r.columns[k].DataType.ID() != arrow.STRING {
				continue
			}
			var at ast.Node = terms[i]
			if items := plainItems(terms[i]); k < len(items) && !s.ByName {
				at = items[k]
				if text, ok := ast.Unparen(items[k]).(*ast.String); ok {
					if _, err := b.textAs(text, other); err == nil {
						continue
					}
				}
			}
			return b.hinted(at, "cast one of them", "column %d of %s is VARCHAR here, and %s on another side", k+1, s.Op, columnar.TypeName(other))
		}
	}
	return nil
}

// besideTexts is the type of column k where it is no text, of those that a text may become.
func besideTexts(inputs []*relation, k int) arrow.DataType {
	for _, r := range inputs {
		if k < len(r.columns) {
			if t := r.columns[k].DataType; columnar.IsNumeric(t) || columnar.IsTemporal(t) || t.ID() == arrow.BOOL {
				return t
			}
		}
	}
	return nil
}

// plainItems are the expressions of a SELECT list without stars, one a column.
func plainItems(body ast.QueryBody) []ast.Expr {
	s, ok := body.(*ast.Select)
	if !ok {
		return nil
	}
	var list []ast.Expr
	for _, item := range s.Items {
		if _, star := item.X.(*ast.Star); star {
			return nil
		}
		list = append(list, item.X)
	}
	return list
}
