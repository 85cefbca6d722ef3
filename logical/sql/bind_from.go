package sql

import (
	"fmt"
	"slices"
	"strings"

	"github.com/tidemill/tidemill/columnar"
	"github.com/tidemill/tidemill/logical"
	"github.com/tidemill/tidemill/logical/expr"
	"github.com/tidemill/tidemill/logical/sql/ast"
)

// from binds the tables of FROM, joined by commas. Without FROM there is one row
// without columns.
func (b *binder) from(tables []ast.TableExpr, outer *env) (*relation, error) {
	if len(tables) == 0 {
		return oneRowRelation(), nil
	}
	var r *relation
	for _, t := range tables {
		if f, ok := isGenerator(t); ok && r != nil {
			var err error
			if r, err = b.lateral(r, f, false, outer); err != nil {
				return nil, err
			}
			continue
		}
		if r != nil && lateralAt(t) != nil {
			var err error
			if r, err = b.after(r, t, outer); err != nil {
				return nil, err
			}
			continue
		}
		next, err := b.table(t, outer)
		if err != nil {
			return nil, err
		}
		if r == nil {
			r = next
			continue
		}
		r = joined(logical.NewJoin(logical.CrossJoin, r.node, next.node, nil), r, next)
	}
	return r, nil
}

// joined is the relation of a join: the columns of both sides, as the join has them.
func joined(j logical.Node, sides ...*relation) *relation {
	r := &relation{node: j}
	now := byID(j.Schema())
	for _, side := range sides {
		r.files = append(r.files, side.files...)
		for _, c := range side.columns {
			if n := now[c.ID]; n != nil {
				c.Column = n
			}
			r.columns = append(r.columns, c)
		}
	}
	return r
}

func byID(s *logical.Schema) map[expr.ID]*expr.Column {
	m := make(map[expr.ID]*expr.Column, len(s.Columns))
	for _, c := range s.Columns {
		m[c.ID] = c
	}
	return m
}

// table binds one table of FROM.
func (b *binder) table(t ast.TableExpr, outer *env) (*relation, error) {
	if b.tables++; b.tables > maxRelations {
		return nil, b.hinted(t, "write the result of an expression that is used often to files", "the query reads more than %d tables once its views and expressions are written out", maxRelations)
	}
	if err := b.ctx.Err(); err != nil {
		return nil, b.wrap(t, err)
	}
	switch n := t.(type) {
	case *ast.TableName:
		return b.tableName(n)
	case *ast.TablePath:
		table, err := b.resolver().Path(b.ctx, n.Path.Value, "", map[string]string{})
		if err != nil {
			return nil, b.wrap(n.Path, err)
		}
		name := ast.QuoteString(n.Path.Value)
		alias := aliasName(n.Alias, "")
		return b.aliased(b.scanned(b.tableScan(logical.NewScan(name, alias, table)), alias), n.Alias)
	case *ast.TableFunc:
		return b.tableFunc(n, outer)
	case *ast.TableQuery:
		r, err := b.query(n.Query, outer)
		if err != nil {
			return nil, err
		}
		return b.requalified(r, n.Alias)
	case *ast.Sample:
		return b.sample(n, outer)
	case *ast.ParenTable:
		r, err := b.table(n.Table, outer)
		if err != nil || n.Alias == nil {
			return r, err
		}
		return b.requalified(r, n.Alias)
	case *ast.Join:
		return b.join(n, outer)
	case *ast.LateralView:
		return b.lateralView(n, outer)
	}
	return nil, fmt.Errorf("bug: unknown table %T", t)
}

func aliasName(a *ast.Alias, otherwise string) string {
	if a == nil {
		return otherwise
	}
	return a.Name.Text
}

// requalified gives the columns of a query in FROM the name of its alias.
func (b *binder) requalified(r *relation, a *ast.Alias) (*relation, error) {
	out := &relation{node: r.node, files: slices.Clone(r.files)}
	if a != nil {
		out.node = logical.NewAlias(r.node, a.Name.Text)
	}
	for i := range out.files {
		out.files[i].table = aliasName(a, "")
	}
	now := byID(out.node.Schema())
	for _, c := range r.columns {
		if c.shadowed {
			continue
		}
		c.table = aliasName(a, "")
		if n := now[c.ID]; n != nil {
			c.Column = n
		}
		out.columns = append(out.columns, c)
	}
	return b.aliased(out, a)
}

