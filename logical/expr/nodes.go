package expr

import (
	"fmt"
	"math"
	"slices"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"

	"github.com/tidemill/tidemill/columnar"
	"github.com/tidemill/tidemill/columnar/function"
)

// Column is a column of the input, by ID.
type Column struct {
	leaf
	ID        ID
	Qualifier string // table name or alias, for printing and look-up; may be ""
	Name      string
	DataType  arrow.DataType
	Null      bool
	// Called is the name that a query has for it, where that is another: what a plan says of it
	// stays the same, and what goes wrong with its rows is told with this one.
	Called string
}

func (c *Column) Type() arrow.DataType     { return c.DataType }
func (c *Column) Nullable() bool           { return c.Null }
func (c *Column) WithChildren([]Expr) Expr { return c }

// Ref is a column of the input, by position: what physical expressions use.
type Ref struct {
	leaf
	Index    int
	Name     string
	DataType arrow.DataType
	Null     bool
}

func (r *Ref) Type() arrow.DataType     { return r.DataType }
func (r *Ref) Nullable() bool           { return r.Null }
func (r *Ref) WithChildren([]Expr) Expr { return r }

// Literal is one value: an Arrow array of length one. Its memory comes from the Go
// heap and needs no release.
type Literal struct {
	leaf
	Value arrow.Array
}

func (l *Literal) Type() arrow.DataType     { return l.Value.DataType() }
func (l *Literal) Nullable() bool           { return l.IsNull() }
func (l *Literal) WithChildren([]Expr) Expr { return l }

// IsNull says whether the literal is NULL.
func (l *Literal) IsNull() bool { return l.Value.IsNull(0) || l.Value.DataType().ID() == arrow.NULL }

// Call is a scalar function or operator with a resolved overload; the arguments
// have exactly the types of the signature.
type Call struct {
	Func      *function.Scalar
	Signature *function.Signature
	Args      []Expr
	Place     Place
}

func (c *Call) Type() arrow.DataType { return c.Signature.Result }
func (c *Call) Nullable() bool {
	switch propagation[c.Func.Name] {
	case neverNull:
		return false
	case nullIfAny:
		return anyNullable(c.Args)
	case nullIfAll:
		return !slices.ContainsFunc(c.Args, func(a Expr) bool { return !a.Nullable() })
	}
	return true
}

// IsVolatile says whether two evaluations of the call itself may differ.
func (c *Call) IsVolatile() bool {
	return c.Signature.Overload.Volatility == function.Volatile
}
func (c *Call) Children() []Expr { return c.Args }
func (c *Call) WithChildren(children []Expr) Expr {
	return &Call{Func: c.Func, Signature: c.Signature, Args: children, Place: c.Place}
}

// nulls says when a function returns null.
type nulls uint8

const (
	mayBeNull nulls = iota // of its own accord: what is assumed of functions not listed
	neverNull
	nullIfAny // if any argument is
	nullIfAll // if all arguments are
)

var propagation = map[string]nulls{
	"is_null": neverNull, "is_not_null": neverNull, "is_distinct_from": neverNull, "is_not_distinct_from": neverNull,
	"=": nullIfAny, "<>": nullIfAny, "<": nullIfAny, "<=": nullIfAny, ">": nullIfAny, ">=": nullIfAny, "not": nullIfAny,
	"+": nullIfAny, "-": nullIfAny, "*": nullIfAny, "/": nullIfAny, "//": nullIfAny, "%": nullIfAny, "||": nullIfAny,
	"coalesce": nullIfAll, "exact": nullIfAny,
}

// Cast converts to another type; Try gives null where a value cannot be converted,
// otherwise that is an error. Structs that have the same fields in another order become
// each other by name, or ByPosition, as they were written. An Implicit cast is none that
// anybody wrote: it is for what the value meets.
type Cast struct {
	Input      Expr
	To         arrow.DataType
	Try        bool
	ByPosition bool
	Implicit   bool
	Place      Place
}

// Compute casts d, see function.Cast.
func (c *Cast) Compute(env *function.Env, d columnar.Datum, rows int, active *columnar.Bitmap) (columnar.Datum, error) {
	if c.ByPosition {
		return function.CastByPosition(env, d, c.To, c.Try, rows, active)
	}
	return function.Cast(env, d, c.To, c.Try, rows, active)
}

