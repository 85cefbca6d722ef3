// Package functiontest holds the conformance suites of package function: TestScalar and
// TestAggregate. A function that passes them may be registered with a session. It is
// imported by tests only.
package functiontest
