package queries

import (
	"strings"
	"testing"
)

func TestAll(t *testing.T) {
	t.Parallel()
	all, err := All()
	if err != nil || len(all) < 8 {
		t.Fatalf("%d queries, %v", len(all), err)
	}
	for _, q := range all {
		for _, duckdb := range []bool{false, true} {
			if text := q.Text(duckdb, "a'b"); strings.Contains(text, "{") || !strings.Contains(text, "'a''b'") || strings.Contains(text, ";") {
				t.Errorf("%s: %s", q.Name, text)
			}
		}
	}
	if _, err := parse("x", "SELECT 1"); err == nil {
		t.Error("a query without header was taken")
	}
}
