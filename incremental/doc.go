// Package incremental runs streaming queries: one micro-batch after another over what
// landed since the last, exactly once, whatever kills it in between. It is the last
// layer below the public API: package tidemill starts a Query from a plan and a sink.
//
// # The loop
//
// A Query is one goroutine around a streamExecution (MISSION's StreamExecution). It opens
// the checkpoint, recovers, and then, whenever its Trigger allows, does this for batch N =
// currentBatchID. Each step is durable before the next one starts; the same steps, with
// what each leaves on disk, are in package checkpoint.
//
//  1. Find offsets (construct.go). Each source is asked for the end of the next batch,
//     within its limit; what the batch will read is in sources/I by then. If nothing is new,
//     and no state waits for the watermark, there is no batch. Otherwise offsets/N is
//     written: the ranges (committed, available], batch time, seed, both watermarks and
//     the maxima behind them, the files of bounded tables, the pinned settings.
//  2. Run (execution.go, run.go). The optimized plan is planned by strategies in front of
//     the batch engine's: a StreamScan reads its range, a bounded table the files that
//     were logged, a Watermark is observed, a stateful node restores version N. The sink
//     drains the plan into staging. Then the inputs are compared with what was logged: a
//     file that changed or vanished withdraws the batch, and it is planned again.
//  3. Save. Every operator writes the files of version N+1; then prepared/N names them,
//     with the next watermark, the input fingerprints and the counters.
//  4. Publish. The sink makes batch N visible by one atomic decision. Until here the batch
//     may be run again, or withdrawn; from here on it never runs again for its output.
//  5. Commit. prepared/N is renamed to commits/N.
//  6. Give back. Each source may discard what batch N-1 read, state files are joined into
//     snapshots, old batches folded into history; the progress report goes out.
//
// The steps of two batches overlap where that can be seen neither on disk nor in the
// output. The state of a batch is saved (step 3) while the sink ends what it stages (step
// 2). And where the trigger lets batch N+1 follow at once, and a source knows that there is
// data for it, it sets out (ahead.go) before batch N is prepared, published and committed:
// its sources' entries are written, and its operators work, in memory. Nothing of it is
// staged or saved before offsets/N+1, which comes after commits/N. If batch N fails there,
// or the query is stopped, batch N+1 is forgotten; its entries are adopted. If it cannot be
// planned early, it is planned in its turn, where it is tried again, or withdrawn.
//
// Without state, or where only aggregates keep some, it sets out sooner still (beside.go):
// when the last piece of batch N's input has been taken, and its watermarks have seen every
// row, so that workers of batch N that find nothing more to read do not wait for those that
// merge and stage. What its sources note is held in memory until batch N has passed step 3,
// and its operators wait at a gate below the state until that is saved. If batch N fails in
// there it is run again, and the loop is set back; if memory is short for two, they do not
// overlap any more.
//
// Errors of the device in steps 2 and 3 are tried again, up to maxAttempts. Any other
// error ends the query; the next start recovers.
//
// # Recovery
//
// recover.go first lets the sink finish a batch whose decision was made, then does what
// checkpoint.Dir.Recover says until nothing is open:
//
//	plan          nothing is open: go on with step 1
//	run           offsets/N is there, and N is not visible: steps 2 to 6 with the logged
//	              values; or withdraw, if an input changed
//	roll forward  N is visible and its state whole: steps 5 and 6
//	rebuild       N is visible and what it left is lost: steps 2 and 3 with the rows
//	              dropped, then 5 and 6
//
// A batch is a function of its entry in offsets/N and state version N: it gives the same
// rows whenever it runs. So nothing in steps 2 and 3 may look at the clock, at the
// directory, or at chance: batch time, files and seed come from the entry.
//
// # Watermarks
//
// watermark.go keeps the largest event time each Watermark node has seen, derives the
// global watermark from them by the policy, and never lets it go back. Batch N judges
// rows late by the watermark of batch N-1 and evicts state by its own; equal is passed,
// in both. When the watermark has moved and an operator evicts by it, a batch without data
// runs, at once after a restart, too.
//
// # Parts
//
//	query.go, loop.go        Query: start, stop, status · triggers
//	construct.go, run.go     a batch: steps 1 · 2 to 6
//	ahead.go, beside.go      the next batch, begun early · while this one is being saved
//	recover.go               where a start goes on
//	replay.go                logged batches again, for verify and replay
//	execution.go             IncrementalExecution: what a query keeps over its batches
//	strategies.go, names.go  plan nodes that differ from the batch engine's · names of states
//	watermark.go, trigger.go, growth.go, progress.go, report.go, listener.go
//	stateful                 operators with state; state: the state store
//	metrics                  what queries report, over HTTP
//	streamtest               golden streams, crashes, batch = stream (tests only)
//
// A Query's methods are safe for concurrent use; everything else belongs to the loop's
// goroutine.
package incremental
