// Package sql turns text into logical plans: lexer, parser, binder.
//
// Parse gives the statements of a text as syntax (package ast); Planner gives a
// statement its meaning against a catalog: names become columns with IDs, every
// expression gets a type, streaming clauses become streaming nodes.
//
// The lexer makes all tokens first; the parser is recursive descent with
// precedence climbing for expressions. There are few reserved words: whether a
// word is a keyword is decided where it stands (see reserved and wordIsName).
// Nesting is bounded, so no input can exhaust the stack.
//
// Whatever is wrong with a text is an *Error, which shows the line and
// underlines the place; several of them are an ErrorList. What is legal SQL but
// not supported is an *Error as well, and errors.Is(err, logical.ErrUnsupported).
package sql
