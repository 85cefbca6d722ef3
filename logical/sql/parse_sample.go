package sql

import "github.com/tidemill/tidemill/logical/sql/ast"

// atSample tells whether TABLESAMPLE (…) begins here; alone the word is an alias.
func (p *parser) atSample() bool {
	if !p.isWord("TABLESAMPLE") {
		return false
	}
	n := 1
	if p.ahead(n).isWord("BERNOULLI", "SYSTEM") {
		n++
	}
	return p.ahead(n).isSymbol("(") && (p.ahead(n+1).kind == tokenNumber || p.ahead(n+1).isSymbol("-")) || n == 2
}

// sample reads TABLESAMPLE (10 PERCENT), (5 ROWS) or BERNOULLI (10).
func (p *parser) sample(from int, t ast.TableExpr) ast.TableExpr {
	s := &ast.Sample{Table: t}
	p.advance()
	method := p.isWord("BERNOULLI")
	if p.isWord("SYSTEM") {
		p.failWith("TABLESAMPLE SYSTEM is not supported", "TABLESAMPLE (10 PERCENT) looks at every row")
		return t
	}
	if method {
		p.advance()
	}
	p.expect("(")
	s.Amount = p.sampleNumber()
	switch {
	case p.isWord("PERCENT") || p.isSymbol("%"):
		p.advance()
	case !method && p.isWord("ROWS"):
		p.advance()
		s.Rows = true
	case method && p.isSymbol(")"):
	default:
		p.fail("PERCENT", "ROWS")
	}
	p.expect(")")
	if p.isWord("REPEATABLE") && p.ahead(1).isSymbol("(") {
		p.failWith("REPEATABLE is not supported: the rows have no order of their own to draw them in",
			"WHERE pmod(xxhash64(CAST(key AS VARCHAR)), 100) < 10 keeps the same tenth each time")
	}
	s.Alias = p.tableAlias(true)
	s.Span = p.span(from)
	return s
}

func (p *parser) sampleNumber() *ast.Number {
	t := p.tok()
	if t.kind != tokenNumber {
		p.fail("a number")
		return &ast.Number{Span: t.span, Text: "0"}
	}
	p.advance()
	return &ast.Number{Span: t.span, Text: t.text}
}

// atUnknownTail tells whether what other engines put behind a table begins here; alone
// its words are aliases.
func (p *parser) atUnknownTail() bool {
	if !p.ahead(1).isSymbol("(") {
		return false
	}
	switch {
	case p.isWord("PIVOT"):
		return p.ahead(3).isSymbol("(")
	case p.isWord("UNPIVOT"):
		return p.ahead(3).isWord("FOR") || p.ahead(2).isSymbol("(")
	case p.isWord("MATCH_RECOGNIZE"):
		return p.ahead(2).isWord("PARTITION", "ORDER", "MEASURES", "PATTERN", "ONE", "ALL", "AFTER")
	}
	return false
}

// refuseTail explains it.
func (p *parser) refuseTail() {
	switch {
	case p.atVersion():
		p.failWith("AS OF is not supported", asOfHint)
	case p.atForeignTail():
		p.refuseForeignTail()
	case p.isWord("WITH") && p.ahead(1).isSymbol("(") && p.ahead(2).isWord(lockHints...):
		p.failWith("WITH ("+p.ahead(2).text+") is not supported", "leave it out: nothing is locked")
	case p.isWord("USING") && p.nextWord("SAMPLE"):
		p.failWith("USING SAMPLE is not supported", "TABLESAMPLE (10 PERCENT) stands behind the table")
	case p.isWord("PIVOT") && p.atUnknownTail():
		p.failWith("PIVOT is not supported", "name the columns: sum(x) FILTER (WHERE k = 'a') AS a, …, GROUP BY the others")
	case p.isWord("UNPIVOT") && p.atUnknownTail():
		p.failWith("UNPIVOT is not supported", "CROSS JOIN UNNEST(['a', 'b'], [a, b]) AS u (name, value)")
	case p.isWord("MATCH_RECOGNIZE") && p.atUnknownTail():
		p.failWith("MATCH_RECOGNIZE is not supported", "lag and lead OVER (…) look at the rows before and after, in bounded queries")
	}
}
