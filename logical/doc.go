// Package logical is the logical plan: what a query means, without how it runs.
//
// A plan is a tree of immutable Nodes. It is built by the SQL front end (logical/sql)
// or by DataFrame, rewritten by the optimizer and turned into a physical plan by
// physical.Planner. Columns are identified by expr.ID throughout a plan, so that no
// rewriting has to think about names; names matter only while building.
//
// The streaming nodes (StreamScan, Watermark, Window, …) stand in ordinary plans;
// Check says whether a streaming plan is legal in an output mode, and if not, why
// and what would work.
package logical
