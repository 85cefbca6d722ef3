package sql

import (
	"github.com/tidemill/tidemill/logical/sql/ast"
)

// statementWords begin a statement.
var statementWords = []string{"SELECT", "WITH", "VALUES", "CREATE", "INSERT", "SET", "EXPLAIN", "DESCRIBE", "SHOW"}

// statement reads one statement, without its semicolon.
func (p *parser) statement() ast.Statement {
	t := p.tok()
	switch {
	case t.isWord("CREATE"):
		return p.create()
	case t.isWord("INSERT"):
		return p.insert()
	case t.isWord("SET"):
		return p.set()
	case t.isWord("EXPLAIN"):
		return p.explain()
	case t.isWord("DESCRIBE", "DESC"):
		return p.describe()
	case t.isWord("SHOW"):
		return p.show()
	case t.isWord("SELECT", "FROM", "WITH", "VALUES"), t.isSymbol("("):
		q := p.query()
		return &ast.QueryStmt{Span: p.span(t.span.From), Query: q}
	}
	p.failStatement()
	return nil
}

func (p *parser) failStatement() {
	t := p.tok()
	switch {
	case t.isWord("UPDATE", "DELETE", "MERGE", "ALTER", "DROP", "TRUNCATE", "USE", "REFRESH", "CACHE"):
		p.failWith(t.text+" is not a statement here: tables are files that others write",
			"statements are CREATE STREAM, TABLE, VIEW and SINK, INSERT INTO, SELECT, SET, EXPLAIN, DESCRIBE and SHOW TABLES")
	}
	p.refuseForeignStatement()
	p.fail("a statement (SELECT, WITH, VALUES, CREATE, INSERT INTO, SET, EXPLAIN, DESCRIBE or SHOW)")
	if w := nearest(t.text, statementWords); t.kind == tokenWord && w != "" {
		p.err.Hint = "did you mean " + w + "?"
	}
}

func (p *parser) create() ast.Statement {
	from := p.advance().span.From
	c := &ast.Create{OrReplace: p.acceptWords("OR", "REPLACE")}
	if p.isWord("TEMP", "TEMPORARY") {
		p.advance()
	}
	switch t := p.tok(); {
	case t.isWord("STREAM"):
		c.Kind = ast.CreateStream
	case t.isWord("TABLE"):
		c.Kind = ast.CreateTable
	case t.isWord("SINK"):
		c.Kind = ast.CreateSink
	case t.isWord("VIEW"):
		c.Kind = ast.CreateView
	case t.isWord("MATERIALIZED"):
		p.failWith("a materialized view is a sink with an INSERT", "CREATE SINK name WITH (path = …); INSERT INTO name SELECT …")
	default:
		p.fail("STREAM", "TABLE", "VIEW", "SINK")
	}
	p.advance()
	c.IfNotExists = p.acceptWords("IF", "NOT", "EXISTS")
	c.Name = p.anyName("the name of the new " + lower(c.Kind.String()))
	if c.Kind == ast.CreateView {
		p.createView(c)
	} else {
		p.createSource(c)
	}
	c.Span = p.span(from)
	return c
}

func (p *parser) createView(c *ast.Create) {
	if p.isSymbol("(") {
		c.ViewColumns = p.nameList("the name of a column")
	}
	p.expectWord("AS")
	c.Query = p.query()
}

// createSource reads columns and options of a stream, table or sink.
func (p *parser) createSource(c *ast.Create) {
	if p.isSymbol("(") {
		if c.Kind == ast.CreateSink {
			p.failWith("a sink has no column list", "its columns are those of the query inserted into it")
		}
		p.columnDefs(c)
	}
	for p.err == nil {
		switch {
		case p.isWord("WITH", "OPTIONS") && p.ahead(1).isSymbol("("):
			p.advance()
			p.options(c)
		case p.isWord("USING"):
			at := p.advance().span
			format := p.anyName("a format")
			value := &ast.String{Span: format.Span, Value: format.Text}
			c.Options = append(c.Options, option("format", at, value))
		case p.isWord("LOCATION") && p.ahead(1).kind == tokenString:
			at, path := p.advance().span, p.advance()
			c.Options = append(c.Options, option("path", at, &ast.String{Span: path.span, Value: path.text}))
		case p.isWord("AS"):
			p.failWith("CREATE "+c.Kind.String()+" … AS SELECT is not supported",
				"use CREATE VIEW "+c.Name.Text+" AS SELECT …, or CREATE SINK and INSERT INTO to write files")
		case p.isSymbol(";") || p.tok().kind == tokenEnd:
			return
		default:
			p.fail("WITH (", "; or the end of the statement")
		}
	}
}

func option(key string, at ast.Span, value ast.Expr) *ast.Option {
	return &ast.Option{
		Span:  ast.Span{From: at.From, To: value.End()},
		Key:   &ast.Ident{Span: at, Text: key},
		Value: value,
	}
}

func (p *parser) columnDefs(c *ast.Create) {
	p.expect("(")
	for {
		if p.isWord("WATERMARK") && p.nextWord("FOR") {
			p.watermark(c)
		} else {
			c.Columns = append(c.Columns, p.columnDef())
		}
		if !p.accept(",") {
			break
		}
	}
	p.closeList()
}

