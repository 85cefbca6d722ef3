// Package streamtest is the harness for streaming queries: tests are data, this package
// their interpreter. It is imported by tests only.
//
//   - Golden (golden.go) interprets the golden files of testdata/stream: each declares
//     streams, starts a query, drops files and shows every batch. Matrix (variants.go)
//     runs them again restarted, replayed, in other batch sizes, shard counts, formats.
//   - CrashEverywhere (crash.go) runs a scenario with a fault at every call of the
//     filesystem and compares with the run without faults.
//   - World (world.go) is what both are made of: one query over a memory filesystem,
//     run a batch at a time on a clock that stands still.
package streamtest
