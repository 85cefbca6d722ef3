package ast

// Name is a dotted name: a column, a qualified column, or the path to a field
// of a struct. Which of these it is, only the binder knows.
type Name struct {
	Span
	Parts []*Ident
}

// Number is a number as written, digits, point, exponent and suffix.
type Number struct {
	Span
	Text string
}

// String is a text; Value is without quotes.
type String struct {
	Span
	Value string
}

// Blob is a binary literal, X'…'; Hex holds the digits.
type Blob struct {
	Span
	Hex string
}

// Bool is TRUE or FALSE.
type Bool struct {
	Span
	Value bool
}

// Null is NULL.
type Null struct{ Span }

// TypedString is a text with a type in front: DATE '2024-01-01'. Type is DATE,
// TIME or TIMESTAMP.
type TypedString struct {
	Span
	Type  string
	Value string
}

// Interval is INTERVAL with one or more parts. To is the second unit of
// INTERVAL '1:30' MINUTE TO SECOND, else empty.
type Interval struct {
	Span
	Parts []IntervalPart
	To    string
}

// IntervalPart is one amount of an interval. Text is the amount as written,
// Quoted whether it was a text; Unit is upper case and singular, empty when the
// text names its units itself.
type IntervalPart struct {
	Negative bool
	Text     string
	Quoted   bool
	Unit     string
}

// Paren is an expression in parentheses.
type Paren struct {
	Span
	X Expr
}

// Row is several expressions in parentheses, or none: (a, b).
type Row struct {
	Span
	Items []Expr
}

// Unary is a prefix operator: -, +, ~ or NOT.
type Unary struct {
	Span
	Op string
	X  Expr
}

// Binary is an infix operator: OR AND = <> < <= > >= | & << >> + - || * / // % **.
type Binary struct {
	Span
	Op    string
	L, R  Expr
	OpPos int // offset of the operator
}

// IsKind says what an Is asks for.
type IsKind uint8

// The questions of Is.
const (
	IsNull IsKind = iota
	IsTrue
	IsFalse
	IsUnknown
)

// Is is X IS [NOT] NULL, TRUE, FALSE or UNKNOWN.
type Is struct {
	Span
	X    Expr
	Not  bool
	Kind IsKind
}

// IsDistinct is L IS [NOT] DISTINCT FROM R.
type IsDistinct struct {
	Span
	L, R Expr
	Not  bool
}

// Between is X [NOT] BETWEEN Low AND High.
type Between struct {
	Span
	X, Low, High Expr
	Not          bool
}

// In is X [NOT] IN (List), or (Query) when Query is not nil.
type In struct {
	Span
	X     Expr
	Not   bool
	List  []Expr
	Query *Query
}

// Quantified is X Op ANY (Query), or ALL, or of the elements of Array when Query is nil.
// SOME is ANY.
type Quantified struct {
	Span
	X     Expr
	Op    string // = <> < <= > >=
	All   bool
	Query *Query
	Array Expr
	OpPos int // offset of the operator
}

// Like is X [NOT] LIKE, ILIKE, RLIKE or SIMILAR TO Pattern [ESCAPE Escape], or ANY (Patterns),
// or ALL, where Pattern is nil.
type Like struct {
	Span
	X, Pattern Expr
	Not        bool
	Op         string // LIKE, ILIKE, RLIKE or SIMILAR TO
	Escape     Expr   // nil if none
	All        bool
	Patterns   []Expr
}

// Exists is EXISTS (Query).
type Exists struct {
	Span
	Query *Query
}

// Subquery is a query standing for a value, or for a table as an argument.
type Subquery struct {
	Span
	Query *Query
}

// Case is CASE [Operand] WHEN … THEN … [ELSE Else] END.
type Case struct {
	Span
	Operand Expr // nil if none
	Whens   []*When
	Else    Expr // nil if none
}

// When is one branch of a Case.
type When struct {
	Span
	Cond, Then Expr
}

// Cast is CAST(X AS Type), or TRY_CAST.
type Cast struct {
	Span
	X    Expr
	Type *Type
	Try  bool
}

// Extract is EXTRACT(Part FROM X).
type Extract struct {
	Span
	Part *Ident
	X    Expr
}

// AtTimeZone is X AT TIME ZONE Zone.
type AtTimeZone struct {
	Span
	X, Zone Expr
}

// Index is X[I].
type Index struct {
	Span
	X, I Expr
}

// Slice is X[Low:High].
type Slice struct {
	Span
	X, Low, High Expr // bounds are nil if they are left out
}

// ArrayQuery is ARRAY(query): the rows of one column.
type ArrayQuery struct {
	Span
	Query *Query
}

// Field is X.Name where X is not itself a dotted name.
type Field struct {
	Span
	X    Expr
	Name *Ident
}

