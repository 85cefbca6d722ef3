package sql

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/apache/arrow-go/v18/arrow"

	"github.com/tidemill/tidemill/columnar"
	"github.com/tidemill/tidemill/logical"
	"github.com/tidemill/tidemill/logical/connector"
	"github.com/tidemill/tidemill/logical/expr"
	"github.com/tidemill/tidemill/logical/sql/ast"
)

// resolver is where declarations and paths are opened.
func (b *binder) resolver() logical.Resolver {
	if b.p.Resolver == nil {
		return noResolver{}
	}
	return b.p.Resolver
}

// noResolver stands for a Planner without one: it opens nothing.
type noResolver struct{}

var errNoResolver = errors.New("files cannot be read here")

func (noResolver) Stream(context.Context, *logical.SourceDecl) (*logical.Stream, error) {
	return nil, errNoResolver
}

func (noResolver) Table(context.Context, *logical.SourceDecl) (connector.Table, error) {
	return nil, errNoResolver
}

func (noResolver) Path(context.Context, string, string, map[string]string) (connector.Table, error) {
	return nil, errNoResolver
}

// create adds what a CREATE declares to the catalog.
func (b *binder) create(c *ast.Create) error {
	name := c.Name.Text
	if c.OrReplace {
		return b.unsupported(c, "CREATE OR REPLACE", "a catalog lasts as long as one file or session", "use CREATE, and another name for another thing")
	}
	_, relation := b.p.Catalog.Lookup(name)
	_, sink := b.p.Catalog.Sink(name)
	if c.IfNotExists && (relation || sink) {
		return nil
	}
	if relation || sink {
		return b.errorf(c.Name, "%s exists already", name)
	}
	var err error
	switch c.Kind {
	case ast.CreateView:
		v := &View{Name: name, columns: c.ViewColumns, query: c.Query, text: origin{b.src, b.file}}
		err = b.p.Catalog.Add(name, logical.Entry{View: v})
	case ast.CreateSink:
		var options map[string]string
		if options, err = b.options(c); err == nil {
			err = b.p.Catalog.AddSink(&logical.SinkDecl{Name: name, Options: options})
		}
	default:
		err = b.createSource(c)
	}
	return b.wrap(c, err)
}

// createSource declares a stream or table.
func (b *binder) createSource(c *ast.Create) error {
	options, err := b.options(c)
	if err != nil {
		return err
	}
	d := &Declaration{
		Source:  &logical.SourceDecl{Name: c.Name.Text, Options: options},
		IsTable: c.Kind == ast.CreateTable, create: c, text: origin{b.src, b.file},
	}
	computed := false
	seen := map[string]bool{}
	for _, def := range c.Columns {
		if seen[def.Name.Text] {
			return b.errorf(def.Name, "the column %s is declared twice", def.Name.Text)
		}
		seen[def.Name.Text] = true
		if def.As != nil {
			computed = true
			continue
		}
		dt, err := b.dataType(def.Type)
		if err != nil {
			return err
		}
		d.Source.Columns = append(d.Source.Columns, logical.ColumnDecl{Name: def.Name.Text, Type: dt})
	}
	if err := b.checkWatermark(c); err != nil {
		return err
	}
	if d.IsTable && !computed {
		return b.p.Catalog.Add(c.Name.Text, logical.Entry{Table: d.Source, Syntax: d})
	}
	return b.p.Catalog.Add(c.Name.Text, logical.Entry{Stream: d})
}

// checkWatermark finds what is wrong with a watermark before the stream is used.
func (b *binder) checkWatermark(c *ast.Create) error {
	w := c.Watermark
	if w == nil {
		return nil
	}
	if c.Kind == ast.CreateTable {
		return b.hinted(w, "use CREATE STREAM", "a table ends, so it has no watermark")
	}
	if _, err := b.watermarkDelay(w); err != nil {
		return err
	}
	var names []string
	for _, def := range c.Columns {
		names = append(names, def.Name.Text)
		if strings.EqualFold(def.Name.Text, w.Column.Text) {
			return nil
		}
	}
	if len(names) == 0 || slices.ContainsFunc(c.Columns, func(d *ast.ColumnDef) bool { return d.As != nil }) {
		return nil // the columns of the files are not known yet
	}
	return b.errorf(w.Column, "there is no column %s%s", w.Column.Text, columnar.DidYouMean(w.Column.Text, names))
}

