package sql

import (
	"strconv"
	"strings"

	"github.com/tidemill/tidemill/logical"
	"github.com/tidemill/tidemill/logical/expr"
	"github.com/tidemill/tidemill/logical/sql/ast"
)

// sample binds TABLESAMPLE: PERCENT keeps each row with that probability, ROWS the first
// so many, as Spark does.
func (b *binder) sample(n *ast.Sample, outer *env) (*relation, error) {
	r, err := b.table(n.Table, outer)
	if err != nil {
		return nil, err
	}
	text := strings.ReplaceAll(n.Amount.Text, "_", "")
	if n.Rows {
		rows, err := strconv.ParseInt(text, 10, 64)
		if err != nil {
			return nil, b.errorf(n.Amount, "TABLESAMPLE takes a whole number of rows")
		}
		r = &relation{node: logical.NewLimit(r.node, rows, 0), columns: r.columns, files: r.files}
	} else if r, err = b.samplePercent(n, r, text); err != nil {
		return nil, err
	}
	if n.Alias == nil {
		return r, nil
	}
	return b.requalified(r, n.Alias)
}

func (b *binder) samplePercent(n *ast.Sample, r *relation, text string) (*relation, error) {
	percent, err := strconv.ParseFloat(text, 64)
	if err != nil || percent > 100 {
		return nil, b.errorf(n.Amount, "TABLESAMPLE takes a percentage from 0 to 100")
	}
	e := &env{b: b, clause: "TABLESAMPLE"}
	random, err := e.call(n, "random")
	if err != nil {
		return nil, err
	}
	expr.SetPlace(random, expr.Place{Source: b.source(), Offset: n.Pos()})
	kept, err := e.call(n, "<", random, mustLiteral(percent/100))
	if err != nil {
		return nil, err
	}
	return &relation{node: logical.NewFilter(r.node, kept), columns: r.columns, files: r.files}, nil
}
