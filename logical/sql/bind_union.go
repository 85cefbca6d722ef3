package sql

import (
	"github.com/apache/arrow-go/v18/arrow"

	"github.com/tidemill/tidemill/columnar"
	"github.com/tidemill/tidemill/logical"
	"github.com/tidemill/tidemill/logical/expr"
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
			name := columnar.TypeName(other)
			return b.hinted(at, "CAST(… AS VARCHAR) on the other side makes all of them texts; CAST(… AS "+name+") here reads these, TRY_CAST gives null for what is none", "column %d of %s is VARCHAR here, and %s on another side", k+1, s.Op, name)
		}
	}
	return nil
}

// placeCasts gives the casts that a set operation made of its terms' columns the places of
// these.
func (b *binder) placeCasts(s *ast.SetOp, terms []ast.QueryBody, before, after []logical.Node) {
	for i, n := range after {
		p, ok := n.(*logical.Project)
		if !ok || n == before[i] {
			continue
		}
		items := plainItems(terms[i])
		for k, c := range p.Columns {
			if _, isCast := c.Expr.(*expr.Cast); !isCast {
				continue
			}
			if k < len(items) && !s.ByName {
				b.placed(c.Expr, items[k])
			} else {
				b.placed(c.Expr, terms[i])
			}
		}
	}
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
