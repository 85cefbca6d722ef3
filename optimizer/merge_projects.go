package optimizer

import (
	"slices"

	"github.com/tidemill/tidemill/logical"
	"github.com/tidemill/tidemill/logical/expr"
)

// MergeProjects makes one projection of two, unless an expression of the lower one
// would be computed twice, and removes one that changes nothing.
var MergeProjects Rule = rule{"merge_projects", func(n logical.Node) (logical.Node, error) {
	p, ok := n.(*logical.Project)
	if !ok {
		return n, nil
	}
	if isIdentity(p) {
		return p.Input, nil
	}
	inner, ok := p.Input.(*logical.Project)
	if !ok || !mayInline(p.Exprs(), inner.Columns) {
		return n, nil
	}
	columns := make([]expr.Named, len(p.Columns))
	for i, c := range p.Columns {
		e, err := substitute(c.Expr, inner.Columns)
		if err != nil {
			return nil, err
		}
		c.Expr = e
		columns[i] = c
	}
	return logical.NewProject(inner.Input, columns), nil
}}

// isIdentity says whether p hands on exactly its input's columns, names included.
func isIdentity(p *logical.Project) bool {
	in := p.Input.Schema().Columns
	if len(in) != len(p.Columns) {
		return false
	}
	for i, c := range p.Columns {
		col, ok := c.Expr.(*expr.Column)
		if !ok || col.ID != in[i].ID || c.ID != col.ID || c.Name != in[i].Name {
			return false
		}
	}
	return true
}

// mayInline says whether the expressions of a projection can replace its columns in
// exprs: columns, literals and structs of them always, others if used once and not
// volatile.
func mayInline(exprs []expr.Expr, columns []expr.Named) bool {
	uses := map[expr.ID]int{}
	for _, e := range exprs {
		expr.Walk(e, func(x expr.Expr) bool {
			if c, ok := x.(*expr.Column); ok {
				uses[c.ID]++
			}
			return true
		})
	}
	for _, c := range columns {
		if isPlain(c.Expr) || isStruct(c.Expr) && !slices.ContainsFunc(c.Expr.Children(), isComputed) {
			continue
		}
		if uses[c.ID] > 1 || isVolatile(c.Expr) {
			return false
		}
	}
	return true
}

// isPlain says whether e costs nothing: a column or a constant.
func isPlain(e expr.Expr) bool {
	switch e.(type) {
	case *expr.Column, *expr.Literal:
		return true
	}
	return false
}

func isComputed(e expr.Expr) bool { return !isPlain(e) }
