// Command duckdb is placeholder text.
package main

import (
	_ "github.com/duckdb/duckdb-go/v2"
	_ "github.com/tidemill/tidemill"
)

func main() {}
