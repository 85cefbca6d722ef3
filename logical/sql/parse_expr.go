package sql

import (
	"strings"

	"github.com/tidemill/tidemill/logical/sql/ast"
)

// How tightly infix operators bind. Comparisons and predicates (IS, IN, LIKE,
// BETWEEN) share a level and group to the left.
const (
	bindOr = iota + 1
	bindAnd
	bindNot
	bindCompare
	bindBitOr
	bindBitAnd
	bindShift
	bindAdd
	bindMul
	bindZone
	bindPower
	bindUnary
)

// infix gives the level of each operator, and the one spelling it has in the tree.
var infix = map[string]struct {
	level int
	op    string
}{
	"=": {bindCompare, "="}, "==": {bindCompare, "="}, "<>": {bindCompare, "<>"}, "!=": {bindCompare, "<>"},
	"<": {bindCompare, "<"}, "<=": {bindCompare, "<="}, ">": {bindCompare, ">"}, ">=": {bindCompare, ">="},
	"<=>": {bindCompare, "<=>"},
	"|":   {bindBitOr, "|"}, "&": {bindBitAnd, "&"}, "<<": {bindShift, "<<"}, ">>": {bindShift, ">>"},
	"+": {bindAdd, "+"}, "-": {bindAdd, "-"}, "||": {bindAdd, "||"},
	"*": {bindMul, "*"}, "/": {bindMul, "/"}, "//": {bindMul, "//"}, "%": {bindMul, "%"}, "**": {bindPower, "**"},
}

// expr reads an expression.
func (p *parser) expr() ast.Expr { return p.exprAbove(0) }

// exprs reads expressions separated by commas.
func (p *parser) exprs() []ast.Expr {
	items := []ast.Expr{p.expr()}
	for p.accept(",") {
		items = append(items, p.expr())
	}
	return items
}

// exprAbove reads an expression whose infix operators bind tighter than level.
func (p *parser) exprAbove(level int) ast.Expr {
	if !p.enter() {
		p.leave()
		return &ast.Null{Span: p.tok().span}
	}
	defer p.leave()
	from := p.from()
	left := p.prefix()
	for p.err == nil {
		next := p.infix(from, left, level)
		if next == nil {
			break
		}
		p.link()
		left = next
	}
	return left
}

// infix reads an operator that binds tighter than level and its right operand;
// nil if there is none.
func (p *parser) infix(from int, left ast.Expr, level int) ast.Expr {
	t := p.tok()
	switch t.kind {
	case tokenWord:
		return p.infixWord(from, left, level)
	case tokenSymbol:
		op, ok := infix[t.text]
		if !ok {
			p.refuseOperator(t)
			return nil
		}
		if op.level <= level {
			return nil
		}
		p.advance()
		if op.level == bindCompare && op.op != "<=>" {
			if q := p.quantified(from, left, t); q != nil {
				return q
			}
		}
		right := p.exprAbove(op.level)
		if op.op == "<=>" {
			return &ast.IsDistinct{Span: p.span(from), L: left, R: right, Not: true}
		}
		return &ast.Binary{Span: p.span(from), Op: op.op, L: left, R: right, OpPos: t.span.From}
	}
	return nil
}

// refuseOperator explains operators of other dialects.
func (p *parser) refuseOperator(t token) {
	switch t.text {
	case "^":
		p.failWith(`the operator "^" means different things to different engines`,
			"use power(a, b) for powers, xor(a, b) for bits")
	case "->":
		if k := p.ahead(1).kind; k == tokenString || k == tokenNumber {
			p.failWith(`the operator "->" is not supported`, "use json_extract(text, path) for JSON, get_json_object(text, path) for a text")
			return
		}
		p.failWith("functions of functions, x -> …, are not supported", lambdaHint)
	case "->>":
		p.failWith(`the operator "->>" is not supported`, "use get_json_object(text, path)")
	case "!", "~", "@", "#", "$", "?":
		if p.refuseMatch() {
			return
		}
		p.failWith("unexpected "+quote(t.text)+" after an expression", "")
	}
}