// watermarkDelay reads how far a watermark trails: ts, or ts - INTERVAL '…'.
func (b *binder) watermarkDelay(w *ast.WatermarkDef) (time.Duration, error) {
	const form = "WATERMARK FOR ts AS ts - INTERVAL '10 seconds'"
	x := ast.Unparen(w.X)
	var behind time.Duration
	if minus, ok := x.(*ast.Binary); ok && minus.Op == "-" {
		v, err := b.constantInterval(minus.R, "the delay of a watermark")
		if err != nil {
			return 0, err
		}
		if behind, err = delay(v); err != nil {
			return 0, b.wrap(minus.R, err)
		}
		if behind < 0 {
			return 0, b.errorf(minus.R, "the delay of a watermark cannot be negative")
		}
		x = ast.Unparen(minus.L)
	}
	name, ok := x.(*ast.Name)
	if !ok || len(name.Parts) != 1 || !strings.EqualFold(name.Parts[0].Text, w.Column.Text) {
		return 0, b.hinted(w.X, form, "a watermark is the column itself, or the column minus an interval")
	}
	return behind, nil
}

// options reads WITH (…): keys in lower case, each once.
func (b *binder) options(c *ast.Create) (map[string]string, error) {
	options := map[string]string{}
	for _, o := range c.Options {
		key := lower(o.Key.Text)
		if _, twice := options[key]; twice {
			return nil, b.errorf(o.Key, "the option %s is given twice", key)
		}
		text, err := b.optionText(o.Value)
		if err != nil {
			return nil, err
		}
		options[key] = text
	}
	return options, nil
}

// optionText is the text of an option's value: a text, number, truth value, interval,
// bare word, or an array of such.
func (b *binder) optionText(x ast.Expr) (string, error) {
	switch n := ast.Unparen(x).(type) {
	case *ast.String:
		return n.Value, nil
	case *ast.Number:
		return strings.ReplaceAll(n.Text, "_", ""), nil
	case *ast.Bool:
		if n.Value {
			return "true", nil
		}
		return "false", nil
	case *ast.Unary:
		if num, ok := ast.Unparen(n.X).(*ast.Number); ok && n.Op == "-" {
			return "-" + strings.ReplaceAll(num.Text, "_", ""), nil
		}
	case *ast.Interval:
		var parts []string
		for _, p := range n.Parts {
			parts = append(parts, strings.TrimSpace(strings.Repeat("-", btoi(p.Negative))+p.Text+" "+lower(p.Unit)))
		}
		if n.To == "" {
			return strings.Join(parts, " "), nil
		}
	case *ast.Name:
		if len(n.Parts) == 1 && !n.Parts[0].Quoted {
			return n.Parts[0].Text, nil
		}
	case *ast.Array:
		var parts []string
		for _, item := range n.Items {
			text, err := b.optionText(item)
			if err != nil {
				return "", err
			}
			parts = append(parts, text)
		}
		return strings.Join(parts, ", "), nil
	}
	return "", b.hinted(x, "a text in single quotes, a number, true or false", "the value of an option is a constant")
}

func btoi(b bool) int {
	if b {
		return 1
	}
	return 0
}

// wrapOption puts the place of the option that an error is about on it.
func (b *binder) wrapOption(n ast.Node, args []*ast.Arg, err error) error {
	var o *connector.OptionError
	if errors.As(err, &o) {
		for _, a := range args {
			if a.Name != nil && strings.EqualFold(a.Name.Text, o.Key) {
				return b.wrap(a, err)
			}
		}
	}
	return b.wrap(n, err)
}

// wrapDeclared puts a place on an error about what was declared: the option that it is
// about, or the name of what lacks it, where it was written; else n, where the declaration
// is used.
func (b *binder) wrapDeclared(n ast.Node, d *Declaration, err error) error {
	var o *connector.OptionError
	if errors.As(err, &o) && d != nil && d.create != nil {
		var at ast.Node = d.create.Name
		for _, option := range d.create.Options {
			if strings.EqualFold(option.Key.Text, o.Key) {
				at = option
			}
		}
		_ = b.within(d.text, func() error {
			err = b.wrap(at, err)
			return nil
		})
		return err
	}
	return b.wrap(n, err)
}

