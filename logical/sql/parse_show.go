package sql

import "github.com/tidemill/tidemill/logical/sql/ast"

// show reads SHOW and what is to be shown: a list, or a setting by its name.
func (p *parser) show() ast.Statement {
	from := p.advance().span.From
	s := &ast.Show{}
	last := p.ahead(1).kind == tokenEnd || p.ahead(1).isSymbol(";")
	switch {
	case p.isWord("TABLES", "STREAMS", "VIEWS", "SINKS", "SETTINGS") && last:
		s.What = p.advance().text
	case p.isWord("ALL") && last:
		p.advance()
		s.What = "SETTINGS"
	case p.isWord("FUNCTIONS") && (last || p.nextWord("LIKE")):
		s.What = p.advance().text
		p.showLike(s)
	case p.isWord("COLUMNS") && p.nextWord("FROM", "IN"):
		s.What = p.advance().text
		p.advance()
		s.Table = p.tablePrimary(false)
	case p.isWord("TIME") && p.nextWord("ZONE"):
		s.Name = &ast.Ident{Span: ast.Span{From: p.from(), To: p.ahead(1).span.To}, Text: "time_zone"}
		p.skip(2)
	case (p.tok().kind == tokenWord && !p.isWord("COLUMNS") || p.tok().kind == tokenQuoted) && last:
		s.Name = p.anyName("the name of a setting")
	default:
		p.fail("TABLES", "STREAMS", "VIEWS", "SINKS", "FUNCTIONS", "COLUMNS FROM", "SETTINGS", "the name of a setting")
	}
	s.Span = p.span(from)
	return s
}

func (p *parser) showLike(s *ast.Show) {
	if !p.acceptWords("LIKE") {
		return
	}
	t := p.tok()
	if t.kind != tokenString {
		p.fail("a pattern such as 'date*'")
		return
	}
	p.advance()
	s.Like = &ast.String{Span: t.span, Value: t.text}
}