// infixWord reads an infix operator that is a word.
func (p *parser) infixWord(from int, left ast.Expr, level int) ast.Expr {
	t := p.tok()
	switch t.text {
	case "OR", "AND":
		own := bindOr
		if t.text == "AND" {
			own = bindAnd
		}
		if own <= level {
			return nil
		}
		p.advance()
		right := p.exprAbove(own)
		return &ast.Binary{Span: p.span(from), Op: t.text, L: left, R: right, OpPos: t.span.From}
	case "DIV":
		if bindMul <= level || !p.startsOperand(1) {
			return nil
		}
		p.advance()
		right := p.exprAbove(bindMul)
		return &ast.Binary{Span: p.span(from), Op: "//", L: left, R: right, OpPos: t.span.From}
	case "AT":
		if bindZone <= level || !p.acceptWords("AT", "TIME", "ZONE") {
			return nil
		}
		zone := p.exprAbove(bindZone)
		return &ast.AtTimeZone{Span: p.span(from), X: left, Zone: zone}
	}
	if bindCompare <= level {
		return nil
	}
	return p.predicate(from, left)
}

// predicate reads IS, IN, LIKE, BETWEEN and their negations. Where such a word
// is not followed by what it needs it is an alias.
func (p *parser) predicate(from int, left ast.Expr) ast.Expr {
	if p.isWord("IS") {
		if !p.nextWord("NOT", "NULL", "TRUE", "FALSE", "UNKNOWN", "DISTINCT") {
			return nil
		}
		p.advance()
		return p.isPredicate(from, left)
	}
	at := 0
	if p.isWord("NOT") {
		at = 1
	}
	word := p.ahead(at)
	switch {
	case word.isWord("IN"):
		if !p.ahead(at + 1).isSymbol("(") {
			return nil
		}
	case word.isWord("LIKE", "ILIKE", "RLIKE", "REGEXP", "BETWEEN"):
		if !p.startsOperand(at + 1) {
			return nil
		}
	case word.isWord("SIMILAR") && p.ahead(at+1).isWord("TO"):
		p.skip(at + 2)
		return p.likePredicate(from, left, "SIMILAR TO", at == 1)
	default:
		return nil
	}
	p.skip(at + 1)
	not := at == 1
	switch word.text {
	case "IN":
		return p.inPredicate(from, left, not)
	case "BETWEEN":
		low := p.exprAbove(bindCompare)
		p.expectWord("AND")
		high := p.exprAbove(bindCompare)
		return &ast.Between{Span: p.span(from), X: left, Low: low, High: high, Not: not}
	default:
		return p.likePredicate(from, left, word.text, not)
	}
}

func (p *parser) isPredicate(from int, left ast.Expr) ast.Expr {
	not := p.acceptWords("NOT")
	if p.acceptWords("DISTINCT") {
		p.expectWord("FROM")
		right := p.exprAbove(bindCompare)
		return &ast.IsDistinct{Span: p.span(from), L: left, R: right, Not: not}
	}
	kinds := map[string]ast.IsKind{"NULL": ast.IsNull, "TRUE": ast.IsTrue, "FALSE": ast.IsFalse, "UNKNOWN": ast.IsUnknown}
	kind, ok := kinds[p.tok().text]
	if !ok || p.tok().kind != tokenWord {
		p.fail("NULL", "TRUE", "FALSE", "UNKNOWN", "DISTINCT FROM")
		return left
	}
	p.advance()
	return &ast.Is{Span: p.span(from), X: left, Not: not, Kind: kind}
}

func (p *parser) inPredicate(from int, left ast.Expr, not bool) ast.Expr {
	in := &ast.In{X: left, Not: not}
	if p.atParenQuery(p.i) {
		p.advance()
		in.Query = p.query()
		p.expect(")")
	} else {
		p.expect("(")
		if p.isSymbol(")") {
			p.failWith("IN needs at least one value", "x IN (1, 2)")
		}
		in.List = p.exprs()
		p.closeList()
	}
	in.Span = p.span(from)
	return in
}

func (p *parser) likePredicate(from int, left ast.Expr, op string, not bool) ast.Expr {
	if op == "REGEXP" {
		op = "RLIKE"
	}
	if p.isWord("ANY", "ALL", "SOME") && p.ahead(1).isSymbol("(") {
		return p.likeList(from, &ast.Like{X: left, Op: op, Not: not, All: p.isWord("ALL")})
	}
	like := &ast.Like{X: left, Op: op, Not: not, Pattern: p.exprAbove(bindCompare)}
	if p.isWord("ESCAPE") && p.startsOperand(1) {
		p.advance()
		like.Escape = p.exprAbove(bindCompare)
	}
	like.Span = p.span(from)
	return like
}

