// Package stateful holds the operators of streaming queries that remember: each is the
// ordinary operator of package physical with a restore before it and a save after it.
// It is not part of the public API; package incremental plans with it.
//
// An Operator describes a stateful node of a query before any batch: its stable name,
// what its state means, its tables. For each batch it opens an Instance: the state at
// the batch's version, the two watermarks, counters. The plan nodes made from an
// Instance (Aggregate, LateFilter, Observe) run that one batch.
//
// Rows are judged late below the partial aggregate, by the watermark of the batch
// before; state is evicted by the watermark of the batch. Equal counts as passed, in
// both. Rows whose time is null are neither late nor ever evicted.
//
// What a batch holds beside the state is little: a Dedupe reads its rows in
// the order of arrival and hands on those whose keys are new; sessions are merged some keys at
// a time, and in several turns where a batch is too large to be held.
//
// A join of streams (SymmetricHashJoin) keeps both sides, in order of the time by which
// they are evicted. What it keeps is decided on the analyzed plan (StateColumns), before
// any rule of the optimizer. Operators above one work by a watermark of their own
// (Operator.At): what the join may still hold back is not late for them.
package stateful
