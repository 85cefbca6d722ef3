package expr

import (
	"fmt"
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
		return "TIMESTAMP '" + v.Value(0).ToTime(arrow.Microsecond).UTC().Format("2006-01-02 15:04:05.999999") + "'"
	case *array.Date32:
		return "DATE '" + v.ValueStr(0) + "'"
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

func (c *Call) String() string {
	if op, ok := infix[c.Func.Name]; ok && len(c.Args) == 2 {
		return paren(c.Args[0]) + " " + op + " " + paren(c.Args[1])
	}
	switch c.Func.Name {
	case "is_null":
		return paren(c.Args[0]) + " IS NULL"
	case "is_not_null":
		return paren(c.Args[0]) + " IS NOT NULL"
	case "not":
		return "NOT " + paren(c.Args[0])
	case "-":
		return "-" + paren(c.Args[0])
	}
	return c.Func.Name + "(" + List(c.Args) + ")"
}

func (c *Cast) String() string {
	word := "CAST("
	if c.Try {
		word = "TRY_CAST("
	}
	return word + c.Input.String() + " AS " + columnar.TypeName(c.To) + ")"
}

func (l *Logic) String() string {
	parts := make([]string, len(l.Args))
	for i, a := range l.Args {
		parts[i] = paren(a)
	}
	return strings.Join(parts, " "+l.Op.String()+" ")
}

func (c *Case) String() string {
	var sb strings.Builder
	sb.WriteString("CASE")
	for i := range c.Whens {
		fmt.Fprintf(&sb, " WHEN %s THEN %s", c.Whens[i], c.Thens[i])
	}
	if c.Else != nil {
		fmt.Fprintf(&sb, " ELSE %s", c.Else)
	}
	return sb.String() + " END"
}

func (i *In) String() string { return paren(i.Value) + " IN (" + List(i.List) + ")" }

func (a *Agg) String() string { return aggString(a.Func.Name, a.Args, a.Distinct, a.Filter) }

func (u *Unresolved) String() string {
	return aggString(strings.TrimPrefix(u.Func, "\x00"), u.Args, u.Distinct, u.Filter)
}

func aggString(name string, args []Expr, distinct bool, filter Expr) string {
	text := List(args)
	if name == "count" && len(args) == 0 {
		text = "*"
	}
	if distinct {
		text = "DISTINCT " + text
	}
	text = name + "(" + text + ")"
	if filter != nil {
		text += " FILTER (WHERE " + filter.String() + ")"
	}
	return text
}

// List prints expressions separated by commas.
func List(list []Expr) string {
	parts := make([]string, len(list))
	for i, e := range list {
		parts[i] = e.String()
	}
	return strings.Join(parts, ", ")
}

// String prints expr AS name, or the expression alone where the name says the same.
func (n Named) String() string {
	if c, ok := n.Expr.(*Column); ok && c.Name == n.Name {
		return n.Expr.String()
	}
	if n.Expr.String() == n.Name {
		return n.Name
	}
	return n.Expr.String() + " AS " + n.Name
}

// paren prints e in parentheses if it is an operator application.
func paren(e Expr) string {
	switch x := e.(type) {
	case *Call:
		if _, ok := infix[x.Func.Name]; ok && len(x.Args) == 2 || x.Func.Name == "is_null" || x.Func.Name == "is_not_null" || x.Func.Name == "not" {
			return "(" + e.String() + ")"
		}
	case *Logic, *In:
		return "(" + e.String() + ")"
	}
	return e.String()
}
