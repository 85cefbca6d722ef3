package stateful

import (
	"fmt"
	"slices"
	"strings"

	"github.com/tidemill/tidemill/checkpoint"
	"github.com/tidemill/tidemill/logical"
	"github.com/tidemill/tidemill/logical/expr"
)

// readsOf tells what a stateful node of an analyzed plan takes from below, so that a query
// that would go on with the state of another is refused. It is the same for queries that
// say the same: names of columns and tables, subqueries, views, the order of conditions
// and what is not read leave no trace. Below another stateful node nothing is told but its
// name: that one is compared itself. What a bounded table holds may change from batch to
// batch, and so may a delay; neither is told. A change of these texts is another
// checkpoint.ReadsForm.
func readsOf(n logical.Node, form int) *checkpoint.Reads {
	r := newReader(form)
	out := &checkpoint.Reads{Form: form}
	var names []string
	var texts []expr.Expr
	add := func(name string, e expr.Expr) { names, texts = append(names, name), append(texts, e) }
	var below []rows
	for i, c := range n.Children() {
		if _, ok := n.(*logical.MapGroups); ok && i > 0 {
			break // the initial state, which the first batch alone reads
		}
		below = append(below, r.node(c))
	}
	switch x := n.(type) {
	case *logical.Aggregate:
		for _, k := range x.Keys {
			add(k.Name, k.Expr)
		}
		for _, a := range x.Aggs {
			add(Unqualified(a.Expr), a.Expr)
		}
	case *logical.Distinct:
		for _, e := range x.On {
			add(Unqualified(e), e)
		}
		if at, _, ok := eventTimeOf(x.Input); ok && x.WithinWatermark {
			add("the event time", x.Input.Schema().Columns[at])
		}
	case *logical.Join:
		for i, side := range x.Children() {
			for _, c := range side.Schema().Columns {
				add([]string{"left.", "right."}[i]+c.Name, c)
			}
		}
	case *logical.MapGroups:
		for _, c := range slices.Concat(x.Keys, x.Rows) {
			add(c.Name, c.Expr)
		}
	}
	for i, name := range uniqueNames(names) {
		out.Columns = append(out.Columns, checkpoint.ReadColumn{Name: name, Text: short(r.canonical(texts[i]).String(), longestLine)})
	}
	for _, b := range below {
		out.Rows = append(out.Rows, b.lines()...)
	}
	return out
}

// rows tell which rows a node gives: those of from, or of sides that inner joins put
// together, that meet all conditions.
type rows struct {
	conditions []condition
	joins      []pairing  // those below others come first
	sides      [][]string // of joins
	from       []string   // lines, what is below indented
}

func (s rows) lines() []string {
	filters, on := s.resolve()
	texts := make([]string, len(filters))
	for i, c := range filters {
		texts[i] = c.text
	}
	slices.Sort(texts)
	var out []string
	for _, text := range slices.Compact(texts) {
		out = append(out, short(checkpoint.FilterLine+text, longestLine))
	}
	return append(out, s.joined(on)...)
}

func indented(list ...rows) []string {
	var out []string
	for _, s := range list {
		for _, line := range s.lines() {
			out = append(out, "  "+line)
		}
	}
	return out
}

// reader writes plans down. Columns are told by where they come from.
type reader struct {
	form    int
	columns map[expr.ID]expr.Expr
	leaves  map[expr.ID]leaves
	labels  map[string]int
}

func newReader(form int) *reader {
	return &reader{form: form, columns: map[expr.ID]expr.Expr{}, leaves: map[expr.ID]leaves{}, labels: map[string]int{}}
}

// label tells two nodes of one name apart: t, t#2.
func (r *reader) label(name string) string {
	r.labels[name]++
	if k := r.labels[name]; k > 1 {
		return fmt.Sprintf("%s#%d", name, k)
	}
	return name
}

// origin says that a column comes from a node as it is.
func (r *reader) origin(label string, c *expr.Column, name string) {
	r.columns[c.ID] = &expr.Column{Name: label + "." + name, DataType: c.DataType, Null: c.Null}
	r.leaves[c.ID] = leaves{label: true}
}

func (r *reader) origins(label string, columns ...*expr.Column) {
	for _, c := range columns {
		r.origin(label, c, c.Name)
	}
}

// node writes n down, after what is below it.
func (r *reader) node(n logical.Node) rows {
	var below []rows
	for _, c := range n.Children() {
		below = append(below, r.node(c))
	}
	if name := StateName(n); name != "" {
		return r.state(n, name)
	}
	switch x := n.(type) {
	case *logical.Project:
		r.define(x.Columns)
		return below[0]
	case *logical.Alias, *logical.Watermark:
		return below[0]
	case *logical.Filter:
		below[0].conditions = append(below[0].conditions, r.conditions(x.Cond)...)
		return below[0]
	case *logical.Join:
		return r.join(x, below[0], below[1])
	case *logical.Scan:
		return r.leaf("Scan", x.Name, x.Full.Columns)
	case *logical.StreamScan:
		return r.leaf("StreamScan", strings.ToLower(x.Stream.Name), x.Full.Columns)
	case *logical.Values:
		return r.values(x)
	}
	return rows{from: append([]string{short(r.head(n), longestLine)}, indented(below...)...)}
}

