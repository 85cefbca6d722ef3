package tidemill_test

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/cockroachdb/datadriven"

	"github.com/tidemill/tidemill"
	"github.com/tidemill/tidemill/columnar"
)

// TestValues runs testdata/values/<topic>: query runs a query a line, in the time zone of
// zone=NAME, and prints its rows, or the first line of its error. Each is run once more in
// batches of one row by several threads, and once without the rules that compute ahead.
func TestValues(t *testing.T) {
	t.Parallel()
	variants := []map[string]string{
		nil,
		{"batch_rows": "1", "threads": "3"},
		{"disabled_rules": "fold_constants, simplify, rewrite_distinct, push_aggregate"},
	}
	datadriven.Walk(t, "testdata/values", func(t *testing.T, path string) {
		t.Parallel()
		datadriven.RunTest(t, path, func(t *testing.T, d *datadriven.TestData) string {
			zone := "UTC"
			d.MaybeScanArgs(t, "zone", &zone)
			var out strings.Builder
			for _, query := range strings.Split(d.Input, "\n") {
				var want string
				for i, settings := range variants {
					got := resultOf(t, zone, settings, query)
					if i == 0 {
						want = got
						fmt.Fprintf(&out, "%s\n%s", query, got)
					} else if got != want && !(strings.HasPrefix(got, "  error: ") && strings.HasPrefix(want, "  error: ")) {
						t.Errorf("%s\nwith %v:\n%snot:\n%s", query, settings, got, want)
					}
				}
			}
			return out.String()
		})
	})
}

// resultOf is what a query gives, indented.
func resultOf(t *testing.T, zone string, settings map[string]string, query string) string {
	t.Helper()
	s, err := tidemill.NewSession(tidemill.Options{Settings: settings})
	if err != nil {
		t.Fatal(err)
	}
	if err := s.Set("time_zone", zone); err != nil {
		t.Fatal(err)
	}
	ctx := context.Background()
	df, err := s.SQL(ctx, query)
	if err == nil {
		var rows *tidemill.Rows
		if rows, err = s.Collect(ctx, df); err == nil {
			defer rows.Release()
			return indented(append([]string{typesOf(rows)}, textsOf(rows, s.Location(), strings.Contains(query, "ORDER BY"))...))
		}
	}
	text, _, _ := strings.Cut(err.Error(), "\n")
	return indented([]string{"error: " + text})
}

// typesOf are those of the columns.
func typesOf(rows *tidemill.Rows) string {
	var names []string
	for _, f := range rows.Schema().Fields() {
		names = append(names, columnar.TypeName(f.Type))
	}
	return strings.Join(names, ", ")
}

// textsOf are the rows, sorted unless they are ordered.
func textsOf(rows *tidemill.Rows, loc *time.Location, ordered bool) []string {
	var lines []string
	for _, b := range rows.Batches() {
		for i := range int(b.NumRows()) {
			var cells []string
			for _, column := range b.Columns() {
				cells = append(cells, string(columnar.AppendCanonical(nil, column, i, loc)))
			}
			lines = append(lines, strings.Join(cells, " | "))
		}
	}
	if !ordered {
		slices.Sort(lines)
	}
	return lines
}

func indented(lines []string) string {
	return "  " + strings.Join(lines, "\n  ") + "\n"
}