// aliased renames the columns of a table by the list of its alias.
func (b *binder) aliased(r *relation, a *ast.Alias) (*relation, error) {
	if a == nil || len(a.Columns) == 0 {
		return r, nil
	}
	if len(a.Columns) > len(r.columns) {
		return nil, b.errorf(a, "%s has %d columns, the list names %d", a.Name.Text, len(r.columns), len(a.Columns))
	}
	return renamed(r, a.Columns), nil
}

// renamed calls the first columns of r by other names.
func renamed(r *relation, names []*ast.Ident) *relation {
	out := &relation{node: withNames(r.node, names), columns: slices.Clone(r.columns), files: r.files}
	now := byID(out.node.Schema())
	for i, id := range names {
		out.columns[i].name = id.Text
		if c := now[out.columns[i].ID]; c != nil {
			out.columns[i].Column = c
		}
	}
	return out
}

// withNames gives the columns of VALUES the names that a query has for them, which have
// none of their own.
func withNames(n logical.Node, names []*ast.Ident) logical.Node {
	switch n := n.(type) {
	case *logical.Alias:
		if v, ok := n.Input.(*logical.Values); ok {
			return n.WithChildren([]logical.Node{withNames(v, names)})
		}
	case *logical.Values:
		out := &logical.Schema{Columns: slices.Clone(n.Output.Columns)}
		for i, id := range names {
			c := *out.Columns[i]
			c.Name = id.Text
			out.Columns[i] = &c
		}
		return &logical.Values{Rows: n.Rows, Output: out, Given: n.Given}
	}
	return n
}

// quoted is a name with dots as the text of a path.
func quoted(n *ast.TableName) string {
	parts := make([]string, len(n.Parts))
	for i, p := range n.Parts {
		parts[i] = p.Text
	}
	return "'" + strings.ReplaceAll(strings.Join(parts, "."), "'", "''") + "'"
}

// tableName binds a common table expression, a view, a table or a stream.
func (b *binder) tableName(n *ast.TableName) (*relation, error) {
	name := n.Parts[len(n.Parts)-1].Text
	if len(n.Parts) > 1 {
		return nil, b.unsupported(n, "a table name with dots", "there is one catalog", "write "+name+", or the path of a file as a text: "+quoted(n))
	}
	for c := b.ctes; c != nil; c = c.next {
		if strings.EqualFold(c.def.Name.Text, name) {
			return b.cteTable(c, n)
		}
	}
	entry, ok := b.p.Catalog.Lookup(name)
	if !ok {
		return nil, b.unknownTable(n, name)
	}
	alias := aliasName(n.Alias, name)
	switch {
	case entry.View != nil:
		switch v := entry.View.(type) {
		case *View:
			return b.viewTable(v, n)
		case logical.Node: // a DataFrame, which has its meaning already
			return b.requalified(relationOf(logical.Refresh(v), ""), aliasOr(n))
		}
		return nil, fmt.Errorf("bug: a view is a %T", entry.View)
	case entry.Stream != nil:
		d, ok := entry.Stream.(*Declaration)
		if !ok {
			return nil, fmt.Errorf("bug: a stream is a %T", entry.Stream)
		}
		r, err := b.declared(d, alias, n)
		if err != nil {
			return nil, err
		}
		return b.aliased(r, n.Alias)
	}
	table := entry.Opened
	if entry.Table != nil {
		var err error
		if table, err = b.resolver().Table(b.ctx, entry.Table); err != nil {
			d, _ := entry.Syntax.(*Declaration)
			return nil, b.wrapDeclared(n, d, fmt.Errorf("table %s: %w", name, err))
		}
	}
	return b.aliased(b.scanned(b.tableScan(logical.NewScan(name, alias, table)), alias), n.Alias)
}

