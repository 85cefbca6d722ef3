package logical

import (
	"fmt"
	"strings"

	"github.com/tidemill/tidemill/logical/expr"
)

// Filter keeps the rows for which Cond is true.
type Filter struct {
	unary
	Cond expr.Expr
}

// NewFilter filters input by cond.
func NewFilter(input Node, cond expr.Expr) *Filter { return &Filter{unary{input}, cond} }

func (f *Filter) Schema() *Schema                  { return f.Input.Schema() }
func (f *Filter) WithChildren(c []Node) Node       { return NewFilter(c[0], f.Cond) }
func (f *Filter) Exprs() []expr.Expr               { return []expr.Expr{f.Cond} }
func (f *Filter) WithExprs(exprs []expr.Expr) Node { return NewFilter(f.Input, exprs[0]) }
func (f *Filter) String() string                   { return "Filter " + f.Cond.String() }

// Project computes columns.
type Project struct {
	unary
	Columns []expr.Named
	schema  *Schema
}

// NewProject computes columns over input.
func NewProject(input Node, columns []expr.Named) *Project {
	return &Project{unary{input}, columns, namedSchema(columns)}
}

func (p *Project) Schema() *Schema            { return p.schema }
func (p *Project) WithChildren(c []Node) Node { return NewProject(c[0], p.Columns) }
func (p *Project) Exprs() []expr.Expr         { return namedExprs(p.Columns) }
func (p *Project) WithExprs(exprs []expr.Expr) Node {
	return NewProject(p.Input, withNamedExprs(p.Columns, exprs))
}
func (p *Project) String() string { return "Project " + namedList(p.Columns) }

func namedExprs(list []expr.Named) []expr.Expr {
	out := make([]expr.Expr, len(list))
	for i, n := range list {
		out[i] = n.Expr
	}
	return out
}

func withNamedExprs(list []expr.Named, exprs []expr.Expr) []expr.Named {
	out := make([]expr.Named, len(list))
	for i, n := range list {
		n.Expr = exprs[i]
		out[i] = n
	}
	return out
}

func namedList(list []expr.Named) string {
	parts := make([]string, len(list))
	for i, n := range list {
		parts[i] = n.String()
	}
	return strings.Join(parts, ", ")
}

// Alias gives the columns of its input another qualifier: a table alias.
type Alias struct {
	unary
	noExprs
	Name string
}

// NewAlias lets input's columns answer to name.column.
func NewAlias(input Node, name string) *Alias { return &Alias{unary: unary{input}, Name: name} }

func (a *Alias) Schema() *Schema            { return a.Input.Schema().Requalified(a.Name) }
func (a *Alias) WithChildren(c []Node) Node { return NewAlias(c[0], a.Name) }
func (a *Alias) WithExprs([]expr.Expr) Node { return a }
func (a *Alias) String() string             { return "Alias " + a.Name }

// Aggregate groups rows by Keys and computes Aggs, each an *expr.Agg, for every
// group. The output is the keys, then the aggregates. Without keys there is one
// group, also over no rows.
type Aggregate struct {
	unary
	Keys []expr.Named
	Aggs []expr.Named
	// State is the stable name of the node's state in a checkpoint, given before
	// optimization; "" where no state is kept. A node with a name keeps its keys and
	// aggregates as they are, through every rule.
	State  string
	schema *Schema
}

// NewAggregate aggregates input; every Aggs expression is an *expr.Agg.
func NewAggregate(input Node, keys, aggs []expr.Named) *Aggregate {
	return &Aggregate{unary: unary{input}, Keys: keys, Aggs: aggs, schema: namedSchema(append(append([]expr.Named(nil), keys...), aggs...))}
}

// WithState names the node's state.
func (a *Aggregate) WithState(name string) *Aggregate {
	n := *a
	n.State = name
	return &n
}

// WithAggs computes other aggregates under the same names.
func (a *Aggregate) WithAggs(aggs []expr.Named) *Aggregate {
	return NewAggregate(a.Input, a.Keys, aggs).WithState(a.State)
}

func (a *Aggregate) Schema() *Schema { return a.schema }
func (a *Aggregate) WithChildren(c []Node) Node {
	return NewAggregate(c[0], a.Keys, a.Aggs).WithState(a.State)
}
func (a *Aggregate) Exprs() []expr.Expr {
	return append(namedExprs(a.Keys), namedExprs(a.Aggs)...)
}
func (a *Aggregate) WithExprs(exprs []expr.Expr) Node {
	k := len(a.Keys)
	return NewAggregate(a.Input, withNamedExprs(a.Keys, exprs[:k]), withNamedExprs(a.Aggs, exprs[k:])).WithState(a.State)
}
func (a *Aggregate) String() string {
	return fmt.Sprintf("Aggregate keys=[%s] aggs=[%s]", namedList(a.Keys), namedList(a.Aggs))
}

