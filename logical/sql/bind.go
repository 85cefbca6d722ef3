package sql

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/apache/arrow-go/v18/arrow"

	"github.com/tidemill/tidemill/columnar"
	"github.com/tidemill/tidemill/logical"
	"github.com/tidemill/tidemill/logical/expr"
	"github.com/tidemill/tidemill/logical/sql/ast"
)

// maxRelations bounds how many tables a statement may read once views and common
// table expressions are written out; each use of one is planned anew.
const maxRelations = 5000

type idKey = expr.ID

// maxExprSize bounds the nodes of one expression once what it uses by alias is
// written out.
const maxExprSize = 200_000

// maxListSize bounds those of a select list.
const maxListSize = 2 * maxExprSize

// binder gives one statement its meaning.
type binder struct {
	p       *Planner
	ctx     context.Context
	src     string // the text the syntax at hand was parsed from
	file    string
	written *expr.Source // src and file, once something has asked
	ctes    *cte
	views   []string // being bound, for views that read themselves
	tables  int
	windows map[idKey]*logical.Window // by the ID of their start and end columns
	sizes   map[expr.Expr]int         // of expressions, see checkSize
	// streams are those opened for this statement: all uses of a stream share one.
	// Another statement asks anew, as it may have pinned other columns.
	streams map[*Declaration]*logical.Stream
	// metadata is set once something asks for _metadata; hidden are the columns of it.
	metadata bool
	hidden   map[idKey]bool
}

// cte is a common table expression in scope, with the ones it sees itself.
type cte struct {
	def  *ast.CTE
	next *cte // those defined before it
}

// relation is a plan with the columns a query sees of it. The plan may have more
// columns than those.
type relation struct {
	node    logical.Node
	columns []column
	files   []fileColumns // hidden columns of its tables
	names   *nameIndex    // of many columns, once one was asked for
}

// column is one visible column of a relation.
type column struct {
	*expr.Column
	table string // alias or name by which it can be qualified
	name  string // as the query sees it
	// shadowed columns answer to table.name only: the sides of USING.
	shadowed bool
	// window is set where the column is the struct of a window: the columns of its
	// start and end, which are in the plan beside it.
	window *bounds
}

// bounds are the start and end of a window.
type bounds struct{ start, end *expr.Column }

// relationOf makes all columns of a plan visible, unqualified unless table says so.
func relationOf(n logical.Node, table string) *relation {
	r := &relation{node: n}
	for _, c := range n.Schema().Columns {
		r.columns = append(r.columns, column{Column: c, table: table, name: c.Name})
	}
	return r
}

func newBinder(ctx context.Context, p *Planner, src string) *binder {
	return &binder{
		p: p, ctx: ctx, src: src, file: p.File,
		windows: map[idKey]*logical.Window{}, sizes: map[expr.Expr]int{}, streams: map[*Declaration]*logical.Stream{},
		hidden: map[idKey]bool{},
	}
}

// source is the text at hand, one for all expressions of it.
func (b *binder) source() *expr.Source {
	if b.written == nil || b.written.Text != b.src || b.written.File != b.file {
		b.written = &expr.Source{File: b.file, Text: b.src}
	}
	return b.written
}

// placed gives x, which was just made, the place of n.
func (b *binder) placed(x expr.Expr, n ast.Node) expr.Expr {
	expr.SetPlace(x, expr.Place{Source: b.source(), Offset: n.Pos()})
	return x
}

// errorf is a mistake at n.
func (b *binder) errorf(n ast.Node, format string, args ...any) *Error {
	return b.hinted(n, "", format, args...)
}

// hinted is a mistake at n with advice.
func (b *binder) hinted(n ast.Node, hint, format string, args ...any) *Error {
	span := ast.Span{From: n.Pos(), To: n.End()}
	e := newError(b.src, span, fmt.Sprintf(format, args...))
	e.File, e.Hint = b.file, hint
	return e
}

// wrap puts the place of n on an error of another package; an *Error has one already.
func (b *binder) wrap(n ast.Node, err error) error {
	var e *Error
	if err == nil || errors.As(err, &e) {
		return err
	}
	e = b.errorf(n, "%s", err)
	e.Err = err
	return e
}

// unsupported says that something legal is not supported at n.
func (b *binder) unsupported(n ast.Node, what, reason, remedy string) *Error {
	u := &logical.UnsupportedError{What: what, Reason: reason, Remedy: remedy}
	message := what + " is not supported"
	if reason != "" {
		message += ": " + reason
	}
	e := b.hinted(n, remedy, "%s", message)
	e.Err = u
	return e
}

