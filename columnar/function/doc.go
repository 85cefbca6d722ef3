// Package function holds every scalar and aggregate function of the engine, one
// value a function: name, overloads, documentation, kernel. Binder (types),
// optimizer (constant folding), batch operators and stateful operators all use the
// same ones; adding a function touches one file.
//
// A Registry finds functions by name, without regard to case, and Resolve picks
// the overload and the implicit casts for given argument types. Operators are
// functions too, under their own spelling: + - * / // % = <> < <= > >= ||.
package function