// likeList reads the patterns of LIKE ANY (…).
func (p *parser) likeList(from int, like *ast.Like) ast.Expr {
	if p.atParenQuery(p.i + 1) {
		p.failWith(like.Op+" "+p.tok().text+" of a query is not supported", "write the patterns out, or EXISTS (SELECT … WHERE x LIKE pattern)")
	}
	p.advance()
	p.expect("(")
	like.Patterns = p.exprs()
	p.closeList()
	like.Span = p.span(from)
	return like
}

// startsOperand tells whether an operand may begin n tokens ahead.
func (p *parser) startsOperand(n int) bool {
	i := min(p.i+n, len(p.tokens)-1)
	t := p.tokens[i]
	switch t.kind {
	case tokenNumber, tokenString, tokenQuoted:
		return true
	case tokenWord:
		return !isReserved(t.text) && !afterName[t.text] || t.isWord("CASE", "NOT", "LEFT", "RIGHT", "WINDOW") && !p.wordIsName(i) ||
			p.tokens[min(i+1, len(p.tokens)-1)].isSymbol("(") && t.isWord("LEFT", "RIGHT")
	case tokenSymbol:
		return strings.Contains("([{-+~", t.text)
	}
	return false
}

// prefix reads an operand with the operators before and behind it.
func (p *parser) prefix() ast.Expr {
	t := p.tok()
	switch {
	case t.isSymbol("-"), t.isSymbol("+"), t.isSymbol("~"):
		p.advance()
		x := p.exprAbove(bindUnary - 1)
		return &ast.Unary{Span: p.span(t.span.From), Op: t.text, X: x}
	case t.isSymbol("!"):
		p.advance()
		x := p.exprAbove(bindUnary - 1)
		// ! binds tighter than NOT, so it brings its parentheses along.
		span := p.span(t.span.From)
		return &ast.Paren{Span: span, X: &ast.Unary{Span: span, Op: "NOT", X: x}}
	case t.isWord("NOT") && !p.wordIsName(p.i):
		p.advance()
		x := p.exprAbove(bindNot)
		return &ast.Unary{Span: p.span(t.span.From), Op: "NOT", X: x}
	}
	return p.postfix(t.span.From, p.primary())
}

// postfix reads what may follow an operand: .name, [index], ::type.
func (p *parser) postfix(from int, x ast.Expr) ast.Expr {
	for p.err == nil {
		switch {
		case p.isSymbol("."):
			if p.ahead(1).isSymbol("*") {
				p.failWith("* after an expression is not supported", "name the fields: s.a, s.b")
				return x
			}
			p.advance()
			name := p.anyName("the name of a field")
			if p.isSymbol("(") {
				p.failAt(name.Span, "a call after a dot is not supported", "write "+name.Text+"(x, …) instead of x."+name.Text+"(…)")
			}
			x = &ast.Field{Span: p.span(from), X: x, Name: name}
		case p.isSymbol("["):
			x = p.element(from, x)
		case p.isSymbol("::"):
			p.advance()
			t := p.typeName()
			x = &ast.Cast{Span: p.span(from), X: x, Type: t}
		default:
			return x
		}
		p.link()
	}
	return x
}

// element reads [index], or [from:to] where either may be left out.
func (p *parser) element(from int, x ast.Expr) ast.Expr {
	p.advance()
	var low, high ast.Expr
	if !p.isSymbol(":") {
		low = p.expr()
	}
	if low != nil && !p.isSymbol(":") {
		p.refuseComprehension()
		p.expect("]")
		return &ast.Index{Span: p.span(from), X: x, I: low}
	}
	p.advance()
	if !p.isSymbol("]") && !p.isSymbol(":") {
		high = p.expr()
	}
	if p.isSymbol(":") {
		p.failWith("slices with a step are not supported", "a[i:j], or filter the rows of unnest(a) WITH ORDINALITY")
	}
	p.expect("]")
	return &ast.Slice{Span: p.span(from), X: x, Low: low, High: high}
}

// primary reads an operand.
func (p *parser) primary() ast.Expr {
	t := p.tok()
	switch t.kind {
	case tokenNumber:
		p.advance()
		return &ast.Number{Span: t.span, Text: t.text}
	case tokenString:
		p.advance()
		return &ast.String{Span: t.span, Value: t.text}
	case tokenQuoted:
		return p.nameOrCall()
	case tokenWord:
		return p.primaryWord()
	case tokenSymbol:
		switch t.text {
		case "(":
			return p.paren()
		case "[":
			p.advance()
			return p.array(t.span.From)
		case "{":
			return p.structLiteral()
		case "*":
			p.failWith("* is a list of columns, not a value", "it stands alone in SELECT *, or as count(*)")
		case "?", "$", "@":
			p.failParameter()
		case ":":
			if p.refuseColon(t) {
				break
			}
		case "^", "->", "->>":
			p.refuseOperator(t)
		}
	}
	p.failOperand()
	return &ast.Null{Span: t.span}
}

