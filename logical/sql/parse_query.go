package sql

import (
	"github.com/tidemill/tidemill/logical/sql/ast"
)

// query reads [WITH …] body [ORDER BY …] [LIMIT …] [OFFSET …].
func (p *parser) query() *ast.Query {
	q := &ast.Query{Body: &ast.Values{}}
	if !p.enter() {
		p.leave()
		return q
	}
	defer p.leave()
	from := p.from()
	if p.isWord("WITH") {
		q.With = p.with()
	}
	q.Body = p.setOps(0)
	if p.isWord("ORDER") {
		q.OrderBy = p.orderBy()
	}
	p.limit(q)
	p.lateClause()
	q.Span = p.span(from)
	return q
}

func (p *parser) with() *ast.With {
	w := &ast.With{}
	from := p.advance().span.From
	if p.isWord("RECURSIVE") && (p.ahead(1).kind == tokenWord && !p.nextWord("AS") || p.ahead(1).kind == tokenQuoted) {
		p.advance()
		w.Recursive = true
	}
	for {
		at := p.from()
		c := &ast.CTE{Name: p.anyName("the name of a common table expression")}
		if p.isSymbol("(") {
			c.Columns = p.nameList("the name of a column")
		}
		p.expectWord("AS")
		if !p.acceptWords("NOT", "MATERIALIZED") {
			p.acceptWords("MATERIALIZED")
		}
		p.expect("(")
		c.Query = p.query()
		p.expect(")")
		c.Span = p.span(at)
		w.Tables = append(w.Tables, c)
		if !p.accept(",") {
			break
		}
	}
	w.Span = p.span(from)
	return w
}

// setOp gives the set operation at the current token and how tightly it binds.
func (p *parser) setOp() (op string, level int) {
	switch {
	case p.isWord("UNION"):
		return "UNION", 1
	case p.isWord("EXCEPT"):
		return "EXCEPT", 1
	case p.isWord("MINUS") && !p.atBareAlias():
		return "EXCEPT", 1
	case p.isWord("INTERSECT"):
		return "INTERSECT", 2
	}
	return "", 0
}

// setOps reads queries joined by set operations that bind tighter than level.
func (p *parser) setOps(level int) ast.QueryBody {
	from := p.from()
	left := p.body()
	for p.err == nil {
		op, own := p.setOp()
		if own <= level {
			break
		}
		p.advance()
		s := &ast.SetOp{Op: op, L: left}
		if p.acceptWords("ALL") {
			s.All = true
		} else {
			p.acceptWords("DISTINCT")
		}
		s.ByName = p.acceptWords("BY", "NAME")
		s.R = p.setOps(own)
		s.Span = p.span(from)
		left = s
		p.link()
	}
	return left
}

// body reads SELECT, VALUES, or a query in parentheses.
func (p *parser) body() ast.QueryBody {
	switch t := p.tok(); {
	case t.isWord("SELECT"), t.isWord("FROM"):
		return p.selectBody()
	case t.isWord("VALUES"):
		return p.values()
	case t.isSymbol("("):
		p.advance()
		q := p.query()
		p.expect(")")
		return &ast.ParenQuery{Span: p.span(t.span.From), Query: q}
	case t.isWord("WITH"):
		p.failWith("WITH stands at the head of a query", "put the query in parentheses, or move WITH to the front")
	}
	p.fail("SELECT", "VALUES", "(")
	return &ast.Values{}
}

func (p *parser) values() *ast.Values {
	v := &ast.Values{}
	from := p.advance().span.From
	for {
		at := p.from()
		p.expect("(")
		row := &ast.Row{Items: p.exprs()}
		p.closeList()
		row.Span = p.span(at)
		v.Rows = append(v.Rows, row)
		if !p.isSymbol(",") || !p.ahead(1).isSymbol("(") {
			break
		}
		p.advance()
	}
	v.Span = p.span(from)
	return v
}

// selectBody reads SELECT … FROM …, or the other way round, where FROM t alone selects all.
func (p *parser) selectBody() *ast.Select {
	s := &ast.Select{}
	from := p.from()
	p.fromClause(s)
	if p.isWord("SELECT") {
		p.advance()
		p.selectList(s)
	} else {
		s.Items = []*ast.SelectItem{{Span: p.span(from), X: &ast.Star{Span: p.span(from)}}}
	}
	if len(s.From) == 0 {
		p.fromClause(s)
	}
	p.selectClauses(s)
	s.Span = p.span(from)
	return s
}

// fromClause reads FROM and its tables, if they stand here.
func (p *parser) fromClause(s *ast.Select) {
	if !p.acceptWords("FROM") {
		return
	}
	s.From = append(s.From, p.tableExpr())
	for p.accept(",") {
		s.From = append(s.From, p.tableExpr())
	}
}

