package sql

import (
	"strings"

	"github.com/tidemill/tidemill/logical/sql/ast"
)

// call reads the rest of a call; the token before the parenthesis is its name.
// Some functions have forms with words inside, which become plain arguments.
func (p *parser) call(name token) ast.Expr {
	from := name.span.From
	if name.kind == tokenWord {
		switch name.text {
		case "CAST", "TRY_CAST":
			return p.cast(from, name.text == "TRY_CAST")
		case "EXISTS":
			if p.atParenQuery(p.i) {
				p.advance()
				q := p.query()
				p.expect(")")
				return &ast.Exists{Span: p.span(from), Query: q}
			}
		case "EXTRACT":
			if t := p.ahead(1); (t.kind == tokenWord || t.kind == tokenQuoted || t.kind == tokenString && t.text != "") && p.ahead(2).isWord("FROM") {
				return p.extract(from)
			}
		}
	}
	c := &ast.Call{Name: p.ident(name)}
	p.expect("(")
	if name.kind == tokenWord {
		p.specialArgs(c)
	}
	p.args(c, false)
	p.callTail(c)
	c.Span = p.span(from)
	return c
}

func (p *parser) cast(from int, try bool) ast.Expr {
	p.expect("(")
	x := p.expr()
	p.expectWord("AS")
	t := p.typeName()
	p.expect(")")
	return &ast.Cast{Span: p.span(from), X: x, Type: t, Try: try}
}

func (p *parser) extract(from int) ast.Expr {
	p.advance()
	t := p.advance()
	part := &ast.Ident{Span: t.span, Text: t.text, Quoted: true}
	if t.kind != tokenString {
		part = p.ident(t)
	}
	p.expectWord("FROM")
	x := p.expr()
	p.expect(")")
	return &ast.Extract{Span: p.span(from), Part: part, X: x}
}

// specialArgs reads the arguments of POSITION(a IN b), SUBSTRING(x FROM a FOR b),
// TRIM(BOTH c FROM x) and OVERLAY(x PLACING y FROM a FOR b), as far as they are
// separated by words. It never reads anything twice, so nesting costs nothing.
func (p *parser) specialArgs(c *ast.Call) {
	switch upper(c.Name.Text) {
	case "POSITION":
		if p.splitsAt("IN") {
			p.positionArgs(c)
		}
	case "SUBSTRING", "SUBSTR":
		if p.splitsAt("FROM", "FOR") {
			p.substringArgs(c)
		}
	case "TRIM":
		if p.splitsAt("FROM") {
			p.trimArgs(c)
		}
	case "OVERLAY":
		if p.splitsAt("PLACING") {
			p.overlayArgs(c)
		}
	}
}

func arg(x ast.Expr) *ast.Arg {
	return &ast.Arg{Span: ast.Span{From: x.Pos(), To: x.End()}, Value: x}
}

// splitsAt tells whether word stands between this parenthesis and its end,
// outside of inner ones.
func (p *parser) splitsAt(words ...string) bool {
	end := p.match[p.i-1]
	for i := p.i; i < end; i++ {
		t := p.tokens[i]
		if t.isSymbol("(") {
			i = p.match[i]
			continue
		}
		if t.isWord(words...) {
			return true
		}
	}
	return false
}

func (p *parser) positionArgs(c *ast.Call) {
	from := p.from()
	x := p.exprAbove(bindCompare)
	if p.acceptWords("IN") {
		c.Args = []*ast.Arg{arg(x), arg(p.expr())}
		return
	}
	// The word stood inside of an argument: read the rest of the first one.
	for p.err == nil {
		next := p.infix(from, x, 0)
		if next == nil {
			break
		}
		p.link()
		x = next
	}
	c.Args = []*ast.Arg{arg(x)}
}

func (p *parser) substringArgs(c *ast.Call) {
	c.Args = []*ast.Arg{arg(p.expr())}
	switch {
	case p.acceptWords("FROM"):
		c.Args = append(c.Args, arg(p.expr()))
	case p.isWord("FOR"):
		c.Args = append(c.Args, arg(&ast.Number{Span: p.tok().span, Text: "1"}))
	default:
		return
	}
	if p.acceptWords("FOR") {
		c.Args = append(c.Args, arg(p.expr()))
	}
}

