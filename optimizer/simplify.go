package optimizer

import (
	"slices"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"

	"github.com/tidemill/tidemill/columnar"
	"github.com/tidemill/tidemill/logical"
	"github.com/tidemill/tidemill/logical/expr"
)

// Simplify applies the laws of three-valued logic: AND and OR are flattened, TRUE,
// FALSE and repeated operands drop out, NOT moves into comparisons, CASE loses
// branches that cannot be taken, IN its repeated items; the field of a struct made for it
// is what it was made of; a condition that is always true goes.
var Simplify Rule = rule{"simplify", func(n logical.Node) (logical.Node, error) {
	m, err := rewriteExprs(n, simplify)
	if err != nil {
		return nil, err
	}
	switch x := m.(type) {
	case *logical.Filter:
		if isTrue(x.Cond) {
			return x.Input, nil
		}
	case *logical.Join:
		if x.State == "" && x.On != nil && isTrue(x.On) {
			return logical.NewJoin(x.Kind, x.Left, x.Right, nil), nil
		}
	}
	return m, nil
}}

func isTrue(cond expr.Expr) bool {
	v, known := boolean(cond)
	return known && v == yes
}

// truth is one of SQL's three values.
type truth uint8

const (
	no truth = iota
	yes
	unknown
)

// boolean is the value of a literal condition; known is false for anything else.
func boolean(e expr.Expr) (v truth, known bool) {
	l, ok := e.(*expr.Literal)
	switch {
	case !ok:
		return 0, false
	case l.IsNull():
		return unknown, true
	}
	b, ok := l.Value.(*array.Boolean)
	switch {
	case !ok:
		return 0, false
	case b.Value(0):
		return yes, true
	}
	return no, true
}

func simplify(e expr.Expr) expr.Expr {
	switch x := e.(type) {
	case *expr.Logic:
		return simplifyLogic(x)
	case *expr.Call:
		if x.Func.Name == "not" {
			return simplifyNot(x)
		}
		return simplifyField(x)
	case *expr.Case:
		return simplifyCase(x)
	case *expr.In:
		return simplifyIn(x)
	case *expr.Agg:
		if x.Filter != nil && isTrue(x.Filter) {
			n := *x
			n.Filter = nil
			return &n
		}
	case *expr.Cast:
		if in, ok := x.Input.(*expr.Literal); ok && in.IsNull() {
			return expr.NullOf(x.To)
		}
	}
	return e
}

// simplifyLogic flattens nested operands of the same operator, drops neutral and
// repeated ones, and stops at one that decides.
func simplifyLogic(l *expr.Logic) expr.Expr {
	decides, neutral := no, yes
	if l.Op == expr.Or {
		decides, neutral = yes, no
	}
	var kept []expr.Expr
	var seen expr.Set
	changed := false
	for _, a := range flatten(l) {
		v, known := boolean(a)
		switch {
		case known && v == decides:
			return booleanLiteral(decides == yes)
		case known && v == neutral, repeats(&seen, a):
			changed = true
		default:
			kept = append(kept, a)
		}
	}
	switch {
	case len(kept) == 0:
		return booleanLiteral(neutral == yes)
	case len(kept) == 1:
		return kept[0]
	case changed || len(kept) != len(l.Args):
		return factor(&expr.Logic{Op: l.Op, Args: kept})
	}
	return factor(l)
}

// repeats says whether e says what one before it has said, and adds it to those.
func repeats(seen *expr.Set, e expr.Expr) bool {
	_, added := seen.Add(e)
	return !added && !isVolatile(e)
}

func flatten(l *expr.Logic) []expr.Expr {
	var out []expr.Expr
	for _, a := range l.Args {
		if inner, ok := a.(*expr.Logic); ok && inner.Op == l.Op {
			out = append(out, flatten(inner)...)
		} else {
			out = append(out, a)
		}
	}
	return out
}