func (b *binder) warn(n ast.Node, format string, args ...any) {
	if b.p.Warn != nil {
		e := b.errorf(n, format, args...)
		b.p.Warn(fmt.Sprintf("line %d, column %d: %s", e.Line, e.Column, e.Message))
	}
}

// checkSize refuses expressions that have become too large. What is used twice is
// shared in memory, but everything that walks over the expression meets it twice, so
// x + x AS y, y + y AS z, … would double without end.
func (b *binder) checkSize(n ast.Node, x expr.Expr) error {
	if b.size(x) > maxExprSize {
		return b.hinted(n, "compute a part of it in a subquery in FROM", "the expression has more than %d parts once aliases are written out", maxExprSize)
	}
	return nil
}

func (b *binder) size(x expr.Expr) int {
	if n, ok := b.sizes[x]; ok {
		return n
	}
	n := 1
	for _, c := range x.Children() {
		n = min(n+b.size(c), 2*maxExprSize)
	}
	b.sizes[x] = n
	return n
}

// result binds a query whose rows leave the engine: exactly the visible columns.
func (b *binder) result(q *ast.Query) (logical.Node, error) {
	r, err := b.query(q, nil)
	if err != nil {
		return nil, err
	}
	return strip(r).node, nil
}

// strip drops the columns of a plan that are not visible, and gives the visible ones
// their names.
func strip(r *relation) *relation {
	same := len(r.columns) == len(r.node.Schema().Columns)
	list := make([]expr.Named, len(r.columns))
	seen := map[expr.ID]bool{}
	for i, c := range r.columns {
		same = same && r.node.Schema().Columns[i].ID == c.ID && c.name == c.Column.Name
		list[i] = named(c.Column, c.name, seen)
	}
	if same {
		return r
	}
	return relationOf(logical.NewProject(r.node, list), "")
}

// named gives e a name. A column that keeps its name keeps its ID, once.
func named(e expr.Expr, name string, seen map[expr.ID]bool) expr.Named {
	if c, ok := e.(*expr.Column); ok && c.Name == name && !seen[c.ID] {
		seen[c.ID] = true
		return expr.Pass(c)
	}
	return expr.As(e, name)
}

// query binds a query. outer is where it stands, for telling a correlated subquery
// from a slip; nil for none.
func (b *binder) query(q *ast.Query, outer *env) (*relation, error) {
	b.noteMetadata(q)
	if q.With != nil {
		defer func(old *cte) { b.ctes = old }(b.ctes)
		if err := b.with(q.With); err != nil {
			return nil, err
		}
	}
	if s, ok := q.Body.(*ast.Select); ok {
		return b.selectQuery(s, q, outer)
	}
	r, err := b.body(q.Body, outer)
	if err != nil {
		return nil, err
	}
	if len(q.OrderBy) > 0 {
		if r, err = b.sortRelation(r, q.OrderBy); err != nil {
			return nil, err
		}
	}
	return b.limit(r, q)
}

// with brings the common table expressions of a query into scope.
func (b *binder) with(w *ast.With) error {
	if w.Recursive {
		return b.unsupported(w, "WITH RECURSIVE", "", "write out the steps, or leave RECURSIVE away if no expression reads itself")
	}
	names := map[string]bool{}
	for _, c := range w.Tables {
		key := strings.ToLower(c.Name.Text)
		if names[key] {
			return b.errorf(c.Name, "the common table expression %s is defined twice", c.Name.Text)
		}
		names[key] = true
		b.ctes = &cte{def: c, next: b.ctes}
	}
	return nil
}

// body binds a query without its ORDER BY.
func (b *binder) body(body ast.QueryBody, outer *env) (*relation, error) {
	switch q := body.(type) {
	case *ast.Select:
		return b.selectQuery(q, &ast.Query{Span: q.Span, Body: q}, outer)
	case *ast.ParenQuery:
		return b.query(q.Query, outer)
	case *ast.Values:
		if rows := b.valuesOfRow(q, outer); rows != nil {
			return b.body(rows, outer)
		}
		return b.values(q)
	case *ast.SetOp:
		return b.setOp(q, outer)
	}
	return nil, fmt.Errorf("bug: unknown query %T", body)
}

