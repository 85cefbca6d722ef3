// Command duckdb sets Tidemill beside DuckDB: the same queries over the same files in
// the same run, and a result kept fresh while files land. Its tests run a corpus of
// statements on both engines and compare the values. It is a module of its own, since
// DuckDB needs cgo and Tidemill does not.
//
//	go build -o /tmp/tidemill ../../cmd/tidemill
//	go run . compare -tidemill /tmp/tidemill -rows 10000000
//	go run . fresh -tidemill /tmp/tidemill
//	go run . smoke -tidemill /tmp/tidemill
//	go test .
package main