// factor turns (a AND b) OR (a AND c) into a AND (b OR c), which filter push-down and
// join conditions can use. Only conditions that cannot fail are moved to the front.
func factor(l *expr.Logic) expr.Expr {
	if l.Op != expr.Or {
		return l
	}
	branches := make([][]expr.Expr, len(l.Args))
	for i, a := range l.Args {
		branches[i] = expr.Conjuncts(a)
	}
	common := slices.DeleteFunc(slices.Clone(branches[0]), func(c expr.Expr) bool { return expr.IsFallible(c) || isVolatile(c) })
	for _, b := range branches[1:] {
		if len(common) == 0 {
			return l
		}
		there := setOf(b)
		common = slices.DeleteFunc(common, func(c expr.Expr) bool { return there.Find(c) < 0 })
	}
	if len(common) == 0 {
		return l
	}
	everywhere := setOf(common)
	var rest []expr.Expr
	for _, b := range branches {
		left := slices.DeleteFunc(slices.Clone(b), func(c expr.Expr) bool { return everywhere.Find(c) >= 0 })
		if len(left) == 0 {
			return expr.All(common) // this branch asks for nothing more
		}
		rest = append(rest, expr.All(left))
	}
	return expr.All(append(common, &expr.Logic{Op: expr.Or, Args: rest}))
}

func setOf(list []expr.Expr) *expr.Set {
	s := &expr.Set{}
	for _, e := range list {
		s.Add(e)
	}
	return s
}

// negated are the comparisons NOT turns into each other.
var negated = map[string]string{
	"=": "<>", "<>": "=", "<": ">=", ">=": "<", ">": "<=", "<=": ">",
	"is_null": "is_not_null", "is_not_null": "is_null",
	"is_distinct_from": "is_not_distinct_from", "is_not_distinct_from": "is_distinct_from",
}

func simplifyNot(c *expr.Call) expr.Expr {
	switch x := c.Args[0].(type) {
	case *expr.Literal:
		switch v, _ := boolean(x); v {
		case yes:
			return booleanLiteral(false)
		case no:
			return booleanLiteral(true)
		}
		return expr.NullOf(columnar.Boolean)
	case *expr.Call:
		if x.Func.Name == "not" {
			return x.Args[0]
		}
		if other, ok := negated[x.Func.Name]; ok {
			return call(other, c, x.Args...)
		}
	case *expr.Logic:
		op := expr.And
		if x.Op == expr.And {
			op = expr.Or
		}
		args := make([]expr.Expr, len(x.Args))
		for i, a := range x.Args {
			args[i] = simplifyNot(&expr.Call{Func: c.Func, Signature: c.Signature, Args: []expr.Expr{a}})
		}
		return &expr.Logic{Op: op, Args: args}
	}
	return c
}

// call calls a built-in over arguments of the right types; fallback stands where it
// cannot be resolved.
func call(name string, fallback expr.Expr, args ...expr.Expr) expr.Expr {
	e, err := expr.NewCall(builtins(), name, args...)
	if err != nil {
		return fallback
	}
	return e
}

// simplifyField takes the field of a struct made right there.
func simplifyField(c *expr.Call) expr.Expr {
	of, name, ok := expr.FieldOf(c)
	if !ok || !isStruct(of) {
		return c
	}
	made := of.(*expr.Call)
	if at, matches := columnar.Lookup(structFields(made), name); matches == 1 {
		return made.Args[at]
	}
	return c
}

func isStruct(e expr.Expr) bool {
	c, ok := e.(*expr.Call)
	return ok && c.Func.Name == expr.StructName
}

func structFields(e expr.Expr) *arrow.Schema {
	return arrow.NewSchema(e.Type().(*arrow.StructType).Fields(), nil)
}

// simplifyIn drops repeated items; IN with a single item is a comparison.
func simplifyIn(x *expr.In) expr.Expr {
	var list []expr.Expr
	var seen expr.Set
	for _, item := range x.List {
		if !repeats(&seen, item) {
			list = append(list, item)
		}
	}
	switch {
	case len(list) == 1:
		return call("=", x, x.Value, list[0])
	case len(list) < len(x.List):
		return &expr.In{Value: x.Value, List: list}
	}
	return x
}

func simplifyCase(c *expr.Case) expr.Expr {
	n := &expr.Case{Else: c.Else}
	for i, w := range c.Whens {
		v, known := boolean(w)
		switch {
		case known && v != yes:
			continue
		case known:
			if len(n.Whens) == 0 {
				return c.Thens[i]
			}
			n.Else = c.Thens[i]
			return n
		}
		n.Whens = append(n.Whens, w)
		n.Thens = append(n.Thens, c.Thens[i])
	}
	switch {
	case len(n.Whens) == len(c.Whens):
		return c
	case len(n.Whens) > 0:
		return n
	case c.Else != nil:
		return c.Else
	}
	return expr.NullOf(c.Type())
}