func (b *binder) unknownTable(n *ast.TableName, name string) error {
	names := b.p.Catalog.Names()
	for c := b.ctes; c != nil; c = c.next {
		names = append(names, c.def.Name.Text)
	}
	slices.Sort(names)
	hint := ""
	switch _, sink := b.p.Catalog.Sink(name); {
	case sink:
		hint = "it is a sink; what it wrote is read by its path in quotes"
	case strings.ContainsAny(name, "./*"):
		hint = "a path is written in single quotes: " + ast.QuoteString(name)
	}
	return b.hinted(n, hint, "there is no table, stream or view %s%s", name, columnar.DidYouMean(name, names))
}

// cteTable binds a common table expression anew, with those defined before it in scope.
func (b *binder) cteTable(c *cte, n *ast.TableName) (*relation, error) {
	defer func(old *cte) { b.ctes = old }(b.ctes)
	b.ctes = c.next
	r, err := b.query(c.def.Query, nil)
	if err != nil {
		return nil, err
	}
	if len(c.def.Columns) > 0 {
		if len(c.def.Columns) != len(r.columns) {
			return nil, b.errorf(c.def.Name, "%s names %d columns, its query has %d", c.def.Name.Text, len(c.def.Columns), len(r.columns))
		}
		r = renamed(r, c.def.Columns)
	}
	return b.requalified(r, aliasOr(n))
}

// aliasOr is the alias of a table, or its name as one.
func aliasOr(n *ast.TableName) *ast.Alias {
	if n.Alias != nil {
		return n.Alias
	}
	return &ast.Alias{Span: n.Span, Name: n.Parts[len(n.Parts)-1]}
}

// viewTable binds a view anew, in the text it was written in.
func (b *binder) viewTable(v *View, n *ast.TableName) (*relation, error) {
	for _, active := range b.views {
		if strings.EqualFold(active, v.Name) {
			return nil, b.errorf(n, "view %s reads itself", v.Name)
		}
	}
	b.views = append(b.views, v.Name)
	var r *relation
	err := b.within(v.text, func() (err error) {
		defer func(old *cte) { b.ctes = old }(b.ctes)
		b.ctes = nil
		r, err = b.query(v.query, nil)
		if err == nil && len(v.columns) > 0 {
			if len(v.columns) != len(r.columns) {
				return b.errorf(v.query, "view %s names %d columns, its query has %d", v.Name, len(v.columns), len(r.columns))
			}
			r = renamed(r, v.columns)
		}
		return err
	})
	b.views = b.views[:len(b.views)-1]
	if err != nil {
		return nil, err
	}
	return b.requalified(r, aliasOr(n))
}

// within runs f with another text as the one at hand.
func (b *binder) within(o origin, f func() error) error {
	src, file := b.src, b.file
	b.src, b.file = o.src, o.file
	err := f()
	b.src, b.file = src, file
	return err
}

// declared binds a stream, or a table with computed columns: the scan, the computed
// columns, the watermark.
func (b *binder) declared(d *Declaration, alias string, n ast.Node) (*relation, error) {
	b.metadata = b.metadata || speaksOf(d.create)
	scan, err := b.scanOf(d, alias, n)
	if err != nil {
		return nil, err
	}
	err = b.within(d.text, func() error {
		if scan, err = b.computed(d, scan, alias); err != nil {
			return err
		}
		scan, err = b.watermark(d, scan)
		return err
	})
	if err != nil {
		return nil, err
	}
	return b.scanned(scan, alias), nil
}

func (b *binder) scanOf(d *Declaration, alias string, n ast.Node) (logical.Node, error) {
	name := d.Source.Name
	if d.IsTable {
		table, err := b.resolver().Table(b.ctx, d.Source)
		if err != nil {
			return nil, b.wrapDeclared(n, d, fmt.Errorf("table %s: %w", name, err))
		}
		return b.tableScan(logical.NewScan(name, alias, table)), nil
	}
	stream := b.streams[d]
	if stream == nil {
		var err error
		if stream, err = b.resolver().Stream(b.ctx, d.Source); err != nil {
			return nil, b.wrapDeclared(n, d, fmt.Errorf("stream %s: %w", name, err))
		}
		b.streams[d] = stream
	}
	if !b.p.Bounded {
		return b.streamScan(logical.NewStreamScan(alias, stream)), nil
	}
	table, err := stream.Bounded(b.ctx)
	if err != nil {
		return nil, b.wrapDeclared(n, d, fmt.Errorf("stream %s: %w", name, err))
	}
	scan := logical.NewScan(name, alias, table)
	scan.OfStream = true
	return b.tableScan(scan), nil
}

