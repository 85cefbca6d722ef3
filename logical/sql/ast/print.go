package ast

import (
	"strconv"
	"strings"
)

// Print writes a node as SQL on one line. Parsed again it gives the same tree,
// spans aside.
func Print(n Node) string {
	var p printer
	n.print(&p)
	return p.b.String()
}

// QuoteString writes a text as a SQL string.
func QuoteString(s string) string {
	return "'" + strings.ReplaceAll(s, "'", "''") + "'"
}

type printer struct{ b strings.Builder }

// put writes its arguments: texts as they are, nodes printed.
func (p *printer) put(parts ...any) {
	for _, part := range parts {
		switch v := part.(type) {
		case string:
			p.b.WriteString(v)
		case Node:
			v.print(p)
		}
	}
}

// opt writes the parts if the condition holds.
func (p *printer) opt(cond bool, parts ...any) {
	if cond {
		p.put(parts...)
	}
}

func list[N Node](p *printer, items []N) {
	for i, n := range items {
		if i > 0 {
			p.b.WriteString(", ")
		}
		n.print(p)
	}
}

func parens[N Node](p *printer, items []N) {
	p.put("(")
	list(p, items)
	p.put(")")
}

func dotted(p *printer, parts []*Ident) {
	for i, id := range parts {
		p.opt(i > 0, ".")
		p.put(id)
	}
}

func not(is bool) string {
	if is {
		return " NOT"
	}
	return ""
}

func (i *Ident) print(p *printer) {
	if i.Quoted {
		p.put(`"`, strings.ReplaceAll(i.Text, `"`, `""`), `"`)
		return
	}
	p.put(i.Text)
}

func (n *Name) print(p *printer)        { dotted(p, n.Parts) }
func (n *Number) print(p *printer)      { p.put(n.Text) }
func (n *String) print(p *printer)      { p.put(QuoteString(n.Value)) }
func (n *Blob) print(p *printer)        { p.put("X'", n.Hex, "'") }
func (n *Null) print(p *printer)        { p.put("NULL") }
func (n *TypedString) print(p *printer) { p.put(n.Type, " ", QuoteString(n.Value)) }
func (n *Paren) print(p *printer)       { p.put("(", n.X, ")") }
func (n *Row) print(p *printer)         { parens(p, n.Items) }
func (n *Exists) print(p *printer)      { p.put("EXISTS (", n.Query, ")") }
func (n *Subquery) print(p *printer)    { p.put("(", n.Query, ")") }
func (n *When) print(p *printer)        { p.put(" WHEN ", n.Cond, " THEN ", n.Then) }
func (n *Extract) print(p *printer)     { p.put("EXTRACT(", n.Part, " FROM ", n.X, ")") }
func (n *AtTimeZone) print(p *printer)  { p.put(n.X, " AT TIME ZONE ", n.Zone) }
func (n *Index) print(p *printer)       { p.put(n.X, "[", n.I, "]") }

func (n *ArrayQuery) print(p *printer) { p.put("ARRAY(", n.Query, ")") }

func (n *Slice) print(p *printer) {
	p.put(n.X, "[")
	p.opt(n.Low != nil, n.Low)
	p.put(":")
	p.opt(n.High != nil, n.High)
	p.put("]")
}

func (n *TableArg) print(p *printer) {
	p.put("TABLE ", n.Table)
	if len(n.Partition) > 0 {
		p.put(" PARTITION BY (")
		list(p, n.Partition)
		p.put(")")
	}
}

func (n *Bool) print(p *printer) {
	if n.Value {
		p.put("TRUE")
	} else {
		p.put("FALSE")
	}
}

func (n *Field) print(p *printer) {
	p.put(n.X)
	// A point directly behind digits would belong to the number.
	_, number := n.X.(*Number)
	p.opt(number, " ")
	p.put(".", n.Name)
}

