package ast

// Node is any piece of syntax.
type Node interface {
	// Pos is the byte offset of the first byte of the node.
	Pos() int
	// End is the byte offset after the last byte of the node.
	End() int

	print(p *printer)
	children(visit func(Node))
}

// Expr is a scalar expression, an argument of a table function, or an item of
// GROUP BY.
type Expr interface {
	Node
	expr()
}

// TableExpr is something that stands in FROM.
type TableExpr interface {
	Node
	table()
}

// QueryBody is a query without WITH, ORDER BY, LIMIT and OFFSET.
type QueryBody interface {
	Node
	body()
}

// Statement is what ends with a semicolon.
type Statement interface {
	Node
	statement()
}

// Span is the stretch of source text a node was read from.
type Span struct {
	From, To int
}

// Pos is the byte offset of the first byte.
func (s Span) Pos() int { return s.From }

// End is the byte offset after the last byte.
func (s Span) End() int { return s.To }

// Ident is one name. Text is without quotes; Quoted tells whether it had some.
type Ident struct {
	Span
	Text   string
	Quoted bool
}

func (i *Ident) children(func(Node)) {}