// computed adds the computed columns, in the order of the declaration.
func (b *binder) computed(d *Declaration, scan logical.Node, alias string) (logical.Node, error) {
	rel := b.scanned(scan, alias)
	var list []expr.Named
	placed := map[expr.ID]bool{}
	any := false
	e := &env{b: b, rel: rel, clause: "a computed column"}
	for _, def := range d.create.Columns {
		if def.As == nil {
			c, err := e.findColumn("", def.Name.Text)
			if err != nil || c == nil {
				return nil, b.errorf(def.Name, "the source of %s has no column %s", d.Source.Name, def.Name.Text)
			}
			list, placed[c.ID] = append(list, expr.Pass(c.Column)), true
			continue
		}
		if c, _ := e.findColumn("", def.Name.Text); c != nil && c.name == def.Name.Text {
			return nil, b.errorf(def.Name, "the files of %s have a column %s already", d.Source.Name, def.Name.Text)
		}
		x, err := e.bind(def.As)
		if err != nil {
			return nil, err
		}
		n := expr.As(x, def.Name.Text)
		n.Qualifier = alias
		list, any = append(list, n), true
	}
	if !any {
		return scan, nil
	}
	// Columns the declaration does not mention were inferred: they come first.
	var all []expr.Named
	for _, c := range scan.Schema().Columns {
		if !placed[c.ID] {
			all = append(all, expr.Pass(c))
		}
	}
	return logical.NewProject(scan, append(all, list...)), nil
}

// watermark declares the event time of a stream.
func (b *binder) watermark(d *Declaration, n logical.Node) (logical.Node, error) {
	w := d.create.Watermark
	if w == nil {
		return n, nil
	}
	e := &env{b: b, rel: b.scanned(n, d.Source.Name), clause: "WATERMARK"}
	x, err := e.name(&ast.Name{Span: w.Column.Span, Parts: []*ast.Ident{w.Column}})
	if err != nil {
		return nil, err
	}
	c, ok := x.(*expr.Column)
	if !ok {
		return nil, b.errorf(w.Column, "a watermark is declared for a column")
	}
	behind, err := b.watermarkDelay(w)
	if err != nil {
		return nil, err
	}
	marked, err := logical.DeclareWatermark(n, c, behind, d.Source.Name+"."+c.Name)
	if err != nil {
		return nil, b.wrap(w.Column, err)
	}
	return marked, nil
}

// join binds L JOIN R.
func (b *binder) join(n *ast.Join, outer *env) (*relation, error) {
	left, err := b.table(n.L, outer)
	if err != nil {
		return nil, err
	}
	return b.joinBehind(n, left, outer)
}

// joinBehind binds L JOIN R where L is bound already.
func (b *binder) joinBehind(n *ast.Join, left *relation, outer *env) (*relation, error) {
	if f, ok := isGenerator(n.R); ok {
		return b.joinGenerator(n, left, f, outer)
	}
	if q, ok := n.R.(*ast.TableQuery); ok && q.Lateral {
		return b.joinLateral(n, left, q, outer)
	}
	right, err := b.table(n.R, outer)
	if err != nil {
		return nil, err
	}
	kind := [...]logical.JoinKind{
		ast.InnerJoin: logical.InnerJoin, ast.LeftJoin: logical.LeftJoin, ast.RightJoin: logical.RightJoin,
		ast.FullJoin: logical.FullJoin, ast.CrossJoin: logical.CrossJoin, ast.SemiJoin: logical.SemiJoin, ast.AntiJoin: logical.AntiJoin,
	}[n.Kind]
	if n.Asof {
		return b.joinAsof(n, kind, left, right, outer)
	}
	using := n.Using
	if n.Natural {
		using = commonNames(left, right)
	}
	switch {
	case len(using) > 0:
		return b.joinUsing(n, kind, left, right, using)
	case n.On == nil:
		if kind == logical.InnerJoin {
			kind = logical.CrossJoin // NATURAL JOIN of tables without a common column
		}
		return joinSides(logical.NewJoin(kind, left.node, right.node, nil), left, right), nil
	}
	if hasQuery(n.On) {
		return b.joinOnQueries(n, kind, left, right, outer)
	}
	on, err := b.bothSides(left, right, outer).condition(n.On, "ON")
	if err != nil {
		return nil, err
	}
	return joinSides(logical.NewJoin(kind, left.node, right.node, on), left, right), nil
}

