package sql

import "github.com/tidemill/tidemill/logical/sql/ast"

// tableExpr reads a table with the joins that follow it.
func (p *parser) tableExpr() ast.TableExpr {
	from := p.from()
	left := p.tablePrimary(true)
	for p.err == nil {
		if p.isWord("LATERAL") && p.nextWord("VIEW") {
			left = p.lateralView(from, left)
			p.link()
			continue
		}
		j := p.joinKind()
		if j == nil {
			break
		}
		j.L, j.R = left, p.tablePrimary(true)
		p.joinCondition(j)
		j.Span = p.span(from)
		left = j
		p.link()
	}
	return left
}

// atAsof tells whether the current token begins an as-of join: ASOF is a word of the
// language only there.
func (p *parser) atAsof() bool {
	return p.isWord("ASOF") && p.nextWord("JOIN", "INNER", "LEFT", "RIGHT", "FULL", "SEMI", "ANTI")
}

// joinKind reads [NATURAL | ASOF] [LEFT [OUTER] …] JOIN; nil if there is no join.
func (p *parser) joinKind() *ast.Join {
	asof := p.atAsof()
	if p.isWord("POSITIONAL") && p.nextWord("JOIN") {
		p.failWith("POSITIONAL JOIN is not supported: the rows of a table have no fixed places", "number both with row_number() OVER (ORDER BY …) and join by that")
	}
	if !asof && !p.isWord("NATURAL", "JOIN", "INNER", "LEFT", "RIGHT", "FULL", "CROSS", "SEMI", "ANTI") {
		return nil
	}
	j := &ast.Join{Natural: p.acceptWords("NATURAL")}
	if asof {
		p.advance()
		j.Asof = true
	}
	switch {
	case p.acceptWords("INNER"):
	case p.acceptWords("LEFT", "SEMI"), p.acceptWords("SEMI"):
		j.Kind = ast.SemiJoin
	case p.acceptWords("LEFT", "ANTI"), p.acceptWords("ANTI"):
		j.Kind = ast.AntiJoin
	case p.acceptWords("CROSS"):
		j.Kind = ast.CrossJoin
	case p.isWord("LEFT", "RIGHT", "FULL"):
		j.Kind = map[string]ast.JoinKind{"LEFT": ast.LeftJoin, "RIGHT": ast.RightJoin, "FULL": ast.FullJoin}[p.advance().text]
		p.acceptWords("OUTER")
	}
	p.expectWord("JOIN")
	return j
}

// joinCondition reads ON or USING, which only CROSS and NATURAL joins lack.
func (p *parser) joinCondition(j *ast.Join) {
	if j.Kind == ast.CrossJoin || j.Natural {
		if p.isWord("ON", "USING") {
			p.failWith("this join has no condition", "use JOIN … ON")
		}
		return
	}
	switch {
	case p.acceptWords("ON"):
		j.On = p.expr()
	case p.isWord("USING") && p.ahead(1).isSymbol("("):
		p.advance()
		j.Using = p.nameList("the name of a column")
	default:
		p.fail("ON", "USING (")
		switch {
		case p.err.Hint != "":
		case j.Asof:
			p.err.Hint = "ASOF JOIN … ON l.key = r.key AND l.ts >= r.ts, or USING (key, ts)"
		default:
			p.err.Hint = "a join without condition is CROSS JOIN"
		}
	}
}

func (p *parser) lateralView(from int, left ast.TableExpr) ast.TableExpr {
	p.skip(2)
	v := &ast.LateralView{L: left, Outer: p.acceptWords("OUTER")}
	name := p.tok()
	if name.kind != tokenWord && name.kind != tokenQuoted || !p.ahead(1).isSymbol("(") {
		p.fail("a table function")
		return left
	}
	p.advance()
	at := name.span.From
	v.Func = &ast.Call{Name: p.ident(name)}
	p.expect("(")
	p.args(v.Func, false)
	v.Func.Span = p.span(at)
	if p.atBareAlias() {
		v.Table = p.ident(p.advance())
	}
	if p.acceptWords("AS") {
		v.Columns = append(v.Columns, p.anyName("the name of a column"))
		for p.isSymbol(",") && p.err == nil {
			p.advance()
			v.Columns = append(v.Columns, p.anyName("the name of a column"))
		}
	}
	v.Span = p.span(from)
	return v
}

// tablePrimary reads one table, or a sample of it. Without alias it takes none, as in an
// argument.
func (p *parser) tablePrimary(withAlias bool) ast.TableExpr {
	from := p.from()
	t := p.tableSource(withAlias)
	if withAlias && p.atSample() {
		return p.sample(from, t)
	}
	p.refuseTail()
	return t
}

