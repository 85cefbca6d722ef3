// Package streamtest is the harness for streaming queries: tests are data, this package
// their interpreter. It is imported by tests only.
//
//   - Golden (golden.go) interprets the golden files of testdata/stream. Matrix
//     (variants.go) runs them again restarted, replayed, killed, in other batch sizes,
//     shard counts and formats.
//   - CrashEverywhere (crash.go) runs a Scenario with a fault at every call of the
//     filesystem and compares with the run without faults; FlipEverywhere (flip.go) with a
//     changed byte in every file of the checkpoint.
//   - Case (generate.go, law.go, minimise.go) is a generated query held to the law that a
//     stream's result is that of the batch.
//   - World (world.go) is what all are made of: one query over a memory filesystem, run a
//     batch at a time on a clock that stands still.
//
// # Golden files
//
// A file begins with a comment that says what rule it pins, and holds directives as
// datadriven reads them: a line, input, ----, what is expected. -rewrite fills that in, to
// be reviewed. Files given to a directive are txtar sections below /in; a last line \c
// takes away the line end before it.
//
//	source NAME format= schema=(…) [watermark=(column, delay)] [limit=n] [options=(k = 'v', …)]
//	table NAME format= schema=(…)      a bounded table, with its files
//	sql                                any other statements
//	query mode= [sink=json|csv|parquet|noop] [sink_options=(k, v, …)] [set=(k, v, …)] [retain=n]
//	files                              writes files, runs nothing
//	rm FILE · touch FILE               changes an input file
//	trigger [clock=+5s] [repeat=n] [ordered]   files, then exactly one micro-batch
//	drain [ordered]                    files, then batches until there is nothing left
//	restart [mode=] [set=(…)] [limit=n] [delay=(…)]   with the SQL of the input, or as it
//	                                   was; what is refused leaves the old query running
//	crash [keep=0|50|100] [seed=n]     arms the fault rule of the input: the trigger that
//	                                   runs into it prints crashed, the next one recovers
//	state op=(NAME) [table=] · sink · ls DIR · offsets · warnings · progress [only=FIELD] · trace
//	explain                            the incremental plan
//
// A trigger prints one line a batch, from its commit, then the rows it wrote. Errors are
// printed, so that they are golden, too; an error ends the query, and the next trigger
// starts it again. explain, ls, progress, trace, offsets and warnings are compared in the
// plain run only.
package streamtest
