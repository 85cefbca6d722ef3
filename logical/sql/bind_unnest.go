package sql

import (
	"slices"
	"strings"

	"github.com/apache/arrow-go/v18/arrow"

	"github.com/tidemill/tidemill/columnar"
	"github.com/tidemill/tidemill/logical"
	"github.com/tidemill/tidemill/logical/expr"
	"github.com/tidemill/tidemill/logical/sql/ast"
)

// generator is a function that makes several rows of one.
type generator struct {
	column string // what the elements of an array are called
	outer  bool   // keeps rows without elements
	place  bool   // counts the elements, from 0, in a column before them
	many   bool   // takes several lists
}

var generators = map[string]generator{
	"unnest":           {column: "unnest", many: true},
	"explode":          {column: "col"},
	"explode_outer":    {column: "col", outer: true},
	"posexplode":       {column: "col", place: true},
	"posexplode_outer": {column: "col", outer: true, place: true},
}

// generatorCall is a call of a generator, in FROM or in the select list.
type generatorCall struct {
	at         ast.Node
	name       string
	args       []*ast.Arg
	outer      bool
	ordinality bool
}

// unnest makes the node for a call over input, its arguments bound in e.
func (e *env) unnest(input logical.Node, c generatorCall) (*logical.Unnest, error) {
	g := generators[c.name]
	if len(c.args) == 0 || len(c.args) > 1 && !g.many {
		return nil, e.b.hinted(c.at, c.name+"(list)", "%s takes an array or a map", c.name)
	}
	lists, err := e.lists(c)
	if err != nil {
		return nil, err
	}
	u, err := logical.NewUnnest(input, lists, g.outer || c.outer)
	if err != nil {
		return nil, e.b.wrap(c.at, err)
	}
	for _, columns := range u.Elements {
		if len(columns) == 1 {
			columns[0].Name = g.column
		}
	}
	switch {
	case g.place:
		u = u.WithPlace("pos", 0)
	case c.ordinality:
		u = u.WithPlace("ordinality", 1)
	}
	return u, nil
}

// lists binds the arguments of a generator; NULL is an array without elements.
func (e *env) lists(c generatorCall) ([]expr.Expr, error) {
	var lists []expr.Expr
	for _, a := range c.args {
		if a.Name != nil {
			return nil, e.b.errorf(a, "%s takes its arguments by position, not by name", c.name)
		}
		x, err := e.bind(a.Value)
		if err != nil {
			return nil, err
		}
		if x.Type().ID() == arrow.NULL {
			x = expr.CastTo(x, arrow.ListOf(columnar.Int32))
		}
		lists = append(lists, x)
	}
	return lists, nil
}

// generated is the columns that an Unnest adds, as its function orders them: the place of
// posexplode comes first, that of WITH ORDINALITY last.
func generated(u *logical.Unnest, name string) []*expr.Column {
	out := slices.Concat(u.Elements...)
	switch {
	case u.Place == nil:
		return out
	case generators[name].place:
		return append([]*expr.Column{u.Place}, out...)
	}
	return append(out, u.Place)
}

// isGenerator says whether t is a generator, which may use the tables before it.
func isGenerator(t ast.TableExpr) (*ast.TableFunc, bool) {
	f, ok := t.(*ast.TableFunc)
	if !ok {
		return nil, false
	}
	_, ok = generators[lower(f.Name.Text)]
	return f, ok
}

// lateral binds a generator behind the tables of left.
func (b *binder) lateral(left *relation, f *ast.TableFunc, keep bool, outer *env) (*relation, error) {
	name := lower(f.Name.Text)
	c := generatorCall{at: f, name: name, args: f.Args, outer: keep, ordinality: f.Ordinality}
	alias := aliasName(f.Alias, name)
	var columns []*ast.Ident
	if f.Alias != nil {
		columns = f.Alias.Columns
	}
	return b.generate(left, c, alias, columns, outer)
}

// lateralView binds Spark's LATERAL VIEW.
func (b *binder) lateralView(n *ast.LateralView, outer *env) (*relation, error) {
	left, err := b.table(n.L, outer)
	if err != nil {
		return nil, err
	}
	name := lower(n.Func.Name.Text)
	if _, ok := generators[name]; !ok {
		var known []string
		for g := range generators {
			known = append(known, g)
		}
		slices.Sort(known)
		return nil, b.errorf(n.Func.Name, "there is no function %s that makes rows%s", n.Func.Name.Text, columnar.DidYouMean(name, known))
	}
	alias := name
	if n.Table != nil {
		alias = n.Table.Text
	}
	return b.generate(left, generatorCall{at: n.Func, name: name, args: n.Func.Args, outer: n.Outer}, alias, n.Columns, outer)
}

