package expr

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/apache/arrow-go/v18/arrow"

	"github.com/tidemill/tidemill/columnar"
	"github.com/tidemill/tidemill/columnar/function"
)

// Resolver turns unresolved expressions into typed ones.
type Resolver struct {
	Registry *function.Registry
	// Lookup finds a column by name.
	Lookup func(qualifier, name string) (*Column, error)
	// Aggregates says whether aggregate calls are allowed, Windows whether calls of window
	// functions are.
	Aggregates, Windows bool
	// Grouping types grouping(keys…); nil where there are no grouping sets.
	Grouping func(keys []Expr) (Expr, error)
}

// Resolve types e from its leaves up. A resolved expression comes back as it is.
func (r *Resolver) Resolve(e Expr) (Expr, error) {
	switch x := e.(type) {
	case nil:
		return nil, errNoTerm
	case *Name:
		return r.name(x)
	case *Unresolved:
		in := r
		if x.Over != nil && r.Windows { // none inside another
			plain := *r
			plain.Windows, in = false, &plain
		}
		args, err := in.resolveAll(x.terms())
		if err != nil {
			return nil, err
		}
		return r.resolveCall(x, args)
	}
	children := e.Children()
	if len(children) == 0 {
		return e, nil
	}
	resolved, err := r.resolveAll(children)
	if err != nil {
		return nil, err
	}
	if slices.Equal(children, resolved) {
		return e, nil
	}
	return e.WithChildren(resolved), nil
}

// terms are the arguments of u; those of a chain of AND, or of OR, are those of all its parts,
// so that a rule that looks at a part does not look at what is in it each time.
func (u *Unresolved) terms() []Expr {
	if u.Func != andName && u.Func != orName {
		return u.Args
	}
	var out []Expr
	left := []Expr{u}
	for len(left) > 0 {
		last := left[len(left)-1]
		left = left[:len(left)-1]
		if part, ok := last.(*Unresolved); ok && part.Func == u.Func {
			for i := len(part.Args) - 1; i >= 0; i-- {
				left = append(left, part.Args[i])
			}
			continue
		}
		out = append(out, last)
	}
	return out
}

// name finds a column, as name or table.name, or a field of a struct, as
// column.field.field.
func (r *Resolver) name(n *Name) (Expr, error) {
	c, err := r.Lookup(n.Qualifier, n.Name)
	if err == nil {
		return c, nil
	}
	if n.Qualifier == "" {
		return nil, err
	}
	c, otherwise := r.Lookup("", n.Qualifier)
	if otherwise != nil {
		return nil, err
	}
	if c.DataType.ID() != arrow.STRUCT {
		return nil, err
	}
	var x Expr = c
	for _, field := range strings.Split(n.Name, ".") {
		t, ok := x.Type().(*arrow.StructType)
		if !ok {
			return nil, fmt.Errorf("%s has no field %s; its type is %s", x, field, columnar.TypeName(x.Type()))
		}
		at, matches := columnar.Lookup(arrow.NewSchema(t.Fields(), nil), field)
		if matches != 1 {
			return nil, fmt.Errorf("%s has no field %s; its type is %s", x, field, columnar.TypeName(t))
		}
		x = NewField(x, at)
	}
	return x, nil
}

func (r *Resolver) resolveAll(list []Expr) ([]Expr, error) {
	out := make([]Expr, len(list))
	for i, e := range list {
		var err error
		if out[i], err = r.Resolve(e); err != nil {
			return nil, err
		}
	}
	return out, nil
}

// The names under which Terms carry what is not a registry function.
const (
	andName     = "\x00and"
	orName      = "\x00or"
	inName      = "\x00in"
	caseName    = "\x00case"
	castName    = "\x00cast"
	tryCastName = "\x00try_cast"
)

func (r *Resolver) resolveCall(u *Unresolved, args []Expr) (Expr, error) {
	switch u.Func {
	case andName:
		return NewLogic(And, args...)
	case orName:
		return NewLogic(Or, args...)
	case inName:
		return NewIn(args[0], args[1:])
	case caseName:
		return resolveCase(args)
	case castName:
		return NewCast(args[0], u.Type(), false)
	case tryCastName:
		return NewCast(args[0], u.Type(), true)
	}
	if u.Window != nil {
		return nil, fmt.Errorf("%s cannot stand here; group by it", u.Func)
	}
	if u.Over != nil {
		return r.resolveOver(u, args)
	}
	if strings.EqualFold(u.Func, "grouping") && r.Grouping != nil {
		return r.Grouping(args)
	}
	if _, ok := r.Registry.Aggregate(u.Func); !ok {
		switch {
		case u.Distinct || u.Filter != nil:
			return nil, fmt.Errorf("Distinct and Filter apply to an aggregate, not to %s", u.Func)
		case IsRowFunction(u.Func):
			return nil, fmt.Errorf("%s is a window function and needs Over(PartitionBy(…).OrderBy(…))", u.Func)
		}
		call, err := NewCall(r.Registry, u.Func, args...)
		if c, ok := call.(*Call); ok && c.IsVolatile() {
			SetPlace(c, Place{Source: u.made})
		}
		return call, err
	}
	return r.resolveAggregate(u, args)
}

