// Package connectortest holds the conformance suites of package connector: TestTable,
// TestSource and TestSink. An implementation that passes them can be used in a query
// with every promise the engine makes. It is imported by tests only.
package connectortest