func (p *parser) trimArgs(c *ast.Call) {
	side := p.tok()
	var chars ast.Expr
	if side.isWord("BOTH", "LEADING", "TRAILING") && (p.startsOperand(1) || p.nextWord("FROM")) {
		p.advance()
	} else {
		side = token{}
	}
	if !p.isWord("FROM") {
		chars = p.expr()
	}
	if !p.acceptWords("FROM") {
		if side.kind == tokenWord {
			p.fail("FROM")
		}
		c.Args = []*ast.Arg{arg(chars)}
		return
	}
	names := map[string]string{"LEADING": "ltrim", "TRAILING": "rtrim"}
	if name := names[side.text]; name != "" {
		c.Name = &ast.Ident{Span: c.Name.Span, Text: name}
	}
	c.Args = []*ast.Arg{arg(p.expr())}
	if chars != nil {
		c.Args = append(c.Args, arg(chars))
	}
}

func (p *parser) overlayArgs(c *ast.Call) {
	c.Args = []*ast.Arg{arg(p.expr())}
	if !p.acceptWords("PLACING") {
		return
	}
	c.Args = append(c.Args, arg(p.expr()))
	p.expectWord("FROM")
	c.Args = append(c.Args, arg(p.expr()))
	if p.acceptWords("FOR") {
		c.Args = append(c.Args, arg(p.expr()))
	}
}

// args reads arguments up to and with the closing parenthesis. In a table
// function (inFrom) name = value is an option, elsewhere a comparison.
func (p *parser) args(c *ast.Call, inFrom bool) {
	if len(c.Args) == 0 && p.isWord("DISTINCT") && !p.ahead(1).isSymbol(",") && !p.ahead(1).isSymbol(")") {
		p.advance()
		c.Distinct = true
	} else if len(c.Args) == 0 && p.isWord("ALL") && p.startsOperand(1) && !p.ahead(1).isSymbol("(") {
		p.advance()
	}
	if len(c.Args) > 0 || !p.isSymbol(")") && !p.atOrderBy() {
		if len(c.Args) == 0 {
			c.Args = append(c.Args, p.arg(inFrom))
		}
		for p.accept(",") {
			c.Args = append(c.Args, p.arg(inFrom))
		}
	}
	if p.atOrderBy() {
		c.OrderBy = p.orderBy()
	}
	p.nullsRule(c)
	p.closeList()
}

func (p *parser) atOrderBy() bool { return p.isWord("ORDER") && p.nextWord("BY") }

func (p *parser) nullsRule(c *ast.Call) {
	switch {
	case p.acceptWords("IGNORE", "NULLS"):
		c.Nulls = ast.IgnoreNulls
	case p.acceptWords("RESPECT", "NULLS"):
		c.Nulls = ast.RespectNulls
	}
}

// arg reads one argument.
func (p *parser) arg(inFrom bool) *ast.Arg {
	from := p.from()
	a := &ast.Arg{}
	t, next := p.tok(), p.ahead(1)
	named := next.isSymbol("=>") || next.isSymbol(":=") || inFrom && next.isSymbol("=")
	switch {
	case named && (t.kind == tokenWord || t.kind == tokenQuoted):
		a.Name = p.ident(p.advance())
		p.advance()
	case named && t.kind == tokenString && t.text != "":
		p.advance()
		a.Name = &ast.Ident{Span: t.span, Text: t.text, Quoted: true}
		p.advance()
	}
	a.Value = p.argValue()
	if a.Name == nil && p.acceptWords("AS") {
		a.Name = p.anyName("a name")
	}
	a.Span = p.span(from)
	return a
}

func (p *parser) argValue() ast.Expr {
	from, next := p.from(), p.ahead(1)
	if p.accept("*") {
		star := &ast.Star{Span: p.span(from)}
		p.starOptions(star)
		return star
	}
	if p.isWord("TABLE") && (next.kind == tokenWord || next.kind == tokenQuoted || next.kind == tokenString || next.isSymbol("(")) {
		p.advance()
		a := &ast.TableArg{Table: p.tablePrimary(false)}
		if p.acceptWords("PARTITION", "BY") {
			a.Partition = p.partitionKeys()
		}
		a.Span = p.span(from)
		return a
	}
	x := p.expr()
	if star, ok := x.(*ast.Star); ok {
		p.starOptions(star)
	}
	return x
}

// partitionKeys reads k, or (k, l): the next comma belongs to the arguments.
func (p *parser) partitionKeys() []ast.Expr {
	x := p.expr()
	switch v := x.(type) {
	case *ast.Row:
		return v.Items
	case *ast.Paren:
		return []ast.Expr{v.X}
	}
	return []ast.Expr{x}
}