// selectList reads what follows SELECT.
func (p *parser) selectList(s *ast.Select) {
	if p.isWord("DISTINCT") && p.startsSelectItem(1) {
		p.advance()
		s.Distinct = ast.Distinct
		if p.isWord("ON") && p.ahead(1).isSymbol("(") {
			p.skip(2)
			s.Distinct = ast.DistinctOn
			s.On = p.exprs()
			p.closeList()
		}
	} else if p.isWord("ALL") && p.startsSelectItem(1) {
		p.advance()
	}
	p.refuseTop()
	s.Items = append(s.Items, p.selectItem())
	for p.accept(",") {
		s.Items = append(s.Items, p.selectItem())
	}
}

// startsSelectItem tells whether a select item may begin n tokens ahead:
// SELECT distinct FROM t selects a column.
func (p *parser) startsSelectItem(n int) bool {
	t := p.ahead(n)
	return p.startsOperand(n) || t.isSymbol("*") || t.isWord("ON") || t.kind == tokenWord && isReserved(t.text) && !t.isWord("FROM", "AS") ||
		t.kind == tokenWord && afterName[t.text]
}

func (p *parser) selectClauses(s *ast.Select) {
	if p.acceptWords("WHERE") {
		s.Where = p.expr()
	}
	if p.acceptWords("WITHIN") {
		p.expectWord("WATERMARK")
		s.WithinWatermark = true
	}
	if p.isWord("GROUP") {
		s.GroupBy = p.groupBy()
	}
	if p.acceptWords("HAVING") {
		s.Having = p.expr()
	}
	if p.acceptWords("WINDOW") {
		s.Windows = p.namedWindows()
	}
	if p.acceptWords("QUALIFY") {
		s.Qualify = p.expr()
	}
	if len(s.Windows) == 0 && p.acceptWords("WINDOW") {
		s.Windows = p.namedWindows()
	}
	if p.isWord("FROM") && len(s.From) == 0 && s.Where != nil {
		p.failWith("FROM stands too late", "the order is SELECT, FROM, WHERE")
	}
}

// lateClause explains a clause that stands behind its place, or a second time.
func (p *parser) lateClause() {
	for _, word := range []string{"WHERE", "GROUP", "HAVING", "QUALIFY", "ORDER", "WITHIN"} {
		if p.err == nil && p.isWord(word) {
			p.failWith(word+" stands too late, or twice",
				"the order is SELECT, FROM, WHERE, GROUP BY, HAVING, QUALIFY, ORDER BY, LIMIT; conditions are joined with AND")
		}
	}
	p.refuseForeignTail()
}

func (p *parser) selectItem() *ast.SelectItem {
	from := p.from()
	item := &ast.SelectItem{}
	if p.accept("*") {
		item.X = &ast.Star{Span: p.span(from)}
	} else {
		item.X = p.expr()
	}
	if star, ok := item.X.(*ast.Star); ok {
		p.starOptions(star)
		item.Span = p.span(from)
		return item
	}
	item.Alias = p.selectAlias()
	item.Span = p.span(from)
	return item
}

func (p *parser) selectAlias() *ast.Ident {
	if p.acceptWords("AS") {
		return p.anyName("a name")
	}
	if p.atBareAlias() {
		return p.ident(p.advance())
	}
	if t := p.tok(); t.kind == tokenString {
		p.failWith("expected a name, found "+p.found(), `a name is written without quotes or between "…"`)
	}
	return nil
}

// starOptions reads EXCEPT (a, b), REPLACE (x AS a) and RENAME (a AS b).
func (p *parser) starOptions(star *ast.Star) {
	if p.isWord("EXCEPT", "EXCLUDE") && p.ahead(1).isSymbol("(") && !p.atParenQuery(p.i+1) {
		p.advance()
		star.Except = p.nameList("the name of a column")
	} else if p.isWord("EXCLUDE") {
		p.advance()
		star.Except = []*ast.Ident{p.anyName("the name of a column")}
	}
	if p.isWord("REPLACE") && p.ahead(1).isSymbol("(") {
		p.skip(2)
		for {
			from := p.from()
			r := &ast.SelectItem{X: p.expr()}
			p.expectWord("AS")
			r.Alias = p.anyName("the name of a column")
			r.Span = p.span(from)
			star.Replace = append(star.Replace, r)
			if !p.accept(",") {
				break
			}
		}
		p.closeList()
	}
	if p.isWord("RENAME") && p.ahead(1).isSymbol("(") {
		p.skip(2)
		star.Rename = p.renames()
	}
	star.To = p.span(star.From).To
}

func (p *parser) renames() []*ast.Renamed {
	var list []*ast.Renamed
	for {
		from := p.from()
		r := &ast.Renamed{Column: p.anyName("the name of a column")}
		p.expectWord("AS")
		r.To = p.anyName("the new name")
		r.Span = p.span(from)
		list = append(list, r)
		if !p.accept(",") {
			break
		}
	}
	p.closeList()
	return list
}

