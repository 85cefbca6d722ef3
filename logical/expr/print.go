package expr

import (
	"fmt"
	"slices"
	"strings"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"

	"github.com/tidemill/tidemill/columnar"
)

func (c *Column) String() string {
	if c.Qualifier != "" {
		return c.Qualifier + "." + c.Name
	}
	return c.Name
}

func (r *Ref) String() string { return r.Name }
func (n *Name) String() string {
	if n.Qualifier != "" {
		return n.Qualifier + "." + n.Name
	}
	return n.Name
}

// String is the literal as SQL text.
func (l *Literal) String() string {
	if l.IsNull() {
		return "NULL"
	}
	switch v := l.Value.(type) {
	case *array.String:
		return "'" + strings.ReplaceAll(v.Value(0), "'", "''") + "'"
	case *array.Boolean:
		if v.Value(0) {
			return "TRUE"
		}
		return "FALSE"
	case *array.Timestamp:
		return "TIMESTAMP '" + string(columnar.AppendText(nil, v, 0, nil)) + "'"
	case *array.Date32:
		return "DATE '" + string(columnar.AppendText(nil, v, 0, nil)) + "'"
	case *array.Time64:
		return "TIME '" + string(columnar.AppendTime(nil, int64(v.Value(0)))) + "'"
	case *array.MonthDayNanoInterval:
		return "INTERVAL '" + string(columnar.AppendInterval(nil, v.Value(0))) + "'"
	case *array.Binary:
		return fmt.Sprintf("X'%X'", v.Value(0))
	}
	return l.Value.ValueStr(0)
}

// infix are the operators printed between their arguments.
var infix = map[string]string{
	"+": "+", "-": "-", "*": "*", "/": "/", "//": "//", "%": "%", "||": "||",
	"=": "=", "<>": "<>", "<": "<", "<=": "<=", ">": ">", ">=": ">=", "like": "LIKE", "ilike": "ILIKE",
	"is_distinct_from": "IS DISTINCT FROM", "is_not_distinct_from": "IS NOT DISTINCT FROM",
}

func (c *Call) String() string  { return text(c.write) }
func (c *Cast) String() string  { return text(c.write) }
func (l *Logic) String() string { return text(l.write) }
func (c *Case) String() string  { return text(c.write) }
func (i *In) String() string    { return text(i.write) }

// writer is what nodes are that may be many and deep: their text is written once, not
// copied on every level.
type writer interface{ write(sb *strings.Builder) }

func text(write func(*strings.Builder)) string {
	var sb strings.Builder
	write(&sb)
	return sb.String()
}

func write(sb *strings.Builder, e Expr) {
	if w, ok := e.(writer); ok {
		w.write(sb)
		return
	}
	sb.WriteString(e.String())
}

func (c *Call) write(sb *strings.Builder) {
	if c.isMovedDate() {
		c.writeMovedDate(sb)
		return
	}
	c.writeCall(sb)
}

// writeCall writes a call of a function or an operator, whatever it is.
func (c *Call) writeCall(sb *strings.Builder) {
	if op, ok := infix[c.Func.Name]; ok && len(c.Args) == 2 {
		paren(sb, c.Args[0])
		sb.WriteString(" " + op + " ")
		paren(sb, c.Args[1])
		return
	}
	switch c.Func.Name {
	case "is_null":
		paren(sb, c.Args[0])
		sb.WriteString(" IS NULL")
	case "is_not_null":
		paren(sb, c.Args[0])
		sb.WriteString(" IS NOT NULL")
	case "not":
		sb.WriteString("NOT ")
		paren(sb, c.Args[0])
	case "-":
		sb.WriteString("-")
		paren(sb, c.Args[0])
	default:
		sb.WriteString(c.Func.Name + "(")
		writeList(sb, c.Args)
		sb.WriteString(")")
	}
}

// isMovedDate says whether c is a DATE moved by an interval, which is a DATE.
func (c *Call) isMovedDate() bool {
	return movesTime[c.Func.Name] && len(c.Args) == 2 && c.Type().ID() == arrow.DATE32 &&
		slices.ContainsFunc(c.Args, func(a Expr) bool { return a.Type().ID() == arrow.INTERVAL_MONTH_DAY_NANO })
}

