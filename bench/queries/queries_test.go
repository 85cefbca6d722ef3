package queries

import (
	"strconv"
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

func TestTPCH(t *testing.T) {
	t.Parallel()
	all, err := TPCH()
	if err != nil || len(all) != 22 {
		t.Fatalf("%d queries, %v", len(all), err)
	}
	for _, q := range all {
		if q.Title == "" || strings.Contains(q.SQL, ";") {
			t.Errorf("%s: %q", q.Name, q.Title)
		}
	}
}

func TestNEXMark(t *testing.T) {
	t.Parallel()
	all, err := NEXMark()
	if err != nil || len(all) != 23 {
		t.Fatalf("%d queries, %v", len(all), err)
	}
	for i, q := range all {
		if !strings.HasSuffix(q.Name, strconv.Itoa(i)) || q.Refused == "" && !q.Reads("bid") && !q.Reads("auction") {
			t.Errorf("%s reads nothing: %s", q.Name, q.SQL)
		}
	}
	for _, text := range []string{"", "SELECT 1", "-- a\nSELECT 1", "-- a\n-- mode: append", "-- a\n-- b: c\nSELECT 1"} {
		if _, err := parseStream("x", text); err == nil {
			t.Errorf("%q was taken", text)
		}
	}
}
