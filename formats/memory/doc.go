// Package memory holds rows in the process: Table (bounded), Stream (a replayable
// source that rows are added to), and Sink (keeps what a query writes, so that it can
// be read as a table). A Store names them. They are gone with the process: a query
// over them can be restarted within it.
package memory