// Advice is what to do about a value that c cannot convert.
func (c *Cast) Advice() string {
	switch {
	case !c.Implicit:
	case c.Input.Type().ID() == arrow.STRING:
		return fmt.Sprintf("a text is read as %s here: use TRY_CAST to get null for one that is none, or cast what it stands beside to VARCHAR", columnar.TypeName(c.To))
	case columnar.HasDecimal(c.To):
		return columnar.DecimalAdvice
	}
	return "use TRY_CAST to get null instead"
}

func (c *Cast) Type() arrow.DataType { return c.To }
func (c *Cast) Nullable() bool       { return c.Try || c.Input.Nullable() }
func (c *Cast) Children() []Expr     { return []Expr{c.Input} }
func (c *Cast) WithChildren(children []Expr) Expr {
	return &Cast{Input: children[0], To: c.To, Try: c.Try, ByPosition: c.ByPosition, Implicit: c.Implicit, Place: c.Place}
}

// LogicOp is AND or OR.
type LogicOp uint8

const (
	And LogicOp = iota
	Or
)

func (op LogicOp) String() string { return [...]string{"AND", "OR"}[op] }

// Logic is AND or OR of two or more conditions, with SQL's three values. A later
// operand is not evaluated for rows the earlier ones decide.
type Logic struct {
	Op   LogicOp
	Args []Expr
}

func (l *Logic) Type() arrow.DataType { return columnar.Boolean }
func (l *Logic) Nullable() bool       { return anyNullable(l.Args) }
func (l *Logic) Children() []Expr     { return l.Args }
func (l *Logic) WithChildren(children []Expr) Expr {
	return &Logic{Op: l.Op, Args: children}
}

// Case is CASE WHEN Whens[0] THEN Thens[0] … ELSE Else END, all results of one
// type. A branch is evaluated only for the rows that take it. Else may be nil: null.
type Case struct {
	Whens []Expr
	Thens []Expr
	Else  Expr
}

func (c *Case) Type() arrow.DataType { return c.Thens[0].Type() }
func (c *Case) Nullable() bool {
	return c.Else == nil || c.Else.Nullable() || anyNullable(c.Thens)
}

// Children are When, Then, When, Then, …, and Else if there is one.
func (c *Case) Children() []Expr {
	var out []Expr
	for i := range c.Whens {
		out = append(out, c.Whens[i], c.Thens[i])
	}
	if c.Else != nil {
		out = append(out, c.Else)
	}
	return out
}

func (c *Case) WithChildren(children []Expr) Expr {
	n := &Case{}
	for i := range c.Whens {
		n.Whens = append(n.Whens, children[2*i])
		n.Thens = append(n.Thens, children[2*i+1])
	}
	if c.Else != nil {
		n.Else = children[len(children)-1]
	}
	return n
}

// In is value IN (list), all of one type; the list may hold any expressions.
// NOT IN is Not around it.
type In struct {
	Value Expr
	List  []Expr
}

func (i *In) Type() arrow.DataType { return columnar.Boolean }
func (i *In) Nullable() bool       { return i.Value.Nullable() || anyNullable(i.List) }
func (i *In) Children() []Expr     { return append([]Expr{i.Value}, i.List...) }
func (i *In) WithChildren(children []Expr) Expr {
	return &In{Value: children[0], List: children[1:]}
}

// Agg is an aggregate call. It stands only in logical.Aggregate.
type Agg struct {
	Func      *function.Aggregate
	Signature *function.AggregateSignature
	Args      []Expr
	Distinct  bool
	Filter    Expr // only rows for which it is true count; nil: all
	// Order is the order in which it takes its rows, while a query is bound. The calls of
	// a logical.Aggregate have none: they take the rows of its input as they come.
	Order []Order
	Place Place
}

func (a *Agg) Type() arrow.DataType { return a.Signature.Result }
func (a *Agg) Nullable() bool       { return a.Func.Name != "count" && a.Func.Name != "count_if" }
func (a *Agg) Children() []Expr {
	if a.Filter == nil && a.Order == nil {
		return a.Args
	}
	list := append([]Expr(nil), a.Args...)
	for _, o := range a.Order {
		list = append(list, o.Expr)
	}
	if a.Filter != nil {
		list = append(list, a.Filter)
	}
	return list
}
func (a *Agg) WithChildren(children []Expr) Expr {
	n := *a
	n.Args = children[:len(a.Args):len(a.Args)]
	n.Order = append([]Order(nil), a.Order...)
	for i := range n.Order {
		n.Order[i].Expr = children[len(a.Args)+i]
	}
	if a.Filter != nil {
		n.Filter = children[len(children)-1]
	}
	return &n
}