// head is the line of a node that is told with its expressions; it tells what the columns
// it makes are.
func (r *reader) head(n logical.Node) string {
	switch x := n.(type) {
	case *logical.Window:
		m := *x
		m.Time = r.canonical(x.Time)
		if x.IsSession() {
			m.Spec.Gap = r.canonical(x.Spec.Gap)
		}
		r.origins(r.label("window"), x.Start, x.End)
		return m.String() + r.keys(" keys", x.PartitionKeys)
	case *logical.Unnest:
		m := *x
		m.Lists, m.Dropped = r.list(x.Lists), nil
		text := m.String()
		label := r.label("unnest")
		for i, columns := range x.Elements {
			for _, c := range columns {
				r.origin(label, c, fmt.Sprintf("%s%d", c.Name, i+1))
			}
		}
		if x.Place != nil {
			r.origin(label, x.Place, "place")
		}
		return text
	case *logical.Expand:
		text := "Expand" + r.keys(" keys", x.Exprs()) + fmt.Sprintf(" sets=%v", x.Sets)
		label := r.label("expand")
		for i := range x.Keys {
			r.origin(label, x.KeyColumn(i), fmt.Sprint(i+1))
		}
		r.origin(label, x.Set, "set")
		return text
	case *logical.Aggregate:
		return r.made("Aggregate", x.Exprs()[:len(x.Keys)], slices.Concat(x.Keys, x.Aggs))
	case *logical.Over:
		return r.made("Over", nil, x.Functions)
	case *logical.MapGroups:
		r.origins(r.label("groups"), x.Output.Columns...)
		return "MapGroups" + r.keys(" keys", x.Exprs())
	case *logical.Union:
		return r.union(x)
	case *logical.SetOp:
		var sides []expr.Expr
		for _, side := range x.Children() {
			for _, c := range side.Schema().Columns {
				sides = append(sides, c)
			}
		}
		return x.String() + r.keys(" of", sides)
	case *logical.Distinct:
		on := x.On
		if on == nil {
			for _, c := range x.Schema().Columns {
				on = append(on, c)
			}
		}
		return "Distinct" + r.keys(" on", on)
	}
	if exprs := n.Exprs(); len(exprs) > 0 {
		n = n.WithExprs(r.list(exprs)) // a Sort, an AsofJoin: their line is their expressions
	}
	return n.String()
}

// made is the line of a node that computes columns of many rows, which are told by it.
func (r *reader) made(name string, keys []expr.Expr, columns []expr.Named) string {
	text := name + r.keys(" keys", keys)
	label := r.label(strings.ToLower(name))
	for _, c := range columns {
		r.origin(label, c.Column(), short("("+r.canonical(c.Expr).String()+")", longestLine))
	}
	return text
}

// union tells each column by those it is made of.
func (r *reader) union(x *logical.Union) string {
	label := r.label("union")
	for i, c := range x.Output.Columns {
		var of []string
		for _, in := range x.Inputs {
			of = append(of, r.canonical(in.Schema().Columns[i]).String())
		}
		r.origin(label, c, short("("+strings.Join(of, " | ")+")", longestLine))
	}
	return "Union"
}

// state is a stateful node below the one that is told: its state is compared itself.
func (r *reader) state(n logical.Node, name string) rows {
	switch x := n.(type) {
	case *logical.Aggregate:
		for _, c := range x.Keys {
			r.origin(name, c.Column(), c.Name)
		}
		for _, c := range x.Aggs {
			r.origin(name, c.Column(), Unqualified(c.Expr))
		}
	case *logical.MapGroups:
		r.origins(name, x.Output.Columns...)
	}
	return rows{from: []string{"State " + name}}
}

func (r *reader) leaf(kind, name string, columns []*expr.Column) rows {
	label := r.label(name)
	r.origins(label, columns...)
	return rows{from: []string{kind + " " + label}}
}

// values are told row by row, as far as the query wrote them.
func (r *reader) values(x *logical.Values) rows {
	label := r.label("values")
	for i, c := range x.Output.Columns {
		r.origin(label, c, fmt.Sprint(i+1))
	}
	if x.Given {
		return rows{from: []string{"Values given"}}
	}
	var list []string
	for _, row := range x.Rows {
		list = append(list, "("+expr.List(r.list(row))+")")
	}
	return rows{from: []string{short("Values "+strings.Join(list, ", "), longestLine)}}
}

func (r *reader) define(columns []expr.Named) {
	made, of := make([]expr.Expr, len(columns)), make([]leaves, len(columns))
	for i, c := range columns {
		made[i], of[i] = r.canonical(c.Expr), r.leavesOf(expr.Columns(c.Expr)...)
	}
	for i, c := range columns {
		r.columns[c.ID], r.leaves[c.ID] = made[i], of[i]
	}
}

func (r *reader) keys(what string, keys []expr.Expr) string {
	if len(keys) == 0 {
		return ""
	}
	return what + "=[" + expr.List(r.list(keys)) + "]"
}

// StateName is the name of the state a node keeps, "" for none.
func StateName(n logical.Node) string {
	switch x := n.(type) {
	case *logical.Aggregate:
		return x.State
	case *logical.Distinct:
		return x.State
	case *logical.Join:
		return x.State
	case *logical.Limit:
		return x.State
	case *logical.MapGroups:
		return x.State
	}
	return ""
}