func (p *parser) watermark(c *ast.Create) {
	from := p.from()
	if c.Watermark != nil {
		p.failWith("a stream has one watermark", "keep one WATERMARK FOR … AS …")
	}
	p.skip(2)
	w := &ast.WatermarkDef{Column: p.anyName("the name of a column")}
	p.expectWord("AS")
	w.X = p.expr()
	w.Span = p.span(from)
	c.Watermark = w
}

func (p *parser) columnDef() *ast.ColumnDef {
	from := p.from()
	d := &ast.ColumnDef{Name: p.anyName("the name of a column")}
	if p.acceptWords("AS") {
		d.As = p.expr()
	} else {
		if p.isSymbol(",") || p.isSymbol(")") {
			p.fail("a type", "AS and an expression")
		}
		d.Type = p.typeName()
		switch {
		case p.isWord("NOT", "NULL", "PRIMARY", "UNIQUE", "CHECK", "REFERENCES", "DEFAULT", "CONSTRAINT"):
			p.failWith("constraints and defaults are not supported: files are read as they are",
				"leave it out; a condition goes into a view's WHERE")
		case p.isWord("COMMENT") && p.ahead(1).kind == tokenString:
			p.skip(2)
		}
	}
	d.Span = p.span(from)
	return d
}

// options reads (key = value, …).
func (p *parser) options(c *ast.Create) {
	p.expect("(")
	if p.accept(")") {
		return
	}
	for {
		from := p.from()
		key := p.optionKey()
		if !p.accept("=") && !p.accept("=>") && !p.accept(":=") && p.tok().kind != tokenString {
			p.fail("=")
		}
		value := p.expr()
		c.Options = append(c.Options, &ast.Option{Span: p.span(from), Key: key, Value: value})
		if !p.accept(",") {
			break
		}
	}
	p.closeList()
}

// optionKey reads a key, bare, dotted or quoted.
func (p *parser) optionKey() *ast.Ident {
	t := p.tok()
	if t.kind == tokenString && t.text != "" {
		p.advance()
		return &ast.Ident{Span: t.span, Text: t.text, Quoted: true}
	}
	key := p.anyName("the name of an option")
	for p.accept(".") {
		part := p.anyName("the name of an option")
		key = &ast.Ident{Span: p.span(t.span.From), Text: key.Text + "." + part.Text, Quoted: true}
	}
	return key
}

func (p *parser) insert() ast.Statement {
	from := p.advance().span.From
	if p.isWord("OVERWRITE") {
		p.failWith("INSERT OVERWRITE is not supported", "use INSERT INTO a sink with output_mode = 'complete'")
	}
	p.expectWord("INTO")
	if p.isWord("TABLE", "SINK") && (p.ahead(1).kind == tokenQuoted ||
		p.ahead(1).kind == tokenWord && !p.nextWord("SELECT", "FROM", "VALUES", "WITH")) {
		p.advance()
	}
	if t := p.tok(); t.kind == tokenString {
		p.failWith("expected the name of a sink, found "+p.found(), "CREATE SINK name WITH (path = "+clip(ast.QuoteString(t.text), 60)+") first")
	}
	s := &ast.Insert{Sink: p.anyName("the name of a sink")}
	if p.isSymbol("(") && !p.atParenQuery(p.i) {
		s.Columns = p.nameList("the name of a column")
	}
	s.Query = p.query()
	s.Span = p.span(from)
	return s
}

func (p *parser) set() ast.Statement {
	from := p.advance().span.From
	s := &ast.Set{}
	switch t := p.tok(); {
	case t.isWord("TIME") && p.nextWord("ZONE"):
		s.Name = []*ast.Ident{{Span: ast.Span{From: t.span.From, To: p.ahead(1).span.To}, Text: "time_zone"}}
		p.skip(2)
		if !p.accept("=") {
			p.acceptWords("TO")
		}
	default:
		s.Name = []*ast.Ident{p.optionKey()}
		if !p.accept("=") && !p.acceptWords("TO") {
			p.fail("=")
		}
	}
	s.Value = p.expr()
	s.Span = p.span(from)
	return s
}

func (p *parser) explain() ast.Statement {
	from := p.advance().span.From
	e := &ast.Explain{Analyze: p.acceptWords("ANALYZE")}
	switch t := p.tok(); {
	case t.isWord("INSERT"):
		e.Stmt = p.insert()
	case t.isWord("SELECT", "FROM", "WITH", "VALUES"), t.isSymbol("("):
		q := p.query()
		e.Stmt = &ast.QueryStmt{Span: q.Span, Query: q}
	default:
		p.fail("a query", "INSERT INTO")
	}
	e.Span = p.span(from)
	return e
}

func (p *parser) describe() ast.Statement {
	from := p.advance().span.From
	d := &ast.Describe{}
	if p.isWord("TABLE") && !p.ahead(1).isSymbol("(") && p.ahead(1).kind != tokenEnd && !p.ahead(1).isSymbol(";") {
		p.advance()
	}
	if p.atQuery(p.i) {
		d.Query = p.query()
	} else {
		d.Table = p.tablePrimary(false)
	}
	d.Span = p.span(from)
	return d
}