// sameOrder says whether two orders differ in their expressions at most.
func sameOrder(a, b []Order) bool {
	return slices.EqualFunc(a, b, func(x, y Order) bool { return x.Descending == y.Descending && x.NullsFirst == y.NullsFirst })
}

func anyNullable(list []Expr) bool {
	for _, e := range list {
		if e.Nullable() {
			return true
		}
	}
	return false
}

// Named is an expression with the name and ID its value has downstream. For a plain
// Column that is passed through under its own name the ID stays the column's.
type Named struct {
	Expr Expr
	Name string
	ID   ID
	// Qualifier makes the output column answer to qualifier.name as well.
	Qualifier string
	// Hidden columns are not part of SELECT * and not of the final result.
	Hidden bool
}

// As names e and gives it a fresh ID.
func As(e Expr, name string) Named { return Named{Expr: e, Name: name, ID: NewID()} }

// Pass passes a column through as it is.
func Pass(c *Column) Named {
	return Named{Expr: c, Name: c.Name, ID: c.ID, Qualifier: c.Qualifier}
}

// Column is the downstream column that n makes.
func (n Named) Column() *Column {
	return &Column{ID: n.ID, Qualifier: n.Qualifier, Name: n.Name, DataType: n.Expr.Type(), Null: n.Expr.Nullable()}
}

// sameNode compares two nodes without their children.
func sameNode(a, b Expr) bool {
	switch x := a.(type) {
	case *Column:
		y, ok := b.(*Column)
		return ok && x.ID == y.ID
	case *Ref:
		y, ok := b.(*Ref)
		return ok && x.Index == y.Index && arrow.TypeEqual(x.DataType, y.DataType)
	case *Literal:
		y, ok := b.(*Literal)
		return ok && arrow.TypeEqual(x.Type(), y.Type()) && sameValue(x.Value, y.Value)
	case *Call:
		y, ok := b.(*Call)
		return ok && x.Func.Name == y.Func.Name && arrow.TypeEqual(x.Type(), y.Type())
	case *Cast:
		y, ok := b.(*Cast)
		return ok && x.Try == y.Try && x.ByPosition == y.ByPosition && arrow.TypeEqual(x.To, y.To)
	case *Logic:
		y, ok := b.(*Logic)
		return ok && x.Op == y.Op
	case *Case:
		y, ok := b.(*Case)
		return ok && len(x.Whens) == len(y.Whens) && (x.Else == nil) == (y.Else == nil)
	case *In:
		_, ok := b.(*In)
		return ok
	case *Agg:
		y, ok := b.(*Agg)
		return ok && x.Func.Name == y.Func.Name && x.Distinct == y.Distinct && (x.Filter == nil) == (y.Filter == nil) &&
			len(x.Args) == len(y.Args) && sameOrder(x.Order, y.Order)
	case *Over:
		y, ok := b.(*Over)
		return ok && x.same(y)
	case *Name:
		y, ok := b.(*Name)
		return ok && *x == *y
	case *Unresolved:
		y, ok := b.(*Unresolved)
		return ok && sameCall(x, y)
	}
	panic(fmt.Sprintf("bug: unknown expression node %T", a))
}

// sameValue compares literals; for doubles, to which -0.0 equals 0.0 and NaN nothing,
// by their bits.
func sameValue(a, b arrow.Array) bool {
	if a.IsNull(0) || b.IsNull(0) {
		return a.IsNull(0) && b.IsNull(0)
	}
	switch x := a.(type) {
	case *array.Float64:
		return math.Float64bits(x.Value(0)) == math.Float64bits(b.(*array.Float64).Value(0))
	case *array.Float32:
		return math.Float32bits(x.Value(0)) == math.Float32bits(b.(*array.Float32).Value(0))
	}
	return array.Equal(a, b)
}

func sameCall(x, y *Unresolved) bool {
	sameType := x.To == nil && y.To == nil || x.To != nil && y.To != nil && arrow.TypeEqual(x.To, y.To)
	sameWindow := x.Window == nil && y.Window == nil || x.Window != nil && y.Window != nil && x.Window.equal(*y.Window)
	return x.Func == y.Func && x.Distinct == y.Distinct && (x.Filter == nil) == (y.Filter == nil) && sameType && sameWindow
}
