// Package ast holds the syntax tree of Tidemill's SQL: what was written, before
// names and types are looked up. It is not part of the public API.
//
// Every node knows the bytes it was read from: Pos is the offset of its first
// byte in the source text, End the offset after its last. Parentheses are
// nodes (Paren, ParenQuery, ParenTable), so a tree printed by Print and parsed
// again gives the same tree, spans aside; a fuzz test of package sql holds on to
// that. Different spellings of one thing are one node where they mean the same:
// x::T is Cast, == is =, <=> is IS NOT DISTINCT FROM, div is //.
//
// A tree is immutable once parsed and may be shared between goroutines.
package ast