func (n *Interval) print(p *printer) {
	p.put("INTERVAL")
	for _, part := range n.Parts {
		p.put(" ")
		p.opt(part.Negative, "-")
		if part.Quoted {
			p.put(QuoteString(part.Text))
		} else {
			p.put(part.Text)
		}
		p.opt(part.Unit != "", " ", part.Unit)
	}
	p.opt(n.To != "", " TO ", n.To)
}

func (n *Unary) print(p *printer) {
	if n.Op == "NOT" {
		p.put("NOT ", n.X)
		return
	}
	operand := Print(n.X)
	p.put(n.Op)
	// Two minus signs in a row would begin a comment.
	p.opt(strings.HasPrefix(operand, "-"), " ")
	p.put(operand)
}

func (n *Binary) print(p *printer) { p.put(n.L, " ", n.Op, " ", n.R) }

func (n *Is) print(p *printer) {
	what := [...]string{"NULL", "TRUE", "FALSE", "UNKNOWN"}[n.Kind]
	p.put(n.X, " IS", not(n.Not), " ", what)
}

func (n *IsDistinct) print(p *printer) {
	p.put(n.L, " IS", not(n.Not), " DISTINCT FROM ", n.R)
}

func (n *Between) print(p *printer) {
	p.put(n.X, not(n.Not), " BETWEEN ", n.Low, " AND ", n.High)
}

func (n *In) print(p *printer) {
	p.put(n.X, not(n.Not), " IN (")
	if n.Query != nil {
		p.put(n.Query)
	} else {
		list(p, n.List)
	}
	p.put(")")
}

func (n *Quantified) print(p *printer) {
	p.put(n.X, " ", n.Op, [...]string{" ANY (", " ALL ("}[btoi(n.All)])
	if n.Query != nil {
		p.put(n.Query, ")")
	} else {
		p.put(n.Array, ")")
	}
}

func btoi(b bool) int {
	if b {
		return 1
	}
	return 0
}

func (n *Like) print(p *printer) {
	p.put(n.X, not(n.Not), " ", n.Op, " ")
	if n.Pattern == nil {
		p.put([...]string{"ANY (", "ALL ("}[btoi(n.All)])
		list(p, n.Patterns)
		p.put(")")
		return
	}
	p.put(n.Pattern)
	if n.Escape != nil {
		p.put(" ESCAPE ", n.Escape)
	}
}

func (n *Case) print(p *printer) {
	p.put("CASE")
	if n.Operand != nil {
		p.put(" ", n.Operand)
	}
	for _, w := range n.Whens {
		p.put(w)
	}
	if n.Else != nil {
		p.put(" ELSE ", n.Else)
	}
	p.put(" END")
}

func (n *Cast) print(p *printer) {
	p.opt(n.Try, "TRY_")
	p.put("CAST(", n.X, " AS ", n.Type, ")")
}

func (n *Star) print(p *printer) {
	for _, id := range n.Table {
		p.put(id, ".")
	}
	p.put("*")
	if len(n.Except) > 0 {
		p.put(" EXCEPT ")
		parens(p, n.Except)
	}
	if len(n.Replace) > 0 {
		p.put(" REPLACE ")
		parens(p, n.Replace)
	}
	if len(n.Rename) > 0 {
		p.put(" RENAME ")
		parens(p, n.Rename)
	}
}

func (n *Renamed) print(p *printer) { p.put(n.Column, " AS ", n.To) }

func (n *Array) print(p *printer) {
	p.put("ARRAY[")
	list(p, n.Items)
	p.put("]")
}

func (n *Struct) print(p *printer) {
	p.put("{")
	for i, f := range n.Fields {
		p.opt(i > 0, ", ")
		p.put(f.Name, ": ", f.Value)
	}
	p.put("}")
}

func (n *Map) print(p *printer) {
	p.put("MAP {")
	for i := range n.Keys {
		p.opt(i > 0, ", ")
		p.put(n.Keys[i], ": ", n.Values[i])
	}
	p.put("}")
}

func (n *Arg) print(p *printer) {
	if n.Name != nil {
		p.put(n.Name, " => ")
	}
	p.put(n.Value)
}

