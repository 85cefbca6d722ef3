package main

import (
	"flag"
	"fmt"
	"path/filepath"
	"testing"

	"github.com/tidemill/tidemill/bench/queries"
)

var scaleFlag = flag.Float64("scale", 0.03, "scale of the decision support benchmark")

// TestTPCH compares the engines on the 22 queries of the decision support benchmark.
// Averages and quotients of decimals are decimals of at least six digits after the point
// in one engine and doubles in the other.
func TestTPCH(t *testing.T) {
	t.Parallel()
	all, err := queries.TPCH()
	if err != nil {
		t.Fatal(err)
	}
	dir := filepath.ToSlash(t.TempDir())
	if err := (&tpchRun{scale: *scaleFlag}).data(dir); err != nil {
		t.Fatal(err)
	}
	e := newEnginesOver(t, tpchTables(dir, "CREATE TABLE %s WITH (path = '%s');\n"), tpchTables(dir, "CREATE VIEW %s AS SELECT * FROM '%s';\n"))
	for _, q := range all {
		s := statement{sql: q.SQL, duckdb: q.SQL, tolerance: 1e-4}
		if d := e.difference(s); d != "" {
			t.Errorf("%s: %s", q.Name, d)
		}
		if rows, err := e.duckdb(q.SQL); err != nil || len(rows) == 0 {
			t.Errorf("%s: %s", q.Name, fmt.Sprint("no rows to compare ", err))
		}
	}
}