// writeMovedDate writes it as a TIMESTAMP moved, and cast back: checkpoints know it by that
// text, from when it was computed so.
func (c *Call) writeMovedDate(sb *strings.Builder) {
	infix := infix[c.Func.Name]
	arg := func(a Expr) {
		switch {
		case a.Type().ID() == arrow.DATE32:
			(&Cast{Input: a, To: columnar.Timestamp}).write(sb)
		case infix != "":
			paren(sb, a)
		default:
			write(sb, a)
		}
	}
	sb.WriteString("CAST(")
	between, end := ", ", ")"
	if infix != "" {
		between, end = " "+infix+" ", ""
	} else {
		sb.WriteString(c.Func.Name + "(")
	}
	arg(c.Args[0])
	sb.WriteString(between)
	arg(c.Args[1])
	sb.WriteString(end + " AS DATE)")
}

func (c *Cast) write(sb *strings.Builder) {
	if c.Try && !c.Implicit {
		sb.WriteString("TRY_")
	}
	sb.WriteString("CAST(")
	write(sb, c.Input)
	sb.WriteString(" AS " + columnar.TypeName(c.To) + ")")
}

func (l *Logic) write(sb *strings.Builder) {
	for i, a := range l.Args {
		if i > 0 {
			sb.WriteString(" " + l.Op.String() + " ")
		}
		paren(sb, a)
	}
}

func (c *Case) write(sb *strings.Builder) {
	sb.WriteString("CASE")
	for i := range c.Whens {
		sb.WriteString(" WHEN ")
		write(sb, c.Whens[i])
		sb.WriteString(" THEN ")
		write(sb, c.Thens[i])
	}
	if c.Else != nil {
		sb.WriteString(" ELSE ")
		write(sb, c.Else)
	}
	sb.WriteString(" END")
}

func (i *In) write(sb *strings.Builder) {
	paren(sb, i.Value)
	sb.WriteString(" IN (")
	writeList(sb, i.List)
	sb.WriteString(")")
}

func (a *Agg) String() string { return aggString(a.Func.Name, a.Args, a.Distinct, nil, a.Filter) }

func (u *Unresolved) String() string {
	return aggString(strings.TrimPrefix(u.Func, "\x00"), u.Args, u.Distinct, nil, u.Filter)
}

func aggString(name string, args []Expr, distinct bool, order []Order, filter Expr) string {
	text := List(args)
	if name == "count" && len(args) == 0 {
		text = "*"
	}
	if distinct {
		text = "DISTINCT " + text
	}
	if len(order) > 0 {
		text += " ORDER BY " + orderText(order)
	}
	text = name + "(" + text + ")"
	if filter != nil {
		text += " FILTER (WHERE " + filter.String() + ")"
	}
	return text
}

// List prints expressions separated by commas.
func List(list []Expr) string {
	return text(func(sb *strings.Builder) { writeList(sb, list) })
}

func writeList(sb *strings.Builder, list []Expr) {
	for i, e := range list {
		if i > 0 {
			sb.WriteString(", ")
		}
		write(sb, e)
	}
}

// String prints expr AS name, or the expression alone where the name says the same.
func (n Named) String() string {
	if c, ok := n.Expr.(*Column); ok && c.Name == n.Name {
		return n.Expr.String()
	}
	if s := n.Expr.String(); s != n.Name {
		return s + " AS " + n.Name
	}
	return n.Name
}

// paren writes e, in parentheses if it is an operator application.
func paren(sb *strings.Builder, e Expr) {
	if !isOperator(e) {
		write(sb, e)
		return
	}
	sb.WriteString("(")
	write(sb, e)
	sb.WriteString(")")
}

func isOperator(e Expr) bool {
	switch x := e.(type) {
	case *Call:
		if _, ok := infix[x.Func.Name]; ok && len(x.Args) == 2 {
			return true
		}
		return x.Func.Name == "is_null" || x.Func.Name == "is_not_null" || x.Func.Name == "not"
	case *Logic, *In:
		return true
	}
	return false
}
