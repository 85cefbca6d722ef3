// Package csv reads and writes delimited text: RFC 4180 with the freedoms real files
// take (other delimiters, quotes and encodings, ragged rows, headers or none).
//
// # Reading
//
//  1. Units divides a large file into ranges of bytes. A record belongs to the range
//     it begins in.
//  2. Whether a line feed ends a record depends on every quote before it. states.go
//     carries that knowledge from range to range: exactly, and without reading the
//     file twice in the usual case.
//  3. scanner.go cuts some thousand records into cells: one IndexByte a field where a
//     line has no quotes, a careful path where it has.
//  4. Package cells turns the cells into columns. Fields that nobody asked for are
//     passed over.
//
// What is wrong with a record (too few or too many fields, text after a closing
// quote, a value that is none) is a problem, handled by the mode: permissive makes the
// field null, drop leaves the record out, fail stops. In the modes drop and fail, and
// where a corrupt_column is asked for, every column is checked; otherwise only those
// that are read.
package csv