// Star is * or t.*, with the columns to leave out, to replace or to rename.
type Star struct {
	Span
	Table   []*Ident
	Except  []*Ident
	Replace []*SelectItem
	Rename  []*Renamed
}

// Renamed is From AS To in RENAME.
type Renamed struct {
	Span
	Column, To *Ident
}

// Array is ARRAY[…] or […].
type Array struct {
	Span
	Items []Expr
}

// Struct is {'a': 1, b: 2}.
type Struct struct {
	Span
	Fields []*Arg
}

// Map is MAP {k: v, …}.
type Map struct {
	Span
	Keys, Values []Expr
}

// Arg is an argument of a call. Name is nil unless it was given by name
// (name => value, or value AS name in struct(…)).
type Arg struct {
	Span
	Name  *Ident
	Value Expr
}

// Call is a function call, aggregate or not.
type Call struct {
	Span
	Name        *Ident
	Distinct    bool
	Args        []*Arg
	OrderBy     []*OrderItem // inside the parentheses
	Nulls       NullsRule
	WithinGroup []*OrderItem // WITHIN GROUP (ORDER BY …)
	Filter      Expr         // FILTER (WHERE …), nil if none
	Over        *Over        // nil if not a window function
}

// NullsRule is IGNORE NULLS or RESPECT NULLS of a call.
type NullsRule uint8

// The values of NullsRule.
const (
	NullsUnsaid NullsRule = iota
	IgnoreNulls
	RespectNulls
)

// Over is OVER name or OVER (…).
type Over struct {
	Span
	Name *Ident      // nil if Spec is given
	Spec *WindowSpec // nil if Name is given
}

// WindowSpec is what stands between the parentheses of OVER or WINDOW.
type WindowSpec struct {
	Span
	Base      *Ident // nil if none
	Partition []Expr
	OrderBy   []*OrderItem
	Frame     *Frame // nil if none
}

// Frame is the ROWS, RANGE or GROUPS of a window.
type Frame struct {
	Span
	Unit      string // ROWS, RANGE or GROUPS
	Low, High FrameBound
	HasEnd    bool   // BETWEEN was written
	Exclude   string // CURRENT ROW, GROUP, TIES, NO OTHERS, or empty
}

// BoundKind is the kind of a FrameBound.
type BoundKind uint8

// The kinds of FrameBound.
const (
	UnboundedPreceding BoundKind = iota
	Preceding
	CurrentRow
	Following
	UnboundedFollowing
)

// FrameBound is one end of a Frame.
type FrameBound struct {
	Kind   BoundKind
	Offset Expr // of Preceding and Following
}

// TableArg is TABLE t or TABLE (query) as an argument of a table function, with
// Flink's PARTITION BY if given.
type TableArg struct {
	Span
	Table     TableExpr
	Partition []Expr
}

// SetsKind is the kind of GroupingSets.
type SetsKind uint8

// The kinds of GroupingSets.
const (
	Rollup SetsKind = iota
	Cube
	Sets
)

// GroupingSets is ROLLUP (…), CUBE (…) or GROUPING SETS (…) in GROUP BY.
type GroupingSets struct {
	Span
	Kind  SetsKind
	Items []Expr
}

// Type is the name of a type with its arguments.
type Type struct {
	Span
	// Name is lower case, one blank between words: "timestamp",
	// "double precision", "array", "struct", "map".
	Name string
	// Args are the numbers in parentheses: DECIMAL(10, 2).
	Args []int
	// Elem is the element type of an array and the value type of a map.
	Elem *Type
	// Key is the key type of a map.
	Key *Type
	// Fields are the fields of a struct.
	Fields []*TypeField
}

// TypeField is one field of a struct type.
type TypeField struct {
	Span
	Name *Ident
	Type *Type
}

func (*Name) expr()         {}
func (*Number) expr()       {}
func (*String) expr()       {}
func (*Blob) expr()         {}
func (*Bool) expr()         {}
func (*Null) expr()         {}
func (*TypedString) expr()  {}
func (*Interval) expr()     {}
func (*Paren) expr()        {}
func (*Row) expr()          {}
func (*Unary) expr()        {}
func (*Binary) expr()       {}
func (*Is) expr()           {}
func (*IsDistinct) expr()   {}
func (*Between) expr()      {}
func (*In) expr()           {}
func (*Quantified) expr()   {}
func (*Like) expr()         {}
func (*Exists) expr()       {}
func (*Subquery) expr()     {}
func (*Case) expr()         {}
func (*Cast) expr()         {}
func (*Extract) expr()      {}
func (*AtTimeZone) expr()   {}
func (*Index) expr()        {}
func (*Slice) expr()        {}
func (*ArrayQuery) expr()   {}
func (*Field) expr()        {}
func (*Star) expr()         {}
func (*Array) expr()        {}
func (*Struct) expr()       {}
func (*Map) expr()          {}
func (*Call) expr()         {}
func (*TableArg) expr()     {}
func (*GroupingSets) expr() {}