// setOp binds UNION, INTERSECT and EXCEPT.
func (b *binder) setOp(s *ast.SetOp, outer *env) (*relation, error) {
	if s.Op == "UNION" {
		return b.union(s, outer)
	}
	left, err := b.operand(s.L, outer)
	if err != nil {
		return nil, err
	}
	right, err := b.operand(s.R, outer)
	if err != nil {
		return nil, err
	}
	if err := b.meetTexts(s, []ast.QueryBody{s.L, s.R}, []*relation{left, right}); err != nil {
		return nil, err
	}
	if s.ByName {
		return nil, b.unsupported(s, s.Op+" BY NAME", "", "select the columns in the same order on both sides")
	}
	kind := logical.Intersect
	if s.Op == "EXCEPT" {
		kind = logical.Except
	}
	node, err := logical.SetOpOf(kind, s.All, left.node, right.node)
	if err != nil {
		return nil, b.wrap(s.R, fmt.Errorf("%s: %w", s.Op, err))
	}
	b.placeCasts(s, []ast.QueryBody{s.L, s.R}, []logical.Node{left.node, right.node}, node.Children())
	return relationOf(node, ""), nil
}

// union binds a chain of UNIONs of one kind as one node.
func (b *binder) union(s *ast.SetOp, outer *env) (*relation, error) {
	terms := []ast.QueryBody{s.R}
	left := s.L
	for {
		l, ok := left.(*ast.SetOp)
		if !ok || l.Op != "UNION" || l.All != s.All || l.ByName != s.ByName {
			break
		}
		terms = append(terms, l.R)
		left = l.L
	}
	terms = append(terms, left)
	slices.Reverse(terms)
	inputs := make([]*relation, len(terms))
	for i, t := range terms {
		r, err := b.operand(t, outer)
		if err != nil {
			return nil, err
		}
		inputs[i] = r
	}
	if s.ByName {
		if err := b.alignByName(s, inputs); err != nil {
			return nil, err
		}
	}
	if err := b.meetTexts(s, terms, inputs); err != nil {
		return nil, err
	}
	nodes := make([]logical.Node, len(inputs))
	for i, r := range inputs {
		nodes[i] = r.node
	}
	u, err := logical.UnionOf(nodes...)
	if err != nil {
		return nil, b.wrap(s, fmt.Errorf("UNION: %w", err))
	}
	b.placeCasts(s, terms, nodes, u.Children())
	if !s.All {
		u = logical.NewDistinct(u, nil, false)
	}
	return relationOf(u, ""), nil
}

// operand binds one side of a set operation.
func (b *binder) operand(body ast.QueryBody, outer *env) (*relation, error) {
	r, err := b.body(body, outer)
	if err != nil {
		return nil, err
	}
	return strip(r), nil
}

// alignByName gives all inputs the columns of the first, then those only others
// have; what an input lacks is null.
func (b *binder) alignByName(s *ast.SetOp, inputs []*relation) error {
	var all []column
	for _, r := range inputs {
		for _, c := range r.columns {
			if findName(all, c.name) < 0 {
				all = append(all, c)
			}
		}
	}
	for i, r := range inputs {
		seen := map[expr.ID]bool{}
		list := make([]expr.Named, len(all))
		for k, want := range all {
			at := findName(r.columns, want.name)
			if at < 0 {
				list[k] = expr.As(expr.CastTo(nullLiteral(), want.DataType), want.name)
				continue
			}
			list[k] = named(r.columns[at].Column, want.name, seen)
		}
		if len(r.columns) > len(all) {
			return b.errorf(s, "UNION BY NAME: a side has two columns of one name")
		}
		inputs[i] = relationOf(logical.NewProject(r.node, list), "")
	}
	return nil
}

func findName(columns []column, name string) int {
	for i, c := range columns {
		if strings.EqualFold(c.name, name) {
			return i
		}
	}
	return -1
}

// values binds VALUES; the columns are col1, col2, and so on.
func (b *binder) values(v *ast.Values) (*relation, error) {
	e := &env{b: b, clause: "VALUES"}
	rows := make([][]expr.Expr, len(v.Rows))
	for _, row := range v.Rows {
		if len(row.Items) != len(v.Rows[0].Items) {
			return nil, b.errorf(row, "this row has %s, the first has %d", count(len(row.Items), "value"), len(v.Rows[0].Items))
		}
	}
	for i, row := range v.Rows {
		for _, item := range row.Items {
			x, err := e.bind(item)
			if err != nil {
				return nil, err
			}
			rows[i] = append(rows[i], x)
		}
	}
	out := &logical.Schema{}
	for k := range v.Rows[0].Items {
		common := rows[0][k].Type()
		for i := range rows {
			t, ok := columnar.Meet(common, rows[i][k].Type())
			if !ok {
				return nil, b.hinted(v.Rows[i].Items[k], columnar.CastAdvice(common, rows[i][k].Type()), "column %d of VALUES is %s here and %s before",
					k+1, columnar.TypeName(rows[i][k].Type()), columnar.TypeName(common))
			}
			common = t
		}
		nullable := false
		for i := range rows {
			if text, ok := ast.Unparen(v.Rows[i].Items[k]).(*ast.String); ok && common.ID() != arrow.STRING {
				if _, err := b.textAs(text, common); err != nil {
					return nil, b.hinted(text, "cast one of them", "column %d of VALUES is a text here and %s in another row", k+1, columnar.TypeName(common))
				}
			}
			rows[i][k] = b.placed(expr.CastTo(rows[i][k], common), v.Rows[i].Items[k])
			nullable = nullable || rows[i][k].Nullable()
		}
		out.Columns = append(out.Columns, &expr.Column{ID: expr.NewID(), Name: fmt.Sprintf("col%d", k+1), DataType: common, Null: nullable})
	}
	if len(e.scalars()) > 0 {
		return nil, b.unsupported(v, "a subquery in VALUES", "", "use SELECT … UNION ALL SELECT …")
	}
	return relationOf(&logical.Values{Rows: rows, Output: out}, ""), nil
}

