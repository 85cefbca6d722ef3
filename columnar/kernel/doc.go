// Package kernel holds the typed loops of the engine: arithmetic, comparison,
// logic, casts, text and time, and the movement of rows (filter, take, gather,
// concat, sort). It knows Arrow arrays and bitmaps, nothing of names, plans or SQL.
//
// Every kernel works on arrays sliced at any offset, propagates nulls by combining
// validity bitmaps a word at a time, takes its allocator as a parameter, writes
// into raw buffers and wraps them once. Arrays are borrowed; results are the
// caller's. Where an operator may fail for a value (overflow, division by zero, a
// cast), it computes all rows without branching, and only if something went wrong
// looks for the first row that is active and not null: an error about a row that
// does not count is none.
//
// Loops are generic over the element type with the operator written into them; no
// function value is called inside a loop over fixed-width values. Row movement, hash
// and equality accept dictionary-encoded columns, all others want plain ones. Values
// of nested types go through a Comparer or a recursive call per child column.
//
// Row numbers are int32 within one array; a Ref names a row of a list of arrays.
package kernel