// failOperand says that an expression was due, with the usual reasons.
func (p *parser) failOperand() {
	if p.err != nil {
		return
	}
	before := ""
	if p.i > 0 {
		before = p.tokens[p.i-1].text
	}
	hint := ""
	if t := p.tok(); t.kind == tokenWord && isReserved(t.text) {
		hint = `a column of this name is written in quotes: "` + p.src[t.span.From:t.span.To] + `"`
		if before == "," {
			hint = "remove the comma before " + t.text
		}
	} else if before == "," && t.isSymbol(")") {
		hint = "remove the comma before )"
	}
	p.failWith("expected an expression, found "+p.found(), hint)
	if p.err != nil {
		p.err.Expected = []string{"an expression"}
	}
}

// paren reads (x), (x, y), or (query).
func (p *parser) paren() ast.Expr {
	from := p.from()
	if p.atParenQuery(p.i) {
		p.advance()
		q := p.query()
		p.expect(")")
		return &ast.Subquery{Span: p.span(from), Query: q}
	}
	p.advance()
	items := p.exprs()
	if len(items) == 1 && p.accept(")") {
		return &ast.Paren{Span: p.span(from), X: items[0]}
	}
	p.closeList()
	return &ast.Row{Span: p.span(from), Items: items}
}

// array reads the rest of […].
func (p *parser) array(from int) ast.Expr {
	a := &ast.Array{}
	if !p.isSymbol("]") {
		a.Items = p.exprs()
	}
	p.refuseComprehension()
	if !p.accept("]") {
		p.fail(",", "]")
	}
	a.Span = p.span(from)
	return a
}

// structLiteral reads {'a': 1, b: 2}.
func (p *parser) structLiteral() ast.Expr {
	s := &ast.Struct{}
	from := p.from()
	p.expect("{")
	for {
		f := &ast.Arg{}
		at := p.from()
		if p.tok().kind == tokenString {
			t := p.advance()
			f.Name = &ast.Ident{Span: t.span, Text: t.text, Quoted: true}
			if t.text == "" {
				p.failAt(t.span, "the name of a field cannot be empty", "")
			}
		} else {
			f.Name = p.anyName("the name of a field")
		}
		p.expect(":")
		f.Value = p.expr()
		f.Span = p.span(at)
		s.Fields = append(s.Fields, f)
		if !p.accept(",") {
			break
		}
	}
	if !p.accept("}") {
		p.fail(",", "}")
	}
	s.Span = p.span(from)
	return s
}

// primaryWord reads an operand that begins with a word.
func (p *parser) primaryWord() ast.Expr {
	t, next := p.tok(), p.ahead(1)
	switch t.text {
	case "NULL":
		p.advance()
		return &ast.Null{Span: t.span}
	case "TRUE", "FALSE":
		p.advance()
		return &ast.Bool{Span: t.span, Value: t.text == "TRUE"}
	case "CASE":
		if !p.wordIsName(p.i) {
			return p.caseExpr()
		}
	case "INTERVAL":
		if x := p.interval(); x != nil {
			return x
		}
	case "X":
		if next.kind == tokenString && next.span.From == t.span.To {
			return p.blob()
		}
	case "ARRAY":
		if next.isSymbol("[") {
			p.skip(2)
			return p.array(t.span.From)
		}
		if next.isSymbol("(") && p.atParenQuery(p.i+1) {
			p.skip(2)
			q := p.query()
			p.expect(")")
			return &ast.ArrayQuery{Span: p.span(t.span.From), Query: q}
		}
	case "LAMBDA":
		p.refuseLambda()
	case "MAP":
		if next.isSymbol("{") || next.isSymbol("[") {
			return p.mapLiteral()
		}
	}
	p.refuseTypedLiteral()
	if next.kind == tokenString {
		return p.typedString()
	}
	if x := p.timestampZone(); x != nil {
		return x
	}
	if !p.wordIsName(p.i) {
		p.failOperand()
		return &ast.Null{Span: t.span}
	}
	return p.nameOrCall()
}

