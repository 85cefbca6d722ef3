package expr

import (
	"cmp"
	"fmt"

	"github.com/apache/arrow-go/v18/arrow"

	"github.com/tidemill/tidemill/columnar/function"
)

// NewCall resolves a scalar function over typed arguments and casts them as the
// overload wants.
func NewCall(reg *function.Registry, name string, args ...Expr) (Expr, error) {
	written := name
	name, args = byValue(reg, name, args)
	if compared[name] {
		args = exactly(args)
	}
	f, ok := reg.Scalar(name)
	if !ok {
		if _, isAgg := reg.Aggregate(name); isAgg {
			return nil, fmt.Errorf("%s is an aggregate function and cannot stand here", name)
		}
		return nil, reg.Unknown(name)
	}
	sig, err := f.ResolveAs(written, Types(args))
	if err != nil {
		return nil, err
	}
	c := &Call{Func: f, Signature: sig, Args: castAll(args, sig.Args)}
	if triesTime[f.Name] {
		c.Args = tryDates(c.Args)
	}
	if x := roundedDecimal(c); x != c {
		return x, nil
	}
	return movedDate(c, args), nil
}

// NewAgg resolves an aggregate function over typed arguments. filter may be nil.
func NewAgg(reg *function.Registry, name string, distinct bool, filter Expr, args ...Expr) (*Agg, error) {
	f, ok := reg.Aggregate(name)
	if !ok {
		return nil, reg.Unknown(name)
	}
	sig, err := f.ResolveAs(name, Types(args))
	if err != nil {
		return nil, err
	}
	agg := &Agg{Func: f, Signature: sig, Args: castAll(args, sig.Args), Distinct: distinct && !sig.Overload.IgnoresDistinct, Filter: filter}
	if c := sig.Overload.Constant; c != nil {
		switch v := constant(agg.Args[1]); {
		case v == nil:
			return nil, fmt.Errorf("%s: %s; %s is no constant", name, c.Rule, args[1])
		case !c.Allows(v):
			return nil, fmt.Errorf("%s: %s, not %s", name, c.Rule, args[1])
		}
	}
	return agg, nil
}

// Types are the types of resolved expressions.
func Types(list []Expr) []arrow.DataType {
	types := make([]arrow.DataType, len(list))
	for i, e := range list {
		types[i] = e.Type()
	}
	return types
}

// CastTo casts e to dt, structs by the names of their fields, or returns e if it has that type.
func CastTo(e Expr, dt arrow.DataType) Expr {
	if arrow.TypeEqual(e.Type(), dt) {
		return e
	}
	return &Cast{Input: e, To: dt, Implicit: true}
}

func castAll(args []Expr, types []arrow.DataType) []Expr {
	out := make([]Expr, len(args))
	for i, a := range args {
		out[i] = CastTo(a, types[i])
	}
	return out
}

// Conjuncts splits e at its ANDs; the AND of none is nil.
func Conjuncts(e Expr) []Expr {
	if e == nil {
		return nil
	}
	if l, ok := e.(*Logic); ok && l.Op == And {
		var out []Expr
		for _, a := range l.Args {
			out = append(out, Conjuncts(a)...)
		}
		return out
	}
	return []Expr{e}
}

// All is the AND of list: nil if empty, the one element if there is one.
func All(list []Expr) Expr {
	switch len(list) {
	case 0:
		return nil
	case 1:
		return list[0]
	}
	return &Logic{Op: And, Args: list}
}

// BindRefs replaces each Column by the Ref of its position; position returns -1 for
// an unknown ID, which is a bug of the planner.
func BindRefs(e Expr, position func(ID) int) (Expr, error) {
	return Transform(e, func(x Expr) (Expr, error) {
		c, ok := x.(*Column)
		if !ok {
			return x, nil
		}
		i := position(c.ID)
		if i < 0 {
			return nil, fmt.Errorf("bug: column %s is not in the input", c)
		}
		return &Ref{Index: i, Name: cmp.Or(c.Called, c.Name), DataType: c.DataType, Null: c.Null}, nil
	})
}