// Distinct keeps one row of each set of equal ones: equal in all columns, or with On
// in those expressions, where the first row in arrival order is kept.
type Distinct struct {
	unary
	On []expr.Expr // nil: all columns
	// WithinWatermark forgets a key once the watermark has passed its first event
	// time plus the watermark's delay (streams only).
	WithinWatermark bool
	State           string // as Aggregate.State
}

// NewDistinct removes duplicates of input.
func NewDistinct(input Node, on []expr.Expr, withinWatermark bool) *Distinct {
	return &Distinct{unary: unary{input}, On: on, WithinWatermark: withinWatermark}
}

// WithState names the node's state.
func (d *Distinct) WithState(name string) *Distinct {
	n := *d
	n.State = name
	return &n
}

func (d *Distinct) Schema() *Schema { return d.Input.Schema() }
func (d *Distinct) WithChildren(c []Node) Node {
	return NewDistinct(c[0], d.On, d.WithinWatermark).WithState(d.State)
}
func (d *Distinct) Exprs() []expr.Expr { return d.On }
func (d *Distinct) WithExprs(exprs []expr.Expr) Node {
	return NewDistinct(d.Input, exprs, d.WithinWatermark).WithState(d.State)
}
func (d *Distinct) String() string {
	s := "Distinct"
	if d.On != nil {
		s += " on=[" + expr.List(d.On) + "]"
	}
	if d.WithinWatermark {
		s += " within watermark"
	}
	return s
}

// SortKey is one ORDER BY item.
type SortKey struct {
	Expr       expr.Expr
	Descending bool
	NullsFirst bool
}

func (k SortKey) String() string {
	s := k.Expr.String()
	if k.Descending {
		s += " DESC"
	}
	if k.NullsFirst == k.Descending { // not the default: first ascending, last descending
		s += map[bool]string{true: " NULLS FIRST", false: " NULLS LAST"}[k.NullsFirst]
	}
	return s
}

// Sort orders rows; equal ones keep their order. Limit > 0 keeps the first Limit
// only (top-k), set by the optimizer.
type Sort struct {
	unary
	Keys  []SortKey
	Limit int64
}

// NewSort orders input by keys.
func NewSort(input Node, keys []SortKey, limit int64) *Sort { return &Sort{unary{input}, keys, limit} }

func (s *Sort) Schema() *Schema            { return s.Input.Schema() }
func (s *Sort) WithChildren(c []Node) Node { return NewSort(c[0], s.Keys, s.Limit) }
func (s *Sort) Exprs() []expr.Expr {
	out := make([]expr.Expr, len(s.Keys))
	for i, k := range s.Keys {
		out[i] = k.Expr
	}
	return out
}
func (s *Sort) WithExprs(exprs []expr.Expr) Node {
	keys := append([]SortKey(nil), s.Keys...)
	for i := range keys {
		keys[i].Expr = exprs[i]
	}
	return NewSort(s.Input, keys, s.Limit)
}
func (s *Sort) String() string {
	parts := make([]string, len(s.Keys))
	for i, k := range s.Keys {
		parts[i] = k.String()
	}
	text := "Sort [" + strings.Join(parts, ", ") + "]"
	if s.Limit > 0 {
		text += fmt.Sprintf(" limit=%d", s.Limit)
	}
	return text
}

// NoLimit is the Count of a Limit that only skips.
const NoLimit = int64(-1)

// Limit skips Offset rows and passes Count on (NoLimit: all that remain).
type Limit struct {
	unary
	noExprs
	Count, Offset int64
	State         string // as Aggregate.State
}

// NewLimit limits input.
func NewLimit(input Node, count, offset int64) *Limit {
	return &Limit{unary: unary{input}, Count: count, Offset: offset}
}

func (l *Limit) Schema() *Schema { return l.Input.Schema() }
func (l *Limit) WithChildren(c []Node) Node {
	n := *l
	n.Input = c[0]
	return &n
}
func (l *Limit) WithExprs([]expr.Expr) Node { return l }
func (l *Limit) String() string {
	s := "Limit"
	if l.Count != NoLimit {
		s += fmt.Sprintf(" %d", l.Count)
	}
	if l.Offset > 0 {
		s += fmt.Sprintf(" offset=%d", l.Offset)
	}
	return s
}

// Union is all rows of its inputs (UNION ALL), in order of the inputs. Column i of
// every input has the type of column i of Output, which has IDs of its own.
type Union struct {
	noExprs
	Inputs []Node
	Output *Schema
}

// NewUnion concatenates inputs with equal column types; the names are the first's.
func NewUnion(inputs ...Node) *Union {
	out := &Schema{}
	for i, c := range inputs[0].Schema().Columns {
		n := *c
		n.ID, n.Qualifier = expr.NewID(), ""
		for _, in := range inputs {
			n.Null = n.Null || in.Schema().Columns[i].Null
		}
		out.Columns = append(out.Columns, &n)
	}
	return &Union{Inputs: inputs, Output: out}
}