func (r *Resolver) resolveAggregate(u *Unresolved, args []Expr) (Expr, error) {
	if !r.Aggregates {
		return nil, fmt.Errorf("aggregate function %s cannot stand here", u.Func)
	}
	filter := u.Filter
	if filter != nil {
		var err error
		if filter, err = r.Resolve(filter); err != nil {
			return nil, err
		}
		if filter, err = NewCondition(filter, "FILTER"); err != nil {
			return nil, err
		}
	}
	for _, a := range append(slices.Clone(args), filter) {
		if a != nil && HasAggregate(a) {
			return nil, fmt.Errorf("%s cannot hold an aggregate; aggregate twice instead", u.Func)
		}
	}
	if u.Distinct && len(args) == 0 {
		return nil, errors.New("a distinct count needs a value to count")
	}
	return NewAgg(r.Registry, u.Func, u.Distinct, filter, args...)
}

// resolveCase gets condition, value, condition, value, …, and a last value for else.
func resolveCase(args []Expr) (Expr, error) {
	var whens, thens []Expr
	for len(args) > 1 {
		whens, thens, args = append(whens, args[0]), append(thens, args[1]), args[2:]
	}
	var otherwise Expr
	if len(args) == 1 {
		otherwise = args[0]
	}
	return NewCase(whens, thens, otherwise)
}

// NewLogic is AND or OR of conditions.
func NewLogic(op LogicOp, args ...Expr) (Expr, error) {
	out := make([]Expr, len(args))
	for i, a := range args {
		c, err := NewCondition(a, op.String())
		if err != nil {
			return nil, err
		}
		out[i] = c
	}
	return &Logic{Op: op, Args: out}, nil
}

// NewCondition accepts a BOOLEAN, and NULL as one; where says who asks, for the error.
func NewCondition(e Expr, where string) (Expr, error) {
	switch e.Type().ID() {
	case arrow.BOOL:
		return e, nil
	case arrow.NULL:
		return CastTo(e, columnar.Boolean), nil
	}
	return nil, fmt.Errorf("%s needs a condition, but %s is %s", where, e, columnar.TypeName(e.Type()))
}

// NewIn is value IN (list), all cast to their common type.
func NewIn(value Expr, list []Expr) (Expr, error) {
	all, err := unifyTypes("IN", exactly(append([]Expr{value}, list...)))
	if err != nil {
		return nil, err
	}
	return &In{Value: all[0], List: all[1:]}, nil
}

// NewCase is CASE WHEN whens THEN thens ELSE otherwise END; the results are cast to
// their common type; otherwise may be nil.
func NewCase(whens, thens []Expr, otherwise Expr) (Expr, error) {
	c := &Case{}
	for _, w := range whens {
		cond, err := NewCondition(w, "WHEN")
		if err != nil {
			return nil, err
		}
		c.Whens = append(c.Whens, cond)
	}
	results := append([]Expr(nil), thens...)
	if otherwise != nil {
		results = append(results, otherwise)
	}
	results, err := unifyTypes("CASE", results)
	if err != nil {
		return nil, err
	}
	c.Thens = results[:len(thens)]
	if otherwise != nil {
		c.Else = results[len(thens)]
	}
	return c, nil
}

// NewCast casts e to dt, structs field by field in order; try makes what cannot be cast
// null. Casts that never work are refused.
func NewCast(e Expr, dt arrow.DataType, try bool) (Expr, error) {
	if arrow.TypeEqual(e.Type(), dt) {
		return e, nil
	}
	if !function.CanCast(e.Type(), dt) {
		return nil, fmt.Errorf("cannot cast %s from %s to %s", e, columnar.TypeName(e.Type()), columnar.TypeName(dt))
	}
	return &Cast{Input: e, To: dt, Try: try, ByPosition: columnar.MovesFields(e.Type(), dt)}, nil
}

// unifyTypes casts all to their common type.
func unifyTypes(where string, list []Expr) ([]Expr, error) {
	common := list[0].Type()
	for _, e := range list[1:] {
		t, ok := columnar.Meet(common, e.Type())
		if !ok {
			return nil, fmt.Errorf("%s mixes %s and %s; %s", where, columnar.TypeName(common), columnar.TypeName(e.Type()), columnar.CastAdvice(common, e.Type()))
		}
		common = t
	}
	out := make([]Expr, len(list))
	for i, e := range list {
		out[i] = CastTo(e, common)
	}
	return out, nil
}