func count(n int, what string) string {
	if n == 1 {
		return "1 " + what
	}
	return fmt.Sprintf("%d %ss", n, what)
}

// limit puts LIMIT and OFFSET on a relation.
func (b *binder) limit(r *relation, q *ast.Query) (*relation, error) {
	if q.Limit == nil && q.Offset == nil {
		return r, nil
	}
	n, offset := logical.NoLimit, int64(0)
	var err error
	if q.Limit != nil {
		if n, err = b.rowCount(q.Limit, "LIMIT"); err != nil {
			return nil, err
		}
	}
	if q.Offset != nil {
		if offset, err = b.rowCount(q.Offset, "OFFSET"); err != nil {
			return nil, err
		}
	}
	return &relation{node: logical.NewLimit(r.node, n, offset), columns: r.columns}, nil
}

// rowCount is the whole number that LIMIT and OFFSET take.
func (b *binder) rowCount(x ast.Expr, clause string) (int64, error) {
	if n, ok := wholeNumber(x); ok && n >= 0 {
		return n, nil
	}
	return 0, b.hinted(x, "write the number out: "+clause+" 10", "%s takes a whole number that is not negative", clause)
}

// sortRelation sorts a set operation or VALUES by its own columns.
func (b *binder) sortRelation(r *relation, items []*ast.OrderItem) (*relation, error) {
	r = strip(r)
	var keys []logical.SortKey
	var extra []expr.Named
	for _, item := range items {
		if item.All {
			for _, c := range r.columns {
				keys = append(keys, sortKey(c.Column, item))
			}
			continue
		}
		x, err := b.orderExpr(r, item)
		if err != nil {
			return nil, err
		}
		if _, ok := x.(*expr.Column); !ok {
			n := expr.As(x, x.String())
			extra = append(extra, n)
			x = n.Column()
		}
		keys = append(keys, sortKey(x, item))
	}
	node := r.node
	if len(extra) > 0 {
		list := make([]expr.Named, 0, len(r.columns)+len(extra))
		for _, c := range r.columns {
			list = append(list, expr.Pass(c.Column))
		}
		node = logical.NewProject(node, append(list, extra...))
	}
	return &relation{node: logical.NewSort(node, keys, 0), columns: r.columns}, nil
}

// orderExpr is one ORDER BY item over the columns of a set operation: a position or
// an expression.
func (b *binder) orderExpr(r *relation, item *ast.OrderItem) (expr.Expr, error) {
	if n, ok := wholeNumber(item.X); ok {
		if n < 1 || n > int64(len(r.columns)) {
			return nil, b.errorf(item.X, "ORDER BY %d: there %s", n, areColumns(len(r.columns)))
		}
		return r.columns[n-1].Column, nil
	}
	e := &env{b: b, rel: r, clause: "ORDER BY"}
	x, err := e.bind(item.X)
	if err != nil {
		return nil, err
	}
	if len(e.scalars()) > 0 {
		return nil, b.unsupported(item.X, "a subquery in ORDER BY of a set operation", "", "put the set operation into a subquery in FROM")
	}
	return x, nil
}

func areColumns(n int) string {
	if n == 1 {
		return "is 1 column"
	}
	return fmt.Sprintf("are %d columns", n)
}

// sortKey is x with the direction of item. Nulls come first ascending, last
// descending, unless the item says otherwise.
func sortKey(x expr.Expr, item *ast.OrderItem) logical.SortKey {
	k := logical.SortKey{Expr: x, Descending: item.Desc, NullsFirst: !item.Desc}
	if item.Nulls != ast.NullsDefault {
		k.NullsFirst = item.Nulls == ast.NullsFirst
	}
	return k
}
