package function

import (
	"fmt"
	"slices"
	"strings"

	"github.com/apache/arrow-go/v18/arrow"

	"github.com/tidemill/tidemill/columnar"
)

// Signature is a resolved call: the overload, the type each argument must be cast
// to, and the result type.
type Signature struct {
	Overload *Overload
	Args     []arrow.DataType
	Result   arrow.DataType
}

// AggregateSignature is the same for an aggregate function.
type AggregateSignature struct {
	Overload *AggregateOverload
	Args     []arrow.DataType
	Result   arrow.DataType
}

// Resolve picks the overload of f whose implicit casts cost least for arguments of
// the given types; the first of equals wins. Casts that may fail are implicit only where
// no overload can do without, see assignable.
func (f *Scalar) Resolve(args []arrow.DataType) (*Signature, error) {
	sig, err := f.ResolveExact(args)
	if err != nil || sig != nil {
		return sig, err
	}
	if len(args) == 2 && f.isOperator() {
		if sig, err := f.resolve(textMeets(args), accept); err != nil || sig != nil {
			return sig, err
		}
	}
	if sig, err = f.resolve(args, f.assignable(args)); sig == nil && err == nil {
		err = f.mismatch(args)
	}
	return sig, err
}

// ResolveAs is Resolve for a call by name, which errors then have for that of f.
func (f *Scalar) ResolveAs(name string, args []arrow.DataType) (*Signature, error) {
	sig, err := f.Resolve(args)
	if alias := aliasNamed(f.Aliases, name); err != nil && alias != "" {
		called := *f
		if called.Name = alias; f.isOperator() {
			return nil, called.mismatch(args)
		}
		_, err = called.Resolve(args)
	}
	return sig, err
}

// aliasNamed is the one of aliases that name is; empty if it is none.
func aliasNamed(aliases []string, name string) string {
	for _, a := range aliases {
		if strings.EqualFold(a, name) {
			return a
		}
	}
	return ""
}

func (f *Scalar) isOperator() bool { return f.Name[0] < 'a' || f.Name[0] > 'z' }

// ResolveExact is Resolve by implicit casts alone that cannot fail; nil if there is no
// such overload.
func (f *Scalar) ResolveExact(args []arrow.DataType) (*Signature, error) {
	return f.resolve(args, accept)
}

// assignable is what f takes beyond accept. Operators must see what is meant by one of
// their arguments: '1' + '2' may be two numbers or a slip for ||.
func (f *Scalar) assignable(args []arrow.DataType) acceptance {
	if !f.isOperator() {
		return assign
	}
	for _, a := range args {
		if len(args) == 1 || a.ID() != arrow.STRING {
			return assignText
		}
	}
	return accept
}

func (f *Scalar) resolve(args []arrow.DataType, accepts acceptance) (*Signature, error) {
	var best *Signature
	bestCost := 0
	for i := range f.Overloads {
		o := &f.Overloads[i]
		want, cost, ok := matchArgs(o.Args, o.Variadic, args, accepts)
		if ok && o.Unify {
			want, ok = unify(want, accepts.meet)
		}
		if !ok || best != nil && cost >= bestCost {
			continue
		}
		result, err := o.Result(want)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", f.Name, err)
		}
		best, bestCost = &Signature{Overload: o, Args: want, Result: result}, cost
	}
	return best, nil
}

// Resolve is Scalar.Resolve for aggregates.
func (f *Aggregate) Resolve(args []arrow.DataType) (*AggregateSignature, error) {
	for _, accepts := range []acceptance{accept, assign} {
		if sig, err := f.resolve(args, accepts); err != nil || sig != nil {
			return sig, err
		}
	}
	var forms []string
	for _, o := range f.Overloads {
		forms = append(forms, form(f.Name, o.Args, o.Variadic))
	}
	return nil, mismatch(f.Name, args, forms)
}

// ResolveAs is Scalar.ResolveAs for aggregates.
func (f *Aggregate) ResolveAs(name string, args []arrow.DataType) (*AggregateSignature, error) {
	sig, err := f.Resolve(args)
	if alias := aliasNamed(f.Aliases, name); err != nil && alias != "" {
		called := *f
		called.Name = alias
		_, err = called.Resolve(args)
	}
	return sig, err
}

func (f *Aggregate) resolve(args []arrow.DataType, accepts acceptance) (*AggregateSignature, error) {
	var best *AggregateSignature
	bestCost := 0
	for i := range f.Overloads {
		o := &f.Overloads[i]
		want, cost, ok := matchArgs(o.Args, o.Variadic, args, accepts)
		if !ok || best != nil && cost >= bestCost {
			continue
		}
		result, err := o.Result(want)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", f.Name, err)
		}
		best, bestCost = &AggregateSignature{Overload: o, Args: want, Result: result}, cost
	}
	return best, nil
}

