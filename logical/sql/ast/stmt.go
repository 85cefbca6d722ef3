package ast

// QueryStmt is a query as a statement.
type QueryStmt struct {
	Span
	Query *Query
}

// CreateKind is what CREATE makes.
type CreateKind uint8

// The kinds of Create.
const (
	CreateStream CreateKind = iota
	CreateTable
	CreateSink
	CreateView
)

// String is the word of the kind in SQL.
func (k CreateKind) String() string {
	return [...]string{"STREAM", "TABLE", "SINK", "VIEW"}[k]
}

// Create is CREATE STREAM, TABLE, SINK or VIEW.
type Create struct {
	Span
	Kind        CreateKind
	OrReplace   bool
	IfNotExists bool
	Name        *Ident
	Columns     []*ColumnDef  // of a stream or table; nil if inferred
	Watermark   *WatermarkDef // nil if none
	Options     []*Option
	ViewColumns []*Ident // of a view
	Query       *Query   // of a view
}

// ColumnDef is a declared column (Type) or a computed one (As).
type ColumnDef struct {
	Span
	Name *Ident
	Type *Type
	As   Expr
}

// WatermarkDef is WATERMARK FOR Column AS X.
type WatermarkDef struct {
	Span
	Column *Ident
	X      Expr
}

// Option is one key and value of WITH (…).
type Option struct {
	Span
	Key   *Ident // Quoted if it was a text or quoted
	Value Expr
}

// Insert is INSERT INTO Sink [(Columns)] Query.
type Insert struct {
	Span
	Sink    *Ident
	Columns []*Ident
	Query   *Query
}

// Set is SET Name = Value.
type Set struct {
	Span
	Name  []*Ident
	Value Expr
}

// Explain is EXPLAIN [ANALYZE] Stmt.
type Explain struct {
	Span
	Analyze bool
	Stmt    Statement
}

// Describe is DESCRIBE of a named thing or path (Table), or of a query.
type Describe struct {
	Span
	Table TableExpr // nil if Query is given
	Query *Query
}

// Show is SHOW TABLES, STREAMS, VIEWS, SINKS, FUNCTIONS [LIKE …], SETTINGS, COLUMNS FROM a
// table, or the name of a setting.
type Show struct {
	Span
	What  string    // upper case, plural; empty for a setting
	Like  *String   // of FUNCTIONS, nil if not given
	Table TableExpr // of COLUMNS
	Name  *Ident    // of a setting
}

func (*QueryStmt) statement() {}
func (*Create) statement()    {}
func (*Insert) statement()    {}
func (*Set) statement()       {}
func (*Explain) statement()   {}
func (*Describe) statement()  {}
func (*Show) statement()      {}