func (p *parser) groupBy() *ast.GroupBy {
	g := &ast.GroupBy{}
	from := p.advance().span.From
	p.expectWord("BY")
	if next := p.ahead(1); p.isWord("ALL") && next.kind != tokenQuoted &&
		(next.kind != tokenSymbol || next.text == ")" || next.text == ";") {
		p.advance()
		g.All = true
		g.Span = p.span(from)
		return g
	}
	g.Items = append(g.Items, p.groupItem())
	for p.accept(",") {
		g.Items = append(g.Items, p.groupItem())
	}
	if p.isWord("WITH") && p.nextWord("ROLLUP", "CUBE") {
		kind := ast.Rollup
		if p.nextWord("CUBE") {
			kind = ast.Cube
		}
		p.skip(2)
		g.Items = []ast.Expr{&ast.GroupingSets{Span: p.span(from), Kind: kind, Items: g.Items}}
	}
	g.Span = p.span(from)
	return g
}

// groupItem reads an expression, (), ROLLUP (…), CUBE (…) or GROUPING SETS (…).
func (p *parser) groupItem() ast.Expr {
	from := p.from()
	if p.isSymbol("(") && p.ahead(1).isSymbol(")") {
		p.skip(2)
		return &ast.Row{Span: p.span(from)}
	}
	g := &ast.GroupingSets{}
	switch {
	case p.isWord("ROLLUP") && p.ahead(1).isSymbol("("):
		g.Kind = ast.Rollup
		p.advance()
	case p.isWord("CUBE") && p.ahead(1).isSymbol("("):
		g.Kind = ast.Cube
		p.advance()
	case p.isWord("GROUPING") && p.nextWord("SETS"):
		g.Kind = ast.Sets
		p.skip(2)
	default:
		return p.expr()
	}
	if !p.enter() {
		p.leave()
		return g
	}
	defer p.leave()
	p.expect("(")
	g.Items = append(g.Items, p.groupItem())
	for p.accept(",") {
		g.Items = append(g.Items, p.groupItem())
	}
	p.closeList()
	g.Span = p.span(from)
	return g
}

func (p *parser) namedWindows() []*ast.NamedWindow {
	var windows []*ast.NamedWindow
	for {
		from := p.from()
		w := &ast.NamedWindow{Name: p.anyName("the name of a window")}
		p.expectWord("AS")
		w.Spec = p.windowSpec()
		w.Span = p.span(from)
		windows = append(windows, w)
		if !p.accept(",") {
			return windows
		}
	}
}

// orderBy reads ORDER BY and its items.
func (p *parser) orderBy() []*ast.OrderItem {
	p.expectWord("ORDER")
	p.expectWord("BY")
	items := []*ast.OrderItem{p.orderItem()}
	for p.accept(",") {
		items = append(items, p.orderItem())
	}
	return items
}

func (p *parser) orderItem() *ast.OrderItem {
	from := p.from()
	o := &ast.OrderItem{}
	next := p.ahead(1)
	if p.isWord("ALL") && (next.kind == tokenEnd || next.kind == tokenWord && !next.isWord("AS", "AND", "OR", "IS", "IN") ||
		next.kind == tokenSymbol && (next.text == ")" || next.text == ";" || next.text == ",")) {
		p.advance()
		o.All = true
	} else {
		o.X = p.expr()
	}
	if p.acceptWords("DESC") {
		o.Desc = true
	} else {
		p.acceptWords("ASC")
	}
	if p.acceptWords("NULLS") {
		switch {
		case p.acceptWords("FIRST"):
			o.Nulls = ast.NullsFirst
		case p.acceptWords("LAST"):
			o.Nulls = ast.NullsLast
		default:
			p.fail("FIRST", "LAST")
		}
	}
	o.Span = p.span(from)
	return o
}

// limit reads LIMIT n, OFFSET n in either order, and FETCH FIRST n ROWS ONLY.
func (p *parser) limit(q *ast.Query) {
	for p.err == nil {
		switch {
		case p.isWord("LIMIT") && q.Limit == nil:
			p.advance()
			if p.isWord("ALL") {
				p.advance()
				continue
			}
			q.Limit = p.expr()
			if p.isSymbol(",") {
				p.failWith("LIMIT takes one number", "LIMIT count OFFSET start")
			}
		case p.isWord("OFFSET") && q.Offset == nil:
			p.advance()
			q.Offset = p.expr()
			if p.isWord("ROW", "ROWS") {
				p.advance()
			}
		case p.isWord("FETCH") && p.nextWord("FIRST", "NEXT") && q.Limit == nil:
			p.fetch(q)
		default:
			return
		}
	}
}

func (p *parser) fetch(q *ast.Query) {
	p.skip(2)
	if p.isWord("ROW", "ROWS") {
		q.Limit = &ast.Number{Span: p.tok().span, Text: "1"}
	} else {
		q.Limit = p.expr()
	}
	if !p.isWord("ROW", "ROWS") {
		p.fail("ROWS")
	}
	p.advance()
	p.expectWord("ONLY")
}
