package sql

import (
	"strings"

	"github.com/tidemill/tidemill/logical/sql/ast"
)

const (
	// maxDepth bounds how deep expressions, queries and types may nest.
	maxDepth = 250
	// maxLinks bounds the operators, joins and the like of one statement, which
	// make a tree as deep as they are many.
	maxLinks = 50000
)

// Parse reads the statements of a text. A mistake in one statement does not
// hide those in the next: the error is an *Error, or an ErrorList of several.
// The statements without mistakes are returned in any case.
func Parse(src string) ([]ast.Statement, error) {
	tokens, lexErr := lex(src)
	if lexErr != nil {
		return nil, lexErr
	}
	p := newParser(src, tokens)
	var stmts []ast.Statement
	var errs ErrorList
	for {
		for p.accept(";") {
		}
		if p.tok().kind == tokenEnd {
			return stmts, errs.asError()
		}
		stmt := p.statement()
		if p.err == nil && !p.isSymbol(";") && p.tok().kind != tokenEnd {
			p.fail("; or the end of the statement")
		}
		if p.err != nil {
			errs = append(errs, p.err)
			p.recover()
			continue
		}
		stmts = append(stmts, stmt)
	}
}

// ParseExpr reads one expression, as in expr("a + 1") of the DataFrame API.
func ParseExpr(src string) (ast.Expr, error) {
	tokens, lexErr := lex(src)
	if lexErr != nil {
		return nil, lexErr
	}
	p := newParser(src, tokens)
	x := p.expr()
	if p.err == nil && p.tok().kind != tokenEnd {
		p.fail("an operator or the end of the expression")
	}
	if p.err != nil {
		return nil, p.err
	}
	return x, nil
}

// parser walks over the tokens of a text. The first mistake is kept in err and
// moves the parser to the end, where every loop stops; what is returned after
// that is of no use, but never nil where a caller looks into it.
type parser struct {
	src    string
	tokens []token
	match  []int // of an opening parenthesis: the index of the closing one
	i      int
	err    *Error
	failed int // index of the token at which err was found
	depth  int
	links  int
}

func newParser(src string, tokens []token) *parser {
	return &parser{src: src, tokens: tokens, match: matchParens(tokens)}
}

// matchParens finds the partner of every opening parenthesis, or the last token.
func matchParens(tokens []token) []int {
	match := make([]int, len(tokens))
	var open []int
	for i, t := range tokens {
		match[i] = len(tokens) - 1
		if t.kind != tokenSymbol {
			continue
		}
		switch t.text {
		case "(":
			open = append(open, i)
		case ")":
			if n := len(open); n > 0 {
				match[open[n-1]] = i
				open = open[:n-1]
			}
		}
	}
	return match
}

// recover moves behind the semicolon that ends the statement with the mistake.
func (p *parser) recover() {
	p.i, p.err, p.depth, p.links = p.failed, nil, 0, 0
	for p.tok().kind != tokenEnd && !p.isSymbol(";") {
		p.i++
	}
}

func (p *parser) tok() token { return p.tokens[p.i] }

// ahead is the token n places after the current one.
func (p *parser) ahead(n int) token { return p.tokens[min(p.i+n, len(p.tokens)-1)] }

// skip reads n tokens that were looked at already.
func (p *parser) skip(n int) { p.i = min(p.i+n, len(p.tokens)-1) }

func (p *parser) advance() token {
	t := p.tokens[p.i]
	if t.kind != tokenEnd {
		p.i++
	}
	return t
}

// span is from an offset to the end of the last token read.
func (p *parser) span(from int) ast.Span {
	if p.i == 0 {
		return ast.Span{From: from, To: from}
	}
	return ast.Span{From: from, To: max(from, p.tokens[p.i-1].span.To)}
}

func (p *parser) from() int { return p.tok().span.From }

func (t token) isSymbol(s string) bool { return t.kind == tokenSymbol && t.text == s }

func (t token) isWord(words ...string) bool {
	if t.kind != tokenWord {
		return false
	}
	for _, w := range words {
		if t.text == w {
			return true
		}
	}
	return false
}

func (p *parser) isSymbol(s string) bool        { return p.tok().isSymbol(s) }
func (p *parser) isWord(words ...string) bool   { return p.tok().isWord(words...) }
func (p *parser) nextWord(words ...string) bool { return p.ahead(1).isWord(words...) }

func (p *parser) accept(symbol string) bool {
	if p.isSymbol(symbol) {
		p.i++
		return true
	}
	return false
}

// acceptWords reads the words if all of them come next.
func (p *parser) acceptWords(words ...string) bool {
	for n, w := range words {
		if !p.ahead(n).isWord(w) {
			return false
		}
	}
	p.i += len(words)
	return true
}

func (p *parser) expect(symbol string) {
	if !p.accept(symbol) {
		p.fail(symbol)
	}
}

