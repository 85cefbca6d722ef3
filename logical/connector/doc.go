// Package connector is the contract with the outside: Table (read as a whole),
// Source (read by offset ranges, for ever) and Sink (written a batch at a time).
// connectortest holds a conformance suite for each; an implementation that passes
// it can be used in a query with every promise the engine makes.
package connector
