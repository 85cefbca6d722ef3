// Package eval runs expressions over batches. Compile turns expressions over column
// positions (expr.Ref) into a Program once: kernels are bound, constant arguments
// prepared, common subexpressions shared. Program.Eval then computes one Datum an
// expression for every batch; a Filter computes which rows a condition keeps.
//
// Rules the evaluator keeps:
//
//   - Where SQL says that something is not evaluated (a CASE branch not taken, the
//     rest of a decided AND or OR, a later argument of coalesce) a kernel that could
//     fail is told which rows count, and never fails for another. What cannot fail is
//     computed for all rows and shared.
//   - Kernels that are not null-safe never see to nulls: the result is null where an
//     argument is.
//   - Dictionary-encoded columns: a Ref that is an output passes through as it is; an
//     expression of one encoded column and constants is computed once a dictionary
//     value; everything else sees decoded columns.
//   - Errors name the expression as SQL text.
//   - Results out of proportion to the columns are computed for fewer rows at a time
//     (Env.PartBytes); of one row that is too wide the budget decides.
//
// Programs and Filters are immutable and used by any number of goroutines.
//
// CanBeTrue answers whether a condition can hold given the bounds of its columns,
// for leaving out files and row groups. This package is not part of the public API.
package eval