// bothSides is where the condition of a join is bound.
func (b *binder) bothSides(left, right *relation, outer *env) *env {
	both := &relation{columns: slices.Concat(left.columns, right.columns), files: slices.Concat(left.files, right.files)}
	return &env{b: b, rel: both, clause: "ON", outer: outer}
}

// joinSides is the relation of a join; semi and anti joins have the left side only.
func joinSides(j *logical.Join, left, right *relation) *relation {
	if j.Kind == logical.SemiJoin || j.Kind == logical.AntiJoin {
		return joined(j, left)
	}
	return joined(j, left, right)
}

func commonNames(left, right *relation) []*ast.Ident {
	var names []*ast.Ident
	for _, c := range left.columns {
		if !c.shadowed && findName(right.columns, c.name) >= 0 && identNamed(names, c.name) == nil {
			names = append(names, &ast.Ident{Text: c.name})
		}
	}
	return names
}

// joinUsing joins on equal columns of the same names. Each is there once, before the
// other columns: the one of the side that has it in any case, or of whichever has it.
// By their tables' names both sides can still be asked for.
func (b *binder) joinUsing(n *ast.Join, kind logical.JoinKind, left, right *relation, using []*ast.Ident) (*relation, error) {
	var conds []expr.Expr
	var pairs [][2]column
	for _, id := range using {
		pair, eq, err := b.usingPair(n, id, left, right, "=")
		if err != nil {
			return nil, err
		}
		conds = append(conds, eq)
		pairs = append(pairs, pair)
	}
	j := logical.NewJoin(kind, left.node, right.node, expr.All(conds))
	out := joinSides(j, left, right)
	if kind == logical.SemiJoin || kind == logical.AntiJoin {
		return out, nil
	}
	return b.mergeUsing(n, kind, out, pairs)
}

// usingPair is a column of USING on both sides, and their comparison.
func (b *binder) usingPair(n *ast.Join, id *ast.Ident, left, right *relation, op string) (pair [2]column, cond expr.Expr, err error) {
	if pair[0], err = b.usingColumn(n, id, left, "left"); err != nil {
		return pair, nil, err
	}
	if pair[1], err = b.usingColumn(n, id, right, "right"); err != nil {
		return pair, nil, err
	}
	if cond, err = expr.NewCall(b.p.Functions, op, pair[0].Column, pair[1].Column); err != nil {
		return pair, nil, b.wrap(n, fmt.Errorf("USING (%s): %w", id.Text, err))
	}
	return pair, b.placed(cond, n), nil
}

func (b *binder) usingColumn(n *ast.Join, id *ast.Ident, side *relation, which string) (column, error) {
	e := &env{b: b, rel: side}
	c, err := e.findColumn("", id.Text)
	if err != nil {
		return column{}, b.wrap(n, err)
	}
	if c == nil {
		var at ast.Node = id
		if id.To == 0 {
			at = n
		}
		return column{}, b.errorf(at, "the %s side of the join has no column %s%s", which, id.Text, columnar.DidYouMean(id.Text, namesOf(side.columns)))
	}
	return *c, nil
}