func (p *parser) expectWord(word string) {
	if !p.acceptWords(word) {
		p.fail(word)
	}
}

// enter bounds nesting; each call is paired with leave.
func (p *parser) enter() bool {
	p.depth++
	if p.depth > maxDepth {
		p.failDeep()
		return false
	}
	return p.err == nil
}

func (p *parser) leave() { p.depth-- }

func (p *parser) failDeep() {
	p.failWith("the text nests too deep", "name parts of the query in WITH or CREATE VIEW")
}

// link counts what makes the tree deeper without nesting in the text.
func (p *parser) link() {
	if p.links++; p.links > maxLinks {
		p.failWith("the statement has too many operators", "x IN (…) or a join with VALUES stand for many comparisons")
	}
}

// fail says what was expected instead of the current token.
func (p *parser) fail(expected ...string) {
	if p.err != nil {
		return
	}
	p.failWith("expected "+orList(expected)+", found "+p.found(), p.guess(expected))
	p.err.Expected = expected
}

// failWith records a mistake at the current token.
func (p *parser) failWith(message, hint string) {
	p.failAt(p.tok().span, message, hint)
}

func (p *parser) failAt(span ast.Span, message, hint string) {
	if p.err != nil {
		return
	}
	p.err = newError(p.src, span, message)
	p.err.Hint = hint
	p.failed = p.i
	p.i = len(p.tokens) - 1
}

// found describes the current token.
func (p *parser) found() string {
	t := p.tok()
	switch t.kind {
	case tokenEnd:
		return "the end of the text"
	case tokenString:
		return "the string " + clip(ast.QuoteString(t.text), 60)
	case tokenNumber:
		return "the number " + clip(t.text, 60)
	default:
		return quote(p.src[t.span.From:t.span.To])
	}
}

// guess looks for a misspelt keyword at the current token and the one before,
// which a slip turns into an alias: SELECT a FORM t.
func (p *parser) guess(expected []string) string {
	var words []string
	for _, e := range expected {
		if e != "" && e == upper(e) && 'A' <= e[0] && e[0] <= 'Z' {
			words = append(words, strings.Fields(e)[0])
		}
	}
	words = append(words, clauseWords...)
	tries := []token{p.tok()}
	if p.i > 0 {
		tries = append(tries, p.tokens[p.i-1])
	}
	for _, t := range tries {
		if t.kind != tokenWord || len(t.text) < 3 || isReserved(t.text) {
			continue
		}
		if w := nearest(t.text, words); w != "" && w != t.text {
			return "did you mean " + w + " instead of " + quote(p.src[t.span.From:t.span.To]) + "?"
		}
	}
	return ""
}

// clauseWords are the keywords that may follow an expression or a table.
var clauseWords = []string{"FROM", "WHERE", "GROUP", "HAVING", "QUALIFY", "ORDER", "LIMIT", "OFFSET",
	"UNION", "INTERSECT", "EXCEPT", "JOIN", "WINDOW", "WITHIN"}

// reserved are the words that cannot be an alias without AS or quotes.
var reserved = map[string]bool{
	"SELECT": true, "FROM": true, "WHERE": true, "GROUP": true, "HAVING": true, "QUALIFY": true,
	"ORDER": true, "LIMIT": true, "OFFSET": true, "UNION": true, "INTERSECT": true, "EXCEPT": true,
	"JOIN": true, "INNER": true, "LEFT": true, "RIGHT": true, "FULL": true, "CROSS": true,
	"OUTER": true, "SEMI": true, "ANTI": true, "NATURAL": true,
	"ON": true, "USING": true, "WITH": true, "WITHIN": true, "WINDOW": true,
	"WHEN": true, "THEN": true, "ELSE": true, "END": true, "AND": true, "OR": true, "NOT": true,
	"CASE": true, "AS": true,
}

func isReserved(word string) bool { return reserved[word] }

// afterName are the words besides the reserved ones that may follow a column.
var afterName = map[string]bool{
	"IS": true, "IN": true, "LIKE": true, "ILIKE": true, "RLIKE": true, "REGEXP": true,
	"BETWEEN": true, "ASC": true, "DESC": true, "NULLS": true, "DIV": true, "AT": true,
	"PRECEDING": true, "FOLLOWING": true, "ROWS": true, "RANGE": true, "ESCAPE": true,
}

