module github.com/tidemill/tidemill/bench/duckdb

go 1.26.0

require (
	github.com/duckdb/duckdb-go/v2 v2.10506.0
	github.com/tidemill/tidemill v0.0.0
)

replace github.com/tidemill/tidemill => ../..
