// Package json reads and writes JSON: one object a line, several a line, arrays of
// objects, objects over several lines.
//
// # Reading
//
//  1. Units divides a large file of lines into ranges of bytes. A line belongs to the
//     range it begins in or right behind.
//  2. scanner.go goes through a record once, directed by the schema: a tree of nodes
//     (node.go), of which each takes the cells of its values. At each key it expects
//     the one that came after the last key before, so the usual record costs one
//     comparison a key. It checks the whole record against RFC 8259.
//  3. Package cells turns the cells into columns.
//
// A record the scanner refuses is given to package jsontext, whose word is final and
// whose error is the one reported. A value of the wrong kind is a bad field of a good
// record. Numbers are never held as doubles on the way to another type.
package json