// typedString reads DATE '…', TIME '…', TIMESTAMP '…' and its synonyms.
func (p *parser) typedString() ast.Expr {
	t, text := p.tok(), p.ahead(1)
	var kind string
	switch t.text {
	case "DATE", "TIME":
		kind = t.text
	case "TIMESTAMP", "TIMESTAMPTZ", "TIMESTAMP_LTZ", "TIMESTAMP_NTZ", "DATETIME":
		kind = "TIMESTAMP"
	case "E", "R", "B", "N", "U":
		p.failWith("strings with the prefix "+t.text+" are not supported",
			"there are no backslash escapes; a quote inside a string is doubled: 'it''s'")
		return &ast.Null{Span: t.span}
	default:
		if isReserved(t.text) {
			p.failOperand()
			return &ast.Null{Span: t.span}
		}
		p.advance()
		p.failWith("expected an operator, found "+p.found(), "a text is converted with CAST('…' AS type)")
		return &ast.Null{Span: t.span}
	}
	p.skip(2)
	return &ast.TypedString{Span: p.span(t.span.From), Type: kind, Value: text.text}
}

// timestampZone reads TIMESTAMP WITH[OUT] TIME ZONE '…'; nil if it is not there.
func (p *parser) timestampZone() ast.Expr {
	t := p.tok()
	if !t.isWord("TIMESTAMP") || !p.nextWord("WITH", "WITHOUT") || !p.ahead(2).isWord("TIME") ||
		!p.ahead(3).isWord("ZONE") || p.ahead(4).kind != tokenString {
		return nil
	}
	text := p.ahead(4)
	p.skip(5)
	return &ast.TypedString{Span: p.span(t.span.From), Type: "TIMESTAMP", Value: text.text}
}

func (p *parser) blob() ast.Expr {
	from, text := p.advance().span.From, p.advance()
	digits := upper(text.text)
	if len(digits)%2 != 0 || strings.Trim(digits, "0123456789ABCDEF") != "" {
		p.failAt(p.span(from), "X'…' needs pairs of hexadecimal digits", "X'1F' is one byte")
	}
	return &ast.Blob{Span: p.span(from), Hex: digits}
}

// mapLiteral reads MAP {k: v, …} or MAP [k, v, …].
func (p *parser) mapLiteral() ast.Expr {
	from := p.advance().span.From
	m := &ast.Map{}
	between, end := ":", "}"
	if p.isSymbol("[") {
		between, end = ",", "]"
	}
	p.advance()
	for !p.isSymbol(end) && p.err == nil {
		m.Keys = append(m.Keys, p.expr())
		p.expect(between)
		m.Values = append(m.Values, p.expr())
		if !p.accept(",") {
			break
		}
	}
	if !p.accept(end) {
		p.fail(",", end)
	}
	m.Span = p.span(from)
	return m
}

func (p *parser) caseExpr() ast.Expr {
	c := &ast.Case{}
	from := p.advance().span.From
	if !p.isWord("WHEN") {
		c.Operand = p.expr()
	}
	for p.isWord("WHEN") {
		at := p.advance().span.From
		cond := p.expr()
		p.expectWord("THEN")
		then := p.expr()
		c.Whens = append(c.Whens, &ast.When{Span: p.span(at), Cond: cond, Then: then})
	}
	if len(c.Whens) == 0 {
		p.fail("WHEN")
	}
	if p.acceptWords("ELSE") {
		c.Else = p.expr()
		p.expectWord("END")
	} else if !p.acceptWords("END") {
		p.fail("WHEN", "ELSE", "END")
	}
	c.Span = p.span(from)
	return c
}

// nameOrCall reads a dotted name, t.*, or a function call.
func (p *parser) nameOrCall() ast.Expr {
	first := p.tok()
	p.advance()
	if p.isSymbol("(") {
		return p.call(first)
	}
	n := &ast.Name{Parts: []*ast.Ident{p.ident(first)}}
	for p.isSymbol(".") && p.err == nil {
		if p.ahead(1).isSymbol("*") {
			p.skip(2)
			return &ast.Star{Span: p.span(first.span.From), Table: n.Parts}
		}
		p.advance()
		n.Parts = append(n.Parts, p.anyName("a name"))
		if p.isSymbol("(") {
			last := n.Parts[len(n.Parts)-1]
			p.failAt(p.span(first.span.From), "functions have plain names", "write "+last.Text+"(…)")
		}
	}
	n.Span = p.span(first.span.From)
	return n
}
