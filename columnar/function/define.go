package function

import "github.com/apache/arrow-go/v18/arrow"

// define is a function of one form and one result type: run computes its rows.
func define(name, doc, example string, args []Matcher, out arrow.DataType, run func(c *call) (arrow.Array, error), aliases ...string) *Scalar {
	return &Scalar{Name: name, Aliases: aliases, Doc: doc, Example: example, Overloads: []Overload{overload(args, out, run)}}
}

// defineFallible is define for functions that are an error for some values.
func defineFallible(name, doc, example string, args []Matcher, out arrow.DataType, run func(c *call) (arrow.Array, error), aliases ...string) *Scalar {
	s := define(name, doc, example, args, out, run, aliases...)
	s.Overloads[0].Fallible = true
	return s
}

func overload(args []Matcher, out arrow.DataType, run func(c *call) (arrow.Array, error)) Overload {
	return Overload{Args: args, Result: always(out), Bind: func([]arrow.DataType, []arrow.Array) (Kernel, error) {
		return onRows(out, run), nil
	}}
}

// alsoFor adds a form to s.
func (f *Scalar) alsoFor(args []Matcher, out arrow.DataType, run func(c *call) (arrow.Array, error)) *Scalar {
	o := overload(args, out, run)
	o.Fallible = f.Overloads[0].Fallible
	f.Overloads = append(f.Overloads, o)
	return f
}