// insert binds INSERT INTO: the rows, under the names of the list if there is one.
func (b *binder) insert(s *ast.Insert) (logical.Node, *logical.SinkDecl, error) {
	sink, ok := b.p.Catalog.Sink(s.Sink.Text)
	if !ok {
		if _, other := b.p.Catalog.Lookup(s.Sink.Text); other {
			return nil, nil, b.hinted(s.Sink, "CREATE SINK name WITH (path = '…')", "%s is no sink, it cannot be written to", s.Sink.Text)
		}
		return nil, nil, b.hinted(s.Sink, "CREATE SINK "+s.Sink.Text+" WITH (path = '…') first", "there is no sink %s", s.Sink.Text)
	}
	r, err := b.query(s.Query, nil)
	if err != nil {
		return nil, nil, err
	}
	if len(s.Columns) > 0 {
		if len(s.Columns) != len(r.columns) {
			return nil, nil, b.errorf(s.Columns[0], "INSERT names %s, the query has %d", count(len(s.Columns), "column"), len(r.columns))
		}
		r = renamed(r, s.Columns)
	}
	seen := map[string]bool{}
	for _, c := range r.columns {
		if seen[c.name] {
			return nil, nil, b.hinted(s.Query, "rename one with AS", "two columns of the query are called %s", c.name)
		}
		seen[c.name] = true
	}
	return strip(r).node, sink, nil
}

// set reads SET name = value.
func (b *binder) set(s *ast.Set) (*Setting, error) {
	var parts []string
	for _, id := range s.Name {
		parts = append(parts, lower(id.Text))
	}
	text, err := b.optionText(s.Value)
	if err != nil {
		return nil, err
	}
	return &Setting{Name: strings.Join(parts, "."), Value: text}, nil
}

// textRows are rows of texts as a plan.
func textRows(names []string, rows [][]string) logical.Node {
	v := &logical.Values{Output: &logical.Schema{}}
	for _, name := range names {
		v.Output.Columns = append(v.Output.Columns, &expr.Column{ID: expr.NewID(), Name: name, DataType: columnar.String})
	}
	for _, row := range rows {
		var list []expr.Expr
		for _, text := range row {
			list = append(list, stringLiteral(text))
		}
		v.Rows = append(v.Rows, list)
	}
	return v
}

// series is the table of range(…) and generate_series(…).
func (b *binder) series(n *ast.TableFunc, name string) (connector.Table, error) {
	form := name + "(start, stop, step)"
	if len(n.Args) < 1 || len(n.Args) > 3 {
		return nil, b.hinted(n, form, "%s does not take %s", name, count(len(n.Args), "argument"))
	}
	var v []int64
	for _, a := range n.Args {
		x, err := b.wholeValue(a)
		if err != nil {
			return nil, err
		}
		v = append(v, x)
	}
	s := &series{name: "id", start: 0, stop: v[0], step: 1}
	if len(v) > 1 {
		s.start, s.stop = v[0], v[1]
	}
	if len(v) > 2 {
		s.step = v[2]
	}
	if s.step == 0 {
		return nil, b.errorf(n.Args[2], "the step of %s cannot be 0", name)
	}
	if name == "generate_series" {
		s.name, s.inclusive = "generate_series", true
	}
	return s, nil
}

func (b *binder) wholeValue(a *ast.Arg) (int64, error) {
	if a.Name == nil {
		e := &env{b: b, clause: "an argument of a table function"}
		x, err := e.bind(a.Value)
		if err != nil {
			return 0, err
		}
		if l, ok := x.(*expr.Literal); ok && columnar.IsInteger(l.Type()) && !l.IsNull() {
			if v, ok := columnar.Value(l.Value, 0).(int64); ok {
				return v, nil
			}
			return intValue(l.Value)
		}
	}
	return 0, b.hinted(a, "write the number out; for dates and times, add it to one: SELECT DATE '2024-01-01' + id FROM range(31)", "expected a whole number, found %s", describe(a.Value))
}

func intValue(a arrow.Array) (int64, error) {
	var v int64
	if _, err := fmt.Sscan(a.ValueStr(0), &v); err != nil {
		return 0, fmt.Errorf("bug: %w", err)
	}
	return v, nil
}
