package sql

import "github.com/tidemill/tidemill/logical/sql/ast"

// quantified reads op ANY (query), op SOME (array) or op ALL (…) after the operator; nil if
// it is not there. ANY and SOME are aggregates, too: what only those can be followed by
// makes them one.
func (p *parser) quantified(from int, left ast.Expr, op token) ast.Expr {
	if !p.isWord("ANY", "SOME", "ALL") || !p.ahead(1).isSymbol("(") || p.ahead(2).isSymbol(")") {
		return nil
	}
	isQuery := p.atParenQuery(p.i + 1)
	if !isQuery && (p.ahead(2).isWord("DISTINCT") || p.isOperandBefore(p.match[p.i+1]+1)) {
		return nil
	}
	word := p.advance()
	q := &ast.Quantified{X: left, Op: infix[op.text].op, All: word.isWord("ALL"), OpPos: op.span.From}
	p.expect("(")
	if isQuery {
		q.Query = p.query()
	} else {
		q.Array = p.expr()
		if p.isSymbol(",") {
			p.failWith(word.text+" takes a query or an array", "x IN (1, 2) compares with several values")
		}
	}
	p.expect(")")
	q.Span = p.span(from)
	return q
}

// isOperandBefore says whether what ends before token i belongs to the operator there, or
// is a call of an aggregate with FILTER or OVER.
func (p *parser) isOperandBefore(i int) bool {
	t := p.tokens[min(i, len(p.tokens)-1)]
	next := p.tokens[min(i+1, len(p.tokens)-1)]
	switch t.kind {
	case tokenSymbol:
		return infix[t.text].level > bindCompare || t.isSymbol(".") || t.isSymbol("[") || t.isSymbol("::")
	case tokenWord:
		return t.isWord("FILTER", "OVER") && next.isSymbol("(") || t.isWord("DIV", "MOD") && next.kind != tokenSymbol ||
			t.isWord("OVER") && next.kind == tokenWord && !isReserved(next.text)
	}
	return false
}
