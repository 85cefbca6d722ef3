// Package physicaltest tests operators: Run executes a plan over the same rows cut,
// encoded and spread over units and goroutines in many ways, and wants the same result
// each time, no leak, no goroutine left, and errors and cancellation passed on. Table
// is an in-memory table whose units a test lays out. It is imported by tests and other
// harness packages only; it is not part of the public API.
package physicaltest
