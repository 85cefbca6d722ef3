// Package physical executes plans: vectorized operators that pull batches from each
// other. A Planner turns an optimized logical plan into a Plan by strategies; Run opens
// it. The streaming engine prepends strategies of its own and gets the rest from here.
//
// # Readers, goroutines and order
//
// Plan.Open returns up to n Readers that together give the rows once. A scan's Readers
// share one queue of units, so all stay busy whatever the sizes of files. Filters,
// projections, windows, partial aggregation and the probing side of joins work on each
// Reader by itself; what needs all rows (Sort, the final HashAggregate, the build side
// of a join) reads its input with ExecContext.Parallel goroutines.
//
// Goroutines are started in exchange.go only, in a crew: the first error or panic of
// one ends all, and Close waits for them.
//
// Every Reader knows the Position of its last batch in the order of arrival. Gather
// merges by it, and so a query without ORDER BY gives rows in the order of its files,
// LIMIT takes the same rows each time, and equal rows of a Sort keep their order,
// whatever the number of goroutines; those of groups, which have none unless it is asked
// for, are put in the order of their columns. Rows of one position follow each other as
// their Reader gives them (arrivals). Where an operator needs an order of single rows
// (first, last) the plan below carries the hidden column columnar.OrdinalName, last in
// the schema (Planner.PlanOrdinal).
//
// # Advice
//
// Two operators only leave out rows that cannot matter above, and may leave out fewer: a
// KeyFilter (or a Scan's Keys) those that meet nothing in a HashJoin, whose build side is
// complete before its probe side is read; PartitionTop those behind the ranks that a filter
// asks for. What is above them decides as if they were not there.
//
// What stands in a plan several times, aggregations of a WITH query, is run once: Share
// puts a Shared in each place.
//
// # Memory
//
// Batches between operators may have dictionary-encoded text; Run gives plain ones.
// An aggregation of very many groups keeps rows, not groups, ordered by a part of the hash
// of their key and in as few bytes as their values need (kernel.Narrow), and merges them a
// part at a time. Operators that keep rows reserve them from ExecContext.Budget, and fail
// with its error when it refuses. What makes wide values of narrow ones (expressions, UNNEST,
// joins, windows) gives batches of few rows then, of about ExecContext.PartBytes.
//
// This package is not part of the public API.
package physical