func (u *Union) Schema() *Schema            { return u.Output }
func (u *Union) Children() []Node           { return u.Inputs }
func (u *Union) WithChildren(c []Node) Node { return &Union{Inputs: c, Output: u.Output} }
func (u *Union) WithExprs([]expr.Expr) Node { return u }
func (u *Union) String() string             { return "Union" }

// SetOpKind is INTERSECT or EXCEPT.
type SetOpKind uint8

const (
	Intersect SetOpKind = iota
	Except
)

func (k SetOpKind) String() string { return [...]string{"Intersect", "Except"}[k] }

// SetOp is INTERSECT or EXCEPT of two inputs with equal column types; nulls are
// equal to nulls. The output is the left's columns.
type SetOp struct {
	noExprs
	Kind        SetOpKind
	All         bool
	Left, Right Node
}

func (s *SetOp) Schema() *Schema  { return s.Left.Schema() }
func (s *SetOp) Children() []Node { return []Node{s.Left, s.Right} }
func (s *SetOp) WithChildren(c []Node) Node {
	return &SetOp{Kind: s.Kind, All: s.All, Left: c[0], Right: c[1]}
}
func (s *SetOp) WithExprs([]expr.Expr) Node { return s }
func (s *SetOp) String() string {
	if s.All {
		return s.Kind.String() + " all"
	}
	return s.Kind.String()
}

// JoinKind is the kind of a join.
type JoinKind uint8

const (
	InnerJoin JoinKind = iota
	LeftJoin
	RightJoin
	FullJoin
	SemiJoin // left rows with a match
	AntiJoin // left rows without a match
	CrossJoin
)

func (k JoinKind) String() string {
	if k > CrossJoin {
		return fmt.Sprintf("JoinKind(%d)", k)
	}
	return [...]string{"inner", "left", "right", "full", "semi", "anti", "cross"}[k]
}

// check refuses a number that is no kind.
func (k JoinKind) check() error {
	if k > CrossJoin {
		return fmt.Errorf("%s is no kind of join; use InnerJoin, LeftJoin, RightJoin, FullJoin, SemiJoin, AntiJoin or CrossJoin", k)
	}
	return nil
}

// Join combines rows of two inputs for which On is true (nil: always). Null equals
// nothing, unless On says IS NOT DISTINCT FROM. For USING and natural joins the
// binder adds the projection that merges the columns.
type Join struct {
	Kind        JoinKind
	Left, Right Node
	On          expr.Expr
	State       string // as Aggregate.State
	// KeyFilters advises that the side that is kept tells the other what keys it has, so
	// that rows that meet nothing are left out where they are read.
	KeyFilters bool
	// Subquery is what the query has in the place of the join, for messages: "a scalar
	// subquery"; "" where it has a join.
	Subquery string
	schema   *Schema
}

// NewJoin joins left and right; on may be nil.
func NewJoin(kind JoinKind, left, right Node, on expr.Expr) *Join {
	l, r := left.Schema(), right.Schema()
	switch kind {
	case LeftJoin:
		r = r.nullable()
	case RightJoin:
		l = l.nullable()
	case FullJoin:
		l, r = l.nullable(), r.nullable()
	case SemiJoin, AntiJoin:
		r = &Schema{}
	}
	columns := append(append([]*expr.Column(nil), l.Columns...), r.Columns...)
	return &Join{Kind: kind, Left: left, Right: right, On: on, schema: NewSchema(columns...)}
}

// WithSubquery sets Subquery.
func (j *Join) WithSubquery(what string) *Join {
	n := *j
	n.Subquery = what
	return &n
}

// WithKeyFilters sets KeyFilters.
func (j *Join) WithKeyFilters() *Join {
	n := *j
	n.KeyFilters = true
	return &n
}

// WithState names the node's state.
func (j *Join) WithState(name string) *Join {
	n := *j
	n.State = name
	return &n
}

func (j *Join) Schema() *Schema  { return j.schema }
func (j *Join) Children() []Node { return []Node{j.Left, j.Right} }
func (j *Join) WithChildren(c []Node) Node {
	return j.over(NewJoin(j.Kind, c[0], c[1], j.On))
}
func (j *Join) Exprs() []expr.Expr {
	if j.On == nil {
		return nil
	}
	return []expr.Expr{j.On}
}
func (j *Join) WithExprs(exprs []expr.Expr) Node {
	if j.On == nil {
		return j
	}
	return j.over(NewJoin(j.Kind, j.Left, j.Right, exprs[0]))
}

// over is n with what j is told beside its inputs and condition.
func (j *Join) over(n *Join) *Join {
	n.State, n.KeyFilters, n.Subquery = j.State, j.KeyFilters, j.Subquery
	return n
}

func (j *Join) String() string {
	s := "Join " + j.Kind.String()
	if j.On != nil {
		s += " on=" + j.On.String()
	}
	if j.KeyFilters {
		s += " key_filters"
	}
	return s
}