// callTail reads what may follow a call: IGNORE NULLS, WITHIN GROUP, FILTER, OVER.
func (p *parser) callTail(c *ast.Call) {
	if c.Nulls == ast.NullsUnsaid {
		p.nullsRule(c)
	}
	if p.isWord("WITHIN") && p.nextWord("GROUP") {
		p.skip(2)
		p.expect("(")
		c.WithinGroup = p.orderBy()
		p.expect(")")
	}
	if p.isWord("FILTER") && p.ahead(1).isSymbol("(") {
		p.skip(2)
		p.expectWord("WHERE")
		c.Filter = p.expr()
		p.expect(")")
	}
	if c.Nulls == ast.NullsUnsaid {
		p.nullsRule(c)
	}
	next := p.ahead(1)
	if p.isWord("OVER") && (next.isSymbol("(") || next.kind == tokenQuoted || next.kind == tokenWord && !isReserved(next.text)) {
		c.Over = p.over()
	}
}

func (p *parser) over() *ast.Over {
	from := p.advance().span.From
	o := &ast.Over{}
	if p.isSymbol("(") {
		o.Spec = p.windowSpec()
	} else {
		o.Name = p.anyName("the name of a window")
	}
	o.Span = p.span(from)
	return o
}

// windowSpec reads (base PARTITION BY … ORDER BY … frame).
func (p *parser) windowSpec() *ast.WindowSpec {
	w := &ast.WindowSpec{}
	p.expect("(")
	from := p.from()
	frameWords := []string{"ROWS", "RANGE", "GROUPS"}
	base := p.tok().kind == tokenQuoted || p.tok().kind == tokenWord && !p.isWord("PARTITION", "ORDER") &&
		(!p.isWord(frameWords...) || p.ahead(1).isSymbol(")"))
	if base {
		w.Base = p.anyName("the name of a window")
	}
	if p.acceptWords("PARTITION", "BY") {
		w.Partition = p.exprs()
	}
	if p.isWord("ORDER") {
		w.OrderBy = p.orderBy()
	}
	if p.isWord(frameWords...) {
		w.Frame = p.frame()
	}
	if p.err == nil && !p.isSymbol(")") {
		p.fail("PARTITION BY", "ORDER BY", "ROWS", "RANGE", "GROUPS", ")")
	}
	w.Span = p.span(from)
	p.expect(")")
	return w
}

func (p *parser) frame() *ast.Frame {
	t := p.advance()
	f := &ast.Frame{Unit: t.text}
	if p.acceptWords("BETWEEN") {
		f.HasEnd = true
		f.Low = p.frameBound()
		p.expectWord("AND")
		f.High = p.frameBound()
	} else {
		f.Low = p.frameBound()
	}
	if p.acceptWords("EXCLUDE") {
		switch {
		case p.acceptWords("CURRENT", "ROW"):
			f.Exclude = "CURRENT ROW"
		case p.acceptWords("NO", "OTHERS"):
			f.Exclude = "NO OTHERS"
		case p.isWord("GROUP", "TIES"):
			f.Exclude = p.advance().text
		default:
			p.fail("CURRENT ROW", "GROUP", "TIES", "NO OTHERS")
		}
	}
	f.Span = p.span(t.span.From)
	return f
}

func (p *parser) frameBound() ast.FrameBound {
	switch {
	case p.acceptWords("UNBOUNDED", "PRECEDING"):
		return ast.FrameBound{Kind: ast.UnboundedPreceding}
	case p.acceptWords("UNBOUNDED", "FOLLOWING"):
		return ast.FrameBound{Kind: ast.UnboundedFollowing}
	case p.acceptWords("CURRENT", "ROW"):
		return ast.FrameBound{Kind: ast.CurrentRow}
	}
	b := ast.FrameBound{Kind: ast.Preceding, Offset: p.exprAbove(bindCompare)}
	switch {
	case p.acceptWords("PRECEDING"):
	case p.acceptWords("FOLLOWING"):
		b.Kind = ast.Following
	default:
		p.fail("PRECEDING", "FOLLOWING")
	}
	return b
}