func (p *parser) tableSource(withAlias bool) ast.TableExpr {
	none := &ast.TableName{Span: p.tok().span, Parts: []*ast.Ident{{}}}
	if !p.enter() {
		p.leave()
		return none
	}
	defer p.leave()
	from, t := p.from(), p.tok()
	lateral := p.isWord("LATERAL") && (p.ahead(1).isSymbol("(") || p.ahead(2).isSymbol("("))
	if lateral {
		p.advance()
		t = p.tok()
	}
	switch {
	case t.isSymbol("("):
		return p.parenTable(from, lateral, withAlias)
	case t.isWord("VALUES") && p.ahead(1).isSymbol("("):
		v := p.values()
		q := &ast.TableQuery{Query: &ast.Query{Span: v.Span, Body: v}}
		q.Alias = p.tableAlias(withAlias)
		q.Span = p.span(from)
		return q
	case t.kind == tokenString:
		p.advance()
		path := &ast.TablePath{Path: &ast.String{Span: t.span, Value: t.text}}
		path.Alias = p.tableAlias(withAlias)
		path.Span = p.span(from)
		return path
	case t.isWord("TABLE") && p.ahead(1).isSymbol("("):
		return p.tableOf(from, withAlias)
	case t.isWord("SELECT"):
		p.failWith("expected a table, found a query", "put the query in parentheses")
		return none
	case !p.wordIsName(p.i):
		p.failTable()
		return none
	case p.ahead(1).isSymbol("("):
		p.advance()
		return p.tableFunc(from, t, lateral, withAlias)
	}
	n := &ast.TableName{Parts: []*ast.Ident{p.ident(p.advance())}}
	for p.accept(".") {
		n.Parts = append(n.Parts, p.anyName("the name of a table"))
	}
	n.Alias = p.tableAlias(withAlias)
	n.Span = p.span(from)
	return n
}

func (p *parser) failTable() {
	if p.err != nil {
		return
	}
	hint := p.guess(nil)
	if p.isSymbol("[") {
		hint = `a name stands without brackets, or between "…"`
	}
	if t := p.tok(); t.kind == tokenWord && hint == "" {
		hint = `a table of this name is written in quotes: "` + p.src[t.span.From:t.span.To] + `"`
	}
	p.failWith("expected a table, found "+p.found(), hint)
	p.err.Expected = []string{"a table"}
}

// parenTable reads a query or a join in parentheses.
func (p *parser) parenTable(from int, lateral, withAlias bool) ast.TableExpr {
	// ((SELECT 1)) is a query here, as no value can stand in FROM.
	inner := p.i + 1
	for p.tokens[inner].isSymbol("(") && p.tokens[p.match[inner]].isSymbol(")") &&
		p.tokens[p.match[inner]+1].isSymbol(")") {
		inner++
	}
	if p.atParenQuery(p.i) || !p.tokens[inner].isSymbol("(") && p.atQuery(inner) {
		p.advance()
		q := &ast.TableQuery{Lateral: lateral, Query: p.query()}
		p.expect(")")
		q.Alias = p.tableAlias(withAlias)
		q.Span = p.span(from)
		return q
	}
	if lateral {
		p.failWith("LATERAL needs a query or a table function", "LATERAL (SELECT …)")
	}
	p.expect("(")
	t := &ast.ParenTable{Table: p.tableExpr()}
	p.expect(")")
	t.Alias = p.tableAlias(withAlias)
	t.Span = p.span(from)
	return t
}

// tableOf reads Flink's TABLE(f(…)), which is f(…).
func (p *parser) tableOf(from int, withAlias bool) ast.TableExpr {
	p.skip(2)
	name := p.tok()
	if name.kind != tokenWord && name.kind != tokenQuoted || !p.ahead(1).isSymbol("(") {
		p.fail("a table function")
		return &ast.TableName{Parts: []*ast.Ident{{}}}
	}
	p.advance()
	f := p.tableFunc(from, name, false, false)
	p.expect(")")
	f.Alias = p.tableAlias(withAlias)
	f.Span = p.span(from)
	return f
}

func (p *parser) tableFunc(from int, name token, lateral, withAlias bool) *ast.TableFunc {
	f := &ast.TableFunc{Lateral: lateral, Name: p.ident(name)}
	c := &ast.Call{}
	p.expect("(")
	p.args(c, true)
	if c.Distinct || len(c.OrderBy) > 0 || c.Nulls != ast.NullsUnsaid {
		p.failAt(p.span(from), "a table function takes neither DISTINCT, ORDER BY nor IGNORE NULLS", "")
	}
	f.Args = c.Args
	f.Ordinality = p.acceptWords("WITH", "ORDINALITY")
	f.Alias = p.tableAlias(withAlias)
	f.Span = p.span(from)
	return f
}

// tableAlias reads [AS] name [(columns)].
func (p *parser) tableAlias(wanted bool) *ast.Alias {
	from := p.from()
	if !wanted || !p.isWord("AS") && !p.atBareAlias() || p.atVersion() {
		return nil
	}
	p.acceptWords("AS")
	a := &ast.Alias{Name: p.anyName("a name")}
	if p.isSymbol("(") {
		a.Columns = p.nameList("the name of a column")
	}
	a.Span = p.span(from)
	return a
}
