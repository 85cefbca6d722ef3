// Package columnartest helps tests that handle Arrow batches: an allocator that
// finds leaks and use after release (Mem), batches written as text (Batch), random
// batches (Random), canonical differences (Diff), and Readers that split, fail or
// count closes. It is imported by tests and other harness packages only; it is not
// part of the public API.
package columnartest