// mergeUsing puts the merged columns first and shadows those they stand for.
func (b *binder) mergeUsing(n *ast.Join, kind logical.JoinKind, r *relation, pairs [][2]column) (*relation, error) {
	j := r.node
	out := &relation{node: j, files: r.files}
	shadow := map[expr.ID]bool{}
	var computed []expr.Named
	for _, p := range pairs {
		l := j.Schema().Columns[j.Schema().Index(p[0].ID)]
		rc := j.Schema().Columns[j.Schema().Index(p[1].ID)]
		shadow[l.ID], shadow[rc.ID] = true, true
		merged := column{Column: l, name: p[0].name}
		switch kind {
		case logical.RightJoin:
			merged.Column = rc
		case logical.FullJoin:
			x, err := expr.NewCall(b.p.Functions, "coalesce", l, rc)
			if err != nil {
				return nil, b.wrap(n, err)
			}
			named := expr.As(b.placed(x, n), p[0].name)
			computed = append(computed, named)
			merged.Column = named.Column()
		}
		out.columns = append(out.columns, merged)
	}
	for _, c := range r.columns {
		c.shadowed = c.shadowed || shadow[c.ID]
		out.columns = append(out.columns, c)
	}
	if len(computed) > 0 {
		list := make([]expr.Named, 0, len(computed)+len(j.Schema().Columns))
		for _, c := range j.Schema().Columns {
			list = append(list, expr.Pass(c))
		}
		out.node = logical.NewProject(j, append(list, computed...))
	}
	return out, nil
}

// tableFunc binds a table function.
func (b *binder) tableFunc(n *ast.TableFunc, outer *env) (*relation, error) {
	name := lower(n.Name.Text)
	if _, ok := isGenerator(n); ok {
		return b.lateral(oneRowRelation(), n, false, outer)
	}
	if n.Lateral || n.Ordinality {
		return nil, b.unsupported(n, "LATERAL and WITH ORDINALITY", "", "leave it out")
	}
	switch {
	case name == "tumble" || name == "hop" || name == "session":
		r, err := b.windowTable(n, outer)
		if err != nil || n.Alias == nil {
			return r, err
		}
		return b.requalified(r, n.Alias)
	case name == "generate_series" && timesByInterval(n):
		return b.timeSeries(n, outer)
	case name == "range" || name == "generate_series":
		table, err := b.series(n, name)
		if err != nil {
			return nil, err
		}
		alias := aliasName(n.Alias, name)
		return b.aliased(relationOf(logical.NewScan(ast.Print(&ast.TableFunc{Name: n.Name, Args: n.Args}), alias, table), alias), n.Alias)
	case strings.HasPrefix(name, "read_"):
		return b.readFunc(n, strings.TrimSuffix(strings.TrimPrefix(name, "read_"), "_auto"))
	case name == "cumulate":
		return nil, b.unsupported(n, "the table function "+name, "", "use HOP, or TUMBLE with a smaller size")
	}
	known := []string{"read_csv", "read_json", "read_parquet", "read_text", "read_arrow", "read_avro", "range", "generate_series", "UNNEST", "TUMBLE", "HOP", "SESSION"}
	return nil, b.errorf(n.Name, "there is no table function %s%s", n.Name.Text, columnar.DidYouMean(name, known))
}

// readFunc binds read_csv('path', key => value, …) and its kin.
func (b *binder) readFunc(n *ast.TableFunc, format string) (*relation, error) {
	path, options := "", map[string]string{}
	for i, a := range n.Args {
		if a.Name == nil {
			s, ok := ast.Unparen(a.Value).(*ast.String)
			if !ok || i > 0 {
				return nil, b.hinted(a, n.Name.Text+"('path', header => true)", "%s takes one path in quotes, then options by name", n.Name.Text)
			}
			path = s.Value
			continue
		}
		key := lower(a.Name.Text)
		if _, twice := options[key]; twice {
			return nil, b.errorf(a.Name, "the option %s is given twice", key)
		}
		text, err := b.optionText(a.Value)
		if err != nil {
			return nil, err
		}
		options[key] = text
	}
	if path == "" {
		path = options["path"]
		delete(options, "path")
	}
	if path == "" {
		return nil, b.hinted(n, n.Name.Text+"('path')", "%s needs a path", n.Name.Text)
	}
	table, err := b.resolver().Path(b.ctx, path, format, options)
	if err != nil {
		return nil, b.wrapOption(n, n.Args, err)
	}
	name := n.Name.Text + "(" + ast.QuoteString(path) + ")"
	alias := aliasName(n.Alias, "")
	return b.aliased(b.scanned(b.tableScan(logical.NewScan(name, alias, table)), alias), n.Alias)
}
