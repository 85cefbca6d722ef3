package function

import (
	"fmt"
	"strings"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/memory"

	"github.com/tidemill/tidemill/columnar"
)

// Guarded is f as the engine calls it if a user wrote it: a panic is an error that names
// f (*columnar.PanicError), and so is a result of another type or number of rows than was
// promised. What f lacks to be called at all is an error now.
func (f *Scalar) Guarded() (*Scalar, error) {
	if f == nil {
		return nil, fmt.Errorf("the function is nil")
	}
	if err := checkNames(f.Name, f.Aliases); err != nil {
		return nil, err
	}
	g := *f
	g.Overloads = make([]Overload, len(f.Overloads))
	what := "function " + f.Name
	for i, o := range f.Overloads {
		if err := checkOverload(what, i, o.Args, o.Variadic, o.Result != nil); err != nil {
			return nil, err
		}
		if o.Bind == nil {
			return nil, fmt.Errorf("%s: overload %d has nothing to call; give it a Bind, or ScalarFunc a function", what, i)
		}
		g.Overloads[i] = o.guarded(what)
	}
	return &g, needsOverload(what, len(f.Overloads))
}

func (o Overload) guarded(what string) Overload {
	result, bind := guardedResult(what, o.Result), o.Bind
	o.Args, o.Result = guardedMatchers(what, o.Args), result
	o.Bind = func(args []arrow.DataType, constants []arrow.Array) (kernel Kernel, err error) {
		dt, err := result(args)
		if err != nil {
			return nil, err
		}
		err = columnar.Guard(what, func() error {
			kernel, err = bind(args, constants)
			return err
		})
		if err == nil && kernel == nil {
			err = fmt.Errorf("%s: Bind returned neither a kernel nor an error", what)
		}
		return guardedKernel(what, dt, kernel), err
	}
	return o
}

func guardedKernel(what string, dt arrow.DataType, kernel Kernel) Kernel {
	return func(env *Env, args []columnar.Datum, rows int, active *columnar.Bitmap) (d columnar.Datum, err error) {
		err = columnar.Guard(what, func() error {
			d, err = kernel(env, args, rows, active)
			return err
		})
		if err != nil {
			return columnar.Datum{}, err
		}
		if d.Array() == nil {
			return columnar.Datum{}, fmt.Errorf("%s returned no column", what)
		}
		want := rows
		if d.IsConstant() {
			want = 1
		}
		if err = checkColumn(what, d.Array(), dt, want); err == nil {
			err = checkTexts(what, d.Array(), rowsThatCount(d, active))
		}
		if err != nil {
			d.Release()
			return columnar.Datum{}, err
		}
		return d, nil
	}
}

// checkColumn says what is wrong with a column that a user's code made.
func checkColumn(what string, a arrow.Array, dt arrow.DataType, rows int) error {
	have := a.DataType()
	if d, ok := have.(*arrow.DictionaryType); ok {
		have = d.ValueType
	}
	switch {
	case !arrow.TypeEqual(have, dt):
		return fmt.Errorf("%s returned %s where it promised %s", what, columnar.TypeName(have), columnar.TypeName(dt))
	case a.Len() != rows:
		return fmt.Errorf("%s returned %d values for %d", what, a.Len(), rows)
	}
	return nil
}

// Guarded is f as the engine calls it if a user wrote it; see Scalar.Guarded.
func (f *Aggregate) Guarded() (*Aggregate, error) {
	if f == nil {
		return nil, fmt.Errorf("the aggregate is nil")
	}
	if err := checkNames(f.Name, f.Aliases); err != nil {
		return nil, err
	}
	g := *f
	g.Overloads = make([]AggregateOverload, len(f.Overloads))
	what := "aggregate " + f.Name
	for i, o := range f.Overloads {
		if err := checkOverload(what, i, o.Args, o.Variadic, o.Result != nil); err != nil {
			return nil, err
		}
		if o.New == nil {
			return nil, fmt.Errorf("%s: overload %d has no New", what, i)
		}
		g.Overloads[i] = o.guarded(what)
	}
	return &g, needsOverload(what, len(f.Overloads))
}

func (o AggregateOverload) guarded(what string) AggregateOverload {
	result, open := guardedResult(what, o.Result), o.New
	o.Args, o.Result = guardedMatchers(what, o.Args), result
	o.New = func(mem memory.Allocator, args []arrow.DataType) (a Accumulator, err error) {
		g := guardedAccumulator{what: what}
		if g.result, err = result(args); err != nil {
			return nil, err
		}
		err = columnar.Guard(what, func() error {
			g.a, err = open(mem, args)
			return err
		})
		if err != nil {
			return nil, err
		}
		if g.a == nil {
			return nil, fmt.Errorf("%s: New returned neither an accumulator nor an error", what)
		}
		if _, ok := g.a.(Absorber); ok {
			return &guardedAbsorber{g}, nil
		}
		return &g, nil
	}
	return o
}

// checkNames refuses names by which a call could not be written.
func checkNames(name string, aliases []string) error {
	for _, n := range append([]string{name}, aliases...) {
		if !isIdentifier(n) {
			return fmt.Errorf("%q cannot be the name of a function; use letters, digits and underscores", n)
		}
	}
	return nil
}

func isIdentifier(name string) bool {
	return name != "" && !('0' <= name[0] && name[0] <= '9') && strings.IndexFunc(name, func(r rune) bool {
		return r != '_' && (r < '0' || r > '9') && (r < 'a' || r > 'z') && (r < 'A' || r > 'Z')
	}) < 0
}

