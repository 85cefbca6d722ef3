package stateful

import (
	"slices"
	"unicode/utf8"

	"github.com/tidemill/tidemill/checkpoint"
	"github.com/tidemill/tidemill/columnar/function"
	"github.com/tidemill/tidemill/logical/expr"
)

// The text of what is longer is cut, and stands for the rest by a hash: expressions built
// upon each other would double in each step.
const (
	mostNodes   = 64
	longestLine = 400
)

// canonical is e over columns of the sources, in its normal form.
func (r *reader) canonical(e expr.Expr) expr.Expr {
	return r.rewritten(e, func(c *expr.Column) expr.Expr {
		if known := r.columns[c.ID]; known != nil {
			return known
		}
		return &expr.Column{Name: c.Name, DataType: c.DataType, Null: c.Null}
	})
}

// normal is e written in one of the ways that mean the same: what AND and OR join, and
// what IN lists, in the order of the texts, each once, and comparisons, sums and products
// the way around that oriented says.
func (r *reader) normal(e expr.Expr) expr.Expr {
	return r.rewritten(e, func(c *expr.Column) expr.Expr { return c })
}

func (r *reader) rewritten(e expr.Expr, column func(*expr.Column) expr.Expr) expr.Expr {
	out, err := expr.Transform(e, func(x expr.Expr) (expr.Expr, error) {
		switch x := x.(type) {
		case *expr.Column:
			return column(x), nil
		case *expr.Logic:
			return bounded(canonicalLogic(x)), nil
		case *expr.In:
			return bounded(&expr.In{Value: x.Value, List: byText(x.List)}), nil
		case *expr.Call:
			if r.form > checkpoint.FormerReads {
				return bounded(oriented(x)), nil
			}
		}
		return bounded(x), nil
	})
	if err != nil {
		return e // the function above returns none
	}
	return out
}

// turned are the operators that mean the same with their sides exchanged, and as what.
var turned = map[string]string{
	"=": "=", "<>": "<>", "<": ">", "<=": ">=", ">": "<", ">=": "<=", "+": "+", "*": "*",
	"is_distinct_from": "is_distinct_from", "is_not_distinct_from": "is_not_distinct_from",
}

// oriented is c with constants on the right, and else the sides in the order of their
// texts.
func oriented(c *expr.Call) expr.Expr {
	name, ok := turned[c.Func.Name]
	if !ok || len(c.Args) != 2 {
		return c
	}
	left, right := c.Args[0], c.Args[1]
	l, r := len(expr.Columns(left)) == 0, len(expr.Columns(right)) == 0
	if r && !l || l == r && left.String() <= right.String() {
		return c
	}
	return &expr.Call{Func: &function.Scalar{Name: name}, Signature: c.Signature, Args: []expr.Expr{right, left}, Place: c.Place}
}

func canonicalLogic(x *expr.Logic) expr.Expr {
	var args []expr.Expr
	for _, a := range x.Args {
		if l, ok := a.(*expr.Logic); ok && l.Op == x.Op {
			args = append(args, l.Args...)
		} else {
			args = append(args, a)
		}
	}
	if args = byText(args); len(args) == 1 {
		return args[0]
	}
	return &expr.Logic{Op: x.Op, Args: args}
}

// byText sorts expressions by their texts and leaves out what is there twice.
func byText(list []expr.Expr) []expr.Expr {
	texts := make(map[string]expr.Expr, len(list))
	keys := make([]string, 0, len(list))
	for _, e := range list {
		text := e.String()
		if texts[text] == nil {
			keys = append(keys, text)
		}
		texts[text] = e
	}
	slices.Sort(keys)
	out := make([]expr.Expr, len(keys))
	for i, k := range keys {
		out[i] = texts[k]
	}
	return out
}

// bounded is e, or a column that stands for it by its text where it has many nodes.
func bounded(e expr.Expr) expr.Expr {
	nodes := 0
	expr.Walk(e, func(expr.Expr) bool {
		nodes++
		return nodes <= mostNodes
	})
	if nodes <= mostNodes {
		return e
	}
	return &expr.Column{Name: "(" + short(e.String(), 100) + ")", DataType: e.Type(), Null: true}
}

func (r *reader) list(list []expr.Expr) []expr.Expr {
	out := make([]expr.Expr, len(list))
	for i, e := range list {
		out[i] = r.canonical(e)
	}
	return out
}

// short is a text of at most n bytes and a hash, which tells it from others.
func short(text string, n int) string {
	if len(text) <= n {
		return text
	}
	for n > 0 && !utf8.RuneStart(text[n]) {
		n--
	}
	return text[:n] + "…#" + checkpoint.HashBytes([]byte(text))[:16]
}
