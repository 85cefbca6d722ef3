// Package optimizer rewrites logical plans by rules, in named batches: each runs
// once or to fixpoint. A rule looks at one node at a time, gives back the same
// pointer when it does not apply, and stands in a file named for it. Which rules
// fired, and how often, is recorded for EXPLAIN.
//
// What no rule may do:
//   - move a filter below a Watermark: every row that reaches the watermark as
//     written counts;
//   - change keys, aggregates, column types or the stored columns of a node with a
//     State name: checkpoints depend on them;
//   - evaluate an expression that can fail for rows for which the query as written
//     would not evaluate it, below a join or an aggregate;
//   - duplicate or reorder volatile expressions.
package optimizer