func (n *Call) print(p *printer) {
	p.put(n.Name, "(")
	p.opt(n.Distinct, "DISTINCT ")
	list(p, n.Args)
	orderBy(p, n.OrderBy, " ")
	p.opt(n.Nulls == IgnoreNulls, " IGNORE NULLS")
	p.opt(n.Nulls == RespectNulls, " RESPECT NULLS")
	p.put(")")
	if len(n.WithinGroup) > 0 {
		p.put(" WITHIN GROUP (")
		orderBy(p, n.WithinGroup, "")
		p.put(")")
	}
	if n.Filter != nil {
		p.put(" FILTER (WHERE ", n.Filter, ")")
	}
	if n.Over != nil {
		p.put(n.Over)
	}
}

func (n *Over) print(p *printer) {
	if n.Name != nil {
		p.put(" OVER ", n.Name)
		return
	}
	p.put(" OVER (", n.Spec, ")")
}

func (n *WindowSpec) print(p *printer) {
	sep := ""
	if n.Base != nil {
		p.put(n.Base)
		sep = " "
	}
	if len(n.Partition) > 0 {
		p.put(sep, "PARTITION BY ")
		list(p, n.Partition)
		sep = " "
	}
	if len(n.OrderBy) > 0 {
		orderBy(p, n.OrderBy, sep)
		sep = " "
	}
	if n.Frame != nil {
		p.put(sep, n.Frame)
	}
}

func (n *Frame) print(p *printer) {
	p.put(n.Unit, " ")
	p.opt(n.HasEnd, "BETWEEN ")
	n.Low.print(p)
	if n.HasEnd {
		p.put(" AND ")
		n.High.print(p)
	}
	p.opt(n.Exclude != "", " EXCLUDE ", n.Exclude)
}

func (b FrameBound) print(p *printer) {
	switch b.Kind {
	case UnboundedPreceding:
		p.put("UNBOUNDED PRECEDING")
	case Preceding:
		p.put(b.Offset, " PRECEDING")
	case CurrentRow:
		p.put("CURRENT ROW")
	case Following:
		p.put(b.Offset, " FOLLOWING")
	case UnboundedFollowing:
		p.put("UNBOUNDED FOLLOWING")
	}
}

func (n *GroupingSets) print(p *printer) {
	p.put([...]string{"ROLLUP ", "CUBE ", "GROUPING SETS "}[n.Kind])
	parens(p, n.Items)
}

func (t *Type) print(p *printer) {
	switch {
	case t.Key != nil:
		p.put("MAP<", t.Key, ", ", t.Elem, ">")
	case t.Elem != nil:
		p.put("ARRAY<", t.Elem, ">")
	case len(t.Fields) > 0:
		p.put("STRUCT<")
		list(p, t.Fields)
		p.put(">")
	default:
		p.put(upper(t.Name))
		for i, a := range t.Args {
			p.put([...]string{"(", ", "}[min(i, 1)], strconv.Itoa(a))
		}
		p.opt(len(t.Args) > 0, ")")
	}
}

func (f *TypeField) print(p *printer) { p.put(f.Name, ": ", f.Type) }

func orderBy(p *printer, items []*OrderItem, before string) {
	if len(items) > 0 {
		p.put(before, "ORDER BY ")
		list(p, items)
	}
}

func (n *OrderItem) print(p *printer) {
	if n.All {
		p.put("ALL")
	} else {
		p.put(n.X)
	}
	p.opt(n.Desc, " DESC")
	p.opt(n.Nulls == NullsFirst, " NULLS FIRST")
	p.opt(n.Nulls == NullsLast, " NULLS LAST")
}

// upper is the upper case of ASCII letters only, as the lexer has it.
func upper(s string) string {
	return strings.Map(func(r rune) rune {
		if 'a' <= r && r <= 'z' {
			return r - ('a' - 'A')
		}
		return r
	}, s)
}
