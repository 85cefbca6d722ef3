package ast

// Query is a whole query.
type Query struct {
	Span
	With    *With // nil if none
	Body    QueryBody
	OrderBy []*OrderItem
	Limit   Expr // nil if none, or LIMIT ALL
	Offset  Expr // nil if none
}

// With is the list of common table expressions of a query.
type With struct {
	Span
	Recursive bool
	Tables    []*CTE
}

// CTE is one common table expression.
type CTE struct {
	Span
	Name    *Ident
	Columns []*Ident
	Query   *Query
}

// OrderItem is one item of ORDER BY.
type OrderItem struct {
	Span
	All   bool // ORDER BY ALL; X is nil
	X     Expr
	Desc  bool
	Nulls NullsOrder
}

// NullsOrder says where nulls sort.
type NullsOrder uint8

// The values of NullsOrder.
const (
	NullsDefault NullsOrder = iota
	NullsFirst
	NullsLast
)

// DistinctKind is what follows SELECT.
type DistinctKind uint8

// The values of DistinctKind.
const (
	NotDistinct DistinctKind = iota
	Distinct
	DistinctOn
)

// Select is SELECT … FROM … WHERE … and so on.
type Select struct {
	Span
	Distinct        DistinctKind
	On              []Expr // of DISTINCT ON
	Items           []*SelectItem
	From            []TableExpr // joined by commas; empty without FROM
	Where           Expr        // nil if none
	WithinWatermark bool
	GroupBy         *GroupBy // nil if none
	Having          Expr     // nil if none
	Windows         []*NamedWindow
	Qualify         Expr // nil if none
}

// SelectItem is one item of a select list, or of REPLACE.
type SelectItem struct {
	Span
	X     Expr
	Alias *Ident // nil if none
}

// GroupBy is GROUP BY ALL, or a list.
type GroupBy struct {
	Span
	All   bool
	Items []Expr
}

// NamedWindow is one definition of the WINDOW clause.
type NamedWindow struct {
	Span
	Name *Ident
	Spec *WindowSpec
}

// SetOp is UNION, INTERSECT or EXCEPT.
type SetOp struct {
	Span
	Op     string // UNION, INTERSECT or EXCEPT
	All    bool
	ByName bool
	L, R   QueryBody
}

// Values is VALUES (…), (…).
type Values struct {
	Span
	Rows []*Row
}

// ParenQuery is a query in parentheses.
type ParenQuery struct {
	Span
	Query *Query
}

func (*Select) body()     {}
func (*SetOp) body()      {}
func (*Values) body()     {}
func (*ParenQuery) body() {}

// Alias names a table in FROM, and its columns if given.
type Alias struct {
	Span
	Name    *Ident
	Columns []*Ident
}

// TableName is a table, stream, view or common table expression.
type TableName struct {
	Span
	Parts []*Ident
	Alias *Alias
}

// TablePath is a path or glob in quotes.
type TablePath struct {
	Span
	Path  *String
	Alias *Alias
}

// TableFunc is a table function, UNNEST among them.
type TableFunc struct {
	Span
	Lateral    bool
	Name       *Ident
	Args       []*Arg
	Ordinality bool // WITH ORDINALITY
	Alias      *Alias
}

// TableQuery is a query in FROM.
type TableQuery struct {
	Span
	Lateral bool
	Query   *Query
	Alias   *Alias
}

// Sample is Table TABLESAMPLE (Amount PERCENT), or (Amount ROWS).
type Sample struct {
	Span
	Table  TableExpr
	Amount *Number
	Rows   bool
	Alias  *Alias
}

// ParenTable is a join in parentheses.
type ParenTable struct {
	Span
	Table TableExpr
	Alias *Alias
}

// JoinKind is the kind of a Join.
type JoinKind uint8

// The kinds of Join.
const (
	InnerJoin JoinKind = iota
	LeftJoin
	RightJoin
	FullJoin
	CrossJoin
	SemiJoin
	AntiJoin
)

// Join is L JOIN R. At most one of Natural, On and Using is given.
type Join struct {
	Span
	Kind    JoinKind
	Natural bool
	Asof    bool
	L, R    TableExpr
	On      Expr
	Using   []*Ident
}

// LateralView is Spark's FROM t LATERAL VIEW [OUTER] f(…) v AS a, b.
type LateralView struct {
	Span
	L       TableExpr
	Outer   bool
	Func    *Call
	Table   *Ident // nil if none
	Columns []*Ident
}

func (*TableName) table()   {}
func (*TablePath) table()   {}
func (*TableFunc) table()   {}
func (*TableQuery) table()  {}
func (*Sample) table()      {}
func (*ParenTable) table()  {}
func (*Join) table()        {}
func (*LateralView) table() {}