func matchArgs(matchers []Matcher, variadic bool, args []arrow.DataType, accepts acceptance) (want []arrow.DataType, cost int, ok bool) {
	if len(args) != len(matchers) && (!variadic || len(args) < len(matchers)) {
		return nil, 0, false
	}
	want = make([]arrow.DataType, len(args))
	for i, a := range args {
		m := matchers[min(i, len(matchers)-1)]
		t, c, ok := accepts.match(m, a)
		if !ok && a.ID() == arrow.NULL {
			t, c, ok = matchNull(m)
		}
		if !ok {
			return nil, 0, false
		}
		want[i] = t
		cost += c
	}
	return want, cost, true
}

// unify replaces all types by the one they meet in.
func unify(types []arrow.DataType, meet func(a, b arrow.DataType) (arrow.DataType, bool)) ([]arrow.DataType, bool) {
	if len(types) == 0 {
		return types, true
	}
	common := types[0]
	for _, t := range types[1:] {
		var ok bool
		if common, ok = meet(common, t); !ok {
			return nil, false
		}
	}
	out := make([]arrow.DataType, len(types))
	for i := range out {
		out[i] = common
	}
	return out, true
}

func (f *Scalar) mismatch(args []arrow.DataType) error {
	var forms []string
	for _, o := range f.Overloads {
		if _, _, ok := matchArgs(o.Args, o.Variadic, args, accept); ok && o.Unify && !isComparison(f.Name) {
			return apart(f.Name, args)
		}
		forms = append(forms, form(f.Name, o.Args, o.Variadic))
	}
	return mismatch(f.Name, args, forms)
}

func isComparison(name string) bool { return strings.ContainsAny(name, "=<>") }

// apart is the error for arguments that must have one type, and have none in common.
func apart(name string, args []arrow.DataType) error {
	common := args[0]
	for _, a := range args[1:] {
		t, ok := columnar.Common(common, a)
		if !ok {
			return fmt.Errorf("%s: %s and %s have no common type; %s", name, columnar.TypeName(common), columnar.TypeName(a), columnar.CastAdvice(common, a))
		}
		common = t
	}
	return fmt.Errorf("bug: %s found no common type of %v", name, args)
}

func mismatch(name string, args []arrow.DataType, forms []string) error {
	types := make([]string, len(args))
	for i, a := range args {
		types[i] = columnar.TypeName(a)
	}
	if len(types) == 2 && isComparison(name) {
		return fmt.Errorf("%s cannot be compared with %s; %s", types[0], types[1], columnar.CastAdvice(args[0], args[1]))
	}
	if len(forms) > 6 {
		forms = append(forms[:6:6], "…")
	}
	if len(args) == 0 {
		return fmt.Errorf("%s needs an argument; there is %s", name, strings.Join(forms, ", "))
	}
	if !takes(forms, len(args)) {
		return fmt.Errorf("%s does not take %s; there is %s", name, countOf(len(args)), strings.Join(forms, ", "))
	}
	return fmt.Errorf("%s(%s) does not exist; there is %s; %s", name, strings.Join(types, ", "), strings.Join(forms, ", "), castAdvice(args))
}

// castAdvice is what to do about arguments of which no overload takes the types.
func castAdvice(args []arrow.DataType) string {
	for i := 1; i < len(args); i++ {
		if columnar.HaveOtherFields(args[i-1], args[i]) {
			return columnar.CastAdvice(args[i-1], args[i])
		}
	}
	return "cast the arguments"
}

func form(name string, matchers []Matcher, variadic bool) string {
	parts := make([]string, len(matchers))
	for i, m := range matchers {
		parts[i] = m.String()
	}
	if variadic {
		parts = append(parts, "…")
	}
	return name + "(" + strings.Join(parts, ", ") + ")"
}

// takes says whether one of forms, f(a, b, …), has n arguments.
func takes(forms []string, n int) bool {
	return slices.ContainsFunc(forms, func(f string) bool {
		_, list, _ := strings.Cut(strings.TrimSuffix(f, ")"), "(")
		args := strings.Split(list, ", ")
		switch {
		case f == "…" || list == "":
			return f == "…" || n == 0
		case args[len(args)-1] == "…":
			return n >= len(args)-1
		}
		return n == len(args)
	})
}

func countOf(n int) string {
	if n == 1 {
		return "1 argument"
	}
	return fmt.Sprintf("%d arguments", n)
}