// wordIsName tells whether the word at index i, in a place where an operand or
// a table is due, is a name. A reserved word is one if what follows could not
// follow it as a keyword: SELECT end FROM w, but not SELECT a, FROM t.
func (p *parser) wordIsName(i int) bool {
	t := p.tokens[i]
	if t.kind == tokenQuoted {
		return true
	}
	if t.kind != tokenWord {
		return false
	}
	if !isReserved(t.text) {
		return true
	}
	next := p.tokens[min(i+1, len(p.tokens)-1)]
	switch next.kind {
	case tokenEnd:
		return true
	case tokenSymbol:
		if next.text == "(" {
			return t.isWord("LEFT", "RIGHT", "WINDOW")
		}
		if next.text == "{" || t.isWord("CASE", "NOT", "SELECT") {
			return strings.Contains(",).;", next.text)
		}
		return true
	case tokenWord:
		if t.isWord("CASE", "NOT") {
			return t.text == "CASE" && next.isWord("AS", "FROM")
		}
		if t.isWord("WINDOW") && !isReserved(next.text) { // SELECT window w, not WINDOW w AS (…)
			return !p.tokens[min(i+2, len(p.tokens)-1)].isWord("AS")
		}
		return isReserved(next.text) || afterName[next.text]
	}
	return false
}

// ident makes an identifier of a word or quoted name.
func (p *parser) ident(t token) *ast.Ident {
	if t.kind == tokenQuoted {
		return &ast.Ident{Span: t.span, Text: t.text, Quoted: true}
	}
	return &ast.Ident{Span: t.span, Text: p.src[t.span.From:t.span.To]}
}

// anyName reads a name where every word is one: after AS, after a dot, in a
// list of columns.
func (p *parser) anyName(what string) *ast.Ident {
	t := p.tok()
	if t.kind != tokenWord && t.kind != tokenQuoted {
		if t.kind == tokenString {
			p.failWith("expected "+what+", found "+p.found(), `a name is written without quotes or between "…"`)
		}
		p.fail(what)
		return &ast.Ident{Span: t.span}
	}
	return p.ident(p.advance())
}

// nameList reads (a, b, …).
func (p *parser) nameList(what string) []*ast.Ident {
	p.expect("(")
	names := []*ast.Ident{p.anyName(what)}
	for p.accept(",") {
		names = append(names, p.anyName(what))
	}
	p.closeList()
	return names
}

// closeList reads the parenthesis after a list.
func (p *parser) closeList() {
	if !p.accept(")") {
		p.fail(",", ")")
	}
}

// atBareAlias tells whether the current token is an alias without AS.
func (p *parser) atBareAlias() bool {
	t := p.tok()
	if t.kind == tokenQuoted {
		return true
	}
	if t.kind != tokenWord || isReserved(t.text) {
		return false
	}
	next := p.ahead(1)
	switch t.text {
	case "EMIT", "DISTRIBUTE", "CLUSTER", "SORT", "FOR":
		return !p.atForeignTail()
	case "TIMESTAMP", "VERSION":
		return !p.atVersion()
	case "LATERAL":
		return !next.isWord("VIEW")
	case "ASOF":
		return !p.atAsof()
	case "TABLESAMPLE":
		return !p.atSample()
	case "PIVOT", "UNPIVOT", "MATCH_RECOGNIZE":
		return !p.atUnknownTail()
	case "MATCH_CONDITION": // of other engines, unless names of columns follow it
		return !next.isSymbol("(") || p.ahead(3).isSymbol(",") || p.ahead(3).isSymbol(")")
	case "POSITIONAL":
		return !next.isWord("JOIN")
	case "FETCH":
		return !next.isWord("FIRST", "NEXT")
	case "MINUS":
		return !next.isWord("SELECT", "FROM", "ALL", "DISTINCT") && !next.isSymbol("(")
	}
	return true
}

// atQuery tells whether a query begins at token i.
func (p *parser) atQuery(i int) bool {
	t, next := p.tokens[i], p.tokens[min(i+1, len(p.tokens)-1)]
	switch {
	case t.isWord("SELECT"):
		return next.kind != tokenSymbol || !strings.Contains(",).", next.text)
	case t.isWord("FROM"):
		return next.kind != tokenSymbol || next.isSymbol("(")
	case t.isWord("WITH"):
		return next.kind == tokenWord || next.kind == tokenQuoted
	case t.isWord("VALUES"):
		return next.isSymbol("(")
	}
	return t.isSymbol("(") && p.atParenQuery(i)
}

// atParenQuery tells whether the parenthesis at token i holds a query. When it
// begins with another one, what follows the inner one decides:
// ((SELECT 1) UNION …) is a query, ((SELECT 1) + 1) is not.
func (p *parser) atParenQuery(i int) bool {
	sure := false
	for p.tokens[i+1].isSymbol("(") {
		after := p.tokens[min(p.match[i+1]+1, len(p.tokens)-1)]
		if after.isWord("UNION", "INTERSECT", "EXCEPT", "MINUS", "ORDER", "LIMIT", "OFFSET", "FETCH") {
			sure = true
		} else if !sure || !after.isSymbol(")") {
			return false
		}
		i++
	}
	return p.atQuery(i + 1)
}