func needsOverload(what string, n int) error {
	if n == 0 {
		return fmt.Errorf("%s has no overloads", what)
	}
	return nil
}

func checkOverload(what string, i int, args []Matcher, variadic, hasResult bool) error {
	for k, m := range args {
		if m == nil {
			return fmt.Errorf("%s: argument %d of overload %d is nil; use Exactly or AnyType", what, k+1, i)
		}
	}
	switch {
	case variadic && len(args) == 0:
		return fmt.Errorf("%s: overload %d is variadic and has no argument to repeat", what, i)
	case !hasResult:
		return fmt.Errorf("%s: overload %d has no Result", what, i)
	}
	return nil
}

func guardedResult(what string, result func([]arrow.DataType) (arrow.DataType, error)) func([]arrow.DataType) (arrow.DataType, error) {
	return func(args []arrow.DataType) (dt arrow.DataType, err error) {
		err = columnar.Guard(what, func() error {
			dt, err = result(args)
			return err
		})
		if err == nil && (dt == nil || !columnar.Supported(dt)) {
			return nil, fmt.Errorf("%s: the engine does not compute with its result, %v; use a type of package columnar", what, dt)
		}
		return dt, err
	}
}

// guardedMatcher is a Matcher whose panics have a name.
type guardedMatcher struct {
	what string
	m    Matcher
}

func guardedMatchers(what string, list []Matcher) []Matcher {
	out := make([]Matcher, len(list))
	for i, m := range list {
		out[i] = guardedMatcher{what, m}
	}
	return out
}

func (g guardedMatcher) Match(arg arrow.DataType) (want arrow.DataType, cost int, ok bool) {
	defer columnar.NamePanic(g.what)
	return g.m.Match(arg)
}

func (g guardedMatcher) String() string {
	defer columnar.NamePanic(g.what)
	return g.m.String()
}

// guardedAccumulator is a user's Accumulator. What cannot return an error panics with a
// name, for the goroutine of the operator to catch.
type guardedAccumulator struct {
	what   string
	result arrow.DataType
	a      Accumulator
}

func (g *guardedAccumulator) Fields() []arrow.Field {
	defer columnar.NamePanic(g.what)
	return g.a.Fields()
}

func (g *guardedAccumulator) Resize(groups int) {
	defer columnar.NamePanic(g.what)
	g.a.Resize(groups)
}

func (g *guardedAccumulator) Update(groups []uint32, args []columnar.Datum) error {
	return columnar.Guard(g.what, func() error { return g.a.Update(groups, args) })
}

func (g *guardedAccumulator) Merge(groups []uint32, state []arrow.Array) error {
	return columnar.Guard(g.what, func() error { return g.a.Merge(groups, state) })
}

func (g *guardedAccumulator) Load(groups []uint32, state []arrow.Array) error {
	return columnar.Guard(g.what, func() error { return g.a.Load(groups, state) })
}

func (g *guardedAccumulator) Clear(groups []uint32) {
	defer columnar.NamePanic(g.what)
	g.a.Clear(groups)
}

func (g *guardedAccumulator) State(groups []uint32) (columns []arrow.Array, err error) {
	err = columnar.Guard(g.what, func() error {
		columns, err = g.a.State(groups)
		return err
	})
	if err != nil {
		return nil, err
	}
	if err = g.checkState(columns, len(groups)); err != nil {
		for _, c := range columns {
			if c != nil {
				c.Release()
			}
		}
		return nil, err
	}
	return columns, nil
}

func (g *guardedAccumulator) checkState(columns []arrow.Array, groups int) error {
	fields := g.Fields()
	if len(columns) != len(fields) {
		return fmt.Errorf("%s: State returned %d columns, Fields says %d", g.what, len(columns), len(fields))
	}
	for i, f := range fields {
		if columns[i] == nil {
			return fmt.Errorf("%s: State returned no column %s", g.what, f.Name)
		}
		if err := checkColumn(g.what+": column "+f.Name+" of State", columns[i], f.Type, groups); err != nil {
			return err
		}
	}
	return nil
}

func (g *guardedAccumulator) Result(groups []uint32) (a arrow.Array, err error) {
	err = columnar.Guard(g.what, func() error {
		a, err = g.a.Result(groups)
		return err
	})
	if err != nil {
		return nil, err
	}
	if a == nil {
		return nil, fmt.Errorf("%s returned no column", g.what)
	}
	if err = checkColumn(g.what, a, g.result, len(groups)); err == nil {
		err = checkTexts(g.what, a, nil)
	}
	if err != nil {
		a.Release()
		return nil, err
	}
	return a, nil
}

func (g *guardedAccumulator) Bytes() int64 {
	defer columnar.NamePanic(g.what)
	return g.a.Bytes()
}

func (g *guardedAccumulator) Release() {
	defer columnar.NamePanic(g.what)
	g.a.Release()
}

// Age implements Ager, for accumulators that are one.
func (g *guardedAccumulator) Age(groups []uint32) {
	defer columnar.NamePanic(g.what)
	if ager, ok := g.a.(Ager); ok {
		ager.Age(groups)
	}
}

// guardedAbsorber is a guardedAccumulator of an Absorber.
type guardedAbsorber struct{ guardedAccumulator }

func (g *guardedAbsorber) Absorb(groups []uint32, other Accumulator, from []uint32) error {
	if o, ok := other.(*guardedAbsorber); ok {
		other = o.a
	}
	return columnar.Guard(g.what, func() error { return g.a.(Absorber).Absorb(groups, other, from) })
}