// typeName reads the name of a type.
func (p *parser) typeName() *ast.Type {
	t := &ast.Type{}
	if !p.enter() {
		p.leave()
		return t
	}
	defer p.leave()
	from := p.from()
	p.typeBase(t)
	t.Span = p.span(from)
	for n := 1; p.isSymbol("[") && p.err == nil; n++ {
		if !p.ahead(1).isSymbol("]") {
			break
		}
		if p.depth+n > maxDepth {
			p.failDeep()
			break
		}
		p.skip(2)
		t = &ast.Type{Span: p.span(from), Name: "array", Elem: t}
	}
	return t
}

func (p *parser) typeBase(t *ast.Type) {
	tok := p.tok()
	if tok.kind != tokenWord {
		p.fail("a type")
		return
	}
	p.advance()
	t.Span = tok.span
	t.Name = lower(p.src[tok.span.From:tok.span.To])
	nested := p.isSymbol("<") || p.isSymbol("(")
	switch tok.text {
	case "ARRAY", "LIST":
		if nested {
			end := p.openType()
			t.Name, t.Elem = "array", p.typeName()
			p.closeType(end)
			return
		}
	case "MAP":
		if nested {
			end := p.openType()
			t.Key = p.typeName()
			p.expect(",")
			t.Elem = p.typeName()
			p.closeType(end)
			return
		}
	case "STRUCT", "ROW":
		t.Name = "struct"
		if nested {
			p.structFields(t)
			return
		}
	case "DOUBLE":
		p.acceptWords("PRECISION")
	case "CHARACTER":
		if p.acceptWords("VARYING") {
			t.Name = "varchar"
		}
	case "INTERVAL":
		if unitAt(p.tok()) != "" && p.nextWord("TO") && unitAt(p.ahead(2)) != "" {
			p.skip(3)
		}
		return
	}
	p.typeArgs(t)
	if tok.isWord("TIMESTAMP", "TIME") {
		p.timeZone(t)
	}
}

// timeZone reads WITH[OUT] [LOCAL] TIME ZONE, which for a timestamp says nothing.
func (p *parser) timeZone(t *ast.Type) {
	if !p.isWord("WITH", "WITHOUT") {
		return
	}
	with := p.isWord("WITH")
	if !p.acceptWords(p.tok().text, "TIME", "ZONE") && !p.acceptWords(p.tok().text, "LOCAL", "TIME", "ZONE") {
		return
	}
	if t.Name == "time" && with {
		p.failAt(p.span(t.From), "a time of day with a time zone is not supported", "use TIME, or TIMESTAMP for an instant")
	}
}

// typeArgs reads (10, 2).
func (p *parser) typeArgs(t *ast.Type) {
	if !p.isSymbol("(") || p.ahead(1).kind != tokenNumber {
		return
	}
	p.advance()
	for {
		tok := p.tok()
		n := 0
		for _, c := range []byte(tok.text) {
			if !isDigit(c) || len(tok.text) > 6 {
				tok.kind = tokenEnd
				break
			}
			n = n*10 + int(c-'0')
		}
		if tok.kind != tokenNumber {
			p.fail("a small whole number")
			return
		}
		p.advance()
		t.Args = append(t.Args, n)
		if !p.accept(",") {
			break
		}
	}
	p.closeList()
}

func (p *parser) structFields(t *ast.Type) {
	end := p.openType()
	p.fieldList(t)
	p.closeType(end)
}

// fieldList reads a BIGINT, b VARCHAR, with or without colons.
func (p *parser) fieldList(t *ast.Type) {
	for {
		from := p.from()
		f := &ast.TypeField{Name: p.anyName("the name of a field")}
		p.accept(":")
		f.Type = p.typeName()
		f.Span = p.span(from)
		t.Fields = append(t.Fields, f)
		if !p.accept(",") {
			break
		}
	}
}

// openType reads < or (, and gives the mark that closes it.
func (p *parser) openType() string {
	if p.advance().text == "<" {
		return ">"
	}
	return ")"
}

// closeType reads the mark; of >> it takes the first half.
func (p *parser) closeType(end string) {
	if t := &p.tokens[p.i]; end == ">" && t.isSymbol(">>") {
		t.text = ">"
		t.span.From++
		return
	}
	if !p.accept(end) {
		p.fail(",", end)
	}
}

// lower is the lower case of ASCII letters only.
func lower(s string) string {
	return strings.Map(func(r rune) rune {
		if 'A' <= r && r <= 'Z' {
			return r + 'a' - 'A'
		}
		return r
	}, s)
}
