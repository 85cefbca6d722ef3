// Package harness runs what is measured and writes down what came out: as a table, in
// Go's benchmark format, as JSON and as a chart. It is not part of the public API.
package harness