// generate is left with the columns of a generator, which answer to alias.
func (b *binder) generate(left *relation, c generatorCall, alias string, names []*ast.Ident, outer *env) (*relation, error) {
	e := &env{b: b, rel: left, clause: strings.ToUpper(c.name), outer: outer}
	u, err := e.unnest(left.node, c)
	if err != nil {
		return nil, err
	}
	made := &relation{node: u}
	for _, column := range generated(u, c.name) {
		made.columns = append(made.columns, columnOf(column, alias))
	}
	if len(names) > len(made.columns) {
		return nil, b.errorf(names[len(made.columns)], "%s has %s, the list names %d", c.name, count(len(made.columns), "column"), len(names))
	}
	made = renamed(made, names)
	return &relation{node: u, columns: slices.Concat(left.columns, made.columns), files: left.files}, nil
}

func columnOf(c *expr.Column, table string) column {
	c.Qualifier = table
	return column{Column: c, table: table, name: c.Name}
}

// joinGenerator binds L JOIN generator(…).
func (b *binder) joinGenerator(n *ast.Join, left *relation, f *ast.TableFunc, outer *env) (*relation, error) {
	isTrue := n.On == nil
	if v, ok := ast.Unparen(orTrue(n.On)).(*ast.Bool); ok && v.Value {
		isTrue = true
	}
	inner := n.Kind == ast.InnerJoin || n.Kind == ast.CrossJoin
	if n.Natural || n.Asof || len(n.Using) > 0 || !inner && (n.Kind != ast.LeftJoin || !isTrue) {
		name := upper(f.Name.Text)
		hint := "use CROSS JOIN, or LEFT JOIN … ON TRUE"
		if n.Kind == ast.LeftJoin && n.On != nil && !n.Asof {
			hint = "LEFT JOIN LATERAL (SELECT * FROM " + name + "(…) AS u (x) WHERE condition) AS u ON TRUE"
		}
		return nil, b.unsupported(f, "this kind of join with "+lower(name), "its rows are made of the rows before it", hint)
	}
	r, err := b.lateral(left, f, n.Kind == ast.LeftJoin, outer)
	if err != nil || isTrue {
		return r, err
	}
	e := &env{b: b, rel: r, clause: "ON", outer: outer}
	on, err := e.condition(n.On, "ON")
	if err != nil {
		return nil, err
	}
	return &relation{node: logical.NewFilter(r.node, on), columns: r.columns, files: r.files}, nil
}

// orTrue is a condition, or TRUE where there is none.
func orTrue(x ast.Expr) ast.Expr {
	if x == nil {
		return &ast.Bool{Value: true}
	}
	return x
}

// oneRow is a relation of one row without columns.
func oneRowRelation() *relation {
	return &relation{node: &logical.Values{Rows: [][]expr.Expr{{}}, Output: &logical.Schema{}}}
}

// generatorItems are the columns of a call in the select list.
func (e *env) generatorItems(n *ast.Call, name string) ([]*expr.Column, error) {
	switch {
	case e.within != "":
		return nil, e.b.hinted(n, "unnest in a subquery in FROM", "%s cannot stand inside %s", name, e.within)
	case e.sel == nil || e.clause != "SELECT":
		return nil, e.b.hinted(n, "unnest in FROM: FROM t CROSS JOIN UNNEST(t.list) AS u (x)", "%s makes rows and cannot stand in %s", name, e.clause)
	case n.Over != nil || n.Distinct || n.Filter != nil:
		return nil, e.b.errorf(n, "%s is not an aggregate function", name)
	}
	in := e.inside(name)
	in.aliases = noAliases
	u, err := in.unnest(e.sel.node, generatorCall{at: n, name: name, args: n.Args})
	if err != nil {
		return nil, err
	}
	if other := e.sel.unnest; other != nil {
		if other.Outer != u.Outer || other.Place != nil || u.Place != nil {
			return nil, e.b.hinted(n, "unnest in FROM: FROM t CROSS JOIN UNNEST(t.list) AS u (x)", "only calls of one kind, without places, can stand in one select list")
		}
		for k, l := range u.Lists { // side by side with the others
			other.Lists, other.Elements = append(other.Lists, l), append(other.Elements, u.Elements[k])
		}
	} else {
		e.sel.unnest = u
	}
	return generated(u, name), nil
}

// attachUnnest puts the unnest of the select list on the plan.
func (sel *selection) attachUnnest() {
	if sel.unnest != nil {
		sel.node = sel.unnest.WithChildren([]logical.Node{sel.node})
	}
}
